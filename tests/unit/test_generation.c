/* generation_config.json and config.json: ids that end, and the keys that change greedy output. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "generation.h"

static char folder[] = "/tmp/nl-generation-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static void put(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    if (!text)
        return;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int remove_folder(void **state)
{
    (void)state;
    put("generation_config.json", NULL);
    put("config.json", NULL);
    return rmdir(folder);
}

/* Loads what the two texts (NULL: no such file) say and compares it; `processors` NULL: none. */
static void expect(const char *generation, const char *config, size_t n_eos, const uint32_t *eos, int64_t bos,
                   const char *processors)
{
    put("generation_config.json", generation);
    put("config.json", config);
    struct nl_generation got;
    struct nl_error error = {0};
    if (nl_generation_load(folder, &got, &error) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(got.eos.count, n_eos);
    for (size_t i = 0; i < n_eos; i++)
        assert_int_equal(got.eos.data[i], eos[i]);
    assert_int_equal(got.has_bos, bos >= 0);
    if (bos >= 0)
        assert_int_equal(got.bos, bos);
    if (processors) {
        struct nl_buf text = {0};
        assert_non_null(got.processors);
        nl_json_print(got.processors, &text);
        assert_string_equal(text.data, processors);
        nl_buf_free(&text);
    } else {
        assert_null(got.processors);
    }
    nl_generation_free(&got);
}

static void eos_from_either_file(void **state)
{
    (void)state;
    const uint32_t two[] = {2}, list[] = {39, 41};
    expect("{\"eos_token_id\":2,\"bos_token_id\":1}", "{\"eos_token_id\":7}", 1, two, 1, NULL);
    expect("{\"eos_token_id\":[39,41]}", "{\"bos_token_id\":5}", 2, list, 5, NULL);
    expect("{}", "{\"eos_token_id\":[39,41],\"bos_token_id\":0}", 2, list, 0, NULL);
    expect(NULL, "{\"eos_token_id\":2}", 1, two, -1, NULL);
    expect(NULL, "{\"eos_token_id\":null,\"text_config\":{\"eos_token_id\":2,\"bos_token_id\":3}}", 1, two, 3,
           NULL);
    expect("{\"eos_token_id\":2}", NULL, 1, two, -1, NULL);
    expect("{\"eos_token_id\":null}", "{\"eos_token_id\":2}", 0, NULL, -1, NULL);
    expect("{\"eos_token_id\":[-1,2]}", "{}", 1, two, -1, NULL);
}

static void only_what_changes_greedy(void **state)
{
    (void)state;
    expect(
        "{\"do_sample\":true,\"temperature\":0.6,\"top_k\":20,\"top_p\":0.9,\"min_p\":0.1,\"max_length\":20,"
        "\"repetition_penalty\":1.0,\"no_repeat_ngram_size\":-1,\"min_length\":0,\"bad_words_ids\":null,"
        "\"num_beams\":1,"
        "\"suppress_tokens\":[],\"renormalize_logits\":true,\"use_cache\":true,\"guidance_scale\":1}",
        "{\"repetition_penalty\":1.5}", 0, NULL, -1, NULL);
    expect("{\"repetition_penalty\":1.1,\"pad_token_id\":0,\"bad_words_ids\":[[1,2],[3]],\"min_length\":5}",
           "{}", 0, NULL, -1, "{\"repetition_penalty\":1.1,\"bad_words_ids\":[[1,2],[3]],\"min_length\":5}");
    expect(NULL, "{\"hidden_size\":8,\"no_repeat_ngram_size\":3}", 0, NULL, -1,
           "{\"no_repeat_ngram_size\":3}");
    expect("{\"num_beams\":4,\"watermarking_config\":{\"bias\":2}}", "{}", 0, NULL, -1,
           "{\"num_beams\":4,\"watermarking_config\":{\"bias\":2}}");
}

static void refuse(const char *generation, const char *config, enum nl_status code, const char *message)
{
    put("generation_config.json", generation);
    put("config.json", config);
    struct nl_generation got;
    struct nl_error error = {0};
    assert_int_equal(nl_generation_load(folder, &got, &error), -1);
    assert_int_equal(error.code, code);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
}

static void faults_are_named(void **state)
{
    (void)state;
    refuse(NULL, NULL, NL_NOT_FOUND, folder);
    refuse("[1]", "{}", NL_DATA, "generation_config.json");
    refuse("{", "{}", NL_DATA, "generation_config.json");
    refuse("{}", "{\"eos_token_id\":\"</s>\"}", NL_DATA, "eos_token_id is not a token id");
    refuse("{\"eos_token_id\":[2.5]}", "{}", NL_DATA, "eos_token_id");
    refuse("{\"bos_token_id\":4294967296}", "{}", NL_DATA, "bos_token_id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eos_from_either_file),
        cmocka_unit_test(only_what_changes_greedy),
        cmocka_unit_test(faults_are_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
