/*
 * logits_row.h: one row of logits, whole or sparse, as a frame of a stream gives it, to be worked on and
 * written back.
 */
#ifndef NL_LOGITS_ROW_H
#define NL_LOGITS_ROW_H

#include "stream.h"

/* Zero-initialised is empty. */
struct nl_logits_row {
    float *logits; /* [n], owned */
    size_t n, capacity;
    uint32_t position;
    bool sparse;
    struct nl_ids kept; /* scratch */
};

/* Copies a frame of kind LGTS or LGTK. A sparse row is spread over max(largest id + 1, least) logits,
   -infinity where the frame has none. NL_DATA: a sparse id of 2^24 or more, whatever memory it would take. */
int nl_logits_row_read(struct nl_logits_row *, const struct nl_frame *, size_t least, struct nl_error *error);
/* Writes it in its kind; a sparse row without its -infinities, ids ascending. */
int nl_logits_row_write(struct nl_logits_row *, struct nl_writer *, struct nl_error *error);
void nl_logits_row_free(struct nl_logits_row *);

#endif
