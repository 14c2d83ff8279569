/* Statements to trees. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "escape.h"
#include "jinja_tree.h"

int nl_jinja_compile_error(struct jinja_compile *compile, enum nl_status code, uint32_t line,
                           const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return nl_fail(compile->error, code, "%s: %s, line %u", what, compile->template->name, (unsigned)line);
}

void *nl_jinja_compile_alloc(struct jinja_compile *compile, size_t size)
{
    void *memory = nl_jinja_arena_alloc(&compile->template->arena, size);
    if (!memory)
        nl_fail_memory(compile->error, "template");
    return memory;
}

const char *nl_jinja_token_text(const struct jt *token, char shown[64])
{
    static const char *const others[] = {"end of template",
                                         "text",
                                         "'{{'",
                                         "'}}'",
                                         "'{%'",
                                         "'%}'",
                                         "",
                                         "string",
                                         "number",
                                         "number",
                                         "'//'",
                                         "'**'",
                                         "'=='",
                                         "'!='",
                                         "'>='",
                                         "'<='",
                                         "'+'",
                                         "'-'",
                                         "'/'",
                                         "'*'",
                                         "'%'",
                                         "'~'",
                                         "'['",
                                         "']'",
                                         "'('",
                                         "')'",
                                         "'{'",
                                         "'}'",
                                         "'>'",
                                         "'<'",
                                         "'='",
                                         "'.'",
                                         "':'",
                                         "'|'",
                                         "','",
                                         "';'"};
    if (token->kind != JT_NAME)
        return others[token->kind];
    snprintf(shown, 64, "'%.*s'", (int)(token->value.size < 60 ? token->value.size : 60), token->value.text);
    return shown;
}

static int parse_list(struct jinja_compile *compile, const char *const *ends, struct jn **out);

/* The rest of an opening tag and the statements up to one of `ends` (NULL-terminated), whose name is the
   current token then. */
static int parse_body(struct jinja_compile *compile, const char *const *ends, struct jn **out)
{
    nl_jinja_skip(compile, JT_COLON);
    return nl_jinja_expect(compile, JT_BLOCK_END) != 0 ? -1 : parse_list(compile, ends, out);
}

/* The same with one possible end, which is taken. */
static int parse_to(struct jinja_compile *compile, const char *end, struct jn **out)
{
    const char *const ends[] = {end, NULL};
    if (parse_body(compile, ends, out) != 0)
        return -1;
    compile->at++;
    return 0;
}

static int check_target(struct jinja_compile *compile, const struct jn *target)
{
    if (target->kind == JN_NAME && compile->in_any_loop && jv_text_is(target->value, "loop"))
        return nl_jinja_compile_error(compile, NL_DATA, target->line, "cannot assign to 'loop' in a loop");
    if (target->kind == JN_NAME || target->kind == JN_NSREF)
        return 0;
    if (target->kind != JN_TUPLE)
        return nl_jinja_compile_error(compile, NL_DATA, target->line, "cannot assign to that");
    for (const struct jn *item = target->a; item; item = item->next)
        if (check_target(compile, item) != 0)
            return -1;
    return 0;
}

static struct jn *parse_target(struct jinja_compile *compile, const char *end_name, bool with_namespace)
{
    struct jn *target = nl_jinja_parse_tuple(
        compile,
        (struct jinja_tuple){.simple = true, .with_namespace = with_namespace, .end_name = end_name});
    return target && check_target(compile, target) == 0 ? target : NULL;
}

static struct jn *parse_target_name(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_current(compile);
    if (nl_jinja_expect(compile, JT_NAME) != 0)
        return NULL;
    struct jn *name = nl_jinja_new_node(compile, JN_NAME, token->line);
    if (name)
        name->value = token->value;
    return name;
}

