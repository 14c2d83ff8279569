/* What stands behind `is`. */
#include "jinja_value.h"

typedef int test_function(struct nl_jinja_run *, struct jv value, struct jv argument, bool *out);

static int rest_is(struct nl_jinja_run *run, struct jv value, struct jv divisor, int64_t wanted, bool *out)
{
    struct jv rest = {0};
    return nl_jv_arithmetic(run, JINJA_MOD, value, divisor, &rest) != 0
               ? -1
               : nl_jv_equal(run, rest, jv_int(wanted), out);
}

static int test_odd(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)argument;
    return rest_is(run, value, jv_int(2), 1, out);
}

static int test_even(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)argument;
    return rest_is(run, value, jv_int(2), 0, out);
}

static int test_divisible(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return rest_is(run, value, argument, 0, out);
}

static int test_equal(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return nl_jv_equal(run, value, argument, out);
}

static int test_not_equal(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    int result = nl_jv_equal(run, value, argument, out);
    *out = !*out;
    return result;
}

static int compare(struct nl_jinja_run *run, struct jv a, struct jv b, bool less, bool equal, bool *out)
{
    int order;
    bool unordered;
    if (nl_jv_order(run, a, b, &order, &unordered) != 0)
        return -1;
    *out = !unordered && ((order == 0 && equal) || (order != 0 && (order < 0) == less));
    return 0;
}

static int test_greater(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return compare(run, value, argument, false, false, out);
}

static int test_greater_equal(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return compare(run, value, argument, false, true, out);
}

static int test_less(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return compare(run, value, argument, true, false, out);
}

static int test_less_equal(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return compare(run, value, argument, true, true, out);
}

static int test_in(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    return nl_jv_contains(run, argument, value, out);
}

/* Identity: of what Python has only one of, and of objects that templates cannot copy unseen. */
static int test_same(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    bool single = jv_is(value, JV_NONE) || jv_is(value, JV_BOOL) || jv_is(argument, JV_NONE) ||
                  jv_is(argument, JV_BOOL) || value.kind != argument.kind;
    if (single) {
        *out = value.kind == argument.kind && (jv_is(value, JV_NONE) || value.integer == argument.integer);
        return 0;
    }
    if (!jv_is(value, JV_LIST) && !jv_is(value, JV_DICT) && !jv_is(value, JV_NAMESPACE))
        return jinja_fail(run, NL_UNSUPPORTED, "test 'sameas' of values of type %s", nl_jv_type_name(value));
    *out = value.list == argument.list;
    return 0;
}

static int test_case(struct nl_jinja_run *run, struct jv value, bool upper, bool *out)
{
    struct jv text = {0};
    return nl_jv_to_string(run, value, &text) != 0 ? -1 : nl_jinja_case_test(run, text, upper, out);
}

static int test_lower(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)argument;
    return test_case(run, value, false, out);
}

static int test_upper(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)argument;
    return test_case(run, value, true, out);
}

static int test_filter(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)run;
    (void)argument;
    *out = nl_jinja_has_filter(value);
    return 0;
}

static int test_test(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)run;
    (void)argument;
    *out = nl_jinja_has_test(value);
    return 0;
}

static int test_escaped(struct nl_jinja_run *run, struct jv value, struct jv argument, bool *out)
{
    (void)run;
    (void)argument;
    *out = jv_is(value, JV_STRING) && value.safe;
    return 0;
}

#define KIND(kind) (1u << (kind))
enum {
    CALLABLE = KIND(JV_MACRO) | KIND(JV_GLOBAL) | KIND(JV_METHOD) | KIND(JV_LOOP) | KIND(JV_JOINER) |
               KIND(JV_UNDEFINED)
};

static const struct test {
    const char *name;
    unsigned kinds; /* of the values that pass; 0: ask the function */
    test_function *function;
    unsigned arguments;
} tests[] = {
    {"defined", ~KIND(JV_UNDEFINED), NULL, 0},
    {"undefined", KIND(JV_UNDEFINED), NULL, 0},
    {"none", KIND(JV_NONE), NULL, 0},
    {"boolean", KIND(JV_BOOL), NULL, 0},
    {"integer", KIND(JV_INT), NULL, 0},
    {"float", KIND(JV_FLOAT), NULL, 0},
    {"number", KIND(JV_BOOL) | KIND(JV_INT) | KIND(JV_FLOAT), NULL, 0},
    {"string", KIND(JV_STRING), NULL, 0},
    {"mapping", KIND(JV_DICT), NULL, 0},
    {"sequence",
     KIND(JV_UNDEFINED) | KIND(JV_STRING) | KIND(JV_LIST) | KIND(JV_TUPLE) | KIND(JV_DICT) | KIND(JV_RANGE),
     NULL, 0},
    {"iterable",
     KIND(JV_UNDEFINED) | KIND(JV_STRING) | KIND(JV_LIST) | KIND(JV_TUPLE) | KIND(JV_DICT) | KIND(JV_VIEW) |
         KIND(JV_RANGE) | KIND(JV_ITERATOR) | KIND(JV_LOOP),
     NULL, 0},
    {"callable", CALLABLE, NULL, 0},
    {"odd", 0, test_odd, 0},
    {"even", 0, test_even, 0},
    {"divisibleby", 0, test_divisible, 1},
    {"lower", 0, test_lower, 0},
    {"upper", 0, test_upper, 0},
    {"sameas", 0, test_same, 1},
    {"in", 0, test_in, 1},
    {"filter", 0, test_filter, 0},
    {"test", 0, test_test, 0},
    {"escaped", 0, test_escaped, 0},
    {"eq", 0, test_equal, 1},
    {"==", 0, test_equal, 1},
    {"equalto", 0, test_equal, 1},
    {"ne", 0, test_not_equal, 1},
    {"!=", 0, test_not_equal, 1},
    {"gt", 0, test_greater, 1},
    {">", 0, test_greater, 1},
    {"greaterthan", 0, test_greater, 1},
    {"ge", 0, test_greater_equal, 1},
    {">=", 0, test_greater_equal, 1},
    {"lt", 0, test_less, 1},
    {"<", 0, test_less, 1},
    {"lessthan", 0, test_less, 1},
    {"le", 0, test_less_equal, 1},
    {"<=", 0, test_less_equal, 1},
    {"true", 0, NULL, 0},
    {"false", 0, NULL, 0},
};

static const struct test *find_test(struct jv name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (jv_text_is(name, tests[i].name))
            return &tests[i];
    return NULL;
}

bool nl_jinja_has_test(struct jv name)
{
    return find_test(name);
}

int nl_jinja_test(struct nl_jinja_run *run, struct jv name, struct jv value, const struct jinja_args *args,
                  bool *out)
{
    const struct test *test = find_test(name);
    if (!test)
        return jinja_fail(run, NL_UNSUPPORTED, "no test '%.*s'", (int)(name.size < 100 ? name.size : 100),
                          name.text);
    if (args->n_named)
        return jinja_fail(run, NL_UNSUPPORTED, "test '%s' with an argument by name", test->name);
    if (args->count != test->arguments)
        return jinja_fail(run, NL_DATA, "test '%s' takes %u arguments", test->name, test->arguments);
    if (test->function)
        return test->function(run, value, args->count ? args->values[0] : jv_none(), out);
    if (test->kinds)
        *out = test->kinds & KIND(value.kind);
    else
        *out = jv_is(value, JV_BOOL) && (value.integer != 0) == (test->name[0] == 't');
    return 0;
}
