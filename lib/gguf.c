#include "gguf.h"

#include <inttypes.h>
#include <stdlib.h>

/* The part of the file not yet read. */
struct cursor {
    const uint8_t *at, *start, *end;
    const char *file;
    struct nl_error *error;
};

/* The least bytes that a pair (empty key, u8 value) and a tensor of rank 0 can take. */
enum { LEAST_PAIR = 8 + 4 + 1, LEAST_TENSOR = 8 + 4 + 4 + 8, MAX_RANK = 4 };

static const unsigned char kind_sizes[NL_GGUF_KINDS] = {
    [NL_GGUF_U8] = 1,  [NL_GGUF_I8] = 1,  [NL_GGUF_U16] = 2, [NL_GGUF_I16] = 2,
    [NL_GGUF_U32] = 4, [NL_GGUF_I32] = 4, [NL_GGUF_F32] = 4, [NL_GGUF_BOOL] = 1,
    [NL_GGUF_U64] = 8, [NL_GGUF_I64] = 8, [NL_GGUF_F64] = 8,
};

static uint64_t little(const uint8_t *p, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static uint64_t left(const struct cursor *c)
{
    return (uint64_t)(c->end - c->at);
}

/* A failure at the cursor. */
static int fail_here(const struct cursor *c, enum nl_status code, const char *what)
{
    return nl_fail(c->error, code, "%s: %s: offset %td", what, c->file, c->at - c->start);
}

static int read_integer(struct cursor *c, unsigned size, uint64_t *out)
{
    if (left(c) < size)
        return fail_here(c, NL_DATA, "GGUF file ends in its header");
    *out = little(c->at, size);
    c->at += size;
    return 0;
}

static int read_u32(struct cursor *c, uint32_t *out)
{
    uint64_t value = 0;
    int result = read_integer(c, 4, &value);
    *out = (uint32_t)value;
    return result;
}

static int read_string(struct cursor *c, struct nl_gguf_string *out)
{
    uint64_t size = 0;
    if (read_integer(c, 8, &size) != 0)
        return -1;
    if (size > left(c))
        return fail_here(c, NL_DATA, "GGUF string is longer than the file");
    *out = (struct nl_gguf_string){(const char *)c->at, (size_t)size};
    c->at += size;
    return 0;
}

/* A key or a name, as an allocated C string. */
static char *read_name(struct cursor *c)
{
    struct nl_gguf_string string = {"", 0};
    if (read_string(c, &string) != 0)
        return NULL;
    if (memchr(string.data, 0, string.size)) {
        fail_here(c, NL_DATA, "GGUF name holds a NUL");
        return NULL;
    }
    char *name = strndup(string.data, string.size);
    if (!name)
        nl_fail_memory(c->error, c->file);
    return name;
}

/* Steps over `count` values, checking them. */
static int skip_values(struct cursor *c, const struct nl_gguf_pair *pair)
{
    if (pair->kind == NL_GGUF_STRING) {
        struct nl_gguf_string string;
        for (uint64_t i = 0; i < pair->count; i++)
            if (read_string(c, &string) != 0)
                return -1;
        return 0;
    }
    uint64_t size;
    if (!nl_mul(pair->count, kind_sizes[pair->kind], &size) || size > left(c))
        return nl_fail(c->error, NL_DATA, "GGUF value is longer than the file: %s: %s", c->file, pair->key);
    if (pair->kind == NL_GGUF_BOOL)
        for (uint64_t i = 0; i < size; i++)
            if (c->at[i] > 1)
                return nl_fail(c->error, NL_DATA, "GGUF boolean is %d: %s: %s", c->at[i], c->file, pair->key);
    c->at += size;
    return 0;
}

static int read_kind(struct cursor *c, const char *key, enum nl_gguf_kind *out)
{
    uint32_t kind;
    if (read_u32(c, &kind) != 0)
        return -1;
    if (kind >= NL_GGUF_KINDS)
        return nl_fail(c->error, NL_DATA, "GGUF value type %" PRIu32 " is unknown: %s: %s", kind, c->file,
                       key);
    *out = (enum nl_gguf_kind)kind;
    return 0;
}

static int read_pair(struct cursor *c, struct nl_gguf_pair *pair)
{
    pair->key = read_name(c);
    pair->count = 1;
    if (!pair->key || read_kind(c, pair->key, &pair->kind) != 0)
        return -1;
    if (pair->kind == NL_GGUF_ARRAY) {
        pair->is_array = true;
        if (read_kind(c, pair->key, &pair->kind) != 0)
            return -1;
        if (pair->kind == NL_GGUF_ARRAY)
            return nl_fail(c->error, NL_UNSUPPORTED, "GGUF array of arrays is not supported: %s: %s", c->file,
                           pair->key);
        if (read_integer(c, 8, &pair->count) != 0)
            return -1;
    }
    pair->data = c->at;
    return skip_values(c, pair);
}

static int fail_tensor(const struct cursor *c, const struct nl_gguf_tensor *tensor, const char *what)
{
    return nl_fail(c->error, NL_DATA, "%s: %s: tensor %s", what, c->file, tensor->name);
}

static int read_tensor(struct cursor *c, struct nl_gguf_tensor *tensor)
{
    uint32_t rank, id;
    tensor->name = read_name(c);
    if (!tensor->name || read_u32(c, &rank) != 0)
        return -1;
    if (rank > MAX_RANK)
        return fail_tensor(c, tensor, "GGUF tensor has more than 4 dimensions");
    tensor->rank = rank;
    tensor->elements = 1;
    for (unsigned i = 0; i < MAX_RANK; i++) {
        tensor->dims[i] = 1;
        if (i < rank && read_integer(c, 8, &tensor->dims[i]) != 0)
            return -1;
        if (!nl_mul(tensor->elements, tensor->dims[i], &tensor->elements))
            return fail_tensor(c, tensor, "GGUF tensor's dimensions overflow");
    }
    if (read_u32(c, &id) != 0 || read_integer(c, 8, &tensor->offset) != 0)
        return -1;
    tensor->type = nl_ggml_type(id);
    if (!tensor->type)
        return nl_fail(c->error, NL_UNSUPPORTED, "GGUF tensor type %" PRIu32 " is unknown: %s: tensor %s", id,
                       c->file, tensor->name);
    if (tensor->dims[0] % tensor->type->elements != 0)
        return fail_tensor(c, tensor, "GGUF tensor's rows are no whole blocks");
    if (!nl_mul(tensor->elements / tensor->type->elements, tensor->type->bytes, &tensor->size))
        return fail_tensor(c, tensor, "GGUF tensor's size overflows");
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct nl_gguf_pair *)a)->key, ((const struct nl_gguf_pair *)b)->key);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct nl_gguf_tensor *)a)->name, ((const struct nl_gguf_tensor *)b)->name);
}

