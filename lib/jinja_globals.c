/* Functions that every template has, and namespaces. */
#include <stdio.h>
#include <sys/time.h>

#include "jinja_value.h"
#include "locale_c.h"

static struct jv call_range(struct nl_jinja_run *run, struct jv *a)
{
    int64_t start = nl_jv_to_int(run, a[1], "'range'", 0), stop = nl_jv_to_int(run, a[2], "'range'", 0);
    int64_t step = nl_jv_to_int(run, a[3], "'range'", 1);
    if (jv_is(a[2], JV_MISSING)) {
        stop = start;
        start = 0;
    }
    if (step == 0)
        return nl_jinja_fail(run, NL_DATA, "'range' with step zero");
    uint64_t count = 0, stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 && stop > start)
        count = ((uint64_t)stop - (uint64_t)start - 1) / stride + 1;
    else if (step < 0 && stop < start)
        count = ((uint64_t)start - (uint64_t)stop - 1) / stride + 1;
    if (count > JINJA_MOST_RANGE)
        return nl_jinja_fail(run, NL_DATA, "'range' of more than %d items", JINJA_MOST_RANGE);
    struct jv_list *list = nl_jv_list_new(run, count);
    for (uint64_t i = 0; i < count && !run->failed; i++)
        nl_jv_push(run, list, jv_int((int64_t)((uint64_t)start + i * (uint64_t)step)));
    return jv_of_list(list, JV_RANGE);
}

/* dict's one argument without a name is a mapping or pairs, here a mapping. */
static struct jv call_dict(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_dict *dict = nl_jv_dict_new(run);
    const struct jv_list *list = a[1].list;
    const struct jv_dict *from = NULL, *named = a[2].dict;
    if (list->count == 1 && jv_is(list->items[0], JV_DICT))
        from = list->items[0].dict;
    else if (list->count)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'dict' or 'namespace' of something else than a dict");
    for (size_t i = 0; from && i < from->count && !run->failed; i++)
        nl_jv_dict_set(run, dict, from->entries[i].key, from->entries[i].value);
    for (size_t i = 0; i < named->count && !run->failed; i++)
        nl_jv_dict_set(run, dict, named->entries[i].key, named->entries[i].value);
    return jv_of_dict(dict);
}

static void check_name(struct nl_jinja_run *run, struct jv name)
{
    if (jv_is(name, JV_STRING) && name.size && name.text[0] == '_')
        nl_jinja_fail(run, NL_DATA, "an attribute of a namespace cannot begin with '_'");
}

static struct jv call_namespace(struct nl_jinja_run *run, struct jv *a)
{
    struct jv space = call_dict(run, a);
    if (run->failed)
        return space;
    for (size_t i = 0; i < space.dict->count; i++)
        check_name(run, space.dict->entries[i].key);
    space.kind = JV_NAMESPACE;
    return space;
}

void nl_jinja_set_attribute(struct nl_jinja_run *run, struct jv space, struct jv name, struct jv value)
{
    check_name(run, name);
    if (!jv_is(space, JV_NAMESPACE)) /* a `set` block of jinja2 writes into dicts */
        nl_jinja_fail(run, jv_is(space, JV_DICT) ? NL_UNSUPPORTED : NL_DATA,
                      "cannot set an attribute of a value of type %s", nl_jv_type_name(space));
    else if (!run->failed)
        nl_jv_dict_set(run, space.dict, name, value);
}

static struct jv call_raise(struct nl_jinja_run *run, struct jv *a)
{
    struct nl_buf message = {0};
    nl_jv_str(run, a[1], &message);
    nl_jinja_fail(run, NL_DATA, "the template refuses: %.600s", message.data ? message.data : "");
    nl_buf_free(&message);
    return jv_missing();
}

static struct jv call_strftime(struct nl_jinja_run *run, struct jv *a)
{
    struct timeval now = {.tv_sec = run->now};
    struct tm local;
    struct nl_buf format = {0};
    if (!jv_is(a[1], JV_STRING))
        return nl_jinja_fail(run, NL_DATA, "'strftime_now' takes a string");
    if (a[1].size > 1000 || memchr(a[1].text, '\0', a[1].size))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "such a format for 'strftime_now'");
    if (!run->has_now)
        gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &local);
    local.tm_isdst = -1; /* Python's is a time without a zone: nothing for %z and %Z, with flags neither */
    local.tm_zone = "";
    nl_buf_putc(&format, '.'); /* so that nothing to write and no room differ */
    for (uint32_t i = 0; i < a[1].size; i++) {
        char c = a[1].text[i], directive = c == '%' && i + 1 < a[1].size ? a[1].text[++i] : '\0';
        if (directive == 'f') /* Python's own */
            nl_buf_printf(&format, "%06ld", (long)now.tv_usec);
        else if (directive == '\0')
            nl_buf_putc(&format, c);
        else if (directive != 'z' && directive != 'Z')
            nl_buf_printf(&format, "%%%c", directive);
    }
    char made[8000];
    locale_t before = nl_locale_enter();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t size = format.failed ? 0 : strftime(made, sizeof made, format.data, &local);
#pragma GCC diagnostic pop
    nl_locale_leave(before);
    nl_buf_free(&format);
    if (size == 0)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "a time that is too long");
    return nl_jv_copy(run, made + 1, size - 1);
}

const struct jinja_builtin nl_jinja_globals[] = {
    {"range", call_range, "-a -b -c", 1, 0, false},
    {"dict", call_dict, "*", 0, 0, false},
    {"namespace", call_namespace, "*", 0, 0, false},
    {"raise_exception", call_raise, "message", 1, 0, false},
    {"strftime_now", call_strftime, "format", 1, 0, false},
    {0},
};
