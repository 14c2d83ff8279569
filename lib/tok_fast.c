#include "tok_fast.h"

#include <stdlib.h>

#include "tok_scan_inline.h"

enum {
    LINE = 64, /* bytes of a cache line */
    SHORT_BYTES = 15,
    SHORT_IDS = 3,
    SHORT_BITS = 16, /* pairs of words: 2 MiB */
    LONG_BYTES = 94,
    LONG_IDS = 8,
    LONG_BITS = 12, /* 512 KiB */
    STEPS = 32,     /* words on their way at a time */
    ROOM = 16,      /* ids that a turn of the loop may write without a look */
};

struct short_word {
    uint64_t key[2]; /* the bytes, zeros, and in the last byte the length; 0: free */
    uint32_t ids[SHORT_IDS], count;
};
struct long_word {
    uint8_t length, count; /* length 0: free */
    char bytes[LONG_BYTES];
    uint32_t ids[LONG_IDS];
};
struct tok_memory {
    void *allocated[2];
    struct short_word (*shorts)[2]; /* [1 << SHORT_BITS] */
    struct long_word *longs;        /* [1 << LONG_BITS] */
};

bool nl_tok_fast_fits(const struct nl_tokenizer *tok)
{
    if (!tok->raw || tok->splits.count == 0)
        return false;
    const struct tok_stage *last = &tok->splits.data[tok->splits.count - 1];
    return last->kind == TOK_SPLIT && last->argument == TOK_ISOLATED && !last->invert &&
           last->pattern.kind == TOK_REGEX && last->pattern.scanner != TOK_SCAN_NONE;
}

/* Zeroed pages, taken as they are touched, on a border of cache lines. */
static void *allocate(size_t count, size_t size, void **allocated)
{
    *allocated = calloc(count + 1, size);
    uintptr_t start = (uintptr_t)*allocated;
    return *allocated ? (char *)*allocated + (LINE - start % LINE) % LINE : NULL;
}

struct tok_memory *nl_tok_memory_open(struct nl_error *error)
{
    struct tok_memory *memory = calloc(1, sizeof *memory);
    if (memory) {
        memory->shorts = allocate(1u << SHORT_BITS, sizeof *memory->shorts, &memory->allocated[0]);
        memory->longs = allocate(1u << LONG_BITS, sizeof *memory->longs, &memory->allocated[1]);
    }
    if (!memory || !memory->shorts || !memory->longs) {
        nl_tok_memory_close(memory);
        nl_fail_memory(error, "encoder");
        return NULL;
    }
    return memory;
}

void nl_tok_memory_close(struct tok_memory *memory)
{
    if (!memory)
        return;
    free(memory->allocated[0]);
    free(memory->allocated[1]);
    free(memory);
}

