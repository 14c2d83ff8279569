/* Memory, failures, strings, lists and dicts of the template interpreter. */
#include "jinja_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_tree.h"

enum { BLOCK = 1 << 16, FIRST_CAPACITY = 8, LONG_STRING = 512 };

struct jinja_block {
    struct jinja_block *next;
    size_t size;
    max_align_t memory[];
};

void *nl_jinja_arena_alloc(struct jinja_arena *arena, size_t size)
{
    enum { ALIGN = sizeof(max_align_t) };
    if (size > JINJA_MOST_MEMORY)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!arena->blocks || size > arena->blocks->size - arena->used) {
        size_t capacity = size > BLOCK / 4 ? size : BLOCK;
        if (arena->total + capacity > JINJA_MOST_MEMORY)
            return NULL;
        struct jinja_block *block = calloc(1, sizeof *block + capacity);
        if (!block)
            return NULL;
        arena->total += capacity;
        block->size = capacity;
        if (capacity == size && arena->blocks) { /* alone in its block: the one in use stays first */
            block->next = arena->blocks->next;
            arena->blocks->next = block;
            return block->memory;
        }
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = 0;
    }
    void *memory = (char *)arena->blocks->memory + arena->used;
    arena->used += size;
    return memory;
}

void nl_jinja_arena_free(struct jinja_arena *arena)
{
    while (arena->blocks) {
        struct jinja_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (struct jinja_arena){0};
}

struct jv nl_jinja_fail(struct nl_jinja_run *run, enum nl_status code, const char *format, ...)
{
    char what[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!run->failed && run->template)
        nl_set_error(run->error, code, "%s: %s, line %u", what, run->template->name, run->line);
    else if (!run->failed)
        nl_set_error(run->error, code, "%s: in the variables of the template", what);
    run->failed = true;
    return jv_missing();
}

struct jv nl_jinja_fail_type(struct nl_jinja_run *run, const char *what, struct jv value)
{
    if (jv_is(value, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, value);
    return nl_jinja_fail(run, NL_DATA, "%s of a value of type %s", what, nl_jv_type_name(value));
}

bool nl_jinja_enter(struct nl_jinja_run *run)
{
    if (++run->depth > JINJA_MOST_DEPTH)
        nl_jinja_fail(run, NL_DATA, "the template nests too deeply");
    return !run->failed;
}

void *nl_jinja_alloc(struct nl_jinja_run *run, size_t size)
{
    void *memory = run->failed ? NULL : nl_jinja_arena_alloc(&run->arena, size);
    if (!memory && run->arena.total + size + BLOCK > JINJA_MOST_MEMORY)
        nl_jinja_fail(run, NL_DATA, "more than %zu MiB of memory", JINJA_MOST_MEMORY >> 20);
    else if (!memory)
        nl_jinja_fail(run, NL_RESOURCE, "out of memory");
    return memory;
}

bool nl_jinja_next_word(const char **list, struct jv *word)
{
    *list += strspn(*list, " ");
    *word = jv_string(*list, strcspn(*list, " "));
    *list += word->size;
    return word->size > 0;
}

bool nl_jinja_is_listed(struct jv name, const char *list)
{
    struct jv word;
    while (nl_jinja_next_word(&list, &word))
        if (jv_is(name, JV_STRING) && jv_same_text(name, word))
            return true;
    return false;
}

static struct jv too_long(struct nl_jinja_run *run)
{
    return nl_jinja_fail(run, NL_DATA, "the template makes a string that is too long");
}

struct jv nl_jv_copy(struct nl_jinja_run *run, const char *text, size_t size)
{
    if (size > JINJA_MOST_OUTPUT)
        return too_long(run);
    char *copy = nl_jinja_charge(run, size / 64) ? nl_jinja_alloc(run, size ? size : 1) : NULL;
    if (!copy)
        return jv_missing();
    if (size)
        memcpy(copy, text, size);
    return jv_string(copy, size);
}

bool nl_jinja_put(struct nl_jinja_run *run, struct nl_buf *buf, struct jv text)
{
    if (buf->size + text.size > JINJA_MOST_OUTPUT)
        too_long(run);
    if (nl_jinja_charge(run, 1 + text.size / 64))
        nl_buf_add(buf, text.text, text.size);
    return !run->failed;
}

struct jv nl_jv_take(struct nl_jinja_run *run, struct nl_buf *buf)
{
    if (buf->failed)
        nl_jinja_fail(run, NL_RESOURCE, "out of memory");
    struct jv text = nl_jv_copy(run, buf->data, buf->size);
    nl_buf_free(buf);
    return text;
}

/* A long string has room behind it, so that one that grows piece by piece is not copied each time. */
struct jv nl_jv_concat(struct nl_jinja_run *run, struct jv left, struct jv right)
{
    size_t size = (size_t)left.size + right.size;
    if (size > JINJA_MOST_OUTPUT)
        return too_long(run);
    if (right.size == 0 || left.size == 0)
        return right.size ? jv_part(right, 0, size) : jv_part(left, 0, size);
    if (!nl_jinja_charge(run, right.size / 64))
        return jv_missing();
    if (left.text + left.size == run->tip && right.size <= run->tip_room) {
        memmove((char *)(uintptr_t)run->tip, right.text, right.size);
        run->tip += right.size;
        run->tip_room -= right.size;
        return jv_string(left.text, size);
    }
    size_t room = left.size > LONG_STRING ? size : 0;
    char *text = nl_jinja_charge(run, left.size / 64) ? nl_jinja_alloc(run, size + room) : NULL;
    if (!text)
        return jv_missing();
    memcpy(text, left.text, left.size);
    memcpy(text + left.size, right.text, right.size);
    if (room) {
        run->tip = text + size;
        run->tip_room = room;
    }
    return jv_string(text, size);
}

struct jv_list *nl_jv_list_new(struct nl_jinja_run *run, size_t capacity)
{
    struct jv_list *list = nl_jinja_alloc(run, sizeof *list);
    if (!list)
        return &run->no_list;
    list->items = capacity ? nl_jinja_alloc(run, capacity * sizeof *list->items) : NULL;
    list->capacity = list->items ? capacity : 0;
    return list;
}

void nl_jv_push(struct nl_jinja_run *run, struct jv_list *list, struct jv value)
{
    if (!nl_jinja_charge(run, 1))
        return;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : FIRST_CAPACITY;
        struct jv *items = nl_jinja_alloc(run, capacity * sizeof *items);
        if (!items)
            return;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = value;
}

struct jv_dict *nl_jv_dict_new(struct nl_jinja_run *run)
{
    struct jv_dict *dict = nl_jinja_alloc(run, sizeof *dict);
    return dict ? dict : &run->no_dict;
}

/* The entry of a key, or NULL. Dicts are small. */
static struct jv_entry *find(struct nl_jinja_run *run, const struct jv_dict *dict, struct jv key)
{
    if (key.kind > JV_STRING) /* lists and dicts cannot be hashed */
        nl_jinja_fail(run, jv_is(key, JV_LIST) || jv_is(key, JV_DICT) ? NL_DATA : NL_UNSUPPORTED,
                      "a key of type %s", nl_jv_type_name(key));
    nl_jinja_charge(run, 1 + dict->count / 16);
    for (size_t i = 0; i < dict->count && !run->failed; i++) {
        struct jv_entry *entry = &dict->entries[i];
        if (entry->key.size == key.size && nl_jv_equal(run, entry->key, key))
            return entry;
    }
    return NULL;
}

void nl_jv_dict_set(struct nl_jinja_run *run, struct jv_dict *dict, struct jv key, struct jv value)
{
    struct jv_entry *entry = find(run, dict, key);
    if (!entry && dict->count == dict->capacity && !run->failed) {
        size_t capacity = dict->capacity ? 2 * dict->capacity : FIRST_CAPACITY;
        struct jv_entry *entries = nl_jinja_alloc(run, capacity * sizeof *entries);
        if (entries && dict->count)
            memcpy(entries, dict->entries, dict->count * sizeof *entries);
        *dict = (struct jv_dict){entries, dict->count, capacity};
    }
    if (run->failed)
        return;
    if (!entry) {
        entry = &dict->entries[dict->count++];
        entry->key = key;
    }
    entry->value = value;
}

bool nl_jv_dict_get(struct nl_jinja_run *run, const struct jv_dict *dict, struct jv key, struct jv *out)
{
    const struct jv_entry *entry = find(run, dict, key);
    if (entry)
        *out = entry->value;
    return entry;
}

static struct jv make_undefined(struct nl_jinja_run *run, struct jv_undefined what)
{
    struct jv_undefined *undefined = nl_jinja_alloc(run, sizeof *undefined);
    if (!undefined)
        return jv_missing();
    *undefined = what;
    return (struct jv){.kind = JV_UNDEFINED, .undefined = undefined};
}

struct jv nl_jv_undefined(struct nl_jinja_run *run, struct jv object, struct jv name)
{
    return make_undefined(run, (struct jv_undefined){.object = object, .name = name});
}

struct jv nl_jv_undefined_hint(struct nl_jinja_run *run, const char *hint)
{
    return make_undefined(run, (struct jv_undefined){.hint = hint});
}

struct jv nl_jv_fail_undefined(struct nl_jinja_run *run, struct jv value)
{
    const struct jv_undefined *undefined = value.undefined;
    struct nl_buf name = {0};
    if (undefined->hint)
        return nl_jinja_fail(run, NL_DATA, "%s", undefined->hint);
    nl_jv_repr(run, undefined->name, &name);
    const char *shown = name.data ? name.data : "?";
    if (jv_is(undefined->object, JV_MISSING))
        nl_jinja_fail(run, NL_DATA, "%.300s is undefined", shown);
    else
        nl_jinja_fail(run, NL_DATA, "'%s object' has no %s %.300s", nl_jv_type_name(undefined->object),
                      jv_is(undefined->name, JV_STRING) ? "attribute" : "element", shown);
    nl_buf_free(&name);
    return jv_missing();
}

const char *nl_jv_type_name(struct jv value)
{
    static const char *const names[] = {"missing",     "Undefined", "NoneType",  "bool",      "int",
                                        "float",       "str",       "list",      "tuple",     "dict",
                                        "view",        "range",     "generator", "Namespace", "Macro",
                                        "LoopContext", "function"};
    return names[value.kind];
}
