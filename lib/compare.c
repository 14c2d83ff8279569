#include "compare.h"

#include <math.h>
#include <stdlib.h>

#include "perplexity.h"

static bool stopped(const struct nl_compare *compare)
{
    return compare->signal && *compare->signal;
}

int nl_compare_wait(void *context, struct nl_error *error)
{
    return stopped(context) ? nl_fail(error, NL_UPSTREAM, "%s", "") : 0;
}

/* ln sum exp(logits); NaN where a logit is NaN or +infinity, or none is finite. */
static double log_sum_exp(const float *logits, size_t n)
{
    double best = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        best = logits[i] > best ? (double)logits[i] : best;
    for (size_t i = 0; i < n; i++)
        sum += exp(logits[i] - best);
    return sum > 0 ? best + log(sum) : NAN;
}

double nl_kl_divergence(const float *reference, const float *logits, size_t n)
{
    double log_p = log_sum_exp(reference, n), log_q = log_sum_exp(logits, n), kl = 0;
    if (!isfinite(log_p) || !isfinite(log_q))
        return NAN;
    for (size_t i = 0; i < n; i++) {
        double p = exp(reference[i] - log_p);
        if (p > 0)
            kl += p * ((reference[i] - log_p) - (logits[i] - log_q));
    }
    return kl > 0 || isnan(kl) ? kl : 0; /* rounding may leave less than nothing */
}

static uint32_t arg_max(const struct nl_logits_row *row)
{
    size_t best = 0;
    for (size_t i = 1; i < row->n; i++)
        if (row->logits[i] > row->logits[best])
            best = i;
    return (uint32_t)best;
}

enum event { END, DONE, ROW };

static void begin_sequence(struct nl_compare_side *side, uint64_t counted)
{
    int64_t seq;
    bool numbered = nl_json_integer(nl_json_get(side->frame.object, "seq"), 0, INT64_MAX, &seq);
    side->seq = numbered ? (uint64_t)seq : counted;
    side->ids.count = 0;
    side->failed = false;
    side->nll = 0;
}

/* Up to the next row, or the end of a sequence or of the stream; -1. */
static int advance(struct nl_compare *compare, struct nl_compare_side *side, struct nl_error *error)
{
    for (;;) {
        int got = nl_reader_next(side->reader, &side->frame, error);
        if (got <= 0)
            return got < 0 ? -1 : END;
        const char *finish;
        switch (side->frame.kind) {
        case NL_NLS1:
            begin_sequence(side, compare->n_sequences);
            break;
        case NL_TOKS:
            if (nl_ids_add(&side->ids, side->frame.ids, side->frame.count, error) != 0)
                return -1;
            break;
        case NL_LGTS:
        case NL_LGTK:
            return ROW;
        case NL_DONE:
            finish = nl_json_get_string(side->frame.object, "finish");
            side->failed = finish && strcmp(finish, "error") == 0;
            return DONE;
        case NL_FAIL:
            return nl_fail(error, NL_UPSTREAM, "%s", "");
        case NL_CUTS:
            return nl_fail(error, NL_DATA, "a session where logits are wanted: frame CUTS: %s", side->name);
        default:
            break;
        }
    }
}

/* Both rows, over the same ids. */
static int read_rows(struct nl_compare *compare, struct nl_error *error)
{
    struct nl_compare_side *a = &compare->run, *b = &compare->reference;
    if (a->frame.position != b->frame.position)
        return nl_fail(error, NL_DATA, "the streams differ in their positions: sequence %llu: %u and %u",
                       (unsigned long long)a->seq, a->frame.position, b->frame.position);
    size_t least = a->frame.kind == NL_LGTS ? a->frame.count : 0;
    if (b->frame.kind == NL_LGTS && b->frame.count > least)
        least = b->frame.count;
    if (nl_logits_row_read(&a->row, &a->frame, least, error) != 0 ||
        nl_logits_row_read(&b->row, &b->frame, a->row.n, error) != 0)
        return -1;
    if (a->row.sparse && a->row.n < b->row.n && nl_logits_row_read(&a->row, &a->frame, b->row.n, error) != 0)
        return -1;
    if (a->row.n != b->row.n || a->row.n == 0)
        return nl_fail(error, NL_DATA,
                       "the streams differ in their vocabularies: sequence %llu: %zu and %zu logits",
                       (unsigned long long)a->seq, a->row.n, b->row.n);
    return 0;
}

/* The ids that both have given so far are the same. */
static int check_ids(struct nl_compare *compare, struct nl_error *error)
{
    const struct nl_ids *a = &compare->run.ids, *b = &compare->reference.ids;
    for (; compare->checked < a->count && compare->checked < b->count; compare->checked++)
        if (a->data[compare->checked] != b->data[compare->checked])
            return nl_fail(error, NL_DATA,
                           "the streams differ in their ids: sequence %llu, position %zu: %u "
                           "and %u",
                           (unsigned long long)compare->run.seq, compare->checked, a->data[compare->checked],
                           b->data[compare->checked]);
    return 0;
}

