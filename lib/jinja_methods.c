/* Methods of dicts, lists and tuples; binding of arguments to parameters. */
#include <stdio.h>

#include "jinja_tree.h"

/* A parameter's name at *at, which moves behind it; false at the end. */
static bool next_name(const char **at, struct jv *name)
{
    while (**at == ' ')
        ++*at;
    size_t size = strcspn(*at, " ");
    *name = jv_string(*at, size);
    *at += size;
    return size > 0;
}

int nl_jinja_bind(struct nl_jinja_run *run, const struct jinja_builtin *builtin, struct jv self,
                  const struct jinja_args *args, struct jv a[1 + JINJA_MOST_PARAMETERS])
{
    const char *at = builtin->parameters;
    struct jv name = {0};
    size_t n = 0, used = 0;
    memset(a, 0, (1 + JINJA_MOST_PARAMETERS) * sizeof *a);
    a[0] = self;
    for (; next_name(&at, &name); n++) {
        if (n < args->count)
            a[1 + n] = args->values[n];
        for (size_t i = 0; i < args->n_named; i++) { /* a "-" in front: not to be given by name */
            const struct jv given = args->named[i].name;
            if (given.size != name.size || memcmp(given.text, name.text, name.size) != 0)
                continue;
            if (n < args->count)
                return jinja_fail(run, NL_DATA, "'%s' gets an argument twice", builtin->name);
            a[1 + n] = args->named[i].value;
            used++;
        }
    }
    if (args->count > n)
        return jinja_fail(run, NL_DATA, "too many arguments for '%s'", builtin->name);
    if (used < args->n_named)
        return jinja_fail(run, NL_DATA, "an argument that '%s' does not know", builtin->name);
    for (size_t i = 0; i < builtin->required; i++)
        if (jv_is(a[1 + i], JV_MISSING))
            return jinja_fail(run, NL_DATA, "an argument of '%s' is missing", builtin->name);
    return 0;
}

static int view_of(struct nl_jinja_run *run, struct jv_dict *dict, enum jv_view_of of, struct jv *out)
{
    struct jv_view *view = nl_jinja_alloc(run, sizeof *view);
    if (!view)
        return -1;
    *view = (struct jv_view){.dict = dict, .of = of};
    *out = (struct jv){.kind = JV_VIEW, .view = view};
    return 0;
}

static int dict_keys(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return view_of(run, a[0].dict, JV_KEYS, out);
}

static int dict_values(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return view_of(run, a[0].dict, JV_VALUES, out);
}

static int dict_items(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return view_of(run, a[0].dict, JV_ITEMS, out);
}

static int dict_get(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    uint64_t hash;
    *out = jv_is(a[2], JV_MISSING) ? jv_none() : a[2];
    return nl_jv_hash(run, a[1], &hash) != 0 || nl_jv_dict_get(run, a[0].dict, a[1], out) < 0 ? -1 : 0;
}

static int dict_copy(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_dict *copy = nl_jv_dict_new(run);
    for (size_t i = 0; copy && i < a[0].dict->count; i++)
        if (nl_jv_dict_set(run, copy, a[0].dict->entries[i].key, a[0].dict->entries[i].value) != 0)
            return -1;
    *out = (struct jv){.kind = JV_DICT, .dict = copy};
    return copy ? 0 : -1;
}

static int list_copy(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv_list *copy = nl_jv_gather(run, a[0]);
    if (!copy)
        return -1;
    *out = jv_of_list(copy, JV_LIST);
    return 0;
}

static int list_count(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < a[0].list->count; i++) {
        bool equal;
        if (nl_jv_equal(run, a[0].list->items[i], a[1], &equal) != 0)
            return -1;
        n += equal;
    }
    *out = jv_int(n);
    return 0;
}

static int list_index(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    if (!jv_is(a[2], JV_MISSING))
        return jinja_fail(run, NL_UNSUPPORTED, "'index' with a start");
    for (size_t i = 0; i < a[0].list->count; i++) {
        bool equal;
        if (nl_jv_equal(run, a[0].list->items[i], a[1], &equal) != 0)
            return -1;
        if (equal) {
            *out = jv_int((int64_t)i);
            return 0;
        }
    }
    return jinja_fail(run, NL_DATA, "'index' of what is not in the list");
}

/* What changes its object is "unsafe", and undefined. */
static const char unsafe[] = "unsafe";

