/* cpu_avx512.c: the vectorised kernels for x86-64 with AVX-512 F, BW, DQ and VL. */
#if defined __x86_64__
#define NL_LANES    16
#define NL_KERNELS  nl_cpu_avx512
#define NL_ISA_NAME "avx512"
#include "cpu_vector.h"
#else
typedef int nothing_here;
#endif
