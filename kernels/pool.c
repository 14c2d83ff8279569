#include "pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 2000
}; /* some 20 microseconds: longer than the gap between two operations, shorter than a time slice */

/* A barrier that can be used again at once: the last to arrive starts the next generation. */
struct barrier {
    _Atomic uint32_t arrived, generation, sleepers;
};

struct nl_pool {
    _Atomic unsigned threads;
    bool stop;
    void (*work)(void *context, unsigned thread);
    void *context;
    struct barrier start, inner, end;
    struct worker {
        struct nl_pool *pool;
        unsigned number;
        pthread_t thread;
    } * workers; /* [threads - 1]: numbers 1 and up */
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void relax(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* The number of threads is read after arriving: a pool that could not start all its threads lowers it. */
static void barrier_wait(struct barrier *barrier, const _Atomic unsigned *threads)
{
    uint32_t generation = atomic_load(&barrier->generation);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == atomic_load(threads)) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->generation, 1);
        if (atomic_load(&barrier->sleepers) > 0)
            futex_wake_all(&barrier->generation);
        return;
    }
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&barrier->generation, memory_order_acquire) != generation)
            return;
        relax();
    }
    atomic_fetch_add(&barrier->sleepers, 1);
    while (atomic_load(&barrier->generation) == generation)
        futex_wait(&barrier->generation, generation);
    atomic_fetch_sub(&barrier->sleepers, 1);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct nl_pool *pool = worker->pool;
    for (;;) {
        barrier_wait(&pool->start, &pool->threads);
        if (pool->stop)
            return NULL;
        pool->work(pool->context, worker->number);
        barrier_wait(&pool->end, &pool->threads);
    }
}

/* Cores that the cgroup's quota allows, rounded up; UINT32_MAX without a quota. */
static unsigned quota_threads(void)
{
    FILE *file =
        fopen("/sys/fs/cgroup/cpu.max", "re"); /* version 2; a container sees its own group as the root */
    long long quota = -1, period = 0;
    if (file) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2)
            quota = -1;
        fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"))) {
        if (fscanf(file, "%lld", &quota) != 1)
            quota = -1;
        fclose(file);
        if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re"))) {
            if (fscanf(file, "%lld", &period) != 1)
                period = 0;
            fclose(file);
        }
    }
    if (quota <= 0 || period <= 0)
        return UINT32_MAX;
    return (unsigned)((quota + period - 1) / period);
}

unsigned nl_pool_default_threads(void)
{
    unsigned threads = UINT32_MAX;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        threads = (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online > 0 && (unsigned long)online < threads)
        threads = (unsigned)online;
    unsigned quota = quota_threads();
    if (quota < threads)
        threads = quota;
    return threads < 1 ? 1 : threads > 1024 ? 1024 : threads;
}

struct nl_pool *nl_pool_open(unsigned threads, struct nl_error *error)
{
    struct nl_pool *pool = calloc(1, sizeof *pool);
    struct worker *workers = calloc(threads, sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        nl_fail_memory(error, "threads");
        return NULL;
    }
    pool->workers = workers;
    pool->threads = threads;
    sigset_t all, old; /* signals are the main thread's, whose read(2) they have to interrupt */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int reason = 0;
    unsigned started = 1;
    for (; started < threads && reason == 0; started += reason == 0) {
        struct worker *worker = &workers[started - 1];
        *worker = (struct worker){.pool = pool, .number = started};
        reason = pthread_create(&worker->thread, NULL, worker_main, worker);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (reason != 0) {
        atomic_store(&pool->threads,
                     started); /* the workers that there are wait at the start: let them out */
        nl_pool_close(pool);
        nl_fail(error, NL_RESOURCE, "cannot start thread %u of %u: %s", started, threads, strerror(reason));
        return NULL;
    }
    return pool;
}

void nl_pool_close(struct nl_pool *pool)
{
    if (!pool)
        return;
    pool->stop = true;
    barrier_wait(&pool->start, &pool->threads);
    for (unsigned i = 1; i < pool->threads; i++)
        pthread_join(pool->workers[i - 1].thread, NULL);
    free(pool->workers);
    free(pool);
}

unsigned nl_pool_threads(const struct nl_pool *pool)
{
    return pool->threads;
}

void nl_pool_run(struct nl_pool *pool, void (*work)(void *context, unsigned thread), void *context)
{
    pool->work = work;
    pool->context = context;
    barrier_wait(&pool->start, &pool->threads);
    work(context, 0);
    barrier_wait(&pool->end, &pool->threads);
}

void nl_pool_barrier(struct nl_pool *pool)
{
    barrier_wait(&pool->inner, &pool->threads);
}
