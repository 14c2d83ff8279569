/* Truth, equality, order and hashes of values, as Python has them. */
#include <math.h>

#include "jinja_tree.h"
#include "jinja_value.h"

int nl_jv_truth(struct nl_jinja_run *run, struct jv value, bool *out)
{
    int64_t length;
    switch (value.kind) {
    case JV_UNDEFINED:
    case JV_NONE:
        *out = false;
        return 0;
    case JV_BOOL:
    case JV_INT:
        *out = value.integer != 0;
        return 0;
    case JV_FLOAT:
        *out = value.number != 0;
        return 0;
    case JV_STRING:
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
    case JV_VIEW:
    case JV_RANGE:
    case JV_LOOP:
        if (nl_jv_length(run, value, &length) != 0)
            return -1;
        *out = length != 0;
        return 0;
    default:
        *out = true;
        return 0;
    }
}

static int64_t count_characters(struct jv text)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < text.size; i++)
        n += ((unsigned char)text.text[i] & 0xc0) != 0x80;
    return n;
}

int nl_jv_length(struct nl_jinja_run *run, struct jv value, int64_t *out)
{
    struct jv length = {0};
    switch (value.kind) {
    case JV_UNDEFINED:
        *out = 0;
        return 0;
    case JV_STRING:
        *out = count_characters(value);
        return nl_jinja_charge(run, value.size / 16);
    case JV_LIST:
    case JV_TUPLE:
        *out = (int64_t)value.list->count;
        return 0;
    case JV_DICT:
        *out = (int64_t)value.dict->count;
        return 0;
    case JV_VIEW:
        *out = (int64_t)value.view->dict->count;
        return 0;
    case JV_RANGE:
        *out = value.range->count;
        return 0;
    case JV_LOOP:
        if (nl_jv_loop_get(run, value.loop, jv_chars("length"), &length) < 0)
            return -1;
        *out = length.integer;
        return 0;
    default:
        return jinja_fail(run, NL_DATA, "a value of type %s has no length", nl_jv_type_name(value));
    }
}

/* -1, 0, 1; 2 for NaN. Exact, also where an integer has more bits than a double. */
static int compare_numbers(struct jv a, struct jv b)
{
    if (jv_is_integral(a) && jv_is_integral(b))
        return (a.integer > b.integer) - (a.integer < b.integer);
    if (a.kind == JV_FLOAT && b.kind == JV_FLOAT)
        return isnan(a.number) || isnan(b.number) ? 2 : (a.number > b.number) - (a.number < b.number);
    if (a.kind == JV_FLOAT) {
        int order = compare_numbers(b, a);
        return order == 2 ? 2 : -order;
    }
    double number = b.number;
    if (isnan(number))
        return 2;
    if (fabs(number) >= JINJA_INT64_END && number != -JINJA_INT64_END)
        return number > 0 ? -1 : 1;
    int64_t whole = (int64_t)number; /* towards zero */
    double fraction = number - (double)whole;
    if (a.integer != whole)
        return a.integer > whole ? 1 : -1;
    return (fraction < 0) - (fraction > 0);
}

static int equal_lists(struct nl_jinja_run *run, const struct jv_list *a, const struct jv_list *b, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++)
        if (nl_jv_equal(run, a->items[i], b->items[i], out) != 0)
            return -1;
    return 0;
}

static int equal_dicts(struct nl_jinja_run *run, const struct jv_dict *a, const struct jv_dict *b, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        struct jv other = {0};
        int found = nl_jv_dict_get(run, b, a->entries[i].key, &other);
        *out = found > 0;
        if (found < 0 || (found && nl_jv_equal(run, a->entries[i].value, other, out) != 0))
            return -1;
    }
    return 0;
}

static int equal_inside(struct nl_jinja_run *run, struct jv a, struct jv b, bool *out)
{
    if (a.list == b.list) {
        *out = true; /* as Python does for what is inside containers; NaN in the same list too */
        return 0;
    }
    if (nl_jinja_enter(run) != 0)
        return -1;
    int result =
        a.kind == JV_DICT ? equal_dicts(run, a.dict, b.dict, out) : equal_lists(run, a.list, b.list, out);
    run->depth--;
    return result;
}

int nl_jv_equal(struct nl_jinja_run *run, struct jv a, struct jv b, bool *out)
{
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    *out = false;
    if (jv_is_number(a) && jv_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return 0;
    }
    if (a.kind != b.kind)
        return 0;
    switch (a.kind) {
    case JV_UNDEFINED:
    case JV_NONE:
        *out = true;
        return 0;
    case JV_STRING:
        *out = a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
        return nl_jinja_charge(run, *out ? a.size / 64 : 0);
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
        return equal_inside(run, a, b, out);
    case JV_RANGE:
        *out = a.range->count == b.range->count &&
               (a.range->count == 0 || (a.range->start == b.range->start &&
                                        (a.range->count == 1 || a.range->step == b.range->step)));
        return 0;
    case JV_VIEW:
    case JV_METHOD:
        return jinja_fail(run, NL_UNSUPPORTED, "comparing values of type %s", nl_jv_type_name(a));
    default: /* identity */
        *out = a.list == b.list;
        return 0;
    }
}

