#include "model.h"

#include <stdio.h>
#include <stdlib.h>

/* What is passed around while the plan is recorded. */
struct builder {
    struct nl_model *model;
    const struct nl_config *config;
    const struct nl_tensor_names *names;
    struct nl_weights *weights;
    int layer;
    bool pending; /* NL_BUF_BRANCH is still to be added to the stream */
};

enum { OPS_PER_LAYER = 14, OPS_OUTSIDE = 4 };

/* Appends an operation of the present layer; the plan was made large enough. */
static struct nl_op *add_op(struct builder *b, enum nl_op_kind kind, uint32_t in, uint32_t out)
{
    struct nl_op *op = &b->model->plan.ops[b->model->plan.n_ops++];
    *op = (struct nl_op){.kind = kind, .layer = b->layer, .in = in, .out = out};
    return op;
}

static struct nl_op *add_norm(struct builder *b, const char *name, uint32_t in, uint32_t out)
{
    const struct nl_architecture *arch = b->config->architecture;
    struct nl_op *op = add_op(b, NL_OP_NORM, in, out);
    uint32_t width = b->config->hidden_size;
    op->norm.weight = nl_weights_vector(b->weights, name, "weight", width, arch->norm_plus_one ? 1 : 0);
    op->norm.bias = arch->centred_norm ? nl_weights_vector(b->weights, name, "bias", width, 0) : NULL;
    op->norm.centred = arch->centred_norm;
    op->norm.epsilon = b->config->norm_epsilon;
    op->norm.round_once = arch->norm_rounds_once;
    op->norm.add = NL_NO_BUFFER;
    return op;
}

/* Before a branch: adds what is pending, norms the stream where the model does. Returns the branch's input.
 */
static uint32_t begin_branch(struct builder *b, const char *norm)
{
    bool pending = b->pending;
    b->pending = false;
    if (norm) {
        struct nl_op *op = add_norm(b, norm, NL_BUF_STREAM, NL_BUF_NORMED);
        op->norm.add = pending ? NL_BUF_BRANCH : NL_NO_BUFFER;
        op->norm.add_scale = b->config->residual_scale;
        return NL_BUF_NORMED;
    }
    if (pending)
        add_op(b, NL_OP_RESIDUAL, NL_BUF_BRANCH, NL_BUF_STREAM)->residual.scale = b->config->residual_scale;
    return NL_BUF_STREAM;
}

static void end_branch(struct builder *b, const char *norm)
{
    if (norm)
        add_norm(b, norm, NL_BUF_BRANCH, NL_BUF_BRANCH);
    b->pending = true;
}

/* NAME.weight [rows][cols] and, with bias, NAME.bias [rows]. */
static void add_segment(struct builder *b, struct nl_op *op, const char *name, uint32_t rows, uint32_t cols,
                        bool bias)
{
    struct nl_segment *segment = &op->linear.segment[op->linear.n_segments++];
    if (op->linear.n_segments > 1)
        segment->column = segment[-1].column + segment[-1].weight.rows;
    segment->weight = nl_weights_matrix(b->weights, name, rows, cols, b->config->architecture->transposed);
    segment->bias = bias ? nl_weights_vector(b->weights, name, "bias", rows, 0) : NULL;
}

static struct nl_op *add_attention_op(struct builder *b, enum nl_op_kind kind, uint32_t out)
{
    const struct nl_config *c = b->config;
    struct nl_op *op = add_op(b, kind, NL_BUF_QKV, out);
    op->attention.n_heads = c->n_heads;
    op->attention.n_kv_heads = c->n_kv_heads;
    op->attention.head_dim = c->head_dim;
    op->attention.rope = c->layer_rope[b->layer] == NL_NO_LAYER_ROPE ? NL_NO_ROPE : c->layer_rope[b->layer];
    op->attention.window = c->windows[b->layer];
    op->attention.scale = c->attention_scale / (c->scale_by_layer ? (float)(b->layer + 1) : 1);
    op->attention.cap = c->attention_cap;
    op->attention.round_once = c->architecture->rope_rounds_once;
    op->attention.round_scores = c->architecture->eager_attention;
    return op;
}

