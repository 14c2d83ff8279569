/*
 * tokenize.h: text in, ids out: what nl-tokenize(1) does.
 */
#ifndef NL_TOKENIZE_H
#define NL_TOKENIZE_H

#include <signal.h>

#include "chat.h"
#include "records.h"
#include "stream.h"
#include "tokenizer.h"

struct nl_tokenize {
    /* Set by the caller. */
    struct nl_writer *writer;
    enum nl_record_kind kind; /* what makes a sequence of a text */
    bool raw;                 /* the newlines at the ends of texts and lines are kept */
    bool special;             /* with what the tokenizer's template adds */
    unsigned threads;         /* at most; 0 is one */
    bool replace;             /* U+FFFD for what is not UTF-8, which else fails the sequence */
    const struct nl_chat_options
        *chat; /* a text is a conversation for the model's chat template; NULL: it is not */
    const volatile sig_atomic_t *signal;          /* not 0: stop behind the present sequence */
    void (*report)(const struct nl_error *error); /* a sequence that failed */

    /* For the caller to read. */
    enum nl_status status; /* of the first sequence that failed */
    uint64_t n_sequences, n_bytes, n_ids;

    /* tokenize.c's. */
    struct nl_json *header; /* NLS1 but for seq */
    struct nl_tokenizer *tokenizer;
    struct nl_pool *pool;             /* NULL until a text is long enough */
    struct nl_tokenize_share *shares; /* [n_shares] the parts of a text */
    unsigned n_shares, used;          /* used: of the present text */
    struct nl_chat *template;         /* with `chat` */
    struct nl_buf repaired, rendered;
};

/* Opens the tokenizer of `model` (of -m, or NULL: see nl_model_path). */
int nl_tokenize_open(struct nl_tokenize *, const char *model, struct nl_error *error);
/* Writes the sequences of one text, to its end or to a signal; `name` is for messages. -1 and *error: nothing
   can follow. */
int nl_tokenize_read(struct nl_tokenize *, int fd, const char *name, struct nl_error *error);
void nl_tokenize_free(struct nl_tokenize *); /* the writer stays the caller's */

#endif
