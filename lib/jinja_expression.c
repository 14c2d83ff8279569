/* Expressions to trees, by recursive descent, with the precedences of jinja2/parser.py. */
#include <assert.h>

#include "jinja_tree.h"

struct jn *nl_jinja_node(struct jinja_compile *compile, enum jn_kind kind, uint32_t line)
{
    struct jn *node = nl_jinja_compile_alloc(compile, sizeof *node);
    if (!node)
        node = &compile->no_node;
    node->kind = (uint8_t)kind;
    node->line = line;
    return node;
}

struct jn **nl_jinja_append(struct jn **end, struct jn *node)
{
    assert(node); /* see jinja_tree.h */
    *end = node;
    return &node->next;
}

static struct jn *node_of(struct jinja_compile *compile, enum jn_kind kind, uint32_t line, struct jn *a,
                          struct jn *b)
{
    struct jn *node = nl_jinja_node(compile, kind, line);
    node->a = a;
    node->b = b;
    return node;
}

static struct jn *constant(struct jinja_compile *compile, uint32_t line, struct jv value)
{
    struct jn *node = nl_jinja_node(compile, JN_CONST, line);
    node->value = value;
    return node;
}

/* Neighbouring string literals are one. */
static struct jn *parse_strings(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *first = constant(compile, line, nl_jinja_take(compile)->value), *last = first;
    while (nl_jinja_current(compile)->kind == JT_STRING)
        last = last->next = constant(compile, line, nl_jinja_take(compile)->value);
    return last == first ? first : node_of(compile, JN_CONCAT, line, first, NULL);
}

/* Items up to the closing bracket, a comma at the end allowed; of a dict: keys and values. */
static struct jn *parse_items(struct jinja_compile *compile, enum jn_kind kind, int close)
{
    struct jn *node = nl_jinja_node(compile, kind, nl_jinja_take(compile)->line), **end = &node->a;
    while (!nl_jinja_skip(compile, close) && !compile->failed) {
        if (node->a)
            nl_jinja_expect(compile, ',');
        if (nl_jinja_skip(compile, close))
            break;
        end = nl_jinja_append(end, nl_jinja_parse_expression(compile));
        if (kind == JN_DICT) {
            nl_jinja_expect(compile, ':');
            end = nl_jinja_append(end, nl_jinja_parse_expression(compile));
        }
    }
    return node;
}

/* The name of a variable; its number is the place of its value in each scope. */
struct jn *nl_jinja_name(struct jinja_compile *compile, const struct jt *token)
{
    struct nl_jinja *template = compile->template;
    struct jn *node = nl_jinja_node(compile, JN_NAME, token->line);
    if (token->kind != JT_NAME || compile->failed)
        return node;
    node->value = token->value;
    if (nl_jinja_is_listed(node->value, "caller cycler joiner kwargs lipsum recursive self varargs"))
        nl_jinja_refuse(compile, NL_UNSUPPORTED, token->line, "variable '%.*s'", JINJA_SHOWN(node->value));
    while (node->id < template->n_names && !jv_same_text(template->names[node->id], node->value))
        node->id++;
    if (node->id == JINJA_MOST_NAMES)
        nl_jinja_refuse(compile, NL_UNSUPPORTED, token->line, "more than %d variables", JINJA_MOST_NAMES);
    else if (node->id == template->n_names)
        template->names[template->n_names++] = node->value;
    return node;
}

static struct jn *parse_name(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_take(compile);
    if (nl_jinja_is_listed(token->value, "true True false False"))
        return constant(compile, token->line, jv_bool((token->value.text[0] | 32) == 't'));
    if (nl_jinja_is_listed(token->value, "none None"))
        return constant(compile, token->line, jv_none());
    return nl_jinja_name(compile, token);
}

static struct jn *parse_brackets(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_take(compile)->line;
    struct jn *node = nl_jinja_current(compile)->kind == ')'
                          ? nl_jinja_node(compile, JN_TUPLE, line)
                          : nl_jinja_parse_tuple(compile, JINJA_WITH_CONDITION);
    nl_jinja_expect(compile, ')');
    return node;
}

static struct jn *parse_primary(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_current(compile);
    switch (token->kind) {
    case JT_NAME:
        return parse_name(compile);
    case JT_STRING:
        return parse_strings(compile);
    case JT_NUMBER:
        return constant(compile, token->line, nl_jinja_take(compile)->value);
    case '(':
        return parse_brackets(compile);
    case '[':
        return parse_items(compile, JN_LIST, ']');
    case '{':
        return parse_items(compile, JN_DICT, '}');
    default:
        nl_jinja_refuse_token(compile);
        return &compile->no_node;
    }
}

