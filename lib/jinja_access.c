/* x.name, x[key], x[a:b:c]; the methods of dicts, lists and tuples. */
#include "jinja_value.h"
#include "unicode.h"

/* Of the methods of values nothing is known by a name, or by a number. */
static bool is_global(struct jv object)
{
    return jv_is(object, JV_FUNCTION) && jv_is(object.function->object, JV_MISSING);
}

/* What Python's objects have and templates hardly use, or what changes the object, so that jinja2's sandbox
   keeps it away. */
static bool is_unsupported(struct jv object, struct jv name)
{
    static const struct {
        enum jv_kind kind;
        const char *names;
    } known[] = {
        {JV_INT, "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag is_integer "
                 "numerator real to_bytes"},
        {JV_FLOAT, "as_integer_ratio conjugate fromhex hex imag is_integer real"},
        {JV_STRING, "casefold center encode expandtabs format_map isalnum isalpha isascii isdecimal isdigit "
                    "isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans "
                    "partition removeprefix removesuffix rjust rpartition swapcase translate zfill"},
        {JV_LIST, "append clear copy extend insert pop remove reverse sort"},
        {JV_DICT, "clear copy fromkeys pop popitem setdefault update"},
        {JV_VIEW, "mapping isdisjoint"},
        {JV_RANGE, "count index start stop step"},
        {JV_ITERATOR, "send throw close gi_code gi_frame gi_running gi_suspended gi_yieldfrom"},
        {JV_MACRO, "name arguments catch_kwargs catch_varargs caller explicit_caller"},
        {JV_LOOP, "cycle changed depth depth0"},
    };
    enum jv_kind kind = jv_is(object, JV_BOOL) ? JV_INT : (enum jv_kind)object.kind;
    bool found = is_global(object) || (name.size > 2 && memcmp(name.text, "__", 2) == 0);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found = found || (known[i].kind == kind && nl_jinja_is_listed(name, known[i].names));
    return found;
}

/* keys, values, items */
static struct jv dict_view(struct nl_jinja_run *run, struct jv *a)
{
    (void)run;
    return jv_view(a[0].dict, (enum jv_view_of)a[JINJA_VARIANT].integer);
}

static struct jv dict_get(struct nl_jinja_run *run, struct jv *a)
{
    struct jv value = jv_is(a[2], JV_MISSING) ? jv_none() : a[2];
    nl_jv_dict_get(run, a[0].dict, a[1], &value);
    return value;
}

static struct jv list_count(struct nl_jinja_run *run, struct jv *a)
{
    int64_t n = 0;
    for (size_t i = 0; i < a[0].list->count; i++)
        n += nl_jv_equal(run, a[0].list->items[i], a[1]);
    return jv_int(n);
}

static struct jv list_index(struct nl_jinja_run *run, struct jv *a)
{
    for (size_t i = 0; i < a[0].list->count; i++)
        if (nl_jv_equal(run, a[0].list->items[i], a[1]))
            return jv_int((int64_t)i);
    return nl_jinja_fail(run, NL_DATA, "'index' of what is not in the list");
}

static const struct jinja_builtin dict_methods[] = {
    {"get", dict_get, "-key -default", 1, 0, false},
    {"items", dict_view, "", 0, JV_ITEMS, false},
    {"keys", dict_view, "", 0, JV_KEYS, false},
    {"values", dict_view, "", 0, JV_VALUES, false},
    {0},
};
static const struct jinja_builtin list_methods[] = {
    /* of tuples too */
    {"count", list_count, "-value", 1, 0, false},
    {"index", list_index, "-value", 1, 0, false},
    {0},
};

static bool get_method(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    const struct jinja_builtin *methods = jv_is(object, JV_STRING) ? nl_jinja_string_methods
                                          : jv_is(object, JV_DICT) ? dict_methods
                                          : jv_is_sequence(object) ? list_methods
                                                                   : NULL;
    const struct jinja_builtin *method = methods ? nl_jinja_find(methods, name) : NULL;
    if (!method)
        return false;
    *out = nl_jinja_bound(run, method, object);
    return true;
}

/* What Python's getattr finds. */
static bool get_attribute(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    if (jv_is(object, JV_UNDEFINED)) {
        nl_jv_fail_undefined(run, object);
    } else if (object.safe) {
        nl_jinja_fail(run, NL_UNSUPPORTED, "attribute '%.*s' of a string marked as safe", JINJA_SHOWN(name));
    } else if (is_unsupported(object, name)) {
        nl_jinja_fail(run, NL_UNSUPPORTED, "attribute '%.*s' of a value of type %s", JINJA_SHOWN(name),
                      nl_jv_type_name(object));
    } else if (jv_is(object, JV_NAMESPACE)) {
        return nl_jv_dict_get(run, object.dict, name, out);
    } else if (jv_is(object, JV_LOOP)) {
        return nl_jv_loop_get(run, object.loop, name, out);
    }
    return get_method(run, object, name, out);
}

struct jv nl_jv_getattr(struct nl_jinja_run *run, struct jv object, struct jv name)
{
    struct jv value = {0};
    if (get_attribute(run, object, name, &value) ||
        (jv_is(object, JV_DICT) && nl_jv_dict_get(run, object.dict, name, &value)))
        return value;
    return nl_jv_undefined(run, object, name);
}

/* The byte at which character n begins; the size when there is none. */
static size_t character_at(struct jv text, int64_t n)
{
    size_t at = 0;
    for (; at < text.size && n > 0; n--)
        at += nl_utf8_size((unsigned char)text.text[at]);
    return at;
}

