/* cuda_argmax.cu: the lowest index of the largest logit, so that greedy decoding copies four bytes a token.
 */
#include "cuda_common.cuh"

namespace
{

enum { THREADS = 256, NOTHING = 0x7fffffff };

struct candidate {
    float value;
    uint32_t index; /* NL_BEST_NAN: a NaN was seen */
};

__device__ inline candidate better(candidate a, candidate b)
{
    if (a.index == NL_BEST_NAN || b.index == NL_BEST_NAN)
        return {0, NL_BEST_NAN};
    return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}

__device__ inline candidate warp_best(candidate mine)
{
    for (int offset = NL_WARP / 2; offset > 0; offset /= 2) {
        candidate other = {__shfl_xor_sync(0xffffffffu, mine.value, offset),
                           __shfl_xor_sync(0xffffffffu, mine.index, offset)};
        mine = better(mine, other);
    }
    return mine;
}

__device__ inline candidate block_best(candidate mine, candidate *space)
{
    return nl_across_warps(warp_best(mine), space, better);
}

__device__ inline uint64_t packed(candidate c)
{
    return static_cast<uint64_t>(c.index) << 32 | __float_as_uint(c.value);
}

__device__ inline candidate unpacked(uint64_t bits)
{
    return {__uint_as_float(static_cast<uint32_t>(bits)), static_cast<uint32_t>(bits >> 32)};
}

/* grid [row][NL_CUDA_ARGMAX_PARTS]; the last block of a row puts the parts together. */
__global__ void argmax(uint32_t *best, const float *logits, uint32_t n, unsigned long long *space,
                       uint32_t *arrived)
{
    __shared__ candidate candidates[THREADS / NL_WARP];
    __shared__ bool last;
    nl_begin();
    const float *row = logits + static_cast<size_t>(blockIdx.x) * n;
    unsigned long long *parts = space + static_cast<size_t>(blockIdx.x) * gridDim.y;
    candidate mine = {-INFINITY, NOTHING};
    for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < n; i += gridDim.y * blockDim.x)
        mine = better(mine, {row[i], row[i] == row[i] ? i : NL_BEST_NAN});
    mine = block_best(mine, candidates);
    if (threadIdx.x == 0) {
        __stcg(&parts[blockIdx.y], static_cast<unsigned long long>(packed(mine)));
        __threadfence();
        last = atomicAdd(&arrived[blockIdx.x], 1) == gridDim.y - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    mine = {-INFINITY, NOTHING};
    if (threadIdx.x < gridDim.y)
        mine = unpacked(__ldcg(&parts[threadIdx.x]));
    mine = block_best(mine, candidates);
    if (threadIdx.x == 0) {
        best[blockIdx.x] = mine.index;
        arrived[blockIdx.x] = 0;
    }
}

} // namespace

cudaError_t nl_cuda_run_argmax(uint32_t *best, const float *logits, uint32_t n, uint32_t n_rows,
                               uint64_t *space, uint32_t *arrived, cudaStream_t stream)
{
    static_assert(int(NL_CUDA_ARGMAX_PARTS) <= int(THREADS), "one thread a part");
    assert(n > 0 && n < NOTHING && n_rows > 0);
    return nl_launch(argmax, dim3(n_rows, NL_CUDA_ARGMAX_PARTS), THREADS, 0, stream, best, logits, n,
                     reinterpret_cast<unsigned long long *>(space), arrived);
}
