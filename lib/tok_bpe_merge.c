/*
 * Byte-pair encoding: of all neighbours that a merge joins, the one with the lowest rank, the leftmost of
 * those, is joined first, until none is left.
 *
 * Merges are local: what stands on the two sides of a border that no merge crosses does not know of each
 * other. Hence
 * - a word is cut into stretches where no merge can join anything across;
 * - a few symbols are merged by a scan for the best pair each time, more through a heap of candidates;
 * - a long stretch is merged in windows, so that what is at work stays in the cache. A window begins where
 *   one of the last tokens of the window before does. If that token comes out again, the tokens before it
 *   stand, since whether the border between two tokens is crossed depends on these two alone, and each two
 *   were seen together. If not, what follows reaches back further: merging begins anew at an earlier window.
 */
#include "tok.h"

enum {
    WINDOW = 1 << 10, /* symbols */
    MARGIN = 16,      /* the next window begins such a part of it before the end */
    MOST = 1 << 27,   /* symbols */
};

static const struct tok_merge *look_up(const struct tok_bpe *bpe, uint32_t left, uint32_t right,
                                       uint32_t *rank)
{
    const struct tok_merge *merge = tok_find_merge(bpe, left, right);
    *rank = merge ? merge->rank : UINT32_MAX;
    return merge;
}

