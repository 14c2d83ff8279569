/* Methods of strings. Positions in strings are characters, in here they are bytes. */
#include "jinja_value.h"
#include "unicode.h"

static size_t characters(struct jv text)
{
    size_t n = 0;
    for (uint32_t i = 0; i < text.size; i++)
        n += ((unsigned char)text.text[i] & 0xc0) != 0x80;
    return n;
}

int nl_jinja_want_text(struct nl_jinja_run *run, struct jv value, const char *method)
{
    if (jv_is(value, JV_STRING))
        return 0;
    return jinja_fail(run, NL_DATA, "'%s' takes a string, not a value of type %s", method,
                      nl_jv_type_name(value));
}

static bool is_stripped(uint32_t c, struct jv chars)
{
    if (!jv_is(chars, JV_STRING))
        return nl_jinja_is_space(c);
    char utf8[4];
    unsigned size = nl_utf8_put(c, utf8);
    return chars.size && memmem(chars.text, chars.size, utf8, size);
}

static int strip(struct nl_jinja_run *run, struct jv text, struct jv chars, unsigned sides, struct jv *out)
{
    size_t from = 0, to = text.size;
    unsigned size;
    if (!jv_is(chars, JV_MISSING) && !jv_is(chars, JV_NONE) && nl_jinja_want_text(run, chars, "strip") != 0)
        return -1;
    uint64_t looks = jv_is(chars, JV_STRING) ? (uint64_t)text.size * chars.size / 256 : 0;
    if (nl_jinja_charge(run, 1 + text.size / 64 + looks) != 0)
        return -1;
    while (sides & 1 && from < to && is_stripped(nl_utf8_get(text.text + from, &size), chars))
        from += size;
    while (sides & 2 && from < to) {
        size_t last = nl_utf8_back(text.text, to);
        if (!is_stripped(nl_utf8_get(text.text + last, &size), chars))
            break;
        to = last;
    }
    *out = jv_part(text, from, to);
    out->safe = text.safe;
    return 0;
}

int nl_jinja_strip(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return strip(run, a[0], a[1], 3, out);
}

static int lstrip(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return strip(run, a[0], a[1], 1, out);
}

int nl_jinja_rstrip(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return strip(run, a[0], a[1], 2, out);
}

int nl_jinja_optional_int(struct nl_jinja_run *run, struct jv value, const char *what, int64_t otherwise,
                          int64_t *out)
{
    *out = otherwise;
    return jv_is(value, JV_MISSING) ? 0 : nl_jv_to_int(run, value, what, out);
}

int nl_jinja_replace(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t most;
    struct jv text = a[0], old = a[1], new = a[2];
    if (nl_jinja_want_text(run, old, "replace") != 0 || nl_jinja_want_text(run, new, "replace") != 0 ||
        nl_jinja_optional_int(run, a[3], "'replace'", -1, &most) != 0)
        return -1;
    struct nl_buf made = {0};
    size_t at = 0;
    for (int64_t n = 0; n != most; n++) {
        const char *found = text.text + at;
        if (old.size)
            found = at < text.size ? memmem(text.text + at, text.size - at, old.text, old.size) : NULL;
        else if (n > 0 && at < text.size) /* between all characters */
            found += nl_utf8_size((unsigned char)*found);
        else if (n > 0)
            found = NULL;
        if (!found)
            break;
        size_t to = (size_t)(found - text.text);
        nl_buf_add(&made, text.text + at, to - at);
        nl_buf_add(&made, new.text, new.size);
        at = to + old.size;
        if (nl_jinja_charge(run, 1 + new.size / 64) != 0 || made.size > JINJA_MOST_OUTPUT)
            break;
    }
    nl_buf_add(&made, text.text + at, text.size - at);
    return nl_jv_take(run, &made, nl_jinja_charge_search(run, text.size, old.size), out);
}

/* Where a part is last in text[0, to); NULL when it is not. `part` is not empty. */
const char *nl_jinja_find_last(struct jv text, size_t to, struct jv part)
{
    for (size_t i = to < part.size ? 0 : to - part.size + 1; i-- > 0;)
        if (text.text[i] == part.text[0] && memcmp(text.text + i, part.text, part.size) == 0)
            return text.text + i;
    return NULL;
}

/* Looking from the end compares the part at each place. */
int nl_jinja_charge_last(struct nl_jinja_run *run, struct jv text, struct jv part)
{
    return nl_jinja_charge(run, (uint64_t)text.size * part.size / 256);
}

