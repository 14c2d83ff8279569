/* Expressions to trees, by recursive descent, with the precedences of jinja2/parser.py. */
#include "jinja_tree.h"

struct jn *nl_jinja_new_node(struct jinja_compile *compile, enum jn_kind kind, uint32_t line)
{
    struct jn *node = nl_jinja_compile_alloc(compile, sizeof *node);
    if (node) {
        node->kind = (uint8_t)kind;
        node->line = line;
        node->height = 1;
    }
    return node;
}

void nl_jinja_adopt(struct jn *parent, const struct jn *child)
{
    for (; child; child = child->next)
        if (parent->height <= child->height)
            parent->height = (uint16_t)(child->height + 1);
}

struct jt *nl_jinja_current(struct jinja_compile *compile)
{
    return &compile->tokens[compile->at];
}

static const struct jt *look_ahead(const struct jinja_compile *compile)
{
    return &compile->tokens[compile->at + (compile->at + 1 < compile->n_tokens)];
}

bool nl_jinja_at_name(const struct jt *token, const char *name)
{
    return token->kind == JT_NAME && jv_text_is(token->value, name);
}

/* Never past the end. */
static struct jt *take(struct jinja_compile *compile)
{
    struct jt *token = nl_jinja_current(compile);
    if (token->kind != JT_END)
        compile->at++;
    return token;
}

bool nl_jinja_skip(struct jinja_compile *compile, enum jt_kind kind)
{
    bool there = nl_jinja_current(compile)->kind == kind;
    if (there)
        take(compile);
    return there;
}

bool nl_jinja_skip_name(struct jinja_compile *compile, const char *name)
{
    bool there = nl_jinja_at_name(nl_jinja_current(compile), name);
    if (there)
        take(compile);
    return there;
}

static int unexpected(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_current(compile);
    char shown[64];
    return nl_jinja_compile_error(compile, NL_DATA, token->line, "unexpected %s",
                                  nl_jinja_token_text(token, shown));
}

int nl_jinja_expect(struct jinja_compile *compile, enum jt_kind kind)
{
    return nl_jinja_skip(compile, kind) ? 0 : unexpected(compile);
}

/* A node with up to three children, any of which may be NULL; NULL when it gets too high. */
static struct jn *node_of(struct jinja_compile *compile, enum jn_kind kind, uint32_t line, struct jn *a,
                          struct jn *b, struct jn *c)
{
    struct jn *node = nl_jinja_new_node(compile, kind, line);
    if (!node)
        return NULL;
    node->a = a;
    node->b = b;
    node->c = c;
    nl_jinja_adopt(node, a);
    nl_jinja_adopt(node, b);
    nl_jinja_adopt(node, c);
    if (node->height > JINJA_MOST_NESTING) {
        nl_jinja_compile_error(compile, NL_UNSUPPORTED, line, "an expression that is nested too deeply");
        return NULL;
    }
    return node;
}

static struct jn *constant(struct jinja_compile *compile, uint32_t line, struct jv value)
{
    struct jn *node = nl_jinja_new_node(compile, JN_CONST, line);
    if (node)
        node->value = value;
    return node;
}

/* Neighbouring string literals are one. */
static struct jn *parse_strings(struct jinja_compile *compile)
{
    const struct jt *first = take(compile), *token;
    uint64_t size = first->value.size, at = first->value.size;
    size_t n = 0;
    for (token = first + 1; token->kind == JT_STRING; token++, n++)
        size += token->value.size;
    if (n == 0)
        return constant(compile, first->line, first->value);
    char *text = nl_jinja_compile_alloc(compile, (size_t)size + 1);
    if (!text)
        return NULL;
    memcpy(text, first->value.text, first->value.size);
    for (; n > 0; n--) {
        token = take(compile);
        memcpy(text + at, token->value.text, token->value.size);
        at += token->value.size;
    }
    return constant(compile, first->line, jv_string(text, (size_t)size));
}

