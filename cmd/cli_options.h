/*
 * cli_options.h: the options that all programs have.
 *
 * A program puts CLI_OPTIONS (and CLI_FORM_OPTIONS, where it writes a stream) among its own, begins its short
 * options with CLI_SHORT_OPTIONS, and offers what getopt_long returns to cli_common_option first:
 *
 *     static const struct option table[] = {{"lines", no_argument, NULL, OPTION_LINES}, CLI_OPTIONS, {0}};
 *     while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "n:", table, NULL)) != -1)
 *         if (!cli_common_option(&options->common, c, argv, help))
 *             switch (c) ...
 */
#ifndef NL_CLI_OPTIONS_H
#define NL_CLI_OPTIONS_H

#include <getopt.h>

#include "stream.h"

struct cli_common {
    const char *output; /* of -o; NULL: standard output */
    enum nl_form form;  /* of --text and --json */
    bool quiet, verbose;
};

/* True when it was one of these options. --help and --version end the program, and so does an option that is
   wrong: a usage error. */
bool cli_common_option(struct cli_common *, int c, char **argv, const char *help);
/* What nl_model_option or nl_sample_option returned: true when it took the option, false when not, else the
   error ends the program. */
bool cli_taken(int result, const struct nl_error *error);

enum { CLI_VERSION = 0x7000, CLI_TEXT, CLI_JSON };

#define CLI_SHORT_OPTIONS ":o:qvh" /* the colon: a missing value is told from an unknown option */

/* clang-format off */
#define CLI_OPTIONS                                                                        \
    {"output", required_argument, NULL, 'o'},                                              \
    {"quiet", no_argument, NULL, 'q'},                                                     \
    {"verbose", no_argument, NULL, 'v'},                                                   \
    {"help", no_argument, NULL, 'h'},                                                      \
    {"version", no_argument, NULL, CLI_VERSION}

#define CLI_FORM_OPTIONS                                                                   \
    {"text", no_argument, NULL, CLI_TEXT},                                                 \
    {"json", no_argument, NULL, CLI_JSON}

#define CLI_FORM_HELP                                                                      \
    "      --text, --json            write the text or the JSON twin of the stream\n"

#define CLI_HELP                                                                           \
    "  -o, --output FILE             write to FILE, which appears when it is complete\n"   \
    "  -q, --quiet                   no messages but errors\n"                             \
    "  -v, --verbose                 a summary at the end\n"                               \
    "  -h, --help                    this text\n"                                          \
    "      --version                 the version\n"
/* clang-format on */

#endif
