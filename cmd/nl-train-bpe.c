/* nl-train-bpe: text in, a tokenizer.json out. See nl-train-bpe(1). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cli_options.h"
#include "cli_progress.h"
#include "engine_options.h"
#include "modelpath.h"
#include "records.h"
#include "train_bpe.h"
#include "utf8.h"

static const char help[] =
    "usage: nl-train-bpe [OPTION]... [FILE]... > tokenizer.json\n"
    "Train a byte-level BPE tokenizer on text.\n"
    "\n"
    "      --vocab-size N            tokens, special ones and alphabet included (30000)\n"
    "      --min-frequency N         merge only pairs that occur so often (0)\n"
    "      --max-token-length N      merge only to tokens of fewer than N bytes\n"
    "      --special TOKEN           add a special token; may be repeated\n"
    "      --pre-tokenizer NAME      gpt2 (the default), llama3, qwen2, o200k, smollm, none\n"
    "      --like TOKENIZER          pre-tokenizer, special tokens and so on of a tokenizer.json\n"
    "      --initial-alphabet WHICH  bytes that are tokens in any case: bytes (all, the default),\n"
    "                                none, text:TEXT\n"
    "      --limit-alphabet N        have at most N single bytes as tokens\n"
    "      --whole                   take each file as one text, not by lines\n"
    "      --invalid=error           refuse bytes that are not UTF-8 (the default)\n"
    "      --invalid=replace         put U+FFFD in their place\n"
    "      --threads N               how many threads\n" CLI_HELP;

struct options {
    struct cli_common common;
    struct nl_train_bpe_options train;
    const char *like, *pre_tokenizer;
    const char **special; /* [n_special] */
    size_t n_special;
    bool whole, replace;
};

struct program {
    struct options options;
    struct cli_progress progress;
    uint64_t total_bytes; /* of the files, 0: not known */
    struct nl_train_bpe *trainer;
    struct nl_buf batch; /* sequences, and where each ends: */
    size_t *ends, n_ends, ends_capacity;
    uint64_t n_bytes;
};

enum { BATCH = 8 << 20 /* bytes */ };

enum {
    OPTION_VOCAB_SIZE = 0x100,
    OPTION_MIN_FREQUENCY,
    OPTION_MAX_TOKEN_LENGTH,
    OPTION_SPECIAL,
    OPTION_PRE_TOKENIZER,
    OPTION_LIKE,
    OPTION_INITIAL_ALPHABET,
    OPTION_LIMIT_ALPHABET,
    OPTION_WHOLE,
    OPTION_INVALID,
    OPTION_THREADS
};

static const struct option table[] = {
    {"vocab-size", required_argument, NULL, OPTION_VOCAB_SIZE},
    {"min-frequency", required_argument, NULL, OPTION_MIN_FREQUENCY},
    {"max-token-length", required_argument, NULL, OPTION_MAX_TOKEN_LENGTH},
    {"special", required_argument, NULL, OPTION_SPECIAL},
    {"pre-tokenizer", required_argument, NULL, OPTION_PRE_TOKENIZER},
    {"like", required_argument, NULL, OPTION_LIKE},
    {"initial-alphabet", required_argument, NULL, OPTION_INITIAL_ALPHABET},
    {"limit-alphabet", required_argument, NULL, OPTION_LIMIT_ALPHABET},
    {"whole", no_argument, NULL, OPTION_WHOLE},
    {"invalid", required_argument, NULL, OPTION_INVALID},
    {"threads", required_argument, NULL, OPTION_THREADS},
    CLI_OPTIONS,
    {0},
};

static void take_alphabet(struct options *options)
{
    bool *initial = options->train.initial;
    if (strcmp(optarg, "bytes") == 0) {
        memset(initial, true, sizeof options->train.initial);
    } else if (strcmp(optarg, "none") == 0 || strncmp(optarg, "text:", 5) == 0) {
        memset(initial, false, sizeof options->train.initial);
        for (const char *byte = *optarg == 't' ? optarg + 5 : ""; *byte; byte++)
            initial[(unsigned char)*byte] = true;
    } else {
        cli_usage("--initial-alphabet is bytes, none or text:TEXT, not '%s'", optarg);
    }
}

