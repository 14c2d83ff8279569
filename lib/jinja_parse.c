/* Statements to trees. */
#include <stdarg.h>
#include <stdio.h>

#include "jinja_tree.h"

void nl_jinja_refuse(struct jinja_compile *compile, enum nl_status code, uint32_t line, const char *format,
                     ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!compile->failed)
        nl_fail(compile->error, code, "%s: %s, line %u", what, compile->template->name, (unsigned)line);
    compile->failed = true;
    if (compile->n_tokens)
        compile->at = compile->n_tokens - 1;
}

void *nl_jinja_compile_alloc(struct jinja_compile *compile, size_t size)
{
    void *memory = compile->failed ? NULL : nl_jinja_arena_alloc(&compile->template->arena, size);
    if (!memory)
        nl_jinja_refuse(compile, NL_RESOURCE, 1, "out of memory");
    return memory;
}

static struct jn *parse_list(struct jinja_compile *, const char *ends);

/* The rest of an opening tag and the statements up to one of `ends`, whose name is the current token then. */
static struct jn *parse_body(struct jinja_compile *compile, const char *ends)
{
    nl_jinja_skip(compile, ':');
    nl_jinja_expect(compile, JT_BLOCK_END);
    return parse_list(compile, ends);
}

/* The same, and the end is taken. What has variables of its own is a loop, a macro or a block. */
static struct jn *parse_scope(struct jinja_compile *compile, const char *end)
{
    compile->in_scopes++;
    struct jn *body = parse_body(compile, end);
    compile->in_scopes--;
    nl_jinja_take(compile);
    return body;
}

static void parse_set(struct jinja_compile *compile, struct jn *node)
{
    node->a = nl_jinja_parse_tuple(compile, JINJA_NAMESPACE_TARGET);
    if (nl_jinja_skip(compile, '=')) {
        node->b = nl_jinja_parse_tuple(compile, JINJA_WITH_CONDITION);
        return;
    }
    node->kind = JN_SETBLOCK;
    if (nl_jinja_current(compile)->kind == '|')
        nl_jinja_refuse(compile, NL_UNSUPPORTED, node->line, "'set' of a block with a filter");
    node->d = parse_scope(compile, "endset");
}

/* The filters work on a variable that no template can name. */
static void parse_filter(struct jinja_compile *compile, struct jn *node)
{
    struct jt text = {.kind = JT_NAME, .line = node->line, .value = jv_chars("the block")};
    struct jn *name = nl_jinja_name(compile, &text);
    node->id = name->id;
    node->a = nl_jinja_parse_filters(compile, name);
    node->d = parse_scope(compile, "endfilter");
}

static void parse_for(struct jinja_compile *compile, struct jn *node)
{
    struct jt loop = {.kind = JT_NAME, .value = jv_chars("loop")};
    node->id = nl_jinja_name(compile, &loop)->id;
    compile->in_loops++;
    compile->in_scopes++;
    node->a = nl_jinja_parse_tuple(compile, JINJA_TARGET);
    if (!nl_jinja_skip_name(compile, "in"))
        nl_jinja_refuse(compile, NL_DATA, node->line, "'for' without 'in'");
    node->b = nl_jinja_parse_tuple(compile, JINJA_WITHOUT_CONDITION);
    if (nl_jinja_skip_name(compile, "if"))
        node->c = nl_jinja_parse_expression(compile);
    if (nl_jinja_at_name(compile, "recursive"))
        nl_jinja_refuse(compile, NL_UNSUPPORTED, node->line, "'for ... recursive'");
    node->d = parse_body(compile, "endfor else");
    compile->in_loops--;
    uint32_t line = nl_jinja_current(compile)->line;
    if (nl_jinja_skip_name(compile, "else")) {
        node->e = nl_jinja_node(compile, JN_SCOPE, line);
        node->e->d = parse_body(compile, "endfor");
    }
    nl_jinja_take(compile);
    compile->in_scopes--;
}

static void parse_if(struct jinja_compile *compile, struct jn *node)
{
    struct jn *branch = node;
    do {
        if (branch->a) {
            branch->e = nl_jinja_node(compile, JN_IF, nl_jinja_current(compile)->line);
            branch = branch->e;
        }
        branch->a = nl_jinja_parse_tuple(compile, JINJA_WITHOUT_CONDITION);
        branch->d = parse_body(compile, "elif else endif");
    } while (nl_jinja_skip_name(compile, "elif") && !compile->failed);
    if (nl_jinja_skip_name(compile, "else"))
        branch->e = parse_body(compile, "endif");
    nl_jinja_take(compile);
}

