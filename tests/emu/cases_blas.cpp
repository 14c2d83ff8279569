/* cases_blas.cpp: products against plain sums in float64, their place in the stream, and what cuBLAS refuses.
 */
#include "cases.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <cublas_v2.h>
#include <cuda_bf16.h>

namespace
{

void check_blas(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        say("%s", cublasGetStatusString(status));
}

cublasHandle_t new_handle(cudaStream_t s)
{
    cublasHandle_t h;
    check_blas(cublasCreate(&h));
    check_blas(cublasSetStream(h, s));
    check_blas(cublasSetMathMode(h, CUBLAS_PEDANTIC_MATH));
    return h;
}

template <class E> E *upload(const std::vector<E> &v)
{
    void *p;
    check(cudaMalloc(&p, v.size() * sizeof(E)));
    check(cudaMemcpy(p, v.data(), v.size() * sizeof(E), cudaMemcpyHostToDevice));
    return static_cast<E *>(p);
}

template <class E> std::vector<E> numbers(size_t n, unsigned seed)
{
    std::vector<E> v;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        v.push_back(E(float(seed >> 8) / float(1 << 23) - 1));
    }
    return v;
}

struct shape {
    int m, n, k, lda, ldb, ldc, batch;
    cublasOperation_t a, b;
    float alpha, beta;
};

/* The largest error of the batch, relative to the sum of the products' magnitudes; -1 where a number between
   the columns was touched. */
template <class E> double error_of(const shape &s, cudaDataType_t type)
{
    size_t a_columns = size_t(s.a == CUBLAS_OP_N ? s.k : s.m),
           b_columns = size_t(s.b == CUBLAS_OP_N ? s.n : s.k);
    size_t a_size = a_columns * size_t(s.lda), b_size = b_columns * size_t(s.ldb),
           c_size = size_t(s.n * s.ldc);
    size_t batch = size_t(s.batch);
    std::vector<E> a = numbers<E>(a_size * batch, 1), b = numbers<E>(b_size * batch, 2);
    std::vector<float> c = numbers<float>(c_size * batch, 3), got(c.size());
    float *device_c = upload(c);
    cublasHandle_t h = new_handle(nullptr);
    check_blas(cublasGemmStridedBatchedEx(h, s.a, s.b, s.m, s.n, s.k, &s.alpha, upload(a), type, s.lda,
                                          (long long)a_size, upload(b), type, s.ldb, (long long)b_size,
                                          &s.beta, device_c, CUDA_R_32F, s.ldc, (long long)c_size, s.batch,
                                          CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_GEMM_DEFAULT));
    check(cudaMemcpy(got.data(), device_c, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (size_t q = 0; q < batch; q++)
        for (int j = 0; j < s.n; j++)
            for (int i = 0; i < s.ldc; i++) {
                size_t at = q * c_size + size_t(j * s.ldc + i);
                if (i >= s.m && memcmp(&got[at], &c[at], 4) != 0)
                    return -1;
                double sum = 0, magnitude = 0;
                for (int x = 0; x < s.k && i < s.m; x++) {
                    int ai = s.a == CUBLAS_OP_N ? x * s.lda + i : i * s.lda + x;
                    int bi = s.b == CUBLAS_OP_N ? j * s.ldb + x : x * s.ldb + j;
                    double term =
                        double(float(a[q * a_size + size_t(ai)])) * double(float(b[q * b_size + size_t(bi)]));
                    sum += term;
                    magnitude += std::fabs(term);
                }
                double want = s.alpha * sum + double(s.beta) * double(c[at]);
                if (i < s.m)
                    worst = std::fmax(worst, std::fabs(got[at] - want) / (magnitude + 1));
            }
    return worst;
}

void products()
{
    const cublasOperation_t N_ = CUBLAS_OP_N, T_ = CUBLAS_OP_T;
    const shape shapes[] = {
        {37, 5, 100, 100, 101, 37, 1, T_, N_, 1, 0}, {37, 5, 100, 40, 5, 39, 2, N_, T_, 2, 0.5f},
        {1, 1, 1, 1, 1, 1, 1, N_, N_, 1, 0},         {64, 33, 17, 17, 33, 64, 3, T_, T_, -1, 1},
        {100, 3, 31, 100, 31, 100, 1, N_, N_, 1, 0},
    };
    bool good = true;
    for (const shape &s : shapes) {
        double f = error_of<float>(s, CUDA_R_32F), h = error_of<__nv_bfloat16>(s, CUDA_R_16BF);
        good &= f >= 0 && f < 5e-7 && h >= 0 && h < 5e-7;
    }
    say("%s", good ? "all right" : "wrong");
}

/* kernel, product, kernel in one stream */
void product_in_stream()
{
    cudaStream_t s;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    float *a = device_floats(N), *b = device_floats(N), *c = device_floats(N), one = 1, zero = 0;
    cublasHandle_t h = new_handle(s);
    check(run_scale(b, a, 0, s));
    check_blas(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 16, &one, b, 8, a, 16, &zero, c, 8));
    check(run_scale(a, c, 2, s));
    check(cudaStreamSynchronize(s));
    show_device(a, 64);
    check_blas(cublasDestroy(h));
}

void refused()
{
    float *a = device_floats(N), one = 1;
    cublasHandle_t h = new_handle(nullptr);
    check_blas(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, 7, a, 8, &one, a, 8));
    check_blas(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, CUDA_R_32F, 8, a, CUDA_R_16BF, 8,
                            &one, a, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    check_blas(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, CUDA_R_32F, 8, a, CUDA_R_32F, 8,
                            &one, a, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT));
    check_blas(cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH));
}

void operand_too_small()
{
    float *a = device_floats(N), one = 1, zero = 0;
    cublasHandle_t h = new_handle(nullptr);
    check_blas(
        cublasSgemm(h, CUBLAS_OP_T, CUBLAS_OP_N, 4, 4, 32, &one, a, 32, a, 33, &zero, device_floats(N), 4));
}

void no_workspace()
{
    cudaStream_t s;
    float *a = device_floats(N), *c = device_floats(N), one = 1, zero = 0;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    cublasHandle_t h = new_handle(s);
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    check_blas(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, 8, a, 8, &zero, c, 8));
}

} // namespace

const test_case blas_cases[] = {
    {"products against float64", products, RIGHT, "all right", nullptr},
    {"a product between kernels", product_in_stream, RIGHT, "00000000 x 64", nullptr},
    {"products that are refused", refused, RIGHT,
     "CUBLAS_STATUS_INVALID_VALUE CUBLAS_STATUS_NOT_SUPPORTED CUBLAS_STATUS_NOT_SUPPORTED "
     "CUBLAS_STATUS_NOT_SUPPORTED",
     nullptr},
    {"an operand is too small", operand_too_small, DIES, "an operand leaves its allocation", nullptr},
    {"a product captured without a workspace", no_workspace, DIES, "without a workspace", nullptr},
    {nullptr, nullptr, RIGHT, nullptr, nullptr},
};
