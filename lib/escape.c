#include "escape.h"

#include <stdio.h>

/* The code point at s, which is UTF-8 or the pair C0 80; stray bytes count as themselves. */
static uint32_t decode(const char *s, size_t *length)
{
    const uint8_t *b = (const uint8_t *)s;
    size_t more = b[0] >= 0xf0 ? 3 : b[0] >= 0xe0 ? 2 : b[0] >= 0xc0 ? 1 : 0;
    uint32_t c = more == 3 ? b[0] & 7u : more == 2 ? b[0] & 15u : more == 1 ? b[0] & 31u : b[0];
    for (size_t i = 1; i <= more; i++) {
        if ((b[i] & 0xc0) != 0x80) {
            *length = i;
            return b[0];
        }
        c = c << 6 | (b[i] & 0x3f);
    }
    *length = more + 1;
    return c;
}

/* Controls, line separators, and what changes the direction of the text around it. */
static bool unfit(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void nl_escape(struct nl_buf *out, const char *name, size_t limit)
{
    size_t begin = out->size;
    for (size_t at = 0, length; name[at]; at += length) {
        uint32_t c = decode(name + at, &length);
        char escaped[8];
        const char *piece = name + at;
        size_t size = length;
        if (unfit(c)) {
            size = (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c & 0xffff);
            piece = escaped;
        } else if (c == '\\') {
            size = 2;
            piece = "\\\\";
        }
        if (limit && out->size - begin + size > limit) {
            nl_buf_puts(out, "...");
            return;
        }
        nl_buf_add(out, piece, size);
    }
}

const char *nl_show(char shown[NL_SHOWN], const char *name)
{
    struct nl_buf text = {0};
    nl_escape(&text, name, NL_SHOWN - 6); /* room for "...", the quotes and NUL */
    snprintf(shown, NL_SHOWN, "'%s'", text.size ? text.data : "");
    nl_buf_free(&text);
    return shown;
}
