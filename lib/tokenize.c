#include "tokenize.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "modelpath.h"
#include "pool.h"
#include "unicode.h"

enum {
    SHARE = 1 << 17,     /* bytes that are worth a thread */
    PIECE = 1 << 20,     /* bytes for each thread that are encoded as they come, where the text can be cut */
    MOST = 1 << 28,      /* bytes without such a place that are held, of what may have no end */
    LOOK_BACK = 1 << 12, /* bytes, at first, to look for such a place */
};

/* What one thread encodes, with an encoder of its own. */
struct nl_tokenize_share {
    struct nl_encoder *encoder;
    const char *text;
    size_t length;
    unsigned flags;
    struct nl_ids ids;
    int result;
    struct nl_error error;
};

static bool stopped(const struct nl_tokenize *tokenize)
{
    return tokenize->signal && *tokenize->signal;
}

/* What NLS1 says of the tokenizer in `folder`. */
static struct nl_json *make_header(const char *folder, uint32_t vocab_size, struct nl_error *error)
{
    char hash[65];
    struct nl_json *header = nl_json_new_object(), *tokenizer = nl_json_new_object();
    bool good = header && tokenizer;
    if (!good)
        nl_fail_memory(error, "header");
    good = good && nl_json_set_string(header, "model", folder, error) == 0 &&
           nl_tokenizer_hash(folder, hash, error) == 0;
    if (good && hash[0])
        good = nl_json_set_string(tokenizer, "path", folder, error) == 0 &&
               nl_json_set_string(tokenizer, "sha256", hash, error) == 0 &&
               nl_json_set_copy(header, "tokenizer", tokenizer, error) == 0;
    good = good && nl_json_set_number(header, "vocab_size", vocab_size, error) == 0;
    nl_json_free(tokenizer);
    if (!good) {
        nl_json_free(header);
        header = NULL;
    }
    return header;
}

/* Makes sure that there are `count` shares. */
static int open_shares(struct nl_tokenize *tokenize, unsigned count, struct nl_error *error)
{
    if (count <= tokenize->n_shares)
        return 0;
    struct nl_tokenize_share *shares = realloc(tokenize->shares, count * sizeof *shares);
    if (!shares)
        return nl_fail_memory(error, "threads");
    tokenize->shares = shares;
    for (; tokenize->n_shares < count; tokenize->n_shares++) {
        struct nl_tokenize_share *share = &shares[tokenize->n_shares];
        *share = (struct nl_tokenize_share){.encoder = nl_encoder_open(tokenize->tokenizer, error)};
        if (!share->encoder)
            return -1;
    }
    return 0;
}

/* The template's part of each sequence, and whether the limits leave room for more. */
static int check_limits(struct nl_tokenize *tokenize, struct nl_error *error)
{
    bool around = nl_tokenizer_affixes(tokenize->tokenizer, &tokenize->before, &tokenize->after);
    uint64_t fixed = tokenize->special ? tokenize->before.count + tokenize->after.count : 0;
    if (tokenize->most == 0)
        return 0;
    if (!around)
        return nl_fail(error, NL_UNSUPPORTED, "sequences of a template that repeats the text cannot be cut");
    if (tokenize->most < fixed || (tokenize->chunks && tokenize->most - fixed <= tokenize->overlap))
        return nl_fail(error, NL_USAGE, "sequences of %llu ids leave no room beside the template's %llu%s",
                       (unsigned long long)tokenize->most, (unsigned long long)fixed,
                       tokenize->overlap ? " and the overlap" : "");
    return 0;
}

static int open_tokenizer(struct nl_tokenize *tokenize, const char *folder, struct nl_error *error)
{
    tokenize->tokenizer = nl_tokenizer_open(folder, error);
    if (!tokenize->tokenizer)
        return -1;
    if (open_shares(tokenize, 1, error) != 0)
        return -1;
    if (tokenize->chat && !(tokenize->template = nl_chat_open(folder, error)))
        return -1;
    if (check_limits(tokenize, error) != 0)
        return -1;
    tokenize->header = make_header(folder, nl_tokenizer_vocab_size(tokenize->tokenizer), error);
    return tokenize->header ? 0 : -1;
}

