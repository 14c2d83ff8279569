/* Cases after faults that other programs had: whole tiny checkpoints, damaged folders, rotary settings. The
   right answers are transformers'; tests/data/{forward,index,generate,rope}/cases.jsonl. */
#include "golden.h"

#include <math.h>

#include "rope.h"

/* Calls check for each line of a file of JSON objects; returns their number. */
static int for_cases(const char *path, void (*check)(const struct nl_json *item))
{
    struct nl_error error = {0};
    struct nl_buf file = {0};
    int count = 0;
    if (nl_file_read(path, 1 << 24, &file, &error) != 0)
        fail_msg("%s", error.message);
    for (const char *line = file.data; *line; count++) {
        size_t length = strcspn(line, "\n");
        struct nl_json *item = nl_json_parse(line, length, path, &error);
        if (!item)
            fail_msg("%s", error.message);
        check(item);
        nl_json_free(item);
        line += length + (line[length] == '\n');
    }
    nl_buf_free(&file);
    return count;
}

static const char *string_of(const struct nl_json *item, const char *key)
{
    const struct nl_json *value = nl_json_get(item, key);
    return value ? nl_json_string(value) : "";
}

/* Logits of all ids of a case. */
struct answer {
    struct nl_engine *engine;
    struct nl_feed feed;
    uint32_t *ids;
    uint32_t vocab_size;
};

static void run_case(const struct nl_json *item, const char *folder, const char *isa, struct answer *answer)
{
    struct nl_error error = {0};
    size_t count;
    answer->ids = golden_ids(item, "ids", &count);
    answer->engine = open_tiny(folder, isa, 2);
    answer->vocab_size = nl_engine_model(answer->engine)->config.vocab_size;
    answer->feed =
        (struct nl_feed){.ids = answer->ids, .count = (uint32_t)count, .n_outputs = (uint32_t)count};
    answer->feed.sequence = nl_engine_new_sequence(answer->engine, &error);
    if (nl_engine_step(answer->engine, &answer->feed, 1, &error) != 0)
        fail_msg("%s: %s", folder, error.message);
}

static void check_last_logits(const struct nl_json *item, const struct answer *answer, double tolerance,
                              const char *name)
{
    const float *last = answer->feed.logits + (size_t)(answer->feed.count - 1) * answer->vocab_size;
    const struct nl_json *value = nl_json_first(nl_json_get(item, "last_logits"));
    for (uint32_t i = 0; i < answer->vocab_size; i++, value = nl_json_next(value))
        if (!value || !(fabs(last[i] - nl_json_number(value)) < tolerance))
            fail_msg("%s: logit %u is %.9g, not %.9g", name, i, (double)last[i],
                     value ? nl_json_number(value) : NAN);
    assert_null(value);
}

static void end_case(struct answer *answer)
{
    nl_engine_close(answer->engine);
    free(answer->ids);
}

static void check_forward(const struct nl_json *item)
{
    static const char *const isas[] = {"reference", "portable", NULL};
    const char *name = string_of(item, "model");
    if (strcmp(name, "gpt_oss") == 0 || strcmp(string_of(item, "compute"), "float32") != 0)
        return; /* neither the architecture nor bfloat16 activations are there */
    char folder[300];
    snprintf(folder, sizeof folder, "tests/data/forward/%s", name);
    for (int i = 0; i < 3; i++) {
        struct answer answer;
        run_case(item, folder, isas[i], &answer);
        const struct nl_json *best = nl_json_first(nl_json_get(item, "argmax"));
        for (uint32_t t = 0; t < answer.feed.count; t++, best = nl_json_next(best))
            assert_int_equal(answer.feed.best[t], nl_json_number(best));
        check_last_logits(item, &answer, 1e-4, name);
        end_case(&answer);
    }
}

static void forward_cases(void **state)
{
    (void)state;
    assert_true(for_cases("tests/data/forward/cases.jsonl", check_forward) > 40);
}

