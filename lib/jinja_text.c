/* Methods of strings, and filters that share their code. Positions in strings are characters, in here they
 * are bytes. */
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

static void put_case(struct nl_jinja_run *run, uint32_t c, enum jinja_case to, struct nl_buf *out)
{
    enum { SIGMA = 0x3a3 };
    char utf8[4];
    if (c < 0x80) {
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        nl_buf_putc(out, (char)(!letter ? c : to == JINJA_LOWER ? c | 32 : c & ~32u));
    } else if (to == JINJA_LOWER ? c == SIGMA : has_long_case(c)) { /* sigma depends on its neighbours */
        nl_jinja_fail(run, NL_UNSUPPORTED, "the other case of U+%04X", (unsigned)c);
    } else if (to == JINJA_LOWER) {
        nl_unicode_lowercase(utf8, nl_utf8_put(c, utf8), out);
    } else {
        nl_buf_add(out, utf8,
                   nl_utf8_put(to == JINJA_UPPER ? nl_unicode_upper(c) : nl_unicode_title(c), utf8));
    }
}

struct jv nl_jinja_change_case(struct nl_jinja_run *run, struct jv *a)
{
    enum jinja_case first = (enum jinja_case)a[JINJA_VARIANT].integer;
    struct nl_buf made = {0};
    unsigned size;
    nl_jinja_charge(run, 1 + a[0].size / 4);
    for (uint32_t i = 0; i < a[0].size && !run->failed; i += size)
        put_case(run, nl_utf8_get(a[0].text + i, &size),
                 i && first == JINJA_CAPITALIZED ? JINJA_LOWER : first, &made);
    return nl_jv_take(run, &made);
}

/* Words begin after white space and -({[<, for the method (1) of strings where letters begin. */
struct jv nl_jinja_title(struct nl_jinja_run *run, struct jv *a)
{
    struct nl_buf made = {0};
    bool method = a[JINJA_VARIANT].integer, inside = false;
    unsigned size;
    nl_jinja_charge(run, 1 + a[0].size / 4);
    for (uint32_t i = 0; i < a[0].size && !run->failed; i += size) {
        uint32_t c = nl_utf8_get(a[0].text + i, &size);
        bool ascii = c && c < 0x80, letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        bool between = method ? !letter : nl_jinja_is_space(c) || (ascii && strchr("-({[<", (int)c));
        if (method && c >= 0x80)
            nl_jinja_fail(run, NL_UNSUPPORTED, "method 'title' of a string that is not ASCII");
        put_case(run, c, inside && !between ? JINJA_LOWER : JINJA_UPPER, &made);
        inside = !between;
    }
    return nl_jv_take(run, &made);
}

/* The argument is a string, or a failure that names `what`. */
static bool want_text(struct nl_jinja_run *run, struct jv value, const char *what)
{
    if (!jv_is(value, JV_STRING))
        nl_jinja_fail(run, NL_DATA, "%s takes a string, not a value of type %s", what,
                      nl_jv_type_name(value));
    return !run->failed;
}

static bool is_stripped(uint32_t c, struct jv chars)
{
    char utf8[4];
    if (!jv_is(chars, JV_STRING))
        return nl_jinja_is_space(c);
    return chars.size && memmem(chars.text, chars.size, utf8, nl_utf8_put(c, utf8));
}

struct jv nl_jinja_strip_ends(struct jv text, struct jv chars, unsigned sides)
{
    size_t from = 0, to = text.size;
    unsigned size;
    while (sides & JINJA_LEFT && from < to && is_stripped(nl_utf8_get(text.text + from, &size), chars))
        from += size;
    while (sides & JINJA_RIGHT && from < to) {
        size_t last = nl_utf8_back(text.text, to);
        if (!is_stripped(nl_utf8_get(text.text + last, &size), chars))
            break;
        to = last;
    }
    return jv_part(text, from, to);
}

