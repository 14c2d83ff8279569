/* The reader: waiting, the binary form, and what holds for frames of every form. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "stream_internal.h"

static const char kind_names[NL_OTHER][5] = {"NLS1", "TOKS", "LGTS", "LGTK", "DONE",
                                             "FAIL", "CUTS", "meta", "kvbk"};

const char *nl_kind_name(enum nl_kind kind)
{
    return kind_names[kind];
}

static enum nl_kind kind_of(const char *name)
{
    int kind = 0;
    while (kind < NL_OTHER && strcmp(kind_names[kind], name) != 0)
        kind++;
    return (enum nl_kind)kind;
}

static bool is_object_kind(enum nl_kind kind)
{
    return kind == NL_NLS1 || kind == NL_DONE || kind == NL_FAIL || kind == NL_META;
}

/* Letters and digits of ASCII, whatever the locale. */
static bool is_letter(int c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_text(int c)
{
    return (c >= '0' && c <= '9') || c == ' ' || (c >= '\t' && c <= '\r');
}

bool nl_reader_is_kind(const char *name)
{
    for (int i = 0; i < 4; i++) /* a NUL ends it too */
        if (!is_letter(name[i]) && (i == 0 || name[i] < '0' || name[i] > '9'))
            return false;
    return true;
}

struct nl_reader *nl_reader_open(int fd, const char *name, struct nl_error *error)
{
    struct nl_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        nl_fail_memory(error, "stream reader");
        return NULL;
    }
    struct stat status;
    reader->fd = fd;
    reader->name = name;
    reader->is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    return reader;
}

void nl_reader_close(struct nl_reader *reader)
{
    if (!reader)
        return;
    nl_buf_free(&reader->payload);
    nl_buf_free(&reader->in);
    nl_json_free(reader->object);
    free(reader);
}

void nl_reader_on_wait(struct nl_reader *reader, int (*wait)(void *context, struct nl_error *error),
                       void *context)
{
    reader->wait = wait;
    reader->context = context;
}

void nl_reader_allow_fragment(struct nl_reader *reader)
{
    reader->fragment = true;
}

void nl_reader_expect_logits(struct nl_reader *reader)
{
    reader->expect_logits = true;
}

bool nl_reader_ready(const struct nl_reader *reader)
{
    if (reader->in_at < reader->in.size || reader->eof || reader->failed || reader->finished)
        return true;
    struct pollfd poll_fd = {.fd = reader->fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) > 0;
}

enum nl_form nl_reader_form(const struct nl_reader *reader)
{
    return reader->form;
}

bool nl_reader_in_sequence(const struct nl_reader *reader)
{
    return reader->in_sequence;
}

int nl_reader_fault(const struct nl_reader *reader, enum nl_status code, const char *what,
                    struct nl_error *error)
{
    if (reader->form != NL_BINARY)
        return nl_fail(error, code, "%s: line %llu: %s", what, (unsigned long long)reader->line,
                       reader->name);
    return nl_fail(error, code, "%s: %s frame at byte %llu: %s", what, reader->kind,
                   (unsigned long long)reader->frame_at, reader->name);
}

int nl_reader_cut(const struct nl_reader *reader, bool in_frame, struct nl_error *error)
{
    if (!reader->started)
        return nl_fail(error, NL_UPSTREAM, "the stream is empty, not one sequence came: %s", reader->name);
    if (!in_frame)
        return nl_fail(error, NL_UPSTREAM, "the stream was cut short inside a sequence: %s", reader->name);
    if (reader->form == NL_BINARY && !reader->kind[0])
        return nl_fail(error, NL_UPSTREAM, "the stream was cut short inside a frame's header: byte %llu: %s",
                       (unsigned long long)reader->frame_at, reader->name);
    return nl_reader_fault(reader, NL_UPSTREAM, "the stream was cut short", error);
}

/* ---- Bytes ---- */

/* False while there is nothing to read; a poll that fails leaves the word to read(2). */
static bool is_readable(int fd, int milliseconds)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int ready = poll(&poll_fd, 1, milliseconds);
    return ready > 0 || (ready < 0 && errno != EINTR);
}

