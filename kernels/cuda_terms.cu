/* cuda_terms.cu: what stands around the matrix products of many vectors, so that 16-bit weights give float32
 * results. */
#include "cuda_common.cuh"

namespace
{

enum { THREADS = 256 };

/* A float32 has 24 significant bits, a bfloat16 has 8: three terms hold it exactly. grid [row][columns] */
__global__ void split_terms(__nv_bfloat16 *terms, uint32_t n_terms, uint32_t pitch, const float *in,
                            uint32_t width)
{
    nl_begin();
    uint32_t i = blockIdx.y * blockDim.x + threadIdx.x;
    if (i >= pitch)
        return;
    float rest = i < width ? in[static_cast<size_t>(blockIdx.x) * width + i] : 0;
    for (uint32_t term = 0; term < n_terms; term++) {
        __nv_bfloat16 part = __float2bfloat16_rn(rest);
        terms[(static_cast<size_t>(term) * gridDim.x + blockIdx.x) * pitch + i] = part;
        rest -= __bfloat162float(part);
    }
}

template <typename T> __device__ inline float widened(T x);
template <> __device__ inline float widened(__half x)
{
    return __half2float(x);
}
template <> __device__ inline float widened(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <typename T> __global__ void widen(float *out, const T *weights, size_t count)
{
    nl_begin();
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = widened(weights[i]);
}

/* grid [vector][panel rows] */
__global__ void finish(nl_cuda_finish f)
{
    nl_begin();
    uint32_t r = blockIdx.y * blockDim.x + threadIdx.x;
    if (r >= f.panel_rows)
        return;
    float y = 0;
    for (uint32_t term = f.n_terms; term-- > 0;)
        y += f.products[(static_cast<size_t>(term) * gridDim.x + blockIdx.x) * f.panel_rows + r];
    y = nl_round(f.bias ? y + f.bias[r] : y, f.rounds);
    if (f.logits)
        y = nl_cap(nl_round(y / f.divisor, f.rounds), f.cap, f.rounds);
    f.out[static_cast<size_t>(blockIdx.x) * f.out_width + f.column + r] = y;
}

} // namespace

cudaError_t nl_cuda_run_split_terms(void *terms, uint32_t n_terms, uint32_t pitch, const float *in,
                                    uint32_t width, uint32_t n_rows, cudaStream_t stream)
{
    assert(pitch >= width && pitch <= 65535 * THREADS && n_rows > 0 && n_terms > 0);
    return nl_launch(split_terms, dim3(n_rows, nl_divide_up(pitch, THREADS)), THREADS, 0, stream,
                     static_cast<__nv_bfloat16 *>(terms), n_terms, pitch, in, width);
}

cudaError_t nl_cuda_run_widen(float *out, const void *weights, nl_dtype dtype, size_t count,
                              cudaStream_t stream)
{
    assert(count > 0 && (dtype == NL_F16 || dtype == NL_BF16));
    unsigned blocks = nl_divide_up(count, THREADS);
    if (dtype == NL_F16)
        return nl_launch(widen<__half>, blocks, THREADS, 0, stream, out, static_cast<const __half *>(weights),
                         count);
    return nl_launch(widen<__nv_bfloat16>, blocks, THREADS, 0, stream, out,
                     static_cast<const __nv_bfloat16 *>(weights), count);
}

cudaError_t nl_cuda_run_finish(const nl_cuda_finish *f, uint32_t n_vectors, cudaStream_t stream)
{
    assert(n_vectors > 0 && f->panel_rows > 0 && f->panel_rows <= 65535 * THREADS && f->n_terms > 0);
    return nl_launch(finish, dim3(n_vectors, nl_divide_up(f->panel_rows, THREADS)), THREADS, 0, stream, *f);
}
