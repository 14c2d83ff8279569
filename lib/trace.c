#include "trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "safetensors_write.h"

/* The tensors of a layer that are kept; attention's probabilities are computed when they are written. */
enum part { PART_Q, PART_K, PART_V, PART_Q_ROPE, PART_K_ROPE, PART_HEADS, PART_ATTENTION, PART_MLP, N_PARTS };
static const char *const part_names[] = {
    "q", "k", "v", "q_rope", "k_rope", "heads", "attention_output", "mlp_output"};

struct rows {
    float *data;           /* [capacity][width] */
    uint32_t width, heads; /* heads: 0, or width = heads * head_dim */
};

struct nl_trace {
    const struct nl_model *model;   /* NULL before the first reserve */
    struct rows *rows;              /* hidden_states.0 ... L, logits, then the parts of each layer */
    const struct nl_op **attention; /* [n_layers] */
    size_t n_rows;
    uint32_t *ids; /* [capacity] */
    uint32_t capacity, length;
    const struct nl_step *step; /* the running one */
};

struct nl_trace *nl_trace_new(struct nl_error *error)
{
    struct nl_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        nl_fail_memory(error, "trace");
    return trace;
}

void nl_trace_free(struct nl_trace *trace)
{
    if (!trace)
        return;
    for (size_t i = 0; trace->rows && i < trace->n_rows; i++)
        free(trace->rows[i].data);
    free(trace->rows);
    free(trace->attention);
    free(trace->ids);
    free(trace);
}

uint32_t nl_trace_length(const struct nl_trace *trace)
{
    return trace->length;
}

static struct rows *hidden_states(const struct nl_trace *trace, uint32_t index)
{
    return &trace->rows[index];
}
static struct rows *logits_rows(const struct nl_trace *trace)
{
    return &trace->rows[trace->model->config.n_layers + 1];
}
static struct rows *layer_rows(const struct nl_trace *trace, uint32_t layer, enum part part)
{
    return &trace->rows[trace->model->config.n_layers + 2 + (size_t)layer * N_PARTS + part];
}

static void set_widths(struct nl_trace *trace)
{
    const struct nl_config *c = &trace->model->config;
    for (uint32_t i = 0; i <= c->n_layers; i++)
        hidden_states(trace, i)->width = c->hidden_size;
    logits_rows(trace)->width = c->vocab_size;
    for (uint32_t layer = 0; layer < c->n_layers; layer++)
        for (int part = 0; part < N_PARTS; part++) {
            struct rows *rows = layer_rows(trace, layer, part);
            bool of_k = part == PART_K || part == PART_V || part == PART_K_ROPE;
            if (part != PART_ATTENTION && part != PART_MLP)
                rows->heads = of_k ? c->n_kv_heads : c->n_heads;
            rows->width = rows->heads ? rows->heads * c->head_dim : c->hidden_size;
        }
}

static int set_model(struct nl_trace *trace, const struct nl_model *model, struct nl_error *error)
{
    uint32_t n_layers = model->config.n_layers;
    trace->n_rows = (size_t)n_layers + 2 + (size_t)n_layers * N_PARTS;
    trace->rows = calloc(trace->n_rows, sizeof *trace->rows);
    trace->attention = calloc((size_t)n_layers + 1, sizeof *trace->attention);
    if (!trace->rows || !trace->attention)
        return nl_fail_memory(error, "trace");
    trace->model = model;
    set_widths(trace);
    for (size_t i = 0; i < model->plan.n_ops; i++)
        if (model->plan.ops[i].kind == NL_OP_ATTENTION)
            trace->attention[model->plan.ops[i].layer] = &model->plan.ops[i];
    return 0;
}

/* Bytes of one position in all tensors. */
static uint64_t row_bytes(const struct nl_trace *trace)
{
    uint64_t floats = 1;
    for (size_t i = 0; i < trace->n_rows; i++)
        floats += trace->rows[i].width;
    return floats * sizeof(float);
}

