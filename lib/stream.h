/*
 * stream.h: nl-stream(5), the framing that the programs exchange: frames, their text and JSON twins.
 *
 * A stream is one or more sequences, each NLS1 ... DONE. The reader checks the framing, the checksums, the
 * payloads' forms and that grammar; it recognises the twins by their first byte and turns them into the same
 * frames, so that a program has one loop:
 *
 *     while ((got = nl_reader_next(reader, &frame, &error)) > 0)
 *         switch (frame.kind) { ... }
 *
 * Faults: bad magic, bad checksum, malformed payload, a frame where it may not stand, an unknown upper-case kind: NL_DATA.
 * A stream without a byte, or that ends inside a frame or a sequence: NL_UPSTREAM. read(2) failing: NL_IO.
 * Payload memory grows as the bytes arrive, never by the length that a header claims.
 */
#ifndef NL_STREAM_H
#define NL_STREAM_H

#include "json.h"

enum nl_form { NL_BINARY, NL_TEXT, NL_JSON_LINES };

enum nl_kind { NL_NLS1, NL_TOKS, NL_LGTS, NL_LGTK, NL_DONE, NL_FAIL, NL_CUTS, NL_META, NL_KVBK, NL_OTHER };

struct nl_frame {
    enum nl_kind kind;
    char name[5];           /* the four ASCII characters; NL_OTHER: a lower-case kind this reader does not know */
    const uint8_t *payload; /* length bytes; in a twin the payload that the binary form would have; until the next call */
    size_t length;
    const uint32_t *ids;    /* TOKS, LGTK: [count] */
    const float *logits;    /* LGTS, LGTK: [count] */
    size_t count;
    uint32_t position;      /* LGTS, LGTK: the logits are those of the token after the first `position` ids */
    struct nl_json *object; /* NLS1, DONE, FAIL, meta: owned by the reader, until the next call; may be edited */
};

struct nl_reader;

/* Reads fd, which stays the caller's; `name` is for messages and must outlive the reader. NULL when out of memory. */
struct nl_reader *nl_reader_open(int fd, const char *name, struct nl_error *error);
void nl_reader_close(struct nl_reader *);
/* Called before each read(2) that would wait for bytes (poll says there are none): the place to flush the output, to watch other
   descriptors (wait itself, then return 0), or to give up (fill *error, return -1; the reader then returns -1 too). A non-blocking fd works. */
void nl_reader_on_wait(struct nl_reader *, int (*wait)(void *context, struct nl_error *error), void *context);
/* A reader of a feedback FIFO takes a stream that begins with any frame, as nl-forward(1) does. */
void nl_reader_allow_fragment(struct nl_reader *);
/* 1 and *frame, 0 at the end of a stream that ended well, -1 and *error. After 0 or -1 do not call again. */
int nl_reader_next(struct nl_reader *, struct nl_frame *frame, struct nl_error *error);
/* True when nl_reader_next can go on without waiting for the first byte of a frame (bytes, or the end, are there). */
bool nl_reader_ready(const struct nl_reader *);
/* The form of the stream, known once its first byte has come (NL_BINARY before that). */
enum nl_form nl_reader_form(const struct nl_reader *);

/* True between NLS1 and DONE. */
bool nl_reader_in_sequence(const struct nl_reader *);

struct nl_writer;

/* Writes fd, which stays the caller's, through a buffer. NULL and NL_USAGE when the form is binary and fd a terminal.
   Pipes are enlarged where the system allows. */
struct nl_writer *nl_writer_open(int fd, enum nl_form form, const char *name, struct nl_error *error);
/* Flushes what is left unless `error` is NULL; frees. 0 or -1. */
int nl_writer_close(struct nl_writer *, struct nl_error *error);
enum nl_form nl_writer_form(const struct nl_writer *);
/* Text form: logits lines show only the `top` largest, largest first; 0 (the default): all, ascending ids. */
void nl_writer_set_top(struct nl_writer *, size_t top);

/* Each writes one frame (in text: what nl-stream(5) says, perhaps nothing). 0 or -1 (NL_IO). */
int nl_writer_object(struct nl_writer *, enum nl_kind kind, const struct nl_json *object, struct nl_error *error); /* NLS1 DONE FAIL meta */
int nl_writer_ids(struct nl_writer *, const uint32_t *ids, size_t count, struct nl_error *error);                   /* TOKS */
int nl_writer_logits(struct nl_writer *, uint32_t position, const float *logits, size_t count, struct nl_error *error); /* LGTS */
int nl_writer_sparse(struct nl_writer *, uint32_t position, const uint32_t *ids, const float *logits, size_t count,
                     struct nl_error *error);                                                                        /* LGTK */
/* Passes a frame on as it was read. */
int nl_writer_frame(struct nl_writer *, const struct nl_frame *frame, struct nl_error *error);
int nl_writer_flush(struct nl_writer *, struct nl_error *error);

/* Conveniences over nl_writer_object. */
int nl_writer_done(struct nl_writer *, const char *finish, struct nl_error *error);       /* DONE {"finish": ...} */
/* DONE {"finish":"error","code":...,"error":...} for a sequence that cannot run. */
int nl_writer_done_error(struct nl_writer *, const struct nl_error *cause, struct nl_error *error);
/* FAIL {"error":...,"code":...}, flushed. */
int nl_writer_fail(struct nl_writer *, const struct nl_error *cause, struct nl_error *error);

/* CRC-32 (IEEE 802.3, reflected, as zlib's crc32): start with 0, feed piece by piece. */
uint32_t nl_crc32(uint32_t crc, const void *bytes, size_t size);

#endif
