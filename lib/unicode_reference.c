/* Characters as tokenizers 0.23 sorts them. See unicode_sets.h. */
#include <stdlib.h>
#include <string.h>

#include "unicode.h"
#include "unicode_sets.h"

static int kind_of(const struct nl_unicode_run *runs, size_t count, uint32_t c, int otherwise)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (runs[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && runs[low].first <= c ? runs[low].kind : otherwise;
}

bool nl_reference_is_punctuation(uint32_t c)
{
    return nl_unicode_in_ranges(nl_reference_punctuation, nl_reference_n_punctuation, c);
}

bool nl_reference_is_mark(uint32_t c)
{
    return c >= 0x300 && nl_unicode_in_ranges(nl_reference_marks, nl_reference_n_marks, c);
}

bool nl_reference_is_nonspacing(uint32_t c)
{
    return c >= 0x300 && nl_unicode_in_ranges(nl_reference_nonspacing, nl_reference_n_nonspacing, c);
}

bool nl_reference_is_control(uint32_t c)
{
    return nl_unicode_in_ranges(nl_reference_control, nl_reference_n_control, c);
}

int nl_reference_script(uint32_t c)
{
    return kind_of(nl_reference_scripts, nl_reference_n_scripts, c, NL_ANY_SCRIPT);
}

static enum nl_grapheme grapheme_class(uint32_t c)
{
    if (c < 0xa9) {
        bool control = c < ' ' || (c >= 0x7f && c < 0xa0);
        return control ? NL_GRAPHEME_CONTROL : NL_GRAPHEME_OTHER;
    }
    if (c >= 0xac00 && c <= 0xd7a3)
        return (c - 0xac00) % 28 == 0 ? NL_GRAPHEME_LV : NL_GRAPHEME_LVT;
    return (enum nl_grapheme)kind_of(nl_reference_graphemes, nl_reference_n_graphemes, c, NL_GRAPHEME_OTHER);
}

/* What the rules of UAX 29 need to know of the cluster so far. */
struct cluster {
    uint32_t last;
    enum nl_grapheme before;
    bool picture;          /* Extended_Pictographic Extend* (then a joiner) */
    bool conjunct, linked; /* Consonant [Extend Linker]*, with a Linker */
    bool odd_regional;     /* an odd number of regional indicators */
};

static bool extends(enum nl_grapheme c)
{
    return c == NL_GRAPHEME_EXTEND || c == NL_GRAPHEME_JOINER || c == NL_GRAPHEME_LINKER ||
           c == NL_GRAPHEME_CONJUNCT_EXTEND;
}

static bool hangul_joins(enum nl_grapheme a, enum nl_grapheme b)
{
    switch (a) {
    case NL_GRAPHEME_L:
        return b == NL_GRAPHEME_L || b == NL_GRAPHEME_V || b == NL_GRAPHEME_LV || b == NL_GRAPHEME_LVT;
    case NL_GRAPHEME_V:
    case NL_GRAPHEME_LV:
        return b == NL_GRAPHEME_V || b == NL_GRAPHEME_T;
    case NL_GRAPHEME_T:
    case NL_GRAPHEME_LVT:
        return b == NL_GRAPHEME_T;
    default:
        return false;
    }
}

/* Whether c, of class `now`, goes on the cluster. */
static bool joins(const struct cluster *cluster, uint32_t c, enum nl_grapheme now)
{
    if (cluster->last == '\r' && c == '\n')
        return true;
    if (cluster->before == NL_GRAPHEME_CONTROL || now == NL_GRAPHEME_CONTROL)
        return false;
    if (extends(now) || now == NL_GRAPHEME_SPACING || cluster->before == NL_GRAPHEME_PREPEND)
        return true;
    if (now == NL_GRAPHEME_CONSONANT && cluster->conjunct && cluster->linked)
        return true;
    if (now == NL_GRAPHEME_PICTOGRAPH && cluster->picture && cluster->before == NL_GRAPHEME_JOINER)
        return true;
    if (now == NL_GRAPHEME_REGIONAL && cluster->before == NL_GRAPHEME_REGIONAL && cluster->odd_regional)
        return true;
    return hangul_joins(cluster->before, now);
}

static void take(struct cluster *cluster, uint32_t c, enum nl_grapheme now)
{
    cluster->last = c;
    cluster->before = now;
    cluster->odd_regional = now == NL_GRAPHEME_REGIONAL && !cluster->odd_regional;
    cluster->picture = now == NL_GRAPHEME_PICTOGRAPH || (cluster->picture && extends(now));
    if (now == NL_GRAPHEME_CONSONANT) {
        cluster->conjunct = true;
        cluster->linked = false;
    } else {
        bool goes_on =
            now == NL_GRAPHEME_LINKER || now == NL_GRAPHEME_CONJUNCT_EXTEND || now == NL_GRAPHEME_JOINER;
        cluster->conjunct = cluster->conjunct && goes_on;
        cluster->linked = cluster->conjunct && (cluster->linked || now == NL_GRAPHEME_LINKER);
    }
}

size_t nl_reference_grapheme(const char *text, size_t length, size_t at)
{
    struct cluster cluster = {0};
    unsigned size;
    uint32_t c = nl_utf8_get(text + at, &size);
    take(&cluster, c, grapheme_class(c));
    for (at += size; at < length; at += size) {
        c = nl_utf8_get(text + at, &size);
        enum nl_grapheme now = grapheme_class(c);
        if (!joins(&cluster, c, now))
            break;
        take(&cluster, c, now);
    }
    return at;
}

static int compare(const void *name, const void *set)
{
    return strcmp(name, ((const struct nl_unicode_set *)set)->name);
}

const struct nl_unicode_range *nl_unicode_find_set(const char *name, size_t *count)
{
    const struct nl_unicode_set *set =
        bsearch(name, nl_unicode_sets, nl_unicode_n_sets, sizeof *nl_unicode_sets, compare);
    if (!set)
        return NULL;
    *count = set->count;
    return nl_unicode_set_ranges + set->first;
}
