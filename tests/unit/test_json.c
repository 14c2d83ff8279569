/* JSON: what is read, what is refused, and that what is written reads back. */
#include "test.h"

#include <locale.h>
#include <time.h>

#include "json.h"

static struct nl_json *read_text(const char *text)
{
    struct nl_error error;
    struct nl_json *json = nl_json_parse(text, strlen(text), "test", &error);
    if (!json)
        fail_msg("%s: refused: %s", text, error.message);
    return json;
}

static void refused(const char *text, size_t length, const char *message)
{
    struct nl_error error = {0};
    struct nl_json *json = nl_json_parse(text, length, "test", &error);
    if (json)
        fail_msg("accepted: %s", text);
    assert_int_equal(error.code, NL_DATA);
    assert_string_equal(error.message, message);
}

static void printed_is(const struct nl_json *json, const char *want)
{
    struct nl_buf out = {0};
    nl_json_print(json, &out);
    assert_string_equal(out.data, want);
    nl_buf_free(&out);
}

static void round_trip(const char *text, const char *want)
{
    struct nl_json *json = read_text(text);
    printed_is(json, want);
    nl_json_free(json);
}

static void reads_and_prints(void **state)
{
    (void)state;
    round_trip("null", "null");
    round_trip(" [ true , false,null ,[],{} ]\r\n\t", "[true,false,null,[],{}]");
    round_trip("{\"b\" : 1, \"a\": {\"c\":[ 1.5 ]}}", "{\"b\":1,\"a\":{\"c\":[1.5]}}");
    round_trip("{\"a\":1,\"A\":2,\"\":3}", "{\"a\":1,\"A\":2,\"\":3}");
    round_trip("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\"",
               "\"\\\"\\\\/\\u0008\\u000c\\n\\u000d\\t\xc3\xa4\xf0\x9f\x98\x80\"");
    round_trip("[0,-0,1e2,0.1,1e-7,123456789012,4294967295,9007199254740993,-1.5E+3]",
               "[0,-0,100,0.1,1e-07,123456789012,4294967295,9007199254740992,-1500]");
    round_trip("[1.7976931348623157e308,5e-324,0.30000000000000004]",
               "[1.7976931348623157e+308,4.94066e-324,0.30000000000000004]");
}

static void long_numbers_are_read_whole(void **state)
{
    (void)state;
    char text[400] = "[1.";
    memset(text + 3, '3', 300);
    strcpy(text + 303, "e1,2]");
    round_trip(text, "[13.333333333333334,2]");
}

static void zero_characters(void **state)
{
    (void)state;
    struct nl_json *json = read_text("{\"a\\u0000b\":\"x\\u0000\\u0000y\",\"a\":1}");
    const struct nl_json *first = nl_json_first(json);
    assert_string_equal(nl_json_key(first), "a\xc0\x80"
                                            "b");
    struct nl_buf out = {0};
    nl_json_copy_string(first, &out);
    assert_int_equal(out.size, 4);
    assert_memory_equal(out.data, "x\0\0y", 5);
    nl_buf_free(&out);
    printed_is(json, "{\"a\\u0000b\":\"x\\u0000\\u0000y\",\"a\":1}");
    nl_json_free(json);
}

