/* Templates opened, and statements executed. */
#include <stdlib.h>

#include "jinja_tree.h"

struct nl_jinja *nl_jinja_open(const char *source, size_t length, const char *name, struct nl_error *error)
{
    struct nl_jinja *template = calloc(1, sizeof *template);
    struct jinja_compile compile = {.template = template, .error = error};
    if (!template || !(template->name = strdup(name))) {
        nl_fail_memory(error, "template");
        free(template);
        return NULL;
    }
    nl_jinja_lex(&compile, source, length);
    if (!compile.failed)
        nl_jinja_parse(&compile);
    if (!compile.failed)
        nl_jinja_resolve(&compile);
    free(compile.tokens);
    if (!compile.failed)
        return template;
    nl_jinja_close(template);
    return NULL;
}

void nl_jinja_close(struct nl_jinja *template)
{
    if (!template)
        return;
    nl_jinja_arena_free(&template->arena);
    free(template->name);
    free(template);
}

struct nl_jinja_run *nl_jinja_run_open(struct nl_error *error)
{
    struct nl_jinja_run *run = calloc(1, sizeof *run);
    if (!run) {
        nl_fail_memory(error, "template");
        return NULL;
    }
    *run = (struct nl_jinja_run){.error = error, .line = 1};
    run->variables = nl_jv_dict_new(run);
    if (!run->failed)
        return run;
    nl_jinja_run_close(run);
    return NULL;
}

void nl_jinja_run_close(struct nl_jinja_run *run)
{
    if (!run)
        return;
    nl_jinja_arena_free(&run->arena);
    free(run);
}

int nl_jinja_set_json(struct nl_jinja_run *run, const char *key, const char *text, size_t length,
                      struct nl_error *error)
{
    run->error = error;
    run->failed = false;
    struct jv name = nl_jv_copy(run, key, strlen(key));
    nl_jv_dict_set(run, run->variables, name, nl_jv_parse_json(run, text, length, key));
    return run->failed ? -1 : 0;
}

void nl_jinja_set_now(struct nl_jinja_run *run, time_t now)
{
    run->now = now;
    run->has_now = true;
}

struct jinja_scope *nl_jinja_scope_new(struct nl_jinja_run *run, struct jinja_scope *outer)
{
    size_t n = run->template->n_names;
    struct jinja_scope *scope = nl_jinja_alloc(run, sizeof *scope + n * sizeof *scope->values);
    if (scope)
        scope->outer = outer;
    nl_jinja_charge(run, 1 + n / 8);
    return scope;
}

void nl_jinja_scope_begin(struct nl_jinja_run *run, struct jinja_scope *scope, const uint16_t *unset)
{
    const struct nl_jinja *template = run->template;
    memset(scope->values, 0, template->n_names * sizeof *scope->values);
    for (; *unset != JINJA_NO_NAME && !run->failed; unset++)
        scope->values[*unset] = nl_jv_undefined(run, jv_missing(), template->names[*unset]);
    nl_jinja_charge(run, 1 + template->n_names / 8u);
}

/* Everything that is not set by the template itself. */
static void begin_top(struct nl_jinja_run *run, const uint16_t *unset)
{
    const struct nl_jinja *template = run->template;
    nl_jinja_scope_begin(run, run->top, unset);
    for (uint16_t id = 0; id < template->n_names && !run->failed; id++) {
        struct jv *value = &run->top->values[id], name = template->names[id];
        const struct jinja_builtin *global = nl_jinja_find(nl_jinja_globals, name);
        if (!jv_is(*value, JV_MISSING) || nl_jv_dict_get(run, run->variables, name, value))
            continue;
        *value =
            global ? nl_jinja_bound(run, global, jv_missing()) : nl_jv_undefined(run, jv_missing(), name);
    }
}

static void assign(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *target,
                   struct jv value)
{
    size_t n = 0;
    run->line = target->line;
    if (target->kind == JN_NAME) {
        scope->values[target->id] = value;
        return;
    }
    if (target->kind == JN_NSREF) {
        nl_jinja_set_attribute(run, nl_jinja_eval(run, scope, target->a), target->value, value);
        return;
    }
    const struct jv_list *values = nl_jv_gather(run, value);
    for (const struct jn *item = target->a; item; item = item->next)
        n++;
    if (n != values->count)
        nl_jinja_fail(run, NL_DATA, "%zu values for %zu variables", values->count, n);
    n = 0;
    for (const struct jn *item = target->a; item && !run->failed; item = item->next)
        assign(run, scope, item, values->items[n++]);
}

/* Before anything is computed, as jinja2 does it. */
static void check_namespaces(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *target)
{
    if (target->kind == JN_NSREF && !jv_is(nl_jinja_eval(run, scope, target->a), JV_NAMESPACE))
        nl_jinja_fail(run, NL_DATA, "cannot set an attribute of what is not a namespace");
    for (const struct jn *item = target->kind == JN_TUPLE ? target->a : NULL; item; item = item->next)
        check_namespaces(run, scope, item);
}

static enum jinja_flow execute_scope(struct nl_jinja_run *run, struct jinja_scope *outer,
                                     const struct jn *node)
{
    struct jinja_scope *scope = nl_jinja_scope_new(run, outer);
    if (!scope)
        return JINJA_ON;
    nl_jinja_scope_begin(run, scope, node->unset);
    return nl_jinja_execute(run, scope, node->d);
}