struct jv nl_jinja_strip(struct nl_jinja_run *run, struct jv *a)
{
    if (jv_is_given(a[1]) && !want_text(run, a[1], "'strip' or 'trim'"))
        return jv_missing();
    uint64_t looks = jv_is(a[1], JV_STRING) ? (uint64_t)a[0].size * a[1].size / 256 : 0;
    nl_jinja_charge(run, 1 + a[0].size / 64 + looks);
    return run->failed ? jv_missing() : nl_jinja_strip_ends(a[0], a[1], (unsigned)a[JINJA_VARIANT].integer);
}

/* Where a part, which is not empty, is first in text[from, size) or last in text[0, from); NULL when it is
   not. Work is counted. */
static const char *find_first(struct nl_jinja_run *run, struct jv text, size_t from, struct jv part)
{
    if (!nl_jinja_charge(run, 1) || from >= text.size)
        return NULL;
    const char *found = memmem(text.text + from, text.size - from, part.text, part.size);
    size_t end = found ? (size_t)(found - text.text) : text.size;
    return nl_jinja_charge(run, 1 + (end - from) / 16) ? found : NULL;
}

static const char *find_last(struct nl_jinja_run *run, struct jv text, size_t from, struct jv part)
{
    for (size_t i = from < part.size ? 0 : from - part.size + 1; i-- > 0;)
        if (text.text[i] == part.text[0] && nl_jinja_charge(run, 1 + part.size / 64) &&
            memcmp(text.text + i, part.text, part.size) == 0)
            return text.text + i;
    nl_jinja_charge(run, 1 + from / 64);
    return NULL;
}

struct jv nl_jinja_replace(struct nl_jinja_run *run, struct jv *a)
{
    int64_t most = nl_jv_to_int(run, a[3], "'replace'", -1);
    struct jv text = a[0], old = a[1], new = a[2];
    struct nl_buf made = {0};
    size_t at = 0;
    if (!want_text(run, old, "'replace'") || !want_text(run, new, "'replace'"))
        return jv_missing();
    for (int64_t n = 0; n != most && !run->failed; n++) {
        const char *found = text.text + at;
        if (old.size)
            found = find_first(run, text, at, old);
        else if (n > 0) /* between all characters */
            found = at < text.size ? found + nl_utf8_size((unsigned char)*found) : NULL;
        if (!found)
            break;
        size_t to = (size_t)(found - text.text);
        nl_jinja_put(run, &made, jv_part(text, at, to));
        nl_jinja_put(run, &made, new);
        at = to + old.size;
    }
    nl_jinja_put(run, &made, jv_part(text, at, text.size));
    return nl_jv_take(run, &made);
}

/* startswith, endswith; of a tuple: any of it. */
static struct jv method_startswith(struct nl_jinja_run *run, struct jv *a)
{
    const struct jv_list one = {.items = &a[1], .count = 1}, *list = jv_is(a[1], JV_TUPLE) ? a[1].list : &one;
    for (size_t i = 0; i < list->count && want_text(run, list->items[i], "'startswith' or 'endswith'"); i++) {
        struct jv affix = list->items[i];
        size_t at = a[JINJA_VARIANT].integer == JINJA_RIGHT ? a[0].size - (size_t)affix.size : 0;
        if (affix.size <= a[0].size && nl_jinja_charge(run, 1 + affix.size / 64) &&
            memcmp(a[0].text + at, affix.text, affix.size) == 0)
            return jv_bool(true);
    }
    return jv_bool(false);
}

/* find, rfind, index, rindex */
enum { FIND_LAST = 1, FIND_SURELY };
static struct jv method_find(struct nl_jinja_run *run, struct jv *a)
{
    struct jv text = a[0], part = a[1];
    bool last = a[JINJA_VARIANT].integer & FIND_LAST;
    if (!want_text(run, part, "'find' or 'index'"))
        return jv_missing();
    const char *found = part.size == 0 ? text.text + (last ? text.size : 0)
                        : last         ? find_last(run, text, text.size, part)
                                       : find_first(run, text, 0, part);
    if (!found && a[JINJA_VARIANT].integer & FIND_SURELY)
        return nl_jinja_fail(run, NL_DATA, "'%s' of what is not in the string", last ? "rindex" : "index");
    return jv_int(found ? nl_jv_length(run, jv_part(text, 0, (size_t)(found - text.text))) : -1);
}

