/* Memory, strings, lists and dicts of the template interpreter. */
#include "jinja_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_tree.h"

enum { BLOCK = 1 << 16, SMALL_DICT = 8, LONG_STRING = 512 };

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

void nl_jinja_set_error(struct nl_jinja_run *run, enum nl_status code, const char *format, ...)
{
    char what[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char *name = run->template ? run->template->name : "chat"; /* none: variables are being set */
    nl_set_error(run->error, code, "%s: %s, line %u", what, name, run->line);
}

int nl_jinja_too_long(struct nl_jinja_run *run)
{
    return jinja_fail(run, NL_DATA, "the template runs too long");
}

void *nl_jinja_alloc(struct nl_jinja_run *run, size_t size)
{
    void *memory = nl_jinja_arena_alloc(&run->arena, size);
    if (!memory && run->arena.total + size + BLOCK > JINJA_MOST_MEMORY)
        nl_jinja_set_error(run, NL_DATA, "the template needs too much memory");
    else if (!memory)
        nl_set_error(run->error, NL_RESOURCE, "out of memory: template");
    return memory;
}

int nl_jv_copy(struct nl_jinja_run *run, const char *text, size_t size, struct jv *out)
{
    if (size > JINJA_MOST_OUTPUT)
        return jinja_fail(run, NL_DATA, "the template makes a string that is too long");
    char *copy = nl_jinja_alloc(run, size ? size : 1);
    if (!copy)
        return -1;
    if (size)
        memcpy(copy, text, size);
    *out = jv_string(copy, size);
    return nl_jinja_charge(run, size / 64);
}

int nl_jv_take(struct nl_jinja_run *run, struct nl_buf *buf, int result, struct jv *out)
{
    if (result == 0)
        result = nl_buf_check(buf, "template", run->error);
    if (result == 0)
        result = nl_jv_copy(run, buf->data, buf->size, out);
    nl_buf_free(buf);
    return result;
}

/* A long string has room behind it, so that one that grows piece by piece is not copied each time. */
int nl_jv_concat(struct nl_jinja_run *run, struct jv left, struct jv right, struct jv *out)
{
    size_t size = (size_t)left.size + right.size;
    if (size > JINJA_MOST_OUTPUT)
        return jinja_fail(run, NL_DATA, "the template makes a string that is too long");
    if (right.size == 0 || left.size == 0) {
        *out = right.size ? right : left;
        out->safe = false;
        return 0;
    }
    if (nl_jinja_charge(run, right.size / 64) != 0)
        return -1;
    if (left.text + left.size == run->tip && right.size <= run->tip_room) {
        memmove((char *)(uintptr_t)run->tip, right.text, right.size);
        run->tip += right.size;
        run->tip_room -= right.size;
        *out = jv_string(left.text, size);
        return 0;
    }
    size_t room = left.size > LONG_STRING ? size : 0;
    char *text = nl_jinja_alloc(run, size + room);
    if (!text || nl_jinja_charge(run, left.size / 64) != 0)
        return -1;
    memcpy(text, left.text, left.size);
    memcpy(text + left.size, right.text, right.size);
    if (room) {
        run->tip = text + size;
        run->tip_room = room;
    }
    *out = jv_string(text, size);
    return 0;
}

struct jv_list *nl_jv_list_new(struct nl_jinja_run *run, size_t capacity)
{
    struct jv_list *list = nl_jinja_alloc(run, sizeof *list);
    if (!list)
        return NULL;
    list->items = capacity ? nl_jinja_alloc(run, capacity * sizeof *list->items) : NULL;
    list->capacity = capacity;
    return capacity && !list->items ? NULL : list;
}

int nl_jv_list_push(struct nl_jinja_run *run, struct jv_list *list, struct jv value)
{
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        struct jv *items = nl_jinja_alloc(run, capacity * sizeof *items);
        if (!items)
            return -1;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = value;
    return 0;
}

int nl_jv_pair(struct nl_jinja_run *run, struct jv first, struct jv second, struct jv *out)
{
    struct jv_list *list = nl_jv_list_new(run, 2);
    if (!list)
        return -1;
    list->items[0] = first;
    list->items[1] = second;
    list->count = 2;
    *out = jv_of_list(list, JV_TUPLE);
    return 0;
}

struct jv_dict *nl_jv_dict_new(struct nl_jinja_run *run)
{
    return nl_jinja_alloc(run, sizeof(struct jv_dict));
}

/* The entry of a key: 1 and *index, 0, -1. */
static int find(struct nl_jinja_run *run, const struct jv_dict *dict, struct jv key, uint64_t hash,
                size_t *index)
{
    size_t mask = dict->table ? dict->table_size - 1 : 0, at = hash & mask, n = 0;
    for (;; n++) {
        size_t i = n;
        if (dict->table) {
            if (dict->table[at] == 0)
                return 0;
            i = dict->table[at] - 1;
            at = (at + 1) & mask;
        } else if (n == dict->count) {
            return 0;
        }
        const struct jv_entry *entry = &dict->entries[i];
        bool equal = false;
        if (entry->hash == hash && nl_jv_equal(run, entry->key, key, &equal) != 0)
            return -1;
        if (equal) {
            *index = i;
            return 1;
        }
        if (nl_jinja_charge(run, 1) != 0)
            return -1;
    }
}

static void enter(struct jv_dict *dict, size_t index)
{
    size_t mask = dict->table_size - 1, at = dict->entries[index].hash & mask;
    while (dict->table[at])
        at = (at + 1) & mask;
    dict->table[at] = (uint32_t)index + 1;
}

static int grow(struct nl_jinja_run *run, struct jv_dict *dict)
{
    size_t capacity = dict->capacity ? 2 * dict->capacity : SMALL_DICT;
    struct jv_entry *entries = nl_jinja_alloc(run, capacity * sizeof *entries);
    if (!entries)
        return -1;
    if (dict->count)
        memcpy(entries, dict->entries, dict->count * sizeof *entries);
    dict->entries = entries;
    dict->capacity = capacity;
    if (capacity > SMALL_DICT) {
        dict->table_size = 2 * capacity;
        dict->table = nl_jinja_alloc(run, dict->table_size * sizeof *dict->table);
        if (!dict->table)
            return -1;
        for (size_t i = 0; i < dict->count; i++)
            enter(dict, i);
    }
    return 0;
}

int nl_jv_dict_set(struct nl_jinja_run *run, struct jv_dict *dict, struct jv key, struct jv value)
{
    uint64_t hash;
    size_t index;
    if (nl_jv_hash(run, key, &hash) != 0)
        return -1;
    int found = find(run, dict, key, hash, &index);
    if (found < 0)
        return -1;
    if (found) {
        dict->entries[index].value = value;
        return 0;
    }
    if (dict->count == dict->capacity && grow(run, dict) != 0)
        return -1;
    dict->entries[dict->count] = (struct jv_entry){.key = key, .value = value, .hash = hash};
    if (dict->table)
        enter(dict, dict->count);
    dict->count++;
    return 0;
}

int nl_jv_dict_get(struct nl_jinja_run *run, const struct jv_dict *dict, struct jv key, struct jv *out)
{
    uint64_t hash;
    size_t index;
    if (dict->count == 0)
        return 0;
    if (nl_jv_hash(run, key, &hash) != 0)
        return -1;
    int found = find(run, dict, key, hash, &index);
    if (found > 0)
        *out = dict->entries[index].value;
    return found;
}

static int make_undefined(struct nl_jinja_run *run, struct jv_undefined what, struct jv *out)
{
    struct jv_undefined *undefined = nl_jinja_alloc(run, sizeof *undefined);
    if (!undefined)
        return -1;
    *undefined = what;
    *out = (struct jv){.kind = JV_UNDEFINED, .undefined = undefined};
    return 0;
}

int nl_jv_undefined(struct nl_jinja_run *run, struct jv object, struct jv name, struct jv *out)
{
    return make_undefined(run, (struct jv_undefined){.object = object, .name = name}, out);
}

int nl_jv_undefined_hint(struct nl_jinja_run *run, const char *hint, struct jv *out)
{
    return make_undefined(run, (struct jv_undefined){.hint = hint}, out);
}

int nl_jv_fail_undefined(struct nl_jinja_run *run, struct jv value)
{
    const struct jv_undefined *undefined = value.undefined;
    if (undefined->hint)
        return jinja_fail(run, NL_DATA, "%s", undefined->hint);
    struct nl_buf name = {0};
    if (nl_jv_repr(run, undefined->name, &name) != 0) {
        nl_buf_free(&name);
        return -1;
    }
    const char *shown = name.data ? name.data : "?";
    int result =
        jv_is(undefined->object, JV_MISSING)
            ? jinja_fail(run, NL_DATA, "%.300s is undefined", shown)
            : jinja_fail(run, NL_DATA, "'%s object' has no %s %.300s", nl_jv_type_name(undefined->object),
                         jv_is(undefined->name, JV_STRING) ? "attribute" : "element", shown);
    nl_buf_free(&name);
    return result;
}

const char *nl_jv_type_name(struct jv value)
{
    static const char *const names[] = {
        "missing", "Undefined",   "NoneType", "bool",      "int",    "float",     "str",
        "list",    "tuple",       "dict",     "dict_view", "range",  "generator", "Namespace",
        "Macro",   "LoopContext", "function", "method",    "Cycler", "Joiner",    "slice"};
    return names[value.kind];
}
