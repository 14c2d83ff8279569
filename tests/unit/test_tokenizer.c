/* Ids and decoded text against what the Python package `tokenizers` gave (tests/data and the shared cases).
 */
#include "test.h"

#include <pthread.h>

#include "file.h"
#include "json.h"
#include "tok_trace.h"
#include "tokenizer.h"

struct set { /* the tokenizer of the lines at hand */
    char name[64];
    struct nl_tokenizer *tokenizer;
};

static void add_runs(const struct nl_json *runs, struct nl_ids *ids)
{
    for (const struct nl_json *run = nl_json_first(runs); run; run = nl_json_next(run)) {
        const struct nl_json *items = nl_json_first(run);
        int64_t times = 0, id;
        assert_true(nl_json_integer(nl_json_next(items), 0, 1 << 24, &times));
        for (int64_t i = 0; i < times; i++)
            for (const struct nl_json *item = nl_json_first(items); item; item = nl_json_next(item)) {
                assert_true(nl_json_integer(item, 0, UINT32_MAX, &id));
                uint32_t value = (uint32_t)id;
                assert_int_equal(nl_ids_add(ids, &value, 1, NULL), 0);
            }
    }
}

static void wanted_ids(const struct nl_json *line, struct nl_ids *ids)
{
    if (nl_json_get(line, "ids_runs")) {
        add_runs(nl_json_get(line, "ids_runs"), ids);
        return;
    }
    for (const struct nl_json *item = nl_json_first(nl_json_get(line, "ids")); item;
         item = nl_json_next(item)) {
        int64_t id;
        assert_true(nl_json_integer(item, 0, UINT32_MAX, &id));
        uint32_t value = (uint32_t)id;
        assert_int_equal(nl_ids_add(ids, &value, 1, NULL), 0);
    }
}

static void wanted_text(const struct nl_json *line, struct nl_buf *text)
{
    const struct nl_json *whole = nl_json_get(line, "text");
    if (nl_json_is(whole, NL_JSON_STRING)) {
        nl_json_copy_string(whole, text);
        return;
    }
    for (const struct nl_json *part = nl_json_first(nl_json_get(line, "parts")); part;
         part = nl_json_next(part)) {
        int64_t times = 0;
        assert_true(nl_json_integer(nl_json_next(nl_json_first(part)), 0, 1 << 24, &times));
        for (int64_t i = 0; i < times; i++)
            nl_json_copy_string(nl_json_first(part), text);
    }
}

static void decode(const struct nl_tokenizer *tokenizer, const struct nl_ids *ids, unsigned flags,
                   struct nl_buf *out)
{
    struct nl_error error;
    struct nl_decoder *decoder = nl_decoder_open(tokenizer, flags, &error);
    assert_non_null(decoder);
    nl_buf_add(out, "", 0);
    for (size_t i = 0; i < ids->count; i++)
        if (nl_decoder_push(decoder, ids->data[i], out, &error) != 0)
            fail_msg("%s", error.message);
    assert_int_equal(nl_decoder_finish(decoder, out, &error), 0);
    nl_decoder_close(decoder);
}

static bool same(const struct nl_buf *a, const struct nl_buf *b)
{
    return a->size == b->size && memcmp(a->data ? a->data : "", b->data ? b->data : "", a->size) == 0;
}

struct traced {
    struct nl_ids ids;
    size_t begin, length; /* of the last piece; of the text */
    bool good;
};

static int on_piece(void *context, uint32_t id, size_t begin, size_t end, struct nl_error *error)
{
    struct traced *traced = context;
    traced->good = traced->good && begin <= end && end <= traced->length && traced->begin <= begin;
    traced->begin = begin;
    return nl_ids_add(&traced->ids, &id, 1, error);
}

/* The encoding step by step has the same ids, whose places in the text never go back. */
static bool check_trace(struct nl_tokenizer *tokenizer, const struct nl_buf *text, unsigned flags,
                        const struct nl_ids *wanted)
{
    struct nl_error error;
    struct traced traced = {.length = text->size, .good = true};
    struct nl_trace trace = {.context = &traced, .piece = on_piece};
    if (text->size > 20000)
        return true;
    struct nl_encoder *encoder = nl_encoder_open(tokenizer, &error);
    if (nl_encoder_trace(encoder, text->size ? text->data : "", text->size, flags, &trace, &error) != 0)
        fail_msg("%s", error.message);
    bool good = traced.good && traced.ids.count == wanted->count &&
                (wanted->count == 0 || !memcmp(traced.ids.data, wanted->data, 4 * wanted->count));
    nl_encoder_close(encoder);
    nl_ids_free(&traced.ids);
    return good;
}

