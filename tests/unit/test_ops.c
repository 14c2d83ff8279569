/* Every operation of every set of kernels, and of CUDA's emulated, against the naive reference, over shapes
 * that are multiples of nothing. */
#include "test.h"

#include <math.h>

#include "cpu.h"

extern const struct nl_cpu_kernels wide_kernels;

enum { MAX_TOKENS = 16, MAX_POSITIONS = 320, BLOCKS = MAX_POSITIONS / NL_BLOCK };

static uint64_t random_state = 1;

/* In (-1, 1); splitmix64. */
static float random_float(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (float)(int32_t)((z ^ z >> 31) >> 40) * 0x1p-23f - 1;
}

static float *random_floats(size_t count)
{
    float *out = malloc((count + 1) * sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = random_float();
    return out;
}

/* Weights in memory of exactly their size, one byte off any alignment, so that sanitizers see a step too far.
 */
static struct nl_matrix random_matrix(enum nl_dtype dtype, uint32_t rows, uint32_t cols, void **memory)
{
    size_t count = (size_t)rows * cols, size = dtype == NL_F32 ? 4 : 2;
    uint8_t *bytes = *memory = malloc(count * size + 1);
    for (size_t i = 0; i < count; i++) {
        float value = random_float();
        uint16_t half = dtype == NL_F16 ? nl_f16_of_float(value) : nl_bf16_of_float(value);
        memcpy(bytes + 1 + i * size, size == 4 ? (void *)&value : (void *)&half, size);
    }
    return (struct nl_matrix){bytes + 1, dtype, rows, cols};
}

/* Whether plans round to bfloat16 (ops.h); then most results are to be equal, the others a rounding apart. */
static bool rounding;
static size_t n_compared, n_equal;

static int set_rounding(void **state)
{
    (void)state;
    rounding = true;
    n_compared = n_equal = 0;
    return 0;
}

static int end_rounding(void **state)
{
    (void)state;
    rounding = false;
    print_message("%zu of %zu values are equal\n", n_equal, n_compared);
    return n_equal < n_compared / 100 * 98;
}

/* What a result may be off where it should be within `bound`. */
static double with_rounding(double bound, double got, double want)
{
    if (!rounding)
        return bound;
    n_compared++;
    n_equal += got == want;
    assert_true(got != got || (double)nl_rounded((float)got, true) == got);
    return bound + fabs(want) * 0x1p-7;
}

/* One operation in one step, run by two backends on equal buffers. */
struct bench {
    struct nl_plan plan;
    struct nl_op op;
    struct nl_step step;
    uint32_t ids[MAX_TOKENS], positions[MAX_TOKENS], slots[MAX_TOKENS], outputs[MAX_TOKENS], best[MAX_TOKENS];
    uint32_t table[2][BLOCKS];
    const uint32_t *tables[2];
    float inv_freq[64];
};

static void set_up(struct bench *b, uint32_t n_tokens)
{
    *b = (struct bench){0};
    b->plan = (struct nl_plan){.ops = &b->op, .n_ops = 1, .n_buffers = 3, .width = {1, 1, 1}, .n_layers = 2};
    b->plan.max_tokens = b->plan.max_outputs = MAX_TOKENS;
    b->plan.bfloat16 = rounding;
    b->plan.n_kv_heads = b->plan.head_dim = 1;
    b->step = (struct nl_step){
        .n_tokens = n_tokens, .n_outputs = n_tokens, .ids = b->ids, .positions = b->positions};
    b->step.slots = b->slots;
    b->step.tables = b->tables;
    b->step.outputs = b->outputs;
    b->step.best = b->best;
    for (uint32_t i = 0; i < MAX_TOKENS; i++)
        b->outputs[i] = i;
    for (uint32_t i = 0; i < BLOCKS; i++) { /* scattered over the cache */
        b->table[0][i] = 2 * i + 1;
        b->table[1][i] = 2 * (BLOCKS - 1 - i);
    }
    b->tables[0] = b->table[0];
    b->tables[1] = b->table[1];
}

/* A copy of the buffers as the observer sees them. */
struct snapshot {
    const struct bench *bench;
    float *buffers[3];
};

static void free_snapshot(struct snapshot *s)
{
    for (int i = 0; i < 3; i++)
        free(s->buffers[i]);
}

static void take_snapshot(void *context, const struct nl_op *op, float *const *buffers)
{
    struct snapshot *s = context;
    (void)op;
    free_snapshot(s);
    for (int i = 0; i < 3; i++) {
        size_t size = s->bench->step.n_tokens * (size_t)s->bench->plan.width[i] * sizeof(float);
        s->buffers[i] = malloc(size);
        memcpy(s->buffers[i], buffers[i], size);
    }
}

/* The naive one first; "wide" is the source of avx512 as pairs of registers, "cuda" what cuda_device() says.
 */
static const char *const subjects[] = {"reference", "portable", "avx2", "avx512", "wide", "cuda"};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static struct nl_backend *open_subject(const char *name, unsigned threads)
{
    struct nl_error error;
    bool wide = strcmp(name, "wide") == 0;
#if defined __SANITIZE_THREAD__ /* the emulation's fibers are too slow under it for so many runs */
    if (strcmp(name, "cuda") == 0)
        return NULL;
#endif
    if (rounding && strcmp(name, "cuda") != 0 && strcmp(name, "reference") != 0)
        return NULL;
    struct nl_backend *backend = strcmp(name, "cuda") == 0
                                     ? nl_backend_open(cuda_device(), NULL, 1, &error)
                                     : nl_cpu_open(wide ? "avx2" : name, threads, &error);
    if (!wide || !backend)
        return backend;
    nl_backend_close(backend);
    return wide_kernels.run[NL_OP_NORM] ? nl_cpu_open_kernels(&wide_kernels, threads, &error) : NULL;
}

static bool runs_here(const char *name)
{
    struct nl_backend *backend = open_subject(name, 1);
    nl_backend_close(backend);
    return backend != NULL;
}

/* An operation that fills a buffer: row ids[t] of a table. */
static struct nl_op fill(uint32_t buffer, const float *table, uint32_t rows, uint32_t cols)
{
    struct nl_op op = {.kind = NL_OP_EMBED, .in = NL_NO_BUFFER, .out = buffer};
    op.embed.table = (struct nl_matrix){table, NL_F32, rows, cols};
    op.embed.scale = 1;
    return op;
}

/* Runs operations [ops, ops + n) with buffers that start as `initial`; the snapshot is of the end. */
static void run(const char *subject, unsigned threads, struct bench *b, const float *const *initial,
                const struct nl_op *ops, size_t n, struct snapshot *out)
{
    struct nl_error error = {0};
    struct nl_op list[8];
    size_t count = 0;
    uint32_t ids[MAX_TOKENS], own[MAX_TOKENS];
    for (uint32_t i = 0; i < MAX_TOKENS; i++)
        own[i] = i;
    for (uint32_t i = 0; initial && i < 3; i++)
        if (initial[i])
            list[count++] = fill(i, initial[i], MAX_TOKENS, b->plan.width[i]);
    memcpy(list + count, ops, n * sizeof *ops);
    b->plan.ops = list;
    b->plan.n_ops = count + n;
    if (count) {
        memcpy(ids, own, sizeof ids);
        b->step.ids = ids;
    }
    struct nl_backend *backend = open_subject(subject, threads);
    assert_non_null(backend);
    if (nl_backend_load(backend, &b->plan, (uint64_t)2 * BLOCKS, &error) != 0)
        fail_msg("%s: %s", subject, error.message);
    *out = (struct snapshot){.bench = b};
    struct nl_observer observer = {.seen = take_snapshot, .context = out};
    if (nl_backend_run(backend, &b->step, &observer, &error) != 0)
        fail_msg("%s: %s", subject, error.message);
    b->step.ids = b->ids;
    nl_backend_close(backend);
}

/* For every subject but the first that runs here, with 1 to 3 threads. */
#define FOR_SUBJECTS(subject, threads)                                                                       \
    for (size_t subject##_i = 1; subject##_i < N_SUBJECTS; subject##_i++)                                    \
        for (const char *subject = runs_here(subjects[subject##_i]) ? subjects[subject##_i] : NULL; subject; \
             subject = NULL)                                                                                 \
            for (unsigned threads = 1; threads <= (strcmp(subject, "cuda") == 0 ? 1 : 3); threads++)

/* 1e-6 of the sum of |w x|, and of 1 for a bias. */
static double product_bound(const struct nl_matrix *w, size_t row, const float *x)
{
    double sum = 1;
    for (uint32_t k = 0; k < w->cols; k++)
        sum += fabs((double)nl_weight(w, row * w->cols + k) * x[k]);
    return 1e-6 * sum;
}

static void check_linear(enum nl_dtype dtype, enum nl_dtype other, uint32_t rows, uint32_t cols,
                         uint32_t tokens)
{
    struct bench b;
    void *memory[2];
    set_up(&b, tokens);
    uint32_t second = rows / 2 + 1;
    b.plan.width[0] = cols;
    b.plan.width[1] = rows + second;
    struct nl_op op = {.kind = NL_OP_LINEAR, .in = 0, .out = 1, .linear = {.n_segments = 2}};
    op.linear.segment[0] = (struct nl_segment){.weight = random_matrix(dtype, rows, cols, &memory[0])};
    op.linear.segment[1] =
        (struct nl_segment){.weight = random_matrix(other, second, cols, &memory[1]), .column = rows};
    float *x = random_floats(MAX_TOKENS * (size_t)cols), *bias = random_floats(second);
    op.linear.segment[1].bias = bias;
    const float *initial[3] = {x};
    struct snapshot want, got;
    run("reference", 1, &b, initial, &op, 1, &want);
    FOR_SUBJECTS(subject, threads)
    {
        run(subject, threads, &b, initial, &op, 1, &got);
        for (uint32_t t = 0; t < tokens; t++)
            for (uint32_t r = 0; r < rows + second; r++) {
                const struct nl_segment *s = &op.linear.segment[r >= rows];
                double bound = product_bound(&s->weight, r - s->column, x + t * cols);
                size_t at = (size_t)t * b.plan.width[1] + r;
                bound = with_rounding(bound, (double)got.buffers[1][at], (double)want.buffers[1][at]);
                if (!(fabs((double)got.buffers[1][at] - want.buffers[1][at]) <= bound))
                    fail_msg("%s, %u threads: %s [%u][%u] x %u: row %u, token %u: %g for %g", subject,
                             threads, nl_dtype_name(dtype), rows, cols, tokens, r, t,
                             (double)got.buffers[1][at], (double)want.buffers[1][at]);
            }
        free_snapshot(&got);
    }
    free_snapshot(&want);
    free(memory[0]);
    free(memory[1]);
    free(x);
    free(bias);
}

static void linear_shapes(void **state)
{
    static const uint32_t shapes[] = {1, 3, 31, 33, 63, 65, 127, 1000};
    static const enum nl_dtype dtypes[] = {NL_F32, NL_F16, NL_BF16};
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < 8; i++)
            for (uint32_t tokens = 1; tokens <= 9; tokens += i % 2 + 1)
                check_linear(dtypes[d], dtypes[d], shapes[i], shapes[(i * 3 + (int)tokens) % 8], tokens);
    check_linear(NL_BF16, NL_BF16, 9, 20000, 3); /* rows wider than a panel */
    for (uint32_t tokens = 1; tokens <= 9; tokens += 4) {
        check_linear(NL_BF16, NL_F32, 33, 65, tokens); /* segments of several types */
        check_linear(NL_F32, NL_F16, 33, 127, tokens);
    }
}

/* f16 has values that only a right conversion gets: subnormals, infinities, both zeros. */
static void f16_values(void **state)
{
    (void)state;
    enum { COLS = 2048 };
    struct bench b;
    set_up(&b, 2);
    b.plan.width[0] = COLS;
    b.plan.width[1] = 32;
    uint16_t *halves = malloc(32 * COLS * sizeof *halves);
    for (uint32_t i = 0; i < 32 * COLS; i++)
        halves[i] = (uint16_t)i;
    float *x = calloc(MAX_TOKENS * COLS, sizeof *x);
    struct nl_op op = {.kind = NL_OP_LINEAR, .in = 0, .out = 1, .linear = {.n_segments = 1}};
    op.linear.segment[0].weight = (struct nl_matrix){halves, NL_F16, 32, COLS};
    const float *initial[3] = {x};
    for (uint32_t column = 0; column < COLS; column += 13) {
        x[column] = x[COLS + column] = 1;
        struct snapshot want, got;
        run("reference", 1, &b, initial, &op, 1, &want);
        for (size_t i = 1; i < N_SUBJECTS; i++) {
            if (!runs_here(subjects[i]))
                continue;
            run(subjects[i], 1, &b, initial, &op, 1, &got);
            for (uint32_t r = 0; r < 64; r++) { /* rows with infinities: 0 times those is NaN for both */
                float a = got.buffers[1][r], c = want.buffers[1][r];
                assert_true(a == c || (a != a && c != c));
            }
            free_snapshot(&got);
        }
        free_snapshot(&want);
        x[column] = x[COLS + column] = 0;
    }
    free(x);
    free(halves);
}

static void expect_near(const char *subject, const char *what, const float *got, const float *want, size_t n,
                        double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        double bound = with_rounding(tolerance * (1 + fabs(want[i])), got[i], want[i]);
        if (!(fabs((double)got[i] - want[i]) <= bound))
            fail_msg("%s: %s: element %zu is %.9g, not %.9g", subject, what, i, (double)got[i],
                     (double)want[i]);
    }
}

static void check_norm(uint32_t width, uint32_t tokens, bool add, bool at_outputs, bool centred, bool once)
{
    struct bench b;
    set_up(&b, tokens);
    b.plan.width[0] = b.plan.width[1] = b.plan.width[2] = width;
    b.step.n_outputs = at_outputs ? tokens - tokens / 2 : 1;
    for (uint32_t i = 0; i < b.step.n_outputs; i++)
        b.outputs[i] = at_outputs ? tokens / 2 + i : i;
    float *x = random_floats(MAX_TOKENS * (size_t)width), *y = random_floats(MAX_TOKENS * (size_t)width);
    float *weight = random_floats(width);
    struct nl_op op = {.kind = NL_OP_NORM, .in = 0, .out = 1};
    op.norm.weight = weight;
    op.norm.epsilon = 0.01f;
    op.norm.centred = centred;
    op.norm.round_once = once;
    op.norm.bias = centred ? y : NULL; /* any numbers do */
    op.norm.add = add ? 2 : NL_NO_BUFFER;
    op.norm.add_scale = 0.5f;
    op.norm.at_outputs = at_outputs;
    const float *initial[3] = {x, NULL, y};
    struct snapshot want, got;
    run("reference", 1, &b, initial, &op, 1, &want);
    FOR_SUBJECTS(subject, threads)
    {
        run(subject, threads, &b, initial, &op, 1, &got);
        uint32_t rows = at_outputs ? b.step.n_outputs : tokens;
        expect_near(subject, "norm", got.buffers[1], want.buffers[1], (size_t)rows * width, 3e-6);
        expect_near(subject, "stream", got.buffers[0], want.buffers[0], (size_t)tokens * width, 0);
        free_snapshot(&got);
    }
    free_snapshot(&want);
    free(x);
    free(y);
    free(weight);
}

static void norm_shapes(void **state)
{
    static const uint32_t widths[] = {1, 3, 31, 33, 63, 65, 127, 1000};
    (void)state;
    for (int i = 0; i < 8; i++)
        for (uint32_t tokens = 1; tokens <= 9; tokens += 4)
            for (int flags = 0; flags < (rounding ? 16 : 8); flags++)
                check_norm(widths[i], tokens, flags & 1, flags & 2, flags & 4, flags & 8);
}

static void gate_shapes(void **state)
{
    static const uint32_t widths[] = {1, 3, 31, 33, 127, 1000};
    (void)state;
    for (int i = 0; i < 48; i++) {
        struct bench b;
        bool gated = i % 2 == 0;
        set_up(&b, 5);
        b.plan.width[0] = (gated ? 2 : 1) * widths[i / 8];
        b.plan.width[1] = widths[i / 8];
        float *x = random_floats(MAX_TOKENS * (size_t)b.plan.width[0]);
        for (size_t j = 0; j < 5 * (size_t)b.plan.width[0]; j++)
            x[j] *= j % 2 ? 100 : 1; /* e^x over and underflows */
        struct nl_op op = {.kind = NL_OP_GATE, .in = 0, .out = 1};
        op.gate.activation = (enum nl_activation)(i / 2 % 4);
        op.gate.gated = gated;
        const float *initial[3] = {x};
        struct snapshot want, got;
        run("reference", 1, &b, initial, &op, 1, &want);
        FOR_SUBJECTS(subject, threads)
        {
            run(subject, threads, &b, initial, &op, 1, &got);
            expect_near(subject, "gate", got.buffers[1], want.buffers[1], 5 * (size_t)widths[i / 8], 1e-6);
            free_snapshot(&got);
        }
        free_snapshot(&want);
        free(x);
    }
}

/* `past` rows in steps of MAX_TOKENS, then `tokens` rows, which are observed. */
static void run_past(const char *subject, unsigned threads, struct bench *b, uint32_t past, uint32_t tokens,
                     uint32_t *ids, struct snapshot *got)
{
    struct nl_error error = {0};
    struct nl_observer observer = {.seen = take_snapshot, .context = got};
    struct nl_backend *backend = open_subject(subject, threads);
    if (nl_backend_load(backend, &b->plan, (uint64_t)2 * BLOCKS, &error) != 0)
        fail_msg("%s: %s", subject, error.message);
    for (uint32_t at = 0; at < past + tokens; at += b->step.n_tokens) {
        bool last = at >= past;
        b->step.n_tokens = last ? tokens : past - at < MAX_TOKENS ? past - at : MAX_TOKENS;
        b->step.n_outputs = 0;
        for (uint32_t i = 0; i < b->step.n_tokens; i++) {
            b->positions[i] = ids[i] = at + i;
            b->slots[i] = 1;
        }
        if (nl_backend_run(backend, &b->step, last ? &observer : NULL, &error) != 0)
            fail_msg("%s: %s", subject, error.message);
    }
    nl_backend_close(backend);
}

/* Rotation, cache and attention together: earlier rows are written step by step by the same kernels. */
static void check_attention(uint32_t heads, uint32_t kv, uint32_t dim, uint32_t window, uint32_t past,
                            uint32_t tokens)
{
    struct bench b;
    set_up(&b, tokens);
    b.plan.width[0] = (heads + 2 * kv) * dim;
    b.plan.width[1] = heads * dim;
    b.plan.n_kv_heads = kv;
    b.plan.head_dim = dim;
    b.plan.n_ropes = 1;
    b.plan.ropes[0] = (struct nl_rope){.dims = dim / 2 * 2, .scale = 1};
    b.step.frequencies[0] = b.inv_freq;
    for (uint32_t i = 0; i < dim / 2; i++)
        b.inv_freq[i] = powf(100, -(float)i / (float)dim);
    struct nl_op ops[2] = {{.kind = NL_OP_ROPE, .in = 0, .out = 0, .layer = 1},
                           {.kind = NL_OP_ATTENTION, .in = 0, .out = 1, .layer = 1}};
    ops[0].attention.n_heads = ops[1].attention.n_heads = heads;
    ops[0].attention.n_kv_heads = ops[1].attention.n_kv_heads = kv;
    ops[0].attention.head_dim = ops[1].attention.head_dim = dim;
    ops[1].attention.window = window;
    ops[1].attention.scale = 1.3f;
    ops[1].attention.cap = dim % 3 == 0 ? 1.5f : 0;
    ops[0].attention.rope = heads == 8 ? NL_NO_ROPE : 0;
    ops[0].attention.round_once = heads == 3;
    ops[1].attention.round_scores = dim % 5 == 0;
    uint32_t ids[MAX_TOKENS];
    b.step.ids = ids;
    float *qkv = random_floats((past + MAX_TOKENS) * (size_t)b.plan.width[0]), *want = NULL;
    struct nl_op list[3] = {fill(0, qkv, past + MAX_TOKENS, b.plan.width[0]), ops[0], ops[1]};
    b.plan.ops = list;
    b.plan.n_ops = 3;
    size_t n = (size_t)tokens * b.plan.width[1];
    for (int s = 0; s < N_SUBJECTS; s++) {
        bool many = s > 0 && strcmp(subjects[s], "cuda") != 0;
        for (unsigned threads = 1; threads <= (many ? 3 : 1) && runs_here(subjects[s]); threads++) {
            struct snapshot got = {.bench = &b};
            run_past(subjects[s], threads, &b, past, tokens, ids, &got);
            if (s == 0) {
                want = malloc(n * sizeof *want);
                memcpy(want, got.buffers[1], n * sizeof *want);
            } else {
                expect_near(subjects[s], "attention", got.buffers[1], want, n, 2e-6);
            }
            free_snapshot(&got);
        }
    }
    free(want);
    free(qkv);
}

static void attention_shapes(void **state)
{
    static const uint32_t heads[][2] = {{1, 1}, {3, 1}, {6, 2}, {8, 8}, {26, 2}};
    static const uint32_t dims[] = {4, 12, 20, 33, 64, 96, 128}, pasts[] = {0, 1, 63, 64, 65, 200};
    static const uint32_t windows[] = {UINT32_MAX, 1, 16, 64, 100}, tokens[] = {1, 2, 9, 16};
    (void)state;
    for (uint32_t i = 0; i < 60; i++)
        check_attention(heads[i % 5][0], heads[i % 5][1], dims[i % 7], windows[(i / 5 + i) % 5],
                        pasts[(i / 3) % 6], tokens[(i / 2) % 4]);
}

static void embed_rows(void **state)
{
    static const enum nl_dtype dtypes[] = {NL_F32, NL_F16, NL_BF16};
    (void)state;
    for (int d = 0; d < 3; d++) {
        struct bench b;
        void *memory;
        set_up(&b, 7);
        b.plan.width[0] = 33;
        for (uint32_t i = 0; i < 7; i++)
            b.ids[i] = i * 16;
        struct nl_op op = {.kind = NL_OP_EMBED, .in = NL_NO_BUFFER, .out = 0};
        op.embed.table = random_matrix(dtypes[d], 97, 33, &memory);
        op.embed.scale = 1.5f;
        void *learned = NULL;
        if (d > 0)
            op.embed.positions = random_matrix(dtypes[d], 40, 33, &learned);
        for (uint32_t i = 0; i < 7; i++)
            b.positions[i] = 39 - i;
        struct snapshot want, got;
        run("reference", 1, &b, NULL, &op, 1, &want);
        FOR_SUBJECTS(subject, threads)
        {
            run(subject, threads, &b, NULL, &op, 1, &got);
            expect_near(subject, "embedding", got.buffers[0], want.buffers[0], 7 * 33, 0);
            free_snapshot(&got);
        }
        free_snapshot(&want);
        free(memory);
        free(learned);
    }
}

/* Norms of heads in place, and a residual without a norm. */
static void qk_norm_and_residual(void **state)
{
    enum { HEADS = 3, KV = 1 };
    static const uint32_t dims[] = {1, 12, 33, 64};
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct bench b;
        set_up(&b, 5);
        uint32_t dim = dims[i / 2];
        bool whole = i % 2;
        b.plan.width[0] = b.plan.width[1] = (HEADS + 2 * KV) * dim;
        float *x = random_floats(MAX_TOKENS * (size_t)b.plan.width[0]),
              *y = random_floats(MAX_TOKENS * (size_t)b.plan.width[0]);
        float *weight = random_floats(HEADS * (size_t)dim);
        struct nl_op ops[2] = {{.kind = NL_OP_QK_NORM, .in = 0, .out = 0},
                               {.kind = NL_OP_RESIDUAL, .in = 0, .out = 1, .residual = {.scale = 0.7f}}};
        ops[0].qk_norm.epsilon = 0.01f;
        ops[0].qk_norm.round_once = whole;
        for (int part = 0; part < 2; part++) {
            uint32_t heads = part == 0 ? HEADS : KV;
            ops[0].qk_norm.part[part].weight = weight;
            ops[0].qk_norm.part[part].column = part == 0 ? 0 : HEADS * dim;
            ops[0].qk_norm.part[part].width = whole ? heads * dim : dim;
            ops[0].qk_norm.part[part].count = whole ? 1 : heads;
        }
        const float *initial[3] = {x, y};
        struct snapshot want, got;
        run("reference", 1, &b, initial, ops, 2, &want);
        FOR_SUBJECTS(subject, threads)
        {
            run(subject, threads, &b, initial, ops, 2, &got);
            expect_near(subject, "q, k, v", got.buffers[0], want.buffers[0], 5 * (size_t)b.plan.width[0],
                        2e-6);
            expect_near(subject, "residual", got.buffers[1], want.buffers[1], 5 * (size_t)b.plan.width[1],
                        2e-6);
            free_snapshot(&got);
        }
        free_snapshot(&want);
        free(x);
        free(y);
        free(weight);
    }
}

/* e^x and tanh x everywhere, in ulps of the double results. */
static void exp_and_tanh(void **state)
{
    enum { N = 4096 };
    (void)state;
    struct bench b;
    set_up(&b, 1);
    b.plan.width[0] = b.plan.width[1] = N;
    float *x = random_floats(MAX_TOKENS * N);
    struct nl_op op = {.kind = NL_OP_GATE, .in = 0, .out = 1};
    const float *initial[3] = {x};
    struct snapshot got;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < N; i++)
            x[i] = random_float() * powf(10, (float)(round % 4) - 2) * (round % 8 < 4 ? 1 : 8);
        for (int activation = NL_SILU; activation <= NL_GELU_TANH; activation++) {
            op.gate.activation = (enum nl_activation)activation;
            for (size_t s = 1; s < N_SUBJECTS; s++) {
                if (!runs_here(subjects[s]))
                    continue;
                run(subjects[s], 1, &b, initial, &op, 1, &got);
                for (int i = 0; i < N; i++) {
                    double v = x[i], inner = 0.7978845608028654 * (v + 0.044715 * v * v * v);
                    double want = activation == NL_SILU ? v / (1 + exp(-v)) : 0.5 * v * (1 + tanh(inner));
                    double unit =
                        fabs(v) * 0x1p-23; /* the result is at most |x|, its factor has a few ulps */
                    if (!(fabs(got.buffers[1][i] - want) <= 4 * unit + 1e-37))
                        fail_msg("%s: activation %d of %.9g is %.9g, not %.9g", subjects[s], activation, v,
                                 (double)got.buffers[1][i], want);
                }
                free_snapshot(&got);
            }
        }
    }
    free(x);
}

