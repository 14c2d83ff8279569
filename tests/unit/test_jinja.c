/* The Jinja interpreter against tests/data/chat/cases.jsonl, which transformers made (make_chat_cases.py),
   and its limits. */
#include "test.h"

#include <time.h>

#include "file.h"
#include "jinja_value.h"
#include "json.h"

enum { NOW = 1721997296 }; /* 2024-07-26 12:34:56 UTC, as in the cases */

static int set_variables(struct nl_jinja_run *run, const struct nl_json *variables, struct nl_error *error)
{
    for (const struct nl_json *v = variables ? nl_json_first(variables) : NULL; v; v = nl_json_next(v)) {
        struct nl_buf text = {0};
        nl_json_copy_string(v, &text);
        int result = nl_jinja_set_json(run, nl_json_key(v), text.data, text.size, error);
        nl_buf_free(&text);
        if (result != 0)
            return -1;
    }
    return 0;
}

/* Within so many steps. */
static int render_within(uint64_t steps, const char *source, size_t size, const struct nl_json *variables,
                         struct nl_buf *out, struct nl_error *error)
{
    struct nl_jinja *template = nl_jinja_open(source, size, "template", error);
    struct nl_jinja_run *run = template ? nl_jinja_run_open(error) : NULL;
    int result = -1;
    if (run) {
        nl_jinja_set_now(run, NOW);
        run->steps = JINJA_MOST_STEPS - steps;
        result = set_variables(run, variables, error);
        if (result == 0)
            result = nl_jinja_render(run, template, out, error);
    }
    nl_jinja_run_close(run);
    nl_jinja_close(template);
    return result;
}

static int render(const char *source, size_t size, const struct nl_json *variables, struct nl_buf *out,
                  struct nl_error *error)
{
    return render_within(JINJA_MOST_STEPS, source, size, variables, out, error);
}

static void check_case(const struct nl_json *item)
{
    struct nl_buf source = {0}, made = {0}, want = {0};
    struct nl_error error = {0};
    const struct nl_json *text = nl_json_get(item, "text");
    nl_json_copy_string(nl_json_get(item, "template"), &source);
    int result = render(source.data, source.size, nl_json_get(item, "variables"), &made, &error);
    if (text)
        nl_json_copy_string(text, &want);
    bool good = text ? result == 0 && made.size == want.size && memcmp(made.data, want.data, want.size) == 0
                     : result != 0 && (error.code == NL_DATA || error.code == NL_UNSUPPORTED);
    if (!good)
        fail_msg("%s\ngot:  %s\nwant: %s", nl_json_get_string(item, "name"),
                 result == 0 ? made.data : error.message, text ? want.data : "an error");
    nl_buf_free(&source);
    nl_buf_free(&made);
    nl_buf_free(&want);
}

/* The same ended early, at one step after the other: nothing else is wrong then. */
static void check_failures(const struct nl_json *item)
{
    struct nl_buf source = {0};
    nl_json_copy_string(nl_json_get(item, "template"), &source);
    for (uint64_t steps = 0; nl_json_get(item, "text"); steps += 1 + steps / 8) {
        struct nl_buf made = {0};
        struct nl_error error = {0};
        int result =
            render_within(steps, source.data, source.size, nl_json_get(item, "variables"), &made, &error);
        nl_buf_free(&made);
        if (result == 0)
            break;
        if (!strstr(error.message, "more than 10000000 steps"))
            fail_msg("%s, %d steps: %s", nl_json_get_string(item, "name"), (int)steps, error.message);
    }
    nl_buf_free(&source);
}

static void for_cases(void (*check)(const struct nl_json *item))
{
    struct nl_buf text = {0};
    struct nl_error error;
    int n = 0;
    setenv("TZ", "UTC", 1);
    assert_int_equal(nl_file_read("tests/data/chat/cases.jsonl", 1 << 24, &text, &error), 0);
    for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        struct nl_json *item = nl_json_parse(line, (size_t)(end - line), "case", &error);
        assert_non_null(item);
        check(item);
        nl_json_free(item);
    }
    assert_true(n > 90);
    nl_buf_free(&text);
}

static void cases(void **state)
{
    (void)state;
    for_cases(check_case);
}

static void failures(void **state)
{
    (void)state;
    for_cases(check_failures);
}

/* Renders a template of C's with one variable `n`; checks its text, or the code and a part of the message. */
static void expect(const char *source, const char *text, enum nl_status code, const char *message)
{
    struct nl_error error = {0};
    struct nl_buf made = {0};
    struct nl_json *variables = nl_json_parse("{\"n\":\"7\"}", 9, "test", &error);
    nl_buf_add(&made, "", 0);
    int result = render(source, strlen(source), variables, &made, &error);
    if (text) {
        assert_int_equal(result, 0);
        assert_string_equal(made.data, text);
    } else {
        assert_int_equal(result, -1);
        assert_int_equal(error.code, code);
        if (!strstr(error.message, message))
            fail_msg("'%s' is not in '%s'", message, error.message);
    }
    nl_buf_free(&made);
    nl_json_free(variables);
}

