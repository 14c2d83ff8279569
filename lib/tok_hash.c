/*
 * The hash that names a tokenizer, and its cache: one small file a tokenizer in nl_cache_folder, whose name
 * is a hash of the device, inode, size and times of tokenizer.json and tokenizer_config.json. The cache is
 * never needed: what goes wrong with it is not an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "modelpath.h"
#include "sha256.h"
#include "tokenizer.h"

enum { HEX = 64, SETTLED = 2 /* seconds without a change, after which the times tell every change */ };

struct source {
    char *path;
    bool there;
    struct stat status;
};

static int look(struct source *source, const char *folder, const char *name, struct nl_error *error)
{
    source->path = nl_path_join(folder, name, error);
    if (!source->path)
        return -1;
    source->there = stat(source->path, &source->status) == 0;
    if (!source->there && errno != ENOENT && errno != ENOTDIR)
        return nl_fail_errno(error, "cannot read", source->path);
    return 0;
}

static bool unchanged(const struct source *source)
{
    struct stat now;
    if (stat(source->path, &now) != 0)
        return !source->there;
    const struct stat *then = &source->status;
    return source->there && now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
           now.st_size == then->st_size && now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == then->st_mtim.tv_nsec && now.st_ctim.tv_sec == then->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == then->st_ctim.tv_nsec;
}

static bool settled(const struct source *source)
{
    time_t now = time(NULL);
    return !source->there ||
           (source->status.st_ctim.tv_sec + SETTLED < now && source->status.st_mtim.tv_sec < now);
}

static int add_file(struct nl_sha256 *sha, const struct source *source, struct nl_error *error)
{
    struct nl_map map;
    if (!source->there)
        return 0;
    if (nl_map_open(&map, source->path, error) != 0)
        return -1;
    nl_sha256_add(sha, map.data, map.size);
    nl_map_close(&map);
    return 0;
}

/* The cache's file for these two, in *path; false when there is no place for one. */
static bool cache_path(const struct source sources[2], struct nl_buf *path)
{
    struct nl_error ignored;
    struct nl_sha256 sha;
    char hex[HEX + 1];
    nl_sha256_init(&sha);
    for (unsigned i = 0; i < 2; i++) {
        const struct stat *s = &sources[i].status;
        uint64_t identity[7] = {0};
        if (sources[i].there) {
            identity[0] = (uint64_t)s->st_dev;
            identity[1] = (uint64_t)s->st_ino;
            identity[2] = (uint64_t)s->st_size;
            identity[3] = (uint64_t)s->st_mtim.tv_sec;
            identity[4] = (uint64_t)s->st_mtim.tv_nsec;
            identity[5] = (uint64_t)s->st_ctim.tv_sec;
            identity[6] = (uint64_t)s->st_ctim.tv_nsec;
        }
        nl_sha256_add(&sha, identity, sizeof identity);
    }
    nl_sha256_finish(&sha, hex);
    if (nl_cache_folder(path, &ignored) != 0)
        return false;
    nl_buf_printf(path, "/tokenizer-hash-%.32s", hex);
    return !path->failed;
}

static bool read_cache(const char *path, char hex[HEX + 1])
{
    struct nl_buf text = {0};
    struct nl_error ignored;
    bool good = nl_file_read(path, 1000, &text, &ignored) == 0 && text.size == HEX + 1 &&
                text.data[HEX] == '\n' && strspn(text.data, "0123456789abcdef") == HEX;
    if (good) {
        memcpy(hex, text.data, HEX);
        hex[HEX] = '\0';
    }
    nl_buf_free(&text);
    return good;
}

static void write_cache(const char *path, const char *hex)
{
    struct nl_error ignored;
    struct nl_outfile file;
    char *folders = strdup(path);
    for (char *slash = folders ? strchr(folders + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folders, 0700);
        *slash = '/';
    }
    free(folders);
    if (nl_outfile_open(&file, path, &ignored) != 0)
        return;
    if (nl_write_all(file.fd, hex, HEX, path, &ignored) != 0 ||
        nl_write_all(file.fd, "\n", 1, path, &ignored) != 0)
        nl_outfile_abort(&file);
    else
        nl_outfile_commit(&file, &ignored);
}

static int hash_files(const struct source sources[2], char hex[HEX + 1], struct nl_error *error)
{
    struct nl_buf path = {0};
    bool cached = cache_path(sources, &path);
    int result = 0;
    if (!cached || !read_cache(path.data, hex)) {
        struct nl_sha256 sha;
        nl_sha256_init(&sha);
        if (add_file(&sha, &sources[0], error) != 0 || add_file(&sha, &sources[1], error) != 0)
            result = -1;
        nl_sha256_finish(&sha, hex);
        if (result == 0 && cached && settled(&sources[0]) && settled(&sources[1]) && unchanged(&sources[0]) &&
            unchanged(&sources[1]))
            write_cache(path.data, hex);
    }
    nl_buf_free(&path);
    return result;
}

int nl_tokenizer_hash(const char *folder, char hex[HEX + 1], struct nl_error *error)
{
    struct source sources[2] = {{NULL, false, {0}}, {NULL, false, {0}}};
    int result = -1;
    hex[0] = '\0';
    if (look(&sources[0], folder, "tokenizer.json", error) == 0 &&
        look(&sources[1], folder, "tokenizer_config.json", error) == 0)
        result = sources[0].there ? hash_files(sources, hex, error) : 0;
    free(sources[0].path);
    free(sources[1].path);
    return result;
}
