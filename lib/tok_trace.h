/*
 * tok_trace.h: an encoding step by step, with the bytes of the text that each id stands for: what
 * nl-tokenize's --pieces and --stages show. Slower than nl_encoder_encode, and the same ids.
 *
 * Where a normalizer changed the text, a piece's bytes are those that its text was made from, in whole
 * characters or clusters of characters; a token of the template has none.
 */
#ifndef NL_TOK_TRACE_H
#define NL_TOK_TRACE_H

#include "tokenizer.h"

struct nl_trace {
    void *context;
    /* Normalized text, and each pre-token of it (as the model gets it), in order; may be NULL. -1 ends it. */
    int (*normalized)(void *context, const char *text, size_t size, struct nl_error *error);
    int (*word)(void *context, const char *text, size_t size, struct nl_error *error);
    /* An id, for the text's bytes [begin, end). */
    int (*piece)(void *context, uint32_t id, size_t begin, size_t end, struct nl_error *error);
};

int nl_encoder_trace(struct nl_encoder *, const char *text, size_t length, unsigned flags,
                     const struct nl_trace *, struct nl_error *error);

#endif
