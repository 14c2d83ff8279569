/* Processors that shape the distribution: they look at the logits alone. Named after transformers' classes;
   comments say where the arithmetic follows torch's, since which ids stay may hang on one rounding. */
#include <float.h>
#include <math.h>

#include "sample_chain.h"

static void keep_only(struct nl_row *row, size_t best)
{
    for (size_t i = 0; i < row->n; i++)
        if (i != best)
            row->logits[i] = -INFINITY;
}

static size_t first_best(const struct nl_row *row)
{
    size_t best = 0;
    for (size_t i = 1; i < row->n; i++)
        if (row->logits[i] > row->logits[best])
            best = i;
    return best;
}

/* 0 leaves the best alone: probability 1. So does what float32 cannot tell from 0. */
void nl_apply_temperature(const struct nl_setting *setting, struct nl_row *row)
{
    float temperature = (float)setting->number, max = nl_max(row->logits, row->n), shift = 0;
    if (temperature < FLT_MIN) {
        keep_only(row, first_best(row));
        return;
    }
    if (isfinite(max) && isinf(max / temperature))
        shift = max; /* the same probabilities, out of reach of overflow */
    for (size_t i = 0; i < row->n; i++)
        row->logits[i] = (row->logits[i] - shift) / temperature;
}

static void keep_at_least(struct nl_row *row, float least)
{
    for (size_t i = 0; i < row->n; i++)
        if (row->logits[i] < least)
            row->logits[i] = -INFINITY;
}

/* Ties with the k-th stay. */
void nl_apply_top_k(const struct nl_setting *setting, struct nl_row *row)
{
    if (setting->number < (double)row->n)
        keep_at_least(row, nl_kth_largest(row->logits, row->n, (size_t)setting->number));
}

/*
 * In ascending order of logits, equal ones by id, all go while the cumulative probability is at most 1 - p;
 * the last stays. Ids of less than (1 - p) / n each go without being sorted: all of them together are under
 * the mark.
 */
void nl_apply_top_p(const struct nl_setting *setting, struct nl_row *row)
{
    float mark = (float)(1 - setting->number), *probs = row->floats;
    double cumulative = 0, negligible = 0.999 * (double)mark / (double)row->n;
    nl_softmax(row->logits, row->n, probs);
    size_t n = 0;
    for (size_t i = 0; i < row->n; i++)
        if ((double)probs[i] < negligible) {
            cumulative += (double)probs[i];
            row->logits[i] = -INFINITY;
        } else {
            row->ranked[n++] = nl_rank(row->logits[i], (uint32_t)i);
        }
    nl_sort_ranked(row->ranked, n, row->more_ranked);
    for (size_t i = 0; i + 1 < n; i++) {
        uint32_t id = row->ranked[i].id;
        cumulative += (double)probs[id];
        if ((float)cumulative > mark)
            break;
        row->logits[id] = -INFINITY;
    }
}

void nl_apply_min_p(const struct nl_setting *setting, struct nl_row *row)
{
    float *probs = row->floats;
    nl_softmax(row->logits, row->n, probs);
    float least = (float)setting->number * nl_max(probs, row->n);
    for (size_t i = 0; i < row->n; i++)
        if (probs[i] < least)
            row->logits[i] = -INFINITY;
}

/* Fills floats with the logarithms of the probabilities and more_floats with these; returns the entropy, to
   which an id of no probability adds nothing. */
static float log_softmax(struct nl_row *row)
{
    float *logs = row->floats, *probs = row->more_floats, max = nl_max(row->logits, row->n);
    float sum = (float)nl_weights(row->logits, row->n, probs), log_sum = (float)log((double)sum);
    double entropy = 0;
    for (size_t i = 0; i < row->n; i++) {
        probs[i] /= sum;
        float distance = max < INFINITY ? row->logits[i] - max : row->logits[i] == max ? 0 : -INFINITY;
        logs[i] = distance - log_sum;
        if (probs[i] > 0)
            entropy -= (double)(logs[i] * probs[i]);
    }
    return (float)entropy;
}

/* In ascending order of |-ln p - H| until the mass is reached; ties with the last stay. */
void nl_apply_typical_p(const struct nl_setting *setting, struct nl_row *row)
{
    float entropy = log_softmax(row), *shifted = row->floats, *probs = row->more_floats;
    float mass = (float)setting->number, most = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < row->n; i++) {
        shifted[i] = fabsf(-shifted[i] - entropy);
        if (row->logits[i] > -INFINITY)
            row->ranked[n++] = nl_rank(shifted[i], (uint32_t)i);
    }
    nl_sort_ranked(row->ranked, n, row->more_ranked);
    double cumulative = 0;
    for (size_t i = 0; i < n && (float)cumulative < mass; i++) {
        cumulative += (double)probs[row->ranked[i].id];
        most = shifted[row->ranked[i].id];
    }
    for (size_t i = 0; i < row->n; i++)
        if (shifted[i] > most)
            row->logits[i] = -INFINITY;
}

/* The best stay whatever their probability. */
static void cut_probabilities(struct nl_row *row, const float *probs, float least)
{
    float max = nl_max(row->logits, row->n);
    for (size_t i = 0; i < row->n; i++)
        if (probs[i] < least && row->logits[i] < max)
            row->logits[i] = -INFINITY;
}

void nl_apply_epsilon_cutoff(const struct nl_setting *setting, struct nl_row *row)
{
    nl_softmax(row->logits, row->n, row->floats);
    cut_probabilities(row, row->floats, (float)setting->number);
}

void nl_apply_eta_cutoff(const struct nl_setting *setting, struct nl_row *row)
{
    float epsilon = (float)setting->number, entropy = log_softmax(row);
    float eta = sqrtf(epsilon) * (float)exp(-(double)entropy);
    cut_probabilities(row, row->more_floats, eta < epsilon ? eta : epsilon);
}

/* Keeps what is within n standard deviations (of the finite logits, as a population) of the largest. Source:
   Tang et al., "Top-n sigma: not all logits are you need", 2024, and llama.cpp for what counts. */
void nl_apply_top_n_sigma(const struct nl_setting *setting, struct nl_row *row)
{
    double sum = 0, squares = 0, n = 0;
    for (size_t i = 0; i < row->n; i++)
        if (isfinite(row->logits[i])) {
            sum += (double)row->logits[i];
            n++;
        }
    for (size_t i = 0; i < row->n; i++)
        if (isfinite(row->logits[i])) {
            double distance = (double)row->logits[i] - sum / n;
            squares += distance * distance;
        }
    if (n > 0)
        keep_at_least(row,
                      (float)((double)nl_max(row->logits, row->n) - setting->number * sqrt(squares / n)));
}
