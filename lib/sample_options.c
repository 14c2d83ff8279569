#include "sample_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

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

/* Decimal digits up to `high`; moves *text behind them. */
static bool take_whole(const char **text, uint64_t high, uint64_t *number)
{
    if (!isdigit((unsigned char)**text))
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(*text, &end, 10);
    if (errno || value > high)
        return false;
    *text = end;
    *number = value;
    return true;
}

static int parse_whole(const char *name, const char *value, uint64_t high, uint64_t *number,
                       struct nl_error *error)
{
    const char *rest = value;
    if (take_whole(&rest, high, number) && !*rest)
        return 1;
    return nl_fail(error, NL_USAGE, "%s takes a whole number up to %llu, not '%.100s'", name,
                   (unsigned long long)high, value);
}

static int parse_ids(struct nl_ids *ids, const char *value, struct nl_error *error)
{
    const char *rest = value;
    for (;;) {
        uint64_t number;
        if (!take_whole(&rest, UINT32_MAX, &number) || (*rest && *rest != ','))
            return nl_fail(error, NL_USAGE, "--stop-id takes ids with commas between them, not '%.100s'",
                           value);
        uint32_t id = (uint32_t)number;
        if (nl_ids_add(ids, &id, 1, error) != 0)
            return -1;
        if (!*rest)
            return 1;
        rest++;
    }
}

/* Seeds stay under 2^53, so that DONE can report them in JSON. */
int nl_sample_option(struct nl_sample_options *options, int c, const char *name, const char *value,
                     struct nl_error *error)
{
    switch (c) {
    case 'n':
        return parse_whole("-n", value, (uint64_t)1 << 53, &options->limit, error);
    case NL_SAMPLE_SEED:
        options->seeded = true;
        return parse_whole("--seed", value, ((uint64_t)1 << 53) - 1, &options->seed, error);
    case NL_SAMPLE_STOP_ID:
        return parse_ids(&options->stop_ids, value, error);
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