/* One line of a file of encoding cases; false when it goes wrong. */
static bool check_encoding(struct nl_tokenizer *tokenizer, const struct nl_json *line)
{
    struct nl_error error;
    struct nl_buf text = {0}, decoded = {0}, wanted_decoded = {0};
    struct nl_ids ids = {0}, wanted = {0};
    wanted_text(line, &text);
    wanted_ids(line, &wanted);
    unsigned flags =
        (nl_json_is(nl_json_get(line, "add_special_tokens"), NL_JSON_TRUE) ? NL_ENCODE_SPECIAL : 0) |
        (nl_json_is(nl_json_get(line, "special_as_text"), NL_JSON_TRUE) ? NL_ENCODE_PLAIN : 0);
    if (nl_tokenizer_encode(tokenizer, text.size ? text.data : "", text.size, flags, &ids, &error) != 0)
        fail_msg("%s", error.message);
    bool good =
        ids.count == wanted.count && (ids.count == 0 || !memcmp(ids.data, wanted.data, 4 * ids.count));
    good = good && check_trace(tokenizer, &text, flags, &wanted);
    decode(tokenizer, &wanted, NL_DECODE_SPECIAL, &decoded);
    if (nl_json_is(nl_json_get(line, "decoded"), NL_JSON_STRING)) {
        nl_json_copy_string(nl_json_get(line, "decoded"), &wanted_decoded);
        good = good && same(&decoded, &wanted_decoded);
    } else if (nl_json_get(line, "decoded")) {
        good = good && same(&decoded, &text);
    }
    nl_buf_free(&text);
    nl_buf_free(&decoded);
    nl_buf_free(&wanted_decoded);
    nl_ids_free(&ids);
    nl_ids_free(&wanted);
    return good;
}

/* The pieces must not come later than the reference's stream gives them (null: nothing new). */
static bool check_steps(const struct nl_tokenizer *tokenizer, const struct nl_json *line,
                        const struct nl_ids *ids, unsigned flags)
{
    struct nl_error error;
    struct nl_buf out = {0}, shown = {0};
    struct nl_decoder *decoder = nl_decoder_open(tokenizer, flags, &error);
    assert_non_null(decoder);
    bool good = true;
    const struct nl_json *step = nl_json_first(nl_json_get(line, "steps"));
    for (size_t i = 0; i < ids->count && step; i++, step = nl_json_next(step)) {
        assert_int_equal(nl_decoder_push(decoder, ids->data[i], &out, &error), 0);
        if (nl_json_is(step, NL_JSON_STRING))
            nl_json_copy_string(step, &shown);
        good = good && out.size >= shown.size &&
               memcmp(out.data ? out.data : "", shown.data ? shown.data : "", shown.size) == 0;
    }
    nl_decoder_close(decoder);
    nl_buf_free(&out);
    nl_buf_free(&shown);
    return good;
}

static bool has_note(const struct nl_json *line)
{
    return nl_json_get(line, "note") != NULL;
}

static bool check_decoding(struct nl_tokenizer *tokenizer, const struct nl_json *line)
{
    struct nl_buf decoded = {0}, wanted = {0};
    struct nl_ids ids = {0};
    unsigned flags =
        nl_json_is(nl_json_get(line, "skip_special_tokens"), NL_JSON_TRUE) ? 0 : NL_DECODE_SPECIAL;
    wanted_ids(line, &ids);
    bool good = true, known = true;
    for (size_t i = 0; i < ids.count; i++) {
        size_t length;
        known = known && nl_tokenizer_piece(tokenizer, ids.data[i], &length) != NULL;
    }
    if (known) { /* an unknown id is an error here: test unknown_id_is_refused */
        decode(tokenizer, &ids, flags, &decoded);
        nl_json_copy_string(nl_json_get(line, "text"), &wanted);
        good = (same(&decoded, &wanted) || has_note(line)) && check_steps(tokenizer, line, &ids, flags);
    }
    nl_buf_free(&decoded);
    nl_buf_free(&wanted);
    nl_ids_free(&ids);
    return good;
}

