/* BPE's part of tokenizer.json: vocabulary, merges, options. */
#include <stdio.h>
#include <stdlib.h>

#include "tok.h"
#include "unicode.h"

/* The token of the first or last character of a token that is not one character itself; else the token. */
static uint32_t end_symbol(const struct nl_tokenizer *tok, uint32_t id, bool last)
{
    struct tok_string key = tok->vocab.tokens[id].key;
    const char *text = tok_text(tok, key);
    if (key.size == 0)
        return id;
    size_t begin = 0, size = tok->raw ? 1 : nl_utf8_size((unsigned char)*text);
    if (last) {
        begin = tok->raw ? key.size - 1 : nl_utf8_back(text, key.size);
        size = key.size - begin;
    }
    uint32_t symbol =
        tok->raw ? tok->bpe.bytes[(unsigned char)text[begin]] : nl_tok_find(tok, text + begin, size);
    return symbol == NL_TOK_NONE ? id : symbol;
}

static void all_join(const struct tok_bpe *bpe)
{
    memset(bpe->joins, 0xff, (1u << NL_TOK_JOIN_BITS) / 8);
}

/* Whether a word may begin as this symbol although it is more than a character. */
static bool stands_for_others(const struct nl_tokenizer *tok, uint32_t id)
{
    struct tok_string key = tok->vocab.tokens[id].key;
    return tok->bpe.unk == id ||
           (tok->bpe.byte_fallback && nl_tok_fallback_byte(tok_text(tok, key), key.size) >= 0);
}

/* The two symbols that meet inside a merge are those of the characters there. A merge of what stands for
 * unknown characters, which no published file has, makes an end of the whole method. */
static void note_join(const struct nl_tokenizer *tok, uint32_t left, uint32_t right)
{
    if (stands_for_others(tok, left) || stands_for_others(tok, right)) {
        all_join(&tok->bpe);
        return;
    }
    uint32_t bit =
        tok_hash_pair(end_symbol(tok, left, true), end_symbol(tok, right, false)) >> (32 - NL_TOK_JOIN_BITS);
    tok->bpe.joins[bit / 64] |= 1ull << bit % 64;
}

/* With affixes a symbol is not what stands in the text, and where it stands decides: then anything may join.
 */
static int allocate_joins(struct tok_bpe *bpe, struct nl_error *error)
{
    bpe->joins = calloc((1u << NL_TOK_JOIN_BITS) / 64, sizeof *bpe->joins);
    if (!bpe->joins)
        return nl_fail_memory(error, "merges");
    if (bpe->prefix.size || bpe->suffix.size)
        all_join(bpe);
    return 0;
}

/* A pair that stands there twice keeps its last rank, as in the reference. */
static void set_merge(struct tok_bpe *bpe, struct tok_merge new)
{
    uint32_t i = tok_hash_pair(new.left, new.right) & bpe->mask;
    while (bpe->merges[i].left != NL_TOK_NONE &&
           (bpe->merges[i].left != new.left || bpe->merges[i].right != new.right))
        i = (i + 1) & bpe->mask;
    bpe->merges[i] = new;
}

static int allocate_merges(struct tok_bpe *bpe, size_t count, struct nl_error *error)
{
    uint32_t slots = 16;
    while (3 * (uint64_t)slots < 4 * (uint64_t)count)
        slots *= 2;
    bpe->merges = malloc(slots * sizeof *bpe->merges);
    if (!bpe->merges)
        return nl_fail_memory(error, "merges");
    memset(bpe->merges, 0xff, slots * sizeof *bpe->merges);
    bpe->made = malloc((count ? count : 1) * sizeof *bpe->made);
    if (!bpe->made)
        return nl_fail_memory(error, "merges");
    bpe->mask = slots - 1;
    return 0;
}

/* The two halves of a merge: ["a", "b"] or "a b". *second is where the right half begins in *both. */
static int merge_halves(const struct nl_json *value, size_t rank, struct nl_buf *both, size_t *second,
                        struct nl_error *error)
{
    nl_buf_clear(both);
    nl_buf_add(both, "", 0);
    if (nl_json_is(value, NL_JSON_ARRAY)) {
        const struct nl_json *left = nl_json_first(value), *right = left ? nl_json_next(left) : NULL;
        if (nl_json_is(left, NL_JSON_STRING) && nl_json_is(right, NL_JSON_STRING) && !nl_json_next(right)) {
            nl_json_copy_string(left, both);
            *second = both->size;
            nl_json_copy_string(right, both);
            return nl_buf_check(both, "merges", error);
        }
    } else if (nl_json_is(value, NL_JSON_STRING)) {
        nl_json_copy_string(value, both);
        if (nl_buf_check(both, "merges", error) != 0)
            return -1;
        char *space = memchr(both->data, ' ', both->size), *end = both->data + both->size;
        if (space && !memchr(space + 1, ' ', (size_t)(end - space - 1))) {
            *second = (size_t)(space - both->data);
            memmove(space, space + 1, (size_t)(end - space));
            both->size--;
            return 0;
        }
    }
    return nl_fail(error, NL_DATA, "not a pair of tokens: model.merges[%zu]", rank);
}

/* How much of a right half is the prefix: its length in characters, which the reference then counts in bytes.
 */
