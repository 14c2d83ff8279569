/*
 * tok_scan_inline.h: the scanners of tok_scan.h, for the loops that they are inlined into.
 *
 * ASCII is read eight bytes at a time and by a table of classes; other characters by the tables of Unicode.
 */
#ifndef NL_TOK_SCAN_INLINE_H
#define NL_TOK_SCAN_INLINE_H

#include <string.h>

#include "tok_scan.h"
#include "unicode.h"
#include "unicode_tables.h"

/* Classes of characters, as bits. */
enum {
    SCAN_UPPER = 1,   /* Lu Lt */
    SCAN_LOWER = 2,   /* Ll */
    SCAN_OTHER = 4,   /* Lm Lo */
    SCAN_MARK = 8,    /* M */
    SCAN_DIGIT = 16,  /* N */
    SCAN_SPACE = 32,  /* White_Space but the next */
    SCAN_RETURN = 64, /* CR, LF */
    SCAN_REST = 128,
    SCAN_LETTER = SCAN_UPPER | SCAN_LOWER | SCAN_OTHER,
    SCAN_BLANK = SCAN_SPACE | SCAN_RETURN,
    SCAN_POINT = SCAN_REST | SCAN_MARK,              /* [^\s\p{L}\p{N}] */
    SCAN_HEAD = SCAN_UPPER | SCAN_OTHER | SCAN_MARK, /* o200k's two kinds of letters */
    SCAN_TAIL = SCAN_LOWER | SCAN_OTHER | SCAN_MARK,
};
extern const uint8_t nl_tok_scan_ascii[128];     /* [character] */
extern const uint8_t nl_tok_scan_categories[64]; /* [what unicode_tables.h has], White_Space's Cc aside */

#define SCAN_INLINE static inline __attribute__((always_inline))

