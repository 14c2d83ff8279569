/* What loops and filters walk over: iterators, the loop variable, and the filters of sequences, some of which
   make their values when they are asked for. */
#include "jinja_value.h"
#include "unicode.h"

struct jv_iterator {
    struct jv source; /* JV_MISSING: a generator */
    size_t at;        /* items, or bytes of a string */
    struct jinja_generator generator;
    bool running, ended;
};

struct jv_iterator *nl_jv_iterate(struct nl_jinja_run *run, struct jv value)
{
    if (jv_is(value, JV_ITERATOR))
        return value.iterator;
    if (!jv_is(value, JV_UNDEFINED) && (value.kind < JV_STRING || value.kind > JV_RANGE)) {
        nl_jinja_fail(run, jv_is(value, JV_LOOP) ? NL_UNSUPPORTED : NL_DATA,
                      "a value of type %s cannot be iterated", nl_jv_type_name(value));
        return NULL;
    }
    struct jv_iterator *iterator = nl_jinja_alloc(run, sizeof *iterator);
    if (iterator)
        iterator->source = value;
    return iterator;
}

struct jv nl_jv_generator(struct nl_jinja_run *run, const struct jinja_generator *generator)
{
    struct jv_iterator *iterator = nl_jinja_alloc(run, sizeof *iterator);
    if (!iterator)
        return jv_missing();
    iterator->generator = *generator;
    return (struct jv){.kind = JV_ITERATOR, .iterator = iterator};
}

bool nl_jv_next_input(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    if (!generator->source)
        generator->source = nl_jv_iterate(run, generator->over);
    return generator->source && nl_jv_next(run, generator->source, out);
}

static struct jv make_pair(struct nl_jinja_run *run, struct jv first, struct jv second)
{
    struct jv_list *list = nl_jv_list_new(run, 2);
    nl_jv_push(run, list, first);
    nl_jv_push(run, list, second);
    return jv_of_list(list, JV_TUPLE);
}

static bool next_of_source(struct nl_jinja_run *run, struct jv_iterator *iterator, struct jv *out)
{
    struct jv source = iterator->source;
    size_t at = iterator->at, step = 1;
    if (jv_is(source, JV_UNDEFINED) ||
        at == (jv_is(source, JV_STRING) ? source.size : (size_t)nl_jv_length(run, source)))
        return false;
    if (jv_is(source, JV_STRING)) {
        step = nl_utf8_size((unsigned char)source.text[at]);
        *out = jv_part(source, at, at + step);
    } else if (jv_is_sequence(source) || jv_is(source, JV_RANGE)) {
        *out = source.list->items[at];
    } else { /* dicts and views */
        const struct jv_entry *entry = &source.dict->entries[at];
        *out = jv_is(source, JV_DICT) || source.size == JV_KEYS ? entry->key
               : source.size == JV_VALUES                       ? entry->value
                                                                : make_pair(run, entry->key, entry->value);
    }
    iterator->at += step;
    return !run->failed;
}

bool nl_jv_next(struct nl_jinja_run *run, struct jv_iterator *iterator, struct jv *out)
{
    if (!nl_jinja_charge(run, 1) || iterator->ended)
        return false;
    bool got;
    if (!jv_is(iterator->source, JV_MISSING)) {
        got = next_of_source(run, iterator, out);
    } else {
        if (iterator->running)
            nl_jinja_fail(run, NL_DATA, "a generator that asks for its own next value");
        iterator->running = true;
        got = nl_jinja_enter(run) && /* generators of generators */
              iterator->generator.step(run, &iterator->generator, out) && !run->failed;
        iterator->running = false;
        run->depth--;
    }
    iterator->ended = !got;
    return got;
}

struct jv_list *nl_jv_gather(struct nl_jinja_run *run, struct jv iterable)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, iterable);
    struct jv_list *list = nl_jv_list_new(run, 0);
    struct jv item = {0};
    while (iterator && nl_jv_next(run, iterator, &item))
        nl_jv_push(run, list, item);
    return list;
}

static bool peek(struct nl_jinja_run *run, struct jv_loop *loop)
{
    if (!loop->has_after)
        loop->has_after = nl_jv_next(run, loop->iterator, &loop->after);
    return loop->has_after;
}

bool nl_jv_loop_next(struct nl_jinja_run *run, struct jv_loop *loop, struct jv *out)
{
    if (!peek(run, loop))
        return false;
    loop->has_after = false;
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out = loop->after;
    return true;
}

