/* Functions that every template has, and namespaces. */
#include <stdio.h>
#include <sys/time.h>

#include "jinja_value.h"
#include "locale_c.h"

static const struct jinja_builtin globals[] = {
    /* in the order of enum jinja_global */
    {"range", NULL, "-a -b -c", 1},      {"dict", NULL, "", 0},
    {"namespace", NULL, "", 0},          {"raise_exception", NULL, "message", 1},
    {"strftime_now", NULL, "format", 1}, {"cycler", NULL, "", 0},
    {"joiner", NULL, "sep", 0},          {"lipsum", NULL, "", 0},
};

bool nl_jinja_find_global(struct jv name, struct jv *out)
{
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (jv_text_is(name, globals[i].name)) {
            *out = (struct jv){.kind = JV_GLOBAL, .integer = (int64_t)i};
            return true;
        }
    return false;
}

static int call_range(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t bounds[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++)
        if (!jv_is(a[1 + i], JV_MISSING) && nl_jv_to_int(run, a[1 + i], "'range'", &bounds[i]) != 0)
            return -1;
    if (jv_is(a[2], JV_MISSING)) {
        bounds[1] = bounds[0];
        bounds[0] = 0;
    }
    if (bounds[2] == 0)
        return jinja_fail(run, NL_DATA, "'range' with step zero");
    uint64_t count = 0, stride = bounds[2] > 0 ? (uint64_t)bounds[2] : 0 - (uint64_t)bounds[2];
    if (bounds[2] > 0 && bounds[1] > bounds[0])
        count = ((uint64_t)bounds[1] - (uint64_t)bounds[0] - 1) / stride + 1;
    else if (bounds[2] < 0 && bounds[1] < bounds[0])
        count = ((uint64_t)bounds[0] - (uint64_t)bounds[1] - 1) / stride + 1;
    if (count > JINJA_MOST_RANGE)
        return jinja_fail(run, NL_DATA, "'range' of more than %d items", JINJA_MOST_RANGE);
    struct jv_range *range = nl_jinja_alloc(run, sizeof *range);
    if (!range)
        return -1;
    *range = (struct jv_range){bounds[0], bounds[1], bounds[2], (int64_t)count};
    *out = (struct jv){.kind = JV_RANGE, .range = range};
    return 0;
}

/* dict's one positional argument: a mapping, or pairs. */
static int add_pairs(struct nl_jinja_run *run, struct jv_dict *dict, struct jv from)
{
    struct jv_view view = {.dict = from.dict, .of = JV_ITEMS};
    struct jv items = jv_is(from, JV_DICT) ? (struct jv){.kind = JV_VIEW, .view = &view} : from, item;
    struct jv_iterator *iterator = nl_jv_iterate(run, items);
    int got = iterator ? 0 : -1;
    while (iterator && (got = nl_jv_next(run, iterator, &item)) > 0) {
        struct jv_list *pair = nl_jv_gather(run, item);
        if (!pair)
            return -1;
        if (pair->count != 2)
            return jinja_fail(run, NL_DATA, "'dict' takes pairs");
        if (nl_jv_dict_set(run, dict, pair->items[0], pair->items[1]) != 0)
            return -1;
    }
    return got;
}

static int call_dict(struct nl_jinja_run *run, const struct jinja_args *args, struct jv *out)
{
    struct jv_dict *dict = nl_jv_dict_new(run);
    if (!dict)
        return -1;
    if (args->count > 1)
        return jinja_fail(run, NL_DATA, "too many arguments for 'dict' or 'namespace'");
    if (args->count && add_pairs(run, dict, args->values[0]) != 0)
        return -1;
    for (size_t i = 0; i < args->n_named; i++)
        if (nl_jv_dict_set(run, dict, args->named[i].name, args->named[i].value) != 0)
            return -1;
    *out = (struct jv){.kind = JV_DICT, .dict = dict};
    return 0;
}

static int check_name(struct nl_jinja_run *run, struct jv name)
{
    if (jv_is(name, JV_STRING) && name.size && name.text[0] == '_')
        return jinja_fail(run, NL_DATA, "an attribute of a namespace cannot begin with '_'");
    return 0;
}

static int call_namespace(struct nl_jinja_run *run, const struct jinja_args *args, struct jv *out)
{
    if (call_dict(run, args, out) != 0)
        return -1;
    for (size_t i = 0; i < out->dict->count; i++)
        if (check_name(run, out->dict->entries[i].key) != 0)
            return -1;
    out->kind = JV_NAMESPACE;
    return 0;
}

