#include "tok_scan_inline.h"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS       "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define HEAD         "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define TAIL         "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define PREFIX       "[^\\r\\n\\p{L}\\p{N}]?"

static const char *const patterns[TOK_SCANNERS] = {
    [TOK_SCAN_NONE] = "",
    [TOK_SCAN_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    [TOK_SCAN_CL100K] = CONTRACTIONS "|" PREFIX "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS,
    [TOK_SCAN_QWEN2] = CONTRACTIONS "|" PREFIX "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS,
    [TOK_SCAN_O200K] = PREFIX "[" HEAD "*[" TAIL "+" CONTRACTIONS "?|" PREFIX "[" HEAD "+[" TAIL
                              "*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS,
};

#define TEN(x) x, x, x, x, x, x, x, x, x, x
/* clang-format off */
const uint8_t nl_tok_scan_ascii[128] = {
    SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST,
    SCAN_REST, SCAN_SPACE, SCAN_RETURN, SCAN_SPACE, SCAN_SPACE, SCAN_RETURN, SCAN_REST, SCAN_REST,
    TEN(SCAN_REST), SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST,
    SCAN_SPACE, TEN(SCAN_REST), SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST,
    TEN(SCAN_DIGIT), SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST,
    TEN(SCAN_UPPER), TEN(SCAN_UPPER), SCAN_UPPER, SCAN_UPPER, SCAN_UPPER, SCAN_UPPER, SCAN_UPPER, SCAN_UPPER,
    SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST,
    TEN(SCAN_LOWER), TEN(SCAN_LOWER), SCAN_LOWER, SCAN_LOWER, SCAN_LOWER, SCAN_LOWER, SCAN_LOWER, SCAN_LOWER,
    SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST, SCAN_REST,
};

#define CATEGORIES(alphabetic)                                                                               \
    [NL_CAT_CC + alphabetic] = SCAN_REST, [NL_CAT_CF + alphabetic] = SCAN_REST,                              \
    [NL_CAT_CN + alphabetic] = SCAN_REST, [NL_CAT_CO + alphabetic] = SCAN_REST,                              \
    [NL_CAT_CS + alphabetic] = SCAN_REST, [NL_CAT_LL + alphabetic] = SCAN_LOWER,                             \
    [NL_CAT_LM + alphabetic] = SCAN_OTHER, [NL_CAT_LO + alphabetic] = SCAN_OTHER,                            \
    [NL_CAT_LT + alphabetic] = SCAN_UPPER, [NL_CAT_LU + alphabetic] = SCAN_UPPER,                            \
    [NL_CAT_MC + alphabetic] = SCAN_MARK, [NL_CAT_ME + alphabetic] = SCAN_MARK,                              \
    [NL_CAT_MN + alphabetic] = SCAN_MARK, [NL_CAT_ND + alphabetic] = SCAN_DIGIT,                             \
    [NL_CAT_NL + alphabetic] = SCAN_DIGIT, [NL_CAT_NO + alphabetic] = SCAN_DIGIT,                            \
    [NL_CAT_PC + alphabetic] = SCAN_REST, [NL_CAT_PD + alphabetic] = SCAN_REST,                              \
    [NL_CAT_PE + alphabetic] = SCAN_REST, [NL_CAT_PF + alphabetic] = SCAN_REST,                              \
    [NL_CAT_PI + alphabetic] = SCAN_REST, [NL_CAT_PO + alphabetic] = SCAN_REST,                              \
    [NL_CAT_PS + alphabetic] = SCAN_REST, [NL_CAT_SC + alphabetic] = SCAN_REST,                              \
    [NL_CAT_SK + alphabetic] = SCAN_REST, [NL_CAT_SM + alphabetic] = SCAN_REST,                              \
    [NL_CAT_SO + alphabetic] = SCAN_REST, [NL_CAT_ZL + alphabetic] = SCAN_SPACE,                             \
    [NL_CAT_ZP + alphabetic] = SCAN_SPACE, [NL_CAT_ZS + alphabetic] = SCAN_SPACE
const uint8_t nl_tok_scan_categories[64] = {CATEGORIES(0), CATEGORIES(32)};
/* clang-format on */

enum tok_scanner nl_tok_scanner(const char *pattern, size_t size)
{
    for (enum tok_scanner i = TOK_SCAN_GPT2; i < TOK_SCANNERS; i++)
        if (strlen(patterns[i]) == size && memcmp(patterns[i], pattern, size) == 0)
            return i;
    return TOK_SCAN_NONE;
}

const char *nl_tok_scanner_pattern(enum tok_scanner scanner)
{
    return patterns[scanner];
}

size_t nl_tok_scan(enum tok_scanner scanner, const char *text, size_t at, size_t length)
{
    return scan_with(scanner, text, at, length);
}
