/*
 * architectures.h: what differs between the architectures that run; one row each.
 *
 * All share one block: attention and MLP, each a branch with an optional norm before it (of the residual
 * stream) and one after it (of the branch), added to the stream. A name that is NULL is not there.
 */
#ifndef NL_ARCHITECTURES_H
#define NL_ARCHITECTURES_H

#include "keys.h"

struct nl_config;

/* Hugging Face's tensor names; those of a layer follow `layer` and its number. ".weight" and ".bias" are
 * added. */
struct nl_tensor_names {
    const char *embedding, *positions, *final_norm, *head;
    const char *layer;                  /* "model.layers.%d." */
    const char *before_attention, *qkv; /* norm; q, k and v in one, else: */
    const char *q, *k, *v, *o;
    const char *q_norm, *k_norm;
    const char *after_attention, *before_mlp;
    const char *gate_up;          /* gate and up in one, else: */
    const char *gate, *up, *down; /* no gate and no gate_up: not gated */
    const char *after_mlp;
};

struct nl_architecture {
    const char *name;       /* as config.json's "architectures" has it */
    const char *model_type; /* as its "model_type" */
    const struct nl_tensor_names *names;
    void (*read)(struct nl_keys *keys,
                 struct nl_config *config);  /* what the common keys do not say; NULL: nothing */
    bool attention_bias, mlp_bias;           /* the keys of these names are read */
    bool qkv_bias;                           /* q, k and v have a bias, o has none */
    bool all_bias;                           /* every product has one */
    bool centred_norm;                       /* LayerNorm with a bias, not RMSNorm */
    bool norm_plus_one;                      /* the weights of norms are stored less one */
    bool norm_whole_qk;                      /* q_norm and k_norm over all heads together, not each */
    bool norm_rounds_once, rope_rounds_once; /* round_once of ops.h */
    bool eager_attention;                    /* transformers has no other: round_scores of ops.h */
    bool rounds_embedding_scale;             /* ops.h */
    bool transposed;                         /* weights are [inputs][outputs] */
    bool phi3_rope;                          /* partial_rotary_factor counts, "su" and "yarn" mean longrope */
    bool rope_by_type;                       /* a rope of its own for layers that slide */
    bool gpt2_keys;             /* GPT-2's names; head_dim and num_key_value_heads are not read */
    const char *activation_key; /* NULL: "hidden_act" */
    /* for absent keys, as the class's defaults in transformers: */
    uint32_t kv_heads; /* 0: as many as heads */
    uint32_t head_dim; /* 0: hidden_size / heads */
    uint32_t max_positions;
    double rope_theta;
    float norm_epsilon;
    bool tied;
    const char *activation;
};

/* By name; NULL when it is not supported. */
const struct nl_architecture *nl_architecture_find(const char *name);
/* All names, with commas. */
void nl_architecture_list(char *out, size_t size);

#endif
