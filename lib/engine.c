#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine_options.h"
#include "memory.h"

enum {
    GROWTH_CHECK = 16 /* blocks between two looks at the memory */
};

struct nl_sequence {
    bool in_use;
    uint32_t slot, length;
    uint32_t *table; /* [blocks_per_sequence] */
    uint32_t n_blocks;
    uint32_t rope_length; /* for which the last rows were rotated */
    struct nl_ids ids;    /* [length], kept only where longrope may need them again */
};

struct nl_engine {
    struct nl_model *model;
    struct nl_backend *backend;
    unsigned threads;
    uint32_t context, batch, chunk, blocks_per_sequence;
    struct nl_sequence *sequences; /* [batch] */
    uint32_t *free_blocks;         /* a stack of [batch * blocks_per_sequence] */
    size_t n_free;
    uint32_t blocks_since_check;
    /* one step's arrays, [max_tokens] or [max_outputs] */
    uint32_t *ids, *positions, *slots, *outputs, *best;
    const uint32_t **tables;          /* [batch] */
    float *logits;                    /* [max_outputs][vocab_size] */
    float *frequencies[NL_MAX_ROPES]; /* [batch][dims / 2]: of each feed, where they vary */
    uint32_t *frequency_set;          /* [max_tokens]: the row's feed */
};

static int open_backend(struct nl_engine *engine, const struct nl_engine_options *options,
                        struct nl_error *error)
{
    const char *device = options->device ? options->device : getenv("NL_DEVICE");
    const char *isa = options->isa ? options->isa : getenv("NL_ISA");
    engine->threads = options->threads ? options->threads : nl_default_threads(error);
    if (engine->threads == 0)
        return -1;
    engine->backend = nl_backend_open(device && *device ? device : "auto", isa && *isa ? isa : NULL,
                                      engine->threads, error);
    if (!engine->backend)
        return -1;
    if (options->bfloat16 && !nl_backend_rounds(engine->backend))
        return nl_fail(error, NL_UNSUPPORTED,
                       "activations in bfloat16 are for CUDA, on the CPU for NL_ISA=reference only: %s",
                       nl_backend_name(engine->backend));
    return 0;
}

/* Of the device, or the host where the backend works there. */
static uint64_t memory_available(const struct nl_engine *engine)
{
    uint64_t bytes;
    return nl_backend_available(engine->backend, &bytes) ? bytes : nl_memory_available();
}

/* Bytes of activations, logits and scratch, roughly. */
static uint64_t activation_bytes(const struct nl_engine *engine)
{
    const struct nl_plan *plan = &engine->model->plan;
    uint64_t width = 0;
    for (uint32_t i = 0; i < plan->n_buffers; i++)
        width += plan->width[i];
    return 4 * (width * plan->max_tokens + (uint64_t)plan->vocab_size * plan->max_outputs);
}

static int check_memory(const struct nl_engine *engine, bool context_given, struct nl_error *error)
{
    uint64_t cache = nl_plan_block_size(&engine->model->plan);
    if (context_given && !nl_mul(cache, engine->blocks_per_sequence, &cache))
        cache = UINT64_MAX / 2;
    uint64_t weights = engine->model->weights.bytes, activations = activation_bytes(engine), need = 0;
    uint64_t available = memory_available(engine);
    if (nl_add(weights, cache, &need) && nl_add(need, activations, &need) && need <= available)
        return 0;
    return nl_fail(error, NL_RESOURCE,
                   "not enough memory: %llu MB of weights, %llu MB of cache for %u positions and %llu MB of "
                   "activations are "
                   "needed, %llu MB are available",
                   (unsigned long long)(weights >> 20), (unsigned long long)(cache >> 20),
                   context_given ? engine->context : NL_BLOCK, (unsigned long long)(activations >> 20),
                   (unsigned long long)(available >> 20));
}

