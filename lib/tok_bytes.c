/*
 * GPT-2's characters for bytes: the printable bytes of Latin-1 stand for themselves, the other 68, in
 * ascending order, are U+0100, U+0101, ... (https://github.com/openai/gpt-2, encoder.py, bytes_to_unicode).
 */
#include "tok.h"
#include "unicode.h"

static bool stands_for_itself(unsigned c)
{
    return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

/* The others are 0x00-0x20, 0x7f-0xa0, 0xad. */
static uint32_t char_of_byte(unsigned byte)
{
    if (stands_for_itself(byte))
        return byte;
    return byte <= 0x20 ? 0x100 + byte : byte == 0xad ? 0x143 : 0x121 + (byte - 0x7f);
}

static int byte_of_char(uint32_t c)
{
    if (c < 0x100)
        return stands_for_itself(c) ? (int)c : -1;
    if (c > 0x143)
        return -1;
    return c <= 0x120 ? (int)(c - 0x100) : c == 0x143 ? 0xad : (int)(c - 0x121 + 0x7f);
}

void nl_tok_bytes_to_chars(const char *bytes, size_t size, struct nl_buf *out)
{
    for (size_t i = 0; i < size; i++) {
        char utf8[4];
        nl_buf_add(out, utf8, nl_utf8_put(char_of_byte((unsigned char)bytes[i]), utf8));
    }
}

bool nl_tok_chars_to_bytes(const char *text, size_t size, struct nl_buf *out)
{
    size_t start = out->size;
    for (size_t at = 0; at < size;) {
        unsigned step;
        int byte = byte_of_char(nl_utf8_get(text + at, &step));
        if (byte < 0) {
            out->size = start;
            return false;
        }
        nl_buf_putc(out, (char)byte);
        at += step;
    }
    return true;
}