/* Returns when a read(2) would not wait. */
static int wait_readable(struct nl_reader *reader, struct nl_error *error)
{
    while (!is_readable(reader->fd, 0)) {
        if (reader->wait && reader->wait(reader->context, error) != 0)
            return -1;
        if (is_readable(reader->fd, reader->wait ? WAIT_STEP : -1))
            break;
    }
    return 0;
}

ssize_t nl_reader_read(struct nl_reader *reader, void *bytes, size_t size, struct nl_error *error)
{
    while (!reader->eof) {
        if (wait_readable(reader, error) != 0)
            return -1;
        ssize_t got = read(reader->fd, bytes, size);
        if (got > 0)
            return got;
        if (got == 0) {
            reader->eof = true;
        } else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
            return nl_fail_io(error, "cannot read", reader->name);
        }
    }
    return 0;
}

/* `size` bytes, fewer only at the end of input: their count or -1. */
static ssize_t read_whole(struct nl_reader *reader, void *bytes, size_t size, struct nl_error *error)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = nl_reader_read(reader, (char *)bytes + have, size - have, error);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    reader->offset += have;
    return (ssize_t)have;
}

/* Appends `length` bytes to the payload, whose memory grows with what has come. */
static int read_payload(struct nl_reader *reader, size_t length, struct nl_error *error)
{
    struct nl_buf *payload = &reader->payload;
    while (payload->size < length) {
        size_t step = length - payload->size, bound = payload->size > READ_STEP ? payload->size : READ_STEP;
        if (payload->capacity > payload->size + 1 + bound)
            bound = payload->capacity - payload->size - 1;
        if (step > bound)
            step = bound;
        char *end = nl_buf_reserve(payload, step);
        if (!end)
            return nl_buf_check(payload, "frame of a stream", error);
        ssize_t got = read_whole(reader, end, step, error);
        if (got < 0)
            return -1;
        payload->size += (size_t)got;
        if ((size_t)got < step)
            return nl_reader_cut(reader, true, error);
    }
    return 0;
}

/* ---- The binary form ---- */

void nl_reader_begin(struct nl_reader *reader, const char *kind)
{
    memcpy(reader->kind, kind, 4);
    nl_buf_clear(&reader->payload);
}

static int check_crc(const struct nl_reader *reader, const uint8_t *header, struct nl_error *error)
{
    uint32_t given, crc = nl_crc32(0, header, 4);
    memcpy(&given, header + 4, 4);
    if (given == 0)
        return reader->is_file ? nl_reader_fault(reader, NL_DATA, "no checksum", error) : 0;
    crc = nl_crc32(crc, header + 8, 8);
    crc = nl_crc32(crc, reader->payload.data, reader->payload.size);
    if (given != (crc ? crc : UINT32_MAX))
        return nl_reader_fault(reader, NL_DATA, "wrong checksum", error);
    return 0;
}

/* The rest of the frame whose header is there. */
static int read_frame(struct nl_reader *reader, const uint8_t *header, struct nl_error *error)
{
    uint64_t length;
    memcpy(&length, header + 8, 8);
    if (!nl_reader_is_kind((const char *)header))
        return nl_fail(error, NL_DATA, "not a frame's header: byte %llu: %s",
                       (unsigned long long)reader->frame_at, reader->name);
    nl_reader_begin(reader, (const char *)header);
    if (length > (is_object_kind(kind_of(reader->kind)) ? NL_MAX_OBJECT : NL_MAX_PAYLOAD))
        return nl_reader_fault(reader, NL_DATA, "absurd length", error);
    if (read_payload(reader, (size_t)length, error) != 0)
        return -1;
    return check_crc(reader, header, error) == 0 ? 1 : -1;
}

static int next_binary(struct nl_reader *reader, struct nl_error *error)
{
    uint8_t header[HEADER_SIZE];
    reader->frame_at = reader->offset;
    reader->kind[0] = '\0';
    ssize_t got = read_whole(reader, header, sizeof header, error);
    if (got <= 0)
        return (int)got;
    return got < HEADER_SIZE ? nl_reader_cut(reader, true, error) : read_frame(reader, header, error);
}