static struct long_word *find_long(const struct tok_memory *memory, const char *text, size_t size)
{
    uint64_t hash = size;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        memcpy(&word, text + at, size - at < 8 ? size - at : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return &memory->longs[hash >> 7 & ((1u << LONG_BITS) - 1)];
}

/* A word that was not found at once. `pair`: where it belongs, NULL for a long one. */
static int encode_word(struct nl_encoder *encoder, const char *text, size_t size, const uint64_t key[2],
                       struct short_word *pair, struct nl_ids *out, struct nl_error *error)
{
    size_t before = out->count;
    struct long_word *word = NULL;
    if (size <= LONG_BYTES) {
        word = find_long(encoder->memory, text, size);
        if (word->length == size && memcmp(word->bytes, text, size) == 0)
            return nl_ids_add(out, word->ids, word->count, error);
    }
    if (nl_tok_bpe(encoder, text, size, out, error) != 0)
        return -1;
    size_t count = out->count - before;
    if (pair && count <= SHORT_IDS) {
        pair[1] = pair[0];
        pair[0].key[0] = key[0];
        pair[0].key[1] = key[1];
        pair[0].count = (uint32_t)count;
        memcpy(pair[0].ids, out->data + before, count * sizeof *out->data);
    } else if (word && count <= LONG_IDS) {
        word->length = (uint8_t)size;
        word->count = (uint8_t)count;
        memcpy(word->bytes, text, size);
        memcpy(word->ids, out->data + before, count * sizeof *out->data);
    }
    return 0;
}

/* The first 16 bytes of a text as two integers. */
SCAN_INLINE void load_key(const char *text, size_t size, size_t readable, uint64_t key[2])
{
    if (__builtin_expect(readable >= 16, 1)) {
        memcpy(key, text, 16);
    } else {
        key[0] = key[1] = 0;
        memcpy(key, text, size);
    }
    if (size < 8) {
        key[0] &= (UINT64_C(1) << 8 * size) - 1;
        key[1] = 0;
    } else {
        key[1] &= (UINT64_C(1) << 8 * (size - 8)) - 1;
    }
    key[1] |= (uint64_t)size << 56;
}

/* A word on its way. */
struct step {
    uint64_t key[2];
    struct short_word *pair; /* NULL: too long for one */
    size_t end;
};

/* Finds the next words and asks for their lines of the table, so that they come while the others are sought;
 * returns how many. */
SCAN_INLINE unsigned find_words(enum tok_scanner scanner, const struct tok_memory *memory, const char *text,
                                size_t at, size_t length, struct step steps[STEPS])
{
    unsigned n = 0;
    for (; n < STEPS && at < length; n++) {
        struct step *step = &steps[n];
        size_t size = (step->end = scan_with(scanner, text, at, length)) - at;
        step->pair = NULL;
        if (size <= SHORT_BYTES) {
            load_key(text + at, size, length - at, step->key);
            uint64_t hash = (step->key[0] + step->key[1] * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
            step->pair = memory->shorts[hash >> (64 - SHORT_BITS)];
            __builtin_prefetch(step->pair);
        }
        at = step->end;
    }
    return n;
}

static inline bool is_word(const struct short_word *word, const uint64_t key[2])
{
    return ((word->key[0] ^ key[0]) | (word->key[1] ^ key[1])) == 0;
}

static int give_words(struct nl_encoder *encoder, const char *text, size_t at, const struct step *steps,
                      unsigned n, struct nl_ids *out, struct nl_error *error)
{
    static const uint32_t room[ROOM];
    for (unsigned i = 0; i < n; i++) {
        const struct step *step = &steps[i];
        if (__builtin_expect(out->capacity - out->count < ROOM, 0)) {
            if (nl_ids_add(out, room, ROOM, error) != 0)
                return -1;
            out->count -= ROOM;
        }
        if (step->pair) {
            const struct short_word *word = step->pair + !is_word(step->pair, step->key);
            if (__builtin_expect(is_word(word, step->key), 1)) {
                memcpy(out->data + out->count, word->ids, sizeof word->ids);
                out->count += word->count;
                at = step->end;
                continue;
            }
        }
        if (encode_word(encoder, text + at, step->end - at, step->key, step->pair, out, error) != 0)
            return -1;
        at = step->end;
    }
    return 0;
}

SCAN_INLINE int encode_with(enum tok_scanner scanner, struct nl_encoder *encoder, const char *text,
                            size_t length, struct nl_ids *out, struct nl_error *error)
{
    struct step steps[STEPS];
    for (size_t at = 0; at < length;) {
        unsigned n = find_words(scanner, encoder->memory, text, at, length, steps);
        if (give_words(encoder, text, at, steps, n, out, error) != 0)
            return -1;
        at = steps[n - 1].end;
    }
    return 0;
}

int nl_tok_fast_encode(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
                       struct nl_error *error)
{
    const struct tok_stages *splits = &encoder->tokenizer->splits;
    switch ((enum tok_scanner)splits->data[splits->count - 1].pattern.scanner) {
    case TOK_SCAN_GPT2:
        return encode_with(TOK_SCAN_GPT2, encoder, text, length, out, error);
    case TOK_SCAN_CL100K:
        return encode_with(TOK_SCAN_CL100K, encoder, text, length, out, error);
    case TOK_SCAN_QWEN2:
        return encode_with(TOK_SCAN_QWEN2, encoder, text, length, out, error);
    case TOK_SCAN_O200K:
        return encode_with(TOK_SCAN_O200K, encoder, text, length, out, error);
    default:
        return nl_fail(error, NL_UNSUPPORTED, "no scanner");
    }
}
