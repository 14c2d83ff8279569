/*
 * A text goes through two hands: json_scan.c checks it against RFC 8259, which cJSON does not, and rewrites
 * what cJSON would get wrong; then cJSON builds the tree, and the keys of each object are compared.
 */
#include "json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "file.h"
#include "json_scan.h"
#include "locale_c.h"
#include "utf8.h"

enum {
    SMALL_OBJECT = 12,  /* members that are compared each with each */
    MAX_FILE = 1 << 30, /* bytes; the largest tokenizer.json known has 40 million */
};
static const double exact_limit = 9007199254740992.0; /* 2^53: up to here a double holds every integer */

static cJSON *tree_of(const struct nl_json *json)
{
    return (cJSON *)(uintptr_t)json;
}

static struct nl_json *json_of(const cJSON *tree)
{
    return (struct nl_json *)(uintptr_t)tree;
}

/* ---- Duplicate keys ---- */

struct hashed_key {
    uint64_t hash;
    const char *key;
};

static int compare_hashed_keys(const void *a, const void *b)
{
    const struct hashed_key *one = a, *two = b;
    if (one->hash != two->hash)
        return one->hash < two->hash ? -1 : 1;
    return strcmp(one->key, two->key);
}

/* *out: a key that occurs twice, or NULL. Sorted by hash, so that a big object takes n log n whatever its
   keys are and few comparisons touch a string. */
static int find_duplicate_sorted(const cJSON *object, size_t count, const char **out)
{
    struct hashed_key *keys = malloc(count * sizeof *keys);
    if (!keys)
        return -1;
    size_t i = 0;
    for (const cJSON *member = object->child; member; member = member->next) {
        uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
        for (const char *c = member->string; *c; c++)
            hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
        keys[i++] = (struct hashed_key){hash, member->string};
    }
    qsort(keys, count, sizeof *keys, compare_hashed_keys);
    *out = NULL;
    for (i = 1; i < count && !*out; i++)
        if (compare_hashed_keys(&keys[i - 1], &keys[i]) == 0)
            *out = keys[i].key;
    free(keys);
    return 0;
}

static int find_duplicate(const cJSON *object, const char **out)
{
    size_t count = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        count++;
    if (count > SMALL_OBJECT)
        return find_duplicate_sorted(object, count, out);
    *out = NULL;
    for (const cJSON *a = object->child; a && !*out; a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->string, b->string) == 0)
                *out = b->string;
    return 0;
}

static int check_keys(const cJSON *tree, const char *name, struct nl_error *error)
{
    if (cJSON_IsObject(tree)) {
        const char *twice;
        if (find_duplicate(tree, &twice) != 0)
            return nl_fail_memory(error, name);
        if (twice)
            return nl_fail(error, NL_DATA, "duplicate key \"%.200s\": %s", twice, name);
    }
    for (const cJSON *child = tree->child; child; child = child->next)
        if (child->child && check_keys(child, name, error) != 0)
            return -1;
    return 0;
}

/* ---- Reading ---- */

static cJSON *parse(const char *text, size_t length, const char *name, struct nl_buf *patched,
                    struct nl_error *error)
{
    if (nl_json_scan(text, length, name, patched, error) != 0)
        return NULL;
    cJSON *tree = patched->size ? cJSON_ParseWithLengthOpts(patched->data, patched->size, NULL, false)
                                : cJSON_ParseWithLengthOpts(text, length, NULL, false);
    if (!tree) { /* the scan has found no fault */
        nl_fail_memory(error, name);
        return NULL;
    }
    if (check_keys(tree, name, error) != 0) {
        cJSON_Delete(tree);
        return NULL;
    }
    return tree;
}

struct nl_json *nl_json_parse(const char *text, size_t length, const char *name, struct nl_error *error)
{
    struct nl_buf patched = {0};
    locale_t before = nl_locale_enter();
    cJSON *tree = parse(text, length, name, &patched, error);
    nl_locale_leave(before);
    nl_buf_free(&patched);
    return json_of(tree);
}

struct nl_json *nl_json_load(const char *path, struct nl_error *error)
{
    struct nl_buf text = {0};
    struct nl_json *json = NULL;
    if (nl_file_read(path, MAX_FILE, &text, error) == 0)
        json = nl_json_parse(text.data, text.size, path, error);
    nl_buf_free(&text);
    return json;
}

