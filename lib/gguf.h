/*
 * gguf.h: a GGUF file, version 3, little-endian: metadata and tensors.
 *
 * Layout: "GGUF", u32 version, u64 number of tensors, u64 number of metadata pairs; the pairs (string key,
 * u32 type, value); the tensors (string name, u32 rank, u64 dimensions fastest first, u32 GGML type, u64
 * offset); padding to general.alignment (32); the data. A string is a u64 length and bytes. An array is a u32
 * type, a u64 count, values. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 *
 * Everything is checked when the file is opened, against the bytes that are there: counts before anything is
 * allocated for them, types, offsets (aligned, inside the data, no overlap), whole blocks in each row, keys
 * and names unique. Errors: NL_DATA and the key, tensor or offset; NL_UNSUPPORTED: another version,
 * big-endian, an unknown tensor type, an array of arrays. Memory is at most a few times the size of the
 * metadata.
 */
#ifndef NL_GGUF_H
#define NL_GGUF_H

#include "dequant.h"
#include "file.h"

enum nl_gguf_kind {
    NL_GGUF_U8,
    NL_GGUF_I8,
    NL_GGUF_U16,
    NL_GGUF_I16,
    NL_GGUF_U32,
    NL_GGUF_I32,
    NL_GGUF_F32,
    NL_GGUF_BOOL,
    NL_GGUF_STRING,
    NL_GGUF_ARRAY,
    NL_GGUF_U64,
    NL_GGUF_I64,
    NL_GGUF_F64,
    NL_GGUF_KINDS,
};

struct nl_gguf_string {
    const char *data; /* size bytes in the file's memory, not terminated; any bytes */
    size_t size;
};

struct nl_gguf_pair {
    const char *key;        /* NUL-terminated, owned by the file */
    enum nl_gguf_kind kind; /* of the value; of an array's elements when is_array */
    bool is_array;
    uint64_t count;      /* 1, or an array's */
    const uint8_t *data; /* the encoded values, one after the other */
};

struct nl_gguf_tensor {
    const char *name;                /* NUL-terminated, owned by the file */
    const struct nl_ggml_type *type; /* its `dequantize` may be NULL */
    unsigned rank;                   /* 0 to 4 */
    uint64_t dims[4];                /* fastest first; 1 past the rank */
    uint64_t elements, size;         /* size in bytes */
    uint64_t offset;                 /* relative to the data */
    const uint8_t *data;
};

struct nl_gguf {
    struct nl_map map; /* empty after nl_gguf_parse */
    const char *name;  /* for messages: the path; owned */
    uint64_t alignment;
    struct nl_gguf_pair *pairs; /* [n_pairs], sorted by key */
    size_t n_pairs;
    struct nl_gguf_tensor *tensors; /* [n_tensors], sorted by name */
    size_t n_tensors;
};

/* Maps the file. NULL and *error. */
struct nl_gguf *nl_gguf_open(const char *path, struct nl_error *error);
/* The same for bytes in memory, which must outlive it; `name` is for messages. */
struct nl_gguf *nl_gguf_parse(const uint8_t *bytes, size_t size, const char *name, struct nl_error *error);
void nl_gguf_close(struct nl_gguf *);

/* By key or name, O(log n); NULL when absent. */
const struct nl_gguf_pair *nl_gguf_find(const struct nl_gguf *, const char *key);
const struct nl_gguf_tensor *nl_gguf_tensor(const struct nl_gguf *, const char *name);

/* Typed values: 1 and *out, 0 when the key is absent (*out is not touched), -1 and NL_DATA when it has
   another type or is out of range. nl_gguf_integer takes every integer type, nl_gguf_float both floating
   types. */
int nl_gguf_integer(const struct nl_gguf *, const char *key, int64_t low, int64_t high, int64_t *out,
                    struct nl_error *error);
int nl_gguf_float(const struct nl_gguf *, const char *key, double *out, struct nl_error *error);
int nl_gguf_bool(const struct nl_gguf *, const char *key, bool *out, struct nl_error *error);
int nl_gguf_text(const struct nl_gguf *, const char *key, struct nl_gguf_string *out, struct nl_error *error);
/* An array of strings: *out[*count], allocated (malloc) for the caller. */
int nl_gguf_strings(const struct nl_gguf *, const char *key, struct nl_gguf_string **out, size_t *count,
                    struct nl_error *error);
/* An array of `kind` (NL_GGUF_I32 or NL_GGUF_F32): *out is its pair. */
int nl_gguf_array(const struct nl_gguf *, const char *key, enum nl_gguf_kind kind,
                  const struct nl_gguf_pair **out, struct nl_error *error);
int32_t nl_gguf_i32_at(const struct nl_gguf_pair *, size_t index);
float nl_gguf_f32_at(const struct nl_gguf_pair *, size_t index);

#endif
