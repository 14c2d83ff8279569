/* unicode_tables.h: the tables behind unicode.h, made by tests/reference/make_unicode.py; nobody else needs
 * them. */
#ifndef NL_UNICODE_TABLES_H
#define NL_UNICODE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nl_unicode_range {
    uint32_t first, last;
};
/* In ascending ranges that do not overlap. */
bool nl_unicode_in_ranges(const struct nl_unicode_range *ranges, size_t count, uint32_t c);
/* first, first + stride, ..., last each map to themselves + delta. */
struct nl_unicode_lower {
    uint32_t first, last;
    int32_t stride, delta;
};

/* blocks[index[c / 256]][c % 256]: enum nl_category, + 0x20 when Alphabetic. */
extern const uint8_t nl_unicode_index[0x110000 / 256];
extern const uint8_t nl_unicode_blocks[][256];
/* Assigned between Unicode 14 and 16. */
extern const struct nl_unicode_range nl_unicode_newer[];
extern const size_t nl_unicode_n_newer;
/* Left alone by the reference's normalizers, whose tables are of Unicode 9. */
extern const struct nl_unicode_range nl_unicode_inert[];
extern const size_t nl_unicode_n_inert;
extern const struct nl_unicode_lower nl_unicode_lower[];
extern const size_t nl_unicode_n_lower;

#endif
