/*
 * cpu_vector.h: the vectorised kernels. Included once by each file that stands for an instruction set, which
 * defines NL_LANES (floats in a vector), NL_KERNELS (the name of the set) and NL_ISA_NAME, and is compiled
 * for that instruction set.
 */
#include "cpu.h"
#include "cpu_simd.h"

#include <math.h>

#include "cpu_linear.h"

#include "cpu_attention.h"

static void embed(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    size_t begin, end, cols = op->embed.table.cols;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *out = nl_cpu_row(job, op->out, t);
        for (size_t i = 0; i < cols; i++)
            out[i] = nl_weight(&op->embed.table, job->step->ids[t] * cols + i) * op->embed.scale;
        for (size_t i = 0; op->embed.positions.data && i < cols; i++)
            out[i] += nl_weight(&op->embed.positions, job->step->positions[t] * cols + i);
    }
}

/* The sum of (x - shift)^2. */
static float sum_squares(const float *x, float shift, size_t width)
{
    vf sum = {0};
    size_t i = 0;
    for (; i + NL_LANES <= width; i += NL_LANES) {
        vf value = load(x + i) - shift;
        sum = fma_lanes(value, value, sum);
    }
    if (i < width) {
        vf value = load_part(x + i, width - i) - shift;
        float part[NL_LANES] = {0};
        store_part(part, value, width - i);
        sum = fma_lanes(load(part), load(part), sum);
    }
    return sum_lanes(sum);
}

static float sum_row(const float *x, size_t width)
{
    vf sum = {0};
    size_t i = 0;
    for (; i + NL_LANES <= width; i += NL_LANES)
        sum += load(x + i);
    if (i < width)
        sum += load_part(x + i, width - i);
    return sum_lanes(sum);
}

/* In place. */
static void normalise(float *restrict x, size_t width, const float *weight, const float *bias, float epsilon,
                      bool centred)
{
    float mean = centred ? sum_row(x, width) / (float)width : 0;
    float factor = 1.0f / sqrtf(sum_squares(x, mean, width) / (float)width + epsilon);
    if (bias)
        for (size_t i = 0; i < width; i++)
            x[i] = (x[i] - mean) * factor * weight[i] + bias[i];
    else
        for (size_t i = 0; i < width; i++)
            x[i] = (x[i] - mean) * factor * weight[i];
}

static void add_row(float *restrict x, const float *restrict add, float scale, size_t width)
{
    for (size_t i = 0; i < width; i++)
        x[i] += add[i] * scale;
}

static void norm(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    bool at_outputs = op->norm.at_outputs;
    size_t begin, end, width = job->plan->width[op->in];
    nl_share(at_outputs ? job->step->n_outputs : job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        size_t from = at_outputs ? job->step->outputs[r] : r;
        float *x = nl_cpu_row(job, op->in, from), *out = nl_cpu_row(job, op->out, r);
        const float *add = op->norm.add == NL_NO_BUFFER ? NULL : nl_cpu_row(job, op->norm.add, from);
        if (add && !at_outputs)
            add_row(x, add, op->norm.add_scale, width);
        if (out != x)
            memcpy(out, x, width * sizeof *out);
        if (add && at_outputs)
            add_row(out, add, op->norm.add_scale, width);
        normalise(out, width, op->norm.weight, op->norm.bias, op->norm.epsilon, op->norm.centred);
    }
}

static void residual(const struct nl_cpu_job *job, unsigned thread)
{
    size_t begin, end;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++)
        add_row(nl_cpu_row(job, job->op->out, t), nl_cpu_row(job, job->op->in, t), job->op->residual.scale,
                job->plan->width[job->op->in]);
}

static void qk_norm(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    size_t begin, end;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++)
        for (int p = 0; p < 2; p++) {
            float *x = nl_cpu_row(job, op->in, t) + op->qk_norm.part[p].column;
            size_t width = op->qk_norm.part[p].width;
            for (uint32_t g = 0; g < op->qk_norm.part[p].count; g++)
                normalise(x + g * width, width, op->qk_norm.part[p].weight, NULL, op->qk_norm.epsilon, false);
        }
}

