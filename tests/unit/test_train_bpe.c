/* Tokens and merges against what BpeTrainer of the Python package `tokenizers` made (tests/data/train), and
 * the form. */
#include "test.h"

#include <unistd.h>

#include "file.h"
#include "json.h"
#include "tokenizer.h"
#include "train_bpe.h"

/* A case's text and options, ready to train. */
struct training {
    struct nl_train_bpe_options options;
    struct nl_json *form;
    const char *special[16];
    size_t n_special;
    struct nl_buf text;
    size_t ends[64], n;
};

static int64_t number(const struct nl_json *options, const char *key, int64_t otherwise)
{
    const struct nl_json *value = nl_json_get(options, key);
    int64_t result = otherwise;
    if (value)
        assert_true(nl_json_integer(value, 0, INT64_MAX, &result));
    return result;
}

static void set_initial(bool initial[256], const char *which)
{
    bool all = strcmp(which, "all") == 0;
    memset(initial, all, 256);
    for (const char *byte = all || strcmp(which, "none") == 0 ? "" : which; *byte; byte++)
        initial[(unsigned char)*byte] = true;
}

static void read_case(const struct nl_json *line, struct training *t)
{
    struct nl_error error;
    const struct nl_json *options = nl_json_get(line, "options");
    *t = (struct training){.options = nl_train_bpe_defaults()};
    t->options.vocab_size = (uint32_t)number(options, "vocab_size", t->options.vocab_size);
    t->options.min_frequency = (uint64_t)number(options, "min_frequency", 0);
    t->options.limit_alphabet = (uint32_t)number(options, "limit_alphabet", UINT32_MAX);
    if (nl_json_get(options, "max_token_length"))
        t->options.max_token_length = (uint64_t)number(options, "max_token_length", 0);
    set_initial(t->options.initial, nl_json_string(nl_json_get(line, "initial")));
    t->form = nl_train_bpe_form(nl_json_string(nl_json_get(line, "form")), &error);
    assert_non_null(t->form);
    const struct nl_json *special = nl_json_get(options, "special_tokens");
    for (const struct nl_json *item = special ? nl_json_first(special) : NULL; item;
         item = nl_json_next(item)) {
        assert_true(t->n_special < 16);
        t->special[t->n_special++] = nl_json_string(item);
    }
    for (const struct nl_json *item = nl_json_first(nl_json_get(line, "sequences")); item;
         item = nl_json_next(item)) {
        assert_true(t->n < 64);
        nl_json_copy_string(item, &t->text);
        t->ends[t->n++] = t->text.size;
    }
}

static struct nl_json *run_training(const struct training *t, unsigned threads)
{
    struct nl_error error = {0};
    struct nl_buf out = {0};
    struct nl_train_bpe_options options = t->options;
    options.threads = threads;
    struct nl_train_bpe *trainer = nl_train_bpe_open(&options, t->form, t->special, t->n_special, &error);
    if (!trainer || nl_train_bpe_add(trainer, t->text.data, t->ends, t->n, &error) != 0 ||
        nl_train_bpe_run(trainer, NULL, NULL, &error) != 0 || nl_train_bpe_write(trainer, &out, &error) != 0)
        fail_msg("%s", error.message);
    struct nl_json *json = nl_json_parse(out.data, out.size, "tokenizer.json", &error);
    if (!json)
        fail_msg("%s", error.message);
    nl_train_bpe_close(trainer);
    nl_buf_free(&out);
    return json;
}

static void end_training(struct training *t)
{
    nl_json_free(t->form);
    nl_buf_free(&t->text);
}

/* The keys of `vocab`, whose ids count up from 0, are the strings of `tokens`. */
static bool same_vocab(const struct nl_json *vocab, const struct nl_json *tokens)
{
    const struct nl_json *got = nl_json_first(vocab), *want = nl_json_first(tokens);
    for (int64_t id = 0, value; got && want; got = nl_json_next(got), want = nl_json_next(want), id++)
        if (!nl_json_integer(got, 0, INT32_MAX, &value) || value != id ||
            strcmp(nl_json_key(got), nl_json_string(want)) != 0) {
            print_error("token %d is %s, not %s\n", (int)id, nl_json_key(got), nl_json_string(want));
            return false;
        }
    return !got && !want;
}

static bool same_text(const struct nl_json *a, const struct nl_json *b)
{
    struct nl_buf x = {0}, y = {0};
    nl_json_print(a, &x);
    nl_json_print(b, &y);
    bool same = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    nl_buf_free(&x);
    nl_buf_free(&y);
    return same;
}

