/*
 * unicode_sets.h: more sets of characters. What tokenizers 0.23 takes for punctuation, a mark or a control
 * character, and where it ends a grapheme cluster: its libraries are of several Unicode versions, and the ids
 * depend on them; and the properties and scripts that its regexes know by name. The tables are made by
 * tests/reference/make_unicode_sets.py.
 */
#ifndef NL_UNICODE_SETS_H
#define NL_UNICODE_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unicode_tables.h"

bool nl_reference_is_punctuation(uint32_t c); /* of Punctuation and BertPreTokenizer */
bool nl_reference_is_mark(uint32_t c);        /* of StripAccents */
bool nl_reference_is_nonspacing(uint32_t c);  /* of BertNormalizer's strip_accents, after NFD */
bool nl_reference_is_control(uint32_t c);     /* of BertNormalizer's clean_text: what it drops */
enum { NL_ANY_SCRIPT = -1 };
/* UnicodeScripts: a number for each script, Hiragana and Katakana being Han; NL_ANY_SCRIPT joins all. */
int nl_reference_script(uint32_t c);
/* The end of the extended grapheme cluster (UAX 29) that begins at `at` < length of valid UTF-8. */
size_t nl_reference_grapheme(const char *text, size_t length, size_t at);

/* The ranges of a property or script of the regexes, by its name in lower case without blanks, '-' and '_';
 * NULL when there is none. */
const struct nl_unicode_range *nl_unicode_find_set(const char *name, size_t *count);

/* The tables; for unicode_sets.c and unicode_reference.c only. */
struct nl_unicode_run {
    uint32_t first, last;
    int kind;
};
struct nl_unicode_set { /* sorted by name */
    const char *name;
    uint32_t first, count; /* in nl_unicode_set_ranges */
};
enum nl_grapheme {
    NL_GRAPHEME_CONTROL,
    NL_GRAPHEME_EXTEND, /* these three extend: EXTEND and CONJUNCT_EXTEND are Extend, JOINER is U+200D */
    NL_GRAPHEME_JOINER,
    NL_GRAPHEME_SPACING,
    NL_GRAPHEME_PREPEND,
    NL_GRAPHEME_L,
    NL_GRAPHEME_V,
    NL_GRAPHEME_T,
    NL_GRAPHEME_REGIONAL,
    NL_GRAPHEME_PICTOGRAPH,
    NL_GRAPHEME_CONSONANT,
    NL_GRAPHEME_LINKER,
    NL_GRAPHEME_CONJUNCT_EXTEND,
    /* Not in the table. */
    NL_GRAPHEME_LV,
    NL_GRAPHEME_LVT,
    NL_GRAPHEME_OTHER,
};
extern const struct nl_unicode_range nl_reference_punctuation[], nl_reference_marks[],
    nl_reference_nonspacing[], nl_reference_control[], nl_unicode_set_ranges[];
extern const size_t nl_reference_n_punctuation, nl_reference_n_marks, nl_reference_n_nonspacing,
    nl_reference_n_control;
extern const struct nl_unicode_run nl_reference_scripts[], nl_reference_graphemes[];
extern const size_t nl_reference_n_scripts, nl_reference_n_graphemes;
extern const struct nl_unicode_set nl_unicode_sets[];
extern const size_t nl_unicode_n_sets;

#endif
