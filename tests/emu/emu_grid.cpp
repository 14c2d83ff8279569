/*
 * Lanes block at a barrier or a warp operation. Whoever blocks picks the next lane that can run and switches
 * to it; whoever completes an operation, as its last lane, makes the others runnable and goes on.
 */
#include "emu_grid.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emu_fiber.h"
#include "emu_memory.h"
#include "emu_options.h"
#include "emu_warp.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emu
{

enum { MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / 32 };

struct thread {
    uint3 index;
    unsigned warp, lane;
    fiber own;
};

struct block_state {
    const launch_record *launch;
    unsigned n_threads, n_warps;
    unsigned n_done, n_waiting; /* threads that left; that wait at a barrier */
    barrier_op barrier;
    place barrier_place;
    unsigned n_true, barrier_result, barrier_epoch;
    uint32_t ready; /* warps that have runnable lanes */
    warp_state warps[MAX_WARPS];
};

void *shared_memory;

static thread *current_thread; /* NULL outside of kernels */
static bool running;
static block_state the_block;
static thread *threads[MAX_THREADS]; /* made as needed, kept */
static unsigned n_made;
static fiber host;
static char start_token, end_token, barrier_token[2]; /* for TSan */

bool in_kernel()
{
    return current_thread != nullptr;
}

static inline void set_current(thread *t)
{
    current_thread = t;
    if (t)
        threadIdx = t->index;
}

static thread *current()
{
    return current_thread;
}

/* ---- choosing who runs ---- */

static inline unsigned lowest(uint32_t set)
{
    return unsigned(__builtin_ctz(set));
}

/* One of the set: the next above `after`, or the next below, else from the other end; or any. */
static inline unsigned pick_bit(uint32_t set, unsigned after)
{
    uint32_t part;
    switch (the_options.order) {
    case FORWARD:
        part = set & (~1u << after);
        return lowest(part ? part : set);
    case REVERSE:
        part = set & ((1u << after) - 1);
        return 31 - unsigned(__builtin_clz(part ? part : set));
    default:
        part = set & (~0u << (random_bits() & 31));
        return lowest(part ? part : set);
    }
}

/* NULL: no thread can run. */
static inline thread *pick(const thread *self)
{
    block_state &b = the_block;
    unsigned end = the_options.order == REVERSE ? 0 : 31, w = end, lane = end;
    if (!b.ready)
        return nullptr;
    bool stay = self && b.ready >> self->warp & 1 && (the_options.order != RANDOM || (random_bits() & 7));
    if (stay) {
        w = self->warp;
        lane = self->lane;
    } else {
        w = pick_bit(b.ready, self ? self->warp : end);
    }
    return threads[32 * w + pick_bit(b.warps[w].runnable, lane)];
}

static void set_runnable(warp_state &w, uint32_t lanes)
{
    w.runnable |= lanes;
    the_block.ready |= 1u << (&w - the_block.warps);
}

static void set_blocked(warp_state &w, unsigned lane)
{
    w.runnable &= ~(1u << lane);
    if (!w.runnable)
        the_block.ready &= ~(1u << (&w - the_block.warps));
}

[[noreturn]] static void deadlock()
{
    const block_state &b = the_block;
    for (unsigned w = 0; w < b.n_warps; w++) {
        if (b.warps[w].n_groups == 0)
            continue;
        const warp_group &g = b.warps[w].groups[0];
        unsigned missing = unsigned(__builtin_ctz(g.mask & ~g.arrived));
        current_thread = threads[32 * w + unsigned(__builtin_ctz(g.arrived))];
        fail(g.where,
             "deadlock: lane %u of the mask %08x never comes to the warp operation (%u threads wait at "
             "__syncthreads, %u have left)",
             missing, g.mask, b.n_waiting, b.n_done);
    }
    fail(b.barrier_place, "deadlock: %u of %u threads wait at __syncthreads", b.n_waiting, b.n_threads);
}

/* Lets others run until the current thread, which is blocked or has left, can run again. */
static inline __attribute__((always_inline)) void give_way()
{
    thread *self = current(), *next = pick(self);
    fiber *to = &host;
    if (next)
        to = &next->own;
    else if (the_block.n_done < the_block.n_threads)
        deadlock();
    if (next == self)
        return;
    set_current(next);
    the_counters.switches++;
    fiber_switch(&self->own, to);
}

/* ---- barriers ---- */

static void complete_barrier()
{
    block_state &b = the_block;
    if (b.n_done)
        fail(b.barrier_place, "__syncthreads reached by %u of %u threads, the others have left", b.n_waiting,
             b.n_threads);
    b.barrier_result = b.barrier == BARRIER_COUNT ? b.n_true
                       : b.barrier == BARRIER_AND ? b.n_true == b.n_threads
                                                  : b.n_true != 0;
    b.n_waiting = b.n_true = 0;
    b.barrier_epoch++;
    for (unsigned w = 0; w < b.n_warps; w++)
        set_runnable(b.warps[w], b.warps[w].exists);
}

static bool same_place(const place &a, const place &b)
{
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

int barrier(barrier_op op, int predicate, place where)
{
    block_state &b = the_block;
    thread *self = current();
    if (!self)
        fail(where, "__syncthreads outside of a kernel");
    char *token = &barrier_token[b.barrier_epoch & 1];
    sync_release(token);
    if (b.n_waiting == 0) {
        b.barrier = op;
        b.barrier_place = where;
    } else if (!same_place(b.barrier_place, where)) {
        fail(where, "divergent __syncthreads: other threads wait at %s:%d", b.barrier_place.file,
             b.barrier_place.line);
    }
    b.n_waiting++;
    b.n_true += predicate != 0;
    set_blocked(b.warps[self->warp], self->lane);
    if (b.n_waiting + b.n_done == b.n_threads)
        complete_barrier();
    else
        give_way();
    sync_acquire(token);
    return int(b.barrier_result);
}

/* ---- warp operations ---- */

static void complete_group(warp_state &w, unsigned index)
{
    warp_group g = w.groups[index];
    w.groups[index] = w.groups[--w.n_groups];
    unsigned bad = warp_compute(w, g);
    if (bad < 32) {
        current_thread = threads[32 * (&w - the_block.warps) + bad];
        fail(g.where, "the shuffle reads a lane that is not in the mask %08x", g.mask);
    }
    w.epoch++;
    set_runnable(w, g.mask);
}

/* The group that `self` belongs to, new if it is the first. */
static inline unsigned join_group(warp_state &w, const thread *self, warp_op op, unsigned mask, int width,
                                  place where)
{
    for (unsigned i = 0; i < w.n_groups; i++) {
        const warp_group &g = w.groups[i];
        if (!(g.mask >> self->lane & 1)) /* it does not wait for this lane */
            continue;
        if (g.mask != mask || g.op != op || g.width != width || g.where.line != where.line)
            fail(where,
                 "the warp meets in different warp operations: other lanes wait at %s:%d (masks %08x, %08x)",
                 g.where.file, g.where.line, mask, g.mask);
        return i;
    }
    if (!(mask >> self->lane & 1))
        fail(where, "the calling lane %u is not in the mask %08x", self->lane, mask);
    if (mask & ~w.exists)
        fail(where, "the mask %08x names lanes that the block does not have", mask);
    if (mask & w.left)
        fail(where, "the mask %08x names lane %d, which has left the kernel", mask,
             __builtin_ctz(mask & w.left));
    if (width < 1 || width > 32 || width & (width - 1))
        fail(where, "a shuffle's width is %d", width);
    w.groups[w.n_groups] = {mask, 0, op, width, where, &w.token[w.epoch & 1]};
    return w.n_groups++;
}

uint64_t warp(warp_op op, unsigned mask, uint64_t value, unsigned argument, int width, place where)
{
    thread *self = current();
    if (!self)
        fail(where, "warp operation outside of a kernel");
    warp_state &w = the_block.warps[self->warp];
    unsigned index = join_group(w, self, op, mask, width, where), lane = self->lane;
    if (!(mask >> lane & 1))
        fail(where, "the calling lane %u is not in the mask %08x", lane, mask);
    w.value[lane] = value;
    w.argument[lane] = argument;
    char *token = w.groups[index].token;
    sync_release(token);
    w.groups[index].arrived |= 1u << lane;
    set_blocked(w, lane);
    if (w.groups[index].arrived == mask)
        complete_group(w, index);
    else
        give_way();
    sync_acquire(token);
    return w.result[lane];
}

/* ---- threads, blocks, grids ---- */

void wait_for_grid()
{
    thread *self = current();
    the_block.warps[self->warp].waited |= 1u << self->lane;
    device_show();
}

static void thread_left()
{
    block_state &b = the_block;
    thread *self = current();
    warp_state &w = b.warps[self->warp];
    for (unsigned i = 0; i < w.n_groups; i++)
        if (w.groups[i].mask >> self->lane & 1)
            fail(w.groups[i].where, "the mask %08x names lane %u, which has left the kernel",
                 w.groups[i].mask, self->lane);
    if (b.launch->early && !(w.waited >> self->lane & 1))
        fail({nullptr, 0}, "launched to start early, but does not wait for the kernel before it");
    b.n_done++;
    w.left |= 1u << self->lane;
    set_blocked(w, self->lane);
    if (b.n_waiting && b.n_waiting + b.n_done == b.n_threads)
        complete_barrier();
}

/* What a fiber does: one thread of one block after another. */
static void thread_main()
{
    for (;;) {
        const launch_record *l = the_block.launch;
        sync_acquire(&start_token);
        l->call(l->kernel, l->arguments.data());
        sync_release(&end_token);
        thread_left();
        give_way();
    }
}

static void make_threads(unsigned n)
{
    for (; n_made < n; n_made++) {
        threads[n_made] = new thread();
        fiber_init(&threads[n_made]->own, thread_main);
    }
}

static void run_block(const launch_record &l, uint64_t index)
{
    block_state &b = the_block;
    const dim3 &g = l.grid;
    blockIdx = {unsigned(index % g.x), unsigned(index / g.x % g.y), unsigned(index / g.x / g.y)};
    b.n_done = b.n_waiting = b.n_true = b.barrier_epoch = 0;
    shared_memory = guarded_shared(l.shared);
    for (const shared_array &array : l.info->shared)
        memset(array.address, 0xff, array.size);
    for (unsigned w = 0; w < b.n_warps; w++) {
        unsigned lanes = std::min(32u, b.n_threads - 32 * w);
        warp_reset(b.warps[w], lanes == 32 ? ~0u : (1u << lanes) - 1);
        set_runnable(b.warps[w], b.warps[w].exists);
    }
    the_counters.blocks++;
    the_counters.threads += b.n_threads;
    if (l.early)
        device_hide();
    sync_release(&start_token);
    thread *first = pick(nullptr);
    set_current(first);
    fiber_switch(&host, &first->own);
    sync_acquire(&end_token);
}

void run_grid(const launch_record &l)
{
    block_state &b = the_block;
    b.launch = &l;
    gridDim = l.grid;
    blockDim = l.block;
    b.n_threads = l.block.x * l.block.y * l.block.z;
    b.n_warps = (b.n_threads + 31) / 32;
    b.ready = 0;
    make_threads(b.n_threads);
    for (unsigned i = 0; i < b.n_threads; i++) {
        threads[i]->index = {i % l.block.x, i / l.block.x % l.block.y, i / l.block.x / l.block.y};
        threads[i]->warp = i / 32;
        threads[i]->lane = i % 32;
    }
    fiber_host(&host);
    running = true;
    the_counters.kernels++;
    uint64_t n_blocks = uint64_t(l.grid.x) * l.grid.y * l.grid.z;
    permutation order = permutation_make(n_blocks);
    for (uint64_t i = 0; i < n_blocks; i++)
        run_block(l, permutation_at(order, i));
    running = false;
}

void grid_free()
{
    for (unsigned i = 0; i < n_made; i++) {
        fiber_free(&threads[i]->own);
        delete threads[i];
    }
    n_made = 0;
}

/* ---- messages ---- */

void describe_current(char *text, size_t size)
{
    text[0] = 0;
    if (!running)
        return;
    const block_state &b = the_block;
    int n = snprintf(text, size, ": kernel %s, block (%u,%u,%u)", b.launch->info->name.c_str(), blockIdx.x,
                     blockIdx.y, blockIdx.z);
    if (current_thread && n > 0 && size_t(n) < size)
        snprintf(text + n, size - size_t(n), ", thread (%u,%u,%u)", current_thread->index.x,
                 current_thread->index.y, current_thread->index.z);
}

bool is_fiber_guard(const void *address)
{
    for (unsigned i = 0; i < n_made; i++)
        if (fiber_overflowed(&threads[i]->own, address))
            return true;
    return false;
}

void fail(place where, const char *format, ...)
{
    char message[600], context[400];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    describe_current(context, sizeof context);
    fflush(stdout);
    if (where.file)
        fprintf(stderr, "emu: %s%s, %s:%d\n", message, context, where.file, where.line);
    else
        fprintf(stderr, "emu: %s%s\n", message, context);
    abort();
}

} // namespace emu
