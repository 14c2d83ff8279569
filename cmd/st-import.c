/* st-import: a GGUF file turned into a Hugging Face model folder. See st-import(1). */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "import.h"
#include "modelpath.h"
#include "newfolder.h"

static const char help[] =
    "usage: st-import [-fqv] [--default] [--dtype TYPE] [-o FOLDER] FILE.gguf\n"
    "Turns a GGUF file of the llama architecture into a Hugging Face model folder and prints the folder's "
    "name.\n"
    "\n"
    "  -o, --output FOLDER  the new folder (${XDG_DATA_HOME:-~/.local/share}/nanollm/NAME)\n"
    "      --dtype TYPE     the weights' type: bf16 (default), f16, f32\n"
    "      --default        make it the default model\n"
    "  -f, --force          replace a model folder that is there\n"
    "  -q, --quiet          no progress on the terminal\n"
    "  -v, --verbose        a summary line at the end\n"
    "  -h, --help           this text\n"
    "      --version        the version\n";

struct options {
    const char *input, *output; /* output: NULL for the default place */
    enum nl_dtype dtype;
    bool set_default, force, quiet, verbose;
};

struct progress {
    bool shown;
    struct timespec start, last;
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
    enum { DTYPE = 256, DEFAULT, VERSION };
    static const struct option names[] = {
        {"output", required_argument, NULL, 'o'},
        {"dtype", required_argument, NULL, DTYPE},
        {"default", no_argument, NULL, DEFAULT},
        {"force", no_argument, NULL, 'f'},
        {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, VERSION},
        {0},
    };
    struct options o = {.dtype = NL_BF16};
    int c;
    while ((c = getopt_long(argc, argv, "o:fqvh", names, NULL)) != -1)
        switch (c) {
        case 'o':
            o.output = optarg;
            break;
        case DTYPE:
            o.dtype = dtype_of(optarg);
            break;
        case DEFAULT:
            o.set_default = true;
            break;
        case 'f':
            o.force = true;
            break;
        case 'q':
            o.quiet = true;
            break;
        case 'v':
            o.verbose = true;
            break;
        case 'h':
            cli_help(help);
        case VERSION:
            cli_version();
        default:
            exit(NL_USAGE);
        }
    if (argc - optind != 1)
        cli_usage(argc == optind ? "a GGUF file is needed" : "one GGUF file at a time");
    o.input = argv[optind];
    return o;
}

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) * 1e-9;
}

/* Also where a signal ends the work. */
static int show_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *p = context;
    p->done = done;
    if (cli_signal)
        return -1;
    if (!p->shown || (seconds_since(&p->last) < 0.2 && done < total))
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &p->last);
    double rate = (double)done / (seconds_since(&p->start) + 1e-9);
    fprintf(stderr, "\r%3.0f %%  %.0f of %.0f MB  %.0f MB/s  %.0f s left \033[K",
            100.0 * (double)done / (double)total, (double)done * 1e-6, (double)total * 1e-6, rate * 1e-6,
            (double)(total - done) / rate);
    if (done == total)
        fputs("\r\033[K", stderr);
    return 0;
}

/* The folder's name: the option's, or one beside the other models. */
static int choose_folder(const struct options *o, const struct nl_gguf *file, struct nl_buf *out,
                         struct nl_error *error)
{
    if (o->output) {
        nl_buf_puts(out, o->output);
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
        result = set_link(link.data, folder->data, !o->output, error);
    nl_newfolder_close(&new);
    nl_buf_free(&link);
    nl_gguf_close(file);
    return result;
}

int main(int argc, char **argv)
{
    cli_start("st-import");
    struct options o = parse(argc, argv);
    struct progress progress = {.shown = !o.quiet && isatty(2)};
    clock_gettime(CLOCK_MONOTONIC, &progress.start);
    progress.last = progress.start; /* nothing is shown of what takes no time */
    struct nl_error error = {0};
    struct nl_buf folder = {0};
    int result = import(&o, &progress, &folder, &error);
    if (result != 0 && progress.shown && progress.done)
        fputs("\r\033[K", stderr);
    if (result != 0)
        cli_die(&error);
    printf("%s\n", folder.data);
    if (o.verbose)
        cli_message("%.0f MB of weights in %.2f s", (double)progress.done * 1e-6,
                    seconds_since(&progress.start));
    nl_buf_free(&folder);
    cli_exit(NL_OK);
}
