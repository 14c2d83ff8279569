/* nl-sample: logits in, chosen ids or processed logits out. */
#include <getopt.h>
#include <unistd.h>

#include "cli.h"
#include "cli_stream.h"
#include "sample_run.h"

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
    cli_no_operands(argc, argv);
    if (options->filter && options->only_draws)
        cli_usage("--logits chooses nothing: -n, --stop-id and --seed do not go with it");
    if (options->top && !(options->filter && options->form == NL_TEXT))
        cli_usage("--top goes with --logits --text only");
    if (nl_sample_options_ready(&options->sample, &error) != 0)
        cli_die(&error);
}

int main(int argc, char **argv)
{
    cli_start("nl-sample");
    struct options options = {0};
    struct nl_error error = {0};
    struct cli_output output;
    parse_options(&options, argc, argv);
    struct nl_sample_run run = {.sample = &options.sample, .filter = options.filter};
    run.signal = &cli_signal;
    run.report = cli_error;
    if (options.model && nl_sample_run_load_model(&run, options.model, &error) != 0)
        cli_die(&error);
    cli_output_open(&output, options.output, options.form);
    run.writer = output.writer;
    run.output_fd = output.fd;
    run.reader = cli_reader_open(STDIN_FILENO, "standard input", nl_sample_run_wait, &run);
    nl_reader_expect_logits(run.reader);
    if (options.filter)
        nl_writer_show_logits(output.writer);
    nl_writer_set_top(output.writer, options.top);
    double start = cli_seconds();
    bool whole = nl_sample_run(&run, &error) == 0;
    if (!whole) {
        cli_error(&error);
        run.status = error.code;
    }
    if (options.verbose)
        cli_message("%llu sequences, %llu ids, %.1f ids a second", (unsigned long long)run.n_sequences,
                    (unsigned long long)run.n_ids, (double)run.n_ids / (cli_seconds() - start));
    int status = cli_output_close(&output, whole && !run.failed && !cli_signal, (int)run.status);
    nl_reader_close(run.reader);
    nl_sample_run_free(&run);
    nl_sample_options_free(&options.sample);
    cli_exit(status);
}
