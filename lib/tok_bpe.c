/*
 * Byte-pair encoding: of all neighbours that a merge joins, the one with the lowest rank, the leftmost of
 * those, is joined first, until none is left.
 *
 * Short words: a scan for the best pair each time. Long ones: a heap of candidates, so that the work is O(n
 * log n). A candidate out of the heap may be out of date; it counts if its two symbols still join to the same
 * token (the reference's test).
 */
#include "tok.h"
#include "unicode.h"

enum { SHORT = 24 };

static const struct tok_merge *look_up(const struct tok_bpe *bpe, uint32_t left, uint32_t right,
                                       uint32_t *rank)
{
    const struct tok_merge *merge = nl_tok_find_merge(bpe, left, right);
    *rank = merge ? merge->rank : UINT32_MAX;
    return merge;
}

/* Joins at most SHORT symbols in place, pairs[i] and ranks[i] being of what joins ids[i] and the next;
 * returns how many are left. */
static size_t merge_symbols(const struct tok_bpe *bpe, uint32_t *ids, const struct tok_merge **pairs,
                            uint32_t *ranks, size_t n)
{
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            best = ranks[i] < ranks[best] ? i : best;
        if (ranks[best] == UINT32_MAX)
            break;
        ids[best] = pairs[best]->id;
        n--;
        for (size_t i = best + 1; i < n; i++)
            ids[i] = ids[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) {
            pairs[i] = pairs[i + 1];
            ranks[i] = ranks[i + 1];
        }
        if (best > 0)
            pairs[best - 1] = look_up(bpe, ids[best - 1], ids[best], &ranks[best - 1]);
        if (best + 1 < n)
            pairs[best] = look_up(bpe, ids[best], ids[best + 1], &ranks[best]);
    }
    return n;
}

static size_t merge_short(const struct tok_bpe *bpe, struct tok_symbol *symbols, size_t n)
{
    const struct tok_merge *pairs[SHORT];
    uint32_t ids[SHORT], ranks[SHORT];
    for (size_t i = 0; i < n; i++)
        ids[i] = symbols[i].id;
    for (size_t i = 0; i + 1 < n; i++)
        pairs[i] = look_up(bpe, ids[i], ids[i + 1], &ranks[i]);
    n = merge_symbols(bpe, ids, pairs, ranks, n);
    for (size_t i = 0; i < n; i++)
        symbols[i].id = ids[i];
    return n;
}

static bool before(struct tok_candidate a, struct tok_candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.position < b.position;
}

static int push(struct nl_encoder *encoder, const struct tok_merge *merge, size_t position,
                struct nl_error *error)
{
    if (!merge)
        return 0;
    if (nl_tok_grow(&encoder->heap, &encoder->heap_capacity, encoder->heap_size + 1, sizeof *encoder->heap,
                    error) != 0)
        return -1;
    struct tok_candidate new = {merge->rank, (uint32_t)position, merge->id};
    size_t at = encoder->heap_size++;
    for (; at > 0 && before(new, encoder->heap[(at - 1) / 2]); at = (at - 1) / 2)
        encoder->heap[at] = encoder->heap[(at - 1) / 2];
    encoder->heap[at] = new;
    return 0;
}

static struct tok_candidate pop(struct nl_encoder *encoder)
{
    struct tok_candidate *heap = encoder->heap, top = heap[0], last = heap[--encoder->heap_size];
    size_t at = 0, n = encoder->heap_size;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static int join(struct nl_encoder *encoder, struct tok_candidate top, struct nl_error *error)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    struct tok_symbol *symbols = encoder->symbols, *left = &symbols[top.position];
    if (left->id == NL_TOK_NONE || left->next < 0)
        return 0;
    struct tok_symbol *right = &symbols[left->next];
    const struct tok_merge *merge = nl_tok_find_merge(bpe, left->id, right->id);
    if (!merge || merge->id != top.id)
        return 0;
    left->id = top.id;
    right->id = NL_TOK_NONE;
    left->next = right->next;
    if (left->next >= 0) {
        symbols[left->next].previous = (int32_t)top.position;
        merge = nl_tok_find_merge(bpe, left->id, symbols[left->next].id);
        if (push(encoder, merge, top.position, error) != 0)
            return -1;
    }
    if (left->previous < 0)
        return 0;
    merge = nl_tok_find_merge(bpe, symbols[left->previous].id, left->id);
    return push(encoder, merge, (size_t)left->previous, error);
}

