/*
 * json_scan.h: the strict half of json.c, which nobody else includes.
 */
#ifndef NL_JSON_SCAN_H
#define NL_JSON_SCAN_H

#include "buf.h"

/* Checks that `length` bytes are one JSON value (RFC 8259, nesting at most 1,000, numbers finite as doubles).
   Where cJSON would read the text wrongly, *patched (empty before) gets a spelling that it reads well: U+0000
   as the bytes C0 80, long numbers rounded; else it stays empty. In the "C" locale. 0 or -1. */
int nl_json_scan(const char *text, size_t length, const char *name, struct nl_buf *patched,
                 struct nl_error *error);

#endif
