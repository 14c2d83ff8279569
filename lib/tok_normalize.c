/* Normalizers. */
#include "tok.h"
#include "unicode.h"

static void strip(const struct tok_stage *stage, const char *text, size_t length, struct nl_buf *out)
{
    size_t begin = 0, end = length;
    unsigned size;
    while ((stage->argument & 1) && begin < end && nl_unicode_is_space(nl_utf8_get(text + begin, &size)))
        begin += size;
    while ((stage->argument & 2) && begin < end) {
        size_t last = nl_utf8_back(text, end);
        if (!nl_unicode_is_space(nl_utf8_get(text + last, &size)))
            break;
        end = last;
    }
    nl_buf_add(out, text + begin, end - begin);
}

static int apply(struct nl_encoder *encoder, const struct tok_stage *stage, const char *text, size_t length,
                 struct nl_buf *out, struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    switch ((enum tok_stage_kind)stage->kind) {
    case TOK_NFC:
        return nl_unicode_normalize(NL_NFC, text, length, out, error);
    case TOK_NFD:
        return nl_unicode_normalize(NL_NFD, text, length, out, error);
    case TOK_NFKC:
        return nl_unicode_normalize(NL_NFKC, text, length, out, error);
    case TOK_NFKD:
        return nl_unicode_normalize(NL_NFKD, text, length, out, error);
    case TOK_REPLACE:
        return nl_tok_replace(tok, stage, encoder->regex, text, length, out, error);
    case TOK_LOWERCASE:
        nl_unicode_lowercase(text, length, out);
        break;
    case TOK_PREPEND:
        if (length > 0)
            nl_buf_add(out, tok_text(tok, stage->text), stage->text.size);
        nl_buf_add(out, text, length);
        break;
    case TOK_STRIP:
        strip(stage, text, length, out);
        break;
    case TOK_BYTE_MAP:
        nl_tok_bytes_to_chars(text, length, out);
        break;
    default:
        return nl_fail(error, NL_UNSUPPORTED, "not a normalizer: stage %u", stage->kind);
    }
    return nl_buf_check(out, "text", error);
}

/* Whether a stage leaves this text as it is, as far as that is seen at a glance. */
static bool stays(const struct tok_stage *stage, const char *text, size_t length)
{
    return (stage->kind == TOK_NFC && nl_unicode_is_normal(NL_NFC, text, length)) ||
           (stage->kind == TOK_NFKC && nl_unicode_is_normal(NL_NFKC, text, length)) ||
           (stage->kind == TOK_NFD && nl_unicode_is_normal(NL_NFD, text, length)) ||
           (stage->kind == TOK_NFKD && nl_unicode_is_normal(NL_NFKD, text, length));
}

int nl_tok_normalize(struct nl_encoder *encoder, const char *text, size_t length, const char **out,
                     size_t *size, struct nl_error *error)
{
    const struct tok_stages *stages = &encoder->tokenizer->normalizers;
    size_t i = 0;
    while (i < stages->count && stays(&stages->data[i], text, length))
        i++;
    for (; i < stages->count; i++) {
        /* In turn into two buffers, ending in `normalized`. */
        struct nl_buf *to = (stages->count - i) % 2 ? &encoder->normalized : &encoder->spare;
        nl_buf_clear(to);
        nl_buf_add(to, "", 0);
        if (apply(encoder, &stages->data[i], text, length, to, error) != 0)
            return -1;
        text = to->data;
        length = to->size;
    }
    *out = text;
    *size = length;
    return 0;
}
