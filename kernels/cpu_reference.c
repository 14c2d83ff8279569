/*
 * cpu_reference.c: every operation the plain way, one element after the other, sums in double. The oracle of
 * the fast kernels: it is never optimised. Thread 0 does everything.
 */
#include "cpu.h"

#include <math.h>

static float capped(float x, float cap, bool rounds)
{
    return cap == 0 ? x : nl_rounded(cap * nl_rounded(tanhf(nl_rounded(x / cap, rounds)), rounds), rounds);
}

static void embed(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    uint32_t cols = op->embed.table.cols;
    bool rounds = job->plan->bfloat16;
    for (uint32_t t = 0; thread == 0 && t < job->step->n_tokens; t++)
        for (uint32_t i = 0; i < cols; i++) {
            float value = nl_weight(&op->embed.table, (size_t)job->step->ids[t] * cols + i);
            value = nl_rounded(value * op->embed.scale, rounds);
            if (op->embed.positions.data)
                value += nl_weight(&op->embed.positions, (size_t)job->step->positions[t] * cols + i);
            nl_cpu_row(job, op->out, t)[i] = nl_rounded(value, rounds);
        }
}

struct norm {
    const float *weight, *bias;
    float epsilon;
    bool centred, rounds, round_once;
};

/* In place. */
static void normalise(float *x, uint32_t width, const struct norm *norm)
{
    double mean = 0, square = 0;
    for (uint32_t i = 0; norm->centred && i < width; i++)
        mean += x[i];
    mean /= width;
    for (uint32_t i = 0; i < width; i++)
        square += (x[i] - mean) * (x[i] - mean);
    float factor = 1.0f / sqrtf((float)(square / width) + norm->epsilon);
    for (uint32_t i = 0; i < width; i++) {
        float y = nl_rounded((x[i] - (float)mean) * factor, norm->rounds && !norm->round_once);
        x[i] = nl_rounded(y * norm->weight[i] + (norm->bias ? norm->bias[i] : 0), norm->rounds);
    }
}

static void norm(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    uint32_t width = job->plan->width[op->in];
    uint32_t rows = op->norm.at_outputs ? job->step->n_outputs : job->step->n_tokens;
    bool rounds = job->plan->bfloat16;
    struct norm norm = {op->norm.weight,  op->norm.bias, op->norm.epsilon,
                        op->norm.centred, rounds,        op->norm.round_once};
    for (uint32_t r = 0; thread == 0 && r < rows; r++) {
        uint32_t from = op->norm.at_outputs ? job->step->outputs[r] : r;
        float *x = nl_cpu_row(job, op->in, from), *out = nl_cpu_row(job, op->out, r);
        const float *add = op->norm.add == NL_NO_BUFFER ? NULL : nl_cpu_row(job, op->norm.add, from);
        for (uint32_t i = 0; i < width; i++) {
            float branch = add ? nl_rounded(add[i] * op->norm.add_scale, rounds) : 0;
            float value = add ? nl_rounded(x[i] + branch, rounds) : x[i];
            if (add && !op->norm.at_outputs)
                x[i] = value;
            out[i] = value;
        }
        normalise(out, width, &norm);
    }
}

static void residual(const struct nl_cpu_job *job, unsigned thread)
{
    for (uint32_t t = 0; thread == 0 && t < job->step->n_tokens; t++)
        for (uint32_t i = 0; i < job->plan->width[job->op->in]; i++) {
            float *out = nl_cpu_row(job, job->op->out, t) + i, in = nl_cpu_row(job, job->op->in, t)[i];
            *out += nl_rounded(in * job->op->residual.scale, job->plan->bfloat16);
            *out = nl_rounded(*out, job->plan->bfloat16);
        }
}

static void qk_norm(const struct nl_cpu_job *job, unsigned thread)
{
    for (uint32_t t = 0; thread == 0 && t < job->step->n_tokens; t++)
        for (int p = 0; p < 2; p++) {
            uint32_t width = job->op->qk_norm.part[p].width;
            struct norm norm = {.weight = job->op->qk_norm.part[p].weight,
                                .epsilon = job->op->qk_norm.epsilon,
                                .rounds = job->plan->bfloat16,
                                .round_once = job->op->qk_norm.round_once};
            float *x = nl_cpu_row(job, job->op->in, t) + job->op->qk_norm.part[p].column;
            for (uint32_t g = 0; g < job->op->qk_norm.part[p].count; g++)
                normalise(x + (size_t)g * width, width, &norm);
        }
}

