/*
 * cpu_attention.h: attention over the cache's blocks. Included by cpu_vector.h.
 *
 * A query's softmax over one block of NL_BLOCK positions is a partial: the block's largest score m, the sum l
 * of e^(score - m), and o = sum e^(score - m) v. Partials are merged in the order of their blocks, always by
 * merge(), so that it does not matter who computed them. With many rows a thread takes some rows and one
 * key-value head and merges as it goes; with few, threads share the blocks, leave the partials in
 * job->partials, and merge behind a barrier.
 */
/* Some queries that read one key-value head of one sequence. */
struct queries {
    const struct nl_cpu_job *job;
    size_t count;
    const float *q[NL_CPU_QUERIES];
    uint32_t position[NL_CPU_QUERIES];
    uint32_t kv_head, slot;
    float *copy;   /* [count][head_dim]: the queries, one after the other */
    float *scores; /* [count][NL_BLOCK] */
};

/* A partial in memory. */
static float *partial_output(float *partial)
{
    return partial + 2; /* [0] is m, [1] is l */
}

/* o[0..n vectors) = sum over j in [lo, hi) of p[j] v[j]. */
ALWAYS void weigh_vectors(int n, const float *p, const float *v, size_t dim, size_t lo, size_t hi, float *o)
{
    vf acc[8];
    UNROLL_FOR (int i = 0; i < n; i++)
        acc[i] = (vf){0};
    for (size_t j = lo; j < hi; j++) {
        vf weight = broadcast(p[j]);
        UNROLL_FOR (int i = 0; i < n; i++)
            acc[i] = fma_lanes(weight, load(v + j * dim + (size_t)i * NL_LANES), acc[i]);
    }
    UNROLL_FOR (int i = 0; i < n; i++)
        store(o + (size_t)i * NL_LANES, acc[i]);
}

/* o[0..dim) = sum over j in [lo, hi) of p[j] v[j]. */
static void weigh_values(const float *p, const float *v, size_t dim, size_t lo, size_t hi, float *o)
{
    size_t d = 0;
    for (; d + 8 * NL_LANES <= dim; d += 8 * NL_LANES)
        weigh_vectors(8, p, v + d, dim, lo, hi, o + d);
    for (; d + 4 * NL_LANES <= dim; d += 4 * NL_LANES)
        weigh_vectors(4, p, v + d, dim, lo, hi, o + d);
    for (; d + NL_LANES <= dim; d += NL_LANES)
        weigh_vectors(1, p, v + d, dim, lo, hi, o + d);
    if (d < dim) {
        vf acc = {0};
        for (size_t j = lo; j < hi; j++)
            acc = fma_lanes(broadcast(p[j]), load_part(v + j * dim + d, dim - d), acc);
        store_part(o + d, acc, dim - d);
    }
}

/* Scores [NL_BLOCK] of one query, of which [lo, hi) count, become e^(score - m); fills the partial. */
static void finish_partial(const struct nl_op *op, float *scores, size_t lo, size_t hi, const float *v,
                           float *partial)
{
    const float infinity = __builtin_inff();
    vf best = broadcast(-infinity), total = {0};
    for (size_t j = lo / NL_LANES * NL_LANES; j < hi; j += NL_LANES) {
        vi at = lane_numbers() + (int32_t)j;
        vf score = cap_lanes(load(scores + j) * op->attention.scale, op->attention.cap);
        score = choose((at >= (int32_t)lo) & (at < (int32_t)hi), score, broadcast(-infinity));
        store(scores + j, score);
        best = choose(score > best, score, best);
    }
    partial[0] = -infinity;
    for (int i = 0; i < NL_LANES; i++)
        partial[0] = best[i] > partial[0] ? best[i] : partial[0];
    for (size_t j = lo / NL_LANES * NL_LANES; j < hi; j += NL_LANES) {
        vf e = exp_lanes(load(scores + j) - partial[0]);
        store(scores + j, e);
        total += e;
    }
    partial[1] = sum_lanes(total);
    weigh_values(scores, v, op->attention.head_dim, lo, hi, partial_output(partial));
}

/* The partials of all queries for one block; partials are `stride` floats apart. A query that sees nothing of
 * the block gets none. */
