/*
 * ops.h: the operations of a forward pass, the plan that lists them, and the backends that run it.
 *
 * The model code (lib/model.c) records a plan once; a backend runs it once per step. A step is up to
 * plan->max_tokens rows, each a token of some sequence; everything that differs between steps is in struct
 * nl_step. Activations are float32 buffers [n_tokens][width]; weights stay as they are stored.
 *
 * Reductions have one fixed order for each output element, so that on one instruction set a row's results are
 * the same bits whatever other rows share the step, however many threads work, and however the sequence was
 * cut into steps:
 *
 * - products: one vector accumulator along k for each output, k ascending, then one horizontal sum;
 * - attention: blocks of NL_BLOCK positions anchored at position 0, each by its own maximum, merged in order.
 *
 * A plan with bfloat16 set is computed as transformers does with dtype=torch.bfloat16: what is stored there
 * between two calls of torch is rounded (R: to nearest, ties to even). Buffers and cache stay float32; all
 * weights are BF16, and sums float32. Sources: models/X/modeling_X.py of transformers 5.24 for each
 * architecture, activations.py, integrations/sdpa_attention.py, and torch's attention on the CPU.
 *
 *   embed         R(R(table * scale) + position); Gemma's scale, sqrt(hidden_size), is itself R, as a tensor;
 *                 Granite's, a number of Python, is not, nor are others of its kind below
 *   residual      R(x + R(branch * scale)), also before a norm
 *   norm, q and k R(R(x / root) * weight); with round_once R(x / root * weight + bias): Gemma 1 to 3, whose
 *                 weight is the float32 1 + w, OLMo 2, and GPT-2's LayerNorm
 *   linear        R(sum + bias)
 *   rope          R(R(a * R(cos)) - R(b * R(sin))); with round_once R(a * cos - b * sin): OLMo 2
 *   attention     weights R(e^(score - maximum)), their total float32 of those not rounded, R(mix / total);
 *                 with round_scores, as the `eager` attention of Gemma 2 does, each step of a score too, and
 *                 R(weight / total) for R(weight); decoding on CUDA: where a row has a single split
 *   gate          R(R(act(gate)) * up); within act nothing, but each step of NL_GELU_NEW
 *   logits        R(sum), R(/ divisor)
 *   soft-cap      R(R(tanh(R(x / cap))) * cap): logits, and scores with round_scores
 */
#ifndef NL_OPS_H
#define NL_OPS_H

#include "base.h"

#ifndef NL_BLOCK_POSITIONS
#define NL_BLOCK_POSITIONS 64 /* tests build with less, a multiple of 16 */
#endif
enum {
    NL_BLOCK = NL_BLOCK_POSITIONS, /* positions in a block of the KV cache */
    NL_MAX_SEGMENTS = 3,           /* weights that share a linear's input */
    NL_MAX_BUFFERS = 8,
    NL_MAX_ROPES = 2,
};
#define NL_NO_BUFFER UINT32_MAX

/* A weight matrix, row-major, one row for each output; perhaps unaligned, in a mapped file. F32, F16 or BF16.
 */
struct nl_matrix {
    const void *data; /* [rows][cols] */
    enum nl_dtype dtype;
    uint32_t rows, cols;
};

