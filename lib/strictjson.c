#include "strictjson.h"

#include "utf8.h"

/* As deep as the official safetensors library goes below an entry of the header. */
enum { DEEPEST = 125 };

static bool fail_at(struct nl_scan *scan, size_t at, const char *fault)
{
    scan->at = at;
    scan->fault = fault;
    return false;
}

static bool fail(struct nl_scan *scan, const char *fault)
{
    return fail_at(scan, scan->at, scan->at < scan->size ? fault : "unexpected end");
}

int nl_scan_peek(struct nl_scan *scan)
{
    while (scan->at < scan->size) {
        uint8_t c = scan->text[scan->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return c;
        scan->at++;
    }
    return -1;
}

bool nl_scan_take(struct nl_scan *scan, char wanted)
{
    if (nl_scan_peek(scan) != wanted)
        return false;
    scan->at++;
    return true;
}

int nl_scan_next(struct nl_scan *scan, char close, bool *first)
{
    if (nl_scan_take(scan, close))
        return 0;
    if (!*first) {
        if (!nl_scan_take(scan, ',')) {
            fail(scan, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
            return -1;
        }
        if (nl_scan_peek(scan) == close) {
            fail(scan, "trailing comma");
            return -1;
        }
    }
    *first = false;
    return 1;
}

static bool hex4(struct nl_scan *scan, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++, scan->at++) {
        if (scan->at == scan->size)
            return fail(scan, "");
        uint8_t c = scan->text[scan->at];
        if (c >= '0' && c <= '9')
            *value = *value * 16 + (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            *value = *value * 16 + (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return fail(scan, "expected a hexadecimal digit");
    }
    return true;
}

/* U+0000 in two bytes, which no valid UTF-8 holds. */
static void put_utf8(struct nl_buf *out, uint32_t c)
{
    char bytes[4];
    if (c == 0)
        nl_buf_puts(out, "\xc0\x80");
    else
        nl_buf_add(out, bytes, nl_utf8_put(c, bytes));
}

/* The scan stands behind "\u". */
static bool unicode_escape(struct nl_scan *scan, struct nl_buf *out)
{
    size_t begin = scan->at - 2;
    uint32_t c, low;
    if (!hex4(scan, &c))
        return false;
    if (c >= 0xd800 && c < 0xe000) {
        bool pair = c < 0xdc00 && scan->size - scan->at >= 2 && scan->text[scan->at] == '\\' &&
                    scan->text[scan->at + 1] == 'u';
        if (!pair)
            return fail_at(scan, begin, "half of a surrogate pair");
        scan->at += 2;
        if (!hex4(scan, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return fail_at(scan, begin, "half of a surrogate pair");
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
    }
    if (out)
        put_utf8(out, c);
    return true;
}

/* The scan stands behind the backslash. */
static bool escape(struct nl_scan *scan, struct nl_buf *out)
{
    static const char codes[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    if (scan->at == scan->size)
        return fail(scan, "");
    uint8_t c = scan->text[scan->at++];
    if (c == 'u')
        return unicode_escape(scan, out);
    const char *code = c ? strchr(codes, c) : NULL;
    if (!code)
        return fail_at(scan, scan->at - 2, "unknown escape");
    if (out)
        nl_buf_putc(out, bytes[code - codes]);
    return true;
}

bool nl_scan_string(struct nl_scan *scan, struct nl_buf *out)
{
    if (out) {
        nl_buf_clear(out);
        nl_buf_add(out, "", 0);
    }
    if (!nl_scan_take(scan, '"'))
        return fail(scan, "expected a string");
    while (scan->at < scan->size) {
        size_t begin = scan->at;
        uint8_t c;
        while (scan->at < scan->size && (c = scan->text[scan->at]) >= 0x20 && c < 0x80 && c != '"' &&
               c != '\\')
            scan->at++;
        if (out)
            nl_buf_add(out, scan->text + begin, scan->at - begin);
        if (scan->at == scan->size)
            break;
        c = scan->text[scan->at];
        if (c < 0x20)
            return fail(scan, "control character in a string");
        if (c >= 0x80) {
            size_t length = nl_utf8_length(scan->text + scan->at, scan->size - scan->at);
            if (length == 0)
                return fail(scan, "invalid UTF-8");
            if (out)
                nl_buf_add(out, scan->text + scan->at, length);
            scan->at += length;
            continue;
        }
        scan->at++;
        if (c == '"')
            return true;
        if (!escape(scan, out))
            return false;
    }
    return fail(scan, "");
}

bool nl_scan_key(struct nl_scan *scan, struct nl_buf *out)
{
    if (nl_scan_peek(scan) != '"')
        return fail(scan, "expected a key in double quotes");
    if (!nl_scan_string(scan, out))
        return false;
    return nl_scan_take(scan, ':') || fail(scan, "expected ':'");
}

static size_t digits(struct nl_scan *scan)
{
    size_t begin = scan->at;
    while (scan->at < scan->size && scan->text[scan->at] >= '0' && scan->text[scan->at] <= '9')
        scan->at++;
    return scan->at - begin;
}

static bool at_byte(const struct nl_scan *scan, const char *set)
{
    return scan->at < scan->size && scan->text[scan->at] && strchr(set, scan->text[scan->at]);
}

/* *whole: there is neither sign, fraction nor exponent. */
static bool number(struct nl_scan *scan, bool *whole)
{
    *whole = true;
    if (at_byte(scan, "-")) {
        *whole = false;
        scan->at++;
    }
    size_t begin = scan->at, count = digits(scan);
    if (count == 0)
        return fail(scan, "expected a value");
    if (count > 1 && scan->text[begin] == '0')
        return fail_at(scan, begin, "leading zero in a number");
    if (at_byte(scan, ".")) {
        *whole = false;
        scan->at++;
        if (digits(scan) == 0)
            return fail(scan, "expected a digit");
    }
    if (at_byte(scan, "eE")) {
        *whole = false;
        scan->at++;
        if (at_byte(scan, "+-"))
            scan->at++;
        if (digits(scan) == 0)
            return fail(scan, "expected a digit");
    }
    return true;
}

static bool word(struct nl_scan *scan, const char *letters)
{
    size_t length = strlen(letters);
    if (scan->size - scan->at < length || memcmp(scan->text + scan->at, letters, length) != 0)
        return fail(scan, "expected a value");
    scan->at += length;
    return true;
}

/* A string, or else a number. */
static bool skip_plain(struct nl_scan *scan)
{
    bool whole, string = nl_scan_peek(scan) == '"';
    size_t begin = scan->at;
    if (!(string ? nl_scan_string(scan, NULL) : number(scan, &whole)))
        return false;
    const char *fault = scan->seen ? scan->seen(scan, begin) : NULL;
    return !fault || fail_at(scan, begin, fault);
}

static bool skip_key(struct nl_scan *scan)
{
    if (nl_scan_peek(scan) != '"')
        return fail(scan, "expected a key in double quotes");
    return skip_plain(scan) && (nl_scan_take(scan, ':') || fail(scan, "expected ':'"));
}

/* `left`: how many levels more there may be. */
static bool skip_nested(struct nl_scan *scan, unsigned left)
{
    bool first = true;
    int more, c = nl_scan_peek(scan);
    if (c == 't')
        return word(scan, "true");
    if (c == 'f')
        return word(scan, "false");
    if (c == 'n')
        return word(scan, "null");
    if (c != '{' && c != '[')
        return skip_plain(scan);
    if (left == 0)
        return fail(scan, "nested too deeply");
    scan->at++;
    while ((more = nl_scan_next(scan, c == '{' ? '}' : ']', &first)) > 0)
        if ((c == '{' && !skip_key(scan)) || !skip_nested(scan, left - 1))
            return false;
    return more == 0;
}

bool nl_scan_skip(struct nl_scan *scan)
{
    return skip_nested(scan, scan->deepest ? scan->deepest : DEEPEST);
}

enum nl_whole nl_scan_whole(struct nl_scan *scan, uint64_t *value)
{
    int c = nl_scan_peek(scan);
    if (c != '-' && (c < '0' || c > '9'))
        return nl_scan_skip(scan) ? NL_WHOLE_NOT : NL_WHOLE_FAULT;
    size_t begin = scan->at;
    bool whole;
    if (!number(scan, &whole))
        return NL_WHOLE_FAULT;
    if (!whole)
        return NL_WHOLE_NOT;
    *value = 0;
    for (size_t i = begin; i < scan->at; i++)
        if (!nl_mul(*value, 10, value) || !nl_add(*value, scan->text[i] - '0', value))
            return NL_WHOLE_NOT;
    return NL_WHOLE_OK;
}