static int compare_row(struct nl_compare *compare, struct nl_error *error)
{
    struct nl_compare_side *run = &compare->run, *reference = &compare->reference;
    struct nl_comparison *sums = &compare->sums;
    if (read_rows(compare, error) != 0 || check_ids(compare, error) != 0)
        return -1;
    size_t n = run->row.n;
    struct nl_compared_row row = {.position = run->frame.position,
                                  .top = arg_max(&run->row),
                                  .reference_top = arg_max(&reference->row),
                                  .kl = nl_kl_divergence(reference->row.logits, run->row.logits, n)};
    if (isnan(row.kl))
        return nl_fail(error, NL_DATA,
                       "logits that are no distribution (NaN, +inf, or all excluded): "
                       "sequence %llu, position %u",
                       (unsigned long long)run->seq, row.position);
    if (nl_grow(&compare->kl, &compare->kl_capacity, compare->kl_count + 1, sizeof *compare->kl, "positions",
                error) != 0)
        return -1;
    compare->kl[compare->kl_count++] = row.kl;
    if (sums->positions == 0 || row.kl > sums->max) {
        sums->max = row.kl;
        sums->max_position = row.position;
    }
    sums->positions++;
    sums->agreed += row.top == row.reference_top;
    sums->mean += row.kl;
    const struct nl_ids *ids = run->ids.count ? &run->ids : &reference->ids;
    if (row.position < ids->count && ids->data[row.position] < n) {
        uint32_t id = ids->data[row.position];
        sums->scored++;
        sums->nll += nl_negative_log_likelihood(run->row.logits, n, id);
        sums->reference_nll += nl_negative_log_likelihood(reference->row.logits, n, id);
    }
    return compare->row ? compare->row(compare->context, &row, error) : 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts values[count]; of an even number the mean of the middle two. */
static double median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Sums made into means. */
static void finish_means(struct nl_comparison *sums, double *kl, size_t count)
{
    sums->median = median(kl, count);
    sums->mean = sums->positions ? sums->mean / (double)sums->positions : 0;
    sums->nll = sums->scored ? sums->nll / (double)sums->scored : 0;
    sums->reference_nll = sums->scored ? sums->reference_nll / (double)sums->scored : 0;
}

static void add_to_total(struct nl_comparison *total, const struct nl_comparison *sums)
{
    if (sums->positions && (total->positions == 0 || sums->max > total->max)) {
        total->max = sums->max;
        total->max_sequence = sums->sequence;
        total->max_position = sums->max_position;
    }
    total->positions += sums->positions;
    total->agreed += sums->agreed;
    total->mean += sums->mean;
    total->scored += sums->scored;
    total->nll += sums->nll;
    total->reference_nll += sums->reference_nll;
}

/* Both sequences have ended. */
static int finish_sequence(struct nl_compare *compare, struct nl_error *error)
{
    const struct nl_ids *a = &compare->run.ids, *b = &compare->reference.ids;
    if (compare->run.failed || compare->reference.failed) { /* somebody else has said why */
        compare->status = NL_UPSTREAM;
        compare->kl_count = compare->kl_begin;
        return 0;
    }
    if (check_ids(compare, error) != 0)
        return -1;
    if (a->count && b->count && a->count != b->count)
        return nl_fail(error, NL_DATA, "the streams differ in their ids: sequence %llu: %zu and %zu ids",
                       (unsigned long long)compare->run.seq, a->count, b->count);
    struct nl_comparison *sums = &compare->sums;
    sums->sequence = sums->max_sequence = compare->run.seq;
    add_to_total(&compare->total, sums);
    finish_means(sums, compare->kl + compare->kl_begin, compare->kl_count - compare->kl_begin);
    compare->kl_begin = compare->kl_count;
    return compare->done(compare->context, sums, error);
}

/* Reads a stream to the end of its sequence, `event` being what it has come to. */
static int skip_sequence(struct nl_compare *compare, struct nl_compare_side *side, int event,
                         struct nl_error *error)
{
    while (event == ROW)
        event = advance(compare, side, error);
    return event;
}

/* One sequence of both streams; 0 at the end of both. */
static int compare_sequence(struct nl_compare *compare, struct nl_error *error)
{
    compare->sums = (struct nl_comparison){0};
    compare->checked = 0;
    for (;;) {
        int a = advance(compare, &compare->run, error);
        if (a < 0 || stopped(compare))
            return -1;
        int b = advance(compare, &compare->reference, error);
        if (b < 0)
            return -1;
        if (a == ROW && b == ROW) {
            if (compare_row(compare, error) != 0)
                return -1;
            continue;
        }
        if (a == DONE && compare->run.failed)
            b = skip_sequence(compare, &compare->reference, b, error);
        else if (b == DONE && compare->reference.failed)
            a = skip_sequence(compare, &compare->run, a, error);
        if (a < 0 || b < 0)
            return -1;
        if (a != b)
            return nl_fail(error, NL_DATA, "the streams differ in their length: %s ends first: sequence %llu",
                           a < b ? compare->run.name : compare->reference.name,
                           (unsigned long long)compare->n_sequences);
        if (a == END)
            return 0;
        compare->n_sequences++;
        return finish_sequence(compare, error) == 0 ? 1 : -1;
    }
}

int nl_compare_run(struct nl_compare *compare, struct nl_error *error)
{
    int got;
    while ((got = compare_sequence(compare, error)) > 0 && !stopped(compare))
        ;
    finish_means(&compare->total, compare->kl, compare->kl_count);
    return got < 0 && !stopped(compare) ? -1 : 0;
}

void nl_compare_free(struct nl_compare *compare)
{
    free(compare->kl);
    compare->kl = NULL;
    struct nl_compare_side *sides[] = {&compare->run, &compare->reference};
    for (int i = 0; i < 2; i++) {
        nl_logits_row_free(&sides[i]->row);
        nl_ids_free(&sides[i]->ids);
    }
}