int nl_trace_reserve(struct nl_trace *trace, const struct nl_model *model, uint32_t length,
                     struct nl_error *error)
{
    if (!trace->model && set_model(trace, model, error) != 0)
        return -1;
    if (length <= trace->capacity)
        return 0;
    /* Doubled where ids come one by one, as long as that is little. */
    uint64_t each = row_bytes(trace), have = trace->capacity, capacity = length, need;
    uint64_t available = nl_memory_available();
    if (have > 0 && nl_mul(each, 2 * have, &need) && need < available / 4 && 2 * have > capacity)
        capacity = 2 * have;
    if (!nl_mul(each, capacity - have, &need) || need > available || capacity > UINT32_MAX)
        return nl_fail(error, NL_RESOURCE,
                       "not enough memory for a trace of %u ids: %" PRIu64 " MB are needed, %" PRIu64
                       " MB are available",
                       length, each * (capacity - have) >> 20, available >> 20);
    for (size_t i = 0; i < trace->n_rows; i++) {
        float *data = realloc(trace->rows[i].data, capacity * trace->rows[i].width * sizeof *data);
        if (!data)
            return nl_fail_memory(error, "trace");
        trace->rows[i].data = data;
    }
    uint32_t *ids = realloc(trace->ids, capacity * sizeof *ids);
    if (!ids)
        return nl_fail_memory(error, "trace");
    trace->ids = ids;
    trace->capacity = (uint32_t)capacity;
    return 0;
}

static void begin_step(void *context, const struct nl_step *step)
{
    struct nl_trace *trace = context;
    trace->step = step;
    for (uint32_t t = 0; t < step->n_tokens; t++)
        trace->ids[step->positions[t]] = step->ids[t];
}

/* Keeps columns [column, column + width) of every row of a buffer of `stride` columns. */
static void keep(struct nl_trace *trace, struct rows *rows, const float *buffer, uint32_t column,
                 uint32_t stride)
{
    for (uint32_t t = 0; t < trace->step->n_tokens; t++)
        memcpy(rows->data + (size_t)trace->step->positions[t] * rows->width,
               buffer + (size_t)t * stride + column, rows->width * sizeof(float));
}

/* The same of what has a row only for each output. */
static void keep_outputs(struct nl_trace *trace, struct rows *rows, const float *buffer)
{
    for (uint32_t o = 0; o < trace->step->n_outputs; o++)
        memcpy(rows->data + (size_t)trace->step->positions[trace->step->outputs[o]] * rows->width,
               buffer + (size_t)o * rows->width, rows->width * sizeof(float));
}

static void keep_heads(struct nl_trace *trace, uint32_t layer, bool rotated, const float *qkv)
{
    struct rows *q = layer_rows(trace, layer, rotated ? PART_Q_ROPE : PART_Q);
    struct rows *k = layer_rows(trace, layer, rotated ? PART_K_ROPE : PART_K);
    uint32_t stride = trace->model->plan.width[NL_BUF_QKV];
    keep(trace, q, qkv, 0, stride);
    keep(trace, k, qkv, q->width, stride);
    if (!rotated)
        keep(trace, layer_rows(trace, layer, PART_V), qkv, q->width + k->width, stride);
}

/* A layer's first operation adds the branch of the layer before to the stream. */
static bool begins_layer(const struct nl_op *op)
{
    return op->layer > 0 && op[-1].layer < op->layer;
}

