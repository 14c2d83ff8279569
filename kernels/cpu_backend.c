/* cpu_backend.c: runs a plan on the CPU: one parallel region a step, a barrier between operations. */
#include "backend.h"
#include "cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

struct cpu_backend {
    struct nl_backend base;
    const struct nl_cpu_kernels *kernels;
    struct nl_pool *pool;
    unsigned threads;
    const struct nl_plan *plan;
    float *buffers[NL_MAX_BUFFERS];
    float *rotation[NL_MAX_ROPES];
    float **scratch; /* [threads] */
    float *cache;    /* reserved; pages are committed as they are touched */
    size_t cache_size, block_size;
    float *partials;
    size_t partials_capacity;
};

#if defined __x86_64__
/* clang's __builtin_cpu_supports does not know this one. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
    return true;
}

static const struct nl_cpu_kernels *find_kernels(const char *isa, struct nl_error *error)
{
    static const struct {
        const struct nl_cpu_kernels *kernels;
        bool (*available)(void);
    } sets[] = { /* the best first; the reference is never chosen unasked */
#if defined __x86_64__
                 {&nl_cpu_avx512, has_avx512},
                 {&nl_cpu_avx2, has_avx2},
#endif
                 {&nl_cpu_portable, always},
                 {&nl_cpu_reference, always},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (isa && strcmp(isa, sets[i].kernels->name) != 0)
            continue;
        if (sets[i].available())
            return sets[i].kernels;
        if (isa)
            nl_fail(error, NL_RESOURCE, "this processor lacks the instruction set: %s", isa);
        if (isa)
            return NULL;
    }
    nl_fail(error, NL_USAGE, "unknown instruction set (reference, portable, avx2, avx512): %s", isa);
    return NULL;
}

struct nl_backend *nl_cpu_open(const char *isa, unsigned threads, struct nl_error *error)
{
    const struct nl_cpu_kernels *kernels = find_kernels(isa, error);
    return kernels ? nl_cpu_open_kernels(kernels, threads, error) : NULL;
}

/* count * size floats, cache-line aligned; NULL when out of memory. */
static float *new_floats(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!nl_mul(count, size, &bytes) || !nl_mul(bytes, sizeof(float), &bytes) || bytes > SIZE_MAX - 64)
        return NULL;
    return aligned_alloc(64, bytes / 64 * 64 + 64);
}

/* Floats of a thread's scratch: a panel of the widest weight, or what attention needs. */
static uint64_t scratch_floats(const struct nl_plan *plan)
{
    uint64_t columns = 0, panel, attention = NL_CPU_QUERIES * (NL_BLOCK + 3 * (uint64_t)plan->head_dim + 4);
    for (uint32_t i = 0; i < plan->n_buffers; i++)
        columns = plan->width[i] > columns ? plan->width[i] : columns;
    panel = NL_CPU_PANEL_MIN_ROWS * (columns + 16);
    panel = panel > NL_CPU_PANEL_FLOATS ? panel : NL_CPU_PANEL_FLOATS;
    return panel > attention ? panel : attention;
}

static int reserve_cache(struct cpu_backend *backend, uint64_t n_blocks, struct nl_error *error)
{
    uint64_t size;
    backend->block_size = nl_plan_block_size(backend->plan);
    if (!nl_mul(backend->block_size, n_blocks, &size) || size > SIZE_MAX / 2)
        return nl_fail(error, NL_RESOURCE, "the cache is too large for the address space");
    void *cache = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cache == MAP_FAILED)
        return nl_fail(error, NL_RESOURCE, "cannot reserve %llu bytes for the cache",
                       (unsigned long long)size);
    backend->cache = cache;
    backend->cache_size = size ? size : 1;
    return 0;
}

static int load(struct nl_backend *base, const struct nl_plan *plan, uint64_t n_blocks,
                struct nl_error *error)
{
    struct cpu_backend *backend = (struct cpu_backend *)base;
    backend->plan = plan;
    bool short_of_memory = false;
    for (uint32_t i = 0; i < plan->n_buffers; i++)
        short_of_memory |= !(backend->buffers[i] = new_floats(plan->max_tokens, plan->width[i]));
    for (uint32_t i = 0; i < plan->n_ropes; i++)
        short_of_memory |= !(backend->rotation[i] = new_floats(plan->max_tokens, plan->ropes[i].dims));
    backend->scratch = calloc(backend->threads, sizeof *backend->scratch);
    for (unsigned i = 0; backend->scratch && i < backend->threads; i++)
        short_of_memory |= !(backend->scratch[i] = new_floats(scratch_floats(plan), 1));
    if (short_of_memory || !backend->scratch)
        return nl_fail_memory(error, "activations");
    return reserve_cache(backend, n_blocks, error);
}

static void release_block(struct nl_backend *base, uint32_t block)
{
    struct cpu_backend *backend = (struct cpu_backend *)base;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = block * backend->block_size;
    size_t first = (begin + page - 1) / page * page, last = (begin + backend->block_size) / page * page;
    if (first < last)
        madvise((char *)backend->cache + first, last - first, MADV_DONTNEED);
}

/* Cosines and sines of every row's position: the angle is one float32 product, as transformers computes it.
 */