static void take_number(struct options *options, int c)
{
    struct nl_train_bpe_options *train = &options->train;
    if (c == OPTION_VOCAB_SIZE)
        train->vocab_size = (uint32_t)cli_whole("--vocab-size", optarg, 1, NL_TRAIN_BPE_LARGEST);
    else if (c == OPTION_MIN_FREQUENCY)
        train->min_frequency = cli_whole("--min-frequency", optarg, 0, UINT64_MAX);
    else if (c == OPTION_MAX_TOKEN_LENGTH)
        train->max_token_length = cli_whole("--max-token-length", optarg, 0, UINT64_MAX);
    else if (c == OPTION_LIMIT_ALPHABET)
        train->limit_alphabet = (uint32_t)cli_whole("--limit-alphabet", optarg, 0, UINT32_MAX);
    else
        train->threads = (unsigned)cli_whole("--threads", optarg, 1, 1024);
}

static void take_option(struct options *options, int c)
{
    switch (c) {
    case OPTION_SPECIAL:
        options->special[options->n_special++] = optarg;
        break;
    case OPTION_PRE_TOKENIZER:
        options->pre_tokenizer = optarg;
        break;
    case OPTION_LIKE:
        options->like = optarg;
        break;
    case OPTION_INITIAL_ALPHABET:
        take_alphabet(options);
        break;
    case OPTION_WHOLE:
        options->whole = true;
        break;
    case OPTION_INVALID:
        options->replace = cli_either("--invalid", optarg, "replace", "error");
        break;
    default:
        take_number(options, c);
    }
}

static void parse_options(struct options *options, int argc, char **argv)
{
    int c;
    struct nl_error error;
    options->train = nl_train_bpe_defaults();
    options->train.threads = nl_default_threads(&error);
    if (options->train.threads == 0)
        cli_usage("%s", error.message);
    options->special = calloc((size_t)argc, sizeof *options->special);
    if (!options->special) {
        cli_message("out of memory: options");
        exit(NL_RESOURCE);
    }
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS, table, NULL)) != -1)
        if (!cli_common_option(&options->common, c, argv, help))
            take_option(options, c);
    if (options->like && options->pre_tokenizer)
        cli_usage("--like and --pre-tokenizer do not go together");
}

/* The tokenizer.json of --like. */
static struct nl_json *load_like(const char *like, struct nl_error *error)
{
    struct nl_buf path = {0};
    struct nl_json *json = NULL;
    struct stat status;
    if (nl_model_path(like, &path, error) == 0) {
        if (stat(path.data, &status) == 0 && S_ISDIR(status.st_mode))
            nl_buf_puts(&path, "/tokenizer.json");
        if (nl_buf_check(&path, "path", error) == 0)
            json = nl_json_load(path.data, error);
    }
    nl_buf_free(&path);
    return json;
}

static int count_batch(struct program *program, struct nl_error *error)
{
    int result =
        nl_train_bpe_add(program->trainer, program->batch.data, program->ends, program->n_ends, error);
    nl_buf_clear(&program->batch);
    program->n_ends = 0;
    return result;
}

static int add_sequence(struct program *program, const struct nl_records *records, const char *text,
                        size_t length, struct nl_error *error)
{
    size_t good = nl_utf8_check(text, length, NULL);
    if (good < length && !program->options.replace)
        return nl_fail(error, NL_DATA, "not UTF-8 (--invalid=replace puts U+FFFD there): %s: byte %llu",
                       records->name, (unsigned long long)(records->offset + good));
    if (nl_grow(&program->ends, &program->ends_capacity, program->n_ends + 1, sizeof *program->ends, "lines",
                error) != 0)
        return -1;
    if (good < length)
        nl_utf8_repair(text, length, &program->batch);
    else
        nl_buf_add(&program->batch, text, length);
    if (nl_buf_check(&program->batch, "text", error) != 0)
        return -1;
    program->ends[program->n_ends++] = program->batch.size;
    program->n_bytes += length;
    return program->batch.size < BATCH ? 0 : count_batch(program, error);
}

static int on_wait(void *context, struct nl_error *error)
{
    (void)context;
    return cli_signal ? nl_fail(error, NL_IO, "%s", "") : 0;
}