/* Logits through the output weights, and their arg-max: the lowest id of equals; NaN is told. */
static void logits_and_best(void **state)
{
    enum { VOCAB = 1003, WIDTH = 65 };
    (void)state;
    struct bench b;
    void *memory;
    set_up(&b, 3);
    float *x = random_floats(MAX_TOKENS * WIDTH),
          *rows[2]; /* the cap is far above: it bends, it does not tie */
    b.plan.width[0] = WIDTH;
    b.plan.vocab_size = VOCAB;
    struct nl_op ops[2] = {{.kind = NL_OP_LOGITS, .in = 0, .out = NL_NO_BUFFER},
                           {.kind = NL_OP_ARGMAX, .in = NL_NO_BUFFER, .out = NL_NO_BUFFER}};
    ops[0].logits.divisor = 1.7f;
    ops[0].logits.cap = 3000;
    ops[0].logits.weight = random_matrix(NL_BF16, VOCAB, WIDTH, &memory);
    uint8_t *w = (uint8_t *)memory + 1;
    memcpy(w + 1000 * WIDTH * 2, w + 40 * WIDTH * 2, WIDTH * 2); /* two equal rows */
    for (int i = 0; i < WIDTH; i++) {
        x[i] =
            nl_weight(&ops[0].logits.weight, 40 * WIDTH + (size_t)i) * 50; /* which win in the first token */
        x[2 * WIDTH + i] = i == 64 ? NAN : 1;
    }
    const float *initial[3] = {x};
    struct snapshot snapshot;
    for (int i = 0; i < 2; i++)
        rows[i] = malloc(3 * VOCAB * sizeof(float));
    b.step.logits = rows[0];
    run("reference", 1, &b, initial, ops, 2, &snapshot);
    free_snapshot(&snapshot);
    assert_int_equal(b.best[0], 40);
    assert_int_equal(b.best[2], NL_BEST_NAN);
    uint32_t second = b.best[1];
    b.step.logits = rows[1];
    FOR_SUBJECTS(subject, threads)
    {
        memset(b.best, 0, sizeof b.best);
        run(subject, threads, &b, initial, ops, 2, &snapshot);
        for (size_t i = 0; i < 2 * VOCAB; i++) {
            double bound = product_bound(&ops[0].logits.weight, i % VOCAB, x + i / VOCAB * WIDTH);
            assert_true(fabs((double)rows[1][i] - rows[0][i]) <=
                        with_rounding(bound, rows[1][i], rows[0][i]));
        }
        assert_int_equal(b.best[0], 40);
        assert_int_equal(b.best[1], second);
        assert_int_equal(b.best[2], NL_BEST_NAN);
        free_snapshot(&snapshot);
    }
    free(memory);
    free(x);
    free(rows[0]);
    free(rows[1]);
}