/* The part of a[0] that the arguments from a[2] name; 0: none, as its start lies behind the end. */
static int narrow(struct nl_jinja_run *run, struct jv *a, struct jv *text, size_t *skipped)
{
    int64_t bounds[2], length = (int64_t)characters(a[0]);
    for (int i = 0; i < 2; i++) {
        bounds[i] = i ? length : 0;
        if (!jv_is(a[2 + i], JV_MISSING) && !jv_is(a[2 + i], JV_NONE) &&
            nl_jv_to_int(run, a[2 + i], "a position", &bounds[i]) != 0)
            return -1;
        if (bounds[i] < 0)
            bounds[i] = bounds[i] < -length ? 0 : bounds[i] + length;
    }
    if (nl_jinja_charge(run, 1 + a[0].size / 16) != 0)
        return -1;
    if (bounds[1] > length)
        bounds[1] = length;
    if (bounds[0] > bounds[1])
        return 0;
    size_t from = 0, to;
    for (int64_t n = 0; n < bounds[0]; n++)
        from += nl_utf8_size((unsigned char)a[0].text[from]);
    to = bounds[1] == length ? a[0].size : from;
    for (int64_t n = bounds[0]; n < bounds[1] && bounds[1] < length; n++)
        to += nl_utf8_size((unsigned char)a[0].text[to]);
    *text = jv_part(a[0], from, to);
    *skipped = (size_t)bounds[0];
    return 1;
}

static int find_from(struct nl_jinja_run *run, struct jv *a, bool last, int64_t *out)
{
    struct jv text, sub = a[1];
    size_t skipped;
    *out = -1;
    if (nl_jinja_want_text(run, sub, "find") != 0)
        return -1;
    int got = narrow(run, a, &text, &skipped);
    if (got <= 0 || sub.size > text.size)
        return got < 0 ? -1 : 0;
    if (last && nl_jinja_charge_last(run, text, sub) != 0)
        return -1;
    const char *found = sub.size == 0 ? text.text + (last ? text.size : 0)
                        : last        ? nl_jinja_find_last(text, text.size, sub)
                                      : memmem(text.text, text.size, sub.text, sub.size);
    if (found)
        *out = (int64_t)(characters(jv_part(text, 0, (size_t)(found - text.text))) + skipped);
    return 0;
}

static int find_or_fail(struct nl_jinja_run *run, struct jv *a, bool last, bool must, struct jv *out)
{
    int64_t at;
    if (find_from(run, a, last, &at) != 0)
        return -1;
    if (must && at < 0)
        return jinja_fail(run, NL_DATA, "'index' of what is not in the string");
    *out = jv_int(at);
    return 0;
}

static int method_find(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return find_or_fail(run, a, false, false, out);
}

static int method_rfind(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return find_or_fail(run, a, true, false, out);
}

static int method_index(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return find_or_fail(run, a, false, true, out);
}

static int method_rindex(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return find_or_fail(run, a, true, true, out);
}

static int method_count(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv text = {0};
    size_t skipped, n = 0;
    if (nl_jinja_want_text(run, a[1], "count") != 0)
        return -1;
    int got = narrow(run, a, &text, &skipped);
    if (got < 0)
        return -1;
    if (got && a[1].size == 0)
        n = characters(text) + 1;
    for (size_t at = 0; got && a[1].size && at < text.size; n++) {
        const char *found = memmem(text.text + at, text.size - at, a[1].text, a[1].size);
        if (!found)
            break;
        at = (size_t)(found - text.text) + a[1].size;
    }
    *out = jv_int((int64_t)n);
    return 0;
}

static bool affix_is(struct jv text, struct jv affix, bool end)
{
    if (affix.size > text.size)
        return false;
    return memcmp(text.text + (end ? text.size - affix.size : 0), affix.text, affix.size) == 0;
}

static int has_affix(struct nl_jinja_run *run, struct jv *a, bool end, struct jv *out)
{
    struct jv text = {0};
    size_t skipped;
    bool found = false;
    int got = narrow(run, a, &text, &skipped);
    if (got < 0)
        return -1;
    if (!jv_is(a[1], JV_TUPLE)) {
        if (nl_jinja_want_text(run, a[1], end ? "endswith" : "startswith") != 0)
            return -1;
        found = got && affix_is(text, a[1], end);
    }
    for (size_t i = 0; jv_is(a[1], JV_TUPLE) && i < a[1].list->count && !found; i++) {
        if (nl_jinja_want_text(run, a[1].list->items[i], end ? "endswith" : "startswith") != 0)
            return -1;
        found = got && affix_is(text, a[1].list->items[i], end);
    }
    *out = jv_bool(found);
    return 0;
}

static int method_startswith(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return has_affix(run, a, false, out);
}

static int method_endswith(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return has_affix(run, a, true, out);
}

static int remove_affix(struct nl_jinja_run *run, struct jv *a, bool end, struct jv *out)
{
    if (nl_jinja_want_text(run, a[1], end ? "removesuffix" : "removeprefix") != 0)
        return -1;
    bool there = affix_is(a[0], a[1], end);
    *out = !there ? a[0]
           : end  ? jv_part(a[0], 0, a[0].size - a[1].size)
                  : jv_part(a[0], a[1].size, a[0].size);
    return 0;
}

