/*
 * Added tokens: found in the text before anything else, leftmost first, of those that begin there the
 * longest.
 *
 * A pass's patterns are sorted; walking along the text narrows the range of those that agree so far, so that
 * a place where none begins costs one look into a table.
 */
#include <stdlib.h>

#include "tok.h"
#include "unicode.h"

static struct tok_added_token *find_content(const struct nl_tokenizer *tok, const char *content, size_t size)
{
    for (uint32_t i = 0; i < tok->added.count; i++) {
        struct tok_added_token *token = &tok->added.tokens[i];
        if (token->content.size == size && memcmp(tok_text(tok, token->content), content, size) == 0)
            return token;
    }
    return NULL;
}

/* The id a token gets, by the reference's rule, which does not look at the "id" in the file: the model's, an
   older added token's of the same content, else the next free one. */
static uint32_t assign_id(const struct nl_tokenizer *tok, const char *content, size_t size)
{
    uint32_t id = nl_tok_find_content(tok, content, size);
    if (id != NL_TOK_NONE)
        return id;
    const struct tok_added_token *same = find_content(tok, content, size);
    if (same)
        return same->id;
    uint32_t next = tok->vocab.size;
    for (uint32_t i = 0; i < tok->added.count; i++)
        if (tok->added.tokens[i].id >= next)
            next = tok->added.tokens[i].id + 1;
    return next;
}

static int append_token(struct nl_tokenizer *tok, const char *content, size_t size,
                        struct tok_added_token *token, struct nl_error *error)
{
    struct tok_added *added = &tok->added;
    token->id = assign_id(tok, content, size);
    if (token->id > NL_TOK_LARGEST_ID)
        return nl_fail(error, NL_DATA, "id out of range: added_tokens: %.100s", content);
    if (nl_tok_intern(tok, content, size, &token->content, error) != 0)
        return -1;
    struct tok_added_token *tokens = realloc(added->tokens, (added->count + 1) * sizeof *tokens);
    if (!tokens)
        return nl_fail_memory(error, "added tokens");
    added->tokens = tokens;
    tokens[added->count++] = *token;
    return 0;
}

int nl_tok_add_token(struct nl_tokenizer *tok, const struct nl_json *object, struct nl_error *error)
{
    struct tok_added_token token = {0};
    struct nl_buf content = {0};
    int got = nl_tok_json_string(object, "content", &content, error);
    if (got == 0)
        got = nl_fail(error, NL_DATA, "an added token without content");
    if (got < 0 || nl_tok_json_bool(object, "special", false, &token.special, error) != 0 ||
        nl_tok_json_bool(object, "single_word", false, &token.single_word, error) != 0 ||
        nl_tok_json_bool(object, "lstrip", false, &token.lstrip, error) != 0 ||
        nl_tok_json_bool(object, "rstrip", false, &token.rstrip, error) != 0 ||
        nl_tok_json_bool(object, "normalized", !token.special, &token.normalized, error) != 0 ||
        (content.size > 0 && append_token(tok, content.data, content.size, &token, error) != 0))
        got = -1;
    nl_buf_free(&content);
    return got < 0 ? -1 : 0;
}

int nl_tok_load_added(struct nl_tokenizer *tok, const struct nl_json *array, struct nl_error *error)
{
    if (!array || nl_json_is(array, NL_JSON_NULL))
        return 0;
    if (!nl_json_is(array, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "not an array: added_tokens");
    for (const struct nl_json *token = nl_json_first(array); token; token = nl_json_next(token))
        if (nl_tok_add_token(tok, token, error) != 0)
            return -1;
    return 0;
}

struct sorting {
    const struct nl_tokenizer *tok;
    bool by_id;
};

static int compare(const void *a, const void *b, void *context)
{
    const struct sorting *sorting = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct tok_added_token *x = &sorting->tok->added.tokens[i], *y = &sorting->tok->added.tokens[j];
    if (sorting->by_id) {
        if (x->id != y->id)
            return x->id < y->id ? -1 : 1;
        return i < j ? -1 : i > j;
    }
    uint32_t size = x->pattern.size < y->pattern.size ? x->pattern.size : y->pattern.size;
    int order = memcmp(tok_text(sorting->tok, x->pattern), tok_text(sorting->tok, y->pattern), size);
    if (order == 0)
        order = x->pattern.size < y->pattern.size ? -1 : x->pattern.size > y->pattern.size;
    if (order == 0 && x->special != y->special) /* special ones come first in the reference's list */
        order = x->special ? -1 : 1;
    return order ? order : i < j ? -1 : i > j;
}

static void note_starts(const struct nl_tokenizer *tok, struct tok_matcher *matcher)
{
    matcher->only = -1;
    for (uint32_t i = 0; i < matcher->count; i++) {
        struct tok_string pattern = tok->added.tokens[matcher->order[i]].pattern;
        const unsigned char *bytes = (const unsigned char *)tok_text(tok, pattern);
        matcher->only = i == 0 || matcher->only == bytes[0] ? bytes[0] : -1;
        for (unsigned second = 0; second < 256; second++)
            if (pattern.size == 1 || bytes[1] == second) {
                unsigned bit = bytes[0] | second << 8;
                matcher->pairs[bit / 64] |= UINT64_C(1) << bit % 64;
            }
    }
}

static int build_pass(struct nl_tokenizer *tok, unsigned pass, struct nl_error *error)
{
    struct tok_added *added = &tok->added;
    struct tok_matcher *matcher = &added->passes[pass];
    matcher->order = malloc((added->count ? added->count : 1) * sizeof *matcher->order);
    if (!matcher->order)
        return nl_fail_memory(error, "added tokens");
    for (uint32_t i = 0; i < added->count; i++)
        if (added->tokens[i].normalized == (pass == 1) && added->tokens[i].pattern.size > 0)
            matcher->order[matcher->count++] = i;
    qsort_r(matcher->order, matcher->count, sizeof *matcher->order, compare, &(struct sorting){tok, false});
    uint32_t at = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        matcher->first[byte] = at;
        while (at < matcher->count &&
               (unsigned char)*tok_text(tok, added->tokens[matcher->order[at]].pattern) == byte)
            at++;
    }
    matcher->first[256] = at;
    note_starts(tok, matcher);
    return 0;
}

