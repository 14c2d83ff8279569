/*
 * The hash that names a tokenizer, and its cache: one small file a tokenizer in nl_cache_folder, whose name
 * is a hash of the device, inode, size and times of tokenizer.json and tokenizer_config.json. The cache is
 * never needed: what goes wrong with it is not an error.
 */
#include "file.h"
#include "sha256.h"
#include "tok_source.h"
#include "tokenizer.h"

enum { HEX = 64 };

static int add_file(struct nl_sha256 *sha, const struct nl_tok_source *source, struct nl_error *error)
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
    nl_tok_make_folders(path);
    if (nl_outfile_open(&file, path, &ignored) != 0)
        return;
    if (nl_write_all(file.fd, hex, HEX, path, &ignored) != 0 ||
        nl_write_all(file.fd, "\n", 1, path, &ignored) != 0)
        nl_outfile_abort(&file);
    else
        nl_outfile_commit(&file, &ignored);
}

static int hash_files(const struct nl_tok_sources *sources, char hex[HEX + 1], struct nl_error *error)
{
    struct nl_buf path = {0};
    bool cached = nl_tok_sources_cache(sources, "tokenizer-hash", &path);
    int result = 0;
    if (!cached || !read_cache(path.data, hex)) {
        struct nl_sha256 sha;
        nl_sha256_init(&sha);
        if (add_file(&sha, &sources->files[0], error) != 0 || add_file(&sha, &sources->files[1], error) != 0)
            result = -1;
        nl_sha256_finish(&sha, hex);
        if (result == 0 && cached && nl_tok_sources_settled(sources))
            write_cache(path.data, hex);
    }
    nl_buf_free(&path);
    return result;
}

int nl_tokenizer_hash(const char *folder, char hex[HEX + 1], struct nl_error *error)
{
    struct nl_tok_sources sources;
    int result = nl_tok_sources_look(&sources, folder, error);
    hex[0] = '\0';
    if (result == 0 && sources.files[0].there && sources.files[1].path)
        result = hash_files(&sources, hex, error);
    nl_tok_sources_free(&sources);
    return result;
}
