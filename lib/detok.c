#include "detok.h"

#include <stdlib.h>

#include "file.h"
#include "modelpath.h"

enum { ENOUGH = 1 << 16 /* bytes of text to write without waiting for a pause */ };

int nl_detok_flush(struct nl_detok *detok, struct nl_error *error)
{
    if (nl_buf_check(&detok->text, "text", error) != 0)
        return -1;
    size_t size = detok->text.size;
    nl_buf_clear(&detok->text);
    detok->n_bytes += size;
    return size ? nl_write_all(detok->out, detok->text.data, size, detok->out_name, error) : 0;
}

void nl_detok_free(struct nl_detok *detok)
{
    nl_decoder_close(detok->decoder);
    nl_tokenizer_close(detok->tokenizer);
    nl_buf_free(&detok->text);
    nl_buf_free(&detok->piece);
    nl_ids_free(&detok->kept);
    free(detok->path);
}

/* Opens the tokenizer at `path` unless it is open. */
static int open_tokenizer(struct nl_detok *detok, const char *path, struct nl_error *error)
{
    if (detok->path && strcmp(detok->path, path) == 0)
        return 0;
    nl_decoder_close(detok->decoder);
    nl_tokenizer_close(detok->tokenizer);
    free(detok->path);
    detok->decoder = NULL;
    detok->tokenizer = NULL;
    detok->path = strdup(path);
    if (!detok->path)
        return nl_fail_memory(error, path);
    if (nl_tokenizer_hash(path, detok->hash, error) != 0 ||
        !(detok->tokenizer = nl_tokenizer_open(path, error)))
        return -1;
    detok->decoder = nl_decoder_open(detok->tokenizer, 0, error);
    return detok->decoder ? 0 : -1;
}

/* The stream's own tokenizer, where its path still holds what it held: true, and *path. */
static bool names_tokenizer(const struct nl_detok *detok, const struct nl_json *header, const char **path)
{
    const struct nl_json *tokenizer = nl_json_get(header, "tokenizer");
    const char *sha256 = nl_json_get_string(tokenizer, "sha256");
    char ours[65];
    struct nl_error ignored;
    *path = nl_json_get_string(tokenizer, "path");
    if (!*path || !sha256)
        return false;
    if (detok->path && strcmp(detok->path, *path) == 0)
        return strcmp(detok->hash, sha256) == 0;
    return nl_tokenizer_hash(*path, ours, &ignored) == 0 && strcmp(ours, sha256) == 0;
}

/* -m, else the tokenizer that the stream names, else the stream's model, else the default model. */
static int choose_tokenizer(struct nl_detok *detok, const struct nl_json *header, struct nl_error *error)
{
    const char *path;
    if (!detok->model && names_tokenizer(detok, header, &path))
        return open_tokenizer(detok, path, error);
    struct nl_buf folder = {0};
    const char *model = detok->model ? detok->model : nl_json_get_string(header, "model");
    int result = nl_model_path(model, &folder, error);
    if (result == 0)
        result = open_tokenizer(detok, folder.data, error);
    nl_buf_free(&folder);
    return result;
}

/* Ends the sequence's text; the rest of the sequence is skipped. */
static void fail_sequence(struct nl_detok *detok, const struct nl_error *cause)
{
    detok->failed = true;
    if (detok->status == NL_OK)
        detok->status = cause->code;
    detok->report(cause);
}

static bool flag(const struct nl_json *header, const char *key)
{
    const struct nl_json *value = nl_json_get(header, key);
    return nl_json_is(value, NL_JSON_TRUE) ||
           (nl_json_is(value, NL_JSON_NUMBER) && nl_json_number(value) != 0);
}

static int begin(struct nl_detok *detok, const struct nl_json *header, struct nl_error *error)
{
    if (choose_tokenizer(detok, header, error) != 0)
        return -1;
    nl_decoder_set_flags(detok->decoder, (detok->show_special ? NL_DECODE_SPECIAL : 0) |
                                             (detok->bytes ? NL_DECODE_BYTES : 0) |
                                             (flag(header, "continues") ? NL_DECODE_CONTINUES : 0));
    detok->n_sequences++;
    detok->index = 0;
    detok->failed = false;
    detok->keep = flag(header, "session");
    detok->kept.count = 0;
    const char *theirs = nl_json_get_string(nl_json_get(header, "tokenizer"), "sha256");
    if (theirs && detok->hash[0] && !detok->any_tokenizer && strcmp(theirs, detok->hash) != 0) {
        struct nl_error cause;
        nl_fail(
            &cause, NL_DATA,
            "the ids are of another tokenizer than this one (--any-tokenizer takes them all the same): %s",
            detok->path);
        fail_sequence(detok, &cause);
    }
    return 0;
}

