/*
 * import_parts.h: what the files import*.c share, and the fuzzer calls.
 */
#ifndef NL_IMPORT_PARTS_H
#define NL_IMPORT_PARTS_H

#include "emit.h"
#include "import.h"
#include "safetensors_write.h"

enum nl_import_rope {
    NL_IMPORT_ROPE_DEFAULT,
    NL_IMPORT_ROPE_LINEAR,
    NL_IMPORT_ROPE_YARN,
    NL_IMPORT_ROPE_LLAMA3
};

/* Hyperparameters, in config.json's terms. */
struct nl_import_config {
    int64_t n_layers, hidden_size, intermediate_size, n_heads, n_kv_heads, head_dim, max_positions,
        vocab_size;
    double rms_norm_eps, rope_theta;
    bool attention_bias, mlp_bias, tied;
    enum nl_import_rope rope;
    double factor, low_freq_factor, high_freq_factor; /* LINEAR and YARN: factor; LLAMA3: all */
    double beta_fast, beta_slow;                      /* YARN */
    int64_t original_positions;                       /* YARN, LLAMA3 */
    int64_t bos, eos, unk, pad, eot, eom;             /* ids; -1: none */
};

int nl_import_config(const struct nl_gguf *, struct nl_import_config *out, struct nl_error *error);
void nl_import_config_json(const struct nl_import_config *, enum nl_dtype dtype, struct nl_buf *out);
void nl_import_generation_json(const struct nl_import_config *, struct nl_buf *out);

/* A tensor's way from GGUF into the new file. */
struct nl_route {
    struct nl_st_entry entry;
    const struct nl_gguf_tensor *source; /* of the entry's shape; its type can be dequantised */
    uint64_t head_rows; /* rows of a head where they have to be put back into half-split order, else 0 */
};

/* Writes the whole .safetensors file; sorts the routes (all of options->dtype) by name. */
int nl_import_weights(int fd, const char *name, const struct nl_gguf *, struct nl_route *routes, size_t count,
                      const struct nl_import_options *, struct nl_error *error);

/* tokenizer.json and tokenizer_config.json. */
int nl_import_tokenizer(const struct nl_gguf *, const struct nl_import_config *, struct nl_buf *tokenizer,
                        struct nl_buf *tokenizer_config, struct nl_error *error);

/* The tokens by their content. */
struct nl_vocab {
    const struct nl_gguf_string *tokens; /* [count], the caller's */
    uint32_t *order;                     /* [count] indices, sorted by content */
    size_t count;
};
/* NL_DATA: two tokens are equal, one is not UTF-8, or longer than NL_MAX_TOKEN bytes; `name` is the file's.
 */
enum { NL_MAX_TOKEN = 4096 };
int nl_vocab_init(struct nl_vocab *, const struct nl_gguf_string *tokens, size_t count, const char *name,
                  struct nl_error *error);
void nl_vocab_free(struct nl_vocab *);
bool nl_vocab_find(const struct nl_vocab *, const char *string, size_t size, uint32_t *index);

/* A merge by its parts and what they make. */
struct nl_merge {
    uint32_t left, right, whole;
};
/* out[count] from GGUF's strings "left right". NL_DATA: no two parts, or a part or the whole is no token. */
int nl_merges_parse(const struct nl_vocab *, const struct nl_gguf_string *strings, size_t count,
                    struct nl_merge *out, const char *name, struct nl_error *error);
/* From SentencePiece's scores [count]: every way to cut a token of at least two characters into two tokens is
   a merge; best score first, then by the ids of whole, left and right, as in the tokenizer.json that Hugging
   Face publishes for these models. *out is allocated (malloc). */
int nl_merges_from_scores(const struct nl_vocab *, const struct nl_gguf_pair *scores, struct nl_merge **out,
                          size_t *count, const char *name, struct nl_error *error);

#endif
