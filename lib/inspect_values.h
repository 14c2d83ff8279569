/*
 * inspect_values.h: what st-inspect(1) --values prints: for each tensor, in natural order, how many NaN and
 * infinities it holds, and of its other values the smallest, largest and mean. Reads all data.
 */
#ifndef NL_INSPECT_VALUES_H
#define NL_INSPECT_VALUES_H

#include "checkpoint.h"
#include "tensor_values.h"

struct nl_inspect_values {
    const volatile sig_atomic_t *signal; /* not 0: stop; may be NULL */
    uint64_t n_bad;                      /* out: tensors with NaN or infinities, added up */
};

/* As those of inspect.h: out of memory shows in out->failed alone. A number that there is not is "-" (JSON:
 * null). */
void nl_inspect_values_table(const struct nl_checkpoint *, struct nl_inspect_values *, struct nl_buf *out);
/* name, dtype, shape, elements, NaN, infinities, min, max, mean */
void nl_inspect_values_tsv(const struct nl_checkpoint *, struct nl_inspect_values *, struct nl_buf *out);
void nl_inspect_values_json(const struct nl_checkpoint *, const char *path, struct nl_inspect_values *,
                            struct nl_buf *out);

#endif
