/* What loops and filters walk over, and the loop variable. */
#include "jinja_tree.h"
#include "unicode.h"

struct jv_iterator {
    struct jv source; /* JV_MISSING: a generator */
    size_t at;        /* items, or bytes of a string */
    struct jinja_generator generator;
    bool ended;
};

bool nl_jv_is_iterable(struct jv value)
{
    switch (value.kind) {
    case JV_UNDEFINED:
    case JV_STRING:
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
    case JV_VIEW:
    case JV_RANGE:
    case JV_ITERATOR:
    case JV_LOOP:
        return true;
    default:
        return false;
    }
}

struct jv_iterator *nl_jv_iterate(struct nl_jinja_run *run, struct jv value)
{
    if (jv_is(value, JV_ITERATOR))
        return value.iterator;
    if (!nl_jv_is_iterable(value) || jv_is(value, JV_LOOP)) {
        nl_jinja_set_error(run, jv_is(value, JV_LOOP) ? NL_UNSUPPORTED : NL_DATA,
                           "a value of type %s cannot be iterated", nl_jv_type_name(value));
        return NULL;
    }
    struct jv_iterator *iterator = nl_jinja_alloc(run, sizeof *iterator);
    if (iterator)
        iterator->source = value;
    return iterator;
}

int nl_jv_generator(struct nl_jinja_run *run, const struct jinja_generator *generator, struct jv *out)
{
    struct jv_iterator *iterator = nl_jinja_alloc(run, sizeof *iterator);
    if (!iterator)
        return -1;
    iterator->generator = *generator;
    *out = (struct jv){.kind = JV_ITERATOR, .iterator = iterator};
    return 0;
}

static int next_entry(struct nl_jinja_run *run, const struct jv_entry *entry, enum jv_view_of of,
                      struct jv *out)
{
    if (of == JV_ITEMS)
        return nl_jv_pair(run, entry->key, entry->value, out) != 0 ? -1 : 1;
    *out = of == JV_KEYS ? entry->key : entry->value;
    return 1;
}

static int next_of_source(struct nl_jinja_run *run, struct jv_iterator *iterator, struct jv *out)
{
    struct jv source = iterator->source;
    size_t at = iterator->at;
    unsigned size;
    switch (source.kind) {
    case JV_LIST:
    case JV_TUPLE:
        if (at == source.list->count)
            return 0;
        *out = source.list->items[iterator->at++];
        return 1;
    case JV_STRING:
        if (at == source.size)
            return 0;
        nl_utf8_get(source.text + at, &size);
        *out = jv_string(source.text + at, size);
        iterator->at += size;
        return 1;
    case JV_DICT:
        if (at == source.dict->count)
            return 0;
        iterator->at++;
        return next_entry(run, &source.dict->entries[at], JV_KEYS, out);
    case JV_VIEW:
        if (at == source.view->dict->count)
            return 0;
        iterator->at++;
        return next_entry(run, &source.view->dict->entries[at], source.view->of, out);
    case JV_RANGE:
        if ((int64_t)at == source.range->count)
            return 0;
        *out = jv_int(source.range->start + (int64_t)at * source.range->step);
        iterator->at++;
        return 1;
    default:
        return 0;
    }
}

int nl_jv_next(struct nl_jinja_run *run, struct jv_iterator *iterator, struct jv *out)
{
    int got = 0;
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    if (iterator->ended)
        return 0;
    if (!jv_is(iterator->source, JV_MISSING)) {
        got = next_of_source(run, iterator, out);
    } else {
        if (nl_jinja_enter(run) != 0) /* generators of generators */
            return -1;
        got = iterator->generator.step(run, &iterator->generator, out);
        run->depth--;
    }
    iterator->ended = got == 0;
    return got;
}

struct jv_list *nl_jv_gather(struct nl_jinja_run *run, struct jv iterable)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, iterable);
    struct jv_list *list = iterator ? nl_jv_list_new(run, 0) : NULL;
    struct jv item = {0};
    int got = -1;
    while (list && (got = nl_jv_next(run, iterator, &item)) > 0)
        if (nl_jv_list_push(run, list, item) != 0)
            return NULL;
    return got == 0 ? list : NULL;
}

static int peek(struct nl_jinja_run *run, struct jv_loop *loop)
{
    if (loop->has_after || loop->ended)
        return loop->has_after;
    int got = nl_jv_next(run, loop->iterator, &loop->after);
    loop->has_after = got > 0;
    loop->ended = got == 0;
    return got;
}

