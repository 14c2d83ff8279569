/* The writer: the buffer, the binary form, and the way to the twins. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"
#include "stream_internal.h"

enum {
    FLUSH_SIZE = 1 << 16,  /* bytes in the buffer that are written without being asked */
    PIPE_SIZE = 1 << 20,   /* what Linux allows everybody */
    IDS_A_FRAME = 1 << 20, /* a reader may want to hold a frame */
};

struct piece {
    const void *bytes;
    size_t size;
};

struct nl_writer *nl_writer_open(int fd, enum nl_form form, const char *name, struct nl_error *error)
{
    if (form == NL_BINARY && isatty(fd)) {
        nl_fail(error, NL_USAGE,
                "will not write a binary stream to a terminal, --text writes it readably: %s", name);
        return NULL;
    }
    struct nl_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        nl_fail_memory(error, "stream writer");
        return NULL;
    }
    writer->fd = fd;
    writer->form = form;
    writer->name = name;
    return writer;
}

int nl_writer_close(struct nl_writer *writer, struct nl_error *error)
{
    if (!writer)
        return 0;
    int result = error ? nl_writer_flush(writer, error) : 0;
    nl_buf_free(&writer->out);
    free(writer);
    return result;
}

enum nl_form nl_writer_form(const struct nl_writer *writer)
{
    return writer->form;
}

void nl_writer_show_logits(struct nl_writer *writer)
{
    writer->shows_logits = true;
}

void nl_writer_set_top(struct nl_writer *writer, size_t top)
{
    writer->top = top;
}

/* ---- Bytes ---- */

/* After a write that failed: 0 when it is worth another try. */
static int retry(struct nl_writer *writer, struct nl_error *error)
{
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        struct pollfd poll_fd = {.fd = writer->fd, .events = POLLOUT};
        poll(&poll_fd, 1, -1);
        return 0;
    }
    writer->failed = true;
    return nl_fail_io(error, "cannot write", writer->name);
}

/* Writes the buffer and then `more`, in one call where the system takes it. */
static int write_out(struct nl_writer *writer, struct piece more, struct nl_error *error)
{
    struct iovec rest[2] = {{writer->out.data, writer->out.size}, {(void *)(uintptr_t)more.bytes, more.size}};
    if (nl_buf_check(&writer->out, writer->name, error) != 0)
        return -1;
    while (rest[0].iov_len + rest[1].iov_len > 0) {
        ssize_t wrote = writev(writer->fd, rest, 2);
        if (wrote < 0 && retry(writer, error) != 0)
            return -1;
        for (int i = 0; i < 2 && wrote > 0; i++) {
            size_t step = (size_t)wrote < rest[i].iov_len ? (size_t)wrote : rest[i].iov_len;
            rest[i].iov_base = (char *)rest[i].iov_base + step;
            rest[i].iov_len -= step;
            wrote -= (ssize_t)step;
        }
    }
    nl_buf_clear(&writer->out);
    return 0;
}

static int check(const struct nl_writer *writer, struct nl_error *error)
{
    return writer->failed ? nl_fail(error, NL_IO, "cannot write after an error: %s", writer->name) : 0;
}

int nl_writer_flush(struct nl_writer *writer, struct nl_error *error)
{
    if (check(writer, error) != 0)
        return -1;
    return writer->out.size || writer->out.failed ? write_out(writer, (struct piece){NULL, 0}, error) : 0;
}

bool nl_writer_is_read(const struct nl_writer *writer)
{
    struct pollfd output = {.fd = writer->fd};
    return poll(&output, 1, 0) <= 0 || !(output.revents & POLLERR);
}

int nl_writer_pause(struct nl_writer *writer, struct nl_error *error)
{
    if (nl_writer_flush(writer, error) != 0)
        return -1;
    return nl_writer_is_read(writer) ? 0 : nl_fail(error, NL_IO, "nobody reads the output");
}

/* A pipe of 64 KiB would cut a frame of logits into four turns of two processes. */
static void enlarge_pipe(struct nl_writer *writer)
{
    struct stat status;
    if (!writer->enlarged && fstat(writer->fd, &status) == 0 && S_ISFIFO(status.st_mode))
        fcntl(writer->fd, F_SETPIPE_SZ, PIPE_SIZE);
    writer->enlarged = true;
}