static int by_offset(const void *a, const void *b)
{
    const struct nl_gguf_tensor *x = a, *y = b;
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
                                  : (x->size > y->size) - (x->size < y->size);
}

static int read_pairs(struct cursor *c, struct nl_gguf *file, uint64_t count)
{
    if (count > left(c) / LEAST_PAIR)
        return nl_fail(c->error, NL_DATA, "GGUF file is too short for %" PRIu64 " metadata pairs: %s", count,
                       c->file);
    file->pairs = calloc(count ? count : 1, sizeof *file->pairs);
    if (!file->pairs)
        return nl_fail_memory(c->error, c->file);
    while (file->n_pairs < count)
        if (read_pair(c, &file->pairs[file->n_pairs++]) != 0)
            return -1;
    qsort(file->pairs, file->n_pairs, sizeof *file->pairs, by_key);
    for (size_t i = 1; i < file->n_pairs; i++)
        if (by_key(&file->pairs[i - 1], &file->pairs[i]) == 0)
            return nl_fail(c->error, NL_DATA, "GGUF key occurs twice: %s: %s", c->file, file->pairs[i].key);
    return 0;
}

static int read_tensors(struct cursor *c, struct nl_gguf *file, uint64_t count)
{
    if (count > left(c) / LEAST_TENSOR)
        return nl_fail(c->error, NL_DATA, "GGUF file is too short for %" PRIu64 " tensors: %s", count,
                       c->file);
    file->tensors = calloc(count ? count : 1, sizeof *file->tensors);
    if (!file->tensors)
        return nl_fail_memory(c->error, c->file);
    while (file->n_tensors < count)
        if (read_tensor(c, &file->tensors[file->n_tensors++]) != 0)
            return -1;
    return 0;
}

static int read_alignment(struct cursor *c, struct nl_gguf *file)
{
    int64_t alignment = 32;
    if (nl_gguf_integer(file, "general.alignment", 1, 1 << 20, &alignment, c->error) < 0)
        return -1;
    if (alignment & (alignment - 1))
        return nl_fail(c->error, NL_DATA, "GGUF alignment %" PRId64 " is no power of two: %s", alignment,
                       c->file);
    file->alignment = (uint64_t)alignment;
    return 0;
}

