/*
 * emit.h: JSON written piece by piece into a buffer, in the layout of Hugging Face's files (two blanks a
 * level, a line a member), for texts too large to build as a tree.
 *
 * Names go before values: nl_emit_key in an object, nothing in an array. Running out of memory shows in the
 * buffer (nl_buf_check).
 */
#ifndef NL_EMIT_H
#define NL_EMIT_H

#include "buf.h"

struct nl_emit {
    struct nl_buf *out;
    unsigned depth;
    bool after_key, has_member;
};

void nl_emit_open(struct nl_emit *, char bracket); /* '{' or '[' */
void nl_emit_close(struct nl_emit *, char bracket);
void nl_emit_key(struct nl_emit *, const char *key);
/* A key that is no C string. */
void nl_emit_long_key(struct nl_emit *, const char *key, size_t length);
/* UTF-8; other bytes become U+FFFD. */
void nl_emit_string(struct nl_emit *, const char *string, size_t length);
void nl_emit_integer(struct nl_emit *, int64_t value);
/* Finite; the shortest spelling that reads back the same, with a point or an exponent. */
void nl_emit_float(struct nl_emit *, double value);
void nl_emit_raw(struct nl_emit *, const char *json); /* a value already in JSON: true, null, {} ... */

/* A member at once. */
void nl_emit_string_member(struct nl_emit *, const char *key, const char *value);
void nl_emit_integer_member(struct nl_emit *, const char *key, int64_t value);
void nl_emit_bool_member(struct nl_emit *, const char *key, bool value);
void nl_emit_raw_member(struct nl_emit *, const char *key, const char *json);

#endif
