/* Patterns of splits and replacements: a string, a regex, or a kind of character. */
#include "tok.h"
#include "tok_scan.h"
#include "unicode.h"
#include "unicode_sets.h"

/* Numbers as the reference's Rust knows them: those of Unicode 17. */
static bool is_numeric(uint32_t c)
{
    if (c < 0x80)
        return c - '0' < 10;
    return nl_unicode_is_numeric(c) || (c >= 0x11de0 && c <= 0x11de9) || (c >= 0x16ff4 && c <= 0x16ff6);
}

/* The next run of \w or of neither \w nor \s. */
static bool next_words(struct tok_matches *m, size_t *begin, size_t *end)
{
    unsigned size;
    size_t at = m->at;
    while (at < m->length && nl_unicode_is_space(nl_utf8_get(m->text + at, &size)))
        at += size;
    if (at >= m->length)
        return false;
    *begin = at;
    bool word = nl_unicode_is_word(nl_utf8_get(m->text + at, &size));
    while (at < m->length) {
        uint32_t c = nl_utf8_get(m->text + at, &size);
        if (nl_unicode_is_word(c) != word || nl_unicode_is_space(c))
            break;
        at += size;
    }
    *end = at;
    return true;
}

static bool is_of_kind(uint32_t kind, uint32_t c)
{
    return kind == TOK_NUMERIC ? is_numeric(c)
           : kind == TOK_SPACE ? nl_unicode_is_space(c)
                               : nl_reference_is_punctuation(c);
}

static bool next_character(struct tok_matches *m, size_t *begin, size_t *end)
{
    unsigned size;
    for (size_t at = m->at; at < m->length; at += size) {
        if (is_of_kind(m->pattern->kind, nl_utf8_get(m->text + at, &size))) {
            *begin = at;
            *end = at + size;
            return true;
        }
    }
    return false;
}

static int search(struct tok_matches *m, size_t *begin, size_t *end, struct nl_error *error)
{
    const struct nl_tokenizer *tok = m->tokenizer;
    struct tok_string literal = m->pattern->literal;
    switch ((enum tok_pattern_kind)m->pattern->kind) {
    case TOK_REGEX:
        if (m->pattern->scanner) {
            *begin = m->at;
            if (m->at < m->length)
                *end = nl_tok_scan((enum tok_scanner)m->pattern->scanner, m->text, m->at, m->length);
            return m->at < m->length;
        }
        return nl_regex_search(tok->regexes[m->pattern->regex], m->regex, m->text, m->length, m->at, begin,
                               end, error);
    case TOK_NUMERIC:
    case TOK_SPACE:
    case TOK_PUNCTUATION:
        return next_character(m, begin, end);
    case TOK_WORDS:
        return next_words(m, begin, end);
    case TOK_LITERAL:
        break;
    }
    const char *found = m->at == m->length && literal.size > 0 ? NULL
                                                               : memmem(m->text + m->at, m->length - m->at,
                                                                        tok_text(tok, literal), literal.size);
    if (!found)
        return 0;
    *begin = (size_t)(found - m->text);
    *end = *begin + literal.size;
    return 1;
}

int nl_tok_next_match(struct tok_matches *m, size_t *begin, size_t *end, struct nl_error *error)
{
    while (m->at <= m->length && m->length > 0) { /* the reference finds nothing in an empty text */
        int got = search(m, begin, end, error);
        if (got != 1)
            return got;
        m->at = *end;
        if (*begin < *end || m->last != *end) {
            m->last = *end;
            return 1;
        }
        /* An empty match right behind the last one does not count. */
        m->at += m->at < m->length ? nl_utf8_size((unsigned char)m->text[m->at]) : 1;
    }
    return 0;
}

/* A decoder that keeps bytes (NL_DECODE_BYTES) may bring some that are no text: those no regex is shown. */
int nl_tok_replace(const struct nl_tokenizer *tok, const struct tok_stage *stage,
                   struct nl_regex_scratch *regex, const char *text, size_t length, struct nl_buf *out,
                   struct nl_error *error)
{
    struct tok_matches matches = {tok, &stage->pattern, regex, text, length, 0, SIZE_MAX};
    size_t done = 0, begin, end;
    int got = 0;
    bool usable = stage->pattern.kind == TOK_LITERAL || nl_utf8_check(text, length, NULL) == length;
    while (usable && (got = nl_tok_next_match(&matches, &begin, &end, error)) == 1) {
        nl_buf_add(out, text + done, begin - done);
        nl_buf_add(out, tok_text(tok, stage->text), stage->text.size);
        done = end;
    }
    nl_buf_add(out, text + done, length - done);
    return got < 0 ? -1 : nl_buf_check(out, "text", error);
}
