/*
 * tok_scan.h: the published split patterns by hand: several times as fast as their regexes, and the same
 * matches (tests/unit/test_tok_scan.c compares them).
 *
 * Each pattern covers every character, so that a text is a row of matches: all a scanner has to find is the
 * end of the one that begins here. Look-ahead sees the end of the text as a regex does.
 */
#ifndef NL_TOK_SCAN_H
#define NL_TOK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tok_scanner {
    TOK_SCAN_NONE,
    TOK_SCAN_GPT2,
    TOK_SCAN_CL100K, /* Llama 3 as well: one to three digits */
    TOK_SCAN_QWEN2,  /* the same with single digits */
    TOK_SCAN_O200K,  /* gpt-oss */
    TOK_SCANNERS
};

/* Which scanner stands for a pattern, by its very text. */
enum tok_scanner nl_tok_scanner(const char *pattern, size_t size);
const char *nl_tok_scanner_pattern(enum tok_scanner);
/* The end of the match that begins at `at` < length in valid UTF-8. */
size_t nl_tok_scan(enum tok_scanner, const char *text, size_t at, size_t length);

#endif
