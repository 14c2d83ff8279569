/* Unigram, WordPiece and WordLevel: their parts of tokenizer.json. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tok.h"

static const double unk_penalty = 10.0; /* unigram/model.rs of the reference, and SentencePiece */

static void note_longest(struct nl_tokenizer *tok)
{
    for (uint32_t id = 0; id < tok->vocab.n_ids; id++)
        if (tok->vocab.tokens[id].used && tok->vocab.tokens[id].key.size > tok->lexicon.longest)
            tok->lexicon.longest = tok->vocab.tokens[id].key.size;
}

int nl_tok_load_unigram(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    struct tok_lexicon *lexicon = &tok->lexicon;
    const struct nl_json *unk = nl_json_get(model, "unk_id");
    bool byte_fallback;
    int64_t id;
    if (nl_tok_json_bool(model, "byte_fallback", false, &byte_fallback, error) != 0 ||
        nl_tok_load_scored_vocab(tok, nl_json_get(model, "vocab"), error) != 0)
        return -1;
    lexicon->unk = NL_TOK_NONE;
    if (unk && !nl_json_is(unk, NL_JSON_NULL)) {
        if (!nl_json_integer(unk, 0, (int64_t)tok->vocab.n_ids - 1, &id))
            return nl_fail(error, NL_DATA, "not an id of the vocabulary: model.unk_id");
        lexicon->unk = (uint32_t)id;
    }
    double least = INFINITY;
    for (uint32_t i = 0; i < tok->vocab.n_ids; i++)
        if (lexicon->scores[i] < least)
            least = lexicon->scores[i];
    lexicon->unk_score = least - unk_penalty;
    for (unsigned byte = 0; byte < 256; byte++) {
        char key[8];
        snprintf(key, sizeof key, "<0x%02X>", byte);
        lexicon->fallback[byte] = byte_fallback ? nl_tok_find(tok, key, 6) : NL_TOK_NONE;
    }
    note_longest(tok);
    return nl_tok_build_trie(tok, &lexicon->trie, error);
}

/* "unk_token", which must be named but need not be a token until it is needed. */
static int load_unk(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    struct nl_buf unk = {0};
    int got = nl_tok_json_string(model, "unk_token", &unk, error);
    if (got == 0)
        got = nl_fail(error, NL_DATA, "no string model.unk_token");
    if (got == 1)
        tok->lexicon.unk = nl_tok_find(tok, unk.data, unk.size);
    nl_buf_free(&unk);
    return got < 0 ? -1 : 0;
}

/* The node of the trie behind the prefix. */
static int find_continuation(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    struct nl_buf prefix = {0};
    int got = nl_tok_json_string(model, "continuing_subword_prefix", &prefix, error);
    if (got == 0)
        nl_buf_puts(&prefix, "##");
    if (got >= 0)
        got = nl_buf_check(&prefix, "prefix", error);
    const struct tok_trie *trie = &tok->lexicon.trie;
    const struct tok_trie_node *node = trie->nodes;
    for (size_t i = 0; got >= 0 && node && i < prefix.size; i++)
        node = nl_tok_trie_step(trie, node, (unsigned char)prefix.data[i]);
    tok->lexicon.continuation = node ? (uint32_t)(node - trie->nodes) : NL_TOK_NONE;
    tok->lexicon.prefix_size = (uint32_t)prefix.size;
    nl_buf_free(&prefix);
    return got < 0 ? -1 : 0;
}

int nl_tok_load_word_piece(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    const struct nl_json *most = nl_json_get(model, "max_input_chars_per_word");
    int64_t number = 100;
    if (most && !nl_json_integer(most, 0, (int64_t)1 << 53, &number))
        return nl_fail(error, NL_DATA, "not a count: model.max_input_chars_per_word");
    tok->lexicon.most_characters = (uint64_t)number;
    if (nl_tok_load_vocab(tok, nl_json_get(model, "vocab"), error) != 0 || load_unk(tok, model, error) != 0 ||
        nl_tok_build_trie(tok, &tok->lexicon.trie, error) != 0)
        return -1;
    return find_continuation(tok, model, error);
}

int nl_tok_load_word_level(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    if (nl_tok_load_vocab(tok, nl_json_get(model, "vocab"), error) != 0)
        return -1;
    return load_unk(tok, model, error);
}
