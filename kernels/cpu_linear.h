/*
 * cpu_linear.h: products of weight rows and activation rows, and the operations made of them. Included by
 * cpu_vector.h.
 *
 * Every output is one vector accumulator along k, then sum_lanes: the matrix-vector and the matrix-matrix
 * kernels therefore give the same bits. One row of activations: eight weight rows at once straight from the
 * file's bytes, the next eight prefetched in address order (short rows defeat the hardware's prefetcher).
 * More rows: weights widened to float32 once for each panel, then tiles of four weight rows by up to
 * NL_TOKENS activation rows.
 */
#if NL_LANES == 16
enum { NL_TOKENS = 6 }; /* 24 accumulators of 32 registers */
#else
enum { NL_TOKENS = 3 }; /* 12 of 16 */
#endif
enum { NL_ROWS = 4, NL_DECODE_ROWS = 8, NL_PANEL_ROWS = 64 };

/* A product to compute: out[t][r] = weight[r] . x[t] (+ bias[r]). */
struct product {
    const struct nl_matrix *weight;
    const float *bias; /* or NULL */
    const float *x;    /* [tokens][x_stride] */
    float *out;        /* [tokens][out_stride] */
    size_t x_stride, out_stride, tokens;
};

/* sums[r * tokens + t] = w[r] . x[t]; w_stride in bytes, x_stride in floats; `next`, where not NULL, is
 * fetched as it goes. */
ALWAYS void tile(enum nl_dtype dtype, int rows, int tokens, const uint8_t *w, size_t w_stride, const float *x,
                 size_t x_stride, size_t k, const uint8_t *next, float *sums)
{
    const size_t size = dtype == NL_F32 ? 4 : 2;
    vf acc[NL_DECODE_ROWS > NL_ROWS * NL_TOKENS ? NL_DECODE_ROWS : NL_ROWS * NL_TOKENS], xs[NL_TOKENS];
    UNROLL_FOR (int i = 0; i < rows * tokens; i++)
        acc[i] = (vf){0};
    size_t i = 0;
    for (; i + NL_LANES <= k; i += NL_LANES) {
        if (next) {
            UNROLL_FOR (size_t line = 0; line < (size_t)rows * NL_LANES * size; line += 64)
                __builtin_prefetch(next + i * (size_t)rows * size + line);
        }
        UNROLL_FOR (int t = 0; t < tokens; t++)
            xs[t] = load(x + (size_t)t * x_stride + i);
        UNROLL_FOR (int r = 0; r < rows; r++) {
            vf weights = load_weights(dtype, w + (size_t)r * w_stride + i * size);
            UNROLL_FOR (int t = 0; t < tokens; t++)
                acc[r * tokens + t] = fma_lanes(weights, xs[t], acc[r * tokens + t]);
        }
    }
    if (i < k) {
        UNROLL_FOR (int t = 0; t < tokens; t++)
            xs[t] = load_part(x + (size_t)t * x_stride + i, k - i);
        UNROLL_FOR (int r = 0; r < rows; r++) {
            vf weights = load_weights_part(dtype, w + (size_t)r * w_stride + i * size, k - i);
            UNROLL_FOR (int t = 0; t < tokens; t++)
                acc[r * tokens + t] = fma_lanes(weights, xs[t], acc[r * tokens + t]);
        }
    }
    const int by_four = rows * tokens / 4 * 4;
    UNROLL_FOR (int j = 0; j < by_four; j += 4) {
        v4 four = sum_lanes_of_four(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]);
        memcpy(sums + j, &four, sizeof four);
    }
    UNROLL_FOR (int j = by_four; j < rows * tokens; j++)
        sums[j] = sum_lanes(acc[j]);
}

ALWAYS void tile_float(int rows, int tokens, const float *w, size_t w_stride, const float *x, size_t x_stride,
                       size_t k, float *sums)
{
    tile(NL_F32, rows, tokens, (const uint8_t *)w, w_stride * 4, x, x_stride, k, NULL, sums);
}