static void attend_block(const struct queries *qs, uint32_t block, float *partials, size_t stride)
{
    const struct nl_op *op = qs->job->op;
    size_t dim = op->attention.head_dim, keys_used = 0;
    size_t lo[NL_CPU_QUERIES], hi[NL_CPU_QUERIES];
    for (size_t i = 0; i < qs->count; i++) {
        uint32_t start = block * NL_BLOCK, begin = nl_window_begin(qs->position[i], op->attention.window);
        lo[i] = begin > start ? begin - start : 0;
        hi[i] = qs->position[i] < start ? 0 : qs->position[i] - start + 1;
        hi[i] = hi[i] > NL_BLOCK ? NL_BLOCK : hi[i];
        keys_used = hi[i] > keys_used ? hi[i] : keys_used;
    }
    const float *keys = nl_cpu_block(qs->job, qs->job->step->tables[qs->slot][block], op->layer) +
                        (size_t)qs->kv_head * NL_BLOCK * dim;
    const float *values = keys + nl_cpu_half(qs->job->plan);
    for (size_t i = 0; i < qs->count; i += NL_TOKENS) {
        size_t n = qs->count - i < NL_TOKENS ? qs->count - i : NL_TOKENS;
        for (size_t j = 0; j < keys_used; j += NL_ROWS) {
            float sums[NL_ROWS * NL_TOKENS];
            /* the values, which are wanted next, a cache line of 16 at a time */
            for (size_t line = 0; i == 0 && line < NL_ROWS * dim; line += 16)
                __builtin_prefetch(values + j * dim + line);
            tile_any(NL_ROWS, n, keys + j * dim, dim, qs->copy + i * dim, dim, dim, sums);
            for (size_t a = 0; a < n; a++)
                for (size_t b = 0; b < NL_ROWS; b++)
                    qs->scores[(i + a) * NL_BLOCK + j + b] = sums[b * n + a];
        }
    }
    for (size_t i = 0; i < qs->count; i++)
        if (lo[i] < hi[i])
            finish_partial(op, qs->scores + i * NL_BLOCK, lo[i], hi[i], values, partials + i * stride);
}

/* into = into and then next; an `into` whose l is 0 is empty. */
static void merge(float *into, const float *next, size_t dim)
{
    if (into[1] == 0) {
        memcpy(into, next, (dim + 2) * sizeof *into);
        return;
    }
    float best = into[0] > next[0] ? into[0] : next[0];
    float old_factor = exp_one(into[0] - best), new_factor = exp_one(next[0] - best);
    into[0] = best;
    for (size_t i = 1; i < dim + 2; i++)
        into[i] = into[i] * old_factor + next[i] * new_factor;
}

static void divide(const float *partial, float *out, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        out[i] = partial[2 + i] / partial[1];
}

/* Lays queries and scratch out; the scratch's panel is free during attention. */
static void begin_queries(struct queries *qs, const struct nl_cpu_job *job, unsigned thread)
{
    *qs = (struct queries){.job = job, .scores = job->scratch[thread]};
    qs->copy = qs->scores + NL_CPU_QUERIES * NL_BLOCK;
}

static void add_query(struct queries *qs, uint32_t row, uint32_t head)
{
    size_t dim = qs->job->op->attention.head_dim;
    const float *q = nl_cpu_row(qs->job, qs->job->op->in, row) + head * dim;
    memcpy(qs->copy + qs->count * dim, q, dim * sizeof *q);
    qs->position[qs->count++] = qs->job->step->positions[row];
}

/* Rows [first, last) of one sequence, heads [head, head + heads) of one key-value head: whole, block after
 * block. */
