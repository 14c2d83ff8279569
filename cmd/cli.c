#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "number.h"

volatile sig_atomic_t cli_signal;
static const char *program_name = "nanollm";

enum { GRACE = 1 /* seconds after a signal in which standard output may make room */ };
static const double TWIN = 0.1; /* seconds between the halves of a signal that is sent twice */

/* A second signal ends the program. timeout(1) sends each twice, to the process and to its group: a twin is
 * none. */
static void note_signal(int number)
{
    static double first;
    double now = cli_seconds();
    if (cli_signal && now - first < TWIN)
        return;
    if (cli_signal) {
        signal(number, SIG_DFL);
        raise(number);
    }
    first = now;
    cli_signal = number;
    alarm(GRACE);
}

/* After a signal the step is finished and DONE written, unless that waits for a reader who takes nothing. */
static void check_output(int number)
{
    int before = errno;
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (poll(&output, 1, 0) == 0) {
        signal(cli_signal, SIG_DFL);
        raise(cli_signal);
    }
    (void)number;
    alarm(GRACE);
    errno = before;
}

void cli_start(const char *program)
{
    program_name = program;
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0) {
            bool fatal = fd < 2;
            /* Nothing else may get its number. */
            if (open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd || fatal) {
                cli_message("standard %s is closed", fd ? "output" : "input");
                _exit(NL_IO);
            }
        }
    struct sigaction action = {.sa_handler = check_output, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    action = (struct sigaction){.sa_handler = note_signal};
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file too large is an error like a full disk: the temporary one goes away */
}

static void print_message(const char *format, va_list arguments)
{
    flockfile(stderr);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void cli_message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
}

void cli_error(const struct nl_error *error)
{
    if (error->message[0])
        cli_message("%s", error->message);
}

void cli_die(const struct nl_error *error)
{
    cli_error(error);
    cli_exit(error->code);
}

void cli_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char message[1000];
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    cli_message("%s; try '%s --help'", message, program_name);
    exit(NL_USAGE);
}

void cli_help(const char *text)
{
    fputs(text, stdout);
    cli_exit(NL_OK);
}

void cli_version(void)
{
    printf("%s %s\n", program_name, NL_VERSION);
    cli_exit(NL_OK);
}

void cli_exit(int status)
{
    if (fclose(stdout) != 0) {
        cli_message("cannot write: standard output: %s", strerror(errno));
        status = NL_IO;
    }
    if (cli_signal) {
        signal(cli_signal, SIG_DFL);
        raise(cli_signal);
    }
    exit(status);
}

uint64_t cli_whole(const char *option, const char *value, uint64_t low, uint64_t high)
{
    struct nl_error error;
    uint64_t number;
    if (nl_parse_whole(option, value, low, high, &number, &error) != 0)
        cli_usage("%s", error.message);
    return number;
}

bool cli_either(const char *option, const char *value, const char *yes, const char *no)
{
    if (strcmp(value, yes) != 0 && strcmp(value, no) != 0)
        cli_usage("%s is %s or %s, not '%s'", option, yes, no, value);
    return strcmp(value, yes) == 0;
}

void cli_no_operands(int argc, char **argv)
{
    if (optind < argc && !(optind == argc - 1 && strcmp(argv[optind], "-") == 0))
        cli_usage("the stream comes on standard input: no operand is taken: %s", argv[optind]);
}

void cli_file_open(struct cli_file *file, const char *path)
{
    struct nl_error error;
    *file = (struct cli_file){
        .fd = STDOUT_FILENO, .name = path ? path : "standard output", .to_file = path != NULL};
    if (!path)
        return;
    if (nl_outfile_open(&file->file, path, &error) != 0)
        cli_die(&error);
    file->fd = file->file.fd;
}

int cli_file_close(struct cli_file *file, bool whole, int status)
{
    struct nl_error error;
    if (!file->to_file)
        return status;
    if (!whole) {
        nl_outfile_abort(&file->file);
        return status;
    }
    if (nl_outfile_commit(&file->file, &error) == 0)
        return status;
    cli_error(&error);
    return NL_IO;
}

int cli_outcome(int result, enum nl_status status, const struct nl_error *error)
{
    if (result == 0)
        return (int)status;
    cli_error(error);
    return (int)error->code;
}

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
