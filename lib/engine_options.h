/*
 * engine_options.h: the options of every program that runs a model; used as sample_options.h is.
 */
#ifndef NL_ENGINE_OPTIONS_H
#define NL_ENGINE_OPTIONS_H

#include "engine.h"

struct nl_model_options {
    const char *model; /* -m; NULL: none */
    bool any_tokenizer;
    struct nl_engine_options engine;
};

/* What NL_THREADS says, else nl_pool_default_threads(). 0 and *error (NL_USAGE): it is no number from 1 to
 * 1024. */
unsigned nl_default_threads(struct nl_error *error);

/* 1: taken; 0: not one of these options; -1: *error (NL_USAGE). `value`: optarg. */
int nl_model_option(struct nl_model_options *, int c, const char *value, struct nl_error *error);

enum {
    NL_MODEL_ANY_TOKENIZER = 0x6000,
    NL_MODEL_PREFILL_CHUNK,
    NL_MODEL_BATCH,
    NL_MODEL_THREADS,
    NL_MODEL_DEVICE,
    NL_MODEL_DTYPE,
};

#define NL_MODEL_SHORT_OPTIONS "m:c:"

/* clang-format off */
#define NL_MODEL_LONG_OPTIONS                                                              \
    {"model", required_argument, NULL, 'm'},                                               \
    {"context", required_argument, NULL, 'c'},                                             \
    {"any-tokenizer", no_argument, NULL, NL_MODEL_ANY_TOKENIZER},                          \
    {"prefill-chunk", required_argument, NULL, NL_MODEL_PREFILL_CHUNK},                    \
    {"batch", required_argument, NULL, NL_MODEL_BATCH},                                    \
    {"threads", required_argument, NULL, NL_MODEL_THREADS},                                \
    {"device", required_argument, NULL, NL_MODEL_DEVICE},                                  \
    {"dtype", required_argument, NULL, NL_MODEL_DTYPE}

#define NL_MODEL_HELP                                                                      \
    "  -m, --model MODEL             a folder, or ORG/NAME[@REVISION] of the Hugging Face cache\n" \
    "  -c, --context N               positions of a sequence (max_position_embeddings)\n"  \
    "      --any-tokenizer           take ids of another tokenizer than the model's\n"     \
    "      --prefill-chunk N         ids of a prompt that go through at once (512)\n"      \
    "      --batch N                 sequences that run together at most (8)\n"            \
    "      --threads N               (the cores that may be used)\n"                       \
    "      --device DEVICE           auto, cpu, cuda, cuda:N\n"                            \
    "      --dtype TYPE              of activations: float32, bfloat16\n"
/* clang-format on */

#endif
