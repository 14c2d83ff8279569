/*
 * Tells what a wrong memory access was: the page faults of device memory, of shared memory and of the fibers'
 * stacks. Others are left to whoever handled them before.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#include "emu_grid.h"
#include "emu_memory.h"
#include "emu_memory_map.h"

namespace emu
{

enum { SIGNAL_STACK = 128 << 10 };

static struct sigaction before;
static bool installed;

/* The process is about to end: stdio is good enough here. */
[[noreturn]] static void report(const char *what)
{
    char context[400];
    describe_current(context, sizeof context);
    fprintf(stderr, "emu: %s%s\n", what, context);
    abort();
}

static void explain_device(char *text, size_t size, const void *address)
{
    device_allocation a;
    const char *who = in_kernel() ? "access" : "host access";
    int n = snprintf(text, size, "%s to device memory at %p", who, address);
    text += n;
    size -= size_t(n);
    if (!find_near(address, &a))
        snprintf(text, size, " that is not allocated");
    else if (in_device(address, 1))
        snprintf(text, size, ", byte %zu of an allocation of %zu bytes",
                 size_t(static_cast<const char *>(address) - a.address), a.size);
    else
        snprintf(text, size,
                 " that is not allocated or was freed, %zu bytes past the end of the allocation of %zu bytes "
                 "below",
                 size_t(static_cast<const char *>(address) - a.address) - a.size, a.size);
}

static void on_fault(int signal, siginfo_t *info, void *)
{
    char text[300];
    size_t shared;
    const void *address = info->si_addr;
    if (device_hidden() && in_device(address, 1))
        report(
            "access to device memory before cudaGridDependencySynchronize in a kernel that may start early");
    if (in_arena(address)) {
        explain_device(text, sizeof text, address);
        report(text);
    }
    if (past_shared(address, &shared)) {
        snprintf(text, sizeof text, "access past the end of the %zu bytes of dynamic shared memory", shared);
        report(text);
    }
    if (is_fiber_guard(address))
        report("a thread's stack overflowed");
    if (in_kernel()) {
        snprintf(text, sizeof text, "access to a wrong address, %p", address);
        report(text);
    }
    /* Not ours: happens again, under the old handler. */
    sigaction(signal, &before, nullptr);
}

static void watch_thread()
{
    static thread_local bool done;
    stack_t stack = {};
    if (done)
        return;
    done = true;
    if (sigaltstack(nullptr, &stack) == 0 && !(stack.ss_flags & SS_DISABLE))
        return; /* somebody, ASan perhaps, has set one */
    stack.ss_sp = mmap(nullptr, SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack.ss_size = SIGNAL_STACK;
    stack.ss_flags = 0;
    if (stack.ss_sp != MAP_FAILED)
        sigaltstack(&stack, nullptr);
}

void faults_watch()
{
    watch_thread();
    if (installed)
        return;
    installed = true;
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before);
}

void faults_unwatch()
{
    if (installed)
        sigaction(SIGSEGV, &before, nullptr);
    installed = false;
}

} // namespace emu
