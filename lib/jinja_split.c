/* Strings cut into lists. */
#include "jinja_value.h"
#include "unicode.h"

static int strip_end(struct nl_jinja_run *run, struct jv text, struct jv *out)
{
    struct jv a[2] = {text, {0}};
    return nl_jinja_rstrip(run, a, out);
}

struct split {
    struct nl_jinja_run *run;
    struct jv text, separator; /* JV_NONE: white space */
    int64_t most;              /* how many cuts, -1: all */
    struct jv_list *list;
};

/* The next run of white space in [from, to): its place, `to` when there is none. */
static size_t find_space(struct jv text, size_t from, size_t to, size_t *end)
{
    unsigned size;
    while (from < to && !nl_jinja_is_space(nl_utf8_get(text.text + from, &size)))
        from += size;
    *end = from;
    while (*end < to && nl_jinja_is_space(nl_utf8_get(text.text + *end, &size)))
        *end += size;
    return from;
}

static int split_space(struct split *split)
{
    struct jv text = split->text;
    size_t at = 0, end, to = text.size;
    if (find_space(text, 0, to, &end) == 0)
        at = end;
    for (int64_t n = 0; at < to; n++) {
        if (n == split->most) /* the rest, with the white space at its end */
            return nl_jv_list_push(split->run, split->list, jv_part(text, at, to));
        size_t stop = find_space(text, at, to, &end);
        if (nl_jv_list_push(split->run, split->list, jv_part(text, at, stop)) != 0)
            return -1;
        at = end;
    }
    return 0;
}

static int split_at(struct split *split)
{
    struct jv text = split->text;
    size_t at = 0;
    for (int64_t n = 0; n != split->most; n++) {
        const char *found = at < text.size ? memmem(text.text + at, text.size - at, split->separator.text,
                                                    split->separator.size)
                                           : NULL;
        if (!found)
            break;
        if (nl_jv_list_push(split->run, split->list, jv_part(text, at, (size_t)(found - text.text))) != 0)
            return -1;
        at = (size_t)(found - text.text) + split->separator.size;
    }
    return nl_jv_list_push(split->run, split->list, jv_part(text, at, text.size));
}

static void turn_around(struct jv_list *list)
{
    for (size_t i = 0, j = list->count; i + 1 < j; i++) {
        struct jv item = list->items[i];
        list->items[i] = list->items[--j];
        list->items[j] = item;
    }
}

static int rsplit_space(struct split *split)
{
    struct jv text = {0}, rest = {0};
    if (strip_end(split->run, split->text, &text) != 0)
        return -1;
    size_t to = text.size;
    for (int64_t n = 0; to > 0; n++) {
        size_t from = to;
        unsigned size;
        if (n == split->most)
            return nl_jv_list_push(split->run, split->list, jv_part(text, 0, to));
        while (from > 0) {
            size_t last = nl_utf8_back(text.text, from);
            if (nl_jinja_is_space(nl_utf8_get(text.text + last, &size)))
                break;
            from = last;
        }
        if (nl_jv_list_push(split->run, split->list, jv_part(text, from, to)) != 0 ||
            strip_end(split->run, jv_part(text, 0, from), &rest) != 0)
            return -1;
        to = rest.size;
    }
    return 0;
}

static int rsplit_at(struct split *split)
{
    struct jv text = split->text, separator = split->separator;
    size_t to = text.size;
    if (nl_jinja_charge_last(split->run, text, separator) != 0)
        return -1;
    for (int64_t n = 0; n != split->most; n++) {
        const char *found = nl_jinja_find_last(text, to, separator);
        if (!found)
            break;
        size_t from = (size_t)(found - text.text);
        if (nl_jv_list_push(split->run, split->list, jv_part(text, from + separator.size, to)) != 0)
            return -1;
        to = from;
    }
    return nl_jv_list_push(split->run, split->list, jv_part(text, 0, to));
}

static int do_split(struct nl_jinja_run *run, struct jv *a, bool right, struct jv *out)
{
    struct split split = {.run = run, .text = a[0], .separator = jv_none()};
    if (nl_jinja_optional_int(run, a[2], "'split'", -1, &split.most) != 0 ||
        nl_jinja_charge(run, 1 + a[0].size / 4) != 0)
        return -1;
    if (split.most < 0)
        split.most = -1;
    bool space = jv_is(a[1], JV_MISSING) || jv_is(a[1], JV_NONE);
    if (!space && (nl_jinja_want_text(run, a[1], "split") != 0 ||
                   (a[1].size == 0 && jinja_fail(run, NL_DATA, "'split' at an empty string") != 0)))
        return -1;
    if (!space)
        split.separator = a[1];
    if (!(split.list = nl_jv_list_new(run, 0)))
        return -1;
    int result = right ? (space ? rsplit_space(&split) : rsplit_at(&split))
                       : (space ? split_space(&split) : split_at(&split));
    if (right)
        turn_around(split.list);
    *out = jv_of_list(split.list, JV_LIST);
    return result;
}

int nl_jinja_split(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return do_split(run, a, false, out);
}

int nl_jinja_rsplit(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return do_split(run, a, true, out);
}

/* str.splitlines: also at control and Unicode line ends. */
int nl_jinja_splitlines(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv text = a[0];
    struct jv_list *list = nl_jv_list_new(run, 0);
    bool keep = false;
    size_t from = 0;
    if (!list || (!jv_is(a[1], JV_MISSING) && nl_jv_truth(run, a[1], &keep) != 0) ||
        nl_jinja_charge(run, 1 + text.size / 4) != 0)
        return -1;
    for (size_t at = 0; at < text.size;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + at, &size);
        bool end =
            (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
        size_t stop = at;
        at += size;
        if (!end)
            continue;
        if (c == '\r' && at < text.size && text.text[at] == '\n')
            at++;
        if (nl_jv_list_push(run, list, jv_part(text, from, keep ? at : stop)) != 0)
            return -1;
        from = at;
    }
    *out = jv_of_list(list, JV_LIST);
    return from < text.size ? nl_jv_list_push(run, list, jv_part(text, from, text.size)) : 0;
}
