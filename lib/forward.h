/*
 * forward.h: what nl-forward(1) does: prompts in, logits out, and the loop with a sampler behind a feedback
 * FIFO.
 */
#ifndef NL_FORWARD_H
#define NL_FORWARD_H

#include <signal.h>

#include "intake.h"
#include "profile.h"
#include "trace.h"

struct nl_forward {
    struct nl_intake intake;
    struct nl_writer *writer;
    bool all; /* logits for every position */
    struct nl_trace
        *trace; /* of the first sequence, the only one then; all its rows are outputs; NULL: none */
    struct nl_profile *profile;                   /* NULL: none; not with a trace */
    struct nl_reader *feedback;                   /* of the FIFO, fragments allowed; NULL: none */
    int feedback_fd, output_fd;                   /* watched while waiting for the FIFO */
    const volatile sig_atomic_t *signal;          /* not 0: finish the step and stop */
    void (*report)(const struct nl_error *error); /* a sequence that could not run */
    uint64_t n_ids;                               /* out: ids that went through the model */
    enum nl_status status;                        /* out: of the first sequence that could not run */
};

/* Runs until the input ends. -1 and *error: given up, FAIL is written; after a signal, 0 with DONE
 * "cancelled". */
int nl_forward_run(struct nl_forward *, struct nl_error *error);
/* The hooks for nl_reader_on_wait, on the input and on the FIFO; context: the struct nl_forward. */
int nl_forward_wait_input(void *forward, struct nl_error *error);
int nl_forward_wait_feedback(void *forward, struct nl_error *error);

#endif