static void add_qk_norm(struct builder *b)
{
    const struct nl_config *c = b->config;
    struct nl_op *op = add_op(b, NL_OP_QK_NORM, NL_BUF_QKV, NL_BUF_QKV);
    op->qk_norm.epsilon = c->norm_epsilon;
    op->qk_norm.round_once = c->architecture->norm_rounds_once;
    for (int part = 0; part < 2; part++) {
        uint32_t heads = part == 0 ? c->n_heads : c->n_kv_heads;
        bool whole = c->architecture->norm_whole_qk;
        uint32_t width = whole ? heads * c->head_dim : c->head_dim;
        op->qk_norm.part[part].column = part == 0 ? 0 : c->n_heads * c->head_dim;
        op->qk_norm.part[part].width = width;
        op->qk_norm.part[part].count = whole ? 1 : heads;
        op->qk_norm.part[part].weight =
            nl_weights_vector(b->weights, part == 0 ? b->names->q_norm : b->names->k_norm, "weight", width,
                              c->architecture->norm_plus_one ? 1 : 0);
    }
}

static void add_attention(struct builder *b)
{
    const struct nl_config *c = b->config;
    const struct nl_tensor_names *n = b->names;
    uint32_t hidden = c->hidden_size, q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    struct nl_op *op = add_op(b, NL_OP_LINEAR, begin_branch(b, n->before_attention), NL_BUF_QKV);
    if (n->qkv) {
        add_segment(b, op, n->qkv, q + 2 * kv, hidden, c->qkv_bias);
    } else {
        add_segment(b, op, n->q, q, hidden, c->qkv_bias);
        add_segment(b, op, n->k, kv, hidden, c->qkv_bias);
        add_segment(b, op, n->v, kv, hidden, c->qkv_bias);
    }
    if (n->q_norm)
        add_qk_norm(b);
    add_attention_op(b, NL_OP_ROPE, NL_BUF_QKV);
    add_attention_op(b, NL_OP_ATTENTION, NL_BUF_HEADS);
    add_segment(b, add_op(b, NL_OP_LINEAR, NL_BUF_HEADS, NL_BUF_BRANCH), n->o, hidden, q, c->o_bias);
    end_branch(b, n->after_attention);
}

static bool is_gated(const struct nl_tensor_names *names)
{
    return names->gate || names->gate_up;
}

static void add_mlp(struct builder *b)
{
    const struct nl_config *c = b->config;
    const struct nl_tensor_names *n = b->names;
    uint32_t hidden = c->hidden_size, inner = c->intermediate_size;
    struct nl_op *op = add_op(b, NL_OP_LINEAR, begin_branch(b, n->before_mlp), NL_BUF_GATES);
    if (n->gate_up)
        add_segment(b, op, n->gate_up, 2 * inner, hidden, c->mlp_bias);
    if (n->gate)
        add_segment(b, op, n->gate, inner, hidden, c->mlp_bias);
    if (n->up)
        add_segment(b, op, n->up, inner, hidden, c->mlp_bias);
    op = add_op(b, NL_OP_GATE, NL_BUF_GATES, NL_BUF_MLP);
    op->gate.activation = c->activation;
    op->gate.gated = is_gated(n);
    add_segment(b, add_op(b, NL_OP_LINEAR, NL_BUF_MLP, NL_BUF_BRANCH), n->down, hidden, inner, c->mlp_bias);
    end_branch(b, n->after_mlp);
}

void nl_model_widths(const struct nl_config *c, uint32_t width[NL_BUFFERS])
{
    width[NL_BUF_STREAM] = width[NL_BUF_NORMED] = width[NL_BUF_BRANCH] = c->hidden_size;
    width[NL_BUF_QKV] = (c->n_heads + 2 * c->n_kv_heads) * c->head_dim;
    width[NL_BUF_HEADS] = c->n_heads * c->head_dim;
    width[NL_BUF_GATES] = (is_gated(c->architecture->names) ? 2 : 1) * c->intermediate_size;
    width[NL_BUF_MLP] = c->intermediate_size;
}

