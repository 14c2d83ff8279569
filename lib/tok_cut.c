/*
 * Where a text can be cut so that its parts, encoded one by one, give the ids of the whole: between an ASCII
 * letter and a blank that another ASCII letter follows. The published patterns (tok_scan.h) end a word there
 * whatever stands around it, look at nothing behind that letter, and begin the next at the blank; normal
 * forms join nothing across a blank. What is left is that no added token may reach across, nor swallow the
 * blank.
 */
#include "tok.h"
#include "tok_fast.h"

static bool is_letter(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

static bool crosses(const struct nl_tokenizer *tok, const struct tok_added_token *token,
                    struct tok_string string)
{
    const char *text = tok_text(tok, string);
    for (uint32_t i = 0; i + 1 < string.size; i++)
        if (is_letter(text[i]) && text[i + 1] == ' ')
            return true;
    return string.size > 0 &&
           ((token->rstrip && is_letter(text[string.size - 1])) || (token->single_word && text[0] == ' '));
}

bool nl_tok_can_cut(const struct nl_tokenizer *tok)
{
    unsigned marks = 0;
    for (size_t i = 0; i < tok->template.count; i++)
        marks += tok->template.data[i] == NL_TOK_NONE;
    if (marks != 1 || !nl_tok_fast_fits(tok))
        return false;
    for (size_t i = 0; i < tok->normalizers.count; i++)
        if (tok->normalizers.data[i].kind > TOK_NFKD)
            return false;
    for (size_t i = 0; i + 1 < tok->splits.count; i++)
        if (tok->splits.data[i].kind != TOK_SPLIT || tok->splits.data[i].pattern.kind != TOK_NUMERIC ||
            tok->splits.data[i].invert)
            return false;
    for (uint32_t i = 0; i < tok->added.count; i++) {
        const struct tok_added_token *token = &tok->added.tokens[i];
        if (crosses(tok, token, token->content) || crosses(tok, token, token->pattern))
            return false;
    }
    return true;
}

size_t nl_encoder_cut(const struct nl_encoder *encoder, const char *text, size_t at, size_t length)
{
    for (at = at ? at : 1; encoder->can_cut && at + 1 < length; at++)
        if (text[at] == ' ' && is_letter(text[at - 1]) && is_letter(text[at + 1]))
            return at;
    return length;
}
