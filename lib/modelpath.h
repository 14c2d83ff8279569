/*
 * modelpath.h: from what the user wrote to a model folder.
 *
 * A path is a path when it exists or begins with '/', '.' or '~'. ORG/NAME[@REVISION] is looked up in the
 * local Hugging Face cache (HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
 * ~/.cache/huggingface/hub; models--ORG--NAME/refs/REVISION holds the commit, files lie under
 * snapshots/COMMIT). Nothing is ever downloaded.
 */
#ifndef NL_MODELPATH_H
#define NL_MODELPATH_H

#include "buf.h"

/* Appends the folder for `model`; NULL: $NL_MODEL, else ${XDG_DATA_HOME:-~/.local/share}/nanollm/default.
   NL_NOT_FOUND with the command that would fetch it. */
int nl_model_path(const char *model, struct nl_buf *out, struct nl_error *error);
/* ${XDG_CACHE_HOME:-~/.cache}/nanollm; -1 when no home is known. */
int nl_cache_folder(struct nl_buf *out, struct nl_error *error);
/* ${XDG_DATA_HOME:-~/.local/share}/nanollm. */
int nl_data_folder(struct nl_buf *out, struct nl_error *error);

#endif
