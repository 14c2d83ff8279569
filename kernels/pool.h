/*
 * pool.h: a small pool of POSIX threads that run one function together, with barriers.
 *
 * Shares are fixed by thread number, so that the same work always falls to the same thread. A waiting thread
 * spins briefly, then sleeps in a futex: a pool that waits takes nothing from the other programs of a
 * pipeline.
 */
#ifndef NL_POOL_H
#define NL_POOL_H

#include "base.h"

struct nl_pool;

/* The smallest of the affinity mask, the cgroup's quota (rounded up) and the cores online; at least 1. */
unsigned nl_pool_default_threads(void);
/* `threads` counts the caller, which takes part in each run as thread 0. 1 to 1024. */
struct nl_pool *nl_pool_open(unsigned threads, struct nl_error *error);
void nl_pool_close(struct nl_pool *);
unsigned nl_pool_threads(const struct nl_pool *);
/* Runs work(context, thread) on every thread and returns when all have returned. */
void nl_pool_run(struct nl_pool *, void (*work)(void *context, unsigned thread), void *context);
/* Inside a run: returns once every thread has come here; what was written before it is seen after it. */
void nl_pool_barrier(struct nl_pool *);

/* The part [*begin, *end) of `count` units that falls to a thread. */
static inline void nl_share(size_t count, unsigned thread, unsigned threads, size_t *begin, size_t *end)
{
    *begin = count * thread / threads;
    *end = count * (thread + 1) / threads;
}

#endif