int nl_tokenize_open(struct nl_tokenize *tokenize, const char *model, struct nl_error *error)
{
    struct nl_buf path = {0}, folder = {0};
    int result = nl_model_path(model, &path, error);
    if (result == 0 && path.data[0] != '/') { /* the stream may be read in another folder */
        char *here = getcwd(NULL, 0);
        if (here)
            nl_buf_printf(&folder, "%s/", here);
        free(here);
    }
    if (result == 0) {
        nl_buf_puts(&folder, path.data);
        result = nl_buf_check(&folder, "path", error);
    }
    if (result == 0)
        result = open_tokenizer(tokenize, folder.data, error);
    nl_buf_free(&path);
    nl_buf_free(&folder);
    return result;
}

static unsigned encode_flags(const struct nl_tokenize *tokenize)
{
    return (tokenize->special ? NL_ENCODE_SPECIAL : 0) | (tokenize->plain ? NL_ENCODE_PLAIN : 0);
}

static void encode_share(void *context, unsigned thread)
{
    struct nl_tokenize *tokenize = context;
    struct nl_tokenize_share *share = &tokenize->shares[thread];
    share->ids.count = 0;
    share->result = 0;
    if (thread < tokenize->used)
        share->result = nl_encoder_encode(share->encoder, share->text, share->length, share->flags,
                                          &share->ids, &share->error);
}

/* A thread for each share that is worth one: NULL pool, one share where that fails. */
static int open_threads(struct nl_tokenize *tokenize, size_t length, struct nl_error *error)
{
    if (tokenize->pool || tokenize->threads <= 1 || length < 2 * SHARE ||
        nl_encoder_cut(tokenize->shares[0].encoder, "a b", 0, 3) == 3)
        return 0;
    if (open_shares(tokenize, tokenize->threads, error) != 0)
        return -1;
    tokenize->pool = nl_pool_open(tokenize->threads, error);
    return tokenize->pool ? 0 : -1;
}

/* Cuts a text into as many parts as there are threads, at most, and encodes them side by side. */
static int encode_parts(struct nl_tokenize *tokenize, const struct nl_records *records, const char *text,
                        size_t length, struct nl_error *error)
{
    unsigned flags = encode_flags(tokenize), n = 0;
    bool begins = records->begins, ends = records->ends;
    if (open_threads(tokenize, length, error) != 0)
        return -1;
    unsigned most = tokenize->pool && length >= 2 * SHARE ? tokenize->threads : 1;
    for (size_t at = 0, end; n == 0 || at < length; at = end, n++) {
        struct nl_tokenize_share *share = &tokenize->shares[n];
        end = length;
        if (n + 1 < most)
            end = nl_encoder_cut(share->encoder, text, at + (length - at) / (most - n), length);
        share->text = text + at;
        share->length = end - at;
        share->flags = flags | (at > 0 || !begins ? NL_ENCODE_CONTINUES : 0) |
                       (end < length || !ends ? NL_ENCODE_GOES_ON : 0);
    }
    tokenize->used = n;
    if (n > 1)
        nl_pool_run(tokenize->pool, encode_share, tokenize);
    else
        encode_share(tokenize, 0);
    for (unsigned i = 0; i < n; i++)
        if (tokenize->shares[i].result != 0) {
            *error = tokenize->shares[i].error;
            return -1;
        }
    return 0;
}

/* A text that is UTF-8: the record itself, or repaired. */
static int check_text(struct nl_tokenize *tokenize, const struct nl_records *records, const char **text_at,
                      size_t *size, struct nl_error *error)
{
    const char *text = *text_at;
    size_t length = *size, good = nl_utf8_check(text, length, NULL);
    if (good < length && !tokenize->replace)
        return nl_fail(error, NL_DATA, "not UTF-8 (--invalid=replace puts U+FFFD there): %s: byte %llu",
                       records->name, (unsigned long long)(records->offset + good));
    if (good < length) {
        nl_buf_clear(&tokenize->repaired);
        nl_utf8_repair(text, length, &tokenize->repaired);
        if (nl_buf_check(&tokenize->repaired, "text", error) != 0)
            return -1;
        *text_at = tokenize->repaired.data;
        *size = tokenize->repaired.size;
    }
    if (tokenize->chat) {
        nl_buf_clear(&tokenize->rendered);
        nl_buf_add(&tokenize->rendered, "", 0);
        if (nl_chat_render(tokenize->template, tokenize->chat, *text_at, *size, records->name,
                           &tokenize->rendered, error) != 0)
            return -1;
        *text_at = tokenize->rendered.data;
        *size = tokenize->rendered.size;
    }
    return 0;
}

