#include "tensor_values.h"

#include <math.h>

#include "element.h"

enum { CHUNK = 4096 };

/* A sum in two doubles, so that a mean of billions keeps its digits. */
struct sum {
    double sum, rest;
};

static void add(struct sum *sum, double value)
{
    double next = sum->sum + value;
    double lost = fabs(sum->sum) >= fabs(value) ? (sum->sum - next) + value : (value - next) + sum->sum;
    if (isfinite(lost))
        sum->rest += lost;
    sum->sum = next;
}

static void take(struct nl_values *values, struct sum *sum, double value)
{
    if (isnan(value)) {
        values->nan++;
    } else if (isinf(value)) {
        values->infinite++;
    } else {
        if (values->finite++ == 0)
            values->min = values->max = value;
        values->min = value < values->min ? value : values->min;
        values->max = value > values->max ? value : values->max;
        add(sum, value);
    }
}

static double of_f4(unsigned bits)
{
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return bits & 8 ? -magnitudes[bits & 7] : magnitudes[bits & 7];
}

static void scan_f4(const struct nl_tensor *tensor, struct nl_values *values, struct sum *sum)
{
    for (uint64_t i = 0; i < tensor->end - tensor->begin; i++) {
        take(values, sum, of_f4(tensor->data[i] & 15));
        take(values, sum, of_f4(tensor->data[i] >> 4));
    }
}

void nl_values_scan(const struct nl_tensor *tensor, const volatile sig_atomic_t *signal,
                    struct nl_values *values)
{
    double chunk[CHUNK];
    struct nl_tensor view = *tensor;
    struct sum sum = {0};
    *values = (struct nl_values){0};
    if (tensor->begin == tensor->end)
        return;
    if (tensor->dtype == NL_C64) {
        view.dtype = NL_F32;
        view.elements *= 2;
    }
    if (view.dtype == NL_F4)
        scan_f4(&view, values, &sum);
    for (uint64_t at = 0; nl_element_known(view.dtype) && at < view.elements && !(signal && *signal);) {
        size_t count = view.elements - at < CHUNK ? (size_t)(view.elements - at) : CHUNK;
        nl_elements(&view, at, count, chunk);
        for (size_t i = 0; i < count; i++)
            take(values, &sum, chunk[i]);
        at += count;
    }
    if (values->finite)
        values->mean = (sum.sum + sum.rest) / (double)values->finite;
}