static bool get_index(struct nl_jinja_run *run, struct jv object, int64_t index, struct jv *out)
{
    int64_t length = nl_jv_length(run, object);
    if (index < 0)
        index += length;
    if (index < 0 || index >= length)
        return false;
    if (jv_is(object, JV_STRING)) {
        size_t at = character_at(object, index);
        *out = jv_part(object, at, at + nl_utf8_size((unsigned char)object.text[at]));
    } else {
        *out = object.list->items[index];
    }
    return true;
}

/* A bound as Python clips it. */
static int64_t clip(struct nl_jinja_run *run, struct jv bound, int64_t otherwise, int64_t length,
                    bool backwards)
{
    int64_t low = backwards ? -1 : 0, high = backwards ? length - 1 : length;
    if (jv_is(bound, JV_NONE))
        return otherwise;
    int64_t at = nl_jv_to_int(run, bound, "a slice", 0);
    if (at < 0)
        at = at < -length ? low : at + length;
    return at < low ? low : at > high ? high : at;
}

static struct jv slice_text(struct nl_jinja_run *run, struct jv text, int64_t start, int64_t step,
                            int64_t count)
{
    struct nl_buf made = {0};
    size_t at = character_at(text, start);
    if (step == 1) {
        struct jv rest = jv_part(text, at, text.size);
        return jv_part(rest, 0, character_at(rest, count));
    }
    for (int64_t i = 0; i < count; i++) {
        nl_buf_add(&made, text.text + at, nl_utf8_size((unsigned char)text.text[at]));
        for (int64_t n = step; n > 0 && at < text.size; n--)
            at += nl_utf8_size((unsigned char)text.text[at]);
        for (int64_t n = step; n < 0 && at > 0; n++)
            at = nl_utf8_back(text.text, at);
    }
    return nl_jv_take(run, &made);
}

struct jv nl_jv_slice(struct nl_jinja_run *run, struct jv object, const struct jv bounds[3])
{
    if (jv_is(object, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, object);
    if ((!jv_is(object, JV_STRING) && !jv_is_sequence(object)) || object.safe)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "a slice of a value of type %s%s", nl_jv_type_name(object),
                             object.safe ? " marked as safe" : "");
    int64_t length = nl_jv_length(run, object);
    int64_t step = jv_is(bounds[2], JV_NONE) ? 1 : nl_jv_to_int(run, bounds[2], "a slice", 1);
    if (step == 0)
        return nl_jinja_fail(run, NL_DATA, "a slice with step zero");
    if (step == INT64_MIN) /* so that it can be turned around; Python does the same */
        step++;
    int64_t start = clip(run, bounds[0], step < 0 ? length - 1 : 0, length, step < 0);
    int64_t stop = clip(run, bounds[1], step < 0 ? -1 : length, length, step < 0);
    int64_t span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
    int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
    if (!nl_jinja_charge(run, 1 + (uint64_t)length / 16))
        return jv_missing();
    if (jv_is(object, JV_STRING))
        return count ? slice_text(run, object, start, step, count) : jv_string("", 0);
    struct jv_list *list = nl_jv_list_new(run, (size_t)count);
    for (int64_t i = 0; i < count && !run->failed; i++)
        nl_jv_push(run, list, object.list->items[start + i * step]);
    return jv_of_list(list, object.kind);
}

/* object[key] of Python; false where it raises what jinja2 takes for undefined. */
static bool get_item(struct nl_jinja_run *run, struct jv object, struct jv key, struct jv *out)
{
    switch (object.kind) {
    case JV_UNDEFINED:
        nl_jv_fail_undefined(run, object);
        return false;
    case JV_DICT:
        return !jv_is(key, JV_LIST) && !jv_is(key, JV_DICT) && nl_jv_dict_get(run, object.dict, key, out);
    case JV_STRING:
    case JV_LIST:
    case JV_TUPLE:
    case JV_RANGE:
        if (object.safe)
            nl_jinja_fail(run, NL_UNSUPPORTED, "a subscript of a string marked as safe");
        return jv_is_integral(key) && get_index(run, object, key.integer, out);
    case JV_FUNCTION:
        if (is_global(object))
            nl_jinja_fail(run, NL_UNSUPPORTED, "a subscript of a function");
        return false;
    default:
        return false;
    }
}

struct jv nl_jv_getitem(struct nl_jinja_run *run, struct jv object, struct jv key)
{
    struct jv value = {0};
    if (get_item(run, object, key, &value) ||
        (jv_is(key, JV_STRING) && get_attribute(run, object, key, &value)))
        return value;
    return nl_jv_undefined(run, object, key);
}

static struct jv part_of_path(struct jv part)
{
    int64_t number = 0;
    for (uint32_t i = 0; i < part.size; i++)
        if (part.text[i] < '0' || part.text[i] > '9')
            return part;
    return nl_jv_parse_int(NULL, part, 10, &number) == 1 ? jv_int(number) : part;
}

struct jv nl_jv_get_path(struct nl_jinja_run *run, struct jv object, struct jv path, struct jv otherwise)
{
    bool more = jv_is_given(path);
    while (more && nl_jinja_charge(run, 1)) {
        struct jv part = path;
        const char *point = jv_is(path, JV_STRING) ? memchr(path.text, '.', path.size) : NULL;
        if (point) {
            part.size = (uint32_t)(point - path.text);
            path = jv_part(path, part.size + 1u, path.size);
        }
        more = point;
        object = nl_jv_getitem(run, object, jv_is(part, JV_STRING) ? part_of_path(part) : part);
        if (jv_is(object, JV_UNDEFINED) && jv_is_given(otherwise))
            object = otherwise;
    }
    return object;
}
