/*
 * unicode.h: properties and normal forms of characters. The only file that knows utf8proc.
 *
 * Properties are those of Unicode 16, from own tables: regexes and splits then do not depend on what the
 * installed libraries know. Normal forms follow `tokenizers` 0.23, whose tables are of Unicode 9: a character
 * assigned later stays as it is and is a starter. Lower case is that of Rust's char::to_lowercase, one
 * character at a time.
 */
#ifndef NL_UNICODE_H
#define NL_UNICODE_H

#include "buf.h"
#include "utf8.h"

/* In the order of their two-letter names. */
enum nl_category {
    NL_CAT_CC,
    NL_CAT_CF,
    NL_CAT_CN,
    NL_CAT_CO,
    NL_CAT_CS,
    NL_CAT_LL,
    NL_CAT_LM,
    NL_CAT_LO,
    NL_CAT_LT,
    NL_CAT_LU,
    NL_CAT_MC,
    NL_CAT_ME,
    NL_CAT_MN,
    NL_CAT_ND,
    NL_CAT_NL,
    NL_CAT_NO,
    NL_CAT_PC,
    NL_CAT_PD,
    NL_CAT_PE,
    NL_CAT_PF,
    NL_CAT_PI,
    NL_CAT_PO,
    NL_CAT_PS,
    NL_CAT_SC,
    NL_CAT_SK,
    NL_CAT_SM,
    NL_CAT_SO,
    NL_CAT_ZL,
    NL_CAT_ZP,
    NL_CAT_ZS,
    NL_CATEGORIES
};
enum { NL_CODE_POINTS = 0x110000 };

enum nl_category nl_unicode_category(uint32_t c);
bool nl_unicode_is_alphabetic(uint32_t c);
bool nl_unicode_is_space(uint32_t c);   /* White_Space */
bool nl_unicode_is_numeric(uint32_t c); /* Nd, Nl, No */
bool nl_unicode_is_word(uint32_t c);    /* \w of Rust's regexes: Alphabetic, M, Nd, Pc, joiners */
/* The i-th range of characters that Unicode 14 (PCRE2 10.40 to 10.42) does not know; false behind the last.
 */
bool nl_unicode_newer_range(size_t i, uint32_t *first, uint32_t *last);
/* Sets the bits of all characters whose category's bit is in the mask, and of the Alphabetic ones if asked
 * for. */
void nl_unicode_add_categories(uint32_t mask, bool alphabetic, uint64_t bits[NL_CODE_POINTS / 64]);

enum nl_normal_form { NL_NFC, NL_NFD, NL_NFKC, NL_NFKD };
/* Appends the normal form of valid UTF-8. */
int nl_unicode_normalize(enum nl_normal_form form, const char *text, size_t length, struct nl_buf *out,
                         struct nl_error *error);
/* True: the normal form is the text itself. False: it may be. */
bool nl_unicode_is_normal(enum nl_normal_form form, const char *text, size_t length);
void nl_unicode_lowercase(const char *text, size_t length, struct nl_buf *out);
/* The simple mappings of utf8proc: always one character. */
uint32_t nl_unicode_upper(uint32_t c);
uint32_t nl_unicode_title(uint32_t c);

#endif
