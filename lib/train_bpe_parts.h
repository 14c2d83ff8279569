/*
 * train_bpe_parts.h: inside the trainer: what the files train_bpe*.c share. Programs include train_bpe.h.
 */
#ifndef NL_TRAIN_BPE_PARTS_H
#define NL_TRAIN_BPE_PARTS_H

#include "pool.h"
#include "tok.h"
#include "train_bpe.h"

/* Distinct strings with an index each, in the order in which they came, and a count. */
struct train_word {
    size_t at, size; /* in bytes */
    uint64_t count;
};
struct train_slot {
    uint32_t hash, index; /* index NL_TOK_NONE: free */
};
struct train_words {
    struct nl_buf bytes;
    struct train_word *words; /* [n] */
    uint32_t n;
    size_t capacity;
    struct train_slot *slots; /* open addressing, [mask + 1]; NULL while there are none */
    uint32_t mask;
};
/* Adds to a string's count; *index (may be NULL) gets its index. `text` must not lie in words->bytes. */
int nl_train_words_add(struct train_words *words, const char *text, size_t size, uint64_t count,
                       uint32_t *index, struct nl_error *error);
/* False when it is not there. */
bool nl_train_words_find(const struct train_words *words, const char *text, size_t size, uint32_t *index);
void nl_train_words_free(struct train_words *);

struct train_special {
    uint32_t id;
    const struct nl_json *source; /* in the form's added_tokens; NULL: one of the caller's */
};
struct train_merge {
    uint32_t left, right;
};
struct train_worker {
    struct nl_encoder *encoder;
    struct train_words words;
    int result; /* of a run */
    struct nl_error error;
};

struct nl_train_bpe {
    struct nl_train_bpe_options options;
    const struct nl_json *form;     /* the caller's */
    struct nl_tokenizer *tokenizer; /* normalizer and pre-tokenizer only */
    struct nl_pool *pool;
    struct train_worker *workers; /* [options.threads]; the words of all are the first's once nl_train_bpe_run
                                     has begun */
    struct train_words vocab;     /* tokens as tokenizer.json spells them; the index is the id */
    struct train_special *special; /* [n_special] */
    size_t n_special, special_capacity;
    struct train_merge *merges; /* [n_merges] in their order */
    uint32_t n_merges;
    size_t merges_capacity;
};

/* train_bpe_form.c: checks the form and loads its normalizer and pre-tokenizer into an empty tokenizer. */
int nl_train_load_form(struct nl_tokenizer *, const struct nl_json *form, struct nl_error *error);

/* train_bpe_merge.c: from the words, with the alphabet in the vocabulary, to tokens and merges. ids: of each
 * byte, NL_TOK_NONE where it is skipped. */
int nl_train_merge(struct nl_train_bpe *, const uint32_t ids[256], nl_train_bpe_progress *progress,
                   void *context, struct nl_error *error);

/*
 * train_bpe_pairs.c: the pairs of neighbouring symbols with their counts, and the queue of what to merge.
 *
 * A pair comes up in one step only, the one that makes the newer of its two tokens: a token is made by one
 * merge, since what ends up as one token never met anything outside of it, and so was put together in the
 * same way everywhere. Hence one list of positions a pair, which only shrinks.
 */
struct train_pair {
    uint64_t key;  /* left << 32 | right: in the order of ties */
    int64_t count; /* occurrences, weighted by words; a merge leaves its own as it is */
    size_t at;     /* in positions */
    uint32_t n;    /* of its positions, ascending; some may have gone */
    bool listed;   /* the step in which it came up is over */
};
struct train_queued {
    int64_t count; /* the pair's when this was queued or last looked at: may be out of date */
    uint64_t key;
    uint32_t pair;
};
struct train_occurrence {
    uint32_t pair, position;
};
struct train_pairs {
    struct train_pair *pairs; /* [n] */
    uint32_t n;
    size_t capacity;
    uint32_t *slots; /* open addressing, [mask + 1] */
    uint32_t mask;
    uint32_t *positions; /* [n_positions] of all pairs: never given back, at most three for each symbol */
    size_t n_positions, positions_capacity;
    struct train_queued *queue; /* [n_queue] binary heap: the largest count first, then the smallest key */
    size_t n_queue, queue_capacity;
    struct train_occurrence *log; /* [n_log] occurrences that came up in this step */
    size_t n_log, log_capacity;
    uint32_t *touched; /* [n_touched] pairs in the log */
    size_t n_touched, touched_capacity;
};
int nl_train_pairs_init(struct train_pairs *, struct nl_error *error);
void nl_train_pairs_free(struct train_pairs *);
/* Changes a pair's count; the pair is made when it is new. */
int nl_train_pairs_count(struct train_pairs *, uint32_t left, uint32_t right, int64_t change,
                         struct nl_error *error);
/* The same, for an occurrence that came up at a position; those of a pair come in ascending order. */
int nl_train_pairs_occur(struct train_pairs *, uint32_t left, uint32_t right, uint32_t position,
                         int64_t change, struct nl_error *error);
/* The end of a step: what came up is queued, where the count is not 0. */
int nl_train_pairs_queue(struct train_pairs *, struct nl_error *error);
/* Takes the pair that is merged next; NULL when there is none that occurs. Until another pair is made. */
const struct train_pair *nl_train_pairs_next(struct train_pairs *);

#endif