static size_t prefix_size(const struct nl_tokenizer *tok)
{
    struct tok_string prefix = tok->bpe.prefix;
    size_t characters = 0;
    for (size_t at = 0; at < prefix.size; characters++)
        at += nl_utf8_size((unsigned char)tok_text(tok, prefix)[at]);
    return characters;
}

static int add_merge(struct nl_tokenizer *tok, const struct nl_buf *both, size_t second, size_t rank,
                     struct nl_error *error)
{
    size_t skip = prefix_size(tok);
    struct tok_merge merge = {.rank = (uint32_t)rank};
    merge.left = nl_tok_find_content(tok, both->data, second);
    merge.right = nl_tok_find_content(tok, both->data + second, both->size - second);
    struct nl_buf joined = {0};
    nl_buf_add(&joined, both->data, second);
    if (skip <= both->size - second)
        nl_buf_add(&joined, both->data + second + skip, both->size - second - skip);
    int result = nl_buf_check(&joined, "merges", error);
    if (result == 0) {
        merge.id = nl_tok_find_content(tok, joined.data, joined.size);
        if (merge.left == NL_TOK_NONE || merge.right == NL_TOK_NONE || merge.id == NL_TOK_NONE)
            result = nl_fail(
                error, NL_DATA, "a token that is not in the vocabulary: model.merges[%zu]: %.100s", rank,
                merge.left == NL_TOK_NONE || merge.right == NL_TOK_NONE ? both->data : joined.data);
        else {
            set_merge(&tok->bpe, merge);
            tok->bpe.made[rank] = merge.id;
            tok->bpe.odd |= joined.size <= second;
            note_join(tok, merge.left, merge.right);
        }
    }
    nl_buf_free(&joined);
    return result;
}

static int load_merges(struct nl_tokenizer *tok, const struct nl_json *merges, struct nl_error *error)
{
    if (!nl_json_is(merges, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "no array model.merges");
    if (allocate_joins(&tok->bpe, error) != 0 ||
        allocate_merges(&tok->bpe, nl_json_count(merges), error) != 0)
        return -1;
    struct nl_buf both = {0};
    size_t rank = 0, second = 0;
    int result = 0;
    for (const struct nl_json *value = nl_json_first(merges); value && result == 0;
         value = nl_json_next(value)) {
        if (nl_json_is(value, NL_JSON_STRING) && strncmp(nl_json_string(value), "#version", 8) == 0)
            continue;
        result = merge_halves(value, rank, &both, &second, error);
        if (result == 0)
            result = add_merge(tok, &both, second, rank++, error);
    }
    nl_buf_free(&both);
    tok->bpe.n_ranks = (uint32_t)rank;
    return result;
}

static int affix(struct nl_tokenizer *tok, const struct nl_json *model, const char *key,
                 struct tok_string *out, struct nl_error *error)
{
    struct nl_buf text = {0};
    int got = nl_tok_json_string(model, key, &text, error);
    int result = got < 0 ? -1 : nl_tok_intern(tok, text.data, text.size, out, error);
    nl_buf_free(&text);
    return result;
}

static int load_options(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    struct tok_bpe *bpe = &tok->bpe;
    if (nl_tok_json_bool(model, "fuse_unk", false, &bpe->fuse_unk, error) != 0 ||
        nl_tok_json_bool(model, "byte_fallback", false, &bpe->byte_fallback, error) != 0 ||
        nl_tok_json_bool(model, "ignore_merges", false, &bpe->ignore_merges, error) != 0 ||
        affix(tok, model, "continuing_subword_prefix", &bpe->prefix, error) != 0 ||
        affix(tok, model, "end_of_word_suffix", &bpe->suffix, error) != 0)
        return -1;
    const struct nl_json *dropout = nl_json_get(model, "dropout");
    if (nl_json_is(dropout, NL_JSON_NUMBER) && nl_json_number(dropout) > 0)
        return nl_fail(error, NL_UNSUPPORTED, "dropout is not supported: model.dropout");
    /* What the raw way leaves out; such files take the other one. */
    if (bpe->prefix.size || bpe->suffix.size || bpe->byte_fallback)
        tok->raw = false;
    return 0;
}

static int load_unk(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    struct nl_buf unk = {0};
    int got = nl_tok_json_string(model, "unk_token", &unk, error);
    tok->bpe.unk = NL_TOK_NONE;
    if (got == 1) {
        tok->bpe.unk = nl_tok_find_content(tok, unk.data, unk.size);
        tok->bpe.unk_missing = tok->bpe.unk == NL_TOK_NONE;
    }
    nl_buf_free(&unk);
    return got < 0 ? -1 : 0;
}

int nl_tok_load_bpe(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    struct tok_bpe *bpe = &tok->bpe;
    if (load_options(tok, model, error) != 0 ||
        nl_tok_load_vocab(tok, nl_json_get(model, "vocab"), error) != 0 || load_unk(tok, model, error) != 0)
        return -1;
    for (unsigned byte = 0; byte < 256; byte++) {
        char key[8];
        key[0] = (char)byte;
        bpe->bytes[byte] = tok->raw || byte < 0x80 ? nl_tok_find(tok, key, 1) : NL_TOK_NONE;
        snprintf(key, sizeof key, "<0x%02X>", byte);
        bpe->fallback[byte] = bpe->byte_fallback ? nl_tok_find_content(tok, key, 6) : NL_TOK_NONE;
    }
    return load_merges(tok, nl_json_get(model, "merges"), error);
}
