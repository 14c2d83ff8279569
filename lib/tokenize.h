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

/* What is written for a text. */
enum nl_tokenize_view {
    NL_VIEW_STREAM,
    /* Text instead of a stream, for people: a line for each id: id, bytes, where in the text they are; an
       empty line behind each sequence. */
    NL_VIEW_PIECES,
    NL_VIEW_STAGES, /* the same with lines for the normalized text and the pre-tokens */
    NL_VIEW_COUNT,  /* a line for each sequence: how many ids */
};

struct nl_tokenize {
    /* Set by the caller. */
    struct nl_writer *writer;
    enum nl_record_kind kind; /* what makes a sequence of a text */
    bool raw;                 /* the newlines at the ends of texts and lines are kept */
    bool special;             /* with what the tokenizer's template adds */
    unsigned threads;         /* at most; 0 is one */
    bool replace;             /* U+FFFD for what is not UTF-8, which else fails the sequence */
    const struct nl_chat_options
        *chat;  /* a text is a conversation for the model's chat template; NULL: it is not */
    bool plain; /* special tokens spelt out in the text are ordinary text */
    bool quiet; /* no warnings */
    enum nl_tokenize_view view;
    int out;              /* for the views of text */
    const char *out_name; /* of it */
    /* A sequence is cut to the first `most` ids or, `chunks`, into several of at most so many, each beginning
       with the last `overlap` ids of the one before; 0: no limit. The template's tokens count, and are in
       each. */
    uint64_t most, overlap;
    bool chunks;
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
    struct nl_ids ids;                /* of all shares, where they are needed together */
    struct nl_ids before, after;      /* what the template puts around a text */
    struct nl_buf shown;
    bool warned;
    bool open, failed;        /* between NLS1 and DONE; this input's sequence failed, its rest is of no use */
    struct nl_chat *template; /* with `chat` */
    struct nl_buf repaired, rendered;
};

/* Opens the tokenizer of `model` (of -m, or NULL: see nl_model_path). */
int nl_tokenize_open(struct nl_tokenize *, const char *model, struct nl_error *error);
/* tokenize_view.c: appends what a view shows of a text (not NL_VIEW_STREAM) to *out. */
int nl_tokenize_show(struct nl_tokenize *, struct nl_encoder *, const char *text, size_t length,
                     struct nl_buf *out, struct nl_error *error);
/* Appends bytes as they stand in such a line: what is not UTF-8 or would not be seen as \xNN, \n, \t, \r. */
void nl_tokenize_escape(const char *bytes, size_t size, struct nl_buf *out);
/* Writes the sequences of one text, to its end or to a signal; `name` is for messages. -1 and *error: nothing
   can follow. */
int nl_tokenize_read(struct nl_tokenize *, int fd, const char *name, struct nl_error *error);
void nl_tokenize_free(struct nl_tokenize *); /* the writer stays the caller's */

#endif
