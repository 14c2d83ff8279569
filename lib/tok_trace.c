/* An encoding with what each step makes of the text. */
#include "tok_trace.h"

#include "tok_align.h"
#include "unicode.h"

struct tracer {
    struct nl_encoder *encoder;
    const struct nl_trace *trace;
    struct tok_aligned texts[2]; /* the text at hand, and the one that a stage makes of it */
    unsigned now;
    const struct tok_stage *stage; /* the pre-tokenizer that is writing the other text */
    struct nl_ids ids;
};

static struct tok_aligned *current(struct tracer *t)
{
    return &t->texts[t->now];
}

/* The other text, emptied. */
static struct tok_aligned *other(struct tracer *t)
{
    struct tok_aligned *text = &t->texts[!t->now];
    nl_buf_clear(&text->text);
    nl_buf_add(&text->text, "", 0);
    return text;
}

/* How much of `made` the character at `at` became. */
static size_t made_of(const struct tok_stage *stage, char c, size_t size, const char *made)
{
    if (stage->kind == TOK_BYTE_MAP)
        return nl_utf8_size((unsigned char)*made);
    return stage->kind == TOK_METASPACE && c == ' ' ? stage->text.size : size;
}

/* A pre-tokenizer wrote a piece anew: each character in turn, behind what it put before them all. */
static int on_rewrite(void *context, const struct tok_stage *stage, struct tok_range from, const char *made,
                      size_t size, struct nl_error *error)
{
    struct tracer *t = context;
    if (stage != t->stage) {
        t->now = t->stage ? !t->now : t->now;
        other(t);
        t->stage = stage;
    }
    const struct tok_aligned *in = current(t);
    struct tok_aligned *out = &t->texts[!t->now];
    const char *bytes = in->text.data;
    size_t plain = 0, done = 0; /* plain: the size of the piece without what is put before */
    for (size_t at = from.begin, step; at < from.end; at += step) {
        step = stage->kind == TOK_BYTE_MAP ? 1 : nl_utf8_size((unsigned char)bytes[at]);
        plain += made_of(stage, bytes[at], step, made + (stage->kind == TOK_BYTE_MAP ? plain : 0));
    }
    for (size_t at = from.begin, step; at < from.end; at += step) {
        step = stage->kind == TOK_BYTE_MAP ? 1 : nl_utf8_size((unsigned char)bytes[at]);
        size_t more = made_of(stage, bytes[at], step, made + done) + (at == from.begin ? size - plain : 0);
        if (nl_tok_aligned_add(out, made + done, more, nl_tok_aligned_origin(in, at, at + step), error) != 0)
            return -1;
        done += more;
    }
    return 0;
}

/* How many bytes of a word the id stands for: its key without affixes, the byte of <0xNN>, or, unknown, all
 * up to the next character that the model knows. */
static size_t bpe_size(const struct nl_tokenizer *tok, uint32_t id, const char *word, size_t at,
                       size_t length)
{
    const struct tok_bpe *bpe = &tok->bpe;
    struct tok_string key = tok->vocab.tokens[id].key;
    const char *bytes = tok_text(tok, key);
    size_t size = key.size, skip = at > 0 ? bpe->prefix.size : 0;
    if (skip <= size && memcmp(bytes, tok_text(tok, bpe->prefix), skip) == 0) {
        bytes += skip;
        size -= skip;
    }
    size_t suffix = bpe->suffix.size;
    if (suffix > 0 && size == length - at + suffix)
        size -= suffix;
    if (id != bpe->unk && size <= length - at && memcmp(word + at, bytes, size) == 0)
        return size;
    if (id != bpe->unk && nl_tok_fallback_byte(bytes, size) == (unsigned char)word[at])
        return 1;
    return tok->raw ? 1 : nl_utf8_size((unsigned char)word[at]);
}

static size_t id_size(const struct tracer *t, size_t i, const char *word, size_t at, size_t length)
{
    const struct nl_tokenizer *tok = t->encoder->tokenizer;
    uint32_t id = t->ids.data[i];
    if (i + 1 == t->ids.count || tok->model == TOK_MODEL_WORD_LEVEL)
        return length - at;
    size_t size = tok->vocab.tokens[id].key.size;
    if (tok->model == TOK_MODEL_BPE)
        return bpe_size(tok, id, word, at, length);
    if (tok->model == TOK_MODEL_WORD_PIECE)
        return at == 0 ? size : size - tok->lexicon.prefix_size;
    /* Unigram: the steps of the search tell. */
    const struct tok_step *steps = t->encoder->steps;
    if (steps[at].id != tok->lexicon.unk || tok->lexicon.unk == NL_TOK_NONE)
        return steps[at].size;
    if (id != tok->lexicon.unk &&
        nl_tok_fallback_byte(tok_text(tok, tok->vocab.tokens[id].key), size) == (unsigned char)word[at])
        return 1;
    size = 0;
    while (at + size < length && steps[at + size].id == tok->lexicon.unk)
        size += steps[at + size].size;
    return size;
}