static void see(void *context, const struct nl_op *op, float *const *buffers)
{
    struct nl_trace *trace = context;
    const struct nl_config *c = &trace->model->config;
    uint32_t layer = (uint32_t)op->layer;
    if (op->kind == NL_OP_EMBED || begins_layer(op))
        keep(trace, hidden_states(trace, op->kind == NL_OP_EMBED ? 0 : layer), buffers[NL_BUF_STREAM], 0,
             c->hidden_size);
    if (op->kind == NL_OP_NORM && op->norm.at_outputs)
        keep_outputs(trace, hidden_states(trace, c->n_layers), buffers[op->out]);
    else if ((op->kind == NL_OP_LINEAR || op->kind == NL_OP_QK_NORM) && op->out == NL_BUF_QKV)
        keep_heads(trace, layer, false, buffers[NL_BUF_QKV]);
    else if (op->kind == NL_OP_ROPE)
        keep_heads(trace, layer, true, buffers[NL_BUF_QKV]);
    else if (op->kind == NL_OP_ATTENTION)
        keep(trace, layer_rows(trace, layer, PART_HEADS), buffers[op->out], 0,
             trace->model->plan.width[op->out]);
    else if (op->kind == NL_OP_LINEAR && op->out == NL_BUF_BRANCH)
        keep(trace, layer_rows(trace, layer, op->in == NL_BUF_HEADS ? PART_ATTENTION : PART_MLP),
             buffers[NL_BUF_BRANCH], 0, c->hidden_size);
}

/* A device brings the logits to the host last. */
static void end_step(void *context, const struct nl_step *step)
{
    struct nl_trace *trace = context;
    keep_outputs(trace, logits_rows(trace), step->logits);
    uint32_t end = step->positions[step->n_tokens - 1] + 1;
    trace->length = end > trace->length ? end : trace->length;
}

struct nl_observer nl_trace_observer(struct nl_trace *trace)
{
    return (struct nl_observer){.seen = see, .begin = begin_step, .end = end_step, .context = trace};
}

/* The probabilities of one head at one position: out[T]. */
static void probabilities(const struct nl_trace *trace, uint32_t layer, uint32_t head, uint32_t position,
                          float *out)
{
    const struct nl_op *op = trace->attention[layer];
    const struct rows *qs = layer_rows(trace, layer, PART_Q_ROPE),
                      *ks = layer_rows(trace, layer, PART_K_ROPE);
    uint32_t dim = op->attention.head_dim, group = op->attention.n_heads / op->attention.n_kv_heads;
    const float *q = qs->data + (size_t)position * qs->width + (size_t)head * dim;
    uint32_t begin = position < op->attention.window ? 0 : position + 1 - op->attention.window;
    float cap = op->attention.cap, best = -INFINITY, total = 0;
    memset(out, 0, trace->length * sizeof *out);
    for (uint32_t p = begin; p <= position; p++) {
        const float *k = ks->data + (size_t)p * ks->width + (size_t)(head / group) * dim;
        float score = 0;
        for (uint32_t i = 0; i < dim; i++)
            score += q[i] * k[i];
        score *= op->attention.scale;
        out[p] = cap == 0 ? score : cap * tanhf(score / cap);
        best = out[p] > best ? out[p] : best;
    }
    for (uint32_t p = begin; p <= position; p++)
        total += out[p] = expf(out[p] - best);
    for (uint32_t p = begin; p <= position; p++)
        out[p] /= total;
}

static int write_attention(const struct nl_trace *trace, struct nl_st_writer *writer, uint32_t layer,
                           struct nl_error *error)
{
    float row[NL_TRACE_ATTENTION];
    for (uint32_t head = 0; head < trace->attention[layer]->attention.n_heads; head++)
        for (uint32_t position = 0; position < trace->length; position++) {
            probabilities(trace, layer, head, position, row);
            if (nl_st_writer_add(writer, row, trace->length * sizeof *row, error) != 0)
                return -1;
        }
    return 0;
}

static int write_ids(const struct nl_trace *trace, struct nl_st_writer *writer, struct nl_error *error)
{
    for (uint32_t t = 0; t < trace->length; t++) {
        uint64_t id = trace->ids[t];
        if (nl_st_writer_add(writer, &id, sizeof id, error) != 0)
            return -1;
    }
    return 0;
}

