#include "generate.h"

#include <stdlib.h>

enum { QUEUE = 4 }; /* sequences that may wait to be written, in batches */

/* A sequence from its DONE to its last id written. */
struct nl_job {
    struct nl_prompt prompt; /* its ids grow by those that are generated */
    struct nl_sequence *sequence;
    size_t n_prompt, n_written;
    const char *finish; /* NULL: still running */
    bool begun;         /* its NLS1 is written */
    struct nl_job *next;
};

static bool stopped(const struct nl_generate *generate)
{
    return generate->signal && *generate->signal;
}

int nl_generate_wait(void *context, struct nl_error *error)
{
    struct nl_generate *generate = context;
    return stopped(generate) ? nl_fail(error, NL_UPSTREAM, "%s", "")
                             : nl_writer_pause(generate->writer, error);
}

static void fail_job(struct nl_generate *generate, struct nl_job *job, const struct nl_error *failure)
{
    job->finish = "error";
    job->prompt.failure = *failure;
    if (generate->report && failure->message[0])
        generate->report(failure);
    if (generate->status == NL_OK)
        generate->status = failure->code;
}

/* A complete prompt: decides whether it can run, and takes it into the queue. */
static int add_job(struct nl_generate *generate, struct nl_error *error)
{
    struct nl_engine *engine = generate->intake.engine;
    struct nl_job *job = calloc(1, sizeof *job), **end = &generate->jobs;
    if (!job)
        return nl_fail_memory(error, "sequence");
    while (*end)
        end = &(*end)->next;
    *end = job;
    job->prompt = generate->incoming;
    generate->incoming = (struct nl_prompt){0};
    struct nl_error failure = job->prompt.failure;
    if (nl_prompt_finish_is(&job->prompt, "cancelled")) {
        job->finish = "cancelled";
    } else if (failure.code != NL_OK ||
               nl_intake_fill_empty(&generate->intake, &job->prompt, &failure) != 0 ||
               nl_engine_check(engine, NULL, job->prompt.ids.data, job->prompt.ids.count, &failure) != 0) {
        fail_job(generate, job, &failure);
    } else if (generate->sample->limit == 0) {
        job->finish = "length";
    } else {
        job->sequence = nl_engine_new_sequence(engine, error);
        if (!job->sequence)
            return -1;
    }
    job->n_prompt = job->prompt.ids.count;
    job->n_written = generate->echo && job->prompt.failure.code == NL_OK ? 0 : job->n_prompt;
    generate->n_prompt_ids += job->n_prompt;
    generate->n_sequences++;
    return 0;
}

/* The model's own processors and end ids, known once the first sequence has opened the model. */
static int set_up_sampler(struct nl_generate *generate, struct nl_error *error)
{
    const struct nl_generation *generation = &generate->intake.generation;
    struct nl_sampler *sampler = generate->sample->sampler;
    if (nl_sampler_set_eos(sampler, generation->eos.data, generation->eos.count, error) != 0)
        return -1;
    return nl_sampler_set_generation(
        sampler, generate->sample->ignore_generation ? NULL : generation->processors, error);
}

/* True when one more sequence may be read now. */
static bool has_room(const struct nl_generate *generate)
{
    size_t running = 0, queued = 0;
    for (const struct nl_job *job = generate->jobs; job; job = job->next, queued++)
        running += !job->finish;
    if (!generate->jobs)
        return true;
    uint32_t batch = nl_engine_batch(generate->intake.engine);
    return !generate->jobs->finish && running < batch && queued < (size_t)QUEUE * batch;
}

/* Reads what is there, and waits for it only while there is nothing else to do; *open: false at the end of
 * the input. */
static int read_input(struct nl_generate *generate, bool *open, struct nl_error *error)
{
    while (*open && !stopped(generate) && has_room(generate)) {
        if (generate->jobs && !nl_reader_ready(generate->intake.reader))
            return 0;
        bool first = !generate->intake.engine;
        int got = nl_intake_next(&generate->intake, &generate->incoming, error);
        if (got < 0 || (first && generate->intake.engine && set_up_sampler(generate, error) != 0))
            return -1;
        if (got == NL_INTAKE_PROMPT && add_job(generate, error) != 0)
            return -1;
        *open = got != NL_INTAKE_END;
    }
    return 0;
}

