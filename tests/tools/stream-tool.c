/*
 * stream-tool: for tests: reads a stream of any form and writes it in another.
 *
 *     stream-tool [-b | -t | -j] [-i] [-l] [-n TOP] < STREAM
 *
 * -b, -t, -j: binary (the default), text, JSON; -i: text lines on input are logits; -l: text shows logits;
 * -n: the largest TOP of them. Exit status: that of the stream's fault.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream.h"

static int flush(void *writer, struct nl_error *error)
{
    return nl_writer_flush(writer, error);
}

static int copy(struct nl_reader *reader, struct nl_writer *writer, struct nl_error *error)
{
    struct nl_frame frame;
    bool failed = false;
    int got;
    nl_reader_on_wait(reader, flush, writer);
    while ((got = nl_reader_next(reader, &frame, error)) > 0) {
        if (nl_writer_frame(writer, &frame, error) != 0)
            return -1;
        failed = frame.kind == NL_FAIL;
    }
    struct nl_error flush_error;
    if (nl_writer_flush(writer, &flush_error) != 0 && got == 0)
        return nl_fail(error, flush_error.code, "%s", flush_error.message);
    return failed ? nl_fail(error, NL_UPSTREAM, "FAIL") : got;
}

int main(int argc, char **argv)
{
    struct nl_error error = {0};
    enum nl_form form = NL_BINARY;
    bool reads_logits = false, shows_logits = false;
    size_t top = 0;
    for (int option; (option = getopt(argc, argv, "btjiln:")) != -1;)
        switch (option) {
        case 'b':
        case 't':
        case 'j':
            form = option == 'b' ? NL_BINARY : option == 't' ? NL_TEXT : NL_JSON_LINES;
            break;
        case 'i':
            reads_logits = true;
            break;
        case 'l':
            shows_logits = true;
            break;
        case 'n':
            top = strtoul(optarg, NULL, 10);
            break;
        default:
            return NL_USAGE;
        }
    struct nl_reader *reader = nl_reader_open(STDIN_FILENO, "standard input", &error);
    struct nl_writer *writer = nl_writer_open(STDOUT_FILENO, form, "standard output", &error);
    int result = -1;
    if (reader && writer) {
        if (reads_logits)
            nl_reader_expect_logits(reader);
        if (shows_logits)
            nl_writer_show_logits(writer);
        nl_writer_set_top(writer, top);
        result = copy(reader, writer, &error);
    }
    if (result != 0)
        fprintf(stderr, "stream-tool: %s\n", error.message);
    nl_reader_close(reader);
    nl_writer_close(writer, NULL);
    return result == 0 ? 0 : (int)error.code;
}
