/* cuda_step.c: what changes from step to step, packed into one copy to the device; and the cache's memory. */
#include <stdlib.h>

#include "cuda_host.h"

enum { PART_ALIGN = 16, FIRST_CAPACITY = 64 << 10 };

/* Makes the slab that a cache block lies in. */
static float *block_address(struct cuda_backend *b, uint32_t block, struct nl_error *error)
{
    size_t slab = block / b->cache.blocks_per_slab;
    if (!b->cache.slabs[slab])
        b->cache.slabs[slab] = nl_cuda_alloc(b->cache.block_bytes * b->cache.blocks_per_slab, "cache", error);
    if (!b->cache.slabs[slab])
        return NULL;
    return b->cache.slabs[slab] + block % b->cache.blocks_per_slab * (b->cache.block_bytes / sizeof(float));
}

static uint32_t most_blocks(const struct nl_step *step)
{
    uint32_t position = 0;
    for (uint32_t t = 0; t < step->n_tokens; t++)
        position = step->positions[t] > position ? step->positions[t] : position;
    return position / NL_BLOCK + 1;
}

/* Where the parts of the packed step begin. */
struct layout {
    size_t ids, positions, sequence, outputs, set[NL_MAX_ROPES], frequencies[NL_MAX_ROPES], tables, size;
    uint32_t n_sequences, table_stride, n_sets[NL_MAX_ROPES];
};

static size_t part(struct layout *layout, size_t bytes)
{
    size_t at = layout->size;
    layout->size += (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    return at;
}

static uint32_t count_sets(const struct nl_step *step, uint32_t rope)
{
    uint32_t most = 0;
    for (uint32_t t = 0; step->frequency_set[rope] && t < step->n_tokens; t++)
        most = step->frequency_set[rope][t] > most ? step->frequency_set[rope][t] : most;
    return most + 1;
}

/* Numbers the step's sequences: rows of one stand together. */
static uint32_t count_sequences(const struct nl_step *step)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < step->n_tokens; t++)
        n += t == 0 || step->slots[t] != step->slots[t - 1];
    return n;
}

static struct layout lay_out(const struct cuda_backend *b, const struct nl_step *step)
{
    struct layout layout = {.n_sequences = count_sequences(step), .table_stride = most_blocks(step)};
    part(&layout, sizeof(struct nl_cuda_step));
    layout.ids = part(&layout, step->n_tokens * sizeof(uint32_t));
    layout.positions = part(&layout, step->n_tokens * sizeof(uint32_t));
    layout.sequence = part(&layout, step->n_tokens * sizeof(uint32_t));
    layout.outputs = part(&layout, step->n_outputs * sizeof(uint32_t));
    for (uint32_t r = 0; r < b->plan->n_ropes; r++) {
        layout.n_sets[r] = count_sets(step, r);
        layout.set[r] = part(&layout, step->n_tokens * sizeof(uint32_t));
        layout.frequencies[r] =
            part(&layout, layout.n_sets[r] * (size_t)(b->plan->ropes[r].dims / 2) * sizeof(float));
    }
    layout.tables = part(&layout, (size_t)layout.n_sequences * layout.table_stride * sizeof(float *));
    return layout;
}

static int reserve(struct cuda_backend *b, size_t size, struct nl_error *error)
{
    size_t capacity = b->step.capacity ? b->step.capacity : FIRST_CAPACITY;
    if (size <= b->step.capacity)
        return 0;
    while (capacity < size)
        capacity *= 2;
    nl_cuda_step_free(b); /* nothing is running: every step ends with a synchronisation */
    nl_cuda_drop_graphs(b);
    if (NL_CUDA(error, cudaMallocHost((void **)&b->step.host, capacity)) != 0)
        return -1;
    b->step.device = nl_cuda_alloc(capacity, "step", error);
    b->step.capacity = b->step.device ? capacity : 0;
    return b->step.device ? 0 : -1;
}

void nl_cuda_step_free(struct cuda_backend *b)
{
    cudaFreeHost(b->step.host);
    cudaFree(b->step.device);
    b->step.host = b->step.device = NULL;
    b->step.capacity = 0;
}

