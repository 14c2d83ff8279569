/*
 * utf8.h: UTF-8 (RFC 3629): what is valid, from characters to bytes and back.
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

/* `length` itself when all is UTF-8 (no surrogates, nothing overlong), else the offset of the first byte that
 * is not; bad (may be NULL) gets the length of that maximal bad part, which one U+FFFD replaces. */
size_t nl_utf8_check(const char *text, size_t length, size_t *bad);
struct nl_buf;
/* Appends the text with U+FFFD in the place of each maximal part that is not UTF-8. */
void nl_utf8_repair(const char *text, size_t length, struct nl_buf *out);
/* The character that begins at valid UTF-8; *size its bytes. */
uint32_t nl_utf8_get(const char *text, unsigned *size);
/* The bytes of a character that begins with this byte. */
unsigned nl_utf8_size(unsigned char first);
/* Writes 1 to 4 bytes; returns how many. */
unsigned nl_utf8_put(uint32_t c, char out[4]);
/* The start of the last character before `end` > 0. */
size_t nl_utf8_back(const char *text, size_t end);

#endif
