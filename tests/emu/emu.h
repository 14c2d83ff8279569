/*
 * emu.h: CUDA kernels on the CPU: what the device side (emu_device.h), the parts of the runtime and the tests
 * share.
 *
 * Each CUDA thread is a fiber (emu_fiber.h); the blocks of a grid run one after another (emu_grid.cpp). Work
 * given to a stream waits there until a synchronisation needs it (emu_stream.h), in an order as unhelpful as
 * the rules of CUDA allow. Device memory cannot be touched by the host in between (emu_memory.h).
 *
 * A mistake that real hardware would turn into a wrong result ends the process: a line on standard error,
 * then abort(). What the real runtime reports as an error code is reported as that code.
 *
 * Environment, read at the first call and after emu_reset():
 *   NL_EMU_ORDER   fwd (default), rev, randN: order of blocks, warps, lanes, streams and graph nodes
 *   NL_EMU_MEMORY  bytes of device memory (default 16 GiB)
 *   NL_EMU_CC      compute capability, major * 10 + minor (default 90)
 *   NL_EMU_FAIL    faults to inject, N counted from 1, separated by commas: malloc:N (the Nth cudaMalloc
 * finds no memory), host:N (the same for pinned memory), launch:N (the Nth launch is refused), kernel:N (the
 * Nth kernel to run fails, reported at the next synchronisation and ever after), lost:N (the device is gone
 * from the Nth call of the runtime on) NL_EMU_STATS   set: counts on standard error at exit
 */
#ifndef EMU_H
#define EMU_H

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#define EMU_HIDDEN __attribute__((visibility("hidden")))

/* Forgets streams, memory, errors and counters, and reads the environment again. For tests. */
extern "C" void emu_reset(void);

/* What the current thread sees. Variables, because the members of cudaLaunchConfig_t have the same names. */
extern EMU_HIDDEN uint3 threadIdx, blockIdx;
extern EMU_HIDDEN dim3 blockDim, gridDim;

namespace emu
{

/* Where in the source a device function was called. */
struct place {
    const char *file;
    int line;
};

extern EMU_HIDDEN void *shared_memory; /* of the current block, dynamic */
bool in_kernel();

enum warp_op {
    SHUFFLE_INDEX,
    SHUFFLE_UP,
    SHUFFLE_DOWN,
    SHUFFLE_XOR,
    BALLOT,
    ANY,
    ALL,
    SYNC_WARP,
    REDUCE_ADD,
    REDUCE_MIN_SIGNED,
    REDUCE_MAX_SIGNED,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR,
};
/* A warp operation of the lanes in `mask`, all of which must come with the same arguments; `argument` is the
   lane, distance or lane mask of a shuffle. Gives the lane's result. */
uint64_t warp(warp_op op, unsigned mask, uint64_t value, unsigned argument, int width, place where);

enum barrier_op { BARRIER, BARRIER_COUNT, BARRIER_AND, BARRIER_OR };
int barrier(barrier_op op, int predicate, place where);

/* Ends the process: "emu: ...: kernel NAME, block (x,y,z), thread (x,y,z), FILE:LINE". */
[[noreturn]] void fail(place where, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How a kernel's arguments are laid out, and how it is called; made by emu_device.h from its type. */
struct parameter {
    uint32_t size;
    bool pointer; /* must point to device or pinned memory, or be NULL */
};
struct kernel_type {
    void (*call)(const void *kernel, void *const *arguments);
    const parameter *parameters;
    unsigned n_parameters;
};
/* cudaLaunchKernelExC for a kernel whose type is known. */
cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel, const kernel_type &type,
                   void **arguments);

/* cudaGridDependencySynchronize */
void wait_for_grid();

} // namespace emu

#endif
