/*
 * compare.h: how far two runs of a model are apart: two logits streams of the same ids, row by row.
 *
 * For each position the Kullback-Leibler divergence from the reference P to the other run Q,
 *
 *     KL = sum over ids of p(id) (ln p(id) - ln q(id)),   p = softmax(reference logits), in nats,
 *
 * and whether both have the same largest logit (the lowest id wins a tie). Where the streams carry the ids
 * (the text twin does not), also the mean negative log-likelihood that each gives to the ids that came.
 *
 * The streams must have the same sequences, positions, ids and vocabulary; a sparse row (LGTK) counts as
 * -infinity where it has no id. Neither is read further ahead than one row.
 */
#ifndef NL_COMPARE_H
#define NL_COMPARE_H

#include <signal.h>

#include "logits_row.h"

/* One position: of the id after the first `position` ids. */
struct nl_compared_row {
    uint32_t position, top, reference_top;
    double kl; /* nats; infinite where Q excludes an id that P does not */
};

struct nl_comparison {
    uint64_t sequence, positions, agreed; /* agreed: positions with the same largest logit */
    double mean, median, max;             /* of KL; 0 where there is no position */
    uint64_t max_sequence;
    uint32_t max_position;
    uint64_t scored;           /* ids whose likelihood is known */
    double nll, reference_nll; /* means over them, nats */
};

struct nl_compare_side {
    struct nl_reader *reader; /* nl_reader_expect_logits was called; stays the caller's */
    const char *name;         /* for messages */
    /* private */
    struct nl_frame frame;
    struct nl_logits_row row;
    struct nl_ids ids;
    uint64_t seq;
    bool failed; /* this sequence, upstream */
    double nll;
};

struct nl_compare {
    struct nl_compare_side run, reference;
    const volatile sig_atomic_t *signal;
    /* Called for every position (may be NULL) and every sequence; not 0: give up, *error is filled. */
    int (*row)(void *context, const struct nl_compared_row *row, struct nl_error *error);
    int (*done)(void *context, const struct nl_comparison *sequence, struct nl_error *error);
    void *context;
    struct nl_comparison total; /* out */
    enum nl_status status;      /* out: NL_UPSTREAM when a sequence had failed; it is not in the total */
    /* private */
    uint64_t n_sequences;
    size_t checked; /* ids known to be equal */
    struct nl_comparison sums;
    double *kl; /* [kl_count] of all sequences, those of the present one from kl_begin on */
    size_t kl_count, kl_capacity, kl_begin;
};

/* Compares to the end of both. -1 and *error: they do not belong together, or one is bad (NL_DATA), or ended
   early (NL_UPSTREAM; the message is empty where it says FAIL). */
int nl_compare_run(struct nl_compare *, struct nl_error *error);
void nl_compare_free(struct nl_compare *);
/* The hook for nl_reader_on_wait; context: the struct nl_compare. */
int nl_compare_wait(void *compare, struct nl_error *error);

/* In nats, from reference[n] to logits[n], the sums in double; NaN when a logit is NaN or +infinity, or all
   of a row are -infinity. */
double nl_kl_divergence(const float *reference, const float *logits, size_t n);

#endif