static void rotation_table(const struct nl_plan *plan, const struct nl_step *step, uint32_t rope,
                           float *table, size_t begin, size_t end)
{
    size_t half = plan->ropes[rope].dims / 2;
    float scale = plan->ropes[rope].scale;
    for (size_t t = begin; t < end; t++) {
        const float *frequencies = step->frequencies[rope];
        if (step->frequency_set[rope])
            frequencies += step->frequency_set[rope][t] * half;
        for (size_t i = 0; i < half; i++) {
            float angle = (float)step->positions[t] * frequencies[i];
            table[t * 2 * half + i] = cosf(angle) * scale;
            table[t * 2 * half + half + i] = sinf(angle) * scale;
        }
    }
}

struct region {
    struct cpu_backend *backend;
    struct nl_cpu_job job; /* op not filled */
    const struct nl_observer *observer;
};

static void run_region(void *context, unsigned thread)
{
    struct region *region = context;
    struct cpu_backend *backend = region->backend;
    struct nl_cpu_job job = region->job;
    size_t begin, end;
    nl_share(job.step->n_tokens, thread, job.threads, &begin, &end);
    for (uint32_t i = 0; i < job.plan->n_ropes; i++)
        rotation_table(job.plan, job.step, i, backend->rotation[i], begin, end);
    nl_pool_barrier(backend->pool);
    for (size_t i = 0; i < job.plan->n_ops; i++) {
        job.op = &job.plan->ops[i];
        backend->kernels->run[job.op->kind](&job, thread);
        nl_pool_barrier(backend->pool);
        if (region->observer) {
            if (thread == 0)
                region->observer->seen(region->observer->context, job.op,
                                       region->observer->blind ? NULL : backend->buffers);
            if (!region->observer->blind)
                nl_pool_barrier(backend->pool);
        }
    }
}

/* With few rows the blocks of attention are shared out: makes room for their partials; sets *use. */
static int prepare_partials(struct cpu_backend *backend, const struct nl_step *step, bool *use,
                            struct nl_error *error)
{
    uint32_t n_heads = 0;
    for (size_t i = 0; i < backend->plan->n_ops && n_heads == 0; i++)
        if (backend->plan->ops[i].kind == NL_OP_ATTENTION)
            n_heads = backend->plan->ops[i].attention.n_heads;
    *use = backend->threads > 1 &&
           (uint64_t)step->n_tokens * backend->plan->n_kv_heads < 4 * (uint64_t)backend->threads;
    size_t need = (size_t)step->n_tokens * n_heads * nl_step_blocks(step) * (backend->plan->head_dim + 2);
    if (!*use || need <= backend->partials_capacity)
        return 0;
    free(backend->partials);
    backend->partials_capacity = 0;
    backend->partials = new_floats(need, 2);
    if (!backend->partials)
        return nl_fail_memory(error, "attention");
    backend->partials_capacity = 2 * need;
    return 0;
}

static int run(struct nl_backend *base, const struct nl_step *step, const struct nl_observer *observer,
               struct nl_error *error)
{
    struct cpu_backend *backend = (struct cpu_backend *)base;
    bool use_partials;
    if (prepare_partials(backend, step, &use_partials, error) != 0)
        return -1;
    struct region region = {.backend = backend, .observer = observer};
    region.job = (struct nl_cpu_job){.plan = backend->plan,
                                     .step = step,
                                     .buffers = backend->buffers,
                                     .cache = backend->cache,
                                     .scratch = backend->scratch,
                                     .partials = use_partials ? backend->partials : NULL,
                                     .pool = backend->pool,
                                     .threads = backend->threads};
    for (uint32_t i = 0; i < NL_MAX_ROPES; i++)
        region.job.rotation[i] = backend->rotation[i];
    nl_pool_run(backend->pool, run_region, &region);
    return 0;
}

static void close_backend(struct nl_backend *base)
{
    struct cpu_backend *backend = (struct cpu_backend *)base;
    nl_pool_close(backend->pool);
    for (unsigned i = 0; i < NL_MAX_BUFFERS; i++)
        free(backend->buffers[i]);
    for (unsigned i = 0; i < NL_MAX_ROPES; i++)
        free(backend->rotation[i]);
    for (unsigned i = 0; backend->scratch && i < backend->threads; i++)
        free(backend->scratch[i]);
    free(backend->scratch);
    free(backend->partials);
    if (backend->cache)
        munmap(backend->cache, backend->cache_size);
    free(backend);
}

static const struct nl_backend_calls cpu_calls = {
    .close = close_backend, .load = load, .release_block = release_block, .run = run};

struct nl_backend *nl_cpu_open_kernels(const struct nl_cpu_kernels *kernels, unsigned threads,
                                       struct nl_error *error)
{
    struct cpu_backend *backend = calloc(1, sizeof *backend);
    if (!backend) {
        nl_fail_memory(error, "backend");
        return NULL;
    }
    *backend = (struct cpu_backend){
        .base = {.calls = &cpu_calls, .rounds = kernels->rounds}, .kernels = kernels, .threads = threads};
    snprintf(backend->base.name, sizeof backend->base.name, "cpu %s", kernels->name);
    backend->pool = nl_pool_open(threads, error);
    if (!backend->pool) {
        free(backend);
        return NULL;
    }
    return &backend->base;
}
