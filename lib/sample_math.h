/*
 * sample_math.h: the arithmetic under the samplers: softmax, selection, sorting, the inverse transform.
 */
#ifndef NL_SAMPLE_MATH_H
#define NL_SAMPLE_MATH_H

#include "base.h"

/* exp(x) for x <= 0, computed in double and rounded once: 0.501 ulp, the same bits on every machine.
   0 for NaN. */
float nl_exp(float x);

/* The largest of values[0..n), n > 0, none NaN. */
float nl_max(const float *values, size_t n);

/* weights[i] = exp(logits[i] - max), exact 0 for -infinity; where the maximum is +infinity, 1 for each that
   is +infinity and else 0. Returns their sum in double. The maximum must not be -infinity, no logit NaN. */
double nl_weights(const float *logits, size_t n, float *weights);

/* probs[i] = weight / sum, all in float32 but the sum, which is rounded once. */
void nl_softmax(const float *logits, size_t n, float *probs);

/* The k-th largest value, 1 <= k <= n, by radix selection: O(n) whatever the values. */
float nl_kth_largest(const float *values, size_t n, size_t k);

struct nl_ranked {
    uint32_t key; /* made by nl_rank: orders as the floats do, -0 equal to 0 */
    uint32_t id;
};
struct nl_ranked nl_rank(float value, uint32_t id);
/* Sorts by key, ascending, stable (equal keys keep their order); `scratch` holds n more. */
void nl_sort_ranked(struct nl_ranked *items, size_t n, struct nl_ranked *scratch);

/* The first index whose cumulative weight exceeds u * total, for u in [0, 1); never one of weight 0. At least
   one weight must be positive, and `total` the sum of all as nl_weights returns it. */
size_t nl_inverse_transform(const float *weights, size_t n, double total, double u);

#endif
