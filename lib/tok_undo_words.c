/* What the decoders WordPiece and CTC make of one token. */
#include "tok.h"

/* The text with each `pattern` replaced, in place; `spare` is overwritten. */
static void replace_all(struct nl_buf *text, struct nl_buf *spare, const char *pattern, const char *with)
{
    size_t size = strlen(pattern);
    const char *at = text->data, *end = at + text->size, *found = memmem(at, text->size, pattern, size);
    if (!found)
        return;
    nl_buf_clear(spare);
    for (; found; found = memmem(at, (size_t)(end - at), pattern, size)) {
        nl_buf_add(spare, at, (size_t)(found - at));
        nl_buf_puts(spare, with);
        at = found + size;
    }
    nl_buf_add(spare, at, (size_t)(end - at));
    struct nl_buf swap = *text;
    *text = *spare;
    *spare = swap;
}

/* decoders/wordpiece.rs of the reference. */
static void clean_up(struct nl_buf *text, struct nl_buf *spare)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        replace_all(text, spare, pairs[i][0], pairs[i][1]);
}

int nl_tok_undo_word_piece(const struct nl_tokenizer *tok, const struct tok_stage *stage, bool first,
                           const char *token, size_t size, struct nl_buf *out, struct nl_error *error)
{
    struct nl_buf text = {0}, spare = {0};
    size_t prefix = stage->text.size;
    bool goes_on = size >= prefix && memcmp(token, tok_text(tok, stage->text), prefix) == 0;
    if (!first && goes_on) {
        token += prefix;
        size -= prefix;
    }
    nl_buf_add(&text, " ", first || goes_on ? 0 : 1);
    nl_buf_add(&text, token, size);
    if (stage->argument && !text.failed)
        clean_up(&text, &spare);
    nl_buf_add(out, text.data, text.size);
    int result =
        text.failed || spare.failed ? nl_fail_memory(error, "text") : nl_buf_check(out, "text", error);
    nl_buf_free(&text);
    nl_buf_free(&spare);
    return result;
}

/* A stage that replaces a string of the pool, given to nl_tok_replace. */
static int replace_string(const struct nl_tokenizer *tok, struct tok_string pattern, struct tok_string with,
                          const struct nl_buf *text, struct nl_buf *out, struct nl_error *error)
{
    struct tok_stage stage = {.pattern = {.kind = TOK_LITERAL, .literal = pattern}, .text = with};
    nl_buf_clear(out);
    nl_buf_add(out, "", 0);
    if (text->size == 0 && pattern.size == 0) /* the empty string is in the empty text once */
        nl_buf_add(out, tok_text(tok, with), with.size);
    return nl_tok_replace(tok, &stage, NULL, text->data, text->size, out, error);
}

int nl_tok_undo_ctc(const struct nl_tokenizer *tok, const struct tok_stage *stage, const char *token,
                    size_t size, struct nl_buf *out, struct nl_error *error)
{
    static const struct tok_string nothing = {0};
    struct nl_buf text = {0}, spare = {0};
    nl_buf_add(&spare, token, size);
    nl_buf_add(&spare, "", 0);
    int result = nl_buf_check(&spare, "text", error);
    if (result == 0)
        result = replace_string(tok, stage->text, nothing, &spare, &text, error);
    if (result == 0 && stage->argument) {
        clean_up(&text, &spare);
        result = text.failed || spare.failed
                     ? nl_fail_memory(error, "text")
                     : replace_string(tok, stage->more, tok->blank, &text, &spare, error);
        struct nl_buf swap = text;
        text = spare;
        spare = swap;
    }
    if (result == 0)
        nl_buf_add(out, text.data, text.size);
    nl_buf_free(&text);
    nl_buf_free(&spare);
    return result == 0 ? nl_buf_check(out, "text", error) : -1;
}
