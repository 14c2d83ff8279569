#include "stheader.h"

#include <stdio.h>
#include <stdlib.h>

#include "escape.h"
#include "strictjson.h"

struct block {
    struct block *next;
    size_t size, used;
    uint64_t bytes[];
};

void *nl_st_alloc(struct nl_safetensors *file, size_t size)
{
    struct block *block = file->blocks;
    size = (size + 7) & ~(size_t)7;
    if (!block || block->size - block->used < size) {
        size_t room = size > 1 << 16 ? size : 1 << 16;
        struct block *more = malloc(sizeof *more + room);
        if (!more)
            return NULL;
        *more = (struct block){.next = block, .size = room};
        file->blocks = block = more;
    }
    block->used += size;
    return (char *)block->bytes + block->used - size;
}

void nl_st_free_all(struct nl_safetensors *file)
{
    for (struct block *block = file->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    file->blocks = NULL;
}

struct header {
    struct nl_scan scan;
    struct nl_safetensors *file;
    struct nl_faults *faults;
    struct nl_buf string; /* the one just read */
    struct nl_buf dims;   /* u64: the shape being read */
    size_t tensor_room, metadata_room;
    bool complete;
};

/* What an entry has told so far. */
struct entry {
    struct nl_tensor tensor;
    char shown[NL_SHOWN]; /* its name, for messages */
    bool has_dtype, has_shape, has_offsets, good_dtype, good_shape, good_offsets;
};

static bool out_of_memory(struct header *header)
{
    return nl_fault_memory(header->faults);
}

/* The scan itself failed: nothing can follow. */
static bool broken(struct header *header)
{
    if (!header->faults->no_memory)
        nl_fault(header->faults, "invalid JSON in the header: %s: byte %zu", header->scan.fault,
                 8 + header->scan.at);
    return false;
}

static bool skip(struct header *header)
{
    return nl_scan_skip(&header->scan) || broken(header);
}

/* Reads a string that must be one; keeps it as long as the file. NULL when the scan is over. */
static const char *keep_string(struct header *header)
{
    struct nl_buf *string = &header->string;
    if (string->failed)
        return NULL;
    char *copy = nl_st_alloc(header->file, string->size + 1);
    if (copy)
        memcpy(copy, string->data, string->size + 1);
    return copy;
}

static bool read_key(struct header *header)
{
    if (!nl_scan_key(&header->scan, &header->string))
        return broken(header);
    return !header->string.failed || out_of_memory(header);
}

static bool scan_metadata(struct header *header)
{
    struct nl_safetensors *file = header->file;
    bool first = true;
    int more;
    if (nl_scan_peek(&header->scan) == 'n') /* the official library takes null for none */
        return skip(header);
    if (!nl_scan_take(&header->scan, '{'))
        return nl_fault(header->faults, "not an object of strings: __metadata__") && skip(header);
    file->has_metadata = true;
    while ((more = nl_scan_next(&header->scan, '}', &first)) > 0) {
        if (!read_key(header))
            return false;
        struct nl_metadata item = {.key = keep_string(header)};
        if (!item.key)
            return out_of_memory(header);
        if (nl_scan_peek(&header->scan) != '"') {
            char shown[NL_SHOWN];
            if (!nl_fault(header->faults, "value is not a string: __metadata__ key %s",
                          nl_show(shown, item.key)) ||
                !skip(header))
                return false;
            continue;
        }
        if (!nl_scan_string(&header->scan, &header->string))
            return broken(header);
        item.value = keep_string(header);
        if (!item.value || nl_grow(&file->metadata, &header->metadata_room, file->n_metadata + 1,
                                   sizeof *file->metadata, file->path, NULL) != 0)
            return out_of_memory(header);
        file->metadata[file->n_metadata++] = item;
    }
    return more == 0 || broken(header);
}

static bool scan_dtype(struct header *header, struct entry *entry)
{
    if (nl_scan_peek(&header->scan) != '"')
        return nl_fault(header->faults, "dtype is not a string: tensor %s", entry->shown) && skip(header);
    if (!nl_scan_string(&header->scan, &header->string))
        return broken(header);
    if (header->string.failed)
        return out_of_memory(header);
    entry->good_dtype = nl_dtype_parse(header->string.data, header->string.size, &entry->tensor.dtype);
    char shown[NL_SHOWN];
    return entry->good_dtype || nl_fault(header->faults, "unknown dtype %s: tensor %s",
                                         nl_show(shown, header->string.data), entry->shown);
}

/* Reads an array of whole numbers into header->dims. *good: it was one. False when the scan is over. */
static bool scan_wholes(struct header *header, struct entry *entry, const char *key, bool *good)
{
    bool first = true;
    int more;
    *good = true;
    nl_buf_clear(&header->dims);
    if (!nl_scan_take(&header->scan, '[')) {
        *good = false;
        return nl_fault(header->faults, "%s is not an array: tensor %s", key, entry->shown) && skip(header);
    }
    for (size_t i = 0; (more = nl_scan_next(&header->scan, ']', &first)) > 0; i++) {
        nl_scan_peek(&header->scan);
        size_t begin = header->scan.at;
        uint64_t value = 0;
        enum nl_whole whole = nl_scan_whole(&header->scan, &value);
        if (whole == NL_WHOLE_FAULT)
            return broken(header);
        nl_buf_add(&header->dims, &value, sizeof value);
        if (header->dims.failed)
            return out_of_memory(header);
        if (whole == NL_WHOLE_OK)
            continue;
        *good = false;
        char literal[40], value_shown[NL_SHOWN];
        snprintf(literal, sizeof literal, "%.*s",
                 (int)(header->scan.at - begin < 39 ? header->scan.at - begin : 39),
                 (const char *)header->scan.text + begin);
        if (!nl_fault(header->faults, "%s[%zu] is %s, not a whole number below 2^64: tensor %s", key, i,
                      nl_show(value_shown, literal), entry->shown))
            return false;
    }
    return more == 0 || broken(header);
}

static bool scan_shape(struct header *header, struct entry *entry)
{
    if (!scan_wholes(header, entry, "shape", &entry->good_shape))
        return false;
    uint64_t *shape = nl_st_alloc(header->file, header->dims.size);
    if (!shape)
        return out_of_memory(header);
    if (header->dims.size)
        memcpy(shape, header->dims.data, header->dims.size);
    entry->tensor.shape = shape;
    entry->tensor.rank = (unsigned)(header->dims.size / sizeof *shape);
    return true;
}

static bool scan_offsets(struct header *header, struct entry *entry)
{
    if (!scan_wholes(header, entry, "data_offsets", &entry->good_offsets))
        return false;
    size_t count = header->dims.size / sizeof(uint64_t);
    if (!entry->good_offsets)
        return true;
    if (count != 2) {
        entry->good_offsets = false;
        return nl_fault(header->faults, "data_offsets has %zu numbers, not 2: tensor %s", count,
                        entry->shown);
    }
    memcpy(&entry->tensor.begin, header->dims.data, sizeof(uint64_t));
    memcpy(&entry->tensor.end, header->dims.data + sizeof(uint64_t), sizeof(uint64_t));
    if (entry->tensor.begin <= entry->tensor.end)
        return true;
    entry->good_offsets = false;
    return nl_fault(header->faults, "data_offsets [%llu, %llu] end before they begin: tensor %s",
                    (unsigned long long)entry->tensor.begin, (unsigned long long)entry->tensor.end,
                    entry->shown);
}

/* dtype, shape and range must agree. Multiplies in the order of the shape, as the official library does: a
   product that overflows before a zero comes is refused. */
static bool check_size(struct nl_faults *faults, struct entry *entry)
{
    struct nl_tensor *tensor = &entry->tensor;
    uint64_t bits;
    tensor->elements = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        if (!nl_mul(tensor->elements, tensor->shape[i], &tensor->elements))
            return nl_fault(faults, "shape has more than 2^64 elements: tensor %s", entry->shown);
    if (!entry->good_dtype)
        return true;
    if (!nl_mul(tensor->elements, nl_dtype_bits(tensor->dtype), &bits))
        return nl_fault(faults, "tensor of more than 2^64 bits: tensor %s", entry->shown);
    if (bits % 8)
        return nl_fault(faults, "%llu elements of %s do not fill whole bytes: tensor %s",
                        (unsigned long long)tensor->elements, nl_dtype_name(tensor->dtype), entry->shown);
    if (entry->good_offsets && bits / 8 != tensor->end - tensor->begin)
        return nl_fault(faults, "dtype and shape need %llu bytes, data_offsets give %llu: tensor %s",
                        (unsigned long long)(bits / 8), (unsigned long long)(tensor->end - tensor->begin),
                        entry->shown);
    return true;
}

static bool scan_field(struct header *header, struct entry *entry)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    bool *seen[] = {&entry->has_dtype, &entry->has_shape, &entry->has_offsets};
    bool (*scan[])(struct header *, struct entry *) = {scan_dtype, scan_shape, scan_offsets};
    for (int i = 0; i < 3; i++)
        if (strcmp(header->string.data, keys[i]) == 0) {
            if (*seen[i])
                return nl_fault(header->faults, "%s is given twice: tensor %s", keys[i], entry->shown) &&
                       skip(header);
            *seen[i] = true;
            return scan[i](header, entry);
        }
    return skip(header);
}

