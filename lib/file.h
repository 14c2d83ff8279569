/*
 * file.h: files read whole or mapped, and files written whole or not at all.
 */
#ifndef NL_FILE_H
#define NL_FILE_H

#include "buf.h"

struct nl_map {
    const uint8_t *data; /* size bytes, read-only; NULL when the file is empty */
    size_t size;
};

/* Maps a regular file. The mapping lives until nl_map_close; data pages are read when they are touched. */
int nl_map_open(struct nl_map *, const char *path, struct nl_error *error);
void nl_map_close(struct nl_map *);

/* Appends a regular file's bytes to *out; more than `limit` bytes is NL_DATA. */
int nl_file_read(const char *path, size_t limit, struct nl_buf *out, struct nl_error *error);

/* folder + "/" + name; NULL when out of memory. The caller frees it. */
char *nl_path_join(const char *folder, const char *name, struct nl_error *error);
bool nl_path_exists(const char *path);
/* False only where there is nothing at all: of a file that may be absent, a link to nowhere or a folder that
   may not be searched is for open(2) to complain about. */
bool nl_path_taken(const char *path);

/*
 * A file that appears under its name only when it is complete: written beside it, then renamed. A symbolic
 * link stays one, and a file leaves its mode to the new one. What is there and no regular file (a device, a
 * FIFO, a terminal) is written to as it is, since a rename would put a file in its place.
 */
struct nl_outfile {
    int fd;                 /* write here */
    char *path, *temporary; /* owned; temporary NULL: fd is the path itself */
};
/* NL_USAGE: an empty name; NL_NOT_FOUND: no such folder, or a link to nowhere; NL_IO: a directory, or it
   cannot be made. */
int nl_outfile_open(struct nl_outfile *, const char *path, struct nl_error *error);
/* Syncs nothing to disk, but checks every error up to close. After a failure the temporary file is gone. */
int nl_outfile_commit(struct nl_outfile *, struct nl_error *error);
void nl_outfile_abort(struct nl_outfile *); /* after open, instead of commit */

/* For a read(2) or write(2) that failed: nl_fail_errno, but NL_IO whatever the reason. */
#define nl_fail_io(error, what, name) (nl_set_error_io(error, what, name), nl_failed())
void nl_set_error_io(struct nl_error *error, const char *what, const char *name);
/* Writes all bytes, going on after short writes, EINTR and EAGAIN; `name` is for the message. */
int nl_write_all(int fd, const void *bytes, size_t size, const char *name, struct nl_error *error);

#endif
