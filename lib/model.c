#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What is passed around while a model is built; the first fault ends it. */
struct builder {
    struct nl_model *model;
    const char *folder;
    struct nl_error *error;
    bool failed;
    bool *used; /* [checkpoint->count] */
    int layer;
};

static void shape_text(const uint64_t *shape, unsigned rank, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "[");
    for (unsigned i = 0; i < rank && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%llu", i ? ", " : "",
                                   (unsigned long long)shape[i]);
    if (length < size)
        snprintf(text + length, size - length, "]");
}

static void full_name(const struct builder *b, const char *name, char *out, size_t size)
{
    if (b->layer >= 0)
        snprintf(out, size, "model.layers.%d.%s", b->layer, name);
    else
        snprintf(out, size, "%s", name);
}

/* Marks a tensor used and checks its shape: [rows][cols], or [rows] where cols is 0. NULL after a fault. */
static const struct nl_tensor *take(struct builder *b, const char *short_name, uint64_t rows, uint64_t cols)
{
    char name[200];
    full_name(b, short_name, name, sizeof name);
    if (b->failed)
        return NULL;
    const struct nl_tensor *tensor = nl_checkpoint_find(b->model->checkpoint, name);
    if (!tensor) {
        b->failed = true;
        nl_fail(b->error, NL_DATA, "tensor is missing: %s: %s", name, b->folder);
        return NULL;
    }
    for (size_t i = 0; i < b->model->checkpoint->count; i++)
        if (b->model->checkpoint->tensors[i] == tensor)
            b->used[i] = true;
    uint64_t want[2] = {rows, cols};
    unsigned rank = cols ? 2 : 1;
    if (tensor->rank != rank || memcmp(tensor->shape, want, rank * sizeof *want) != 0) {
        char wanted[100], found[200];
        shape_text(want, rank, wanted, sizeof wanted);
        shape_text(tensor->shape, tensor->rank, found, sizeof found);
        b->failed = true;
        nl_fail(b->error, NL_DATA, "tensor has shape %s, the config asks for %s: %s: %s", found, wanted, name,
                tensor->file->path);
        return NULL;
    }
    if (tensor->dtype != NL_F32 && tensor->dtype != NL_F16 && tensor->dtype != NL_BF16) {
        b->failed = true;
        nl_fail(b->error, NL_UNSUPPORTED,
                "weight of an unsupported type (supported: F32, F16, BF16): %s: %s: %s",
                nl_dtype_name(tensor->dtype), name, tensor->file->path);
        return NULL;
    }
    b->model->weight_bytes += tensor->end - tensor->begin;
    return tensor;
}

static struct nl_matrix matrix(struct builder *b, const char *name, uint32_t rows, uint32_t cols)
{
    const struct nl_tensor *tensor = take(b, name, rows, cols);
    return tensor ? (struct nl_matrix){tensor->data, tensor->dtype, rows, cols} : (struct nl_matrix){0};
}

/* A new float32 vector that the model owns. */
static float *new_vector(struct builder *b, size_t count)
{
    struct nl_model *model = b->model;
    if (model->n_vectors == model->vectors_capacity) {
        size_t capacity = model->vectors_capacity ? 2 * model->vectors_capacity : 64;
        float **vectors = realloc(model->vectors, capacity * sizeof *vectors);
        if (vectors) {
            model->vectors = vectors;
            model->vectors_capacity = capacity;
        }
    }
    float *vector = model->n_vectors < model->vectors_capacity ? malloc(count * sizeof *vector) : NULL;
    if (vector) {
        model->vectors[model->n_vectors++] = vector;
    } else if (!b->failed) {
        b->failed = true;
        nl_fail_memory(b->error, "weights");
    }
    return vector;
}

static const float *vector(struct builder *b, const char *name, uint32_t count)
{
    const struct nl_tensor *tensor = take(b, name, count, 0);
    float *out = tensor ? new_vector(b, count) : NULL;
    for (uint32_t i = 0; out && i < count; i++) {
        uint16_t half;
        memcpy(&half, tensor->data + 2 * (size_t)i, 2);
        if (tensor->dtype == NL_F32)
            memcpy(&out[i], tensor->data + 4 * (size_t)i, 4);
        else
            out[i] = tensor->dtype == NL_BF16 ? nl_float_of_bf16(half) : nl_float_of_f16(half);
    }
    return out;
}