static struct jn *parse_parameters(struct jinja_compile *compile)
{
    struct jn *first = NULL, **end = &first;
    nl_jinja_expect(compile, '(');
    for (bool defaults = false; !nl_jinja_skip(compile, ')') && !compile->failed;) {
        uint32_t line = nl_jinja_current(compile)->line;
        if (first)
            nl_jinja_expect(compile, ',');
        struct jn *parameter = nl_jinja_node(compile, JN_PARAMETER, line);
        parameter->a = nl_jinja_parse_target_name(compile);
        for (const struct jn *other = first; other; other = other->next)
            if (other->a->id == parameter->a->id)
                nl_jinja_refuse(compile, NL_DATA, line, "a parameter is there twice");
        defaults = defaults || nl_jinja_current(compile)->kind == '=';
        if (nl_jinja_skip(compile, '='))
            parameter->b = nl_jinja_parse_expression(compile);
        if (defaults && !parameter->b)
            nl_jinja_refuse(compile, NL_DATA, line, "a parameter without a default follows one with it");
        end = nl_jinja_append(end, parameter);
    }
    return first;
}

/* Where it stands elsewhere, what it sees outlives the turn or call that made it. */
static void parse_macro(struct jinja_compile *compile, struct jn *node)
{
    if (compile->in_scopes)
        nl_jinja_refuse(compile, NL_UNSUPPORTED, node->line, "a macro in a loop, a macro or a block");
    node->b = nl_jinja_parse_target_name(compile);
    node->a = parse_parameters(compile);
    node->d = parse_scope(compile, "endmacro");
}

static void parse_generation(struct jinja_compile *compile, struct jn *node)
{
    unsigned loops = compile->in_loops; /* the block is a function in jinja2, none of whose loops is around */
    compile->in_loops = 0;
    node->d = parse_scope(compile, "endgeneration");
    compile->in_loops = loops;
}

static void parse_control(struct jinja_compile *compile, struct jn *node)
{
    if (compile->in_loops == 0)
        nl_jinja_refuse(compile, NL_DATA, node->line, "'break' or 'continue' outside of a loop");
}

static struct jn *parse_tag(struct jinja_compile *compile)
{
    static const struct {
        const char *name;
        enum jn_kind kind;
        void (*parse)(struct jinja_compile *, struct jn *);
    } tags[] = {
        {"for", JN_FOR, parse_for},         {"if", JN_IF, parse_if},
        {"set", JN_SET, parse_set},         {"filter", JN_FILTERBLOCK, parse_filter},
        {"macro", JN_MACRO, parse_macro},   {"generation", JN_SCOPE, parse_generation},
        {"break", JN_BREAK, parse_control}, {"continue", JN_CONTINUE, parse_control},
    };
    const struct jt *token = nl_jinja_expect(compile, JT_NAME);
    for (size_t i = 0; i < sizeof tags / sizeof *tags && !compile->failed; i++) {
        if (!jv_text_is(token->value, tags[i].name))
            continue;
        struct jn *node = nl_jinja_node(compile, tags[i].kind, token->line);
        tags[i].parse(compile, node);
        nl_jinja_expect(compile, JT_BLOCK_END);
        return node;
    }
    nl_jinja_refuse(compile, NL_UNSUPPORTED, token->line,
                    "tag '%.*s', which is not supported or out of place", JINJA_SHOWN(token->value));
    return &compile->no_node;
}

/* Statements up to a tag of one of `ends` (NULL: up to the end). */
static struct jn *parse_list(struct jinja_compile *compile, const char *ends)
{
    struct jn *first = NULL, **end = &first;
    nl_jinja_deeper(compile, nl_jinja_current(compile)->line);
    while (nl_jinja_current(compile)->kind != JT_END) {
        const struct jt *token = nl_jinja_take(compile);
        struct jn *node;
        if (token->kind == JT_BLOCK_BEGIN) {
            token = nl_jinja_current(compile);
            if (ends && token->kind == JT_NAME && nl_jinja_is_listed(token->value, ends)) {
                compile->depth--;
                return first;
            }
            node = parse_tag(compile);
        } else if (token->kind == JT_DATA) {
            node = nl_jinja_node(compile, JN_DATA, token->line);
            node->value = token->value;
        } else {
            node = nl_jinja_node(compile, JN_OUTPUT, token->line);
            node->a = nl_jinja_parse_tuple(compile, JINJA_WITH_CONDITION);
            nl_jinja_expect(compile, JT_VARIABLE_END);
        }
        end = nl_jinja_append(end, node);
    }
    compile->depth--;
    if (ends)
        nl_jinja_refuse(compile, NL_DATA, nl_jinja_current(compile)->line,
                        "the template ends where one of these should come: %s", ends);
    return first;
}

void nl_jinja_parse(struct jinja_compile *compile)
{
    compile->template->body = nl_jinja_node(compile, JN_SCOPE, 1);
    compile->template->body->d = parse_list(compile, NULL);
}
