/* Long words: the queue of merges against a sorted array, the merges themselves against the definition. */
#include "test.h"

#include <unistd.h>

#include "tok.h"

static uint64_t state = 11;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static int compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Some candidates at first, then at times a new one before or behind the last that came out. */
static void check_queue(size_t n_first, uint32_t base, uint32_t n_ranks, uint32_t n_positions)
{
    static struct tok_queue queue;
    struct nl_error error;
    uint64_t *all = calloc(2 * n_first + 1, sizeof *all), candidate;
    size_t n = 0, at = 0;
    assert_non_null(all);
    nl_tok_queue_start(&queue);
    for (; n < n_first; n++) {
        all[n] = tok_candidate(base + draw(n_ranks), draw(n_positions));
        assert_int_equal(nl_tok_queue_push(&queue, all[n], &error), 0);
    }
    qsort(all, n, sizeof *all, compare);
    while (nl_tok_queue_pop(&queue, &candidate, &error) == 1) {
        assert_true(at < n);
        assert_true(candidate == all[at]);
        at++;
        /* A position that no other has, so that it can be told from the array alone what comes next. */
        if (n < 2 * n_first && draw(n_first > 5000 ? 200 : 3) == 0) {
            uint32_t rank = draw(2) ? base + draw(n_ranks) : draw(base + n_ranks);
            uint64_t new = tok_candidate(rank, n_positions + (uint32_t)n);
            size_t place = at;
            while (place < n && all[place] < new)
                place++;
            memmove(all + place + 1, all + place, (n - place) * sizeof *all);
            all[place] = new;
            n++;
            assert_int_equal(nl_tok_queue_push(&queue, new, &error), 0);
        }
    }
    assert_int_equal(at, n);
    free(all);
    if (n_first == 0)
        nl_tok_queue_free(&queue);
}

static void test_queue(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 200; i++) {
        check_queue(1 + draw(300), 0, 1 + draw(200), 1 + draw(1000));
        check_queue(1 + draw(300), 0, 1u << draw(31), 1 + draw(1000));
    }
    check_queue(100000, 0, 3, 1u << 20);
    check_queue(100000, 0, 500000, 1u << 20);
    check_queue(100000, 50000, 200, 1u << 20); /* such are dealt into finer buckets */
    check_queue(100000, 500000, 100, 300);
    check_queue(0, 0, 1, 1);
}

enum { LETTERS = 4, MOST_TOKENS = 60, MOST_MERGES = 150, MOST_SYMBOLS = 200 };
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

static struct nl_tokenizer *open_model(const struct model *model)
{
    char path[] = "/tmp/nl-tok-merge-XXXXXX";
    struct nl_error error;
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
    fprintf(file, "]}}");
    assert_int_equal(fclose(file), 0);
    struct nl_tokenizer *tok = nl_tokenizer_open(path, &error);
    unlink(path);
    if (!tok)
        fail_msg("%s", error.message);
    return tok;
}

/* Again and again the merge of lowest rank, leftmost. */
static size_t merge(const struct model *model, uint32_t *ids, size_t n)
{
    for (;;) {
        unsigned best = model->n_merges;
        size_t place = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (unsigned rank = 0; rank < best; rank++)
                if (model->merges[rank].left == ids[i] && model->merges[rank].right == ids[i + 1]) {
                    best = rank;
                    place = i;
                }
        if (best == model->n_merges)
            return n;
        ids[place] = model->merges[best].made;
        n--;
        memmove(ids + place + 1, ids + place + 2, (n - place - 1) * sizeof *ids);
    }
}

static void test_merges(void **unused)
{
    (void)unused;
    struct nl_error error;
    for (unsigned round = 0; round < 40; round++) {
        struct model model;
        struct nl_ids got = {0};
        make_model(&model);
        struct nl_tokenizer *tok = open_model(&model);
        for (unsigned i = 0; i < 20; i++) {
            char text[MOST_SYMBOLS];
            uint32_t ids[MOST_SYMBOLS];
            size_t n = 1 + draw(MOST_SYMBOLS);
            uint32_t letters = 1 + draw(LETTERS);
            for (size_t at = 0; at < n; at++) {
                ids[at] = draw(letters);
                text[at] = (char)('a' + ids[at]);
            }
            got.count = 0;
            assert_int_equal(nl_tokenizer_encode(tok, text, n, 0, &got, &error), 0);
            size_t wanted = merge(&model, ids, n);
            assert_int_equal(got.count, wanted);
            assert_memory_equal(got.data, ids, wanted * sizeof *ids);
        }
        nl_ids_free(&got);
        nl_tokenizer_close(tok);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_queue), cmocka_unit_test(test_merges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