static int write_header(struct nl_generate *generate, struct nl_job *job, struct nl_error *error)
{
    struct nl_json *header = nl_intake_header(&generate->intake, &job->prompt, error);
    int result = header ? 0 : -1;
    if (result == 0 && !generate->echo)
        result = nl_json_set_bool(header, "continues", true, error);
    if (result == 0)
        result = nl_writer_object(generate->writer, NL_NLS1, header, error);
    nl_json_free(header);
    job->begun = true;
    return result;
}

static int write_done(struct nl_generate *generate, const struct nl_job *job, struct nl_error *error)
{
    if (job->prompt.failure.code == NL_UPSTREAM) /* reported by somebody else: passed on */
        return nl_writer_object(generate->writer, NL_DONE, job->prompt.done, error);
    if (job->prompt.failure.code != NL_OK)
        return nl_writer_done_error(generate->writer, &job->prompt.failure, error);
    struct nl_json *done = nl_json_new_object();
    int result =
        done ? nl_json_set_string(done, "finish", job->finish, error) : nl_fail_memory(error, "DONE");
    if (result == 0)
        result = nl_json_set_number(done, "prompt", (double)job->n_prompt, error);
    if (result == 0)
        result =
            nl_json_set_number(done, "generated", (double)(job->prompt.ids.count - job->n_prompt), error);
    if (result == 0 && !nl_sampler_is_greedy(generate->sample->sampler))
        result = nl_json_set_number(done, "seed", (double)generate->sample->seed, error);
    if (result == 0)
        result = nl_writer_object(generate->writer, NL_DONE, done, error);
    nl_json_free(done);
    return result;
}

static void free_job(struct nl_generate *generate, struct nl_job *job)
{
    nl_engine_free_sequence(generate->intake.engine, job->sequence);
    nl_prompt_free(&job->prompt);
    free(job);
}

/* Writes what the first job has, and those behind it as each is complete. */
static int write_output(struct nl_generate *generate, struct nl_error *error)
{
    for (struct nl_job *job; (job = generate->jobs);) {
        if (!job->begun && write_header(generate, job, error) != 0)
            return -1;
        const struct nl_ids *ids = &job->prompt.ids;
        if (ids->count > job->n_written && nl_writer_ids(generate->writer, ids->data + job->n_written,
                                                         ids->count - job->n_written, error) != 0)
            return -1;
        job->n_written = ids->count;
        if (!job->finish)
            break;
        if (write_done(generate, job, error) != 0)
            return -1;
        generate->jobs = job->next;
        free_job(generate, job);
    }
    return nl_writer_flush(generate->writer, error);
}

/* The choice is the arg-max of the model's own logits. */
static bool takes_best(const struct nl_generate *generate)
{
    return nl_sampler_is_greedy(generate->sample->sampler) && nl_sampler_is_plain(generate->sample->sampler);
}

/* Chooses the next id from a row of logits; sets job->finish when it is the last. */
static int choose(struct nl_generate *generate, struct nl_job *job, float *logits, uint32_t best,
                  struct nl_error *error)
{
    struct nl_ids *ids = &job->prompt.ids;
    uint32_t vocab_size = nl_engine_model(generate->intake.engine)->config.vocab_size, id = best;
    struct nl_history history = {ids->data, ids->count, job->n_prompt, job->prompt.seq};
    struct nl_sampler *sampler = generate->sample->sampler;
    if (!takes_best(generate)) {
        if (nl_sampler_apply(sampler, logits, vocab_size, &history, error) != 0 ||
            nl_sampler_choose(sampler, logits, vocab_size, &history, &id, error) != 0)
            return -1;
    }
    if (nl_ids_add(ids, &id, 1, error) != 0)
        return -1;
    generate->n_new_ids++;
    const struct nl_ids *eos = &generate->intake.generation.eos;
    job->finish = nl_sample_finish(generate->sample, eos->data, eos->count, id, ids->count - job->n_prompt);
    if (!job->finish && ids->count > nl_engine_context(generate->intake.engine))
        job->finish = "context";
    if (job->finish) {
        nl_engine_free_sequence(generate->intake.engine, job->sequence);
        job->sequence = NULL;
    }
    return 0;
}