/* What has no length is read to its end. */
int64_t nl_jv_loop_length(struct nl_jinja_run *run, struct jv_loop *loop)
{
    if (loop->length < 0 && !jv_is(loop->iterable, JV_ITERATOR)) {
        loop->length = nl_jv_length(run, loop->iterable);
    } else if (loop->length < 0) {
        struct jv_list *rest = nl_jv_gather(run, loop->iterable);
        loop->length = (int64_t)rest->count + loop->index0 + 1 + loop->has_after;
        loop->iterator = nl_jv_iterate(run, jv_of_list(rest, JV_LIST));
    }
    return loop->length;
}

bool nl_jv_loop_get(struct nl_jinja_run *run, struct jv_loop *loop, struct jv name, struct jv *out)
{
    if (jv_text_is(name, "index"))
        *out = jv_int(loop->index0 + 1);
    else if (jv_text_is(name, "index0"))
        *out = jv_int(loop->index0);
    else if (jv_text_is(name, "first"))
        *out = jv_bool(loop->index0 == 0);
    else if (jv_text_is(name, "last"))
        *out = jv_bool(!peek(run, loop));
    else if (jv_text_is(name, "length"))
        *out = jv_int(nl_jv_loop_length(run, loop));
    else if (jv_text_is(name, "revindex"))
        *out = jv_int(nl_jv_loop_length(run, loop) - loop->index0);
    else if (jv_text_is(name, "revindex0"))
        *out = jv_int(nl_jv_loop_length(run, loop) - loop->index0 - 1);
    else if (jv_text_is(name, "previtem"))
        *out = loop->index0 > 0 ? loop->before : nl_jv_undefined_hint(run, "there is no previous item");
    else if (jv_text_is(name, "nextitem"))
        *out = peek(run, loop) ? loop->after : nl_jv_undefined_hint(run, "there is no next item");
    else
        return false;
    return true;
}

/* The lower case of a string unless case counts; other values as they are. */
static struct jv fold(struct nl_jinja_run *run, struct jv value, struct jv case_sensitive)
{
    struct jv a[JINJA_ARGUMENTS] = {value, [JINJA_VARIANT] = {.kind = JV_INT, .integer = JINJA_LOWER}};
    return !jv_is(value, JV_STRING) || nl_jv_flag(run, case_sensitive) ? value : nl_jinja_change_case(run, a);
}

struct jv nl_jinja_first(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct jv item = {0};
    if (iterator && nl_jv_next(run, iterator, &item))
        return item;
    return nl_jv_undefined_hint(run, "there is no first item");
}

struct jv nl_jinja_last(struct nl_jinja_run *run, struct jv *a)
{
    if (jv_is(a[0], JV_ITERATOR))
        return nl_jinja_fail(run, NL_DATA, "'last' of a generator");
    const struct jv_list *list = nl_jv_gather(run, a[0]);
    return list->count ? list->items[list->count - 1] : nl_jv_undefined_hint(run, "there is no last item");
}

/* Python gives an iterator for what it can walk backwards, and a list else. */
struct jv nl_jinja_reverse(struct nl_jinja_run *run, struct jv *a)
{
    const struct jv backwards[3] = {jv_none(), jv_none(), jv_int(-1)};
    if (jv_is(a[0], JV_STRING))
        return nl_jv_slice(run, a[0], backwards);
    struct jv list = nl_jv_slice(run, jv_of_list(nl_jv_gather(run, a[0]), JV_LIST), backwards);
    if (jv_is(a[0], JV_ITERATOR) || run->failed)
        return list;
    return (struct jv){.kind = JV_ITERATOR, .iterator = nl_jv_iterate(run, list)};
}

struct jv nl_jinja_list(struct nl_jinja_run *run, struct jv *a)
{
    return jv_of_list(nl_jv_gather(run, a[0]), JV_LIST);
}

/* a: value, d, attribute */
struct jv nl_jinja_join(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct jv separator = jv_is(a[1], JV_MISSING) ? jv_string("", 0) : nl_jv_to_string(run, a[1]), item = {0};
    struct nl_buf made = {0};
    for (bool first = true; iterator && nl_jv_next(run, iterator, &item); first = false) {
        if (!first)
            nl_jinja_put(run, &made, separator);
        nl_jv_str(run, nl_jv_get_path(run, item, a[2], jv_missing()), &made);
    }
    return nl_jv_take(run, &made);
}

