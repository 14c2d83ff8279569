/* nl-sample: logits in, chosen ids or processed logits out. */
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "file.h"
#include "generation.h"
#include "logits_row.h"
#include "modelpath.h"
#include "sample_options.h"
#include "stream.h"

static const char help[] =
    "Usage: nl-sample [OPTION | PROCESSOR]... < LOGITS > IDS\n"
    "Choose token ids from a stream of logits.\n"
    "\n"
    "      --logits                  write the processed logits instead of ids\n"
    "      --text, --json            write the text or the JSON twin of the stream\n"
    "      --top N                   with --logits --text: the N largest, largest first\n"
    "  -m, --model MODEL             whose end ids and processors to use where the stream has none\n"
    "  -o, --output FILE             write to FILE, which appears when it is complete\n"
    "  -q, --quiet\n"
    "  -v, --verbose                 say at the end how many ids there were\n"
    "  -h, --help\n"
    "      --version\n" NL_SAMPLE_HELP;

struct options {
    struct nl_sample_options sample;
    bool filter, verbose, only_draws; /* only_draws: -n, --stop-id or --seed was given */
    enum nl_form form;
    size_t top;
    const char *model, *output;
};

struct program {
    struct options options;
    struct nl_reader *reader;
    struct nl_writer *writer;
    int out;
    struct nl_generation model; /* of -m or $NL_MODEL */
    bool has_model;
    int status;  /* of the first sequence that failed */
    bool failed; /* FAIL came */
    uint64_t n_sequences, n_ids;

    /* The present sequence. */
    struct nl_ids history, eos;
    uint64_t number, n_new;
    size_t n_prompt;
    bool has_logits; /* a row came: the prompt is over */
    bool ended;      /* our DONE is written: what still comes is dropped */

    struct nl_logits_row row;
};

/* ---- Options ---- */

enum { OPTION_LOGITS = 0x100, OPTION_TEXT, OPTION_JSON, OPTION_TOP, OPTION_VERSION };

