#include "forward.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

static bool stopped(const struct nl_forward *forward)
{
    return forward->signal && *forward->signal;
}

/* Ends a wait because a signal came: the caller looks at the signal, the message is never shown. */
static int stop_waiting(struct nl_error *error)
{
    return nl_fail(error, NL_UPSTREAM, "%s", "");
}

static int sampler_is_gone(struct nl_error *error)
{
    return nl_fail(error, NL_UPSTREAM, "the sampler is gone: nobody reads the standard output");
}

int nl_forward_wait_input(void *context, struct nl_error *error)
{
    struct nl_forward *forward = context;
    if (stopped(forward))
        return stop_waiting(error);
    if (nl_writer_flush(forward->writer, error) != 0)
        return -1;
    if (nl_writer_is_read(forward->writer))
        return 0;
    return forward->feedback ? sampler_is_gone(error) : nl_fail(error, NL_IO, "nobody reads the output");
}

int nl_forward_wait_feedback(void *context, struct nl_error *error)
{
    struct nl_forward *forward = context;
    if (stopped(forward))
        return stop_waiting(error);
    if (nl_writer_flush(forward->writer, error) != 0)
        return -1;
    struct pollfd fds[2] = {{forward->feedback_fd, POLLIN, 0}, {forward->output_fd, 0, 0}};
    if (poll(fds, 2, 500) < 0 && errno != EINTR)
        return nl_fail_errno(error, "cannot wait for", "the feedback");
    if (stopped(forward))
        return stop_waiting(error);
    if (!(fds[0].revents & (POLLIN | POLLHUP)) && (fds[1].revents & POLLERR))
        return sampler_is_gone(error);
    return 0;
}

static void note_failure(struct nl_forward *forward, const struct nl_error *failure)
{
    if (forward->report && failure->message[0])
        forward->report(failure);
    if (forward->status == NL_OK)
        forward->status = failure->code;
}

/* A step, recorded or timed where that was asked for. */
static int run_step(struct nl_forward *forward, struct nl_feed *feed, struct nl_error *error)
{
    struct nl_engine *engine = forward->intake.engine;
    if (forward->profile) {
        struct nl_observer observer = nl_profile_observer(forward->profile);
        if (nl_profile_reserve(forward->profile, nl_engine_model(engine), error) != 0)
            return -1;
        return nl_engine_step_observed(engine, feed, 1, &observer, error);
    }
    if (!forward->trace)
        return nl_engine_step(engine, feed, 1, error);
    uint32_t length = nl_sequence_length(feed->sequence) + feed->count;
    if (nl_trace_reserve(forward->trace, nl_engine_model(engine), length, error) != 0)
        return -1;
    struct nl_observer observer = nl_trace_observer(forward->trace);
    return nl_engine_step_observed(engine, feed, 1, &observer, error);
}

/* Runs ids through the model and writes their logits: of the last one, or of all. */
static int answer(struct nl_forward *forward, struct nl_sequence *sequence, const uint32_t *ids, size_t count,
                  bool all, struct nl_error *error)
{
    struct nl_engine *engine = forward->intake.engine;
    uint32_t vocab_size = nl_engine_model(engine)->config.vocab_size;
    bool every = all || forward->trace;
    uint32_t step = every ? nl_engine_max_outputs(engine) : nl_engine_chunk(engine);
    step = step < nl_engine_chunk(engine) ? step : nl_engine_chunk(engine);
    uint32_t whole = nl_sequence_length(sequence) + (uint32_t)count;
    for (size_t done = 0; done < count && !stopped(forward);) {
        struct nl_feed feed = {.sequence = sequence, .ids = ids + done, .whole = whole};
        feed.count = (uint32_t)(count - done < step ? count - done : step);
        done += feed.count;
        feed.n_outputs = every ? feed.count : done == count;
        if (run_step(forward, &feed, error) != 0)
            return -1;
        forward->n_ids += feed.count;
        uint32_t skip = all ? 0 : feed.n_outputs - (done == count);
        uint32_t position = nl_sequence_length(sequence) - feed.n_outputs + skip;
        for (uint32_t i = skip; i < feed.n_outputs; i++)
            if (nl_writer_logits(forward->writer, ++position, feed.logits + (size_t)i * vocab_size,
                                 vocab_size, error) != 0)
                return -1;
    }
    return 0;
}

