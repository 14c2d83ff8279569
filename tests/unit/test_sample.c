/* The cases of tests/data/sampling (made by transformers), and the choice: greedy, draws, seeds. */
#include "test.h"

#include <math.h>

#include "file.h"
#include "json.h"
#include "rng.h"
#include "sample.h"
#include "sample_math.h"

enum { MOST = 1000 };

static struct nl_sampler *new_sampler(void)
{
    struct nl_error error;
    struct nl_sampler *sampler = nl_sampler_open(&error);
    assert_non_null(sampler);
    return sampler;
}

static void add(struct nl_sampler *sampler, const char *name, const char *value)
{
    struct nl_error error = {0};
    if (nl_sampler_add(sampler, name, value, &error) != 0)
        fail_msg("%s", error.message);
}

static float number_of(const struct nl_json *value)
{
    if (nl_json_is(value, NL_JSON_STRING))
        return strtof(nl_json_string(value), NULL);
    return (float)nl_json_number(value);
}

static size_t floats_of(const struct nl_json *list, float *out)
{
    size_t n = 0;
    if (nl_json_is(list, NL_JSON_OBJECT)) {
        n = (size_t)nl_json_number(nl_json_get(list, "n"));
        assert_true(n <= MOST);
        for (size_t i = 0; i < n; i++)
            out[i] = number_of(nl_json_get(list, "fill"));
        return n;
    }
    for (const struct nl_json *item = nl_json_first(list); item; item = nl_json_next(item)) {
        assert_true(n < MOST);
        out[n++] = number_of(item);
    }
    return n;
}

/* What one case gives here. */
struct outcome {
    int status; /* of the first call that failed, else 0 */
    struct nl_error error;
    size_t n;
    float logits[MOST], probs[MOST];
    uint32_t choice;
    bool greedy;
};

static int run_chain(const struct nl_json *chain, struct nl_sampler *sampler, struct nl_error *error)
{
    for (const struct nl_json *step = nl_json_first(chain); step; step = nl_json_next(step)) {
        const struct nl_json *name = nl_json_first(step);
        char value[40];
        snprintf(value, sizeof value, "%.17g", nl_json_number(nl_json_next(name)));
        const char *text = nl_json_string(name);
        if (nl_sampler_add(sampler, strcmp(text, "no_repeat_ngram") == 0 ? "no_repeat_ngram_size" : text,
                           value, error))
            return -1;
    }
    return 0;
}