/* A tile of float32 rows, rows <= NL_ROWS and tokens <= NL_TOKENS known only now. */
static void tile_any(size_t rows, size_t tokens, const float *w, size_t w_stride, const float *x,
                     size_t x_stride, size_t k, float *sums)
{
    if (rows < NL_ROWS) {
        for (size_t r = 0; r < rows; r++)
            for (size_t t = 0; t < tokens; t++)
                tile_float(1, 1, w + r * w_stride, w_stride, x + t * x_stride, x_stride, k,
                           sums + r * tokens + t);
        return;
    }
    switch (tokens) {
    case 1:
        tile_float(NL_ROWS, 1, w, w_stride, x, x_stride, k, sums);
        break;
    case 2:
        tile_float(NL_ROWS, 2, w, w_stride, x, x_stride, k, sums);
        break;
#if NL_LANES == 16
    case 3:
        tile_float(NL_ROWS, 3, w, w_stride, x, x_stride, k, sums);
        break;
    case 4:
        tile_float(NL_ROWS, 4, w, w_stride, x, x_stride, k, sums);
        break;
    case 5:
        tile_float(NL_ROWS, 5, w, w_stride, x, x_stride, k, sums);
        break;
#endif
    default:
        tile_float(NL_ROWS, NL_TOKENS, w, w_stride, x, x_stride, k, sums);
    }
}

ALWAYS void product_one(enum nl_dtype dtype, const struct product *p, size_t begin, size_t end)
{
    size_t k = p->weight->cols, stride = k * (dtype == NL_F32 ? 4 : 2), r = begin;
    const uint8_t *w = p->weight->data;
    float sums[NL_DECODE_ROWS];
    for (; r + NL_DECODE_ROWS <= end; r += NL_DECODE_ROWS) {
        tile(dtype, NL_DECODE_ROWS, 1, w + r * stride, stride, p->x, 0, k, w + (r + NL_DECODE_ROWS) * stride,
             sums);
        for (size_t i = 0; i < NL_DECODE_ROWS; i++)
            p->out[r + i] = p->bias ? sums[i] + p->bias[r + i] : sums[i];
    }
    for (; r < end; r++) {
        tile(dtype, 1, 1, w + r * stride, stride, p->x, 0, k, NULL, sums);
        p->out[r] = p->bias ? sums[0] + p->bias[r] : sums[0];
    }
}

/* `rows` rows of weights, widened; rows of the panel are `stride` floats apart, zeros behind the last column.
 */
ALWAYS void widen(enum nl_dtype dtype, const uint8_t *w, size_t rows, size_t k, float *panel, size_t stride)
{
    size_t size = dtype == NL_F32 ? 4 : 2;
    for (size_t r = 0; r < rows; r++, w += k * size, panel += stride) {
        size_t i = 0;
        for (; i + NL_LANES <= k; i += NL_LANES)
            store(panel + i, load_weights(dtype, w + i * size));
        if (i < k)
            store(panel + i, load_weights_part(dtype, w + i * size, k - i));
    }
}

ALWAYS void product_many(enum nl_dtype dtype, const struct product *p, size_t begin, size_t end, float *panel)
{
    size_t k = p->weight->cols, stride = (k + NL_LANES - 1) / NL_LANES * NL_LANES;
    size_t panel_rows = NL_CPU_PANEL_FLOATS / stride / NL_ROWS * NL_ROWS;
    panel_rows = panel_rows < NL_ROWS ? NL_ROWS : panel_rows > NL_PANEL_ROWS ? NL_PANEL_ROWS : panel_rows;
    for (size_t first = begin; first < end; first += panel_rows) {
        size_t rows = end - first < panel_rows ? end - first : panel_rows;
        widen(dtype, (const uint8_t *)p->weight->data + first * k * (dtype == NL_F32 ? 4 : 2), rows, k, panel,
              stride);
        for (size_t t = 0; t < p->tokens; t += NL_TOKENS) {
            size_t tokens = p->tokens - t < NL_TOKENS ? p->tokens - t : NL_TOKENS;
            for (size_t r = 0; r < rows; r += NL_ROWS) {
                size_t n = rows - r < NL_ROWS ? rows - r : NL_ROWS;
                float sums[NL_ROWS * NL_TOKENS];
                tile_any(n, tokens, panel + r * stride, stride, p->x + t * p->x_stride, p->x_stride, k, sums);
                for (size_t j = 0; j < tokens; j++)
                    for (size_t i = 0; i < n; i++) {
                        size_t row = first + r + i;
                        float sum = sums[i * tokens + j];
                        p->out[(t + j) * p->out_stride + row] = p->bias ? sum + p->bias[row] : sum;
                    }
            }
        }
    }
}

