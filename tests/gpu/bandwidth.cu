/*
 * bandwidth.cu: how fast the matrix-vector kernels read weights, against how fast the device reads at all.
 *
 * Prints a table, tab separated: what, bytes of weights, microseconds, gigabytes a second, share of the read bandwidth.
 * The read bandwidth is that of a kernel of our own over 4 GiB, in the same run. Weights are taken in turn from buffers
 * of more than 512 MB in all, so that none is left in the caches; the median of 20 launches counts.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../kernels/cuda_common.cuh"

bool nl_cuda_early_start; /* set by main, as the backend does */

static void must(cudaError_t status, const char *what)
{
    if (status != cudaSuccess) {
        fprintf(stderr, "bandwidth: %s: %s\n", cudaGetErrorString(status), what);
        exit(6);
    }
}

static __global__ void read_all(const uint4 *data, size_t count, unsigned *out)
{
    unsigned sum = 0;
    size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 a = __ldcs(data + i), b = __ldcs(data + i + stride), c = __ldcs(data + i + 2 * stride),
              d = __ldcs(data + i + 3 * stride);
        sum += (a.x ^ b.y) + (c.z ^ d.w);
    }
    if (sum == 0x12345678) /* never, but the compiler cannot know */
        *out = sum;
}

/* Median of some launches in microseconds. */
template <typename F> static double time_of(F launch)
{
    cudaEvent_t begin, end;
    std::vector<double> times;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    for (int i = 0; i < 25; i++) {
        must(cudaEventRecord(begin, 0), "record");
        must(launch(i), "launch");
        must(cudaEventRecord(end, 0), "record");
        must(cudaEventSynchronize(end), "synchronize");
        float ms = 0;
        must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
        if (i >= 5)
            times.push_back(ms * 1e3);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static void print(const char *what, double bytes, double us, double peak)
{
    printf("%s\t%.0f\t%.2f\t%.1f\t%.3f\n", what, bytes, us, bytes / us / 1e3, bytes / us / 1e3 / peak);
}

static double read_bandwidth()
{
    const size_t bytes = 4ull << 30;
    char *data;
    unsigned *out;
    must(cudaMalloc(&data, bytes), "4 GiB");
    must(cudaMalloc(&out, 4), "4 bytes");
    must(cudaMemset(data, 1, bytes), "memset");
    double us = time_of([&](int) {
        read_all<<<132 * 16, 512>>>(reinterpret_cast<uint4 *>(data), bytes / 16, out);
        return cudaGetLastError();
    });
    cudaFree(data);
    cudaFree(out);
    double peak = bytes / us / 1e3;
    print("read bandwidth", bytes, us, peak);
    return peak;
}

struct shape {
    const char *name;
    uint32_t rows, cols;
    nl_cuda_epilogue epilogue;
};

static void measure(const shape &s, uint32_t vectors, double peak)
{
    size_t bytes = static_cast<size_t>(s.rows) * s.cols * 2;
    size_t copies = (512ull << 20) / bytes + 2;
    char *weights;
    float *in, *out;
    must(cudaMalloc(&weights, bytes * copies), "weights");
    must(cudaMemset(weights, 0, bytes * copies), "memset");
    must(cudaMalloc(&in, vectors * s.cols * sizeof(float)), "vectors");
    must(cudaMemset(in, 0, vectors * s.cols * sizeof(float)), "memset");
    must(cudaMalloc(&out, vectors * s.rows * sizeof(float)), "results");
    nl_cuda_linear linear = {};
    linear.n_segments = 1;
    linear.segment[0].weight = {weights, NL_BF16, s.rows, s.cols, s.cols};
    linear.n_rows = s.rows;
    linear.in = in;
    linear.in_width = s.cols;
    linear.out = out;
    linear.out_width = s.epilogue == NL_CUDA_GATED ? s.rows / 2 : s.rows;
    linear.epilogue = s.epilogue;
    linear.scale = 1;
    double us = time_of([&](int i) {
        linear.segment[0].weight.data = weights + bytes * (i % copies);
        return nl_cuda_run_matvec(&linear, vectors, 0);
    });
    char what[100];
    snprintf(what, sizeof what, "%s [%u][%u] x %u", s.name, s.rows, s.cols, vectors);
    print(what, bytes, us, peak);
    cudaFree(weights);
    cudaFree(in);
    cudaFree(out);
}

int main()
{
    static const shape shapes[] = {
        {"1B q k v", 3072, 2048, NL_CUDA_STORE},   {"1B o", 2048, 2048, NL_CUDA_RESIDUAL},
        {"1B gate up", 16384, 2048, NL_CUDA_GATED}, {"1B down", 2048, 8192, NL_CUDA_RESIDUAL},
        {"1B logits", 128256, 2048, NL_CUDA_LOGITS}, {"8B q k v", 6144, 4096, NL_CUDA_STORE},
        {"8B o", 4096, 4096, NL_CUDA_RESIDUAL},    {"8B gate up", 28672, 4096, NL_CUDA_GATED},
        {"8B down", 4096, 14336, NL_CUDA_RESIDUAL}, {"8B logits", 128256, 4096, NL_CUDA_LOGITS},
    };
    int major = 0;
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
    nl_cuda_early_start = major >= 9;
    printf("what\tbytes\tmicroseconds\tGB/s\tshare\n");
    double peak = read_bandwidth();
    for (const shape &s : shapes)
        for (uint32_t vectors : {1u, 4u, 8u})
            measure(s, vectors, peak);
    return 0;
}