static int merge_long(struct nl_encoder *encoder, struct nl_error *error)
{
    struct tok_symbol *symbols = encoder->symbols;
    size_t n = encoder->n_symbols, left = 0;
    symbols[n - 1].next = -1;
    encoder->heap_size = 0;
    for (size_t i = 0; i + 1 < n; i++)
        if (push(encoder, nl_tok_find_merge(&encoder->tokenizer->bpe, symbols[i].id, symbols[i + 1].id), i,
                 error) != 0)
            return -1;
    while (encoder->heap_size > 0)
        if (join(encoder, pop(encoder), error) != 0)
            return -1;
    for (size_t i = 0; i < n; i++)
        if (symbols[i].id != NL_TOK_NONE)
            symbols[left++].id = symbols[i].id;
    encoder->n_symbols = left;
    return 0;
}

/* Merges the symbols so far and gives them out. */
static int finish_stretch(struct nl_encoder *encoder, struct nl_error *error)
{
    if (encoder->n_symbols > SHORT) {
        if (merge_long(encoder, error) != 0)
            return -1;
    } else {
        encoder->n_symbols = merge_short(&encoder->tokenizer->bpe, encoder->symbols, encoder->n_symbols);
    }
    for (size_t i = 0; i < encoder->n_symbols; i++)
        if (nl_ids_add(encoder->out, &encoder->symbols[i].id, 1, error) != 0)
            return -1;
    encoder->n_symbols = 0;
    return 0;
}

static int add_symbol(struct nl_encoder *encoder, uint32_t id, struct nl_error *error)
{
    size_t n = encoder->n_symbols;
    if (n > 0 && !nl_tok_may_join(&encoder->tokenizer->bpe, encoder->symbols[n - 1].id, id)) {
        if (finish_stretch(encoder, error) != 0)
            return -1;
        n = 0;
    }
    if (n >= INT32_MAX - 1)
        return nl_fail(error, NL_RESOURCE, "a word of 2 GiB or more");
    if (nl_tok_grow(&encoder->symbols, &encoder->symbols_capacity, n + 1, sizeof *encoder->symbols, error) !=
        0)
        return -1;
    encoder->symbols[n] = (struct tok_symbol){id, (int32_t)n - 1, (int32_t)n + 1};
    encoder->n_symbols++;
    return 0;
}

static int add_fallback(struct nl_encoder *encoder, const char *text, size_t size, struct nl_error *error)
{
    const uint32_t *fallback = encoder->tokenizer->bpe.fallback;
    for (size_t i = 0; i < size; i++)
        if (fallback[(unsigned char)text[i]] == NL_TOK_NONE)
            return 0;
    for (size_t i = 0; i < size; i++)
        if (add_symbol(encoder, fallback[(unsigned char)text[i]], error) != 0)
            return -1;
    return 1;
}

/* A character that is no token: its bytes, or unknown. `pending`: an unknown that may yet be joined by more.
   Byte tokens do not flush it: they come before it, as in the reference. */
static int add_unknown(struct nl_encoder *encoder, const char *text, size_t size, bool *pending,
                       struct nl_error *error)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    if (bpe->byte_fallback) {
        int got = add_fallback(encoder, text, size, error);
        if (got != 0)
            return got < 0 ? -1 : 0;
    }
    if (bpe->unk_missing)
        return nl_fail(error, NL_DATA,
                       "the unknown token is needed and not in the vocabulary: model.unk_token");
    if (bpe->unk == NL_TOK_NONE)
        return 0;
    if (*pending && !bpe->fuse_unk)
        return add_symbol(encoder, bpe->unk, error);
    *pending = true;
    return 0;
}

static int add_known(struct nl_encoder *encoder, uint32_t id, bool *pending, struct nl_error *error)
{
    if (*pending && add_symbol(encoder, encoder->tokenizer->bpe.unk, error) != 0)
        return -1;
    *pending = false;
    return add_symbol(encoder, id, error);
}