struct jn *nl_jinja_parse_target_name(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_expect(compile, JT_NAME);
    if (nl_jinja_is_listed(token->value, "true True false False none None"))
        nl_jinja_refuse(compile, NL_DATA, token->line, "cannot assign to '%.*s'", JINJA_SHOWN(token->value));
    if (compile->in_scopes && jv_text_is(token->value, "loop"))
        nl_jinja_refuse(compile, NL_UNSUPPORTED, token->line, "'loop' as a variable");
    return nl_jinja_name(compile, token);
}

/* What is set: a name, an attribute of a namespace, or in brackets several names. */
static struct jn *parse_target(struct jinja_compile *compile, enum jinja_tuple how)
{
    uint32_t line = nl_jinja_current(compile)->line;
    if (nl_jinja_skip(compile, '(')) {
        if (nl_jinja_current(compile)->kind == ')')
            nl_jinja_refuse(compile, NL_UNSUPPORTED, line, "'()' as a variable");
        struct jn *targets = nl_jinja_parse_tuple(compile, JINJA_TARGET);
        nl_jinja_expect(compile, ')');
        return targets;
    }
    struct jn *name = nl_jinja_parse_target_name(compile);
    if (how != JINJA_NAMESPACE_TARGET || !nl_jinja_skip(compile, '.'))
        return name;
    struct jn *node = node_of(compile, JN_NSREF, line, name, NULL);
    node->value = nl_jinja_expect(compile, JT_NAME)->value;
    return node;
}

static struct jn *parse_condition(struct jinja_compile *, bool with_condition);

struct jn *nl_jinja_parse_tuple(struct jinja_compile *compile, enum jinja_tuple how)
{
    struct jn *first = NULL, **end = &first;
    uint32_t line = nl_jinja_current(compile)->line;
    bool is_tuple = false, target = how == JINJA_TARGET || how == JINJA_NAMESPACE_TARGET;
    do {
        int kind = nl_jinja_current(compile)->kind;
        if (is_tuple && (kind == JT_VARIABLE_END || kind == JT_BLOCK_END || kind == ')'))
            break;
        end = nl_jinja_append(end, target ? parse_target(compile, how)
                                          : parse_condition(compile, how == JINJA_WITH_CONDITION));
        is_tuple = is_tuple || nl_jinja_current(compile)->kind == ',';
    } while (nl_jinja_skip(compile, ','));
    return is_tuple ? node_of(compile, JN_TUPLE, line, first, NULL) : first;
}

/* One bound of a slice: NULL where there is none. */
static struct jn *parse_bound(struct jinja_compile *compile)
{
    int kind = nl_jinja_current(compile)->kind;
    return kind == ':' || kind == ']' ? NULL : nl_jinja_parse_expression(compile);
}

static struct jn *parse_subscript(struct jinja_compile *compile, struct jn *object)
{
    uint32_t line = nl_jinja_take(compile)->line;
    struct jn *start = parse_bound(compile), *node = node_of(compile, JN_GETITEM, line, object, start);
    if (nl_jinja_skip(compile, ':')) {
        node->kind = JN_SLICE;
        node->c = parse_bound(compile);
        node->d = nl_jinja_skip(compile, ':') ? parse_bound(compile) : NULL;
    }
    if (nl_jinja_current(compile)->kind == ',' || (node->kind == JN_GETITEM && !start))
        nl_jinja_refuse(compile, NL_UNSUPPORTED, line, "no subscript, or several");
    nl_jinja_expect(compile, ']');
    return node;
}

static struct jn *parse_attribute(struct jinja_compile *compile, struct jn *object)
{
    uint32_t line = nl_jinja_take(compile)->line;
    const struct jt *token = nl_jinja_current(compile);
    if (token->kind == JT_NUMBER && jv_is(token->value, JV_INT)) {
        nl_jinja_take(compile);
        return node_of(compile, JN_GETITEM, line, object, constant(compile, line, token->value));
    }
    struct jn *node = node_of(compile, JN_GETATTR, line, object, NULL);
    node->value = nl_jinja_expect(compile, JT_NAME)->value;
    return node;
}

/* `seen`: what came before, after which there is nothing plain, and no second list. */
enum { NAMED = 1, SPREAD };
static struct jn *parse_argument(struct jinja_compile *compile, const struct jn *first, unsigned *seen)
{
    const struct jt *token = nl_jinja_current(compile);
    struct jn *argument = nl_jinja_node(compile, JN_ARGUMENT, token->line);
    if (token->kind == JT_POW)
        nl_jinja_refuse(compile, NL_UNSUPPORTED, token->line, "'**' in front of an argument");
    if (token->kind == JT_NAME && nl_jinja_kind_ahead(compile) == '=') {
        argument->value = token->value;
        nl_jinja_take(compile);
        nl_jinja_take(compile);
        *seen |= NAMED;
        for (; first; first = first->next)
            if (jv_is(first->value, JV_STRING) && jv_same_text(first->value, token->value))
                nl_jinja_refuse(compile, NL_DATA, token->line, "an argument is given twice");
    } else if (*seen & SPREAD || (*seen && token->kind != '*')) {
        nl_jinja_refuse_token(compile);
    } else if (nl_jinja_skip(compile, '*')) {
        argument->op = true;
        *seen |= SPREAD;
    }
    argument->a = nl_jinja_parse_expression(compile);
    return argument;
}