/* Products and sums are rounded one by one, as in the reference. */
static void rotate(float *restrict head, const float *cosine, const float *sine, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = a * cosine[i] - b * sine[i];
        head[i + half] = b * cosine[i] + a * sine[i];
    }
}

static void rope(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    size_t dim = op->attention.head_dim, heads = op->attention.n_heads, kv = op->attention.n_kv_heads;
    bool rotates = op->attention.rope != NL_NO_ROPE;
    size_t half = rotates ? job->plan->ropes[op->attention.rope].dims / 2 : 0, begin, end;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *row = nl_cpu_row(job, op->in, t);
        const float *cosine = rotates ? job->rotation[op->attention.rope] + t * 2 * half : NULL;
        for (size_t h = 0; rotates && h < heads + kv; h++)
            rotate(row + h * dim, cosine, cosine + half, half);
        uint32_t position = job->step->positions[t];
        float *keys =
            nl_cpu_block(job, job->step->tables[job->step->slots[t]][position / NL_BLOCK], op->layer);
        for (size_t h = 0; h < kv; h++) {
            float *key = keys + (h * NL_BLOCK + position % NL_BLOCK) * dim;
            memcpy(key, row + (heads + h) * dim, dim * sizeof *key);
            memcpy(key + nl_cpu_half(job->plan), row + (heads + kv + h) * dim, dim * sizeof *key);
        }
    }
}

ALWAYS vf activate(enum nl_activation activation, vf x)
{
    if (activation == NL_SILU)
        return x / (1.0f + exp_lanes(-x));
    if (activation == NL_GELU_TANH)
        return 0.5f * x * (1.0f + tanh_lanes(0.7978845608028654f * (x + 0.044715f * (x * x * x))));
    vf y = x;
    for (int i = 0; i < NL_LANES; i++)
        y[i] = erff(x[i] * 0.7071067811865476f);
    return 0.5f * x * (1.0f + y);
}

ALWAYS void gate_row(enum nl_activation activation, bool gated, const float *in, float *out, size_t width)
{
    size_t i = 0;
    for (; i + NL_LANES <= width; i += NL_LANES) {
        vf value = activate(activation, load(in + i));
        store(out + i, gated ? value * load(in + width + i) : value);
    }
    if (i < width) {
        vf value = activate(activation, load_part(in + i, width - i));
        store_part(out + i, gated ? value * load_part(in + width + i, width - i) : value, width - i);
    }
}

static void gate(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    size_t begin, end, width = job->plan->width[op->out];
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const float *in = nl_cpu_row(job, op->in, t);
        float *out = nl_cpu_row(job, op->out, t);
        if (op->gate.activation == NL_SILU)
            gate_row(NL_SILU, op->gate.gated, in, out, width);
        else if (op->gate.activation == NL_GELU_TANH || op->gate.activation == NL_GELU_NEW)
            gate_row(NL_GELU_TANH, op->gate.gated, in, out, width);
        else
            gate_row(NL_GELU_ERF, op->gate.gated, in, out, width);
    }
}

static void argmax(const struct nl_cpu_job *job, unsigned thread)
{
    size_t n = job->plan->vocab_size;
    for (size_t o = thread; o < job->step->n_outputs; o += job->threads) {
        const float *row = job->step->logits + o * n;
        float best = row[0];
        bool nan = false;
        for (size_t i = 0; i < n; i++) {
            best = row[i] > best ? row[i] : best;
            nan |= row[i] != row[i];
        }
        uint32_t id = 0;
        while (!nan && row[id] != best)
            id++;
        job->step->best[o] = nan ? NL_BEST_NAN : id;
    }
}

const struct nl_cpu_kernels NL_KERNELS = {
    NL_ISA_NAME,
    {embed, norm, residual, linear, qk_norm, rope, attention, gate, logits, argmax},
    .rounds = false,
};
