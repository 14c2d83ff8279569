/*
 * sample_run.h: the loop of nl-sample(1): a stream of logits becomes a stream of ids, or of processed logits.
 */
#ifndef NL_SAMPLE_RUN_H
#define NL_SAMPLE_RUN_H

#include <signal.h>

#include "generation.h"
#include "logits_row.h"
#include "sample_options.h"
#include "stream.h"

struct nl_sample_run {
    /* Set by the caller. */
    const struct nl_sample_options *sample;
    struct nl_reader *reader; /* expects logits, waits with nl_sample_run_wait */
    struct nl_writer *writer;
    bool filter;                             /* do not choose: write processed logits */
    const volatile sig_atomic_t *signal;     /* not 0: end */
    void (*report)(const struct nl_error *); /* a sequence failed */

    /* What came of it. */
    enum nl_status status; /* of the first sequence that failed */
    bool failed;           /* FAIL came: what is written is not whole */
    uint64_t n_sequences, n_ids;

    /* The model, once its files are read. */
    struct nl_generation generation;
    bool has_model;

    /* The present sequence. */
    struct nl_ids history, eos;
    uint64_t number, n_new;
    size_t n_prompt;
    bool has_logits; /* a row came: the prompt is over */
    bool ended;      /* our DONE is written: what still comes is dropped */
    struct nl_logits_row row;
};

/* Reads the end ids and processors of the model that -m names, before a run: where the stream is text, both
   are used, else the end ids where NLS1 has none. Without this call $NL_MODEL is read where the stream is
   text. */
int nl_sample_run_load_model(struct nl_sample_run *, const char *model, struct nl_error *error);
/* The reader's hook: flushes the output, and ends the wait on a signal or when nobody reads the output any
 * more. */
int nl_sample_run_wait(void *run, struct nl_error *error);
/* Reads to the end. 0, also when a signal came (then DONE says cancelled); -1 and *error when the stream had
   to be given up: FAIL has been written. */
int nl_sample_run(struct nl_sample_run *, struct nl_error *error);
void nl_sample_run_free(struct nl_sample_run *); /* what it owns: not sampler, reader, writer */

#endif