/* Items up to the closing bracket, a comma at the end allowed; of a dict: keys and values. */
static struct jn *parse_items(struct jinja_compile *compile, enum jn_kind kind, enum jt_kind close)
{
    uint32_t line = take(compile)->line;
    struct jn *first = NULL, **end = &first;
    while (nl_jinja_current(compile)->kind != close) {
        if (first && nl_jinja_expect(compile, JT_COMMA) != 0)
            return NULL;
        if (nl_jinja_current(compile)->kind == close)
            break;
        for (int i = 0; i < (kind == JN_DICT ? 2 : 1); i++) {
            if (i == 1 && nl_jinja_expect(compile, JT_COLON) != 0)
                return NULL;
            if (!(*end = nl_jinja_parse_expression(compile, true)))
                return NULL;
            end = &(*end)->next;
        }
    }
    take(compile);
    return node_of(compile, kind, line, first, NULL, NULL);
}

static struct jn *parse_name(struct jinja_compile *compile, bool with_namespace)
{
    const struct jt *token = take(compile);
    struct jv name = token->value;
    if (jv_text_is(name, "true") || jv_text_is(name, "True"))
        return constant(compile, token->line, jv_bool(true));
    if (jv_text_is(name, "false") || jv_text_is(name, "False"))
        return constant(compile, token->line, jv_bool(false));
    if (jv_text_is(name, "none") || jv_text_is(name, "None"))
        return constant(compile, token->line, jv_none());
    struct jn *node = nl_jinja_new_node(compile, JN_NAME, token->line);
    if (!node)
        return NULL;
    node->value = name;
    if (!with_namespace || !nl_jinja_skip(compile, JT_DOT))
        return node;
    const struct jt *attribute = nl_jinja_current(compile);
    if (nl_jinja_expect(compile, JT_NAME) != 0)
        return NULL;
    struct jn *reference = node_of(compile, JN_NSREF, token->line, node, NULL, NULL);
    if (reference)
        reference->value = attribute->value;
    return reference;
}

struct jn *nl_jinja_parse_primary(struct jinja_compile *compile, bool with_namespace)
{
    const struct jt *token = nl_jinja_current(compile);
    struct jn *node;
    switch ((int)token->kind) {
    case JT_NAME:
        return parse_name(compile, with_namespace);
    case JT_STRING:
        return parse_strings(compile);
    case JT_INTEGER:
    case JT_FLOAT:
        take(compile);
        return constant(compile, token->line, token->value);
    case JT_LPAREN:
        take(compile);
        node =
            nl_jinja_parse_tuple(compile, (struct jinja_tuple){.with_condition = true, .parentheses = true});
        return node && nl_jinja_expect(compile, JT_RPAREN) == 0 ? node : NULL;
    case JT_LBRACKET:
        return parse_items(compile, JN_LIST, JT_RBRACKET);
    case JT_LBRACE:
        return parse_items(compile, JN_DICT, JT_RBRACE);
    default:
        unexpected(compile);
        return NULL;
    }
}

struct jn *nl_jinja_parse_tuple(struct jinja_compile *compile, struct jinja_tuple how)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *first = NULL, **end = &first;
    bool is_tuple = false;
    for (;;) {
        if (first && nl_jinja_expect(compile, JT_COMMA) != 0)
            return NULL;
        const struct jt *token = nl_jinja_current(compile);
        if (token->kind == JT_VARIABLE_END || token->kind == JT_BLOCK_END || token->kind == JT_RPAREN ||
            (how.end_name && nl_jinja_at_name(token, how.end_name)))
            break;
        *end = how.simple ? nl_jinja_parse_primary(compile, how.with_namespace)
                          : nl_jinja_parse_expression(compile, how.with_condition);
        if (!*end)
            return NULL;
        end = &(*end)->next;
        if (nl_jinja_current(compile)->kind != JT_COMMA)
            break;
        is_tuple = true;
    }
    if (!is_tuple && first)
        return first;
    if (!is_tuple && !how.parentheses) {
        unexpected(compile);
        return NULL;
    }
    return node_of(compile, JN_TUPLE, line, first, NULL, NULL);
}