/* The class of the character at `at` < length, and its size. */
SCAN_INLINE unsigned scan_class(const char *text, size_t at, unsigned *size)
{
    const unsigned char *s = (const unsigned char *)text + at;
    if (__builtin_expect(s[0] < 0x80, 1)) {
        *size = 1;
        return nl_tok_scan_ascii[s[0]];
    }
    uint32_t c;
    if (s[0] < 0xe0) {
        *size = 2;
        c = (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    } else if (s[0] < 0xf0) {
        *size = 3;
        c = (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    } else {
        *size = 4;
        c = (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
    }
    if (c == 0x85)
        return SCAN_SPACE;
    return nl_tok_scan_categories[nl_unicode_blocks[nl_unicode_index[c >> 8]][c & 0xff] & 0x3f];
}

SCAN_INLINE unsigned scan_peek(const char *text, size_t at, size_t length, unsigned *size)
{
    *size = 0;
    return at < length ? scan_class(text, at, size) : 0;
}

/* How many of the next bytes are ASCII in [low, high] once the bits of `fold` are set: 0 to 8, in a text that
 * has eight. */
SCAN_INLINE unsigned scan_eight(const char *text, unsigned char low, unsigned char high, unsigned char fold)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t word;
    memcpy(&word, text, 8);
    uint64_t folded = (word | fold * ones) & ~tops;
    uint64_t above = folded + (0x7fu - high) * ones, reached = folded + (0x80u - low) * ones;
    uint64_t out = (~reached | above | word) & tops;
    return out ? (unsigned)__builtin_ctzll(out) >> 3 : 8;
}

/* The end of a run of characters of these classes; low, high, fold: the ASCII ones among them, or a part. */
SCAN_INLINE size_t scan_run(const char *text, size_t at, size_t length, unsigned classes, unsigned char low,
                            unsigned char high, unsigned char fold)
{
    while (at < length) {
        if (at + 8 <= length) {
            unsigned n = scan_eight(text + at, low, high, fold);
            at += n;
            if (n == 8)
                continue;
        }
        unsigned size;
        if (at == length || !(scan_class(text, at, &size) & classes))
            break;
        at += size;
    }
    return at;
}

SCAN_INLINE size_t scan_slowly(const char *text, size_t at, size_t length, unsigned classes)
{
    unsigned size;
    while (at < length && (scan_class(text, at, &size) & classes))
        at += size;
    return at;
}

SCAN_INLINE size_t scan_letters(const char *text, size_t at, size_t length)
{
    return scan_run(text, at, length, SCAN_LETTER, 'a', 'z', 0x20);
}

/* The length of 's 't 're 've 'm 'll 'd behind the apostrophe at `at`, with it; 0: none. Without case s is
 * U+017F too. */
SCAN_INLINE size_t scan_contraction(const char *text, size_t at, size_t length, bool caseless)
{
    if (at + 1 >= length)
        return 0;
    unsigned char fold = caseless ? 0x20 : 0;
    unsigned char a = (unsigned char)text[at + 1], first = a | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return a < 0x80 ? 2 : 0;
    if (at + 2 >= length)
        return 0;
    unsigned char b = (unsigned char)text[at + 2], second = b | fold;
    if ((second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l'))
        return 3;
    return caseless && a == 0xc5 && b == 0xbf ? 3 : 0;
}

/* White space: what \s*[\r\n]+|\s+(?!\S)|\s+ matches, the first where `lines`. */
SCAN_INLINE size_t scan_blanks(const char *text, size_t at, size_t length, bool lines)
{
    size_t begin = at, last = at, behind_line = 0;
    unsigned size, class;
    while (at < length) {
        if (text[at] == ' ' && at + 8 <= length) {
            unsigned n = scan_eight(text + at, ' ', ' ', 0);
            at += n;
            last = at - 1;
            continue;
        }
        class = scan_class(text, at, &size);
        if (!(class & SCAN_BLANK))
            break;
        last = at;
        at += size;
        if (class & SCAN_RETURN)
            behind_line = at;
    }
    if (lines && behind_line)
        return behind_line;
    return at == length || last == begin ? at : last;
}

SCAN_INLINE size_t scan_gpt2(const char *text, size_t at, size_t length)
{
    unsigned size, class = scan_class(text, at, &size), next_size;
    if (text[at] == '\'') {
        size_t contraction = scan_contraction(text, at, length, false);
        if (contraction)
            return at + contraction;
    }
    if (text[at] == ' ') {
        unsigned next = scan_peek(text, at + 1, length, &next_size);
        if (next && !(next & SCAN_BLANK)) {
            at++;
            class = next;
            size = next_size;
        }
    }
    if (class & SCAN_LETTER)
        return scan_letters(text, at + size, length);
    if (class & SCAN_DIGIT)
        return scan_slowly(text, at + size, length, SCAN_DIGIT);
    if (class & SCAN_POINT)
        return scan_slowly(text, at + size, length, SCAN_POINT);
    return scan_blanks(text, at, length, false);
}

/* [\r\n]*, or [\r\n/]*. */
SCAN_INLINE size_t scan_line_ends(const char *text, size_t at, size_t length, bool slash)
{
    while (at < length && (text[at] == '\r' || text[at] == '\n' || (slash && text[at] == '/')))
        at++;
    return at;
}

/* The alternatives behind the words, which cl100k and o200k share. */
SCAN_INLINE size_t scan_rest(const char *text, size_t at, size_t length, unsigned class, unsigned size,
                             unsigned digits, bool slash)
{
    unsigned next;
    if (class & SCAN_DIGIT) {
        at += size;
        for (unsigned n = 1; n < digits && (scan_peek(text, at, length, &size) & SCAN_DIGIT); n++)
            at += size;
        return at;
    }
    if (text[at] == ' ' && (next = scan_peek(text, at + 1, length, &size)) & SCAN_POINT) {
        at++;
        class = next;
    }
    if (class & SCAN_POINT)
        return scan_line_ends(text, scan_slowly(text, at + size, length, SCAN_POINT), length, slash);
    return scan_blanks(text, at, length, true);
}

SCAN_INLINE size_t scan_cl100k(const char *text, size_t at, size_t length, unsigned digits)
{
    unsigned size, next_size, class = scan_class(text, at, &size);
    if (class & SCAN_LETTER)
        return scan_letters(text, at + size, length);
    if (text[at] == '\'') {
        size_t contraction = scan_contraction(text, at, length, true);
        if (contraction)
            return at + contraction;
    }
    if (!(class & (SCAN_RETURN | SCAN_DIGIT)) &&
        (scan_peek(text, at + size, length, &next_size) & SCAN_LETTER))
        return scan_letters(text, at + size + next_size, length);
    return scan_rest(text, at, length, class, size, digits, false);
}

/* [HEAD]*[TAIL]+, where that fails (0) [HEAD]+[TAIL]*. HEAD takes all it can, and gives back to the last
 * character that is a TAIL too. */
SCAN_INLINE size_t scan_word(const char *text, size_t at, size_t length, bool tail)
{
    size_t begin = at, behind_both = 0;
    unsigned size = 0, class = 0;
    while (at < length && (class = scan_class(text, at, &size)) & SCAN_HEAD) {
        at += size;
        if (class & SCAN_TAIL)
            behind_both = at;
    }
    if (!tail)
        return at > begin ? at : 0;
    if (at < length && (class & SCAN_TAIL))
        return scan_run(text, at + size, length, SCAN_TAIL, 'a', 'z', 0);
    return behind_both;
}

SCAN_INLINE size_t scan_o200k(const char *text, size_t at, size_t length)
{
    unsigned size, class = scan_class(text, at, &size);
    size_t end = 0;
    bool prefix = !(class & (SCAN_RETURN | SCAN_DIGIT | SCAN_LETTER));
    bool bare = class & (SCAN_LETTER | SCAN_MARK);
    for (int tail = 1; tail >= 0 && !end; tail--) {
        if (prefix)
            end = scan_word(text, at + size, length, tail);
        if (!end && bare)
            end = scan_word(text, at, length, tail);
    }
    if (!end)
        return scan_rest(text, at, length, class, size, 3, true);
    if (end < length && text[end] == '\'')
        end += scan_contraction(text, end, length, true);
    return end;
}

SCAN_INLINE size_t scan_with(enum tok_scanner scanner, const char *text, size_t at, size_t length)
{
    switch (scanner) {
    case TOK_SCAN_GPT2:
        return scan_gpt2(text, at, length);
    case TOK_SCAN_CL100K:
        return scan_cl100k(text, at, length, 3);
    case TOK_SCAN_QWEN2:
        return scan_cl100k(text, at, length, 1);
    case TOK_SCAN_O200K:
        return scan_o200k(text, at, length);
    default:
        return length;
    }
}

#endif
