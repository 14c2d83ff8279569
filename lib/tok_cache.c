/*
 * The compiled tokenizer as a file, which the next start maps instead of reading tokenizer.json: a head, then
 * the arrays of struct nl_tokenizer as they lie in memory, each on a border of 64 bytes. Strings and tables
 * name each other by offset and index, so nothing has to be moved; regexes are compiled anew.
 *
 * A file counts only if it is whole, of the same sources (tok_source.h), of this very code (TOK_CACHE_FORMAT
 * is a checksum of the tokenizer's C files, see the Makefile), with the right checksum, and of an owner whom
 * we trust with it: who can write it can as well give us another tokenizer. Everything else is as if there
 * were none, and nothing that goes wrong here is an error.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tok.h"
#include "tok_scan.h"
#include "tok_source.h"

#ifndef TOK_CACHE_FORMAT
#define TOK_CACHE_FORMAT 0u
#endif
#define PREFIX "tokenizer-tables"
static const char magic[8] = {"NLTOKTAB"};

enum {
    BORDER = 64,
    SMALLEST = 100000, /* bytes of tokenizer.json; a smaller one is read as fast */
    LANES = 4,
};

struct head {
    char magic[8];
    uint64_t format, size;   /* of the file */
    uint64_t identity[14];   /* of the sources */
    struct nl_tokenizer tok; /* its numbers; the pointers mean nothing */
    struct {
        uint64_t at, size, sum;
    } parts[NL_TOK_PARTS];
    uint64_t sum; /* of the head up to here */
};

/* Every array of a tokenizer has to be here. */
void nl_tok_parts(struct nl_tokenizer *tok, struct tok_part parts[NL_TOK_PARTS])
{
    struct tok_vocab *vocab = &tok->vocab;
    struct tok_added *added = &tok->added;
    struct tok_lexicon *lexicon = &tok->lexicon;
#define PART(array, count)                                                                                   \
    {                                                                                                        \
        &(array), (array) ? (count) : 0, sizeof *(array)                                                     \
    }
    const struct tok_part all[NL_TOK_PARTS] = {
        PART(tok->pool.data, tok->pool.size),
        PART(tok->normalizers.data, tok->normalizers.count),
        PART(tok->splits.data, tok->splits.count),
        PART(tok->decoders.data, tok->decoders.count),
        PART(tok->patterns, tok->n_regexes),
        PART(vocab->tokens, vocab->n_ids),
        PART(vocab->slots, vocab->mask + UINT64_C(1)),
        PART(tok->bpe.merges, tok->bpe.mask + UINT64_C(1)),
        PART(tok->bpe.made, tok->bpe.n_ranks),
        PART(tok->bpe.joins, (1u << NL_TOK_JOIN_BITS) / 64),
        PART(lexicon->trie.nodes, lexicon->trie.count),
        PART(lexicon->scores, vocab->n_ids),
        PART(added->tokens, added->count),
        PART(added->by_id, added->n_by_id),
        PART(added->passes[0].order, added->passes[0].count),
        PART(added->passes[1].order, added->passes[1].count),
        PART(tok->template.data, tok->template.count),
        PART(tok->pieces, tok->n_ids),
    };
#undef PART
    memcpy(parts, all, sizeof all);
}

/* Four sums side by side: as fast as memory is read. Each word counts by its place, since a product moves the
 * sum on. */
static uint64_t sum_of(const void *bytes, size_t size)
{
    const char *p = bytes;
    uint64_t sums[LANES] = {1, 2, 3, 4}, words[LANES];
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    for (; size >= sizeof words; p += sizeof words, size -= sizeof words) {
        memcpy(words, p, sizeof words);
        for (unsigned i = 0; i < LANES; i++) {
            sums[i] = (sums[i] ^ words[i]) * odd;
            sums[i] ^= sums[i] >> 29;
        }
    }
    memset(words, 0, sizeof words);
    if (size) /* a part that is empty may have no address */
        memcpy(words, p, size);
    uint64_t sum = size;
    for (unsigned i = 0; i < LANES; i++) {
        sum = (sum ^ sums[i] ^ words[i]) * odd;
        sum ^= sum >> 32;
    }
    return sum;
}

/* ---- Opening ---- */

/* Maps a file that nobody else can have written. */
static bool map_trusted(const char *path, struct nl_map *map)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                (status.st_uid == geteuid() || status.st_uid == 0) &&
                !(status.st_mode & (S_IWGRP | S_IWOTH)) && status.st_size >= (off_t)sizeof(struct head);
    if (good) {
        /* All of it is needed at once, for the checksums. */
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        good = data != MAP_FAILED;
        if (good)
            *map = (struct nl_map){data, (size_t)status.st_size};
    }
    close(fd);
    return good;
}

static bool head_holds(const struct head *head, const struct nl_map *map,
                       const struct nl_tok_sources *sources)
{
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->format == TOK_CACHE_FORMAT &&
           head->size == map->size && memcmp(head->identity, sources->identity, sizeof head->identity) == 0 &&
           head->sum == sum_of(head, offsetof(struct head, sum));
}

