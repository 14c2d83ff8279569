#include "sample_run.h"

#include <stdlib.h>

#include "modelpath.h"

static bool stopped(const struct nl_sample_run *run)
{
    return run->signal && *run->signal;
}

/* ---- Sequences ---- */

int nl_sample_run_load_model(struct nl_sample_run *run, const char *name, struct nl_error *error)
{
    struct nl_buf folder = {0};
    int result = nl_model_path(name, &folder, error);
    if (result == 0)
        result = nl_generation_load(folder.data, &run->generation, error);
    nl_buf_free(&folder);
    run->has_model = result == 0;
    return result;
}

/* Ends the sequence by our own DONE: `object` if not NULL, completed. */
static int finish(struct nl_sample_run *run, struct nl_json *object, const char *reason,
                  struct nl_error *error)
{
    struct nl_json *own = object ? NULL : nl_json_new_object();
    struct nl_json *done = object ? object : own;
    if (!done)
        return nl_fail_memory(error, "DONE");
    const struct nl_sample_options *sample = run->sample;
    int result = reason ? nl_json_set_string(done, "finish", reason, error) : 0;
    if (result == 0 && !run->filter)
        result = nl_json_set_number(done, "generated", (double)run->n_new, error);
    if (result == 0 && !run->filter && !nl_sampler_is_greedy(sample->sampler))
        result = nl_json_set_number(done, "seed", (double)sample->seed, error);
    if (result == 0)
        result = nl_writer_object(run->writer, NL_DONE, done, error);
    nl_json_free(own);
    run->ended = true;
    return result;
}

/* Ends a sequence that cannot go on; the next ones can. */
static int fail_sequence(struct nl_sample_run *run, const struct nl_error *cause, struct nl_error *error)
{
    if (run->report && cause->message[0])
        run->report(cause);
    if (!run->status)
        run->status = cause->code;
    run->ended = true;
    return nl_writer_done_error(run->writer, cause, error);
}

/* The ids of a JSON list; what is no id is NL_DATA. */
static int read_ids(const struct nl_json *list, struct nl_ids *out, struct nl_error *error)
{
    for (const struct nl_json *item = nl_json_first(list); item; item = nl_json_next(item)) {
        uint32_t id;
        if (!nl_json_id(item, &id))
            return nl_fail(error, NL_DATA, "not a list of ids: eos in NLS1");
        if (nl_ids_add(out, &id, 1, error) != 0)
            return -1;
    }
    return 0;
}

/* What the chain needs to know from NLS1 or, where it is silent, from the model. */
static int set_chain(struct nl_sample_run *run, const struct nl_json *object, struct nl_error *error)
{
    struct nl_sampler *sampler = run->sample->sampler;
    const struct nl_json *eos = nl_json_get(object, "eos"), *generation = nl_json_get(object, "generation");
    bool text = nl_reader_form(run->reader) == NL_TEXT;
    run->eos.count = 0;
    if (nl_json_is(eos, NL_JSON_ARRAY)) {
        if (read_ids(eos, &run->eos, error) != 0)
            return -1;
    } else if (run->has_model) {
        if (nl_ids_add(&run->eos, run->generation.eos.data, run->generation.eos.count, error) != 0)
            return -1;
    }
    if (text && run->has_model)
        generation = run->generation.processors;
    if (run->sample->ignore_generation)
        generation = NULL;
    if (nl_sampler_set_eos(sampler, run->eos.data, run->eos.count, error) != 0)
        return -1;
    return nl_sampler_set_generation(sampler, generation, error);
}

/* In text there is no history to look at: that holds for the whole stream. */
static int check_text(struct nl_sample_run *run, struct nl_error *error)
{
    const char *name = nl_sampler_needs_ids(run->sample->sampler);
    if (nl_reader_form(run->reader) != NL_TEXT || !name)
        return 0;
    return nl_fail(error, NL_USAGE, "needs the ids of the history, which a stream in text does not carry: %s",
                   name);
}

static int begin_sequence(struct nl_sample_run *run, struct nl_frame *frame, struct nl_error *error)
{
    const char *model = getenv("NL_MODEL");
    if (nl_reader_form(run->reader) == NL_TEXT && !run->has_model && model && *model &&
        nl_sample_run_load_model(run, model, error) != 0)
        return -1;
    int64_t number;
    bool numbered = nl_json_integer(nl_json_get(frame->object, "seq"), 0, INT64_MAX, &number);
    run->number = numbered ? (uint64_t)number : run->n_sequences;
    run->n_sequences++;
    run->history.count = 0;
    run->n_prompt = 0;
    run->n_new = 0;
    run->has_logits = run->ended = false;

    struct nl_error cause;
    bool bad = set_chain(run, frame->object, &cause) != 0;
    if (!bad && check_text(run, error) != 0)
        return -1;
    if (!run->filter || !run->sample->ignore_generation)
        nl_json_remove(frame->object, "generation");
    if (nl_writer_object(run->writer, NL_NLS1, frame->object, error) != 0)
        return -1;
    if (bad)
        return fail_sequence(run, &cause, error);
    if (!run->filter && run->sample->limit == 0)
        return finish(run, NULL, "length", error);
    return 0;
}

