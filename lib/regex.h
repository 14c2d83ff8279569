/*
 * regex.h: the regexes of tokenizer.json, over PCRE2 with its JIT. The only file (regex.c) that knows PCRE2.
 *
 * The patterns are written for Oniguruma (its own syntax). nl_regex_translate rewrites one into PCRE2's
 * syntax with the same meaning: Unicode classes of Unicode 16 (unicode.h) whatever PCRE2 itself knows, \s as
 * White_Space, \d as Nd, (?m) as dotall, ^ and $ at lines, {n,m}+ as a repeat of a repeat, {n}? as an option.
 * What has no sure equal is refused, never guessed: NL_UNSUPPORTED names it.
 *
 * A compiled regex is immutable and shared between threads; each thread brings its own scratch.
 */
#ifndef NL_REGEX_H
#define NL_REGEX_H

#include "buf.h"

/* Appends the PCRE2 pattern for an Oniguruma pattern of valid UTF-8. `native`: \p{L} and the like of PCRE2's
   own tables are those of Unicode 14 to 16, so that only what is newer need be spelt out. */
int nl_regex_translate(const char *pattern, size_t length, bool native, struct nl_buf *out,
                       struct nl_error *error);

struct nl_regex;
struct nl_regex *nl_regex_compile(const char *pattern, size_t length, struct nl_error *error);
void nl_regex_free(struct nl_regex *);

struct nl_regex_scratch;
struct nl_regex_scratch *nl_regex_scratch_new(struct nl_error *error);
void nl_regex_scratch_free(struct nl_regex_scratch *);

/*
 * The leftmost match at or after `from` in `length` bytes of valid UTF-8 (look-behind sees what is before). 1
 * and the match in [*begin, *end), 0 when there is none; -1: memory ran out, or (NL_DATA) the regex takes too
 * many steps, ten million and 64 a byte; Oniguruma gives up after ten million. The stack does not grow.
 */
int nl_regex_search(const struct nl_regex *, struct nl_regex_scratch *, const char *text, size_t length,
                    size_t from, size_t *begin, size_t *end, struct nl_error *error);

#endif