static int read_texts(struct program *program, int fd, const char *name, struct nl_error *error)
{
    struct nl_records records = {.fd = fd, .name = name, .raw = true, .wait = on_wait};
    records.kind = program->options.whole ? NL_RECORD_WHOLE : NL_RECORD_LINE;
    const char *text;
    size_t length;
    int got = 0;
    while (!cli_signal && (got = nl_records_next(&records, &text, &length, error)) > 0) {
        if ((got = add_sequence(program, &records, text, length, error)) != 0)
            break;
        if (program->n_ends == 0)
            cli_progress_show(&program->progress, "reading", program->n_bytes, program->total_bytes, 1e6,
                              "MB");
    }
    nl_records_free(&records);
    return cli_signal ? nl_fail(error, NL_IO, "%s", "") : got;
}

static int read_file(struct program *program, const char *path, struct nl_error *error)
{
    if (strcmp(path, "-") == 0)
        return read_texts(program, STDIN_FILENO, "standard input", error);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return nl_fail_errno(error, "cannot open", path);
    int result = read_texts(program, fd, path, error);
    close(fd);
    return result;
}

/* The bytes of all files, 0 where that is not known. */
static uint64_t total_size(char **files)
{
    uint64_t total = 0;
    struct stat status;
    for (; *files; files++) {
        bool input = strcmp(*files, "-") == 0;
        if ((input ? fstat(STDIN_FILENO, &status) : stat(*files, &status)) != 0 || !S_ISREG(status.st_mode))
            return 0;
        total += (uint64_t)status.st_size;
    }
    return total;
}

static int on_merge(void *context, uint32_t size, uint32_t wanted)
{
    struct program *program = context;
    cli_progress_show(&program->progress, "merging", size, wanted, 1, "tokens");
    return cli_signal ? -1 : 0;
}

static int read_all(struct program *program, char **files, struct nl_error *error)
{
    program->total_bytes = total_size(files);
    cli_progress_begin(&program->progress, program->options.common.quiet);
    for (; *files; files++)
        if (read_file(program, *files, error) != 0)
            return -1;
    return count_batch(program, error);
}

static int train(struct program *program, const struct nl_json *form, char **files, struct nl_buf *out,
                 struct nl_error *error)
{
    const struct options *options = &program->options;
    program->trainer = nl_train_bpe_open(&options->train, form, options->special, options->n_special, error);
    if (!program->trainer || read_all(program, files, error) != 0)
        return -1;
    cli_progress_begin(&program->progress, program->options.common.quiet);
    if (nl_train_bpe_run(program->trainer, on_merge, program, error) != 0)
        return -1;
    return nl_train_bpe_write(program->trainer, out, error);
}

static struct nl_json *load_form(const struct options *options)
{
    struct nl_error error;
    struct nl_json *form =
        options->like ? load_like(options->like, &error)
                      : nl_train_bpe_form(options->pre_tokenizer ? options->pre_tokenizer : "gpt2", &error);
    if (!form && error.code == NL_USAGE)
        cli_usage("%s", error.message);
    if (!form)
        cli_die(&error);
    return form;
}

int main(int argc, char **argv)
{
    cli_start("nl-train-bpe");
    static char *standard_input[] = {"-", NULL};
    struct program program = {0};
    struct nl_error error = {0};
    struct nl_buf text = {0};
    struct cli_file file;
    parse_options(&program.options, argc, argv);
    const struct cli_common *common = &program.options.common;
    double start = cli_seconds();
    struct nl_json *form = load_form(&program.options);
    cli_file_open(&file, common->output);
    int result = train(&program, form, optind < argc ? argv + optind : standard_input, &text, &error);
    cli_progress_clear(&program.progress);
    if (result == 0)
        result = nl_write_all(file.fd, text.data, text.size, file.name, &error);
    int status = cli_file_close(&file, result == 0, cli_outcome(result, NL_OK, &error));
    if (common->verbose && result == 0) {
        struct nl_train_bpe_sizes sizes = nl_train_bpe_sizes(program.trainer);
        cli_message("%llu bytes, %u distinct words, %u tokens, %u merges in %.2f s",
                    (unsigned long long)program.n_bytes, sizes.words, sizes.tokens, sizes.merges,
                    cli_seconds() - start);
    }
    nl_train_bpe_close(program.trainer);
    nl_json_free(form);
    nl_buf_free(&text);
    nl_buf_free(&program.batch);
    free(program.ends);
    free(program.options.special);
    cli_exit(status);
}