static int start_with_bytes(struct nl_encoder *encoder, const char *text, size_t length,
                            struct nl_error *error)
{
    bool pending = false;
    for (size_t i = 0; i < length; i++) {
        uint32_t id = encoder->tokenizer->bpe.bytes[(unsigned char)text[i]];
        int result = id == NL_TOK_NONE ? add_unknown(encoder, text + i, 1, &pending, error)
                                       : add_known(encoder, id, &pending, error);
        if (result != 0)
            return -1;
    }
    return pending ? add_symbol(encoder, encoder->tokenizer->bpe.unk, error) : 0;
}

/* The character with the prefix and suffix that it takes in its place. */
static void dress(const struct nl_tokenizer *tok, const char *text, size_t size, bool first, bool last,
                  struct nl_buf *out)
{
    const struct tok_bpe *bpe = &tok->bpe;
    nl_buf_clear(out);
    if (!first)
        nl_buf_add(out, tok_text(tok, bpe->prefix), bpe->prefix.size);
    nl_buf_add(out, text, size);
    if (last)
        nl_buf_add(out, tok_text(tok, bpe->suffix), bpe->suffix.size);
}

static int start_with_chars(struct nl_encoder *encoder, const char *text, size_t length,
                            struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    bool plain = tok->bpe.prefix.size == 0 && tok->bpe.suffix.size == 0, pending = false;
    for (size_t at = 0; at < length;) {
        const char *unit = text + at;
        size_t size = nl_utf8_size((unsigned char)*unit), step = size;
        if (!plain) {
            dress(tok, unit, size, at == 0, at + step == length, &encoder->spare);
            if (nl_buf_check(&encoder->spare, "word", error) != 0)
                return -1;
            unit = encoder->spare.data;
            size = encoder->spare.size;
        }
        uint32_t id = nl_tok_find(tok, unit, size);
        int result = id == NL_TOK_NONE ? add_unknown(encoder, unit, size, &pending, error)
                                       : add_known(encoder, id, &pending, error);
        if (result != 0)
            return -1;
        at += step;
    }
    return pending ? add_symbol(encoder, tok->bpe.unk, error) : 0;
}

/* What joins two bytes: looked up once and remembered, since most merges of a word are such. */
static const struct tok_merge *byte_merge(struct nl_encoder *encoder, const char *text)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const unsigned char *two = (const unsigned char *)text;
    uint32_t *known = &encoder->byte_merges[two[0] << 8 | two[1]]; /* 0: not yet, 1: none, 2 + index */
    if (*known == 0) {
        const struct tok_merge *merge = nl_tok_find_merge(bpe, bpe->bytes[two[0]], bpe->bytes[two[1]]);
        *known = merge ? (uint32_t)(merge - bpe->merges) + 2 : 1;
    }
    return *known == 1 ? NULL : &bpe->merges[*known - 2];
}

/* A short word, raw, each of whose bytes is a token; 0 when it is none such. */
static int encode_short(struct nl_encoder *encoder, const char *text, size_t n, struct nl_ids *out,
                        struct nl_error *error)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const struct tok_merge *pairs[SHORT];
    uint32_t ids[SHORT], ranks[SHORT];
    for (size_t i = 0; i < n; i++)
        if ((ids[i] = bpe->bytes[(unsigned char)text[i]]) == NL_TOK_NONE)
            return 0;
    for (size_t i = 0; i + 1 < n; i++) {
        pairs[i] = byte_merge(encoder, text + i);
        ranks[i] = pairs[i] ? pairs[i]->rank : UINT32_MAX;
    }
    n = merge_symbols(bpe, ids, pairs, ranks, n);
    return nl_ids_add(out, ids, n, error) == 0 ? 1 : -1;
}

int nl_tok_bpe(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
               struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    if (tok->bpe.ignore_merges) {
        uint32_t id = nl_tok_find(tok, text, length);
        if (id != NL_TOK_NONE)
            return nl_ids_add(out, &id, 1, error);
    }
    if (encoder->byte_merges && length <= SHORT) {
        int got = encode_short(encoder, text, length, out, error);
        if (got != 0)
            return got < 0 ? -1 : 0;
    }
    encoder->out = out;
    encoder->n_symbols = 0;
    int result = tok->raw ? start_with_bytes(encoder, text, length, error)
                          : start_with_chars(encoder, text, length, error);
    return result == 0 ? finish_stretch(encoder, error) : -1;
}