/* The first bytes say what the form is: no more than a header's are read until that is known. */
static int start(struct nl_reader *reader, struct nl_error *error)
{
    uint8_t header[HEADER_SIZE];
    ssize_t got = nl_reader_read(reader, header, sizeof header, error);
    if (got <= 0)
        return (int)got;
    reader->started = true;
    int c = header[0];
    if (c == 'N' || c == 'F' || (reader->fragment && is_letter(c))) {
        reader->offset = (uint64_t)got;
        ssize_t more = read_whole(reader, header + got, sizeof header - (size_t)got, error);
        if (more < 0)
            return -1;
        return got + more < HEADER_SIZE ? nl_reader_cut(reader, true, error)
                                        : read_frame(reader, header, error);
    }
    if (c != '{' && !is_text(c))
        return nl_fail(error, NL_DATA, "neither frames nor ids nor JSON: byte 0x%02x at the start: %s",
                       (unsigned)c, reader->name);
    reader->form = c == '{' ? NL_JSON_LINES : NL_TEXT;
    reader->line = reader->form == NL_TEXT; /* the other counts a line when it takes it */
    nl_buf_add(&reader->in, header, (size_t)got);
    if (nl_buf_check(&reader->in, "stream", error) != 0)
        return -1;
    if (got == HEADER_SIZE && is_readable(reader->fd, 0) && nl_reader_fill(reader, error) < 0)
        return -1;
    return reader->form == NL_TEXT ? nl_reader_next_text(reader, error) : nl_reader_next_json(reader, error);
}

/* ---- What the twins share ---- */

ssize_t nl_reader_fill(struct nl_reader *reader, struct nl_error *error)
{
    struct nl_buf *in = &reader->in;
    if (reader->in_at > 0) {
        memmove(in->data, in->data + reader->in_at, in->size - reader->in_at);
        in->size -= reader->in_at;
        reader->in_at = 0;
    }
    char *end = in->size < NL_MAX_PAYLOAD ? nl_buf_reserve(in, READ_STEP) : NULL;
    if (!end)
        return in->failed ? nl_buf_check(in, "stream", error)
                          : nl_reader_fault(reader, NL_DATA, "absurd length of a line", error);
    ssize_t got = nl_reader_read(reader, end, READ_STEP, error);
    if (got > 0)
        in->size += (size_t)got;
    return got;
}

int nl_reader_line(struct nl_reader *reader, char **line, size_t *length, bool *ended, struct nl_error *error)
{
    size_t searched = 0;
    for (;;) {
        char *from = reader->in.data + reader->in_at;
        size_t have = reader->in.size - reader->in_at;
        char *newline = have > searched ? memchr(from + searched, '\n', have - searched) : NULL;
        if (newline) {
            *line = from;
            *length = (size_t)(newline - from);
            *ended = true;
            reader->in_at += *length + 1;
            return 1;
        }
        searched = have;
        ssize_t got = nl_reader_fill(reader, error);
        if (got < 0)
            return -1;
        if (got == 0) {
            *line = reader->in.data;
            *length = have;
            *ended = false;
            reader->in_at = reader->in.size;
            return have > 0;
        }
    }
}

/* ---- Frames of every form ---- */

static int parse_object(struct nl_reader *reader, struct nl_frame *frame, struct nl_error *error)
{
    struct nl_error where;
    struct nl_buf *payload = &reader->payload;
    reader->object = nl_json_parse(payload->size ? payload->data : "", payload->size, reader->kind, &where);
    if (!reader->object)
        return nl_reader_fault(reader, where.code, where.message, error);
    if (!nl_json_is(reader->object, NL_JSON_OBJECT))
        return nl_reader_fault(reader, NL_DATA, "not a JSON object", error);
    frame->object = reader->object;
    return 0;
}

/* LGTS: position, n, n floats; LGTK: position, n, n ids, n floats. */
static int take_logits(struct nl_reader *reader, struct nl_frame *frame, struct nl_error *error)
{
    const size_t item = frame->kind == NL_LGTS ? 4 : 8;
    uint32_t prefix[2];
    if (frame->length < sizeof prefix)
        return nl_reader_fault(reader, NL_DATA, "payload too short", error);
    memcpy(prefix, frame->payload, sizeof prefix);
    if (frame->length - sizeof prefix != prefix[1] * item)
        return nl_reader_fault(reader, NL_DATA, "payload's length and number of logits disagree", error);
    if (frame->kind == NL_LGTS && prefix[1] == 0)
        return nl_reader_fault(reader, NL_DATA, "no logits", error);
    const void *items = frame->payload + sizeof prefix;
    frame->position = prefix[0];
    frame->count = prefix[1];
    if (frame->kind == NL_LGTK) {
        frame->ids = items;
        items = frame->ids + frame->count;
    }
    frame->logits = items;
    return 0;
}