enum nl_op_kind {
    NL_OP_EMBED,    /* out[t] = table[ids[t]] * scale (+ positions[positions[t]]) */
    NL_OP_NORM,     /* x = in[t] (+ add[t] * add_scale, stored back to in);
                       out[t] = x / sqrt(mean(x^2) + epsilon) * weight; centred: of x - mean(x), + bias */
    NL_OP_RESIDUAL, /* out[t] += in[t] * scale, where no norm follows that could do it */
    NL_OP_LINEAR,   /* out[t][column of segment s + r] = weight_s[r] . in[t] (+ bias_s[r]) */
    NL_OP_QK_NORM, /* in holds q, k, v: each group of each part becomes x / sqrt(mean(x^2) + epsilon) * weight
                    */
    NL_OP_ROPE,    /* in holds q, k, v: rotates q in place; rotated k and v go into the cache */
    NL_OP_ATTENTION, /* out[t][head] = softmax(cap(scale * q . K)) V over the row's own past in the cache */
    NL_OP_GATE,      /* in holds gate, up: out = act(gate) * up; not gated: out = act(in) */
    NL_OP_LOGITS,    /* logits[o] = cap(weight . in[o] / divisor), for the rows that the step wants */
    NL_OP_ARGMAX,    /* best[o] = the lowest index of the largest logit; NL_BEST_NAN when any is NaN */
    NL_OP_KINDS,
};
#define NL_BEST_NAN UINT32_MAX
#define NL_NO_ROPE  UINT32_MAX

enum nl_activation {
    NL_SILU,      /* x / (1 + e^-x) */
    NL_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    NL_GELU_NEW,  /* the same; only its rounding in 16 bit differs */
    NL_GELU_ERF,  /* x/2 (1 + erf(x / sqrt(2))) */
};

struct nl_segment {
    struct nl_matrix weight;
    const float *bias; /* [weight.rows] or NULL */
    uint32_t column;   /* of the output buffer */
};

struct nl_op {
    enum nl_op_kind kind;
    int layer;        /* -1: before or after the layers */
    uint32_t in, out; /* buffers */
    union {
        struct {
            struct nl_matrix table;     /* [vocab_size][hidden_size] */
            struct nl_matrix positions; /* learned ones [max_positions][hidden_size]; data NULL: none */
            float scale;
        } embed;
        struct {
            const float *weight; /* [width of in] */
            const float *bias;   /* [width of in] or NULL */
            float epsilon;
            bool centred;
            uint32_t add; /* the residual branch's buffer, or NL_NO_BUFFER */
            float add_scale;
            bool at_outputs; /* row o of out comes from row outputs[o] of in; in is not stored back */
            bool round_once; /* bfloat16: see above */
        } norm;
        struct {
            uint32_t n_segments;
            struct nl_segment segment[NL_MAX_SEGMENTS];
        } linear;
        struct {
            float scale;
        } residual;
        struct {
            struct {
                const float *weight;           /* [width] */
                uint32_t column, width, count; /* groups of `width`, one after the other */
            } part[2];
            float epsilon;
            bool round_once; /* bfloat16: see above */
        } qk_norm;
        struct { /* in: [q: n_heads * head_dim][k: n_kv_heads * head_dim][v: the same] */
            uint32_t n_heads, n_kv_heads, head_dim;
            uint32_t rope; /* index into plan->ropes, or NL_NO_ROPE: only the cache is written (NL_OP_ROPE) */
            uint32_t window; /* positions seen, the row's own included; UINT32_MAX: all (NL_OP_ATTENTION) */
            float scale;
            float cap;                     /* score = cap tanh(score / cap); 0: none */
            bool round_once, round_scores; /* bfloat16, of NL_OP_ROPE, of NL_OP_ATTENTION: see above */
        } attention;
        struct {
            enum nl_activation activation;
            bool gated;
        } gate;
        struct {
            struct nl_matrix weight; /* [vocab_size][hidden_size] */
            float divisor, cap;      /* cap 0: none */
        } logits;
    };
};

/* Rotary embedding: dimension i < dims/2 of a head pairs with i + dims/2; its angle is position *
   frequency[i]. The frequencies are the step's: with some kinds they depend on the length of the sequence. */
struct nl_rope {
    uint32_t dims; /* rotated, the first of a head; even */
    float scale;   /* of cosine and sine */
};

struct nl_plan {
    struct nl_op *ops; /* [n_ops] in order */
    size_t n_ops;
    uint32_t n_buffers, width[NL_MAX_BUFFERS]; /* of float32 activations */
    uint32_t n_ropes;
    struct nl_rope ropes[NL_MAX_ROPES];
    uint32_t n_layers, n_kv_heads, head_dim; /* of the cache */
    uint32_t vocab_size;
    uint32_t max_tokens, max_outputs; /* of a step */
    bool bfloat16;                    /* activations are rounded, see above; else they are float32 */
};

