/* x.name, x[key], x[a:b:c]. */
#include "jinja_tree.h"
#include "unicode.h"

/* Attributes that Python's objects have and templates hardly use. */
static bool has_unsupported(struct jv object, struct jv name)
{
    static const struct {
        enum jv_kind kind;
        const char *names;
    } known[] = {
        {JV_INT,
         " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag is_integer numerator "
         "real to_bytes "},
        {JV_FLOAT, " as_integer_ratio conjugate fromhex hex imag is_integer real "},
        {JV_RANGE, " count index "},
        {JV_VIEW, " mapping isdisjoint "},
        {JV_ITERATOR, " send throw close gi_code gi_frame gi_running gi_suspended gi_yieldfrom "},
        {JV_MACRO, " arguments catch_kwargs catch_varargs caller explicit_caller "},
        {JV_CYCLER, " pos items "},
        {JV_JOINER, " sep used "},
        {JV_GLOBAL, " mro fromkeys "},
    };
    enum jv_kind kind = jv_is_integral(object) ? JV_INT : (enum jv_kind)object.kind;
    char padded[64];
    if (name.size > sizeof padded - 3)
        return false;
    padded[0] = padded[name.size + 1] = ' ';
    padded[name.size + 2] = '\0';
    memcpy(padded + 1, name.text, name.size);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == kind)
            return strstr(known[i].names, padded);
    return false;
}

static int get_bound(struct nl_jinja_run *run, struct jv object, unsigned id, struct jv *out)
{
    struct jv_method *method = nl_jinja_alloc(run, sizeof *method);
    if (!method)
        return -1;
    *method = (struct jv_method){.object = object, .id = id};
    *out = (struct jv){.kind = JV_METHOD, .method = method};
    return 1;
}

static int get_of_range(const struct jv_range *range, struct jv name, struct jv *out)
{
    if (jv_text_is(name, "start"))
        *out = jv_int(range->start);
    else if (jv_text_is(name, "stop"))
        *out = jv_int(range->stop);
    else if (jv_text_is(name, "step"))
        *out = jv_int(range->step);
    else
        return 0;
    return 1;
}

static int get_of_cycler(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    if (jv_text_is(name, "current")) {
        *out = object.cycle->items->items[object.cycle->at];
        return 1;
    }
    if (jv_text_is(name, "next") || jv_text_is(name, "reset"))
        return get_bound(run, object, jv_text_is(name, "next"), out);
    return 0;
}

