/*
 * Byte-pair encoding: the symbols that a word begins as. How they are merged: tok_bpe_merge.c.
 */
#include "tok.h"
#include "unicode.h"

static int add_fallback(struct nl_encoder *encoder, const char *text, size_t size, struct nl_error *error)
{
    const uint32_t *fallback = encoder->tokenizer->bpe.fallback;
    for (size_t i = 0; i < size; i++)
        if (fallback[(unsigned char)text[i]] == NL_TOK_NONE)
            return 0;
    for (size_t i = 0; i < size; i++)
        if (nl_tok_bpe_add(encoder, fallback[(unsigned char)text[i]], error) != 0)
            return -1;
    return 1;
}

/* A character that is no token: its bytes, or unknown. `pending`: an unknown that may yet be joined by more.
   Byte tokens do not flush it: they come before it, as in the reference. */
static int add_unknown(struct nl_encoder *encoder, const char *text, size_t size, bool *pending,
                       struct nl_error *error)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    if (bpe->byte_fallback) {
        int got = add_fallback(encoder, text, size, error);
        if (got != 0)
            return got < 0 ? -1 : 0;
    }
    if (bpe->unk_missing)
        return nl_fail(error, NL_DATA,
                       "the unknown token is needed and not in the vocabulary: model.unk_token");
    if (bpe->unk == NL_TOK_NONE)
        return 0;
    if (*pending && !bpe->fuse_unk)
        return nl_tok_bpe_add(encoder, bpe->unk, error);
    *pending = true;
    return 0;
}

static int add_known(struct nl_encoder *encoder, uint32_t id, bool *pending, struct nl_error *error)
{
    if (*pending && nl_tok_bpe_add(encoder, encoder->tokenizer->bpe.unk, error) != 0)
        return -1;
    *pending = false;
    return nl_tok_bpe_add(encoder, id, error);
}

static int start_with_bytes(struct nl_encoder *encoder, const char *text, size_t length,
                            struct nl_error *error)
{
    bool pending = false;
    for (size_t i = 0; i < length; i++) {
        uint32_t id = encoder->tokenizer->bpe.bytes[(unsigned char)text[i]];
        int result = id == NL_TOK_NONE ? add_unknown(encoder, text + i, 1, &pending, error)
                                       : add_known(encoder, id, &pending, error);
        if (result != 0)
            return -1;
    }
    return pending ? nl_tok_bpe_add(encoder, encoder->tokenizer->bpe.unk, error) : 0;
}

/* The character with the prefix and suffix that it takes in its place. */
static void dress(const struct nl_tokenizer *tok, const char *text, size_t size, bool first, bool last,
                  struct nl_buf *out)
{
    const struct tok_bpe *bpe = &tok->bpe;
    nl_buf_clear(out);
    if (!first)
        nl_buf_add(out, tok_text(tok, bpe->prefix), bpe->prefix.size);
    nl_buf_add(out, text, size);
    if (last)
        nl_buf_add(out, tok_text(tok, bpe->suffix), bpe->suffix.size);
}

static int start_with_chars(struct nl_encoder *encoder, const char *text, size_t length,
                            struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    bool plain = tok->bpe.prefix.size == 0 && tok->bpe.suffix.size == 0, pending = false;
    for (size_t at = 0; at < length;) {
        const char *unit = text + at;
        size_t size = nl_utf8_size((unsigned char)*unit), step = size;
        if (!plain) {
            dress(tok, unit, size, at == 0, at + step == length, &encoder->spare);
            if (nl_buf_check(&encoder->spare, "word", error) != 0)
                return -1;
            unit = encoder->spare.data;
            size = encoder->spare.size;
        }
        uint32_t id =
            plain && size == 1 ? tok->bpe.bytes[(unsigned char)*unit] : nl_tok_find(tok, unit, size);
        int result = id == NL_TOK_NONE ? add_unknown(encoder, unit, size, &pending, error)
                                       : add_known(encoder, id, &pending, error);
        if (result != 0)
            return -1;
        at += step;
    }
    return pending ? nl_tok_bpe_add(encoder, tok->bpe.unk, error) : 0;
}

/* What joins two bytes: looked up once and remembered, since most merges of a word are such. */
static const struct tok_merge *byte_merge(struct nl_encoder *encoder, const char *text)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const unsigned char *two = (const unsigned char *)text;
    uint32_t *known = &encoder->byte_merges[two[0] << 8 | two[1]]; /* 0: not yet, 1: none, 2 + index */
    if (*known == 0) {
        const struct tok_merge *merge = tok_find_merge(bpe, bpe->bytes[two[0]], bpe->bytes[two[1]]);
        *known = merge ? (uint32_t)(merge - bpe->merges) + 2 : 1;
    }
    return *known == 1 ? NULL : &bpe->merges[*known - 2];
}

/* A short word, raw, each of whose bytes is a token; 0 when it is none such. */
static int encode_short(struct nl_encoder *encoder, const char *text, size_t n, struct nl_ids *out,
                        struct nl_error *error)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const struct tok_merge *pairs[NL_TOK_FEW];
    uint32_t ids[NL_TOK_FEW], ranks[NL_TOK_FEW];
    for (size_t i = 0; i < n; i++)
        if ((ids[i] = bpe->bytes[(unsigned char)text[i]]) == NL_TOK_NONE)
            return 0;
    for (size_t i = 0; i + 1 < n; i++) {
        pairs[i] = byte_merge(encoder, text + i);
        ranks[i] = pairs[i] ? pairs[i]->rank : UINT32_MAX;
    }
    n = nl_tok_bpe_merge_few(bpe, ids, pairs, ranks, n);
    return nl_ids_add(out, ids, n, error) == 0 ? 1 : -1;
}

int nl_tok_bpe(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
               struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    if (tok->bpe.ignore_merges) {
        uint32_t id = nl_tok_find(tok, text, length);
        if (id != NL_TOK_NONE)
            return nl_ids_add(out, &id, 1, error);
    }
    if (encoder->byte_merges && length <= NL_TOK_FEW) {
        int got = encode_short(encoder, text, length, out, error);
        if (got != 0)
            return got < 0 ? -1 : 0;
    }
    encoder->out = out;
    nl_tok_bpe_start(encoder);
    int result = tok->raw ? start_with_bytes(encoder, text, length, error)
                          : start_with_chars(encoder, text, length, error);
    return result == 0 ? nl_tok_bpe_finish(encoder, error) : -1;
}
