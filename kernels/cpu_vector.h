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
    const struct nl_matrix *table = &job->op->embed.table;
    size_t begin, end, size = table->dtype == NL_F32 ? 4 : 2;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const uint8_t *from = (const uint8_t *)table->data + job->step->ids[t] * (size_t)table->cols * size;
        float *out = nl_cpu_row(job, job->op->out, t);
        if (table->dtype == NL_F32)
            memcpy(out, from, (size_t)table->cols * 4);
        else
            for (size_t i = 0; i < table->cols; i++)
                out[i] = nl_weight(&(struct nl_matrix){from, table->dtype, 1, table->cols}, i);
    }
}

static void norm_row(float *x, const float *add, const float *weight, float epsilon, size_t width, bool keep,
                     float *out)
{
    vf sum = {0};
    size_t i = 0;
    for (; i + NL_LANES <= width; i += NL_LANES) {
        vf value = add ? load(x + i) + load(add + i) : load(x + i);
        store(out + i, value);
        sum = fma_lanes(value, value, sum);
    }
    if (i < width) {
        vf value = load_part(x + i, width - i);
        if (add)
            value += load_part(add + i, width - i);
        store_part(out + i, value, width - i);
        sum = fma_lanes(value, value, sum);
    }
    if (keep && add)
        memcpy(x, out, width * sizeof *x);
    float factor = 1.0f / sqrtf(sum_lanes(sum) / (float)width + epsilon);
    for (i = 0; i < width; i++)
        out[i] = out[i] * factor * weight[i];
}

static void norm(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    bool at_outputs = op->norm.at_outputs;
    size_t begin, end;
    nl_share(at_outputs ? job->step->n_outputs : job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        size_t from = at_outputs ? job->step->outputs[r] : r;
        norm_row(nl_cpu_row(job, op->in, from),
                 op->norm.add == NL_NO_BUFFER ? NULL : nl_cpu_row(job, op->norm.add, from), op->norm.weight,
                 op->norm.epsilon, job->plan->width[op->in], !at_outputs, nl_cpu_row(job, op->out, r));
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
    size_t half = job->plan->ropes[op->attention.rope].dims / 2, begin, end;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *row = nl_cpu_row(job, op->in, t);
        const float *cosine = job->rotation[op->attention.rope] + t * 2 * half;
        for (size_t h = 0; h < heads + kv; h++)
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

static void gate_row(const float *in, float *out, size_t width)
{
    size_t i = 0;
    for (; i + NL_LANES <= width; i += NL_LANES) {
        vf g = load(in + i);
        store(out + i, g / (1.0f + exp_lanes(-g)) * load(in + width + i));
    }
    if (i < width) {
        vf g = load_part(in + i, width - i);
        store_part(out + i, g / (1.0f + exp_lanes(-g)) * load_part(in + width + i, width - i), width - i);
    }
}

static void gate(const struct nl_cpu_job *job, unsigned thread)
{
    size_t begin, end;
    nl_share(job->step->n_tokens, thread, job->threads, &begin, &end);
    for (size_t t = begin; t < end; t++)
        gate_row(nl_cpu_row(job, job->op->in, t), nl_cpu_row(job, job->op->out, t),
                 job->plan->width[job->op->out]);
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

const struct nl_cpu_kernels NL_KERNELS = {NL_ISA_NAME,
                                          {embed, norm, linear, rope, attention, gate, logits, argmax}};
