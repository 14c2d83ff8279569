/*
 * safetensors.h: one .safetensors file.
 *
 * Format: u64 little-endian header length N (at most 100,000,000), N bytes of JSON, then the data. Each entry
 * of the JSON object gives dtype, shape and data_offsets [begin, end) relative to the data; sorted by offset
 * the tensors tile the data without hole or overlap. `__metadata__` maps strings to strings. Only the header
 * is read; data pages are read when they are touched. The header is scanned by strict code of our own:
 * DEVIATIONS.md says where it differs from the official library (safetensors 0.8). Source:
 * https://huggingface.co/docs/safetensors
 *
 * Names, keys and values are C strings in UTF-8; U+0000 stands in them as the two bytes C0 80, as in json.h.
 */
#ifndef NL_SAFETENSORS_H
#define NL_SAFETENSORS_H

#include "faults.h"
#include "file.h"

enum { NL_ST_MAX_HEADER = 100000000 }; /* bytes */

struct nl_safetensors;

/* All pointers belong to the file and live until nl_safetensors_close. */
struct nl_tensor {
    const char *name;
    const struct nl_safetensors *file;
    enum nl_dtype dtype;
    unsigned rank;
    const uint64_t *shape; /* [rank], slowest first; rank 0 is a scalar; any rank */
    uint64_t elements;     /* product of the shape */
    uint64_t begin, end;   /* bytes, relative to the start of the data */
    const uint8_t *data;   /* in the mapping, end - begin bytes, perhaps unaligned */
};

struct nl_metadata {
    const char *key, *value;
};

struct nl_safetensors {
    char *path;
    const char *header; /* header_size bytes, in the mapping, not terminated */
    uint64_t header_size, data_size;
    struct nl_tensor *tensors; /* [count], by offset */
    size_t count;
    const struct nl_tensor **by_name; /* [count], sorted as strcmp does */
    struct nl_metadata *metadata;     /* [n_metadata], in the file's order */
    size_t n_metadata;
    bool has_metadata; /* __metadata__ is there, perhaps empty */
    /* private */
    struct nl_map map;
    void *blocks;
};

/* Maps and checks a file; reads nothing but the header. NULL and *error: the first fault (NL_DATA), or why it
 * cannot be read. */
struct nl_safetensors *nl_safetensors_open(const char *path, struct nl_error *error);
void nl_safetensors_close(struct nl_safetensors *); /* NULL is fine */
/* By name, O(log n); NULL when absent. */
const struct nl_tensor *nl_safetensors_find(const struct nl_safetensors *, const char *name);

/* Opens the file but reports each of its faults. 0, and the file where it has none, else NULL; -1 and *error
   when the file cannot be read at all. */
int nl_safetensors_check(const char *path, struct nl_faults *faults, struct nl_safetensors **file,
                         struct nl_error *error);
/* Appends the header's bytes as they stand, whatever they are; only the length must be possible. */
int nl_safetensors_header(const char *path, struct nl_buf *out, struct nl_error *error);

#endif
