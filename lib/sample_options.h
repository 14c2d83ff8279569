/*
 * sample_options.h: the options of sampling, the same in every program that samples.
 *
 * A program puts NL_SAMPLE_SHORT_OPTIONS and NL_SAMPLE_LONG_OPTIONS among its own, NL_SAMPLE_HELP into its
 * help, and hands what getopt_long returns to nl_sample_option:
 *
 *     static const struct option table[] = {{"help", no_argument, NULL, 'h'}, NL_SAMPLE_LONG_OPTIONS, {0}};
 *     int c, at = 0;
 *     while ((c = getopt_long(argc, argv, "h" NL_SAMPLE_SHORT_OPTIONS, table, &at)) != -1) {
 *         int taken = nl_sample_option(&options, c, table[at].name, optarg, &error);
 *         if (taken < 0) ...; if (taken) continue;
 *         switch (c) ...
 *     }
 *     nl_sample_options_ready(&options, &error);
 *
 * The flags' order is that of the chain.
 */
#ifndef NL_SAMPLE_OPTIONS_H
#define NL_SAMPLE_OPTIONS_H

#include "sample.h"

struct nl_sample_options {
    struct nl_sampler *sampler; /* owned */
    struct nl_ids stop_ids;     /* of --stop-id */
    uint64_t limit;             /* of -n; UINT64_MAX: none */
    uint64_t seed;
    bool seeded;            /* --seed was given; after _ready: or one was drawn */
    bool ignore_eos;        /* end ids do not end */
    bool ignore_generation; /* the model's generation_config is not applied: never call
                               nl_sampler_set_generation */
};

int nl_sample_options_init(struct nl_sample_options *, struct nl_error *error);
void nl_sample_options_free(struct nl_sample_options *);

/* 1: taken; 0: not an option of sampling; -1: *error. `name`: the long option's, `value`: optarg. */
int nl_sample_option(struct nl_sample_options *, int c, const char *name, const char *value,
                     struct nl_error *error);
/* After the last option: hands seed and limit to the sampler; a chain that draws gets a seed of the system's
   where none was given. */
int nl_sample_options_ready(struct nl_sample_options *, struct nl_error *error);

/* What ends a sequence of which `id` is the `count`-th new id, as DONE's "finish" spells it: "eos", "stop",
   "length"; NULL: it goes on. The id itself is kept in either case. eos[n_eos]: the model's end ids. */
const char *nl_sample_finish(const struct nl_sample_options *, const uint32_t *eos, size_t n_eos, uint32_t id,
                             uint64_t count);

enum {
    NL_SAMPLE_PROCESSOR = 0x5000, /* which one its name says */
    NL_SAMPLE_SEED,
    NL_SAMPLE_STOP_ID,
    NL_SAMPLE_IGNORE_EOS,
    NL_SAMPLE_IGNORE_GENERATION,
};

#define NL_SAMPLE_SHORT_OPTIONS "n:"

