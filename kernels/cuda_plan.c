/* cuda_plan.c: the plan's operations as the device runs them, one by one and fused. */
#include <stdlib.h>

#include "cuda_host.h"

static struct nl_cuda_embed embed_of(const struct cuda_backend *b, const struct nl_op *op)
{
    return (struct nl_cuda_embed){.table = nl_cuda_weights_matrix(&b->weights, op->embed.table.data),
                                  .positions = nl_cuda_weights_matrix(&b->weights, op->embed.positions.data),
                                  .scale = op->embed.scale,
                                  .rounds = b->plan->bfloat16,
                                  .out = b->buffers[op->out]};
}

static struct nl_cuda_row_norm norm_of(const struct cuda_backend *b, const struct nl_op *op)
{
    return (struct nl_cuda_row_norm){.norm = {.weight = nl_cuda_weights_vector(&b->weights, op->norm.weight),
                                              .bias = nl_cuda_weights_vector(&b->weights, op->norm.bias),
                                              .epsilon = op->norm.epsilon,
                                              .centred = op->norm.centred,
                                              .rounds = b->plan->bfloat16,
                                              .round_once = op->norm.round_once},
                                     .in = b->buffers[op->in],
                                     .add = op->norm.add == NL_NO_BUFFER ? NULL : b->buffers[op->norm.add],
                                     .add_scale = op->norm.add_scale,
                                     .out = b->buffers[op->out],
                                     .width = b->plan->width[op->in],
                                     .at_outputs = op->norm.at_outputs};
}

static struct nl_cuda_linear linear_of(const struct cuda_backend *b, const struct nl_op *op)
{
    struct nl_cuda_linear linear = {.n_segments = op->linear.n_segments,
                                    .in = b->buffers[op->in],
                                    .in_width = b->plan->width[op->in],
                                    .out = b->buffers[op->out],
                                    .out_width = b->plan->width[op->out],
                                    .epilogue = NL_CUDA_STORE,
                                    .rounds = b->plan->bfloat16};
    uint32_t n_rows = 0;
    for (uint32_t s = 0; s < op->linear.n_segments; s++) {
        const struct nl_segment *segment = &op->linear.segment[s];
        linear.segment[s] =
            (struct nl_cuda_segment){.weight = nl_cuda_weights_matrix(&b->weights, segment->weight.data),
                                     .bias = nl_cuda_weights_vector(&b->weights, segment->bias),
                                     .column = segment->column};
        n_rows += segment->weight.rows;
    }
    linear.n_rows = n_rows;
    return linear;
}

static struct nl_cuda_linear logits_of(const struct cuda_backend *b, const struct nl_op *op)
{
    return (struct nl_cuda_linear){.n_segments = 1,
                                   .segment[0].weight =
                                       nl_cuda_weights_matrix(&b->weights, op->logits.weight.data),
                                   .n_rows = op->logits.weight.rows,
                                   .in = b->buffers[op->in],
                                   .in_width = b->plan->width[op->in],
                                   .out = b->logits,
                                   .out_width = b->plan->vocab_size,
                                   .epilogue = NL_CUDA_LOGITS,
                                   .scale = op->logits.divisor,
                                   .cap = op->logits.cap,
                                   .rounds = b->plan->bfloat16};
}

static struct nl_cuda_rope rope_of(const struct cuda_backend *b, const struct nl_op *op)
{
    struct nl_cuda_rope rope = {.qkv = b->buffers[op->in],
                                .n_heads = op->attention.n_heads,
                                .n_kv_heads = op->attention.n_kv_heads,
                                .head_dim = op->attention.head_dim,
                                .layer = (uint32_t)op->layer,
                                .rope = op->attention.rope,
                                .rounds = b->plan->bfloat16,
                                .round_once = op->attention.round_once};
    if (rope.rope != NL_NO_ROPE) {
        rope.dims = b->plan->ropes[rope.rope].dims;
        rope.rotation_scale = b->plan->ropes[rope.rope].scale;
    }
    return rope;
}

