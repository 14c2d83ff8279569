/* nl-forward: ids in, logits out. See nl-forward(1). */
#include <fcntl.h>
#include <unistd.h>

#include "cli_stream.h"
#include "forward.h"

static const char help[] =
    "usage: nl-forward [OPTION]... < IDS > LOGITS\n"
    "Run a language model over sequences of token ids and write the logits of the next one.\n"
    "\n" NL_MODEL_HELP "      --all                     logits for every position, not only the last\n"
    "      --feedback FIFO           read the ids that a sampler chose, and go on\n"
    "      --trace FILE              keep what is computed on the way, as a .safetensors file\n"
    "      --profile[=FILE]          at the end: the time of each operation and layer\n" CLI_FORM_HELP
    "      --top N                   in text: the N largest logits, largest first\n" CLI_HELP;

struct options {
    struct cli_common common;
    struct nl_model_options model;
    size_t top;
    const char *feedback, *trace, *profile_file; /* NULL: standard error */
    bool all, profile;
};

enum { OPTION_ALL = 0x100, OPTION_FEEDBACK, OPTION_TRACE, OPTION_PROFILE, OPTION_TOP };
enum { ALL_ROWS = 64 }; /* rows of logits that a step of --all or --trace makes */

static const struct option table[] = {
    NL_MODEL_LONG_OPTIONS,
    {"all", no_argument, NULL, OPTION_ALL},
    {"feedback", required_argument, NULL, OPTION_FEEDBACK},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"profile", optional_argument, NULL, OPTION_PROFILE},
    {"top", required_argument, NULL, OPTION_TOP},
    CLI_FORM_OPTIONS,
    CLI_OPTIONS,
    {0},
};

static void take_option(struct options *options, int c)
{
    switch (c) {
    case OPTION_ALL:
        options->all = true;
        options->model.engine.max_outputs = ALL_ROWS;
        break;
    case OPTION_FEEDBACK:
        options->feedback = optarg;
        break;
    case OPTION_TRACE:
        options->trace = optarg;
        options->model.engine.max_outputs = ALL_ROWS;
        break;
    case OPTION_PROFILE:
        options->profile = true;
        options->profile_file = optarg;
        break;
    case OPTION_TOP:
        options->top = (size_t)cli_whole("--top", optarg, 1, UINT32_MAX);
        break;
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    struct nl_error error;
    int c;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS NL_MODEL_SHORT_OPTIONS, table, NULL)) != -1)
        if (!cli_common_option(&options->common, c, argv, help) &&
            !cli_taken(nl_model_option(&options->model, c, optarg, &error), &error))
            take_option(options, c);
    cli_no_operands(argc, argv);
    if (options->all && options->feedback)
        cli_usage("--all does not go with --feedback");
    if (options->profile && options->trace)
        cli_usage("--profile does not go with --trace");
    if (options->trace && options->common.output && strcmp(options->trace, options->common.output) == 0)
        cli_usage("-o and --trace name the same file: %s", options->trace);
    if (options->top && options->common.form != NL_TEXT)
        cli_usage("--top goes with --text only");
}

/* Without waiting for the sampler, which opens it later. */
static int open_feedback(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct nl_error error;
    if (fd < 0) {
        nl_fail_errno(&error, "cannot open", path);
        cli_die(&error);
    }
    return fd;
}

static struct nl_trace *open_trace(const char *path, struct cli_file *file)
{
    struct nl_error error;
    struct nl_trace *trace = nl_trace_new(&error);
    if (!trace)
        cli_die(&error);
    cli_file_open(file, path);
    return trace;
}

/* Also of a run that failed, for what went through the model: there it is wanted most. */
static int close_trace(struct nl_trace *trace, struct cli_file *file, int status)
{
    struct nl_error error;
    int result = nl_trace_length(trace) ? nl_trace_write(trace, file->fd, file->name, &error) : 0;
    bool whole = result == 0 && nl_trace_length(trace) > 0;
    nl_trace_free(trace);
    status = status ? status : cli_outcome(result, NL_OK, &error);
    return cli_file_close(file, whole, status);
}

static void open_profile(const struct options *options, struct nl_forward *forward, struct cli_file *file)
{
    struct nl_error error;
    forward->profile = nl_profile_new(&error);
    if (!forward->profile)
        cli_die(&error);
    if (options->profile_file)
        cli_file_open(file, options->profile_file);
    else
        *file = (struct cli_file){.fd = STDERR_FILENO, .name = "standard error"};
}

static int close_profile(struct nl_profile *profile, struct cli_file *file, int status)
{
    struct nl_error error;
    struct nl_buf text = {0};
    nl_profile_print(profile, &text);
    int result = nl_buf_check(&text, "profile", &error);
    if (result == 0)
        result = nl_write_all(file->fd, text.data, text.size, file->name, &error);
    nl_buf_free(&text);
    nl_profile_free(profile);
    status = status ? status : cli_outcome(result, NL_OK, &error);
    return cli_file_close(file, result == 0, status);
}

static void summarise(const struct nl_forward *forward, double seconds)
{
    const struct nl_engine *engine = forward->intake.engine;
    if (!engine)
        return;
    cli_report_unused(&forward->intake);
    cli_message("%llu ids in %.2f s, %.1f a second: %s, %u threads", (unsigned long long)forward->n_ids,
                seconds, (double)forward->n_ids / seconds, nl_engine_backend(engine),
                nl_engine_threads(engine));
}

int main(int argc, char **argv)
{
    cli_start("nl-forward");
    struct options options = {0};
    struct nl_error error = {0};
    struct cli_output output;
    struct cli_file trace = {0}, profile = {0};
    parse_options(&options, argc, argv);
    struct nl_forward forward = {.all = options.all, .signal = &cli_signal, .report = cli_error};
    if (options.feedback) {
        signal(SIGPIPE, SIG_IGN); /* a sampler that died is to be told of */
        forward.feedback_fd = open_feedback(options.feedback);
        forward.feedback =
            cli_reader_open(forward.feedback_fd, options.feedback, nl_forward_wait_feedback, &forward);
        nl_reader_allow_fragment(forward.feedback);
    }
    if (options.trace)
        forward.trace = open_trace(options.trace, &trace);
    if (options.profile)
        open_profile(&options, &forward, &profile);
    cli_output_open(&output, &options.common);
    nl_writer_show_logits(output.writer);
    nl_writer_set_top(output.writer, options.top);
    forward.writer = output.writer;
    forward.output_fd = output.file.fd;
    cli_intake_open(&forward.intake, &options.model, nl_forward_wait_input, &forward);
    double start = cli_seconds();
    int result = nl_forward_run(&forward, &error);
    int status = cli_outcome(result, forward.status, &error);
    if (options.common.verbose)
        summarise(&forward, cli_seconds() - start);
    status = cli_output_close(&output, result == 0 && !cli_signal, status);
    if (options.trace)
        status = close_trace(forward.trace, &trace, status);
    if (options.profile)
        status = close_profile(forward.profile, &profile, status);
    nl_reader_close(forward.feedback);
    nl_reader_close(forward.intake.reader);
    nl_intake_close(&forward.intake);
    cli_exit(status);
}