struct nl_step {
    uint32_t n_tokens, n_outputs;  /* n_outputs may be 0 */
    const uint32_t *ids;           /* [n_tokens] */
    const uint32_t *positions;     /* [n_tokens]; a sequence's rows stand together, ascending */
    const uint32_t *slots;         /* [n_tokens]: the row's sequence, an index into tables */
    const uint32_t *const *tables; /* [sequences]: cache block of position p is tables[slot][p / NL_BLOCK] */
    const float *frequencies[NL_MAX_ROPES];      /* [sets][dims / 2] for each rope */
    const uint32_t *frequency_set[NL_MAX_ROPES]; /* [n_tokens]: the row's set; NULL: all rows have set 0 */
    const uint32_t *outputs;                     /* [n_outputs]: rows whose logits are wanted, ascending */
    float *logits;                               /* [n_outputs][vocab_size], written unless best_only */
    bool best_only; /* the logits are not looked at: a device need not send them */
    uint32_t *best; /* [n_outputs], written */
};

/* Bytes of one cache block: for each layer K, then V, each [n_kv_heads][NL_BLOCK][head_dim] float32. */
static inline uint64_t nl_plan_block_size(const struct nl_plan *plan)
{
    return (uint64_t)plan->n_layers * 2 * plan->n_kv_heads * NL_BLOCK * plan->head_dim * sizeof(float);
}

struct nl_backend;

/*
 * Opens the CPU. `isa`: "reference" (the naive oracle), "portable", "avx2", "avx512", or NULL for the best
 * that the processor has. NL_USAGE: unknown name; NL_RESOURCE: the processor lacks it.
 */
struct nl_backend *nl_cpu_open(const char *isa, unsigned threads, struct nl_error *error);
/*
 * By the device's name: "cpu", "cuda", "cuda:N", "auto" (CUDA where there is a device and the backend for it
 * is installed, else the CPU), "emu" (CUDA's code on the CPU, for tests). isa and threads are the CPU's.
 * NL_USAGE: unknown name; NL_RESOURCE: no such device.
 */
struct nl_backend *nl_backend_open(const char *device, const char *isa, unsigned threads,
                                   struct nl_error *error);
void nl_backend_close(struct nl_backend *);
const char *nl_backend_name(const struct nl_backend *); /* "cpu avx2" */
/* Whether it runs plans with bfloat16 set. */
bool nl_backend_rounds(const struct nl_backend *);

/* Takes a plan (which stays the caller's and must outlive the backend) and reserves its buffers and
   `n_blocks` cache blocks; memory is committed as it is touched. Once for each backend. */
int nl_backend_load(struct nl_backend *, const struct nl_plan *plan, uint64_t n_blocks,
                    struct nl_error *error);
/* False: the backend works in the host's memory. Else *bytes: what is free on its device. */
bool nl_backend_available(struct nl_backend *, uint64_t *bytes);
/* Gives a cache block's memory back to the system. */
void nl_backend_release_block(struct nl_backend *, uint32_t block);

/* Called after each operation with the buffers as they stand, [n_buffers][n_tokens][width]; for traces and
 * tests. */
struct nl_observer {
    void (*seen)(void *context, const struct nl_op *op, float *const *buffers);
    void *context;
    void (*begin)(void *context,
                  const struct nl_step *step); /* NULL, or called by the engine before each step */
    void (*end)(void *context, const struct nl_step *step); /* the same after it, when the logits have come */
    bool blind; /* the buffers are not looked at: seen gets NULL for them, and the next operation may have
                   begun */
};
/* Runs one step. The caller has checked ids, positions and tables. */
int nl_backend_run(struct nl_backend *, const struct nl_step *step, const struct nl_observer *observer,
                   struct nl_error *error);

#endif