/* Each id's token: the last one that took it. */
static int build_by_id(struct nl_tokenizer *tok, struct nl_error *error)
{
    struct tok_added *added = &tok->added;
    added->by_id = malloc((added->count ? added->count : 1) * sizeof *added->by_id);
    if (!added->by_id)
        return nl_fail_memory(error, "added tokens");
    for (uint32_t i = 0; i < added->count; i++)
        added->by_id[i] = i;
    qsort_r(added->by_id, added->count, sizeof *added->by_id, compare, &(struct sorting){tok, true});
    for (uint32_t i = 0; i < added->count; i++) {
        uint32_t index = added->by_id[i], n = added->n_by_id;
        if (n > 0 && added->tokens[added->by_id[n - 1]].id == added->tokens[index].id)
            added->by_id[n - 1] = index;
        else
            added->by_id[added->n_by_id++] = index;
    }
    return 0;
}

/* The reference decodes an id to the normalized content, and leaves it out when that is a special token's
 * content. */
static bool is_hidden(const struct nl_tokenizer *tok, const struct tok_added_token *token)
{
    if (token->pattern.at == token->content.at)
        return token->special;
    const struct tok_added_token *other =
        find_content(tok, tok_text(tok, token->pattern), token->pattern.size);
    return other && other->special;
}

int nl_tok_build_added(struct nl_tokenizer *tok, struct nl_error *error)
{
    struct nl_encoder *encoder = nl_encoder_open(tok, error);
    if (!encoder)
        return -1;
    int result = 0;
    for (uint32_t i = 0; i < tok->added.count && result == 0; i++) {
        struct tok_added_token *token = &tok->added.tokens[i];
        token->pattern = token->content;
        if (!token->normalized || tok->normalizers.count == 0)
            continue;
        const char *text;
        size_t size;
        result = nl_tok_normalize(encoder, tok_text(tok, token->content), token->content.size, &text, &size,
                                  error);
        if (result == 0)
            result = nl_tok_intern(tok, text, size, &token->pattern, error);
    }
    nl_encoder_close(encoder);
    for (uint32_t i = 0; i < tok->added.count && result == 0; i++)
        tok->added.tokens[i].hidden = is_hidden(tok, &tok->added.tokens[i]);
    if (result != 0 || build_pass(tok, 0, error) != 0 || build_pass(tok, 1, error) != 0)
        return -1;
    return build_by_id(tok, error);
}

const struct tok_added_token *nl_tok_added_by_id(const struct nl_tokenizer *tok, uint32_t id)
{
    const struct tok_added *added = &tok->added;
    uint32_t low = 0, high = added->n_by_id;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (added->tokens[added->by_id[middle]].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == added->n_by_id || added->tokens[added->by_id[low]].id != id)
        return NULL;
    return &added->tokens[added->by_id[low]];
}

const struct tok_added_token *nl_tok_added_by_content(const struct nl_tokenizer *tok, const char *content,
                                                      size_t size)
{
    return find_content(tok, content, size);
}