/* One step of some jobs, or of each alone where the step of all together failed. */
static int run_feeds(struct nl_generate *generate, struct nl_feed *feeds, struct nl_job **jobs, size_t count,
                     struct nl_error *error)
{
    struct nl_error failure = {0};
    if (nl_engine_step(generate->intake.engine, feeds, count, &failure) == 0) {
        for (size_t i = 0; i < count; i++)
            if (feeds[i].n_outputs &&
                choose(generate, jobs[i], feeds[i].logits, feeds[i].best[0], &failure) != 0)
                fail_job(generate, jobs[i], &failure);
        return 0;
    }
    if (failure.code != NL_DATA && failure.code != NL_RESOURCE && failure.code != NL_TOO_LONG) {
        *error = failure;
        return -1;
    }
    if (count == 1)
        fail_job(generate, jobs[0], &failure);
    for (size_t i = 0; count > 1 && i < count; i++)
        if (run_feeds(generate, &feeds[i], &jobs[i], 1, error) != 0)
            return -1;
    return 0;
}

/* One step: an id of each sequence that chooses, and as much of the others' prompts as fits. */
static int step(struct nl_generate *generate, struct nl_error *error)
{
    struct nl_feed feeds[NL_MAX_BATCH];
    struct nl_job *jobs[NL_MAX_BATCH];
    size_t count = 0;
    uint32_t room = nl_engine_chunk(generate->intake.engine);
    for (struct nl_job *job = generate->jobs; job && count < NL_MAX_BATCH; job = job->next) {
        if (job->finish)
            continue;
        size_t fed = nl_sequence_length(job->sequence), rest = job->prompt.ids.count - fed;
        /* A chosen id always fits: as many rows as the batch has are kept for them. */
        uint32_t take = rest == 1 ? 1 : (uint32_t)(rest < room ? rest : room);
        if (take == 0)
            continue;
        room -= rest == 1 ? 0 : take;
        jobs[count] = job;
        feeds[count] = (struct nl_feed){.sequence = job->sequence,
                                        .ids = job->prompt.ids.data + fed,
                                        .count = take,
                                        .whole = (uint32_t)job->prompt.ids.count,
                                        .n_outputs = take == rest,
                                        .best_only = takes_best(generate)};
        count++;
    }
    return count ? run_feeds(generate, feeds, jobs, count, error) : 0;
}

static int run(struct nl_generate *generate, struct nl_error *error)
{
    for (bool open = true; open || generate->jobs;) {
        if (read_input(generate, &open, error) != 0 || (generate->jobs && step(generate, error) != 0))
            return -1;
        if (stopped(generate))
            return 0;
        if (generate->intake.engine && write_output(generate, error) != 0)
            return -1;
    }
    return 0;
}

int nl_generate_run(struct nl_generate *generate, struct nl_error *error)
{
    int result = run(generate, error);
    if (stopped(generate)) {
        for (struct nl_job *job = generate->jobs; job; job = job->next)
            job->finish = job->finish ? job->finish : "cancelled";
        result = generate->intake.engine ? write_output(generate, error) : 0;
    } else if (result != 0) {
        struct nl_error ignored;
        if (generate->intake.engine)
            write_output(generate, &ignored);
        nl_intake_write_failure(&generate->intake, generate->writer, error);
    }
    for (struct nl_job *job; (job = generate->jobs);) {
        generate->jobs = job->next;
        free_job(generate, job);
    }
    nl_prompt_free(&generate->incoming);
    return result;
}
