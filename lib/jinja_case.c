/* Methods of strings that look at the kind of each character. */
#include "jinja_value.h"
#include "unicode.h"

bool nl_jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) ||
           (c >= 0x80 && nl_unicode_is_space(c)); /* Python counts the four separators in */
}

/* Whose upper or title case is more than one character. */
static bool has_long_case(uint32_t c)
{
    static const uint16_t ranges[][2] = {
        {0xdf, 0xdf},   {0x149, 0x149},   {0x1f0, 0x1f0},   {0x390, 0x390},   {0x3b0, 0x3b0},
        {0x587, 0x587}, {0x1e96, 0x1e9a}, {0x1f50, 0x1f56}, {0x1f80, 0x1ffc}, {0xfb00, 0xfb17}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

int nl_jinja_put_case(struct nl_jinja_run *run, uint32_t c, enum jinja_case to, struct nl_buf *out)
{
    enum { SIGMA = 0x3a3 };
    char utf8[4];
    if (c < 0x80) {
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        nl_buf_putc(out, (char)(!letter ? c : to == JINJA_LOWER ? c | 32 : c & ~32u));
        return 0;
    }
    if (to == JINJA_LOWER ? c == SIGMA
                          : has_long_case(c)) /* the lower case of sigma depends on its neighbours */
        return jinja_fail(run, NL_UNSUPPORTED, "the other case of U+%04X", (unsigned)c);
    if (to == JINJA_LOWER)
        nl_unicode_lowercase(utf8, nl_utf8_put(c, utf8), out);
    else
        nl_buf_add(out, utf8,
                   nl_utf8_put(to == JINJA_UPPER ? nl_unicode_upper(c) : nl_unicode_title(c), utf8));
    return 0;
}

/* The first character in one case, the others in another. */
static int change_case(struct nl_jinja_run *run, struct jv text, enum jinja_case first,
                       enum jinja_case others, struct jv *out)
{
    struct nl_buf made = {0};
    int result = nl_jinja_charge(run, 1 + text.size / 4);
    for (uint32_t i = 0; i < text.size && result == 0;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        result = nl_jinja_put_case(run, c, i ? others : first, &made);
        i += size;
    }
    result = nl_jv_take(run, &made, result, out);
    out->safe = text.safe;
    return result;
}

int nl_jinja_upper(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return change_case(run, a[0], JINJA_UPPER, JINJA_UPPER, out);
}

int nl_jinja_lower(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return change_case(run, a[0], JINJA_LOWER, JINJA_LOWER, out);
}

int nl_jinja_capitalize(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return change_case(run, a[0], JINJA_TITLE, JINJA_LOWER, out);
}

int nl_jinja_title(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct nl_buf made = {0};
    bool inside = false;
    int result = nl_jinja_charge(run, 1 + a[0].size / 4);
    for (uint32_t i = 0; i < a[0].size && result == 0; i++) {
        unsigned char c = (unsigned char)a[0].text[i];
        if (c >= 0x80)
            result = jinja_fail(run, NL_UNSUPPORTED, "method 'title' of a string that is not ASCII");
        else
            result = nl_jinja_put_case(run, c, inside ? JINJA_LOWER : JINJA_UPPER, &made);
        inside = (c | 32) >= 'a' && (c | 32) <= 'z';
    }
    return nl_jv_take(run, &made, result, out);
}

static int pad(struct nl_jinja_run *run, struct jv *a, int side, struct jv *out)
{
    int64_t width, length;
    struct jv fill = jv_is(a[2], JV_MISSING) ? jv_string(" ", 1) : a[2];
    if (nl_jv_to_int(run, a[1], "a width", &width) != 0 || nl_jv_length(run, a[0], &length) != 0)
        return -1;
    if (!jv_is(fill, JV_STRING) || fill.size == 0 || nl_utf8_size((unsigned char)fill.text[0]) != fill.size)
        return jinja_fail(run, NL_DATA, "a fill that is not one character");
    if (width > JINJA_MOST_OUTPUT / 4)
        return jinja_fail(run, NL_DATA, "the template makes a string that is too long");
    int64_t missing = width > length ? width - length : 0;
    /* as CPython rounds: the odd one goes left where the width is odd */
    int64_t left = side == 0 ? missing / 2 + (missing & width & 1) : side > 0 ? missing : 0;
    struct nl_buf made = {0};
    for (int64_t i = 0; i < left; i++)
        nl_buf_add(&made, fill.text, fill.size);
    nl_buf_add(&made, a[0].text, a[0].size);
    for (int64_t i = left; i < missing; i++)
        nl_buf_add(&made, fill.text, fill.size);
    return nl_jv_take(run, &made, nl_jinja_charge(run, 1 + (uint64_t)missing / 4), out);
}

int nl_jinja_center(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return pad(run, a, 0, out);
}

int nl_jinja_ljust(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return pad(run, a, -1, out);
}

int nl_jinja_rjust(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return pad(run, a, 1, out);
}

int nl_jinja_zfill(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool sign = a[0].size && (a[0].text[0] == '-' || a[0].text[0] == '+');
    struct jv args[3] = {a[0], a[1], jv_string("0", 1)}, digits;
    if (!sign)
        return pad(run, args, 1, out);
    args[0] = jv_string(a[0].text + 1, a[0].size - 1);
    if (jv_is_integral(a[1]) && a[1].integer > INT64_MIN)
        args[1] = jv_int(a[1].integer - 1);
    return pad(run, args, 1, &digits) != 0 ? -1 : nl_jv_concat(run, jv_string(a[0].text, 1), digits, out);
}

enum class { CLASS_ALNUM, CLASS_ALPHA, CLASS_DECIMAL, CLASS_DIGIT, CLASS_NUMERIC, CLASS_SPACE };

/* 1, 0; -1 where Python's tables would be needed. */
static int is_of(uint32_t c, enum class class)
{
    enum nl_category category = nl_unicode_category(c);
    bool letter = category >= NL_CAT_LL && category <= NL_CAT_LU, decimal = category == NL_CAT_ND;
    bool number = nl_unicode_is_numeric(c);
    switch (class) {
    case CLASS_ALNUM:
        return letter || number;
    case CLASS_ALPHA:
        return letter;
    case CLASS_DECIMAL:
        return decimal;
    case CLASS_SPACE:
        return nl_jinja_is_space(c);
    default:
        return decimal ? 1 : c < 0x80 ? 0 : class == CLASS_DIGIT && !number ? 0 : -1;
    }
}

static int all_are(struct nl_jinja_run *run, struct jv text, enum class class, struct jv *out)
{
    bool all = text.size > 0;
    for (uint32_t i = 0; i < text.size && all;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        int is = is_of(c, class);
        if (is < 0)
            return jinja_fail(run, NL_UNSUPPORTED, "asking whether U+%04X is a digit", (unsigned)c);
        all = is;
        i += size;
    }
    *out = jv_bool(all);
    return nl_jinja_charge(run, 1 + text.size / 4);
}

int nl_jinja_isalnum(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return all_are(run, a[0], CLASS_ALNUM, out);
}

int nl_jinja_isalpha(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return all_are(run, a[0], CLASS_ALPHA, out);
}

int nl_jinja_isdecimal(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return all_are(run, a[0], CLASS_DECIMAL, out);
}

int nl_jinja_isdigit(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return all_are(run, a[0], CLASS_DIGIT, out);
}

int nl_jinja_isnumeric(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return all_are(run, a[0], CLASS_NUMERIC, out);
}

int nl_jinja_isspace(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return all_are(run, a[0], CLASS_SPACE, out);
}

int nl_jinja_isascii(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool ascii = true;
    for (uint32_t i = 0; i < a[0].size && ascii; i++)
        ascii = (unsigned char)a[0].text[i] < 0x80;
    *out = jv_bool(ascii);
    return nl_jinja_charge(run, 1 + a[0].size / 64);
}

int nl_jinja_case_test(struct nl_jinja_run *run, struct jv text, bool upper, bool *out)
{
    bool cased = false, other = false;
    for (uint32_t i = 0; i < text.size && !other;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        enum nl_category category = nl_unicode_category(c);
        /* of these some have a case */
        if (c >= 0x80 &&
            (category == NL_CAT_LM || category == NL_CAT_NL || category == NL_CAT_MN || c == 0xaa ||
             c == 0xba || (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f189)))
            return jinja_fail(run, NL_UNSUPPORTED, "asking for the case of U+%04X", (unsigned)c);
        cased = cased || category == (upper ? NL_CAT_LU : NL_CAT_LL);
        other = category == NL_CAT_LT || category == (upper ? NL_CAT_LL : NL_CAT_LU);
        i += size;
    }
    *out = cased && !other;
    return nl_jinja_charge(run, 1 + text.size / 4);
}

int nl_jinja_islower(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool is = false;
    int result = nl_jinja_case_test(run, a[0], false, &is);
    *out = jv_bool(is);
    return result;
}

int nl_jinja_isupper(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool is = false;
    int result = nl_jinja_case_test(run, a[0], true, &is);
    *out = jv_bool(is);
    return result;
}