/* Sizes that would be too much for a launch are refused when the plan comes. */
static void cuda_limits(void **state)
{
    struct nl_op op = {.kind = NL_OP_ATTENTION, .attention = {.n_heads = 1}};
    struct nl_plan fine = {.ops = &op, .n_ops = 1, .n_buffers = 1, .width = {8}, .n_layers = 1};
    struct nl_error error = {0};
    (void)state;
    fine.n_kv_heads = fine.head_dim = fine.vocab_size = fine.max_tokens = fine.max_outputs = 1;
    struct nl_plan plans[3] = {fine, fine, fine};
    plans[0].head_dim = 1025;
    plans[1].n_kv_heads = 16385;
    plans[2].width[0] = (1 << 23) + 1;
    for (int i = 0; i < 3; i++) {
        struct nl_backend *backend = nl_backend_open(cuda_device(), NULL, 1, &error);
        if (!backend)
            skip();
        assert_int_equal(nl_backend_load(backend, &plans[i], 1, &error), -1);
        assert_int_equal(error.code, NL_UNSUPPORTED);
        nl_backend_close(backend);
    }
}

#define ROUNDING(test)                                                                                       \
    {                                                                                                        \
#test ", bfloat16", test, set_rounding, end_rounding, NULL                                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_shapes),
        cmocka_unit_test(f16_values),
        cmocka_unit_test(norm_shapes),
        cmocka_unit_test(gate_shapes),
        cmocka_unit_test(attention_shapes),
        cmocka_unit_test(embed_rows),
        cmocka_unit_test(logits_and_best),
        cmocka_unit_test(qk_norm_and_residual),
        cmocka_unit_test(exp_and_tanh),
        cmocka_unit_test(cuda_limits),
        ROUNDING(linear_shapes),
        ROUNDING(norm_shapes),
        ROUNDING(gate_shapes),
        ROUNDING(attention_shapes),
        ROUNDING(embed_rows),
        ROUNDING(qk_norm_and_residual),
        ROUNDING(logits_and_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
