#include "tokenize.h"

#include <stdlib.h>
#include <unistd.h>

#include "modelpath.h"
#include "unicode.h"

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

static int open_tokenizer(struct nl_tokenize *tokenize, const char *folder, struct nl_error *error)
{
    tokenize->tokenizer = nl_tokenizer_open(folder, error);
    if (!tokenize->tokenizer)
        return -1;
    tokenize->encoder = nl_encoder_open(tokenize->tokenizer, error);
    if (!tokenize->encoder)
        return -1;
    if (tokenize->chat && !(tokenize->template = nl_chat_open(folder, error)))
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

/* The ids of one text into tokenize->ids. */
static int encode(struct nl_tokenize *tokenize, const struct nl_records *records, const char *text,
                  size_t length, struct nl_error *error)
{
    size_t good = nl_utf8_check(text, length, NULL);
    tokenize->ids.count = 0;
    if (good < length && !tokenize->replace)
        return nl_fail(error, NL_DATA, "not UTF-8 (--invalid=replace puts U+FFFD there): %s: byte %llu",
                       records->name, (unsigned long long)(records->offset + good));
    if (good < length) {
        nl_buf_clear(&tokenize->repaired);
        nl_utf8_repair(text, length, &tokenize->repaired);
        if (nl_buf_check(&tokenize->repaired, "text", error) != 0)
            return -1;
        text = tokenize->repaired.data;
        length = tokenize->repaired.size;
    }
    if (tokenize->chat) {
        nl_buf_clear(&tokenize->rendered);
        nl_buf_add(&tokenize->rendered, "", 0);
        if (nl_chat_render(tokenize->template, tokenize->chat, text, length, records->name,
                           &tokenize->rendered, error) != 0)
            return -1;
        text = tokenize->rendered.data;
        length = tokenize->rendered.size;
    }
    return nl_encoder_encode(tokenize->encoder, text, length, tokenize->special ? NL_ENCODE_SPECIAL : 0,
                             &tokenize->ids, error);
}

static int write_sequence(struct nl_tokenize *tokenize, const struct nl_records *records, const char *text,
                          size_t length, struct nl_error *error)
{
    struct nl_error cause;
    if (nl_json_set_number(tokenize->header, "seq", (double)tokenize->n_sequences++, error) != 0 ||
        nl_writer_object(tokenize->writer, NL_NLS1, tokenize->header, error) != 0)
        return -1;
    tokenize->n_bytes += length;
    if (encode(tokenize, records, text, length, &cause) != 0) {
        tokenize->report(&cause);
        if (tokenize->status == NL_OK)
            tokenize->status = cause.code;
        return nl_writer_done_error(tokenize->writer, &cause, error);
    }
    const struct nl_ids *ids = &tokenize->ids;
    tokenize->n_ids += ids->count;
    if (ids->count > 0 && nl_writer_ids(tokenize->writer, ids->data, ids->count, error) != 0)
        return -1;
    return nl_writer_done(tokenize->writer, "input", error);
}

static int on_wait(void *context, struct nl_error *error)
{
    struct nl_tokenize *tokenize = context;
    if (stopped(tokenize))
        return nl_fail(error, NL_IO, "%s", "");
    return nl_writer_pause(tokenize->writer, error);
}

int nl_tokenize_read(struct nl_tokenize *tokenize, int fd, const char *name, struct nl_error *error)
{
    struct nl_records records = {
        .fd = fd,
        .name = name,
        .kind = tokenize->kind,
        .raw = tokenize->raw || tokenize->kind == NL_RECORD_NUL,
        .wait = on_wait,
        .context = tokenize,
    };
    const char *text;
    size_t length;
    int got = 0;
    while (!stopped(tokenize) && (got = nl_records_next(&records, &text, &length, error)) > 0)
        if ((got = write_sequence(tokenize, &records, text, length, error)) != 0)
            break;
    nl_records_free(&records);
    return stopped(tokenize) ? 0 : got;
}

void nl_tokenize_free(struct nl_tokenize *tokenize)
{
    nl_json_free(tokenize->header);
    nl_encoder_close(tokenize->encoder);
    nl_tokenizer_close(tokenize->tokenizer);
    nl_ids_free(&tokenize->ids);
    nl_chat_close(tokenize->template);
    nl_buf_free(&tokenize->repaired);
    nl_buf_free(&tokenize->rendered);
}
