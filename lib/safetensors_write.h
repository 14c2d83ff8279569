/*
 * safetensors_write.h: a .safetensors file written from front to back: the header first, then the tensors'
 * bytes in the order of the header. Nothing is kept but the table, so a file may be larger than memory.
 *
 * The bytes are those that the official library (safetensors 0.8, save_file with metadata {"format": "pt"})
 * writes for the same tensors: larger element types first (in the order of enum nl_dtype, backwards), then by
 * name, no white space, the header padded with blanks to a multiple of 8.
 */
#ifndef NL_SAFETENSORS_WRITE_H
#define NL_SAFETENSORS_WRITE_H

#include "base.h"

enum { NL_ST_MAX_RANK = 4 };

struct nl_st_entry {
    const char *name; /* UTF-8, unique */
    enum nl_dtype dtype;
    unsigned rank;
    uint64_t shape[NL_ST_MAX_RANK]; /* slowest first */
};

struct nl_st_writer {
    int fd;           /* the caller's */
    const char *name; /* for messages; the caller's */
    uint64_t left;    /* bytes of data still to come */
};

/* Sorts the entries into the order in which their bytes have to come. */
void nl_st_sort(struct nl_st_entry *entries, size_t count);
/* Bytes of one tensor; false when they overflow. */
bool nl_st_size(const struct nl_st_entry *, uint64_t *out);
/* Writes the header of sorted entries to fd. NL_DATA: two entries of one name, sizes that overflow, a header
   past the format's limit of 100,000,000 bytes. */
int nl_st_writer_start(struct nl_st_writer *, int fd, const char *name, const struct nl_st_entry *entries,
                       size_t count, struct nl_error *error);
/* The next bytes of the data, cut anywhere. */
int nl_st_writer_add(struct nl_st_writer *, const void *bytes, size_t size, struct nl_error *error);
/* Checks that all has come. */
int nl_st_writer_finish(struct nl_st_writer *, struct nl_error *error);

#endif
