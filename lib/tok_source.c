#include "tok_source.h"

#include <stdlib.h>
#include <time.h>

#include "file.h"
#include "modelpath.h"
#include "sha256.h"

enum { SETTLED = 2 /* seconds without a change, after which the times tell every change */ };

static int look(struct nl_tok_source *source, uint64_t identity[7], struct nl_error *error)
{
    const struct stat *s = &source->status;
    if (!source->path)
        return -1;
    source->there = stat(source->path, &source->status) == 0;
    if (!source->there && nl_path_taken(source->path))
        return nl_fail_errno(error, "cannot read", source->path);
    if (!source->there)
        return 0;
    identity[0] = (uint64_t)s->st_dev;
    identity[1] = (uint64_t)s->st_ino;
    identity[2] = (uint64_t)s->st_size;
    identity[3] = (uint64_t)s->st_mtim.tv_sec;
    identity[4] = (uint64_t)s->st_mtim.tv_nsec;
    identity[5] = (uint64_t)s->st_ctim.tv_sec;
    identity[6] = (uint64_t)s->st_ctim.tv_nsec;
    return 0;
}

int nl_tok_sources_look(struct nl_tok_sources *sources, const char *path, struct nl_error *error)
{
    struct stat status;
    *sources = (struct nl_tok_sources){0};
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        sources->files[0].path = strdup(path);
        if (!sources->files[0].path)
            return nl_fail_memory(error, path);
        return look(&sources->files[0], sources->identity, error);
    }
    sources->files[0].path = nl_path_join(path, "tokenizer.json", error);
    if (look(&sources->files[0], sources->identity, error) != 0)
        return -1;
    sources->files[1].path = nl_path_join(path, "tokenizer_config.json", error);
    return look(&sources->files[1], sources->identity + 7, error);
}

void nl_tok_sources_free(struct nl_tok_sources *sources)
{
    free(sources->files[0].path);
    free(sources->files[1].path);
    *sources = (struct nl_tok_sources){0};
}

static bool unchanged(const struct nl_tok_source *source, const uint64_t before[7])
{
    struct nl_error ignored;
    struct nl_tok_source again = {.path = source->path};
    uint64_t identity[7] = {0};
    return !source->path ||
           (look(&again, identity, &ignored) == 0 && memcmp(identity, before, sizeof identity) == 0);
}

bool nl_tok_sources_settled(const struct nl_tok_sources *sources)
{
    time_t now = time(NULL);
    for (unsigned i = 0; i < 2; i++) {
        const struct nl_tok_source *source = &sources->files[i];
        if (!unchanged(source, sources->identity + 7 * i))
            return false;
        if (source->there &&
            (source->status.st_ctim.tv_sec + SETTLED >= now || source->status.st_mtim.tv_sec >= now))
            return false;
    }
    return true;
}

bool nl_tok_sources_cache(const struct nl_tok_sources *sources, const char *prefix, struct nl_buf *path)
{
    struct nl_error ignored;
    struct nl_sha256 sha;
    char hex[65];
    nl_sha256_init(&sha);
    nl_sha256_add(&sha, sources->identity, sizeof sources->identity);
    nl_sha256_finish(&sha, hex);
    if (nl_cache_folder(path, &ignored) != 0)
        return false;
    nl_buf_printf(path, "/%s-%.32s", prefix, hex);
    return !path->failed;
}

void nl_tok_make_folders(const char *path)
{
    char *folders = strdup(path);
    for (char *slash = folders ? strchr(folders + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folders, 0700);
        *slash = '/';
    }
    free(folders);
}
