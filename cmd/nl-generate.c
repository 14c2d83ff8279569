/* nl-generate: prompts in, generated ids out. See nl-generate(1). */
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"
#include "cli_stream.h"
#include "engine_options.h"
#include "generate.h"

static const char help[] =
    "usage: nl-generate [OPTION | PROCESSOR]... < IDS > IDS\n"
    "Continue sequences of token ids with a language model.\n"
    "\n" NL_MODEL_HELP "      --echo                    write the prompt too\n"
    "      --text, --json            write the text or the JSON twin of the stream\n"
    "  -o, --output FILE             write to FILE, which appears when it is complete\n"
    "  -q, --quiet\n"
    "  -v, --verbose                 the model at the start, a summary at the end\n"
    "  -h, --help\n"
    "      --version\n" NL_SAMPLE_HELP;

struct options {
    struct nl_model_options model;
    struct nl_sample_options sample;
    enum nl_form form;
    const char *output;
    bool echo, verbose;
};

enum { OPTION_ECHO = 0x100, OPTION_TEXT, OPTION_JSON, OPTION_VERSION };

static const struct option table[] = {
    NL_MODEL_LONG_OPTIONS,
    NL_SAMPLE_LONG_OPTIONS,
    {"echo", no_argument, NULL, OPTION_ECHO},
    {"text", no_argument, NULL, OPTION_TEXT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"output", required_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'q'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

static void take_option(struct options *options, int c)
{
    switch (c) {
    case OPTION_ECHO:
        options->echo = true;
        break;
    case OPTION_TEXT:
        options->form = NL_TEXT;
        break;
    case OPTION_JSON:
        options->form = NL_JSON_LINES;
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
    while ((c = getopt_long(argc, argv, "o:qvh" NL_MODEL_SHORT_OPTIONS NL_SAMPLE_SHORT_OPTIONS, table,
                            &at)) != -1) {
        int taken = nl_model_option(&options->model, c, optarg, &error);
        if (taken == 0)
            taken = nl_sample_option(&options->sample, c, table[at].name, optarg, &error);
        if (taken < 0 && error.code == NL_USAGE)
            cli_usage("%s", error.message);
        if (taken < 0)
            cli_die(&error);
        if (taken == 0)
            take_option(options, c);
    }
    cli_no_operands(argc, argv);
    if (nl_sample_options_ready(&options->sample, &error) != 0)
        cli_die(&error);
}

static void summary(const struct nl_generate *generate, double seconds)
{
    if (generate->intake.engine)
        cli_message("%llu sequences, %llu ids read, %llu generated in %.2f s, %.1f a second: %s, %u threads",
                    (unsigned long long)generate->n_sequences, (unsigned long long)generate->n_prompt_ids,
                    (unsigned long long)generate->n_new_ids, seconds, (double)generate->n_new_ids / seconds,
                    nl_engine_backend(generate->intake.engine), nl_engine_threads(generate->intake.engine));
}

int main(int argc, char **argv)
{
    cli_start("nl-generate");
    struct options options = {0};
    struct nl_error error = {0};
    struct cli_output output;
    parse_options(&options, argc, argv);
    cli_output_open(&output, options.output, options.form);
    struct nl_generate generate = {.sample = &options.sample, .writer = output.writer, .echo = options.echo};
    generate.signal = &cli_signal;
    generate.report = cli_error;
    cli_intake_open(&generate.intake, &options.model, nl_generate_wait, &generate);
    double start = cli_seconds();
    bool whole = nl_generate_run(&generate, &error) == 0;
    if (!whole) {
        cli_error(&error);
        generate.status = error.code;
    }
    if (options.verbose)
        summary(&generate, cli_seconds() - start);
    int status = cli_output_close(&output, whole && !cli_signal, (int)generate.status);
    nl_reader_close(generate.intake.reader);
    nl_intake_close(&generate.intake);
    nl_sample_options_free(&options.sample);
    cli_exit(status);
}