static int allocate_step(struct nl_engine *engine, struct nl_error *error)
{
    const struct nl_plan *plan = &engine->model->plan;
    uint64_t n_blocks = (uint64_t)engine->batch * engine->blocks_per_sequence;
    engine->ids = malloc(plan->max_tokens * sizeof *engine->ids);
    engine->positions = malloc(plan->max_tokens * sizeof *engine->positions);
    engine->slots = malloc(plan->max_tokens * sizeof *engine->slots);
    engine->outputs = malloc(plan->max_outputs * sizeof *engine->outputs);
    engine->best = malloc(plan->max_outputs * sizeof *engine->best);
    engine->tables = malloc(engine->batch * sizeof *engine->tables);
    engine->logits = malloc((size_t)plan->max_outputs * plan->vocab_size * sizeof *engine->logits);
    engine->free_blocks = malloc(n_blocks * sizeof *engine->free_blocks);
    engine->sequences = calloc(engine->batch, sizeof *engine->sequences);
    bool there = engine->ids && engine->positions && engine->slots && engine->outputs && engine->best &&
                 engine->tables && engine->logits && engine->free_blocks && engine->sequences;
    engine->frequency_set = malloc(plan->max_tokens * sizeof *engine->frequency_set);
    there = there && engine->frequency_set;
    for (uint32_t i = 0; there && i < plan->n_ropes; i++) {
        engine->frequencies[i] = malloc((size_t)engine->batch * plan->ropes[i].dims * sizeof(float));
        there = engine->frequencies[i] != NULL;
    }
    for (uint32_t i = 0; there && i < engine->batch; i++) {
        engine->sequences[i].slot = i;
        engine->sequences[i].table = malloc(engine->blocks_per_sequence * sizeof(uint32_t));
        engine->tables[i] = engine->sequences[i].table;
        there = engine->sequences[i].table != NULL;
    }
    if (!there)
        return nl_fail_memory(error, "sequences");
    for (uint64_t i = 0; i < n_blocks; i++)
        engine->free_blocks[i] = (uint32_t)(n_blocks - 1 - i);
    engine->n_free = n_blocks;
    return nl_backend_load(engine->backend, plan, n_blocks, error);
}

static int open_engine(struct nl_engine *engine, const char *folder, const struct nl_engine_options *options,
                       struct nl_error *error)
{
    engine->batch = options->batch ? options->batch : NL_DEFAULT_BATCH;
    engine->chunk = options->prefill_chunk ? options->prefill_chunk : NL_DEFAULT_CHUNK;
    uint32_t max_outputs = options->max_outputs > engine->batch ? options->max_outputs : engine->batch;
    if (open_backend(engine, options, error) != 0)
        return -1;
    engine->model =
        nl_model_open(folder, options->bfloat16, engine->chunk + engine->batch, max_outputs, error);
    if (!engine->model)
        return -1;
    engine->context = options->context ? options->context : engine->model->config.max_positions;
    bool learned = engine->model->config.architecture->names->positions != NULL;
    if (learned && engine->context > engine->model->config.max_positions)
        engine->context = engine->model->config.max_positions;
    engine->blocks_per_sequence = (engine->context + NL_BLOCK - 1) / NL_BLOCK;
    if (check_memory(engine, options->context != 0, error) != 0)
        return -1;
    return allocate_step(engine, error);
}

struct nl_engine *nl_engine_open(const char *folder, const struct nl_engine_options *options,
                                 struct nl_error *error)
{
    struct nl_engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        nl_fail_memory(error, "engine");
        return NULL;
    }
    if (open_engine(engine, folder, options, error) == 0)
        return engine;
    nl_engine_close(engine);
    return NULL;
}

void nl_engine_close(struct nl_engine *engine)
{
    if (!engine)
        return;
    for (uint32_t i = 0; engine->sequences && i < engine->batch; i++) {
        free(engine->sequences[i].table);
        nl_ids_free(&engine->sequences[i].ids);
    }
    for (uint32_t i = 0; i < NL_MAX_ROPES; i++)
        free(engine->frequencies[i]);
    free(engine->frequency_set);
    free(engine->sequences);
    free(engine->free_blocks);
    free(engine->ids);
    free(engine->positions);
    free(engine->slots);
    free(engine->outputs);
    free(engine->best);
    free(engine->tables);
    free(engine->logits);
    nl_backend_close(engine->backend);
    nl_model_close(engine->model);
    free(engine);
}