static void bad_texts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "unexpected end at byte 0: test"},
        {"  ", "unexpected end at byte 2: test"},
        {"{\"a\":1} x", "something after the value at byte 8: test"},
        {"1 2", "something after the value at byte 2: test"},
        {"[1,]", "trailing comma at byte 3: test"},
        {"[1 2]", "expected ',' or ']' at byte 3: test"},
        {"[1", "unexpected end at byte 2: test"},
        {"{\"a\" 1}", "expected ':' at byte 5: test"},
        {"{\"a\":1,}", "trailing comma at byte 7: test"},
        {"{a:1}", "expected a key in double quotes at byte 1: test"},
        {"{\"a\":1 \"b\"", "expected ',' or '}' at byte 7: test"},
        {"01", "leading zero in a number at byte 0: test"},
        {"-", "unexpected end at byte 1: test"},
        {"+1", "expected a value at byte 0: test"},
        {".5", "expected a value at byte 0: test"},
        {"[1.]", "expected a digit at byte 3: test"},
        {"1e", "unexpected end at byte 2: test"},
        {"1e+", "unexpected end at byte 3: test"},
        {"1e999", "number out of range at byte 0: test"},
        {"0x10", "something after the value at byte 1: test"},
        {"NaN", "expected a value at byte 0: test"},
        {"Infinity", "expected a value at byte 0: test"},
        {"True", "expected a value at byte 0: test"},
        {"nul", "expected a value at byte 0: test"},
        {"truex", "something after the value at byte 4: test"},
        {"\"a", "unexpected end at byte 2: test"},
        {"\"a\\", "unexpected end at byte 3: test"},
        {"\"\\x\"", "unknown escape at byte 1: test"},
        {"\"\\u12g4\"", "expected a hexadecimal digit at byte 5: test"},
        {"\"\\ud83d\"", "half of a surrogate pair at byte 1: test"},
        {"\"\\ud83d\\u0041\"", "half of a surrogate pair at byte 1: test"},
        {"\"\\ude00\"", "half of a surrogate pair at byte 1: test"},
        {"\"a\nb\"", "control character in a string at byte 2: test"},
        {"\xef\xbb\xbf{}", "expected a value at byte 0: test"},
        {"\v1", "expected a value at byte 0: test"},
        {"\"\xff\"", "invalid UTF-8 at byte 1: test"},
        {"\"\xc0\x80\"", "invalid UTF-8 at byte 1: test"},
        {"\"\xed\xa0\x80\"", "invalid UTF-8 at byte 1: test"},
        {"\"\xf4\x90\x80\x80\"", "invalid UTF-8 at byte 1: test"},
        {"\"\xe2\x82\"", "invalid UTF-8 at byte 1: test"},
        {"{\"a\":1,\"b\":2,\"\\u0061\":3}", "duplicate key \"a\": test"},
        {"[{\"x\":{\"a\":1,\"a\":1}}]", "duplicate key \"a\": test"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i][0], strlen(cases[i][0]), cases[i][1]);
    refused("[1,2]\0", 6, "something after the value at byte 5: test");
    refused("\"a\0b\"", 5, "control character in a string at byte 2: test");
}

static void nesting(void **state)
{
    (void)state;
    char text[2100];
    memset(text, '[', 1001);
    memset(text + 1001, ']', 1001);
    refused(text, 2002, "nested too deeply at byte 1000: test");
    text[2001] = '\0';
    round_trip(text + 1, text + 1);
}

/* 300,000 members: neither the check for duplicates nor anything else may be quadratic. */
static void big_object(void **state)
{
    (void)state;
    struct nl_buf text = {0};
    for (int i = 0; i < 300000; i++)
        nl_buf_printf(&text, "%c\"key number %d\":%d", i ? ',' : '{', i, i);
    nl_buf_putc(&text, '}');
    struct nl_error error;
    clock_t start = clock();
    struct nl_json *json = nl_json_parse(text.data, text.size, "test", &error);
    assert_non_null(json);
    assert_int_equal(nl_json_count(json), 300000);
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
    nl_json_free(json);
    text.size--;
    nl_buf_puts(&text, ",\"key number 7\":0}");
    refused(text.data, text.size, "duplicate key \"key number 7\": test");
    nl_buf_free(&text);
}

