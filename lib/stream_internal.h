/*
 * stream_internal.h: what the files of stream.h share, and nobody else includes.
 *
 * Reading: a form (binary here in stream_read.c, stream_read_text.c, stream_read_json.c) puts the next
 * frame's name into reader->name4 and its binary payload into reader->payload; nl_reader_next then checks
 * both, whatever the form was. Writing: nl_writer_* turn to the writer's form.
 */
#ifndef NL_STREAM_INTERNAL_H
#define NL_STREAM_INTERNAL_H

#include "stream.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are used as they lie in memory");

enum {
    HEADER_SIZE = 16,
    READ_STEP = 1 << 16,  /* bytes that a text reader asks for, and a payload's memory grows by at least */
    WAIT_STEP = 500,      /* milliseconds until an on_wait function is called again */
    DIRECT_SIZE = 1 << 14 /* bytes from which a piece is written from where it lies */
};

struct nl_reader {
    int fd;
    const char *name;
    int (*wait)(void *context, struct nl_error *error);
    void *context;
    bool is_file; /* where every frame must have a checksum */
    bool fragment, expect_logits;

    enum nl_form form;
    bool started; /* the first byte has come, the form is known */
    bool eof, failed, finished;
    bool in_sequence, in_session;

    char kind[5];              /* of the present frame */
    uint64_t frame_at, offset; /* where its header begins; bytes taken so far (binary) */
    struct nl_buf payload;
    struct nl_json *object;

    /* Twins. */
    struct nl_buf in; /* bytes read; those before in_at are taken */
    size_t in_at;
    uint64_t line; /* the present one, counted from 1 */
    uint64_t sequences;
    uint64_t number; /* text: the id of which `digits` digits have come */
    unsigned digits;
};

/* Up to `size` bytes into `bytes`: their count, 0 at the end of input, -1. Waits as nl_reader_on_wait says.
 */
ssize_t nl_reader_read(struct nl_reader *, void *bytes, size_t size, struct nl_error *error);
/* Twins: appends bytes to reader->in: their count, 0 at the end of input, -1. */
ssize_t nl_reader_fill(struct nl_reader *, struct nl_error *error);
/* Twins: takes a line, without its newline, which stays until the next call: 1, 0 at the end of input, -1.
 * *ended: with a newline. */
int nl_reader_line(struct nl_reader *, char **line, size_t *length, bool *ended, struct nl_error *error);
/* Fills *error with "what: where" and returns -1. */
int nl_reader_fault(const struct nl_reader *, enum nl_status code, const char *what, struct nl_error *error);
/* The end inside a frame (twins: a line) or a sequence: NL_UPSTREAM. */
int nl_reader_cut(const struct nl_reader *, bool in_frame, struct nl_error *error);
/* The forms: 1 and kind and payload, 0 at the end, -1. */
int nl_reader_next_text(struct nl_reader *, struct nl_error *error);
int nl_reader_next_json(struct nl_reader *, struct nl_error *error);
/* Four letters or digits, a letter first. */
bool nl_reader_is_kind(const char *name);
/* Sets kind; clears the payload. */
void nl_reader_begin(struct nl_reader *, const char *kind);

struct nl_writer {
    int fd;
    enum nl_form form;
    const char *name;
    bool shows_logits, failed, enlarged;
    size_t top;
    struct nl_buf out;
};

/* One twin's line for each frame; the caller flushes or not. */
int nl_writer_text_ids(struct nl_writer *, const uint32_t *ids, size_t count, struct nl_error *error);
/* ids NULL: all, in order. */
int nl_writer_text_logits(struct nl_writer *, uint32_t position, const uint32_t *ids, const float *logits,
                          size_t count, struct nl_error *error);
int nl_writer_json_object(struct nl_writer *, const char *kind, const struct nl_json *object,
                          struct nl_error *error);
int nl_writer_json_cuts(struct nl_writer *, uint32_t count, struct nl_error *error);
int nl_writer_json_ids(struct nl_writer *, const uint32_t *ids, size_t count, struct nl_error *error);
int nl_writer_json_logits(struct nl_writer *, uint32_t position, const uint32_t *ids, const float *logits,
                          size_t count, struct nl_error *error);

#endif
