/* Regexes of Oniguruma's syntax: the pieces that `tokenizers` 0.23 splits texts into
   (tests/data/tokenizer/regex.jsonl, made by tests/reference/make_regex.py), with PCRE2's tables and with
   ours alone; and what must be refused. */
#include "test.h"

#include <time.h>

#include "file.h"
#include "json.h"
#include "regex.h"

static void refused(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "(",
        ")",
        "a)",
        "[a",
        "\\",
        "*a",
        "a|*",
        "\\p{Script=Han}",
        "\\p{L",
        "(?s).",
        "(?<1n>a)",
        "\\1",
        "\\k<n>",
        "\\X",
        "(?i:\xc3\x9f)",
        "\\K",
        "[z-a]",
        "[a-\\d]",
        "a{3,2}",
        "a{9999999}",
        "(?i:s)(?i:s)",
        "(?~a)",
        "[[:nope:]]",
        "\\xff",
        "\\x{110000}",
        "\\x{d800}",
        "\\u12",
        "(?<=a+)b",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct nl_error error;
        struct nl_regex *regex = nl_regex_compile(patterns[i], strlen(patterns[i]), &error);
        if (regex)
            fail_msg("taken: %s", patterns[i]);
        assert_int_equal(error.code, NL_UNSUPPORTED);
    }
}

static void nested_deeply(void **state)
{
    (void)state;
    static const char *const units[] = {"(", "[", "(?:", "a|("};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct nl_buf pattern = {0};
        struct nl_error error;
        for (int n = 0; n < 100000; n++)
            nl_buf_puts(&pattern, units[i]);
        assert_null(nl_regex_compile(pattern.data, pattern.size, &error));
        nl_buf_free(&pattern);
    }
}

/* The text cut at every match, as the "isolated" behaviour does, against the pieces wanted. */
static bool pieces_are(const struct nl_regex *regex, struct nl_regex_scratch *scratch,
                       const struct nl_buf *text, const struct nl_json *wanted)
{
    struct nl_error error;
    struct nl_buf got = {0}, want = {0};
    size_t at = 0, done = 0, last = SIZE_MAX, begin, end;
    while (at <= text->size &&
           nl_regex_search(regex, scratch, text->data, text->size, at, &begin, &end, &error) == 1) {
        at = end;
        if (begin == end && last == end) {
            do
                at++;
            while (at < text->size && ((unsigned char)text->data[at] & 0xc0) == 0x80);
            continue;
        }
        last = end;
        if (begin > done)
            nl_buf_printf(&got, "%.*s|", (int)(begin - done), text->data + done);
        if (end > begin)
            nl_buf_printf(&got, "%.*s|", (int)(end - begin), text->data + begin);
        done = end;
    }
    if (done < text->size)
        nl_buf_printf(&got, "%.*s|", (int)(text->size - done), text->data + done);
    for (const struct nl_json *piece = nl_json_first(wanted); piece; piece = nl_json_next(piece))
        nl_buf_printf(&want, "%s|", nl_json_string(piece));
    bool same = got.size == want.size && memcmp(got.data, want.data, got.size) == 0;
    if (!same)
        print_message("# got %s want %s\n", got.data, want.data);
    nl_buf_free(&got);
    nl_buf_free(&want);
    return same;
}

static void same_pieces_as_the_reference(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_buf lines = {0};
    unsigned wrong = 0, done = 0;
    assert_int_equal(nl_file_read("tests/data/tokenizer/regex.jsonl", 1 << 24, &lines, &error), 0);
    struct nl_regex_scratch *scratch = nl_regex_scratch_new(&error);
    for (char *line = lines.data, *end; (end = strchr(line, '\n')); line = end + 1) {
        struct nl_json *json = nl_json_parse(line, (size_t)(end - line), "regex.jsonl", &error);
        struct nl_buf pattern = {0}, text = {0};
        nl_json_copy_string(nl_json_get(json, "regex"), &pattern);
        nl_json_copy_string(nl_json_get(json, "text"), &text);
        struct nl_regex *regex = nl_regex_compile(pattern.data, pattern.size, &error);
        if (!regex)
            fail_msg("%s", error.message);
        done++;
        if (!pieces_are(regex, scratch, &text, nl_json_get(json, "pieces"))) {
            wrong++;
            print_message("# wrong: %.300s\n", line);
        }
        nl_regex_free(regex);
        nl_buf_free(&pattern);
        nl_buf_free(&text);
        nl_json_free(json);
    }
    nl_regex_scratch_free(scratch);
    nl_buf_free(&lines);
    if (wrong || done < 500)
        fail_msg("%u of %u wrong", wrong, done);
}

/* What PCRE2 knows does not matter: the class spelt out in full and the one built on PCRE2's own say the
 * same. */
static void tables_spelt_out(void **state)
{
    (void)state;
    struct nl_buf native = {0}, full = {0};
    struct nl_error error;
    assert_int_equal(nl_regex_translate("[\\p{Lu}x]", 9, true, &native, &error), 0);
    assert_int_equal(nl_regex_translate("[\\p{Lu}x]", 9, false, &full, &error), 0);
    assert_non_null(strstr(native.data, "\\p{Lu}"));
    assert_non_null(strstr(native.data, "\\x{1c89}")); /* new in Unicode 16 */
    assert_null(strstr(full.data, "\\p"));
    assert_non_null(strstr(full.data, "\\x{41}-\\x{5a}\\x{78}\\x{c0}-\\x{d6}"));
    nl_buf_free(&native);
    nl_buf_free(&full);
}

/* Long runs: no overflow of a stack, no time that grows with the square. */
static void long_runs(void **state)
{
    (void)state;
    static const char llama3[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                                 "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    static const char *const patterns[] = {llama3, "(?:a|b| |1)*+c|.", "(?:(?:a|b)c?| |1)+"};
    enum { SIZE = 1 << 20 };
    struct nl_error error;
    char *text = malloc(SIZE);
    assert_non_null(text);
    struct nl_regex_scratch *scratch = nl_regex_scratch_new(&error);
    for (unsigned i = 0; i < 9; i++) {
        const char *pattern = patterns[i / 3];
        memset(text, "a 1"[i % 3], SIZE);
        text[SIZE - 1] = 'b';
        struct nl_regex *regex = nl_regex_compile(pattern, strlen(pattern), &error);
        assert_non_null(regex);
        size_t at = 0, end, n = 0;
        clock_t start = clock();
        while (at < SIZE && n++ < 2000000 && i / 3 != 1) {
            size_t begin;
            assert_int_equal(nl_regex_search(regex, scratch, text, SIZE, at, &begin, &end, &error), 1);
            at = end;
        }
        assert_true(clock() - start < 20 * CLOCKS_PER_SEC);
        if (i / 3 == 1) /* needs a stack of its own for each step: the interpreter goes on where JIT cannot */
            assert_int_equal(nl_regex_search(regex, scratch, text, SIZE, 0, &at, &end, &error), 1);
        nl_regex_free(regex);
    }
    nl_regex_scratch_free(scratch);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),
        cmocka_unit_test(nested_deeply),
        cmocka_unit_test(same_pieces_as_the_reference),
        cmocka_unit_test(tables_spelt_out),
        cmocka_unit_test(long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
