#include "cli_stream.h"

#include <unistd.h>

#include "cli.h"

void cli_output_open(struct cli_output *output, const char *path, enum nl_form form)
{
    struct nl_error error;
    *output = (struct cli_output){.fd = STDOUT_FILENO, .to_file = path != NULL};
    if (path && nl_outfile_open(&output->file, path, &error) != 0)
        cli_die(&error);
    if (path)
        output->fd = output->file.fd;
    output->writer = nl_writer_open(output->fd, form, path ? path : "standard output", &error);
    if (!output->writer) {
        if (path)
            nl_outfile_abort(&output->file);
        cli_die(&error);
    }
}

int cli_output_close(struct cli_output *output, bool whole, int status)
{
    struct nl_error error = {0};
    bool failed = nl_writer_close(output->writer, whole ? &error : NULL) != 0;
    if (output->to_file && (failed || !whole))
        nl_outfile_abort(&output->file);
    else if (output->to_file)
        failed = nl_outfile_commit(&output->file, &error) != 0;
    if (!failed)
        return status;
    cli_error(&error);
    return NL_IO;
}

struct nl_reader *cli_reader_open(int fd, const char *name,
                                  int (*wait)(void *context, struct nl_error *error), void *context)
{
    struct nl_error error;
    struct nl_reader *reader = nl_reader_open(fd, name, &error);
    if (!reader)
        cli_die(&error);
    nl_reader_on_wait(reader, wait, context);
    return reader;
}

void cli_intake_open(struct nl_intake *intake, const struct nl_model_options *options,
                     int (*wait)(void *context, struct nl_error *error), void *context)
{
    intake->model = options->model;
    intake->options = options->engine;
    intake->any_tokenizer = options->any_tokenizer;
    intake->reader = cli_reader_open(STDIN_FILENO, "standard input", wait, context);
}
