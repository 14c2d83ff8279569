/*
 * cli.h: what the programs share: messages, values of options, the output file, exit.
 */
#ifndef NL_CLI_H
#define NL_CLI_H

#include <signal.h>

#include "file.h"

#define NL_VERSION "0.1.0"

/* Called first: the program's name for messages, SIGINT and SIGTERM noted in cli_signal, closed descriptors 0
 * to 2 found (9). */
void cli_start(const char *program);
/* SIGINT or SIGTERM once it came, else 0. The first does not end the program, unless standard output then has
   no room for a second; another does, after a tenth of a second. */
extern volatile sig_atomic_t cli_signal;

/* `program: message` on standard error. */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_error(const struct nl_error *error); /* the same; nothing for an empty message */
/* Prints the message and leaves with its code; standard output is flushed and closed first. */
_Noreturn void cli_die(const struct nl_error *error);
/* The message with "; try 'program --help'" behind it; leaves with 2. */
_Noreturn void cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* --help and --version. */
_Noreturn void cli_help(const char *text);
_Noreturn void cli_version(void);
/* Flushes and closes standard output, complaining and turning `status` into NL_IO when that fails; then
   leaves by the signal that came, or with the status. */
_Noreturn void cli_exit(int status);

/* A whole number in [low, high]; else a usage error that names the option. */
uint64_t cli_whole(const char *option, const char *value, uint64_t low, uint64_t high);
/* A value that is one of two words: true for `yes`, false for `no`, else a usage error. */
bool cli_either(const char *option, const char *value, const char *yes, const char *no);
/* A usage error when operands other than one "-" follow the options: the input is standard input. */
void cli_no_operands(int argc, char **argv);

/* Where a program writes: standard output, or a file that appears when it is complete. */
struct cli_file {
    int fd;
    const char *name; /* for messages */
    bool to_file;
    struct nl_outfile file;
};
/* `path`: of -o, or NULL. Dies where it cannot be opened. */
void cli_file_open(struct cli_file *, const char *path);
/* Keeps a file when `whole`. A failure is printed; returns `status`, or NL_IO instead. */
int cli_file_close(struct cli_file *, bool whole, int status);

/* The status of a run that returned `result`: `status`, or where it failed (not 0) the error's code; the
   error is printed. */
int cli_outcome(int result, enum nl_status status, const struct nl_error *error);
/* Of the monotonic clock. */
double cli_seconds(void);

#endif
