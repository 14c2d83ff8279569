/*
 * The merging.
 *
 * The symbols of all distinct words lie in one array, a border before, between and behind them. A token of
 * several symbols stands at its first and its last place, so that both neighbours of a token are found
 * without links: the next begins at its place + length, the one before ends at its place - 1. A place that
 * was once a token's first and is now inside another holds no pair's left token any more: either the border's
 * value, or, at the end of the other, that longer token.
 */
#include <stdlib.h>

#include "train_bpe_parts.h"

#define BORDER NL_TOK_NONE

struct merger {
    struct nl_train_bpe *trainer;
    struct train_pairs pairs;
    uint32_t *symbols; /* [n] */
    uint32_t *words;   /* [n] index of the word that each symbol is in */
    uint32_t *lengths; /* [vocab_size] of a token, in symbols; 1 until it is merged */
    size_t n;
    struct nl_buf text;
};

static void release(struct merger *m)
{
    nl_train_pairs_free(&m->pairs);
    free(m->symbols);
    free(m->words);
    free(m->lengths);
    nl_buf_free(&m->text);
}

static int allocate(struct merger *m, struct nl_error *error)
{
    const struct train_words *words = &m->trainer->workers[0].words;
    size_t tokens = m->trainer->options.vocab_size;
    if (tokens < m->trainer->vocab.n)
        tokens = m->trainer->vocab.n;
    m->n = words->bytes.size + words->n + 1; /* no overflow: both are in memory */
    if (m->n >= UINT32_MAX)
        return nl_fail(error, NL_RESOURCE, "more than 4294967294 symbols in distinct words");
    m->symbols = malloc(m->n * sizeof *m->symbols);
    m->words = malloc(m->n * sizeof *m->words);
    m->lengths = malloc(tokens * sizeof *m->lengths + 1);
    if (!m->symbols || !m->words || !m->lengths)
        return nl_fail_memory(error, "symbols");
    for (size_t i = 0; i < tokens; i++)
        m->lengths[i] = 1;
    return nl_train_pairs_init(&m->pairs, error);
}

static void spread_words(struct merger *m, const uint32_t ids[256])
{
    const struct train_words *words = &m->trainer->workers[0].words;
    size_t at = 0;
    for (uint32_t i = 0; i < words->n; i++) {
        const unsigned char *bytes = (const unsigned char *)words->bytes.data + words->words[i].at;
        m->symbols[at++] = BORDER;
        for (size_t k = 0; k < words->words[i].size; k++)
            if (ids[bytes[k]] != NL_TOK_NONE) {
                m->words[at] = i;
                m->symbols[at++] = ids[bytes[k]];
            }
    }
    m->symbols[at++] = BORDER;
    m->n = at;
}

static int64_t weight(const struct merger *m, uint32_t position)
{
    return (int64_t)m->trainer->workers[0].words.words[m->words[position]].count;
}

static int first_pairs(struct merger *m, struct nl_error *error)
{
    for (uint32_t at = 0; at + 1 < m->n; at++)
        if (m->symbols[at] != BORDER && m->symbols[at + 1] != BORDER &&
            nl_train_pairs_occur(&m->pairs, m->symbols[at], m->symbols[at + 1], at, weight(m, at), error) !=
                0)
            return -1;
    return nl_train_pairs_queue(&m->pairs, error);
}

/* A neighbour of the new token at `at`, `old` the part that was its neighbour before: that pair goes, a new
   one comes. `other` is the neighbour's place, on the left or the right side. */
static int meet(struct merger *m, uint32_t old, uint32_t at, uint32_t other, struct nl_error *error)
{
    uint32_t token = m->symbols[at], neighbour = m->symbols[other];
    bool left = other < at;
    int64_t count = weight(m, at);
    if (nl_train_pairs_count(&m->pairs, left ? neighbour : old, left ? old : neighbour, -count, error) != 0)
        return -1;
    if ((uint64_t)m->lengths[token] + m->lengths[neighbour] >= m->trainer->options.max_token_length)
        return 0;
    return nl_train_pairs_occur(&m->pairs, left ? neighbour : token, left ? token : neighbour,
                                left ? other : at, count, error);
}

/* Merges at one place, if the pair is still there. */
static int merge_at(struct merger *m, uint32_t at, struct train_merge merge, uint32_t token,
                    struct nl_error *error)
{
    if (m->symbols[at] != merge.left)
        return 0;
    uint32_t second = at + m->lengths[merge.left];
    if (m->symbols[second] != merge.right)
        return 0;
    uint32_t behind = second + m->lengths[merge.right], before = m->symbols[at - 1];
    m->symbols[second] = BORDER;
    m->symbols[at] = m->symbols[behind - 1] = token;
    if (before != BORDER && meet(m, merge.left, at, at - m->lengths[before], error) != 0)
        return -1;
    return m->symbols[behind] != BORDER ? meet(m, merge.right, at, behind, error) : 0;
}

/* The token that the two make: a new one, unless a special token is spelt like that. */
static int name_token(struct merger *m, struct train_merge merge, uint32_t *token, struct nl_error *error)
{
    struct nl_train_bpe *t = m->trainer;
    const struct train_word *left = &t->vocab.words[merge.left], *right = &t->vocab.words[merge.right];
    nl_buf_clear(&m->text);
    nl_buf_add(&m->text, t->vocab.bytes.data + left->at, left->size);
    nl_buf_add(&m->text, t->vocab.bytes.data + right->at, right->size);
    if (nl_buf_check(&m->text, "token", error) != 0 ||
        nl_train_words_add(&t->vocab, m->text.data, m->text.size, 0, token, error) != 0 ||
        nl_grow(&t->merges, &t->merges_capacity, (size_t)t->n_merges + 1, sizeof *t->merges, "merges",
                error) != 0)
        return -1;
    m->lengths[*token] = m->lengths[merge.left] + m->lengths[merge.right];
    t->merges[t->n_merges++] = merge;
    return 0;
}

static int merge_pair(struct merger *m, const struct train_pair *pair, struct nl_error *error)
{
    struct train_merge merge = {(uint32_t)(pair->key >> 32), (uint32_t)pair->key};
    uint32_t token, n = pair->n;
    size_t at = pair->at;
    if (name_token(m, merge, &token, error) != 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (merge_at(m, m->pairs.positions[at + i], merge, token, error) != 0)
            return -1;
    return nl_train_pairs_queue(&m->pairs, error);
}

static int run(struct merger *m, const uint32_t ids[256], nl_train_bpe_progress *progress, void *context,
               struct nl_error *error)
{
    struct nl_train_bpe *t = m->trainer;
    const struct train_pair *pair;
    if (allocate(m, error) != 0)
        return -1;
    spread_words(m, ids);
    if (first_pairs(m, error) != 0)
        return -1;
    while (t->vocab.n < t->options.vocab_size && (pair = nl_train_pairs_next(&m->pairs))) {
        if ((uint64_t)pair->count < t->options.min_frequency)
            break;
        if (merge_pair(m, pair, error) != 0)
            return -1;
        if (progress && progress(context, t->vocab.n, t->options.vocab_size) != 0)
            return nl_fail(error, NL_IO, "%s", "");
    }
    return 0;
}

int nl_train_merge(struct nl_train_bpe *trainer, const uint32_t ids[256], nl_train_bpe_progress *progress,
                   void *context, struct nl_error *error)
{
    struct merger merger = {.trainer = trainer};
    int result = run(&merger, ids, progress, context, error);
    release(&merger);
    return result;
}
