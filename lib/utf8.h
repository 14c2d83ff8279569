/*
 * utf8.h: the one rule that every reader of text needs.
 */
#ifndef NL_UTF8_H
#define NL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length (1 to 4) of the UTF-8 sequence that begins at s[0], size >= 1 bytes being there; 0 when it is
   none (RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF). */
static inline size_t nl_utf8_length(const uint8_t *s, size_t size)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
               (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
    return bad ? 0 : length;
}

#endif
