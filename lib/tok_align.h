/*
 * tok_align.h: where in the original text each byte of a changed text comes from.
 */
#ifndef NL_TOK_ALIGN_H
#define NL_TOK_ALIGN_H

#include "tok.h"

struct tok_origin {
    size_t begin, end; /* in the original text */
};
/* A text and its origins, [size] of them. */
struct tok_aligned {
    struct nl_buf text;
    struct tok_origin *origins;
    size_t capacity;
};

void nl_tok_aligned_free(struct tok_aligned *);
/* Appends bytes that all come from one place. */
int nl_tok_aligned_add(struct tok_aligned *, const char *bytes, size_t size, struct tok_origin,
                       struct nl_error *error);
/* Appends a part of another text with its origins. */
int nl_tok_aligned_copy(struct tok_aligned *, const struct tok_aligned *from, size_t begin, size_t end,
                        struct nl_error *error);
/* The place that [begin, end) of the text comes from. */
struct tok_origin nl_tok_aligned_origin(const struct tok_aligned *, size_t begin, size_t end);
/* One normalizer. */
int nl_tok_align_normalizer(struct nl_encoder *, const struct tok_stage *, const struct tok_aligned *in,
                            struct tok_aligned *out, struct nl_error *error);

#endif
