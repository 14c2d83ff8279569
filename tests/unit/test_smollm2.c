/* SmolLM2-135M-Instruct, a real model, against transformers: prompt ids, greedy ids, logits. */
#include "golden.h"

#include <math.h>

#include "tokenizer.h"

static const char *model_folder(void)
{
    const char *folder = getenv("NL_SMOLLM2");
    if (!folder) {
        print_message("no SmolLM2: see tests/model.sh\n");
        skip();
    }
    return folder;
}

static struct nl_engine *open_model(const char *isa)
{
    struct nl_error error = {0};
    struct nl_engine_options options = {.isa = isa, .context = 2048};
    struct nl_engine *engine = nl_engine_open(model_folder(), &options, &error);
    if (!engine)
        fail_msg("%s", error.message);
    return engine;
}

/* One line of golden.jsonl, or golden_long.json. */
struct expectation {
    struct nl_json *root;
    uint32_t *prompt, *greedy, *top_ids;
    size_t n_prompt, n_greedy, n_top;
};

static void parse_expectation(struct expectation *e, const char *text, size_t length)
{
    struct nl_error error = {0};
    e->root = nl_json_parse(text, length, "golden", &error);
    if (!e->root)
        fail_msg("%s", error.message);
    e->prompt = golden_ids(e->root, "prompt", &e->n_prompt);
    e->greedy = golden_ids(e->root, "greedy", &e->n_greedy);
    e->top_ids = golden_ids(nl_json_get(e->root, "top"), "ids", &e->n_top);
}

static void free_expectation(struct expectation *e)
{
    nl_json_free(e->root);
    free(e->prompt);
    free(e->greedy);
    free(e->top_ids);
}

static void check_logits(const struct expectation *e, const float *logits, uint32_t vocab_size)
{
    const struct nl_json *value = nl_json_first(nl_json_get(nl_json_get(e->root, "top"), "logits"));
    for (size_t i = 0; i < e->n_top; i++, value = nl_json_next(value))
        assert_true(fabs(logits[e->top_ids[i]] - nl_json_number(value)) < 3e-4);
    for (uint32_t i = 0; i < vocab_size; i++) /* the five best are these */
        if (logits[i] > logits[e->top_ids[4]])
            assert_true(i == e->top_ids[0] || i == e->top_ids[1] || i == e->top_ids[2] || i == e->top_ids[3]);
    const struct nl_json *norm = nl_json_get(e->root, "logit_norm");
    double sum = 0;
    for (uint32_t i = 0; norm && i < vocab_size; i++)
        sum += (double)logits[i] * logits[i];
    if (norm)
        assert_true(fabs(sqrt(sum) / nl_json_number(norm) - 1) < 1e-5);
}

static void check_run(const struct expectation *e, struct nl_engine *engine, size_t n_greedy)
{
    struct nl_error error = {0};
    struct nl_feed feed = {.sequence = nl_engine_new_sequence(engine, &error)};
    for (size_t done = 0; done < e->n_prompt; done += feed.count) {
        size_t rest = e->n_prompt - done, chunk = nl_engine_chunk(engine);
        feed.ids = e->prompt + done;
        feed.count = (uint32_t)(rest < chunk ? rest : chunk);
        feed.n_outputs = rest <= chunk;
        if (nl_engine_step(engine, &feed, 1, &error) != 0)
            fail_msg("%s", error.message);
    }
    check_logits(e, feed.logits, nl_engine_model(engine)->config.vocab_size);
    for (size_t i = 0; i < n_greedy; i++) {
        assert_int_equal(feed.best[0], e->greedy[i]);
        feed.ids = &e->greedy[i];
        feed.count = feed.n_outputs = 1;
        if (nl_engine_step(engine, &feed, 1, &error) != 0)
            fail_msg("%s", error.message);
    }
    nl_engine_free_sequence(engine, feed.sequence);
}

static void check_text(const struct expectation *e, struct nl_tokenizer *tokenizer)
{
    struct nl_error error = {0};
    struct nl_ids ids = {0};
    const char *text = nl_json_string(nl_json_get(e->root, "text"));
    if (nl_tokenizer_encode(tokenizer, text, strlen(text), true, &ids, &error) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(ids.count, e->n_prompt);
    assert_memory_equal(ids.data, e->prompt, ids.count * sizeof *ids.data);
    nl_ids_free(&ids);
}

#if defined __SANITIZE_ADDRESS__ /* ten times as slow */
enum { SOME = 2, ALL = 10 };
#else
enum { SOME = 10, ALL = 1000 };
#endif

/* Every prompt; all ids with the best instruction set, some with the slower ones. */
static void check_prompts(const char *isa, size_t n_greedy)
{
    struct nl_error error = {0};
    struct nl_engine *engine = open_model(isa);
    struct nl_tokenizer *tokenizer = nl_tokenizer_open(model_folder(), &error);
    if (!tokenizer)
        fail_msg("%s", error.message);
    struct nl_buf file = {0};
    assert_int_equal(nl_file_read("tests/data/smollm2/golden.jsonl", 1 << 20, &file, &error), 0);
    int lines = 0;
    for (const char *line = file.data; *line; lines++) {
        size_t length = strcspn(line, "\n");
        struct expectation e;
        parse_expectation(&e, line, length);
        check_text(&e, tokenizer);
        check_run(&e, engine, n_greedy < e.n_greedy ? n_greedy : e.n_greedy);
        free_expectation(&e);
        line += length + (line[length] == '\n');
    }
    assert_int_equal(lines, 12);
    nl_buf_free(&file);
    nl_tokenizer_close(tokenizer);
    nl_engine_close(engine);
}

static void prompts_best(void **state)
{
    (void)state;
    model_folder();
    check_prompts(NULL, ALL);
}

static void prompts_avx2(void **state)
{
    (void)state;
    model_folder();
    if (!isa_available("avx2")) {
        print_message("no AVX2\n");
        skip();
    }
    check_prompts("avx2", SOME);
}

static void prompts_portable(void **state)
{
    (void)state;
    model_folder();
    check_prompts("portable", SOME);
}

#if !defined __SANITIZE_ADDRESS__ /* a minute on two cores: llama-long of test_golden stands for it */
static void long_prompt(void **state)
{
    (void)state;
    char path[500];
    struct nl_error error = {0};
    struct nl_buf file = {0};
    struct expectation e;
    model_folder();
    snprintf(path, sizeof path, "%s/models/smollm2-135m/golden_long.json", shared_folder());
    if (nl_file_read(path, 1 << 20, &file, &error) != 0)
        fail_msg("%s", error.message);
    parse_expectation(&e, file.data, file.size);
    struct nl_engine *engine = open_model(NULL);
    check_run(&e, engine, e.n_greedy);
    nl_engine_close(engine);
    free_expectation(&e);
    nl_buf_free(&file);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_best),
        cmocka_unit_test(prompts_avx2),
        cmocka_unit_test(prompts_portable),
#if !defined __SANITIZE_ADDRESS__
        cmocka_unit_test(long_prompt),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
