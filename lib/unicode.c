#include "unicode.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "unicode_tables.h"

static unsigned properties(uint32_t c)
{
    return c < NL_CODE_POINTS ? nl_unicode_blocks[nl_unicode_index[c >> 8]][c & 0xff] : NL_CAT_CN;
}

enum nl_category nl_unicode_category(uint32_t c)
{
    return (enum nl_category)(properties(c) & 0x1f);
}

bool nl_unicode_is_alphabetic(uint32_t c)
{
    return properties(c) & 0x20;
}

bool nl_unicode_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    unsigned category = nl_unicode_category(c);
    return category == NL_CAT_ZS || category == NL_CAT_ZL || category == NL_CAT_ZP || c == 0x85;
}

bool nl_unicode_is_numeric(uint32_t c)
{
    unsigned category = nl_unicode_category(c);
    return category >= NL_CAT_ND && category <= NL_CAT_NO;
}

bool nl_unicode_is_word(uint32_t c)
{
    unsigned category = nl_unicode_category(c);
    return nl_unicode_is_alphabetic(c) || (category >= NL_CAT_MC && category <= NL_CAT_ND) ||
           category == NL_CAT_PC || c == 0x200c || c == 0x200d;
}

bool nl_unicode_in_ranges(const struct nl_unicode_range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= c;
}

bool nl_unicode_newer_range(size_t i, uint32_t *first, uint32_t *last)
{
    if (i >= nl_unicode_n_newer)
        return false;
    *first = nl_unicode_newer[i].first;
    *last = nl_unicode_newer[i].last;
    return true;
}

/* Most blocks are alike: each kind is looked through once. */
void nl_unicode_add_categories(uint32_t mask, bool alphabetic, uint64_t bits[NL_CODE_POINTS / 64])
{
    uint64_t kinds[256][4];
    bool known[256] = {false};
    for (uint32_t block = 0; block < NL_CODE_POINTS / 256; block++) {
        unsigned kind = nl_unicode_index[block];
        if (!known[kind]) {
            memset(kinds[kind], 0, sizeof kinds[kind]);
            for (unsigned c = 0; c < 256; c++) {
                unsigned found = nl_unicode_blocks[kind][c];
                if (mask >> (found & 0x1f) & 1 || (alphabetic && found & 0x20))
                    kinds[kind][c / 64] |= 1ull << c % 64;
            }
            known[kind] = true;
        }
        for (unsigned word = 0; word < 4; word++)
            bits[4 * block + word] |= kinds[kind][word];
    }
}

/* Appends the normal form of a run that holds no inert character. */
static int normalize_run(utf8proc_option_t options, const char *text, size_t length, struct nl_buf *out,
                         struct nl_error *error)
{
    if (length > (size_t)PTRDIFF_MAX / 32)
        return nl_fail_memory(error, "normalized text");
    ptrdiff_t size =
        utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, NULL, 0, options);
    if (size < 0)
        return nl_fail(error, NL_DATA, "cannot normalize: %s", utf8proc_errmsg(size));
    int32_t *points = malloc(((size_t)size + 1) * sizeof *points);
    if (!points)
        return nl_fail_memory(error, "normalized text");
    utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, points, size, options);
    size = utf8proc_normalize_utf32(points, size, options);
    for (ptrdiff_t i = 0; i < size; i++) {
        char bytes[4];
        nl_buf_add(out, bytes, nl_utf8_put((uint32_t)points[i], bytes));
    }
    free(points);
    return 0;
}

/* Whether a character is left alone and never joins the one before it: every form leaves ASCII so; NFC, all
 * below U+0300 and the ranges that much text is of. */
static bool stays(enum nl_normal_form form, uint32_t c)
{
    return c < 0x80 || (form == NL_NFC && (c < 0x300 || (c >= 0x400 && c <= 0x482) ||
                                           (c >= 0x2002 && c <= 0x206f) || (c >= 0x3041 && c <= 0x3096) ||
                                           (c >= 0x30a1 && c <= 0x30fa) || (c >= 0x4e00 && c <= 0x9fff)));
}

/* The first character from `at` on that does not stay; `length` when there is none. *previous: the one before
 * it, or `at`. */
static size_t skip_staying(enum nl_normal_form form, const char *text, size_t at, size_t length,
                           size_t *previous)
{
    unsigned size;
    for (*previous = at; at < length; at += size) {
        uint64_t eight;
        while (length - at >= 8 && (memcpy(&eight, text + at, 8), !(eight & 0x8080808080808080u))) {
            at += 8;
            *previous = at - 1;
        }
        if (at == length || !stays(form, nl_utf8_get(text + at, &size)))
            return at;
        *previous = at;
    }
    return length;
}

bool nl_unicode_is_normal(enum nl_normal_form form, const char *text, size_t length)
{
    size_t previous;
    return skip_staying(form, text, 0, length, &previous) == length;
}

int nl_unicode_normalize(enum nl_normal_form form, const char *text, size_t length, struct nl_buf *out,
                         struct nl_error *error)
{
    static const utf8proc_option_t options[] = {
        [NL_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [NL_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [NL_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [NL_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    /* Only what does not stay needs work, each stretch with the character before it, which a mark may join.
     */
    size_t done = 0, previous, at;
    while ((at = skip_staying(form, text, done, length, &previous)) < length) {
        unsigned size;
        uint32_t c;
        nl_buf_add(out, text + done, previous - done);
        size_t start = previous, end = at;
        while (end < length && !stays(form, c = nl_utf8_get(text + end, &size))) {
            /* utf8proc (2.8) takes U+11A7 for a final consonant of Hangul; it is none. */
            if (c == 0x11a7 || (c > 0x700 && nl_unicode_in_ranges(nl_unicode_inert, nl_unicode_n_inert, c))) {
                if (normalize_run(options[form], text + start, end - start, out, error) != 0)
                    return -1;
                nl_buf_add(out, text + end, size);
                start = end + size;
            }
            end += size;
        }
        if (normalize_run(options[form], text + start, end - start, out, error) != 0)
            return -1;
        done = end;
    }
    nl_buf_add(out, text + done, length - done);
    return nl_buf_check(out, "normalized text", error);
}

static uint32_t lower(uint32_t c)
{
    size_t low = 0, high = nl_unicode_n_lower;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (nl_unicode_lower[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == nl_unicode_n_lower || nl_unicode_lower[low].first > c)
        return c;
    const struct nl_unicode_lower *run = &nl_unicode_lower[low];
    return (c - run->first) % (uint32_t)run->stride ? c : (uint32_t)((int32_t)c + run->delta);
}

void nl_unicode_lowercase(const char *text, size_t length, struct nl_buf *out)
{
    for (size_t at = 0; at < length;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text + at, &size);
        at += size;
        char bytes[4];
        if (c < 0x80) {
            nl_buf_putc(out, (char)(c - 'A' < 26 ? c + 32 : c));
        } else if (c == 0x130) {
            nl_buf_puts(out, "i\xcc\x87"); /* the one character whose lower case is two */
        } else {
            nl_buf_add(out, bytes, nl_utf8_put(lower(c), bytes));
        }
    }
}

uint32_t nl_unicode_upper(uint32_t c)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
}

uint32_t nl_unicode_title(uint32_t c)
{
    return (uint32_t)utf8proc_totitle((utf8proc_int32_t)c);
}
