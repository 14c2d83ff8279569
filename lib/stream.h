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
 * Faults: bad magic, bad checksum, malformed payload, a frame where it may not stand, an unknown upper-case
 * kind, a payload longer than NL_MAX_PAYLOAD (objects: NL_MAX_OBJECT): NL_DATA. A stream without a byte, or
 * that ends inside a frame or a sequence: NL_UPSTREAM. read(2) failing: NL_IO. Messages name the frame and
 * the offset of its header (twins: the line). Payload memory grows as the bytes arrive, never by the length
 * that a header claims.
 *
 * What the text twin lacks is made up: NLS1 {"seq":0}, {"seq":1}, ... when the first byte of a line has come,
 * and DONE {"finish":"input"}. So is the DONE of a session file (nl-session(5), NLS1 with "session":1), which
 * ends at any border of frames.
 */
#ifndef NL_STREAM_H
#define NL_STREAM_H

#include "json.h"

enum nl_form { NL_BINARY, NL_TEXT, NL_JSON_LINES };

enum {
    NL_MAX_PAYLOAD = 1 << 30, /* bytes; vocabularies of 2^28 entries */
    NL_MAX_OBJECT = 1 << 26,  /* bytes of an object's JSON */
};

enum nl_kind { NL_NLS1, NL_TOKS, NL_LGTS, NL_LGTK, NL_DONE, NL_FAIL, NL_CUTS, NL_META, NL_KVBK, NL_OTHER };

struct nl_frame {
    enum nl_kind kind;
    char name[5]; /* the four ASCII characters; NL_OTHER: a lower-case kind this reader does not know */
    const uint8_t *payload; /* length bytes; in a twin what the binary form would have; until the next call */
    size_t length;
    const uint32_t *ids; /* TOKS, LGTK: [count] */
    const float *logits; /* LGTS, LGTK: [count] */
    size_t count;
    uint32_t position; /* LGTS, LGTK: of the token after the first `position` ids; CUTS: how many ids stay */
    /* NLS1, DONE, FAIL, meta: owned by the reader, until the next call; may be edited. */
    struct nl_json *object;
};

struct nl_reader;

/* Reads fd, which stays the caller's; `name` is for messages and must outlive the reader. NULL when out of
 * memory. */
struct nl_reader *nl_reader_open(int fd, const char *name, struct nl_error *error);
void nl_reader_close(struct nl_reader *);
/* Called before each read(2) that would wait for bytes (poll says there are none): the place to flush the
   output, to watch other descriptors (wait itself, then return 0), or to give up (fill *error, return -1; the
   reader then returns -1 too). While there is nothing to read it is called again after each signal, and at
   least every half second, so that a signal that comes just before the wait is noticed as well. A
   non-blocking fd works; so does a FIFO that nobody has opened yet for writing: that is waited for. */
void nl_reader_on_wait(struct nl_reader *, int (*wait)(void *context, struct nl_error *error), void *context);
/* For a feedback FIFO, nl-forward(1): any frame may come first and begins the sequence that NLS1 would, a
   DONE (in text: a newline) without a sequence is an empty one, and an end between sequences is 0 even where
   no byte came. In text the end of input inside a line is NL_UPSTREAM: the sampler died. */
void nl_reader_allow_fragment(struct nl_reader *);
/* The lines of the text twin are `position id:value ...` and read as LGTK; an empty line is DONE. */
void nl_reader_expect_logits(struct nl_reader *);
/* 1 and *frame, 0 at the end of a stream that ended well, -1 and *error. After 0 or -1 do not call again.
   FAIL is a frame like others, the last one: the program passes it on and exits with NL_UPSTREAM. */
int nl_reader_next(struct nl_reader *, struct nl_frame *frame, struct nl_error *error);
/* True when nl_reader_next can go on without waiting for the first byte of a frame (bytes, or the end, are
 * there). */
bool nl_reader_ready(const struct nl_reader *);
/* The form of the stream, known once its first byte has come (NL_BINARY before that). */
enum nl_form nl_reader_form(const struct nl_reader *);

/* True between NLS1 and DONE. */
bool nl_reader_in_sequence(const struct nl_reader *);

/* "TOKS"; not for NL_OTHER. */
const char *nl_kind_name(enum nl_kind kind);

struct nl_writer;

/* Writes fd, which stays the caller's, through a buffer; a text writer flushes after each frame. NULL and
   NL_USAGE when the form is binary and fd a terminal. A pipe is enlarged, where the system allows, before the
   first large frame. `name` is for messages and must outlive the writer. After a failed write every call
   fails. */
struct nl_writer *nl_writer_open(int fd, enum nl_form form, const char *name, struct nl_error *error);
/* Flushes what is left unless `error` is NULL; frees. 0 or -1. */
int nl_writer_close(struct nl_writer *, struct nl_error *error);
enum nl_form nl_writer_form(const struct nl_writer *);
/* Text form: this is a stream of logits, LGTS and LGTK are shown, a line each, TOKS are not. Without this
   call it is a stream of ids, and the other way round. */
void nl_writer_show_logits(struct nl_writer *);
/* Text form: logits lines show only the `top` largest, largest first; 0 (the default): all, ascending ids. */
void nl_writer_set_top(struct nl_writer *, size_t top);

/* Each writes one frame (in text: what nl-stream(5) says, perhaps nothing). 0 or -1 (NL_IO). */
int nl_writer_object(struct nl_writer *, enum nl_kind kind, const struct nl_json *object,
                     struct nl_error *error); /* NLS1 DONE FAIL meta */
int nl_writer_ids(struct nl_writer *, const uint32_t *ids, size_t count, struct nl_error *error); /* TOKS */
int nl_writer_logits(struct nl_writer *, uint32_t position, const float *logits, size_t count,
                     struct nl_error *error); /* LGTS */
int nl_writer_sparse(struct nl_writer *, uint32_t position, const uint32_t *ids, const float *logits,
                     size_t count, struct nl_error *error); /* LGTK */
/* Passes a frame on as it was read (an edited object: nl_writer_object). Frames that a twin cannot say (kvbk,
   and unknown ones whose payload is no JSON object) are dropped there. */
int nl_writer_frame(struct nl_writer *, const struct nl_frame *frame, struct nl_error *error);
int nl_writer_flush(struct nl_writer *, struct nl_error *error);
/* False once the other end of a pipe is closed: waiting for input to write there is in vain. */
bool nl_writer_is_read(const struct nl_writer *);
/* Before a wait for input: flushes, and fails (NL_IO) where nobody reads the output any more. Who then writes
   FAIL ends by SIGPIPE, as by any write. */
int nl_writer_pause(struct nl_writer *, struct nl_error *error);

/* Conveniences over nl_writer_object. */
int nl_writer_done(struct nl_writer *, const char *finish, struct nl_error *error); /* DONE {"finish": ...} */
/* DONE {"finish":"error","code":...,"error":...} for a sequence that cannot run. */
int nl_writer_done_error(struct nl_writer *, const struct nl_error *cause, struct nl_error *error);
/* FAIL {"error":...,"code":...}, flushed. */
int nl_writer_fail(struct nl_writer *, const struct nl_error *cause, struct nl_error *error);

/* CRC-32 (IEEE 802.3, reflected, as zlib's crc32): start with 0, feed piece by piece. */
uint32_t nl_crc32(uint32_t crc, const void *bytes, size_t size);

#endif
