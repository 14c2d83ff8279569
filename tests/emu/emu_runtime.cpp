/*
 * The runtime's entries for devices, errors, streams and events. Memory: emu_copy.cpp; launches:
 * emu_launch.cpp; graphs: emu_graph.cpp.
 */
#include "emu.h"
#include "emu_grid.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emu_memory.h"
#include "emu_options.h"
#include "emu_runtime.h"
#include "emu_stream.h"

namespace emu
{

static cudaError_t last_error, device_error;

/* At the end of the process, or when the library is unloaded. */
static void leave()
{
    print_counters();
    streams_reset();
    grid_free();
    memory_free();
    faults_unwatch();
}

cudaError_t enter()
{
    static bool entered;
    options_load();
    faults_watch();
    if (!entered)
        atexit(leave);
    entered = true;
    if (++the_counters.calls >= the_options.lost && the_options.lost)
        device_error = cudaErrorUnknown; /* what drivers say when a device has fallen off the bus */
    return note(device_error);
}

cudaError_t note(cudaError_t e)
{
    if (e != cudaSuccess)
        last_error = e;
    return e;
}

cudaError_t count_launch()
{
    return ++the_counters.launches == the_options.fail_launch ? cudaErrorLaunchOutOfResources : cudaSuccess;
}

bool may_run_kernel()
{
    if (the_counters.kernels + 1 == the_options.fail_kernel)
        device_error = cudaErrorLaunchFailure;
    return device_error == cudaSuccess;
}

cudaError_t device_status()
{
    return note(device_error);
}

void errors_reset()
{
    last_error = device_error = cudaSuccess;
}

static const struct {
    cudaError_t code;
    const char *name, *text;
} errors[] = {
#define EMU_ERROR(code, text)                                                                                \
    {                                                                                                        \
        code, #code, text                                                                                    \
    }
    EMU_ERROR(cudaSuccess, "no error"),
    EMU_ERROR(cudaErrorInvalidValue, "invalid argument"),
    EMU_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    EMU_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    EMU_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    EMU_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    EMU_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    EMU_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    EMU_ERROR(cudaErrorNotReady, "device not ready"),
    EMU_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    EMU_ERROR(cudaErrorHostMemoryAlreadyRegistered,
              "part or all of the requested memory range is already mapped"),
    EMU_ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    EMU_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    EMU_ERROR(cudaErrorNotSupported, "operation not supported"),
    EMU_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    EMU_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    EMU_ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    EMU_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    EMU_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    EMU_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    EMU_ERROR(cudaErrorStreamCaptureImplicit,
              "operation would make the legacy stream depend on a capturing stream"),
    EMU_ERROR(cudaErrorCapturedEvent,
              "operation not permitted on an event last recorded in a capturing stream"),
    EMU_ERROR(cudaErrorUnknown, "unknown error"),
#undef EMU_ERROR
};

/* For what makes the host wait: forbidden while something captures. */
static cudaError_t enter_waiting()
{
    if (cudaError_t e = enter())
        return e;
    return note(allowed_in_capture() ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
}

} // namespace emu

using namespace emu;

extern "C" {

/* Without this, the work of a test that ended would be done in the next one. */
void emu_reset(void)
{
    streams_reset();
    memory_reset();
    errors_reset();
    options_reset();
}

/* ---- errors ---- */

/* These two work on a lost device as well. */
cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last_error;
    last_error = device_error;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorName(cudaError_t code)
{
    for (const auto &e : errors)
        if (e.code == code)
            return e.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t code)
{
    for (const auto &e : errors)
        if (e.code == code)
            return e.text;
    return "unrecognized error code";
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *n)
{
    if (cudaError_t e = enter())
        return e;
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (cudaError_t e = enter())
        return e;
    return note(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    if (cudaError_t e = enter())
        return e;
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp p;
    if (cudaError_t e = cudaGetDeviceProperties(&p, device))
        return e;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = p.maxThreadsPerBlock;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = int(p.sharedMemPerBlock);
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = int(p.sharedMemPerBlockOptin);
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = int(p.sharedMemPerMultiprocessor);
        break;
    case cudaDevAttrWarpSize:
        *value = p.warpSize;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = p.multiProcessorCount;
        break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = p.maxThreadsPerMultiProcessor;
        break;
    case cudaDevAttrL2CacheSize:
        *value = p.l2CacheSize;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = p.major;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = p.minor;
        break;
    default:
        return note(cudaErrorNotSupported);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    if (cudaError_t e = enter())
        return e;
    if (device != 0)
        return note(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulated");
    p->totalGlobalMem = the_options.memory;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = shared_optin();
    p->sharedMemPerMultiprocessor = shared_optin() + 1024;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsPerMultiProcessor = 2048;
    p->multiProcessorCount = 4;
    p->major = the_options.capability / 10;
    p->minor = the_options.capability % 10;
    p->l2CacheSize = 32 << 20;
    p->memoryBusWidth = 256;
    p->unifiedAddressing = 1;
    p->asyncEngineCount = 1;
    p->concurrentKernels = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (cudaError_t e = enter_waiting())
        return e;
    run_all();
    return device_status();
}

cudaError_t cudaDeviceReset(void)
{
    streams_reset();
    memory_reset();
    errors_reset();
    return cudaSuccess;
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    if (cudaError_t e = enter())
        return e;
    *s = stream_create(flags != cudaStreamNonBlocking);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    return cudaStreamCreateWithFlags(s, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(s, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s || s == stream_of(nullptr) || s->capturing)
        return note(cudaErrorInvalidResourceHandle);
    stream_destroy(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s)
        return note(cudaErrorInvalidResourceHandle);
    if ((s->capturing || s == stream_of(nullptr)) && !allowed_in_capture())
        return note(cudaErrorStreamCaptureUnsupported);
    run_stream(s);
    return device_status();
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    if (cudaError_t e = enter_waiting())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s)
        return note(cudaErrorInvalidResourceHandle);
    run_some(s);
    return stream_idle(s) ? device_status() : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    return note(s && event ? event_wait(s, event) : cudaErrorInvalidResourceHandle);
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    if (cudaError_t e = enter())
        return e;
    *event = new CUevent_st();
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (cudaError_t e = enter())
        return e;
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s || !event)
        return note(cudaErrorInvalidResourceHandle);
    event_record(event, s);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (cudaError_t e = enter_waiting())
        return e;
    if (event->captured)
        return note(cudaErrorCapturedEvent);
    if (event->last && !event->last->done)
        run_ticket(*event->last);
    return device_status();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (cudaError_t e = enter())
        return e;
    if (event->captured)
        return note(cudaErrorCapturedEvent);
    if (event->last && !event->last->done)
        run_some(event->last->where);
    return !event->last || event->last->done ? device_status() : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (cudaError_t e = enter())
        return e;
    if (!from->last || !to->last)
        return note(cudaErrorInvalidResourceHandle);
    if (!from->last->done || !to->last->done)
        return cudaErrorNotReady;
    *ms = float((to->last->seconds - from->last->seconds) * 1e3);
    return cudaSuccess;
}
}
