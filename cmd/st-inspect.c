/* st-inspect: list and check the tensors of safetensors files. See st-inspect(1). */
#include <sys/stat.h>

#include "cli.h"
#include "cli_options.h"
#include "escape.h"
#include "inspect.h"
#include "inspect_model.h"
#include "inspect_values.h"
#include "modelpath.h"

static const char help[] =
    "usage: st-inspect [OPTION]... PATH...\n"
    "List the tensors of a .safetensors file, a shard index, a model folder, or ORG/NAME in the\n"
    "local Hugging Face cache. Reads headers only, unless --values is given.\n"
    "\n"
    "  (no option)                   a table of the tensors, totals by type, a folder's model\n"
    "      --summary                 the model of a folder only: its shape, the memory it takes\n"
    "  -c, --context N               of so many positions (max_position_embeddings)\n"
    "      --values                  scan the data: NaN, infinities, smallest, largest, mean;\n"
    "                                status 1 if there is any NaN or infinity\n"
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

enum mode { TABLE, OFFSETS = 0x100, TSV, JSON, METADATA, HEADER, CHECK, SUMMARY };
enum { OPTION_VALUES = 0x200 };

struct options {
    struct cli_common common;
    enum mode mode;
    bool human, values;
    uint32_t context; /* 0: the model's own */
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
        {"summary", no_argument, NULL, SUMMARY},
        {"values", no_argument, NULL, OPTION_VALUES},
        {"context", required_argument, NULL, 'c'},
        {"human", no_argument, NULL, 'H'},
        CLI_OPTIONS,
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "Hc:", table, NULL)) != -1;) {
        if (c == 'H') {
            options->human = true;
        } else if (c == 'c') {
            options->context = (uint32_t)cli_whole("--context", optarg, 1, INT32_MAX);
        } else if (c == OPTION_VALUES) {
            options->values = true;
        } else if (!cli_common_option(&options->common, c, argv, help)) {
            if (options->mode != TABLE && options->mode != (enum mode)c)
                cli_usage("only one of --offsets --tsv --json --metadata --header --check --summary");
            options->mode = (enum mode)c;
        }
    }
    if (options->human &&
        (options->values || (options->mode != TABLE && options->mode != OFFSETS && options->mode != SUMMARY)))
        cli_usage("--human is for the table, --offsets and --summary");
    if (options->values && options->mode != TABLE && options->mode != TSV && options->mode != JSON)
        cli_usage("--values goes with --tsv or --json");
    if (optind == argc)
        cli_usage("no path given");
}

/* One run: what was found, and where it goes. */
struct run {
    struct options options;
    bool several;       /* paths: then each output says whose it is */
    struct nl_buf text; /* of the present path */
    struct cli_file file;
    long faults; /* and tensors with NaN or infinities */
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

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Behind the table: what the folder's config.json says. Weights without one, or of a model that does not run
   here, are worth looking at too. */
static void add_model(struct run *run, const char *path, const struct nl_checkpoint *checkpoint)
{
    const struct options *options = &run->options;
    struct nl_error error;
    size_t before = run->text.size;
    nl_buf_putc(&run->text, '\n');
    if (nl_inspect_model(path, checkpoint, options->context, options->human, &run->text, &error) == 0)
        return;
    if (error.code == NL_NOT_FOUND)
        run->text.size = before;
    else
        nl_buf_printf(&run->text, "no summary of the model: %s\n", error.message);
}

static void add_json(struct run *run, const char *path, const struct nl_checkpoint *checkpoint)
{
    struct nl_buf model = {0};
    struct nl_error error;
    bool described =
        is_folder(path) && nl_inspect_model_json(path, checkpoint, run->options.context, &model, &error) == 0;
    nl_inspect_json(checkpoint, path, described && model.data ? model.data : "null", &run->text);
    run->text.failed |= model.failed;
    nl_buf_free(&model);
}

static void add_values(struct run *run, const char *path, const struct nl_checkpoint *checkpoint)
{
    struct nl_inspect_values values = {.signal = &cli_signal};
    if (run->options.mode == TSV)
        nl_inspect_values_tsv(checkpoint, &values, &run->text);
    else if (run->options.mode == JSON)
        nl_inspect_values_json(checkpoint, path, &values, &run->text);
    else
        nl_inspect_values_table(checkpoint, &values, &run->text);
    run->faults += (long)values.n_bad;
}

static void add_table(struct run *run, const char *path, const struct nl_checkpoint *checkpoint)
{
    if (run->several)
        nl_buf_printf(&run->text, "%s:\n", path);
    if (run->options.values)
        add_values(run, path, checkpoint);
    else
        nl_inspect_table(checkpoint, run->options.human, &run->text);
    if (!run->options.values && is_folder(path))
        add_model(run, path, checkpoint);
    if (run->several)
        nl_buf_putc(&run->text, '\n');
}

static int summarise(struct run *run, const char *path, const struct nl_checkpoint *checkpoint,
                     struct nl_error *error)
{
    if (!is_folder(path))
        return nl_fail(error, NL_USAGE, "--summary is of a model folder, which this is not: %s", path);
    if (run->several)
        nl_buf_printf(&run->text, "%s:\n", path);
    return nl_inspect_model(path, checkpoint, run->options.context, run->options.human, &run->text, error);
}

static int describe(struct run *run, const char *path, struct nl_error *error)
{
    const struct options *options = &run->options;
    struct nl_checkpoint *checkpoint = nl_checkpoint_open(path, error);
    int result = 0;
    if (!checkpoint)
        return -1;
    if (options->mode == TABLE)
        add_table(run, path, checkpoint);
    else if (options->values)
        add_values(run, path, checkpoint);
    else if (options->mode == SUMMARY)
        result = summarise(run, path, checkpoint, error);
    else if (options->mode == OFFSETS)
        nl_inspect_offsets(checkpoint, options->human, &run->text);
    else if (options->mode == TSV)
        nl_inspect_tsv(checkpoint, &run->text);
    else if (options->mode == JSON)
        add_json(run, path, checkpoint);
    else
        nl_inspect_metadata(checkpoint, run->several || checkpoint->shards.index, &run->text);
    nl_checkpoint_close(checkpoint);
    return result;
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
