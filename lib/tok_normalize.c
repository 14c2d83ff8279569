/* Normalizers. */
#include "tok.h"
#include "unicode.h"
#include "unicode_sets.h"

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

static void strip_marks(const char *text, size_t length, bool (*is_mark)(uint32_t), struct nl_buf *out)
{
    unsigned size;
    for (size_t at = 0; at < length; at += size)
        if (!is_mark(nl_utf8_get(text + at, &size)))
            nl_buf_add(out, text + at, size);
}

/* normalizers/unicode.rs of the reference: some control characters go, some others become blanks. */
static void nmt(const char *text, size_t length, struct nl_buf *out)
{
    unsigned size;
    for (size_t at = 0; at < length; at += size) {
        uint32_t c = nl_utf8_get(text + at, &size);
        if (c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
            c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd)
            nl_buf_putc(out, ' ');
        else if (!((c >= 1 && c < ' ') || c == 0x7f || c == 0x8f || c == 0x9f))
            nl_buf_add(out, text + at, size);
    }
}

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0x2f800 && c <= 0x2fa1f);
}

/* The first two steps of BertNormalizer. */
static void bert_characters(unsigned steps, const char *text, size_t length, struct nl_buf *out)
{
    unsigned size;
    for (size_t at = 0; at < length; at += size) {
        uint32_t c = nl_utf8_get(text + at, &size);
        if ((steps & TOK_BERT_CLEAN) && nl_reference_is_control(c))
            continue;
        if ((steps & TOK_BERT_CLEAN) && nl_unicode_is_space(c)) {
            nl_buf_putc(out, ' ');
            continue;
        }
        bool apart = (steps & TOK_BERT_CHINESE) && is_chinese(c);
        nl_buf_add(out, " ", apart);
        nl_buf_add(out, text + at, size);
        nl_buf_add(out, " ", apart);
    }
}

static int bert(unsigned steps, const char *text, size_t length, struct nl_buf *out, struct nl_error *error)
{
    struct nl_buf a = {0}, b = {0};
    nl_buf_add(&a, "", 0);
    nl_buf_add(&b, "", 0);
    bert_characters(steps, text, length, &a);
    int result = nl_buf_check(&a, "text", error);
    if (result == 0 && (steps & TOK_BERT_ACCENTS)) {
        result = nl_unicode_normalize(NL_NFD, a.data, a.size, &b, error);
        nl_buf_clear(&a);
        if (result == 0)
            strip_marks(b.data, b.size, nl_reference_is_nonspacing, &a);
    }
    if (steps & TOK_BERT_LOWERCASE)
        nl_unicode_lowercase(a.data, a.size, out);
    else
        nl_buf_add(out, a.data, a.size);
    if (result == 0)
        result = a.failed ? nl_buf_check(&a, "text", error) : nl_buf_check(out, "text", error);
    nl_buf_free(&a);
    nl_buf_free(&b);
    return result;
}

int nl_tok_normalize_stage(struct nl_encoder *encoder, const struct tok_stage *stage, const char *text,
                           size_t length, struct nl_buf *out, struct nl_error *error)
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
    case TOK_PRECOMPILED:
        return nl_tok_charsmap(tok, stage, text, length, out, error);
    case TOK_BERT:
        return bert(stage->argument, text, length, out, error);
    case TOK_STRIP_ACCENTS:
        strip_marks(text, length, nl_reference_is_mark, out);
        break;
    case TOK_NMT:
        nmt(text, length, out);
        break;
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
        if (nl_tok_normalize_stage(encoder, &stages->data[i], text, length, to, error) != 0)
            return -1;
        text = to->data;
        length = to->size;
    }
    *out = text;
    *size = length;
    return 0;
}
