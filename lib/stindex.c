#include "stindex.h"

#include <stdlib.h>

#include "escape.h"
#include "file.h"

/* Why a shard's name is refused; NULL when it is fine. */
static const char *bad_shard(const char *name)
{
    if (!*name)
        return "empty";
    if (strchr(name, '/'))
        return "not a file beside the index";
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "a directory";
    if (strstr(name, "\xc0\x80"))
        return "a name that holds NUL";
    return NULL;
}

static int by_tensor(const void *a, const void *b)
{
    return strcmp(((const struct nl_index_entry *)a)->tensor, ((const struct nl_index_entry *)b)->tensor);
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_entry(struct nl_index *index, const struct nl_json *value, struct nl_faults *faults)
{
    char tensor[NL_SHOWN], shown[NL_SHOWN];
    nl_show(tensor, nl_json_key(value));
    if (!nl_json_is(value, NL_JSON_STRING))
        return nl_fault(faults, "shard is not a string: weight_map key %s", tensor);
    const char *shard = nl_json_string(value), *why = bad_shard(shard);
    if (why)
        return nl_fault(faults, "shard %s is %s: weight_map key %s", nl_show(shown, shard), why, tensor);
    index->entries[index->count++] = (struct nl_index_entry){nl_json_key(value), shard};
    return true;
}

static bool read_map(struct nl_index *index, struct nl_faults *faults)
{
    const struct nl_json *map = nl_json_get(index->root, "weight_map");
    if (!nl_json_is(index->root, NL_JSON_OBJECT))
        return nl_fault(faults, "not a JSON object");
    if (!map)
        return nl_fault(faults, "no weight_map");
    if (!nl_json_is(map, NL_JSON_OBJECT))
        return nl_fault(faults, "weight_map is not an object");
    size_t count = nl_json_count(map);
    if (count == 0)
        return nl_fault(faults, "weight_map is empty");
    index->entries = calloc(count, sizeof *index->entries);
    index->shards = calloc(count, sizeof *index->shards);
    if (!index->entries || !index->shards)
        return nl_fault_memory(faults);
    for (const struct nl_json *value = nl_json_first(map); value; value = nl_json_next(value))
        if (!add_entry(index, value, faults))
            return false;
    return true;
}

static void sort(struct nl_index *index)
{
    if (index->count == 0)
        return;
    qsort(index->entries, index->count, sizeof *index->entries, by_tensor);
    for (size_t i = 0; i < index->count; i++)
        index->shards[i] = index->entries[i].shard;
    qsort(index->shards, index->count, sizeof *index->shards, by_string);
    for (size_t i = 0; i < index->count; i++)
        if (i == 0 || strcmp(index->shards[i], index->shards[index->n_shards - 1]) != 0)
            index->shards[index->n_shards++] = index->shards[i];
}

/* Reads the JSON; what is wrong with it is a fault like any other, and root stays NULL. */
static bool load(struct nl_index *index, struct nl_faults *faults, struct nl_error *error)
{
    struct nl_error why;
    index->root = nl_json_load(index->path, &why);
    if (index->root)
        return true;
    if (why.code == NL_DATA) {
        size_t length = strlen(why.message), end = strlen(index->path) + 2;
        if (length > end && strcmp(why.message + length - end + 2, index->path) == 0)
            why.message[length - end] = '\0'; /* nl_fault adds the path again */
        return nl_fault(faults, "%s", why.message);
    }
    nl_fail(error, why.code, "%s", why.message);
    return false;
}

struct nl_index *nl_index_check(const char *path, struct nl_faults *faults, struct nl_error *error)
{
    struct nl_index *index = calloc(1, sizeof *index);
    faults->path = path;
    if (!index || !(index->path = strdup(path))) {
        nl_index_close(index);
        nl_fail_memory(error, path);
        return NULL;
    }
    long before = faults->count;
    bool go_on = load(index, faults, error) && (!index->root || read_map(index, faults));
    index->complete = faults->count == before;
    if (go_on) {
        sort(index);
        return index;
    }
    if (faults->no_memory)
        nl_fail_memory(error, path);
    nl_index_close(index);
    return NULL;
}

struct nl_index *nl_index_open(const char *path, struct nl_error *error)
{
    struct nl_error unused = {0};
    struct nl_faults faults = {.error = error ? error : &unused};
    return nl_index_check(path, &faults, error);
}

void nl_index_close(struct nl_index *index)
{
    if (!index)
        return;
    nl_json_free(index->root);
    free(index->entries);
    free(index->shards);
    free(index->path);
    free(index);
}

const struct nl_index_entry *nl_index_find(const struct nl_index *index, const char *tensor)
{
    struct nl_index_entry key = {.tensor = tensor};
    return index->count ? bsearch(&key, index->entries, index->count, sizeof key, by_tensor) : NULL;
}

char *nl_index_shard_path(const struct nl_index *index, const char *shard, struct nl_error *error)
{
    const char *slash = strrchr(index->path, '/');
    struct nl_buf path = {0};
    nl_buf_add(&path, index->path, slash ? (size_t)(slash - index->path) + 1 : 0);
    nl_buf_puts(&path, shard);
    if (nl_buf_check(&path, "path", error) == 0)
        return path.data;
    nl_buf_free(&path);
    return NULL;
}

bool nl_index_total_size(const struct nl_index *index, uint64_t *total)
{
    const struct nl_json *value = nl_json_get(nl_json_get(index->root, "metadata"), "total_size");
    int64_t whole;
    if (!value || !nl_json_integer(value, 0, (int64_t)1 << 53, &whole))
        return false;
    *total = (uint64_t)whole;
    return true;
}
