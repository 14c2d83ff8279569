/*
 * sample_chain.h: inside the sampler: the table of processors, a setting of one, the row it works on.
 */
#ifndef NL_SAMPLE_CHAIN_H
#define NL_SAMPLE_CHAIN_H

#include "sample.h"
#include "sample_math.h"

enum nl_value {
    NL_VALUE_NUMBER,
    NL_VALUE_WHOLE,
    NL_VALUE_IDS,
    NL_VALUE_WORDS,  /* ids[first..first+count), one word each */
    NL_VALUE_BIASES, /* the same, with a bias each */
    NL_VALUE_DECAY,  /* start, number */
};

struct nl_word {
    size_t first, count; /* its place in ids */
    float bias;
};

struct nl_setting {
    const struct nl_processor *processor;
    double number; /* NUMBER, WHOLE, DECAY's factor */
    size_t start;  /* DECAY */
    struct nl_ids ids;
    struct nl_word *words; /* [n_words], owned */
    size_t n_words, words_capacity;
};

/* The row of logits and what a processor may use for it. */
struct nl_row {
    float *logits; /* [n] */
    size_t n;
    const struct nl_history *history;
    const struct nl_ids *eos;
    uint64_t limit;                         /* of new ids */
    bool forced_bos;                        /* forced_bos_token_id is in the chain */
    float *floats, *more_floats;            /* scratch [n] each */
    uint32_t *counts;                       /* scratch [n], all zero between processors */
    struct nl_ranked *ranked, *more_ranked; /* scratch [n] each */
};

struct nl_processor {
    const char *name; /* as transformers spells it */
    void (*apply)(const struct nl_setting *, struct nl_row *);
    enum nl_value value;
    double low, high; /* of the number, both allowed; of IDS: how many there may be */
    double off;       /* the number that turns it off; NAN: none */
    bool warper;      /* shapes a draw: asks for one, and is skipped in generation_config.json */
    bool reads_ids;   /* of the history */
    bool reads_eos;   /* acts on the end ids */
};

/* Ends with a NULL name; the processors in the order in which transformers applies them, then the rest. */
extern const struct nl_processor nl_processors[];
const struct nl_processor *nl_processor_find(const char *name); /* '-' for '_' will do; NULL */

/* Fills a zeroed setting from text or from the JSON of a generation_config. NL_USAGE and NL_DATA. */
int nl_setting_parse(struct nl_setting *, const struct nl_processor *, const char *text,
                     struct nl_error *error);
int nl_setting_parse_json(struct nl_setting *, const struct nl_processor *, const struct nl_json *value,
                          struct nl_error *error);
void nl_setting_free(struct nl_setting *);
bool nl_setting_is_off(const struct nl_setting *);

void nl_apply_sequence_bias(const struct nl_setting *, struct nl_row *);
void nl_apply_encoder_repetition_penalty(const struct nl_setting *, struct nl_row *);
void nl_apply_repetition_penalty(const struct nl_setting *, struct nl_row *);
void nl_apply_no_repeat_ngram(const struct nl_setting *, struct nl_row *);
void nl_apply_encoder_no_repeat_ngram(const struct nl_setting *, struct nl_row *);
void nl_apply_min_length(const struct nl_setting *, struct nl_row *);
void nl_apply_min_new_tokens(const struct nl_setting *, struct nl_row *);
void nl_apply_forced_bos(const struct nl_setting *, struct nl_row *);
void nl_apply_forced_eos(const struct nl_setting *, struct nl_row *);
void nl_apply_length_decay(const struct nl_setting *, struct nl_row *);
void nl_apply_bad_words(const struct nl_setting *, struct nl_row *);
void nl_apply_suppress(const struct nl_setting *, struct nl_row *);
void nl_apply_begin_suppress(const struct nl_setting *, struct nl_row *);
void nl_apply_allowed(const struct nl_setting *, struct nl_row *);
void nl_apply_presence_penalty(const struct nl_setting *, struct nl_row *);
void nl_apply_frequency_penalty(const struct nl_setting *, struct nl_row *);

void nl_apply_temperature(const struct nl_setting *, struct nl_row *);
void nl_apply_top_k(const struct nl_setting *, struct nl_row *);
void nl_apply_top_p(const struct nl_setting *, struct nl_row *);
void nl_apply_min_p(const struct nl_setting *, struct nl_row *);
void nl_apply_typical_p(const struct nl_setting *, struct nl_row *);
void nl_apply_epsilon_cutoff(const struct nl_setting *, struct nl_row *);
void nl_apply_eta_cutoff(const struct nl_setting *, struct nl_row *);
void nl_apply_top_n_sigma(const struct nl_setting *, struct nl_row *);

#endif