/* Heads are those of the attention that follows; only the groups' own places matter here. */
static struct nl_cuda_rope qk_norm_of(const struct cuda_backend *b, const struct nl_op *op)
{
    struct nl_cuda_rope rope = {.qkv = b->buffers[op->in],
                                .row_width = b->plan->width[op->in],
                                .epsilon = op->qk_norm.epsilon,
                                .rounds = b->plan->bfloat16,
                                .norm_rounds_once = op->qk_norm.round_once};
    for (int part = 0; part < 2; part++) {
        rope.norm[part].weight = nl_cuda_weights_vector(&b->weights, op->qk_norm.part[part].weight);
        rope.norm[part].column = op->qk_norm.part[part].column;
        rope.norm[part].width = op->qk_norm.part[part].width;
        rope.norm[part].count = op->qk_norm.part[part].count;
    }
    return rope;
}

static struct nl_cuda_attention attention_of(const struct cuda_backend *b, const struct nl_op *op)
{
    return (struct nl_cuda_attention){.qkv = b->buffers[op->in],
                                      .out = b->buffers[op->out],
                                      .n_heads = op->attention.n_heads,
                                      .n_kv_heads = op->attention.n_kv_heads,
                                      .head_dim = op->attention.head_dim,
                                      .layer = (uint32_t)op->layer,
                                      .window = op->attention.window,
                                      .scale = op->attention.scale,
                                      .cap = op->attention.cap,
                                      .rounds = b->plan->bfloat16,
                                      .round_scores = b->plan->bfloat16 && op->attention.round_scores,
                                      .split = b->split,
                                      .arrived = b->arrived};
}

static struct nl_cuda_op translate(const struct cuda_backend *b, const struct nl_op *op)
{
    struct nl_cuda_op out = {.kind = op->kind, .op = op};
    switch (op->kind) {
    case NL_OP_EMBED:
        out.embed = embed_of(b, op);
        break;
    case NL_OP_NORM:
        out.norm = norm_of(b, op);
        break;
    case NL_OP_RESIDUAL:
        out.residual.out = b->buffers[op->out];
        out.residual.in = b->buffers[op->in];
        out.residual.scale = op->residual.scale;
        out.residual.width = b->plan->width[op->out];
        break;
    case NL_OP_LINEAR:
        out.linear = linear_of(b, op);
        break;
    case NL_OP_LOGITS:
        out.linear = logits_of(b, op);
        break;
    case NL_OP_QK_NORM:
        out.rope = qk_norm_of(b, op);
        break;
    case NL_OP_ROPE:
        out.rope = rope_of(b, op);
        break;
    case NL_OP_ATTENTION:
        out.attention = attention_of(b, op);
        break;
    case NL_OP_GATE:
        out.gate = (struct nl_cuda_gate){.out = b->buffers[op->out],
                                         .in = b->buffers[op->in],
                                         .width = b->plan->width[op->out],
                                         .gated = op->gate.gated,
                                         .rounds = b->plan->bfloat16,
                                         .activation = op->gate.activation};
        break;
    default:
        break;
    }
    return out;
}

/* What the operation reads beside its in and writes beside its out needs no look here: only buffers that are
   read through `in` or `add` are ever left unwritten. */
static bool reads(const struct nl_op *op, uint32_t buffer)
{
    return op->in == buffer || (op->kind == NL_OP_NORM && op->norm.add == buffer) ||
           (op->kind == NL_OP_RESIDUAL && op->out == buffer);
}

/* True when nothing after operation i reads the buffer before it is written again. */
static bool is_dead_after(const struct nl_plan *plan, size_t i, uint32_t buffer)
{
    while (++i < plan->n_ops) {
        if (reads(&plan->ops[i], buffer))
            return false;
        if (plan->ops[i].out == buffer)
            return true;
    }
    return true;
}

/* A norm before products: each block of the product norms its input for itself. */
static bool fuse_norm(const struct nl_plan *plan, size_t i, const struct nl_cuda_row_norm *norm,
                      struct nl_cuda_linear *linear)
{
    if (norm->add || norm->at_outputs || norm->out == norm->in || i + 1 >= plan->n_ops ||
        plan->ops[i + 1].kind != NL_OP_LINEAR || plan->ops[i + 1].in != plan->ops[i].out ||
        !is_dead_after(plan, i + 1, plan->ops[i].out))
        return false;
    linear->norm = norm->norm;
    linear->in = norm->in;
    return true;
}