static bool finish_entry(struct header *header, struct entry *entry)
{
    struct nl_safetensors *file = header->file;
    struct nl_faults *faults = header->faults;
    const char *missing = !entry->has_dtype ? "dtype" : !entry->has_shape ? "shape" : NULL;
    if (missing && !nl_fault(faults, "no %s: tensor %s", missing, entry->shown))
        return false;
    if (!entry->has_offsets && !nl_fault(faults, "no data_offsets: tensor %s", entry->shown))
        return false;
    if (entry->good_shape && !check_size(faults, entry))
        return false;
    if (!entry->good_offsets) {
        header->complete = false;
        entry->tensor.begin = entry->tensor.end = 0;
    }
    if (nl_grow(&file->tensors, &header->tensor_room, file->count + 1, sizeof *file->tensors, file->path,
                NULL) != 0)
        return out_of_memory(header);
    file->tensors[file->count++] = entry->tensor;
    return true;
}

static bool scan_tensor(struct header *header)
{
    struct entry entry = {.tensor.file = header->file};
    entry.tensor.name = keep_string(header);
    if (!entry.tensor.name)
        return out_of_memory(header);
    nl_show(entry.shown, entry.tensor.name);
    bool first = true;
    int more;
    if (!nl_scan_take(&header->scan, '{')) {
        header->complete = false;
        return nl_fault(header->faults, "entry is not an object: tensor %s", entry.shown) && skip(header);
    }
    while ((more = nl_scan_next(&header->scan, '}', &first)) > 0)
        if (!read_key(header) || !scan_field(header, &entry))
            return false;
    return more == 0 ? finish_entry(header, &entry) : broken(header);
}