struct nl_json *nl_json_new_object(void)
{
    return json_of(cJSON_CreateObject());
}

struct nl_json *nl_json_copy(const struct nl_json *json, struct nl_error *error)
{
    cJSON *copy = cJSON_Duplicate(tree_of(json), true);
    if (!copy)
        nl_fail_memory(error, "JSON");
    return json_of(copy);
}

void nl_json_free(struct nl_json *json)
{
    cJSON_Delete(tree_of(json));
}

enum nl_json_type nl_json_type(const struct nl_json *json)
{
    switch (tree_of(json)->type & 0xff) {
    case cJSON_False:
        return NL_JSON_FALSE;
    case cJSON_True:
        return NL_JSON_TRUE;
    case cJSON_Number:
        return NL_JSON_NUMBER;
    case cJSON_String:
        return NL_JSON_STRING;
    case cJSON_Array:
        return NL_JSON_ARRAY;
    case cJSON_Object:
        return NL_JSON_OBJECT;
    default:
        return NL_JSON_NULL;
    }
}

bool nl_json_is(const struct nl_json *json, enum nl_json_type type)
{
    return json && nl_json_type(json) == type;
}

const struct nl_json *nl_json_first(const struct nl_json *json)
{
    return json_of(tree_of(json)->child);
}

const struct nl_json *nl_json_next(const struct nl_json *json)
{
    return json_of(tree_of(json)->next);
}

const char *nl_json_key(const struct nl_json *json)
{
    return tree_of(json)->string;
}

size_t nl_json_count(const struct nl_json *json)
{
    size_t count = 0;
    for (const cJSON *child = tree_of(json)->child; child; child = child->next)
        count++;
    return count;
}

const struct nl_json *nl_json_get(const struct nl_json *object, const char *key)
{
    if (!nl_json_is(object, NL_JSON_OBJECT))
        return NULL;
    for (const cJSON *member = tree_of(object)->child; member; member = member->next)
        if (strcmp(member->string, key) == 0)
            return json_of(member);
    return NULL;
}

const char *nl_json_get_string(const struct nl_json *object, const char *key)
{
    const struct nl_json *value = nl_json_get(object, key);
    return nl_json_is(value, NL_JSON_STRING) ? nl_json_string(value) : NULL;
}

const char *nl_json_string(const struct nl_json *json)
{
    return tree_of(json)->valuestring;
}

double nl_json_number(const struct nl_json *json)
{
    return tree_of(json)->valuedouble;
}

void nl_json_copy_string(const struct nl_json *json, struct nl_buf *out)
{
    const char *rest = nl_json_string(json), *zero;
    for (; (zero = strstr(rest, "\xc0\x80")); rest = zero + 2) {
        nl_buf_add(out, rest, (size_t)(zero - rest));
        nl_buf_putc(out, '\0');
    }
    nl_buf_puts(out, rest);
}

bool nl_json_integer(const struct nl_json *json, int64_t low, int64_t high, int64_t *out)
{
    if (!nl_json_is(json, NL_JSON_NUMBER))
        return false;
    double value = nl_json_number(json);
    if (!(fabs(value) <= exact_limit) || value != floor(value))
        return false;
    int64_t integer = (int64_t)value;
    if (integer < low || integer > high)
        return false;
    *out = integer;
    return true;
}

bool nl_json_id(const struct nl_json *json, uint32_t *out)
{
    int64_t integer;
    if (!nl_json_integer(json, 0, UINT32_MAX, &integer))
        return false;
    *out = (uint32_t)integer;
    return true;
}

/* ---- Writing ---- */

/* Takes over `value`, which may be NULL: out of memory. */
static int set(struct nl_json *object, const char *key, cJSON *value, struct nl_error *error)
{
    cJSON *tree = tree_of(object);
    bool done = value && (cJSON_GetObjectItemCaseSensitive(tree, key)
                              ? cJSON_ReplaceItemInObjectCaseSensitive(tree, key, value)
                              : cJSON_AddItemToObject(tree, key, value));
    if (done)
        return 0;
    cJSON_Delete(value);
    return nl_fail_memory(error, "JSON object");
}

int nl_json_set_string(struct nl_json *object, const char *key, const char *value, struct nl_error *error)
{
    return set(object, key, cJSON_CreateString(value), error);
}

