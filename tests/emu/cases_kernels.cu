/* cases_kernels.cu: kernels with and without a mistake. One block of N threads unless the case says
 * otherwise. */
#include "cases.h"

#include "emu_device.h"

namespace
{

#define T threadIdx.x
const unsigned ALL_LANES = 0xffffffffu;

typedef void kernel(float *, const float *);

template <class... P, class... A>
cudaError_t launch(void (*k)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, A... arguments)
{
    cudaLaunchConfig_t config = {grid, block, shared, stream, nullptr, 0};
    return cudaLaunchKernelEx(&config, k, arguments...);
}

void start(kernel *k, float *out, const float *in, dim3 grid = 1, dim3 block = N, size_t shared = 0)
{
    check(launch(k, grid, block, shared, nullptr, out, in));
}

/* Runs the kernel on fresh memory and shows the output. */
template <kernel *K, int Blocks = 1, int Threads = N, int Shared = 0> void run()
{
    float *out = device_floats(N), *in = device_floats(N);
    start(K, out, in, Blocks, Threads, Shared);
    show_device(out, N);
}

/* ---- right ---- */

__device__ float warp_sum(float x)
{
    for (int offset = 16; offset > 0; offset /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, offset);
    return x;
}

__global__ void block_sum(float *out, const float *in)
{
    __shared__ float sums[N / 32];
    float sum = warp_sum(in[T]);
    if (T % 32 == 0)
        sums[T / 32] = sum;
    __syncthreads();
    out[T] = sums[0] + sums[1] + sums[2] + sums[3];
}

__global__ void mirror(float *out, const float *in)
{
    NL_SHARED_MEMORY(float, s);
    s[T] = in[T];
    __syncthreads();
    out[T] = s[N - 1 - T];
}

/* 1 where all is as the CUDA guide says. */
__global__ void warp_operations(float *out, const float *)
{
    unsigned lane = T % 32, low = lane & 15, half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    bool good = __ballot_sync(ALL_LANES, lane % 3 == 0) == 0x49249249u;
    good &= __shfl_up_sync(ALL_LANES, lane, 5) == (lane < 5 ? lane : lane - 5);
    good &= __shfl_down_sync(ALL_LANES, lane, 7, 16) == (low + 7 > 15 ? lane : lane + 7);
    good &= __shfl_sync(ALL_LANES, lane, 3, 8) == lane / 8 * 8 + 3;
    good &= __shfl_xor_sync(ALL_LANES, (unsigned long long)lane << 40, 31) == (unsigned long long)(31 - lane)
                                                                                  << 40;
    good &= __any_sync(ALL_LANES, lane == 9) && !__all_sync(ALL_LANES, lane != 9);
    if (lane < 16) /* two halves, apart */
        good &= __reduce_add_sync(half, lane) == 120;
    else
        good &= __reduce_max_sync(half, -int(lane)) == -16;
    good &= __reduce_xor_sync(ALL_LANES, lane == 2 ? 12u : 1u) == (12u ^ 1u);
    good &= __syncthreads_count(T < 5) == 5 && __syncthreads_or(T == 77) && !__syncthreads_and(T != 77);
    out[T] = good;
}

/* The last block to arrive adds up what all blocks stored. */
__device__ unsigned arrivals;
__global__ void last_block(float *out, const float *in)
{
    __shared__ bool last;
    float sum = warp_sum(in[T + 32 * (blockIdx.x % 4)]);
    if (T == 0) {
        out[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&arrivals, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && T == 0)
        for (unsigned i = 1; i < gridDim.x; i++)
            out[0] += out[i];
}

template <int Size> __global__ void large(float *out, const float *in)
{
    __shared__ float s[Size];
    s[T] = in[T];
    __syncthreads();
    out[T] = s[T ^ 1];
}

__global__ void places(float *out, const float *)
{
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (block == 17)
        out[thread % N] = float(block * 1000 + threadIdx.z * 100 + threadIdx.y * 10 + threadIdx.x);
}
void run_places()
{
    float *out = device_floats(N), *in = device_floats(N);
    start(places, out, in, dim3(2, 3, 4), dim3(4, 4, 8));
    show_device(out, N);
}

/* ---- races ---- */

__global__ void no_barrier(float *out, const float *in)
{
    __shared__ float s[N];
    s[T] = in[T];
    out[T] = s[N - 1 - T];
}

__global__ void written_too_early(float *out, const float *in)
{
    __shared__ float s[N];
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        s[T] = in[T] + float(k);
        __syncthreads();
        sum += s[N - 1 - T];
    }
    out[T] = sum;
}

__global__ void no_syncwarp(float *out, const float *in)
{
    __shared__ float s[N];
    s[T] = in[T];
    out[T] = s[T ^ 1];
}

__global__ void no_atomic(float *out, const float *in)
{
    __shared__ float s;
    if (T == 0)
        s = 0;
    __syncthreads();
    s += in[T];
    __syncthreads();
    out[T] = s;
}

__global__ void blocks_without_atomic(float *out, const float *in)
{
    if (T == 0)
        out[0] = out[0] / 2 + in[blockIdx.x]; /* so that every order shows */
}

/* ---- barriers and warp operations ---- */

__global__ void divergent_barrier(float *out, const float *in)
{
    if (T < 64)
        __syncthreads();
    out[T] = in[T];
    if (T >= 64)
        __syncthreads();
}

__global__ void barrier_after_return(float *out, const float *in)
{
    if (T >= 100)
        return;
    out[T] = in[T];
    __syncthreads();
}

__global__ void absent_lanes(float *out, const float *in)
{
    float v = in[T];
    if (T % 32 < 16)
        v += __shfl_xor_sync(ALL_LANES, v, 8);
    out[T] = v;
}

__global__ void shuffle_after_return(float *out, const float *in)
{
    if (T >= 120)
        return;
    out[T] = in[T] + __shfl_down_sync(ALL_LANES, in[T], 16);
}

__global__ void reads_outside_mask(float *out, const float *in)
{
    if (T % 32 < 16)
        out[T] = __shfl_sync(0x0000ffffu, in[T], 20);
}

__global__ void caller_not_in_mask(float *out, const float *in)
{
    out[T] = __shfl_xor_sync(0x7fffffffu, in[T], 0);
}

__global__ void different_operations(float *out, const float *in)
{
    if (T % 2)
        out[T] = __shfl_xor_sync(ALL_LANES, in[T], 2);
    else
        out[T] = float(__any_sync(ALL_LANES, in[T] > 0));
}

__global__ void half_a_warp(float *out, const float *in)
{
    out[T] = __shfl_xor_sync(ALL_LANES, in[T], 1);
}

__global__ void waits_for_a_barrier(float *out, const float *in)
{
    if (T == 3)
        __syncthreads();
    out[T] = __shfl_xor_sync(ALL_LANES, in[T], 1);
    if (T != 3)
        __syncthreads();
}

/* ---- memory ---- */

__global__ void shared_not_written(float *out, const float *in)
{
    __shared__ float s[N];
    if (T)
        s[T] = in[T];
    __syncthreads();
    out[T] = s[N - 1 - T];
}

__global__ void reads_one_past(float *out, const float *in)
{
    out[T] = in[T + 1];
}

__global__ void writes_one_past(float *out, const float *in)
{
    out[T] = in[T];
}

__global__ void past_static_shared(float *out, const float *in)
{
    __shared__ float s[N - 1], other[N];
    float *volatile unknown = s; /* else the compiler's own check finds it */
    other[T] = 0;
    unknown[T] = in[T];
    __syncthreads();
    out[T] = s[N - 2 - T % (N - 1)] + other[T];
}

__global__ void misaligned(float *out, const float *in)
{
    float4 v = *reinterpret_cast<const float4 *>(in + T % 8 + 1);
    out[T] = v.x + v.w;
}

__device__ __noinline__ unsigned deeper(unsigned n)
{
    volatile unsigned frame[256];
    frame[n & 255] = n;
    return n == 0 ? 0 : deeper(n - 1) + frame[n & 255];
}
__global__ void recursion(float *out, const float *in)
{
    out[T] = in[T] + float(deeper(1000));
}

/* ---- early start ---- */

__global__ void waits_first(float *out, const float *in)
{
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    out[T] = in[T];
}

__global__ void waits_too_late(float *out, const float *in)
{
    float x = in[T];
    cudaGridDependencySynchronize();
    out[T] = x;
}

__global__ void never_waits(float *out, const float *in)
{
    if (in == out)
        out[T] = 0;
}

template <kernel *K> void run_early()
{
    float *out = device_floats(N), *in = device_floats(N);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {4, N, 0, nullptr, &early, 1};
    check(cudaLaunchKernelEx(&config, K, out, in));
    show_device(out, N);
}

void run_writes_one_past()
{
    float *out = device_floats(N - 1), *in = device_floats(N);
    start(writes_one_past, out, in);
    show_device(out, N - 1);
}

void run_reads_past_odd_end()
{
    float *out = device_floats(N), *in = device_floats(N - 1);
    start(writes_one_past, out, in);
    show_device(out, N);
}

void run_after_free()
{
    float *out = device_floats(N), *in = device_floats(N);
    check(cudaFree(in));
    start(mirror, out, device_floats(N), 1, N, N * sizeof(float));
    scale_step hidden = {in, 1}; /* the pointers of plain arguments are checked before */
    check(run_scale_of(out, hidden, nullptr));
    show_device(out, N);
}

__global__ void scale(float *out, const float *in, float factor)
{
    out[T] = in[T] * factor;
}
__global__ void scale_by(float *out, const scale_step *step)
{
    out[T] = step->in[T] * step->factor;
}
__global__ void scale_of(float *out, scale_step step)
{
    out[T] = step.in[T] * step.factor;
}

void run_shared_limit()
{
    float *out = device_floats(N), *in = device_floats(N);
    size_t size = 50 << 10;
    say("%s", cudaGetErrorName(launch(mirror, 1, N, size, nullptr, out, in)));
    say("%s", cudaGetErrorName(cudaGetLastError()));
    check(cudaFuncSetAttribute(mirror, cudaFuncAttributeMaxDynamicSharedMemorySize, int(size)));
    say("%s", cudaGetErrorName(launch(mirror, 1, N, size, nullptr, out, in)));
    say("%s", cudaGetErrorName(
                  cudaFuncSetAttribute(mirror, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10)));
    say("%s", cudaGetErrorName(launch(large<12000>, 1, N, 2000, nullptr, out, in)));
}

void run_sizes()
{
    float *out = device_floats(N), *in = device_floats(N);
    say("%s", cudaGetErrorName(launch(mirror, 1, 2048, N * sizeof(float), nullptr, out, in)));
    say("%s", cudaGetErrorName(launch(mirror, 0, N, N * sizeof(float), nullptr, out, in)));
    say("%s", cudaGetErrorName(launch(mirror, dim3(1, 65536), N, N * sizeof(float), nullptr, out, in)));
    say("%s", cudaGetErrorName(launch(mirror, 1, dim3(1, 1, 65), N * sizeof(float), nullptr, out, in)));
    say("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}

} // namespace

cudaError_t run_scale(float *out, const float *in, float factor, cudaStream_t stream)
{
    return launch(scale, 1, N, 0, stream, out, in, factor);
}
cudaError_t run_scale_by(float *out, const scale_step *step, cudaStream_t stream)
{
    return launch(scale_by, 1, N, 0, stream, out, step);
}
cudaError_t run_scale_of(float *out, scale_step step, cudaStream_t stream)
{
    return launch(scale_of, 1, N, 0, stream, out, step);
}

const test_case kernel_cases[] = {
    {"a sum over a block", run<block_sum>, RIGHT, nullptr, nullptr},
    {"dynamic shared memory", run<mirror, 1, N, N * 4>, RIGHT, nullptr, nullptr},
    {"warp operations and barriers with a vote", run<warp_operations>, RIGHT, "3f800000 x 128", nullptr},
    {"the last block sums up", run<last_block, 8, 32>, RIGHT, nullptr, nullptr},
    {"static shared memory of a template", run<large<N>>, RIGHT, nullptr, nullptr},
    {"indices in three dimensions", run_places, RIGHT, nullptr, nullptr},
    {"an early start that waits", run_early<waits_first>, RIGHT, nullptr, nullptr},
    {"limits of grids and blocks", run_sizes, RIGHT,
     "cudaErrorInvalidConfiguration cudaErrorInvalidConfiguration cudaErrorInvalidConfiguration "
     "cudaErrorInvalidConfiguration cudaSuccess",
     nullptr},
    {"limits of shared memory", run_shared_limit, RIGHT,
     "cudaErrorInvalidValue cudaErrorInvalidValue cudaSuccess cudaErrorInvalidValue cudaErrorInvalidValue",
     nullptr},

    {"no barrier between write and read", run<no_barrier>, DIFFERS, nullptr, nullptr},
    {"no barrier between read and write", run<written_too_early>, DIFFERS, nullptr, nullptr},
    {"no __syncwarp", run<no_syncwarp>, DIFFERS, nullptr, nullptr},
    {"a sum in shared memory without atomicAdd", run<no_atomic>, DIFFERS, nullptr, nullptr},

    {"a sum of blocks without atomicAdd", run<blocks_without_atomic, 8, 32>, DIFFERS_UNSEEN, nullptr,
     nullptr},

    {"divergent barrier", run<divergent_barrier>, DIES, "divergent __syncthreads", nullptr},
    {"barrier after a return", run<barrier_after_return>, DIES, "reached by 100 of 128 threads", nullptr},
    {"mask names lanes that do not come", run<absent_lanes>, DIES, "which has left the kernel", nullptr},
    {"shuffle after a return", run<shuffle_after_return>, DIES, "which has left the kernel", nullptr},
    {"shuffle reads outside of its mask", run<reads_outside_mask>, DIES, "not in the mask 0000ffff", nullptr},
    {"caller is not in its mask", run<caller_not_in_mask>, DIES, "lane 31 is not in the mask", nullptr},
    {"two operations meet", run<different_operations>, DIES, "meets in different warp operations", nullptr},
    {"full mask in half a warp", run<half_a_warp, 1, 48>, DIES, "lanes that the block does not have",
     nullptr},
    {"barrier inside a warp operation", run<waits_for_a_barrier, 1, 32>, DIES, "deadlock: lane 3 of the mask",
     nullptr},

    {"an early start that never waits", run_early<never_waits>, DIES,
     "does not wait for the kernel before it", nullptr},
    {"an early start that reads before it waits", run_early<waits_too_late>, DIES_BY_KEY,
     "before cudaGridDependencySynchronize", nullptr},

    {"shared memory never written", run<shared_not_written, 3>, RIGHT, "ffffffff", nullptr},
    {"read past the end", run<reads_one_past>, DIES, "bytes past the end of the allocation of 512 bytes",
     nullptr},
    {"read past an end that is not that of a page", run_reads_past_odd_end, DIES, nullptr,
     "AddressSanitizer"},
    {"write past the end", run_writes_one_past, DIES, "write past the end of an allocation of 508 bytes",
     "AddressSanitizer"},
    {"read after cudaFree", run_after_free, DIES, "not allocated or was freed", nullptr},
    {"dynamic shared memory too small", run<mirror, 1, N, N * 4 - 16>, DIES,
     "past the end of the 496 bytes of dynamic shared memory", nullptr},
    {"past a static shared array", run<past_static_shared>, DIES, nullptr, "AddressSanitizer"},
    {"misaligned load of 16 bytes", run<misaligned>, DIES, nullptr, "misaligned address"},
    {"more stack than there is", run<recursion>, DIES, "stack overflowed", nullptr},
    {nullptr, nullptr, RIGHT, nullptr, nullptr},
};