static void use(struct set *set, const char *folder, const char *format, const char *name)
{
    struct nl_error error;
    char file[100], path[1200];
    if (strcmp(set->name, name) == 0)
        return;
    nl_tokenizer_close(set->tokenizer);
    snprintf(set->name, sizeof set->name, "%s", name);
    snprintf(file, sizeof file, format, name);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    set->tokenizer = nl_tokenizer_open(path, &error);
    if (!set->tokenizer)
        fail_msg("%s", error.message);
}

/* Runs the lines of a file whose tokenizer is `only` (NULL: all); returns how many there were, and fails with
 * how many were wrong. */
static unsigned run_file(struct set *set, const char *cases, const char *folder, const char *format,
                         const char *only, bool (*check)(struct nl_tokenizer *, const struct nl_json *))
{
    struct nl_error error;
    struct nl_buf text = {0};
    unsigned done = 0, wrong = 0, number = 0;
    if (nl_file_read(cases, 1 << 28, &text, &error) != 0)
        fail_msg("%s", error.message);
    for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
        struct nl_json *json = nl_json_parse(line, (size_t)(end - line), cases, &error);
        assert_non_null(json);
        const char *name = nl_json_string(nl_json_get(json, "tokenizer"));
        number++;
        if (!only || strcmp(name, only) == 0) {
            use(set, folder, format, name);
            done++;
            if (!check(set->tokenizer, json)) {
                wrong++;
                print_message("# wrong: %s line %u: %.300s\n", cases, number, line);
            }
        }
        nl_json_free(json);
    }
    nl_buf_free(&text);
    if (wrong > 0)
        fail_msg("%u of %u wrong: %s", wrong, done, cases);
    return done;
}

static void mini_encoding(void **state)
{
    (void)state;
    struct set set = {.name = ""};
    assert_true(run_file(&set, "tests/data/tokenizer/cases.jsonl", "tests/data/tokenizer", "%s.json", NULL,
                         check_encoding) > 90);
    nl_tokenizer_close(set.tokenizer);
}

/* Every model, normalizer, pre-tokenizer and decoder (made by tests/reference/make_tokenizer_types.py). */
static void every_type(void **state)
{
    (void)state;
    struct set set = {.name = ""};
    assert_true(run_file(&set, "tests/data/tokenizer/types.jsonl", "tests/data/tokenizer", "%s.json", NULL,
                         check_encoding) >= 2000);
    nl_tokenizer_close(set.tokenizer);
}

static void mini_decoding(void **state)
{
    (void)state;
    struct set set = {.name = ""};
    assert_true(run_file(&set, "tests/data/tokenizer/detok.jsonl", "tests/data/tokenizer", "%s.json", NULL,
                         check_decoding) > 0);
    nl_tokenizer_close(set.tokenizer);
}

/* The real tokenizers are unpacked by tests/tokenizers.sh, which tests/run.sh calls. */
static void real(const char *name)
{
    const char *shared = shared_folder(), *build = getenv("B");
    struct set set = {.name = ""};
    char folder[1000], cases[1100];
    snprintf(folder, sizeof folder, "%s/tokenizers", build ? build : "build");
    snprintf(cases, sizeof cases, "%s/%s", folder, name);
    if (!nl_path_exists(cases)) {
        print_message("no real tokenizers\n");
        skip();
    }
    snprintf(cases, sizeof cases, "%s/cases/tokenizer/corpus_%s.jsonl", shared, name);
    assert_true(run_file(&set, cases, folder, "%s", name, check_encoding) > 200);
    snprintf(cases, sizeof cases, "%s/cases/tokenizer/bugs.jsonl", shared);
    assert_true(run_file(&set, cases, folder, "%s", name, check_encoding) > 10);
    snprintf(cases, sizeof cases, "%s/cases/tokenizer/invalid_utf8.jsonl", shared);
    assert_true(run_file(&set, cases, folder, "%s", name, check_encoding) > 10);
    snprintf(cases, sizeof cases, "%s/cases/detok/cases.jsonl", shared);
    assert_true(run_file(&set, cases, folder, "%s", name, check_decoding) > 5);
    nl_tokenizer_close(set.tokenizer);
}

static void real_llama3_1(void **state)
{
    (void)state;
    real("llama3_1");
}

static void real_qwen2_5(void **state)
{
    (void)state;
    real("qwen2_5");
}

static void real_gptoss(void **state)
{
    (void)state;
    real("gptoss");
}

static void real_llama2(void **state)
{
    (void)state;
    real("llama2");
}

