#include "charset.h"

#include <stdlib.h>

#include "unicode.h"

struct nl_charset *nl_charset_new(struct nl_error *error)
{
    struct nl_charset *set = calloc(1, sizeof *set);
    if (!set)
        nl_fail_memory(error, "character class");
    return set;
}

static bool has(const struct nl_charset *set, uint32_t c)
{
    return set->bits[c / 64] >> c % 64 & 1;
}

void nl_charset_add_range(struct nl_charset *set, uint32_t first, uint32_t last)
{
    for (uint32_t c = first; c <= last && c < NL_CODE_POINTS; c++)
        set->bits[c / 64] |= 1ull << c % 64;
}

void nl_charset_add_categories(struct nl_charset *set, uint32_t mask, bool alphabetic)
{
    nl_unicode_add_categories(mask, alphabetic, set->bits);
}

void nl_charset_complement(struct nl_charset *set)
{
    for (size_t i = 0; i < NL_CODE_POINTS / 64; i++)
        set->bits[i] = ~set->bits[i];
    for (size_t i = 0xd800 / 64; i < 0xe000 / 64; i++)
        set->bits[i] = 0;
}

void nl_charset_union(struct nl_charset *set, const struct nl_charset *other)
{
    for (size_t i = 0; i < NL_CODE_POINTS / 64; i++)
        set->bits[i] |= other->bits[i];
}

void nl_charset_intersect(struct nl_charset *set, const struct nl_charset *other)
{
    for (size_t i = 0; i < NL_CODE_POINTS / 64; i++)
        set->bits[i] &= other->bits[i];
}

void nl_charset_print(const struct nl_charset *set, struct nl_buf *out)
{
    for (uint32_t c = 0; c < NL_CODE_POINTS; c++) {
        if (!set->bits[c / 64]) {
            c |= 63;
            continue;
        }
        /* A range may not begin or end on a surrogate, which PCRE2 refuses. */
        if (!has(set, c) || (c >= 0xd800 && c < 0xe000))
            continue;
        uint32_t first = c;
        while (c + 1 < NL_CODE_POINTS && has(set, c + 1) && c + 1 != 0xd800)
            c++;
        nl_buf_printf(out, c == first ? "\\x{%x}" : "\\x{%x}-\\x{%x}", (unsigned)first, (unsigned)c);
    }
}