static const struct option table[] = {
    {"logits", no_argument, NULL, OPTION_LOGITS},
    {"text", no_argument, NULL, OPTION_TEXT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"top", required_argument, NULL, OPTION_TOP},
    {"model", required_argument, NULL, 'm'},
    {"output", required_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'q'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    NL_SAMPLE_LONG_OPTIONS,
    {0},
};

static void take_option(struct options *options, int c)
{
    switch (c) {
    case OPTION_LOGITS:
        options->filter = true;
        break;
    case OPTION_TEXT:
        options->form = NL_TEXT;
        break;
    case OPTION_JSON:
        options->form = NL_JSON_LINES;
        break;
    case OPTION_TOP:
        options->top = (size_t)cli_integer("--top", optarg, 1, UINT32_MAX);
        break;
    case 'm':
        options->model = optarg;
        break;
    case 'o':
        options->output = optarg;
        break;
    case 'q':
        break;
    case 'v':
        options->verbose = true;
        break;
    case 'h':
        cli_help(help);
    case OPTION_VERSION:
        cli_version();
    default:
        cli_usage("wrong options"); /* getopt_long has said which */
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    struct nl_error error;
    if (nl_sample_options_init(&options->sample, &error) != 0)
        cli_die(&error);
    int c, at = 0;
    while ((c = getopt_long(argc, argv, "m:o:qvh" NL_SAMPLE_SHORT_OPTIONS, table, &at)) != -1) {
        int taken = nl_sample_option(&options->sample, c, table[at].name, optarg, &error);
        if (taken < 0 && error.code == NL_USAGE)
            cli_usage("%s", error.message);
        if (taken < 0)
            cli_die(&error);
        if (taken == 0)
            take_option(options, c);
        else if (c == 'n' || c == NL_SAMPLE_SEED || c == NL_SAMPLE_STOP_ID)
            options->only_draws = true;
    }
    if (optind < argc && !(optind == argc - 1 && strcmp(argv[optind], "-") == 0))
        cli_usage("the stream comes on standard input: no operand is taken: %s", argv[optind]);
    if (options->filter && options->only_draws)
        cli_usage("--logits chooses nothing: -n, --stop-id and --seed do not go with it");
    if (options->top && !(options->filter && options->form == NL_TEXT))
        cli_usage("--top goes with --logits --text only");
    if (nl_sample_options_ready(&options->sample, &error) != 0)
        cli_die(&error);
}

/* ---- Sequences ---- */

static int load_model(struct program *program, const char *name, struct nl_error *error)
{
    struct nl_buf folder = {0};
    int result = nl_model_path(name, &folder, error);
    if (result == 0)
        result = nl_generation_load(folder.data, &program->model, error);
    nl_buf_free(&folder);
    program->has_model = result == 0;
    return result;
}

/* Ends the sequence by our own DONE: `object` if not NULL, completed. */
static int finish(struct program *program, struct nl_json *object, const char *reason, struct nl_error *error)
{
    struct nl_json *own = object ? NULL : nl_json_new_object();
    struct nl_json *done = object ? object : own;
    if (!done)
        return nl_fail_memory(error, "DONE");
    const struct nl_sample_options *sample = &program->options.sample;
    int result = reason ? nl_json_set_string(done, "finish", reason, error) : 0;
    if (result == 0 && !program->options.filter)
        result = nl_json_set_number(done, "generated", (double)program->n_new, error);
    if (result == 0 && !program->options.filter && !nl_sampler_is_greedy(sample->sampler))
        result = nl_json_set_number(done, "seed", (double)sample->seed, error);
    if (result == 0)
        result = nl_writer_object(program->writer, NL_DONE, done, error);
    nl_json_free(own);
    program->ended = true;
    return result;
}

/* Ends a sequence that cannot go on; the next ones can. */
static int fail_sequence(struct program *program, const struct nl_error *cause, struct nl_error *error)
{
    cli_error(cause);
    if (!program->status)
        program->status = (int)cause->code;
    program->ended = true;
    return nl_writer_done_error(program->writer, cause, error);
}

/* The ids of a JSON list; what is no id is NL_DATA. */
static int read_ids(const struct nl_json *list, struct nl_ids *out, struct nl_error *error)
{
    for (const struct nl_json *item = nl_json_first(list); item; item = nl_json_next(item)) {
        int64_t id;
        if (!nl_json_integer(item, 0, UINT32_MAX, &id))
            return nl_fail(error, NL_DATA, "not a list of ids: eos in NLS1");
        uint32_t found = (uint32_t)id;
        if (nl_ids_add(out, &found, 1, error) != 0)
            return -1;
    }
    return 0;
}

/* What the chain needs to know from NLS1 or, where it is silent, from the model. */
static int set_chain(struct program *program, const struct nl_json *object, struct nl_error *error)
{
    struct nl_sampler *sampler = program->options.sample.sampler;
    const struct nl_json *eos = nl_json_get(object, "eos"), *generation = nl_json_get(object, "generation");
    bool text = nl_reader_form(program->reader) == NL_TEXT;
    program->eos.count = 0;
    if (nl_json_is(eos, NL_JSON_ARRAY)) {
        if (read_ids(eos, &program->eos, error) != 0)
            return -1;
    } else if (program->has_model) {
        if (nl_ids_add(&program->eos, program->model.eos.data, program->model.eos.count, error) != 0)
            return -1;
    }
    if (text && program->has_model)
        generation = program->model.processors;
    if (program->options.sample.ignore_generation)
        generation = NULL;
    if (nl_sampler_set_eos(sampler, program->eos.data, program->eos.count, error) != 0)
        return -1;
    return nl_sampler_set_generation(sampler, generation, error);
}

/* In text there is no history to look at: that holds for the whole stream. */
static int check_text(struct program *program, struct nl_error *error)
{
    const char *name = nl_sampler_needs_ids(program->options.sample.sampler);
    if (nl_reader_form(program->reader) != NL_TEXT || !name)
        return 0;
    return nl_fail(error, NL_USAGE, "needs the ids of the history, which a stream in text does not carry: %s",
                   name);
}

static int begin_sequence(struct program *program, struct nl_frame *frame, struct nl_error *error)
{
    const char *model = getenv("NL_MODEL");
    if (nl_reader_form(program->reader) == NL_TEXT && !program->has_model && model && *model &&
        load_model(program, model, error) != 0)
        return -1;
    int64_t number;
    bool numbered = nl_json_integer(nl_json_get(frame->object, "seq"), 0, INT64_MAX, &number);
    program->number = numbered ? (uint64_t)number : program->n_sequences;
    program->n_sequences++;
    program->history.count = 0;
    program->n_prompt = 0;
    program->n_new = 0;
    program->has_logits = program->ended = false;

    struct nl_error cause;
    bool bad = set_chain(program, frame->object, &cause) != 0;
    if (!bad && check_text(program, error) != 0)
        return -1;
    if (!program->options.filter || !program->options.sample.ignore_generation)
        nl_json_remove(frame->object, "generation");
    if (nl_writer_object(program->writer, NL_NLS1, frame->object, error) != 0)
        return -1;
    if (bad)
        return fail_sequence(program, &cause, error);
    if (!program->options.filter && program->options.sample.limit == 0)
        return finish(program, NULL, "length", error);
    return 0;
}

static int end_sequence(struct program *program, struct nl_frame *frame, struct nl_error *error)
{
    if (program->ended)
        return 0;
    const struct nl_json *reason = nl_json_get(frame->object, "finish");
    if (nl_json_is(reason, NL_JSON_STRING) && strcmp(nl_json_string(reason), "error") == 0 &&
        !program->status)
        program->status = NL_UPSTREAM;
    return finish(program, frame->object, NULL, error);
}

/* ---- Logits ---- */

static int choose(struct program *program, const struct nl_history *history, struct nl_error *error)
{
    const struct nl_sample_options *sample = &program->options.sample;
    const struct nl_logits_row *row = &program->row;
    struct nl_error cause;
    uint32_t id;
    if (nl_sampler_choose(sample->sampler, row->logits, row->n, history, &id, &cause) != 0)
        return fail_sequence(program, &cause, error);
    if (nl_writer_ids(program->writer, &id, 1, error) != 0)
        return -1;
    program->n_new++;
    program->n_ids++;
    const char *reason = nl_sample_finish(sample, program->eos.data, program->eos.count, id, program->n_new);
    return reason ? finish(program, NULL, reason, error) : 0;
}

/* Reads the row and runs the chain on it; a fault is the sequence's. */
static int process(struct program *program, const struct nl_frame *frame, const struct nl_history *history,
                   struct nl_error *cause)
{
    struct nl_sampler *sampler = program->options.sample.sampler;
    struct nl_logits_row *row = &program->row;
    if (history->count > program->history.count && nl_sampler_needs_ids(sampler))
        return nl_fail(cause, NL_DATA, "logits for position %zu after only %zu ids: sequence %llu",
                       history->count, program->history.count, (unsigned long long)program->number);
    if (nl_logits_row_read(row, frame, nl_sampler_least_row(sampler), cause) != 0)
        return -1;
    return nl_sampler_apply(sampler, row->logits, row->n, history, cause);
}

static int take_logits(struct program *program, const struct nl_frame *frame, struct nl_error *error)
{
    bool text = nl_reader_form(program->reader) == NL_TEXT;
    if (!program->has_logits)
        program->n_prompt = text ? frame->position : program->history.count;
    program->has_logits = true;
    struct nl_history history = {
        .ids = program->history.data,
        .count = frame->position,
        .n_prompt = program->n_prompt < frame->position ? program->n_prompt : frame->position,
        .sequence = program->number,
    };
    struct nl_error cause;
    if (process(program, frame, &history, &cause) != 0)
        return fail_sequence(program, &cause, error);
    if (program->options.filter)
        return nl_logits_row_write(&program->row, program->writer, error);
    return choose(program, &history, error);
}

/* ---- The stream ---- */

static int take_frame(struct program *program, struct nl_frame *frame, struct nl_error *error)
{
    bool pass = program->options.filter && !program->ended;
    switch (frame->kind) {
    case NL_NLS1:
        return begin_sequence(program, frame, error);
    case NL_TOKS:
        if (nl_ids_add(&program->history, frame->ids, frame->count, error) != 0)
            return -1;
        return pass ? nl_writer_frame(program->writer, frame, error) : 0;
    case NL_CUTS:
        if (frame->position < program->history.count)
            program->history.count = frame->position;
        return pass ? nl_writer_frame(program->writer, frame, error) : 0;
    case NL_LGTS:
    case NL_LGTK:
        return program->ended ? 0 : take_logits(program, frame, error);
    case NL_DONE:
        return end_sequence(program, frame, error);
    case NL_FAIL:
        program->failed = true;
        program->status = NL_UPSTREAM;
        return nl_writer_frame(program->writer, frame, error);
    default:
        return pass ? nl_writer_frame(program->writer, frame, error) : 0;
    }
}

/* Before we wait: what we have goes out; nobody there to read it, or a signal, ends us. */
static int on_wait(void *context, struct nl_error *error)
{
    struct program *program = context;
    if (nl_writer_flush(program->writer, error) != 0)
        return -1;
    if (cli_signal)
        return nl_fail(error, NL_IO, "%s", "");
    struct pollfd out = {.fd = program->out};
    if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR)) {
        raise(SIGPIPE);
        return nl_fail(error, NL_IO, "nobody reads standard output");
    }
    return 0;
}

