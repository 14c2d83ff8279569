/*
 * cli_stream.h: the streams of a program: standard input, and its output.
 */
#ifndef NL_CLI_STREAM_H
#define NL_CLI_STREAM_H

#include "cli.h"
#include "cli_options.h"
#include "engine_options.h"
#include "intake.h"

struct cli_output {
    struct nl_writer *writer;
    struct cli_file file;
};

/* Where and in which form -o, --text and --json say. Dies where it cannot be opened. */
void cli_output_open(struct cli_output *, const struct cli_common *);
/* Flushes, closes, and keeps the file when `whole`. A failure is printed; returns `status`, or NL_IO instead.
 */
int cli_output_close(struct cli_output *, bool whole, int status);

/* A reader with its hook; dies when out of memory. */
struct nl_reader *cli_reader_open(int fd, const char *name,
                                  int (*wait)(void *context, struct nl_error *error), void *context);
/* Standard input as the id stream of a program that runs a model. */
void cli_intake_open(struct nl_intake *, const struct nl_model_options *,
                     int (*wait)(void *context, struct nl_error *error), void *context);
/* With -v, after the run: tensors of the checkpoint that the model does not use, where there are any. */
void cli_report_unused(const struct nl_intake *);

#endif
