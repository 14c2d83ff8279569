#include "safetensors.h"

#include <stdlib.h>

#include "escape.h"
#include "stheader.h"

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* What a file that is no safetensors file often is. */
static const char *other_kind(const struct nl_map *map)
{
    static const struct {
        const char *magic, *hint;
    } kinds[] = {
        {"version https://git-lfs", " (this is a Git LFS pointer: fetch the file itself with git lfs pull)"},
        {"GGUF", " (this is a GGUF file: st-import converts it)"},
        {"PK\003\004", " (this is a zip archive, perhaps a PyTorch checkpoint)"},
        {"<!DOCTYPE", " (this is a web page)"},
        {"<html", " (this is a web page)"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].magic);
        if (map->size >= length && memcmp(map->data, kinds[i].magic, length) == 0)
            return kinds[i].hint;
    }
    return "";
}

/* Finds the header in the mapping. */
static bool find_header(struct nl_safetensors *file, struct nl_faults *faults)
{
    const struct nl_map *map = &file->map;
    if (map->size < 8) {
        nl_fault(faults, "too short for a header: %zu bytes", map->size);
        return false;
    }
    uint64_t length = read_u64(map->data);
    if (length > NL_ST_MAX_HEADER) {
        nl_fault(faults, "header length is over %d: %llu%s", NL_ST_MAX_HEADER, (unsigned long long)length,
                 other_kind(map));
        return false;
    }
    if (length > map->size - 8) {
        nl_fault(faults, "header length is %llu, but only %zu bytes follow", (unsigned long long)length,
                 map->size - 8);
        return false;
    }
    file->header = (const char *)map->data + 8;
    file->header_size = length;
    file->data_size = map->size - 8 - length;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct nl_tensor *const *)a)->name, (*(const struct nl_tensor *const *)b)->name);
}