static int end_sequence(struct nl_sample_run *run, struct nl_frame *frame, struct nl_error *error)
{
    if (run->ended)
        return 0;
    const char *reason = nl_json_get_string(frame->object, "finish");
    if (reason && strcmp(reason, "error") == 0 && !run->status)
        run->status = NL_UPSTREAM;
    return finish(run, frame->object, NULL, error);
}

/* ---- Logits ---- */

static int choose(struct nl_sample_run *run, const struct nl_history *history, struct nl_error *error)
{
    const struct nl_sample_options *sample = run->sample;
    const struct nl_logits_row *row = &run->row;
    struct nl_error cause;
    uint32_t id;
    if (nl_sampler_choose(sample->sampler, row->logits, row->n, history, &id, &cause) != 0)
        return fail_sequence(run, &cause, error);
    if (nl_writer_ids(run->writer, &id, 1, error) != 0)
        return -1;
    run->n_new++;
    run->n_ids++;
    const char *reason = nl_sample_finish(sample, run->eos.data, run->eos.count, id, run->n_new);
    return reason ? finish(run, NULL, reason, error) : 0;
}

/* Reads the row and runs the chain on it; a fault is the sequence's. */
static int process(struct nl_sample_run *run, const struct nl_frame *frame, const struct nl_history *history,
                   struct nl_error *cause)
{
    struct nl_sampler *sampler = run->sample->sampler;
    struct nl_logits_row *row = &run->row;
    if (history->count > run->history.count && nl_sampler_needs_ids(sampler))
        return nl_fail(cause, NL_DATA, "logits for position %zu after only %zu ids: sequence %llu",
                       history->count, run->history.count, (unsigned long long)run->number);
    if (nl_logits_row_read(row, frame, nl_sampler_least_row(sampler), cause) != 0)
        return -1;
    return nl_sampler_apply(sampler, row->logits, row->n, history, cause);
}

static int take_logits(struct nl_sample_run *run, const struct nl_frame *frame, struct nl_error *error)
{
    bool text = nl_reader_form(run->reader) == NL_TEXT;
    if (!run->has_logits)
        run->n_prompt = text ? frame->position : run->history.count;
    run->has_logits = true;
    struct nl_history history = {
        .ids = run->history.data,
        .count = frame->position,
        .n_prompt = run->n_prompt < frame->position ? run->n_prompt : frame->position,
        .sequence = run->number,
    };
    struct nl_error cause;
    if (process(run, frame, &history, &cause) != 0)
        return fail_sequence(run, &cause, error);
    if (run->filter)
        return nl_logits_row_write(&run->row, run->writer, error);
    return choose(run, &history, error);
}

/* ---- The stream ---- */

static int take_frame(struct nl_sample_run *run, struct nl_frame *frame, struct nl_error *error)
{
    bool pass = run->filter && !run->ended;
    switch (frame->kind) {
    case NL_NLS1:
        return begin_sequence(run, frame, error);
    case NL_TOKS:
        if (nl_ids_add(&run->history, frame->ids, frame->count, error) != 0)
            return -1;
        return pass ? nl_writer_frame(run->writer, frame, error) : 0;
    case NL_CUTS:
        if (frame->position < run->history.count)
            run->history.count = frame->position;
        return pass ? nl_writer_frame(run->writer, frame, error) : 0;
    case NL_LGTS:
    case NL_LGTK:
        return run->ended ? 0 : take_logits(run, frame, error);
    case NL_DONE:
        return end_sequence(run, frame, error);
    case NL_FAIL:
        run->failed = true;
        run->status = NL_UPSTREAM;
        return nl_writer_frame(run->writer, frame, error);
    default:
        return pass ? nl_writer_frame(run->writer, frame, error) : 0;
    }
}

/* What we have goes out. A dead reader is noticed here; writing FAIL then ends the program by SIGPIPE, as any
 * write would. */
int nl_sample_run_wait(void *context, struct nl_error *error)
{
    struct nl_sample_run *run = context;
    return stopped(run) ? nl_fail(error, NL_IO, "%s", "") : nl_writer_pause(run->writer, error);
}

static int read_all(struct nl_sample_run *run, struct nl_error *error)
{
    struct nl_frame frame;
    int got = 0;
    while (!stopped(run) && (got = nl_reader_next(run->reader, &frame, error)) > 0)
        if (take_frame(run, &frame, error) != 0)
            return -1;
    return stopped(run) ? 0 : got;
}

int nl_sample_run(struct nl_sample_run *run, struct nl_error *error)
{
    struct nl_error ignored;
    if (read_all(run, error) != 0) {
        nl_writer_fail(run->writer, error, &ignored);
        return -1;
    }
    if (stopped(run) && nl_reader_in_sequence(run->reader) && !run->ended &&
        finish(run, NULL, "cancelled", error) != 0)
        return -1;
    return nl_writer_flush(run->writer, error);
}

void nl_sample_run_free(struct nl_sample_run *run)
{
    nl_generation_free(&run->generation);
    nl_ids_free(&run->history);
    nl_ids_free(&run->eos);
    nl_logits_row_free(&run->row);
}