static int parse_set(struct jinja_compile *compile, struct jn *node)
{
    if (!(node->a = parse_target(compile, NULL, true)))
        return -1;
    if (nl_jinja_skip(compile, JT_ASSIGN)) {
        node->b = nl_jinja_parse_tuple(compile, (struct jinja_tuple){.with_condition = true});
        return node->b ? 0 : -1;
    }
    node->kind = JN_SETBLOCK;
    if (nl_jinja_current(compile)->kind == JT_PIPE &&
        !(node->b = nl_jinja_parse_filters(compile, NULL, false)))
        return -1;
    return parse_to(compile, "endset", &node->d);
}

/* A loop's test has a target of its own: it is tried while the body runs. */
static struct jn *clone_target(struct jinja_compile *compile, const struct jn *target)
{
    struct jn *copy = nl_jinja_compile_alloc(compile, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *target;
    copy->next = NULL;
    struct jn **end = &copy->a;
    for (const struct jn *item = target->a; item; item = item->next) {
        if (!(*end = clone_target(compile, item)))
            return NULL;
        end = &(*end)->next;
    }
    return copy;
}

static int parse_for_head(struct jinja_compile *compile, struct jn *node)
{
    compile->in_any_loop++; /* for the check of the target */
    node->a = parse_target(compile, "in", false);
    compile->in_any_loop--;
    if (!node->a)
        return -1;
    if (!nl_jinja_skip_name(compile, "in"))
        return nl_jinja_compile_error(compile, NL_DATA, node->line, "'for' without 'in'");
    if (!(node->b = nl_jinja_parse_tuple(compile, (struct jinja_tuple){.end_name = "recursive"})))
        return -1;
    if (nl_jinja_skip_name(compile, "if") && (!(node->c = nl_jinja_parse_expression(compile, true)) ||
                                              !(node->f = clone_target(compile, node->a))))
        return -1;
    if (nl_jinja_at_name(nl_jinja_current(compile), "recursive"))
        return nl_jinja_compile_error(compile, NL_UNSUPPORTED, node->line, "'for ... recursive'");
    return 0;
}

static int parse_for(struct jinja_compile *compile, struct jn *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    if (parse_for_head(compile, node) != 0)
        return -1;
    compile->in_loops++;
    compile->in_any_loop++;
    int result = parse_body(compile, ends, &node->d);
    compile->in_loops--;
    if (result == 0 && nl_jinja_skip_name(compile, "else"))
        result = parse_to(compile, "endfor", &node->e);
    else if (result == 0)
        compile->at++;
    compile->in_any_loop--;
    return result;
}

static int parse_if(struct jinja_compile *compile, struct jn *node)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct jn *branch = node, **end = &node->c;
    for (;;) {
        if (!(branch->a = nl_jinja_parse_tuple(compile, (struct jinja_tuple){0})) ||
            parse_body(compile, ends, &branch->d) != 0)
            return -1;
        uint32_t line = nl_jinja_current(compile)->line;
        if (branch != node) {
            nl_jinja_adopt(branch, branch->a);
            nl_jinja_adopt(branch, branch->d);
        }
        if (!nl_jinja_skip_name(compile, "elif"))
            break;
        if (!(branch = *end = nl_jinja_new_node(compile, JN_IF, line)))
            return -1;
        end = &branch->next;
    }
    if (nl_jinja_skip_name(compile, "else"))
        return parse_to(compile, "endif", &node->e);
    compile->at++;
    return 0;
}

static bool has_parameter(const struct jn *first, struct jv name)
{
    for (; first; first = first->next)
        if (first->a->value.size == name.size && memcmp(first->a->value.text, name.text, name.size) == 0)
            return true;
    return false;
}