size_t nl_tok_bpe_merge_few(const struct tok_bpe *bpe, uint32_t *ids, const struct tok_merge **pairs,
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

/* A candidate: the rank, then the position of the left symbol. It may be out of date when it comes out of the
 * heap; it counts if its two symbols still join to the same token. */
static void push(struct nl_encoder *encoder, uint32_t rank, size_t position)
{
    uint64_t new = (uint64_t)rank << 32 | position, *heap = encoder->heap;
    size_t at = encoder->heap_size++;
    for (; at > 0 && new < heap[(at - 1) / 2]; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = new;
}

static uint64_t pop(struct nl_encoder *encoder)
{
    uint64_t *heap = encoder->heap, top = heap[0], last = heap[--encoder->heap_size];
    size_t at = 0, n = encoder->heap_size;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static void look_at_pair(struct nl_encoder *encoder, int32_t position)
{
    struct tok_symbol *symbol = &encoder->symbols[position];
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    if (symbol->next < 0)
        symbol->rank = NL_TOK_NONE;
    else
        look_up(bpe, symbol->id, encoder->symbols[symbol->next].id, &symbol->rank);
}

/* Makes the pair a candidate if its rank is the lowest around: another one waits until its neighbour is
 * joined. */
static void consider(struct nl_encoder *encoder, int32_t position)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const struct tok_symbol *symbols = encoder->symbols, *left = &symbols[position];
    if (left->rank == NL_TOK_NONE)
        return;
    const struct tok_symbol *right = &symbols[left->next];
    if (!bpe->odd &&
        ((left->previous >= 0 && symbols[left->previous].rank <= left->rank) || right->rank < left->rank))
        return;
    push(encoder, left->rank, (size_t)position);
    uint32_t made = bpe->made[left->rank];
    if (left->previous >= 0)
        tok_prefetch_merge(bpe, symbols[left->previous].id, made);
    if (right->next >= 0)
        tok_prefetch_merge(bpe, made, symbols[right->next].id);
}

static void join(struct nl_encoder *encoder, uint32_t rank, int32_t position)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    struct tok_symbol *symbols = encoder->symbols, *left = &symbols[position];
    if (left->id == NL_TOK_NONE || left->rank == NL_TOK_NONE ||
        (left->rank != rank && (!bpe->odd || bpe->made[left->rank] != bpe->made[rank])))
        return;
    struct tok_symbol *right = &symbols[left->next];
    left->id = bpe->made[rank];
    left->next = right->next;
    right->id = NL_TOK_NONE;
    look_at_pair(encoder, position);
    if (left->previous >= 0) {
        look_at_pair(encoder, left->previous);
        if (symbols[left->previous].previous >= 0 && !bpe->odd)
            consider(encoder, symbols[left->previous].previous);
        consider(encoder, left->previous);
    }
    consider(encoder, position);
    if (left->next >= 0) {
        symbols[left->next].previous = position;
        if (!bpe->odd)
            consider(encoder, left->next);
    }
}

/* Merges the word's symbols from `begin` on into encoder->symbols, a list that begins with the first. */
static int merge_from(struct nl_encoder *encoder, size_t begin, struct nl_error *error)
{
    size_t n = encoder->n_symbols = encoder->n_word - begin;
    if (nl_grow(&encoder->symbols, &encoder->symbols_capacity, n, sizeof *encoder->symbols, "text", error) !=
            0 ||
        nl_grow(&encoder->heap, &encoder->heap_capacity, 5 * n, sizeof *encoder->heap, "text", error) != 0)
        return -1; /* candidates: one for each symbol, at most four for each merge */
    for (size_t i = 0; i < n; i++)
        encoder->symbols[i] =
            (struct tok_symbol){encoder->word[begin + i], (int32_t)i - 1, (int32_t)i + 1, NL_TOK_NONE};
    encoder->symbols[n - 1].next = -1;
    encoder->heap_size = 0;
    for (size_t i = 0; i < n; i++)
        look_at_pair(encoder, (int32_t)i);
    for (size_t i = 0; i + 1 < n; i++)
        consider(encoder, (int32_t)i);
    while (encoder->heap_size > 0) {
        uint64_t candidate = pop(encoder);
        join(encoder, (uint32_t)(candidate >> 32), (int32_t)(uint32_t)candidate);
    }
    return 0;
}

/* The end of the token at a position of the list. */
static size_t end_of(const struct nl_encoder *encoder, size_t position)
{
    int32_t next = encoder->symbols[position].next;
    return next < 0 ? encoder->n_symbols : (size_t)next;
}

static struct tok_window last_window(const struct nl_encoder *encoder)
{
    return encoder->n_windows > 0 ? encoder->windows[encoder->n_windows - 1]
                                  : (struct tok_window){.given = encoder->given};
}

static bool comes_out(const struct nl_encoder *encoder, const struct tok_window *window)
{
    return window->begin == 0 || (encoder->symbols[0].id == window->id && end_of(encoder, 0) == window->size);
}

static int add_window(struct nl_encoder *encoder, struct tok_window window, struct nl_error *error)
{
    if (nl_grow(&encoder->windows, &encoder->windows_capacity, encoder->n_windows + 1,
                sizeof *encoder->windows, "text", error) != 0)
        return -1;
    encoder->windows[encoder->n_windows++] = window;
    return 0;
}

/* Merges the last window, or as many as it takes, and gives out the tokens, but those that the next one looks
 * at again. */
static int merge_window(struct nl_encoder *encoder, bool last, struct nl_error *error)
{
    size_t back = 1, at = 0, next = 0;
    struct tok_window window = last_window(encoder);
    int result;
    while ((result = merge_from(encoder, window.begin, error)) == 0 && !comes_out(encoder, &window)) {
        encoder->n_windows -= back < encoder->n_windows ? back : encoder->n_windows;
        window = last_window(encoder);
        back *= 2;
    }
    encoder->out->count = window.given;
    size_t n = encoder->n_symbols, end = last ? n : n - n / MARGIN;
    for (; result == 0 && at < n && (next = end_of(encoder, at)) <= end; at = next)
        result = nl_ids_add(encoder->out, &encoder->symbols[at].id, 1, error);
    if (result != 0 || last)
        return result;
    encoder->due = window.begin + (back == 1 && at > 0 ? at + WINDOW : 2 * n); /* far reach: not too often */
    return at == 0 ? 0
                   : add_window(encoder,
                                (struct tok_window){window.begin + at, encoder->out->count,
                                                    encoder->symbols[at].id, next - at},
                                error);
}

static int end_stretch(struct nl_encoder *encoder, struct nl_error *error)
{
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const struct tok_merge *pairs[NL_TOK_FEW];
    uint32_t ranks[NL_TOK_FEW], *ids = encoder->word;
    size_t n = encoder->n_word;
    if (n > NL_TOK_FEW)
        return merge_window(encoder, true, error);
    for (size_t i = 0; i + 1 < n; i++)
        pairs[i] = look_up(bpe, ids[i], ids[i + 1], &ranks[i]);
    n = nl_tok_bpe_merge_few(bpe, ids, pairs, ranks, n);
    return nl_ids_add(encoder->out, ids, n, error);
}

void nl_tok_bpe_start(struct nl_encoder *encoder)
{
    encoder->n_word = encoder->n_windows = 0;
    encoder->due = WINDOW;
    encoder->given = encoder->out->count;
}

int nl_tok_bpe_add(struct nl_encoder *encoder, uint32_t id, struct nl_error *error)
{
    size_t n = encoder->n_word;
    if (n > 0 && !tok_may_join(&encoder->tokenizer->bpe, encoder->word[n - 1], id)) {
        if (end_stretch(encoder, error) != 0)
            return -1;
        nl_tok_bpe_start(encoder);
    } else if (n >= encoder->due && merge_window(encoder, false, error) != 0) {
        return -1;
    }
    if (encoder->n_word >= MOST)
        return nl_fail(error, NL_RESOURCE, "a word of %d characters or more", MOST);
    if (nl_grow(&encoder->word, &encoder->word_capacity, encoder->n_word + 1, sizeof *encoder->word, "text",
                error) != 0)
        return -1;
    encoder->word[encoder->n_word++] = id;
    return 0;
}

int nl_tok_bpe_finish(struct nl_encoder *encoder, struct nl_error *error)
{
    return encoder->n_word > 0 ? end_stretch(encoder, error) : 0;
}