static void refusals(void **state)
{
    (void)state;
    expect("a\n{% include 'x' %}", NULL, NL_UNSUPPORTED,
           "tag 'include', which is not supported or out of place: template, line 2");
    expect("{{ n|urlize }}", NULL, NL_UNSUPPORTED, "no filter 'urlize': template, line 1");
    expect("\n{{ n|frobnicate }}", NULL, NL_UNSUPPORTED, "no filter 'frobnicate': template, line 2");
    expect("{% if 0 %}{{ n|frobnicate }}{% endif %}ok", "ok", NL_OK, "");
    expect("{% if 0 %}{% for x in n if x is frobnicated %}{% endfor %}{% endif %}ok", NULL, NL_UNSUPPORTED,
           "no test 'frobnicated'");
    expect("{% if 0 %}{{ 0 if n is frobnicated else 1 }}{% endif %}ok", "ok", NL_OK, "");
    expect("{% for x in [] %}{{ x|urlize }}{% endfor %}ok", "ok", NL_OK, "");
    expect("{{ n is frobnicated }}", NULL, NL_UNSUPPORTED, "no test 'frobnicated'");
    expect("{{ [1]|select('eq ==', 1)|list }}", NULL, NL_UNSUPPORTED, "no test 'eq =='");
    expect("{% if n %}{% endfor %}", NULL, NL_UNSUPPORTED, "tag 'endfor'");
    expect("{% if n %}", NULL, NL_DATA, "the template ends where one of these should come: elif else endif");
    expect("\n\n{{ raise_exception('roles must alternate') }}", NULL, NL_DATA,
           "the template refuses: roles must alternate: template, line 3");
    expect("\xff", NULL, NL_DATA, "not UTF-8: template: byte 0");
    expect("{{ 4 ** 2 }}{{ -n|abs }}", "167", NL_OK, "");
    expect("{% filter upper|replace('B', m) %}a{% set m = 'c' %}b{% endfilter %}{{ m is defined }}",
           "AcFalse", NL_OK, "");
    expect("{{ ([]|first).a }}", NULL, NL_DATA, "there is no first item: template, line 1");
    expect("{% filter length %}a{% endfilter %}", NULL, NL_DATA,
           "a filter block makes a value of type int, no text: template, line 1");
    expect("{{ 'x'.endswith(7) }}", NULL, NL_DATA,
           "'startswith' or 'endswith' takes a string, not a value of type int");
    expect("{{ 'a'.rindex('x') }}", NULL, NL_DATA, "'rindex' of what is not in the string");
}

