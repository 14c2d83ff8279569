#include "sample.h"

#include <math.h>
#include <stdlib.h>

#include "generation.h"
#include "rng.h"
#include "sample_chain.h"

struct chain {
    struct nl_setting *settings; /* [count], owned */
    size_t count, capacity;
};

struct nl_sampler {
    struct chain generation, flags; /* applied in this order */
    struct nl_ids eos;              /* each once */
    uint64_t limit, seed;
    size_t n;      /* what the scratch is for */
    float *floats; /* [2][n] */
    uint32_t *counts;
    struct nl_ranked *ranked; /* [2][n] */
};

struct nl_sampler *nl_sampler_open(struct nl_error *error)
{
    struct nl_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) {
        nl_fail_memory(error, "sampler");
        return NULL;
    }
    sampler->limit = UINT64_MAX;
    return sampler;
}

static void chain_clear(struct chain *chain)
{
    for (size_t i = 0; i < chain->count; i++)
        nl_setting_free(&chain->settings[i]);
    free(chain->settings);
    *chain = (struct chain){0};
}

static void free_scratch(struct nl_sampler *sampler)
{
    free(sampler->floats);
    free(sampler->counts);
    free(sampler->ranked);
    sampler->floats = NULL;
    sampler->counts = NULL;
    sampler->ranked = NULL;
    sampler->n = 0;
}

void nl_sampler_close(struct nl_sampler *sampler)
{
    if (!sampler)
        return;
    chain_clear(&sampler->generation);
    chain_clear(&sampler->flags);
    nl_ids_free(&sampler->eos);
    free_scratch(sampler);
    free(sampler);
}

/* A zeroed setting at the chain's end, which counts only after `count` is raised. */
static struct nl_setting *chain_room(struct chain *chain, struct nl_error *error)
{
    if (nl_grow(&chain->settings, &chain->capacity, chain->count + 1, sizeof *chain->settings,
                "chain of processors", error) != 0)
        return NULL;
    struct nl_setting *settings = chain->settings;
    settings[chain->count] = (struct nl_setting){0};
    return &settings[chain->count];
}

int nl_sampler_add(struct nl_sampler *sampler, const char *name, const char *value, struct nl_error *error)
{
    const struct nl_processor *processor = nl_processor_find(name);
    if (!processor)
        return nl_fail(error, NL_USAGE, "no such processor: %.100s", name);
    struct nl_setting *setting = chain_room(&sampler->flags, error);
    if (!setting || nl_setting_parse(setting, processor, value, error) != 0)
        return -1;
    sampler->flags.count++;
    return 0;
}

static int add_generation(struct nl_sampler *sampler, const struct nl_processor *processor,
                          const struct nl_json *value, struct nl_error *error)
{
    struct nl_setting *setting = chain_room(&sampler->generation, error);
    if (!setting || nl_setting_parse_json(setting, processor, value, error) != 0)
        return -1;
    sampler->generation.count++;
    return 0;
}

static int refuse_unsupported(const struct nl_json *generation, struct nl_error *error)
{
    for (const struct nl_json *member = nl_json_first(generation); member; member = nl_json_next(member)) {
        const char *key = nl_json_key(member);
        if (nl_generation_matters(key, member) && !nl_processor_find(key))
            return nl_fail(error, NL_UNSUPPORTED,
                           "the model's generation_config asks for what is not supported: %s", key);
    }
    return 0;
}

int nl_sampler_set_generation(struct nl_sampler *sampler, const struct nl_json *generation,
                              struct nl_error *error)
{
    chain_clear(&sampler->generation);
    if (!generation)
        return 0;
    if (!nl_json_is(generation, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "not a JSON object: generation");
    if (refuse_unsupported(generation, error) != 0)
        return -1;
    for (const struct nl_processor *processor = nl_processors; processor->name; processor++) {
        const struct nl_json *value = nl_json_get(generation, processor->name);
        if (!value || !nl_generation_matters(processor->name, value))
            continue;
        if (add_generation(sampler, processor, value, error) != 0) {
            chain_clear(&sampler->generation);
            return -1;
        }
    }
    return 0;
}

int nl_sampler_set_eos(struct nl_sampler *sampler, const uint32_t *eos, size_t count, struct nl_error *error)
{
    sampler->eos.count = 0;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t j = 0; j < sampler->eos.count; j++)
            known = known || sampler->eos.data[j] == eos[i];
        if (!known && nl_ids_add(&sampler->eos, &eos[i], 1, error) != 0)
            return -1;
    }
    return 0;
}

void nl_sampler_set_limit(struct nl_sampler *sampler, uint64_t new_ids)
{
    sampler->limit = new_ids;
}

void nl_sampler_set_seed(struct nl_sampler *sampler, uint64_t seed)
{
    sampler->seed = seed;
}

static bool chain_names(const struct chain *chain, const char *name)
{
    for (size_t i = 0; i < chain->count; i++)
        if (strcmp(chain->settings[i].processor->name, name) == 0)
            return true;
    return false;
}

/* The settings that act, in order: NULL at the end. A flag replaces generation's namesake, also one that
   turns it off; min_new_tokens overrides generation's min_length, as in transformers. */
static const struct nl_setting *next_setting(const struct nl_sampler *sampler, size_t *at)
{
    const struct chain *first = &sampler->generation, *flags = &sampler->flags;
    while (*at < first->count + flags->count) {
        size_t i = (*at)++;
        if (i >= first->count) {
            if (!nl_setting_is_off(&flags->settings[i - first->count]))
                return &flags->settings[i - first->count];
            continue;
        }
        const char *name = first->settings[i].processor->name;
        bool overridden = strcmp(name, "min_length") == 0 &&
                          (chain_names(first, "min_new_tokens") || chain_names(flags, "min_new_tokens"));
        if (!overridden && !chain_names(flags, name) && !nl_setting_is_off(&first->settings[i]))
            return &first->settings[i];
    }
    return NULL;
}

