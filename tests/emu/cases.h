/*
 * cases.h: programs for the emulation to judge: kernels that are right and kernels, copies and graphs with
 * one planted mistake each (cases_kernels.cu, cases_host.cpp). test_emu.cpp runs each in a process of its own
 * and knows what is to be seen.
 */
#ifndef CASES_H
#define CASES_H

#include <cuda_runtime_api.h>

enum verdict {
    RIGHT,          /* the same output under every order, with `text` in it */
    DIFFERS,        /* not the same output under every order; TSan sees a race */
    DIFFERS_UNSEEN, /* not the same output under every order, but no race in TSan's eyes */
    DIES,           /* abort() with a message that contains `text` */
    DIES_BY_KEY,    /* the same; runs only where the processor has protection keys */
};

struct test_case {
    const char *name;
    void (*run)();
    verdict expected;
    const char *text;
    const char
        *asan_text; /* under ASan and UBSan: dies with this instead; a case without `text` runs only there */
};

extern const test_case kernel_cases[], host_cases[], blas_cases[]; /* end with a name of NULL */

enum { N = 128 }; /* threads of most kernels, elements of most arrays */

/* Ends the case with a line "NAME of the error" on standard output. */
void check(cudaError_t);
/* [n] floats on the device: 1 / (1 + i). Freed with the process. */
float *device_floats(int n);
/* Writes the bits of what is on the host, or on the device (waits for everything), to standard output. */
void show(const void *, int n_floats);
void show_device(const void *, int n_floats);
/* A line of words on standard output. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Kernels for the host's cases. Each of N threads: out[i] = in[i] * factor + add; and the same with its
   parameters in a structure on the device. */
struct scale_step {
    const float *in;
    float factor;
};
cudaError_t run_scale(float *out, const float *in, float factor, cudaStream_t);
cudaError_t run_scale_by(float *out, const scale_step *step, cudaStream_t);
cudaError_t run_scale_of(float *out, scale_step step, cudaStream_t);

#endif