static struct jn *parse_arguments(struct jinja_compile *compile)
{
    enum { MOST = 64 };
    struct jn *first = NULL, **end = &first;
    unsigned seen = 0;
    nl_jinja_take(compile);
    for (unsigned n = 0; !nl_jinja_skip(compile, ')') && !compile->failed; n++) {
        if (first)
            nl_jinja_expect(compile, ',');
        if (nl_jinja_skip(compile, ')'))
            break;
        if (n == MOST)
            nl_jinja_refuse(compile, NL_UNSUPPORTED, nl_jinja_current(compile)->line, "too many arguments");
        end = nl_jinja_append(end, parse_argument(compile, first, &seen));
    }
    return first;
}

static struct jn *parse_call(struct jinja_compile *compile, struct jn *callee)
{
    struct jn *node = node_of(compile, JN_CALL, nl_jinja_current(compile)->line, callee, NULL);
    node->b = parse_arguments(compile);
    return node;
}

/* Subscripts, attributes and calls. */
static struct jn *parse_postfix(struct jinja_compile *compile, struct jn *node)
{
    for (;;) {
        int kind = nl_jinja_current(compile)->kind;
        if (kind == '.')
            node = parse_attribute(compile, node);
        else if (kind == '[')
            node = parse_subscript(compile, node);
        else if (kind == '(')
            node = parse_call(compile, node);
        else
            return node;
    }
}

static struct jn *parse_filter_name(struct jinja_compile *compile, enum jn_kind kind, struct jn *value)
{
    const struct jt *token = nl_jinja_expect(compile, JT_NAME);
    struct jn *node = node_of(compile, kind, token->line, value, NULL);
    node->value = token->value;
    if (nl_jinja_current(compile)->kind == '.')
        nl_jinja_refuse(compile, NL_UNSUPPORTED, token->line, "a filter or test with a point in its name");
    if (nl_jinja_current(compile)->kind == '(')
        node->b = parse_arguments(compile);
    return node;
}

/* After "is". */
static struct jn *parse_test(struct jinja_compile *compile, struct jn *value)
{
    uint32_t line = nl_jinja_take(compile)->line;
    bool negated = nl_jinja_skip_name(compile, "not");
    bool brackets = nl_jinja_kind_ahead(compile) == '(';
    struct jn *test = parse_filter_name(compile, JN_TEST, value);
    const struct jt *token = nl_jinja_current(compile);
    bool value_begins = token->kind == JT_STRING || token->kind == JT_NUMBER || token->kind == '[' ||
                        token->kind == '{' ||
                        (token->kind == JT_NAME && !nl_jinja_is_listed(token->value, "else or and"));
    if (nl_jinja_at_name(compile, "is") && !brackets)
        nl_jinja_refuse(compile, NL_DATA, token->line, "tests cannot be chained with 'is'");
    if (value_begins && !brackets)
        test->b =
            node_of(compile, JN_ARGUMENT, token->line, parse_postfix(compile, parse_primary(compile)), NULL);
    return negated ? node_of(compile, JN_NOT, line, test, NULL) : test;
}

struct jn *nl_jinja_parse_filters(struct jinja_compile *compile, struct jn *value)
{
    do
        value = parse_filter_name(compile, JN_FILTER, value);
    while (nl_jinja_skip(compile, '|'));
    return value;
}

static struct jn *parse_filters_and_tests(struct jinja_compile *compile, struct jn *node)
{
    for (;;) {
        if (nl_jinja_skip(compile, '|'))
            node = nl_jinja_parse_filters(compile, node);
        else if (nl_jinja_at_name(compile, "is"))
            node = parse_test(compile, node);
        else if (nl_jinja_current(compile)->kind == '(')
            node = parse_call(compile, node);
        else
            return node;
    }
}

static struct jn *parse_unary(struct jinja_compile *compile, bool with_filter)
{
    const struct jt *token = nl_jinja_current(compile);
    struct jn *node = &compile->no_node;
    if (token->kind != '-' && token->kind != '+') {
        node = parse_primary(compile);
    } else if (nl_jinja_deeper(compile, token->line)) {
        nl_jinja_take(compile);
        node = node_of(compile, token->kind == '-' ? JN_NEG : JN_POS, token->line,
                       parse_unary(compile, false), NULL);
        compile->depth--;
    }
    node = parse_postfix(compile, node);
    return with_filter ? parse_filters_and_tests(compile, node) : node;
}

