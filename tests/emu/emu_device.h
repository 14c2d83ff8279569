/*
 * emu_device.h: included before everything else where g++ compiles a .cu file (g++ -x c++ -DNL_EMU -include
 * emu_device.h): the keywords, variables and functions of CUDA's device side. Types, vectors, bf16, half and
 * the prototypes of the runtime come from the toolkit's own headers, so they cannot drift.
 *
 * Rules for kernels (most are rules of CUDA that hardware does not check):
 * - launch through cudaLaunchKernelEx(&config, kernel, arguments...), the toolkit's C++ template; k<<<>>> and
 *   cudaLaunchKernelExC are not known here;
 * - dynamic shared memory through NL_SHARED_MEMORY(type, name); static arrays as usual, declared in the
 *   kernel itself (those of helper functions work but are not filled with NaN for each block);
 * - blocks of a multiple of 32 threads; no return before a barrier or a warp operation unless all lanes
 *   leave; masks name exactly the lanes that come;
 * - where the launch allows an early start, all threads call cudaGridDependencySynchronize before they
 *   touch device memory;
 * - no inline PTX, mma, cp.async, cooperative groups, textures, no waiting for another block, and no
 *   __device__ or __constant__ variables that the host copies to;
 * - the intrinsics of reduced precision (__expf, __fdividef, ...) are poisoned.
 */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "emu.h"

/* ---- keywords ---- */

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
#define __shared__      static /* one block runs at a time, so one instance does */
#define __constant__    static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900

#define warpSize 32

#define NL_SHARED_MEMORY(type, name) type *const name = static_cast<type *>(emu::shared_memory)

#define EMU_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define EMU_HERE                                                                                             \
    emu::place                                                                                               \
    {                                                                                                        \
        file, line                                                                                           \
    }

/* ---- barriers and warp operations ---- */

static inline void __syncthreads(EMU_PLACE)
{
    emu::barrier(emu::BARRIER, 0, EMU_HERE);
}
static inline int __syncthreads_count(int predicate, EMU_PLACE)
{
    return emu::barrier(emu::BARRIER_COUNT, predicate, EMU_HERE);
}
static inline int __syncthreads_and(int predicate, EMU_PLACE)
{
    return emu::barrier(emu::BARRIER_AND, predicate, EMU_HERE);
}
static inline int __syncthreads_or(int predicate, EMU_PLACE)
{
    return emu::barrier(emu::BARRIER_OR, predicate, EMU_HERE);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_PLACE)
{
    emu::warp(emu::SYNC_WARP, mask, 0, 0, 32, EMU_HERE);
}

namespace emu
{
template <class T>
static inline T shuffle(warp_op op, unsigned mask, T value, unsigned argument, int width, place where)
{
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = warp(op, mask, bits, argument, width, where);
    memcpy(&value, &bits, sizeof value);
    return value;
}
} // namespace emu

