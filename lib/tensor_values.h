/*
 * tensor_values.h: what a tensor's values are like: NaN, infinities, smallest, largest, mean.
 *
 * Elements are read as element.h reads them. Both parts of a C64 count as values. F4 is OCP's E2M1 (0, 0.5,
 * 1, 1.5, 2, 3, 4, 6 and their negatives). How safetensors packs the six bits of F6 is not written down:
 * nothing but that these types have neither NaN nor infinity is said of them.
 */
#ifndef NL_TENSOR_VALUES_H
#define NL_TENSOR_VALUES_H

#include <signal.h>

#include "safetensors.h"

struct nl_values {
    uint64_t nan, infinite; /* how many */
    uint64_t finite;        /* how many the rest tells of; 0: nothing */
    double min, max, mean;  /* infinite where a sum of F64 overflows */
};

/* Reads all of a tensor's data; gives up, with what it has, when *signal (which may be NULL) is not 0. */
void nl_values_scan(const struct nl_tensor *, const volatile sig_atomic_t *signal, struct nl_values *);

#endif