/* Finds each tensor's bytes, and leaves the tensors sorted by name. */
static int place_tensors(struct cursor *c, struct nl_gguf *file)
{
    uint64_t header = (uint64_t)(c->at - c->start), padding = -header & (file->alignment - 1);
    uint64_t available = left(c) > padding ? left(c) - padding : 0, end = 0;
    const uint8_t *data = c->at + (left(c) > padding ? padding : left(c));
    if (file->n_tensors == 0)
        return 0;
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_offset);
    for (size_t i = 0; i < file->n_tensors; i++) {
        struct nl_gguf_tensor *tensor = &file->tensors[i];
        if (tensor->offset & (file->alignment - 1))
            return fail_tensor(c, tensor, "GGUF tensor is not aligned");
        if (tensor->offset > available || tensor->size > available - tensor->offset)
            return fail_tensor(c, tensor, "GGUF tensor lies beyond the end of the file");
        if (tensor->offset < end)
            return fail_tensor(c, tensor, "GGUF tensor overlaps another");
        end = tensor->offset + tensor->size;
        tensor->data = data + tensor->offset;
    }
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->n_tensors; i++)
        if (by_name(&file->tensors[i - 1], &file->tensors[i]) == 0)
            return fail_tensor(c, &file->tensors[i], "GGUF tensor occurs twice");
    return 0;
}

static int read_version(struct cursor *c)
{
    uint32_t version;
    if (left(c) < 4 || memcmp(c->at, "GGUF", 4) != 0)
        return nl_fail(c->error, NL_DATA, "not a GGUF file: %s", c->file);
    c->at += 4;
    if (read_u32(c, &version) != 0)
        return -1;
    if (version && (version & 0xffff) == 0)
        return nl_fail(c->error, NL_UNSUPPORTED, "big-endian GGUF is not supported: %s", c->file);
    if (version != 3)
        return nl_fail(c->error, NL_UNSUPPORTED, "GGUF version %" PRIu32 " is not supported, 3 is: %s",
                       version, c->file);
    return 0;
}

static int read_file(struct cursor *c, struct nl_gguf *file)
{
    uint64_t n_tensors = 0, n_pairs = 0;
    if (read_version(c) != 0 || read_integer(c, 8, &n_tensors) != 0 || read_integer(c, 8, &n_pairs) != 0 ||
        read_pairs(c, file, n_pairs) != 0 || read_alignment(c, file) != 0 ||
        read_tensors(c, file, n_tensors) != 0)
        return -1;
    return place_tensors(c, file);
}

struct nl_gguf *nl_gguf_parse(const uint8_t *bytes, size_t size, const char *name, struct nl_error *error)
{
    struct nl_gguf *file = calloc(1, sizeof *file);
    if (file)
        file->name = strdup(name);
    if (!file || !file->name) {
        nl_fail_memory(error, name);
        nl_gguf_close(file);
        return NULL;
    }
    struct cursor c = {bytes, bytes, bytes + size, file->name, error};
    if (read_file(&c, file) != 0) {
        nl_gguf_close(file);
        return NULL;
    }
    return file;
}

struct nl_gguf *nl_gguf_open(const char *path, struct nl_error *error)
{
    struct nl_map map;
    if (nl_map_open(&map, path, error) != 0)
        return NULL;
    struct nl_gguf *file = nl_gguf_parse(map.data ? map.data : (const uint8_t *)"", map.size, path, error);
    if (file)
        file->map = map;
    else
        nl_map_close(&map);
    return file;
}

void nl_gguf_close(struct nl_gguf *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->n_pairs; i++)
        free((char *)(uintptr_t)file->pairs[i].key);
    for (size_t i = 0; i < file->n_tensors; i++)
        free((char *)(uintptr_t)file->tensors[i].name);
    free(file->pairs);
    free(file->tensors);
    free((char *)(uintptr_t)file->name);
    nl_map_close(&file->map);
    free(file);
}

const struct nl_gguf_pair *nl_gguf_find(const struct nl_gguf *file, const char *key)
{
    struct nl_gguf_pair wanted = {.key = key};
    return file->n_pairs ? bsearch(&wanted, file->pairs, file->n_pairs, sizeof wanted, by_key) : NULL;
}

const struct nl_gguf_tensor *nl_gguf_tensor(const struct nl_gguf *file, const char *name)
{
    struct nl_gguf_tensor wanted = {.name = name};
    return file->n_tensors ? bsearch(&wanted, file->tensors, file->n_tensors, sizeof wanted, by_name) : NULL;
}

static int fail_type(const struct nl_gguf *file, const char *key, const char *wanted, struct nl_error *error)
{
    return nl_fail(error, NL_DATA, "GGUF value is not %s: %s: %s", wanted, file->name, key);
}

