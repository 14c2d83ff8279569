#include "json_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "utf8.h"

enum {
    MAX_DEPTH = 1000, /* as CJSON_NESTING_LIMIT */
    MAX_NUMBER = 60,  /* some versions of cJSON read no more than 63 characters of a number */
};

struct scan {
    const uint8_t *text;
    size_t length, at;
    struct nl_buf *patched; /* what cJSON shall read instead, done up to text + copied; empty: no patch yet */
    size_t copied;
    const char *name;
    struct nl_error *error;
};

static int fault(struct scan *scan, const char *what)
{
    return nl_fail(scan->error, NL_DATA, "%s at byte %zu: %s", what, scan->at, scan->name);
}

/* The byte at `ahead` places from here, -1 past the end. */
static int peek(const struct scan *scan, size_t ahead)
{
    return ahead < scan->length - scan->at ? scan->text[scan->at + ahead] : -1;
}

/* Replaces the `size` bytes from here in what cJSON reads, and steps over them. */
static void patch(struct scan *scan, size_t size, const char *replacement)
{
    nl_buf_add(scan->patched, scan->text + scan->copied, scan->at - scan->copied);
    nl_buf_puts(scan->patched, replacement);
    scan->at += size;
    scan->copied = scan->at;
}

/* The value of the four hexadecimal digits `ahead` places from here, -1 when they are none. */
static int hex4(const struct scan *scan, size_t ahead)
{
    int value = 0;
    for (size_t i = 0; i < 4; i++) {
        int c = peek(scan, ahead + i);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static int scan_escape(struct scan *scan)
{
    int c = peek(scan, 1);
    if (c > 0 && strchr("\"\\/bfnrt", c)) {
        scan->at += 2;
        return 0;
    }
    int unit = c == 'u' ? hex4(scan, 2) : -1;
    if (unit < 0)
        return fault(scan, "bad escape in a string");
    if (unit == 0) {
        patch(scan, 6, "\xc0\x80");
        return 0;
    }
    bool pair = unit >= 0xd800 && unit < 0xdc00;
    if (pair) {
        int low = peek(scan, 6) == '\\' && peek(scan, 7) == 'u' ? hex4(scan, 8) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fault(scan, "half a surrogate pair in a string");
    } else if (unit >= 0xdc00 && unit < 0xe000) {
        return fault(scan, "half a surrogate pair in a string");
    }
    scan->at += pair ? 12 : 6;
    return 0;
}

static int scan_string(struct scan *scan)
{
    scan->at++;
    while (scan->at < scan->length) {
        uint8_t c = scan->text[scan->at];
        if (c == '"') {
            scan->at++;
            return 0;
        }
        if (c == '\\') {
            if (scan_escape(scan) != 0)
                return -1;
            continue;
        }
        if (c < 0x20)
            return fault(scan, "control character in a string");
        size_t length = nl_utf8_length(scan->text + scan->at, scan->length - scan->at);
        if (length == 0)
            return fault(scan, "not UTF-8");
        scan->at += length;
    }
    return fault(scan, "string without end");
}

static size_t count_digits(const struct scan *scan, size_t from)
{
    size_t count = 0;
    for (int c = peek(scan, from); c >= '0' && c <= '9'; c = peek(scan, from + count))
        count++;
    return count;
}

/* The length of the number that begins here as JSON spells it, 0 when it is spelt otherwise. */
static size_t number_length(const struct scan *scan)
{
    size_t size = peek(scan, 0) == '-';
    size_t digits = count_digits(scan, size);
    if (digits == 0 || (digits > 1 && peek(scan, size) == '0'))
        return 0;
    size += digits;
    if (peek(scan, size) == '.') {
        digits = count_digits(scan, size + 1);
        if (digits == 0)
            return 0;
        size += 1 + digits;
    }
    int c = peek(scan, size);
    if (c == 'e' || c == 'E') {
        c = peek(scan, size + 1);
        size += 1 + (c == '+' || c == '-');
        digits = count_digits(scan, size);
        if (digits == 0)
            return 0;
        size += digits;
    }
    return size;
}

static int scan_number(struct scan *scan)
{
    size_t size = number_length(scan);
    if (size == 0)
        return fault(scan, "bad number");
    if (size < 16 && !memchr(scan->text + scan->at, 'e', size) && !memchr(scan->text + scan->at, 'E', size)) {
        scan->at += size; /* the common case: surely in range */
        return 0;
    }
    char *copy = strndup((const char *)scan->text + scan->at, size);
    if (!copy)
        return nl_fail_memory(scan->error, scan->name);
    double value = strtod(copy, NULL);
    free(copy);
    if (!isfinite(value))
        return fault(scan, "number out of range");
    if (size > MAX_NUMBER) {
        char shorter[40];
        snprintf(shorter, sizeof shorter, "%.17g", value);
        patch(scan, size, shorter);
    } else {
        scan->at += size;
    }
    return 0;
}

static void skip_blanks(struct scan *scan)
{
    for (int c = peek(scan, 0); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(scan, 0))
        scan->at++;
}

static int scan_word(struct scan *scan, const char *word)
{
    size_t length = strlen(word);
    if (length > scan->length - scan->at || memcmp(scan->text + scan->at, word, length) != 0)
        return fault(scan, "unexpected character");
    scan->at += length;
    return 0;
}

static int scan_value(struct scan *scan, unsigned depth);

/* What stands between the brackets of an array or an object. */
static int scan_members(struct scan *scan, bool object, unsigned depth)
{
    const int close = object ? '}' : ']';
    if (depth == MAX_DEPTH)
        return fault(scan, "nested too deeply");
    scan->at++;
    skip_blanks(scan);
    if (peek(scan, 0) == close) {
        scan->at++;
        return 0;
    }
    for (;;) {
        if (object) {
            skip_blanks(scan);
            if (peek(scan, 0) != '"')
                return fault(scan, "expected a key");
            if (scan_string(scan) != 0)
                return -1;
            skip_blanks(scan);
            if (peek(scan, 0) != ':')
                return fault(scan, "expected ':'");
            scan->at++;
        }
        if (scan_value(scan, depth + 1) != 0)
            return -1;
        int c = peek(scan, 0);
        if (c != ',' && c != close)
            return fault(scan, object ? "expected ',' or '}'" : "expected ',' or ']'");
        scan->at++;
        if (c == close)
            return 0;
    }
}

/* A value with the blanks on both sides. */
static int scan_value(struct scan *scan, unsigned depth)
{
    int result;
    skip_blanks(scan);
    int c = peek(scan, 0);
    switch (c) {
    case -1:
        return fault(scan, "unexpected end");
    case '{':
    case '[':
        result = scan_members(scan, c == '{', depth);
        break;
    case '"':
        result = scan_string(scan);
        break;
    case 't':
        result = scan_word(scan, "true");
        break;
    case 'f':
        result = scan_word(scan, "false");
        break;
    case 'n':
        result = scan_word(scan, "null");
        break;
    default:
        result = c == '-' || (c >= '0' && c <= '9') ? scan_number(scan) : fault(scan, "unexpected character");
    }
    skip_blanks(scan);
    return result;
}

int nl_json_scan(const char *text, size_t length, const char *name, struct nl_buf *patched,
                 struct nl_error *error)
{
    struct scan scan = {
        .text = (const uint8_t *)text, .length = length, .patched = patched, .name = name, .error = error};
    if (scan_value(&scan, 0) != 0)
        return -1;
    if (scan.at < length)
        return fault(&scan, "something after the value");
    if (scan.copied > 0)
        patch(&scan, 0, "");
    return nl_buf_check(patched, name, error);
}
