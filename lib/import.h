/*
 * import.h: a GGUF file turned into a Hugging Face model folder: model.safetensors, config.json,
 * generation_config.json, tokenizer.json, tokenizer_config.json.
 *
 * The llama architecture only. Weights are dequantised to float32 and rounded once (nearest, ties to even);
 * the rows of q and k go back from GGUF's order (pairs 2i, 2i + 1 of a head rotate together) to Hugging
 * Face's (i, i + d/2). What cannot be carried over exactly is NL_UNSUPPORTED and named: another architecture
 * or element type, experts, a sliding window, partial rotary embeddings, a tensor that the architecture does
 * not know, a tokenizer or pre-tokenizer that is not listed in import_tokenizer.c. NL_DATA: a missing key or
 * tensor, a wrong shape, bad tokenizer tables.
 */
#ifndef NL_IMPORT_H
#define NL_IMPORT_H

#include "gguf.h"

struct nl_import_options {
    enum nl_dtype dtype; /* NL_F32, NL_F16 or NL_BF16 */
    /* Called about once a megabyte of weights written; anything but 0 ends the work with -1 and an empty
       message. May be NULL. */
    int (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* The names of the files, ending in NULL. */
extern const char *const nl_import_files[];

/* Writes the files into an existing folder. */
int nl_import(const struct nl_gguf *, const char *folder, const struct nl_import_options *,
              struct nl_error *error);
/* A name for the model, from general.name or else the file's own: letters, digits, '.', '_' and '-', never
   empty, never "default". */
int nl_import_name(const struct nl_gguf *, struct nl_buf *out, struct nl_error *error);

#endif