/* clang-format off */
#define NL_SAMPLE_LONG_OPTIONS                                                             \
    {"max-new-tokens", required_argument, NULL, 'n'},                                      \
    {"seed", required_argument, NULL, NL_SAMPLE_SEED},                                     \
    {"stop-id", required_argument, NULL, NL_SAMPLE_STOP_ID},                               \
    {"ignore-eos", no_argument, NULL, NL_SAMPLE_IGNORE_EOS},                               \
    {"ignore-generation", no_argument, NULL, NL_SAMPLE_IGNORE_GENERATION},                 \
    {"temperature", required_argument, NULL, NL_SAMPLE_PROCESSOR},                         \
    {"top-k", required_argument, NULL, NL_SAMPLE_PROCESSOR},                               \
    {"top-p", required_argument, NULL, NL_SAMPLE_PROCESSOR},                               \
    {"min-p", required_argument, NULL, NL_SAMPLE_PROCESSOR},                               \
    {"typical-p", required_argument, NULL, NL_SAMPLE_PROCESSOR},                           \
    {"epsilon-cutoff", required_argument, NULL, NL_SAMPLE_PROCESSOR},                      \
    {"eta-cutoff", required_argument, NULL, NL_SAMPLE_PROCESSOR},                          \
    {"top-n-sigma", required_argument, NULL, NL_SAMPLE_PROCESSOR},                         \
    {"repetition-penalty", required_argument, NULL, NL_SAMPLE_PROCESSOR},                  \
    {"encoder-repetition-penalty", required_argument, NULL, NL_SAMPLE_PROCESSOR},          \
    {"presence-penalty", required_argument, NULL, NL_SAMPLE_PROCESSOR},                    \
    {"frequency-penalty", required_argument, NULL, NL_SAMPLE_PROCESSOR},                   \
    {"no-repeat-ngram-size", required_argument, NULL, NL_SAMPLE_PROCESSOR},                \
    {"encoder-no-repeat-ngram-size", required_argument, NULL, NL_SAMPLE_PROCESSOR},        \
    {"logit-bias", required_argument, NULL, NL_SAMPLE_PROCESSOR},                          \
    {"sequence-bias", required_argument, NULL, NL_SAMPLE_PROCESSOR},                       \
    {"bad-words-ids", required_argument, NULL, NL_SAMPLE_PROCESSOR},                       \
    {"suppress-tokens", required_argument, NULL, NL_SAMPLE_PROCESSOR},                     \
    {"begin-suppress-tokens", required_argument, NULL, NL_SAMPLE_PROCESSOR},               \
    {"allowed-token-ids", required_argument, NULL, NL_SAMPLE_PROCESSOR},                   \
    {"forced-bos-token-id", required_argument, NULL, NL_SAMPLE_PROCESSOR},                 \
    {"forced-eos-token-id", required_argument, NULL, NL_SAMPLE_PROCESSOR},                 \
    {"min-length", required_argument, NULL, NL_SAMPLE_PROCESSOR},                          \
    {"min-new-tokens", required_argument, NULL, NL_SAMPLE_PROCESSOR},                      \
    {"exponential-decay-length-penalty", required_argument, NULL, NL_SAMPLE_PROCESSOR}

#define NL_SAMPLE_HELP                                                                     \
    "  -n, --max-new-tokens N        end after N ids\n"                                    \
    "      --stop-id ID,...          these ids end a sequence too; may be given again\n"   \
    "      --ignore-eos              the model's end ids do not\n"                         \
    "      --ignore-generation       do not apply the model's generation_config\n"         \
    "      --seed N                  of the draws (default: a new one each time)\n"        \
    "Logits processors, applied in the order given; without those marked * the best id is taken:\n" \
    "      --temperature T           * divide by T; 0: take the best after all\n"          \
    "      --top-k K                 * keep the K best and what ties with the last\n"      \
    "      --top-p P                 * keep the best that together reach P\n"              \
    "      --min-p P                 * keep what has P times the best probability\n"       \
    "      --typical-p P             * keep the most typical that together reach P\n"      \
    "      --epsilon-cutoff E        * keep probabilities of at least E\n"                 \
    "      --eta-cutoff E            * the same, less where the entropy is high\n"         \
    "      --top-n-sigma N           * keep what is within N sigma of the best\n"          \
    "      --repetition-penalty P    divide what occurred by P\n"                          \
    "      --presence-penalty A      subtract A from what was generated\n"                 \
    "      --frequency-penalty F     subtract F for each time it was\n"                    \
    "      --no-repeat-ngram-size N  exclude what would repeat N ids\n"                    \
    "      --logit-bias ID:BIAS,...  add to logits; also ID ID:BIAS for the last of several\n" \
    "      --bad-words-ids ID,...    exclude; also ID ID,... for the last of several\n"    \
    "      --suppress-tokens ID,...  exclude; --begin-suppress-tokens: as the first new id\n" \
    "      --allowed-token-ids ID,...  exclude all others\n"                               \
    "      --min-new-tokens N        exclude end ids until then; --min-length: with the prompt\n" \
    "      --forced-bos-token-id ID  --forced-eos-token-id ID,...\n"                       \
    "      --exponential-decay-length-penalty START,FACTOR\n"                              \
    "      --encoder-repetition-penalty P  --encoder-no-repeat-ngram-size N\n"
/* clang-format on */

#endif