int nl_json_set_number(struct nl_json *object, const char *key, double value, struct nl_error *error)
{
    return set(object, key, cJSON_CreateNumber(value), error);
}

int nl_json_set_bool(struct nl_json *object, const char *key, bool value, struct nl_error *error)
{
    return set(object, key, cJSON_CreateBool(value), error);
}

int nl_json_set_ids(struct nl_json *object, const char *key, const uint32_t *ids, size_t count,
                    struct nl_error *error)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array && i < count; i++)
        if (!cJSON_AddItemToArray(array, cJSON_CreateNumber(ids[i]))) {
            cJSON_Delete(array);
            array = NULL;
        }
    return set(object, key, array, error);
}

int nl_json_set_copy(struct nl_json *object, const char *key, const struct nl_json *value,
                     struct nl_error *error)
{
    return set(object, key, cJSON_Duplicate(tree_of(value), true), error);
}

void nl_json_remove(struct nl_json *object, const char *key)
{
    cJSON_DeleteItemFromObjectCaseSensitive(tree_of(object), key);
}

/* `c0_80`: these two bytes stand for U+0000. */
static void print_string(struct nl_buf *out, const char *string, size_t length, bool c0_80)
{
    const uint8_t *s = (const uint8_t *)string;
    size_t done = 0;
    nl_buf_putc(out, '"');
    for (size_t i = 0, step; i < length; i += step) {
        char escape[8] = "";
        step = nl_utf8_length(s + i, length - i);
        if (step == 0 && c0_80 && i + 1 < length && s[i] == 0xc0 && s[i + 1] == 0x80) {
            strcpy(escape, "\\u0000");
            step = 2;
        } else if (step == 0) {
            strcpy(escape, "\xef\xbf\xbd");
            step = 1;
        } else if (s[i] == '"' || s[i] == '\\') {
            snprintf(escape, sizeof escape, "\\%c", s[i]);
        } else if (s[i] == '\n') {
            strcpy(escape, "\\n");
        } else if (s[i] == '\t') {
            strcpy(escape, "\\t");
        } else if (s[i] < 0x20 || s[i] == 0x7f) {
            snprintf(escape, sizeof escape, "\\u%04x", s[i]);
        }
        if (escape[0]) {
            nl_buf_add(out, string + done, i - done);
            nl_buf_puts(out, escape);
            done = i + step;
        }
    }
    nl_buf_add(out, string + done, length - done);
    nl_buf_putc(out, '"');
}

void nl_json_quote(struct nl_buf *out, const char *string, size_t length)
{
    print_string(out, string, length, false);
}

void nl_json_print_key(const struct nl_json *member, struct nl_buf *out)
{
    const char *key = nl_json_key(member);
    print_string(out, key, strlen(key), true);
}

void nl_json_print_number(double value, struct nl_buf *out)
{
    char text[40] = "null";
    locale_t before = nl_locale_enter();
    if (value == floor(value) && fabs(value) <= exact_limit)
        snprintf(text, sizeof text, "%.0f", value);
    else if (isfinite(value))
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
    nl_locale_leave(before);
    nl_buf_puts(out, text);
}

void nl_json_print(const struct nl_json *json, struct nl_buf *out)
{
    const cJSON *tree = tree_of(json);
    enum nl_json_type type = nl_json_type(json);
    switch (type) {
    case NL_JSON_NULL:
        nl_buf_puts(out, "null");
        break;
    case NL_JSON_FALSE:
        nl_buf_puts(out, "false");
        break;
    case NL_JSON_TRUE:
        nl_buf_puts(out, "true");
        break;
    case NL_JSON_NUMBER:
        nl_json_print_number(tree->valuedouble, out);
        break;
    case NL_JSON_STRING:
        print_string(out, tree->valuestring, strlen(tree->valuestring), true);
        break;
    case NL_JSON_ARRAY:
    case NL_JSON_OBJECT:
        nl_buf_putc(out, type == NL_JSON_ARRAY ? '[' : '{');
        for (const cJSON *child = tree->child; child; child = child->next) {
            if (child != tree->child)
                nl_buf_putc(out, ',');
            if (type == NL_JSON_OBJECT) {
                nl_json_print_key(json_of(child), out);
                nl_buf_putc(out, ':');
            }
            nl_json_print(json_of(child), out);
        }
        nl_buf_putc(out, type == NL_JSON_ARRAY ? ']' : '}');
    }
}
