/*
 * cuda.h: between the CUDA backend (cuda_*.c) and its kernels (cuda_*.cu).
 *
 * All pointers here are to device memory unless they say otherwise. Launchers queue work on the stream and
 * return the launch's status; nothing in them waits. What changes from step to step is read from struct
 * nl_cuda_step, so that a captured graph stays valid.
 */
#ifndef NL_CUDA_H
#define NL_CUDA_H

#include <cuda_runtime_api.h>

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NL_CUDA_VECTORS = 8, /* rows that share one pass over the weights */
    NL_CUDA_SPLIT = 256, /* positions that a block of attention works on, at most */
    NL_CUDA_ALIGN = 16,  /* bytes: of rows of weights */
    /* At most: shared memory holds a head for each warp; a grid's second dimension counts a row's heads, or
       its elements by 256. */
    NL_CUDA_HEAD_DIM = 1024,
    NL_CUDA_HEADS = 16384,
    NL_CUDA_WIDTH = 1 << 23,
};

/* A kernel may be started before the one it depends on has ended (sm_90 and newer). Only for kernels that
   wait for themselves: code of older PTX that the driver translated for a new device does not. */
extern bool nl_cuda_early_start;
/* *wait: whether the kernels do, as they were chosen for the current device. */
cudaError_t nl_cuda_kernels_wait(bool *wait);

/* A weight matrix on the device; rows are padded with zeros to NL_CUDA_ALIGN bytes. */
struct nl_cuda_matrix {
    const void *data;           /* [rows][pitch] */
    enum nl_dtype dtype;        /* F32, F16 or BF16 */
    uint32_t rows, cols, pitch; /* pitch in elements */
};

/* The step as the device sees it; it lies in device memory itself. */
struct nl_cuda_step {
    uint32_t n_tokens, n_outputs;
    uint32_t table_stride;
    const uint32_t *ids, *positions;             /* [n_tokens] */
    const uint32_t *sequence;                    /* [n_tokens]: row of `tables` */
    const uint32_t *outputs;                     /* [n_outputs] */
    const float *frequencies[NL_MAX_ROPES];      /* [sets][dims / 2] */
    const uint32_t *frequency_set[NL_MAX_ROPES]; /* [n_tokens] */
    float *const *tables;                        /* [sequences][table_stride]: cache blocks, each
                                                    [n_layers][2][n_kv_heads][NL_BLOCK][head_dim] */
};

struct nl_cuda_norm {
    const float *weight, *bias; /* [width]; weight NULL: no norm; bias may be NULL */
    float epsilon;
    bool centred;
    bool rounds, round_once; /* to bfloat16, as ops.h says; so in all that follows */
};

/* out[t][i] = table[ids[t]][i] * scale (+ positions[positions[t]][i]) */
struct nl_cuda_embed {
    struct nl_cuda_matrix table, positions; /* positions.data NULL: none */
    float scale;
    bool rounds;
    float *out; /* [n_tokens][table.cols] */
};
cudaError_t nl_cuda_run_embed(const struct nl_cuda_embed *, const struct nl_cuda_step *step,
                              uint32_t n_tokens, cudaStream_t stream);

/*
 * x = in[t] (+ add[t] * add_scale, stored to in unless at_outputs); out[t] = norm(x)
 */
struct nl_cuda_row_norm {
    struct nl_cuda_norm norm;
    float *in;        /* [n_tokens][width] */
    const float *add; /* [n_tokens][width] or NULL */
    float add_scale;
    float *out; /* [n_rows][width]; may be in */
    uint32_t width;
    bool at_outputs; /* row o of out is of row outputs[o] of in */
};
cudaError_t nl_cuda_run_row_norm(const struct nl_cuda_row_norm *, const struct nl_cuda_step *step,
                                 uint32_t n_rows, cudaStream_t stream);

/* out[i] += in[i] * scale, i < count */
cudaError_t nl_cuda_run_residual(float *out, const float *in, float scale, bool rounds, size_t count,
                                 cudaStream_t stream);

