/* st-import: a GGUF file turned into a Hugging Face model folder. See st-import(1). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"
#include "cli_options.h"
#include "cli_progress.h"
#include "import.h"
#include "modelpath.h"
#include "newfolder.h"

static const char help[] =
    "usage: st-import [OPTION]... FILE.gguf\n"
    "Turn a GGUF file of the llama architecture into a Hugging Face model folder, and print its name.\n"
    "\n"
    "  -o, --output FOLDER           the new folder (${XDG_DATA_HOME:-~/.local/share}/nanollm/NAME)\n"
    "      --dtype TYPE              the weights' type: bf16 (default), f16, f32\n"
    "      --default                 make it the default model\n"
    "  -f, --force                   replace a model folder that is there\n"
    "  -q, --quiet                   no progress on the terminal\n"
    "  -v, --verbose                 a summary at the end\n"
    "  -h, --help                    this text\n"
    "      --version                 the version\n";

struct options {
    struct cli_common common; /* output: the folder; NULL for the default place */
    const char *input;
    enum nl_dtype dtype;
    bool set_default, force;
};

struct progress {
    struct cli_progress line;
    uint64_t done;
};

static enum nl_dtype dtype_of(const char *value)
{
    static const struct {
        const char *name;
        enum nl_dtype dtype;
    } names[] = {{"bf16", NL_BF16},   {"bfloat16", NL_BF16}, {"f16", NL_F16},
                 {"float16", NL_F16}, {"f32", NL_F32},       {"float32", NL_F32}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i].name) == 0)
            return names[i].dtype;
    cli_usage("--dtype takes f32, f16 or bf16, not '%s'", value);
}

static struct options parse(int argc, char **argv)
{
    enum { OPTION_DTYPE = 0x100, OPTION_DEFAULT };
    static const struct option table[] = {
        {"dtype", required_argument, NULL, OPTION_DTYPE},
        {"default", no_argument, NULL, OPTION_DEFAULT},
        {"force", no_argument, NULL, 'f'},
        CLI_OPTIONS,
        {0},
    };
    struct options options = {.dtype = NL_BF16};
    int c;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "f", table, NULL)) != -1)
        if (c == OPTION_DTYPE)
            options.dtype = dtype_of(optarg);
        else if (c == OPTION_DEFAULT)
            options.set_default = true;
        else if (c == 'f')
            options.force = true;
        else
            cli_common_option(&options.common, c, argv, help);
    if (argc - optind != 1)
        cli_usage(argc == optind ? "a GGUF file is needed" : "one GGUF file at a time");
    options.input = argv[optind];
    return options;
}

/* Also where a signal ends the work. */
static int show_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *p = context;
    p->done = done;
    if (cli_signal)
        return -1;
    cli_progress_show(&p->line, "importing", done, total, 1e6, "MB");
    return 0;
}

/* The folder's name: the option's, or one beside the other models. */
static int choose_folder(const struct options *o, const struct nl_gguf *file, struct nl_buf *out,
                         struct nl_error *error)
{
    if (o->common.output) {
        nl_buf_puts(out, o->common.output);
        return nl_buf_check(out, "path", error);
    }
    if (nl_data_folder(out, error) != 0 || nl_make_folders(out->data, error) != 0)
        return -1;
    nl_buf_putc(out, '/');
    return nl_import_name(file, out, error);
}

/* The link that names the default model; it may replace a link, never a folder. */
static int default_link(struct nl_buf *out, struct nl_error *error)
{
    char target[1];
    if (nl_data_folder(out, error) != 0 || nl_make_folders(out->data, error) != 0)
        return -1;
    nl_buf_puts(out, "/default");
    if (nl_buf_check(out, "path", error) != 0)
        return -1;
    if (readlink(out->data, target, sizeof target) < 0 && errno == EINVAL)
        return nl_fail(error, NL_USAGE, "exists and is not a symbolic link: %s", out->data);
    return 0;
}

/* Puts a new link in place in one step; to a folder beside it by its name alone, so that both can move
 * together. */
static int set_link(const char *link, const char *folder, bool beside, struct nl_error *error)
{
    struct nl_buf temporary = {0};
    char *full = realpath(folder, NULL);
    int result = 0;
    nl_buf_printf(&temporary, "%s.%ld", link, (long)getpid());
    if (!full || temporary.failed) {
        result = nl_fail_memory(error, "path");
    } else if (symlink(beside ? strrchr(folder, '/') + 1 : full, temporary.data) != 0 ||
               rename(temporary.data, link) != 0) {
        result = nl_fail_errno(error, "cannot make the link", link);
        unlink(temporary.data);
    }
    free(full);
    nl_buf_free(&temporary);
    return result;
}

static int import(const struct options *o, struct progress *progress, struct nl_buf *folder,
                  struct nl_error *error)
{
    struct nl_buf link = {0};
    struct nl_newfolder new = {0};
    struct nl_import_options options = {o->dtype, show_progress, progress};
    struct nl_gguf *file = nl_gguf_open(o->input, error);
    int result = file ? choose_folder(o, file, folder, error) : -1;
    if (result == 0 && o->set_default)
        result = default_link(&link, error);
    if (result == 0)
        result = nl_newfolder_open(&new, folder->data, o->force, nl_import_files, error);
    if (result == 0)
        result = nl_import(file, new.temporary, &options, error);
    if (result == 0)
        result = nl_newfolder_commit(&new, error);
    if (result == 0 && o->set_default)
        result = set_link(link.data, folder->data, !o->common.output, error);
    nl_newfolder_close(&new);
    nl_buf_free(&link);
    nl_gguf_close(file);
    return result;
}

int main(int argc, char **argv)
{
    cli_start("st-import");
    struct options o = parse(argc, argv);
    struct progress progress = {0};
    cli_progress_begin(&progress.line, o.common.quiet);
    struct nl_error error = {0};
    struct nl_buf folder = {0};
    int result = import(&o, &progress, &folder, &error);
    cli_progress_clear(&progress.line);
    if (result != 0)
        cli_die(&error);
    printf("%s\n", folder.data);
    if (o.common.verbose)
        cli_message("%.0f MB of weights in %.2f s", (double)progress.done * 1e-6,
                    cli_seconds() - progress.line.start);
    nl_buf_free(&folder);
    cli_exit(NL_OK);
}
