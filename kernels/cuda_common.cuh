/*
 * cuda_common.cuh: what every .cu file includes: launching, shared memory, sums over a warp and a block.
 *
 * The same sources are compiled by nvcc and, with NL_EMU, by a C++ compiler for the emulation in tests/emu.
 * So that both agree: block sizes are multiples of 32; nobody returns before a barrier or a warp operation
 * unless the whole block does; masks are full; kernels are started by nl_launch and take dynamic shared
 * memory from NL_SHARED_MEMORY. The compiler contracts nothing (-fmad=false): where a fused multiply-add is
 * meant it is written, so that a fused operation gives the bits of its parts run one after the other.
 */
#ifndef NL_CUDA_COMMON_CUH
#define NL_CUDA_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cstdint>

#include "cuda.h"

enum { NL_WARP = 32 };

#ifndef NL_SHARED_MEMORY /* the emulation, included before everything else, has its own */
#define NL_SHARED_MEMORY(type, name)                                                                         \
    extern __shared__ __align__(16) unsigned char nl_shared_bytes[];                                         \
    type *name = reinterpret_cast<type *>(nl_shared_bytes)
#endif

/* kernel<<<grid, block, shared, stream>>>(arguments...), allowed to start while the kernel before it ends
   where the device can do that: every kernel begins with nl_begin(). */
template <typename... Parameters, typename... Arguments>
static cudaError_t nl_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                             cudaStream_t stream, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = nl_cuda_early_start ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/* Lets the next kernel be set up, and waits until all that the kernels before this one wrote is there. */
static __device__ inline void nl_begin()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

static __device__ inline float nl_warp_sum(float x)
{
    for (int offset = NL_WARP / 2; offset > 0; offset /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    return x;
}

static __device__ inline float nl_warp_max(float x)
{
    for (int offset = NL_WARP / 2; offset > 0; offset /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
    return x;
}

/* What the warps of a block of at most 1024 threads have, put together in one order; `space` [32] is shared
   and free again after the next barrier. All threads get it. */
template <typename T, typename Combine>
static __device__ inline T nl_across_warps(T x, T *space, Combine combine)
{
    __syncthreads();
    if (threadIdx.x % NL_WARP == 0)
        space[threadIdx.x / NL_WARP] = x;
    __syncthreads();
    T all = space[0];
    for (unsigned i = 1; i < blockDim.x / NL_WARP; i++)
        all = combine(all, space[i]);
    return all;
}

static __device__ inline float nl_block_sum(float x, float *space)
{
    return nl_across_warps(nl_warp_sum(x), space, [](float a, float b) { return a + b; });
}

static __device__ inline float nl_block_max(float x, float *space)
{
    return nl_across_warps(nl_warp_max(x), space, [](float a, float b) { return fmaxf(a, b); });
}

/* x as bfloat16 where `rounds`, else as it is. */
static __device__ inline float nl_round(float x, bool rounds)
{
    return rounds ? __bfloat162float(__float2bfloat16_rn(x)) : x;
}

static __device__ inline float nl_cap(float x, float cap, bool rounds)
{
    return cap == 0 ? x : nl_round(cap * nl_round(tanhf(nl_round(x / cap, rounds)), rounds), rounds);
}

/* Of a product of q and k. */
static __device__ inline float nl_score(float product, const nl_cuda_attention &a)
{
    float scaled = nl_round(nl_round(product, a.round_scores) * a.scale, a.round_scores);
    return nl_cap(scaled, a.cap, a.round_scores);
}

static __host__ __device__ inline unsigned nl_divide_up(size_t a, size_t b)
{
    return static_cast<unsigned>((a + b - 1) / b);
}

#endif