static float dot(const struct nl_matrix *weight, uint32_t row, const float *x)
{
    double sum = 0;
    for (uint32_t k = 0; k < weight->cols; k++)
        sum += (double)nl_weight(weight, (size_t)row * weight->cols + k) * x[k];
    return (float)sum;
}

static void linear(const struct nl_cpu_job *job, unsigned thread)
{
    for (uint32_t s = 0; thread == 0 && s < job->op->linear.n_segments; s++) {
        const struct nl_segment *segment = &job->op->linear.segment[s];
        for (uint32_t t = 0; t < job->step->n_tokens; t++)
            for (uint32_t r = 0; r < segment->weight.rows; r++)
                nl_cpu_row(job, job->op->out, t)[segment->column + r] =
                    nl_rounded(dot(&segment->weight, r, nl_cpu_row(job, job->op->in, t)) +
                                   (segment->bias ? segment->bias[r] : 0),
                               job->plan->bfloat16);
    }
}

/* parts: cosine, sine and products are rounded as well. */
static void rotate(float *head, const float *cosine, const float *sine, uint32_t half, bool rounds,
                   bool parts)
{
    for (uint32_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        float c = nl_rounded(cosine[i], parts), s = nl_rounded(sine[i], parts);
        head[i] = nl_rounded(nl_rounded(a * c, parts) - nl_rounded(b * s, parts), rounds);
        head[i + half] = nl_rounded(nl_rounded(b * c, parts) + nl_rounded(a * s, parts), rounds);
    }
}

static void rope(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    uint32_t dim = op->attention.head_dim, heads = op->attention.n_heads, kv = op->attention.n_kv_heads;
    bool rotates = op->attention.rope != NL_NO_ROPE, rounds = job->plan->bfloat16;
    uint32_t half = rotates ? job->plan->ropes[op->attention.rope].dims / 2 : 0;
    for (uint32_t t = 0; thread == 0 && t < job->step->n_tokens; t++) {
        float *row = nl_cpu_row(job, op->in, t);
        const float *cosine = rotates ? job->rotation[op->attention.rope] + (size_t)t * 2 * half : NULL;
        for (uint32_t h = 0; rotates && h < heads + kv; h++)
            rotate(row + (size_t)h * dim, cosine, cosine + half, half, rounds,
                   rounds && !op->attention.round_once);
        uint32_t position = job->step->positions[t];
        float *keys =
            nl_cpu_block(job, job->step->tables[job->step->slots[t]][position / NL_BLOCK], op->layer);
        for (uint32_t h = 0; h < kv; h++)
            for (uint32_t i = 0; i < dim; i++) {
                size_t at = ((size_t)h * NL_BLOCK + position % NL_BLOCK) * dim + i;
                keys[at] = row[(size_t)(heads + h) * dim + i];
                keys[nl_cpu_half(job->plan) + at] = row[(size_t)(heads + kv + h) * dim + i];
            }
    }
}

