#include "sample_options.h"

#include "number.h"
#include "rng.h"

int nl_sample_options_init(struct nl_sample_options *options, struct nl_error *error)
{
    *options = (struct nl_sample_options){.limit = UINT64_MAX};
    options->sampler = nl_sampler_open(error);
    return options->sampler ? 0 : -1;
}

void nl_sample_options_free(struct nl_sample_options *options)
{
    nl_sampler_close(options->sampler);
    nl_ids_free(&options->stop_ids);
    *options = (struct nl_sample_options){0};
}

static int add_stop_ids(struct nl_ids *ids, const char *value, struct nl_error *error)
{
    const char *rest = value;
    int got = nl_take_ids(&rest, ids, error);
    if (got < 0)
        return -1;
    return got > 0 && !*rest ? 1
                             : nl_fail(error, NL_USAGE,
                                       "--stop-id takes ids with commas between them, not '%.100s'", value);
}

/* Seeds stay under 2^53, so that DONE can report them in JSON. */
int nl_sample_option(struct nl_sample_options *options, int c, const char *name, const char *value,
                     struct nl_error *error)
{
    switch (c) {
    case 'n':
        return nl_parse_whole("-n", value, 0, (uint64_t)1 << 53, &options->limit, error) == 0 ? 1 : -1;
    case NL_SAMPLE_SEED:
        options->seeded = true;
        return nl_parse_whole("--seed", value, 0, ((uint64_t)1 << 53) - 1, &options->seed, error) == 0 ? 1
                                                                                                       : -1;
    case NL_SAMPLE_STOP_ID:
        return add_stop_ids(&options->stop_ids, value, error);
    case NL_SAMPLE_IGNORE_EOS:
        options->ignore_eos = true;
        return 1;
    case NL_SAMPLE_IGNORE_GENERATION:
        options->ignore_generation = true;
        return 1;
    case NL_SAMPLE_PROCESSOR:
        return nl_sampler_add(options->sampler, name, value, error) == 0 ? 1 : -1;
    default:
        return 0;
    }
}

int nl_sample_options_ready(struct nl_sample_options *options, struct nl_error *error)
{
    if (!nl_sampler_is_greedy(options->sampler) && !options->seeded) {
        if (nl_random_seed(&options->seed, error) != 0)
            return -1;
        options->seeded = true;
    }
    nl_sampler_set_seed(options->sampler, options->seed);
    nl_sampler_set_limit(options->sampler, options->limit);
    return 0;
}

static bool among(const uint32_t *ids, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

const char *nl_sample_finish(const struct nl_sample_options *options, const uint32_t *eos, size_t n_eos,
                             uint32_t id, uint64_t count)
{
    if (!options->ignore_eos && among(eos, n_eos, id))
        return "eos";
    if (among(options->stop_ids.data, options->stop_ids.count, id))
        return "stop";
    return count >= options->limit ? "length" : NULL;
}
