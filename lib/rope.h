/*
 * rope.h: rotary position embeddings: their settings, and the inverse frequencies that transformers computes
 * from them.
 *
 * Source of all formulas: transformers 5.24, modeling_rope_utils.py; in float32, within 1 ulp of it.
 */
#ifndef NL_ROPE_H
#define NL_ROPE_H

#include "keys.h"

enum nl_rope_type {
    NL_ROPE_DEFAULT,
    NL_ROPE_LINEAR,
    NL_ROPE_DYNAMIC,
    NL_ROPE_YARN,
    NL_ROPE_LONGROPE,
    NL_ROPE_LLAMA3
};

struct nl_rope_config {
    enum nl_rope_type type;
    uint32_t dims; /* of a head that rotate, the first ones; even */
    double theta, factor;
    double low_freq_factor, high_freq_factor; /* llama3 */
    double beta_fast, beta_slow;              /* yarn */
    bool truncate;                            /* yarn */
    double max_positions;                     /* dynamic */
    double original_positions;                /* yarn, longrope, llama3 */
    float attention_factor;                   /* scale of cosine and sine */
    float *short_factor, *long_factor;        /* longrope: [dims / 2]; owned */
    bool anew; /* longrope of Phi-3: what is cached is computed anew at the border, elsewhere it stays */
};

/* What is the same for all layers of a model. */
struct nl_rope_context {
    uint32_t head_dim, max_positions;
    double theta, partial;     /* where the settings say nothing */
    double original_positions; /* of config.json itself, which beats the settings'; 0: not there */
    bool is_phi3;              /* "su" and "yarn" mean longrope, and partial_rotary_factor counts */
};

/* Reads rope_scaling or rope_parameters (object may be NULL: type default). Faults go to `keys`. */
void nl_rope_read(struct nl_keys *keys, const struct nl_json *object, const struct nl_rope_context *context,
                  struct nl_rope_config *rope);
void nl_rope_free(struct nl_rope_config *);

/* True when the frequencies depend on the length of the sequence. */
bool nl_rope_varies(const struct nl_rope_config *);
/* The length past which the cache is computed anew, with other frequencies; UINT32_MAX: it never is. */
uint32_t nl_rope_border(const struct nl_rope_config *);
/* Fills inv_freq[dims / 2] for a sequence of `length` positions. */
void nl_rope_frequencies(const struct nl_rope_config *, uint32_t length, float *inv_freq);

#endif
