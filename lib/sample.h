/*
 * sample.h: a chain of logits processors, then a choice.
 *
 * The semantics of each processor are those of transformers' class of the same name unless the man page nl-sample(1)
 * says otherwise. A chain works in place on a row of float32 logits; excluded ids get -infinity.
 */
#ifndef NL_SAMPLE_H
#define NL_SAMPLE_H

#include "json.h"

struct nl_sampler;

struct nl_sampler *nl_sampler_open(struct nl_error *error);
void nl_sampler_close(struct nl_sampler *);

/* Appends a processor by its parameter's name in transformers' spelling with '_' or '-': "temperature", "top_k", "top_p",
   "repetition_penalty", ... and its value in text. NL_USAGE: unknown name, value out of range. */
int nl_sampler_add(struct nl_sampler *, const char *name, const char *value, struct nl_error *error);
/* Applies the processors (not the warpers) of a generation_config object before the flags', in Hugging Face's order. A flag of the
   same name that was added replaces its namesake. May be called again: replaces what the last call gave. NULL: none. */
int nl_sampler_set_generation(struct nl_sampler *, const struct nl_json *generation, struct nl_error *error);
/* The end ids that min_length and min_new_tokens exclude. */
int nl_sampler_set_eos(struct nl_sampler *, const uint32_t *eos, size_t count, struct nl_error *error);
/* Draws instead of taking the best when any flag asks for it (temperature > 0, top_k, top_p ... ); the generator is keyed by
   `seed`, the sequence's number and the position: see nl-sample(1). */
void nl_sampler_set_seed(struct nl_sampler *, uint64_t seed);

/* What a step knows. history[0..n_history) are prompt and choices so far, the first n_prompt of them the prompt. */
struct nl_history {
    const uint32_t *ids;
    size_t count, n_prompt;
    uint64_t sequence; /* NLS1's "seq" */
};

/* Runs the chain on logits[0..n) in place. NL_DATA: NaN in the logits, nothing left to choose from, an id out of range in a setting. */
int nl_sampler_apply(struct nl_sampler *, float *logits, size_t n, const struct nl_history *, struct nl_error *error);
/* Chooses from processed logits: the largest (lowest id wins a tie) when greedy, else a draw. */
int nl_sampler_choose(struct nl_sampler *, const float *logits, size_t n, const struct nl_history *, uint32_t *id,
                      struct nl_error *error);
bool nl_sampler_is_greedy(const struct nl_sampler *);
/* True when no processor would change any logits: greedy then needs only the arg-max. */
bool nl_sampler_is_plain(const struct nl_sampler *);

#endif
