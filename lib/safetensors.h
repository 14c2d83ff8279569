/*
 * safetensors.h: one .safetensors file.
 *
 * Format: u64 little-endian header length N (at most 100,000,000), N bytes of JSON, then the data. Each entry gives dtype,
 * shape and data_offsets [begin, end) relative to the data. The header is scanned by strict code of our own: see
 * DEVIATIONS.md for where it is stricter or laxer than the official library (safetensors 0.8).
 * Source: https://huggingface.co/docs/safetensors
 */
#ifndef NL_SAFETENSORS_H
#define NL_SAFETENSORS_H

#include "base.h"

enum { NL_MAX_RANK = 8 };

struct nl_tensor {
    const char *name; /* UTF-8, owned by the file; may hold any character but NUL */
    enum nl_dtype dtype;
    unsigned rank;
    uint64_t shape[NL_MAX_RANK]; /* slowest first; rank 0 is a scalar */
    uint64_t elements;           /* product of the shape */
    uint64_t begin, end;         /* bytes, relative to the start of the data */
    const uint8_t *data;         /* in the mapping, end - begin bytes, perhaps unaligned; until nl_safetensors_close */
};

struct nl_metadata {
    const char *key, *value;
};

struct nl_safetensors {
    const char *path;
    const char *header; /* header_size bytes, in the mapping, not terminated */
    uint64_t header_size, data_size;
    struct nl_tensor *tensors; /* [count], by offset */
    size_t count;
    struct nl_metadata *metadata; /* [n_metadata], in the file's order */
    size_t n_metadata;
};

/* Maps and checks a file; reads nothing but the header. NULL and *error: the first fault. */
struct nl_safetensors *nl_safetensors_open(const char *path, struct nl_error *error);
/* The same, but goes on where it can and calls `fault` for each fault it finds (path not included in the message);
   returns the number of faults, -1 when the file cannot be read at all. */
long nl_safetensors_check(const char *path, void (*fault)(void *context, const char *message), void *context,
                          struct nl_error *error);
void nl_safetensors_close(struct nl_safetensors *);
/* By name, O(log n); NULL when absent. */
const struct nl_tensor *nl_safetensors_find(const struct nl_safetensors *, const char *name);

#endif
