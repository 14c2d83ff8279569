/*
 * bench.h: how long the steps of a model take.
 *
 * The loop: after a prompt, ids are generated one by one, each the arg-max of the logits, in two ways.
 * Cached: the prompt goes through the model, then one id a step. Naive: every step starts anew with the whole
 * sequence. The naive way is fed the ids of the cached one, so that both do the same work whatever they
 * choose.
 *
 * Times are wall-clock seconds of one step, logits and arg-max included.
 */
#ifndef NL_BENCH_H
#define NL_BENCH_H

#include <signal.h>

#include "engine.h"

struct nl_timing {
    double min, median, max; /* seconds, over the repetitions */
};

enum nl_bench_kind {
    NL_BENCH_CACHED,       /* one step of the loop */
    NL_BENCH_NAIVE,        /* one step of the loop */
    NL_BENCH_CACHED_TOTAL, /* all steps of a loop */
    NL_BENCH_NAIVE_TOTAL,
    NL_BENCH_PREFILL, /* a prompt, from an empty cache to the logits of its last id */
    NL_BENCH_DECODE,  /* one id */
};

struct nl_bench_row {
    enum nl_bench_kind kind;
    uint32_t step;   /* of the loop, from 1; else 0 */
    uint32_t length; /* ids that attention sees when the step is over */
    uint64_t ids;    /* that went through the model */
    uint32_t n_new;  /* ids that this makes: 1, in a total all, in a prefill those that go in */
    struct nl_timing time;
};

struct nl_bench {
    struct nl_engine *engine;
    const uint32_t *ids; /* [n_ids], used in a circle; n_ids 0: nl_bench_id */
    size_t n_ids;
    uint32_t prompt, n_new;              /* of the loop, at least 1 */
    uint32_t warm_up, repeat;            /* runs before those that count, and these; repeat at least 1 */
    bool naive;                          /* else only cached */
    const volatile sig_atomic_t *signal; /* not 0: stop; the functions return 0 */
    /* Called with each result in order; not 0: give up, *error is filled. */
    int (*row)(void *context, const struct nl_bench_row *row, struct nl_error *error);
    void (*progress)(void *context, uint64_t ids); /* so many more have gone through; may be NULL */
    void *context;
    uint32_t agreed; /* out: naive steps of the last run with the cached one's choice */
};

/* NL_TOO_LONG: so many ids do not fit into the context. The functions that measure ask it too. */
int nl_bench_check_length(const struct nl_bench *, uint64_t length, struct nl_error *error);

/* Ids that the functions send through the model, for progress. */
uint64_t nl_bench_loop_work(const struct nl_bench *);
uint64_t nl_bench_prefill_work(const struct nl_bench *, uint32_t length);
uint64_t nl_bench_decode_work(const struct nl_bench *, uint32_t depth);

/* Rows of kind CACHED, one a step, and NAIVE, then their totals. NL_TOO_LONG: prompt and new ids are more
   than the context. */
int nl_bench_loop(struct nl_bench *, struct nl_error *error);
/* A row PREFILL for a prompt of `length` ids. */
int nl_bench_prefill(struct nl_bench *, uint32_t length, struct nl_error *error);
/* A row DECODE for one id after `depth` others, which are in the cache. */
int nl_bench_decode(struct nl_bench *, uint32_t depth, struct nl_error *error);

/* The made-up id at a position: bits 8 to 31 of position * 2654435761, modulo the vocabulary. */
uint32_t nl_bench_id(uint32_t position, uint32_t vocab_size);

/* What the model's weights are: their number, and the type that most of their bytes have. */
uint64_t nl_bench_parameters(const struct nl_model *);
enum nl_dtype nl_bench_dtype(const struct nl_model *);

/* The processor's name, as the system gives it. */
void nl_machine_name(char *name, size_t size);

#endif
