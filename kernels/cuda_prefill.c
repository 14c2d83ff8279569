/*
 * cuda_prefill.c: many rows at once: their products and their attention by cuBLAS.
 *
 * A product with bfloat16 weights is that of three exact bfloat16 terms of the float32 input, or of the input
 * itself where it is rounded to bfloat16, summed in float32; float16 weights are widened panel by panel.
 * Attention is computed in tiles of queries, never the whole matrix of scores.
 */
#include "cuda_host.h"

enum { TERM_BYTES = 96 << 20, PANEL_BYTES = 64 << 20, TILE_BYTES = 192 << 20, PANEL_LOT = 128 };

/* Scratch of at least so many bytes, for the operations that the stream holds from here on. */
static int scratch(struct cuda_backend *b, uint64_t bytes, struct nl_error *error)
{
    if (bytes <= b->scratch_size)
        return 0;
    if (NL_CUDA(error, cudaStreamSynchronize(b->stream)) != 0)
        return -1;
    cudaFree(b->scratch);
    b->scratch_size = 0;
    b->scratch = nl_cuda_alloc(bytes, "prefill", error);
    b->scratch_size = b->scratch ? bytes : 0;
    return b->scratch ? 0 : -1;
}

static int need_blas(struct cuda_backend *b, struct nl_error *error)
{
    if (!b->blas)
        b->blas = nl_cuda_blas_open(b->stream, error);
    return b->blas ? 0 : -1;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Terms that a product's input has; 0: it stays float32, and weights of 16 bit are widened. */
static uint32_t count_terms(const struct cuda_backend *b, const struct nl_cuda_linear *linear)
{
    bool multiplies = linear->segment[0].weight.dtype == NL_BF16 && b->multiplies_bf16;
    return !multiplies ? 0 : linear->rounds ? 1 : 3;
}

/* One segment's rows [first, first + rows) of the output: scratch holds terms, then products, then the
   widened panel. */
struct panel {
    const struct nl_cuda_segment *segment;
    uint32_t first, rows;
    void *terms;
    float *products, *widened;
};

static int run_panel(struct cuda_backend *b, const struct nl_cuda_linear *linear, const struct panel *panel,
                     uint32_t n, struct nl_error *error)
{
    const struct nl_cuda_matrix *weight = &panel->segment->weight;
    size_t size = nl_dtype_bits(weight->dtype) / 8;
    const char *rows = (const char *)weight->data + (size_t)panel->first * weight->pitch * size;
    uint32_t terms = count_terms(b, linear);
    struct nl_cuda_finish finish = {.products = panel->products,
                                    .n_terms = terms ? terms : 1,
                                    .panel_rows = panel->rows,
                                    .column = panel->segment->column + panel->first,
                                    .bias = panel->segment->bias ? panel->segment->bias + panel->first : NULL,
                                    .out = linear->out,
                                    .out_width = linear->out_width,
                                    .logits = linear->epilogue == NL_CUDA_LOGITS,
                                    .rounds = linear->rounds,
                                    .divisor = linear->scale,
                                    .cap = linear->cap};
    if (weight->dtype != NL_F32 && !terms) {
        if (NL_CUDA(error, nl_cuda_run_widen(panel->widened, rows, weight->dtype,
                                             (size_t)panel->rows * weight->pitch, b->stream)) != 0)
            return -1;
        rows = (const char *)panel->widened;
    }
    int failed = terms
                     ? nl_cuda_blas_linear(b->blas, panel->products, panel->terms, rows, NL_BF16, terms * n,
                                           panel->rows, weight->pitch, weight->pitch, weight->cols, error)
                     : nl_cuda_blas_linear(b->blas, panel->products, linear->in, rows, NL_F32, n, panel->rows,
                                           linear->in_width, weight->pitch, weight->cols, error);
    if (failed)
        return -1;
    return NL_CUDA(error, nl_cuda_run_finish(&finish, n, b->stream));
}

/* Products of segments of one type with as many rows as the scratch has room for. */
static int run_lot(struct cuda_backend *b, const struct nl_cuda_linear *linear, uint32_t n,
                   struct nl_error *error)
{
    const struct nl_cuda_matrix *weight = &linear->segment[0].weight;
    uint32_t terms = count_terms(b, linear);
    bool widens = weight->dtype != NL_F32 && !terms;
    uint64_t row_bytes =
        (uint64_t)n * (terms ? terms : 1) * sizeof(float) + (widens ? weight->pitch * 4ull : 0);
    uint64_t term_bytes = rounded((uint64_t)terms * n * weight->pitch * sizeof(uint16_t));
    uint32_t most = 0, rows = (uint32_t)(PANEL_BYTES / row_bytes > 0 ? PANEL_BYTES / row_bytes : 1);
    for (uint32_t s = 0; s < linear->n_segments; s++)
        most = linear->segment[s].weight.rows > most ? linear->segment[s].weight.rows : most;
    rows = rows > PANEL_LOT ? rows / PANEL_LOT * PANEL_LOT : rows; /* cuBLAS's own tiles are whole */
    rows = rows < most ? rows : most;
    uint64_t product_bytes = rounded((uint64_t)rows * n * (terms ? terms : 1) * sizeof(float));
    uint64_t widened_bytes = widens ? (uint64_t)rows * weight->pitch * sizeof(float) : 0;
    if (scratch(b, term_bytes + product_bytes + widened_bytes, error) != 0)
        return -1;
    struct panel panel = {.terms = b->scratch,
                          .products = b->scratch + term_bytes / sizeof(float),
                          .widened = b->scratch + (term_bytes + product_bytes) / sizeof(float)};
    if (terms && NL_CUDA(error, nl_cuda_run_split_terms(panel.terms, terms, weight->pitch, linear->in,
                                                        linear->in_width, n, b->stream)) != 0)
        return -1;
    for (uint32_t s = 0; s < linear->n_segments; s++) {
        panel.segment = &linear->segment[s];
        uint32_t all = panel.segment->weight.rows;
        for (panel.first = 0; panel.first < all; panel.first += panel.rows) {
            panel.rows = all - panel.first < rows ? all - panel.first : rows;
            if (run_panel(b, linear, &panel, n, error) != 0)
                return -1;
        }
    }
    return 0;
}

int nl_cuda_prefill_linear(struct cuda_backend *b, const struct nl_cuda_linear *linear, uint32_t n,
                           struct nl_error *error)
{
    bool uniform = nl_cuda_is_uniform(linear);
    uint64_t most = TERM_BYTES / (3ull * sizeof(uint16_t) * linear->segment[0].weight.cols);
    most = most < 1 ? 1 : most < 16ull * b->tile ? most : 16ull * b->tile;
    if (need_blas(b, error) != 0)
        return -1;
    for (uint32_t first = 0, rows; first < n; first += rows) {
        rows = n - first < most ? n - first : (uint32_t)most;
        for (uint32_t s = 0; s < (uniform ? 1 : linear->n_segments); s++) {
            struct nl_cuda_linear lot = uniform ? *linear : nl_cuda_alone(linear, s);
            lot.in += (size_t)first * lot.in_width;
            lot.out += (size_t)first * lot.out_width;
            if (run_lot(b, &lot, rows, error) != 0)
                return -1;
        }
    }
    return 0;
}

/* A part of the scratch; without scratch it is only counted. */
static void *part(void *scratch, uint64_t *at, uint64_t bytes)
{
    void *here = scratch ? (char *)scratch + *at : NULL;
    *at += rounded(bytes);
    return here;
}

/* Places a tile's buffers for n_kv KV heads; the bytes that they take. */
static uint64_t lay_out(struct nl_cuda_tile *tile, uint32_t n_kv, void *scratch)
{
    const struct nl_cuda_attention *a = &tile->attention;
    uint64_t at = 0, size = tile->halves ? sizeof(uint16_t) : sizeof(float);
    uint64_t rows = (uint64_t)n_kv * tile->n_queries * (a->n_heads / a->n_kv_heads);
    uint64_t keys = (uint64_t)n_kv * tile->n_keys * a->head_dim;
    tile->pitch =
        tile->halves ? (tile->n_keys + 7) / 8 * 8 : tile->n_keys; /* 16 bytes, for cuBLAS's best kernels */
    tile->queries = part(scratch, &at, rows * a->head_dim * size);
    tile->mixed = part(scratch, &at, rows * a->head_dim * sizeof(float));
    tile->keys = part(scratch, &at, keys * size);
    tile->values = part(scratch, &at, keys * size);
    tile->scores = part(scratch, &at, rows * tile->pitch * sizeof(float));
    tile->weights = tile->halves ? part(scratch, &at, rows * tile->pitch * size) : tile->scores;
    tile->totals = part(scratch, &at, tile->halves ? rows * sizeof(float) : 0);
    return at;
}

/* One tile for all KV heads, as many of them at a time as the scratch has room for. */
static int run_tile(struct cuda_backend *b, struct nl_cuda_tile *tile, struct nl_error *error)
{
    const struct nl_cuda_attention *a = &tile->attention;
    const struct nl_cuda_step *step = (const struct nl_cuda_step *)b->step.device;
    uint32_t n_kv = a->n_kv_heads, rows = tile->n_queries * (a->n_heads / a->n_kv_heads);
    while (n_kv > 1 && lay_out(tile, n_kv, NULL) > TILE_BYTES)
        n_kv = (n_kv + 1) / 2;
    if (scratch(b, lay_out(tile, n_kv, NULL), error) != 0)
        return -1;
    for (tile->head = 0; tile->head < a->n_kv_heads; tile->head += tile->n_kv) {
        tile->n_kv = a->n_kv_heads - tile->head < n_kv ? a->n_kv_heads - tile->head : n_kv;
        lay_out(tile, tile->n_kv, b->scratch);
        struct nl_cuda_products scores = {.c = tile->scores,
                                          .a = tile->queries,
                                          .b = tile->keys,
                                          .halves = tile->halves,
                                          .transposed = true,
                                          .m = rows,
                                          .n = tile->n_keys,
                                          .k = a->head_dim,
                                          .count = tile->n_kv,
                                          .a_pitch = a->head_dim,
                                          .c_pitch = tile->pitch};
        struct nl_cuda_products mix = {.c = tile->mixed,
                                       .a = tile->weights,
                                       .b = tile->values,
                                       .halves = tile->halves,
                                       .m = rows,
                                       .n = a->head_dim,
                                       .k = tile->n_keys,
                                       .count = tile->n_kv,
                                       .a_pitch = tile->pitch,
                                       .c_pitch = a->head_dim};
        if (NL_CUDA(error, nl_cuda_run_gather(tile, step, b->stream)) != 0 ||
            nl_cuda_blas_batch(b->blas, &scores, error) != 0 ||
            NL_CUDA(error, nl_cuda_run_softmax(tile, b->stream)) != 0 ||
            nl_cuda_blas_batch(b->blas, &mix, error) != 0 ||
            NL_CUDA(error, nl_cuda_run_scatter(tile, b->stream)) != 0)
            return -1;
    }
    return 0;
}

/* Rows [first, first + n) of one sequence, in tiles; keys end with the tile. */
static int run_sequence(struct cuda_backend *b, const struct nl_cuda_attention *attention,
                        const struct nl_step *step, uint32_t first, uint32_t n, uint32_t sequence,
                        struct nl_error *error)
{
    uint32_t most = b->tile;
    for (uint32_t done = 0; done < n;) {
        struct nl_cuda_tile tile = {.attention = *attention, .first = first + done, .sequence = sequence};
        tile.halves = attention->rounds && b->multiplies_bf16;
        tile.position = step->positions[first + done];
        uint32_t begin = tile.position < attention->window ? 0 : tile.position + 1 - attention->window;
        tile.key_begin = begin / NL_BLOCK * NL_BLOCK;
        tile.n_queries = n - done < most ? n - done : most;
        tile.n_keys = tile.position + tile.n_queries - tile.key_begin;
        if (tile.n_queries > 1 && lay_out(&tile, 1, NULL) > TILE_BYTES) {
            most = (tile.n_queries + 1) / 2;
            continue;
        }
        if (run_tile(b, &tile, error) != 0)
            return -1;
        done += tile.n_queries;
    }
    return 0;
}

int nl_cuda_prefill_attention(struct cuda_backend *b, const struct nl_cuda_attention *attention,
                              const struct nl_step *step, struct nl_error *error)
{
    const struct nl_cuda_step *device_step = (const struct nl_cuda_step *)b->step.device;
    uint32_t sequence = 0, end;
    if (need_blas(b, error) != 0)
        return -1;
    for (uint32_t first = 0; first < step->n_tokens; first = end, sequence++) {
        end = first + 1;
        while (end < step->n_tokens && step->slots[end] == step->slots[first])
            end++;
        int failed = end - first > NL_CUDA_VECTORS
                         ? run_sequence(b, attention, step, first, end - first, sequence, error)
                         : NL_CUDA(error, nl_cuda_run_attention(attention, device_step, first, end - first,
                                                                b->stream));
        if (failed)
            return -1;
    }
    return 0;
}
