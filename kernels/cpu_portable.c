/* cpu_portable.c: the vectorised kernels for any processor. */
#define NL_LANES    4
#define NL_KERNELS  nl_cpu_portable
#define NL_ISA_NAME "portable"
#include "cpu_vector.h"
