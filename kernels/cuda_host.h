/*
 * cuda_host.h: between the parts of the CUDA backend that run on the host (cuda_*.c).
 *
 * A step of up to NL_CUDA_VECTORS rows runs the fused operations, as a captured graph; one of more rows runs
 * the plan's operations one by one, their products by cuBLAS; a step with an observer runs them one by one as
 * well. Few rows give the same bits in all ways; many rows differ from few by rounding.
 *
 * For tests the environment sets: NL_CUDA_GRAPH=0 (no graphs), NL_CUDA_FUSE=0 (no fused operations),
 * NL_CUDA_SPLIT (positions of a split), NL_CUDA_TILE (queries of a tile; products take the rows of 16 at a
 * time).
 */
#ifndef NL_CUDA_HOST_H
#define NL_CUDA_HOST_H

#include "backend.h"
#include "cuda.h"

/* Non-zero and *error unless the call succeeded: NL_RESOURCE when there is no memory or no device, else
 * NL_IO. */
#define NL_CUDA(error, call) nl_cuda_check((error), (call), #call)
int nl_cuda_check(struct nl_error *error, cudaError_t status, const char *what);
/* Device memory; the message says how much and `what` for. */
void *nl_cuda_alloc(uint64_t bytes, const char *what, struct nl_error *error);

/* What the plan's weights have become on the device. */
struct nl_cuda_weights {
    struct nl_cuda_entry *entries; /* [count] */
    size_t count;
    uint64_t size;
    char *arena;
};
/* Lists all weights of the plan once each; then size is known. */
int nl_cuda_weights_list(struct nl_cuda_weights *, const struct nl_plan *plan, struct nl_error *error);
int nl_cuda_weights_upload(struct nl_cuda_weights *, cudaStream_t stream, struct nl_error *error);
void nl_cuda_weights_free(struct nl_cuda_weights *);
struct nl_cuda_matrix nl_cuda_weights_matrix(const struct nl_cuda_weights *, const void *host);
/* NULL for NULL */
const float *nl_cuda_weights_vector(const struct nl_cuda_weights *, const void *host);

/* An operation of the plan, or several that are fused, as the device runs it. */
struct nl_cuda_op {
    enum nl_op_kind kind;
    const struct nl_op *op; /* of the plan, the first of those fused */
    union {
        struct nl_cuda_embed embed;
        struct nl_cuda_row_norm norm;
        struct {
            float *out;
            const float *in;
            float scale;
            uint32_t width;
        } residual;
        struct nl_cuda_linear linear; /* logits too */
        struct nl_cuda_rope rope;     /* QK_NORM too; ROPE with norm.weight: both */
        struct nl_cuda_attention attention;
        struct nl_cuda_gate gate;
    };
};

/* cuBLAS, opened at the first use. */
struct nl_cuda_blas;
struct nl_cuda_blas *nl_cuda_blas_open(cudaStream_t stream, struct nl_error *error);
void nl_cuda_blas_close(struct nl_cuda_blas *);
/* out [n][rows] = in [n][pitch] times weights [rows][pitch], transposed; sums and out in float32; all BF16 or
   all F32. */
int nl_cuda_blas_linear(struct nl_cuda_blas *, float *out, const void *in, const void *weights,
                        enum nl_dtype dtype, uint32_t n, uint32_t rows, uint32_t in_pitch,
                        uint32_t weight_pitch, uint32_t cols, struct nl_error *error);
/* `count` products in a row: c [m][c_pitch] = a [m][a_pitch] times b [n][k] transposed, or b [k][n] plain. */
struct nl_cuda_products {
    float *c;
    const void *a, *b;
    bool halves; /* a and b are bfloat16, else float32 */
    bool transposed;
    uint32_t m, n, k, count, a_pitch, c_pitch;
};
int nl_cuda_blas_batch(struct nl_cuda_blas *, const struct nl_cuda_products *, struct nl_error *error);

struct nl_cuda_graph {
    uint32_t n_tokens, n_outputs, splits;
    cudaGraphExec_t exec; /* NULL: seen once, not yet captured */
};

enum { NL_CUDA_GRAPHS = 64 };

struct cuda_backend {
    struct nl_backend base;
    const struct nl_plan *plan;
    int device; /* made the calling thread's at each entry */
    cudaStream_t stream;
    bool use_graphs, use_fusion;
    bool multiplies_bf16; /* cuBLAS does on this device (sm_80 and newer) */
    uint32_t split, tile;
    struct nl_cuda_weights weights;
    float *buffers[NL_MAX_BUFFERS]; /* [max_tokens][width] */
    float *logits;                  /* [max_outputs][vocab_size] */
    uint32_t *best;                 /* [max_outputs] */
    uint64_t *argmax_space;
    uint32_t *arrived; /* counters of attention, then of arg-max; zero between launches */
    struct nl_cuda_op *plain, *fused;
    size_t n_plain, n_fused;
    struct { /* the cache, in pieces of some blocks, made when they are needed */
        uint64_t block_bytes, n_blocks;
        uint32_t blocks_per_slab;
        float **slabs;
        size_t n_slabs;
    } cache;
    struct {                 /* struct nl_cuda_step and its arrays */
        char *host, *device; /* host: pinned */
        size_t capacity;
    } step;
    float *partials;
    uint32_t partial_splits; /* that partials has room for */
    struct nl_cuda_graph graphs[NL_CUDA_GRAPHS];
    size_t n_graphs;
    struct nl_cuda_blas *blas;
    float *scratch;
    uint64_t scratch_size;
    uint32_t *host_best; /* pinned [max_outputs] */
};

/* The device's lists of operations; weights are uploaded and buffers are there (cuda_plan.c). */
int nl_cuda_plan(struct cuda_backend *, struct nl_error *error);
/* Copies the step to the device, with cache blocks for all of its positions (cuda_step.c). */
int nl_cuda_step_send(struct cuda_backend *, const struct nl_step *step, struct nl_error *error);
void nl_cuda_step_free(struct cuda_backend *);
/* Products and attention of many rows (cuda_prefill.c). */
int nl_cuda_prefill_linear(struct cuda_backend *, const struct nl_cuda_linear *, uint32_t n,
                           struct nl_error *error);
int nl_cuda_prefill_attention(struct cuda_backend *, const struct nl_cuda_attention *,
                              const struct nl_step *step, struct nl_error *error);
/* Splits of the longest row, as the grid has them: a power of two. Makes room for their partials. */
int nl_cuda_splits(struct cuda_backend *, const struct nl_step *step, uint32_t *splits,
                   struct nl_error *error);
/* The attention with that grid; a window needs no more of it than it covers. */
struct nl_cuda_attention nl_cuda_with_splits(const struct cuda_backend *, const struct nl_cuda_attention *,
                                             uint32_t splits);
void nl_cuda_drop_graphs(struct cuda_backend *);

#endif
