/*
 * generate.h: what nl-generate(1) does: forward, sample, forward in one process, several sequences at once.
 *
 * Sequences are read while others run, at most the engine's batch; nothing is held back to fill a batch. They
 * are written in the order in which they came, each id as soon as every sequence before it is complete.
 */
#ifndef NL_GENERATE_H
#define NL_GENERATE_H

#include <signal.h>

#include "intake.h"
#include "sample_options.h"

struct nl_generate {
    struct nl_intake intake;
    struct nl_sample_options *sample; /* ready; the model's own processors are added */
    struct nl_writer *writer;
    bool echo; /* write the prompt too */
    const volatile sig_atomic_t *signal;
    void (*report)(const struct nl_error *error);  /* a sequence that could not run */
    uint64_t n_prompt_ids, n_new_ids, n_sequences; /* out */
    enum nl_status status;                         /* out: of the first sequence that could not run */
    struct nl_prompt incoming;                     /* private: a sequence whose DONE has not come */
    struct nl_job *jobs; /* private: those not yet written whole, in the order of arrival */
};

/* Runs until the input ends. -1 and *error: given up, FAIL is written; after a signal, 0 with DONE
 * "cancelled". */
int nl_generate_run(struct nl_generate *, struct nl_error *error);
/* The hook for nl_reader_on_wait on the input; context: the struct nl_generate. */
int nl_generate_wait(void *generate, struct nl_error *error);

#endif
