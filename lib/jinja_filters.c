/* The tables of filters and tests; filters that make text. */
#include "jinja_value.h"
#include "unicode.h"

static struct jv filter_string(struct nl_jinja_run *run, struct jv *a)
{
    (void)run;
    a[0].safe = a[0].safe || a[JINJA_VARIANT].integer; /* 1: safe */
    return a[0];
}

static struct jv filter_length(struct nl_jinja_run *run, struct jv *a)
{
    return jv_int(nl_jv_length(run, a[0]));
}

/* a: value, default_value, boolean */
static struct jv filter_default(struct nl_jinja_run *run, struct jv *a)
{
    bool boolean = nl_jv_flag(run, a[2]);
    if (!jv_is(a[0], JV_UNDEFINED) && (!boolean || nl_jv_truth(run, a[0])))
        return a[0];
    return jv_is(a[1], JV_MISSING) ? jv_string("", 0) : a[1];
}

/* a: value, old, new, count */
static struct jv filter_replace(struct nl_jinja_run *run, struct jv *a)
{
    a[1] = nl_jv_to_string(run, a[1]);
    a[2] = nl_jv_to_string(run, a[2]);
    if (jv_is(a[3], JV_NONE))
        a[3] = jv_missing();
    return run->failed ? jv_missing() : nl_jinja_replace(run, a);
}

/* An indentation: so many blanks, or a string. */
static struct jv blanks(struct nl_jinja_run *run, struct jv width, const char *filter, int64_t otherwise)
{
    if (width.safe)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "%s by a string marked as safe", filter);
    if (jv_is(width, JV_STRING))
        return width;
    return nl_jv_arithmetic(run, JINJA_MUL, jv_chars(" "),
                            jv_int(nl_jv_to_int(run, width, filter, otherwise)));
}

/* a: value, width, first, blank */
static struct jv filter_indent(struct nl_jinja_run *run, struct jv *a)
{
    bool first = nl_jv_flag(run, a[2]), blank = nl_jv_flag(run, a[3]);
    struct jv indentation = blanks(run, a[1], "'indent'", 4);
    struct jv args[JINJA_ARGUMENTS] = {nl_jv_arithmetic(run, JINJA_ADD, a[0], jv_chars("\n"))};
    struct nl_buf made = {0};
    if (run->failed)
        return args[0];
    const struct jv_list *lines = nl_jinja_splitlines(run, args).list;
    for (size_t i = 0; i < lines->count && !run->failed; i++) {
        struct jv line = lines->items[i];
        if (i)
            nl_buf_putc(&made, '\n');
        if (i ? blank || line.size : first)
            nl_jinja_put(run, &made, indentation);
        nl_jinja_put(run, &made, line);
    }
    return nl_jv_take(run, &made);
}

/* a: value, ensure_ascii, indent, separators, sort_keys */
static struct jv filter_tojson(struct nl_jinja_run *run, struct jv *a)
{
    struct jinja_json_style style = {.ascii = nl_jv_flag(run, a[1]),
                                     .sort_keys = nl_jv_flag(run, a[4]),
                                     .has_indent = jv_is_given(a[2]),
                                     .indent = jv_string("", 0),
                                     .comma = jv_chars(jv_is_given(a[2]) ? "," : ", "),
                                     .colon = jv_chars(": ")};
    struct nl_buf made = {0};
    if (style.has_indent)
        style.indent = blanks(run, a[2], "'tojson'", 0);
    if (jv_is_given(a[3])) {
        const struct jv_list *pair = jv_is_sequence(a[3]) ? a[3].list : NULL;
        if (!pair || pair->count != 2 || !jv_is(pair->items[0], JV_STRING) ||
            !jv_is(pair->items[1], JV_STRING))
            return nl_jinja_fail(run, NL_UNSUPPORTED, "'tojson' with separators that are not two strings");
        style.comma = pair->items[0];
        style.colon = pair->items[1];
    }
    if (!run->failed)
        nl_jv_json(run, a[0], &style, 0, &made);
    return nl_jv_take(run, &made);
}

