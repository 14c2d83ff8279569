/*
 * charset.h: sets of characters, for the classes of regexes: one bit for each code point.
 */
#ifndef NL_CHARSET_H
#define NL_CHARSET_H

#include "buf.h"

struct nl_charset {
    uint64_t bits[0x110000 / 64];
};

/* An empty set; NULL when out of memory. Freed with free(3). */
struct nl_charset *nl_charset_new(struct nl_error *error);
void nl_charset_add_range(struct nl_charset *, uint32_t first, uint32_t last);
/* All characters whose category's bit (1 << enum nl_category) is in the mask, and the Alphabetic ones if
 * asked for. */
void nl_charset_add_categories(struct nl_charset *, uint32_t mask, bool alphabetic);
void nl_charset_complement(struct nl_charset *); /* surrogates stay out: no text has them */
void nl_charset_union(struct nl_charset *, const struct nl_charset *);
void nl_charset_intersect(struct nl_charset *, const struct nl_charset *);
/* Appends the ranges as they stand in a class: \x{61}-\x{7a}...; an empty set appends nothing. */
void nl_charset_print(const struct nl_charset *, struct nl_buf *out);

#endif
