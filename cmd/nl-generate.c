/* nl-generate: prompts in, generated ids out. See nl-generate(1). */
#include "cli_stream.h"
#include "generate.h"

static const char help[] =
    "usage: nl-generate [OPTION | PROCESSOR]... < IDS > IDS\n"
    "Continue sequences of token ids with a language model.\n"
    "\n" NL_MODEL_HELP
    "      --echo                    write the prompt too\n" CLI_FORM_HELP CLI_HELP NL_SAMPLE_HELP;

struct options {
    struct cli_common common;
    struct nl_model_options model;
    struct nl_sample_options sample;
    bool echo;
};

enum { OPTION_ECHO = 0x100 };

static const struct option table[] = {
    NL_MODEL_LONG_OPTIONS,
    NL_SAMPLE_LONG_OPTIONS,
    {"echo", no_argument, NULL, OPTION_ECHO},
    CLI_FORM_OPTIONS,
    CLI_OPTIONS,
    {0},
};

static void parse_options(struct options *options, int argc, char **argv)
{
    struct nl_error error;
    if (nl_sample_options_init(&options->sample, &error) != 0)
        cli_die(&error);
    int c, at = 0;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS NL_MODEL_SHORT_OPTIONS NL_SAMPLE_SHORT_OPTIONS,
                            table, &at)) != -1)
        if (c == OPTION_ECHO)
            options->echo = true;
        else if (!cli_common_option(&options->common, c, argv, help) &&
                 !cli_taken(nl_model_option(&options->model, c, optarg, &error), &error))
            cli_taken(nl_sample_option(&options->sample, c, table[at].name, optarg, &error), &error);
    cli_no_operands(argc, argv);
    if (nl_sample_options_ready(&options->sample, &error) != 0)
        cli_die(&error);
}

static void summary(const struct nl_generate *generate, double seconds)
{
    if (!generate->intake.engine)
        return;
    cli_report_unused(&generate->intake);
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
    cli_output_open(&output, &options.common);
    struct nl_generate generate = {.sample = &options.sample, .writer = output.writer, .echo = options.echo};
    generate.signal = &cli_signal;
    generate.report = cli_error;
    cli_intake_open(&generate.intake, &options.model, nl_generate_wait, &generate);
    double start = cli_seconds();
    int result = nl_generate_run(&generate, &error);
    int status = cli_outcome(result, generate.status, &error);
    if (options.common.verbose)
        summary(&generate, cli_seconds() - start);
    status = cli_output_close(&output, result == 0 && !cli_signal, status);
    nl_reader_close(generate.intake.reader);
    nl_intake_close(&generate.intake);
    nl_sample_options_free(&options.sample);
    cli_exit(status);
}