static int set_up_plan(struct builder *b, uint32_t max_tokens, uint32_t max_outputs)
{
    const struct nl_config *c = b->config;
    struct nl_plan *plan = &b->model->plan;
    plan->ops = calloc(OPS_PER_LAYER * (size_t)c->n_layers + OPS_OUTSIDE, sizeof *plan->ops);
    if (!plan->ops)
        return nl_fail_memory(b->weights->error, "plan");
    plan->n_ropes = c->n_ropes;
    for (uint32_t i = 0; i < c->n_ropes; i++) {
        plan->ropes[i] = (struct nl_rope){.dims = c->ropes[i].dims, .scale = c->ropes[i].attention_factor};
        b->model->frequencies[i] = nl_weights_alloc(b->weights, c->ropes[i].dims * sizeof(float));
        if (!b->model->frequencies[i])
            return -1;
        nl_rope_frequencies(&c->ropes[i], 0, b->model->frequencies[i]);
    }
    plan->n_buffers = NL_BUFFERS;
    nl_model_widths(c, plan->width);
    plan->n_layers = c->n_layers;
    plan->n_kv_heads = c->n_kv_heads;
    plan->head_dim = c->head_dim;
    plan->vocab_size = c->vocab_size;
    plan->max_tokens = max_tokens;
    plan->max_outputs = max_outputs;
    plan->bfloat16 = b->weights->bfloat16;
    return 0;
}

static void set_layer(struct builder *b, int layer)
{
    b->layer = layer;
    b->weights->layer[0] = '\0';
    if (layer >= 0)
        snprintf(b->weights->layer, sizeof b->weights->layer, b->names->layer, layer);
}

static void record_plan(struct builder *b)
{
    const struct nl_config *c = b->config;
    struct nl_weights *w = b->weights;
    set_layer(b, -1);
    if (!nl_weights_has(w, b->names->embedding)) {
        w->without_prefix = true;
        w->without_prefix = nl_weights_has(w, b->names->embedding);
    }
    struct nl_matrix embedding =
        nl_weights_matrix(w, b->names->embedding, c->vocab_size, c->hidden_size, false);
    struct nl_op *op = add_op(b, NL_OP_EMBED, NL_NO_BUFFER, NL_BUF_STREAM);
    op->embed.table = embedding;
    op->embed.scale = nl_rounded(c->embedding_scale, w->bfloat16 && c->architecture->rounds_embedding_scale);
    if (b->names->positions)
        op->embed.positions =
            nl_weights_matrix(w, b->names->positions, c->max_positions, c->hidden_size, false);
    for (int layer = 0; layer < (int)c->n_layers && !w->failed; layer++) {
        set_layer(b, layer);
        add_attention(b);
        add_mlp(b);
    }
    set_layer(b, -1);
    begin_branch(b, b->names->final_norm);
    b->model->plan.ops[b->model->plan.n_ops - 1].norm.at_outputs = true;
    bool own_head = !c->tied || nl_weights_has(w, b->names->head);
    op = add_op(b, NL_OP_LOGITS, NL_BUF_NORMED, NL_NO_BUFFER);
    op->logits.weight =
        own_head ? nl_weights_matrix(w, b->names->head, c->vocab_size, c->hidden_size, false) : embedding;
    op->logits.divisor = c->logits_divisor;
    op->logits.cap = c->logits_cap;
    add_op(b, NL_OP_ARGMAX, NL_NO_BUFFER, NL_NO_BUFFER);
}

static int build(struct nl_model *model, const char *folder, bool bfloat16, uint32_t max_tokens,
                 uint32_t max_outputs, struct nl_error *error)
{
    if (nl_config_load(folder, &model->config, error) != 0 ||
        nl_weights_open(&model->weights, folder, error) != 0)
        return -1;
    model->weights.bfloat16 = bfloat16;
    struct builder b = {.model = model, .config = &model->config, .weights = &model->weights};
    b.names = model->config.architecture->names;
    if (set_up_plan(&b, max_tokens, max_outputs) != 0)
        return -1;
    record_plan(&b);
    if (model->weights.failed)
        return -1;
    model->weights.error = NULL;
    model->unused = nl_weights_unused(&model->weights, &model->n_unused);
    return 0;
}

struct nl_model *nl_model_open(const char *folder, bool bfloat16, uint32_t max_tokens, uint32_t max_outputs,
                               struct nl_error *error)
{
    struct nl_model *model = calloc(1, sizeof *model);
    if (!model) {
        nl_fail_memory(error, "model");
        return NULL;
    }
    if (build(model, folder, bfloat16, max_tokens, max_outputs, error) == 0)
        return model;
    nl_model_close(model);
    return NULL;
}

void nl_model_close(struct nl_model *model)
{
    if (!model)
        return;
    free(model->plan.ops);
    free(model->unused);
    nl_weights_close(&model->weights);
    nl_config_free(&model->config);
    free(model);
}