int nl_jinja_set_attribute(struct nl_jinja_run *run, struct jv space, struct jv name, struct jv value)
{
    if (!jv_is(space, JV_NAMESPACE))
        return jinja_fail(run, NL_DATA, "cannot set an attribute of what is not a namespace");
    return check_name(run, name) != 0 ? -1 : nl_jv_dict_set(run, space.dict, name, value);
}

static int call_raise(struct nl_jinja_run *run, struct jv *a)
{
    struct nl_buf message = {0};
    if (nl_jv_str(run, a[1], &message) == 0)
        nl_jinja_set_error(run, NL_DATA, "the template refuses: %.600s", message.data ? message.data : "");
    nl_buf_free(&message);
    return -1;
}

/* Python's own directives: %f, and %z and %Z, which are empty for a time without a zone. */
static void add_directive(struct nl_buf *format, char c, long microseconds)
{
    if (c == 'f')
        nl_buf_printf(format, "%06ld", microseconds);
    else if (c != 'z' && c != 'Z')
        nl_buf_printf(format, "%%%c", c);
}

static int call_strftime(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct timeval now = {.tv_sec = run->now};
    struct tm local;
    struct nl_buf format = {0};
    if (!jv_is(a[1], JV_STRING))
        return jinja_fail(run, NL_DATA, "'strftime_now' takes a string");
    if (a[1].size > 1000 || (a[1].size && memchr(a[1].text, '\0', a[1].size)))
        return jinja_fail(run, NL_UNSUPPORTED, "such a format for 'strftime_now'");
    if (!run->has_now)
        gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &local);
    for (uint32_t i = 0; i < a[1].size; i++) {
        if (a[1].text[i] == '%' && i + 1 < a[1].size)
            add_directive(&format, a[1].text[++i], (long)now.tv_usec);
        else
            nl_buf_putc(&format, a[1].text[i]);
    }
    nl_buf_putc(&format, '.'); /* so that nothing to write and no room differ */
    char made[8000];
    locale_t before = nl_locale_enter();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t size = format.failed ? 0 : strftime(made, sizeof made, format.data, &local);
#pragma GCC diagnostic pop
    nl_locale_leave(before);
    nl_buf_free(&format);
    if (size == 0)
        return jinja_fail(run, NL_DATA, "a time that is too long");
    return nl_jv_copy(run, made, size - 1, out);
}

static int call_cycler(struct nl_jinja_run *run, const struct jinja_args *args, struct jv *out)
{
    struct jv_cycle *cycle = nl_jinja_alloc(run, sizeof *cycle);
    if (args->count == 0 || args->n_named)
        return jinja_fail(run, NL_DATA, "'cycler' takes one item or more");
    if (!cycle || !(cycle->items = nl_jv_list_new(run, args->count)))
        return -1;
    memcpy(cycle->items->items, args->values, args->count * sizeof *args->values);
    cycle->items->count = args->count;
    *out = (struct jv){.kind = JV_CYCLER, .cycle = cycle};
    return 0;
}

static int call_joiner(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_cycle *cycle = nl_jinja_alloc(run, sizeof *cycle);
    if (!cycle || !(cycle->items = nl_jv_list_new(run, 1)))
        return -1;
    cycle->items->items[cycle->items->count++] = jv_is(a[1], JV_MISSING) ? jv_chars(", ") : a[1];
    *out = (struct jv){.kind = JV_JOINER, .cycle = cycle};
    return 0;
}

int nl_jinja_call_global(struct nl_jinja_run *run, enum jinja_global global, const struct jinja_args *args,
                         struct jv *out)
{
    struct jv a[1 + JINJA_MOST_PARAMETERS];
    switch (global) {
    case JINJA_DICT:
        return call_dict(run, args, out);
    case JINJA_NAMESPACE:
        return call_namespace(run, args, out);
    case JINJA_CYCLER:
        return call_cycler(run, args, out);
    case JINJA_LIPSUM:
        return jinja_fail(run, NL_UNSUPPORTED, "function 'lipsum'");
    default:
        break;
    }
    if (nl_jinja_bind(run, &globals[global], jv_none(), args, a) != 0)
        return -1;
    switch (global) {
    case JINJA_RANGE:
        return call_range(run, a, out);
    case JINJA_RAISE:
        return call_raise(run, a);
    case JINJA_STRFTIME:
        return call_strftime(run, a, out);
    default:
        return call_joiner(run, a, out);
    }
}
