/*
 * inspect_model.h: what st-inspect(1) says of a model folder: its config.json in a dozen lines, and the
 * memory that it takes.
 */
#ifndef NL_INSPECT_MODEL_H
#define NL_INSPECT_MODEL_H

#include "checkpoint.h"
#include "config.h"

/* Bytes, as the programs here take them: float32 cache, default --prefill-chunk and --batch, one sequence. */
struct nl_footprint {
    uint64_t weights;     /* all tensors of the checkpoint, as stored */
    uint64_t cache_token; /* keys and values of one position */
    uint64_t cache;       /* of `context` positions, in whole blocks */
    uint64_t activations;
    uint64_t total;
};
/* False when a product overflows. context: at least 1. */
bool nl_footprint(const struct nl_config *, const struct nl_checkpoint *, uint32_t context,
                  struct nl_footprint *);

/*
 * Appends "key", blanks, "value" lines. context 0: the model's max_position_embeddings. -1 and *error, and
 * nothing appended: nl_config_load's, or NL_RESOURCE where the context needs more bytes than can be counted.
 */
int nl_inspect_model(const char *folder, const struct nl_checkpoint *, uint32_t context, bool human,
                     struct nl_buf *out, struct nl_error *error);
/* The same as an object. */
int nl_inspect_model_json(const char *folder, const struct nl_checkpoint *, uint32_t context,
                          struct nl_buf *out, struct nl_error *error);

#endif