const struct nl_model *nl_engine_model(const struct nl_engine *engine)
{
    return engine->model;
}
const char *nl_engine_backend(const struct nl_engine *engine)
{
    return nl_backend_name(engine->backend);
}
unsigned nl_engine_threads(const struct nl_engine *engine)
{
    return engine->threads;
}
uint32_t nl_engine_context(const struct nl_engine *engine)
{
    return engine->context;
}
uint32_t nl_engine_batch(const struct nl_engine *engine)
{
    return engine->batch;
}
uint32_t nl_engine_max_outputs(const struct nl_engine *engine)
{
    return engine->model->plan.max_outputs;
}
uint32_t nl_engine_chunk(const struct nl_engine *engine)
{
    return engine->chunk;
}

struct nl_sequence *nl_engine_new_sequence(struct nl_engine *engine, struct nl_error *error)
{
    for (uint32_t i = 0; i < engine->batch; i++)
        if (!engine->sequences[i].in_use) {
            engine->sequences[i].in_use = true;
            return &engine->sequences[i];
        }
    nl_fail(error, NL_RESOURCE, "more than %u sequences at once", engine->batch);
    return NULL;
}

void nl_engine_free_sequence(struct nl_engine *engine, struct nl_sequence *sequence)
{
    if (!sequence)
        return;
    while (sequence->n_blocks > 0) {
        uint32_t block = sequence->table[--sequence->n_blocks];
        nl_backend_release_block(engine->backend, block);
        engine->free_blocks[engine->n_free++] = block;
    }
    sequence->length = sequence->rope_length = 0;
    sequence->ids.count = 0;
    sequence->in_use = false;
}

uint32_t nl_sequence_length(const struct nl_sequence *sequence)
{
    return sequence->length;
}

void nl_sequence_cut(struct nl_sequence *sequence, uint32_t length)
{
    if (length < sequence->length)
        sequence->length = length;
    if (length < sequence->ids.count)
        sequence->ids.count = length;
}

static int check_ids(const struct nl_engine *engine, uint64_t first, const uint32_t *ids, size_t count,
                     struct nl_error *error)
{
    uint32_t vocab_size = engine->model->config.vocab_size;
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= vocab_size)
            return nl_fail(error, NL_DATA, "id %u at position %llu is outside the model's vocabulary of %u",
                           ids[i], (unsigned long long)(first + i), vocab_size);
    return 0;
}

int nl_engine_check_ids(const struct nl_engine *engine, const uint32_t *ids, size_t count,
                        struct nl_error *error)
{
    return check_ids(engine, 0, ids, count, error);
}

int nl_engine_check(const struct nl_engine *engine, const struct nl_sequence *sequence, const uint32_t *ids,
                    size_t count, struct nl_error *error)
{
    uint64_t length = sequence ? sequence->length : 0;
    if (check_ids(engine, length, ids, count, error) != 0)
        return -1;
    if (count > engine->context - length)
        return nl_fail(error, NL_TOO_LONG, "%llu ids do not fit into the context of %u",
                       (unsigned long long)(length + count), engine->context);
    return 0;
}

/* Blocks for positions up to `length`; those that are there are kept. */
static int grow(struct nl_engine *engine, struct nl_sequence *sequence, uint32_t length,
                struct nl_error *error)
{
    uint32_t want = (length + NL_BLOCK - 1) / NL_BLOCK;
    if (want > sequence->n_blocks) {
        engine->blocks_since_check += want - sequence->n_blocks;
        if (engine->blocks_since_check >= GROWTH_CHECK) {
            uint64_t need = nl_plan_block_size(&engine->model->plan) * engine->blocks_since_check;
            uint64_t available = memory_available(engine);
            engine->blocks_since_check = 0;
            if (need > available)
                return nl_fail(error, NL_RESOURCE,
                               "not enough memory for the cache at position %u: %llu MB are needed, %llu MB "
                               "are available",
                               length, (unsigned long long)(need >> 20),
                               (unsigned long long)(available >> 20));
        }
    }
    while (sequence->n_blocks < want)
        sequence->table[sequence->n_blocks++] = engine->free_blocks[--engine->n_free];
    return 0;
}

