/*
 * checkpoint.h: the tensors of a Hugging Face model folder: model.safetensors, or the shards that
 * model.safetensors.index.json names (the index is used when model.safetensors is absent).
 *
 * Nothing is copied: tensors point into the mapped files.
 */
#ifndef NL_CHECKPOINT_H
#define NL_CHECKPOINT_H

#include "safetensors.h"

struct nl_checkpoint {
    struct nl_safetensors **files; /* [n_files] */
    size_t n_files;
    const struct nl_tensor **tensors; /* [count], sorted by name (bytes) */
    size_t count;
    struct nl_index *index; /* NULL without an index */
};

/*
 * Opens `path`: a folder, a .safetensors file, or an index file. NULL and *error:
 * no weights in the folder, or a shard missing: NL_NOT_FOUND; a shard name with a directory part, a tensor of the weight map that
 * its shard lacks, a tensor in two shards, a damaged file: NL_DATA. Tensors of the shards that the map lacks are ignored.
 */
struct nl_checkpoint *nl_checkpoint_open(const char *path, struct nl_error *error);
void nl_checkpoint_close(struct nl_checkpoint *);
const struct nl_tensor *nl_checkpoint_find(const struct nl_checkpoint *, const char *name);

#endif