/* What Python's getattr finds: 1, 0, -1. */
static int get_python_attribute(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    if (jv_is(object, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, object);
    bool dunder = name.size > 2 && memcmp(name.text, "__", 2) == 0;
    if (dunder || jv_is(object, JV_METHOD) || has_unsupported(object, name))
        return jinja_fail(run, NL_UNSUPPORTED, "attribute '%.*s' of a value of type %s",
                          (int)(name.size < 100 ? name.size : 100), name.text, nl_jv_type_name(object));
    switch (object.kind) {
    case JV_STRING:
    case JV_DICT:
    case JV_LIST:
    case JV_TUPLE:
        return nl_jv_method(run, object, name, out);
    case JV_NAMESPACE:
        return nl_jv_dict_get(run, object.dict, name, out);
    case JV_LOOP:
        return nl_jv_loop_get(run, object.loop, name, out);
    case JV_RANGE:
        return get_of_range(object.range, name, out);
    case JV_CYCLER:
        return get_of_cycler(run, object, name, out);
    case JV_MACRO:
        if (!jv_text_is(name, "name"))
            return 0;
        *out = object.macro->node->kind == JN_MACRO ? object.macro->node->value : jv_none();
        return 1;
    default:
        return 0;
    }
}

int nl_jv_getattr(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    int got = get_python_attribute(run, object, name, out);
    if (got == 0 && jv_is(object, JV_DICT))
        got = nl_jv_dict_get(run, object.dict, name, out);
    if (got != 0)
        return got < 0 ? -1 : 0;
    return nl_jv_undefined(run, object, name, out);
}

/* The byte at which character n begins; the size when there is none. */
static size_t character_at(struct jv text, int64_t n)
{
    size_t at = 0;
    for (; at < text.size && n > 0; n--)
        at += nl_utf8_size((unsigned char)text.text[at]);
    return at;
}

/* 1, 0 when it is out of range, -1. */
static int get_index(struct nl_jinja_run *run, struct jv object, int64_t index, struct jv *out)
{
    int64_t length;
    if (nl_jv_length(run, object, &length) != 0)
        return -1;
    if (index < 0)
        index += length;
    if (index < 0 || index >= length)
        return 0;
    if (jv_is(object, JV_STRING)) {
        size_t at = character_at(object, index);
        *out = jv_string(object.text + at, nl_utf8_size((unsigned char)object.text[at]));
    } else if (jv_is(object, JV_RANGE)) {
        *out = jv_int(object.range->start + index * object.range->step);
    } else {
        *out = object.list->items[index];
    }
    return 1;
}

/* A bound as Python clips it. */
static int clip(struct nl_jinja_run *run, struct jv bound, int64_t otherwise, int64_t length, bool backwards,
                int64_t *out)
{
    *out = otherwise;
    if (jv_is(bound, JV_NONE))
        return 0;
    if (!jv_is_integral(bound))
        return jinja_fail(run, NL_DATA, "a slice takes integers, not a value of type %s",
                          nl_jv_type_name(bound));
    int64_t low = backwards ? -1 : 0, high = backwards ? length - 1 : length, at = bound.integer;
    if (at < 0)
        at = at < -length ? low : at + length;
    *out = at < low ? low : at > high ? high : at;
    return 0;
}

static int slice_text(struct nl_jinja_run *run, struct jv text, int64_t start, int64_t step, int64_t count,
                      struct jv *out)
{
    if (step == 1) {
        size_t from = character_at(text, start);
        struct jv rest = jv_string(text.text + from, text.size - from);
        *out = jv_string(rest.text, character_at(rest, count));
        return 0;
    }
    /* the characters' places, so that any step is linear */
    struct nl_buf made = {0};
    size_t at = character_at(text, start);
    for (int64_t i = 0; i < count; i++) {
        nl_buf_add(&made, text.text + at, nl_utf8_size((unsigned char)text.text[at]));
        for (int64_t n = step > 0 ? step : -step; n > 0; n--) {
            if (step > 0 && at < text.size)
                at += nl_utf8_size((unsigned char)text.text[at]);
            else if (step < 0 && at > 0)
                at = nl_utf8_back(text.text, at);
            else
                break;
        }
    }
    return nl_jv_take(run, &made, 0, out);
}

static int get_slice(struct nl_jinja_run *run, struct jv object, const struct jv_slice *slice, struct jv *out)
{
    int64_t length, step = 1, start, stop;
    if (jv_is(object, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, object);
    if (!jv_is(object, JV_STRING) && !jv_is(object, JV_LIST) && !jv_is(object, JV_TUPLE))
        return jinja_fail(run, jv_is(object, JV_RANGE) ? NL_UNSUPPORTED : NL_DATA,
                          "a slice of a value of type %s", nl_jv_type_name(object));
    if (nl_jv_length(run, object, &length) != 0 || nl_jinja_charge(run, 1 + (uint64_t)length / 16) != 0 ||
        (!jv_is(slice->step, JV_NONE) && nl_jv_to_int(run, slice->step, "a slice", &step) != 0))
        return -1;
    if (step == 0 || step == INT64_MIN)
        return jinja_fail(run, NL_DATA, "a slice with step zero");
    if (clip(run, slice->start, step < 0 ? length - 1 : 0, length, step < 0, &start) != 0 ||
        clip(run, slice->stop, step < 0 ? -1 : length, length, step < 0, &stop) != 0)
        return -1;
    int64_t span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
    int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
    if (jv_is(object, JV_STRING) && count == 0) {
        *out = jv_string("", 0);
        return 0;
    }
    if (jv_is(object, JV_STRING))
        return slice_text(run, object, start, step, count, out);
    struct jv_list *list = nl_jv_list_new(run, (size_t)count);
    if (!list || nl_jinja_charge(run, (uint64_t)count) != 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        list->items[list->count++] = object.list->items[start + i * step];
    *out = jv_of_list(list, object.kind);
    return 0;
}

/* object[key] of Python: 1, 0 where it raises what jinja2 takes for undefined, -1. */
static int get_python_item(struct nl_jinja_run *run, struct jv object, struct jv key, struct jv *out)
{
    switch (object.kind) {
    case JV_UNDEFINED:
        return nl_jv_fail_undefined(run, object);
    case JV_DICT:
        if (jv_is(key, JV_LIST) || jv_is(key, JV_DICT))
            return 0;
        return nl_jv_dict_get(run, object.dict, key, out);
    case JV_STRING:
    case JV_LIST:
    case JV_TUPLE:
    case JV_RANGE:
        return jv_is_integral(key) ? get_index(run, object, key.integer, out) : 0;
    case JV_GLOBAL:
        return jinja_fail(run, NL_UNSUPPORTED, "a subscript of a function");
    default:
        return 0;
    }
}

int nl_jv_getitem(struct nl_jinja_run *run, struct jv object, struct jv key, struct jv *out)
{
    if (jv_is(key, JV_SLICE))
        return get_slice(run, object, key.slice, out);
    int got = get_python_item(run, object, key, out);
    if (got == 0 && jv_is(key, JV_STRING))
        got = get_python_attribute(run, object, key, out);
    if (got != 0)
        return got < 0 ? -1 : 0;
    return nl_jv_undefined(run, object, key, out);
}

static struct jv part_of_path(struct jv part)
{
    int64_t number = 0;
    for (uint32_t i = 0; i < part.size; i++)
        if (part.text[i] < '0' || part.text[i] > '9' || i > 17)
            return part;
        else
            number = 10 * number + (part.text[i] - '0');
    return part.size ? jv_int(number) : part;
}

int nl_jv_get_path(struct nl_jinja_run *run, struct jv object, struct jv path, struct jv otherwise,
                   struct jv *out)
{
    *out = object;
    if (jv_is(path, JV_NONE) || jv_is(path, JV_MISSING))
        return 0;
    bool text = jv_is(path, JV_STRING), more = true;
    struct jv rest = path;
    while (more) {
        struct jv part = rest;
        const char *point = text && rest.size ? memchr(rest.text, '.', rest.size) : NULL;
        more = point;
        if (more) {
            part.size = (uint32_t)(point - rest.text);
            rest.text = point + 1;
            rest.size -= part.size + 1;
        }
        struct jv from = *out;
        if (nl_jinja_charge(run, 1) != 0 ||
            nl_jv_getitem(run, from, text ? part_of_path(part) : part, out) != 0)
            return -1;
        if (jv_is(*out, JV_UNDEFINED) && !jv_is(otherwise, JV_MISSING) && !jv_is(otherwise, JV_NONE))
            *out = otherwise;
    }
    return 0;
}