/* Reads to the end: 0, or -1 when the whole stream had to be given up. */
static int run(struct program *program, struct nl_error *error)
{
    struct nl_frame frame;
    int got = 0;
    while (!cli_signal && (got = nl_reader_next(program->reader, &frame, error)) > 0)
        if (take_frame(program, &frame, error) != 0)
            return -1;
    if (!cli_signal)
        return got;
    error->message[0] = '\0';
    if (nl_reader_in_sequence(program->reader) && !program->ended)
        return finish(program, NULL, "cancelled", error);
    return 0;
}

static void open_streams(struct program *program, struct nl_outfile *file)
{
    struct nl_error error;
    const struct options *options = &program->options;
    if (options->model && load_model(program, options->model, &error) != 0)
        cli_die(&error);
    program->out = STDOUT_FILENO;
    if (options->output) {
        if (nl_outfile_open(file, options->output, &error) != 0)
            cli_die(&error);
        program->out = file->fd;
    }
    const char *name = options->output ? options->output : "standard output";
    program->reader = nl_reader_open(STDIN_FILENO, "standard input", &error);
    program->writer = program->reader ? nl_writer_open(program->out, options->form, name, &error) : NULL;
    if (!program->writer) {
        if (options->output)
            nl_outfile_abort(file);
        cli_die(&error);
    }
    nl_reader_expect_logits(program->reader);
    nl_reader_on_wait(program->reader, on_wait, program);
    if (options->filter)
        nl_writer_show_logits(program->writer);
    nl_writer_set_top(program->writer, options->top);
}

