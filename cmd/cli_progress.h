/*
 * cli_progress.h: a line on standard error that says how far a long work is, on a terminal and nowhere else.
 */
#ifndef NL_CLI_PROGRESS_H
#define NL_CLI_PROGRESS_H

#include "cli.h"

struct cli_progress {
    bool shown, drawn;
    double start, last; /* of this part, seconds */
};

/* Begins a part; shows nothing with `quiet`, or where standard error is no terminal. */
void cli_progress_begin(struct cli_progress *, bool quiet);
/* Draws the line, at most five times a second and not at once. `total` 0: not known. `scale` of what is
 * counted make one `unit`. */
void cli_progress_show(struct cli_progress *, const char *doing, uint64_t done, uint64_t total, double scale,
                       const char *unit);
void cli_progress_clear(struct cli_progress *);

#endif
