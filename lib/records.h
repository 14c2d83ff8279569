/*
 * records.h: text from a descriptor, whole, by lines, or by NUL-terminated records, each as soon as it is
 * there.
 */
#ifndef NL_RECORDS_H
#define NL_RECORDS_H

#include "buf.h"

enum nl_record_kind {
    NL_RECORD_WHOLE, /* all there is; one trailing LF is dropped */
    NL_RECORD_LINE,  /* ends with LF, which is dropped; an unterminated last one counts */
    NL_RECORD_NUL,   /* ends with NUL, which is dropped; an unterminated last one counts */
};

struct nl_records {
    int fd; /* the caller's */
    const char *name;
    enum nl_record_kind kind;
    bool raw; /* LFs are kept */
    /* Called before each read(2) that would wait, and at least every half second while waiting; -1 gives up.
     * May be NULL. */
    int (*wait)(void *context, struct nl_error *error);
    void *context;

    /* NL_RECORD_WHOLE: when about `piece` bytes are held and more may come, `cut` says where the text may be
     * parted (0: nowhere), and the parts are given out one by one. NULL: never. */
    size_t (*cut)(void *context, const char *text, size_t length);
    size_t piece;
    size_t most; /* bytes to hold; a record, or part, that is longer is NL_DATA; 0: no limit */

    uint64_t offset;   /* of the last record, in bytes from the start */
    bool begins, ends; /* it is a record's first part, its last */
    /* The rest is records.c's. */
    uint64_t count, next_offset;
    struct nl_buf held;
    size_t next_cut;    /* with how many bytes held to try again */
    size_t at, scanned; /* in `held`: where the next record begins, how far no terminator was found */
    bool ended;
};

/* 1 and the next record, in memory that stays until the next call; 0 at the end; -1. An input without a byte
   is one empty record. */
int nl_records_next(struct nl_records *, const char **text, size_t *length, struct nl_error *error);
void nl_records_free(struct nl_records *);

#endif
