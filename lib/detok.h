/*
 * detok.h: ids in, text out: what nl-detok(1) does.
 */
#ifndef NL_DETOK_H
#define NL_DETOK_H

#include "stream.h"
#include "tokenizer.h"

struct nl_detok {
    /* Set by the caller. */
    const char *model;  /* of -m, or NULL */
    bool any_tokenizer; /* do not compare the tokenizer with the stream's */
    bool show_special;
    bool bytes;      /* never U+FFFD: bytes that make no character as they are */
    bool json;       /* a line of JSON for each id instead of the text: see nl-detok(1) */
    char terminator; /* of each sequence, when `terminate` */
    bool terminate;
    int out; /* text goes there; the caller's */
    const char *out_name;
    struct nl_reader *reader;
    void (*report)(const struct nl_error *error); /* the message of a sequence that failed */

    /* For the caller to read. */
    enum nl_status status; /* of the first sequence that failed */
    uint64_t n_sequences, n_ids, n_bytes;

    /* detok.c's. */
    struct nl_buf text, piece; /* piece: with `json`, what one id adds */
    char *path;                /* of the tokenizer */
    char hash[65];             /* of its files; "" when there is none */
    struct nl_tokenizer *tokenizer;
    struct nl_decoder *decoder;
    struct nl_ids kept; /* of a session, whose ids may yet be cut */
    uint64_t index;     /* of the next id in its sequence */
    bool keep, failed;
};

/* Reads the stream to its end, writing text as the ids come. -1 and *error when it cannot go on. */
int nl_detok_run(struct nl_detok *, struct nl_error *error);
/* Writes what is ready; before a wait for more input. */
int nl_detok_flush(struct nl_detok *, struct nl_error *error);
void nl_detok_free(struct nl_detok *);

#endif