static int parse_signature(struct jinja_compile *compile, struct jn *node)
{
    enum { MOST = 64 };
    struct jn **end = &node->a;
    bool defaults = false;
    unsigned n = 0;
    if (nl_jinja_expect(compile, JT_LPAREN) != 0)
        return -1;
    while (nl_jinja_current(compile)->kind != JT_RPAREN) {
        if (node->a && nl_jinja_expect(compile, JT_COMMA) != 0)
            return -1;
        struct jn *parameter = nl_jinja_new_node(compile, JN_PARAMETER, nl_jinja_current(compile)->line);
        if (!parameter || !(parameter->a = parse_target_name(compile)))
            return -1;
        if (has_parameter(node->a, parameter->a->value) || ++n > MOST)
            return nl_jinja_compile_error(compile, NL_DATA, parameter->line, "a parameter is there twice");
        if (nl_jinja_skip(compile, JT_ASSIGN)) {
            defaults = true;
            if (!(parameter->b = nl_jinja_parse_expression(compile, true)))
                return -1;
            nl_jinja_adopt(parameter, parameter->b);
        } else if (defaults) {
            return nl_jinja_compile_error(compile, NL_DATA, parameter->line,
                                          "a parameter without a default follows one with it");
        }
        *end = parameter;
        end = &parameter->next;
    }
    return nl_jinja_expect(compile, JT_RPAREN);
}

/* The body is a function of its own: a loop around it is none of its loops. */
static int parse_function_body(struct jinja_compile *compile, struct jn *node, const char *end)
{
    unsigned loops = compile->in_loops;
    compile->in_loops = 0;
    int result = parse_to(compile, end, &node->d);
    compile->in_loops = loops;
    return result;
}

static int parse_macro(struct jinja_compile *compile, struct jn *node)
{
    if (!(node->f = parse_target_name(compile)) || parse_signature(compile, node) != 0)
        return -1;
    node->value = node->f->value;
    if (check_target(compile, node->f) != 0)
        return -1;
    return parse_function_body(compile, node, "endmacro");
}

static int parse_call_block(struct jinja_compile *compile, struct jn *node)
{
    if (nl_jinja_current(compile)->kind == JT_LPAREN && parse_signature(compile, node) != 0)
        return -1;
    if (!(node->b = nl_jinja_parse_expression(compile, true)))
        return -1;
    if (node->b->kind != JN_CALL)
        return nl_jinja_compile_error(compile, NL_DATA, node->line, "'call' without a call");
    return parse_function_body(compile, node, "endcall");
}

static int parse_generation(struct jinja_compile *compile, struct jn *node)
{
    return parse_function_body(compile, node, "endgeneration");
}

static int parse_filter_block(struct jinja_compile *compile, struct jn *node)
{
    if (!(node->b = nl_jinja_parse_filters(compile, NULL, true)))
        return -1;
    return parse_to(compile, "endfilter", &node->d);
}

static int parse_with(struct jinja_compile *compile, struct jn *node)
{
    struct jn **target = &node->a, **value = &node->b;
    while (nl_jinja_current(compile)->kind != JT_BLOCK_END) {
        if (node->a && nl_jinja_expect(compile, JT_COMMA) != 0)
            return -1;
        /* jinja2 reads a tuple here, so that a comma must come before each but the first target's "=" */
        if (!(*target = parse_target(compile, NULL, false)) || nl_jinja_expect(compile, JT_ASSIGN) != 0 ||
            !(*value = nl_jinja_parse_expression(compile, true)))
            return -1;
        target = &(*target)->next;
        value = &(*value)->next;
    }
    return parse_to(compile, "endwith", &node->d);
}

static int parse_print(struct jinja_compile *compile, struct jn *node)
{
    struct jn **end = &node->a;
    while (nl_jinja_current(compile)->kind != JT_BLOCK_END) {
        if (node->a && nl_jinja_expect(compile, JT_COMMA) != 0)
            return -1;
        if (!(*end = nl_jinja_parse_expression(compile, true)))
            return -1;
        end = &(*end)->next;
    }
    return 0;
}

static int parse_control(struct jinja_compile *compile, struct jn *node)
{
    if (compile->in_loops == 0)
        return nl_jinja_compile_error(compile, NL_DATA, node->line,
                                      "'break' or 'continue' outside of a loop");
    return 0;
}