/* ---- Frames ---- */

/* A header, then the payload in n pieces; large ones are written from where they lie. */
static int put_frame(struct nl_writer *writer, const char *kind, const struct piece *pieces, int n,
                     struct nl_error *error)
{
    uint64_t length = 0;
    for (int i = 0; i < n; i++)
        length += pieces[i].size;
    uint32_t crc = nl_crc32(nl_crc32(0, kind, 4), &length, 8);
    for (int i = 0; i < n; i++)
        crc = nl_crc32(crc, pieces[i].bytes, pieces[i].size);
    if (crc == 0)
        crc = UINT32_MAX;
    nl_buf_add(&writer->out, kind, 4);
    nl_buf_add(&writer->out, &crc, 4);
    nl_buf_add(&writer->out, &length, 8);
    for (int i = 0; i < n; i++) {
        if (pieces[i].size < DIRECT_SIZE) {
            nl_buf_add(&writer->out, pieces[i].bytes, pieces[i].size);
            continue;
        }
        enlarge_pipe(writer);
        if (write_out(writer, pieces[i], error) != 0)
            return -1;
    }
    return nl_buf_check(&writer->out, writer->name, error);
}

/* What a frame of any form does in the end. */
static int finish(struct nl_writer *writer, int result, struct nl_error *error)
{
    if (result != 0)
        return -1;
    return writer->form == NL_TEXT || writer->out.size >= FLUSH_SIZE ? nl_writer_flush(writer, error) : 0;
}

static int put_object(struct nl_writer *writer, const char *kind, const struct nl_json *object,
                      struct nl_error *error)
{
    struct nl_buf text = {0};
    nl_json_print(object, &text);
    int result = nl_buf_check(&text, writer->name, error);
    if (result == 0)
        result = put_frame(writer, kind, &(struct piece){text.data, text.size}, 1, error);
    nl_buf_free(&text);
    return result;
}

static int write_object(struct nl_writer *writer, const char *kind, const struct nl_json *object,
                        struct nl_error *error)
{
    if (check(writer, error) != 0)
        return -1;
    int result = 0;
    if (writer->form == NL_BINARY)
        result = put_object(writer, kind, object, error);
    else if (writer->form == NL_JSON_LINES)
        result = nl_writer_json_object(writer, kind, object, error);
    else if (strcmp(kind, "DONE") == 0)
        nl_buf_putc(&writer->out, '\n');
    return finish(writer, result, error);
}

int nl_writer_object(struct nl_writer *writer, enum nl_kind kind, const struct nl_json *object,
                     struct nl_error *error)
{
    return write_object(writer, nl_kind_name(kind), object, error);
}

int nl_writer_ids(struct nl_writer *writer, const uint32_t *ids, size_t count, struct nl_error *error)
{
    if (check(writer, error) != 0)
        return -1;
    do {
        size_t some = count < IDS_A_FRAME ? count : IDS_A_FRAME;
        int result = writer->form == NL_BINARY
                         ? put_frame(writer, "TOKS", &(struct piece){ids, some * sizeof *ids}, 1, error)
                     : writer->form == NL_TEXT ? nl_writer_text_ids(writer, ids, some, error)
                                               : nl_writer_json_ids(writer, ids, some, error);
        if (finish(writer, result, error) != 0)
            return -1;
        ids += some;
        count -= some;
    } while (count > 0);
    return 0;
}

/* LGTK, or without ids LGTS. */
static int write_logits(struct nl_writer *writer, uint32_t position, const uint32_t *ids, const float *logits,
                        size_t count, struct nl_error *error)
{
    if (check(writer, error) != 0)
        return -1;
    if (count > NL_MAX_PAYLOAD / 16)
        return nl_fail(error, NL_DATA, "too many logits for a frame: %s", writer->name);
    const uint32_t prefix[2] = {position, (uint32_t)count};
    const size_t size = count * sizeof *logits;
    const struct piece pieces[] = {{prefix, sizeof prefix}, {ids, ids ? size : 0}, {logits, size}};
    int result = writer->form == NL_BINARY ? put_frame(writer, ids ? "LGTK" : "LGTS", pieces, 3, error)
                 : writer->form == NL_TEXT
                     ? nl_writer_text_logits(writer, position, ids, logits, count, error)
                     : nl_writer_json_logits(writer, position, ids, logits, count, error);
    return finish(writer, result, error);
}

