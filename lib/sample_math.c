#include "sample_math.h"

#include <math.h>

float nl_exp(float x)
{
    if (!(x >= -104.0f)) /* under half of the smallest float32 */
        return 0.0f;
    /* x = k ln 2 + r, |r| <= ln 2 / 2; the Taylor series to r^11 leaves less than 2^-41. */
    double value = x, k = rint(value * 0x1.71547652b82fep+0), r = value - k * 0x1.62e42fefa39efp-1;
    static const double terms[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                   1.0 / 5040,     1.0 / 720,     1.0 / 120,    1.0 / 24,
                                   1.0 / 6,        1.0 / 2,       1.0,          1.0};
    double sum = terms[0];
    for (size_t i = 1; i < sizeof terms / sizeof *terms; i++)
        sum = sum * r + terms[i];
    uint64_t bits = (uint64_t)(1023 + (int64_t)k) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return (float)(sum * scale);
}

float nl_max(const float *values, size_t n)
{
    float max = values[0];
    for (size_t i = 1; i < n; i++)
        max = values[i] > max ? values[i] : max;
    return max;
}

double nl_weights(const float *logits, size_t n, float *weights)
{
    float max = nl_max(logits, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        weights[i] = max == INFINITY ? (float)(logits[i] == max) : nl_exp(logits[i] - max);
        sum += (double)weights[i];
    }
    return sum;
}

void nl_softmax(const float *logits, size_t n, float *probs)
{
    float sum = (float)nl_weights(logits, n, probs);
    for (size_t i = 0; i < n; i++)
        probs[i] /= sum;
}

/* Adding 0 makes -0 into 0. */
static uint32_t key_of(float value)
{
    uint32_t bits = nl_bits_of_float(value + 0.0f);
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static float value_of(uint32_t key)
{
    return nl_float_of_bits(key & 0x80000000 ? key & 0x7fffffff : ~key);
}

struct nl_ranked nl_rank(float value, uint32_t id)
{
    return (struct nl_ranked){key_of(value), id};
}

/* 32 bits are taken in digits of 11, 11 and 10 bits. */
enum { RADIX = 2048 };

float nl_kth_largest(const float *values, size_t n, size_t k)
{
    static const unsigned shifts[] = {21, 10, 0};
    uint32_t prefix = 0, known = 0;
    for (int digit = 0; digit < 3; digit++) {
        unsigned shift = shifts[digit];
        uint32_t mask = digit == 2 ? 1023 : RADIX - 1;
        size_t counts[RADIX] = {0};
        for (size_t i = 0; i < n; i++) {
            uint32_t key = key_of(values[i]);
            if ((key & known) == prefix)
                counts[key >> shift & mask]++;
        }
        uint32_t bucket = mask;
        for (; counts[bucket] < k; bucket--)
            k -= counts[bucket];
        prefix |= bucket << shift;
        known |= mask << shift;
    }
    return value_of(prefix);
}

void nl_sort_ranked(struct nl_ranked *items, size_t n, struct nl_ranked *scratch)
{
    struct nl_ranked *from = items, *to = scratch;
    for (unsigned shift = 0; shift < 33; shift += 11) {
        size_t counts[RADIX] = {0}, start = 0;
        for (size_t i = 0; i < n; i++)
            counts[from[i].key >> shift & (RADIX - 1)]++;
        for (size_t bucket = 0; bucket < RADIX; bucket++) {
            size_t count = counts[bucket];
            counts[bucket] = start;
            start += count;
        }
        for (size_t i = 0; i < n; i++)
            to[counts[from[i].key >> shift & (RADIX - 1)]++] = from[i];
        struct nl_ranked *swap = from;
        from = to;
        to = swap;
    }
    memcpy(items, from, n * sizeof *items); /* three passes end in scratch */
}

size_t nl_inverse_transform(const float *weights, size_t n, double total, double u)
{
    double target = u * total, sum = 0;
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (weights[i] <= 0)
            continue;
        sum += (double)weights[i];
        last = i;
        if (sum > target)
            break;
    }
    return last; /* also where u * total rounded up to the total */
}