/* Points the tokenizer's arrays into the map, where each is what it was. */
static bool place_parts(struct nl_tokenizer *tok, const struct head *head, const struct nl_map *map)
{
    struct tok_part parts[NL_TOK_PARTS];
    nl_tok_parts(tok, parts);
    for (unsigned i = 0; i < NL_TOK_PARTS; i++) {
        uint64_t at = head->parts[i].at, size = head->parts[i].size, wanted;
        if (!nl_mul(parts[i].count, parts[i].size, &wanted) || size != wanted || at % BORDER ||
            at > map->size || size > map->size - at || sum_of(map->data + at, size) != head->parts[i].sum)
            return false;
        const uint8_t *array = map->data + at;
        memcpy(parts[i].pointer, &array, sizeof array);
    }
    return true;
}

/* False when one does not compile. */
static bool compile_regexes(struct nl_tokenizer *tok)
{
    struct nl_error ignored;
    tok->regexes = calloc(tok->n_regexes + 1, sizeof *tok->regexes);
    for (size_t i = 0; tok->regexes && i < tok->n_regexes; i++) {
        struct tok_string pattern = tok->patterns[i];
        if (nl_tok_scanner(tok_text(tok, pattern), pattern.size))
            continue;
        tok->regexes[i] = nl_regex_compile(tok_text(tok, pattern), pattern.size, &ignored);
        if (!tok->regexes[i])
            return false;
    }
    return tok->regexes;
}

/* The tokenizer takes over the map; NULL, and it stays, where the file does not hold. */
static struct nl_tokenizer *revive(const struct head *head, const struct nl_map *map)
{
    struct nl_tokenizer *tok = calloc(1, sizeof *tok);
    if (!tok)
        return NULL;
    *tok = head->tok;
    tok->encoder = NULL;
    tok->regexes = NULL;
    tok->pool.failed = false;
    tok->image = *map;
    if (place_parts(tok, head, map) && compile_regexes(tok))
        return tok;
    for (size_t i = 0; tok->regexes && i < tok->n_regexes; i++)
        nl_regex_free(tok->regexes[i]);
    free(tok->regexes);
    free(tok);
    return NULL;
}

struct nl_tokenizer *nl_tok_cache_open(const struct nl_tok_sources *sources)
{
    struct nl_buf path = {0};
    struct nl_map map = {0};
    struct nl_tokenizer *tok = NULL;
    if (sources->files[0].there && sources->files[0].status.st_size >= SMALLEST &&
        nl_tok_sources_cache(sources, PREFIX, &path) && map_trusted(path.data, &map)) {
        const struct head *head = (const void *)map.data;
        tok = head_holds(head, &map, sources) ? revive(head, &map) : NULL;
        if (!tok)
            nl_map_close(&map);
    }
    nl_buf_free(&path);
    return tok;
}

/* ---- Keeping ---- */

static int write_parts(int fd, const struct head *head, const struct tok_part parts[NL_TOK_PARTS])
{
    static const char zeros[BORDER];
    struct nl_error ignored;
    uint64_t at = sizeof *head;
    if (nl_write_all(fd, head, sizeof *head, "", &ignored) != 0)
        return -1;
    for (unsigned i = 0; i < NL_TOK_PARTS; i++) {
        const void *array;
        memcpy(&array, parts[i].pointer, sizeof array);
        if (nl_write_all(fd, zeros, head->parts[i].at - at, "", &ignored) != 0 ||
            nl_write_all(fd, array, head->parts[i].size, "", &ignored) != 0)
            return -1;
        at = head->parts[i].at + head->parts[i].size;
    }
    return 0;
}

static void fill_head(struct head *head, const struct nl_tokenizer *tok, const struct nl_tok_sources *sources,
                      const struct tok_part parts[NL_TOK_PARTS])
{
    uint64_t at = sizeof *head;
    memcpy(head->magic, magic, sizeof magic);
    head->format = TOK_CACHE_FORMAT;
    memcpy(head->identity, sources->identity, sizeof head->identity);
    memcpy(&head->tok, tok, sizeof *tok);
    for (unsigned i = 0; i < NL_TOK_PARTS; i++) {
        const void *array;
        memcpy(&array, parts[i].pointer, sizeof array);
        at = (at + BORDER - 1) / BORDER * BORDER;
        head->parts[i].at = at;
        head->parts[i].size = parts[i].count * parts[i].size;
        head->parts[i].sum = sum_of(array, head->parts[i].size);
        at += head->parts[i].size;
    }
    head->size = at;
    head->sum = sum_of(head, offsetof(struct head, sum));
}

void nl_tok_cache_keep(struct nl_tokenizer *tok, const struct nl_tok_sources *sources)
{
    struct nl_buf path = {0};
    struct nl_outfile file;
    struct nl_error ignored;
    struct head *head = calloc(1, sizeof *head);
    if (head && sources->files[0].there && sources->files[0].status.st_size >= SMALLEST &&
        nl_tok_sources_settled(sources) && nl_tok_sources_cache(sources, PREFIX, &path)) {
        struct tok_part parts[NL_TOK_PARTS];
        nl_tok_parts(tok, parts);
        fill_head(head, tok, sources, parts);
        nl_tok_make_folders(path.data);
        if (nl_outfile_open(&file, path.data, &ignored) == 0) {
            fchmod(file.fd, 0600);
            if (write_parts(file.fd, head, parts) != 0)
                nl_outfile_abort(&file);
            else
                nl_outfile_commit(&file, &ignored);
        }
    }
    nl_buf_free(&path);
    free(head);
}
