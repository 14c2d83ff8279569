/*
 * The entries of cuBLAS in use. A product is an operation of the handle's stream, like a kernel. Sums are
 * float32 in 16 parts along k: not cuBLAS's own order, which is not documented.
 */
#include <algorithm>
#include <cstring>
#include <vector>

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "emu.h"
#include "emu_memory.h"
#include "emu_runtime.h"
#include "emu_stream.h"

struct cublasContext {
    cudaStream_t stream;
    bool workspace;
};

namespace emu
{

enum { PART = 16, ROWS = 32, COLUMNS = 4 };
typedef float part __attribute__((vector_size(PART * sizeof(float)), aligned(4), may_alias));

/* A column-major matrix, or a batch of them. */
struct operand {
    char *data;
    cudaDataType_t type;
    cublasOperation_t operation;
    int64_t leading;
    long long stride; /* elements from one of the batch to the next */
};

struct product {
    int64_t m, n, k;
    int batch;
    float alpha, beta;
    operand a, b, c;
};

static size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

static float load(const char *data, cudaDataType_t type, size_t i)
{
    if (type == CUDA_R_32F)
        return reinterpret_cast<const float *>(data)[i];
    if (type == CUDA_R_16BF)
        return __bfloat162float(reinterpret_cast<const __nv_bfloat16 *>(data)[i]);
    return __half2float(reinterpret_cast<const __half *>(data)[i]);
}

/* Lines `first` to `first + n` of op(X), each of k elements one after the other, zeros up to a multiple of
   PART: rows of A (along = OP_T) or columns of B (along = OP_N). */
static void gather(std::vector<float> &out, const operand &x, const char *data, cublasOperation_t along,
                   int64_t first, int64_t n, int64_t k)
{
    int64_t padded = (k + PART - 1) / PART * PART;
    out.assign(size_t(n * padded), 0.0f);
    for (int64_t line = 0; line < n; line++) {
        float *to = out.data() + line * padded;
        for (int64_t i = 0; i < k; i++)
            to[i] = load(
                data, x.type,
                size_t(x.operation == along ? (first + line) * x.leading + i : i * x.leading + first + line));
    }
}

/* sum[c] = row . column c, for COLUMNS of them */
static void dot(const float *row, const float *columns, int64_t padded, float *sum)
{
    part sums[COLUMNS] = {};
    for (int64_t i = 0; i < padded; i += PART) {
        part r = *reinterpret_cast<const part *>(row + i);
        for (int c = 0; c < COLUMNS; c++)
            sums[c] += r * *reinterpret_cast<const part *>(columns + c * padded + i);
    }
    for (int c = 0; c < COLUMNS; c++) {
        sum[c] = 0;
        for (int i = 0; i < PART; i++)
            sum[c] += sums[c][i];
    }
}

static void multiply(const product &p, const char *a, const char *b, float *c)
{
    std::vector<float> columns, rows;
    int64_t padded = (p.k + PART - 1) / PART * PART, all = (p.n + COLUMNS - 1) / COLUMNS * COLUMNS;
    gather(columns, p.b, b, CUBLAS_OP_N, 0, p.n, p.k);
    columns.resize(size_t(all * padded));
    for (int64_t first = 0; first < p.m; first += ROWS) {
        int64_t n_rows = std::min(p.m - first, int64_t(ROWS));
        gather(rows, p.a, a, CUBLAS_OP_T, first, n_rows, p.k);
        for (int64_t j = 0; j < all; j += COLUMNS) {
            for (int64_t i = 0; i < n_rows; i++) {
                float sum[COLUMNS];
                dot(rows.data() + i * padded, columns.data() + j * padded, padded, sum);
                for (int64_t q = 0; q < COLUMNS && j + q < p.n; q++) {
                    float *to = c + (j + q) * p.c.leading + first + i;
                    /* beta 0: what is there may be NaN and is not read */
                    *to = p.alpha * sum[q] + (p.beta != 0 ? p.beta * *to : 0.0f);
                }
            }
        }
    }
}

static void run_product(const product &p)
{
    if (device_status() != cudaSuccess)
        return;
    for (int i = 0; i < p.batch; i++)
        multiply(p, p.a.data + i * p.a.stride * (long long)size_of(p.a.type),
                 p.b.data + i * p.b.stride * (long long)size_of(p.b.type),
                 reinterpret_cast<float *>(p.c.data) + i * p.c.stride);
    device_check("a product of cuBLAS");
}

/* Whether the whole operand, `lines` of the leading dimension, is on the device. */
static bool on_device(const product &p, const operand &x, int64_t length, int64_t lines)
{
    if (length == 0 || lines == 0)
        return true;
    int64_t elements = (lines - 1) * x.leading + length + (p.batch - 1) * x.stride;
    return in_device(x.data, size_t(elements) * size_of(x.type));
}

static cublasStatus_t check(const product &p, int compute)
{
    bool a_plain = p.a.operation == CUBLAS_OP_N, b_plain = p.b.operation == CUBLAS_OP_N;
    int64_t a_length = a_plain ? p.m : p.k, b_length = b_plain ? p.k : p.n;
    auto least = [](int64_t length) { return length > 1 ? length : 1; };
    if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0 || p.a.leading < least(a_length) ||
        p.b.leading < least(b_length) || p.c.leading < least(p.m))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool known = p.a.type == CUDA_R_32F || p.a.type == CUDA_R_16BF || p.a.type == CUDA_R_16F;
    if (!known || p.a.type != p.b.type || p.c.type != CUDA_R_32F ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p.batch > 0 && (!on_device(p, p.a, a_length, a_plain ? p.k : p.m) ||
                        !on_device(p, p.b, b_length, b_plain ? p.n : p.k) || !on_device(p, p.c, p.m, p.n)))
        fail({nullptr, 0}, "cuBLAS product m %ld n %ld k %ld batch %d: an operand leaves its allocation",
             long(p.m), long(p.n), long(p.k), p.batch);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t start(cublasHandle_t handle, const product &p, int compute)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (enter() != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (cublasStatus_t status = check(p, compute))
        return status;
    cudaStream_t s = stream_of(handle->stream);
    if (!s)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (s->capturing && !handle->workspace)
        fail({nullptr, 0}, "cuBLAS product captured without a workspace of the caller's");
    if (p.m == 0 || p.n == 0 || p.batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (count_launch() != cudaSuccess || enqueue(s, [p] { run_product(p); }) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

static operand operand_of(const void *data, cudaDataType_t type, cublasOperation_t operation, int leading,
                          long long stride)
{
    return {static_cast<char *>(const_cast<void *>(data)), type, operation, leading, stride};
}

} // namespace emu

using namespace emu;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = nullptr;
    if (enter() != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{nullptr, false};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    cudaDeviceSynchronize();
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

/* Like the real one, this forgets the workspace. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    handle->workspace = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t size)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0 || (size && !in_device(workspace, size)))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = size > 0;
    return CUBLAS_STATUS_SUCCESS;
}

/* TF32 and reductions in 16 bit are not emulated, so nobody may ask for them. */
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    int asked = int(mode) & ~int(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    return asked == CUBLAS_DEFAULT_MATH || asked == CUBLAS_PEDANTIC_MATH ? CUBLAS_STATUS_SUCCESS
                                                                         : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "unknown status";
    }
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return cublasGetStatusName(status);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
                                          cublasOperation_t b_operation, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType_t a_type, int lda,
                                          long long a_stride, const void *b, cudaDataType_t b_type, int ldb,
                                          long long b_stride, const void *beta, void *c,
                                          cudaDataType_t c_type, int ldc, long long c_stride, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t)
{
    product p = {m,
                 n,
                 k,
                 batch,
                 *static_cast<const float *>(alpha),
                 *static_cast<const float *>(beta),
                 operand_of(a, a_type, a_operation, lda, a_stride),
                 operand_of(b, b_type, b_operation, ldb, b_stride),
                 operand_of(c, c_type, CUBLAS_OP_N, ldc, c_stride)};
    return start(handle, p, compute);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation,
                            cublasOperation_t b_operation, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType_t a_type, int lda, const void *b,
                            cudaDataType_t b_type, int ldb, const void *beta, void *c, cudaDataType_t c_type,
                            int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(handle, a_operation, b_operation, m, n, k, alpha, a, a_type, lda, 0, b,
                                      b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_operation,
                                         cublasOperation_t b_operation, int m, int n, int k,
                                         const float *alpha, const float *a, int lda, long long a_stride,
                                         const float *b, int ldb, long long b_stride, const float *beta,
                                         float *c, int ldc, long long c_stride, int batch)
{
    return cublasGemmStridedBatchedEx(handle, a_operation, b_operation, m, n, k, alpha, a, CUDA_R_32F, lda,
                                      a_stride, b, CUDA_R_32F, ldb, b_stride, beta, c, CUDA_R_32F, ldc,
                                      c_stride, batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_operation,
                              cublasOperation_t b_operation, int m, int n, int k, const float *alpha,
                              const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                              int ldc)
{
    return cublasSgemmStridedBatched(handle, a_operation, b_operation, m, n, k, alpha, a, lda, 0, b, ldb, 0,
                                     beta, c, ldc, 0, 1);
}
}
