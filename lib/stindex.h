/*
 * stindex.h: model.safetensors.index.json: which shard holds which tensor.
 *
 * Format: {"metadata": {"total_size": bytes}, "weight_map": {tensor: shard, ...}}; only weight_map is needed.
 * A shard is a file beside the index: a name with a directory part is refused.
 */
#ifndef NL_STINDEX_H
#define NL_STINDEX_H

#include "faults.h"
#include "json.h"

struct nl_index_entry {
    const char *tensor, *shard; /* C strings as in safetensors.h */
};

/* All strings live until nl_index_close. */
struct nl_index {
    char *path;
    struct nl_json *root;           /* owned */
    struct nl_index_entry *entries; /* [count], sorted by tensor as strcmp does */
    size_t count;
    const char **shards; /* [n_shards], sorted, each once */
    size_t n_shards;
    bool complete; /* every entry of weight_map is there; else some were reported and left out */
};

/* NULL and *error: cannot be read, is not JSON (NL_DATA), or the first fault. */
struct nl_index *nl_index_open(const char *path, struct nl_error *error);
/* The same, but faults are reported and bad entries left out (all, where it is not JSON); NULL: it could not
 * be read. */
struct nl_index *nl_index_check(const char *path, struct nl_faults *faults, struct nl_error *error);
void nl_index_close(struct nl_index *); /* NULL is fine */
/* O(log n); NULL when absent. */
const struct nl_index_entry *nl_index_find(const struct nl_index *, const char *tensor);
/* The path of a shard, beside the index; NULL when out of memory. The caller frees it. */
char *nl_index_shard_path(const struct nl_index *, const char *shard, struct nl_error *error);
/* metadata.total_size; false when it is not given as a whole number. */
bool nl_index_total_size(const struct nl_index *, uint64_t *total);

#endif