/* {"id":N,"bytes":HEX,"text":...}: the token's own bytes, and what it adds to the text. */
static int push_json(struct nl_detok *detok, uint32_t id, struct nl_error *error)
{
    size_t length = 0;
    const char *bytes = nl_tokenizer_piece(detok->tokenizer, id, &length);
    nl_buf_clear(&detok->piece);
    nl_buf_add(&detok->piece, "", 0);
    if (nl_decoder_push(detok->decoder, id, &detok->piece, error) != 0)
        return -1;
    nl_buf_printf(&detok->text, "{\"id\":%u,\"bytes\":\"", id);
    for (size_t i = 0; bytes && i < length; i++)
        nl_buf_printf(&detok->text, "%02x", (unsigned char)bytes[i]);
    nl_buf_puts(&detok->text, "\",\"text\":");
    nl_json_quote(&detok->text, detok->piece.data, detok->piece.size);
    nl_buf_puts(&detok->text, "}\n");
    return nl_buf_check(&detok->piece, "text", error);
}

/* {"end":true,"text":...}: what the end of a sequence adds. */
static int end_json(struct nl_detok *detok, struct nl_error *error)
{
    nl_buf_clear(&detok->piece);
    nl_buf_add(&detok->piece, "", 0);
    if (nl_decoder_finish(detok->decoder, &detok->piece, error) != 0)
        return -1;
    nl_buf_puts(&detok->text, "{\"end\":true,\"text\":");
    nl_json_quote(&detok->text, detok->piece.data, detok->piece.size);
    nl_buf_puts(&detok->text, "}\n");
    return nl_buf_check(&detok->piece, "text", error);
}

static int decode(struct nl_detok *detok, const uint32_t *ids, size_t count, struct nl_error *error)
{
    for (size_t i = 0; i < count && !detok->failed; i++, detok->index++) {
        struct nl_error cause, full;
        int pushed = detok->json ? push_json(detok, ids[i], &cause)
                                 : nl_decoder_push(detok->decoder, ids[i], &detok->text, &cause);
        if (pushed != 0) {
            nl_fail(&full, cause.code, "%.800s: id %llu of sequence %llu", cause.message,
                    (unsigned long long)detok->index, (unsigned long long)detok->n_sequences - 1);
            fail_sequence(detok, &full);
        }
        if (detok->text.size >= ENOUGH && nl_detok_flush(detok, error) != 0)
            return -1;
    }
    detok->n_ids += count;
    return 0;
}

/* The end of a sequence's text, however it came. */
static int end(struct nl_detok *detok, struct nl_error *error)
{
    if (detok->keep && decode(detok, detok->kept.data, detok->kept.count, error) != 0)
        return -1;
    detok->keep = false;
    if (detok->json)
        return end_json(detok, error);
    if (nl_decoder_finish(detok->decoder, &detok->text, error) != 0)
        return -1;
    if (detok->terminate)
        nl_buf_putc(&detok->text, detok->terminator);
    return 0;
}

static int take_frame(struct nl_detok *detok, const struct nl_frame *frame, struct nl_error *error)
{
    const char *finish;
    switch (frame->kind) {
    case NL_NLS1:
        return begin(detok, frame->object, error);
    case NL_TOKS:
        if (detok->keep)
            return nl_ids_add(&detok->kept, frame->ids, frame->count, error);
        return decode(detok, frame->ids, frame->count, error);
    case NL_CUTS:
        if (frame->position < detok->kept.count)
            detok->kept.count = frame->position;
        return 0;
    case NL_LGTS:
    case NL_LGTK:
        return nl_fail(error, NL_DATA, "logits where ids are wanted: frame %s", frame->name);
    case NL_DONE:
        finish = nl_json_get_string(frame->object, "finish");
        if (finish && strcmp(finish, "error") == 0 && detok->status == NL_OK)
            detok->status = NL_UPSTREAM; /* who failed has said so */
        return end(detok, error);
    case NL_FAIL:
        return nl_fail(error, NL_UPSTREAM, "%s", "");
    default:
        return 0;
    }
}

int nl_detok_run(struct nl_detok *detok, struct nl_error *error)
{
    struct nl_frame frame;
    bool open = false;
    int got;
    while ((got = nl_reader_next(detok->reader, &frame, error)) > 0) {
        if (take_frame(detok, &frame, error) != 0) {
            got = -1;
            break;
        }
        open = nl_reader_in_sequence(detok->reader);
    }
    /* What there is of a text that was cut short is shown. */
    struct nl_error ignored;
    if (got < 0 && open && detok->decoder && error->code != NL_IO)
        end(detok, &ignored);
    if (nl_detok_flush(detok, got < 0 ? &ignored : error) != 0)
        return -1;
    return got;
}
