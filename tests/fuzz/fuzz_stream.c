/* Streams of every form, passed on in every form. The first byte chooses how; the rest is the stream. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sums up what the frame points to, so that a sanitizer sees a pointer that is wrong. */
static float touch(const struct nl_frame *frame)
{
    float sum = (float)(frame->length ? frame->payload[frame->length - 1] : 0);
    for (size_t i = 0; i < frame->count; i++)
        sum += (float)(frame->ids ? frame->ids[i] : 0) + (frame->logits ? frame->logits[i] : 0);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2], null;
    if (size == 0 || size > 60000)
        return 0;
    if (pipe(ends) != 0 || (null = open("/dev/null", O_WRONLY)) < 0)
        abort();
    if (write(ends[1], data + 1, size - 1) != (ssize_t)size - 1)
        abort();
    close(ends[1]);
    struct nl_error error;
    struct nl_frame frame;
    struct nl_reader *reader = nl_reader_open(ends[0], "fuzz", &error);
    struct nl_writer *writer = nl_writer_open(null, (enum nl_form)((data[0] >> 2) % 3), "fuzz", &error);
    if (data[0] & 1)
        nl_reader_allow_fragment(reader);
    if (data[0] & 2) {
        nl_reader_expect_logits(reader);
        nl_writer_show_logits(writer);
        nl_writer_set_top(writer, data[0] >> 6);
    }
    volatile float sum = 0;
    while (nl_reader_next(reader, &frame, &error) > 0) {
        sum += touch(&frame);
        if (nl_writer_frame(writer, &frame, &error) != 0)
            abort();
    }
    nl_reader_close(reader);
    if (nl_writer_close(writer, &error) != 0)
        abort();
    close(ends[0]);
    close(null);
    return 0;
}