/* What jinja2 knows and chat templates do not need: by name and line, never another text. */
static void not_supported(void **state)
{
    static const char *const cases[][2] = {
        {"{% with x = 1 %}{% endwith %}", "tag 'with'"},
        {"{% call f() %}{% endcall %}", "tag 'call'"},
        {"{% set x | upper %}{% endset %}", "'set' of a block with a filter"},
        {"{% set x = {} %}{% set x.a %}{% endset %}", "cannot set an attribute of a value of type dict"},
        {"{% print n %}", "tag 'print'"},
        {"{% block x %}{% endblock %}", "tag 'block'"},
        {"{% for x in [1] recursive %}{% endfor %}", "recursive"},
        {"{% for x in n %}{% macro f() %}{% endmacro %}{% endfor %}", "a macro in a loop"},
        {"{% macro f() %}{{ caller() }}{% endmacro %}", "variable 'caller'"},
        {"{% macro f() %}{{ varargs }}{% endmacro %}", "variable 'varargs'"},
        {"{% macro f() %}{{ kwargs }}{% endmacro %}", "variable 'kwargs'"},
        {"{{ self }}", "variable 'self'"},
        {"{{ cycler(1, 2) }}", "variable 'cycler'"},
        {"{{ joiner() }}", "variable 'joiner'"},
        {"{{ dict(**{}) }}", "'**' in front of an argument"},
        {"{% for x in [1] %}{{ loop.cycle(1) }}{% endfor %}", "attribute 'cycle'"},
        {"{% for x in [1] %}{{ loop.changed(1) }}{% endfor %}", "attribute 'changed'"},
        {"{{ n|escape }}", "no filter 'escape'"},
        {"{{ n|batch(2) }}", "no filter 'batch'"},
        {"{{ n|truncate(2) }}", "no filter 'truncate'"},
        {"{{ '%s'|format(n) }}", "no filter 'format'"},
        {"{{ [n]|map('wordcount')|list }}", "no filter 'wordcount'"},
        {"{{ [n]|sort(attribute='a,b') }}", "'sort' by several attributes"},
        {"{{ '7'|int(base=8) }}", "'int' with a base"},
        {"{{ '7'|int(0, none) }}", "'int' with a base"},
        {"{{ n is sameas n }}", "no test 'sameas'"},
        {"{{ n is upper }}", "no test 'upper'"},
        {"{{ '%s' % n }}", "'%' of a string"},
        {"{{ '{0}'.format(n) }}", "a format string with other fields than '{}'"},
        {"{{ '{:>3}'.format(n) }}", "a format string with other fields than '{}'"},
        {"{{ 'x'.isdigit() }}", "attribute 'isdigit' of a value of type str"},
        {"{{ 'x'.removeprefix('x') }}", "attribute 'removeprefix' of a value of type str"},
        {"{{ 'x'.encode('utf8') }}", "attribute 'encode' of a value of type str"},
        {"{{ 'x'.zfill(3) }}", "attribute 'zfill'"},
        {"{{ 'x'.partition('x') }}", "attribute 'partition'"},
        {"{{ 'x'.find('x', 1) }}", "more or other arguments of 'find'"},
        {"{{ 'x'.__class__ }}", "attribute '__class__'"},
        {"{{ [].append(1) }}", "attribute 'append' of a value of type list"},
        {"{{ {}.pop('a') }}", "attribute 'pop' of a value of type dict"},
        {"{{ ('<'|safe) * 2 }}", "'*' of a string marked as safe"},
        {"{{ n|safe|upper }}", "filter 'upper' of a string marked as safe"},
        {"{{ (n|safe).upper() }}", "attribute 'upper' of a string marked as safe"},
        {"{{ (n|safe).striptags }}", "attribute 'striptags' of a string marked as safe"},
        {"{{ (n|safe)[0] }}", "marked as safe"},
        {"{{ (n|safe)[:1] }}", "marked as safe"},
        {"{{ [n|safe] }}", "marked as safe"},
        {"{{ n|indent(' '|safe) }}", "'indent' by a string marked as safe"},
        {"{{ range(3) }}", "printing a value of type range"},
        {"{{ namespace() }}", "printing a value of type Namespace"},
        {"{{ range }}", "printing a value of type function"},
        {"{{ {(1, 2): 3} }}", "a key of type tuple"},
        {"{{ dict([(1, 2)]) }}", "'dict' or 'namespace'"},
        {"{{ n[] }}", "no subscript, or several"},
        {"{{ n[1, 2] }}", "no subscript, or several"},
        {"{{ none[1:] }}", "a slice of a value of type NoneType"},
        {"{{ -3 ** 2 }}", "a power of a number that is not positive"},
        {"{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
        {"{{ 9223372036854775808 }}", "too large"},
        {"{{ 1e999 }}", "too large"},
        {"{{ 0x10 }}", "not decimal"},
        {"{{ 1e308 * 10 }}", "a number that is infinite"},
        {"{{ 'nan'|float }}", "a number that is infinite, or none"},
        {"{{ 10.0 ** 400 }}", "a number that is infinite"},
        {"{{ 'abc'[::-9223372036854775808] }}", "too large"},
        {"{{ [n]|tojson(separators=',:') }}", "separators"},
        {"{{ '\\101' }}", "an escape in a string"},
        {"{{ '\xef\xbc\x91'|float }}", "a number with a character that is not ASCII"},
        {"{{ '\xc3\xa9'.title() }}", "that is not ASCII"},
        {"{{ '\xc3\x9f'|upper }}", "the other case of U+00DF"},
        {"{{ 7 is divisibleby(num=7) }}", "more or other arguments of test 'divisibleby'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i][0], NULL, NL_UNSUPPORTED, cases[i][1]);
}

static void expect_quick(const char *source, enum nl_status code, const char *message)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    expect(source, NULL, code, message);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true(to.tv_sec - from.tv_sec < 20); /* also where every step is checked */
}

/* What would run for ever, or fill the memory or the stack. */
static void limits(void **state)
{
    (void)state;
    expect_quick("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", NL_DATA,
                 "more than 10000000 steps: template, line 1");
    expect_quick("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", NL_DATA, "too deeply");
    expect_quick(
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        NL_DATA, "a string that is too long");
    expect_quick("{% set x = 'x' * 1000000 %}{% for i in range(300) %}{{ x }}{% endfor %}", NL_DATA,
                 "a string that is too long");
    expect_quick("{{ 'x' * 1000000000 }}", NL_DATA, "more than 10000000 steps");
    expect_quick("{{ [1] * 1000000000 }}", NL_DATA, "more than 512 MiB of memory");
    expect_quick("{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor "
                 "%}{{ ns.x }}",
                 NL_DATA, "too deeply");
    expect_quick("{% macro f(x) %}{{ f([x, x]) }}{% endmacro %}{{ f([]) }}", NL_DATA, "too deeply");
    expect_quick("{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}", NL_DATA,
                 "more than 10000000 steps");
    expect_quick(
        "{% set ns = namespace(x='a b ' * 100000) %}{% for i in range(1000) %}{{ ns.x.split() }}{% endfor %}",
        NL_DATA, "more than 10000000 steps");
}

/* A source of one piece many times over. */
static void expect_repeated(const char *piece, size_t times, const char *end)
{
    struct nl_buf source = {0};
    struct nl_error error = {0};
    for (size_t i = 0; i < times; i++)
        nl_buf_puts(&source, piece);
    nl_buf_puts(&source, end);
    struct nl_jinja *template = nl_jinja_open(source.data, source.size, "template", &error);
    assert_null(template);
    assert_true(error.code == NL_UNSUPPORTED || error.code == NL_DATA);
    nl_buf_free(&source);
}

static void nesting(void **state)
{
    (void)state;
    expect_repeated("{{ (", 1, "");
    expect_repeated("{% if 1 %}", 100000, "");
    expect_repeated("{% for x in y %}", 60000, "");
    expect_repeated("{{ [[[[[[[[[[[[[[[[[[[[[[", 3000, "");
    expect_repeated("{{ - - - - - - - - - - - - -", 20000, "1 }}");
    expect_repeated("{{ not not not not not not", 20000, " 1 }}");
    expect_repeated("{#", 400000, "");
    expect_repeated("{% macro f() %}", 60000, "");
    expect_repeated("1 if ", 1, "{% if 1 %}");
}

static void long_chain(void **state)
{
    (void)state;
    struct nl_buf source = {0};
    struct nl_error error = {0};
    nl_buf_puts(&source, "{{ 1");
    for (int i = 0; i < 100000; i++)
        nl_buf_puts(&source, " + 1");
    nl_buf_puts(&source, " }}");
    assert_null(nl_jinja_open(source.data, source.size, "template", &error));
    assert_int_equal(error.code, NL_UNSUPPORTED);
    nl_buf_free(&source);
}

/* A text that grows piece by piece is not copied each time. */
static void growing(void **state)
{
    (void)state;
    struct nl_error error = {0};
    struct nl_buf made = {0};
    const char *source =
        "{% set ns = namespace(x='') %}{% for i in range(100000) %}{% set ns.x = ns.x ~ 'some words' %}"
        "{% endfor %}{{ ns.x|length }}";
    assert_int_equal(render(source, strlen(source), NULL, &made, &error), 0);
    assert_string_equal(made.data, "1000000");
    nl_buf_free(&made);
}

static void json_numbers(void **state)
{
    (void)state;
    struct nl_error error = {0};
    struct nl_jinja *template = nl_jinja_open("{{ v }}", 7, "template", &error);
    static const struct {
        const char *json, *text;
    } good[] = {{"1", "1"},
                {"1.0", "1.0"},
                {"-0", "0"},
                {"-0.0", "-0.0"},
                {"1e2", "100.0"},
                {"9223372036854775807", "9223372036854775807"},
                {"{\"a\":1,\"a\":2}", "{'a': 2}"},
                {"[\"\\u0000\"]", "['\\x00']"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct nl_jinja_run *run = nl_jinja_run_open(&error);
        struct nl_buf made = {0};
        assert_int_equal(nl_jinja_set_json(run, "v", good[i].json, strlen(good[i].json), &error), 0);
        assert_int_equal(nl_jinja_render(run, template, &made, &error), 0);
        assert_string_equal(made.data, good[i].text);
        nl_buf_free(&made);
        nl_jinja_run_close(run);
    }
    struct nl_jinja_run *run = nl_jinja_run_open(&error);
    assert_int_equal(nl_jinja_set_json(run, "v", "9223372036854775808", 19, &error), -1);
    assert_int_equal(error.code, NL_UNSUPPORTED);
    assert_int_equal(nl_jinja_set_json(run, "v", "1e999", 5, &error), -1);
    assert_int_equal(error.code, NL_UNSUPPORTED);
    assert_int_equal(nl_jinja_set_json(run, "v", "[1", 2, &error), -1);
    assert_int_equal(error.code, NL_DATA);
    assert_int_equal(nl_jinja_set_json(run, "v", "1 2", 3, &error), -1);
    assert_int_equal(error.code, NL_DATA);
    nl_jinja_run_close(run);
    nl_jinja_close(template);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases),         cmocka_unit_test(failures), cmocka_unit_test(refusals),
        cmocka_unit_test(not_supported), cmocka_unit_test(limits),   cmocka_unit_test(nesting),
        cmocka_unit_test(long_chain),    cmocka_unit_test(growing),  cmocka_unit_test(json_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