static void test_cases(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_buf file = {0};
    size_t n = 0, bad = 0;
    assert_int_equal(nl_file_read("tests/data/train/cases.jsonl", 1 << 24, &file, &error), 0);
    for (char *at = file.data, *end; (end = strchr(at, '\n')); at = end + 1, n++) {
        struct training t;
        struct nl_json *line = nl_json_parse(at, (size_t)(end - at), "case", &error);
        assert_non_null(line);
        read_case(line, &t);
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            struct nl_json *got = run_training(&t, threads);
            const struct nl_json *model = nl_json_get(got, "model");
            bool good = same_vocab(nl_json_get(model, "vocab"), nl_json_get(line, "tokens")) &&
                        same_text(nl_json_get(model, "merges"), nl_json_get(line, "merges"));
            if (!good)
                print_error("line %zu with %u threads differs\n", n + 1, threads);
            bad += !good;
            nl_json_free(got);
        }
        end_training(&t);
        nl_json_free(line);
    }
    nl_buf_free(&file);
    assert_true(n > 50);
    assert_int_equal(bad, 0);
}

static struct nl_json *parse(const char *text)
{
    struct nl_error error;
    struct nl_json *json = nl_json_parse(text, strlen(text), "form", &error);
    if (!json)
        fail_msg("%s", error.message);
    return json;
}

static struct nl_json *train_like(const char *form, const char *const *special, size_t n_special)
{
    struct training t = {.options = nl_train_bpe_defaults(), .form = parse(form), .n_special = n_special};
    for (size_t i = 0; i < n_special; i++)
        t.special[i] = special[i];
    t.options.vocab_size = 300;
    nl_buf_puts(&t.text, "hello hello\n");
    t.ends[t.n++] = t.text.size;
    struct nl_json *json = run_training(&t, 1);
    end_training(&t);
    return json;
}

#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}"

static const char rich_form[] =
    "{" BYTE_LEVEL ",\"normalizer\":{\"type\":\"NFC\"},\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"added_tokens\":[{\"id\":7,\"content\":\"<pad>\",\"special\":true,\"lstrip\":true},"
    "{\"id\":8,\"content\":\"plain\",\"special\":false},{\"id\":9,\"content\":\"<s>\",\"special\":true}],"
    "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":"
    "{\"<s>\":{\"id\":\"<s>\",\"ids\":[128000],\"tokens\":[\"<s>\"]}}}]},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0},\"merges\":[],\"ignore_merges\":true,\"unk_token\":null,"
    "\"end_of_word_suffix\":\"\"}}";

static void test_form_is_kept(void **state)
{
    (void)state;
    const char *special[] = {"</s>", "<s>"};
    struct nl_json *form = parse(rich_form), *got = train_like(rich_form, special, 2);
    static const char *const same[] = {"normalizer", "pre_tokenizer", "decoder"};
    for (int i = 0; i < 3; i++)
        assert_true(same_text(nl_json_get(got, same[i]), nl_json_get(form, same[i])));
    const struct nl_json *model = nl_json_get(got, "model");
    assert_true(nl_json_is(nl_json_get(model, "ignore_merges"), NL_JSON_TRUE));
    assert_string_equal(nl_json_string(nl_json_get(model, "end_of_word_suffix")), "");
    struct nl_json *want = parse("[{\"id\":0,\"content\":\"<pad>\",\"single_word\":false,\"lstrip\":true,"
                                 "\"rstrip\":false,\"normalized\":false,\"special\":true},"
                                 "{\"id\":1,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,"
                                 "\"rstrip\":false,\"normalized\":false,\"special\":true},"
                                 "{\"id\":2,\"content\":\"</s>\",\"single_word\":false,\"lstrip\":false,"
                                 "\"rstrip\":false,\"normalized\":false,\"special\":true}]");
    assert_true(same_text(nl_json_get(got, "added_tokens"), want));
    nl_json_free(want);
    nl_json_free(form);
    nl_json_free(got);
}

static void test_form_ids(void **state)
{
    (void)state;
    struct nl_json *got = train_like(rich_form, NULL, 0);
    struct nl_json *want = parse("{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],\"tokens\":[\"<s>\"]}}");
    const struct nl_json *processors = nl_json_get(nl_json_get(got, "post_processor"), "processors");
    assert_true(same_text(nl_json_get(nl_json_next(nl_json_first(processors)), "special_tokens"), want));
    nl_json_free(want);
    nl_json_free(got);
    got = train_like("{" BYTE_LEVEL ",\"added_tokens\":[{\"content\":\"[S]\",\"special\":true}],"
                     "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"[C]\",5],"
                     "\"cls\":[\"[S]\",6],\"trim_offsets\":true}}",
                     (const char *[]){"[C]"}, 1);
    want = parse("{\"type\":\"RobertaProcessing\",\"sep\":[\"[C]\",1],\"cls\":[\"[S]\",0],"
                 "\"trim_offsets\":true}");
    assert_true(same_text(nl_json_get(got, "post_processor"), want));
    nl_json_free(want);
    nl_json_free(got);
}

