#include "perplexity.h"

#include <math.h>

static bool stopped(const struct nl_perplexity *p)
{
    return p->signal && *p->signal;
}

int nl_perplexity_wait(void *context, struct nl_error *error)
{
    return stopped(context) ? nl_fail(error, NL_UPSTREAM, "%s", "") : 0;
}

double nl_negative_log_likelihood(const float *logits, size_t n, uint32_t id)
{
    float best = logits[0];
    for (size_t i = 1; i < n; i++)
        best = logits[i] > best ? logits[i] : best;
    double sum = expf(logits[0] - best);
    for (size_t i = 1; i < n; i++)
        sum += expf(logits[i] - best);
    return log(sum) - ((double)logits[id] - best);
}

/* Scores the ids of a step: row i tells of id i + 1. */
static int score_rows(struct nl_perplexity *p, const struct nl_feed *feed, const uint32_t *ids,
                      uint64_t first, uint64_t from, uint64_t end, struct nl_window *window,
                      struct nl_error *error)
{
    uint32_t vocab_size = nl_engine_model(p->intake.engine)->config.vocab_size;
    for (uint32_t i = 0; i < feed->count; i++) {
        uint64_t position = first + i + 1;
        if (position < from || position >= end)
            continue;
        double nll =
            nl_negative_log_likelihood(feed->logits + (size_t)i * vocab_size, vocab_size, ids[position]);
        if (p->token && p->token(p->context, position, ids[position], nll, error) != 0)
            return -1;
        window->nll += nll;
        window->scored++;
    }
    return 0;
}

/* Ids [window->start, + count) of a sequence; those from `from` on are scored. */
static int score_window(struct nl_perplexity *p, const struct nl_ids *ids, uint64_t from,
                        struct nl_window *window, struct nl_error *error)
{
    struct nl_engine *engine = p->intake.engine;
    struct nl_sequence *sequence = nl_engine_new_sequence(engine, error);
    uint64_t end = window->start + window->count, at = window->start;
    uint32_t step = nl_engine_max_outputs(engine) < nl_engine_chunk(engine) ? nl_engine_max_outputs(engine)
                                                                            : nl_engine_chunk(engine);
    int result = sequence ? 0 : -1;
    while (result == 0 && at + 1 < end && !stopped(p)) { /* the last id is scored, but tells of nothing */
        struct nl_feed feed = {
            .sequence = sequence, .ids = ids->data + at, .whole = (uint32_t)window->count - 1};
        feed.count = end - 1 - at < step ? (uint32_t)(end - 1 - at) : step;
        feed.n_outputs = feed.count;
        result = nl_engine_step(engine, &feed, 1, error);
        if (result == 0)
            result = score_rows(p, &feed, ids->data, at, from, end, window, error);
        at += feed.count;
        if (result == 0 && p->progress)
            p->progress(p->context, at, ids->count);
    }
    nl_engine_free_sequence(engine, sequence);
    return result;
}

static int score_sequence(struct nl_perplexity *p, const struct nl_prompt *prompt, struct nl_error *error)
{
    const struct nl_ids *ids = &prompt->ids;
    uint32_t context = nl_engine_context(p->intake.engine), size = p->window ? p->window : context;
    uint32_t stride = p->stride ? p->stride : size;
    if (size > context)
        return nl_fail(error, NL_TOO_LONG, "windows of %u ids do not fit into the context of %u", size,
                       context);
    if (nl_engine_check_ids(p->intake.engine, ids->data, ids->count, error) != 0)
        return -1;
    uint64_t scored_to = 1, limit = p->max_windows;
    for (uint64_t number = 0; number < limit && number * stride < ids->count && !stopped(p); number++) {
        struct nl_window window = {.sequence = prompt->seq, .number = number, .start = number * stride};
        uint64_t rest = ids->count - window.start;
        window.count = rest < size ? rest : size;
        if (window.count < size && p->whole_windows)
            break;
        uint64_t from = window.start + 1 > scored_to ? window.start + 1 : scored_to;
        if (score_window(p, ids, from, &window, error) != 0)
            return -1;
        scored_to = window.start + window.count;
        p->n_scored += window.scored;
        p->n_windows++;
        p->total += window.nll;
        window.nll = window.scored ? window.nll / (double)window.scored : 0;
        if (!stopped(p) && p->done(p->context, &window, error) != 0)
            return -1;
        if (scored_to == ids->count)
            break;
    }
    return 0;
}

int nl_perplexity_run(struct nl_perplexity *p, struct nl_error *error)
{
    struct nl_prompt prompt = {0};
    int got;
    while ((got = nl_intake_next(&p->intake, &prompt, error)) > 0) {
        if (got != NL_INTAKE_PROMPT)
            continue;
        struct nl_error failure = prompt.failure;
        if (failure.code == NL_OK)
            score_sequence(p, &prompt, &failure);
        nl_prompt_free(&prompt);
        if (stopped(p))
            break;
        if (failure.code == NL_IO) {
            *error = failure;
            return -1;
        }
        if (failure.code != NL_OK && failure.message[0] && p->report)
            p->report(&failure);
        if (p->status == NL_OK)
            p->status = failure.code;
    }
    nl_prompt_free(&prompt);
    return got < 0 && !stopped(p) ? -1 : 0;
}