static int pack_tables(struct cuda_backend *b, const struct nl_step *step, const struct layout *layout,
                       struct nl_error *error)
{
    uint32_t *sequence = (uint32_t *)(b->step.host + layout->sequence);
    float **tables = (float **)(b->step.host + layout->tables);
    uint32_t n = 0;
    for (uint32_t t = 0; t < step->n_tokens; t++) {
        bool last = t + 1 == step->n_tokens || step->slots[t + 1] != step->slots[t];
        sequence[t] = n;
        for (uint32_t i = 0; last && i <= step->positions[t] / NL_BLOCK; i++) {
            float *block = block_address(b, step->tables[step->slots[t]][i], error);
            if (!block)
                return -1;
            tables[(size_t)n * layout->table_stride + i] = block;
        }
        n += last;
    }
    return 0;
}

static void pack(struct cuda_backend *b, const struct nl_step *step, const struct layout *layout)
{
    char *host = b->step.host, *device = b->step.device;
    struct nl_cuda_step *header = (struct nl_cuda_step *)host;
    size_t bytes = step->n_tokens * sizeof(uint32_t);
    *header = (struct nl_cuda_step){.n_tokens = step->n_tokens,
                                    .n_outputs = step->n_outputs,
                                    .table_stride = layout->table_stride,
                                    .ids = (uint32_t *)(device + layout->ids),
                                    .positions = (uint32_t *)(device + layout->positions),
                                    .sequence = (uint32_t *)(device + layout->sequence),
                                    .outputs = (uint32_t *)(device + layout->outputs),
                                    .tables = (float **)(device + layout->tables)};
    memcpy(host + layout->ids, step->ids, bytes);
    memcpy(host + layout->positions, step->positions, bytes);
    if (step->n_outputs)
        memcpy(host + layout->outputs, step->outputs, step->n_outputs * sizeof(uint32_t));
    for (uint32_t r = 0; r < b->plan->n_ropes; r++) {
        header->frequency_set[r] = (uint32_t *)(device + layout->set[r]);
        header->frequencies[r] = (const void *)(device + layout->frequencies[r]);
        if (step->frequency_set[r])
            memcpy(host + layout->set[r], step->frequency_set[r], bytes);
        else
            memset(host + layout->set[r], 0, bytes);
        memcpy(host + layout->frequencies[r], step->frequencies[r],
               layout->n_sets[r] * (size_t)(b->plan->ropes[r].dims / 2) * sizeof(float));
    }
}

int nl_cuda_step_send(struct cuda_backend *b, const struct nl_step *step, struct nl_error *error)
{
    struct layout layout = lay_out(b, step);
    if (reserve(b, layout.size, error) != 0 || pack_tables(b, step, &layout, error) != 0)
        return -1;
    pack(b, step, &layout);
    return NL_CUDA(
        error, cudaMemcpyAsync(b->step.device, b->step.host, layout.size, cudaMemcpyHostToDevice, b->stream));
}

int nl_cuda_splits(struct cuda_backend *b, const struct nl_step *step, uint32_t *splits,
                   struct nl_error *error)
{
    uint32_t most = (most_blocks(step) * NL_BLOCK + b->split - 1) / b->split, n_heads = 0;
    for (*splits = 1; *splits < most;)
        *splits *= 2;
    if (*splits <= b->partial_splits)
        return 0;
    for (size_t i = 0; i < b->n_plain; i++)
        if (b->plain[i].kind == NL_OP_ATTENTION)
            n_heads = b->plain[i].attention.n_heads;
    nl_cuda_drop_graphs(b);
    cudaFree(b->partials);
    b->partial_splits = 0;
    b->partials =
        nl_cuda_alloc((uint64_t)NL_CUDA_VECTORS * n_heads * *splits * (b->plan->head_dim + 2) * sizeof(float),
                      "partial attention", error);
    if (!b->partials)
        return -1;
    b->partial_splits = *splits;
    return 0;
}

struct nl_cuda_attention nl_cuda_with_splits(const struct cuda_backend *b,
                                             const struct nl_cuda_attention *attention, uint32_t splits)
{
    struct nl_cuda_attention out = *attention;
    uint64_t window = (uint64_t)attention->window / attention->split + 2;
    out.max_splits = window < splits ? (uint32_t)window : splits;
    out.partials = b->partials;
    return out;
}