/* Operators from the weakest: + and -; ~; *, / and their like; **. */
enum level { SUM, CONCAT, PRODUCT, POWER, UNARY };

static bool take_binary(struct jinja_compile *compile, enum level level, uint8_t *op)
{
    static const struct {
        int token;
        enum level level;
        enum jinja_operator op;
    } known[] = {
        {'+', SUM, JINJA_ADD},      {'-', SUM, JINJA_SUB},     {'*', PRODUCT, JINJA_MUL},
        {'/', PRODUCT, JINJA_DIV},  {'%', PRODUCT, JINJA_MOD}, {JT_FLOORDIV, PRODUCT, JINJA_FLOORDIV},
        {JT_POW, POWER, JINJA_POW},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].level == level && nl_jinja_skip(compile, known[i].token)) {
            *op = (uint8_t)known[i].op;
            return true;
        }
    return false;
}

static struct jn *parse_binary(struct jinja_compile *compile, enum level level)
{
    if (level == UNARY)
        return parse_unary(compile, true);
    struct jn *left = parse_binary(compile, level + 1), *last = left;
    uint32_t line = nl_jinja_current(compile)->line;
    if (level == CONCAT && nl_jinja_current(compile)->kind == '~') {
        left = node_of(compile, JN_CONCAT, left->line, left, NULL);
        while (nl_jinja_skip(compile, '~'))
            last = last->next = parse_binary(compile, level + 1);
    }
    for (uint8_t op; take_binary(compile, level, &op); line = nl_jinja_current(compile)->line) {
        left = node_of(compile, JN_BINARY, line, left, NULL);
        left->b = parse_binary(compile, level + 1);
        left->op = op;
    }
    return left;
}

/* Takes a comparison's operator; -1 when there is none. */
static int take_comparison(struct jinja_compile *compile)
{
    static const int tokens[] = {JT_EQ, JT_NE, '>', JT_GE, '<', JT_LE}; /* as enum jv_comparison */
    for (int i = 0; i < 6; i++)
        if (nl_jinja_skip(compile, tokens[i]))
            return i;
    if (nl_jinja_skip_name(compile, "in"))
        return JV_IN;
    const struct jt *token = nl_jinja_current(compile);
    if (!nl_jinja_at_name(compile, "not") || nl_jinja_kind_ahead(compile) != JT_NAME ||
        !jv_text_is(token[1].value, "in"))
        return -1;
    nl_jinja_take(compile);
    nl_jinja_take(compile);
    return JV_NOT_IN;
}

static struct jn *parse_comparison(struct jinja_compile *compile)
{
    struct jn *left = parse_binary(compile, SUM), *first = NULL, **end = &first;
    for (int op; (op = take_comparison(compile)) >= 0;) {
        struct jn *operand = nl_jinja_node(compile, JN_OPERAND, left->line);
        operand->op = (uint8_t)op;
        operand->a = parse_binary(compile, SUM);
        end = nl_jinja_append(end, operand);
    }
    return first ? node_of(compile, JN_COMPARE, left->line, left, first) : left;
}

static struct jn *parse_not(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    if (!nl_jinja_skip_name(compile, "not"))
        return parse_comparison(compile);
    struct jn *node = &compile->no_node;
    if (nl_jinja_deeper(compile, line))
        node = node_of(compile, JN_NOT, line, parse_not(compile), NULL);
    compile->depth--;
    return node;
}

static struct jn *parse_or(struct jinja_compile *compile)
{
    struct jn *any = NULL;
    do {
        struct jn *all = parse_not(compile);
        while (nl_jinja_skip_name(compile, "and"))
            all = node_of(compile, JN_AND, all->line, all, parse_not(compile));
        any = any ? node_of(compile, JN_OR, any->line, any, all) : all;
    } while (nl_jinja_skip_name(compile, "or"));
    return any;
}

static struct jn *parse_condition(struct jinja_compile *compile, bool with_condition)
{
    struct jn *node = &compile->no_node;
    if (nl_jinja_deeper(compile, nl_jinja_current(compile)->line))
        node = parse_or(compile);
    while (with_condition && nl_jinja_skip_name(compile, "if")) {
        node = node_of(compile, JN_COND, node->line, node, parse_or(compile));
        if (nl_jinja_skip_name(compile, "else"))
            node->c = nl_jinja_parse_expression(compile);
    }
    compile->depth--;
    return node;
}

struct jn *nl_jinja_parse_expression(struct jinja_compile *compile)
{
    return parse_condition(compile, true);
}