/* A subscript or one bound of a slice: NULL without an error where there is none. */
static int parse_bound(struct jinja_compile *compile, struct jn **out)
{
    enum jt_kind kind = nl_jinja_current(compile)->kind;
    if (kind == JT_COLON || kind == JT_RBRACKET || kind == JT_COMMA)
        return 0;
    return (*out = nl_jinja_parse_expression(compile, true)) ? 0 : -1;
}

static struct jn *parse_subscript(struct jinja_compile *compile, struct jn *node, uint32_t line)
{
    struct jn *start = NULL, *stop = NULL, *step = NULL;
    if (nl_jinja_current(compile)->kind == JT_RBRACKET) { /* jinja2 takes x[] for x[()] */
        take(compile);
        struct jn *empty = node_of(compile, JN_TUPLE, line, NULL, NULL, NULL);
        return empty ? node_of(compile, JN_GETITEM, line, node, empty, NULL) : NULL;
    }
    if (parse_bound(compile, &start) != 0)
        return NULL;
    bool slice = nl_jinja_skip(compile, JT_COLON);
    if (slice && (parse_bound(compile, &stop) != 0 ||
                  (nl_jinja_skip(compile, JT_COLON) && parse_bound(compile, &step) != 0)))
        return NULL;
    if (nl_jinja_current(compile)->kind == JT_COMMA) {
        nl_jinja_compile_error(compile, NL_UNSUPPORTED, line, "several subscripts");
        return NULL;
    }
    if (nl_jinja_expect(compile, JT_RBRACKET) != 0)
        return NULL;
    if (slice)
        start = node_of(compile, JN_SLICE, line, start, stop, step);
    return start ? node_of(compile, JN_GETITEM, line, node, start, NULL) : NULL;
}

static struct jn *parse_attribute(struct jinja_compile *compile, struct jn *node, uint32_t line)
{
    const struct jt *token = nl_jinja_current(compile);
    if (token->kind == JT_INTEGER) {
        take(compile);
        struct jn *index = constant(compile, token->line, token->value);
        return index ? node_of(compile, JN_GETITEM, line, node, index, NULL) : NULL;
    }
    if (nl_jinja_expect(compile, JT_NAME) != 0)
        return NULL;
    struct jn *get = node_of(compile, JN_GETATTR, line, node, NULL, NULL);
    if (get)
        get->value = token->value;
    return get;
}

/* One argument, after what may not follow was checked; *most: the kind that came last. */
static struct jn *parse_argument(struct jinja_compile *compile, enum jn_argument *last)
{
    const struct jt *token = nl_jinja_current(compile);
    enum jn_argument kind = token->kind == JT_MUL   ? JN_STAR
                            : token->kind == JT_POW ? JN_STAR_STAR
                            : token->kind == JT_NAME && look_ahead(compile)->kind == JT_ASSIGN
                                ? JN_KEYWORD
                                : JN_POSITIONAL;
    bool wrong = *last == JN_STAR_STAR || (kind == JN_POSITIONAL && *last != JN_POSITIONAL) ||
                 (kind == JN_STAR && *last == JN_STAR);
    if (wrong) {
        unexpected(compile);
        return NULL;
    }
    if (kind != JN_POSITIONAL)
        take(compile);
    if (kind == JN_KEYWORD)
        take(compile);
    struct jn *value = nl_jinja_parse_expression(compile, true);
    struct jn *argument = value ? node_of(compile, JN_ARGUMENT, token->line, value, NULL, NULL) : NULL;
    if (argument) {
        argument->op = (uint8_t)kind;
        argument->value = token->value;
    }
    *last = kind == JN_KEYWORD && *last == JN_STAR ? JN_STAR : kind;
    return argument;
}

/* Two keywords of one name are an error of Python's. */
static int check_keywords(struct jinja_compile *compile, const struct jn *first)
{
    enum { MOST = 64 };
    unsigned n = 0;
    for (const struct jn *a = first; a; a = a->next) {
        if (a->op != JN_KEYWORD)
            continue;
        if (++n > MOST)
            return nl_jinja_compile_error(compile, NL_UNSUPPORTED, a->line, "too many arguments");
        for (const struct jn *b = first; b != a; b = b->next)
            if (b->op == JN_KEYWORD && b->value.size == a->value.size &&
                memcmp(b->value.text, a->value.text, a->value.size) == 0)
                return nl_jinja_compile_error(compile, NL_DATA, a->line, "an argument is given twice");
    }
    return 0;
}

