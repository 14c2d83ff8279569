/*
 * config.h: a model's shape, from config.json alone.
 *
 * Both spellings of the rotary settings are read: rope_theta with rope_scaling {type or rope_type}, and
 * rope_parameters {rope_type, rope_theta}, possibly one for each layer type. Defaults for absent keys are
 * those of the architecture's class in transformers 5.
 */
#ifndef NL_CONFIG_H
#define NL_CONFIG_H

#include "architectures.h"
#include "ops.h"
#include "rope.h"

enum { NL_MAX_LAYERS = 10000, NL_NO_LAYER_ROPE = 255 };

struct nl_config {
    const struct nl_architecture *architecture;
    uint32_t vocab_size, hidden_size, intermediate_size, n_layers, n_heads, n_kv_heads, head_dim,
        max_positions;
    float norm_epsilon;
    bool qkv_bias, o_bias, mlp_bias, tied;
    enum nl_activation activation;
    float embedding_scale, residual_scale, attention_scale; /* of embeddings, of branches, of scores */
    float logits_divisor;
    float attention_cap, logits_cap; /* 0: none */
    bool scale_by_layer;             /* attention_scale / (layer + 1) */
    uint32_t *windows;               /* [n_layers]: positions that a layer sees, UINT32_MAX: all; owned */
    uint8_t *layer_rope;             /* [n_layers]: index into ropes, or NL_NO_LAYER_ROPE; owned */
    uint32_t n_ropes;
    struct nl_rope_config ropes[NL_MAX_ROPES];
};

/* Reads FOLDER/config.json. NL_NOT_FOUND: no such file; NL_DATA: a key missing, of another type, out of
   range, contradicting another; NL_UNSUPPORTED: another architecture, activation, rope type or quantisation,
   named. */
int nl_config_load(const char *folder, struct nl_config *config, struct nl_error *error);
/* The same from a parsed config.json; `path` is for messages. */
int nl_config_read(const struct nl_json *root, const char *path, struct nl_config *config,
                   struct nl_error *error);
void nl_config_free(struct nl_config *);

#endif
