/*
 * dequant.h: the element types of GGML, and their blocks turned into float32.
 *
 * A quantised tensor is a row of blocks: each holds a fixed number of elements in a fixed number of bytes,
 * begins anywhere (no alignment) and is little-endian. Layouts and arithmetic are those of ggml-quants.c as
 * the Python package `gguf` (gguf/quants.py) computes them: each product and each sum rounded to float32, in
 * that order.
 */
#ifndef NL_DEQUANT_H
#define NL_DEQUANT_H

#include "base.h"

enum nl_ggml {
    NL_GGML_F32 = 0,
    NL_GGML_F16 = 1,
    NL_GGML_Q4_0 = 2,
    NL_GGML_Q4_1 = 3,
    NL_GGML_Q5_0 = 6,
    NL_GGML_Q5_1 = 7,
    NL_GGML_Q8_0 = 8,
    NL_GGML_Q4_K = 12,
    NL_GGML_Q5_K = 13,
    NL_GGML_Q6_K = 14,
    NL_GGML_BF16 = 30,
};

struct nl_ggml_type {
    const char *name;                                     /* "Q4_K" */
    uint32_t elements;                                    /* of a block, at most NL_GGML_MAX_BLOCK */
    uint32_t bytes;                                       /* of a block */
    void (*dequantize)(const uint8_t *block, float *out); /* out[elements]; NULL: not supported here */
};

enum { NL_GGML_MAX_BLOCK = 256 };

/* By the number in the file; NULL when the number means nothing. */
const struct nl_ggml_type *nl_ggml_type(uint32_t id);
/* out[n_blocks][elements] from blocks[n_blocks][bytes]. The type's `dequantize` is not NULL. */
void nl_dequantize(const struct nl_ggml_type *, const uint8_t *blocks, size_t n_blocks, float *out);

#endif
