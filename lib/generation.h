/*
 * generation.h: what generation_config.json and config.json say about ending and processing.
 */
#ifndef NL_GENERATION_H
#define NL_GENERATION_H

#include "json.h"

struct nl_generation {
    struct nl_ids eos;          /* generation_config.json's eos_token_id, an integer or a list, else config.json's; may be empty */
    bool has_bos;
    uint32_t bos;               /* likewise bos_token_id */
    struct nl_json *processors; /* the keys of generation_config.json that change greedy output, for NLS1's "generation"; NULL when none; owned */
};

/* Reads a model folder; a missing generation_config.json is fine. */
int nl_generation_load(const char *folder, struct nl_generation *out, struct nl_error *error);
void nl_generation_free(struct nl_generation *);

#endif
