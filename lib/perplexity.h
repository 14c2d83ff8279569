/*
 * perplexity.h: how surprised a model is by a text: negative log-likelihoods, by window and in all.
 *
 * A sequence is cut into windows of `window` ids, each begun `stride` ids after the one before; in each, the
 * ids that no earlier window scored are scored given all before them in the window. The first id of a
 * sequence has nothing before it and is never scored. With stride = window nothing overlaps, and neither is
 * the first id of any window scored.
 */
#ifndef NL_PERPLEXITY_H
#define NL_PERPLEXITY_H

#include <signal.h>

#include "intake.h"

struct nl_window {
    uint64_t sequence;             /* "seq" of the stream */
    uint64_t number, start, count; /* ids [start, start + count) */
    uint64_t scored;
    double nll; /* mean of the scored ids, nats; 0 where none is */
};

struct nl_perplexity {
    struct nl_intake intake;
    uint32_t window, stride; /* 1 <= stride <= window; window 0: the context, stride 0: the window */
    uint64_t max_windows;    /* of a sequence; UINT64_MAX: all */
    bool whole_windows;      /* a last one that is shorter is left out */
    const volatile sig_atomic_t *signal;
    /* Called for every scored id (may be NULL) and every window; not 0: give up, *error is filled. */
    int (*token)(void *context, uint64_t position, uint32_t id, double nll, struct nl_error *error);
    int (*done)(void *context, const struct nl_window *window, struct nl_error *error);
    void (*progress)(void *context, uint64_t done, uint64_t total); /* ids of the sequence; may be NULL */
    void *context;
    void (*report)(const struct nl_error *error); /* a sequence that could not be scored */
    uint64_t n_scored, n_windows;                 /* out */
    double total;                                 /* out: sum of all nll, nats */
    enum nl_status status;                        /* out: of the first sequence that could not be scored */
};

/* Scores every sequence of the input. -1 and *error: given up. */
int nl_perplexity_run(struct nl_perplexity *, struct nl_error *error);
/* The hook for nl_reader_on_wait; context: the struct nl_perplexity. */
int nl_perplexity_wait(void *perplexity, struct nl_error *error);

/* -ln softmax(logits)[id], the sum in double. */
double nl_negative_log_likelihood(const float *logits, size_t n, uint32_t id);

#endif