static const struct jinja_builtin dict_methods[] = {
    {"get", dict_get, "-key -default", 1},
    {"items", dict_items, "", 0},
    {"keys", dict_keys, "", 0},
    {"values", dict_values, "", 0},
    {"copy", dict_copy, "", 0},
    {"fromkeys", NULL, "", 0},
    {"clear", NULL, unsafe, 0},
    {"pop", NULL, unsafe, 0},
    {"popitem", NULL, unsafe, 0},
    {"setdefault", NULL, unsafe, 0},
    {"update", NULL, unsafe, 0},
    {0},
};

static const struct jinja_builtin list_methods[] = {
    {"copy", list_copy, "", 0},
    {"count", list_count, "-value", 1},
    {"index", list_index, "-value -start -stop", 1},
    {"append", NULL, unsafe, 0},
    {"clear", NULL, unsafe, 0},
    {"extend", NULL, unsafe, 0},
    {"insert", NULL, unsafe, 0},
    {"pop", NULL, unsafe, 0},
    {"remove", NULL, unsafe, 0},
    {"reverse", NULL, unsafe, 0},
    {"sort", NULL, unsafe, 0},
    {0},
};

static const struct jinja_builtin tuple_methods[] = {
    {"count", list_count, "-value", 1},
    {"index", list_index, "-value -start -stop", 1},
    {0},
};

static const struct jinja_builtin *methods_of(struct jv object)
{
    switch (object.kind) {
    case JV_STRING:
        return nl_jinja_string_methods;
    case JV_DICT:
        return dict_methods;
    case JV_LIST:
        return list_methods;
    default:
        return tuple_methods;
    }
}

static int make_unsafe(struct nl_jinja_run *run, struct jv object, const char *name, struct jv *out)
{
    size_t size = strlen(name) + 100;
    char *hint = nl_jinja_alloc(run, size);
    if (!hint)
        return -1;
    snprintf(hint, size, "access to attribute '%s' is unsafe: object of type %s", name,
             nl_jv_type_name(object));
    return nl_jv_undefined_hint(run, hint, out) != 0 ? -1 : 1;
}

int nl_jv_method(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    const struct jinja_builtin *methods = methods_of(object);
    for (unsigned i = 0; methods[i].name; i++) {
        if (!jv_text_is(name, methods[i].name))
            continue;
        if (methods[i].parameters == unsafe)
            return make_unsafe(run, object, methods[i].name, out);
        struct jv_method *method = nl_jinja_alloc(run, sizeof *method);
        if (!method)
            return -1;
        *method = (struct jv_method){.object = object, .id = i};
        *out = (struct jv){.kind = JV_METHOD, .method = method};
        return 1;
    }
    return 0;
}

static int call_cycler(struct nl_jinja_run *run, const struct jv_method *method,
                       const struct jinja_args *args, struct jv *out)
{
    struct jv_cycle *cycle = method->object.cycle;
    if (args->count || args->n_named)
        return jinja_fail(run, NL_DATA, "an argument to a method of a cycler");
    *out = method->id ? cycle->items->items[cycle->at] : jv_none();
    cycle->at = method->id ? (cycle->at + 1) % cycle->items->count : 0;
    return 0;
}

int nl_jv_call_method(struct nl_jinja_run *run, struct jv value, const struct jinja_args *args,
                      struct jv *out)
{
    struct jv_method *method = value.method;
    struct jv a[1 + JINJA_MOST_PARAMETERS];
    if (jv_is(method->object, JV_LOOP))
        return nl_jv_loop_call(run, method, args, out);
    if (jv_is(method->object, JV_CYCLER))
        return call_cycler(run, method, args, out);
    const struct jinja_builtin *builtin = &methods_of(method->object)[method->id];
    if (method->object.safe)
        return jinja_fail(run, NL_UNSUPPORTED, "method '%s' of a string marked as safe", builtin->name);
    if (builtin->parameters[0] == '*')
        return nl_jinja_format(run, method->object, args, out);
    if (!builtin->function)
        return jinja_fail(run, NL_UNSUPPORTED, "method '%s' of a value of type %s", builtin->name,
                          nl_jv_type_name(method->object));
    return nl_jinja_bind(run, builtin, method->object, args, a) != 0 ? -1 : builtin->function(run, a, out);
}
