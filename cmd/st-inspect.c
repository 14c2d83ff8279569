/* st-inspect: list and check the tensors of safetensors files. See st-inspect(1). */
#include "cli.h"
#include "cli_options.h"
#include "escape.h"
#include "inspect.h"
#include "modelpath.h"

static const char help[] =
    "usage: st-inspect [OPTION]... PATH...\n"
    "List the tensors of a .safetensors file, a shard index, a model folder, or ORG/NAME in the\n"
    "local Hugging Face cache. Reads headers only.\n"
    "\n"
    "  (no option)                   a table of the tensors, then totals by type\n"
    "      --offsets                 the byte map of each file, with alignment\n"
    "      --tsv                     name, dtype, shape, elements, bytes, place in the file, file\n"
    "      --json                    one object a line for each PATH\n"
    "      --metadata                the header's metadata: key, tab, value\n"
    "      --header                  the header as it stands, for jq\n"
    "      --check                   every fault, one a line; status 1 if there is any\n"
    "  -H, --human                   sizes as 1.5MiB, counts as 134.5M\n"
    "  -o, --output FILE             write to FILE, which appears when it is complete\n"
    "  -q, --quiet                   with --check: no output, only the status\n"
    "  -v, --verbose                 with --check: name what has no fault\n"
    "  -h, --help                    this text\n"
    "      --version                 the version\n";

enum mode { TABLE, OFFSETS = 0x100, TSV, JSON, METADATA, HEADER, CHECK };

struct options {
    struct cli_common common;
    enum mode mode;
    bool human;
};

static void parse(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        {"offsets", no_argument, NULL, OFFSETS},
        {"tsv", no_argument, NULL, TSV},
        {"json", no_argument, NULL, JSON},
        {"metadata", no_argument, NULL, METADATA},
        {"header", no_argument, NULL, HEADER},
        {"check", no_argument, NULL, CHECK},
        {"human", no_argument, NULL, 'H'},
        CLI_OPTIONS,
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "H", table, NULL)) != -1;) {
        if (c == 'H') {
            options->human = true;
        } else if (!cli_common_option(&options->common, c, argv, help)) {
            if (options->mode != TABLE && options->mode != (enum mode)c)
                cli_usage("only one of --offsets --tsv --json --metadata --header --check");
            options->mode = (enum mode)c;
        }
    }
    if (options->human && options->mode != TABLE && options->mode != OFFSETS)
        cli_usage("--human is for the table and --offsets");
    if (optind == argc)
        cli_usage("no path given");
}

/* One run: what was found, and where it goes. */
struct run {
    struct options options;
    bool several;       /* paths: then each output says whose it is */
    struct nl_buf text; /* of the present path */
    struct cli_file file;
    long faults;
};

static void print_fault(void *context, const char *path, const char *message)
{
    struct run *run = context;
    run->faults++;
    if (run->options.common.quiet)
        return;
    nl_escape(&run->text, path, 0);
    nl_buf_printf(&run->text, ": %s\n", message);
}

static int check(struct run *run, const char *path, struct nl_error *error)
{
    struct nl_faults faults = {.report = print_fault, .context = run};
    if (nl_checkpoint_check(path, &faults, error) != 0)
        return -1;
    if (faults.count == 0 && run->options.common.verbose)
        cli_message("no fault: %s", path);
    return 0;
}

static int add_headers(struct run *run, const char *path, struct nl_error *error)
{
    struct nl_shards shards;
    int result = nl_shards_find(&shards, path, NULL, error);
    for (size_t i = 0; result == 0 && i < shards.count; i++) {
        result = nl_safetensors_header(shards.paths[i], &run->text, error);
        if (run->several || shards.count > 1)
            nl_buf_putc(&run->text, '\n');
    }
    nl_shards_free(&shards);
    return result;
}

static int describe(struct run *run, const char *path, struct nl_error *error)
{
    const struct options *options = &run->options;
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(path, error);
    if (!checkpoint)
        return -1;
    if (options->mode == TABLE) {
        if (run->several)
            nl_buf_printf(&run->text, "%s:\n", path);
        nl_inspect_table(checkpoint, options->human, &run->text);
        if (run->several)
            nl_buf_putc(&run->text, '\n');
    } else if (options->mode == OFFSETS) {
        nl_inspect_offsets(checkpoint, options->human, &run->text);
    } else if (options->mode == TSV) {
        nl_inspect_tsv(checkpoint, &run->text);
    } else if (options->mode == JSON) {
        nl_inspect_json(checkpoint, path, &run->text);
    } else {
        nl_inspect_metadata(checkpoint, run->several || checkpoint->shards.index, &run->text);
    }
    nl_checkpoint_close(checkpoint);
    return 0;
}

static bool is_weight_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".safetensors") == 0 || strcmp(dot, ".json") == 0);
}

/* One path, or a name in the cache. A name that ends as a weight file's does is never looked up there. */
static int inspect(struct run *run, const char *operand, struct nl_error *error)
{
    struct nl_buf path = {0};
    nl_buf_clear(&run->text);
    int result = 0;
    if (nl_path_exists(operand) || is_weight_file(operand)) {
        nl_buf_puts(&path, operand);
        result = nl_buf_check(&path, operand, error);
    } else {
        result = nl_model_path(operand, &path, error);
    }
    if (result == 0)
        result = run->options.mode == CHECK    ? check(run, path.data, error)
                 : run->options.mode == HEADER ? add_headers(run, path.data, error)
                                               : describe(run, path.data, error);
    nl_buf_free(&path);
    if (nl_buf_check(&run->text, operand, error) != 0)
        return -1;
    bool keep = result == 0 || run->options.mode == CHECK; /* what was found before the failure */
    if (keep && nl_write_all(run->file.fd, run->text.data, run->text.size, run->file.name, error) != 0)
        return -1;
    return result;
}

int main(int argc, char **argv)
{
    cli_start("st-inspect");
    struct run run = {0};
    struct nl_error error;
    parse(argc, argv, &run.options);
    run.several = argc - optind > 1;
    cli_file_open(&run.file, run.options.common.output);
    int status = NL_OK;
    for (int i = optind; i < argc; i++)
        if (inspect(&run, argv[i], &error) != 0) {
            cli_error(&error);
            status = status ? status : (int)error.code;
        }
    if (status == NL_OK && run.faults)
        status = NL_NO;
    status = cli_file_close(&run.file, status <= NL_NO, status);
    nl_buf_free(&run.text);
    cli_exit(status);
}
