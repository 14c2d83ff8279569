/*
 * tokenizer.h: tokenizer.json, as the Python package `tokenizers` 0.23 (Tokenizer.from_file) reads it.
 *
 * A tokenizer is immutable once opened: threads may share it, each with an encoder or decoder of its own.
 */
#ifndef NL_TOKENIZER_H
#define NL_TOKENIZER_H

#include "buf.h"

struct nl_tokenizer;

/* Loads FOLDER/tokenizer.json (and tokenizer_config.json's overrides), or a tokenizer.json given by name
   (without overrides). A type that is not supported: NL_UNSUPPORTED, named. */
struct nl_tokenizer *nl_tokenizer_open(const char *path, struct nl_error *error);
void nl_tokenizer_close(struct nl_tokenizer *);
/* One more than the largest id. */
uint32_t nl_tokenizer_vocab_size(const struct nl_tokenizer *);
/* An id's bytes as the decoder would write them inside a text (never U+FFFD for a part of a character); NULL
   when there is no such id. Until nl_tokenizer_close. */
const char *nl_tokenizer_piece(const struct nl_tokenizer *, uint32_t id, size_t *length);
/* The id of a token by its content; false when absent. */
bool nl_tokenizer_id(const struct nl_tokenizer *, const char *content, size_t length, uint32_t *id);

/* Appends the ids that NL_ENCODE_SPECIAL puts before and behind a text; false (nothing appended, or memory
   ran out) where its template is not one text with tokens around it. */
bool nl_tokenizer_affixes(const struct nl_tokenizer *, struct nl_ids *before, struct nl_ids *after);

enum {
    NL_ENCODE_SPECIAL = 1,   /* with what the template adds */
    NL_ENCODE_PLAIN = 2,     /* special tokens spelt out in the text are ordinary text */
    NL_ENCODE_CONTINUES = 4, /* a part of a text that is not its first, see nl_encoder_cut, */
    NL_ENCODE_GOES_ON = 8,   /* one that is not its last */
};
struct nl_encoder;
struct nl_encoder *nl_encoder_open(const struct nl_tokenizer *, struct nl_error *error);
void nl_encoder_close(struct nl_encoder *);
/* Appends the ids of valid UTF-8 text; NL_DATA names the offset of a byte that is not UTF-8. */
int nl_encoder_encode(struct nl_encoder *, const char *text, size_t length, unsigned flags,
                      struct nl_ids *out, struct nl_error *error);
/* The first place at or behind `at` where the text may be cut into parts whose ids together are its own; its
 * length when there is none. */
size_t nl_encoder_cut(const struct nl_encoder *, const char *text, size_t at, size_t length);
/* The same with an encoder that the tokenizer keeps; `flags` may be a bool: NL_ENCODE_SPECIAL. Not from two
 * threads at once. */
int nl_tokenizer_encode(struct nl_tokenizer *, const char *text, size_t length, unsigned flags,
                        struct nl_ids *out, struct nl_error *error);

/*
 * A streaming decoder: what the pushes and the finish append is the batch decode. Nothing is held but an
 * unfinished character, and what a decoder may still strip or replace. One exception, see DEVIATIONS.md: in a
 * run of byte-fallback tokens that turns out not to be UTF-8 the batch decode replaces every byte; good
 * characters before the first fault have been written by then.
 */
struct nl_decoder;
enum {
    NL_DECODE_SPECIAL = 1,   /* show special tokens */
    NL_DECODE_BYTES = 4,     /* bytes that are no character as they are, not U+FFFD */
    NL_DECODE_CONTINUES = 2, /* a continuation: no first blank is stripped */
};
struct nl_decoder *nl_decoder_open(const struct nl_tokenizer *, unsigned flags, struct nl_error *error);
void nl_decoder_close(struct nl_decoder *);
/* Other flags, for the sequence that begins. */
void nl_decoder_set_flags(struct nl_decoder *, unsigned flags);
int nl_decoder_push(struct nl_decoder *, uint32_t id, struct nl_buf *out,
                    struct nl_error *error); /* NL_DATA: unknown id */
int nl_decoder_finish(struct nl_decoder *, struct nl_buf *out,
                      struct nl_error *error); /* ready for the next sequence */

/* SHA-256, in lower-case hex, of tokenizer.json and tokenizer_config.json of a folder one after the other, a
   missing one being empty; "" where there is no tokenizer.json. Cached by device, inode, size and times. */
int nl_tokenizer_hash(const char *folder, char hex[65], struct nl_error *error);

#endif
