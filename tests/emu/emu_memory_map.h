/*
 * emu_memory_map.h: what emu_memory.cpp tells emu_faults.cpp about an address.
 */
#ifndef EMU_MEMORY_MAP_H
#define EMU_MEMORY_MAP_H

#include <cstddef>

namespace emu
{

struct device_allocation {
    char *mapped; /* pages; an inaccessible one lies behind them */
    size_t mapped_size;
    char *address; /* [size], then [usable - size] that nobody may write, up to the end of the pages */
    size_t size, usable;
};

/* The allocation that begins at the address or, of those below it, the highest. */
bool find_near(const void *address, device_allocation *);
/* Whether the address is, was or may become device memory. */
bool in_arena(const void *address);
/* Whether the address is in the page behind dynamic shared memory, and how much of that there is now. */
bool past_shared(const void *address, size_t *size);

} // namespace emu

#endif
