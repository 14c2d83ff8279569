/* Texts cut where nl_encoder_cut allows it: the ids of the parts together are those of the whole. */
#include "test.h"

#include <unistd.h>

#include "tok.h"

static uint64_t state = 7;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % below);
}

static size_t make(char *text, size_t most)
{
    static const char *const parts[] = {"a b",
                                        " c",
                                        "don't go",
                                        "I'LL x",
                                        "  y",
                                        "\n z",
                                        "x\n",
                                        "1 2",
                                        "a1 b",
                                        "e\xcc\x81 f",
                                        "K\xe2\x84\xaa s",
                                        "<|im_start|>",
                                        "<|endoftext|> a",
                                        "tool </s> x",
                                        "...",
                                        " !",
                                        "\t",
                                        "q' s",
                                        "Ab Cd",
                                        "'s 't",
                                        "a  b",
                                        "/ x",
                                        "a /b",
                                        "\r\n",
                                        "\xe4\xb8\xad",
                                        "\xc3\xa9 e",
                                        "z \xcc\x88"};
    size_t size = 0;
    for (unsigned n = 1 + draw(20); n > 0; n--) {
        const char *part = parts[draw(sizeof parts / sizeof *parts)];
        if (size + strlen(part) > most)
            break;
        memcpy(text + size, part, strlen(part));
        size += strlen(part);
    }
    return size;
}

static void check(const char *path, bool can_cut)
{
    struct nl_error error;
    struct nl_tokenizer *tok = nl_tokenizer_open(path, &error);
    if (!tok)
        fail_msg("%s", error.message);
    struct nl_encoder *encoder = nl_encoder_open(tok, &error);
    struct nl_ids whole = {0}, parts = {0};
    size_t cuts = 0;
    for (unsigned round = 0; round < 3000; round++) {
        char text[200];
        size_t length = make(text, sizeof text), cut = 0;
        whole.count = 0;
        assert_int_equal(nl_encoder_encode(encoder, text, length, NL_ENCODE_SPECIAL, &whole, &error), 0);
        while ((cut = nl_encoder_cut(encoder, text, cut + 1, length)) < length) {
            cuts++;
            parts.count = 0;
            assert_int_equal(
                nl_encoder_encode(encoder, text, cut, NL_ENCODE_SPECIAL | NL_ENCODE_GOES_ON, &parts, &error),
                0);
            assert_int_equal(nl_encoder_encode(encoder, text + cut, length - cut,
                                               NL_ENCODE_SPECIAL | NL_ENCODE_CONTINUES, &parts, &error),
                             0);
            if (parts.count != whole.count || memcmp(parts.data, whole.data, 4 * whole.count) != 0)
                fail_msg("other ids, cut at byte %zu of: %.*s", cut, (int)length, text);
        }
    }
    assert_int_equal(cuts > 0, can_cut);
    nl_ids_free(&whole);
    nl_ids_free(&parts);
    nl_encoder_close(encoder);
    nl_tokenizer_close(tok);
}

static void test_real(void **unused)
{
    (void)unused;
    static const char *const names[] = {"llama3_1", "qwen2_5", "gptoss", "gemma3", "llama2"};
    const char *build = getenv("B");
    shared_folder();
    for (unsigned i = 0; build && i < 5; i++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/tokenizers/%s", build, names[i]);
        check(path, i < 3);
    }
    if (getenv("NL_SMOLLM2"))
        check(getenv("NL_SMOLLM2"), true);
}

/* Added tokens that a cut would part, or that swallow the blank, forbid every cut. */
static void test_added(void **unused)
{
    (void)unused;
    static const struct {
        const char *token;
        bool can_cut;
    } cases[] = {
        {"{\"content\":\"<x>\",\"lstrip\":true,\"rstrip\":true}", true},
        {"{\"content\":\"xa b\"}", false},
        {"{\"content\":\"a \"}", false},
        {"{\"content\":\"xa\",\"rstrip\":true}", false},
        {"{\"content\":\" bx\",\"single_word\":true}", false},
        {"{\"content\":\"b\",\"single_word\":true,\"lstrip\":true}", true},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/nl-tok-cut-XXXXXX";
        int fd = mkstemp(path);
        FILE *file = fdopen(fd, "w");
        assert_non_null(file);
        fprintf(
            file,
            "{\"added_tokens\":[%s],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
            "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3,\"\xc4\xa0"
            "b\":4,\"x\":5},\"merges\":[\"a b\",\"\xc4\xa0 b\"]}}",
            cases[i].token);
        assert_int_equal(fclose(file), 0);
        check(path, cases[i].can_cut);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_real), cmocka_unit_test(test_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