static void attend_rows(const struct nl_cpu_job *job, unsigned thread, uint32_t first, uint32_t last,
                        uint32_t head, uint32_t heads, uint32_t kv_head)
{
    size_t dim = job->op->attention.head_dim, stride = dim + 2;
    struct queries qs;
    begin_queries(&qs, job, thread);
    qs.kv_head = kv_head;
    qs.slot = job->step->slots[first];
    for (uint32_t row = first; row < last; row++)
        for (uint32_t h = 0; h < heads; h++)
            add_query(&qs, row, head + h);
    float *merged = qs.copy + NL_CPU_QUERIES * dim, *partials = merged + NL_CPU_QUERIES * stride;
    for (size_t i = 0; i < qs.count; i++)
        merged[i * stride + 1] = 0;
    uint32_t begin = nl_window_begin(qs.position[0], job->op->attention.window) / NL_BLOCK;
    for (uint32_t block = begin; block <= qs.position[qs.count - 1] / NL_BLOCK; block++) {
        for (size_t i = 0; i < qs.count; i++)
            partials[i * stride + 1] = 0;
        attend_block(&qs, block, partials, stride);
        for (size_t i = 0; i < qs.count; i++)
            if (partials[i * stride + 1] != 0)
                merge(merged + i * stride, partials + i * stride, dim);
    }
    for (size_t i = 0; i < qs.count; i++)
        divide(merged + i * stride,
               nl_cpu_row(job, job->op->out, first + (uint32_t)(i / heads)) + (head + i % heads) * dim, dim);
}

/* Many rows: each thread takes whole units of some rows and one key-value head, in turn, since later rows
 * cost more. */
static void attention_by_rows(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    uint32_t group = op->attention.n_heads / op->attention.n_kv_heads, n = job->step->n_tokens;
    uint32_t heads = group < NL_CPU_QUERIES ? group : NL_CPU_QUERIES, rows = NL_CPU_QUERIES / heads;
    size_t unit = 0;
    for (uint32_t first = 0, last; first < n; first = last) {
        for (last = first + 1;
             last < n && last - first < rows && job->step->slots[last] == job->step->slots[first];)
            last++;
        for (uint32_t kv = 0; kv < op->attention.n_kv_heads; kv++)
            for (uint32_t h = 0; h < group; h += heads)
                if (unit++ % job->threads == thread)
                    attend_rows(job, thread, first, last, kv * group + h,
                                group - h < heads ? group - h : heads, kv);
    }
}

/* Few rows: the threads share the blocks of each row and key-value head. */
static void attention_by_blocks(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    uint32_t kv_heads = op->attention.n_kv_heads, group = op->attention.n_heads / kv_heads;
    size_t dim = op->attention.head_dim, blocks = nl_step_blocks(job->step), unit = 0;
    for (uint32_t t = 0; t < job->step->n_tokens; t++) {
        uint32_t last = job->step->positions[t] / NL_BLOCK;
        uint32_t first = nl_window_begin(job->step->positions[t], op->attention.window) / NL_BLOCK;
        for (uint32_t kv = 0; kv < kv_heads; kv++)
            for (uint32_t block = first; block <= last; block++) {
                if (unit++ % job->threads != thread)
                    continue;
                for (uint32_t h = 0; h < group; h += NL_CPU_QUERIES) {
                    struct queries qs;
                    begin_queries(&qs, job, thread);
                    qs.kv_head = kv;
                    qs.slot = job->step->slots[t];
                    for (uint32_t i = h; i < group && i < h + NL_CPU_QUERIES; i++)
                        add_query(&qs, t, kv * group + i);
                    size_t at = ((size_t)t * op->attention.n_heads + kv * group + h) * blocks + block;
                    attend_block(&qs, block, job->partials + at * (dim + 2), blocks * (dim + 2));
                }
            }
    }
    nl_pool_barrier(job->pool);
    size_t begin, end;
    nl_share((size_t)job->step->n_tokens * op->attention.n_heads, thread, job->threads, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        uint32_t t = (uint32_t)(i / op->attention.n_heads), head = (uint32_t)(i % op->attention.n_heads);
        uint32_t last = job->step->positions[t] / NL_BLOCK;
        uint32_t first = nl_window_begin(job->step->positions[t], op->attention.window) / NL_BLOCK;
        float *merged = job->partials + (i * blocks + first) * (dim + 2);
        for (uint32_t block = first + 1; block <= last; block++)
            merge(merged, merged + (size_t)(block - first) * (dim + 2), dim);
        divide(merged, nl_cpu_row(job, op->out, t) + head * dim, dim);
    }
}

static void attention(const struct nl_cpu_job *job, unsigned thread)
{
    if (job->partials)
        attention_by_blocks(job, thread);
    else
        attention_by_rows(job, thread);
}
