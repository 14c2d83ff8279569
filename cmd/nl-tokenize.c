/* nl-tokenize: text in, token ids out. See nl-tokenize(1). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"
#include "cli_stream.h"
#include "modelpath.h"
#include "records.h"
#include "tokenizer.h"
#include "unicode.h"

static const char help[] =
    "usage: nl-tokenize [OPTION]... [FILE]... > IDS\n"
    "Turn text into a stream of token ids.\n"
    "\n"
    "  -m, --model MODEL      whose tokenizer: a folder, or ORG/NAME in the local cache\n"
    "      --lines            each line is a sequence\n"
    "  -0, --null             each NUL-terminated record is a sequence\n"
    "      --raw              the exact bytes: drop no newline, add no special tokens\n"
    "      --special=auto     add the special tokens of the tokenizer's template (the default)\n"
    "      --special=none     add none\n"
    "      --invalid=error    refuse bytes that are not UTF-8 (the default)\n"
    "      --invalid=replace  put U+FFFD in their place\n"
    "      --text, --json     write the text or the JSON twin of the stream\n"
    "  -o, --output FILE      write to FILE, which appears when it is complete\n"
    "  -q, --quiet\n"
    "  -v, --verbose          say at the end how much there was\n"
    "  -h, --help\n"
    "      --version\n";

struct options {
    const char *model, *output;
    enum nl_form form;
    enum nl_record_kind kind;
    bool raw, replace, verbose;
    int special; /* -1: not said */
};

struct program {
    struct options options;
    struct cli_output output;
    struct nl_json *header; /* NLS1 but for seq */
    struct nl_tokenizer *tokenizer;
    struct nl_encoder *encoder;
    struct nl_ids ids;
    struct nl_buf repaired;
    uint64_t n_sequences, n_bytes, n_ids;
    int status; /* of the first sequence that failed */
};

enum {
    OPTION_LINES = 0x100,
    OPTION_RAW,
    OPTION_SPECIAL,
    OPTION_INVALID,
    OPTION_TEXT,
    OPTION_JSON,
    OPTION_VERSION
};