static bool scan_all(struct header *header)
{
    bool first = true, seen = false;
    int more;
    if (!nl_scan_take(&header->scan, '{')) {
        nl_fault(header->faults, "header does not begin with '{': byte %zu", 8 + header->scan.at);
        return false;
    }
    while ((more = nl_scan_next(&header->scan, '}', &first)) > 0) {
        if (!read_key(header))
            return false;
        if (strcmp(header->string.data, "__metadata__") != 0) {
            if (!scan_tensor(header))
                return false;
            continue;
        }
        if (seen && !nl_fault(header->faults, "given twice: __metadata__"))
            return false;
        seen = true;
        if (!scan_metadata(header))
            return false;
    }
    if (more < 0)
        return broken(header);
    if (nl_scan_peek(&header->scan) < 0)
        return true;
    return nl_fault(header->faults, "something behind the header's object: byte %zu", 8 + header->scan.at);
}

bool nl_st_scan_header(struct nl_safetensors *file, struct nl_faults *faults, bool *complete)
{
    struct header header = {
        .scan = {.text = (const uint8_t *)file->header, .size = file->header_size},
        .file = file,
        .faults = faults,
        .complete = true,
    };
    bool done = scan_all(&header);
    *complete = header.complete;
    nl_buf_free(&header.string);
    nl_buf_free(&header.dims);
    return done;
}