/* out[t][i] = act(in[t][i]) (* in[t][width + i], gated) */
struct nl_cuda_gate {
    float *out;      /* [n_rows][width] */
    const float *in; /* [n_rows][width or 2 width] */
    uint32_t width;
    bool gated, rounds;
    enum nl_activation activation;
};
cudaError_t nl_cuda_run_gate(const struct nl_cuda_gate *, uint32_t n_rows, cudaStream_t stream);

/* What happens to a product before it is stored. */
enum nl_cuda_epilogue {
    NL_CUDA_STORE,    /* out[t][column] = y */
    NL_CUDA_RESIDUAL, /* out[t][column] += y * scale */
    NL_CUDA_ACTIVATE, /* out[t][column] = act(y) */
    NL_CUDA_GATED,    /* of rows r and rows / 2 + r: out[t][r] = act(y[r]) * y[rows / 2 + r] */
    NL_CUDA_LOGITS,   /* out[t][column] = cap(y / scale) */
};

struct nl_cuda_segment {
    struct nl_cuda_matrix weight;
    const float *bias; /* [weight.rows] or NULL */
    uint32_t column;
};

/* y[t][column of segment s + r] = weight_s[r] . norm(in[t]) (+ bias_s[r]); columns are the rows of all
   segments, one after the other. */
struct nl_cuda_linear {
    uint32_t n_segments;
    struct nl_cuda_segment segment[NL_MAX_SEGMENTS]; /* of one number of columns */
    uint32_t n_rows;                                 /* of all segments */
    struct nl_cuda_norm norm;
    const float *in; /* [n_vectors][in_width] */
    uint32_t in_width;
    float *out; /* [n_vectors][out_width] */
    uint32_t out_width;
    enum nl_cuda_epilogue epilogue;
    enum nl_activation activation;
    float scale, cap;
    bool rounds;
};
/* A pass over the weights is over one type: false when the segments need one each. */
static inline bool nl_cuda_is_uniform(const struct nl_cuda_linear *l)
{
    for (uint32_t s = 1; s < l->n_segments; s++)
        if (l->segment[s].weight.dtype != l->segment[0].weight.dtype)
            return false;
    return true;
}
/* Segment s as a product of its own. */
static inline struct nl_cuda_linear nl_cuda_alone(const struct nl_cuda_linear *l, uint32_t s)
{
    struct nl_cuda_linear alone = *l;
    alone.n_segments = 1;
    alone.segment[0] = l->segment[s];
    alone.n_rows = l->segment[s].weight.rows;
    return alone;
}
/* For 1 to NL_CUDA_VECTORS vectors: own kernels that read each weight once. The bits of a vector's result do
   not depend on how many there are. */
cudaError_t nl_cuda_run_matvec(const struct nl_cuda_linear *, uint32_t n_vectors, cudaStream_t stream);

/* Pieces of the product by cuBLAS, for many vectors (cuda_prefill.c). */
/* terms[0] + terms[1] + terms[2] = in exactly, each bfloat16: [n_terms][n_rows][pitch], padded with zeros;
   the first alone where in is bfloat16 itself */
cudaError_t nl_cuda_run_split_terms(void *terms, uint32_t n_terms, uint32_t pitch, const float *in,
                                    uint32_t width, uint32_t n_rows, cudaStream_t stream);
/* out [rows][pitch] float32 of 16-bit weights [rows][pitch] */
cudaError_t nl_cuda_run_widen(float *out, const void *weights, enum nl_dtype dtype, size_t count,
                              cudaStream_t stream);
/* out[t][column + r] = sum of the terms' products[i][t][r], the smallest first, + bias[r]; logits: cap(that /
   divisor) */
struct nl_cuda_finish {
    const float *products; /* [n_terms][n_vectors][panel_rows] */
    uint32_t n_terms, panel_rows, column;
    const float *bias; /* [panel_rows] or NULL */
    float *out;        /* [n_vectors][out_width] */
    uint32_t out_width;
    bool logits, rounds;
    float divisor, cap;
};
cudaError_t nl_cuda_run_finish(const struct nl_cuda_finish *, uint32_t n_vectors, cudaStream_t stream);

/* nl_cuda_qk_norm norms groups of q and k in place. nl_cuda_rope norms each head (weight NULL: not), rotates
   q and k in place, writes k and v into the cache. */