int nl_jv_loop_next(struct nl_jinja_run *run, struct jv_loop *loop, struct jv *out)
{
    int got = peek(run, loop);
    if (got <= 0)
        return got;
    *out = loop->after;
    loop->has_after = false;
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out;
    return 1;
}

/* What has no length is read to its end. */
static int measure(struct nl_jinja_run *run, struct jv_loop *loop)
{
    if (loop->length >= 0)
        return 0;
    if (!jv_is(loop->iterable, JV_ITERATOR))
        return nl_jv_length(run, loop->iterable, &loop->length);
    struct jv_list *rest = nl_jv_gather(run, loop->iterable);
    if (!rest || !(loop->iterator = nl_jv_iterate(run, jv_of_list(rest, JV_LIST))))
        return -1;
    if (rest->count)
        loop->ended = false;
    loop->length = (int64_t)rest->count + loop->index0 + 1 + loop->has_after;
    return 0;
}

static int neighbour(struct nl_jinja_run *run, struct jv_loop *loop, bool next, struct jv *out)
{
    if (!next && loop->index0 > 0) {
        *out = loop->before;
        return 1;
    }
    int got = next ? peek(run, loop) : 0;
    if (got < 0)
        return -1;
    *out = loop->after;
    if (got == 0 &&
        nl_jv_undefined_hint(run, next ? "there is no next item" : "there is no previous item", out) != 0)
        return -1;
    return 1;
}

static int loop_number(struct nl_jinja_run *run, struct jv_loop *loop, struct jv name, struct jv *out)
{
    static const char *const names[] = {"index0", "index",     "depth0",  "depth",
                                        "length", "revindex0", "revindex"};
    const int64_t known[] = {loop->index0, loop->index0 + 1, 0, 1};
    for (size_t i = 0; i < 7; i++) {
        if (!jv_text_is(name, names[i]))
            continue;
        if (i >= 4 && measure(run, loop) != 0)
            return -1;
        *out = jv_int(i < 4 ? known[i] : i == 4 ? loop->length : loop->length - loop->index0 - (i == 5));
        return 1;
    }
    return 0;
}

int nl_jv_loop_get(struct nl_jinja_run *run, struct jv_loop *loop, struct jv name, struct jv *out)
{
    int got = loop_number(run, loop, name, out);
    if (got != 0)
        return got;
    if (jv_text_is(name, "first")) {
        *out = jv_bool(loop->index0 == 0);
        return 1;
    }
    if (jv_text_is(name, "last")) {
        got = peek(run, loop);
        *out = jv_bool(got == 0);
        return got < 0 ? -1 : 1;
    }
    if (jv_text_is(name, "previtem") || jv_text_is(name, "nextitem"))
        return neighbour(run, loop, jv_text_is(name, "nextitem"), out);
    bool cycle = jv_text_is(name, "cycle");
    if (!cycle && !jv_text_is(name, "changed"))
        return 0;
    struct jv_method *method = nl_jinja_alloc(run, sizeof *method);
    if (!method)
        return -1;
    method->object = (struct jv){.kind = JV_LOOP, .loop = loop};
    method->id = cycle;
    *out = (struct jv){.kind = JV_METHOD, .method = method};
    return 1;
}

int nl_jv_loop_call(struct nl_jinja_run *run, struct jv_method *method, const struct jinja_args *args,
                    struct jv *out)
{
    struct jv_loop *loop = method->object.loop;
    if (args->n_named)
        return jinja_fail(run, NL_DATA, "an argument by name to a method of loop");
    if (method->id) {
        if (args->count == 0)
            return jinja_fail(run, NL_DATA, "no items to cycle through");
        *out = args->values[(uint64_t)loop->index0 % args->count];
        return 0;
    }
    struct jv_list *values = nl_jv_list_new(run, args->count);
    bool same = false;
    if (!values)
        return -1;
    for (size_t i = 0; i < args->count; i++)
        values->items[values->count++] = args->values[i];
    struct jv now = jv_of_list(values, JV_TUPLE);
    if (!jv_is(loop->changed, JV_MISSING) && nl_jv_equal(run, loop->changed, now, &same) != 0)
        return -1;
    loop->changed = now;
    *out = jv_bool(!same);
    return 0;
}
