/* Long words: merges against the definition. */
#include "test.h"

#include <limits.h>
#include <unistd.h>

#include "tok.h"
#include "utf8.h"

static uint64_t state = 11;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

enum { LETTERS = 4, MOST_TOKENS = 60, MOST_MERGES = 150 };
struct model {
    char tokens[MOST_TOKENS][40];
    unsigned n_tokens, n_merges;
    struct {
        unsigned left, right, made;
    } merges[MOST_MERGES];
};

/* Merges in an order that no trainer would give: a token may be used at a lower rank than it is made. */
static void make_model(struct model *model)
{
    memset(model, 0, sizeof *model);
    for (; model->n_tokens < LETTERS; model->n_tokens++)
        model->tokens[model->n_tokens][0] = (char)('a' + model->n_tokens);
    while (model->n_tokens < MOST_TOKENS) {
        const char *left = model->tokens[draw(model->n_tokens)],
                   *right = model->tokens[draw(model->n_tokens)];
        char made[80];
        snprintf(made, sizeof made, "%s%s", left, right);
        bool known = strlen(made) >= sizeof model->tokens[0];
        for (unsigned i = 0; i < model->n_tokens && !known; i++)
            known = strcmp(model->tokens[i], made) == 0;
        if (!known)
            strcpy(model->tokens[model->n_tokens++], made);
    }
    for (unsigned tries = 0; tries < 100000 && model->n_merges < MOST_MERGES; tries++) {
        unsigned left = draw(model->n_tokens), right = draw(model->n_tokens), made = 0;
        char text[80];
        snprintf(text, sizeof text, "%s%s", model->tokens[left], model->tokens[right]);
        while (made < model->n_tokens && strcmp(model->tokens[made], text) != 0)
            made++;
        for (unsigned i = 0; i < model->n_merges; i++)
            if (model->merges[i].left == left && model->merges[i].right == right)
                made = model->n_tokens;
        if (made < model->n_tokens) {
            model->merges[model->n_merges].left = left;
            model->merges[model->n_merges].right = right;
            model->merges[model->n_merges++].made = made;
        }
    }
}

/* Ends a tokenizer.json after its merges, and opens it. */
static struct nl_tokenizer *finish_model(FILE *file, const char *path)
{
    struct nl_error error;
    fprintf(file, "]}}");
    assert_int_equal(fclose(file), 0);
    struct nl_tokenizer *tok = nl_tokenizer_open(path, &error);
    unlink(path);
    if (!tok)
        fail_msg("%s", error.message);
    return tok;
}

static struct nl_tokenizer *open_model(const struct model *model)
{
    char path[] = "/tmp/nl-tok-merge-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fprintf(file,
            "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},"
            "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (unsigned i = 0; i < model->n_tokens; i++)
        fprintf(file, "%s\"%s\":%u", i ? "," : "", model->tokens[i], i);
    fprintf(file, "},\"merges\":[");
    for (unsigned i = 0; i < model->n_merges; i++)
        fprintf(file, "%s\"%s %s\"", i ? "," : "", model->tokens[model->merges[i].left],
                model->tokens[model->merges[i].right]);
    return finish_model(file, path);
}

static unsigned rank_of(const struct model *model, uint32_t left, uint32_t right)
{
    for (unsigned rank = 0; rank < model->n_merges; rank++)
        if (model->merges[rank].left == left && model->merges[rank].right == right)
            return rank;
    return UINT_MAX;
}

/* Again and again the merge of lowest rank, leftmost. */
static size_t merge(const struct model *model, uint32_t *ids, size_t n)
{
    unsigned *ranks = malloc((n + 1) * sizeof *ranks);
    assert_non_null(ranks);
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = rank_of(model, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            best = ranks[i] < ranks[best] ? i : best;
        if (ranks[best] == UINT_MAX)
            break;
        ids[best] = model->merges[ranks[best]].made;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        memmove(ranks + best, ranks + best + 1, (n - best) * sizeof *ranks);
        if (best > 0)
            ranks[best - 1] = rank_of(model, ids[best - 1], ids[best]);
        if (best + 1 < n)
            ranks[best] = rank_of(model, ids[best], ids[best + 1]);
    }
    free(ranks);
    return n;
}