static int trace_word(struct tracer *t, struct tok_range range, struct nl_error *error)
{
    const char *word = t->encoder->text + range.begin;
    size_t length = range.end - range.begin, at = 0;
    if (t->trace->word && t->trace->word(t->trace->context, word, length, error) != 0)
        return -1;
    t->ids.count = 0;
    if (nl_tok_encode_word(t->encoder, word, length, &t->ids, error) != 0)
        return -1;
    for (size_t i = 0; i < t->ids.count; i++) {
        size_t size = id_size(t, i, word, at, length), rest = length - at;
        size = size < rest ? size : rest;
        struct tok_origin origin =
            nl_tok_aligned_origin(current(t), range.begin + at, range.begin + at + size);
        if (t->trace->piece(t->trace->context, t->ids.data[i], origin.begin, origin.end, error) != 0)
            return -1;
        at += size;
    }
    return 0;
}

/* Normalized text without added tokens. */
static int trace_piece(struct tracer *t, struct tok_aligned *normalized, size_t begin, size_t end,
                       bool at_start, struct nl_error *error)
{
    struct nl_encoder *encoder = t->encoder;
    if (nl_tok_aligned_copy(other(t), normalized, begin, end, error) != 0)
        return -1;
    t->now = !t->now;
    t->stage = NULL;
    encoder->hook = (struct tok_rewrite_hook){t, on_rewrite};
    int result = nl_tok_split(encoder, current(t)->text.data, end - begin, at_start, error);
    encoder->hook.call = NULL;
    if (t->stage)
        t->now = !t->now;
    for (size_t i = 0; i < encoder->ranges.count && result == 0; i++)
        result = trace_word(t, encoder->ranges.data[i], error);
    return result;
}

static int trace_part(struct tracer *t, const char *text, size_t begin, size_t end, bool plain,
                      struct nl_error *error)
{
    const struct nl_tokenizer *tok = t->encoder->tokenizer;
    struct tok_aligned *start = other(t), normalized = {0};
    for (size_t at = begin, size; at < end; at += size) {
        size = nl_utf8_size((unsigned char)text[at]);
        for (size_t i = 0; i < size; i++) /* bytes of byte-level tokens are told apart */
            if (nl_tok_aligned_add(start, text + at + i, 1, (struct tok_origin){at + i, at + i + 1}, error) !=
                0)
                return -1;
    }
    t->now = !t->now;
    for (size_t i = 0; i < tok->normalizers.count; i++, t->now = !t->now)
        if (nl_tok_align_normalizer(t->encoder, &tok->normalizers.data[i], current(t), other(t), error) != 0)
            return -1;
    int result = nl_tok_aligned_copy(&normalized, current(t), 0, current(t)->text.size, error);
    if (result == 0 && t->trace->normalized)
        result = t->trace->normalized(t->trace->context, normalized.text.data, normalized.text.size, error);
    struct tok_cut cut = {.tokenizer = tok,
                          .pass = 1,
                          .plain = plain,
                          .text = normalized.text.data,
                          .length = normalized.text.size};
    const struct tok_added_token *token;
    size_t from, to;
    while (result == 0 && nl_tok_next_piece(&cut, &from, &to, &token)) {
        struct tok_origin origin = nl_tok_aligned_origin(&normalized, from, to);
        result = token ? t->trace->piece(t->trace->context, token->id, origin.begin, origin.end, error)
                       : trace_piece(t, &normalized, from, to, begin == 0 && from == 0, error);
    }
    nl_tok_aligned_free(&normalized);
    return result;
}

static int trace_text(struct tracer *t, const char *text, size_t length, bool plain, struct nl_error *error)
{
    struct tok_cut cut = {.tokenizer = t->encoder->tokenizer, .plain = plain, .text = text, .length = length};
    const struct tok_added_token *token;
    size_t begin, end;
    while (nl_tok_next_piece(&cut, &begin, &end, &token))
        if ((token ? t->trace->piece(t->trace->context, token->id, begin, end, error)
                   : trace_part(t, text, begin, end, plain, error)) != 0)
            return -1;
    return 0;
}

int nl_encoder_trace(struct nl_encoder *encoder, const char *text, size_t length, unsigned flags,
                     const struct nl_trace *trace, struct nl_error *error)
{
    size_t good = nl_utf8_check(text, length, NULL), at = 0;
    if (good < length)
        return nl_fail(error, NL_DATA, "not UTF-8: byte %zu", good);
    struct tracer t = {.encoder = encoder, .trace = trace};
    const struct nl_ids *template = &encoder->tokenizer->template;
    int result = 0;
    for (size_t i = 0; i < template->count && result == 0; i++) {
        uint32_t id = template->data[i];
        if (id == NL_TOK_NONE) {
            result = trace_text(&t, text, length, flags & NL_ENCODE_PLAIN, error);
            at = length;
        } else if (flags & NL_ENCODE_SPECIAL) {
            result = trace->piece(trace->context, id, at, at, error);
        }
    }
    nl_tok_aligned_free(&t.texts[0]);
    nl_tok_aligned_free(&t.texts[1]);
    nl_ids_free(&t.ids);
    return result;
}