static void attend(const struct nl_cpu_job *job, uint32_t t, uint32_t head)
{
    const struct nl_op *op = job->op;
    uint32_t dim = op->attention.head_dim, position = job->step->positions[t];
    uint32_t kv = head / (op->attention.n_heads / op->attention.n_kv_heads);
    uint32_t begin = nl_window_begin(position, op->attention.window);
    const uint32_t *table = job->step->tables[job->step->slots[t]];
    const float *q = nl_cpu_row(job, op->in, t) + (size_t)head * dim;
    float *out = nl_cpu_row(job, op->out, t) + (size_t)head * dim;
    double best = -INFINITY, total = 0;
    bool rounds = job->plan->bfloat16, round_scores = rounds && op->attention.round_scores;
    for (uint32_t i = 0; i < dim; i++)
        out[i] = 0;
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t p = begin; p <= position; p++) {
            const float *k = nl_cpu_block(job, table[p / NL_BLOCK], op->layer) +
                             ((size_t)kv * NL_BLOCK + p % NL_BLOCK) * dim;
            const float *v = k + nl_cpu_half(job->plan);
            double score = 0;
            for (uint32_t i = 0; i < dim; i++)
                score += (double)q[i] * k[i];
            score = nl_rounded(nl_rounded((float)score, round_scores) * op->attention.scale, round_scores);
            score = capped((float)score, op->attention.cap, round_scores);
            if (pass == 0) {
                best = score > best || score != score ? score : best;
                continue;
            }
            double weight = exp(score - best);
            if (pass == 1) {
                total += weight;
                continue;
            }
            weight = round_scores ? weight / total : weight;
            weight = rounds ? nl_rounded((float)weight, true) : weight;
            for (uint32_t i = 0; i < dim; i++)
                out[i] = (float)(out[i] + weight * v[i]);
        }
    for (uint32_t i = 0; i < dim; i++)
        out[i] = nl_rounded((float)(out[i] / (round_scores ? 1 : total)), rounds);
}

static void attention(const struct nl_cpu_job *job, unsigned thread)
{
    for (uint32_t t = 0; thread == 0 && t < job->step->n_tokens; t++)
        for (uint32_t h = 0; h < job->op->attention.n_heads; h++)
            attend(job, t, h);
}

static float gelu_new(float x, bool rounds)
{
    float cube = nl_rounded(nl_rounded(x * x, rounds) * x, rounds);
    float inner = nl_rounded(x + nl_rounded(0.044715f * cube, rounds), rounds);
    float tangent = nl_rounded(tanhf(nl_rounded(0.7978845608028654f * inner, rounds)), rounds);
    return nl_rounded(0.5f * x, rounds) * nl_rounded(1.0f + tangent, rounds);
}

static float activate(enum nl_activation activation, float x, bool rounds)
{
    switch (activation) {
    case NL_SILU:
        return x / (1.0f + expf(-x));
    case NL_GELU_TANH:
        return gelu_new(x, false);
    case NL_GELU_NEW:
        return gelu_new(x, rounds);
    default:
        return 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
    }
}

static void gate(const struct nl_cpu_job *job, unsigned thread)
{
    uint32_t width = job->plan->width[job->op->out];
    bool rounds = job->plan->bfloat16;
    for (uint32_t t = 0; thread == 0 && t < job->step->n_tokens; t++) {
        const float *in = nl_cpu_row(job, job->op->in, t);
        float *out = nl_cpu_row(job, job->op->out, t);
        for (uint32_t i = 0; i < width; i++) {
            float y = nl_rounded(activate(job->op->gate.activation, in[i], rounds), rounds);
            out[i] = job->op->gate.gated ? nl_rounded(y * in[width + i], rounds) : y;
        }
    }
}

static void logits(const struct nl_cpu_job *job, unsigned thread)
{
    const struct nl_op *op = job->op;
    const struct nl_matrix *weight = &op->logits.weight;
    bool rounds = job->plan->bfloat16;
    for (uint32_t o = 0; thread == 0 && o < job->step->n_outputs; o++)
        for (uint32_t r = 0; r < weight->rows; r++) {
            float y = nl_rounded(dot(weight, r, nl_cpu_row(job, op->in, o)), rounds);
            y = nl_rounded(y / op->logits.divisor, rounds);
            job->step->logits[(size_t)o * weight->rows + r] = capped(y, op->logits.cap, rounds);
        }
}

static void argmax(const struct nl_cpu_job *job, unsigned thread)
{
    uint32_t n = job->plan->vocab_size;
    for (uint32_t o = 0; thread == 0 && o < job->step->n_outputs; o++) {
        const float *row = job->step->logits + (size_t)o * n;
        uint32_t best = 0;
        bool nan = false;
        for (uint32_t i = 0; i < n; i++) {
            nan = nan || row[i] != row[i];
            if (row[i] > row[best])
                best = i;
        }
        job->step->best[o] = nan ? NL_BEST_NAN : best;
    }
}

const struct nl_cpu_kernels nl_cpu_reference = {
    "reference",
    {embed, norm, residual, linear, qk_norm, rope, attention, gate, logits, argmax},
    .rounds = true,
};