static bool is_sequence_error(const struct nl_error *error)
{
    return error->code == NL_DATA || error->code == NL_TOO_LONG || error->code == NL_RESOURCE;
}

/* An id that came back: answered by one LGTS, unless the context is full: then *ended, and DONE is written.
 */
static int answer_choice(struct nl_forward *forward, struct nl_sequence *sequence, uint32_t id, bool *ended,
                         struct nl_error *error)
{
    struct nl_error failure;
    if (nl_writer_ids(forward->writer, &id, 1, error) != 0)
        return -1;
    if (nl_sequence_length(sequence) == nl_engine_context(forward->intake.engine)) {
        *ended = true;
        return nl_writer_done(forward->writer, "context", error);
    }
    if (nl_engine_check(forward->intake.engine, sequence, &id, 1, &failure) == 0 &&
        answer(forward, sequence, &id, 1, false, &failure) == 0)
        return nl_writer_flush(forward->writer, error);
    if (!is_sequence_error(&failure)) {
        *error = failure;
        return -1;
    }
    *ended = true;
    note_failure(forward, &failure);
    return nl_writer_done_error(forward->writer, &failure, error);
}

/* The sampler's choices until its DONE; `ended`: the sequence's DONE has been written already. */
static int follow_feedback(struct nl_forward *forward, struct nl_sequence *sequence, bool ended,
                           struct nl_error *error)
{
    struct nl_frame frame;
    for (;;) {
        if (nl_writer_flush(forward->writer, error) != 0)
            return -1;
        int got = nl_reader_next(forward->feedback, &frame, error);
        if (got == 0)
            return nl_fail(error, NL_UPSTREAM, "the feedback ended inside a sequence: the sampler is gone");
        if (got < 0)
            return -1;
        if (frame.kind == NL_FAIL)
            return nl_fail(error, NL_UPSTREAM, "%s", "");
        if (frame.kind == NL_LGTS || frame.kind == NL_LGTK)
            return nl_fail(error, NL_DATA, "logits where ids are wanted: the feedback's frame %s",
                           frame.name);
        if (frame.kind == NL_DONE)
            return ended ? 0 : nl_writer_frame(forward->writer, &frame, error);
        for (size_t i = 0; frame.kind == NL_TOKS && i < frame.count && !ended; i++)
            if (answer_choice(forward, sequence, frame.ids[i], &ended, error) != 0)
                return -1;
    }
}

/* Before any work: a trace is of one sequence and has to fit into memory. */
static int check_trace(struct nl_forward *forward, size_t count, struct nl_error *error)
{
    if (!forward->trace)
        return 0;
    if (nl_trace_length(forward->trace) > 0)
        return nl_fail(error, NL_DATA, "a trace is of one sequence, and this is another");
    return nl_trace_reserve(forward->trace, nl_engine_model(forward->intake.engine), (uint32_t)count, error);
}

/* TOKS and logits of a prompt that can run. */
static int answer_prompt(struct nl_forward *forward, struct nl_sequence *sequence, struct nl_prompt *prompt,
                         struct nl_error *failure, struct nl_error *error)
{
    *failure = prompt->failure;
    if (failure->code != NL_OK || nl_intake_fill_empty(&forward->intake, prompt, failure) != 0)
        return 0;
    const uint32_t *ids = prompt->ids.data;
    size_t count = prompt->ids.count;
    if (nl_engine_check(forward->intake.engine, sequence, ids, count, failure) != 0 ||
        check_trace(forward, count, failure) != 0)
        return 0;
    if (nl_writer_ids(forward->writer, ids, count, error) != 0 ||
        nl_writer_flush(forward->writer, error) != 0)
        return -1;
    if (answer(forward, sequence, ids, count, forward->all, failure) == 0 || is_sequence_error(failure))
        return 0;
    *error = *failure;
    return -1;
}

