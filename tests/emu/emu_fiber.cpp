#include "emu_fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#if defined(EMU_ASAN)
extern "C" void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void *fake_stack, const void **old_bottom, size_t *old_size);
#endif
#if defined(EMU_TSAN)
extern "C" void *__tsan_get_current_fiber(void);
extern "C" void *__tsan_create_fiber(unsigned flags);
extern "C" void __tsan_destroy_fiber(void *);
extern "C" void __tsan_switch_to_fiber(void *, unsigned flags);
#endif

namespace emu
{

static void (*first_code)(); /* of all fibers */
#if defined(EMU_ASAN)
static fiber *left; /* by the switch under way: whoever arrives tells ASan about that stack */
#endif

#if defined(__x86_64__)
/* Saves the registers that a call preserves on the old stack, and takes them from the new one. */
extern "C" EMU_FIBER_HIDDEN void emu_switch(void **save, void *to);
asm(".text\n"
    ".globl emu_switch\n"
    ".hidden emu_switch\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size emu_switch, . - emu_switch\n");
#endif

static void arrived(void *fake_stack)
{
#if defined(EMU_ASAN)
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
    if (!left->stack_size) { /* the host's stack is learned when it is left */
        left->stack = static_cast<char *>(const_cast<void *>(bottom));
        left->stack_size = size;
    }
#else
    (void)fake_stack;
#endif
}

static void enter()
{
    arrived(nullptr);
    first_code();
    abort();
}

/* Stacks begin at different places of their pages, else all would share a few sets of the cache. */
static size_t colour()
{
    static unsigned n;
    n++;
    return n % 8 * 512 + n / 8 % 8 * 64;
}

void fiber_init(fiber *f, void (*run)())
{
    char *memory = static_cast<char *>(mmap(nullptr, FIBER_GUARD + FIBER_STACK, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory == MAP_FAILED || mprotect(memory, FIBER_GUARD, PROT_NONE) != 0) {
        perror("emu: stack of a fiber");
        abort();
    }
    *f = fiber();
    first_code = run;
    f->stack = memory + FIBER_GUARD;
    f->stack_size = FIBER_STACK;
#if defined(__x86_64__)
    /* As if `enter` had been called (16-byte aligned before its return address) and had switched away. */
    void **top = reinterpret_cast<void **>(f->stack + FIBER_STACK - 64 - colour());
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(enter);
    f->stack_pointer = top - 6;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = FIBER_STACK;
    makecontext(&f->context, enter, 0);
#endif
#if defined(EMU_TSAN)
    f->sanitizer = __tsan_create_fiber(0);
#endif
}

void fiber_free(fiber *f)
{
#if defined(EMU_TSAN)
    __tsan_destroy_fiber(f->sanitizer);
#endif
    munmap(f->stack - FIBER_GUARD, FIBER_GUARD + FIBER_STACK);
}

void fiber_host(fiber *f)
{
    *f = fiber();
#if defined(EMU_TSAN)
    f->sanitizer = __tsan_get_current_fiber();
#endif
}

#if !defined(EMU_PLAIN_SWITCH)
void fiber_switch(fiber *from, fiber *to)
{
    void *fake_stack = nullptr;
#if defined(EMU_ASAN)
    left = from;
    __sanitizer_start_switch_fiber(&fake_stack, to->stack, to->stack_size);
#endif
#if defined(EMU_TSAN)
    __tsan_switch_to_fiber(to->sanitizer, 1);
#endif
#if defined(__x86_64__)
    emu_switch(&from->stack_pointer, to->stack_pointer);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived(fake_stack);
}
#endif

bool fiber_overflowed(const fiber *f, const void *address)
{
    const char *a = static_cast<const char *>(address);
    return a >= f->stack - FIBER_GUARD && a < f->stack;
}

} // namespace emu
