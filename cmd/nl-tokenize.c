/* nl-tokenize: text in, token ids out. See nl-tokenize(1). */
#include <fcntl.h>
#include <unistd.h>

#include "cli_stream.h"
#include "tokenize.h"
#include "utf8.h"

static const char help[] =
    "usage: nl-tokenize [OPTION]... [FILE]... > IDS\n"
    "Turn text into a stream of token ids.\n"
    "\n"
    "  -m, --model MODEL             whose tokenizer: a folder, or ORG/NAME in the local cache\n"
    "      --lines                   each line is a sequence\n"
    "  -0, --null                    each NUL-terminated record is a sequence\n"
    "      --raw                     the exact bytes: drop no newline, add no special tokens\n"
    "      --special=auto            add the special tokens of the tokenizer's template (the default)\n"
    "      --special=none            add none\n"
    "      --chat[=json|text]        the text is a conversation, for the model's chat template\n"
    "      --system TEXT             what comes before the user's text in a conversation\n"
    "      --no-generation-prompt    do not open the answer of the assistant\n"
    "      --invalid=error           refuse bytes that are not UTF-8 (the default)\n"
    "      --invalid=replace         put U+FFFD in their place\n"
    "      --threads N               how many threads a long text may take\n"
    "      --plain-specials          special tokens spelt out in the text are ordinary text\n"
    "      --truncate N              at most N ids of each sequence\n"
    "      --chunk N                 sequences of at most N ids\n"
    "      --overlap K               each begins with the last K ids of the one before\n"
    "      --pieces                  show ids, their bytes, and where in the text those are\n"
    "      --stages                  show the normalized text and the pre-tokens too\n"
    "      --count                   show how many ids each sequence has\n" CLI_FORM_HELP CLI_HELP;

struct options {
    struct cli_common common;
    const char *model;
    enum nl_record_kind kind;
    bool raw, replace, plain, chunks, chat;
    struct nl_chat_options conversation;
    unsigned threads; /* 0: not said */
    enum nl_tokenize_view view;
    uint64_t most, overlap;
    int special; /* -1: not said */
};

enum {
    OPTION_LINES = 0x100,
    OPTION_RAW,
    OPTION_SPECIAL,
    OPTION_INVALID,
    OPTION_CHAT,
    OPTION_SYSTEM,
    OPTION_NO_PROMPT,
    OPTION_THREADS,
    OPTION_PLAIN,
    OPTION_TRUNCATE,
    OPTION_CHUNK,
    OPTION_OVERLAP,
    OPTION_PIECES,
    OPTION_STAGES,
    OPTION_COUNT
};

static const struct option table[] = {
    {"model", required_argument, NULL, 'm'},
    {"lines", no_argument, NULL, OPTION_LINES},
    {"null", no_argument, NULL, '0'},
    {"raw", no_argument, NULL, OPTION_RAW},
    {"special", required_argument, NULL, OPTION_SPECIAL},
    {"invalid", required_argument, NULL, OPTION_INVALID},
    {"chat", optional_argument, NULL, OPTION_CHAT},
    {"system", required_argument, NULL, OPTION_SYSTEM},
    {"no-generation-prompt", no_argument, NULL, OPTION_NO_PROMPT},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"plain-specials", no_argument, NULL, OPTION_PLAIN},
    {"truncate", required_argument, NULL, OPTION_TRUNCATE},
    {"chunk", required_argument, NULL, OPTION_CHUNK},
    {"overlap", required_argument, NULL, OPTION_OVERLAP},
    {"pieces", no_argument, NULL, OPTION_PIECES},
    {"stages", no_argument, NULL, OPTION_STAGES},
    {"count", no_argument, NULL, OPTION_COUNT},
    CLI_FORM_OPTIONS,
    CLI_OPTIONS,
    {0},
};

static void set_kind(struct options *options, enum nl_record_kind kind)
{
    if (options->kind != NL_RECORD_WHOLE && options->kind != kind)
        cli_usage("--lines and -0 do not go together");
    options->kind = kind;
}

static void set_view(struct options *options, enum nl_tokenize_view view)
{
    if (options->view != NL_VIEW_STREAM && options->view != view)
        cli_usage("only one of --pieces, --stages and --count");
    options->view = view;
}

static void set_most(struct options *options, const char *option, bool chunks)
{
    if (options->most)
        cli_usage("--truncate and --chunk do not go together");
    options->most = cli_whole(option, optarg, 1, UINT32_MAX);
    options->chunks = chunks;
}

