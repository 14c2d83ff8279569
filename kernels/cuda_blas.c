/*
 * cuda_blas.c: the calls of cuBLAS that are in use. The library is large: it is opened at the first prefill,
 * not linked. The emulation has the calls in itself.
 */
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_host.h"

enum { WORKSPACE = 32 << 20 };

#define FUNCTIONS(f)                                                                                         \
    f(cublasCreate_v2) f(cublasDestroy_v2) f(cublasSetStream_v2) f(cublasSetWorkspace_v2)                    \
        f(cublasSetMathMode) f(cublasGemmEx) f(cublasSgemm_v2) f(cublasSgemmStridedBatched)                  \
            f(cublasGemmStridedBatchedEx)

struct nl_cuda_blas {
    void *library;
    cublasHandle_t handle;
    void *workspace;
#define DECLARE(name) __typeof__(&(name)) name##_;
    FUNCTIONS(DECLARE)
};

#ifdef NL_EMU
static int load(struct nl_cuda_blas *blas, struct nl_error *error)
{
    (void)error;
#define TAKE(name) blas->name##_ = name;
    FUNCTIONS(TAKE)
    return 0;
}
#else
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static int load(struct nl_cuda_blas *blas, struct nl_error *error)
{
    const char *name = "libcublas.so." TEXT(CUBLAS_VER_MAJOR);
    blas->library =
        dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* slow to load, never safe to unload */
    if (!blas->library)
        return nl_fail(error, NL_RESOURCE, "cannot load cuBLAS: %s", dlerror());
    bool all = true;
#define FIND(name) all = (*(void **)&blas->name##_ = dlsym(blas->library, #name)) != NULL && all;
    FUNCTIONS(FIND)
    return all ? 0 : nl_fail(error, NL_RESOURCE, "cuBLAS lacks a function that is needed: %s", name);
}
#endif

static int check(struct nl_error *error, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    enum nl_status code = status == CUBLAS_STATUS_ALLOC_FAILED ? NL_RESOURCE : NL_IO;
    return nl_fail(error, code, "cuBLAS failed with status %d: %s", (int)status, what);
}

static int set_up(struct nl_cuda_blas *blas, cudaStream_t stream, struct nl_error *error)
{
    if (load(blas, error) != 0 || check(error, blas->cublasCreate_v2_(&blas->handle), "cublasCreate") != 0)
        return -1;
    blas->workspace = nl_cuda_alloc(WORKSPACE, "cuBLAS's workspace", error);
    if (!blas->workspace ||
        check(error, blas->cublasSetStream_v2_(blas->handle, stream), "cublasSetStream") != 0 ||
        check(error, blas->cublasSetWorkspace_v2_(blas->handle, blas->workspace, WORKSPACE),
              "cublasSetWorkspace") != 0)
        return -1;
    return check(error,
                 blas->cublasSetMathMode_(
                     blas->handle, (cublasMath_t)((int)CUBLAS_DEFAULT_MATH |
                                                  (int)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
                 "cublasSetMathMode");
}

struct nl_cuda_blas *nl_cuda_blas_open(cudaStream_t stream, struct nl_error *error)
{
    struct nl_cuda_blas *blas = calloc(1, sizeof *blas);
    if (!blas) {
        nl_fail_memory(error, "cuBLAS");
        return NULL;
    }
    if (set_up(blas, stream, error) == 0)
        return blas;
    nl_cuda_blas_close(blas);
    return NULL;
}

void nl_cuda_blas_close(struct nl_cuda_blas *blas)
{
    if (!blas)
        return;
    if (blas->handle)
        blas->cublasDestroy_v2_(blas->handle);
    cudaFree(blas->workspace);
    if (blas->library)
        dlclose(blas->library);
    free(blas);
}

/* cuBLAS counts columns first: a row-major [m][n] is its n by m. */
int nl_cuda_blas_linear(struct nl_cuda_blas *blas, float *out, const void *in, const void *weights,
                        enum nl_dtype dtype, uint32_t n, uint32_t rows, uint32_t in_pitch,
                        uint32_t weight_pitch, uint32_t cols, struct nl_error *error)
{
    const float one = 1, zero = 0;
    char what[120];
    snprintf(what, sizeof what, "product of [%u][%u] and [%u][%u]", n, cols, rows, cols);
    if (dtype == NL_F32)
        return check(error,
                     blas->cublasSgemm_v2_(blas->handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)rows, (int)n,
                                           (int)cols, &one, weights, (int)weight_pitch, in, (int)in_pitch,
                                           &zero, out, (int)rows),
                     what);
    return check(error,
                 blas->cublasGemmEx_(blas->handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)rows, (int)n, (int)cols,
                                     &one, weights, CUDA_R_16BF, (int)weight_pitch, in, CUDA_R_16BF,
                                     (int)in_pitch, &zero, out, CUDA_R_32F, (int)rows, CUBLAS_COMPUTE_32F,
                                     CUBLAS_GEMM_DEFAULT),
                 what);
}

int nl_cuda_blas_batch(struct nl_cuda_blas *blas, const struct nl_cuda_products *p, struct nl_error *error)
{
    const float one = 1, zero = 0;
    const cublasOperation_t operation = p->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, a_pitch = (int)p->a_pitch,
              c_pitch = (int)p->c_pitch;
    const int b_pitch = p->transposed ? k : n;
    const long long a_size = (long long)m * a_pitch, b_size = (long long)n * k,
                    c_size = (long long)m * c_pitch;
    char what[120];
    snprintf(what, sizeof what, "%u products of [%u][%u] and %s", p->count, p->m, p->k,
             p->transposed ? "keys" : "values");
    if (!p->halves)
        return check(error,
                     blas->cublasSgemmStridedBatched_(blas->handle, operation, CUBLAS_OP_N, n, m, k, &one,
                                                      p->b, b_pitch, b_size, p->a, a_pitch, a_size, &zero,
                                                      p->c, c_pitch, c_size, (int)p->count),
                     what);
    return check(error,
                 blas->cublasGemmStridedBatchedEx_(blas->handle, operation, CUBLAS_OP_N, n, m, k, &one, p->b,
                                                   CUDA_R_16BF, b_pitch, b_size, p->a, CUDA_R_16BF, a_pitch,
                                                   a_size, &zero, p->c, CUDA_R_32F, c_pitch, c_size,
                                                   (int)p->count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 what);
}
