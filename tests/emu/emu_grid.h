/*
 * emu_grid.h: runs the blocks of a grid, one after another, each thread a fiber.
 */
#ifndef EMU_GRID_H
#define EMU_GRID_H

#include <memory>
#include <vector>

#include "emu.h"
#include "emu_symbols.h"

namespace emu
{

/* A launch with its arguments copied; may run many times, as a node of a graph. */
struct launch_record {
    const void *kernel;
    kernel_info *info;
    void (*call)(const void *kernel, void *const *arguments);
    std::vector<std::max_align_t> bytes; /* the arguments, each aligned as max_align_t is, or better */
    std::vector<void *> arguments;
    dim3 grid, block;
    size_t shared;
    bool early; /* may start before the kernel before it has ended */
};

/* Sizes have been checked. Device memory is accessible meanwhile. */
void run_grid(const launch_record &);

/* Frees the fibers. */
void grid_free();

/* "kernel NAME, block (x,y,z), thread (x,y,z)", or "" outside of kernels. For messages. */
void describe_current(char *text, size_t size);
/* Whether the address is in the guard page of a fiber's stack. */
bool is_fiber_guard(const void *address);

} // namespace emu

#endif