static void lookups(void **state)
{
    (void)state;
    struct nl_json *json = read_text("{\"Key\":1,\"key\":2.5,\"s\":\"x\",\"n\":9007199254740992,\"f\":-3,"
                                     "\"m\":9007199254740994,\"h\":-1e300}");
    int64_t integer = 0;
    assert_true(nl_json_integer(nl_json_get(json, "Key"), 0, 10, &integer));
    assert_int_equal(integer, 1);
    assert_false(nl_json_integer(nl_json_get(json, "key"), 0, 10, &integer));
    assert_false(nl_json_integer(nl_json_get(json, "KEY"), 0, 10, &integer));
    assert_false(nl_json_integer(nl_json_get(json, "s"), 0, 10, &integer));
    assert_false(nl_json_integer(nl_json_get(json, "f"), 0, 10, &integer));
    assert_true(nl_json_integer(nl_json_get(json, "f"), INT64_MIN, INT64_MAX, &integer));
    assert_int_equal(integer, -3);
    assert_true(nl_json_integer(nl_json_get(json, "n"), 0, INT64_MAX, &integer));
    assert_true(integer == INT64_C(9007199254740992));
    assert_false(nl_json_integer(nl_json_get(json, "m"), 0, INT64_MAX, &integer));
    assert_false(nl_json_integer(nl_json_get(json, "h"), INT64_MIN, INT64_MAX, &integer));
    assert_null(nl_json_get(NULL, "x"));
    assert_null(nl_json_get(nl_json_get(json, "s"), "x"));
    assert_true(nl_json_is(nl_json_get(json, "s"), NL_JSON_STRING));
    assert_false(nl_json_is(NULL, NL_JSON_NULL));
    nl_json_free(json);
}

static void edits(void **state)
{
    (void)state;
    struct nl_error error;
    struct nl_json *json = nl_json_new_object(), *other = read_text("{\"x\":[1,{\"y\":null}]}");
    uint32_t ids[] = {0, 7, 4294967295};
    assert_int_equal(nl_json_set_string(json, "s", "a\"b\xff", &error), 0);
    assert_int_equal(nl_json_set_number(json, "n", 0.5, &error), 0);
    assert_int_equal(nl_json_set_ids(json, "ids", ids, 3, &error), 0);
    assert_int_equal(nl_json_set_ids(json, "none", ids, 0, &error), 0);
    assert_int_equal(nl_json_set_copy(json, "copy", other, &error), 0);
    nl_json_free(other);
    assert_int_equal(nl_json_set_bool(json, "n", true, &error), 0);
    assert_int_equal(nl_json_set_number(json, "N", 3, &error), 0);
    nl_json_remove(json, "none");
    nl_json_remove(json, "not there");
    printed_is(json, "{\"s\":\"a\\\"b\xef\xbf\xbd\",\"n\":true,\"ids\":[0,7,4294967295],"
                     "\"copy\":{\"x\":[1,{\"y\":null}]},\"N\":3}");
    nl_json_free(json);
}

static void quoting(void **state)
{
    (void)state;
    struct nl_buf out = {0};
    nl_json_quote(&out, "a\0\x1f\x7f\xc0\x80\xe4\xb8\xad\xe4\xb8", 11);
    assert_string_equal(
        out.data, "\"a\\u0000\\u001f\\u007f\xef\xbf\xbd\xef\xbf\xbd\xe4\xb8\xad\xef\xbf\xbd\xef\xbf\xbd\"");
    nl_buf_free(&out);
}

static void locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    for (size_t i = 0; i < 4 && !setlocale(LC_NUMERIC, commas[i]); i++)
        ;
    round_trip("[1.5,0.30000000000000004]", "[1.5,0.30000000000000004]");
    setlocale(LC_NUMERIC, "C");
}

static void loads_a_file(void **state)
{
    (void)state;
    struct nl_error error;
    char path[] = "/tmp/nl-json.XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fputs("{\"a\":[1]}\n", file);
    fclose(file);
    struct nl_json *json = nl_json_load(path, &error);
    assert_non_null(json);
    printed_is(json, "{\"a\":[1]}");
    nl_json_free(json);
    file = fopen(path, "w");
    fclose(file);
    assert_null(nl_json_load(path, &error));
    assert_int_equal(error.code, NL_DATA);
    assert_non_null(strstr(error.message, path));
    remove(path);
    assert_null(nl_json_load(path, &error));
    assert_int_equal(error.code, NL_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_prints), cmocka_unit_test(long_numbers_are_read_whole),
        cmocka_unit_test(zero_characters),  cmocka_unit_test(bad_texts),
        cmocka_unit_test(nesting),          cmocka_unit_test(big_object),
        cmocka_unit_test(lookups),          cmocka_unit_test(edits),
        cmocka_unit_test(quoting),          cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(loads_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