static void real_gemma3(void **state)
{
    (void)state;
    real("gemma3");
}

/* The prompts of SmolLM2's golden runs; tests/model.sh makes the model's folder. */
static void real_smollm2(void **state)
{
    (void)state;
    const char *shared = shared_folder();
    char folder[1000] = "", golden[1100];
    FILE *script = popen("tests/model.sh", "r");
    if (!script || !fgets(folder, sizeof folder, script) || pclose(script) != 0) {
        print_message("no SmolLM2: %s\n", folder);
        skip();
    }
    folder[strcspn(folder, "\n")] = '\0';
    struct nl_error error;
    struct nl_buf lines = {0};
    snprintf(golden, sizeof golden, "%s/models/smollm2-135m/golden.jsonl", shared);
    assert_int_equal(nl_file_read(golden, 1 << 24, &lines, &error), 0);
    struct nl_tokenizer *tokenizer = nl_tokenizer_open(folder, &error);
    assert_non_null(tokenizer);
    unsigned done = 0;
    for (char *line = lines.data, *end; (end = strchr(line, '\n')); line = end + 1, done++) {
        struct nl_json *json = nl_json_parse(line, (size_t)(end - line), golden, &error);
        const char *text = nl_json_string(nl_json_get(json, "text"));
        const struct nl_json *item = nl_json_first(nl_json_get(json, "prompt"));
        struct nl_ids ids = {0};
        assert_int_equal(nl_tokenizer_encode(tokenizer, text, strlen(text), NL_ENCODE_SPECIAL, &ids, &error),
                         0);
        for (size_t i = 0; i < ids.count; i++, item = nl_json_next(item)) {
            assert_non_null(item);
            assert_int_equal(ids.data[i], (uint32_t)nl_json_number(item));
        }
        assert_null(item);
        nl_ids_free(&ids);
        nl_json_free(json);
    }
    assert_int_equal(done, 12);
    nl_tokenizer_close(tokenizer);
    nl_buf_free(&lines);
}

/* Threads share a tokenizer, each with an encoder of its own. */
static void *encode_often(void *context)
{
    struct nl_error error;
    struct nl_encoder *encoder = nl_encoder_open(context, &error);
    static const char text[] = "hello world, helloworld hello";
    size_t count = 0;
    for (int i = 0; encoder && i < 200; i++) {
        struct nl_ids ids = {0};
        if (nl_encoder_encode(encoder, text, sizeof text - 1, NL_ENCODE_SPECIAL, &ids, &error) == 0)
            count += ids.count;
        nl_ids_free(&ids);
    }
    nl_encoder_close(encoder);
    return (void *)count;
}

static void shared_by_threads(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_tokenizer *tokenizer = nl_tokenizer_open("tests/data/tokenizer/merges_pairs.json", &error);
    assert_non_null(tokenizer);
    pthread_t threads[4];
    void *counts[4];
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, tokenizer), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], &counts[i]), 0);
    assert_true(counts[0] != NULL);
    for (unsigned i = 1; i < 4; i++)
        assert_ptr_equal(counts[i], counts[0]);
    nl_tokenizer_close(tokenizer);
}

static void pieces_and_ids(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_tokenizer *tokenizer = nl_tokenizer_open("tests/data/tokenizer/bytelevel_added.json", &error);
    assert_non_null(tokenizer);
    size_t length;
    uint32_t id;
    assert_int_equal(nl_tokenizer_vocab_size(tokenizer), 268);
    assert_memory_equal(nl_tokenizer_piece(tokenizer, 0xc3, &length), "\xc3",
                        1); /* part of a character, as it is */
    assert_int_equal(length, 1);
    assert_null(nl_tokenizer_piece(tokenizer, 268, &length));
    assert_true(nl_tokenizer_id(tokenizer, "<|\u00e9|>", 6, &id) && id == 267);
    assert_false(nl_tokenizer_id(tokenizer, "<|e|>", 5, &id));
    nl_tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mini_encoding),  cmocka_unit_test(every_type),
        cmocka_unit_test(mini_decoding),  cmocka_unit_test(real_llama3_1),
        cmocka_unit_test(real_qwen2_5),   cmocka_unit_test(real_gptoss),
        cmocka_unit_test(real_llama2),    cmocka_unit_test(real_gemma3),
        cmocka_unit_test(real_smollm2),   cmocka_unit_test(shared_by_threads),
        cmocka_unit_test(pieces_and_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