static void refused(const char *text, enum nl_status code, const char *part)
{
    struct nl_error error = {0};
    struct nl_json *form = parse(text);
    struct nl_train_bpe_options options = nl_train_bpe_defaults();
    struct nl_train_bpe *trainer = nl_train_bpe_open(&options, form, NULL, 0, &error);
    struct nl_buf out = {0};
    if (trainer) {
        assert_int_equal(nl_train_bpe_run(trainer, NULL, NULL, &error), 0);
        assert_int_equal(nl_train_bpe_write(trainer, &out, &error), -1);
    }
    assert_int_equal(error.code, code);
    if (!strstr(error.message, part))
        fail_msg("'%s' does not say '%s'", error.message, part);
    nl_train_bpe_close(trainer);
    nl_buf_free(&out);
    nl_json_free(form);
}

static void test_refused(void **state)
{
    (void)state;
    refused("[]", NL_DATA, "not an object");
    refused("{}", NL_UNSUPPORTED, "not byte-level");
    refused("{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}}", NL_UNSUPPORTED,
            "not byte-level");
    refused("{\"pre_tokenizer\":{\"type\":\"Nonsense\"}}", NL_UNSUPPORTED, "Nonsense");
    refused("{" BYTE_LEVEL ",\"normalizer\":{\"type\":\"Other\"}}", NL_UNSUPPORTED, "Other");
    refused("{" BYTE_LEVEL ",\"model\":{\"type\":\"Unigram\"}}", NL_UNSUPPORTED, "Unigram");
    refused("{" BYTE_LEVEL ",\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\"}}", NL_UNSUPPORTED,
            "end_of_word_suffix");
    refused("{" BYTE_LEVEL ",\"model\":3}", NL_DATA, "model");
    refused("{" BYTE_LEVEL ",\"added_tokens\":3}", NL_DATA, "added_tokens");
    refused("{" BYTE_LEVEL ",\"added_tokens\":[3]}", NL_DATA, "added_tokens");
    refused("{" BYTE_LEVEL ",\"added_tokens\":[{\"special\":true}]}", NL_DATA, "content");
    refused("{" BYTE_LEVEL ",\"added_tokens\":[{\"special\":true,\"content\":\"\"}]}", NL_DATA, "empty");
    refused("{" BYTE_LEVEL ",\"added_tokens\":[{\"special\":true,\"content\":\"a\\u0000\"}]}", NL_DATA,
            "U+0000");
    refused("{" BYTE_LEVEL ",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[S]\",1]}}", NL_DATA,
            "[S]");
    refused("{" BYTE_LEVEL ",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[]}}", NL_DATA,
            "post_processor");
    refused("{" BYTE_LEVEL ",\"post_processor\":{\"special_tokens\":{\"x\":{\"ids\":[1]}}}}", NL_DATA,
            "tokens");
    struct nl_error error = {0};
    assert_null(nl_train_bpe_form("gpt3", &error));
    assert_int_equal(error.code, NL_USAGE);
    assert_non_null(strstr(error.message, "o200k"));
}

/* What was trained loads, and gives back each text. */
static void test_loads(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_json *json = train_like(rich_form, NULL, 0);
    struct nl_buf text = {0};
    char path[] = "/tmp/nl-train-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    nl_json_print(json, &text);
    assert_int_equal(nl_write_all(fd, text.data, text.size, path, &error), 0);
    close(fd);
    struct nl_tokenizer *tokenizer = nl_tokenizer_open(path, &error);
    if (!tokenizer)
        fail_msg("%s", error.message);
    struct nl_ids ids = {0};
    assert_int_equal(nl_tokenizer_encode(tokenizer, "hello", 5, NL_ENCODE_SPECIAL, &ids, &error), 0);
    size_t length;
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.data[0], 1); /* <s> */
    assert_memory_equal(nl_tokenizer_piece(tokenizer, ids.data[1], &length), " hello", 6);
    nl_ids_free(&ids);
    nl_tokenizer_close(tokenizer);
    unlink(path);
    nl_buf_free(&text);
    nl_json_free(json);
}

static int give_up(void *context, uint32_t size, uint32_t wanted)
{
    uint32_t *calls = context;
    assert_int_equal(wanted, 300);
    assert_int_equal(size, 257 + *calls);
    return ++*calls == 2 ? -1 : 0;
}

static void test_give_up(void **state)
{
    (void)state;
    struct nl_error error = {0};
    uint32_t calls = 0;
    size_t end = 11;
    struct nl_json *form = nl_train_bpe_form("none", &error);
    struct nl_train_bpe_options options = nl_train_bpe_defaults();
    options.vocab_size = 300;
    struct nl_train_bpe *trainer = nl_train_bpe_open(&options, form, NULL, 0, &error);
    assert_non_null(trainer);
    assert_int_equal(nl_train_bpe_add(trainer, "hello world", &end, 1, &error), 0);
    assert_int_equal(nl_train_bpe_run(trainer, give_up, &calls, &error), -1);
    assert_int_equal(calls, 2);
    assert_string_equal(error.message, "");
    nl_train_bpe_close(trainer);
    nl_json_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),   cmocka_unit_test(test_form_is_kept), cmocka_unit_test(test_form_ids),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_loads),        cmocka_unit_test(test_give_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