static struct jn *parse_statement(struct jinja_compile *compile)
{
    static const struct {
        const char *name;
        enum jn_kind kind;
        int (*parse)(struct jinja_compile *, struct jn *);
    } tags[] = {
        {"for", JN_FOR, parse_for},
        {"if", JN_IF, parse_if},
        {"set", JN_SET, parse_set},
        {"macro", JN_MACRO, parse_macro},
        {"call", JN_CALLBLOCK, parse_call_block},
        {"generation", JN_CALLBLOCK, parse_generation},
        {"filter", JN_FILTERBLOCK, parse_filter_block},
        {"with", JN_WITH, parse_with},
        {"print", JN_OUTPUT, parse_print},
        {"break", JN_BREAK, parse_control},
        {"continue", JN_CONTINUE, parse_control},
    };
    const struct jt *token = nl_jinja_current(compile);
    char shown[64];
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!nl_jinja_skip_name(compile, tags[i].name))
            continue;
        struct jn *node = nl_jinja_new_node(compile, tags[i].kind, token->line);
        if (!node || tags[i].parse(compile, node) != 0)
            return NULL;
        const struct jn *const children[] = {node->a, node->b, node->c, node->d, node->e, node->f};
        for (size_t child = 0; child < 6; child++)
            nl_jinja_adopt(node, children[child]);
        return node;
    }
    nl_jinja_compile_error(compile, NL_UNSUPPORTED, token->line,
                           "tag %s, which is not supported or out of place",
                           nl_jinja_token_text(token, shown));
    return NULL;
}

/* "{{ ... }}", text, or a tag, of which the name is the current token. */
static struct jn *parse_item(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_current(compile);
    struct jn *node;
    if (token->kind == JT_NAME) {
        node = parse_statement(compile);
        return node && nl_jinja_expect(compile, JT_BLOCK_END) == 0 ? node : NULL;
    }
    node = nl_jinja_new_node(compile, token->kind == JT_DATA ? JN_DATA : JN_OUTPUT, token->line);
    compile->at++;
    if (!node)
        return NULL;
    if (token->kind == JT_DATA) {
        node->value = token->value;
        return node;
    }
    node->a = nl_jinja_parse_tuple(compile, (struct jinja_tuple){.with_condition = true});
    if (!node->a || nl_jinja_expect(compile, JT_VARIABLE_END) != 0)
        return NULL;
    nl_jinja_adopt(node, node->a);
    return node;
}

static int parse_list(struct jinja_compile *compile, const char *const *ends, struct jn **out)
{
    struct jn **end = out;
    if (++compile->depth > JINJA_MOST_NESTING)
        return nl_jinja_compile_error(compile, NL_UNSUPPORTED, nl_jinja_current(compile)->line,
                                      "tags that are nested too deeply");
    while (nl_jinja_current(compile)->kind != JT_END) {
        if (nl_jinja_skip(compile, JT_BLOCK_BEGIN)) {
            const struct jt *token = nl_jinja_current(compile);
            for (size_t i = 0; ends && ends[i]; i++)
                if (nl_jinja_at_name(token, ends[i])) {
                    compile->depth--;
                    return 0;
                }
            if (token->kind != JT_NAME)
                return nl_jinja_compile_error(compile, NL_DATA, token->line, "a tag without a name");
        }
        if (!(*end = parse_item(compile)))
            return -1;
        if ((*end)->height > JINJA_MOST_NESTING)
            return nl_jinja_compile_error(compile, NL_UNSUPPORTED, (*end)->line,
                                          "tags that are nested too deeply");
        end = &(*end)->next;
    }
    compile->depth--;
    return ends ? nl_jinja_compile_error(compile, NL_DATA, nl_jinja_current(compile)->line,
                                         "the template ends where '%s' should come", ends[0])
                : 0;
}

int nl_jinja_parse(struct jinja_compile *compile)
{
    return parse_list(compile, NULL, &compile->template->body);
}
