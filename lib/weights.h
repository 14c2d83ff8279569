/*
 * weights.h: a checkpoint's tensors, looked up by name with the shape that the config asks for.
 *
 * F32, F16 and BF16 matrices stay where they are mapped; others, and those that have to be transposed or
 * rounded, are copied. The first fault is kept, and everything after it returns nothing, so that a caller
 * builds a model in straight code and looks at `failed` once.
 */
#ifndef NL_WEIGHTS_H
#define NL_WEIGHTS_H

#include "checkpoint.h"
#include "ops.h"

struct nl_weights {
    struct nl_checkpoint *checkpoint; /* owned */
    const char *folder;               /* for messages; borrowed */
    struct nl_error *error;           /* of the caller, while a model is built */
    bool failed;
    bool bfloat16;       /* all are rounded to that */
    char layer[100];     /* put before each name: "model.layers.3." */
    bool without_prefix; /* the file is of the base model: names lack their first word */
    bool *used;          /* [checkpoint->count]; owned */
    void **copies;       /* owned */
    size_t n_copies, capacity;
    uint64_t bytes; /* of the tensors in use, as stored */
};

int nl_weights_open(struct nl_weights *, const char *folder, struct nl_error *error);
void nl_weights_close(struct nl_weights *);

/* True when the layer's NAME.weight is there. */
bool nl_weights_has(const struct nl_weights *, const char *name);
/* NAME.weight [rows][cols]; transposed: stored as [cols][rows]. */
struct nl_matrix nl_weights_matrix(struct nl_weights *, const char *name, uint32_t rows, uint32_t cols,
                                   bool transposed);
/* NAME.SUFFIX [count] as float32, each plus `plus`. */
const float *nl_weights_vector(struct nl_weights *, const char *name, const char *suffix, uint32_t count,
                               float plus);
/* Memory that lives as long as the weights; NULL (and failed) when out of memory. */
void *nl_weights_alloc(struct nl_weights *, size_t size);
/* Tensors that nothing has asked for, less those that checkpoints are known to carry in vain. The caller
 * frees the list. */
const char **nl_weights_unused(const struct nl_weights *, size_t *count);

#endif
