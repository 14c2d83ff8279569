#include "engine_options.h"

#include <stdlib.h>

#include "number.h"
#include "pool.h"

static int whole(const char *name, const char *value, uint32_t high, uint32_t *out, struct nl_error *error)
{
    uint64_t number;
    if (nl_parse_whole(name, value, 1, high, &number, error) != 0)
        return -1;
    *out = (uint32_t)number;
    return 1;
}

static int dtype(const char *value, bool *bfloat16, struct nl_error *error)
{
    *bfloat16 = strcmp(value, "bfloat16") == 0 || strcmp(value, "bf16") == 0;
    if (*bfloat16 || strcmp(value, "float32") == 0 || strcmp(value, "f32") == 0)
        return 1;
    return nl_fail(error, NL_USAGE, "--dtype takes float32 or bfloat16, not '%s'", value);
}

unsigned nl_default_threads(struct nl_error *error)
{
    const char *value = getenv("NL_THREADS");
    uint64_t threads;
    if (!value || !*value)
        return nl_pool_default_threads();
    return nl_parse_whole("NL_THREADS", value, 1, 1024, &threads, error) < 0 ? 0 : (unsigned)threads;
}

int nl_model_option(struct nl_model_options *options, int c, const char *value, struct nl_error *error)
{
    switch (c) {
    case 'm':
        options->model = value;
        return 1;
    case 'c':
        return whole("--context", value, INT32_MAX, &options->engine.context, error);
    case NL_MODEL_ANY_TOKENIZER:
        options->any_tokenizer = true;
        return 1;
    case NL_MODEL_PREFILL_CHUNK:
        return whole("--prefill-chunk", value, 65536, &options->engine.prefill_chunk, error);
    case NL_MODEL_BATCH:
        return whole("--batch", value, NL_MAX_BATCH, &options->engine.batch, error);
    case NL_MODEL_THREADS:
        return whole("--threads", value, 1024, &options->engine.threads, error);
    case NL_MODEL_DEVICE:
        options->engine.device = value;
        return 1;
    case NL_MODEL_DTYPE:
        return dtype(value, &options->engine.bfloat16, error);
    default:
        return 0;
    }
}
