/*
 * regex_syntax.h: between regex_syntax.c and regex_class.c only.
 */
#ifndef NL_REGEX_SYNTAX_H
#define NL_REGEX_SYNTAX_H

#include "buf.h"
#include "unicode_sets.h"

struct nl_regex_source {
    const char *text; /* valid UTF-8 */
    size_t length, at;
    bool native;   /* see nl_regex_translate */
    bool caseless; /* here */
    struct nl_error *error;
};

/* What \p{...}, \s, \w, [:alpha:] stand for. */
struct nl_regex_property {
    uint32_t categories; /* bits of enum nl_category */
    bool alphabetic;     /* and all Alphabetic characters */
    bool negated;
    const char *extra; /* more characters, as PCRE2 writes them in a class, or NULL */
    /* The same categories in PCRE2's spelling, NULL when it has none that can be trusted. */
    const char *native;
    const struct nl_unicode_range *ranges; /* and these, or NULL */
    size_t n_ranges;
};

/* NL_UNSUPPORTED: "regex not supported (why): pattern". */
int nl_regex_refuse(const struct nl_regex_source *, const char *why);
/* The character at `at`, which must be before the end; goes behind it. */
uint32_t nl_regex_take(struct nl_regex_source *);
bool nl_regex_accept(struct nl_regex_source *, const char *string); /* goes behind it when it is next */
/* Behind a backslash: one escaped character; 1 when it was one, 0 when it was not (nothing taken), -1. */
int nl_regex_escape(struct nl_regex_source *, uint32_t *c);
/* Behind a backslash: one of s S d D w W h H p P; 1, 0 or -1. */
int nl_regex_escaped_property(struct nl_regex_source *, struct nl_regex_property *);
/* Whether caseless matching in Oniguruma lets it meet several characters. */
bool nl_regex_folds_to_many(uint32_t c);
/* Appends a class of its own for the property, [...]. */
int nl_regex_print_property(struct nl_regex_source *, const struct nl_regex_property *, struct nl_buf *out);
/* Behind '[': the class to its ']'. */
int nl_regex_class(struct nl_regex_source *, struct nl_buf *out);

#endif