/* Flushes and closes; a file appears only when the whole stream is in it. */
static void close_output(struct program *program, struct nl_outfile *file, bool whole)
{
    struct nl_error error;
    if (nl_writer_close(program->writer, whole ? &error : NULL) != 0) {
        cli_error(&error);
        program->status = NL_IO;
        whole = false;
    }
    if (!program->options.output)
        return;
    if (!whole || program->failed || cli_signal) {
        nl_outfile_abort(file);
    } else if (nl_outfile_commit(file, &error) != 0) {
        cli_error(&error);
        program->status = (int)error.code;
    }
}

static void release(struct program *program)
{
    nl_reader_close(program->reader);
    nl_generation_free(&program->model);
    nl_sample_options_free(&program->options.sample);
    nl_ids_free(&program->history);
    nl_ids_free(&program->eos);
    nl_logits_row_free(&program->row);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    cli_start("nl-sample");
    struct program program = {0};
    struct nl_outfile file;
    struct nl_error error = {0}, ignored;
    parse_options(&program.options, argc, argv);
    open_streams(&program, &file);
    double start = seconds_now();
    bool whole = run(&program, &error) == 0;
    if (!whole) {
        cli_error(&error);
        program.status = (int)error.code;
        nl_writer_fail(program.writer, &error, &ignored);
    }
    close_output(&program, &file, whole);
    if (program.options.verbose)
        cli_message("%llu sequences, %llu ids, %.1f ids a second", (unsigned long long)program.n_sequences,
                    (unsigned long long)program.n_ids, (double)program.n_ids / (seconds_now() - start));
    release(&program);
    cli_exit(program.status);
}
