/* Expressions to trees, by recursive descent, with the precedences of jinja2/parser.py. */
#include "jinja_tree.h"

static struct jn *parse_unary(struct jinja_compile *compile, bool with_filter)
{
    const struct jt *token = nl_jinja_current(compile);
    struct jn *node;
    if (token->kind == JT_SUB || token->kind == JT_ADD) {
        if (++compile->depth > JINJA_MOST_NESTING) {
            nl_jinja_compile_error(compile, NL_UNSUPPORTED, token->line,
                                   "an expression that is nested too deeply");
            return NULL;
        }
        nl_jinja_take(compile);
        node = parse_unary(compile, false);
        compile->depth--;
        node = node ? nl_jinja_node_of(compile, token->kind == JT_SUB ? JN_NEG : JN_POS, token->line, node,
                                       NULL, NULL)
                    : NULL;
    } else {
        node = nl_jinja_parse_primary(compile, false);
    }
    node = nl_jinja_parse_postfix(compile, node);
    return with_filter ? nl_jinja_parse_filters_and_tests(compile, node) : node;
}

static struct jn *binary(struct jinja_compile *compile, enum jinja_operator op, uint32_t line,
                         struct jn *left, struct jn *right)
{
    struct jn *node = right ? nl_jinja_node_of(compile, JN_BINARY, line, left, right, NULL) : NULL;
    if (node)
        node->op = (uint8_t)op;
    return node;
}

static struct jn *parse_power(struct jinja_compile *compile)
{
    struct jn *left = parse_unary(compile, true);
    while (left && nl_jinja_current(compile)->kind == JT_POW) {
        uint32_t line = nl_jinja_take(compile)->line;
        left = binary(compile, JINJA_POW, line, left, parse_unary(compile, true));
    }
    return left;
}

static struct jn *parse_product(struct jinja_compile *compile)
{
    struct jn *left = parse_power(compile);
    while (left) {
        enum jt_kind kind = nl_jinja_current(compile)->kind;
        if (kind != JT_MUL && kind != JT_DIV && kind != JT_FLOORDIV && kind != JT_MOD)
            break;
        enum jinja_operator op = kind == JT_MUL   ? JINJA_MUL
                                 : kind == JT_DIV ? JINJA_DIV
                                 : kind == JT_MOD ? JINJA_MOD
                                                  : JINJA_FLOORDIV;
        uint32_t line = nl_jinja_take(compile)->line;
        left = binary(compile, op, line, left, parse_power(compile));
    }
    return left;
}

static struct jn *parse_concat(struct jinja_compile *compile)
{
    struct jn *first = parse_product(compile), *last = first;
    if (!first || nl_jinja_current(compile)->kind != JT_TILDE)
        return first;
    while (nl_jinja_skip(compile, JT_TILDE)) {
        if (!(last->next = parse_product(compile)))
            return NULL;
        last = last->next;
    }
    return nl_jinja_node_of(compile, JN_CONCAT, first->line, first, NULL, NULL);
}

static struct jn *parse_sum(struct jinja_compile *compile)
{
    struct jn *left = parse_concat(compile);
    while (left) {
        enum jt_kind kind = nl_jinja_current(compile)->kind;
        if (kind != JT_ADD && kind != JT_SUB)
            break;
        uint32_t line = nl_jinja_take(compile)->line;
        left = binary(compile, kind == JT_ADD ? JINJA_ADD : JINJA_SUB, line, left, parse_concat(compile));
    }
    return left;
}

/* Takes a comparison's operator; -1 when there is none. */
static int take_comparison(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_current(compile);
    int op = token->kind == JT_EQ   ? JN_EQ
             : token->kind == JT_NE ? JN_NE
             : token->kind == JT_GT ? JN_GT
             : token->kind == JT_GE ? JN_GE
             : token->kind == JT_LT ? JN_LT
             : token->kind == JT_LE ? JN_LE
                                    : -1;
    if (op < 0 && nl_jinja_at_name(token, "in"))
        op = JN_IN;
    if (op < 0 && nl_jinja_at_name(token, "not") && nl_jinja_at_name(nl_jinja_look_ahead(compile), "in")) {
        nl_jinja_take(compile);
        op = JN_NOT_IN;
    }
    if (op >= 0)
        nl_jinja_take(compile);
    return op;
}

static struct jn *parse_comparison(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *left = parse_sum(compile), *first = NULL, **end = &first;
    int op;
    while (left && (op = take_comparison(compile)) >= 0) {
        struct jn *right = parse_sum(compile);
        if (!right || !(*end = nl_jinja_node_of(compile, JN_OPERAND, right->line, right, NULL, NULL)))
            return NULL;
        (*end)->op = (uint8_t)op;
        end = &(*end)->next;
    }
    return left && first ? nl_jinja_node_of(compile, JN_COMPARE, line, left, first, NULL) : left;
}

static struct jn *parse_not(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    unsigned n = 0;
    while (nl_jinja_skip_name(compile, "not"))
        n++;
    struct jn *node = parse_comparison(compile);
    for (; node && n > 0; n--)
        node = nl_jinja_node_of(compile, JN_NOT, line, node, NULL, NULL);
    return node;
}

static struct jn *parse_and(struct jinja_compile *compile)
{
    struct jn *left = parse_not(compile);
    while (left && nl_jinja_skip_name(compile, "and")) {
        struct jn *right = parse_not(compile);
        left = right ? nl_jinja_node_of(compile, JN_AND, left->line, left, right, NULL) : NULL;
    }
    return left;
}

static struct jn *parse_or(struct jinja_compile *compile)
{
    struct jn *left = parse_and(compile);
    while (left && nl_jinja_skip_name(compile, "or")) {
        struct jn *right = parse_and(compile);
        left = right ? nl_jinja_node_of(compile, JN_OR, left->line, left, right, NULL) : NULL;
    }
    return left;
}

static struct jn *parse_condition(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *node = parse_or(compile);
    while (node && nl_jinja_skip_name(compile, "if")) {
        struct jn *test = parse_or(compile), *otherwise = NULL;
        if (!test ||
            (nl_jinja_skip_name(compile, "else") && !(otherwise = nl_jinja_parse_expression(compile, true))))
            return NULL;
        node = nl_jinja_node_of(compile, JN_COND, line, node, test, otherwise);
        line = nl_jinja_current(compile)->line;
    }
    return node;
}

struct jn *nl_jinja_parse_expression(struct jinja_compile *compile, bool with_condition)
{
    if (++compile->depth > JINJA_MOST_NESTING) {
        nl_jinja_compile_error(compile, NL_UNSUPPORTED, nl_jinja_current(compile)->line,
                               "an expression that is nested too deeply");
        return NULL;
    }
    struct jn *node = with_condition ? parse_condition(compile) : parse_or(compile);
    compile->depth--;
    return node;
}