static void run_case(const struct nl_json *line, struct outcome *out)
{
    struct nl_sampler *sampler = new_sampler();
    uint32_t ids[MOST];
    struct nl_history history = {.ids = ids};
    const struct nl_json *seen = nl_json_get(line, "input_ids");
    for (const struct nl_json *item = seen ? nl_json_first(seen) : NULL; item; item = nl_json_next(item))
        ids[history.count++] = (uint32_t)nl_json_number(item);
    history.n_prompt = history.count;
    out->n = floats_of(nl_json_get(line, "logits"), out->logits);
    out->status = run_chain(nl_json_get(line, "chain"), sampler, &out->error);
    if (out->status == 0)
        out->status = nl_sampler_apply(sampler, out->logits, out->n, &history, &out->error);
    if (out->status == 0)
        out->status = nl_sampler_choose(sampler, out->logits, out->n, &history, &out->choice, &out->error);
    if (out->status == 0)
        nl_softmax(out->logits, out->n, out->probs);
    out->greedy = nl_sampler_is_greedy(sampler);
    nl_sampler_close(sampler);
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Where the reference's unstable sort decides which of equal ids stay, their number and probabilities count.
 */
static void check_probs(const char *id, const struct nl_json *line, struct outcome *out)
{
    const struct nl_json *note = nl_json_get(line, "note");
    bool any_order = note && strstr(nl_json_string(note), "sort order");
    float probs[MOST], want[MOST];
    bool kept[MOST] = {0};
    assert_int_equal(floats_of(nl_json_get(line, "probs"), want), out->n);
    const struct nl_json *list = nl_json_get(line, "kept");
    for (const struct nl_json *item = nl_json_first(list); item; item = nl_json_next(item))
        kept[(size_t)nl_json_number(item)] = true;
    for (size_t i = 0; i < out->n && !any_order; i++)
        if (kept[i] != (out->probs[i] > 0))
            fail_msg("%s: id %zu is %s", id, i, kept[i] ? "not kept" : "kept");
    memcpy(probs, out->probs, out->n * sizeof *probs);
    if (any_order) {
        qsort(probs, out->n, sizeof *probs, descending);
        qsort(want, out->n, sizeof *want, descending);
    }
    for (size_t i = 0; i < out->n; i++)
        if (!(fabsf(probs[i] - want[i]) <= 1e-6f))
            fail_msg("%s: probability %zu is %.9g, not %.9g", id, i, (double)probs[i], (double)want[i]);
}

static void check_argmax(const char *id, const struct nl_json *line, const struct outcome *out)
{
    size_t best = 0;
    for (size_t i = 1; i < out->n; i++)
        if (out->logits[i] > out->logits[best])
            best = i;
    if (best != (size_t)nl_json_number(nl_json_get(line, "argmax")))
        fail_msg("%s: the best is %zu", id, best);
    if (out->greedy && out->choice != best)
        fail_msg("%s: chose %u", id, out->choice);
}

static void check_draws(const char *id, const struct nl_json *line, const struct outcome *out)
{
    float weights[MOST];
    double total = nl_weights(out->logits, out->n, weights);
    const struct nl_json *draws = nl_json_get(line, "draws");
    for (const struct nl_json *draw = draws ? nl_json_first(draws) : NULL; draw; draw = nl_json_next(draw)) {
        double u = nl_json_number(nl_json_get(draw, "u"));
        size_t got = nl_inverse_transform(weights, out->n, total, u);
        if (got != (size_t)nl_json_number(nl_json_get(draw, "token")))
            fail_msg("%s: u = %.9g draws %zu", id, u, got);
    }
}

/* What nl-sample(1) says about the cases that the reference refuses. */
static void check_policy(const char *id, const struct outcome *out)
{
    if (strcmp(id, "topk_zero") == 0) {
        assert_int_equal(out->status, 0);
        assert_true(out->greedy && out->probs[0] > 0);
        assert_int_equal(out->choice, 1);
    } else if (strcmp(id, "temp_zero") == 0) {
        assert_int_equal(out->status, 0);
        assert_true(out->greedy && out->probs[2] == 1);
        assert_int_equal(out->choice, 2);
    } else if (strcmp(id, "temp_negative") == 0) {
        assert_int_equal(out->status, -1);
        assert_int_equal(out->error.code, NL_USAGE);
    } else if (strcmp(id, "nan") == 0) {
        assert_int_equal(out->status, -1);
        assert_int_equal(out->error.code, NL_DATA);
        assert_non_null(strstr(out->error.message, "NaN"));
    } else if (strcmp(id, "all_neg_inf") == 0) {
        assert_int_equal(out->status, -1);
        assert_int_equal(out->error.code, NL_DATA);
    } else if (strcmp(id, "pos_inf") == 0) {
        assert_int_equal(out->status, 0);
        assert_int_equal(out->choice, 1);
        assert_true(out->probs[0] == 0 && out->probs[1] == 1 && out->probs[2] == 0);
    } else {
        fail_msg("%s: no policy is written down here", id);
    }
}

static void reference_cases(void **state)
{
    (void)state;
    struct nl_buf text = {0};
    struct nl_error error = {0};
    if (nl_file_read("tests/data/sampling/cases.jsonl", 1 << 20, &text, &error) != 0)
        fail_msg("%s", error.message);
    struct outcome *out = malloc(sizeof *out);
    size_t n = 0;
    for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        struct nl_json *json = nl_json_parse(line, (size_t)(end - line), "cases.jsonl", &error);
        if (!json)
            fail_msg("%s", error.message);
        const char *id = nl_json_string(nl_json_get(json, "id"));
        run_case(json, out);
        if (nl_json_get(json, "policy")) {
            check_policy(id, out);
        } else if (out->status != 0) {
            fail_msg("%s: %s", id, out->error.message);
        } else {
            check_probs(id, json, out);
            check_argmax(id, json, out);
            check_draws(id, json, out);
        }
        nl_json_free(json);
    }
    assert_int_equal(n, 52);
    free(out);
    nl_buf_free(&text);
}