template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMU_PLACE)
{
    return emu::shuffle(emu::SHUFFLE_INDEX, mask, value, unsigned(lane), width, EMU_HERE);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMU_PLACE)
{
    return emu::shuffle(emu::SHUFFLE_UP, mask, value, delta, width, EMU_HERE);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMU_PLACE)
{
    return emu::shuffle(emu::SHUFFLE_DOWN, mask, value, delta, width, EMU_HERE);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, EMU_PLACE)
{
    return emu::shuffle(emu::SHUFFLE_XOR, mask, value, unsigned(lanes), width, EMU_HERE);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_PLACE)
{
    return unsigned(emu::warp(emu::BALLOT, mask, predicate != 0, 0, 32, EMU_HERE));
}
static inline int __any_sync(unsigned mask, int predicate, EMU_PLACE)
{
    return int(emu::warp(emu::ANY, mask, predicate != 0, 0, 32, EMU_HERE));
}
static inline int __all_sync(unsigned mask, int predicate, EMU_PLACE)
{
    return int(emu::warp(emu::ALL, mask, predicate != 0, 0, 32, EMU_HERE));
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned value, EMU_PLACE)
{
    return unsigned(emu::warp(emu::REDUCE_ADD, mask, value, 0, 32, EMU_HERE));
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned value, EMU_PLACE)
{
    return unsigned(emu::warp(emu::REDUCE_MIN, mask, value, 0, 32, EMU_HERE));
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned value, EMU_PLACE)
{
    return unsigned(emu::warp(emu::REDUCE_MAX, mask, value, 0, 32, EMU_HERE));
}
static inline int __reduce_add_sync(unsigned mask, int value, EMU_PLACE)
{
    return int(emu::warp(emu::REDUCE_ADD, mask, unsigned(value), 0, 32, EMU_HERE));
}
static inline int __reduce_min_sync(unsigned mask, int value, EMU_PLACE)
{
    return int(emu::warp(emu::REDUCE_MIN_SIGNED, mask, unsigned(value), 0, 32, EMU_HERE));
}
static inline int __reduce_max_sync(unsigned mask, int value, EMU_PLACE)
{
    return int(emu::warp(emu::REDUCE_MAX_SIGNED, mask, unsigned(value), 0, 32, EMU_HERE));
}
static inline unsigned __reduce_and_sync(unsigned mask, unsigned value, EMU_PLACE)
{
    return unsigned(emu::warp(emu::REDUCE_AND, mask, value, 0, 32, EMU_HERE));
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned value, EMU_PLACE)
{
    return unsigned(emu::warp(emu::REDUCE_OR, mask, value, 0, 32, EMU_HERE));
}
static inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, EMU_PLACE)
{
    return unsigned(emu::warp(emu::REDUCE_XOR, mask, value, 0, 32, EMU_HERE));
}
/* CUDA promises no more than that the caller is in it. */
static inline unsigned __activemask()
{
    return 1u << ((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31);
}

/* Blocks run one after another and fibers on one thread: memory is always in order. */
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}
static inline void __nanosleep(unsigned)
{
}
#define __trap() emu::fail({__FILE__, __LINE__}, "__trap")

/* The kernel before has ended in fact, but its results are not to be seen by one launched to start early that
   has not waited. */
#define cudaGridDependencySynchronize           emu::wait_for_grid
#define cudaTriggerProgrammaticLaunchCompletion emu_let_next_start
static inline void emu_let_next_start()
{
}

#include "emu_math.h"

/* ---- launches ---- */

namespace emu
{
template <class... P, size_t... I>
static void call_kernel(void (*kernel)(P...), void *const *arguments, std::index_sequence<I...>)
{
    kernel(*static_cast<std::remove_cv_t<P> *>(arguments[I])...);
}

template <class... P> static void call_typed(const void *kernel, void *const *arguments)
{
    call_kernel(reinterpret_cast<void (*)(P...)>(const_cast<void *>(kernel)), arguments,
                std::index_sequence_for<P...>());
}

template <class... P> static const kernel_type &type_of(void (*)(P...))
{
    static const parameter parameters[sizeof...(P) + 1] = {{sizeof(P), std::is_pointer<P>::value}...,
                                                           {0, false}};
    static const kernel_type type = {call_typed<P...>, parameters, sizeof...(P)};
    return type;
}

template <class... P, class... A>
static inline cudaError_t launch_typed(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                                       A &&...arguments)
{
    auto with = [&](P... converted) {
        void *pointers[] = {(void *)&converted..., nullptr};
        return launch(config, reinterpret_cast<const void *>(kernel), type_of(kernel), pointers);
    };
    return with(std::forward<A>(arguments)...);
}
} // namespace emu
#define cudaLaunchKernelEx emu::launch_typed

/* The toolkit has these for nvcc only. */
template <class... P>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
template <class... P>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(P...))
{
    return cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(kernel));
}

#endif