static struct jv method_count(struct nl_jinja_run *run, struct jv *a)
{
    struct jv text = a[0], part = a[1];
    int64_t n = 0;
    if (!want_text(run, part, "'count'"))
        return jv_missing();
    if (part.size == 0)
        return jv_int(nl_jv_length(run, text) + 1);
    for (const char *found; (found = find_first(run, text, 0, part)); n++)
        text = jv_part(text, (size_t)(found - text.text) + part.size, text.size);
    return jv_int(n);
}

static struct jv method_join(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[1]);
    struct nl_buf made = {0};
    struct jv item = {0};
    for (bool first = true; iterator && nl_jv_next(run, iterator, &item); first = false) {
        if (!first)
            nl_jinja_put(run, &made, a[0]);
        if (want_text(run, item, "'join'"))
            nl_jinja_put(run, &made, item);
    }
    return nl_jv_take(run, &made);
}

/* a: text, keepends; also at control characters and Unicode's line ends */
struct jv nl_jinja_splitlines(struct nl_jinja_run *run, struct jv *a)
{
    struct jv text = a[0];
    struct jv_list *list = nl_jv_list_new(run, 0);
    bool keep = nl_jv_to_int(run, a[1], "'splitlines'", 0) != 0;
    size_t from = 0;
    nl_jinja_charge(run, 1 + text.size / 4);
    for (size_t at = 0; at < text.size && !run->failed;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + at, &size);
        size_t stop = at;
        at += size;
        if (!((c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
              c == 0x2029))
            continue;
        if (c == '\r' && at < text.size && text.text[at] == '\n')
            at++;
        nl_jv_push(run, list, jv_part(text, from, keep ? at : stop));
        from = at;
    }
    if (from < text.size)
        nl_jv_push(run, list, jv_part(text, from, text.size));
    return jv_of_list(list, JV_LIST);
}

/* Between separators, `most` of them unless that is negative: words from the left, or from the right and
 * turned around in the end. */
static void split_at(struct nl_jinja_run *run, struct jv *a, int64_t most, bool right, struct jv_list *list)
{
    size_t at = 0, to = a[0].size;
    for (int64_t n = 0; n != most && !run->failed; n++) {
        const char *found = right ? find_last(run, a[0], to, a[1]) : find_first(run, a[0], at, a[1]);
        if (!found)
            break;
        size_t stop = (size_t)(found - a[0].text), start = stop + a[1].size;
        nl_jv_push(run, list, right ? jv_part(a[0], start, to) : jv_part(a[0], at, stop));
        *(right ? &to : &at) = right ? stop : start;
    }
    nl_jv_push(run, list, jv_part(a[0], at, to));
}

/* The same at white space, of which the rest is stripped after each word. */
static void split_words(struct nl_jinja_run *run, struct jv text, int64_t most, bool right,
                        struct jv_list *list)
{
    const struct jv white = {0};
    struct jv rest = nl_jinja_strip_ends(text, white, right ? JINJA_RIGHT : JINJA_LEFT);
    unsigned size;
    for (int64_t n = 0; rest.size && n != most && !run->failed; n++) {
        size_t from = 0, to = rest.size;
        while (!right && from < rest.size && !nl_jinja_is_space(nl_utf8_get(rest.text + from, &size)))
            from += size;
        while (right && to > 0 &&
               !nl_jinja_is_space(nl_utf8_get(rest.text + nl_utf8_back(rest.text, to), &size)))
            to -= size;
        nl_jv_push(run, list, right ? jv_part(rest, to, rest.size) : jv_part(rest, 0, from));
        rest = right ? nl_jinja_strip_ends(jv_part(rest, 0, to), white, JINJA_RIGHT)
                     : nl_jinja_strip_ends(jv_part(rest, from, rest.size), white, JINJA_LEFT);
    }
    if (rest.size)
        nl_jv_push(run, list, rest);
}

