/*
 * train_bpe.h: training of byte-level BPE: text in, a tokenizer.json out.
 *
 * The vocabulary and the merges are those of the class BpeTrainer of the Python package `tokenizers` 0.23,
 * which defines the details:
 *
 *  - The text is a list of sequences. Each is normalized and split by the form's normalizer and
 * pre-tokenizer; what counts of it is how often each distinct word occurs.
 *  - Ids: the special tokens in their order, then the alphabet (one symbol a byte, in the order of GPT-2's
 *    characters for bytes), then a new id for each merge whose text is new.
 *  - Each step joins the pair of symbols that occurs most often, of equals the one with the smaller left id,
 *    then the smaller right id; it ends when the vocabulary is full, no pair is left, or the best one occurs
 *    less often than min_frequency.
 *
 * Memory is proportional to the distinct words (30 to 45 bytes for each of their bytes), not to the text.
 */
#ifndef NL_TRAIN_BPE_H
#define NL_TRAIN_BPE_H

#include "json.h"

enum { NL_TRAIN_BPE_LARGEST = 1 << 24 }; /* vocabulary */

struct nl_train_bpe_options {
    uint32_t vocab_size;       /* all tokens, special ones and alphabet included */
    uint64_t min_frequency;    /* of a pair that is merged */
    uint64_t max_token_length; /* bytes; a pair that does not stay below is not merged, but for pairs of
                                  single bytes; UINT64_MAX: any length */
    uint32_t limit_alphabet;   /* how many bytes the alphabet may have, the most frequent ones; the others are
                                  skipped in the text; UINT32_MAX: all */
    bool initial[256];         /* bytes that are in the alphabet whether they occur or not */
    unsigned threads;          /* 1 to 1024 */
};
/* vocab_size 30000, no limits, all 256 bytes, 1 thread. */
struct nl_train_bpe_options nl_train_bpe_defaults(void);

/*
 * The form: an object as in tokenizer.json, of which normalizer, pre_tokenizer, post_processor, decoder and
 * the model's options are taken over. The vocabulary and the merges are not looked at; added_tokens are, in
 * nl_train_bpe_open: those that are special come before the caller's special tokens. The last pre-tokenizer
 * must be ByteLevel, with bytes as symbols from the start: all else is NL_UNSUPPORTED.
 */
/* The form of a published pre-tokenizer by its name; NULL (NL_USAGE) names those there are. Free it with
 * nl_json_free. */
struct nl_json *nl_train_bpe_form(const char *name, struct nl_error *error);
/* "gpt2, llama3, ..." */
const char *nl_train_bpe_form_names(void);

struct nl_train_bpe;
/* `form` must live as long as the trainer. `special`: UTF-8, one that is there already is ignored. */
struct nl_train_bpe *nl_train_bpe_open(const struct nl_train_bpe_options *, const struct nl_json *form,
                                       const char *const *special, size_t n_special, struct nl_error *error);
void nl_train_bpe_close(struct nl_train_bpe *);

/* Counts the words of n sequences of valid UTF-8, split among the threads; the i-th is the bytes from ends[i
   - 1] (0 for the first) to ends[i] of `text`. */
int nl_train_bpe_add(struct nl_train_bpe *, const char *text, const size_t *ends, size_t n,
                     struct nl_error *error);

/* Told after each merge, with the size of the vocabulary; -1 gives up (NL_IO, no message). */
typedef int nl_train_bpe_progress(void *context, uint32_t size, uint32_t wanted);
/* Once, after the last nl_train_bpe_add. `progress` may be NULL. */
int nl_train_bpe_run(struct nl_train_bpe *, nl_train_bpe_progress *progress, void *context,
                     struct nl_error *error);

/* After nl_train_bpe_run: how many distinct words there were, how many tokens and merges there are. */
struct nl_train_bpe_sizes {
    uint32_t words, tokens, merges;
};
struct nl_train_bpe_sizes nl_train_bpe_sizes(const struct nl_train_bpe *);

/* Appends the tokenizer.json, after nl_train_bpe_run. */
int nl_train_bpe_write(const struct nl_train_bpe *, struct nl_buf *out, struct nl_error *error);

#endif
