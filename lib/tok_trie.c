/* The trie over a vocabulary's keys: nodes in breadth-first order, so that a node's children lie together. */
#include <stdlib.h>

#include "tok.h"

struct sorting {
    const struct nl_tokenizer *tok;
};

static struct tok_string key_of(const struct nl_tokenizer *tok, uint32_t id)
{
    return tok->vocab.tokens[id].key;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct nl_tokenizer *tok = ((const struct sorting *)context)->tok;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    struct tok_string x = key_of(tok, i), y = key_of(tok, j);
    int order = memcmp(tok_text(tok, x), tok_text(tok, y), x.size < y.size ? x.size : y.size);
    if (order == 0)
        order = x.size < y.size ? -1 : x.size > y.size;
    return order ? order : i < j ? -1 : i > j;
}

/* The keys in order, those that have an id of their own: of equal ones the last. Returns how many. */
static uint32_t sort_keys(const struct nl_tokenizer *tok, uint32_t *keys)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t id = 0; id < tok->vocab.n_ids; id++)
        if (tok->vocab.tokens[id].used)
            keys[count++] = id;
    qsort_r(keys, count, sizeof *keys, compare, &(struct sorting){tok});
    for (uint32_t i = 0; i < count; i++) {
        struct tok_string key = key_of(tok, keys[i]);
        if (nl_tok_find(tok, tok_text(tok, key), key.size) == keys[i])
            keys[kept++] = keys[i];
    }
    return kept;
}

/* A node to be given children: the keys [low, high) pass through it, `depth` bytes deep. */
struct pending {
    uint32_t low, high, depth;
};

struct builder {
    const struct nl_tokenizer *tok;
    const uint32_t *keys;
    struct tok_trie_node *nodes;
    struct pending *pending; /* [count], one for each node */
    size_t count, nodes_capacity, pending_capacity;
};

static int add_node(struct builder *b, uint8_t label, struct pending pending, struct nl_error *error)
{
    if (b->count >= UINT32_MAX - 1)
        return nl_fail(error, NL_RESOURCE, "vocabulary too large");
    if (nl_grow(&b->nodes, &b->nodes_capacity, b->count + 1, sizeof *b->nodes, "tokenizer", error) != 0 ||
        nl_grow(&b->pending, &b->pending_capacity, b->count + 1, sizeof *b->pending, "tokenizer", error) != 0)
        return -1;
    b->nodes[b->count] = (struct tok_trie_node){.id = NL_TOK_NONE, .label = label};
    b->pending[b->count++] = pending;
    return 0;
}

static int add_children(struct builder *b, size_t node, struct nl_error *error)
{
    struct pending at = b->pending[node];
    uint32_t low = at.low;
    if (low < at.high && key_of(b->tok, b->keys[low]).size == at.depth)
        b->nodes[node].id = b->keys[low++];
    b->nodes[node].first = (uint32_t)b->count;
    while (low < at.high) {
        uint8_t label = (uint8_t)tok_text(b->tok, key_of(b->tok, b->keys[low]))[at.depth];
        uint32_t high = low + 1;
        while (high < at.high && (uint8_t)tok_text(b->tok, key_of(b->tok, b->keys[high]))[at.depth] == label)
            high++;
        if (add_node(b, label, (struct pending){low, high, at.depth + 1}, error) != 0)
            return -1;
        b->nodes[node].count++;
        low = high;
    }
    return 0;
}

int nl_tok_build_trie(const struct nl_tokenizer *tok, struct tok_trie *trie, struct nl_error *error)
{
    uint32_t *keys = malloc((tok->vocab.n_ids ? tok->vocab.n_ids : 1) * sizeof *keys);
    if (!keys)
        return nl_fail_memory(error, "vocabulary");
    struct builder b = {.tok = tok, .keys = keys};
    int result = add_node(&b, 0, (struct pending){0, sort_keys(tok, keys), 0}, error);
    for (size_t node = 0; result == 0 && node < b.count; node++)
        result = add_children(&b, node, error);
    free(keys);
    free(b.pending);
    trie->nodes = b.nodes;
    trie->count = (uint32_t)b.count;
    return result;
}

const struct tok_trie_node *nl_tok_trie_step(const struct tok_trie *trie, const struct tok_trie_node *node,
                                             unsigned char byte)
{
    const struct tok_trie_node *low = trie->nodes + node->first, *end = low + node->count, *high = end;
    while (low < high) {
        const struct tok_trie_node *middle = low + (high - low) / 2;
        if (middle->label < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && low->label == byte ? low : NULL;
}