/* The byte at `depth` of the i-th pattern, -1 behind its end. */
static int byte_at(const struct tok_cut *cut, const struct tok_matcher *matcher, uint32_t i, size_t depth)
{
    struct tok_string pattern = cut->tokenizer->added.tokens[matcher->order[i]].pattern;
    return depth < pattern.size ? (unsigned char)tok_text(cut->tokenizer, pattern)[depth] : -1;
}

/* The first pattern in [low, high) whose byte at `depth` is at least `byte`. */
static uint32_t lower_bound(const struct tok_cut *cut, const struct tok_matcher *matcher, uint32_t low,
                            uint32_t high, size_t depth, int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (byte_at(cut, matcher, middle, depth) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that the text has at `at`, NULL when none. */
static const struct tok_added_token *match_here(const struct tok_cut *cut, size_t at, size_t *size)
{
    const struct tok_matcher *matcher = &cut->tokenizer->added.passes[cut->pass];
    unsigned char first = (unsigned char)cut->text[at];
    uint32_t low = matcher->first[first], high = matcher->first[first + 1];
    const struct tok_added_token *best = NULL;
    for (size_t depth = 1; low < high; depth++) {
        if (byte_at(cut, matcher, low, depth) < 0) { /* it ends here, and sorts before its continuations */
            best = &cut->tokenizer->added.tokens[matcher->order[low]];
            *size = depth;
        }
        if (at + depth == cut->length)
            break;
        int byte = (unsigned char)cut->text[at + depth];
        low = lower_bound(cut, matcher, low, high, depth, byte);
        high = lower_bound(cut, matcher, low, high, depth, byte + 1);
    }
    return best;
}

static bool stands_alone(const struct tok_cut *cut, size_t begin, size_t end)
{
    unsigned size;
    if (begin > 0 && nl_unicode_is_word(nl_utf8_get(cut->text + nl_utf8_back(cut->text, begin), &size)))
        return false;
    return end == cut->length || !nl_unicode_is_word(nl_utf8_get(cut->text + end, &size));
}

/* Takes in the white space around a token, on the left back to what the token before took. */
static void widen(const struct tok_cut *cut, const struct tok_added_token *token, size_t *begin, size_t *end)
{
    unsigned size;
    size_t start = *begin;
    while (token->lstrip && start > 0) {
        size_t before = nl_utf8_back(cut->text, start);
        if (!nl_unicode_is_space(nl_utf8_get(cut->text + before, &size)))
            break;
        start = before;
    }
    if (token->lstrip)
        *begin = start > cut->done ? start : cut->done;
    while (token->rstrip && *end < cut->length && nl_unicode_is_space(nl_utf8_get(cut->text + *end, &size)))
        *end += size;
}

/* The first place from cut->at on where a pattern may begin; cut->length when none. */
static size_t next_start(const struct tok_cut *cut, const struct tok_matcher *matcher)
{
    const unsigned char *text = (const unsigned char *)cut->text;
    for (size_t at = cut->at; at < cut->length; at++) {
        if (matcher->only >= 0) {
            const unsigned char *found = memchr(text + at, matcher->only, cut->length - at);
            if (!found)
                break;
            at = (size_t)(found - text);
        }
        unsigned bit = text[at] | (at + 1 < cut->length ? text[at + 1] : 0u) << 8;
        if (at + 1 == cut->length || (matcher->pairs[bit / 64] >> bit % 64 & 1))
            return at;
    }
    return cut->length;
}

/* As the reference: a token that is refused still takes its place, and one that begins in the white space
   which the one before took counts all the same. */
int nl_tok_next_piece(struct tok_cut *cut, size_t *begin, size_t *end, const struct tok_added_token **token)
{
    const struct tok_matcher *matcher = &cut->tokenizer->added.passes[cut->pass];
    *begin = cut->done;
    *token = NULL;
    for (; matcher->count > 0 && cut->at < cut->length; cut->at++) {
        size_t size = 0;
        cut->at = next_start(cut, matcher);
        if (cut->at == cut->length)
            break;
        const struct tok_added_token *found = match_here(cut, cut->at, &size);
        if (!found)
            continue;
        size_t start = cut->at, stop = start + size;
        const struct tok_added_token *now = nl_tok_added_by_id(cut->tokenizer, found->id);
        if ((cut->plain && now->special) || (now->single_word && !stands_alone(cut, start, stop))) {
            cut->at = stop - 1;
            continue;
        }
        widen(cut, now, &start, &stop);
        if (start >= stop) { /* all of it was taken by the token before */
            cut->at += size - 1;
            cut->done = stop;
            continue;
        }
        if (cut->done < start) { /* the text before it first; the token is found again */
            *end = start;
            cut->done = start;
            return 1;
        }
        cut->at += size;
        cut->done = *end = stop;
        *token = now;
        return 1;
    }
    *end = cut->length;
    cut->done = cut->length;
    return *begin < *end;
}
