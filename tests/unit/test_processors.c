/* Each processor's scores against those of transformers, bit for bit: tests/data/sampling/processors.jsonl,
   which tests/reference/make_processors.py wrote; then errors, replacement, and the processors that
   transformers lacks. */
#include "test.h"

#include <math.h>

#include "file.h"
#include "json.h"
#include "sample.h"

enum { MOST = 200 };

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

static struct nl_json *parse(const char *text)
{
    struct nl_error error = {0};
    struct nl_json *json = nl_json_parse(text, strlen(text), "test", &error);
    if (!json)
        fail_msg("%s", error.message);
    return json;
}

static size_t floats_of(const struct nl_json *hex, float *out)
{
    const char *text = nl_json_string(hex);
    size_t n = strlen(text) / 8;
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        unsigned bits;
        assert_int_equal(sscanf(text + 8 * i, "%8x", &bits), 1);
        out[i] = nl_float_of_bits(bits);
    }
    return n;
}

static size_t ids_of(const struct nl_json *list, uint32_t *out)
{
    size_t n = 0;
    for (const struct nl_json *item = nl_json_first(list); item; item = nl_json_next(item)) {
        assert_true(n < MOST);
        out[n++] = (uint32_t)nl_json_number(item);
    }
    return n;
}

static struct nl_sampler *sampler_of(const struct nl_json *line)
{
    struct nl_sampler *sampler = new_sampler();
    struct nl_error error = {0};
    uint32_t eos[MOST];
    size_t n_eos = ids_of(nl_json_get(line, "eos"), eos);
    const struct nl_json *chain = nl_json_get(line, "chain"), *limit = nl_json_get(line, "limit");
    if (nl_sampler_set_eos(sampler, eos, n_eos, &error) != 0 ||
        nl_sampler_set_generation(sampler, nl_json_get(line, "generation"), &error) != 0)
        fail_msg("%s", error.message);
    if (limit)
        nl_sampler_set_limit(sampler, (uint64_t)nl_json_number(limit));
    for (const struct nl_json *step = chain ? nl_json_first(chain) : NULL; step; step = nl_json_next(step)) {
        char value[40];
        snprintf(value, sizeof value, "%.17g", nl_json_number(nl_json_next(nl_json_first(step))));
        add(sampler, nl_json_string(nl_json_first(step)), value);
    }
    return sampler;
}

static void check_line(const struct nl_json *line, const char *text)
{
    struct nl_sampler *sampler = sampler_of(line);
    struct nl_error error = {0};
    uint32_t ids[MOST];
    float got[MOST], want[MOST];
    struct nl_history history = {.ids = ids, .count = ids_of(nl_json_get(line, "ids"), ids)};
    history.n_prompt = (size_t)nl_json_number(nl_json_get(line, "n_prompt"));
    size_t n = floats_of(nl_json_get(line, "logits"), got);
    assert_int_equal(floats_of(nl_json_get(line, "scores"), want), n);
    if (nl_sampler_apply(sampler, got, n, &history, &error) != 0)
        fail_msg("%s: %.200s", error.message, text);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("score %zu is %.9g, not %.9g: %.200s", i, (double)got[i], (double)want[i], text);
    nl_sampler_close(sampler);
}

static void scores_of_transformers(void **state)
{
    (void)state;
    struct nl_buf text = {0};
    struct nl_error error = {0};
    if (nl_file_read("tests/data/sampling/processors.jsonl", 1 << 20, &text, &error) != 0)
        fail_msg("%s", error.message);
    size_t n = 0;
    for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        *end = '\0';
        struct nl_json *json = parse(line);
        check_line(json, line);
        nl_json_free(json);
    }
    assert_int_equal(n, 157);
    nl_buf_free(&text);
}

/* Applies one option to a row and compares; the history is ids, of which the first n_prompt are the prompt.
 */
static void expect_row(const char *name, const char *value, const float *row, const float *want, size_t n,
                       struct nl_history history)
{
    struct nl_sampler *sampler = new_sampler();
    struct nl_error error = {0};
    float got[MOST];
    memcpy(got, row, n * sizeof *row);
    add(sampler, name, value);
    if (nl_sampler_apply(sampler, got, n, &history, &error) != 0)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s %s: score %zu is %.9g, not %.9g", name, value, i, (double)got[i], (double)want[i]);
    nl_sampler_close(sampler);
}

