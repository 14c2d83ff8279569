#include "cli_progress.h"

#include <stdio.h>
#include <unistd.h>

void cli_progress_begin(struct cli_progress *progress, bool quiet)
{
    progress->shown = !quiet && isatty(STDERR_FILENO);
    progress->start = progress->last = cli_seconds();
}

void cli_progress_show(struct cli_progress *progress, const char *doing, uint64_t done, uint64_t total,
                       double scale, const char *unit)
{
    double now = cli_seconds();
    if (!progress->shown || now - progress->last < 0.2)
        return;
    double rate = (double)done / (now - progress->start);
    fprintf(stderr, "\r%s: %.0f", doing, (double)done / scale);
    if (total > 0)
        fprintf(stderr, " of %.0f", (double)total / scale);
    fprintf(stderr, " %s  %.0f/s", unit, rate / scale);
    if (total >= done && rate > 0)
        fprintf(stderr, "  %.0f s left", (double)(total - done) / rate);
    fputs(" \033[K", stderr);
    progress->last = now;
    progress->drawn = true;
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
