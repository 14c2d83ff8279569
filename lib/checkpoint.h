/*
 * checkpoint.h: the tensors of a Hugging Face model folder: model.safetensors, or the shards that
 * model.safetensors.index.json names (the index is used when model.safetensors is absent, as transformers
 * does).
 *
 * Nothing is copied: tensors point into the mapped files. Files that the index does not name are not touched,
 * tensors of the shards that its weight_map lacks are left out.
 */
#ifndef NL_CHECKPOINT_H
#define NL_CHECKPOINT_H

#include "safetensors.h"
#include "stindex.h"

/* The weight files that a path stands for. */
struct nl_shards {
    struct nl_index *index; /* owned; NULL without an index */
    char **paths; /* [count], owned; those of an index in the order of index->shards, so that each is there
                     once */
    size_t count;
};

/*
 * `path`: a folder, a .safetensors file, or an index file (its name ends in .json). Opens no weight file. -1
 * and *error: nothing there, or no weights in the folder (the message says what is there instead):
 * NL_NOT_FOUND; a bad index: NL_DATA. With `faults` the faults of the index go there and its good part is
 * used; NULL: the first is the error.
 */
int nl_shards_find(struct nl_shards *, const char *path, struct nl_faults *faults, struct nl_error *error);
void nl_shards_free(struct nl_shards *);

struct nl_checkpoint {
    struct nl_shards shards;
    struct nl_safetensors **files; /* [n_files], as shards.paths */
    size_t n_files;
    const struct nl_tensor **tensors; /* [count], sorted as strcmp does */
    size_t count;
};

/*
 * Opens what nl_shards_find finds. NULL and *error as there, and: a missing shard: NL_NOT_FOUND; a tensor of
 * the weight map that its shard lacks, a tensor in two shards, a damaged file: NL_DATA.
 */
struct nl_checkpoint *nl_checkpoint_open(const char *path, struct nl_error *error);
void nl_checkpoint_close(struct nl_checkpoint *); /* NULL is fine */
/* O(log n); NULL when absent. */
const struct nl_tensor *nl_checkpoint_find(const struct nl_checkpoint *, const char *name);

/* Reports every fault of the index and of each file, and where they disagree: a missing shard, a tensor
   missing or doubled, a tensor that the weight_map lacks, a total_size that is not the sum. -1 and *error:
   `path` cannot be read at all, or no memory. */
int nl_checkpoint_check(const char *path, struct nl_faults *faults, struct nl_error *error);

#endif
