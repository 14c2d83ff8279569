#include "escape.h"

#include <stdio.h>

#include "utf8.h"

/* The code point at s and its length; -1 for a byte that is not UTF-8. */
static int32_t decode(const char *s, size_t *length)
{
    const uint8_t *b = (const uint8_t *)s;
    *length = 2;
    if (b[0] == 0xc0 && b[1] == 0x80)
        return 0;
    size_t there = 1; /* up to the NUL, at most 4 */
    while (there < 4 && b[there])
        there++;
    *length = nl_utf8_length(b, there);
    if (*length == 0) {
        *length = 1;
        return -1;
    }
    unsigned size;
    return (int32_t)nl_utf8_get(s, &size);
}

static bool unfit(int32_t c)
{
    return (c >= 0 && c < 0x20) || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void nl_escape(struct nl_buf *out, const char *name, size_t limit)
{
    size_t begin = out->size;
    for (size_t at = 0, length; name[at]; at += length) {
        int32_t c = decode(name + at, &length);
        char escaped[16] = "\\\\";
        if (c < 0)
            snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned)(unsigned char)name[at]);
        else if (unfit(c))
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)c);
        else if (c != '\\')
            escaped[0] = '\0';
        const char *piece = escaped[0] ? escaped : name + at;
        size_t size = escaped[0] ? strlen(escaped) : length;
        if (limit && out->size - begin + size > limit) {
            nl_buf_puts(out, "...");
            return;
        }
        nl_buf_add(out, piece, size);
    }
}

void nl_escape_json(struct nl_buf *out, const char *name)
{
    nl_buf_putc(out, '"');
    for (size_t at = 0, length; name[at]; at += length) {
        int32_t c = decode(name + at, &length);
        if (c < 0)
            nl_buf_puts(out, "\xef\xbf\xbd");
        else if (unfit(c))
            nl_buf_printf(out, "\\u%04x", (unsigned)c);
        else {
            if (c == '"' || c == '\\')
                nl_buf_putc(out, '\\');
            nl_buf_add(out, name + at, length);
        }
    }
    nl_buf_putc(out, '"');
}

const char *nl_show(char shown[NL_SHOWN], const char *name)
{
    struct nl_buf text = {0};
    nl_escape(&text, name, NL_SHOWN - 6); /* room for "...", the quotes and NUL */
    snprintf(shown, NL_SHOWN, "'%s'", text.size ? text.data : "");
    nl_buf_free(&text);
    return shown;
}