static int parse_arguments(struct jinja_compile *compile, struct jn **first)
{
    struct jn **end = first;
    enum jn_argument last = JN_POSITIONAL;
    take(compile);
    *first = NULL;
    while (nl_jinja_current(compile)->kind != JT_RPAREN) {
        if (*first && nl_jinja_expect(compile, JT_COMMA) != 0)
            return -1;
        if (*first && nl_jinja_current(compile)->kind == JT_RPAREN)
            break;
        if (!(*end = parse_argument(compile, &last)))
            return -1;
        end = &(*end)->next;
    }
    take(compile);
    return check_keywords(compile, *first);
}

static struct jn *parse_call(struct jinja_compile *compile, struct jn *callee)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *arguments;
    if (parse_arguments(compile, &arguments) != 0)
        return NULL;
    return node_of(compile, JN_CALL, line, callee, arguments, NULL);
}

/* Subscripts, attributes and calls. */
static struct jn *parse_postfix(struct jinja_compile *compile, struct jn *node)
{
    while (node) {
        const struct jt *token = nl_jinja_current(compile);
        if (token->kind == JT_DOT) {
            take(compile);
            node = parse_attribute(compile, node, token->line);
        } else if (token->kind == JT_LBRACKET) {
            take(compile);
            node = parse_subscript(compile, node, token->line);
        } else if (token->kind == JT_LPAREN) {
            node = parse_call(compile, node);
        } else {
            break;
        }
    }
    return node;
}

/* A name with points in it is none that anybody has. */
static struct jn *parse_filter_name(struct jinja_compile *compile, enum jn_kind kind, struct jn *node)
{
    const struct jt *token = nl_jinja_current(compile);
    if (nl_jinja_expect(compile, JT_NAME) != 0)
        return NULL;
    if (nl_jinja_current(compile)->kind == JT_DOT) {
        nl_jinja_compile_error(compile, NL_UNSUPPORTED, token->line,
                               "a filter or test with a point in its name");
        return NULL;
    }
    struct jn *filter = node_of(compile, kind, token->line, node, NULL, NULL);
    if (filter)
        filter->value = token->value;
    return filter;
}

struct jn *nl_jinja_parse_filters(struct jinja_compile *compile, struct jn *node, bool inside)
{
    while (inside || nl_jinja_skip(compile, JT_PIPE)) {
        inside = false;
        struct jn *filter = parse_filter_name(compile, JN_FILTER, node);
        if (!filter ||
            (nl_jinja_current(compile)->kind == JT_LPAREN && parse_arguments(compile, &filter->b) != 0))
            return NULL;
        nl_jinja_adopt(filter, filter->b);
        node = filter;
    }
    return node;
}

/* After "is". */
static struct jn *parse_test(struct jinja_compile *compile, struct jn *node)
{
    uint32_t line = take(compile)->line;
    bool negated = nl_jinja_skip_name(compile, "not");
    struct jn *test = parse_filter_name(compile, JN_TEST, node);
    if (!test)
        return NULL;
    const struct jt *token = nl_jinja_current(compile);
    enum jt_kind kind = token->kind;
    if (kind == JT_LPAREN) {
        if (parse_arguments(compile, &test->b) != 0)
            return NULL;
    } else if ((kind == JT_NAME && !nl_jinja_at_name(token, "else") && !nl_jinja_at_name(token, "or") &&
                !nl_jinja_at_name(token, "and")) ||
               kind == JT_STRING || kind == JT_INTEGER || kind == JT_FLOAT || kind == JT_LBRACKET ||
               kind == JT_LBRACE) {
        if (nl_jinja_at_name(token, "is")) {
            nl_jinja_compile_error(compile, NL_DATA, token->line, "tests cannot be chained with 'is'");
            return NULL;
        }
        struct jn *value = nl_jinja_parse_primary(compile, false);
        value = value ? parse_postfix(compile, value) : NULL;
        if (!value || !(test->b = node_of(compile, JN_ARGUMENT, token->line, value, NULL, NULL)))
            return NULL;
    }
    nl_jinja_adopt(test, test->b);
    return negated ? node_of(compile, JN_NOT, line, test, NULL, NULL) : test;
}