/* A sequence whose DONE came: everything after its NLS1. */
static int run_prompt(struct nl_forward *forward, struct nl_prompt *prompt, struct nl_error *error)
{
    if (prompt->failure.code == NL_UPSTREAM || nl_prompt_finish_is(prompt, "cancelled")) {
        if (prompt->failure.code == NL_UPSTREAM)
            note_failure(forward, &prompt->failure);
        if (nl_writer_object(forward->writer, NL_DONE, prompt->done, error) != 0)
            return -1;
        return forward->feedback ? follow_feedback(forward, NULL, true, error) : 0;
    }
    struct nl_error failure = {0};
    struct nl_sequence *sequence = nl_engine_new_sequence(forward->intake.engine, error);
    if (!sequence)
        return -1;
    int result = answer_prompt(forward, sequence, prompt, &failure, error);
    if (result == 0 && failure.code != NL_OK) {
        note_failure(forward, &failure);
        result = nl_writer_done_error(forward->writer, &failure, error);
    } else if (result == 0 && !forward->feedback && !stopped(forward)) {
        result = nl_writer_done(forward->writer, "input", error);
    }
    if (result == 0 && forward->feedback && !stopped(forward))
        result = follow_feedback(forward, sequence, failure.code != NL_OK, error);
    nl_engine_free_sequence(forward->intake.engine, sequence);
    return result;
}

static int write_header(struct nl_forward *forward, const struct nl_prompt *prompt, struct nl_error *error)
{
    struct nl_json *header = nl_intake_header(&forward->intake, prompt, error);
    const struct nl_json *processors = forward->intake.generation.processors;
    int result = header ? 0 : -1;
    if (result == 0 && processors)
        result = nl_json_set_copy(header, "generation", processors, error);
    if (result == 0)
        result = nl_writer_object(forward->writer, NL_NLS1, header, error);
    nl_json_free(header);
    return result;
}

static int run_input(struct nl_forward *forward, struct nl_prompt *prompt, struct nl_error *error)
{
    for (;;) {
        bool begun = prompt->header != NULL;
        int got = nl_intake_next(&forward->intake, prompt, error);
        if (got < 0)
            return -1;
        if (got == NL_INTAKE_END)
            return 0;
        if (!begun && prompt->header && write_header(forward, prompt, error) != 0)
            return -1;
        if (got == NL_INTAKE_PROMPT) {
            if (run_prompt(forward, prompt, error) != 0 || nl_writer_flush(forward->writer, error) != 0)
                return -1;
            if (stopped(forward))
                return stop_waiting(error);
            nl_prompt_free(prompt);
        }
    }
}

/* After an error: keeps the FIFO open until a writer came and went, so that tee does not wait for ever to
 * open it. */
static void let_writer_go(const struct nl_forward *forward)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec + 5; now.tv_sec < end && !stopped(forward);
         clock_gettime(CLOCK_MONOTONIC, &now)) {
        struct pollfd fd = {forward->feedback_fd, 0, 0};
        if (poll(&fd, 1, 100) > 0 && (fd.revents & POLLHUP))
            return;
    }
}

int nl_forward_run(struct nl_forward *forward, struct nl_error *error)
{
    struct nl_prompt prompt = {0};
    int result = run_input(forward, &prompt, error);
    if (result != 0 && stopped(forward)) {
        result = prompt.header ? nl_writer_done(forward->writer, "cancelled", error) : 0;
        if (result == 0)
            result = nl_writer_flush(forward->writer, error);
    } else if (result != 0) {
        nl_intake_write_failure(&forward->intake, forward->writer, error);
        if (forward->feedback)
            let_writer_go(forward);
    }
    nl_prompt_free(&prompt);
    return result;
}