/* The first operation whose output holds a NaN. */
struct nan_search {
    const struct nl_plan *plan;
    uint32_t n_tokens;
    bool found;
    int layer;
};

static void look_for_nan(void *context, const struct nl_op *op, float *const *buffers)
{
    struct nan_search *search = context;
    if (search->found || op->out == NL_NO_BUFFER || (op->kind == NL_OP_NORM && op->norm.at_outputs))
        return;
    size_t count = (size_t)search->n_tokens * search->plan->width[op->out];
    for (size_t i = 0; i < count && !search->found; i++)
        search->found = buffers[op->out][i] != buffers[op->out][i];
    search->layer = op->layer;
}

/* Runs the step again (it writes the same cache entries) to find where the NaN came from. */
static int report_nan(struct nl_engine *engine, const struct nl_step *step, struct nl_error *error)
{
    struct nan_search search = {.plan = &engine->model->plan, .n_tokens = step->n_tokens};
    struct nl_observer observer = {.seen = look_for_nan, .context = &search};
    if (nl_backend_run(engine->backend, step, &observer, error) != 0)
        return -1;
    if (!search.found)
        return nl_fail(error, NL_DATA,
                       "the logits are not numbers (NaN), from the final norm or the output weights");
    if (search.layer < 0)
        return nl_fail(error, NL_DATA, "the logits are not numbers (NaN), from the embedding");
    return nl_fail(error, NL_DATA, "the logits are not numbers (NaN), first in layer %d", search.layer);
}

/* Lays the feeds' ids out as rows. */
static int lay_out(struct nl_engine *engine, struct nl_feed *feeds, size_t n_feeds, struct nl_step *step,
                   struct nl_error *error)
{
    uint32_t rows = 0, outputs = 0;
    bool best_only = true;
    for (size_t f = 0; f < n_feeds; f++) {
        struct nl_feed *feed = &feeds[f];
        best_only = best_only && (feed->best_only || feed->n_outputs == 0);
        struct nl_sequence *sequence = feed->sequence;
        if (nl_engine_check(engine, sequence, feed->ids, feed->count, error) != 0 ||
            grow(engine, sequence, sequence->length + feed->count, error) != 0)
            return -1;
        feed->logits = engine->logits + (size_t)outputs * engine->model->config.vocab_size;
        feed->best = engine->best + outputs;
        for (uint32_t i = 0; i < feed->count; i++, rows++) {
            engine->ids[rows] = feed->ids[i];
            engine->positions[rows] = sequence->length + i;
            engine->slots[rows] = sequence->slot;
            if (feed->count - i <= feed->n_outputs)
                engine->outputs[outputs++] = rows;
        }
    }
    *step = (struct nl_step){.n_tokens = rows,
                             .n_outputs = outputs,
                             .ids = engine->ids,
                             .positions = engine->positions,
                             .slots = engine->slots,
                             .tables = engine->tables,
                             .outputs = engine->outputs,
                             .logits = engine->logits,
                             .best_only = best_only,
                             .best = engine->best};
    return 0;
}

/* The length that decides a feed's frequencies. */
static uint32_t rope_length(const struct nl_feed *feed)
{
    uint32_t length = feed->sequence->length + feed->count;
    return feed->whole > length ? feed->whole : length;
}

