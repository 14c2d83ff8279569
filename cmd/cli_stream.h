/*
 * cli_stream.h: the streams of a program: standard input, and standard output or a file that appears when it
 * is complete.
 */
#ifndef NL_CLI_STREAM_H
#define NL_CLI_STREAM_H

#include "engine_options.h"
#include "file.h"
#include "intake.h"
#include "stream.h"

struct cli_output {
    struct nl_writer *writer;
    int fd;
    bool to_file;
    struct nl_outfile file;
};

/* `path`: of -o, or NULL. Dies where it cannot be opened. */
void cli_output_open(struct cli_output *, const char *path, enum nl_form form);
/* Flushes, closes, and keeps the file when `whole`. A failure is printed; returns `status`, or NL_IO instead.
 */
int cli_output_close(struct cli_output *, bool whole, int status);

/* A reader with its hook; dies when out of memory. */
struct nl_reader *cli_reader_open(int fd, const char *name,
                                  int (*wait)(void *context, struct nl_error *error), void *context);
/* Standard input as the id stream of a program that runs a model. */
void cli_intake_open(struct nl_intake *, const struct nl_model_options *,
                     int (*wait)(void *context, struct nl_error *error), void *context);

#endif
