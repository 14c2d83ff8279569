/*
 * element.h: the elements of a tensor as doubles.
 *
 * Exact for every type, but 64-bit integers beyond 2^53, which are rounded. F8 types: the OCP formats (E5M2 a
 * half's upper byte, E4M3 without infinities), their FNUZ forms (one zero, 0x80 is NaN, the bias is one
 * more), E8M0 a power of two (0xff is NaN). BOOL: 0 or 1.
 */
#ifndef NL_ELEMENT_H
#define NL_ELEMENT_H

#include "safetensors.h"

/* False for those of less than a byte (F4, F6) and for C64. */
bool nl_element_known(enum nl_dtype dtype);
/* out[count]: the elements from `first` on. The type is known, the range within the tensor. */
void nl_elements(const struct nl_tensor *tensor, uint64_t first, size_t count, double *out);

#endif
