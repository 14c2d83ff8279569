/* WordPiece: the longest token that the word begins with, then the longest continuation, and so on; a word
 * that does not come out even is unknown as a whole. WordLevel: the word itself. */
#include "tok.h"

static int add_unknown(struct nl_encoder *encoder, struct nl_ids *out, struct nl_error *error)
{
    uint32_t unk = encoder->tokenizer->lexicon.unk;
    if (unk == NL_TOK_NONE)
        return nl_fail(error, NL_DATA,
                       "the unknown token is needed and not in the vocabulary: model.unk_token");
    return nl_ids_add(out, &unk, 1, error);
}

static uint64_t count_characters(const char *text, size_t length)
{
    uint64_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += (text[i] & 0xc0) != 0x80;
    return count;
}

/* The longest key of at least one byte behind `node`; its id, and *size; NL_TOK_NONE. */
static uint32_t longest(const struct tok_trie *trie, const struct tok_trie_node *node, const char *text,
                        size_t length, size_t *size)
{
    uint32_t id = NL_TOK_NONE;
    for (size_t i = 0; i < length && (node = nl_tok_trie_step(trie, node, (unsigned char)text[i])); i++)
        if (node->id != NL_TOK_NONE) {
            id = node->id;
            *size = i + 1;
        }
    return id;
}

int nl_tok_word_piece(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
                      struct nl_error *error)
{
    const struct tok_lexicon *lexicon = &encoder->tokenizer->lexicon;
    size_t start = out->count;
    if (count_characters(text, length) > lexicon->most_characters)
        return add_unknown(encoder, out, error);
    for (size_t at = 0, size = 0; at < length; at += size) {
        uint32_t node = at == 0 ? 0 : lexicon->continuation;
        uint32_t id = node == NL_TOK_NONE ? NL_TOK_NONE
                                          : longest(&lexicon->trie, &lexicon->trie.nodes[node], text + at,
                                                    length - at, &size);
        if (id == NL_TOK_NONE) {
            out->count = start;
            return add_unknown(encoder, out, error);
        }
        if (nl_ids_add(out, &id, 1, error) != 0)
            return -1;
    }
    return 0;
}

int nl_tok_word_level(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
                      struct nl_error *error)
{
    uint32_t id = nl_tok_find(encoder->tokenizer, text, length);
    return id == NL_TOK_NONE ? add_unknown(encoder, out, error) : nl_ids_add(out, &id, 1, error);
}