static int take_payload(struct nl_reader *reader, struct nl_frame *frame, struct nl_error *error)
{
    frame->payload = (const uint8_t *)reader->payload.data;
    frame->length = reader->payload.size;
    switch (frame->kind) {
    case NL_TOKS:
        if (frame->length % 4 != 0)
            return nl_reader_fault(reader, NL_DATA, "payload's length is no multiple of 4", error);
        frame->ids = (const void *)frame->payload;
        frame->count = frame->length / 4;
        return 0;
    case NL_LGTS:
    case NL_LGTK:
        return take_logits(reader, frame, error);
    case NL_CUTS:
        if (frame->length != 4)
            return nl_reader_fault(reader, NL_DATA, "payload's length is not 4", error);
        memcpy(&frame->position, frame->payload, 4);
        return 0;
    case NL_KVBK:
    case NL_OTHER:
        return 0;
    default:
        return parse_object(reader, frame, error);
    }
}

/* Whether the frame may stand here, and what it changes. */
static int check_grammar(struct nl_reader *reader, const struct nl_frame *frame, struct nl_error *error)
{
    if (!(frame->name[0] >= 'A' && frame->name[0] <= 'Z'))
        return 0;
    int64_t session;
    switch (frame->kind) {
    case NL_OTHER:
        return nl_reader_fault(reader, NL_DATA, "unknown kind of frame", error);
    case NL_NLS1:
        if (reader->in_sequence)
            return nl_reader_fault(reader, NL_DATA, "the sequence before has no DONE", error);
        reader->in_sequence = true;
        reader->in_session = nl_json_integer(nl_json_get(frame->object, "session"), 1, INT32_MAX, &session);
        return 0;
    case NL_FAIL:
        reader->finished = true;
        return 0;
    default:
        break;
    }
    if (!reader->in_sequence && !reader->fragment)
        return nl_reader_fault(reader, NL_DATA, "frame outside of a sequence", error);
    if (frame->kind == NL_CUTS && !reader->in_session)
        return nl_reader_fault(reader, NL_DATA, "frame outside of a session file", error);
    reader->in_sequence = frame->kind != NL_DONE;
    return 0;
}

/* The end of input at a border of frames. */
static int end(struct nl_reader *reader, struct nl_error *error)
{
    if (reader->in_sequence && reader->in_session) {
        reader->in_session = false;
        nl_reader_begin(reader, "DONE");
        nl_buf_puts(&reader->payload, "{\"finish\":\"input\"}");
        return nl_buf_check(&reader->payload, "stream", error) == 0 ? 1 : -1;
    }
    if (reader->in_sequence || (!reader->started && !reader->fragment))
        return nl_reader_cut(reader, false, error);
    return 0;
}

static int next(struct nl_reader *reader, struct nl_frame *frame, struct nl_error *error)
{
    int got = !reader->started            ? start(reader, error)
              : reader->form == NL_BINARY ? next_binary(reader, error)
              : reader->form == NL_TEXT   ? nl_reader_next_text(reader, error)
                                          : nl_reader_next_json(reader, error);
    if (got == 0)
        got = end(reader, error);
    if (got <= 0)
        return got;
    memcpy(frame->name, reader->kind, sizeof frame->name);
    frame->kind = kind_of(frame->name);
    if (take_payload(reader, frame, error) != 0 || check_grammar(reader, frame, error) != 0)
        return -1;
    return 1;
}

int nl_reader_next(struct nl_reader *reader, struct nl_frame *frame, struct nl_error *error)
{
    *frame = (struct nl_frame){.kind = NL_OTHER};
    nl_json_free(reader->object);
    reader->object = NULL;
    if (reader->failed)
        return nl_fail(error, NL_DATA, "the stream has failed before: %s", reader->name);
    if (reader->finished)
        return 0;
    int got = next(reader, frame, error);
    reader->failed = got < 0;
    reader->finished = reader->finished || got == 0;
    return got;
}
