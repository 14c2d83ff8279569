/*
 * Unigram: of all ways to cut a text into tokens the one with the largest sum of scores (Viterbi), sums in
 * double in the reference's order, the first way found winning a tie. A character that is no token may stand
 * for itself at unk_score; neighbours of those are one unknown, or bytes where every byte has its token.
 */
#include <stdlib.h>

#include "tok.h"
#include "unicode.h"

struct search {
    const struct tok_lexicon *lexicon;
    struct tok_step *steps;
    double *best;
    size_t mask; /* of the ring `best` */
};

static void reach(struct search *s, size_t from, size_t size, uint32_t id, double score)
{
    size_t to = from + size;
    double sum = score + s->best[from & s->mask];
    if (s->steps[to].size == 0 || sum > s->best[to & s->mask]) {
        s->best[to & s->mask] = sum;
        s->steps[to] = (struct tok_step){id, (uint32_t)size};
    }
}

/* All tokens that begin at `at`, shortest first; true when one of them is the character there. */
static bool reach_tokens(struct search *s, const char *text, size_t length, size_t at, size_t character)
{
    const struct tok_trie *trie = &s->lexicon->trie;
    const struct tok_trie_node *node = trie->nodes;
    bool single = false;
    for (size_t end = at; end < length && (node = nl_tok_trie_step(trie, node, (unsigned char)text[end]));) {
        end++;
        if (node->id == NL_TOK_NONE)
            continue;
        reach(s, at, end - at, node->id, s->lexicon->scores[node->id]);
        single = single || end - at == character;
    }
    return single;
}

/* Room for a text, its first place reached. */
static int prepare(struct nl_encoder *encoder, size_t length, struct search *s, struct nl_error *error)
{
    size_t ring = 4;
    s->lexicon = &encoder->tokenizer->lexicon;
    while (ring <= s->lexicon->longest)
        ring *= 2;
    if (nl_grow(&encoder->steps, &encoder->steps_capacity, length + 1, sizeof *encoder->steps, "tokenizer",
                error) != 0 ||
        nl_grow(&encoder->best, &encoder->best_capacity, ring, sizeof *encoder->best, "tokenizer", error) !=
            0)
        return -1;
    s->steps = encoder->steps;
    s->best = encoder->best;
    s->mask = ring - 1;
    memset(s->steps, 0, (length + 1) * sizeof *s->steps);
    s->best[0] = 0;
    return 0;
}

/* A run of unknown characters. */
static int add_unknown(struct nl_encoder *encoder, const char *text, size_t size, struct nl_ids *out,
                       struct nl_error *error)
{
    const struct tok_lexicon *lexicon = &encoder->tokenizer->lexicon;
    uint32_t id = nl_tok_find(encoder->tokenizer, text, size);
    bool bytes = id == NL_TOK_NONE;
    for (size_t i = 0; bytes && i < size; i++)
        bytes = lexicon->fallback[(unsigned char)text[i]] != NL_TOK_NONE;
    if (!bytes) {
        id = id == NL_TOK_NONE ? lexicon->unk : id;
        return nl_ids_add(out, &id, 1, error);
    }
    for (size_t i = 0; i < size; i++)
        if (nl_ids_add(out, &lexicon->fallback[(unsigned char)text[i]], 1, error) != 0)
            return -1;
    return 0;
}

/* Turns the steps of the best way round, so that each lies where its token begins. */
static void turn(struct tok_step *steps, size_t length)
{
    struct tok_step step = steps[length];
    for (size_t end = length; end > 0;) {
        size_t start = end - step.size;
        struct tok_step before = steps[start];
        steps[start] = step;
        step = before;
        end = start;
    }
}

int nl_tok_unigram(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
                   struct nl_error *error)
{
    struct search s;
    if (prepare(encoder, length, &s, error) != 0)
        return -1;
    for (size_t at = 0, size; at < length; at += size) {
        size = nl_utf8_size((unsigned char)text[at]);
        if (reach_tokens(&s, text, length, at, size))
            continue;
        if (s.lexicon->unk != NL_TOK_NONE)
            reach(&s, at, size, s.lexicon->unk, s.lexicon->unk_score);
        else if (s.steps[at + size].size == 0 ||
                 s.lexicon->unk_score + s.best[at & s.mask] > s.best[(at + size) & s.mask])
            return nl_fail(error, NL_DATA, "a character that is no token, and there is no model.unk_id");
    }
    turn(s.steps, length);
    for (size_t at = 0; at < length;) {
        size_t start = at;
        while (at < length && s.lexicon->unk != NL_TOK_NONE && s.steps[at].id == s.lexicon->unk)
            at += s.steps[at].size;
        if (at > start && add_unknown(encoder, text + start, at - start, out, error) != 0)
            return -1;
        if (at < length) {
            if (nl_ids_add(out, &s.steps[at].id, 1, error) != 0)
                return -1;
            at += s.steps[at].size;
        }
    }
    return 0;
}
