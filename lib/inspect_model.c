#include "inspect_model.h"

#include "engine.h"
#include "inspect.h"

bool nl_footprint(const struct nl_config *config, const struct nl_checkpoint *checkpoint, uint32_t context,
                  struct nl_footprint *footprint)
{
    uint32_t width[NL_BUFFERS];
    uint64_t floats = 0, kv = (uint64_t)config->n_kv_heads * config->head_dim;
    uint64_t positions = ((uint64_t)context + NL_BLOCK - 1) / NL_BLOCK * NL_BLOCK;
    *footprint = (struct nl_footprint){0};
    for (size_t i = 0; i < checkpoint->count; i++)
        footprint->weights += checkpoint->tensors[i]->end - checkpoint->tensors[i]->begin;
    footprint->cache_token = 2 * sizeof(float) * config->n_layers * kv; /* sizes are below 2^27 */
    nl_model_widths(config, width);
    for (int i = 0; i < NL_BUFFERS; i++)
        floats += (uint64_t)width[i] * (NL_DEFAULT_CHUNK + NL_DEFAULT_BATCH);
    floats += (uint64_t)config->vocab_size * NL_DEFAULT_BATCH;
    footprint->activations = sizeof(float) * floats;
    footprint->total = footprint->weights;
    return nl_mul(footprint->cache_token, positions, &footprint->cache) &&
           nl_add(footprint->total, footprint->cache, &footprint->total) &&
           nl_add(footprint->total, footprint->activations, &footprint->total);
}

/* Facts are written one after the other, as lines or as members. */
struct facts {
    struct nl_buf *out;
    bool json, human, begun;
};

static void begin_fact(struct facts *facts, const char *key)
{
    if (facts->json)
        nl_buf_printf(facts->out, "%s\"%s\":", facts->begun ? "," : "{", key);
    else
        nl_buf_printf(facts->out, "%-26s  ", key);
    facts->begun = true;
}

static void end_fact(struct facts *facts)
{
    if (!facts->json)
        nl_buf_putc(facts->out, '\n');
}

static void text_fact(struct facts *facts, const char *key, const char *value)
{
    begin_fact(facts, key);
    nl_buf_printf(facts->out, facts->json ? "\"%s\"" : "%s", value); /* names of our own: nothing to escape */
    end_fact(facts);
}

/* `unit`: 1024 for bytes, 1000 for counts; 1: never with a unit. */
static void number_fact(struct facts *facts, const char *key, uint64_t value, unsigned unit)
{
    char text[32];
    begin_fact(facts, key);
    nl_buf_puts(facts->out, nl_inspect_amount(text, value, unit, facts->human && unit > 1));
    end_fact(facts);
}

static void flag_fact(struct facts *facts, const char *key, bool value)
{
    begin_fact(facts, key);
    nl_buf_puts(facts->out, facts->json ? (value ? "true" : "false") : value ? "yes" : "no");
    end_fact(facts);
}

static void add_shape_facts(struct facts *facts, const struct nl_config *c)
{
    static const char *const types[] = {"default", "linear", "dynamic", "yarn", "longrope", "llama3"};
    uint32_t sliding = 0, window = 0;
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->windows[i] != UINT32_MAX) {
            sliding++;
            window = c->windows[i];
        }
    text_fact(facts, "architecture", c->architecture->name);
    number_fact(facts, "layers", c->n_layers, 1);
    number_fact(facts, "hidden_size", c->hidden_size, 1);
    number_fact(facts, "intermediate_size", c->intermediate_size, 1);
    number_fact(facts, "heads", c->n_heads, 1);
    number_fact(facts, "kv_heads", c->n_kv_heads, 1);
    number_fact(facts, "head_dim", c->head_dim, 1);
    number_fact(facts, "vocab_size", c->vocab_size, 1);
    flag_fact(facts, "tied_embeddings", c->tied);
    number_fact(facts, "max_positions", c->max_positions, 1);
    text_fact(facts, "rope", c->n_ropes == 0 ? "none" : types[c->ropes[0].type]);
    number_fact(facts, "sliding_layers", sliding, 1);
    if (sliding)
        number_fact(facts, "window", window, 1);
}

static uint64_t count_parameters(const struct nl_checkpoint *checkpoint)
{
    uint64_t count = 0;
    for (size_t i = 0; i < checkpoint->count; i++)
        if (!nl_add(count, checkpoint->tensors[i]->elements, &count))
            return UINT64_MAX;
    return count;
}

static void add_memory_facts(struct facts *facts, const struct nl_config *c,
                             const struct nl_footprint *footprint, uint32_t context)
{
    number_fact(facts, "weight_bytes", footprint->weights, 1024);
    number_fact(facts, "kv_bytes_per_token", footprint->cache_token, 1024);
    number_fact(facts, "kv_bytes_per_token_16bit", footprint->cache_token / 2, 1024);
    begin_fact(facts, "kv_times_smaller");
    nl_buf_printf(facts->out, "%g", (double)c->n_heads / c->n_kv_heads);
    end_fact(facts);
    number_fact(facts, "context", context, 1);
    number_fact(facts, "kv_bytes", footprint->cache, 1024);
    number_fact(facts, "activation_bytes", footprint->activations, 1024);
    number_fact(facts, "memory_bytes", footprint->total, 1024);
}

static int describe(const char *folder, const struct nl_checkpoint *checkpoint, uint32_t context,
                    struct facts *facts, struct nl_error *error)
{
    struct nl_config config;
    struct nl_footprint footprint;
    if (nl_config_load(folder, &config, error) != 0)
        return -1;
    context = context ? context : config.max_positions;
    int result = 0;
    if (nl_footprint(&config, checkpoint, context, &footprint)) {
        add_shape_facts(facts, &config);
        number_fact(facts, "parameters", count_parameters(checkpoint), 1000);
        add_memory_facts(facts, &config, &footprint, context);
    } else {
        result = nl_fail(error, NL_RESOURCE, "%u positions need more memory than can be counted: %s", context,
                         folder);
    }
    nl_config_free(&config);
    return result;
}

int nl_inspect_model(const char *folder, const struct nl_checkpoint *checkpoint, uint32_t context, bool human,
                     struct nl_buf *out, struct nl_error *error)
{
    struct facts facts = {.out = out, .human = human};
    return describe(folder, checkpoint, context, &facts, error);
}

int nl_inspect_model_json(const char *folder, const struct nl_checkpoint *checkpoint, uint32_t context,
                          struct nl_buf *out, struct nl_error *error)
{
    struct facts facts = {.out = out, .json = true};
    if (describe(folder, checkpoint, context, &facts, error) != 0)
        return -1;
    nl_buf_putc(out, '}');
    return 0;
}
