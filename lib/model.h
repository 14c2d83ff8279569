/*
 * model.h: a checkpoint folder made into a plan.
 *
 * Every tensor is looked up by its Hugging Face name and its shape is checked. Weights stay in the mapped
 * files as they are stored, where their type and layout allow; norm weights and biases are widened to
 * float32.
 */
#ifndef NL_MODEL_H
#define NL_MODEL_H

#include "config.h"
#include "weights.h"

/* The activation buffers of a plan, for traces and tests. */
enum nl_model_buffer {
    NL_BUF_STREAM, /* the residual stream [hidden_size] */
    NL_BUF_NORMED, /* [hidden_size] */
    NL_BUF_QKV,    /* [(n_heads + 2 n_kv_heads) head_dim] */
    NL_BUF_HEADS,  /* attention output [n_heads head_dim] */
    NL_BUF_BRANCH, /* output of attention's or the MLP's last product [hidden_size] */
    NL_BUF_GATES,  /* gate, up [2 intermediate_size]; not gated: up [intermediate_size] */
    NL_BUF_MLP,    /* [intermediate_size] */
    NL_BUFFERS,
};

/* The width of each buffer, as the architecture needs it. */
void nl_model_widths(const struct nl_config *, uint32_t width[NL_BUFFERS]);

struct nl_model {
    struct nl_config config;
    struct nl_weights weights;
    struct nl_plan plan;
    float *frequencies[NL_MAX_ROPES]; /* [dims / 2] of sequences within the border; in weights' memory */
    const char **unused;              /* names of tensors that the model does not use; owned list */
    size_t n_unused;
};

/*
 * Loads the folder and records the plan for steps of at most max_tokens rows and max_outputs rows of logits;
 * bfloat16: one that rounds as ops.h says. NULL and *error: see nl_config_load and nl_checkpoint_open; a
 * tensor missing or of another shape: NL_DATA, naming tensor, wanted and found shape; of a type that is no
 * weight: NL_UNSUPPORTED.
 */
struct nl_model *nl_model_open(const char *folder, bool bfloat16, uint32_t max_tokens, uint32_t max_outputs,
                               struct nl_error *error);
void nl_model_close(struct nl_model *);

#endif
