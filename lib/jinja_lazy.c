/* Filters whose values are made when they are asked for, as Python's generators do. */
#include "jinja_value.h"

/* The next of what the generator walks over; nothing of what counts as false if `tests`. */
static int next_input(struct nl_jinja_run *run, struct jinja_generator *generator, bool tests, struct jv *out)
{
    bool any = true;
    if (!generator->started) {
        generator->started = true;
        if (tests && nl_jv_truth(run, generator->over, &any) != 0)
            return -1;
        if (any && !(generator->source = nl_jv_iterate(run, generator->over)))
            return -1;
    }
    return generator->source ? nl_jv_next(run, generator->source, out) : 0;
}

static int step_map(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv item = {0};
    int got = next_input(run, generator, true, &item);
    if (got <= 0)
        return got;
    int result = jv_is(generator->name, JV_MISSING)
                     ? nl_jv_get_path(run, item, generator->attribute, generator->otherwise, out)
                     : nl_jinja_filter(run, generator->name, item, &generator->args, out);
    return result != 0 ? -1 : 1;
}

static int step_select(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv value = {0};
    bool keep;
    int got;
    while ((got = next_input(run, generator, true, out)) > 0) {
        value = *out;
        if (!jv_is(generator->attribute, JV_MISSING) &&
            nl_jv_get_path(run, *out, generator->attribute, jv_none(), &value) != 0)
            return -1;
        if (jv_is(generator->name, JV_MISSING)
                ? nl_jv_truth(run, value, &keep) != 0
                : nl_jinja_test(run, generator->name, value, &generator->args, &keep) != 0)
            return -1;
        if (keep != generator->reject)
            return 1;
    }
    return got;
}

/* A generator that fails when its first value is asked for. */
static int step_fail(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv item = {0};
    int got = next_input(run, generator, true, &item);
    (void)out;
    if (got == 0 && !generator->source)
        return 0;
    return jinja_fail(run, NL_DATA, "arguments of 'map', 'select' or their kind are missing or wrong");
}

static struct jinja_args without_first(const struct jinja_args *args, size_t n)
{
    struct jinja_args rest = *args;
    rest.values += n;
    rest.count -= n;
    return rest;
}

static void set_map(struct jinja_generator *generator, const struct jinja_args *args)
{
    bool attribute = false, other = false;
    generator->step = step_map;
    if (args->count) {
        generator->name = args->values[0];
        generator->args = without_first(args, 1);
        return;
    }
    for (size_t i = 0; i < args->n_named; i++) {
        if (jv_text_is(args->named[i].name, "attribute")) {
            generator->attribute = args->named[i].value;
            attribute = true;
        } else if (jv_text_is(args->named[i].name, "default")) {
            generator->otherwise = args->named[i].value;
        } else {
            other = true;
        }
    }
    if (!attribute || other)
        generator->step = step_fail;
}

static void set_select(struct jinja_generator *generator, const struct jinja_args *args, bool by_attribute)
{
    generator->step = by_attribute && args->count == 0 ? step_fail : step_select;
    if (generator->step == step_fail)
        return;
    if (by_attribute)
        generator->attribute = args->values[0];
    if (args->count > by_attribute) {
        generator->name = args->values[by_attribute];
        generator->args = without_first(args, 1u + by_attribute);
    }
}

int nl_jinja_lazy_filter(struct nl_jinja_run *run, struct jv name, struct jv value,
                         const struct jinja_args *args, struct jv *out)
{
    struct jinja_generator generator = {.over = value};
    if (jv_text_is(name, "map")) {
        set_map(&generator, args);
    } else {
        bool by_attribute = name.size > 6; /* selectattr, rejectattr */
        generator.reject = name.text[0] == 'r';
        set_select(&generator, args, by_attribute);
    }
    return nl_jv_generator(run, &generator, out);
}