static int by_offset(const void *a, const void *b)
{
    const struct nl_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the tensors, finds doubled names. */
static bool sort_tensors(struct nl_safetensors *file, struct nl_faults *faults)
{
    if (file->count == 0)
        return true;
    qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    file->by_name = malloc(file->count * sizeof *file->by_name);
    if (!file->by_name)
        return nl_fault_memory(faults);
    for (size_t i = 0; i < file->count; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->count, sizeof *file->by_name, by_name);
    char shown[NL_SHOWN];
    for (size_t i = 1; i < file->count; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0 &&
            !nl_fault(faults, "name is given twice: tensor %s", nl_show(shown, file->by_name[i]->name)))
            return false;
    return true;
}

static bool check_metadata(const struct nl_safetensors *file, struct nl_faults *faults)
{
    if (file->n_metadata == 0)
        return true;
    const char **keys = malloc(file->n_metadata * sizeof *keys);
    if (!keys)
        return nl_fault_memory(faults);
    for (size_t i = 0; i < file->n_metadata; i++)
        keys[i] = file->metadata[i].key;
    qsort(keys, file->n_metadata, sizeof *keys, by_key);
    bool go_on = true;
    char shown[NL_SHOWN];
    for (size_t i = 1; go_on && i < file->n_metadata; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            go_on = nl_fault(faults, "key is given twice: __metadata__ key %s", nl_show(shown, keys[i]));
    free(keys);
    return go_on;
}

/* The tensors, sorted by offset, must tile the data. Where an entry has no usable offsets (not `complete`)
   the holes that it leaves are no faults of their own. */
static bool check_layout(const struct nl_safetensors *file, struct nl_faults *faults, bool complete)
{
    uint64_t end = 0;
    const char *last = NULL, *beyond = NULL; /* names */
    char shown[NL_SHOWN], other[NL_SHOWN];
    for (size_t i = 0; i < file->count; i++) {
        const struct nl_tensor *tensor = &file->tensors[i];
        nl_show(shown, tensor->name);
        if (tensor->begin > end && complete &&
            !nl_fault(faults, "hole of %llu bytes at data offset %llu: before tensor %s",
                      (unsigned long long)(tensor->begin - end), (unsigned long long)end, shown))
            return false;
        if (tensor->begin < end && !nl_fault(faults, "overlaps tensor %s from data offset %llu: tensor %s",
                                             nl_show(other, last), (unsigned long long)tensor->begin, shown))
            return false;
        if (tensor->end > file->data_size && !beyond)
            beyond = tensor->name;
        if (tensor->end >= end) {
            end = tensor->end;
            last = tensor->name;
        }
    }
    if (beyond)
        return nl_fault(faults, "cut short: %llu bytes of data announced, %llu there: from tensor %s on",
                        (unsigned long long)end, (unsigned long long)file->data_size, nl_show(shown, beyond));
    if (end < file->data_size && complete)
        return nl_fault(faults, "%llu bytes behind the last tensor: data offset %llu",
                        (unsigned long long)(file->data_size - end), (unsigned long long)end);
    return true;
}

static void scan_file(struct nl_safetensors *file, struct nl_faults *faults)
{
    bool complete;
    long before = faults->count;
    if (!find_header(file, faults) || !nl_st_scan_header(file, faults, &complete) ||
        !sort_tensors(file, faults) || !check_metadata(file, faults) ||
        !check_layout(file, faults, complete) || faults->count > before)
        return;
    const uint8_t *data = file->map.data + 8 + file->header_size;
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i].data = data + file->tensors[i].begin;
}

/* The file, faulty or not, once it could be read. */
static struct nl_safetensors *open_any(const char *path, struct nl_faults *faults, struct nl_error *error)
{
    struct nl_safetensors *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (!file || !copy) {
        free(file);
        free(copy);
        nl_fail_memory(error, path);
        return NULL;
    }
    file->path = copy;
    faults->path = path;
    if (nl_map_open(&file->map, path, error) == 0) {
        scan_file(file, faults);
        if (!faults->no_memory)
            return file;
        nl_fail_memory(error, path);
    }
    nl_safetensors_close(file);
    return NULL;
}

struct nl_safetensors *nl_safetensors_open(const char *path, struct nl_error *error)
{
    struct nl_error unused = {0};
    struct nl_faults faults = {.error = error ? error : &unused};
    struct nl_safetensors *file = open_any(path, &faults, error);
    if (file && faults.count) {
        nl_safetensors_close(file);
        return NULL;
    }
    return file;
}

int nl_safetensors_check(const char *path, struct nl_faults *faults, struct nl_safetensors **file,
                         struct nl_error *error)
{
    long before = faults->count;
    *file = open_any(path, faults, error);
    if (!*file)
        return -1;
    if (faults->count > before) {
        nl_safetensors_close(*file);
        *file = NULL;
    }
    return 0;
}

int nl_safetensors_header(const char *path, struct nl_buf *out, struct nl_error *error)
{
    struct nl_error unused = {0};
    struct nl_faults faults = {.error = error ? error : &unused, .path = path};
    struct nl_safetensors file = {0};
    if (nl_map_open(&file.map, path, error) != 0)
        return -1;
    int result = -1;
    if (find_header(&file, &faults)) {
        nl_buf_add(out, file.header, file.header_size);
        result = nl_buf_check(out, path, error);
    }
    nl_map_close(&file.map);
    return result;
}

void nl_safetensors_close(struct nl_safetensors *file)
{
    if (!file)
        return;
    nl_map_close(&file->map);
    nl_st_free_all(file);
    free(file->by_name);
    free(file->tensors);
    free(file->metadata);
    free(file->path);
    free(file);
}

const struct nl_tensor *nl_safetensors_find(const struct nl_safetensors *file, const char *name)
{
    const struct nl_tensor key = {.name = name}, *wanted = &key;
    if (file->count == 0)
        return NULL;
    const struct nl_tensor *const *found =
        bsearch(&wanted, file->by_name, file->count, sizeof *file->by_name, by_name);
    return found ? *found : NULL;
}
