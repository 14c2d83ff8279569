/* The tokens as the parser takes them, and operands: literals, names, and what may follow them. */
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

const struct jt *nl_jinja_look_ahead(const struct jinja_compile *compile)
{
    return &compile->tokens[compile->at + (compile->at + 1 < compile->n_tokens)];
}

bool nl_jinja_at_name(const struct jt *token, const char *name)
{
    return token->kind == JT_NAME && jv_text_is(token->value, name);
}

/* Never past the end. */
struct jt *nl_jinja_take(struct jinja_compile *compile)
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
        nl_jinja_take(compile);
    return there;
}

bool nl_jinja_skip_name(struct jinja_compile *compile, const char *name)
{
    bool there = nl_jinja_at_name(nl_jinja_current(compile), name);
    if (there)
        nl_jinja_take(compile);
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
struct jn *nl_jinja_node_of(struct jinja_compile *compile, enum jn_kind kind, uint32_t line, struct jn *a,
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
    const struct jt *first = nl_jinja_take(compile), *token;
    uint64_t size = first->value.size, at = 0;
    size_t n = 0;
    for (token = first + 1; token->kind == JT_STRING; token++, n++)
        size += token->value.size;
    if (n == 0)
        return constant(compile, first->line, first->value);
    char *text = nl_jinja_compile_alloc(compile, (size_t)size + 1);
    if (!text)
        return NULL;
    memcpy(text, first->value.text, first->value.size);
    at = first->value.size;
    for (; n > 0; n--) {
        token = nl_jinja_take(compile);
        memcpy(text + at, token->value.text, token->value.size);
        at += token->value.size;
    }
    return constant(compile, first->line, jv_string(text, (size_t)size));
}

/* Items up to the closing bracket, a comma at the end allowed; of a dict: keys and values. */
static struct jn *parse_items(struct jinja_compile *compile, enum jn_kind kind, enum jt_kind close)
{
    uint32_t line = nl_jinja_take(compile)->line;
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
    nl_jinja_take(compile);
    return nl_jinja_node_of(compile, kind, line, first, NULL, NULL);
}

static struct jn *parse_name(struct jinja_compile *compile, bool with_namespace)
{
    const struct jt *token = nl_jinja_take(compile);
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
    struct jn *reference = nl_jinja_node_of(compile, JN_NSREF, token->line, node, NULL, NULL);
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
        nl_jinja_take(compile);
        return constant(compile, token->line, token->value);
    case JT_LPAREN:
        nl_jinja_take(compile);
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
    return nl_jinja_node_of(compile, JN_TUPLE, line, first, NULL, NULL);
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
        nl_jinja_take(compile);
        struct jn *empty = nl_jinja_node_of(compile, JN_TUPLE, line, NULL, NULL, NULL);
        return empty ? nl_jinja_node_of(compile, JN_GETITEM, line, node, empty, NULL) : NULL;
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
        start = nl_jinja_node_of(compile, JN_SLICE, line, start, stop, step);
    return start ? nl_jinja_node_of(compile, JN_GETITEM, line, node, start, NULL) : NULL;
}

static struct jn *parse_attribute(struct jinja_compile *compile, struct jn *node, uint32_t line)
{
    const struct jt *token = nl_jinja_current(compile);
    if (token->kind == JT_INTEGER) {
        nl_jinja_take(compile);
        struct jn *index = constant(compile, token->line, token->value);
        return index ? nl_jinja_node_of(compile, JN_GETITEM, line, node, index, NULL) : NULL;
    }
    if (nl_jinja_expect(compile, JT_NAME) != 0)
        return NULL;
    struct jn *get = nl_jinja_node_of(compile, JN_GETATTR, line, node, NULL, NULL);
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
                            : token->kind == JT_NAME && nl_jinja_look_ahead(compile)->kind == JT_ASSIGN
                                ? JN_KEYWORD
                                : JN_POSITIONAL;
    bool wrong = *last == JN_STAR_STAR || (kind == JN_POSITIONAL && *last != JN_POSITIONAL) ||
                 (kind == JN_STAR && *last == JN_STAR);
    if (wrong) {
        unexpected(compile);
        return NULL;
    }
    if (kind != JN_POSITIONAL)
        nl_jinja_take(compile);
    if (kind == JN_KEYWORD)
        nl_jinja_take(compile);
    struct jn *value = nl_jinja_parse_expression(compile, true);
    struct jn *argument =
        value ? nl_jinja_node_of(compile, JN_ARGUMENT, token->line, value, NULL, NULL) : NULL;
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
    nl_jinja_take(compile);
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
    nl_jinja_take(compile);
    return check_keywords(compile, *first);
}

static struct jn *parse_call(struct jinja_compile *compile, struct jn *callee)
{
    uint32_t line = nl_jinja_current(compile)->line;
    struct jn *arguments;
    if (parse_arguments(compile, &arguments) != 0)
        return NULL;
    return nl_jinja_node_of(compile, JN_CALL, line, callee, arguments, NULL);
}

/* Subscripts, attributes and calls. */
struct jn *nl_jinja_parse_postfix(struct jinja_compile *compile, struct jn *node)
{
    while (node) {
        const struct jt *token = nl_jinja_current(compile);
        if (token->kind == JT_DOT) {
            nl_jinja_take(compile);
            node = parse_attribute(compile, node, token->line);
        } else if (token->kind == JT_LBRACKET) {
            nl_jinja_take(compile);
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
    struct jn *filter = nl_jinja_node_of(compile, kind, token->line, node, NULL, NULL);
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
    uint32_t line = nl_jinja_take(compile)->line;
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
        value = value ? nl_jinja_parse_postfix(compile, value) : NULL;
        if (!value || !(test->b = nl_jinja_node_of(compile, JN_ARGUMENT, token->line, value, NULL, NULL)))
            return NULL;
    }
    nl_jinja_adopt(test, test->b);
    return negated ? nl_jinja_node_of(compile, JN_NOT, line, test, NULL, NULL) : test;
}

struct jn *nl_jinja_parse_filters_and_tests(struct jinja_compile *compile, struct jn *node)
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