static int method_removeprefix(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return remove_affix(run, a, false, out);
}

static int method_removesuffix(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return remove_affix(run, a, true, out);
}

static int do_partition(struct nl_jinja_run *run, struct jv *a, bool last, struct jv *out)
{
    int64_t ignored;
    struct jv_list *list = nl_jv_list_new(run, 3);
    struct jv args[5] = {a[0], a[1]};
    if (!list || nl_jinja_want_text(run, a[1], "partition") != 0 || find_from(run, args, last, &ignored) != 0)
        return -1;
    if (a[1].size == 0)
        return jinja_fail(run, NL_DATA, "'partition' at an empty string");
    size_t at = 0;
    if (ignored < 0) {
        at = last ? 0 : a[0].size;
    } else {
        for (int64_t n = 0; n < ignored; n++)
            at += nl_utf8_size((unsigned char)a[0].text[at]);
    }
    size_t end = ignored < 0 ? at : at + a[1].size;
    list->items[0] = jv_part(a[0], 0, at);
    list->items[1] = jv_part(a[0], at, end);
    list->items[2] = jv_part(a[0], end, a[0].size);
    list->count = 3;
    *out = jv_of_list(list, JV_TUPLE);
    return 0;
}

static int method_partition(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return do_partition(run, a, false, out);
}

static int method_rpartition(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return do_partition(run, a, true, out);
}

static int method_join(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[1]);
    struct nl_buf made = {0};
    struct jv item = {0};
    int got = iterator ? 0 : -1;
    for (bool first = true; iterator && (got = nl_jv_next(run, iterator, &item)) > 0; first = false) {
        if (nl_jinja_want_text(run, item, "join") != 0 || made.size > JINJA_MOST_OUTPUT) {
            got = -1;
            break;
        }
        if (!first)
            nl_buf_add(&made, a[0].text, a[0].size);
        nl_buf_add(&made, item.text, item.size);
    }
    return nl_jv_take(run, &made, got, out);
}

const struct jinja_builtin nl_jinja_string_methods[] = {
    {"strip", nl_jinja_strip, "-chars", 0},
    {"lstrip", lstrip, "-chars", 0},
    {"rstrip", nl_jinja_rstrip, "-chars", 0},
    {"split", nl_jinja_split, "sep maxsplit", 0},
    {"rsplit", nl_jinja_rsplit, "sep maxsplit", 0},
    {"splitlines", nl_jinja_splitlines, "keepends", 0},
    {"startswith", method_startswith, "-prefix -start -end", 1},
    {"endswith", method_endswith, "-suffix -start -end", 1},
    {"upper", nl_jinja_upper, "", 0},
    {"lower", nl_jinja_lower, "", 0},
    {"title", nl_jinja_title, "", 0},
    {"capitalize", nl_jinja_capitalize, "", 0},
    {"replace", nl_jinja_replace, "-old -new -count", 2},
    {"join", method_join, "-iterable", 1},
    {"find", method_find, "-sub -start -end", 1},
    {"rfind", method_rfind, "-sub -start -end", 1},
    {"index", method_index, "-sub -start -end", 1},
    {"rindex", method_rindex, "-sub -start -end", 1},
    {"count", method_count, "-sub -start -end", 1},
    {"format", NULL, "*", 0},
    {"partition", method_partition, "-sep", 1},
    {"rpartition", method_rpartition, "-sep", 1},
    {"removeprefix", method_removeprefix, "-prefix", 1},
    {"removesuffix", method_removesuffix, "-suffix", 1},
    {"center", nl_jinja_center, "-width -fillchar", 1},
    {"ljust", nl_jinja_ljust, "-width -fillchar", 1},
    {"rjust", nl_jinja_rjust, "-width -fillchar", 1},
    {"zfill", nl_jinja_zfill, "-width", 1},
    {"isalnum", nl_jinja_isalnum, "", 0},
    {"isalpha", nl_jinja_isalpha, "", 0},
    {"isascii", nl_jinja_isascii, "", 0},
    {"isdecimal", nl_jinja_isdecimal, "", 0},
    {"isdigit", nl_jinja_isdigit, "", 0},
    {"islower", nl_jinja_islower, "", 0},
    {"isnumeric", nl_jinja_isnumeric, "", 0},
    {"isspace", nl_jinja_isspace, "", 0},
    {"isupper", nl_jinja_isupper, "", 0},
    {"casefold", NULL, "", 0},
    {"encode", NULL, "", 0},
    {"expandtabs", NULL, "", 0},
    {"format_map", NULL, "", 0},
    {"isidentifier", NULL, "", 0},
    {"isprintable", NULL, "", 0},
    {"istitle", NULL, "", 0},
    {"maketrans", NULL, "", 0},
    {"swapcase", NULL, "", 0},
    {"translate", NULL, "", 0},
    {0},
};
