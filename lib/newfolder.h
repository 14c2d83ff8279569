/*
 * newfolder.h: a folder of files that appears under its name only when it is complete.
 *
 * The files are written into a folder with a temporary name beside it. Commit puts that in place: where
 * nothing or an empty folder was, by rename(2); in place of an old folder by exchanging the two, then
 * removing the old one. Only folders without other entries than `known` are replaced, so that a mistyped name
 * destroys nothing else.
 */
#ifndef NL_NEWFOLDER_H
#define NL_NEWFOLDER_H

#include "base.h"

struct nl_newfolder {
    char *path;               /* the final name, symbolic links resolved; owned */
    char *temporary;          /* write into this folder; owned */
    const char *const *known; /* names ending in NULL; the caller's */
    bool replace;
};

/* NL_USAGE: `path` is there and no folder, or a folder that is not empty and may not be replaced (`replace`
   is false, or something in it is not in `known`, or no regular file). The folder around it has to exist. */
int nl_newfolder_open(struct nl_newfolder *, const char *path, bool replace, const char *const *known,
                      struct nl_error *error);
/* After this `path` is still set. The place is checked again: it may have changed. */
int nl_newfolder_commit(struct nl_newfolder *, struct nl_error *error);
/* Removes what is not committed and frees; also after commit. */
void nl_newfolder_close(struct nl_newfolder *);
/* mkdir -p. */
int nl_make_folders(const char *path, struct nl_error *error);

#endif