static bool is_temperature(const struct nl_setting *setting)
{
    return strcmp(setting->processor->name, "temperature") == 0;
}

bool nl_sampler_is_greedy(const struct nl_sampler *sampler)
{
    bool draws = false;
    for (size_t i = 0; i < sampler->flags.count; i++) {
        const struct nl_setting *setting = &sampler->flags.settings[i];
        if (is_temperature(setting) && setting->number == 0)
            return true;
        if (setting->processor->warper && (is_temperature(setting) || !nl_setting_is_off(setting)))
            draws = true;
    }
    return !draws;
}

bool nl_sampler_is_plain(const struct nl_sampler *sampler)
{
    size_t at = 0;
    return !next_setting(sampler, &at);
}

const char *nl_sampler_needs_ids(const struct nl_sampler *sampler)
{
    const struct nl_setting *setting;
    for (size_t at = 0; (setting = next_setting(sampler, &at));) {
        bool single = setting->n_words > 0; /* words of one id need no history */
        for (size_t i = 0; i < setting->n_words; i++)
            single = single && setting->words[i].count == 1;
        if (setting->processor->reads_ids && !single)
            return setting->processor->name;
    }
    return NULL;
}

size_t nl_sampler_least_row(const struct nl_sampler *sampler)
{
    size_t least = 0;
    const struct nl_setting *setting;
    for (size_t at = 0; (setting = next_setting(sampler, &at));)
        for (size_t i = 0; i < setting->ids.count; i++)
            if (setting->ids.data[i] >= least)
                least = (size_t)setting->ids.data[i] + 1;
    return least;
}

static int need_scratch(struct nl_sampler *sampler, size_t n, struct nl_error *error)
{
    if (n <= sampler->n)
        return 0;
    if (n > SIZE_MAX / (2 * sizeof *sampler->ranked))
        return nl_fail_memory(error, "logits");
    free_scratch(sampler);
    sampler->floats = malloc(2 * n * sizeof *sampler->floats);
    sampler->counts = calloc(n, sizeof *sampler->counts);
    sampler->ranked = malloc(2 * n * sizeof *sampler->ranked);
    if (!sampler->floats || !sampler->counts || !sampler->ranked) {
        free_scratch(sampler);
        return nl_fail_memory(error, "logits");
    }
    sampler->n = n;
    return 0;
}

static int check_numbers(const float *logits, size_t n, const struct nl_history *history,
                         struct nl_error *error)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(logits[i]))
            return nl_fail(error, NL_DATA, "NaN in the logits: id %zu after %zu ids of sequence %llu", i,
                           history->count, (unsigned long long)history->sequence);
    return 0;
}

static int check_left(const float *logits, size_t n, const char *culprit, const struct nl_history *history,
                      struct nl_error *error)
{
    for (size_t i = 0; i < n; i++)
        if (logits[i] > -INFINITY)
            return 0;
    return nl_fail(error, NL_DATA, "no id is left to choose from: %s after %zu ids of sequence %llu", culprit,
                   history->count, (unsigned long long)history->sequence);
}

static int check_ids(const struct nl_setting *setting, size_t n, struct nl_error *error)
{
    if (!setting->n_words)
        return 0;
    for (size_t i = 0; i < setting->ids.count; i++)
        if (setting->ids.data[i] >= n)
            return nl_fail(error, NL_DATA, "id past the %zu logits: %u in %s", n,
                           (unsigned)setting->ids.data[i], setting->processor->name);
    return 0;
}

int nl_sampler_apply(struct nl_sampler *sampler, float *logits, size_t n, const struct nl_history *history,
                     struct nl_error *error)
{
    if (check_numbers(logits, n, history, error) != 0 ||
        check_left(logits, n, "the logits themselves", history, error) != 0)
        return -1;
    if (nl_sampler_is_plain(sampler))
        return 0;
    if (need_scratch(sampler, n, error) != 0)
        return -1;
    struct nl_row row = {
        .logits = logits,
        .n = n,
        .history = history,
        .eos = &sampler->eos,
        .limit = sampler->limit,
        .forced_bos = chain_names(&sampler->generation, "forced_bos_token_id") ||
                      chain_names(&sampler->flags, "forced_bos_token_id"),
        .floats = sampler->floats,
        .more_floats = sampler->floats + n,
        .counts = sampler->counts,
        .ranked = sampler->ranked,
        .more_ranked = sampler->ranked + n,
    };
    const struct nl_setting *setting;
    for (size_t at = 0; (setting = next_setting(sampler, &at));) {
        if (check_ids(setting, n, error) != 0)
            return -1;
        setting->processor->apply(setting, &row);
        if (check_left(logits, n, setting->processor->name, history, error) != 0)
            return -1;
    }
    return 0;
}

int nl_sampler_choose(struct nl_sampler *sampler, const float *logits, size_t n,
                      const struct nl_history *history, uint32_t *id, struct nl_error *error)
{
    if (check_numbers(logits, n, history, error) != 0 ||
        check_left(logits, n, "the logits themselves", history, error) != 0)
        return -1;
    if (!nl_sampler_is_greedy(sampler)) {
        if (need_scratch(sampler, n, error) != 0)
            return -1;
        double total = nl_weights(logits, n, sampler->floats);
        double u = nl_uniform(sampler->seed, history->sequence, (uint32_t)history->count);
        *id = (uint32_t)nl_inverse_transform(sampler->floats, n, total, u);
        return 0;
    }
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    *id = (uint32_t)best;
    return 0;
}
