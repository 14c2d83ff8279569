#include "cli_stream.h"

#include <unistd.h>

void cli_output_open(struct cli_output *output, const struct cli_common *common)
{
    struct nl_error error;
    cli_file_open(&output->file, common->output);
    output->writer = nl_writer_open(output->file.fd, common->form, output->file.name, &error);
    if (output->writer)
        return;
    cli_file_close(&output->file, false, NL_OK);
    cli_die(&error);
}

int cli_output_close(struct cli_output *output, bool whole, int status)
{
    struct nl_error error = {0};
    bool failed = nl_writer_close(output->writer, whole ? &error : NULL) != 0;
    if (failed)
        cli_error(&error);
    status = cli_file_close(&output->file, whole && !failed, status);
    return failed ? NL_IO : status;
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

void cli_report_unused(const struct nl_intake *intake)
{
    const struct nl_model *model = nl_engine_model(intake->engine);
    if (model->n_unused)
        cli_message("%zu tensors of the checkpoint are not used, the first: %s: %s", model->n_unused,
                    model->unused[0], intake->folder);
}