/* Appends an operation of the present layer; the plan was made large enough. */
static struct nl_op *add_op(struct builder *b, enum nl_op_kind kind, uint32_t in, uint32_t out)
{
    struct nl_op *op = &b->model->plan.ops[b->model->plan.n_ops++];
    *op = (struct nl_op){.kind = kind, .layer = b->layer, .in = in, .out = out};
    return op;
}

static void add_norm(struct builder *b, const char *name, uint32_t add)
{
    struct nl_op *op = add_op(b, NL_OP_NORM, NL_BUF_STREAM, NL_BUF_NORMED);
    op->norm.weight = vector(b, name, b->model->config.hidden_size);
    op->norm.epsilon = b->model->config.norm_epsilon;
    op->norm.add = add;
}

/* NAME.weight [rows][cols] and, with bias, NAME.bias [rows]. */
static void add_segment(struct builder *b, struct nl_op *op, const char *name, uint32_t rows, uint32_t cols,
                        bool bias)
{
    char full[100];
    struct nl_segment *segment = &op->linear.segment[op->linear.n_segments++];
    if (op->linear.n_segments > 1)
        segment->column = segment[-1].column + segment[-1].weight.rows;
    snprintf(full, sizeof full, "%s.weight", name);
    segment->weight = matrix(b, full, rows, cols);
    snprintf(full, sizeof full, "%s.bias", name);
    segment->bias = bias ? vector(b, full, rows) : NULL;
}

static struct nl_op *add_attention_op(struct builder *b, enum nl_op_kind kind, uint32_t out)
{
    const struct nl_config *c = &b->model->config;
    struct nl_op *op = add_op(b, kind, NL_BUF_QKV, out);
    op->attention.n_heads = c->n_heads;
    op->attention.n_kv_heads = c->n_kv_heads;
    op->attention.head_dim = c->head_dim;
    op->attention.window = UINT32_MAX;
    return op;
}

static void add_layer(struct builder *b)
{
    const struct nl_config *c = &b->model->config;
    uint32_t hidden = c->hidden_size, q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    add_norm(b, "input_layernorm.weight", b->layer == 0 ? NL_NO_BUFFER : NL_BUF_BRANCH);
    struct nl_op *op = add_op(b, NL_OP_LINEAR, NL_BUF_NORMED, NL_BUF_QKV);
    add_segment(b, op, "self_attn.q_proj", q, hidden, c->qkv_bias);
    add_segment(b, op, "self_attn.k_proj", kv, hidden, c->qkv_bias);
    add_segment(b, op, "self_attn.v_proj", kv, hidden, c->qkv_bias);
    add_attention_op(b, NL_OP_ROPE, NL_BUF_QKV);
    op = add_attention_op(b, NL_OP_ATTENTION, NL_BUF_HEADS);
    op->attention.window = c->windows[b->layer];
    op->attention.scale = (float)(1 / sqrt(c->head_dim));
    op = add_op(b, NL_OP_LINEAR, NL_BUF_HEADS, NL_BUF_BRANCH);
    add_segment(b, op, "self_attn.o_proj", hidden, q, c->o_bias);

    add_norm(b, "post_attention_layernorm.weight", NL_BUF_BRANCH);
    op = add_op(b, NL_OP_LINEAR, NL_BUF_NORMED, NL_BUF_GATES);
    add_segment(b, op, "mlp.gate_proj", c->intermediate_size, hidden, c->mlp_bias);
    add_segment(b, op, "mlp.up_proj", c->intermediate_size, hidden, c->mlp_bias);
    add_op(b, NL_OP_GATE, NL_BUF_GATES, NL_BUF_MLP);
    op = add_op(b, NL_OP_LINEAR, NL_BUF_MLP, NL_BUF_BRANCH);
    add_segment(b, op, "mlp.down_proj", hidden, c->intermediate_size, c->mlp_bias);
}

enum { OPS_PER_LAYER = 9, OPS_OUTSIDE = 4 };

