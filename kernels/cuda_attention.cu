/*
 * cuda_attention.cu: attention of single rows over the cache, for decoding.
 *
 * A block works on one row, up to G query heads that share a KV head, and one split: positions [s
 * * split, (s + 1) * split), wherever the row stands, so that the bits do not depend on what else runs. Each
 * split has its own maximum; the block that arrives last merges them in ascending order.
 */
#include "cuda_common.cuh"

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / NL_WARP,
    LOT = 4,                  /* positions whose loads a warp has in flight together */
    SHARED_BYTES = 44 * 1024, /* of what every device has unasked, 48 KB */
};

/* Where a block's work lies. */
struct place {
    uint32_t head, n; /* query heads head .. head + n - 1 */
    uint32_t kv, t;
    uint32_t lo, hi; /* positions, hi included */
    uint32_t split, n_splits;
    const float *const *table;
};

__device__ inline const float *cached(const nl_cuda_attention &a, const place &p, uint32_t position,
                                      uint32_t v)
{
    size_t plane = (static_cast<size_t>(a.layer) * 2 + v) * a.n_kv_heads + p.kv;
    return p.table[position / NL_BLOCK] + (plane * NL_BLOCK + position % NL_BLOCK) * a.head_dim;
}

/* V: what a lane reads at once, float4 where heads are a multiple of that. */
template <typename V> constexpr uint32_t width = sizeof(V) / sizeof(float);

template <typename V> __device__ inline V read(const float *from)
{
    return *reinterpret_cast<const V *>(from);
}

