/*
 * cpu.h: between the CPU backend (cpu_backend.c) and its sets of kernels.
 */
#ifndef NL_CPU_H
#define NL_CPU_H

#include "ops.h"
#include "pool.h"

/* One operation of one step, as every thread sees it. */
struct nl_cpu_job {
    const struct nl_plan *plan;
    const struct nl_step *step;
    const struct nl_op *op;
    float *const *buffers;               /* [n_buffers]: [max_tokens][width] */
    float *cache;                        /* [n_blocks][n_layers][2][n_kv_heads][NL_BLOCK][head_dim] */
    const float *rotation[NL_MAX_ROPES]; /* [n_tokens][2][dims / 2]: cosines, sines */
    float *const *scratch; /* [threads]: a panel, or the scores, queries and two partials of NL_CPU_QUERIES */
    float *partials; /* [n_tokens][n_heads][blocks][head_dim + 2], see cpu_attention.h; NULL: attention by
                        rows */
    struct nl_pool *pool;
    unsigned threads;
};

/* A set of kernels: one function for each kind of operation, which all threads call; it does its share. */
struct nl_cpu_kernels {
    const char *name;
    void (*run[NL_OP_KINDS])(const struct nl_cpu_job *job, unsigned thread);
    bool rounds; /* see nl_backend_rounds */
};

/* A backend with these kernels, whatever the processor: nl_cpu_open chooses, tests bring their own. */
struct nl_backend *nl_cpu_open_kernels(const struct nl_cpu_kernels *kernels, unsigned threads,
                                       struct nl_error *error);

extern const struct nl_cpu_kernels nl_cpu_reference, nl_cpu_portable, nl_cpu_avx2, nl_cpu_avx512;

enum {
    NL_CPU_PANEL_FLOATS =
        64 * 1024, /* of a panel of widened weight rows: half of a usual second-level cache */
    NL_CPU_PANEL_MIN_ROWS = 4,
    NL_CPU_QUERIES = 12, /* rows of scores that a thread works on at once */
};

/* K of a block; V follows it at nl_cpu_half floats. */
static inline size_t nl_cpu_half(const struct nl_plan *plan)
{
    return (size_t)plan->n_kv_heads * NL_BLOCK * plan->head_dim;
}
static inline float *nl_cpu_block(const struct nl_cpu_job *job, uint32_t block, int layer)
{
    return job->cache + ((size_t)block * job->plan->n_layers + (size_t)layer) * 2 * nl_cpu_half(job->plan);
}
static inline float *nl_cpu_row(const struct nl_cpu_job *job, uint32_t buffer, size_t row)
{
    return job->buffers[buffer] + row * job->plan->width[buffer];
}
/* The most blocks that any row's sequence has. */
static inline size_t nl_step_blocks(const struct nl_step *step)
{
    uint32_t position = 0;
    for (uint32_t t = 0; t < step->n_tokens; t++)
        position = step->positions[t] > position ? step->positions[t] : position;
    return position / NL_BLOCK + 1;
}
/* First position that a row at `position` sees. */
static inline uint32_t nl_window_begin(uint32_t position, uint32_t window)
{
    return position < window ? 0 : position + 1 - window;
}
static inline float nl_weight(const struct nl_matrix *matrix, size_t index)
{
    uint16_t half;
    float value;
    if (matrix->dtype == NL_F32) {
        memcpy(&value, (const char *)matrix->data + 4 * index, 4);
        return value;
    }
    memcpy(&half, (const char *)matrix->data + 2 * index, 2);
    return matrix->dtype == NL_BF16 ? nl_float_of_bf16(half) : nl_float_of_f16(half);
}

#endif