static void set_frequencies(struct nl_engine *engine, const struct nl_feed *feeds, size_t n_feeds,
                            struct nl_step *step)
{
    const struct nl_config *config = &engine->model->config;
    for (uint32_t rope = 0; rope < config->n_ropes; rope++) {
        step->frequencies[rope] = engine->model->frequencies[rope];
        if (!nl_rope_varies(&config->ropes[rope]))
            continue;
        uint32_t row = 0;
        for (size_t f = 0; f < n_feeds; f++) {
            nl_rope_frequencies(&config->ropes[rope], rope_length(&feeds[f]),
                                engine->frequencies[rope] + f * (config->ropes[rope].dims / 2));
            for (uint32_t i = 0; i < feeds[f].count; i++)
                engine->frequency_set[row++] = (uint32_t)f;
        }
        step->frequencies[rope] = engine->frequencies[rope];
        step->frequency_set[rope] = engine->frequency_set;
    }
}

/* The border that any of the model's ropes has. */
static uint32_t rope_border(const struct nl_engine *engine)
{
    uint32_t border = UINT32_MAX;
    for (uint32_t i = 0; i < engine->model->config.n_ropes; i++) {
        uint32_t own = nl_rope_border(&engine->model->config.ropes[i]);
        border = own < border ? own : border;
    }
    return border;
}

static int run_step(struct nl_engine *engine, struct nl_feed *feeds, size_t n_feeds,
                    const struct nl_observer *observer, struct nl_error *error)
{
    struct nl_step step;
    if (lay_out(engine, feeds, n_feeds, &step, error) != 0)
        return -1;
    set_frequencies(engine, feeds, n_feeds, &step);
    if (observer && observer->begin)
        observer->begin(observer->context, &step);
    if (nl_backend_run(engine->backend, &step, observer, error) != 0)
        return -1;
    if (observer && observer->end)
        observer->end(observer->context, &step);
    for (uint32_t i = 0; i < step.n_outputs; i++)
        if (engine->best[i] == NL_BEST_NAN)
            return report_nan(engine, &step, error);
    for (size_t f = 0; f < n_feeds; f++) {
        feeds[f].sequence->rope_length = rope_length(&feeds[f]);
        feeds[f].sequence->length += feeds[f].count;
    }
    return 0;
}

/* Computes what a sequence holds anew, with the frequencies of another length. */
static int rebuild(struct nl_engine *engine, struct nl_sequence *sequence, uint32_t whole,
                   const struct nl_observer *observer, struct nl_error *error)
{
    uint32_t length = sequence->length;
    for (sequence->length = 0; sequence->length < length;) {
        uint32_t rest = length - sequence->length;
        struct nl_feed feed = {
            .sequence = sequence, .ids = sequence->ids.data + sequence->length, .whole = whole};
        feed.count = rest < engine->chunk ? rest : engine->chunk;
        if (run_step(engine, &feed, 1, observer, error) != 0)
            return -1;
    }
    return 0;
}

int nl_engine_step_observed(struct nl_engine *engine, struct nl_feed *feeds, size_t n_feeds,
                            const struct nl_observer *observer, struct nl_error *error)
{
    uint32_t border = rope_border(engine);
    for (size_t f = 0; border != UINT32_MAX && f < n_feeds; f++) {
        struct nl_sequence *sequence = feeds[f].sequence;
        uint32_t whole = rope_length(&feeds[f]);
        bool crosses = sequence->length > 0 && (sequence->rope_length > border) != (whole > border);
        if (crosses && rebuild(engine, sequence, whole, observer, error) != 0)
            return -1;
    }
    if (run_step(engine, feeds, n_feeds, observer, error) != 0)
        return -1;
    for (size_t f = 0; border != UINT32_MAX && f < n_feeds; f++)
        if (nl_ids_add(&feeds[f].sequence->ids, feeds[f].ids, feeds[f].count, error) != 0)
            return -1;
    return 0;
}

int nl_engine_step(struct nl_engine *engine, struct nl_feed *feeds, size_t n_feeds, struct nl_error *error)
{
    return nl_engine_step_observed(engine, feeds, n_feeds, NULL, error);
}
