/* cuda_rows.cuh: what operations have in common with the products that they are fused with. */
#ifndef NL_CUDA_ROWS_CUH
#define NL_CUDA_ROWS_CUH

#include "cuda_common.cuh"

enum { NL_ROW_THREADS = 256 }; /* of every block that sums a row, so that all sum in the same order */

struct nl_moments {
    float mean, factor;
};

/* Of x [width], by a block of NL_ROW_THREADS; `space` as for nl_across_warps. */
static __device__ inline nl_moments nl_row_moments(const float *x, uint32_t width, const nl_cuda_norm &norm,
                                                   float *space)
{
    float sum = 0, square = 0, mean = 0;
    if (norm.centred) {
        for (uint32_t i = threadIdx.x; i < width; i += blockDim.x)
            sum += x[i];
        mean = nl_block_sum(sum, space) / static_cast<float>(width);
    }
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x)
        square = fmaf(x[i] - mean, x[i] - mean, square);
    square = nl_block_sum(square, space);
    return {mean, 1.0f / sqrtf(square / static_cast<float>(width) + norm.epsilon)};
}

static __device__ inline float nl_normed(float x, uint32_t i, nl_moments moments, const nl_cuda_norm &norm)
{
    float y = nl_round((x - moments.mean) * moments.factor, norm.rounds && !norm.round_once) * norm.weight[i];
    return nl_round(norm.bias ? y + norm.bias[i] : y, norm.rounds);
}

/* NL_GELU_NEW rounds each of its steps. */
static __device__ inline float nl_gelu_tanh(float x, bool rounds)
{
    float cube = nl_round(nl_round(x * x, rounds) * x, rounds);
    float inner = nl_round(x + nl_round(0.044715f * cube, rounds), rounds);
    float tangent = nl_round(tanhf(nl_round(0.7978845608028654f * inner, rounds)), rounds);
    return nl_round(0.5f * x, rounds) * nl_round(1.0f + tangent, rounds);
}

static __device__ inline float nl_activate(float x, nl_activation activation, bool rounds)
{
    float y;
    if (activation == NL_SILU)
        y = x / (1.0f + expf(-x));
    else if (activation == NL_GELU_ERF)
        y = 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
    else
        y = nl_gelu_tanh(x, rounds && activation == NL_GELU_NEW);
    return nl_round(y, rounds);
}

/* x plus a branch of the residual stream */
static __device__ inline float nl_added(float x, float branch, float scale, bool rounds)
{
    return nl_round(x + nl_round(branch * scale, rounds), rounds);
}

#endif