static int order_lists(struct nl_jinja_run *run, const struct jv_list *a, const struct jv_list *b, int *out,
                       bool *unordered)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        if (nl_jv_equal(run, a->items[i], b->items[i], &equal) != 0)
            return -1;
        if (!equal)
            return nl_jv_order(run, a->items[i], b->items[i], out, unordered);
    }
    *out = (a->count > b->count) - (a->count < b->count);
    return 0;
}

int nl_jv_order(struct nl_jinja_run *run, struct jv a, struct jv b, int *out, bool *unordered)
{
    *unordered = false;
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    if (jv_is_number(a) && jv_is_number(b)) {
        *out = compare_numbers(a, b);
        *unordered = *out == 2;
        return 0;
    }
    if (jv_is(a, JV_UNDEFINED) || jv_is(b, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, jv_is(a, JV_UNDEFINED) ? a : b);
    if (a.kind == b.kind && a.kind == JV_STRING) {
        size_t common = a.size < b.size ? a.size : b.size;
        int order = common ? memcmp(a.text, b.text, common) : 0; /* UTF-8 sorts as its characters do */
        *out = order ? order : (a.size > b.size) - (a.size < b.size);
        return nl_jinja_charge(run, common / 64);
    }
    if (a.kind == b.kind && (a.kind == JV_LIST || a.kind == JV_TUPLE)) {
        if (nl_jinja_enter(run) != 0)
            return -1;
        int result = order_lists(run, a.list, b.list, out, unordered);
        run->depth--;
        return result;
    }
    return jinja_fail(run, NL_DATA, "values of type %s and %s have no order", nl_jv_type_name(a),
                      nl_jv_type_name(b));
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t hash_text(struct jv text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.text[i]) * 0x100000001b3u;
    return mix(hash, text.size);
}

int nl_jv_hash(struct nl_jinja_run *run, struct jv value, uint64_t *out)
{
    double number;
    *out = value.kind;
    switch (value.kind) {
    case JV_BOOL:
    case JV_INT:
    case JV_FLOAT: /* equal numbers of all types have one hash */
        number = jv_double(value) + 0.0;
        memcpy(out, &number, sizeof number);
        *out = mix(*out, 1);
        return 0;
    case JV_STRING:
        *out = hash_text(value);
        return nl_jinja_charge(run, value.size / 16);
    case JV_UNDEFINED:
    case JV_NONE:
        return 0;
    case JV_TUPLE:
        if (nl_jinja_enter(run) != 0)
            return -1;
        for (size_t i = 0; i < value.list->count; i++) {
            uint64_t item;
            if (nl_jv_hash(run, value.list->items[i], &item) != 0)
                return -1;
            *out = mix(*out, item);
        }
        run->depth--;
        return nl_jinja_charge(run, value.list->count);
    case JV_LIST:
    case JV_DICT:
        return jinja_fail(run, NL_DATA, "a value of type %s cannot be a key", nl_jv_type_name(value));
    default:
        return jinja_fail(run, NL_UNSUPPORTED, "a key of type %s", nl_jv_type_name(value));
    }
}

static bool find_text(struct jv text, struct jv part)
{
    return part.size == 0 || (text.size && memmem(text.text, text.size, part.text, part.size));
}

static int contains_item(struct nl_jinja_run *run, struct jv container, struct jv value, bool *out)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, container);
    struct jv item = {0};
    int got = 0;
    *out = false;
    while (iterator && !*out && (got = nl_jv_next(run, iterator, &item)) > 0)
        if (nl_jv_equal(run, item, value, out) != 0)
            return -1;
    return iterator && got >= 0 ? 0 : -1;
}

int nl_jv_contains(struct nl_jinja_run *run, struct jv container, struct jv value, bool *out)
{
    struct jv ignored = {0};
    if (jv_is(container, JV_STRING)) {
        if (!jv_is(value, JV_STRING))
            return jinja_fail(run, NL_DATA, "'in' of a string takes a string, not a value of type %s",
                              nl_jv_type_name(value));
        *out = find_text(container, value);
        return nl_jinja_charge_search(run, container.size, value.size);
    }
    if (jv_is(container, JV_DICT) || (jv_is(container, JV_VIEW) && container.view->of == JV_KEYS)) {
        const struct jv_dict *dict = jv_is(container, JV_DICT) ? container.dict : container.view->dict;
        uint64_t hash;
        int found = nl_jv_hash(run, value, &hash) != 0 ? -1 : nl_jv_dict_get(run, dict, value, &ignored);
        *out = found > 0;
        return found < 0 ? -1 : 0;
    }
    return contains_item(run, container, value, out);
}
