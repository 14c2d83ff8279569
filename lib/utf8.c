#include "utf8.h"

#include <string.h>

#include "buf.h"

/* The bytes a sequence with this first byte has (0: none starts so), and the limits of its second byte. */
static unsigned lead(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    if (first < 0xe0)
        return 2;
    if (first == 0xe0)
        *low = 0xa0;
    else if (first == 0xed)
        *high = 0x9f;
    else if (first == 0xf0)
        *low = 0x90;
    else if (first == 0xf4)
        *high = 0x8f;
    return first < 0xf0 ? 3 : 4;
}

size_t nl_utf8_check(const char *text, size_t length, size_t *bad)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;
    while (at < length) {
        uint64_t eight;
        while (at + 8 <= length && (memcpy(&eight, s + at, 8), !(eight & 0x8080808080808080u)))
            at += 8;
        if (at == length)
            break;
        unsigned char low, high;
        unsigned size = lead(s[at], &low, &high), good = 1;
        while (good < size && at + good < length && s[at + good] >= low && s[at + good] <= high) {
            good++;
            low = 0x80;
            high = 0xbf;
        }
        if (size == 0 || good < size) {
            if (bad)
                *bad = good;
            return at;
        }
        at += size;
    }
    return length;
}

void nl_utf8_repair(const char *text, size_t length, struct nl_buf *out)
{
    size_t at = 0, bad = 0;
    nl_buf_add(out, "", 0);
    while (at < length) {
        size_t good = nl_utf8_check(text + at, length - at, &bad);
        nl_buf_add(out, text + at, good);
        at += good;
        if (at == length)
            break;
        nl_buf_puts(out, "\xef\xbf\xbd");
        at += bad;
    }
}

uint32_t nl_utf8_get(const char *text, unsigned *size)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        *size = 1;
        return s[0];
    }
    if (s[0] < 0xe0) {
        *size = 2;
        return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    }
    if (s[0] < 0xf0) {
        *size = 3;
        return (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    }
    *size = 4;
    return (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
}

unsigned nl_utf8_size(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

unsigned nl_utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    unsigned size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = size - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[size] | c);
    return size;
}

size_t nl_utf8_back(const char *text, size_t end)
{
    do
        end--;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80);
    return end;
}