/* A block whose text is set to a variable, or goes through filters, which see the block's variables. */
static enum jinja_flow execute_block(struct nl_jinja_run *run, struct jinja_scope *outer,
                                     const struct jn *node)
{
    struct jinja_scope *scope = nl_jinja_scope_new(run, outer);
    struct nl_buf text = {0}, *before = run->out;
    if (!scope)
        return JINJA_ON;
    run->out = &text;
    nl_jinja_scope_begin(run, scope, node->unset);
    enum jinja_flow flow = nl_jinja_execute(run, scope, node->d);
    run->out = before;
    struct jv value = nl_jv_take(run, &text);
    if (flow != JINJA_ON || run->failed)
        return flow;
    if (node->kind == JN_SETBLOCK) {
        assign(run, outer, node->a, value);
    } else {
        scope->values[node->id] = value;
        value = nl_jinja_eval(run, scope, node->a);
        if (!jv_is(value, JV_STRING))
            nl_jinja_fail(run, NL_DATA, "a filter block makes a value of type %s, no text",
                          nl_jv_type_name(value));
        nl_jinja_put(run, run->out, value);
    }
    return flow;
}

/* The items that pass a loop's test. */
static bool step_test(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    const struct jn *node = generator->node;
    while (nl_jv_next_input(run, generator, out)) {
        assign(run, generator->scope, node->a, *out);
        if (nl_jv_truth(run, nl_jinja_eval(run, generator->scope, node->c)))
            return true;
    }
    return false;
}

static bool start_loop(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node,
                       struct jv_loop *loop)
{
    *loop = (struct jv_loop){.iterable = nl_jinja_eval(run, scope, node->b), .index0 = -1, .length = -1};
    run->line = node->line;
    if (node->c) {
        const struct jinja_generator generator = {
            .step = step_test, .over = loop->iterable, .node = node, .scope = nl_jinja_scope_new(run, scope)};
        loop->iterable = nl_jv_generator(run, &generator);
    }
    loop->iterator = nl_jv_iterate(run, loop->iterable);
    return !run->failed;
}

static enum jinja_flow execute_for(struct nl_jinja_run *run, struct jinja_scope *outer, const struct jn *node)
{
    struct jv_loop *loop = nl_jinja_alloc(run, sizeof *loop);
    struct jinja_scope *scope = nl_jinja_scope_new(run, outer);
    struct jv item = {0};
    bool completed = false; /* a turn: one that breaks or continues does not count, as in jinja2 */
    if (!loop || !scope || !start_loop(run, outer, node, loop))
        return JINJA_ON;
    while (nl_jv_loop_next(run, loop, &item)) {
        nl_jinja_scope_begin(run, scope, node->unset);
        scope->values[node->id] = (struct jv){.kind = JV_LOOP, .loop = loop};
        assign(run, scope, node->a, item);
        enum jinja_flow flow = nl_jinja_execute(run, scope, node->d);
        completed = completed || flow == JINJA_ON;
        if (flow == JINJA_BREAK || run->failed)
            break;
    }
    return completed || !node->e || run->failed ? JINJA_ON : execute_scope(run, outer, node->e);
}

static enum jinja_flow execute_one(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    switch (node->kind) {
    case JN_DATA:
        nl_jinja_put(run, run->out, node->value);
        return JINJA_ON;
    case JN_OUTPUT:
        nl_jv_str(run, nl_jinja_eval(run, scope, node->a), run->out);
        return JINJA_ON;
    case JN_FOR:
        return execute_for(run, scope, node);
    case JN_IF:
        return nl_jinja_execute(run, scope,
                                nl_jv_truth(run, nl_jinja_eval(run, scope, node->a)) ? node->d : node->e);
    case JN_SET:
        check_namespaces(run, scope, node->a);
        assign(run, scope, node->a, nl_jinja_eval(run, scope, node->b));
        return JINJA_ON;
    case JN_SETBLOCK:
    case JN_FILTERBLOCK:
        return execute_block(run, scope, node);
    case JN_MACRO:
        scope->values[node->b->id] = (struct jv){.kind = JV_MACRO, .macro = node};
        return JINJA_ON;
    case JN_SCOPE:
        return execute_scope(run, scope, node);
    default:
        return node->kind == JN_BREAK ? JINJA_BREAK : JINJA_CONTINUE;
    }
}

enum jinja_flow nl_jinja_execute(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *list)
{
    enum jinja_flow flow = JINJA_ON;
    nl_jinja_enter(run);
    for (const struct jn *node = list; node && flow == JINJA_ON && nl_jinja_charge(run, 1);
         node = node->next) {
        run->line = node->line;
        flow = execute_one(run, scope, node);
    }
    run->depth--;
    return flow;
}

int nl_jinja_render(struct nl_jinja_run *run, const struct nl_jinja *template, struct nl_buf *out,
                    struct nl_error *error)
{
    struct nl_buf text = {0};
    run->template = template;
    run->error = error;
    run->failed = false;
    run->top = nl_jinja_scope_new(run, NULL);
    run->out = &text;
    if (run->top) {
        begin_top(run, template->body->unset);
        nl_jinja_execute(run, run->top, template->body->d);
    }
    run->out = NULL;
    if (text.failed)
        nl_jinja_fail(run, NL_RESOURCE, "out of memory");
    if (!run->failed)
        nl_buf_add(out, text.data, text.size);
    nl_buf_free(&text);
    return run->failed ? -1 : nl_buf_check(out, "rendered template", error);
}
