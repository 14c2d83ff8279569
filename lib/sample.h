/*
 * sample.h: a chain of logits processors, then a choice.
 *
 * Each processor has the name and the semantics of a parameter of transformers' generate; nl-sample(1) lists
 * them, and the few that transformers does not have. A chain works in place on a row of float32 logits; an
 * excluded id gets -infinity and stays excluded. Arithmetic is that of transformers on float32 tensors:
 * settings are rounded to float32, probabilities are a float32 softmax, cumulative sums are carried in double
 * and rounded to float32. The exponential is our own (sample_math.h), so that the same logits and the same
 * seed give the same ids on every machine.
 */
#ifndef NL_SAMPLE_H
#define NL_SAMPLE_H

#include "json.h"

struct nl_sampler;

struct nl_sampler *nl_sampler_open(struct nl_error *error);
void nl_sampler_close(struct nl_sampler *);

/* Appends a processor by its parameter's name, with '_' or '-' ("top_k", "top-k"), and its value in text.
   Values: numbers; lists of ids "1,2,3"; words, each of one or more ids, "1,2 3"; biases of words "1:-0.5,2
   3:inf"; a start and a factor "5,1.02". NL_USAGE: unknown name, malformed value, value out of range. */
int nl_sampler_add(struct nl_sampler *, const char *name, const char *value, struct nl_error *error);
/* Applies the processors (not the warpers) of a generation_config object before the flags', in transformers'
   order; keys that do not change greedy output (nl_generation_matters) are skipped. A flag that was added
   replaces its namesake here. May be called again: replaces what the last call gave. NULL: none.
   NL_UNSUPPORTED names a key that is not supported, NL_DATA one whose value is malformed; the chain is then
   as with NULL. */
int nl_sampler_set_generation(struct nl_sampler *, const struct nl_json *generation, struct nl_error *error);
/* The end ids that min_length, min_new_tokens and exponential_decay_length_penalty act on. */
int nl_sampler_set_eos(struct nl_sampler *, const uint32_t *eos, size_t count, struct nl_error *error);
/* How many new ids there will be at most; forced_eos_token_id acts on the last of them. UINT64_MAX (the
 * default): no end. */
void nl_sampler_set_limit(struct nl_sampler *, uint64_t new_ids);
/* The generator of draws is keyed by `seed`, the sequence's number and the position: see rng.h. Default: 0.
 */
void nl_sampler_set_seed(struct nl_sampler *, uint64_t seed);

/* What a step knows. ids[0..count) are prompt and choices so far, the first n_prompt of them the prompt.
   `ids` may be NULL when nl_sampler_needs_ids says NULL: then only the counts are used. */
struct nl_history {
    const uint32_t *ids;
    size_t count, n_prompt;
    uint64_t sequence; /* NLS1's "seq" */
};

/* Runs the chain on logits[0..n) in place. NL_DATA: NaN in the logits, nothing left to choose from, an id
   past n in sequence_bias or bad_words_ids (elsewhere such ids are skipped, as transformers does).
   NL_RESOURCE: no memory. */
int nl_sampler_apply(struct nl_sampler *, float *logits, size_t n, const struct nl_history *,
                     struct nl_error *error);
/* Chooses from processed logits: the largest (lowest id wins a tie) when greedy, else a draw. Draws are by
   inverse transform in order of ids: the first id whose cumulative weight exceeds u times the total. NL_DATA
   as above. */
int nl_sampler_choose(struct nl_sampler *, const float *logits, size_t n, const struct nl_history *,
                      uint32_t *id, struct nl_error *error);

/* False when a flag asks for draws: temperature (any but 0), or another warper with a value that does not
   turn it off, and no flag says temperature 0. */
bool nl_sampler_is_greedy(const struct nl_sampler *);
/* True when no processor would change any logits: greedy then needs only the arg-max. */
bool nl_sampler_is_plain(const struct nl_sampler *);
/* The name of a processor in the chain that looks at the ids of the history; NULL when none does. */
const char *nl_sampler_needs_ids(const struct nl_sampler *);
/* One more than the largest id that sequence_bias, bad_words_ids and the like name: the row must be that
 * long. */
size_t nl_sampler_least_row(const struct nl_sampler *);

#endif
