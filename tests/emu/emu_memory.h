/*
 * emu_memory.h: device memory, pinned host memory, shared memory.
 *
 * Device memory is filled with 0xFF (a NaN in every float type) and cannot be accessed except between
 * device_open and device_close, which the runtime does around what the device does. Each allocation ends at
 * an inaccessible page; up to 255 bytes before that are watched (and, under ASan, poisoned). Freed addresses
 * are never used again.
 */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace emu
{

/* NULL: more than NL_EMU_MEMORY. Aligned to 256 bytes. */
void *device_allocate(size_t size);
bool device_free(void *); /* false: not the beginning of an allocation */
uint64_t device_used();
void device_open(); /* calls nest */
void device_close();
/* While open: makes device memory inaccessible for a while, where protection keys make that cheap. */
void device_hide();
void device_show();
bool device_hidden();
/* Fails if something was written past the end of an allocation; `after` names the culprit. */
void device_check(const char *after);

void pinned_add(void *address, size_t size);
bool pinned_remove(void *address, size_t *size); /* false: was not added */

enum memory_kind { HOST_MEMORY, PINNED_MEMORY, DEVICE_MEMORY };
memory_kind kind_of(const void *);
/* Whether all of the bytes lie in one allocation of the device. */
bool in_device(const void *, size_t size);
/* Dynamic shared memory of that size, filled with 0xFF, with an inaccessible page behind it. The same memory
   each time. */
void *guarded_shared(size_t size);

void memory_reset(); /* frees all device memory */
void memory_free();  /* all that is left, too */
/* Prepares the calling thread and the process for telling what a wrong access was. */
void faults_watch();
void faults_unwatch();

} // namespace emu

#endif
