/* Filters that read a sequence at once. */
#include "jinja_value.h"
#include "unicode.h"

static bool given(struct jv value)
{
    return !jv_is(value, JV_MISSING) && !jv_is(value, JV_NONE);
}

/* A flag argument; false when it is not given. */
static int flag(struct nl_jinja_run *run, struct jv value, bool *out)
{
    *out = false;
    return jv_is(value, JV_MISSING) ? 0 : nl_jv_truth(run, value, out);
}

int nl_jinja_fold(struct nl_jinja_run *run, struct jv value, struct jv case_sensitive, struct jv *out)
{
    bool exact;
    if (flag(run, case_sensitive, &exact) != 0)
        return -1;
    *out = value;
    return exact || !jv_is(value, JV_STRING) ? 0 : nl_jinja_lower(run, &value, out);
}

int nl_jinja_first(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    int got = iterator ? nl_jv_next(run, iterator, out) : -1;
    if (got == 0)
        return nl_jv_undefined_hint(run, "No first item, sequence was empty.", out);
    return got < 0 ? -1 : 0;
}

int nl_jinja_last(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    if (jv_is(a[0], JV_ITERATOR))
        return jinja_fail(run, NL_DATA, "'last' of a generator");
    if (jv_is(a[0], JV_STRING) && a[0].size) {
        size_t at = nl_utf8_back(a[0].text, a[0].size);
        *out = jv_string(a[0].text + at, a[0].size - at);
        return 0;
    }
    struct jv_list *list = nl_jv_gather(run, a[0]);
    if (list && list->count == 0)
        return nl_jv_undefined_hint(run, "No last item, sequence was empty.", out);
    if (list)
        *out = list->items[list->count - 1];
    return list ? 0 : -1;
}

static int reverse_text(struct nl_jinja_run *run, struct jv text, struct jv *out)
{
    struct jv_slice all = {jv_none(), jv_none(), jv_int(-1)};
    return nl_jv_getitem(run, text, (struct jv){.kind = JV_SLICE, .slice = &all}, out);
}

/* Python gives an iterator for what it can walk backwards, and a list else. */
int nl_jinja_reverse(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    if (jv_is(a[0], JV_STRING))
        return reverse_text(run, a[0], out);
    struct jv_list *list = nl_jv_gather(run, a[0]);
    if (!list)
        return -1;
    for (size_t i = 0, j = list->count; i + 1 < j; i++) {
        struct jv item = list->items[i];
        list->items[i] = list->items[--j];
        list->items[j] = item;
    }
    *out = jv_of_list(list, JV_LIST);
    if (jv_is(a[0], JV_ITERATOR))
        return 0;
    struct jv_iterator *iterator = nl_jv_iterate(run, *out);
    *out = (struct jv){.kind = JV_ITERATOR, .iterator = iterator};
    return iterator ? 0 : -1;
}

int nl_jinja_list(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_list *list = nl_jv_gather(run, a[0]);
    if (list)
        *out = jv_of_list(list, JV_LIST);
    return list ? 0 : -1;
}

/* a: value, d, attribute */
int nl_jinja_join(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct nl_buf made = {0}, separator = {0};
    struct jv item = {0};
    bool first = true;
    int got = iterator && (jv_is(a[1], JV_MISSING) || nl_jv_str(run, a[1], &separator) == 0) ? 1 : -1;
    while (got > 0 && (got = nl_jv_next(run, iterator, &item)) > 0) {
        if (!first)
            nl_buf_add(&made, separator.data, separator.size);
        first = false;
        struct jv from = item;
        if ((given(a[2]) && nl_jv_get_path(run, from, a[2], jv_none(), &item) != 0) ||
            nl_jv_str(run, item, &made) != 0 || nl_jinja_charge(run, separator.size / 64) != 0)
            got = -1;
    }
    nl_buf_free(&separator);
    return nl_jv_take(run, &made, got, out);
}

/* a: value, attribute, start */
int nl_jinja_sum(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct jv item = {0};
    int got = iterator ? 0 : -1;
    *out = jv_is(a[2], JV_MISSING) ? jv_int(0) : a[2];
    if (jv_is(*out, JV_STRING))
        return jinja_fail(run, NL_DATA, "'sum' of strings");
    while (iterator && (got = nl_jv_next(run, iterator, &item)) > 0) {
        struct jv from = item, before = *out;
        if ((given(a[1]) && nl_jv_get_path(run, from, a[1], jv_none(), &item) != 0) ||
            nl_jv_arithmetic(run, JINJA_ADD, before, item, out) != 0)
            return -1;
    }
    return got;
}

