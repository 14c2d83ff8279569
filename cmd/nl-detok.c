/* nl-detok: token ids in, text out. See nl-detok(1). */
#include <poll.h>
#include <unistd.h>

#include "cli_stream.h"
#include "detok.h"

static const char help[] =
    "usage: nl-detok [OPTION]... < IDS > TEXT\n"
    "Turn a stream of token ids into text, as the ids come.\n"
    "\n"
    "  -m, --model MODEL             whose tokenizer, instead of the one that the stream names\n"
    "      --any-tokenizer           take ids of another tokenizer than the model's\n"
    "      --special=skip            leave special tokens out (the default)\n"
    "      --special=show            write them\n"
    "      --raw                     the exact bytes: no newline after a sequence, special tokens shown\n"
    "  -0, --null                    a NUL after each sequence instead of a newline\n"
    "      --bytes                   bytes that make no character as they are, not U+FFFD\n"
    "      --json                    a line of JSON for each id: the id, its bytes, what it adds\n" CLI_HELP;

struct options {
    struct cli_common common;
    const char *model;
    bool any_tokenizer, raw, null, bytes, json;
    int show; /* -1: not said */
};

enum { OPTION_ANY = 0x100, OPTION_SPECIAL, OPTION_RAW, OPTION_BYTES, OPTION_JSON };

static const struct option table[] = {
    {"model", required_argument, NULL, 'm'},
    {"any-tokenizer", no_argument, NULL, OPTION_ANY},
    {"special", required_argument, NULL, OPTION_SPECIAL},
    {"raw", no_argument, NULL, OPTION_RAW},
    {"null", no_argument, NULL, '0'},
    {"bytes", no_argument, NULL, OPTION_BYTES},
    {"json", no_argument, NULL, OPTION_JSON},
    CLI_OPTIONS,
    {0},
};

static void take_option(struct options *options, int c)
{
    switch (c) {
    case 'm':
        options->model = optarg;
        break;
    case OPTION_ANY:
        options->any_tokenizer = true;
        break;
    case OPTION_SPECIAL:
        options->show = cli_either("--special", optarg, "show", "skip");
        break;
    case OPTION_RAW:
        options->raw = true;
        break;
    case '0':
        options->null = true;
        break;
    case OPTION_BYTES:
        options->bytes = true;
        break;
    case OPTION_JSON:
        options->json = true;
        break;
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    int c;
    options->show = -1;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "m:0", table, NULL)) != -1)
        if (!cli_common_option(&options->common, c, argv, help))
            take_option(options, c);
    cli_no_operands(argc, argv);
    if (options->raw && options->null)
        cli_usage("-0 and --raw do not go together: the one adds a byte, the other none");
    if (options->json && (options->raw || options->null || options->bytes))
        cli_usage("--json does not go together with --raw, -0 or --bytes: each line names its bytes");
    if (options->show < 0)
        options->show = options->raw || options->json;
}

/* Before we wait: what we have goes out; nobody there to read it, or a signal, ends us. */
static int on_wait(void *context, struct nl_error *error)
{
    struct nl_detok *detok = context;
    if (nl_detok_flush(detok, error) != 0)
        return -1;
    if (cli_signal)
        return nl_fail(error, NL_IO, "%s", "");
    struct pollfd out = {.fd = detok->out};
    if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR)) {
        raise(SIGPIPE);
        return nl_fail(error, NL_IO, "nobody reads standard output");
    }
    return 0;
}

int main(int argc, char **argv)
{
    cli_start("nl-detok");
    struct options options = {0};
    struct nl_error error = {0};
    struct cli_file file;
    parse_options(&options, argc, argv);
    cli_file_open(&file, options.common.output);
    struct nl_detok detok = {
        .model = options.model,
        .any_tokenizer = options.any_tokenizer,
        .show_special = options.show,
        .bytes = options.bytes,
        .json = options.json,
        .terminate = !options.raw,
        .terminator = options.null ? '\0' : '\n',
        .out = file.fd,
        .out_name = file.name,
        .report = cli_error,
    };
    double start = cli_seconds();
    detok.reader = cli_reader_open(STDIN_FILENO, "standard input", on_wait, &detok);
    int result = nl_detok_run(&detok, &error);
    int status = cli_outcome(result, detok.status, &error);
    status = cli_file_close(&file, result == 0 && !cli_signal, status);
    if (options.common.verbose)
        cli_message("%llu sequences, %llu ids, %llu bytes in %.2f s", (unsigned long long)detok.n_sequences,
                    (unsigned long long)detok.n_ids, (unsigned long long)detok.n_bytes,
                    cli_seconds() - start);
    nl_reader_close(detok.reader);
    nl_detok_free(&detok);
    cli_exit(status);
}