static const struct jinja_builtin filters[] = {
    {"abs", nl_jinja_abs, "", 0, 0, false},
    {"capitalize", nl_jinja_change_case, "", 0, JINJA_CAPITALIZED, true},
    {"count", filter_length, "", 0, 0, false},
    {"d", filter_default, "default_value boolean", 0, 0, false},
    {"default", filter_default, "default_value boolean", 0, 0, false},
    {"dictsort", nl_jinja_dictsort, "case_sensitive by reverse", 0, 0, false},
    {"first", nl_jinja_first, "", 0, 0, false},
    {"float", nl_jinja_float, "default", 0, 0, false},
    {"indent", filter_indent, "width first blank", 0, 0, false},
    {"int", nl_jinja_int, "default base", 0, 0, false},
    {"items", nl_jinja_items, "", 0, 0, false},
    {"join", nl_jinja_join, "d attribute", 0, 0, false},
    {"last", nl_jinja_last, "", 0, 0, false},
    {"length", filter_length, "", 0, 0, false},
    {"list", nl_jinja_list, "", 0, 0, false},
    {"lower", nl_jinja_change_case, "", 0, JINJA_LOWER, true},
    {"map", nl_jinja_map, "*", 0, 0, false},
    {"max", nl_jinja_extreme, "case_sensitive attribute", 0, 1, false},
    {"min", nl_jinja_extreme, "case_sensitive attribute", 0, -1, false},
    {"reject", nl_jinja_select, "*", 0, JINJA_REJECT, false},
    {"rejectattr", nl_jinja_select, "*", 0, JINJA_REJECT | JINJA_BY_ATTRIBUTE, false},
    {"replace", filter_replace, "old new count", 2, 0, true},
    {"reverse", nl_jinja_reverse, "", 0, 0, false},
    {"round", nl_jinja_round, "precision method", 0, 0, false},
    {"safe", filter_string, "", 0, 1, true},
    {"select", nl_jinja_select, "*", 0, 0, false},
    {"selectattr", nl_jinja_select, "*", 0, JINJA_BY_ATTRIBUTE, false},
    {"sort", nl_jinja_sort, "reverse case_sensitive attribute", 0, 0, false},
    {"string", filter_string, "", 0, 0, true},
    {"sum", nl_jinja_sum, "attribute start", 0, 0, false},
    {"title", nl_jinja_title, "", 0, 0, true},
    {"tojson", filter_tojson, "ensure_ascii indent separators sort_keys", 0, 0, false},
    {"trim", nl_jinja_strip, "chars", 0, JINJA_LEFT | JINJA_RIGHT, true},
    {"unique", nl_jinja_unique, "case_sensitive attribute", 0, 0, false},
    {"upper", nl_jinja_change_case, "", 0, JINJA_UPPER, true},
    {0},
};

/* Those of jinja2 that are not supported: an error only when they are reached. */
static const char other_filters[] =
    "attr batch center e escape filesizeformat forceescape format groupby pprint random slice striptags "
    "truncate urlencode urlize wordcount wordwrap xmlattr";

bool nl_jinja_has_filter(struct jv name)
{
    return nl_jinja_find(filters, name) || nl_jinja_is_listed(name, other_filters);
}

struct jv nl_jinja_filter(struct nl_jinja_run *run, struct jv name, struct jv value,
                          const struct jinja_args *args)
{
    const struct jinja_builtin *filter = nl_jinja_find(filters, name);
    if (!filter)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "no filter '%.*s'", JINJA_SHOWN(name));
    if (value.safe && !nl_jinja_is_listed(name, "safe string tojson length count default d replace"))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "filter '%s' of a string marked as safe", filter->name);
    return nl_jinja_call_builtin(run, filter, value, args);
}

/* What stands behind `is`. */
#define KIND(kind) (1u << (kind))
enum {
    TEXT_AND_LISTS = KIND(JV_UNDEFINED) | KIND(JV_STRING) | KIND(JV_LIST) | KIND(JV_TUPLE) | KIND(JV_DICT) |
                     KIND(JV_RANGE),
};