static void check_index(const struct nl_json *item)
{
    char folder[300];
    struct nl_error error = {0};
    snprintf(folder, sizeof folder, "tests/data/index/%s", string_of(item, "name"));
    const char *expect = string_of(item, "expect");
    struct nl_engine_options options = {.device = "cpu", .context = 64};
    struct nl_engine *engine = nl_engine_open(folder, &options, &error);
    if (!engine && strcmp(expect, "ok") == 0)
        fail_msg("%s: %s", folder, error.message);
    if (engine && strcmp(expect, "error") == 0)
        fail_msg("%s: taken", folder);
    nl_engine_close(engine);
    if (!engine || !nl_json_get(item, "last_logits"))
        return;
    struct answer answer;
    run_case(item, folder, NULL, &answer);
    check_last_logits(item, &answer, 1e-4, folder);
    end_case(&answer);
}

static void index_cases(void **state)
{
    (void)state;
    assert_true(for_cases("tests/data/index/cases.jsonl", check_index) > 20);
}

/* Compares one entry of "expect". */
static void check_frequencies(const char *id, const struct nl_rope_config *rope, uint32_t length,
                              const struct nl_json *expect)
{
    float *got = calloc(rope->dims, sizeof *got);
    nl_rope_frequencies(rope, length, got);
    const struct nl_json *value = nl_json_first(nl_json_get(expect, "inv_freq"));
    double scaling = nl_json_number(nl_json_get(expect, "attention_scaling"));
    if (!(fabs(rope->attention_factor - scaling) <= 1e-6 * scaling))
        fail_msg("%s: attention factor %g, not %g", id, (double)rope->attention_factor, scaling);
    for (uint32_t i = 0; i < rope->dims / 2; i++, value = nl_json_next(value))
        if (!value || !(fabs(got[i] - nl_json_number(value)) <= 1e-6 * nl_json_number(value)))
            fail_msg("%s: frequency %u is %.9g, not %.9g", id, i, (double)got[i],
                     value ? nl_json_number(value) : NAN);
    assert_null(value);
    free(got);
}

/* The cases give only the part of config.json that concerns the rope. */
static void check_rope(const struct nl_json *item)
{
    static const struct {
        const char *type, *architecture;
    } names[] = {{"llama", "LlamaForCausalLM"},        {"mistral", "MistralForCausalLM"},
                 {"qwen2", "Qwen2ForCausalLM"},        {"qwen3", "Qwen3ForCausalLM"},
                 {"gemma3_text", "Gemma3ForCausalLM"}, {"phi3", "Phi3ForCausalLM"},
                 {"gpt_oss", "LlamaForCausalLM"}}; /* the same formulas */
    struct nl_error error = {0};
    const char *id = string_of(item, "id"), *type = string_of(nl_json_get(item, "config"), "model_type");
    struct nl_json *root = nl_json_new_object();
    struct nl_buf list = {0};
    for (const struct nl_json *v = nl_json_first(nl_json_get(item, "config")); v; v = nl_json_next(v))
        if (strcmp(nl_json_key(v), "model_type") != 0)
            assert_int_equal(nl_json_set_copy(root, nl_json_key(v), v, &error), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].type, type) == 0)
            nl_buf_printf(&list, "[\"%s\"]", names[i].architecture);
    struct nl_json *architectures = nl_json_parse(list.data, list.size, "list", &error);
    nl_json_set_copy(root, "architectures", architectures, &error);
    static const char *const needed[] = {"vocab_size", "intermediate_size", "num_hidden_layers"};
    for (int i = 0; i < 3; i++)
        if (!nl_json_get(root, needed[i]))
            nl_json_set_number(root, needed[i], 6, &error);
    struct nl_config config;
    if (nl_config_read(root, id, &config, &error) != 0)
        fail_msg("%s", error.message);
    const struct nl_json *length = nl_json_get(item, "seq_len");
    for (const struct nl_json *e = nl_json_first(nl_json_get(item, "expect")); e; e = nl_json_next(e)) {
        bool sliding = nl_json_is(nl_json_get(e, "layer_type"), NL_JSON_STRING) &&
                       strcmp(string_of(e, "layer_type"), "sliding_attention") == 0;
        check_frequencies(id, &config.ropes[sliding], length ? (uint32_t)nl_json_number(length) : 0, e);
    }
    nl_config_free(&config);
    nl_json_free(architectures);
    nl_json_free(root);
    nl_buf_free(&list);
}

static void rope_cases(void **state)
{
    (void)state;
    assert_true(for_cases("tests/data/rope/cases.jsonl", check_rope) > 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_cases),
        cmocka_unit_test(index_cases),
        cmocka_unit_test(rope_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
