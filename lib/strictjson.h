/*
 * strictjson.h: a scanner for JSON text that is read once, piece by piece, and never becomes a tree.
 *
 * It is for the header of safetensors files, and for what json.c gives to a parser that is too lax. Accepts
 * exactly RFC 8259: no leading zeros, no raw control characters, strings in valid UTF-8, surrogates only in
 * pairs.
 *
 *     bool first = true;
 *     while ((more = nl_scan_next(&scan, '}', &first)) > 0)    after nl_scan_take(&scan, '{')
 *         if (!nl_scan_key(&scan, &key) || !nl_scan_skip(&scan))
 *             break;
 *
 * After a false or -1 the scan is over: `fault` says what was wrong, `at` where.
 */
#ifndef NL_STRICTJSON_H
#define NL_STRICTJSON_H

#include "buf.h"

struct nl_scan {
    const uint8_t *text; /* size bytes, the caller's */
    size_t size, at;     /* `at`: the next byte to read, or the byte at fault */
    const char *fault;   /* NULL while all is well; a constant string */
    unsigned deepest;    /* how deep a value may be nested that is skipped; 0 stands for 125 */
    /* Called behind each string and number of what is skipped, which began at `begin`; returns NULL or a
       fault of its own. NULL: none. */
    const char *(*seen)(struct nl_scan *, size_t begin);
};

/* Skips white space; the next byte, -1 at the end. */
int nl_scan_peek(struct nl_scan *);
/* Takes one byte, after white space; false and nothing taken (no fault) when the next one is another. */
bool nl_scan_take(struct nl_scan *, char wanted);
/* Inside an object or array: 1 when another element begins, 0 when `close` was taken, -1 at a fault. *first
 * starts as true. */
int nl_scan_next(struct nl_scan *, char close, bool *first);
/* Reads a string into *out (cleared first), U+0000 as the two bytes C0 80, so that it is a C string. `out`
 * NULL: skips it. */
bool nl_scan_string(struct nl_scan *, struct nl_buf *out);
/* A string, then the colon. */
bool nl_scan_key(struct nl_scan *, struct nl_buf *out);
/* Skips one value of any kind. */
bool nl_scan_skip(struct nl_scan *);

enum nl_whole { NL_WHOLE_OK, NL_WHOLE_NOT, NL_WHOLE_FAULT };
/* Reads a whole number below 2^64 that is spelt in digits alone. NL_WHOLE_NOT: another value, which was
 * skipped; NL_WHOLE_FAULT: not even JSON. */
enum nl_whole nl_scan_whole(struct nl_scan *, uint64_t *value);

#endif