static const struct test {
    const char *names;
    enum { OF_KIND, COMPARES, DIVIDES, IS_ODD, IS_EVEN, IS_TRUE, IS_FALSE, REFUSED } how;
    unsigned what; /* kinds, or the enum jv_comparison with the argument */
} tests[] = {
    {"defined", OF_KIND, ~KIND(JV_UNDEFINED)},
    {"undefined", OF_KIND, KIND(JV_UNDEFINED)},
    {"none", OF_KIND, KIND(JV_NONE)},
    {"boolean", OF_KIND, KIND(JV_BOOL)},
    {"integer", OF_KIND, KIND(JV_INT)},
    {"float", OF_KIND, KIND(JV_FLOAT)},
    {"number", OF_KIND, KIND(JV_BOOL) | KIND(JV_INT) | KIND(JV_FLOAT)},
    {"string", OF_KIND, KIND(JV_STRING)},
    {"mapping", OF_KIND, KIND(JV_DICT)},
    {"sequence", OF_KIND, TEXT_AND_LISTS},
    {"iterable", OF_KIND, TEXT_AND_LISTS | KIND(JV_VIEW) | KIND(JV_ITERATOR) | KIND(JV_LOOP)},
    {"callable", OF_KIND, KIND(JV_MACRO) | KIND(JV_FUNCTION) | KIND(JV_LOOP) | KIND(JV_UNDEFINED)},
    {"eq == equalto", COMPARES, JV_EQ},
    {"ne !=", COMPARES, JV_NE},
    {"gt > greaterthan", COMPARES, JV_GT},
    {"ge >=", COMPARES, JV_GE},
    {"lt < lessthan", COMPARES, JV_LT},
    {"le <=", COMPARES, JV_LE},
    {"in", COMPARES, JV_IN},
    {"divisibleby", DIVIDES, 0},
    {"odd", IS_ODD, 0},
    {"even", IS_EVEN, 0},
    {"true", IS_TRUE, 0},
    {"false", IS_FALSE, 0},
    {"lower upper sameas filter test escaped", REFUSED, 0}, /* only when they are reached */
};

static const struct test *find_test(struct jv name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (nl_jinja_is_listed(name, tests[i].names))
            return &tests[i];
    return NULL;
}

bool nl_jinja_has_test(struct jv name)
{
    return find_test(name);
}

static bool remainder_is(struct nl_jinja_run *run, struct jv value, struct jv divisor, int64_t wanted)
{
    return nl_jv_equal(run, nl_jv_arithmetic(run, JINJA_MOD, value, divisor), jv_int(wanted));
}

bool nl_jinja_test(struct nl_jinja_run *run, struct jv name, struct jv value, const struct jinja_args *args)
{
    const struct test *test = find_test(name);
    size_t wanted = test && (test->how == COMPARES || test->how == DIVIDES);
    if (test && test->how != REFUSED && (args->named->count || args->list->count != wanted))
        nl_jinja_fail(run, NL_UNSUPPORTED, "more or other arguments of test '%.*s'", JINJA_SHOWN(name));
    if (run->failed)
        return false;
    switch (test ? test->how : REFUSED) {
    case OF_KIND:
        return test->what & KIND(value.kind);
    case COMPARES:
        return nl_jv_compare(run, (enum jv_comparison)test->what, value, args->list->items[0]);
    case DIVIDES:
        return remainder_is(run, value, args->list->items[0], 0);
    case IS_ODD:
    case IS_EVEN:
        return remainder_is(run, value, jv_int(2), test->how == IS_ODD);
    case IS_TRUE:
    case IS_FALSE:
        return jv_is(value, JV_BOOL) && value.integer == (test->how == IS_TRUE);
    default:
        nl_jinja_fail(run, NL_UNSUPPORTED, "no test '%.*s'", JINJA_SHOWN(name));
        return false;
    }
}
