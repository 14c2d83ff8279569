/*
 * json.h: JSON values, read and written. The only file that knows cJSON.
 *
 * A tree is owned by its root; nodes are borrowed from it. Reading is strict where cJSON is lax: the whole
 * text must be one value in valid UTF-8, a duplicate key in any object is an error, nesting is limited to
 * 1,000, and a number must be spelt as JSON spells it. Strings may hold U+0000, which stands in them as the
 * two bytes C0 80 (nl_json_copy_string turns them back); everything else is UTF-8.
 */
#ifndef NL_JSON_H
#define NL_JSON_H

#include "buf.h"

struct nl_json;

enum nl_json_type {
    NL_JSON_NULL,
    NL_JSON_FALSE,
    NL_JSON_TRUE,
    NL_JSON_NUMBER,
    NL_JSON_STRING,
    NL_JSON_ARRAY,
    NL_JSON_OBJECT
};

/* The value of `length` bytes at `text`; NULL (NL_DATA) names `name` and the byte offset of the fault, or the
   key that is there twice. */
struct nl_json *nl_json_parse(const char *text, size_t length, const char *name, struct nl_error *error);
/* The value in a file. */
struct nl_json *nl_json_load(const char *path, struct nl_error *error);
struct nl_json *nl_json_new_object(void); /* NULL when out of memory */
struct nl_json *nl_json_copy(const struct nl_json *, struct nl_error *error);
void nl_json_free(struct nl_json *); /* of a root; NULL is fine */

enum nl_json_type nl_json_type(const struct nl_json *);
bool nl_json_is(const struct nl_json *, enum nl_json_type); /* false for NULL */

/* Children in order: for (v = nl_json_first(parent); v; v = nl_json_next(v)). */
const struct nl_json *nl_json_first(const struct nl_json *);
const struct nl_json *nl_json_next(const struct nl_json *);
const char *nl_json_key(const struct nl_json *); /* of an object's member */
size_t nl_json_count(const struct nl_json *);    /* of children; walks them */
/* An object's member, case-sensitive; NULL when absent or `object` is NULL or no object. Walks the members:
   not for big objects. */
const struct nl_json *nl_json_get(const struct nl_json *object, const char *key);
/* A member that is a string; else NULL. */
const char *nl_json_get_string(const struct nl_json *object, const char *key);

/* The caller has checked the type. */
const char *nl_json_string(const struct nl_json *);
double nl_json_number(const struct nl_json *);
/* Appends the string with U+0000 as one zero byte. */
void nl_json_copy_string(const struct nl_json *, struct nl_buf *out);
/* True when the value is a number with an integer value in [low, high] (exact up to 2^53). */
bool nl_json_integer(const struct nl_json *, int64_t low, int64_t high, int64_t *out);
/* The same below 2^32: an id, a position. */
bool nl_json_id(const struct nl_json *, uint32_t *out);

/* Sets a member, replacing an old one. -1 only when out of memory. */
int nl_json_set_string(struct nl_json *object, const char *key, const char *value, struct nl_error *error);
int nl_json_set_number(struct nl_json *object, const char *key, double value, struct nl_error *error);
int nl_json_set_bool(struct nl_json *object, const char *key, bool value, struct nl_error *error);
int nl_json_set_ids(struct nl_json *object, const char *key, const uint32_t *ids, size_t count,
                    struct nl_error *error);
int nl_json_set_copy(struct nl_json *object, const char *key, const struct nl_json *value,
                     struct nl_error *error);
void nl_json_remove(struct nl_json *object, const char *key);

/* Appends the value's text on one line, without white space. */
void nl_json_print(const struct nl_json *, struct nl_buf *out);
void nl_json_print_key(const struct nl_json *member, struct nl_buf *out); /* quoted */
/* Appends the shortest spelling that reads back as the same double; null for one that JSON lacks. */
void nl_json_print_number(double value, struct nl_buf *out);
/* Appends a string of `length` UTF-8 bytes quoted and escaped, other bytes than UTF-8 as U+FFFD. */
void nl_json_quote(struct nl_buf *out, const char *string, size_t length);

#endif
