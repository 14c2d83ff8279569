/*
 * model.h: a checkpoint folder made into a plan.
 *
 * Every tensor is looked up by its Hugging Face name and its shape is checked; weights stay in the mapped
 * files as they are stored, norm weights and biases are widened to float32.
 */
#ifndef NL_MODEL_H
#define NL_MODEL_H

#include "checkpoint.h"
#include "config.h"
#include "ops.h"

/* The activation buffers of a plan, for traces and tests. */
enum nl_model_buffer {
    NL_BUF_STREAM, /* the residual stream [hidden_size] */
    NL_BUF_NORMED, /* [hidden_size] */
    NL_BUF_QKV,    /* [(n_heads + 2 n_kv_heads) head_dim] */
    NL_BUF_HEADS,  /* attention output [n_heads head_dim] */
    NL_BUF_BRANCH, /* output of attention's or the MLP's last product [hidden_size] */
    NL_BUF_GATES,  /* gate, up [2 intermediate_size] */
    NL_BUF_MLP,    /* [intermediate_size] */
    NL_BUFFERS,
};

struct nl_model {
    struct nl_config config;
    struct nl_checkpoint *checkpoint;
    struct nl_plan plan;
    float **vectors; /* owned: norm weights, biases, frequencies */
    size_t n_vectors, vectors_capacity;
    const char **unused; /* names of tensors that the model does not use, in the checkpoint */
    size_t n_unused;
    uint64_t weight_bytes;
};

/*
 * Loads the folder and records the plan for steps of at most max_tokens rows and max_outputs rows of logits.
 * NULL and *error: see nl_config_load and nl_checkpoint_open; a tensor missing, of another shape or of a type
 * that is no weight: NL_DATA, naming tensor, wanted and found shape.
 */
struct nl_model *nl_model_open(const char *folder, uint32_t max_tokens, uint32_t max_outputs,
                               struct nl_error *error);
void nl_model_close(struct nl_model *);

#endif
