/* st-diff: compare tensors by name. See st-diff(1). */
#include "cli.h"
#include "cli_options.h"
#include "number.h"
#include "tensor_diff.h"

static const char help[] =
    "usage: st-diff [OPTION]... A B\n"
    "Compare the tensors of two .safetensors files, shard indexes or model folders by name, in the\n"
    "order of a forward pass. Status 1 when any differs, or is there only once.\n"
    "\n"
    "      --atol X, --rtol X        a and b agree when |a - b| <= atol + rtol |b| (1e-4, 1e-4)\n"
    "      --map FROM=TO             names of A like FROM become TO; * any text, {} a number\n"
    "      --common                  leave out what only one of them has\n"
    "      --tsv                     name, verdict, shape, max abs, max rel, cosine, bad, first bad, a, b\n"
    "      --json                    one object a line for each name\n"
    "  -o, --output FILE             write to FILE, which appears when it is complete\n"
    "  -q, --quiet                   no output, only the status\n"
    "  -v, --verbose                 accepted, and does nothing\n"
    "  -h, --help                    this text\n"
    "      --version                 the version\n";

enum { ATOL = 0x100, RTOL, MAP, COMMON, TSV, JSON };
enum { MAX_RENAMES = 64 };

struct options {
    struct cli_common common;
    int form; /* 0: the table; TSV, JSON */
    struct nl_diff_options diff;
    struct nl_rename renames[MAX_RENAMES];
};

static double tolerance(const char *option, const char *value)
{
    double number;
    const char *text = value;
    if (!nl_take_number(&text, &number) || *text || !(number >= 0))
        cli_usage("%s takes a number from 0 on: %s", option, value);
    return number;
}

static void add_rename(struct options *options, const char *text)
{
    struct nl_error error;
    if (options->diff.n_renames == MAX_RENAMES)
        cli_usage("more than %d times --map", MAX_RENAMES);
    if (nl_rename_parse(&options->renames[options->diff.n_renames++], text, &error) != 0)
        cli_usage("%s", error.message);
}

static void take_option(struct options *options, int c)
{
    switch (c) {
    case ATOL:
        options->diff.atol = tolerance("--atol", optarg);
        break;
    case RTOL:
        options->diff.rtol = tolerance("--rtol", optarg);
        break;
    case MAP:
        add_rename(options, optarg);
        break;
    case COMMON:
        options->diff.common = true;
        break;
    default:
        if (options->form && options->form != c)
            cli_usage("only one of --tsv --json");
        options->form = c;
    }
}

static void parse(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"atol", required_argument, NULL, ATOL},
        {"rtol", required_argument, NULL, RTOL},
        {"map", required_argument, NULL, MAP},
        {"common", no_argument, NULL, COMMON},
        {"tsv", no_argument, NULL, TSV},
        {"json", no_argument, NULL, JSON},
        CLI_OPTIONS,
        {0},
    };
    options->diff = (struct nl_diff_options){.atol = 1e-4, .rtol = 1e-4, .renames = options->renames};
    for (int c; (c = getopt_long(argc, argv, CLI_SHORT_OPTIONS, table, NULL)) != -1;)
        if (!cli_common_option(&options->common, c, argv, help))
            take_option(options, c);
    if (argc - optind != 2)
        cli_usage("two files or folders are wanted, here are %d", argc - optind);
}

static struct nl_checkpoint *open_set(const char *path)
{
    struct nl_error error;
    struct nl_checkpoint *set = nl_checkpoint_open(path, &error);
    if (!set)
        cli_die(&error);
    return set;
}

static int print(const struct options *options, const struct nl_diff *diff, struct cli_file *file)
{
    struct nl_buf text = {0};
    struct nl_error error;
    if (options->form == TSV)
        nl_diff_tsv(diff, &text);
    else if (options->form == JSON)
        nl_diff_json(diff, &text);
    else
        nl_diff_table(diff, &options->diff, &text);
    int result = nl_buf_check(&text, "comparison", &error);
    if (result == 0 && !options->common.quiet)
        result = nl_write_all(file->fd, text.data, text.size, file->name, &error);
    nl_buf_free(&text);
    return cli_outcome(result, diff->n_bad ? NL_NO : NL_OK, &error);
}

int main(int argc, char **argv)
{
    cli_start("st-diff");
    struct options options = {0};
    struct nl_error error;
    struct cli_file file;
    struct nl_diff diff;
    parse(argc, argv, &options);
    struct nl_checkpoint *a = open_set(argv[optind]), *b = open_set(argv[optind + 1]);
    if (nl_diff_run(&diff, a, b, &options.diff, &error) != 0)
        cli_die(&error);
    cli_file_open(&file, options.common.output);
    int status = print(&options, &diff, &file);
    status = cli_file_close(&file, status <= NL_NO, status);
    nl_diff_free(&diff);
    nl_checkpoint_close(a);
    nl_checkpoint_close(b);
    cli_exit(status);
}
