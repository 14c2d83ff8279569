/* cuda_rope.cu: norms of q and k, rotary embedding, and the write into the cache. */
#include "cuda_rows.cuh"

namespace
{

/* One block for each row and group of q and k: grid [row][group]; a grid's first dimension alone has no small
   limit. */
__global__ void qk_norm(nl_cuda_rope r)
{
    __shared__ float space[NL_WARP];
    nl_begin();
    const bool is_q =
        blockIdx.y < r.norm[0].count; /* an index into the parameters would copy them to the stack */
    const uint32_t group = is_q ? blockIdx.y : blockIdx.y - r.norm[0].count;
    const uint32_t width = is_q ? r.norm[0].width : r.norm[1].width;
    float *x = r.qkv + static_cast<size_t>(blockIdx.x) * r.row_width +
               (is_q ? r.norm[0].column : r.norm[1].column) + group * width;
    nl_cuda_norm norm = {
        is_q ? r.norm[0].weight : r.norm[1].weight, nullptr, r.epsilon, false, r.rounds, r.norm_rounds_once};
    nl_moments moments = nl_row_moments(x, width, norm, space);
    for (uint32_t i = threadIdx.x; i < width; i += blockDim.x)
        x[i] = nl_normed(x[i], i, moments, norm);
}

/* Element i of a head after the norm that is fused, if there is one, and the rotation. */
__device__ inline float rotated(const float *x, uint32_t i, uint32_t half, float position,
                                const float *frequency, const nl_cuda_rope &r)
{
    if (i >= 2 * half)
        return x[i];
    uint32_t pair = i < half ? i : i - half;
    float angle = position * frequency[pair];
    const bool parts = r.rounds && !r.round_once;
    float cosine = nl_round(cosf(angle) * r.rotation_scale, parts);
    float sine = nl_round(sinf(angle) * r.rotation_scale, parts);
    float along = nl_round(x[i] * cosine, parts);
    float across = nl_round(x[i < half ? i + half : i - half] * sine, parts);
    return nl_round(i < half ? along - across : along + across, r.rounds);
}

/* One block for each row and head of q, k and v: grid [row][head]. */
__global__ void rope(nl_cuda_rope r, const nl_cuda_step *step)
{
    __shared__ float space[NL_WARP];
    NL_SHARED_MEMORY(float, x);
    nl_begin();
    const uint32_t t = blockIdx.x, head = blockIdx.y, dim = r.head_dim, position = step->positions[t];
    const bool is_q = head < r.n_heads, is_v = head >= r.n_heads + r.n_kv_heads;
    float *row = r.qkv + (static_cast<size_t>(t) * (r.n_heads + 2 * r.n_kv_heads) + head) * dim;
    const float *weight = is_q ? r.norm[0].weight : r.norm[1].weight;
    if (weight && !is_v) {
        nl_cuda_norm norm = {weight, nullptr, r.epsilon, false, r.rounds, r.norm_rounds_once};
        nl_moments moments = nl_row_moments(row, dim, norm, space);
        for (uint32_t i = threadIdx.x; i < dim; i += blockDim.x)
            x[i] = nl_normed(row[i], i, moments, norm);
    } else {
        for (uint32_t i = threadIdx.x; i < dim; i += blockDim.x)
            x[i] = row[i];
    }
    __syncthreads();
    uint32_t half = r.rope == NL_NO_ROPE || is_v ? 0 : r.dims / 2;
    const float *frequency =
        half ? step->frequencies[r.rope] + step->frequency_set[r.rope][t] * half : nullptr;
    float *cached = nullptr;
    if (!is_q) {
        uint32_t kv = head - r.n_heads - (is_v ? r.n_kv_heads : 0);
        float *block =
            step->tables[static_cast<size_t>(step->sequence[t]) * step->table_stride + position / NL_BLOCK];
        size_t plane = (static_cast<size_t>(r.layer) * 2 + is_v) * r.n_kv_heads + kv;
        cached = block + (plane * NL_BLOCK + position % NL_BLOCK) * dim;
    }
    for (uint32_t i = threadIdx.x; i < dim; i += blockDim.x) {
        float value = rotated(x, i, half, static_cast<float>(position), frequency, r);
        row[i] = value;
        if (cached)
            cached[i] = value;
    }
}

} // namespace

cudaError_t nl_cuda_run_qk_norm(const nl_cuda_rope *r, uint32_t n_tokens, cudaStream_t stream)
{
    assert(n_tokens > 0 && r->norm[0].count + r->norm[1].count <= 65535);
    assert(r->norm[0].weight && r->norm[1].weight);
    dim3 grid(n_tokens, r->norm[0].count + r->norm[1].count);
    return nl_launch(qk_norm, grid, NL_ROW_THREADS, 0, stream, *r);
}

cudaError_t nl_cuda_run_rope(const nl_cuda_rope *r, const nl_cuda_step *step, uint32_t n_tokens,
                             cudaStream_t stream)
{
    assert(n_tokens > 0 && r->n_heads + 2 * r->n_kv_heads <= 65535 && r->head_dim <= 8192);
    dim3 grid(n_tokens, r->n_heads + 2 * r->n_kv_heads);
    return nl_launch(rope, grid, NL_ROW_THREADS, r->head_dim * sizeof(float), stream, *r, step);
}