/* Once, where a text brings the token that the template begins with itself. */
static void warn_doubled(struct nl_tokenize *tokenize)
{
    const struct nl_ids *before = &tokenize->before, *ids = &tokenize->shares[0].ids;
    struct nl_error warning;
    if (tokenize->warned || tokenize->quiet || !tokenize->special || before->count == 0 ||
        ids->count <= before->count || ids->data[before->count] != before->data[0])
        return;
    tokenize->warned = true;
    nl_set_error(&warning, NL_OK,
                 "the text begins with the token %u that the template adds as well "
                 "(--special=none leaves the template's out): sequence %llu",
                 before->data[0], (unsigned long long)tokenize->n_sequences - 1);
    tokenize->report(&warning);
}

/* The ids of one text into the shares. */
static int encode(struct nl_tokenize *tokenize, const struct nl_records *records, const char *text,
                  size_t length, struct nl_error *error)
{
    tokenize->used = 0;
    if (check_text(tokenize, records, &text, &length, error) != 0 ||
        encode_parts(tokenize, records, text, length, error) != 0)
        return -1;
    if (records->begins)
        warn_doubled(tokenize);
    return 0;
}

static int write_header(struct nl_tokenize *tokenize, bool continues, struct nl_error *error)
{
    if (nl_json_set_number(tokenize->header, "seq", (double)tokenize->n_sequences++, error) != 0)
        return -1;
    if (!continues)
        nl_json_remove(tokenize->header, "continues");
    else if (nl_json_set_bool(tokenize->header, "continues", true, error) != 0)
        return -1;
    return nl_writer_object(tokenize->writer, NL_NLS1, tokenize->header, error);
}

static int write_ids(struct nl_tokenize *tokenize, const uint32_t *ids, size_t count, struct nl_error *error)
{
    tokenize->n_ids += count;
    return count > 0 ? nl_writer_ids(tokenize->writer, ids, count, error) : 0;
}

/* A sequence whose NLS1 is written, cut as `most`, `overlap` and `chunks` say. */
static int write_cut(struct nl_tokenize *tokenize, struct nl_error *error)
{
    static const struct nl_ids none;
    tokenize->ids.count = 0;
    for (unsigned i = 0; i < tokenize->used; i++)
        if (nl_ids_add(&tokenize->ids, tokenize->shares[i].ids.data, tokenize->shares[i].ids.count, error) !=
            0)
            return -1;
    const struct nl_ids *before = tokenize->special ? &tokenize->before : &none,
                        *after = tokenize->special ? &tokenize->after : &none;
    const uint32_t *text = tokenize->ids.data + before->count;
    size_t length = tokenize->ids.count - before->count - after->count, most = SIZE_MAX, at = 0;
    if (tokenize->most)
        most = tokenize->most - before->count - after->count; /* see nl_tokenize_open */
    for (bool first = true;; first = false) {
        size_t count = length - at < most ? length - at : most;
        if ((!first && write_header(tokenize, true, error) != 0) ||
            write_ids(tokenize, before->data, before->count, error) != 0 ||
            write_ids(tokenize, text + at, count, error) != 0 ||
            write_ids(tokenize, after->data, after->count, error) != 0)
            return -1;
        if (!tokenize->chunks || at + count == length)
            return nl_writer_done(tokenize->writer, "input", error);
        if (nl_writer_done(tokenize->writer, "input", error) != 0)
            return -1;
        at += most - tokenize->overlap;
    }
}

/* A text's lines of a view. */
static int write_view(struct nl_tokenize *tokenize, const struct nl_records *records, const char *text,
                      size_t length, struct nl_error *error)
{
    struct nl_error cause;
    struct nl_buf *shown = &tokenize->shown;
    nl_buf_clear(shown);
    tokenize->n_sequences++;
    tokenize->n_bytes += length;
    if (check_text(tokenize, records, &text, &length, &cause) != 0 ||
        nl_tokenize_show(tokenize, tokenize->shares[0].encoder, text, length, shown, &cause) != 0) {
        tokenize->report(&cause);
        if (tokenize->status == NL_OK)
            tokenize->status = cause.code;
        nl_buf_clear(shown);
    }
    if (shown->size == 0 || tokenize->view != NL_VIEW_COUNT)
        nl_buf_putc(shown, '\n');
    return nl_buf_check(shown, "text", error) != 0
               ? -1
               : nl_write_all(tokenize->out, shown->data, shown->size, tokenize->out_name, error);
}