/* a: value, attribute, start */
struct jv nl_jinja_sum(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct jv item = {0}, sum = jv_is(a[2], JV_MISSING) ? jv_int(0) : a[2];
    if (jv_is(sum, JV_STRING))
        return nl_jinja_fail(run, NL_DATA, "'sum' of strings");
    while (iterator && nl_jv_next(run, iterator, &item))
        sum = nl_jv_arithmetic(run, JINJA_ADD, sum, nl_jv_get_path(run, item, a[1], jv_missing()));
    return sum;
}

/* a: value, case_sensitive, attribute */
struct jv nl_jinja_extreme(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_iterator *iterator = nl_jv_iterate(run, a[0]);
    struct jv item = {0}, found = {0}, best = {0};
    while (iterator && nl_jv_next(run, iterator, &item)) {
        struct jv key = fold(run, nl_jv_get_path(run, item, a[2], jv_missing()), a[1]);
        if (jv_is(best, JV_MISSING) || nl_jv_order(run, key, best) == a[JINJA_VARIANT].integer) {
            best = key;
            found = item;
        }
    }
    return jv_is(best, JV_MISSING) ? nl_jv_undefined_hint(run, "there is no smallest or largest item")
                                   : found;
}

struct sortable {
    struct jv key, value;
};

/* Stable, as Python's; reversed it keeps the order of equal ones too. */
static void merge(struct nl_jinja_run *run, struct sortable *items, size_t count, bool reverse,
                  struct sortable *spare)
{
    size_t half = count / 2, i = 0, j = half, n = 0;
    if (count < 2)
        return;
    merge(run, items, half, reverse, spare);
    merge(run, items + half, count - half, reverse, spare);
    while (i < half && j < count) {
        bool later = nl_jv_order(run, items[j].key, items[i].key) == (reverse ? 1 : -1);
        spare[n++] = later ? items[j++] : items[i++];
    }
    while (i < half)
        spare[n++] = items[i++];
    memcpy(items, spare, n * sizeof *items);
}

static struct jv sort(struct nl_jinja_run *run, const struct jv_list *values, const struct jv_list *keys,
                      bool reverse)
{
    struct sortable *items = nl_jinja_alloc(run, (2 * values->count + 1) * sizeof *items);
    struct jv_list *sorted = nl_jv_list_new(run, values->count);
    for (size_t i = 0; i < values->count && !run->failed; i++)
        items[i] = (struct sortable){keys->items[i], values->items[i]};
    if (!run->failed)
        merge(run, items, values->count, reverse, items + values->count);
    for (size_t i = 0; i < values->count && !run->failed; i++)
        nl_jv_push(run, sorted, items[i].value);
    return jv_of_list(sorted, JV_LIST);
}

/* A list of one, so that what is equal needs no order. */
static struct jv make_key(struct nl_jinja_run *run, struct jv item, struct jv attribute,
                          struct jv case_sensitive)
{
    struct jv_list *key = nl_jv_list_new(run, 1);
    if (jv_is(attribute, JV_STRING) && memchr(attribute.text, ',', attribute.size))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'sort' by several attributes");
    struct jv value = nl_jv_get_path(run, item, attribute, jv_missing());
    nl_jv_push(run, key, fold(run, value, case_sensitive));
    return jv_of_list(key, JV_LIST);
}

/* a: value, reverse, case_sensitive, attribute */
struct jv nl_jinja_sort(struct nl_jinja_run *run, struct jv *a)
{
    struct jv_list *values = nl_jv_gather(run, a[0]), *keys = nl_jv_list_new(run, values->count);
    bool reverse = nl_jv_to_int(run, a[1], "'sort'", 0) != 0;
    for (size_t i = 0; i < values->count && !run->failed; i++)
        nl_jv_push(run, keys, make_key(run, values->items[i], a[3], a[2]));
    return sort(run, values, keys, reverse);
}

/* a: value, case_sensitive, by, reverse */
struct jv nl_jinja_dictsort(struct nl_jinja_run *run, struct jv *a)
{
    bool reverse = nl_jv_to_int(run, a[3], "'dictsort'", 0) != 0, by_value = jv_text_is(a[2], "value");
    if (!jv_is(a[0], JV_DICT))
        return nl_jinja_fail_type(run, "'dictsort'", a[0]);
    if (!jv_is(a[2], JV_MISSING) && !by_value && !jv_text_is(a[2], "key"))
        return nl_jinja_fail(run, NL_DATA, "'dictsort' takes 'key' or 'value'");
    struct jv_list *values = nl_jv_gather(run, jv_view(a[0].dict, JV_ITEMS));
    struct jv_list *keys = nl_jv_list_new(run, values->count);
    for (size_t i = 0; i < values->count && !run->failed; i++)
        nl_jv_push(run, keys, fold(run, values->items[i].list->items[by_value], a[1]));
    return sort(run, values, keys, reverse);
}