/* The value of an integer kind; false for another kind and for what an int64_t cannot hold. */
static bool integer_value(const struct nl_gguf_pair *pair, int64_t *out)
{
    unsigned size = kind_sizes[pair->kind];
    uint64_t value = little(pair->data, size);
    switch (pair->kind) {
    case NL_GGUF_U8:
    case NL_GGUF_U16:
    case NL_GGUF_U32:
    case NL_GGUF_U64:
        *out = (int64_t)value;
        return value <= INT64_MAX;
    case NL_GGUF_I8:
    case NL_GGUF_I16:
    case NL_GGUF_I32:
    case NL_GGUF_I64:
        *out = (int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size);
        return true;
    default:
        return false;
    }
}

int nl_gguf_integer(const struct nl_gguf *file, const char *key, int64_t low, int64_t high, int64_t *out,
                    struct nl_error *error)
{
    const struct nl_gguf_pair *pair = nl_gguf_find(file, key);
    if (!pair)
        return 0;
    int64_t value;
    if (pair->is_array || !integer_value(pair, &value))
        return fail_type(file, key, "an integer", error);
    if (value < low || value > high)
        return nl_fail(error, NL_DATA,
                       "GGUF value %" PRId64 " is out of range (%" PRId64 " to %" PRId64 "): %s: %s", value,
                       low, high, file->name, key);
    *out = value;
    return 1;
}

int nl_gguf_float(const struct nl_gguf *file, const char *key, double *out, struct nl_error *error)
{
    const struct nl_gguf_pair *pair = nl_gguf_find(file, key);
    if (!pair)
        return 0;
    if (pair->is_array || (pair->kind != NL_GGUF_F32 && pair->kind != NL_GGUF_F64))
        return fail_type(file, key, "a floating-point number", error);
    uint64_t bits = little(pair->data, kind_sizes[pair->kind]);
    if (pair->kind == NL_GGUF_F32)
        *out = (double)nl_float_of_bits((uint32_t)bits);
    else
        memcpy(out, &bits, sizeof *out);
    return 1;
}

int nl_gguf_bool(const struct nl_gguf *file, const char *key, bool *out, struct nl_error *error)
{
    const struct nl_gguf_pair *pair = nl_gguf_find(file, key);
    if (!pair)
        return 0;
    if (pair->is_array || pair->kind != NL_GGUF_BOOL)
        return fail_type(file, key, "a boolean", error);
    *out = *pair->data;
    return 1;
}

static struct nl_gguf_string string_at(const uint8_t *p)
{
    return (struct nl_gguf_string){(const char *)p + 8, (size_t)little(p, 8)};
}

int nl_gguf_text(const struct nl_gguf *file, const char *key, struct nl_gguf_string *out,
                 struct nl_error *error)
{
    const struct nl_gguf_pair *pair = nl_gguf_find(file, key);
    if (!pair)
        return 0;
    if (pair->is_array || pair->kind != NL_GGUF_STRING)
        return fail_type(file, key, "a string", error);
    *out = string_at(pair->data);
    return 1;
}

int nl_gguf_array(const struct nl_gguf *file, const char *key, enum nl_gguf_kind kind,
                  const struct nl_gguf_pair **out, struct nl_error *error)
{
    const struct nl_gguf_pair *pair = nl_gguf_find(file, key);
    if (!pair)
        return 0;
    if (!pair->is_array || pair->kind != kind)
        return fail_type(file, key, "an array of the expected type", error);
    *out = pair;
    return 1;
}

int nl_gguf_strings(const struct nl_gguf *file, const char *key, struct nl_gguf_string **out, size_t *count,
                    struct nl_error *error)
{
    const struct nl_gguf_pair *pair = NULL;
    int found = nl_gguf_array(file, key, NL_GGUF_STRING, &pair, error);
    if (found <= 0 || !pair)
        return found;
    struct nl_gguf_string *strings = calloc(pair->count ? pair->count : 1, sizeof *strings);
    if (!strings)
        return nl_fail_memory(error, key);
    const uint8_t *at = pair->data;
    for (size_t i = 0; i < pair->count; i++) {
        strings[i] = string_at(at);
        at += 8 + strings[i].size;
    }
    *out = strings;
    *count = (size_t)pair->count;
    return 1;
}

int32_t nl_gguf_i32_at(const struct nl_gguf_pair *pair, size_t index)
{
    return (int32_t)(uint32_t)little(pair->data + 4 * index, 4);
}

float nl_gguf_f32_at(const struct nl_gguf_pair *pair, size_t index)
{
    return nl_float_of_bits((uint32_t)little(pair->data + 4 * index, 4));
}