/* Random123's published vectors (kat_vectors, philox4x32 10). */
static void philox_known_answers(void **state)
{
    (void)state;
    static const uint32_t vectors[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e,
         0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
         0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4];
        nl_philox(vectors[i], vectors[i] + 4, out);
        assert_memory_equal(out, vectors[i] + 6, sizeof out);
    }
    assert_true(nl_uniform(0, 0, 0) == (double)((0x6627e8d5ull >> 5 << 26) + (0xe169c58dull >> 6)) * 0x1p-53);
    assert_true(nl_uniform(0xffffffffffffffff, 0xffffffffffffffff, 7) < 1);
}

/* The first id whose cumulative weight exceeds u times the total: at a border the next one. */
static void borders_of_the_transform(void **state)
{
    (void)state;
    const float weights[] = {0, 1, 0, 1, 2, 0};
    assert_int_equal(nl_inverse_transform(weights, 6, 4, 0), 1);
    assert_int_equal(nl_inverse_transform(weights, 6, 4, 0.2499), 1);
    assert_int_equal(nl_inverse_transform(weights, 6, 4, 0.25), 3);
    assert_int_equal(nl_inverse_transform(weights, 6, 4, 0.5), 4);
    assert_int_equal(nl_inverse_transform(weights, 6, 4, 1 - 0x1p-53), 4);
}

static void uniform_depends_on_all(void **state)
{
    (void)state;
    double base = nl_uniform(1, 2, 3);
    assert_true(base == nl_uniform(1, 2, 3));
    assert_true(base != nl_uniform(0, 2, 3) && base != nl_uniform(1ull << 40 | 1, 2, 3));
    assert_true(base != nl_uniform(1, 3, 3) && base != nl_uniform(1, 1ull << 40 | 2, 3));
    assert_true(base != nl_uniform(1, 2, 4));
}

/* Pearson's statistic of draws over positions and sequences against the softmax; seeds are fixed, so this
   either always passes or never. 27.88 is the 99.9 % point for 9 degrees of freedom. */
static void draws_follow_the_distribution(void **state)
{
    (void)state;
    static const float logits[10] = {0, 1, -1, 0.5f, 2, -0.5f, 1.5f, -2, 0.25f, 1};
    enum { POSITIONS = 200, SEQUENCES = 100 };
    float probs[10];
    nl_softmax(logits, 10, probs);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct nl_sampler *sampler = new_sampler();
        add(sampler, "temperature", "1");
        nl_sampler_set_seed(sampler, seed);
        double counts[10] = {0}, chi = 0;
        for (uint64_t sequence = 0; sequence < SEQUENCES; sequence++)
            for (size_t position = 1; position <= POSITIONS; position++) {
                struct nl_history history = {.count = position, .n_prompt = 1, .sequence = sequence};
                uint32_t id;
                struct nl_error error;
                assert_int_equal(nl_sampler_choose(sampler, logits, 10, &history, &id, &error), 0);
                counts[id]++;
            }
        for (int i = 0; i < 10; i++) {
            double expected = (double)probs[i] * POSITIONS * SEQUENCES;
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
        }
        if (!(chi < 27.88))
            fail_msg("seed %llu: chi-square %g", (unsigned long long)seed, chi);
        nl_sampler_close(sampler);
    }
}

static void what_asks_for_a_draw(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        bool greedy, plain;
    } rows[] = {
        {"temperature", "1", false, true},
        {"temperature", "0.5", false, false},
        {"temperature", "0", true, false},
        {"top-k", "40", false, false},
        {"top-k", "0", true, true},
        {"top_p", "0.9", false, false},
        {"top_p", "1", true, true},
        {"min-p", "0.1", false, false},
        {"typical-p", "0.9", false, false},
        {"epsilon-cutoff", "0.1", false, false},
        {"eta-cutoff", "0.1", false, false},
        {"top-n-sigma", "1", false, false},
        {"repetition-penalty", "2", true, false},
        {"no-repeat-ngram-size", "3", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nl_sampler *sampler = new_sampler();
        add(sampler, rows[i].name, rows[i].value);
        if (nl_sampler_is_greedy(sampler) != rows[i].greedy || nl_sampler_is_plain(sampler) != rows[i].plain)
            fail_msg("%s %s", rows[i].name, rows[i].value);
        if (!rows[i].greedy) {
            add(sampler, "temperature", "0");
            assert_true(nl_sampler_is_greedy(sampler));
        }
        nl_sampler_close(sampler);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_cases),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(borders_of_the_transform),
        cmocka_unit_test(uniform_depends_on_all),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(what_asks_for_a_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
