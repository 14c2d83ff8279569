/*
 * tok_fast.h: from a text to ids where the last split is a published pattern (tok_scan.h) and the model is
 * byte-level BPE: each pre-token is looked up, as it is found, among those that were seen before.
 *
 * What is remembered is bounded: two tables whose entries later words overwrite. Short words lie in the first
 * with their ids, two to a cache line and compared as two integers; longer ones, and those of more ids, in
 * the second.
 */
#ifndef NL_TOK_FAST_H
#define NL_TOK_FAST_H

#include "tok.h"

/* Whether this way can be taken with a tokenizer. */
bool nl_tok_fast_fits(const struct nl_tokenizer *);
struct tok_memory *nl_tok_memory_open(struct nl_error *error);
void nl_tok_memory_close(struct tok_memory *);
/* Appends the ids of a text that the last split is still to be made of. */
int nl_tok_fast_encode(struct nl_encoder *, const char *text, size_t length, struct nl_ids *out,
                       struct nl_error *error);

#endif