/* Rows [begin, end) of a product. */
static void product(const struct product *p, size_t begin, size_t end, float *panel)
{
    enum nl_dtype dtype = p->weight->dtype;
    if (p->tokens == 1 && dtype == NL_BF16)
        product_one(NL_BF16, p, begin, end);
    else if (p->tokens == 1 && dtype == NL_F16)
        product_one(NL_F16, p, begin, end);
    else if (p->tokens == 1)
        product_one(NL_F32, p, begin, end);
    else if (dtype == NL_BF16)
        product_many(NL_BF16, p, begin, end, panel);
    else if (dtype == NL_F16)
        product_many(NL_F16, p, begin, end, panel);
    else
        product_many(NL_F32, p, begin, end, panel);
}

static void linear(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    size_t total = 0, begin, end, first = 0;
    for (uint32_t s = 0; s < op->linear.n_segments; s++)
        total += op->linear.segment[s].weight.rows;
    nl_share((total + NL_DECODE_ROWS - 1) / NL_DECODE_ROWS, thread, job->threads, &begin, &end);
    begin *= NL_DECODE_ROWS;
    end = end * NL_DECODE_ROWS < total ? end * NL_DECODE_ROWS : total;
    for (uint32_t s = 0; s < op->linear.n_segments; s++) {
        const struct nl_segment *segment = &op->linear.segment[s];
        size_t rows = segment->weight.rows, from = begin > first ? begin - first : 0;
        size_t to = end <= first ? 0 : end - first < rows ? end - first : rows;
        struct product p = {.weight = &segment->weight, .bias = segment->bias, .tokens = job->step->n_tokens};
        p.x = job->buffers[op->in];
        p.x_stride = job->plan->width[op->in];
        p.out = job->buffers[op->out] + segment->column;
        p.out_stride = job->plan->width[op->out];
        if (from < to)
            product(&p, from, to, job->scratch[thread]);
        first += rows;
    }
}

/* x / divisor, capped; one order of roundings for every element. */
static void finish_logits(float *x, size_t n, float divisor, float cap)
{
    for (size_t i = 0; i < n; i += NL_LANES) {
        size_t part = n - i < NL_LANES ? n - i : NL_LANES;
        store_part(x + i, cap_lanes(load_part(x + i, part) / divisor, cap), part);
    }
}

static void logits(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_matrix *weight = &job->op->logits.weight;
    size_t begin, end;
    nl_share((weight->rows + NL_DECODE_ROWS - 1) / NL_DECODE_ROWS, thread, job->threads, &begin, &end);
    begin *= NL_DECODE_ROWS;
    end = end * NL_DECODE_ROWS < weight->rows ? end * NL_DECODE_ROWS : weight->rows;
    struct product p = {.weight = weight, .tokens = job->step->n_outputs};
    p.x = job->buffers[job->op->in];
    p.x_stride = job->plan->width[job->op->in];
    p.out = job->step->logits;
    p.out_stride = weight->rows;
    if (!p.tokens || begin >= end)
        return;
    product(&p, begin, end, job->scratch[thread]);
    float divisor = job->op->logits.divisor, cap = job->op->logits.cap;
    for (size_t o = 0; (divisor != 1 || cap != 0) && o < p.tokens; o++)
        finish_logits(p.out + o * p.out_stride + begin, end - begin, divisor, cap);
}
