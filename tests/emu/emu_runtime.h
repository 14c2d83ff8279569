/*
 * emu_runtime.h: the state of errors, which every entry of the runtime begins with.
 */
#ifndef EMU_RUNTIME_H
#define EMU_RUNTIME_H

#include <cuda_runtime_api.h>

namespace emu
{

/* First of all: an error if the device has failed or is lost, which then stays for ever. */
cudaError_t enter();
/* Remembers an error for cudaGetLastError, and gives it back. */
cudaError_t note(cudaError_t);
/* Counts a launch of a kernel or graph: an error if it is the one to be refused. */
cudaError_t count_launch();
/* Whether the device still runs kernels; fails it if this is the kernel that is to fail. */
bool may_run_kernel();
cudaError_t device_status();
/* Shared memory of a block, static and dynamic together, after cudaFuncSetAttribute. */
size_t shared_optin();
void errors_reset();

} // namespace emu

#endif