static const struct option table[] = {
    {"model", required_argument, NULL, 'm'},
    {"lines", no_argument, NULL, OPTION_LINES},
    {"null", no_argument, NULL, '0'},
    {"raw", no_argument, NULL, OPTION_RAW},
    {"special", required_argument, NULL, OPTION_SPECIAL},
    {"invalid", required_argument, NULL, OPTION_INVALID},
    {"text", no_argument, NULL, OPTION_TEXT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"output", required_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'q'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

/* True for `yes`, false for `no`, else a usage error. */
static bool either(const char *option, const char *yes, const char *no)
{
    if (strcmp(optarg, yes) != 0 && strcmp(optarg, no) != 0)
        cli_usage("%s is %s or %s, not '%s'", option, yes, no, optarg);
    return strcmp(optarg, yes) == 0;
}

static void set_kind(struct options *options, enum nl_record_kind kind)
{
    if (options->kind != NL_RECORD_WHOLE && options->kind != kind)
        cli_usage("--lines and -0 do not go together");
    options->kind = kind;
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
        options->special = either("--special", "auto", "none");
        break;
    case OPTION_INVALID:
        options->replace = either("--invalid", "replace", "error");
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
    int c;
    options->special = -1;
    while ((c = getopt_long(argc, argv, "m:0o:qvh", table, NULL)) != -1)
        take_option(options, c);
    if (options->special < 0)
        options->special = !options->raw;
}

/* What NLS1 says of the tokenizer in `folder`. */
static struct nl_json *make_header(const char *folder, uint32_t vocab_size, struct nl_error *error)
{
    char hash[65];
    struct nl_json *header = nl_json_new_object(), *tokenizer = nl_json_new_object();
    bool good = header && tokenizer;
    if (!good)
        nl_fail_memory(error, "header");
    good = good && nl_json_set_string(header, "model", folder, error) == 0 &&
           nl_tokenizer_hash(folder, hash, error) == 0;
    if (good && hash[0])
        good = nl_json_set_string(tokenizer, "path", folder, error) == 0 &&
               nl_json_set_string(tokenizer, "sha256", hash, error) == 0 &&
               nl_json_set_copy(header, "tokenizer", tokenizer, error) == 0;
    good = good && nl_json_set_number(header, "vocab_size", vocab_size, error) == 0;
    nl_json_free(tokenizer);
    if (!good) {
        nl_json_free(header);
        header = NULL;
    }
    return header;
}

static void open_model(struct program *program)
{
    struct nl_error error;
    struct nl_buf path = {0}, folder = {0};
    if (nl_model_path(program->options.model, &path, &error) != 0)
        cli_die(&error);
    if (path.data[0] != '/') { /* the stream may be read in another folder */
        char *here = getcwd(NULL, 0);
        if (here)
            nl_buf_printf(&folder, "%s/", here);
        free(here);
    }
    nl_buf_puts(&folder, path.data);
    if (nl_buf_check(&folder, "path", &error) != 0 ||
        !(program->tokenizer = nl_tokenizer_open(folder.data, &error)) ||
        !(program->encoder = nl_encoder_open(program->tokenizer, &error)) ||
        !(program->header = make_header(folder.data, nl_tokenizer_vocab_size(program->tokenizer), &error)))
        cli_die(&error);
    nl_buf_free(&path);
    nl_buf_free(&folder);
}

/* Puts U+FFFD in the place of each maximal part that is not UTF-8. */
static void repair(struct nl_buf *out, const char *text, size_t length)
{
    size_t at = 0, bad = 0;
    nl_buf_clear(out);
    nl_buf_add(out, "", 0);
    while (at < length) {
        size_t good = nl_utf8_check(text + at, length - at, &bad);
        nl_buf_add(out, text + at, good);
        at += good;
        if (at == length)
            break;
        nl_buf_puts(out, "\xef\xbf\xbd");
        at += bad;
    }
}

/* The ids of one text into program->ids. */
static int encode(struct program *program, const struct nl_records *records, const char *text, size_t length,
                  struct nl_error *error)
{
    const struct options *options = &program->options;
    size_t good = nl_utf8_check(text, length, NULL);
    program->ids.count = 0;
    if (good < length && !options->replace)
        return nl_fail(error, NL_DATA, "not UTF-8 (--invalid=replace puts U+FFFD there): %s: byte %llu",
                       records->name, (unsigned long long)(records->offset + good));
    if (good < length) {
        repair(&program->repaired, text, length);
        if (nl_buf_check(&program->repaired, "text", error) != 0)
            return -1;
        text = program->repaired.data;
        length = program->repaired.size;
    }
    return nl_encoder_encode(program->encoder, text, length, options->special ? NL_ENCODE_SPECIAL : 0,
                             &program->ids, error);
}

static int write_sequence(struct program *program, const struct nl_records *records, const char *text,
                          size_t length, struct nl_error *error)
{
    enum { FRAME = 1 << 20 }; /* ids */
    struct nl_writer *writer = program->output.writer;
    struct nl_error cause;
    if (nl_json_set_number(program->header, "seq", (double)program->n_sequences++, error) != 0 ||
        nl_writer_object(writer, NL_NLS1, program->header, error) != 0)
        return -1;
    program->n_bytes += length;
    if (encode(program, records, text, length, &cause) != 0) {
        cli_error(&cause);
        if (!program->status)
            program->status = (int)cause.code;
        return nl_writer_done_error(writer, &cause, error);
    }
    program->n_ids += program->ids.count;
    for (size_t at = 0; at < program->ids.count; at += FRAME) {
        size_t count = program->ids.count - at < FRAME ? program->ids.count - at : FRAME;
        if (nl_writer_ids(writer, program->ids.data + at, count, error) != 0)
            return -1;
    }
    return nl_writer_done(writer, "input", error);
}

static int on_wait(void *context, struct nl_error *error)
{
    struct program *program = context;
    if (cli_signal)
        return nl_fail(error, NL_IO, "%s", "");
    return nl_writer_flush(program->output.writer, error);
}

static int read_texts(struct program *program, int fd, const char *name, struct nl_error *error)
{
    struct nl_records records = {
        .fd = fd, .name = name, .kind = program->options.kind, .raw = program->options.raw};
    records.wait = on_wait;
    records.context = program;
    if (records.kind == NL_RECORD_NUL)
        records.raw = true;
    const char *text;
    size_t length;
    int got = 0;
    while (!cli_signal && (got = nl_records_next(&records, &text, &length, error)) > 0)
        if ((got = write_sequence(program, &records, text, length, error)) != 0)
            break;
    nl_records_free(&records);
    return got;
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

int main(int argc, char **argv)
{
    cli_start("nl-tokenize");
    static char *standard_input[] = {"-", NULL};
    struct program program = {0};
    struct nl_error error = {0}, ignored;
    parse_options(&program.options, argc, argv);
    double start = cli_seconds();
    open_model(&program);
    cli_output_open(&program.output, program.options.output, program.options.form);
    int result = 0;
    for (char **file = optind < argc ? argv + optind : standard_input; *file && result == 0 && !cli_signal;
         file++)
        result = read_file(&program, *file, &error);
    if (result != 0 && !cli_signal) {
        cli_error(&error);
        program.status = (int)error.code;
        nl_writer_fail(program.output.writer, &error, &ignored);
    }
    int status = cli_output_close(&program.output, result == 0 && !cli_signal, program.status);
    if (program.options.verbose)
        cli_message("%llu sequences, %llu bytes, %llu ids in %.2f s", (unsigned long long)program.n_sequences,
                    (unsigned long long)program.n_bytes, (unsigned long long)program.n_ids,
                    cli_seconds() - start);
    nl_json_free(program.header);
    nl_encoder_close(program.encoder);
    nl_tokenizer_close(program.tokenizer);
    nl_ids_free(&program.ids);
    nl_buf_free(&program.repaired);
    cli_exit(status);
}
