/* cpu_avx2.c: the vectorised kernels for x86-64 with AVX2, FMA and F16C. */
#if defined __x86_64__
#define NL_LANES    8
#define NL_KERNELS  nl_cpu_avx2
#define NL_ISA_NAME "avx2"
#include "cpu_vector.h"
#else
typedef int nothing_here;
#endif
