/* Distinct strings: a pool of bytes and a hash table of 32 bits of hash and an index. */
#include <stdlib.h>

#include "train_bpe_parts.h"

enum { FIRST_SLOTS = 1 << 10 };

static uint64_t load(const char *bytes, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return value;
}

static uint64_t mix(uint64_t hash)
{
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint32_t hash_of(const char *text, size_t size)
{
    uint64_t hash = size;
    size_t at = 0;
    for (; at + 8 <= size; at += 8)
        hash = mix(hash ^ load(text + at, 8));
    return (uint32_t)mix(hash ^ load(text + at, size - at));
}

static int grow_slots(struct train_words *words, struct nl_error *error)
{
    uint32_t count = words->slots ? (words->mask + 1) * 2 : FIRST_SLOTS;
    struct train_slot *slots = count ? malloc(count * sizeof *slots) : NULL;
    if (!slots)
        return nl_fail_memory(error, "words");
    memset(slots, 0xff, count * sizeof *slots);
    for (uint32_t i = 0; words->slots && i <= words->mask; i++) {
        struct train_slot slot = words->slots[i];
        uint32_t at = slot.hash & (count - 1);
        if (slot.index == NL_TOK_NONE)
            continue;
        while (slots[at].index != NL_TOK_NONE)
            at = (at + 1) & (count - 1);
        slots[at] = slot;
    }
    free(words->slots);
    words->slots = slots;
    words->mask = count - 1;
    return 0;
}

static int append(struct train_words *words, const char *text, size_t size, struct nl_error *error)
{
    if (words->n > INT32_MAX)
        return nl_fail(error, NL_RESOURCE, "more than 2147483648 distinct words");
    if (nl_grow(&words->words, &words->capacity, (size_t)words->n + 1, sizeof *words->words, "words",
                error) != 0)
        return -1;
    words->words[words->n++] = (struct train_word){words->bytes.size, size, 0};
    nl_buf_add(&words->bytes, text, size);
    return nl_buf_check(&words->bytes, "words", error);
}

/* The slot of a string, or the free one where it belongs. */
static struct train_slot *find(const struct train_words *words, const char *text, size_t size, uint32_t hash)
{
    uint32_t at = hash & words->mask;
    for (;; at = (at + 1) & words->mask) {
        struct train_slot *slot = &words->slots[at];
        if (slot->index == NL_TOK_NONE)
            return slot;
        const struct train_word *word = &words->words[slot->index];
        if (slot->hash == hash && word->size == size && memcmp(words->bytes.data + word->at, text, size) == 0)
            return slot;
    }
}

int nl_train_words_add(struct train_words *words, const char *text, size_t size, uint64_t count,
                       uint32_t *index, struct nl_error *error)
{
    if ((!words->slots || words->n >= words->mask / 4 * 3) && grow_slots(words, error) != 0)
        return -1;
    uint32_t hash = hash_of(text, size);
    struct train_slot *slot = find(words, text, size, hash);
    if (slot->index == NL_TOK_NONE) {
        if (append(words, text, size, error) != 0)
            return -1;
        *slot = (struct train_slot){hash, words->n - 1};
    }
    words->words[slot->index].count += count;
    if (index)
        *index = slot->index;
    return 0;
}

bool nl_train_words_find(const struct train_words *words, const char *text, size_t size, uint32_t *index)
{
    *index = words->slots ? find(words, text, size, hash_of(text, size))->index : NL_TOK_NONE;
    return *index != NL_TOK_NONE;
}

void nl_train_words_free(struct train_words *words)
{
    nl_buf_free(&words->bytes);
    free(words->words);
    free(words->slots);
    *words = (struct train_words){0};
}