struct nl_cuda_rope {
    float *qkv;         /* [n_tokens][q: n_heads * head_dim][k: n_kv_heads * head_dim][v: the same] */
    uint32_t row_width; /* nl_cuda_run_qk_norm: of qkv */
    uint32_t n_heads, n_kv_heads, head_dim, layer;
    uint32_t rope; /* index of the step's frequencies, or NL_NO_ROPE */
    uint32_t dims;
    float rotation_scale;
    bool rounds, round_once, norm_rounds_once;
    struct {
        const float *weight; /* [width] */
        uint32_t column, width, count;
    } norm[2];
    float epsilon;
};
cudaError_t nl_cuda_run_qk_norm(const struct nl_cuda_rope *, uint32_t n_tokens, cudaStream_t stream);
cudaError_t nl_cuda_run_rope(const struct nl_cuda_rope *, const struct nl_cuda_step *step, uint32_t n_tokens,
                             cudaStream_t stream);

struct nl_cuda_attention {
    const float *qkv; /* as above; q is rotated */
    float *out;       /* [n_tokens][n_heads * head_dim] */
    uint32_t n_heads, n_kv_heads, head_dim, layer, window;
    float scale, cap;
    bool rounds, round_scores;
    uint32_t split;      /* positions of a split, a multiple of 4, at most NL_CUDA_SPLIT */
    uint32_t max_splits; /* of any row in this step, or more: surplus blocks leave */
    float *partials;     /* [n_tokens][n_heads][max_splits][head_dim + 2]: sums, maximum, total */
    uint32_t *arrived;   /* [n_tokens][n_kv_heads][groups]: zero before and after */
};
/* Rows [first, first + n_rows): each over its own past, split over blocks, merged in order by the last. */
cudaError_t nl_cuda_run_attention(const struct nl_cuda_attention *, const struct nl_cuda_step *step,
                                  uint32_t first, uint32_t n_rows, cudaStream_t stream);

/* Pieces of attention by cuBLAS, for a tile of queries of one sequence (cuda_prefill.c). */
struct nl_cuda_tile {
    struct nl_cuda_attention attention;
    uint32_t first, n_queries;  /* rows of the step */
    uint32_t position;          /* of the first; the next follow */
    uint32_t sequence;          /* row of the step's tables */
    uint32_t key_begin, n_keys; /* positions; key_begin is a multiple of NL_BLOCK */
    uint32_t head, n_kv;        /* the KV heads head .. head + n_kv - 1 */
    bool halves;                /* queries, keys, values and weights are bfloat16, else float32 */
    uint32_t pitch;             /* n_keys or more */
    void *queries;              /* [n_kv][n_queries][rep][head_dim] */
    void *keys, *values;        /* [n_kv][n_keys][head_dim] */
    float *scores;              /* [n_kv][n_queries * rep][pitch] */
    void *weights;              /* the same; float32 ones are in place of the scores */
    float *totals;              /* [n_kv][n_queries * rep], of halves: what the mix is to be divided by */
    float *mixed;               /* [n_kv][n_queries][rep][head_dim] */
};
cudaError_t nl_cuda_run_gather(const struct nl_cuda_tile *, const struct nl_cuda_step *step,
                               cudaStream_t stream);
/* weights = softmax(cap(scale * scores)) over the keys that each query sees, 0 elsewhere; of halves not yet
   divided by their total, unless round_scores is set */
cudaError_t nl_cuda_run_softmax(const struct nl_cuda_tile *, cudaStream_t stream);
cudaError_t nl_cuda_run_scatter(const struct nl_cuda_tile *, cudaStream_t stream);

/* best[o] = the lowest index of the largest of logits [n_rows][n]; NL_BEST_NAN when any is NaN. `space`:
   [n_rows][NL_CUDA_ARGMAX_PARTS] values and indices; `arrived` [n_rows]: zero before and after. */
enum { NL_CUDA_ARGMAX_PARTS = 32 };
cudaError_t nl_cuda_run_argmax(uint32_t *best, const float *logits, uint32_t n, uint32_t n_rows,
                               uint64_t *space, uint32_t *arrived, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