/* An activation after products; true when it is taken over. A buffer that blocks still read is not written.
 */
static bool fuse_gate(const struct nl_plan *plan, size_t i, const struct nl_cuda_op *gate,
                      struct nl_cuda_linear *linear)
{
    if (gate->kind != NL_OP_GATE || plan->ops[i + 1].in != plan->ops[i].out ||
        !is_dead_after(plan, i + 1, plan->ops[i].out) || gate->gate.out == linear->in ||
        (gate->gate.gated && !nl_cuda_is_uniform(linear)) ||
        linear->n_rows != gate->gate.width * (gate->gate.gated ? 2 : 1))
        return false;
    linear->epilogue = gate->gate.gated ? NL_CUDA_GATED : NL_CUDA_ACTIVATE;
    linear->activation = gate->gate.activation;
    linear->out = gate->gate.out;
    linear->out_width = gate->gate.width;
    return true;
}

/* The addition to the residual stream, where the product does not read that itself; *whole when the next
   operation is nothing else. */
static bool fuse_residual(const struct nl_plan *plan, size_t i, struct nl_cuda_op *next,
                          struct nl_cuda_linear *linear, bool *whole)
{
    const struct nl_op *op = &plan->ops[i + 1];
    *whole = op->kind == NL_OP_RESIDUAL;
    bool adds = *whole ? op->in == plan->ops[i].out
                       : op->kind == NL_OP_NORM && next->norm.add && op->norm.add == plan->ops[i].out;
    float *stream = *whole ? next->residual.out : next->norm.in;
    if (!adds || linear->n_segments != 1 || stream == linear->in ||
        !is_dead_after(plan, i + 1, plan->ops[i].out))
        return false;
    linear->epilogue = NL_CUDA_RESIDUAL;
    linear->out = stream;
    linear->out_width = *whole ? next->residual.width : next->norm.width;
    linear->scale = *whole ? next->residual.scale : next->norm.add_scale;
    if (!*whole)
        next->norm.add = NULL;
    return true;
}

/* Norms of single heads go into the rotation. */
static bool fuse_qk_norm(const struct nl_cuda_rope *norm, struct nl_cuda_op *next)
{
    if (next->kind != NL_OP_ROPE || norm->norm[0].width != next->rope.head_dim ||
        norm->norm[1].width != next->rope.head_dim)
        return false;
    memcpy(next->rope.norm, norm->norm, sizeof norm->norm);
    next->rope.epsilon = norm->epsilon;
    next->rope.norm_rounds_once = norm->norm_rounds_once;
    return true;
}

/* ops: a copy of the plain ones, changed as it goes. */
static void fuse(struct cuda_backend *b, struct nl_cuda_op *ops)
{
    const struct nl_plan *plan = b->plan;
    for (size_t i = 0; i < plan->n_ops; i++) {
        struct nl_cuda_op *op = &ops[i], *next = i + 1 < plan->n_ops ? &ops[i + 1] : NULL;
        bool whole = true;
        if (op->kind == NL_OP_NORM && next && fuse_norm(plan, i, &op->norm, &next->linear))
            continue;
        if (op->kind == NL_OP_QK_NORM && next && fuse_qk_norm(&op->rope, next))
            continue;
        b->fused[b->n_fused++] = *op;
        if (op->kind != NL_OP_LINEAR || !next)
            continue;
        struct nl_cuda_linear *linear = &b->fused[b->n_fused - 1].linear;
        if (fuse_gate(plan, i, next, linear) || (fuse_residual(plan, i, next, linear, &whole) && whole))
            i++;
    }
}

int nl_cuda_plan(struct cuda_backend *b, struct nl_error *error)
{
    size_t n = b->plan->n_ops;
    struct nl_cuda_op *copy = malloc(n * sizeof *copy);
    b->plain = malloc(n * sizeof *b->plain);
    b->fused = malloc(n * sizeof *b->fused);
    if (!copy || !b->plain || !b->fused) {
        free(copy);
        return nl_fail_memory(error, "plan of the device");
    }
    for (size_t i = 0; i < n; i++)
        b->plain[i] = copy[i] = translate(b, &b->plan->ops[i]);
    b->n_plain = n;
    fuse(b, copy);
    free(copy);
    return 0;
}
