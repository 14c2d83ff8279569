/*
 * number.h: numbers in the values of options, spelt with a point whatever the locale.
 *
 * The nl_take functions read what stands at *text and go behind it; false, and nothing taken, where there is
 * no such thing.
 */
#ifndef NL_NUMBER_H
#define NL_NUMBER_H

#include "buf.h"

/* Decimal digits alone, up to `high`. */
bool nl_take_whole(const char **text, uint64_t high, uint64_t *number);
/* What strtod(3) takes, but neither blanks before it nor NaN. */
bool nl_take_number(const char **text, double *number);
bool nl_take_char(const char **text, char c);
/* Ids with commas between them, appended: 1, 0 when there is none, -1 and *error (NL_RESOURCE). */
int nl_take_ids(const char **text, struct nl_ids *ids, struct nl_error *error);

/* A whole value in [low, high]; else NL_USAGE, with the option's name. */
int nl_parse_whole(const char *option, const char *value, uint64_t low, uint64_t high, uint64_t *number,
                   struct nl_error *error);

#endif