/* Nothing of what counts as false, not even a refusal to be walked over. */
static bool next_if_true(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    return (generator->source || nl_jv_truth(run, generator->over)) && nl_jv_next_input(run, generator, out);
}

static bool step_map(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv item = {0};
    if (!next_if_true(run, generator, &item))
        return false;
    *out = jv_is(generator->name, JV_MISSING)
               ? nl_jv_get_path(run, item, generator->attribute, generator->otherwise)
               : nl_jinja_filter(run, generator->name, item, &generator->args);
    return true;
}

static bool step_select(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    while (next_if_true(run, generator, out)) {
        struct jv value = nl_jv_get_path(run, *out, generator->attribute, jv_missing());
        bool keep = jv_is(generator->name, JV_MISSING)
                        ? nl_jv_truth(run, value)
                        : nl_jinja_test(run, generator->name, value, &generator->args);
        if (keep != generator->reject)
            return true;
    }
    return false;
}

/* The first argument is a name, the others are passed on. */
static void take_name(struct nl_jinja_run *run, struct jinja_generator *generator, const struct jv_list *list,
                      size_t first)
{
    if (first >= list->count)
        return;
    generator->name = list->items[first];
    generator->args.list = nl_jv_list_new(run, list->count);
    for (size_t i = first + 1; i < list->count && !run->failed; i++)
        nl_jv_push(run, generator->args.list, list->items[i]);
}

struct jv nl_jinja_map(struct nl_jinja_run *run, struct jv *a)
{
    const struct jv_list *list = a[1].list;
    struct jv_dict *named = a[2].dict;
    struct jinja_generator generator = {.step = step_map, .over = a[0], .args.named = named};
    take_name(run, &generator, list, 0);
    if (list->count == 0) {
        bool attribute = nl_jv_dict_get(run, named, jv_chars("attribute"), &generator.attribute);
        bool otherwise = nl_jv_dict_get(run, named, jv_chars("default"), &generator.otherwise);
        if (!attribute || named->count > 1u + otherwise)
            return nl_jinja_fail(run, NL_UNSUPPORTED, "such arguments of 'map'");
    }
    return nl_jv_generator(run, &generator);
}

struct jv nl_jinja_select(struct nl_jinja_run *run, struct jv *a)
{
    const struct jv_list *list = a[1].list;
    bool by_attribute = a[JINJA_VARIANT].integer & JINJA_BY_ATTRIBUTE;
    struct jinja_generator generator = {.step = step_select,
                                        .over = a[0],
                                        .reject = a[JINJA_VARIANT].integer & JINJA_REJECT,
                                        .args.named = a[2].dict};
    if (by_attribute && list->count == 0)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'selectattr' or 'rejectattr' without an attribute");
    if (by_attribute)
        generator.attribute = list->items[0];
    take_name(run, &generator, list, by_attribute);
    return nl_jv_generator(run, &generator);
}

static bool step_items(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    if (!generator->source && jv_is(generator->over, JV_DICT))
        generator->over = jv_view(generator->over.dict, JV_ITEMS);
    else if (!generator->source && !jv_is(generator->over, JV_UNDEFINED))
        nl_jinja_fail_type(run, "'items'", generator->over);
    return nl_jv_next_input(run, generator, out);
}

struct jv nl_jinja_items(struct nl_jinja_run *run, struct jv *a)
{
    const struct jinja_generator generator = {.step = step_items, .over = a[0]};
    return nl_jv_generator(run, &generator);
}

static bool step_unique(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    struct jv ignored;
    if (!generator->seen)
        generator->seen = nl_jv_dict_new(run);
    while (nl_jv_next_input(run, generator, out)) {
        struct jv key = fold(run, nl_jv_get_path(run, *out, generator->attribute, jv_missing()),
                             generator->case_sensitive);
        if (!nl_jv_dict_get(run, generator->seen, key, &ignored)) {
            nl_jv_dict_set(run, generator->seen, key, jv_none());
            return true;
        }
    }
    return false;
}

/* a: value, case_sensitive, attribute */
struct jv nl_jinja_unique(struct nl_jinja_run *run, struct jv *a)
{
    const struct jinja_generator generator = {
        .step = step_unique, .over = a[0], .case_sensitive = a[1], .attribute = a[2]};
    return nl_jv_generator(run, &generator);
}
