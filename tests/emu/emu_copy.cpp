/*
 * The runtime's entries for memory. Copies from and to pinned memory happen when their turn comes in the
 * stream, so that a missing synchronisation shows; with pageable memory CUDA promises more, and so does this.
 */
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emu_memory.h"
#include "emu_options.h"
#include "emu_runtime.h"
#include "emu_stream.h"

namespace emu
{

/* Rows of `width` bytes. */
struct copy {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
};

static void run_copy(const copy &c)
{
    for (size_t row = 0; row < c.height; row++)
        memmove(c.to + row * c.to_pitch, c.from + row * c.from_pitch, c.width);
}

/* From the first to the last byte. */
static size_t extent(size_t pitch, const copy &c)
{
    return c.width && c.height ? pitch * (c.height - 1) + c.width : 0;
}

static bool to_is_device(cudaMemcpyKind kind, const copy &c)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
           (kind == cudaMemcpyDefault && kind_of(c.to) == DEVICE_MEMORY);
}

static bool from_is_device(cudaMemcpyKind kind, const copy &c)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
           (kind == cudaMemcpyDefault && kind_of(c.from) == DEVICE_MEMORY);
}

/* Whether each side is where the kind says, and within one allocation if on the device. */
static bool sides_are_right(const copy &c, bool to_device, bool from_device)
{
    size_t to_size = extent(c.to_pitch, c), from_size = extent(c.from_pitch, c);
    if (to_device ? !in_device(c.to, to_size) : kind_of(c.to) == DEVICE_MEMORY)
        return false;
    return from_device ? in_device(c.from, from_size) : kind_of(c.from) != DEVICE_MEMORY;
}

static cudaError_t start_copy(const copy &c, cudaMemcpyKind kind, cudaStream_t handle, bool wait)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s)
        return note(cudaErrorInvalidResourceHandle);
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return note(cudaErrorInvalidMemcpyDirection);
    bool to_device = to_is_device(kind, c), from_device = from_is_device(kind, c);
    if (c.width == 0 || c.height == 0)
        return cudaSuccess;
    if (!sides_are_right(c, to_device, from_device))
        return note(cudaErrorInvalidValue);
    bool pageable_from = !from_device && kind_of(c.from) == HOST_MEMORY;
    bool pageable_to = !to_device && kind_of(c.to) == HOST_MEMORY;
    if (pageable_from && !wait && !s->capturing) { /* staged before the call returns */
        auto staged = std::make_shared<std::vector<char>>(c.width * c.height);
        copy stage = {staged->data(), c.from, c.width, c.from_pitch, c.width, c.height};
        run_copy(stage);
        copy later = {c.to, staged->data(), c.to_pitch, c.width, c.width, c.height};
        return note(enqueue(s, [later, staged] { run_copy(later); }));
    }
    if (cudaError_t e = enqueue(s, [c] {
            if (device_status() == cudaSuccess)
                run_copy(c);
        }))
        return note(e);
    bool both_device = to_device && from_device;
    if (!s->capturing && ((wait && !both_device) || pageable_to)) {
        run_stream(s);
        return device_status();
    }
    return cudaSuccess;
}

static cudaError_t start_fill(void *to, int value, size_t size, cudaStream_t s)
{
    if (cudaError_t e = enter())
        return e;
    if (!in_device(to, size))
        return note(cudaErrorInvalidValue);
    return note(enqueue(s, [=] { memset(to, value, size); }));
}

static copy line(void *to, const void *from, size_t size)
{
    return {static_cast<char *>(to), static_cast<const char *>(from), size, size, size, 1};
}

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaMalloc(void **address, size_t size)
{
    if (cudaError_t e = enter())
        return e;
    *address = nullptr;
    if (!allowed_in_capture())
        return note(cudaErrorStreamCaptureUnsupported);
    if (size == 0)
        return cudaSuccess;
    if (++the_counters.mallocs == the_options.fail_malloc)
        return note(cudaErrorMemoryAllocation);
    *address = device_allocate(size);
    return note(*address ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *address)
{
    if (cudaError_t e = enter())
        return e;
    if (!address)
        return cudaSuccess;
    if (!allowed_in_capture())
        return note(cudaErrorStreamCaptureUnsupported);
    run_all(); /* it waits for the device */
    return note(device_free(address) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    if (cudaError_t e = enter())
        return e;
    *total = the_options.memory;
    *free_bytes = the_options.memory - device_used();
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **address, size_t size, unsigned)
{
    if (cudaError_t e = enter())
        return e;
    *address = nullptr;
    if (++the_counters.hosts == the_options.fail_host || posix_memalign(address, 4096, size ? size : 1) != 0)
        return note(cudaErrorMemoryAllocation);
    memset(*address, 0xff, size);
    pinned_add(*address, size);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **address, size_t size)
{
    return cudaHostAlloc(address, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *address)
{
    size_t size;
    if (cudaError_t e = enter())
        return e;
    if (!address)
        return cudaSuccess;
    if (!pinned_remove(address, &size))
        return note(cudaErrorInvalidValue);
    free(address);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *address, size_t size, unsigned)
{
    if (cudaError_t e = enter())
        return e;
    if (!address || !size)
        return note(cudaErrorInvalidValue);
    if (kind_of(address) != HOST_MEMORY)
        return note(cudaErrorHostMemoryAlreadyRegistered);
    pinned_add(address, size);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *address)
{
    size_t size;
    if (cudaError_t e = enter())
        return e;
    return note(pinned_remove(address, &size) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind)
{
    return start_copy(line(to, from, size), kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t s)
{
    return start_copy(line(to, from, size), kind, s, false);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t s)
{
    if (width > to_pitch || width > from_pitch)
        return note(cudaErrorInvalidValue);
    return start_copy(
        {static_cast<char *>(to), static_cast<const char *>(from), to_pitch, from_pitch, width, height}, kind,
        s, false);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind)
{
    if (width > to_pitch || width > from_pitch)
        return note(cudaErrorInvalidValue);
    return start_copy(
        {static_cast<char *>(to), static_cast<const char *>(from), to_pitch, from_pitch, width, height}, kind,
        nullptr, true);
}

cudaError_t cudaMemset(void *to, int value, size_t size)
{
    return start_fill(to, value, size, nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t s)
{
    return start_fill(to, value, size, s);
}
}
