/*
 * config.h: a model's shape, from config.json alone.
 *
 * Both spellings of the rotary settings are read: rope_theta with rope_scaling {type or rope_type}, and
 * rope_parameters {rope_type, rope_theta}. Defaults for absent keys are those of the architecture's class in
 * transformers 5.
 */
#ifndef NL_CONFIG_H
#define NL_CONFIG_H

#include "json.h"

enum nl_rope_type { NL_ROPE_DEFAULT, NL_ROPE_LINEAR, NL_ROPE_LLAMA3 };

struct nl_rope_config {
    enum nl_rope_type type;
    double theta, factor, low_freq_factor, high_freq_factor;
    double original_positions;
    double partial; /* the part of a head that is rotated */
};

/* What differs between the architectures of this family; a row of a table in config.c. */
struct nl_architecture {
    const char *name;         /* as config.json's "architectures" has it */
    bool qkv_bias;            /* always; else "attention_bias" decides, for o too */
    bool has_window;          /* every layer, unless sliding_window is null */
    bool optional_window;     /* layers of layer_types, if use_sliding_window */
    int64_t default_kv_heads; /* 0: as many as heads */
    int64_t default_max_positions;
};

struct nl_config {
    const struct nl_architecture *architecture;
    uint32_t vocab_size, hidden_size, intermediate_size, n_layers, n_heads, n_kv_heads, head_dim,
        max_positions;
    float norm_epsilon;
    bool qkv_bias, o_bias, mlp_bias, tied;
    uint32_t *windows; /* [n_layers]: positions that a layer sees, UINT32_MAX: all; owned */
    struct nl_rope_config rope;
};

/* Reads FOLDER/config.json. NL_NOT_FOUND: no such file; NL_DATA: a key missing, of another type, out of
   range, contradicting another; NL_UNSUPPORTED: another architecture, activation, rope type or quantisation,
   named. */
int nl_config_load(const char *folder, struct nl_config *config, struct nl_error *error);
void nl_config_free(struct nl_config *);

/* Fills inv_freq[head_dim * partial / 2] as transformers computes it, in float32 (its
 * modeling_rope_utils.py). */
void nl_rope_frequencies(const struct nl_rope_config *rope, uint32_t dims, float *inv_freq);

#endif