/* What is to be written: an entry, and where its bytes come from. */
struct output {
    char name[64];
    struct nl_st_entry entry;
    const struct rows *rows; /* NULL: the ids, or the attention of a layer */
    uint32_t layer;
};

static void add_rows(const struct nl_trace *trace, struct output *out, const struct rows *rows)
{
    out->rows = rows;
    out->entry = (struct nl_st_entry){.dtype = NL_F32, .rank = 2, .shape = {trace->length, rows->width}};
    if (rows->heads) {
        out->entry.rank = 3;
        out->entry.shape[1] = rows->heads;
        out->entry.shape[2] = rows->width / rows->heads;
    }
}

static size_t list_outputs(const struct nl_trace *trace, struct output *outputs)
{
    const struct nl_config *c = &trace->model->config;
    struct output *out = outputs;
    snprintf(out->name, sizeof out->name, "ids");
    out++->entry = (struct nl_st_entry){.dtype = NL_I64, .rank = 1, .shape = {trace->length}};
    for (uint32_t i = 0; i <= c->n_layers; i++, out++) {
        snprintf(out->name, sizeof out->name, "hidden_states.%u", i);
        add_rows(trace, out, hidden_states(trace, i));
    }
    snprintf(out->name, sizeof out->name, "logits");
    add_rows(trace, out++, logits_rows(trace));
    for (uint32_t layer = 0; layer < c->n_layers; layer++) {
        for (int part = 0; part < N_PARTS; part++, out++) {
            snprintf(out->name, sizeof out->name, "layers.%u.%s", layer, part_names[part]);
            add_rows(trace, out, layer_rows(trace, layer, part));
        }
        if (trace->length > NL_TRACE_ATTENTION)
            continue;
        snprintf(out->name, sizeof out->name, "layers.%u.attention", layer);
        out->layer = layer;
        out++->entry = (struct nl_st_entry){
            .dtype = NL_F32, .rank = 3, .shape = {c->n_heads, trace->length, trace->length}};
    }
    return (size_t)(out - outputs);
}

/* In the order of the file: as nl_st_sort puts their entries, larger types first, then by name. */
static int by_place(const void *a, const void *b)
{
    const struct output *x = a, *y = b;
    if (x->entry.dtype != y->entry.dtype)
        return x->entry.dtype > y->entry.dtype ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int write_outputs(const struct nl_trace *trace, struct nl_st_writer *writer,
                         const struct output *outputs, size_t count, struct nl_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct output *out = &outputs[i];
        int result;
        if (out->rows)
            result = nl_st_writer_add(writer, out->rows->data,
                                      (size_t)trace->length * out->rows->width * sizeof(float), error);
        else if (out->entry.dtype == NL_I64)
            result = write_ids(trace, writer, error);
        else
            result = write_attention(trace, writer, out->layer, error);
        if (result != 0)
            return -1;
    }
    return nl_st_writer_finish(writer, error);
}

int nl_trace_write(const struct nl_trace *trace, int fd, const char *name, struct nl_error *error)
{
    if (trace->length == 0)
        return nl_fail(error, NL_DATA, "nothing to trace: no id went through the model");
    size_t room = trace->n_rows + 1 + trace->model->config.n_layers;
    struct output *outputs = calloc(room, sizeof *outputs);
    struct nl_st_entry *entries = calloc(room, sizeof *entries);
    int result = outputs && entries ? 0 : nl_fail_memory(error, "trace");
    if (result == 0) {
        size_t count = list_outputs(trace, outputs);
        qsort(outputs, count, sizeof *outputs, by_place);
        for (size_t i = 0; i < count; i++) {
            outputs[i].entry.name = outputs[i].name;
            entries[i] = outputs[i].entry;
        }
        struct nl_st_writer writer;
        result = nl_st_writer_start(&writer, fd, name, entries, count, error);
        if (result == 0)
            result = write_outputs(trace, &writer, outputs, count, error);
    }
    free(outputs);
    free(entries);
    return result;
}