static void processors_of_others(void **state)
{
    (void)state;
    const uint32_t ids[] = {0, 1, 1, 2, 2, 2, 9};
    const struct nl_history history = {.ids = ids, .count = 7, .n_prompt = 2};
    const float row[] = {1, 2, -3, 4};
    expect_row("presence-penalty", "0.5", row, (float[]){1, 1.5f, -3.5f, 4}, 4, history);
    expect_row("frequency-penalty", "0.5", row, (float[]){1, 1.5f, -4.5f, 4}, 4, history);
    expect_row("frequency-penalty", "-1", row, (float[]){1, 3, 0, 4}, 4, history);
    expect_row("allowed-token-ids", "2,0,77", row, (float[]){1, -INFINITY, -3, -INFINITY}, 4, history);
    const struct nl_history ends_in_2 = {.ids = ids, .count = 6, .n_prompt = 2};
    expect_row("logit-bias", "1:-2,3:-inf,0:0.5,1 2:9,2 2:inf", row, (float[]){1.5f, 0, INFINITY, -INFINITY},
               4, ends_in_2);
    /* mean 1, squares 0 1 16 9, sigma sqrt(26/4) = 2.55 */
    expect_row("top-n-sigma", "1", row, (float[]){-INFINITY, 2, -INFINITY, 4}, 4, history);
    expect_row("top-n-sigma", "0.5", row, (float[]){-INFINITY, -INFINITY, -INFINITY, 4}, 4, history);
    expect_row("top-n-sigma", "0", row, row, 4, history);
}

/* An option that excluded an id is final: no later bias brings it back. */
static void excluded_stays_excluded(void **state)
{
    (void)state;
    struct nl_sampler *sampler = new_sampler();
    struct nl_error error = {0};
    const struct nl_history history = {.count = 1, .n_prompt = 1};
    float row[] = {1, 2, 3};
    add(sampler, "suppress-tokens", "1");
    add(sampler, "logit-bias", "1:inf");
    add(sampler, "temperature", "1e-40"); /* under float32's normal numbers: as 0 */
    assert_int_equal(nl_sampler_apply(sampler, row, 3, &history, &error), 0);
    assert_true(isinf(row[0]) && isinf(row[1]) && row[2] == 3);
    nl_sampler_close(sampler);
}

static void expect_generation(struct nl_sampler *sampler, const char *generation, const float *want)
{
    struct nl_error error = {0};
    const uint32_t ids[] = {1}, eos[] = {0};
    const struct nl_history history = {.ids = ids, .count = 1, .n_prompt = 1};
    float row[] = {1, 2, 3};
    struct nl_json *json = generation ? parse(generation) : NULL;
    assert_int_equal(nl_sampler_set_eos(sampler, eos, 1, &error), 0);
    if (nl_sampler_set_generation(sampler, json, &error) != 0 ||
        nl_sampler_apply(sampler, row, 3, &history, &error) != 0)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < 3; i++)
        if (row[i] != want[i])
            fail_msg("%s: score %zu is %.9g", generation ? generation : "none", i, (double)row[i]);
    nl_json_free(json);
}

static void flags_replace_namesakes(void **state)
{
    (void)state;
    struct nl_sampler *sampler = new_sampler();
    expect_generation(sampler, "{\"repetition_penalty\":2.0,\"top_k\":1}", (float[]){1, 1, 3});
    expect_generation(sampler, "{\"repetition_penalty\":4.0}", (float[]){1, 0.5f, 3});
    expect_generation(sampler, NULL, (float[]){1, 2, 3});
    add(sampler, "repetition-penalty", "1");
    expect_generation(sampler, "{\"repetition_penalty\":2.0,\"suppress_tokens\":[2]}",
                      (float[]){1, 2, -INFINITY});
    add(sampler, "repetition-penalty", "2");
    add(sampler, "repetition-penalty", "2");
    expect_generation(sampler, "{\"repetition_penalty\":8.0}", (float[]){1, 0.5f, 3});
    expect_generation(sampler, "{\"min_length\":5}", (float[]){-INFINITY, 0.5f, 3});
    add(sampler, "min-new-tokens", "0");
    expect_generation(sampler, "{\"min_length\":5}", (float[]){1, 0.5f, 3});
    nl_sampler_close(sampler);
}

static void what_needs_ids(void **state)
{
    (void)state;
    struct nl_sampler *sampler = new_sampler();
    assert_null(nl_sampler_needs_ids(sampler));
    add(sampler, "temperature", "2");
    add(sampler, "bad-words-ids", "5,6");
    add(sampler, "min-new-tokens", "6");
    add(sampler, "repetition-penalty", "1");
    assert_null(nl_sampler_needs_ids(sampler));
    assert_int_equal(nl_sampler_least_row(sampler), 7);
    add(sampler, "bad-words-ids", "5,6 8");
    assert_string_equal(nl_sampler_needs_ids(sampler), "bad_words_ids");
    assert_int_equal(nl_sampler_least_row(sampler), 9);
    nl_sampler_close(sampler);
}

