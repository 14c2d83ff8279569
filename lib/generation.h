/*
 * generation.h: what generation_config.json and config.json say about ending and processing.
 *
 * As in transformers, generation_config.json rules where there is one, and config.json stands in for it where
 * there is none. One thing is kinder than there: an eos_token_id or bos_token_id that generation_config.json
 * does not have is looked up in config.json (an explicit null is not).
 */
#ifndef NL_GENERATION_H
#define NL_GENERATION_H

#include "json.h"

struct nl_generation {
    struct nl_ids eos; /* eos_token_id, an integer or a list; negative ones are left out; may be empty */
    bool has_bos;
    uint32_t bos; /* likewise bos_token_id */
    /* The keys that change greedy output, for NLS1's "generation"; NULL: none; owned. */
    struct nl_json *processors;
};

/* Reads a model folder. NL_NOT_FOUND: neither file is there; NL_DATA: not a JSON object, or an id that is
 * none. */
int nl_generation_load(const char *folder, struct nl_generation *out, struct nl_error *error);
void nl_generation_free(struct nl_generation *);

/*
 * True when this member of a generation_config changes what greedy decoding gives. The keys, and (besides
 * null) the value that turns each off, are those of _get_logits_processor and get_generation_mode of
 * transformers 5.24:
 *
 *   sequence_bias, bad_words_ids, suppress_tokens, begin_suppress_tokens: []
 *   repetition_penalty, encoder_repetition_penalty: 1
 *   no_repeat_ngram_size, encoder_no_repeat_ngram_size, min_length, min_new_tokens: 0 or less
 *   forced_bos_token_id, forced_eos_token_id, exponential_decay_length_penalty
 *
 * and those that nl_sampler_set_generation refuses by name, because nothing here does what they ask for:
 *
 *   num_beams, num_beam_groups, guidance_scale: 1
 *   penalty_alpha: 0; token_healing: false
 *   stop_strings, constraints, force_words_ids: []
 *   watermarking_config, dola_layers
 *
 * Not among them: warpers and do_sample (greedy ignores them), lengths and times (the caller's -n decides),
 * remove_invalid_values (a NaN is an error here), renormalize_logits (the best stays the best), and what only
 * makes generation faster.
 */
bool nl_generation_matters(const char *key, const struct nl_json *value);

#endif
