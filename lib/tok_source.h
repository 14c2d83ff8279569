/*
 * tok_source.h: the two files that a tokenizer is made of, and how a cache knows that they are what they
 * were.
 */
#ifndef NL_TOK_SOURCE_H
#define NL_TOK_SOURCE_H

#include <sys/stat.h>

#include "buf.h"

struct nl_tok_source {
    char *path; /* owned; NULL: there is no such file */
    bool there;
    struct stat status;
};
/* Device, inode, size, and the times of the last change, of tokenizer.json and tokenizer_config.json. */
struct nl_tok_sources {
    struct nl_tok_source files[2];
    uint64_t identity[14];
};

/* `path`: a folder, or a tokenizer.json by name, which stands alone. A file that is not there is no error. */
int nl_tok_sources_look(struct nl_tok_sources *, const char *path, struct nl_error *error);
void nl_tok_sources_free(struct nl_tok_sources *);
/* Whether something may be kept under this identity: nothing has changed since the look, nor in the last
 * seconds, in which times may not tell a change. */
bool nl_tok_sources_settled(const struct nl_tok_sources *);
/* The cache's file for these, nl_cache_folder()/PREFIX-(hash of the identity); false when there is no place
 * for one. */
bool nl_tok_sources_cache(const struct nl_tok_sources *, const char *prefix, struct nl_buf *path);
/* Makes the folders above a file in the cache, as far as they are missing and can be made. */
void nl_tok_make_folders(const char *path);

#endif