__device__ inline float dot(float a, float b, float sum)
{
    return fmaf(a, b, sum);
}
__device__ inline float dot(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ inline void add_product(float &sum, float weight, float value)
{
    sum = fmaf(weight, value, sum);
}
__device__ inline void add_product(float4 &sum, float weight, float4 value)
{
    sum = make_float4(fmaf(weight, value.x, sum.x), fmaf(weight, value.y, sum.y),
                      fmaf(weight, value.z, sum.z), fmaf(weight, value.w, sum.w));
}

/* weights[h][position - lo] = q . k; a warp LOT positions, lanes along the head. */
template <int G, typename V>
__device__ inline void score(float *weights, const float *q, const nl_cuda_attention &a, const place &p)
{
    const uint32_t lane = threadIdx.x % NL_WARP, dim = a.head_dim;
    for (uint32_t at = p.lo + threadIdx.x / NL_WARP * LOT; at <= p.hi; at += WARPS * LOT) {
        const float *k[LOT];
        float sums[LOT][G] = {};
        for (uint32_t j = 0; j < LOT; j++)
            k[j] = cached(a, p, min(at + j, p.hi), 0);
        for (uint32_t i = lane * width<V>; i < dim; i += NL_WARP * width<V>) {
            V key[LOT];
            for (uint32_t j = 0; j < LOT; j++)
                key[j] = read<V>(k[j] + i);
            for (int h = 0; h < G; h++)
                for (uint32_t j = 0; j < LOT; j++)
                    sums[j][h] = dot(read<V>(q + h * dim + i), key[j], sums[j][h]);
        }
#pragma unroll
        for (uint32_t j = 0; j < LOT; j++)
#pragma unroll
            for (int h = 0; h < G; h++) {
                float sum = nl_warp_sum(sums[j][h]);
                if (lane == 0 && at + j <= p.hi)
                    weights[h * a.split + at + j - p.lo] = sum;
            }
    }
}

/* Products to scores and their exponentials; best[h] and total[h]. A warp a head. */
template <int G>
__device__ inline void exponentiate(float *weights, float *best, float *total, const nl_cuda_attention &a,
                                    const place &p)
{
    const uint32_t count = p.hi - p.lo + 1;
    const bool normalise = a.round_scores && p.n_splits == 1;
    const uint32_t lane = threadIdx.x % NL_WARP;
    for (uint32_t h = threadIdx.x / NL_WARP; h < G; h += WARPS) {
        float *row = weights + h * a.split, max = -INFINITY, sum = 0;
        for (uint32_t i = lane; i < count; i += NL_WARP) {
            row[i] = nl_score(row[i], a);
            max = fmaxf(max, row[i]);
        }
        max = nl_warp_max(max);
        for (uint32_t i = lane; i < count; i += NL_WARP) {
            float weight = expf(row[i] - max);
            sum += weight;
            row[i] = nl_round(weight, a.rounds && !normalise);
        }
        sum = nl_warp_sum(sum);
        for (uint32_t i = lane; normalise && i < count; i += NL_WARP)
            row[i] = nl_round(row[i] / sum, true);
        if (lane == 0) {
            best[h] = max;
            total[h] = normalise ? 1 : sum;
        }
    }
}

/* mixed[warp][h][i] = the warp's positions' sum of weights times values. */
template <int G, typename V>
__device__ inline void mix(float *mixed, const float *weights, const nl_cuda_attention &a, const place &p)
{
    const uint32_t lane = threadIdx.x % NL_WARP, warp = threadIdx.x / NL_WARP, dim = a.head_dim;
    for (uint32_t i = lane * width<V>; i < dim; i += NL_WARP * width<V>) {
        V sums[G] = {};
#pragma unroll LOT
        for (uint32_t position = p.lo + warp; position <= p.hi; position += WARPS) {
            V value = read<V>(cached(a, p, position, 1) + i);
            for (int h = 0; h < G; h++)
                add_product(sums[h], weights[h * a.split + position - p.lo], value);
        }
        for (int h = 0; h < G; h++)
            *reinterpret_cast<V *>(mixed + (warp * G + h) * dim + i) = sums[h];
    }
}

__device__ inline float *partial(const nl_cuda_attention &a, uint32_t row, uint32_t head, uint32_t split)
{
    return a.partials +
           ((static_cast<size_t>(row) * a.n_heads + head) * a.max_splits + split) * (a.head_dim + 2);
}

/* The last block puts the splits of its heads together; other blocks wrote them, so they are read past the
   first-level cache. */
__device__ inline void merge(const nl_cuda_attention &a, const place &p, uint32_t row)
{
    const uint32_t dim = a.head_dim;
    for (uint32_t j = threadIdx.x; j < p.n * dim; j += blockDim.x) {
        uint32_t head = p.head + j / dim, i = j % dim;
        float best = -INFINITY, total = 0, sum = 0;
        for (uint32_t s = 0; s < p.n_splits; s++)
            best = fmaxf(best, __ldcg(partial(a, row, head, s) + dim));
        for (uint32_t s = 0; s < p.n_splits; s++) {
            const float *part = partial(a, row, head, s);
            float factor = expf(__ldcg(part + dim) - best);
            total = fmaf(__ldcg(part + dim + 1), factor, total);
            sum = fmaf(__ldcg(part + i), factor, sum);
        }
        a.out[(static_cast<size_t>(p.t) * a.n_heads + head) * dim + i] = nl_round(sum / total, a.rounds);
    }
}

/* Writes the split's result: to the output where it is the only one, else to the partials; the last merges.
 */
template <int G>
__device__ inline void finish(const nl_cuda_attention &a, const place &p, const float *mixed,
                              const float *best, const float *total, uint32_t groups)
{
    __shared__ bool last;
    const uint32_t dim = a.head_dim, row = blockIdx.z;
    for (uint32_t j = threadIdx.x; j < p.n * dim; j += blockDim.x) {
        uint32_t h = j / dim, i = j % dim;
        float sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += mixed[(w * G + h) * dim + i];
        if (p.n_splits == 1) {
            a.out[(static_cast<size_t>(p.t) * a.n_heads + p.head + h) * dim + i] =
                nl_round(sum / total[h], a.rounds);
            continue;
        }
        float *part = partial(a, row, p.head + h, p.split);
        part[i] = sum;
        if (i == 0) {
            part[dim] = best[h];
            part[dim + 1] = total[h];
        }
    }
    if (p.n_splits == 1)
        return;
    uint32_t *arrived = &a.arrived[row * a.n_kv_heads * groups + blockIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(arrived, 1) == p.n_splits - 1;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    merge(a, p, row);
    if (threadIdx.x == 0)
        *arrived = 0;
}

/* grid: [KV head and group of heads][split][row] */
template <int G, typename V>
__global__ void __launch_bounds__(THREADS, 2)
    attend(nl_cuda_attention a, const nl_cuda_step *step, uint32_t first)
{
    __shared__ float best[G], total[G];
    NL_SHARED_MEMORY(float, q);
    nl_begin();
    const uint32_t rep = a.n_heads / a.n_kv_heads, groups = (rep + G - 1) / G, dim = a.head_dim;
    place p;
    p.t = first + blockIdx.z;
    const uint32_t position = step->positions[p.t];
    const uint32_t begin = position < a.window ? 0 : position + 1 - a.window;
    p.split = blockIdx.y;
    p.n_splits = position / a.split - begin / a.split + 1;
    if (p.split >= p.n_splits)
        return;
    const uint32_t from = (begin / a.split + p.split) * a.split;
    p.lo = max(from, begin);
    p.hi = min(from + a.split - 1, position);
    p.kv = blockIdx.x / groups;
    p.head = p.kv * rep + blockIdx.x % groups * G;
    p.n = min(static_cast<uint32_t>(G), rep - blockIdx.x % groups * G);
    p.table = step->tables + static_cast<size_t>(step->sequence[p.t]) * step->table_stride;
    float *weights = q + G * dim, *mixed = weights + G * a.split;
    const float *row = a.qkv + (static_cast<size_t>(p.t) * (a.n_heads + 2 * a.n_kv_heads) + p.head) * dim;
    for (uint32_t i = threadIdx.x; i < G * dim; i += blockDim.x)
        q[i] = i < p.n * dim ? row[i] : 0;
    __syncthreads();
    score<G, V>(weights, q, a, p);
    __syncthreads();
    exponentiate<G>(weights, best, total, a, p);
    __syncthreads();
    mix<G, V>(mixed, weights, a, p);
    __syncthreads();
    finish<G>(a, p, mixed, best, total, groups);
}

size_t shared_bytes(const nl_cuda_attention &a, int group)
{
    return static_cast<size_t>(group) * ((1 + WARPS) * a.head_dim + a.split) * sizeof(float);
}

template <int G>
cudaError_t launch(const nl_cuda_attention &a, const nl_cuda_step *step, uint32_t first, uint32_t n_rows,
                   cudaStream_t stream)
{
    uint32_t groups = nl_divide_up(a.n_heads / a.n_kv_heads, G);
    dim3 grid(a.n_kv_heads * groups, a.max_splits, n_rows);
    return nl_launch(a.head_dim % width<float4> == 0 ? attend<G, float4> : attend<G, float>, grid, THREADS,
                     shared_bytes(a, G), stream, a, step, first);
}

} // namespace

cudaError_t nl_cuda_run_attention(const nl_cuda_attention *a, const nl_cuda_step *step, uint32_t first,
                                  uint32_t n_rows, cudaStream_t stream)
{
    assert(n_rows > 0 && n_rows <= NL_CUDA_VECTORS && a->max_splits > 0 && a->max_splits <= 65535);
    assert(a->n_heads % a->n_kv_heads == 0 && a->split > 0 && a->split % 4 == 0 && a->split <= NL_CUDA_SPLIT);
    uint32_t rep = a->n_heads / a->n_kv_heads;
    if (rep > 4 && shared_bytes(*a, 8) <= SHARED_BYTES)
        return launch<8>(*a, step, first, n_rows, stream);
    if (rep > 2 && shared_bytes(*a, 4) <= SHARED_BYTES)
        return launch<4>(*a, step, first, n_rows, stream);
    if (rep > 1 && shared_bytes(*a, 2) <= SHARED_BYTES)
        return launch<2>(*a, step, first, n_rows, stream);
    return launch<1>(*a, step, first, n_rows, stream);
}