static void build_plan(struct builder *b, uint32_t max_tokens, uint32_t max_outputs)
{
    const struct nl_config *c = &b->model->config;
    struct nl_plan *plan = &b->model->plan;
    plan->ops = calloc(OPS_PER_LAYER * (size_t)c->n_layers + OPS_OUTSIDE, sizeof *plan->ops);
    uint32_t dims = (uint32_t)(c->head_dim * c->rope.partial);
    float *inv_freq = new_vector(b, dims);
    if (!plan->ops || !inv_freq) {
        b->failed = true;
        nl_fail_memory(b->error, "plan");
        return;
    }
    nl_rope_frequencies(&c->rope, dims, inv_freq);
    plan->n_ropes = 1;
    plan->ropes[0] = (struct nl_rope){.dims = dims, .inv_freq = inv_freq, .scale = 1};
    plan->n_buffers = NL_BUFFERS;
    plan->width[NL_BUF_STREAM] = plan->width[NL_BUF_NORMED] = plan->width[NL_BUF_BRANCH] = c->hidden_size;
    plan->width[NL_BUF_QKV] = (c->n_heads + 2 * c->n_kv_heads) * c->head_dim;
    plan->width[NL_BUF_HEADS] = c->n_heads * c->head_dim;
    plan->width[NL_BUF_GATES] = 2 * c->intermediate_size;
    plan->width[NL_BUF_MLP] = c->intermediate_size;
    plan->n_layers = c->n_layers;
    plan->n_kv_heads = c->n_kv_heads;
    plan->head_dim = c->head_dim;
    plan->vocab_size = c->vocab_size;
    plan->max_tokens = max_tokens;
    plan->max_outputs = max_outputs;

    b->layer = -1;
    struct nl_matrix embedding = matrix(b, "model.embed_tokens.weight", c->vocab_size, c->hidden_size);
    add_op(b, NL_OP_EMBED, NL_NO_BUFFER, NL_BUF_STREAM)->embed.table = embedding;
    for (b->layer = 0; b->layer < (int)c->n_layers && !b->failed; b->layer++)
        add_layer(b);
    b->layer = -1;
    add_norm(b, "model.norm.weight", NL_BUF_BRANCH);
    plan->ops[plan->n_ops - 1].norm.at_outputs = true;
    bool own_head = !c->tied || nl_checkpoint_find(b->model->checkpoint, "lm_head.weight");
    add_op(b, NL_OP_LOGITS, NL_BUF_NORMED, NL_NO_BUFFER)->logits.weight =
        own_head ? matrix(b, "lm_head.weight", c->vocab_size, c->hidden_size) : embedding;
    add_op(b, NL_OP_ARGMAX, NL_NO_BUFFER, NL_NO_BUFFER);
}

/* Older checkpoints carry the rotary frequencies, which the config decides. */
static bool ignored(const char *name)
{
    size_t length = strlen(name);
    const char *suffix = "rotary_emb.inv_freq";
    return length >= strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0;
}

static void list_unused(struct builder *b)
{
    struct nl_model *model = b->model;
    model->unused = calloc(model->checkpoint->count + 1, sizeof *model->unused);
    for (size_t i = 0; model->unused && i < model->checkpoint->count; i++)
        if (!b->used[i] && !ignored(model->checkpoint->tensors[i]->name))
            model->unused[model->n_unused++] = model->checkpoint->tensors[i]->name;
}

struct nl_model *nl_model_open(const char *folder, uint32_t max_tokens, uint32_t max_outputs,
                               struct nl_error *error)
{
    struct nl_model *model = calloc(1, sizeof *model);
    if (!model) {
        nl_fail_memory(error, "model");
        return NULL;
    }
    struct builder b = {.model = model, .folder = folder, .error = error};
    b.failed = nl_config_load(folder, &model->config, error) != 0;
    if (!b.failed)
        model->checkpoint = nl_checkpoint_open(folder, error);
    if (model->checkpoint) {
        b.used = calloc(model->checkpoint->count + 1, sizeof *b.used);
        if (b.used)
            build_plan(&b, max_tokens, max_outputs);
        else
            nl_fail_memory(error, "plan");
        b.failed = b.failed || !b.used;
    }
    if (!model->checkpoint || b.failed) {
        nl_model_close(model);
        model = NULL;
    } else {
        list_unused(&b);
    }
    free(b.used);
    return model;
}

void nl_model_close(struct nl_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->n_vectors; i++)
        free(model->vectors[i]);
    free(model->vectors);
    free(model->plan.ops);
    free(model->unused);
    nl_checkpoint_close(model->checkpoint);
    nl_config_free(&model->config);
    free(model);
}
