/* nl-sample: logits in, chosen ids or processed logits out. See nl-sample(1). */
#include <unistd.h>

#include "cli_stream.h"
#include "sample_run.h"

static const char help[] =
    "usage: nl-sample [OPTION | PROCESSOR]... < LOGITS > IDS\n"
    "Choose token ids from a stream of logits.\n"
    "\n"
    "      --logits                  write the processed logits instead of ids\n" CLI_FORM_HELP
    "      --top N                   with --logits --text: the N largest, largest first\n"
    "  -m, --model MODEL             whose end ids and processors to use where the stream has none\n" CLI_HELP
        NL_SAMPLE_HELP;

struct options {
    struct cli_common common;
    struct nl_sample_options sample;
    bool filter, only_draws; /* only_draws: -n, --stop-id or --seed was given */
    size_t top;
    const char *model;
};

enum { OPTION_LOGITS = 0x100, OPTION_TOP };

static const struct option table[] = {
    {"logits", no_argument, NULL, OPTION_LOGITS},
    {"top", required_argument, NULL, OPTION_TOP},
    {"model", required_argument, NULL, 'm'},
    CLI_FORM_OPTIONS,
    CLI_OPTIONS,
    NL_SAMPLE_LONG_OPTIONS,
    {0},
};

static void take_option(struct options *options, int c)
{
    switch (c) {
    case OPTION_LOGITS:
        options->filter = true;
        break;
    case OPTION_TOP:
        options->top = (size_t)cli_whole("--top", optarg, 1, UINT32_MAX);
        break;
    case 'm':
        options->model = optarg;
        break;
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    struct nl_error error;
    if (nl_sample_options_init(&options->sample, &error) != 0)
        cli_die(&error);
    int c, at = 0;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "m:" NL_SAMPLE_SHORT_OPTIONS, table, &at)) != -1) {
        options->only_draws |= c == 'n' || c == NL_SAMPLE_SEED || c == NL_SAMPLE_STOP_ID;
        if (!cli_common_option(&options->common, c, argv, help) &&
            !cli_taken(nl_sample_option(&options->sample, c, table[at].name, optarg, &error), &error))
            take_option(options, c);
    }
    cli_no_operands(argc, argv);
    if (options->filter && options->only_draws)
        cli_usage("--logits chooses nothing: -n, --stop-id and --seed do not go with it");
    if (options->top && !(options->filter && options->common.form == NL_TEXT))
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
    cli_output_open(&output, &options.common);
    run.writer = output.writer;
    run.reader = cli_reader_open(STDIN_FILENO, "standard input", nl_sample_run_wait, &run);
    nl_reader_expect_logits(run.reader);
    if (options.filter)
        nl_writer_show_logits(output.writer);
    nl_writer_set_top(output.writer, options.top);
    double start = cli_seconds();
    int result = nl_sample_run(&run, &error);
    int status = cli_outcome(result, run.status, &error);
    if (options.common.verbose)
        cli_message("%llu sequences, %llu ids, %.1f ids a second", (unsigned long long)run.n_sequences,
                    (unsigned long long)run.n_ids, (double)run.n_ids / (cli_seconds() - start));
    status = cli_output_close(&output, result == 0 && !run.failed && !cli_signal, status);
    nl_reader_close(run.reader);
    nl_sample_run_free(&run);
    nl_sample_options_free(&options.sample);
    cli_exit(status);
}
