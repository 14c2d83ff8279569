/* The model's vocabulary: ids to tokens and back. */
#include <stdlib.h>

#include "tok.h"

static uint32_t hash(const char *key, size_t size)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ size;
    for (; size >= 8; key += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, key, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    uint64_t word = 0;
    memcpy(&word, key, size);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return (uint32_t)(h ^ h >> 32);
}

/* The slot of a key, or the free one where it belongs. */
static struct tok_slot *slot(const struct nl_tokenizer *tok, const char *key, size_t size, bool unmapped)
{
    const struct tok_vocab *vocab = &tok->vocab;
    uint32_t wanted = hash(key, size);
    for (uint32_t i = wanted & vocab->mask;; i = (i + 1) & vocab->mask) {
        uint32_t id = vocab->slots[i].id;
        if (id == NL_TOK_NONE)
            return &vocab->slots[i];
        if (vocab->slots[i].hash != wanted)
            continue;
        const struct tok_token *token = &vocab->tokens[id];
        if (token->key.size == size && token->unmapped == unmapped &&
            memcmp(tok_text(tok, token->key), key, size) == 0)
            return &vocab->slots[i];
    }
}

uint32_t nl_tok_find(const struct nl_tokenizer *tok, const char *key, size_t size)
{
    return slot(tok, key, size, false)->id;
}

uint32_t nl_tok_find_content(const struct nl_tokenizer *tok, const char *content, size_t size)
{
    if (!tok->raw)
        return nl_tok_find(tok, content, size);
    struct nl_buf bytes = {0};
    bool mapped = nl_tok_chars_to_bytes(content, size, &bytes);
    uint32_t id = mapped ? nl_tok_find(tok, bytes.size ? bytes.data : "", bytes.size)
                         : slot(tok, content, size, true)->id;
    nl_buf_free(&bytes);
    return id;
}

bool nl_tok_content(const struct nl_tokenizer *tok, uint32_t id, struct nl_buf *out)
{
    if (id >= tok->vocab.n_ids || !tok->vocab.tokens[id].used)
        return false;
    const struct tok_token *token = &tok->vocab.tokens[id];
    if (tok->raw && !token->unmapped)
        nl_tok_bytes_to_chars(tok_text(tok, token->key), token->key.size, out);
    else
        nl_buf_add(out, tok_text(tok, token->key), token->key.size);
    return true;
}

/* An object's key with U+0000 as one byte; NUL-terminated in *out. */
static void copy_key(const struct nl_json *member, struct nl_buf *out)
{
    nl_buf_clear(out);
    const char *key = nl_json_key(member);
    for (const char *zero; (zero = strstr(key, "\xc0\x80")); key = zero + 2) {
        nl_buf_add(out, key, (size_t)(zero - key));
        nl_buf_putc(out, '\0');
    }
    nl_buf_puts(out, key);
}

static int set_token(struct nl_tokenizer *tok, const struct nl_buf *content, struct nl_buf *bytes,
                     uint32_t id, struct nl_error *error)
{
    struct tok_token *token = &tok->vocab.tokens[id];
    const struct nl_buf *key = content;
    nl_buf_clear(bytes);
    nl_buf_add(bytes, "", 0);
    if (tok->raw && nl_tok_chars_to_bytes(content->data, content->size, bytes))
        key = bytes;
    if (nl_buf_check(bytes, "vocabulary", error) != 0 || nl_buf_check(content, "vocabulary", error) != 0)
        return -1;
    token->unmapped = tok->raw && key == content;
    if (token->used)
        return nl_fail(error, NL_DATA, "two tokens have the id %u: model.vocab", id);
    token->used = true;
    if (nl_tok_intern(tok, key->data, key->size, &token->key, error) != 0)
        return -1;
    *slot(tok, key->data, key->size, token->unmapped) = (struct tok_slot){hash(key->data, key->size), id};
    return 0;
}

static int allocate(struct tok_vocab *vocab, uint64_t count, uint64_t n_ids, struct nl_error *error)
{
    uint32_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    vocab->tokens = calloc(n_ids ? n_ids : 1, sizeof *vocab->tokens);
    vocab->slots = malloc(slots * sizeof *vocab->slots);
    if (!vocab->tokens || !vocab->slots)
        return nl_fail_memory(error, "vocabulary");
    memset(vocab->slots, 0xff, slots * sizeof *vocab->slots);
    vocab->mask = slots - 1;
    vocab->n_ids = (uint32_t)n_ids;
    vocab->size = (uint32_t)count;
    return 0;
}

int nl_tok_load_vocab(struct nl_tokenizer *tok, const struct nl_json *object, struct nl_error *error)
{
    if (!nl_json_is(object, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "no object model.vocab");
    uint64_t count = 0, n_ids = 0;
    for (const struct nl_json *member = nl_json_first(object); member;
         member = nl_json_next(member), count++) {
        int64_t id;
        if (!nl_json_integer(member, 0, NL_TOK_LARGEST_ID, &id))
            return nl_fail(error, NL_DATA, "not an id from 0 to %d: model.vocab[\"%.100s\"]",
                           NL_TOK_LARGEST_ID, nl_json_key(member));
        if ((uint64_t)id >= n_ids)
            n_ids = (uint64_t)id + 1;
    }
    if (allocate(&tok->vocab, count, n_ids, error) != 0)
        return -1;
    struct nl_buf content = {0}, bytes = {0};
    int result = 0;
    for (const struct nl_json *member = nl_json_first(object); member && result == 0;
         member = nl_json_next(member)) {
        int64_t id = 0;
        nl_json_integer(member, 0, NL_TOK_LARGEST_ID, &id);
        copy_key(member, &content);
        result = set_token(tok, &content, &bytes, (uint32_t)id, error);
    }
    nl_buf_free(&content);
    nl_buf_free(&bytes);
    return result;
}

int nl_tok_load_scored_vocab(struct nl_tokenizer *tok, const struct nl_json *array, struct nl_error *error)
{
    if (!nl_json_is(array, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "no array model.vocab");
    size_t count = nl_json_count(array);
    if (count > NL_TOK_LARGEST_ID)
        return nl_fail(error, NL_DATA, "more than %d tokens: model.vocab", NL_TOK_LARGEST_ID);
    tok->lexicon.scores = malloc((count ? count : 1) * sizeof *tok->lexicon.scores);
    if (!tok->lexicon.scores)
        return nl_fail_memory(error, "vocabulary");
    if (allocate(&tok->vocab, count, count, error) != 0)
        return -1;
    struct nl_buf content = {0}, bytes = {0};
    uint32_t id = 0;
    int result = 0;
    for (const struct nl_json *pair = nl_json_first(array); pair && result == 0; pair = nl_json_next(pair)) {
        const struct nl_json *key = nl_json_is(pair, NL_JSON_ARRAY) ? nl_json_first(pair) : NULL,
                             *score = key ? nl_json_next(key) : NULL;
        if (!nl_json_is(key, NL_JSON_STRING) || !nl_json_is(score, NL_JSON_NUMBER) || nl_json_next(score)) {
            result = nl_fail(error, NL_DATA, "not a token and its score: model.vocab[%u]", id);
            break;
        }
        nl_buf_clear(&content);
        nl_buf_add(&content, "", 0);
        nl_json_copy_string(key, &content);
        tok->lexicon.scores[id] = nl_json_number(score);
        result = set_token(tok, &content, &bytes, id++, error);
    }
    nl_buf_free(&content);
    nl_buf_free(&bytes);
    return result;
}
