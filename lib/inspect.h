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
/* One line, one object. `path` is what the user named. */
void nl_inspect_json(const struct nl_checkpoint *, const char *path, struct nl_buf *out);
/* KEY, tab, VALUE a line; with an index also its metadata. `with_file`: before each line its file and a tab.
 */
void nl_inspect_metadata(const struct nl_checkpoint *, bool with_file, struct nl_buf *out);
/* Each file's bytes in order. */
void nl_inspect_offsets(const struct nl_checkpoint *, bool human, struct nl_buf *out);

#endif
