/* What --pieces, --stages and --count show. */
#include "tok_trace.h"
#include "tokenize.h"
#include "unicode.h"

static bool is_shown(uint32_t c)
{
    enum nl_category category = nl_unicode_category(c);
    bool blank = category == NL_CAT_ZS || category == NL_CAT_ZL || category == NL_CAT_ZP;
    return c == ' ' || !(blank || category <= NL_CAT_CS);
}

void nl_tokenize_escape(const char *bytes, size_t size, struct nl_buf *out)
{
    static const char letters[] = "n\\tr", characters[] = "\n\\\t\r";
    for (size_t at = 0, step; at < size; at += step) {
        step = nl_utf8_length((const uint8_t *)bytes + at, size - at);
        unsigned size_of_it;
        const char *found = bytes[at] ? strchr(characters, bytes[at]) : NULL;
        if (found) {
            nl_buf_putc(out, '\\');
            nl_buf_putc(out, letters[found - characters]);
        } else if (step > 0 && is_shown(nl_utf8_get(bytes + at, &size_of_it))) {
            nl_buf_add(out, bytes + at, step);
        } else {
            step = step ? step : 1;
            for (size_t i = 0; i < step; i++)
                nl_buf_printf(out, "\\x%02x", (unsigned char)bytes[at + i]);
        }
    }
}

struct view {
    struct nl_tokenize *tokenize;
    struct nl_buf *out;
    uint64_t n_ids;
};

static int on_text(struct view *view, const char *what, const char *text, size_t size, struct nl_error *error)
{
    nl_buf_printf(view->out, "%s\t", what);
    nl_tokenize_escape(text, size, view->out);
    nl_buf_putc(view->out, '\n');
    return nl_buf_check(view->out, "text", error);
}

static int on_normalized(void *context, const char *text, size_t size, struct nl_error *error)
{
    return on_text(context, "text", text, size, error);
}

static int on_word(void *context, const char *text, size_t size, struct nl_error *error)
{
    return on_text(context, "word", text, size, error);
}

static int on_piece(void *context, uint32_t id, size_t begin, size_t end, struct nl_error *error)
{
    struct view *view = context;
    size_t size = 0;
    const char *bytes = nl_tokenizer_piece(view->tokenize->tokenizer, id, &size);
    view->n_ids++;
    nl_buf_printf(view->out, "%s%u\t", view->tokenize->view == NL_VIEW_STAGES ? "id\t" : "", id);
    nl_tokenize_escape(bytes ? bytes : "", size, view->out);
    nl_buf_printf(view->out, "\t%zu\t%zu\n", begin, end);
    return nl_buf_check(view->out, "text", error);
}

int nl_tokenize_show(struct nl_tokenize *tokenize, struct nl_encoder *encoder, const char *text,
                     size_t length, struct nl_buf *out, struct nl_error *error)
{
    struct view view = {.tokenize = tokenize, .out = out};
    struct nl_trace trace = {.context = &view, .piece = on_piece};
    unsigned flags = (tokenize->special ? NL_ENCODE_SPECIAL : 0) | (tokenize->plain ? NL_ENCODE_PLAIN : 0);
    if (tokenize->view == NL_VIEW_COUNT) {
        tokenize->ids.count = 0;
        if (nl_encoder_encode(encoder, text, length, flags, &tokenize->ids, error) != 0)
            return -1;
        tokenize->n_ids += tokenize->ids.count;
        nl_buf_printf(out, "%zu\n", tokenize->ids.count);
        return nl_buf_check(out, "text", error);
    }
    if (tokenize->view == NL_VIEW_STAGES) {
        trace.normalized = on_normalized;
        trace.word = on_word;
    }
    int result = nl_encoder_trace(encoder, text, length, flags, &trace, error);
    tokenize->n_ids += view.n_ids;
    return result;
}
