/*
 * keys.h: the values of a JSON object that configures something, each checked for its type and range.
 *
 * The first fault is kept and the functions go on with some value in range, so that a reader is straight code
 * and its caller looks at `failed` once. An absent key and null are the same: the fallback.
 */
#ifndef NL_KEYS_H
#define NL_KEYS_H

#include "json.h"

struct nl_keys {
    const struct nl_json *object; /* NULL: no key is there */
    const char *path;             /* for messages */
    struct nl_error *error;
    bool failed;
};

void nl_keys_fault(struct nl_keys *, enum nl_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { NL_REQUIRED = -1 };
/* In [low, high]; NL_REQUIRED as the fallback: a fault when absent. */
int64_t nl_keys_integer(struct nl_keys *, const char *key, int64_t fallback, int64_t low, int64_t high);
/* In (above, high]; NAN as the fallback: a fault when absent. */
double nl_keys_number(struct nl_keys *, const char *key, double fallback, double above, double high);
bool nl_keys_flag(struct nl_keys *, const char *key, bool fallback);
const char *nl_keys_string(struct nl_keys *, const char *key,
                           const char *fallback); /* lives as long as the object */
/* NULL when absent, null, or, a fault, of another type. */
const struct nl_json *nl_keys_object(struct nl_keys *, const char *key);
const struct nl_json *nl_keys_array(struct nl_keys *, const char *key);

#endif
