/*
 * cli.h: what the programs share: messages, options, exit.
 */
#ifndef NL_CLI_H
#define NL_CLI_H

#include <signal.h>

#include "base.h"

#define NL_VERSION "0.1.0"

/* Called first: the program's name for messages, SIGINT and SIGTERM noted in cli_signal, closed descriptors 0
 * to 2 found (9). */
void cli_start(const char *program);
/* SIGINT or SIGTERM once it came, else 0. The first does not end the program, a second does. */
extern volatile sig_atomic_t cli_signal;

/* `program: message` on standard error. */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_error(const struct nl_error *error); /* the same; nothing for an empty message */
/* Prints the message and leaves with its code; standard output is flushed and closed first. */
_Noreturn void cli_die(const struct nl_error *error);
_Noreturn void cli_usage(const char *format, ...)
    __attribute__((format(printf, 1, 2))); /* with "; try 'program --help'", exit 2 */
/* --help and --version. */
_Noreturn void cli_help(const char *text);
_Noreturn void cli_version(void);
/* Flushes and closes standard output, complaining and turning `status` into NL_IO when that fails; then
   leaves by the signal that came, or with the status. */
_Noreturn void cli_exit(int status);

/* An integer option's value, decimal, in [low, high]; else a usage error that names the option. */
int64_t cli_integer(const char *option, const char *value, int64_t low, int64_t high);
double cli_number(const char *option, const char *value, double low, double high);
/* A usage error when operands other than one "-" follow the options: the input is standard input. */
void cli_no_operands(int argc, char **argv);
/* Of the monotonic clock. */
double cli_seconds(void);

#endif