int nl_writer_logits(struct nl_writer *writer, uint32_t position, const float *logits, size_t count,
                     struct nl_error *error)
{
    return write_logits(writer, position, NULL, logits, count, error);
}

int nl_writer_sparse(struct nl_writer *writer, uint32_t position, const uint32_t *ids, const float *logits,
                     size_t count, struct nl_error *error)
{
    static const uint32_t none[1];
    return write_logits(writer, position, ids ? ids : none, logits, count, error);
}

/* A kind that this version does not know: JSON shows it when its payload is an object. */
static int pass_unknown(struct nl_writer *writer, const struct nl_frame *frame, struct nl_error *error)
{
    if (writer->form != NL_JSON_LINES)
        return 0;
    struct nl_json *object =
        frame->length ? nl_json_parse((const char *)frame->payload, frame->length, frame->name, NULL) : NULL;
    int result = 0;
    if (nl_json_is(object, NL_JSON_OBJECT))
        result = nl_writer_json_object(writer, frame->name, object, error);
    nl_json_free(object);
    return finish(writer, result, error);
}

int nl_writer_frame(struct nl_writer *writer, const struct nl_frame *frame, struct nl_error *error)
{
    if (check(writer, error) != 0)
        return -1;
    if (writer->form == NL_BINARY) {
        const struct piece payload = {frame->payload, frame->length};
        return finish(writer, put_frame(writer, frame->name, &payload, 1, error), error);
    }
    switch (frame->kind) {
    case NL_TOKS:
        return nl_writer_ids(writer, frame->ids, frame->count, error);
    case NL_LGTS:
        return nl_writer_logits(writer, frame->position, frame->logits, frame->count, error);
    case NL_LGTK:
        return nl_writer_sparse(writer, frame->position, frame->ids, frame->logits, frame->count, error);
    case NL_CUTS:
        return finish(
            writer, writer->form == NL_TEXT ? 0 : nl_writer_json_cuts(writer, frame->position, error), error);
    case NL_KVBK:
        return 0;
    case NL_OTHER:
        return pass_unknown(writer, frame, error);
    default:
        return write_object(writer, frame->name, frame->object, error);
    }
}

/* ---- Conveniences ---- */

int nl_writer_done(struct nl_writer *writer, const char *finish_reason, struct nl_error *error)
{
    struct nl_json *object = nl_json_new_object();
    int result = object ? 0 : nl_fail_memory(error, writer->name);
    if (result == 0)
        result = nl_json_set_string(object, "finish", finish_reason, error);
    if (result == 0)
        result = nl_writer_object(writer, NL_DONE, object, error);
    nl_json_free(object);
    return result;
}

/* `finish_reason` may be NULL. */
static int write_cause(struct nl_writer *writer, enum nl_kind kind, const char *finish_reason,
                       const struct nl_error *cause, struct nl_error *error)
{
    struct nl_json *object = nl_json_new_object();
    int result = object ? 0 : nl_fail_memory(error, writer->name);
    if (result == 0 && finish_reason)
        result = nl_json_set_string(object, "finish", finish_reason, error);
    if (result == 0)
        result = nl_json_set_number(object, "code", cause->code, error);
    if (result == 0)
        result = nl_json_set_string(object, "error", cause->message, error);
    if (result == 0)
        result = nl_writer_object(writer, kind, object, error);
    nl_json_free(object);
    return result;
}

int nl_writer_done_error(struct nl_writer *writer, const struct nl_error *cause, struct nl_error *error)
{
    return write_cause(writer, NL_DONE, "error", cause, error);
}

int nl_writer_fail(struct nl_writer *writer, const struct nl_error *cause, struct nl_error *error)
{
    return write_cause(writer, NL_FAIL, NULL, cause, error) == 0 ? nl_writer_flush(writer, error) : -1;
}
