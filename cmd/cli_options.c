#include "cli_options.h"

#include "cli.h"

/* As getopt left it: a short option by its letter, a long one as it was typed. */
static _Noreturn void wrong_option(int c, char **argv)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    const char *option = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];
    cli_usage(c == ':' ? "the option needs a value: %s" : "unknown option, or one that takes no value: %s",
              option);
}

bool cli_common_option(struct cli_common *common, int c, char **argv, const char *help)
{
    switch (c) {
    case 'o':
        common->output = optarg;
        return true;
    case 'q':
        common->quiet = true;
        return true;
    case 'v':
        common->verbose = true;
        return true;
    case 'h':
        cli_help(help);
    case CLI_VERSION:
        cli_version();
    case CLI_TEXT:
        common->form = NL_TEXT;
        return true;
    case CLI_JSON:
        common->form = NL_JSON_LINES;
        return true;
    case ':':
    case '?':
        wrong_option(c, argv);
    default:
        return false;
    }
}

bool cli_taken(int result, const struct nl_error *error)
{
    if (result < 0 && error->code == NL_USAGE)
        cli_usage("%s", error->message);
    if (result < 0)
        cli_die(error);
    return result > 0;
}