static void take_option(struct options *options, int c)
{
    switch (c) {
    case 'm':
        options->model = optarg;
        break;
    case OPTION_LINES:
        set_kind(options, NL_RECORD_LINE);
        break;
    case '0':
        set_kind(options, NL_RECORD_NUL);
        break;
    case OPTION_RAW:
        options->raw = true;
        break;
    case OPTION_SPECIAL:
        options->special = cli_either("--special", optarg, "auto", "none");
        break;
    case OPTION_INVALID:
        options->replace = cli_either("--invalid", optarg, "replace", "error");
        break;
    case OPTION_CHAT:
        options->chat = true;
        if (optarg)
            options->conversation.input =
                cli_either("--chat", optarg, "json", "text") ? NL_CHAT_JSON : NL_CHAT_TEXT;
        break;
    case OPTION_SYSTEM:
        options->conversation.system = optarg;
        break;
    case OPTION_NO_PROMPT:
        options->conversation.no_prompt = true;
        break;
    case OPTION_THREADS:
        options->threads = (unsigned)cli_whole("--threads", optarg, 1, 1024);
        break;
    case OPTION_PLAIN:
        options->plain = true;
        break;
    case OPTION_TRUNCATE:
        set_most(options, "--truncate", false);
        break;
    case OPTION_CHUNK:
        set_most(options, "--chunk", true);
        break;
    case OPTION_OVERLAP:
        options->overlap = cli_whole("--overlap", optarg, 0, UINT32_MAX);
        break;
    case OPTION_PIECES:
        set_view(options, NL_VIEW_PIECES);
        break;
    case OPTION_STAGES:
        set_view(options, NL_VIEW_STAGES);
        break;
    case OPTION_COUNT:
        set_view(options, NL_VIEW_COUNT);
        break;
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    int c;
    options->special = -1;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "m:0", table, NULL)) != -1)
        if (!cli_common_option(&options->common, c, argv, help))
            take_option(options, c);
    const struct nl_chat_options *conversation = &options->conversation;
    const char *system = conversation->system;
    if (!options->chat && (system || conversation->no_prompt))
        cli_usage("--system and --no-generation-prompt go with --chat");
    if (system && conversation->input == NL_CHAT_JSON)
        cli_usage("--system goes with text: in JSON it is a message of its own");
    if (system && nl_utf8_check(system, strlen(system), NULL) < strlen(system))
        cli_usage("--system is not UTF-8");
    if (options->special < 0) /* a chat template writes the special tokens itself */
        options->special = !options->raw && !options->chat;
    if (options->overlap && !options->chunks)
        cli_usage("--overlap needs --chunk");
    if (options->view != NL_VIEW_STREAM && options->most)
        cli_usage("--truncate and --chunk cut the stream: not with --pieces, --stages or --count");
    if (options->view != NL_VIEW_STREAM)
        options->common.form = NL_TEXT;
}

static int read_file(struct nl_tokenize *tokenize, const char *path, struct nl_error *error)
{
    if (strcmp(path, "-") == 0)
        return nl_tokenize_read(tokenize, STDIN_FILENO, "standard input", error);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return nl_fail_errno(error, "cannot open", path);
    int result = nl_tokenize_read(tokenize, fd, path, error);
    close(fd);
    return result;
}

int main(int argc, char **argv)
{
    cli_start("nl-tokenize");
    static char *standard_input[] = {"-", NULL};
    struct options options = {0};
    struct nl_error error = {0}, ignored;
    struct cli_output output;
    parse_options(&options, argc, argv);
    struct nl_tokenize tokenize = {.kind = options.kind, .raw = options.raw, .special = options.special};
    tokenize.replace = options.replace;
    tokenize.chat = options.chat ? &options.conversation : NULL;
    tokenize.threads = options.threads ? options.threads : nl_default_threads(&error);
    if (tokenize.threads == 0)
        cli_die(&error);
    tokenize.plain = options.plain;
    tokenize.quiet = options.common.quiet;
    tokenize.view = options.view;
    tokenize.most = options.most;
    tokenize.overlap = options.overlap;
    tokenize.chunks = options.chunks;
    tokenize.signal = &cli_signal;
    tokenize.report = cli_error;
    double start = cli_seconds();
    if (nl_tokenize_open(&tokenize, options.model, &error) != 0)
        cli_die(&error);
    cli_output_open(&output, &options.common);
    tokenize.writer = output.writer;
    tokenize.out = output.file.fd;
    tokenize.out_name = output.file.name;
    int result = 0;
    for (char **file = optind < argc ? argv + optind : standard_input; *file && result == 0; file++)
        result = read_file(&tokenize, *file, &error);
    if (result != 0)
        nl_writer_fail(output.writer, &error, &ignored);
    int status = cli_outcome(result, tokenize.status, &error);
    status = cli_output_close(&output, result == 0 && !cli_signal, status);
    if (options.common.verbose)
        cli_message("%llu sequences, %llu bytes, %llu ids in %.2f s",
                    (unsigned long long)tokenize.n_sequences, (unsigned long long)tokenize.n_bytes,
                    (unsigned long long)tokenize.n_ids, cli_seconds() - start);
    nl_tokenize_free(&tokenize);
    cli_exit(status);
}
