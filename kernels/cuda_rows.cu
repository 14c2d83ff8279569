/* cuda_rows.cu: operations that work row by row: embedding, norms, residual, activation. */
#include "cuda_rows.cuh"

static __device__ float weight_at(const nl_cuda_matrix &matrix, uint32_t row, uint32_t column)
{
    size_t at = static_cast<size_t>(row) * matrix.pitch + column;
    if (matrix.dtype == NL_F32)
        return static_cast<const float *>(matrix.data)[at];
    if (matrix.dtype == NL_F16)
        return __half2float(static_cast<const __half *>(matrix.data)[at]);
    return __bfloat162float(static_cast<const __nv_bfloat16 *>(matrix.data)[at]);
}

static __global__ void embed(nl_cuda_embed e, const nl_cuda_step *step)
{
    nl_begin();
    uint32_t t = blockIdx.x, cols = e.table.cols;
    for (uint32_t i = threadIdx.x; i < cols; i += blockDim.x) {
        float value = nl_round(weight_at(e.table, step->ids[t], i) * e.scale, e.rounds);
        if (e.positions.data)
            value += weight_at(e.positions, step->positions[t], i);
        e.out[static_cast<size_t>(t) * cols + i] = nl_round(value, e.rounds);
    }
}

cudaError_t nl_cuda_run_embed(const nl_cuda_embed *e, const nl_cuda_step *step, uint32_t n_tokens,
                              cudaStream_t stream)
{
    assert(n_tokens > 0);
    return nl_launch(embed, n_tokens, NL_ROW_THREADS, 0, stream, *e, step);
}

static __global__ void row_norm(nl_cuda_row_norm n, const nl_cuda_step *step)
{
    __shared__ float space[NL_WARP];
    nl_begin();
    uint32_t from = n.at_outputs ? step->outputs[blockIdx.x] : blockIdx.x;
    float *x = n.in + static_cast<size_t>(from) * n.width;
    float *out = n.out + static_cast<size_t>(blockIdx.x) * n.width;
    const float *add = n.add ? n.add + static_cast<size_t>(from) * n.width : nullptr;
    for (uint32_t i = threadIdx.x; i < n.width; i += blockDim.x) {
        float value = add ? nl_added(x[i], add[i], n.add_scale, n.norm.rounds) : x[i];
        if (add && !n.at_outputs)
            x[i] = value;
        out[i] = value;
    }
    nl_moments moments = nl_row_moments(out, n.width, n.norm, space);
    for (uint32_t i = threadIdx.x; i < n.width; i += blockDim.x)
        out[i] = nl_normed(out[i], i, moments, n.norm);
}

cudaError_t nl_cuda_run_row_norm(const nl_cuda_row_norm *n, const nl_cuda_step *step, uint32_t n_rows,
                                 cudaStream_t stream)
{
    assert(n_rows > 0 && n->norm.weight && (n->out != n->in || (!n->add && !n->at_outputs)));
    return nl_launch(row_norm, n_rows, NL_ROW_THREADS, 0, stream, *n, step);
}

static __global__ void residual(float *out, const float *in, float scale, bool rounds, size_t count)
{
    nl_begin();
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = nl_added(out[i], in[i], scale, rounds);
}

cudaError_t nl_cuda_run_residual(float *out, const float *in, float scale, bool rounds, size_t count,
                                 cudaStream_t stream)
{
    assert(count > 0);
    return nl_launch(residual, nl_divide_up(count, NL_ROW_THREADS), NL_ROW_THREADS, 0, stream, out, in, scale,
                     rounds, count);
}

/* grid [row][columns] */
static __global__ void gate(nl_cuda_gate g)
{
    nl_begin();
    uint32_t i = blockIdx.y * blockDim.x + threadIdx.x;
    size_t row = blockIdx.x;
    const float *x = g.in + row * g.width * (g.gated ? 2 : 1);
    if (i >= g.width)
        return;
    float y = nl_activate(x[i], g.activation, g.rounds);
    g.out[row * g.width + i] = g.gated ? nl_round(y * x[g.width + i], g.rounds) : y;
}

cudaError_t nl_cuda_run_gate(const nl_cuda_gate *g, uint32_t n_rows, cudaStream_t stream)
{
    assert(n_rows > 0 && g->width > 0 && g->width <= 65535 * NL_ROW_THREADS);
    dim3 grid(n_rows, nl_divide_up(g->width, NL_ROW_THREADS));
    return nl_launch(gate, grid, NL_ROW_THREADS, 0, stream, *g);
}

cudaError_t nl_cuda_kernels_wait(bool *wait)
{
    cudaFuncAttributes attributes;
    cudaError_t status = cudaFuncGetAttributes(&attributes, residual);
    *wait =
        status == cudaSuccess && attributes.ptxVersion >= 90; /* as in nl_begin; all files have the same */
    return status;
}