/* a: value, case_sensitive, attribute */
static int extreme(struct nl_jinja_run *run, struct jv *a, int sign, struct jv *out)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct jv item, best = {0};
    int got = iterator ? 0 : -1;
    while (iterator && (got = nl_jv_next(run, iterator, &item)) > 0) {
        struct jv key = {0}, plain = {0};
        int order = sign;
        bool unordered = false;
        if (nl_jv_get_path(run, item, a[2], jv_none(), &plain) != 0 ||
            nl_jinja_fold(run, plain, a[1], &key) != 0 ||
            (!jv_is(best, JV_MISSING) && nl_jv_order(run, key, best, &order, &unordered) != 0))
            return -1;
        if (jv_is(best, JV_MISSING) || (!unordered && order * sign > 0)) {
            best = key;
            *out = item;
        }
    }
    if (got == 0 && jv_is(best, JV_MISSING))
        return nl_jv_undefined_hint(run, "No aggregated item, sequence was empty.", out);
    return got;
}

int nl_jinja_min(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return extreme(run, a, -1, out);
}

int nl_jinja_max(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return extreme(run, a, 1, out);
}

struct sortable {
    struct jv key, value;
};

/* Stable, as Python's; reversed it keeps the order of equal ones too. */
static int merge(struct nl_jinja_run *run, struct sortable *items, size_t count, bool reverse,
                 struct sortable *spare)
{
    if (count < 2)
        return 0;
    size_t half = count / 2, i = 0, j = half, n = 0;
    if (merge(run, items, half, reverse, spare) != 0 ||
        merge(run, items + half, count - half, reverse, spare) != 0)
        return -1;
    while (i < half && j < count) {
        int order;
        bool unordered;
        if (nl_jv_order(run, items[j].key, items[i].key, &order, &unordered) != 0)
            return -1;
        bool later = !unordered && (reverse ? order > 0 : order < 0);
        spare[n++] = later ? items[j++] : items[i++];
    }
    while (i < half)
        spare[n++] = items[i++];
    memcpy(items, spare, n * sizeof *items);
    return 0;
}

static int sort(struct nl_jinja_run *run, const struct jv_list *values, const struct jv_list *keys,
                bool reverse, struct jv *out)
{
    size_t count = values->count;
    struct sortable *items = nl_jinja_alloc(run, (2 * count + 1) * sizeof *items);
    struct jv_list *sorted = nl_jv_list_new(run, count);
    if (!items || !sorted)
        return -1;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct sortable){keys->items[i], values->items[i]};
    if (merge(run, items, count, reverse, items + count) != 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        sorted->items[sorted->count++] = items[i].value;
    *out = jv_of_list(sorted, JV_LIST);
    return 0;
}

/* The key of an item: a list with one value for each of the attributes, which commas separate. */
static int make_key(struct nl_jinja_run *run, struct jv item, struct jv attribute, struct jv case_sensitive,
                    struct jv *out)
{
    struct jv_list *key = nl_jv_list_new(run, 1);
    struct jv rest = attribute, part, plain, folded;
    bool more = true;
    while (key && more) {
        const char *comma = jv_is(rest, JV_STRING) && rest.size ? memchr(rest.text, ',', rest.size) : NULL;
        part = rest;
        more = comma;
        if (more) {
            part.size = (uint32_t)(comma - rest.text);
            rest.text = comma + 1;
            rest.size -= part.size + 1;
        }
        if (nl_jv_get_path(run, item, part, jv_none(), &plain) != 0 ||
            nl_jinja_fold(run, plain, case_sensitive, &folded) != 0 || nl_jv_list_push(run, key, folded) != 0)
            return -1;
    }
    if (key)
        *out = jv_of_list(key, JV_LIST);
    return key ? 0 : -1;
}

/* a: value, reverse, case_sensitive, attribute */
int nl_jinja_sort(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_list *values = nl_jv_gather(run, a[0]),
                   *keys = values ? nl_jv_list_new(run, values->count) : NULL;
    bool reverse;
    if (!keys || flag(run, a[1], &reverse) != 0)
        return -1;
    for (size_t i = 0; i < values->count; i++)
        if (make_key(run, values->items[i], a[3], a[2], &keys->items[keys->count++]) != 0)
            return -1;
    return sort(run, values, keys, reverse, out);
}

/* a: value, case_sensitive, by, reverse */
int nl_jinja_dictsort(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool reverse;
    if (jv_is(a[0], JV_UNDEFINED))
        return nl_jv_fail_undefined(run, a[0]);
    bool by_value = jv_text_is(a[2], "value");
    if (!jv_is(a[0], JV_DICT) || (!jv_is(a[2], JV_MISSING) && !by_value && !jv_text_is(a[2], "key")))
        return jinja_fail(run, NL_DATA, "'dictsort' takes a dict and 'key' or 'value'");
    struct jv_view view = {.dict = a[0].dict, .of = JV_ITEMS};
    struct jv_list *values = nl_jv_gather(run, (struct jv){.kind = JV_VIEW, .view = &view});
    struct jv_list *keys = values ? nl_jv_list_new(run, values->count) : NULL;
    if (!keys || flag(run, a[3], &reverse) != 0)
        return -1;
    for (size_t i = 0; i < values->count; i++)
        if (nl_jinja_fold(run, values->items[i].list->items[by_value], a[1], &keys->items[keys->count++]) !=
            0)
            return -1;
    return sort(run, values, keys, reverse, out);
}