/* A sequence, or a part of one. */
static int write_sequence(struct nl_tokenize *tokenize, const struct nl_records *records, const char *text,
                          size_t length, struct nl_error *error)
{
    struct nl_error cause;
    if (tokenize->view != NL_VIEW_STREAM)
        return write_view(tokenize, records, text, length, error);
    if (records->begins && write_header(tokenize, false, error) != 0)
        return -1;
    tokenize->open = !records->ends;
    tokenize->n_bytes += length;
    if (encode(tokenize, records, text, length, &cause) != 0) {
        tokenize->report(&cause);
        if (tokenize->status == NL_OK)
            tokenize->status = cause.code;
        tokenize->failed = tokenize->open;
        tokenize->open = false;
        return nl_writer_done_error(tokenize->writer, &cause, error);
    }
    if (tokenize->most)
        return write_cut(tokenize, error);
    for (unsigned i = 0; i < tokenize->used; i++)
        if (write_ids(tokenize, tokenize->shares[i].ids.data, tokenize->shares[i].ids.count, error) != 0)
            return -1;
    return records->ends ? nl_writer_done(tokenize->writer, "input", error) : 0;
}

/* A late place where the text can be cut, 0 when there is none. */
static size_t late_cut(void *context, const char *text, size_t length)
{
    const struct nl_tokenize *tokenize = context;
    for (size_t back = LOOK_BACK;; back *= 16) {
        size_t from = back < length ? length - back : 0,
               cut = nl_encoder_cut(tokenize->shares[0].encoder, text, from, length);
        if (cut < length)
            return cut;
        if (from == 0)
            return 0;
    }
}

static int on_wait(void *context, struct nl_error *error)
{
    struct nl_tokenize *tokenize = context;
    if (stopped(tokenize))
        return nl_fail(error, NL_IO, "%s", "");
    return nl_writer_pause(tokenize->writer, error);
}

/* Where what is written of a text depends on nothing that comes later. */
static bool comes_in_parts(const struct nl_tokenize *tokenize)
{
    return tokenize->view == NL_VIEW_STREAM && !tokenize->chat && !tokenize->most &&
           nl_encoder_cut(tokenize->shares[0].encoder, "a b", 0, 3) < 3;
}

int nl_tokenize_read(struct nl_tokenize *tokenize, int fd, const char *name, struct nl_error *error)
{
    struct stat status;
    struct nl_records records = {
        .fd = fd,
        .name = name,
        .kind = tokenize->kind,
        .raw = tokenize->raw || tokenize->kind == NL_RECORD_NUL,
        .wait = on_wait,
        .context = tokenize,
        .cut = comes_in_parts(tokenize) ? late_cut : NULL,
        .piece = (size_t)PIECE * (tokenize->threads ? tokenize->threads : 1),
        .most = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? 0 : MOST,
    };
    const char *text;
    size_t length;
    int got = 0;
    tokenize->open = tokenize->failed = false;
    while (!stopped(tokenize) && !tokenize->failed &&
           (got = nl_records_next(&records, &text, &length, error)) > 0)
        if ((got = write_sequence(tokenize, &records, text, length, error)) != 0)
            break;
    nl_records_free(&records);
    if (!stopped(tokenize) || !tokenize->open)
        return stopped(tokenize) ? 0 : got;
    return nl_writer_done(tokenize->writer, "cancelled", error) == 0
               ? nl_writer_flush(tokenize->writer, error)
               : -1;
}

void nl_tokenize_free(struct nl_tokenize *tokenize)
{
    nl_json_free(tokenize->header);
    nl_pool_close(tokenize->pool);
    for (unsigned i = 0; i < tokenize->n_shares; i++) {
        nl_encoder_close(tokenize->shares[i].encoder);
        nl_ids_free(&tokenize->shares[i].ids);
    }
    free(tokenize->shares);
    nl_tokenizer_close(tokenize->tokenizer);
    nl_chat_close(tokenize->template);
    nl_ids_free(&tokenize->before);
    nl_ids_free(&tokenize->after);
    nl_buf_free(&tokenize->shown);
    nl_buf_free(&tokenize->repaired);
    nl_buf_free(&tokenize->rendered);
}
