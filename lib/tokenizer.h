/*
 * tokenizer.h: tokenizer.json, as the Python package `tokenizers` 0.23 (Tokenizer.from_file) reads it.
 */
#ifndef NL_TOKENIZER_H
#define NL_TOKENIZER_H

#include "buf.h"

struct nl_tokenizer;

/* Loads FOLDER/tokenizer.json (and tokenizer_config.json's overrides), or a tokenizer.json given by name. A type that is not supported: NL_UNSUPPORTED, named. */
struct nl_tokenizer *nl_tokenizer_open(const char *path, struct nl_error *error);
void nl_tokenizer_close(struct nl_tokenizer *);
/* One more than the largest id. */
uint32_t nl_tokenizer_vocab_size(const struct nl_tokenizer *);
/* An id's bytes as the decoder would write them alone; NULL when there is no such id. */
const char *nl_tokenizer_piece(const struct nl_tokenizer *, uint32_t id, size_t *length);
/* The id of a token by its content; false when absent. */
bool nl_tokenizer_id(const struct nl_tokenizer *, const char *content, size_t length, uint32_t *id);

/* Appends the ids of valid UTF-8 text; NL_DATA names the offset of a byte that is not UTF-8. `special`: with what the template adds. */
int nl_tokenizer_encode(struct nl_tokenizer *, const char *text, size_t length, bool special, struct nl_ids *out,
                        struct nl_error *error);

/* A streaming decoder: what the pushes and the finish append is the batch decode. */
struct nl_decoder;
enum { NL_DECODE_SPECIAL = 1, /* show special tokens */ NL_DECODE_CONTINUES = 2 /* a continuation: no first blank is stripped */ };
struct nl_decoder *nl_decoder_open(const struct nl_tokenizer *, unsigned flags, struct nl_error *error);
void nl_decoder_close(struct nl_decoder *);
int nl_decoder_push(struct nl_decoder *, uint32_t id, struct nl_buf *out, struct nl_error *error); /* NL_DATA: unknown id */
int nl_decoder_finish(struct nl_decoder *, struct nl_buf *out, struct nl_error *error);            /* ready for the next sequence */

/* SHA-256, in lower-case hex, of tokenizer.json and tokenizer_config.json of a folder one after the other, a missing one being empty;
   "" where there is no tokenizer.json. Cached by device, inode, size and times. */
int nl_tokenizer_hash(const char *folder, char hex[65], struct nl_error *error);

#endif
