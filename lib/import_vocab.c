#include <math.h>
#include <stdlib.h>

#include "import_parts.h"
#include "utf8.h"

static int compare_strings(const struct nl_gguf_string *a, const struct nl_gguf_string *b)
{
    int result = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    return result ? result : (a->size > b->size) - (a->size < b->size);
}

static int compare_indices(const void *a, const void *b, void *tokens)
{
    const struct nl_gguf_string *list = tokens;
    return compare_strings(&list[*(const uint32_t *)a], &list[*(const uint32_t *)b]);
}

static int check_token(const struct nl_gguf_string *token, size_t index, const char *name,
                       struct nl_error *error)
{
    if (token->size > NL_MAX_TOKEN)
        return nl_fail(error, NL_DATA, "token %zu is longer than %d bytes: %s", index, NL_MAX_TOKEN, name);
    const uint8_t *bytes = (const uint8_t *)token->data;
    for (size_t at = 0; at < token->size;) {
        size_t length = nl_utf8_length(bytes + at, token->size - at);
        if (length == 0)
            return nl_fail(error, NL_DATA, "token %zu is not UTF-8: %s", index, name);
        at += length;
    }
    return 0;
}

int nl_vocab_init(struct nl_vocab *vocab, const struct nl_gguf_string *tokens, size_t count, const char *name,
                  struct nl_error *error)
{
    *vocab = (struct nl_vocab){.tokens = tokens, .count = count};
    for (size_t i = 0; i < count; i++)
        if (check_token(&tokens[i], i, name, error) != 0)
            return -1;
    if (count > UINT32_MAX || !(vocab->order = calloc(count ? count : 1, sizeof *vocab->order)))
        return nl_fail_memory(error, name);
    for (size_t i = 0; i < count; i++)
        vocab->order[i] = (uint32_t)i;
    qsort_r(vocab->order, count, sizeof *vocab->order, compare_indices, (void *)(uintptr_t)tokens);
    for (size_t i = 1; i < count; i++) {
        uint32_t a = vocab->order[i - 1], b = vocab->order[i];
        if (compare_strings(&tokens[a], &tokens[b]) == 0)
            return nl_fail(error, NL_DATA, "tokens %u and %u are the same: %s", a, b, name);
    }
    return 0;
}

void nl_vocab_free(struct nl_vocab *vocab)
{
    free(vocab->order);
    vocab->order = NULL;
}

bool nl_vocab_find(const struct nl_vocab *vocab, const char *string, size_t size, uint32_t *index)
{
    struct nl_gguf_string wanted = {string, size};
    size_t low = 0, high = vocab->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_strings(&wanted, &vocab->tokens[vocab->order[middle]]);
        if (order == 0) {
            *index = vocab->order[middle];
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

int nl_merges_parse(const struct nl_vocab *vocab, const struct nl_gguf_string *strings, size_t count,
                    struct nl_merge *out, const char *name, struct nl_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = strings[i].data, *end = text + strings[i].size;
        const char *blank = memchr(text, ' ', strings[i].size);
        char whole[2 * NL_MAX_TOKEN];
        if (!blank || memchr(blank + 1, ' ', (size_t)(end - blank - 1)))
            return nl_fail(error, NL_DATA, "merge %zu is not two tokens: %s", i, name);
        size_t left = (size_t)(blank - text), right = (size_t)(end - blank - 1);
        if (left > NL_MAX_TOKEN || right > NL_MAX_TOKEN || !nl_vocab_find(vocab, text, left, &out[i].left) ||
            !nl_vocab_find(vocab, blank + 1, right, &out[i].right))
            return nl_fail(error, NL_DATA, "merge %zu has a part that is no token: %s", i, name);
        memcpy(whole, text, left);
        memcpy(whole + left, blank + 1, right);
        if (!nl_vocab_find(vocab, whole, left + right, &out[i].whole))
            return nl_fail(error, NL_DATA, "merge %zu makes no token: %s", i, name);
    }
    return 0;
}

struct scored {
    float score;
    struct nl_merge merge;
};

static int compare_scored(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    const uint32_t p[] = {x->merge.whole, x->merge.left, x->merge.right};
    const uint32_t q[] = {y->merge.whole, y->merge.left, y->merge.right};
    for (int i = 0; i < 3; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Adds all ways to cut a token to a buffer of struct scored. */
static void add_cuts(const struct nl_vocab *vocab, uint32_t whole, float score, struct nl_buf *out)
{
    const struct nl_gguf_string *token = &vocab->tokens[whole];
    for (size_t cut = 1; cut < token->size; cut++) {
        struct scored item = {score, {.whole = whole}};
        if (((uint8_t)token->data[cut] & 0xc0) == 0x80) /* inside a character */
            continue;
        if (nl_vocab_find(vocab, token->data, cut, &item.merge.left) &&
            nl_vocab_find(vocab, token->data + cut, token->size - cut, &item.merge.right))
            nl_buf_add(out, &item, sizeof item);
    }
}

int nl_merges_from_scores(const struct nl_vocab *vocab, const struct nl_gguf_pair *scores,
                          struct nl_merge **out, size_t *count, const char *name, struct nl_error *error)
{
    struct nl_buf items = {0};
    for (size_t i = 0; i < vocab->count; i++) {
        float score = nl_gguf_f32_at(scores, i);
        if (!isfinite(score)) {
            nl_buf_free(&items);
            return nl_fail(error, NL_DATA, "score of token %zu is not finite: %s", i, name);
        }
        add_cuts(vocab, (uint32_t)i, score, &items);
    }
    struct scored *list = (struct scored *)(void *)items.data;
    *count = items.size / sizeof *list;
    *out = items.failed ? NULL : calloc(*count ? *count : 1, sizeof **out);
    if (*out && *count) {
        qsort(list, *count, sizeof *list, compare_scored);
        for (size_t i = 0; i < *count; i++)
            (*out)[i] = list[i].merge;
    }
    nl_buf_free(&items);
    return *out ? 0 : nl_fail_memory(error, name);
}
