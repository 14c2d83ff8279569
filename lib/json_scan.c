#include "json_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "strictjson.h"

enum {
    DEEPEST = 1000,  /* as CJSON_NESTING_LIMIT */
    MAX_NUMBER = 60, /* some versions of cJSON read no more than 63 characters of a number */
};

struct reader {
    struct nl_scan scan;    /* the first, so that it leads to the rest */
    struct nl_buf *patched; /* what cJSON shall read instead, done up to text + copied; empty: no patch yet */
    size_t copied;
    bool no_memory;
};

/* Replaces a part of the text in what cJSON reads. */
static void patch(struct reader *reader, size_t begin, size_t end, const char *replacement)
{
    nl_buf_add(reader->patched, reader->scan.text + reader->copied, begin - reader->copied);
    nl_buf_puts(reader->patched, replacement);
    reader->copied = end;
}

static void look_at_string(struct reader *reader, size_t begin)
{
    const uint8_t *text = reader->scan.text, *at = text + begin, *end = text + reader->scan.at;
    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        bool zero = end - at > 6 && memcmp(at + 1, "u0000", 5) == 0;
        if (zero)
            patch(reader, (size_t)(at - text), (size_t)(at - text) + 6, "\xc0\x80");
        at += zero ? 6 : 2;
    }
}

static const char *look_at_number(struct reader *reader, size_t begin)
{
    size_t size = reader->scan.at - begin;
    const char *text = (const char *)reader->scan.text + begin;
    if (size < 16 && !memchr(text, 'e', size) && !memchr(text, 'E', size))
        return NULL; /* the common case: surely in range */
    char *copy = strndup(text, size);
    if (!copy) {
        reader->no_memory = true;
        return "out of memory";
    }
    double value = strtod(copy, NULL);
    free(copy);
    if (!isfinite(value))
        return "number out of range";
    if (size > MAX_NUMBER) {
        char shorter[40];
        snprintf(shorter, sizeof shorter, "%.17g", value);
        patch(reader, begin, begin + size, shorter);
    }
    return NULL;
}

static const char *look(struct nl_scan *scan, size_t begin)
{
    struct reader *reader = (struct reader *)(void *)scan;
    if (scan->text[begin] != '"')
        return look_at_number(reader, begin);
    look_at_string(reader, begin);
    return NULL;
}

int nl_json_scan(const char *text, size_t length, const char *name, struct nl_buf *patched,
                 struct nl_error *error)
{
    struct reader reader = {
        .scan = {.text = (const uint8_t *)text, .size = length, .deepest = DEEPEST, .seen = look},
        .patched = patched};
    struct nl_scan *scan = &reader.scan;
    bool good = nl_scan_skip(scan);
    if (reader.no_memory)
        return nl_fail_memory(error, name);
    if (!good || nl_scan_peek(scan) >= 0)
        return nl_fail(error, NL_DATA, "%s at byte %zu: %s",
                       scan->fault ? scan->fault : "something after the value", scan->at, name);
    if (reader.copied > 0)
        patch(&reader, length, length, "");
    return nl_buf_check(patched, name, error);
}
