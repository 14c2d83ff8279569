/*
 * cuda_matvec.cu: products of weights with 1 to NL_CUDA_VECTORS vectors, for decoding: bound by the weights'
 * bytes, each of which is read once.
 *
 * A warp works on two rows, each lane on 16 bytes of each at a time, the next DEPTH of those in flight, also
 * while the vectors, normed where a norm comes before, are brought into shared memory, a tile at a time. Each
 * output is one sum: over a lane's own elements in ascending order, then over the lanes, whatever the number
 * of vectors is.
 */
#include "cuda_rows.cuh"

namespace
{

enum {
    WARPS = NL_ROW_THREADS / NL_WARP,
    TILE_STEP = 256,     /* elements that a warp covers at most with one load a lane */
    DEPTH = 2,           /* loads of each row that a lane has in flight */
    TILE_FLOATS = 10240, /* of shared memory */
};

template <typename T> constexpr uint32_t lane_elements = NL_CUDA_ALIGN / sizeof(T);

/* Where element k of a tile stands: lanes that read 8 elements read them as two lots of 4 side by side, so
   that a quarter of a warp reads 128 bytes in a row. */
template <typename T> __device__ inline uint32_t place(uint32_t k)
{
    if (lane_elements<T> == 4)
        return k;
    return k / TILE_STEP * TILE_STEP + k % 8 / 4 * (TILE_STEP / 2) + k % TILE_STEP / 8 * 4 + k % 4;
}

template <typename T> struct lane_load {
    uint4 bits;
};

/* Starts the loads of elements k of two rows, where the rows have them. */
template <typename T>
__device__ inline void fetch(lane_load<T> (&load)[2], const T *const (&rows)[2], uint32_t k, uint32_t limit)
{
    if (k >= limit)
        return;
    load[0].bits = __ldcs(reinterpret_cast<const uint4 *>(rows[0] + k));
    load[1].bits = __ldcs(reinterpret_cast<const uint4 *>(rows[1] + k));
}

__device__ inline void widen(const lane_load<float> &load, float *out)
{
    out[0] = __uint_as_float(load.bits.x);
    out[1] = __uint_as_float(load.bits.y);
    out[2] = __uint_as_float(load.bits.z);
    out[3] = __uint_as_float(load.bits.w);
}

__device__ inline void widen_pair(uint32_t bits, float *out, const __nv_bfloat16 *)
{
    out[0] = __uint_as_float(bits << 16);
    out[1] = __uint_as_float(bits & 0xffff0000u);
}

__device__ inline void widen_pair(uint32_t bits, float *out, const __half *)
{
    out[0] = __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    out[1] = __half2float(__ushort_as_half(static_cast<unsigned short>(bits >> 16)));
}

template <typename T> __device__ inline void widen(const lane_load<T> &load, float *out)
{
    const T *type = nullptr;
    widen_pair(load.bits.x, out, type);
    widen_pair(load.bits.y, out + 2, type);
    widen_pair(load.bits.z, out + 4, type);
    widen_pair(load.bits.w, out + 6, type);
}

/* Row `row` of all segments together. */
struct row_place {
    const nl_cuda_segment *segment;
    uint32_t row;
};
__device__ inline row_place find_row(const nl_cuda_linear &l, uint32_t row)
{
    uint32_t s = 0;
    while (s + 1 < l.n_segments && row >= l.segment[s].weight.rows)
        row -= l.segment[s++].weight.rows;
    return {&l.segment[s], row};
}

template <typename T> __device__ inline const T *row_data(row_place place)
{
    return static_cast<const T *>(place.segment->weight.data) +
           static_cast<size_t>(place.row) * place.segment->weight.pitch;
}

/* Brings elements [begin, begin + tile) of the vectors into shared memory, normed; zeros after the last
   element and for those of the N vectors that are not there. */
template <typename T, int N>
__device__ inline void stage(float *x, const nl_cuda_linear &l, const nl_moments *moments, uint32_t n_vectors,
                             uint32_t begin, uint32_t tile)
{
    uint32_t cols = l.segment[0].weight.cols;
#pragma unroll
    for (uint32_t v = 0; v < N; v++)
        for (uint32_t i = threadIdx.x; i < tile; i += blockDim.x) {
            uint32_t k = begin + i;
            const bool there = k < cols && v < n_vectors;
            float value = there ? l.in[static_cast<size_t>(v) * l.in_width + k] : 0;
            if (there && l.norm.weight)
                value = nl_normed(value, k, moments[v], l.norm);
            x[v * tile + place<T>(i)] = value;
        }
}

/* Adds a lane's part of two rows times N vectors. */
template <typename T, int N>
__device__ inline void accumulate(float (&sums)[2][N], const lane_load<T> (&load)[2], const float *x,
                                  uint32_t tile)
{
    constexpr uint32_t E = lane_elements<T>;
    float w[2][E];
    widen(load[0], w[0]);
    widen(load[1], w[1]);
#pragma unroll
    for (int v = 0; v < N; v++)
        for (uint32_t part = 0; part < E / 4; part++) {
            float4 four = *reinterpret_cast<const float4 *>(x + v * tile + part * (TILE_STEP / 2));
            for (int r = 0; r < 2; r++) {
                float sum = sums[r][v];
                sum = fmaf(w[r][part * 4], four.x, sum);
                sum = fmaf(w[r][part * 4 + 1], four.y, sum);
                sum = fmaf(w[r][part * 4 + 2], four.z, sum);
                sums[r][v] = fmaf(w[r][part * 4 + 3], four.w, sum);
            }
        }
}

__device__ inline void store(const nl_cuda_linear &l, uint32_t vector, row_place place, float y)
{
    uint32_t column = place.segment->column + place.row;
    float *out = l.out + static_cast<size_t>(vector) * l.out_width + column;
    if (l.epilogue == NL_CUDA_RESIDUAL)
        *out = nl_added(*out, y, l.scale, l.rounds);
    else if (l.epilogue == NL_CUDA_ACTIVATE)
        *out = nl_activate(y, l.activation, l.rounds);
    else if (l.epilogue == NL_CUDA_LOGITS)
        *out = nl_cap(nl_round(y / l.scale, l.rounds), l.cap, l.rounds);
    else
        *out = y;
}

__device__ inline float biased(row_place place, float y, bool rounds)
{
    return nl_round(place.segment->bias ? y + place.segment->bias[place.row] : y, rounds);
}

template <typename T, int N>
__global__ void __launch_bounds__(NL_ROW_THREADS, 2)
    matvec(nl_cuda_linear l, uint32_t n_vectors, uint32_t tile)
{
    __shared__ float space[NL_WARP];
    NL_SHARED_MEMORY(float, x);
    const uint32_t lane = threadIdx.x % NL_WARP, item = blockIdx.x * WARPS + threadIdx.x / NL_WARP;
    const bool gated = l.epilogue == NL_CUDA_GATED;
    const uint32_t pitch = l.segment[0].weight.pitch, half = l.n_rows / 2;
    uint32_t row[2] = {gated ? item : 2 * item, gated ? item + half : 2 * item + 1};
    const bool there = row[0] < (gated ? half : l.n_rows), second = there && row[1] < l.n_rows;
    row_place places[2] = {find_row(l, there ? row[0] : 0), find_row(l, second ? row[1] : 0)};
    const T *w[2] = {row_data<T>(places[0]), row_data<T>(places[1])};
    constexpr uint32_t STEP = NL_WARP * lane_elements<T>;
    const uint32_t mine_begin = lane * lane_elements<T>, limit = there ? pitch : 0;
    lane_load<T> ahead[DEPTH][2] = {};
    nl_begin();
#pragma unroll
    for (uint32_t d = 0; d < DEPTH; d++)
        fetch(ahead[d], w, mine_begin + d * STEP, limit);
    nl_moments moments[N] = {};
    float sums[2][N] = {};
#pragma unroll
    for (uint32_t v = 0; v < N; v++)
        if (l.norm.weight && v < n_vectors)
            moments[v] = nl_row_moments(l.in + static_cast<size_t>(v) * l.in_width, l.segment[0].weight.cols,
                                        l.norm, space);
    for (uint32_t begin = 0; begin < pitch; begin += tile) {
        const uint32_t n_steps = nl_divide_up(min(tile, pitch - begin), STEP);
        stage<T, N>(x, l, moments, n_vectors, begin, tile);
        __syncthreads();
        for (uint32_t first = 0; first < n_steps; first += DEPTH)
#pragma unroll
            for (uint32_t d = 0; d < DEPTH; d++) {
                const uint32_t at = (first + d) * STEP, k = begin + at + mine_begin;
                if (k < limit)
                    accumulate<T, N>(sums, ahead[d], x + at + lane * 4, tile);
                fetch(ahead[d], w, k + DEPTH * STEP, limit);
            }
        __syncthreads();
    }
    float mine[2] = {};
#pragma unroll
    for (int v = 0; v < N; v++)
        for (int r = 0; r < 2; r++) {
            float sum = nl_warp_sum(sums[r][v]);
            mine[r] = lane == static_cast<uint32_t>(v) ? sum : mine[r];
        }
    if (!there || lane >= n_vectors)
        return;
    float first = biased(places[0], mine[0], l.rounds), other = biased(places[1], mine[1], l.rounds);
    if (gated) {
        l.out[static_cast<size_t>(lane) * l.out_width + item] =
            nl_round(nl_activate(first, l.activation, l.rounds) * other, l.rounds);
        return;
    }
    store(l, lane, places[0], first);
    if (second)
        store(l, lane, places[1], other);
}

template <typename T, int N>
cudaError_t launch(const nl_cuda_linear &l, uint32_t n_vectors, cudaStream_t stream)
{
    uint32_t most = TILE_FLOATS / N / (DEPTH * TILE_STEP) * (DEPTH * TILE_STEP);
    uint32_t whole = nl_divide_up(l.segment[0].weight.pitch, TILE_STEP) * TILE_STEP;
    uint32_t tile = whole < most ? whole : most;
    uint32_t items = l.epilogue == NL_CUDA_GATED ? l.n_rows / 2 : nl_divide_up(l.n_rows, 2);
    return nl_launch(matvec<T, N>, nl_divide_up(items, WARPS), NL_ROW_THREADS, N * tile * sizeof(float),
                     stream, l, n_vectors, tile);
}

template <typename T> cudaError_t choose(const nl_cuda_linear &l, uint32_t n_vectors, cudaStream_t stream)
{
    if (n_vectors == 1)
        return launch<T, 1>(l, n_vectors, stream);
    if (n_vectors == 2)
        return launch<T, 2>(l, n_vectors, stream);
    return n_vectors <= 4 ? launch<T, 4>(l, n_vectors, stream) : launch<T, 8>(l, n_vectors, stream);
}

} // namespace

cudaError_t nl_cuda_run_matvec(const nl_cuda_linear *l, uint32_t n_vectors, cudaStream_t stream)
{
    assert(n_vectors > 0 && n_vectors <= NL_CUDA_VECTORS && l->n_segments > 0 && l->n_rows > 0);
    assert(l->epilogue != NL_CUDA_GATED || (l->n_rows % 2 == 0 && nl_cuda_is_uniform(l)));
    if (!nl_cuda_is_uniform(l)) {
        cudaError_t status = cudaSuccess;
        for (uint32_t s = 0; s < l->n_segments && status == cudaSuccess; s++) {
            nl_cuda_linear alone = nl_cuda_alone(l, s);
            status = nl_cuda_run_matvec(&alone, n_vectors, stream);
        }
        return status;
    }
    switch (l->segment[0].weight.dtype) {
    case NL_F32:
        return choose<float>(*l, n_vectors, stream);
    case NL_F16:
        return choose<__half>(*l, n_vectors, stream);
    default:
        return choose<__nv_bfloat16>(*l, n_vectors, stream);
    }
}
