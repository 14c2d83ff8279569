/* Truth, length, equality and order of values, as Python has them. */
#include <math.h>

#include "jinja_value.h"

bool nl_jv_truth(struct nl_jinja_run *run, struct jv value)
{
    switch (value.kind) {
    case JV_MISSING:
    case JV_NONE:
        return false;
    case JV_BOOL:
    case JV_INT:
        return value.integer != 0;
    case JV_FLOAT:
        return value.number != 0;
    case JV_STRING:
        return value.size != 0;
    case JV_UNDEFINED:
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
    case JV_VIEW:
    case JV_RANGE:
    case JV_LOOP:
        return nl_jv_length(run, value) != 0;
    default:
        return true;
    }
}

int64_t nl_jv_length(struct nl_jinja_run *run, struct jv value)
{
    int64_t n = 0;
    switch (value.kind) {
    case JV_UNDEFINED:
        return 0;
    case JV_STRING: /* characters */
        nl_jinja_charge(run, value.size / 16);
        for (uint32_t i = 0; i < value.size; i++)
            n += ((unsigned char)value.text[i] & 0xc0) != 0x80;
        return n;
    case JV_LIST:
    case JV_TUPLE:
    case JV_RANGE:
        return (int64_t)value.list->count;
    case JV_DICT:
    case JV_VIEW:
        return (int64_t)value.dict->count;
    case JV_LOOP:
        return nl_jv_loop_length(run, value.loop);
    default:
        nl_jinja_fail_type(run, "the length", value);
        return 0;
    }
}

/* Exact, also where an integer has more bits than a double. */
static int compare_numbers(struct jv a, struct jv b)
{
    if (jv_is_integral(a) && jv_is_integral(b))
        return (a.integer > b.integer) - (a.integer < b.integer);
    if (a.kind == JV_FLOAT && b.kind == JV_FLOAT)
        return (a.number > b.number) - (a.number < b.number);
    if (a.kind == JV_FLOAT)
        return -compare_numbers(b, a);
    double number = b.number;
    if (fabs(number) >= JINJA_INT64_END && number != -JINJA_INT64_END)
        return number > 0 ? -1 : 1;
    int64_t whole = (int64_t)number; /* towards zero */
    double fraction = number - (double)whole;
    if (a.integer != whole)
        return a.integer > whole ? 1 : -1;
    return (fraction < 0) - (fraction > 0);
}

static bool equal_lists(struct nl_jinja_run *run, const struct jv_list *a, const struct jv_list *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = nl_jv_equal(run, a->items[i], b->items[i]);
    return equal;
}

static bool equal_dicts(struct nl_jinja_run *run, const struct jv_dict *a, const struct jv_dict *b)
{
    bool equal = a->count == b->count;
    struct jv other = {0};
    for (size_t i = 0; equal && i < a->count; i++)
        equal =
            nl_jv_dict_get(run, b, a->entries[i].key, &other) && nl_jv_equal(run, a->entries[i].value, other);
    return equal;
}

static bool equal_inside(struct nl_jinja_run *run, struct jv a, struct jv b)
{
    if (a.list == b.list)
        return true;
    bool equal = nl_jinja_enter(run) &&
                 (a.kind == JV_DICT ? equal_dicts(run, a.dict, b.dict) : equal_lists(run, a.list, b.list));
    run->depth--;
    return equal;
}

bool nl_jv_equal(struct nl_jinja_run *run, struct jv a, struct jv b)
{
    if (!nl_jinja_charge(run, 1))
        return false;
    if (jv_is_number(a) && jv_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case JV_UNDEFINED:
    case JV_NONE:
        return true;
    case JV_STRING:
        return nl_jinja_charge(run, a.size == b.size ? a.size / 64 : 0) && jv_same_text(a, b);
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
        return equal_inside(run, a, b);
    case JV_NAMESPACE:
        return a.dict == b.dict;
    default:
        nl_jinja_fail(run, NL_UNSUPPORTED, "comparing values of type %s", nl_jv_type_name(a));
        return false;
    }
}

static int order_lists(struct nl_jinja_run *run, const struct jv_list *a, const struct jv_list *b)
{
    for (size_t i = 0; i < a->count && i < b->count && !run->failed; i++)
        if (!nl_jv_equal(run, a->items[i], b->items[i]))
            return nl_jv_order(run, a->items[i], b->items[i]);
    return (a->count > b->count) - (a->count < b->count);
}

int nl_jv_order(struct nl_jinja_run *run, struct jv a, struct jv b)
{
    int order = 0;
    if (!nl_jinja_charge(run, 1))
        return 0;
    if (jv_is_number(a) && jv_is_number(b))
        return compare_numbers(a, b);
    if (jv_is(a, JV_UNDEFINED) || jv_is(b, JV_UNDEFINED)) {
        nl_jv_fail_undefined(run, jv_is(a, JV_UNDEFINED) ? a : b);
    } else if (jv_is(a, JV_STRING) && jv_is(b, JV_STRING)) {
        size_t common = a.size < b.size ? a.size : b.size;
        if (common && nl_jinja_charge(run, common / 64))
            order = memcmp(a.text, b.text, common); /* UTF-8 sorts as its characters do */
        if (order == 0)
            order = (a.size > b.size) - (a.size < b.size);
    } else if (jv_is_sequence(a) && a.kind == b.kind) {
        order = nl_jinja_enter(run) ? order_lists(run, a.list, b.list) : 0;
        run->depth--;
        return order;
    } else {
        nl_jinja_fail(run, jv_is(a, JV_VIEW) ? NL_UNSUPPORTED : NL_DATA,
                      "values of type %s and %s have no order", nl_jv_type_name(a), nl_jv_type_name(b));
    }
    return (order > 0) - (order < 0);
}

static bool contains(struct nl_jinja_run *run, struct jv container, struct jv value)
{
    struct jv item = {0};
    if (jv_is(container, JV_STRING)) {
        if (!jv_is(value, JV_STRING)) {
            nl_jinja_fail(run, NL_DATA, "'in' of a string takes a string, not a value of type %s",
                          nl_jv_type_name(value));
            return false;
        }
        return nl_jinja_charge(run, 1 + container.size / 16) &&
               (value.size == 0 ||
                (container.size && memmem(container.text, container.size, value.text, value.size)));
    }
    if (jv_is(container, JV_DICT) || (jv_is(container, JV_VIEW) && container.size == JV_KEYS))
        return nl_jv_dict_get(run, container.dict, value, &item);
    struct jv_iterator *iterator = nl_jv_iterate(run, container);
    while (iterator && nl_jv_next(run, iterator, &item))
        if (nl_jv_equal(run, item, value))
            return true;
    return false;
}

bool nl_jv_compare(struct nl_jinja_run *run, enum jv_comparison comparison, struct jv a, struct jv b)
{
    int order;
    switch (comparison) {
    case JV_EQ:
        return nl_jv_equal(run, a, b);
    case JV_NE:
        return !nl_jv_equal(run, a, b);
    case JV_IN:
        return contains(run, b, a);
    case JV_NOT_IN:
        return !contains(run, b, a);
    default:
        order = nl_jv_order(run, a, b);
        return order == (comparison == JV_GT || comparison == JV_GE ? 1 : -1) ||
               (order == 0 && (comparison == JV_GE || comparison == JV_LE));
    }
}