static struct jn *parse_filters_and_tests(struct jinja_compile *compile, struct jn *node)
{
    while (node) {
        const struct jt *token = nl_jinja_current(compile);
        if (token->kind == JT_PIPE)
            node = nl_jinja_parse_filters(compile, node, false);
        else if (nl_jinja_at_name(token, "is"))
            node = parse_test(compile, node);
        else if (token->kind == JT_LPAREN)
            node = parse_call(compile, node);
        else
            break;
    }
    return node;
}

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
        take(compile);
        node = parse_unary(compile, false);
        compile->depth--;
        node = node ? node_of(compile, token->kind == JT_SUB ? JN_NEG : JN_POS, token->line, node, NULL, NULL)
                    : NULL;
    } else {
        node = nl_jinja_parse_primary(compile, false);
    }
    node = parse_postfix(compile, node);
    return with_filter ? parse_filters_and_tests(compile, node) : node;
}

static struct jn *binary(struct jinja_compile *compile, enum jinja_operator op, uint32_t line,
                         struct jn *left, struct jn *right)
{
    struct jn *node = right ? node_of(compile, JN_BINARY, line, left, right, NULL) : NULL;
    if (node)
        node->op = (uint8_t)op;
    return node;
}

static struct jn *parse_power(struct jinja_compile *compile)
{
    struct jn *left = parse_unary(compile, true);
    while (left && nl_jinja_current(compile)->kind == JT_POW) {
        uint32_t line = take(compile)->line;
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
        uint32_t line = take(compile)->line;
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
    return node_of(compile, JN_CONCAT, first->line, first, NULL, NULL);
}

static struct jn *parse_sum(struct jinja_compile *compile)
{
    struct jn *left = parse_concat(compile);
    while (left) {
        enum jt_kind kind = nl_jinja_current(compile)->kind;
        if (kind != JT_ADD && kind != JT_SUB)
            break;
        uint32_t line = take(compile)->line;
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
    if (op < 0 && nl_jinja_at_name(token, "not") && nl_jinja_at_name(look_ahead(compile), "in")) {
        take(compile);
        op = JN_NOT_IN;
    }
    if (op >= 0)
        take(compile);
    return op;
}

static struct jn *parse_comparison(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *left = parse_sum(compile), *first = NULL, **end = &first;
    int op;
    while (left && (op = take_comparison(compile)) >= 0) {
        struct jn *right = parse_sum(compile);
        if (!right || !(*end = node_of(compile, JN_OPERAND, right->line, right, NULL, NULL)))
            return NULL;
        (*end)->op = (uint8_t)op;
        end = &(*end)->next;
    }
    return left && first ? node_of(compile, JN_COMPARE, line, left, first, NULL) : left;
}

static struct jn *parse_not(struct jinja_compile *compile)
{
    uint32_t line = nl_jinja_current(compile)->line;
    unsigned n = 0;
    while (nl_jinja_skip_name(compile, "not"))
        n++;
    struct jn *node = parse_comparison(compile);
    for (; node && n > 0; n--)
        node = node_of(compile, JN_NOT, line, node, NULL, NULL);
    return node;
}

static struct jn *parse_and(struct jinja_compile *compile)
{
    struct jn *left = parse_not(compile);
    while (left && nl_jinja_skip_name(compile, "and")) {
        struct jn *right = parse_not(compile);
        left = right ? node_of(compile, JN_AND, left->line, left, right, NULL) : NULL;
    }
    return left;
}

static struct jn *parse_or(struct jinja_compile *compile)
{
    struct jn *left = parse_and(compile);
    while (left && nl_jinja_skip_name(compile, "or")) {
        struct jn *right = parse_and(compile);
        left = right ? node_of(compile, JN_OR, left->line, left, right, NULL) : NULL;
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
        node = node_of(compile, JN_COND, line, node, test, otherwise);
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
