/*
 * emu_fiber.h: fibers: one own stack each, switched by hand on one OS thread. Known to ASan and TSan.
 *
 * The stack the process came with is a fiber too (fiber_host). Under TSan (EMU_TSAN) this file and its users
 * are compiled without -fsanitize=thread; what orders two fibers is then only what sync_release and
 * sync_acquire say.
 */
#ifndef EMU_FIBER_H
#define EMU_FIBER_H

#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#endif

#define EMU_FIBER_HIDDEN __attribute__((visibility("hidden")))

namespace emu
{

enum { FIBER_STACK = 128 << 10, FIBER_GUARD = 4096 };

struct fiber {
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    char *stack; /* lowest address; a guard page lies below; NULL: the host's, not yet known */
    size_t stack_size;
    void *sanitizer; /* TSan's handle */
};

/* `run` must never return: it ends by switching away. It is the same for all fibers. */
void fiber_init(fiber *, void (*run)());
void fiber_free(fiber *);
/* The fiber of the code that calls this from outside of all fibers; again before each run, because another OS
   thread may be the host then. */
void fiber_host(fiber *);
#if defined(__x86_64__) && !defined(EMU_ASAN) && !defined(EMU_TSAN)
#define EMU_PLAIN_SWITCH 1
/* What is most of the time spent in: inline, so that few lines of each stack are touched. */
extern "C" EMU_FIBER_HIDDEN void emu_switch(void **save, void *to);
static inline void fiber_switch(fiber *from, fiber *to)
{
    emu_switch(&from->stack_pointer, to->stack_pointer);
}
#else
void fiber_switch(fiber *from, fiber *to);
#endif
/* Whether the address lies in the fiber's guard page. */
bool fiber_overflowed(const fiber *, const void *address);

#if defined(EMU_TSAN)
extern "C" void __tsan_acquire(void *);
extern "C" void __tsan_release(void *);
static inline void sync_acquire(void *token)
{
    __tsan_acquire(token);
}
static inline void sync_release(void *token)
{
    __tsan_release(token);
}
#else
static inline void sync_acquire(void *)
{
}
static inline void sync_release(void *)
{
}
#endif

} // namespace emu

#endif
