/*
 * inspect.h: a checkpoint described: what st-inspect(1) prints. Pure functions from an open checkpoint to
 * text; st-inspect(1) describes each form.
 *
 * Each appends to *out; out of memory shows in out->failed alone (nl_buf_check).
 */
#ifndef NL_INSPECT_H
#define NL_INSPECT_H

#include "checkpoint.h"

/* strcmp, but runs of digits compare as numbers: layers.2 before layers.10. Total: 0 only for equal strings.
 */
int nl_natural_compare(const char *a, const char *b);

/* `human`: sizes as 1.5MiB, counts as 134.5M, instead of plain numbers. */
void nl_inspect_table(const struct nl_checkpoint *, bool human, struct nl_buf *out);
void nl_inspect_tsv(const struct nl_checkpoint *, struct nl_buf *out);
/* One line, one object. `path` is what the user named; `model`: the member of that name, in JSON. */
void nl_inspect_json(const struct nl_checkpoint *, const char *path, const char *model, struct nl_buf *out);
/* KEY, tab, VALUE a line; with an index also its metadata. `with_file`: before each line its file and a tab.
 */
void nl_inspect_metadata(const struct nl_checkpoint *, bool with_file, struct nl_buf *out);
/* Each file's bytes in order. */
void nl_inspect_offsets(const struct nl_checkpoint *, bool human, struct nl_buf *out);

/* What the other forms are made of. The tensors in natural order, to be freed; NULL and out->failed when out
   of memory. */
const struct nl_tensor **nl_inspect_order(const struct nl_checkpoint *, struct nl_buf *out);
void nl_inspect_shape(const struct nl_tensor *, const char *comma, struct nl_buf *out); /* [2,3] */
/* A size or a count, plain or, for humans, with a unit; `unit` is the base of the powers: 1024 (sizes) or
   1000 (counts). Returns text. */
const char *nl_inspect_amount(char text[32], uint64_t value, unsigned unit, bool human);

#endif