static void check(struct nl_tokenizer *tok, const struct model *model, size_t n)
{
    struct nl_error error;
    struct nl_ids got = {0};
    char *text = malloc(n);
    uint32_t *ids = malloc(n * sizeof *ids), letters = 1 + draw(LETTERS);
    assert_non_null(text);
    assert_non_null(ids);
    for (size_t at = 0; at < n; at++) {
        ids[at] = draw(letters);
        text[at] = (char)('a' + ids[at]);
    }
    assert_int_equal(nl_tokenizer_encode(tok, text, n, 0, &got, &error), 0);
    size_t wanted = merge(model, ids, n);
    assert_int_equal(got.count, wanted);
    assert_memory_equal(got.data, ids, wanted * sizeof *ids);
    nl_ids_free(&got);
    free(ids);
    free(text);
}

static void test_merges(void **unused)
{
    (void)unused;
    for (unsigned round = 0; round < 40; round++) {
        struct model model;
        make_model(&model);
        struct nl_tokenizer *tok = open_model(&model);
        for (unsigned i = 0; i < 20; i++)
            check(tok, &model, 1 + draw(200));
        check(tok, &model, 1 + draw(8000)); /* in windows */
        nl_tokenizer_close(tok);
    }
}

/* Characters each of which joins the next, the later the sooner: how the last one finds its partner decides
 * over all of them. So nothing is sure before the end, whatever the windows are. */
static void check_chain(struct nl_tokenizer *tok, size_t links, size_t n)
{
    struct nl_error error;
    struct nl_ids got = {0};
    struct nl_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        char bytes[4];
        nl_buf_add(&text, bytes, nl_utf8_put(0x4e00 + (uint32_t)(i % links), bytes));
    }
    assert_int_equal(nl_tokenizer_encode(tok, text.data, text.size, 0, &got, &error), 0);
    size_t at = 0, id = 0;
    for (size_t begin = 0; begin < n; begin += links) {
        size_t end = begin + links < n ? begin + links : n, i = begin;
        for (size_t step = 1 + ((end - i) % 2 == 0); i < end; i += step, step = 2, at++) {
            id = step == 1 ? i - begin : links + (i - begin);
            assert_true(at < got.count);
            assert_int_equal(got.data[at], id);
        }
    }
    assert_int_equal(at, got.count);
    nl_buf_free(&text);
    nl_ids_free(&got);
}

static void test_chain(void **unused)
{
    (void)unused;
    enum { LINKS = 9001 };
    char path[] = "/tmp/nl-tok-chain-XXXXXX", a[5] = "", b[5] = "";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fprintf(file, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (unsigned i = 0; i < LINKS; i++) {
        a[nl_utf8_put(0x4e00 + i, a)] = '\0';
        fprintf(file, "\"%s\":%u,", a, i);
    }
    for (unsigned i = 0; i + 1 < LINKS; i++) {
        a[nl_utf8_put(0x4e00 + i, a)] = b[nl_utf8_put(0x4e01 + i, b)] = '\0';
        fprintf(file, "%s\"%s%s\":%u", i ? "," : "", a, b, LINKS + i);
    }
    fprintf(file, "},\"merges\":[");
    for (unsigned i = LINKS - 1; i-- > 0;) {
        a[nl_utf8_put(0x4e00 + i, a)] = b[nl_utf8_put(0x4e01 + i, b)] = '\0';
        fprintf(file, "\"%s %s\"%s", a, b, i ? "," : "");
    }
    struct nl_tokenizer *tok = finish_model(file, path);
    for (unsigned i = 0; i < 50; i++)
        check_chain(tok, LINKS, 1 + draw(3 * LINKS));
    check_chain(tok, LINKS, 100 * LINKS);
    nl_tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_merges), cmocka_unit_test(test_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
