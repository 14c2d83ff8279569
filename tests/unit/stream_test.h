/* stream_test.h: streams made by hand, and a short text for what a reader makes of one. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "stream.h"

/* CRC-32 by its definition, bit by bit. */
static inline uint32_t slow_crc32(uint32_t crc, const void *bytes, size_t size)
{
    crc = ~crc;
    for (const uint8_t *p = bytes; size > 0; size--, p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
    }
    return ~crc;
}

static inline void add_frame(struct nl_buf *out, const char *kind, const void *payload, uint64_t length)
{
    uint32_t crc = slow_crc32(slow_crc32(slow_crc32(0, kind, 4), &length, 8), payload, length);
    crc = crc ? crc : UINT32_MAX;
    nl_buf_add(out, kind, 4);
    nl_buf_add(out, &crc, 4);
    nl_buf_add(out, &length, 8);
    nl_buf_add(out, payload, length);
}

static inline void add_text(struct nl_buf *out, const char *kind, const char *payload)
{
    add_frame(out, kind, payload, strlen(payload));
}

#define ADD_WORDS(out, kind, ...)                                                                            \
    add_frame(out, kind, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}))

/* A pipe that holds these bytes and ends; at most 64 KiB. */
static inline int pipe_of(const void *bytes, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_true(size <= 65536);
    assert_int_equal(write(ends[1], bytes, size), size);
    close(ends[1]);
    return ends[0];
}

static inline void describe(const struct nl_frame *frame, struct nl_buf *out)
{
    nl_buf_printf(out, "%s%s", out->size ? " " : "", frame->name);
    if (frame->object) {
        nl_json_print(frame->object, out);
    } else if (frame->kind == NL_TOKS) {
        for (size_t i = 0; i < frame->count; i++)
            nl_buf_printf(out, "%c%u", i ? ',' : ':', (unsigned)frame->ids[i]);
    } else if (frame->kind == NL_LGTS || frame->kind == NL_LGTK) {
        nl_buf_printf(out, "@%u", (unsigned)frame->position);
        for (size_t i = 0; i < frame->count; i++) {
            nl_buf_putc(out, i ? ',' : ':');
            if (frame->ids)
                nl_buf_printf(out, "%u=", (unsigned)frame->ids[i]);
            nl_buf_printf(out, "%.9g", (double)frame->logits[i]);
        }
    } else if (frame->kind == NL_CUTS) {
        nl_buf_printf(out, ":%u", (unsigned)frame->position);
    } else {
        nl_buf_printf(out, "#%zu", frame->length);
    }
}

enum { PLAIN = 0, FRAGMENT = 1, LOGITS = 2 };

/* All frames, and how it ended: ". " after the last, or "! code message". Closes fd. */
static inline char *read_all(int fd, unsigned flags)
{
    struct nl_error error = {0};
    struct nl_buf out = {0};
    struct nl_frame frame;
    struct nl_reader *reader = nl_reader_open(fd, "test", &error);
    if (flags & FRAGMENT)
        nl_reader_allow_fragment(reader);
    if (flags & LOGITS)
        nl_reader_expect_logits(reader);
    int got;
    while ((got = nl_reader_next(reader, &frame, &error)) > 0)
        describe(&frame, &out);
    if (got == 0)
        nl_buf_puts(&out, ".");
    else
        nl_buf_printf(&out, "! %d %s", (int)error.code, error.message);
    nl_reader_close(reader);
    close(fd);
    return out.data;
}

static inline void reads_as(const void *bytes, size_t size, unsigned flags, const char *want)
{
    char *got = read_all(pipe_of(bytes, size), flags);
    assert_string_equal(got, want);
    free(got);
}

/* The same, for a buffer that is freed. */
static inline void buf_reads_as(struct nl_buf *buf, unsigned flags, const char *want)
{
    reads_as(buf->data ? buf->data : "", buf->size, flags, want);
    nl_buf_free(buf);
}

static inline void text_reads_as(const char *text, unsigned flags, const char *want)
{
    reads_as(text, strlen(text), flags, want);
}