static int step_items(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    if (!generator->started && !jv_is(generator->over, JV_DICT) && !jv_is(generator->over, JV_UNDEFINED))
        return jinja_fail(run, NL_DATA, "'items' of a value of type %s", nl_jv_type_name(generator->over));
    if (!generator->started && jv_is(generator->over, JV_DICT)) {
        struct jv_view *view = nl_jinja_alloc(run, sizeof *view);
        if (!view)
            return -1;
        *view = (struct jv_view){.dict = generator->over.dict, .of = JV_ITEMS};
        generator->over = (struct jv){.kind = JV_VIEW, .view = view};
    }
    return next_input(run, generator, false, out);
}

int nl_jinja_items(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    const struct jinja_generator generator = {.step = step_items, .over = a[0]};
    return nl_jv_generator(run, &generator, out);
}

static int step_unique(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv plain = {0}, key = {0}, ignored = {0};
    int got;
    if (!generator->seen && !(generator->seen = nl_jv_dict_new(run)))
        return -1;
    while ((got = next_input(run, generator, false, out)) > 0) {
        if (nl_jv_get_path(run, *out, generator->attribute, jv_none(), &plain) != 0 ||
            nl_jinja_fold(run, plain, generator->otherwise, &key) != 0)
            return -1;
        int seen = nl_jv_dict_get(run, generator->seen, key, &ignored);
        if (seen < 0)
            return -1;
        if (seen == 0)
            return nl_jv_dict_set(run, generator->seen, key, jv_none()) != 0 ? -1 : 1;
    }
    return got;
}

/* a: value, case_sensitive, attribute */
int nl_jinja_unique(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    const struct jinja_generator generator = {
        .step = step_unique, .over = a[0], .otherwise = a[1], .attribute = a[2]};
    return nl_jv_generator(run, &generator, out);
}

static int step_batch(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv_list *list = nl_jv_list_new(run, 0);
    struct jv item = {0};
    int got = list ? 1 : -1;
    while (got > 0 && (int64_t)list->count < generator->size &&
           (got = next_input(run, generator, false, &item)) > 0)
        if (nl_jv_list_push(run, list, item) != 0)
            return -1;
    if (got < 0 || list->count == 0)
        return got < 0 ? -1 : 0;
    bool fill = !jv_is(generator->otherwise, JV_MISSING) && !jv_is(generator->otherwise, JV_NONE);
    while (fill && (int64_t)list->count < generator->size)
        if (nl_jv_list_push(run, list, generator->otherwise) != 0)
            return -1;
    *out = jv_of_list(list, JV_LIST);
    return 1;
}

/* Some lists of about the same length. */
static int step_slice(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    if (!generator->started) {
        struct jv_list *all = nl_jv_gather(run, generator->over);
        if (!all)
            return -1;
        generator->over = jv_of_list(all, JV_LIST);
        generator->started = true;
    }
    const struct jv_list *all = generator->over.list;
    int64_t count = (int64_t)all->count, each = count / generator->size, extra = count % generator->size;
    int64_t n = generator->at++;
    if (n == generator->size)
        return 0;
    int64_t from = n * each + (n < extra ? n : extra), to = from + each + (n < extra);
    struct jv_list *list = nl_jv_list_new(run, 0);
    if (!list)
        return -1;
    for (int64_t i = from; i < to; i++)
        if (nl_jv_list_push(run, list, all->items[i]) != 0)
            return -1;
    bool fill = !jv_is(generator->otherwise, JV_MISSING) && !jv_is(generator->otherwise, JV_NONE);
    if (fill && n >= extra && nl_jv_list_push(run, list, generator->otherwise) != 0)
        return -1;
    *out = jv_of_list(list, JV_LIST);
    return 1;
}

static int make_groups(struct nl_jinja_run *run, struct jv *a, bool slice, struct jv *out)
{
    struct jinja_generator generator = {
        .step = slice ? step_slice : step_batch, .over = a[0], .otherwise = a[2]};
    if (!jv_is(a[1], JV_INT) || a[1].integer <= 0)
        return jinja_fail(run, NL_UNSUPPORTED, "'%s' by what is not a positive integer",
                          slice ? "slice" : "batch");
    generator.size = a[1].integer;
    return nl_jv_generator(run, &generator, out);
}

int nl_jinja_batch(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return make_groups(run, a, false, out);
}

int nl_jinja_slice(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return make_groups(run, a, true, out);
}
