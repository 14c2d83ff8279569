/*
 * Launches of kernels: checked as the real runtime checks them, then given to the stream with their
 * arguments.
 */
#include <cstring>

#include "emu_grid.h"
#include "emu_memory.h"
#include "emu_options.h"
#include "emu_runtime.h"
#include "emu_stream.h"

namespace emu
{

enum { MAX_PARAMETERS = 32764, UNIT = sizeof(std::max_align_t) };

size_t shared_optin()
{
    switch (the_options.capability) {
    case 75:
        return 64 << 10;
    case 80:
    case 87:
        return 163 << 10;
    case 86:
    case 89:
    case 120:
        return 99 << 10;
    default:
        return 227 << 10;
    }
}

static bool block_fits(const dim3 &b)
{
    return b.x && b.y && b.z && b.x <= 1024 && b.y <= 1024 && b.z <= 64 && uint64_t(b.x) * b.y * b.z <= 1024;
}

static bool grid_fits(const dim3 &g)
{
    return g.x && g.y && g.z && g.x <= 0x7fffffff && g.y <= 65535 && g.z <= 65535;
}

static bool may_start_early(const cudaLaunchConfig_t &c)
{
    for (unsigned i = 0; i < c.numAttrs; i++)
        if (c.attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization)
            return c.attrs[i].val.programmaticStreamSerializationAllowed != 0;
    return false;
}

static cudaError_t check_attributes(const cudaLaunchConfig_t &c)
{
    for (unsigned i = 0; i < c.numAttrs; i++) {
        switch (c.attrs[i].id) {
        case cudaLaunchAttributeIgnore:
        case cudaLaunchAttributePriority:
        case cudaLaunchAttributePreferredSharedMemoryCarveout:
            break;
        case cudaLaunchAttributeProgrammaticStreamSerialization:
            if (the_options.capability < 90)
                return cudaErrorNotSupported;
            break;
        default:
            return cudaErrorNotSupported;
        }
    }
    return cudaSuccess;
}

/* A kernel that gets a host's pointer would run here, and fault on a device: so pointers are looked at. Those
   in structures cannot be told from numbers and what stands between members. */
static void check_pointers(const kernel_info &info, const kernel_type &type, void **arguments)
{
    for (unsigned i = 0; i < type.n_parameters; i++) {
        const void *value;
        if (!type.parameters[i].pointer)
            continue;
        memcpy(&value, arguments[i], sizeof value);
        if (value && kind_of(value) == HOST_MEMORY)
            fail({nullptr, 0}, "kernel %s: argument %u, %p, is no pointer to device memory",
                 info.name.c_str(), i, value);
    }
}

static std::shared_ptr<launch_record> record_of(const cudaLaunchConfig_t &c, const void *kernel,
                                                kernel_info &info, const kernel_type &type, void **arguments)
{
    auto record = std::make_shared<launch_record>();
    size_t units = 0;
    for (unsigned i = 0; i < type.n_parameters; i++)
        units += (type.parameters[i].size + UNIT - 1) / UNIT;
    record->kernel = kernel;
    record->info = &info;
    record->call = type.call;
    record->bytes.resize(units);
    record->grid = c.gridDim;
    record->block = c.blockDim;
    record->shared = c.dynamicSmemBytes;
    record->early = may_start_early(c);
    units = 0;
    for (unsigned i = 0; i < type.n_parameters; i++) {
        void *copy = record->bytes.data() + units;
        memcpy(copy, arguments[i], type.parameters[i].size);
        record->arguments.push_back(copy);
        units += (type.parameters[i].size + UNIT - 1) / UNIT;
    }
    return record;
}

static cudaError_t check_launch(const cudaLaunchConfig_t &c, const kernel_info &info, const kernel_type &type)
{
    size_t parameters = 0;
    for (unsigned i = 0; i < type.n_parameters; i++)
        parameters += type.parameters[i].size;
    if (!block_fits(c.blockDim) || !grid_fits(c.gridDim))
        return cudaErrorInvalidConfiguration;
    if (c.dynamicSmemBytes > info.dynamic_limit || c.dynamicSmemBytes + info.shared_size > shared_optin() ||
        parameters > MAX_PARAMETERS)
        return cudaErrorInvalidValue;
    if (info.dynamic_limit <= 48 << 10 && c.dynamicSmemBytes + info.shared_size > 48 << 10)
        return cudaErrorInvalidValue;
    return check_attributes(c);
}

cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel, const kernel_type &type,
                   void **arguments)
{
    if (cudaError_t e = enter())
        return e;
    if (cudaError_t e = count_launch())
        return note(e);
    kernel_info &info = kernel_info_of(kernel);
    if (cudaError_t e = check_launch(*config, info, type))
        return note(e);
    check_pointers(info, type, arguments);
    std::shared_ptr<launch_record> record = record_of(*config, kernel, info, type, arguments);
    return note(enqueue(config->stream, [record] {
        if (!may_run_kernel())
            return;
        run_grid(*record);
        device_check(record->info->name.c_str());
    }));
}

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    if (cudaError_t e = enter())
        return e;
    kernel_info &info = kernel_info_of(kernel);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return note(cudaErrorNotSupported);
    if (value < 0 || size_t(value) + info.shared_size > shared_optin())
        return note(cudaErrorInvalidValue);
    info.dynamic_limit = size_t(value);
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel)
{
    if (cudaError_t e = enter())
        return e;
    const kernel_info &info = kernel_info_of(kernel);
    *attributes = cudaFuncAttributes();
    attributes->sharedSizeBytes = info.shared_size;
    attributes->maxDynamicSharedSizeBytes = int(info.dynamic_limit);
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->ptxVersion = 90; /* __CUDA_ARCH__ in emu_device.h */
    attributes->binaryVersion = the_options.capability;
    return cudaSuccess;
}

/* As many as the threads allow. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *, int block,
                                                                   size_t shared, unsigned)
{
    if (cudaError_t e = enter())
        return e;
    if (block <= 0 || block > 1024 || shared > shared_optin())
        return note(cudaErrorInvalidValue);
    *n = 2048 / block;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *kernel, int block,
                                                          size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, kernel, block, shared, 0);
}
}