/* split, rsplit. a: text, separator, most cuts */
static struct jv method_split(struct nl_jinja_run *run, struct jv *a)
{
    bool right = a[JINJA_VARIANT].integer == JINJA_RIGHT;
    struct jv_list *list = nl_jv_list_new(run, 0);
    int64_t most = nl_jv_to_int(run, a[2], "'split'", -1);
    if (jv_is_given(a[1]) && want_text(run, a[1], "'split'") && a[1].size == 0)
        return nl_jinja_fail(run, NL_DATA, "'split' at an empty string");
    if (!nl_jinja_charge(run, 1 + a[0].size / 4))
        return jv_missing();
    if (jv_is_given(a[1]))
        split_at(run, a, most, right, list);
    else
        split_words(run, a[0], most, right, list);
    for (size_t i = 0, j = list->count; right && i + 1 < j; i++) {
        struct jv item = list->items[i];
        list->items[i] = list->items[--j];
        list->items[j] = item;
    }
    return jv_of_list(list, JV_LIST);
}

/* Of the fields of str.format only the plain "{}". */
static struct jv method_format(struct nl_jinja_run *run, struct jv *a)
{
    struct nl_buf made = {0};
    size_t used = 0;
    for (uint32_t i = 0; i < a[0].size && nl_jinja_charge(run, 1); i++) {
        char c = a[0].text[i], next = i + 1 < a[0].size ? a[0].text[i + 1] : '\0';
        i += c == '{' || c == '}';
        if ((c != '{' && c != '}') || next == c)
            nl_buf_putc(&made, c);
        else if (c == '}' || next != '}' || a[2].dict->count)
            nl_jinja_fail(run, NL_UNSUPPORTED, "a format string with other fields than '{}'");
        else if (used == a[1].list->count)
            nl_jinja_fail(run, NL_DATA, "not enough arguments for a format string");
        else
            nl_jv_str(run, a[1].list->items[used++], &made);
    }
    return nl_jv_take(run, &made);
}

const struct jinja_builtin nl_jinja_string_methods[] = {
    {"strip", nl_jinja_strip, "-chars", 0, JINJA_LEFT | JINJA_RIGHT, false},
    {"lstrip", nl_jinja_strip, "-chars", 0, JINJA_LEFT, false},
    {"rstrip", nl_jinja_strip, "-chars", 0, JINJA_RIGHT, false},
    {"split", method_split, "sep maxsplit", 0, JINJA_LEFT, false},
    {"rsplit", method_split, "sep maxsplit", 0, JINJA_RIGHT, false},
    {"splitlines", nl_jinja_splitlines, "keepends", 0, 0, false},
    {"startswith", method_startswith, "-prefix", 1, JINJA_LEFT, false},
    {"endswith", method_startswith, "-suffix", 1, JINJA_RIGHT, false},
    {"upper", nl_jinja_change_case, "", 0, JINJA_UPPER, false},
    {"lower", nl_jinja_change_case, "", 0, JINJA_LOWER, false},
    {"title", nl_jinja_title, "", 0, 1, false},
    {"capitalize", nl_jinja_change_case, "", 0, JINJA_CAPITALIZED, false},
    {"replace", nl_jinja_replace, "-old -new -count", 2, 0, false},
    {"format", method_format, "*", 0, 0, false},
    {"join", method_join, "-iterable", 1, 0, false},
    {"find", method_find, "-sub", 1, 0, false},
    {"rfind", method_find, "-sub", 1, FIND_LAST, false},
    {"index", method_find, "-sub", 1, FIND_SURELY, false},
    {"rindex", method_find, "-sub", 1, FIND_LAST | FIND_SURELY, false},
    {"count", method_count, "-sub", 1, 0, false},
    {0},
};
