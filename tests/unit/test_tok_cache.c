/* The compiled tokenizer that is mapped at the next start: used when it holds, and never when it does not. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "tok.h"
#include "tok_source.h"

static char folder[] = "/tmp/nl-tok-cache-XXXXXX";
static struct nl_buf json, config, cache;
static struct nl_tok_sources sources;
static struct nl_buf good; /* the cache's file as it was written */

/* Padded: small ones are not kept. */
static const char tokenizer_json[] =
    "{\"added_tokens\":[{\"content\":\"<s>\",\"special\":true},{\"content\":\"<e>\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x+\"},\"content\":\"a\"},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":"
    "\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3,\"\xc4\xa0"
    "ab\":4},\"merges\":[\"a b\",\"\xc4\xa0 ab\"]}}";

static void write_file(const char *path, const void *bytes, size_t size)
{
    struct nl_error error;
    struct nl_outfile file;
    assert_int_equal(nl_outfile_open(&file, path, &error), 0);
    assert_int_equal(nl_write_all(file.fd, bytes, size, path, &error), 0);
    fchmod(file.fd, 0600);
    assert_int_equal(nl_outfile_commit(&file, &error), 0);
}

static int setup(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_buf text = {0};
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    nl_buf_printf(&json, "%s/tokenizer.json", folder);
    nl_buf_printf(&config, "%s/tokenizer_config.json", folder);
    nl_buf_printf(&text, "%s%200000s", tokenizer_json, "");
    write_file(json.data, text.data, text.size);
    write_file(config.data, "{}", 2);
    nl_buf_free(&text);
    sleep(4); /* what has just been changed may change again without a trace */
    assert_int_equal(nl_tok_sources_look(&sources, folder, &error), 0);
    assert_true(nl_tok_sources_cache(&sources, "tokenizer-tables", &cache));
    struct nl_tokenizer *tok = nl_tokenizer_open(folder, &error);
    assert_non_null(tok);
    assert_null(tok->image.data);
    nl_tokenizer_close(tok);
    assert_int_equal(nl_file_read(cache.data, 1 << 24, &good, &error), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct nl_buf command = {0};
    nl_buf_printf(&command, "rm -rf %s", folder);
    int status = system(command.data);
    nl_buf_free(&command);
    nl_buf_free(&json);
    nl_buf_free(&config);
    nl_buf_free(&cache);
    nl_buf_free(&good);
    nl_tok_sources_free(&sources);
    return status;
}

static void expect(struct nl_tokenizer *tok)
{
    static const char text[] = "<s>ab xxb ab<e>";
    static const uint32_t wanted[] = {5, 2, 4, 4, 6};
    struct nl_ids ids = {0};
    struct nl_buf out = {0};
    struct nl_error error;
    size_t length;
    uint32_t id;
    assert_int_equal(nl_tokenizer_encode(tok, text, sizeof text - 1, 0, &ids, &error), 0);
    assert_int_equal(ids.count, sizeof wanted / sizeof *wanted);
    assert_memory_equal(ids.data, wanted, sizeof wanted);
    struct nl_decoder *decoder = nl_decoder_open(tok, 0, &error);
    for (size_t i = 0; i < ids.count; i++)
        assert_int_equal(nl_decoder_push(decoder, ids.data[i], &out, &error), 0);
    assert_string_equal(out.data, "ab ab ab");
    assert_memory_equal(nl_tokenizer_piece(tok, 4, &length), " ab", 3);
    assert_int_equal(length, 3);
    assert_true(nl_tokenizer_id(tok, "<e>", 3, &id));
    assert_int_equal(id, 6);
    assert_int_equal(nl_tokenizer_vocab_size(tok), 7);
    nl_decoder_close(decoder);
    nl_buf_free(&out);
    nl_ids_free(&ids);
}

static void test_mapped(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_tokenizer *tok = nl_tokenizer_open(folder, &error);
    assert_non_null(tok);
    assert_non_null(tok->image.data);
    expect(tok);
    nl_tokenizer_close(tok);
}

static void refused(const void *bytes, size_t size)
{
    write_file(cache.data, bytes, size);
    struct nl_tokenizer *tok = nl_tok_cache_open(&sources);
    assert_null(tok);
}

static void test_damaged(void **state)
{
    (void)state;
    struct nl_error error;
    size_t step = 1;
    for (size_t i = 0; i < good.size; i += step) {
        if (i > 3000)
            step = 997;
        bool padding = true; /* what lies between two arrays is nobody's */
        for (size_t j = i > 64 ? i - 64 : 0; j < i; j++)
            padding = padding && good.data[j] == 0;
        good.data[i] ^= 0x10;
        write_file(cache.data, good.data, good.size);
        struct nl_tokenizer *tok = nl_tok_cache_open(&sources);
        good.data[i] ^= 0x10;
        if (tok)
            expect(tok);
        nl_tokenizer_close(tok);
        if (i < 2000 || !padding)
            assert_true(!tok || good.data[i] == 0);
    }
    for (size_t size = 0; size < good.size; size += size < 300 ? 1 : 9973)
        refused(good.data, size);
    refused(good.data, good.size - 1);
    struct nl_tokenizer *tok = nl_tokenizer_open(folder, &error); /* made anew */
    assert_null(tok->image.data);
    expect(tok);
    nl_tokenizer_close(tok);
    test_mapped(state);
}

static void test_others(void **state)
{
    (void)state;
    assert_int_equal(chmod(cache.data, 0622), 0);
    assert_null(nl_tok_cache_open(&sources));
    assert_int_equal(chmod(cache.data, 0600), 0);
    test_mapped(state);
}

static void test_no_folder(void **state)
{
    (void)state;
    struct nl_error error;
    setenv("XDG_CACHE_HOME", "/dev/null/none", 1);
    struct nl_tokenizer *tok = nl_tokenizer_open(folder, &error);
    assert_non_null(tok);
    assert_null(tok->image.data);
    expect(tok);
    nl_tokenizer_close(tok);
    setenv("XDG_CACHE_HOME", folder, 1);
}

/* Other sources than those of the cache: none, though the name is the same. */
static void test_changed(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_tok_sources now;
    struct nl_tokenizer *tok;
    for (unsigned i = 0; i < 14; i++) {
        sources.identity[i] ^= 1;
        struct nl_buf other = {0};
        assert_true(nl_tok_sources_cache(&sources, "tokenizer-tables", &other));
        write_file(other.data, good.data, good.size);
        assert_null(nl_tok_cache_open(&sources));
        unlink(other.data);
        nl_buf_free(&other);
        sources.identity[i] ^= 1;
    }
    write_file(config.data, "{ }", 3);
    assert_int_equal(nl_tok_sources_look(&now, folder, &error), 0);
    assert_null(nl_tok_cache_open(&now));
    nl_tok_sources_free(&now);
    tok = nl_tokenizer_open(folder, &error); /* too new to be kept */
    expect(tok);
    nl_tokenizer_close(tok);
    tok = nl_tokenizer_open(folder, &error);
    assert_null(tok->image.data);
    nl_tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped),    cmocka_unit_test(test_damaged), cmocka_unit_test(test_others),
        cmocka_unit_test(test_no_folder), cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
