/* cuda_tile.cu: what stands around the matrix products of attention over a tile of queries. */
#include "cuda_common.cuh"

namespace
{

enum { THREADS = 128 };

__device__ inline void store(float *to, float x)
{
    *to = x;
}
__device__ inline void store(__nv_bfloat16 *to, float x) /* which is one already, or is rounded */
{
    *to = __float2bfloat16_rn(x);
}

/* One block for each key or query of a KV head: grid [n_keys + n_queries][n_kv]. */
template <typename T> __global__ void gather(nl_cuda_tile tile, const nl_cuda_step *step)
{
    nl_begin();
    const nl_cuda_attention &a = tile.attention;
    const uint32_t dim = a.head_dim, rep = a.n_heads / a.n_kv_heads, kv = tile.head + blockIdx.y;
    if (blockIdx.x < tile.n_keys) {
        uint32_t position = tile.key_begin + blockIdx.x;
        const float *block =
            step->tables[static_cast<size_t>(tile.sequence) * step->table_stride + position / NL_BLOCK];
        size_t to = (static_cast<size_t>(blockIdx.y) * tile.n_keys + blockIdx.x) * dim;
        size_t plane = static_cast<size_t>(a.layer) * 2 * a.n_kv_heads + kv;
        const float *k = block + (plane * NL_BLOCK + position % NL_BLOCK) * dim;
        const float *v = k + static_cast<size_t>(a.n_kv_heads) * NL_BLOCK * dim;
        for (uint32_t i = threadIdx.x; i < dim; i += blockDim.x) {
            store(static_cast<T *>(tile.keys) + to + i, k[i]);
            store(static_cast<T *>(tile.values) + to + i, v[i]);
        }
        return;
    }
    uint32_t query = blockIdx.x - tile.n_keys;
    size_t row = static_cast<size_t>(tile.first + query) * (a.n_heads + 2 * a.n_kv_heads) + kv * rep;
    T *to = static_cast<T *>(tile.queries) +
            (static_cast<size_t>(blockIdx.y) * tile.n_queries + query) * rep * dim;
    for (uint32_t i = threadIdx.x; i < rep * dim; i += blockDim.x)
        store(to + i, a.qkv[row * dim + i]);
}

/* One block for each query of each head: grid [n_queries * rep][n_kv]. */
template <typename T> __global__ void softmax(nl_cuda_tile tile)
{
    __shared__ float space[NL_WARP];
    nl_begin();
    const nl_cuda_attention &a = tile.attention;
    const uint32_t rep = a.n_heads / a.n_kv_heads, position = tile.position + blockIdx.x / rep;
    const uint32_t begin = position < a.window ? 0 : position + 1 - a.window;
    const uint32_t lo = begin > tile.key_begin ? begin - tile.key_begin : 0, hi = position - tile.key_begin;
    const size_t query = static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x;
    float *row = tile.scores + query * tile.pitch;
    T *weights = static_cast<T *>(tile.weights) + query * tile.pitch;
    float max = -INFINITY, sum = 0;
    for (uint32_t i = threadIdx.x; i < tile.n_keys; i += blockDim.x) {
        row[i] = i >= lo && i <= hi ? nl_score(row[i], a) : -INFINITY;
        max = fmaxf(max, row[i]);
    }
    max = nl_block_max(max, space);
    for (uint32_t i = threadIdx.x; i < tile.n_keys; i += blockDim.x) {
        float weight = expf(row[i] - max);
        sum += weight;
        row[i] = nl_round(weight, a.rounds && !a.round_scores);
    }
    sum = nl_block_sum(sum, space);
    const bool divides = !tile.halves || a.round_scores;
    for (uint32_t i = threadIdx.x; i < tile.n_keys; i += blockDim.x)
        store(weights + i, divides ? nl_round(row[i] / sum, a.round_scores) : row[i]);
    if (tile.halves && threadIdx.x == 0)
        tile.totals[query] = divides ? 1 : sum;
}

/* One block for each query of a KV head: grid [n_queries][n_kv]. */
__global__ void scatter(nl_cuda_tile tile)
{
    nl_begin();
    const nl_cuda_attention &a = tile.attention;
    const uint32_t dim = a.head_dim, rep = a.n_heads / a.n_kv_heads, kv = tile.head + blockIdx.y;
    const float *from =
        tile.mixed + (static_cast<size_t>(blockIdx.y) * tile.n_queries + blockIdx.x) * rep * dim;
    float *to = a.out + (static_cast<size_t>(tile.first + blockIdx.x) * a.n_heads + kv * rep) * dim;
    const float *totals = tile.totals + (static_cast<size_t>(blockIdx.y) * tile.n_queries + blockIdx.x) * rep;
    for (uint32_t i = threadIdx.x; i < rep * dim; i += blockDim.x)
        to[i] = nl_round(tile.halves ? from[i] / totals[i / dim] : from[i], a.rounds);
}

} // namespace

cudaError_t nl_cuda_run_gather(const nl_cuda_tile *tile, const nl_cuda_step *step, cudaStream_t stream)
{
    assert(tile->n_queries > 0 && tile->n_kv > 0 && tile->n_kv <= 65535 && tile->key_begin % NL_BLOCK == 0);
    return nl_launch(tile->halves ? gather<__nv_bfloat16> : gather<float>,
                     dim3(tile->n_keys + tile->n_queries, tile->n_kv), THREADS, 0, stream, *tile, step);
}

cudaError_t nl_cuda_run_softmax(const nl_cuda_tile *tile, cudaStream_t stream)
{
    assert(tile->position >= tile->key_begin &&
           tile->position + tile->n_queries <= tile->key_begin + tile->n_keys);
    uint32_t rep = tile->attention.n_heads / tile->attention.n_kv_heads;
    return nl_launch(tile->halves ? softmax<__nv_bfloat16> : softmax<float>,
                     dim3(tile->n_queries * rep, tile->n_kv), THREADS, 0, stream, *tile);
}

cudaError_t nl_cuda_run_scatter(const nl_cuda_tile *tile, cudaStream_t stream)
{
    return nl_launch(scatter, dim3(tile->n_queries, tile->n_kv), THREADS, 0, stream, *tile);
}
