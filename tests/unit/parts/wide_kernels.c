/* The sixteen-lane kernels of AVX-512 compiled for AVX2, as pairs of eight lanes: tested on processors
 * without AVX-512. */
#if defined __AVX2__
#define NL_LANES    16
#define NL_KERNELS  wide_kernels
#define NL_ISA_NAME "wide"
#include "cpu_vector.h"
#else
#include "cpu.h"
const struct nl_cpu_kernels wide_kernels = {"wide", {NULL}};
#endif