static void bad_values_are_usage_errors(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"mirostat", "2"},
        {"temperature", ""},
        {"temperature", "-1"},
        {"temperature", "nan"},
        {"temperature", "1x"},
        {"temperature", " 1"},
        {"top-k", "-1"},
        {"top-k", "1.5"},
        {"top-k", "99999999999"},
        {"top_p", "1.01"},
        {"top_p", "-0.1"},
        {"min_p", "2"},
        {"typical_p", "0"},
        {"epsilon_cutoff", "1"},
        {"eta_cutoff", "1"},
        {"repetition_penalty", "0"},
        {"repetition_penalty", ""},
        {"suppress_tokens", "1,"},
        {"suppress_tokens", "1,a"},
        {"suppress_tokens", "-1"},
        {"suppress_tokens", "1 2"},
        {"allowed_token_ids", ""},
        {"bad_words_ids", "1,,2"},
        {"bad_words_ids", "1  2"},
        {"logit_bias", "1"},
        {"logit_bias", "1:x"},
        {"logit_bias", "1:nan"},
        {"forced_bos_token_id", "1,2"},
        {"top", "1"},
        {"top_k_", "1"},
        {"temperature", "1e999"},
        {"top-n-sigma", "-1"},
        {"presence_penalty", "inf"},
        {"exponential_decay_length_penalty", "5"},
        {"suppress_tokens", "4294967296"},
    };
    struct nl_sampler *sampler = new_sampler();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nl_error error = {0};
        if (nl_sampler_add(sampler, rows[i][0], rows[i][1], &error) == 0 || error.code != NL_USAGE)
            fail_msg("%s '%s' is taken", rows[i][0], rows[i][1]);
    }
    assert_true(nl_sampler_is_plain(sampler) && nl_sampler_is_greedy(sampler));
    nl_sampler_close(sampler);
}

static void bad_generation_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum nl_status code;
        const char *name;
    } rows[] = {
        {"{\"num_beams\":4}", NL_UNSUPPORTED, "num_beams"},
        {"{\"guidance_scale\":1.5,\"repetition_penalty\":2}", NL_UNSUPPORTED, "guidance_scale"},
        {"{\"watermarking_config\":{}}", NL_UNSUPPORTED, "watermarking_config"},
        {"{\"stop_strings\":[\"x\"]}", NL_UNSUPPORTED, "stop_strings"},
        {"{\"repetition_penalty\":\"2\"}", NL_DATA, "repetition_penalty"},
        {"{\"repetition_penalty\":-2}", NL_DATA, "repetition_penalty"},
        {"{\"bad_words_ids\":[[[1]]]}", NL_DATA, "bad_words_ids"},
        {"{\"bad_words_ids\":[[]]}", NL_DATA, "bad_words_ids"},
        {"{\"sequence_bias\":[[[1],2,3]]}", NL_DATA, "sequence_bias"},
        {"{\"suppress_tokens\":[[1,2]]}", NL_DATA, "suppress_tokens"},
        {"[1]", NL_DATA, "generation"},
    };
    struct nl_sampler *sampler = new_sampler();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct nl_error error = {0};
        struct nl_json *json = parse(rows[i].text);
        if (nl_sampler_set_generation(sampler, json, &error) == 0 || error.code != rows[i].code ||
            !strstr(error.message, rows[i].name))
            fail_msg("%s: %d %s", rows[i].text, (int)error.code, error.message);
        assert_true(nl_sampler_is_plain(sampler));
        nl_json_free(json);
    }
    nl_sampler_close(sampler);
}

static void nothing_left_is_an_error(void **state)
{
    (void)state;
    struct nl_sampler *sampler = new_sampler();
    struct nl_error error = {0};
    const struct nl_history history = {.count = 1, .n_prompt = 1};
    float row[] = {1, 2};
    add(sampler, "suppress-tokens", "0,1");
    add(sampler, "top-p", "0.5");
    assert_int_equal(nl_sampler_apply(sampler, row, 2, &history, &error), -1);
    assert_int_equal(error.code, NL_DATA);
    assert_non_null(strstr(error.message, "suppress_tokens"));
    nl_sampler_close(sampler);

    sampler = new_sampler();
    float more[] = {1, 2};
    add(sampler, "bad-words-ids", "2");
    assert_int_equal(nl_sampler_apply(sampler, more, 2, &history, &error), -1);
    assert_int_equal(error.code, NL_DATA);
    assert_non_null(strstr(error.message, "bad_words_ids"));
    nl_sampler_close(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_transformers),  cmocka_unit_test(processors_of_others),
        cmocka_unit_test(excluded_stays_excluded), cmocka_unit_test(flags_replace_namesakes),
        cmocka_unit_test(what_needs_ids),          cmocka_unit_test(bad_values_are_usage_errors),
        cmocka_unit_test(bad_generation_is_named), cmocka_unit_test(nothing_left_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
