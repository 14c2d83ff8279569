/*
 * Byte-pair encoding: of all neighbours that a merge joins, the one with the lowest rank, the leftmost of
 * those, is joined first, until none is left.
 *
 * A word is cut into stretches where no merge can join anything across: they do not know of each other. Few
 * symbols: a scan for the best pair each time. More: a queue of candidates, see tok_queue.h, which works the
 * better the more there are, so that long stretches wait for each other. A candidate out of the queue may be
 * out of date; it counts if its two symbols still join to the same token.
 */
#include "tok.h"

enum {
    AHEAD = 8,       /* candidates, whose lines of the table are asked for meanwhile */
    MOST = 1 << 27,  /* symbols, of 16 bytes */
    BATCH = 1 << 15, /* symbols that wait for each other */
};

static const struct tok_merge *look_up(const struct tok_bpe *bpe, uint32_t left, uint32_t right,
                                       uint32_t *rank)
{
    const struct tok_merge *merge = nl_tok_find_merge(bpe, left, right);
    *rank = merge ? merge->rank : UINT32_MAX;
    return merge;
}

/* Joins at most NL_TOK_FEW symbols in place, pairs[i] and ranks[i] being of what joins ids[i] and the next;
 * returns how many are left. */
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

static size_t merge_short(const struct tok_bpe *bpe, struct tok_symbol *symbols, size_t n)
{
    const struct tok_merge *pairs[NL_TOK_FEW];
    uint32_t ids[NL_TOK_FEW], ranks[NL_TOK_FEW];
    for (size_t i = 0; i < n; i++)
        ids[i] = symbols[i].id;
    for (size_t i = 0; i + 1 < n; i++)
        pairs[i] = look_up(bpe, ids[i], ids[i + 1], &ranks[i]);
    n = nl_tok_bpe_merge_few(bpe, ids, pairs, ranks, n);
    for (size_t i = 0; i < n; i++)
        symbols[i].id = ids[i];
    return n;
}

/* Looks up what joins the symbol at `position` and the next, and puts it into the queue. */
static int look_at_pair(struct nl_encoder *encoder, int32_t position, struct nl_error *error)
{
    struct tok_symbol *symbol = &encoder->symbols[position];
    const struct tok_merge *merge =
        nl_tok_find_merge(&encoder->tokenizer->bpe, symbol->id, encoder->symbols[symbol->next].id);
    symbol->rank = merge ? merge->rank : NL_TOK_NONE;
    return merge ? nl_tok_queue_push(&encoder->queue, tok_candidate(merge->rank, (uint32_t)position), error)
                 : 0;
}

/* Asks for the lines of the table that a coming candidate will need. */
static void prefetch(const struct nl_encoder *encoder)
{
    const struct tok_queue *queue = &encoder->queue;
    if (queue->run_size - queue->run_at <= AHEAD)
        return;
    uint64_t candidate = queue->run[queue->run_at + AHEAD];
    uint32_t rank = (uint32_t)(candidate >> 32);
    const struct tok_bpe *bpe = &encoder->tokenizer->bpe;
    const struct tok_symbol *symbols = encoder->symbols, *left = &symbols[(uint32_t)candidate];
    if (left->rank != rank || left->id == NL_TOK_NONE || left->next < 0)
        return;
    const struct tok_symbol *right = &symbols[left->next];
    if (right->next >= 0)
        nl_tok_prefetch_merge(bpe, bpe->made[rank], symbols[right->next].id);
    if (left->previous >= 0)
        nl_tok_prefetch_merge(bpe, symbols[left->previous].id, bpe->made[rank]);
}

static int join(struct nl_encoder *encoder, uint32_t rank, int32_t position, struct nl_error *error)
{
    const uint32_t *made = encoder->tokenizer->bpe.made;
    struct tok_symbol *symbols = encoder->symbols, *left = &symbols[position];
    if (left->id == NL_TOK_NONE || left->next < 0 || left->rank == NL_TOK_NONE ||
        (left->rank != rank && (!encoder->tokenizer->bpe.odd || made[left->rank] != made[rank])))
        return 0;
    struct tok_symbol *right = &symbols[left->next];
    left->id = made[rank];
    left->next = right->next;
    right->id = NL_TOK_NONE;
    if (left->next >= 0) {
        symbols[left->next].previous = position;
        if (look_at_pair(encoder, position, error) != 0)
            return -1;
    }
    return left->previous < 0 ? 0 : look_at_pair(encoder, left->previous, error);
}

static int merge_long(struct nl_encoder *encoder, struct nl_error *error)
{
    struct tok_symbol *symbols = encoder->symbols;
    size_t n = encoder->n_symbols, left = 0;
    uint64_t candidate;
    int got;
    nl_tok_queue_start(&encoder->queue);
    for (size_t i = 0; i < n; i++)
        if (symbols[i].next >= 0 && look_at_pair(encoder, (int32_t)i, error) != 0)
            return -1;
    while ((got = nl_tok_queue_pop(&encoder->queue, &candidate, error)) > 0) {
        prefetch(encoder);
        if (join(encoder, (uint32_t)(candidate >> 32), (int32_t)(uint32_t)candidate, error) != 0)
            return -1;
    }
    for (size_t i = 0; i < n; i++)
        if (symbols[i].id != NL_TOK_NONE)
            symbols[left++].id = symbols[i].id;
    encoder->n_symbols = left;
    return got;
}

/* Gives out the symbols so far, merged. */
static int give(struct nl_encoder *encoder, struct nl_error *error)
{
    if (encoder->pending && merge_long(encoder, error) != 0)
        return -1;
    for (size_t i = 0; i < encoder->n_symbols; i++)
        if (nl_ids_add(encoder->out, &encoder->symbols[i].id, 1, error) != 0)
            return -1;
    encoder->n_symbols = encoder->stretch = 0;
    encoder->pending = false;
    return 0;
}

/* Ends the last stretch: few symbols are merged where they are. */
static void end_stretch(struct nl_encoder *encoder)
{
    struct tok_symbol *first = encoder->symbols + encoder->stretch;
    size_t n = encoder->n_symbols - encoder->stretch;
    if (n > NL_TOK_FEW) {
        encoder->pending = true;
        first[n - 1].next = -1;
    } else {
        n = merge_short(&encoder->tokenizer->bpe, first, n);
        for (size_t i = 0; i < n; i++)
            first[i].next = -1;
    }
    encoder->stretch += n;
    encoder->n_symbols = encoder->stretch;
}

int nl_tok_bpe_add(struct nl_encoder *encoder, uint32_t id, struct nl_error *error)
{
    size_t n = encoder->n_symbols;
    if (n > encoder->stretch && !nl_tok_may_join(&encoder->tokenizer->bpe, encoder->symbols[n - 1].id, id)) {
        end_stretch(encoder);
        if ((!encoder->pending || encoder->n_symbols >= BATCH) && give(encoder, error) != 0)
            return -1;
        n = encoder->n_symbols;
    }
    if (n >= MOST)
        return nl_fail(error, NL_RESOURCE, "a word of %d characters or more", MOST);
    if (nl_tok_grow(&encoder->symbols, &encoder->symbols_capacity, n + 1, sizeof *encoder->symbols, error) !=
        0)
        return -1;
    encoder->symbols[n] =
        (struct tok_symbol){id, n > encoder->stretch ? (int32_t)n - 1 : -1, (int32_t)n + 1, NL_TOK_NONE};
    encoder->n_symbols++;
    return 0;
}

int nl_tok_bpe_finish(struct nl_encoder *encoder, struct nl_error *error)
{
    end_stretch(encoder);
    return give(encoder, error);
}
