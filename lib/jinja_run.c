/* Templates opened, and statements executed. */
#include <assert.h>

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
    bool good = nl_jinja_lex(&compile, source, length) == 0 && nl_jinja_parse(&compile) == 0 &&
                nl_jinja_resolve(&compile) == 0;
    free(compile.tokens);
    if (good)
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

struct nl_jinja_run *nl_jinja_run_open(const struct nl_jinja *template, struct nl_error *error)
{
    struct nl_jinja_run *run = calloc(1, sizeof *run);
    if (!run) {
        nl_fail_memory(error, "template");
        return NULL;
    }
    run->template = template;
    run->error = error;
    run->line = 1;
    if (!(run->variables = nl_jv_dict_new(run))) {
        nl_jinja_run_close(run);
        return NULL;
    }
    return run;
}

void nl_jinja_run_close(struct nl_jinja_run *run)
{
    if (!run)
        return;
    nl_jinja_arena_free(&run->arena);
    free(run);
}

static int set(struct nl_jinja_run *run, const char *key, struct jv value)
{
    struct jv name = {0};
    return nl_jv_copy(run, key, strlen(key), &name) != 0 ? -1
                                                         : nl_jv_dict_set(run, run->variables, name, value);
}

int nl_jinja_set_string(struct nl_jinja_run *run, const char *key, const char *text, size_t length,
                        struct nl_error *error)
{
    struct jv value = {0};
    run->error = error;
    return nl_jv_copy(run, text, length, &value) != 0 ? -1 : set(run, key, value);
}

int nl_jinja_set_bool(struct nl_jinja_run *run, const char *key, bool value, struct nl_error *error)
{
    run->error = error;
    return set(run, key, jv_bool(value));
}

int nl_jinja_set_json(struct nl_jinja_run *run, const char *key, const char *text, size_t length,
                      struct nl_error *error)
{
    struct jv value = {0};
    run->error = error;
    return nl_jv_parse_json(run, text, length, key, &value) != 0 ? -1 : set(run, key, value);
}

void nl_jinja_set_now(struct nl_jinja_run *run, time_t now)
{
    run->now = now;
    run->has_now = true;
}

/* A variable of the context, or JV_MISSING. */
static struct jv resolve(struct nl_jinja_run *run, struct jv name)
{
    struct jv value = {0};
    if (nl_jv_dict_get(run, run->variables, name, &value) <= 0)
        nl_jinja_find_global(name, &value);
    return value;
}

void nl_jinja_enter_scope(struct nl_jinja_run *run, struct jinja_activation *activation,
                          const struct jinja_scope *scope)
{
    for (size_t i = 0; i < scope->count; i++) {
        const struct jinja_load *load = &scope->loads[i];
        const struct jinja_activation *from = activation;
        struct jv *slot = &activation->slots[load->slot];
        switch (load->kind) {
        case JINJA_RESOLVE:
            *slot = resolve(run, load->name);
            break;
        case JINJA_ALIAS:
            for (uint16_t n = 0; n < load->hops; n++) {
                from = from->outer;
                assert(from); /* the parser has counted the scopes around this one */
            }
            *slot = from->slots[load->from];
            break;
        case JINJA_UNSET:
            *slot = (struct jv){0};
            break;
        default:
            break;
        }
    }
    run->steps += scope->count;
}

void nl_jinja_leave_scope(struct jinja_activation *activation, const struct jinja_scope *scope)
{
    for (size_t i = 0; i < scope->count; i++)
        activation->slots[scope->loads[i].slot] = (struct jv){0};
}

static int print(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *list)
{
    struct jv value = {0};
    for (const struct jn *node = list; node; node = node->next)
        if (nl_jinja_eval(run, activation, node, &value) != 0 || nl_jv_str(run, value, run->out) != 0)
            return -1;
    return nl_buf_check(run->out, "rendered template", run->error);
}

int nl_jinja_assign(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *target,
                    struct jv value)
{
    if (target->kind == JN_NAME) {
        *nl_jinja_slot(activation, target) = value;
        return 0;
    }
    run->line = target->line;
    if (target->kind == JN_NSREF)
        return nl_jinja_set_attribute(run, *nl_jinja_slot(activation, target->a), target->value, value);
    struct jv_list *values = nl_jv_gather(run, value);
    size_t n = 0;
    if (!values)
        return -1;
    for (const struct jn *item = target->a; item; item = item->next)
        n++;
    if (n != values->count)
        return jinja_fail(run, NL_DATA, "%zu values for %zu variables", values->count, n);
    n = 0;
    for (const struct jn *item = target->a; item; item = item->next)
        if (nl_jinja_assign(run, activation, item, values->items[n++]) != 0)
            return -1;
    return 0;
}

/* Before anything is computed, as jinja2 does it. */
static int check_namespaces(struct nl_jinja_run *run, struct jinja_activation *activation,
                            const struct jn *list)
{
    for (const struct jn *target = list; target; target = target->next) {
        if (target->kind == JN_NSREF && !jv_is(*nl_jinja_slot(activation, target->a), JV_NAMESPACE))
            return jinja_fail(run, NL_DATA, "cannot set an attribute of what is not a namespace");
        if (target->kind == JN_TUPLE && check_namespaces(run, activation, target->a) != 0)
            return -1;
    }
    return 0;
}

static int execute_set(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node)
{
    struct jv value = {0};
    struct jn target = *node->a;
    target.next = NULL;
    if (check_namespaces(run, activation, &target) != 0 ||
        nl_jinja_eval(run, activation, node->b, &value) != 0)
        return -1;
    return nl_jinja_assign(run, activation, node->a, value);
}

/* Filters of a block: the innermost is applied to the text. */
static int filter_text(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *filter,
                       struct jv text, struct jv *out)
{
    struct jv value = text;
    struct jinja_args args;
    if (nl_jinja_enter(run) != 0 ||
        (filter->a && filter_text(run, activation, filter->a, text, &value) != 0) ||
        nl_jinja_eval_args(run, activation, filter->b, &args) != 0)
        return -1;
    run->line = filter->line;
    run->depth--;
    return nl_jinja_filter(run, filter->value, value, &args, out);
}

/* Block sets and filter blocks. */
static enum jinja_flow execute_block(struct nl_jinja_run *run, struct jinja_activation *activation,
                                     const struct jn *node)
{
    struct nl_buf text = {0}, *before = run->out;
    struct jv value = {0}, made = {0};
    nl_jinja_enter_scope(run, activation, node->scope);
    run->out = &text;
    enum jinja_flow flow = nl_jinja_execute(run, activation, node->d);
    run->out = before;
    if (flow != JINJA_ON) {
        nl_buf_free(&text);
        return flow;
    }
    if (nl_jv_take(run, &text, 0, &value) != 0)
        return JINJA_ERROR;
    made = value;
    if (node->b && filter_text(run, activation, node->b, value, &made) != 0)
        return JINJA_ERROR;
    int result = node->kind == JN_SETBLOCK ? nl_jinja_assign(run, activation, node->a, made)
                                           : nl_jv_str(run, made, run->out);
    nl_jinja_leave_scope(activation, node->scope);
    return result != 0 ? JINJA_ERROR : JINJA_ON;
}

static enum jinja_flow execute_with(struct nl_jinja_run *run, struct jinja_activation *activation,
                                    const struct jn *node)
{
    nl_jinja_enter_scope(run, activation, node->scope);
    const struct jn *value = node->b;
    for (const struct jn *target = node->a; target; target = target->next, value = value->next) {
        struct jv made = {0};
        if (nl_jinja_eval(run, activation, value, &made) != 0 ||
            nl_jinja_assign(run, activation, target, made) != 0)
            return JINJA_ERROR;
    }
    enum jinja_flow flow = nl_jinja_execute(run, activation, node->d);
    nl_jinja_leave_scope(activation, node->scope);
    return flow;
}

static enum jinja_flow execute_if(struct nl_jinja_run *run, struct jinja_activation *activation,
                                  const struct jn *node)
{
    const struct jn *branch = node;
    while (branch) {
        struct jv value = {0};
        bool truth;
        if (nl_jinja_eval(run, activation, branch->a, &value) != 0 || nl_jv_truth(run, value, &truth) != 0)
            return JINJA_ERROR;
        if (truth)
            return nl_jinja_execute(run, activation, branch->d);
        branch = branch == node ? node->c : branch->next;
    }
    return nl_jinja_execute(run, activation, node->e);
}

/* The items that pass a loop's test. */
static int step_test(struct nl_jinja_run *run, struct jinja_generator *generator, struct jv *out)
{
    const struct jn *node = generator->node;
    struct jv value = {0};
    bool truth = false;
    int got = 1;
    if (!generator->started && !(generator->source = nl_jv_iterate(run, generator->over)))
        return -1;
    if (!generator->started)
        nl_jinja_enter_scope(run, generator->activation, node->test_scope);
    generator->started = true;
    while (!truth && (got = nl_jv_next(run, generator->source, out)) > 0)
        if (nl_jinja_assign(run, generator->activation, node->f, *out) != 0 ||
            nl_jinja_eval(run, generator->activation, node->c, &value) != 0 ||
            nl_jv_truth(run, value, &truth) != 0)
            return -1;
    return got;
}

/* The loop's iterator. */
static int start_loop(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                      struct jv_loop *loop)
{
    struct jv over = {0};
    if (nl_jinja_eval(run, activation, node->b, &over) != 0)
        return -1;
    loop->iterable = over;
    loop->index0 = loop->length = -1;
    const struct jinja_generator generator = {
        .step = step_test, .over = over, .node = node, .activation = activation};
    if (node->c && nl_jv_generator(run, &generator, &loop->iterable) != 0)
        return -1;
    run->line = node->line;
    loop->iterator = nl_jv_iterate(run, loop->iterable);
    return loop->iterator ? 0 : -1;
}

static enum jinja_flow execute_for(struct nl_jinja_run *run, struct jinja_activation *activation,
                                   const struct jn *node)
{
    struct jv_loop *loop = nl_jinja_alloc(run, sizeof *loop);
    struct jv item = {0};
    bool completed = false; /* a turn: one that breaks or continues does not count, as in jinja2 */
    int got = -1;
    if (!loop || start_loop(run, activation, node, loop) != 0)
        return JINJA_ERROR;
    while ((got = nl_jv_loop_next(run, loop, &item)) > 0) {
        if (nl_jinja_assign(run, activation, node->a, item) != 0)
            return JINJA_ERROR;
        activation->slots[node->slot] = (struct jv){.kind = JV_LOOP, .loop = loop};
        nl_jinja_enter_scope(run, activation, node->scope);
        enum jinja_flow flow = nl_jinja_execute(run, activation, node->d);
        if (flow == JINJA_ERROR)
            return flow;
        completed = completed || flow == JINJA_ON;
        if (flow == JINJA_BREAK)
            break;
    }
    if (got < 0)
        return JINJA_ERROR;
    nl_jinja_leave_scope(activation, node->scope);
    if (completed || !node->e)
        return JINJA_ON;
    nl_jinja_enter_scope(run, activation, node->else_scope);
    enum jinja_flow flow = nl_jinja_execute(run, activation, node->e);
    nl_jinja_leave_scope(activation, node->else_scope);
    return flow;
}

static int make_macro(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                      struct jv *out)
{
    struct jv_macro *macro = nl_jinja_alloc(run, sizeof *macro);
    if (!macro)
        return -1;
    *macro = (struct jv_macro){.node = node, .outer = activation};
    *out = (struct jv){.kind = JV_MACRO, .macro = macro};
    return 0;
}

static int execute_call_block(struct nl_jinja_run *run, struct jinja_activation *activation,
                              const struct jn *node)
{
    struct jv caller = {0}, callee = {0}, made = {0};
    struct jinja_args args = {0};
    if (make_macro(run, activation, node, &caller) != 0)
        return -1;
    if (!node->b) /* generation: the block as it is */
        return nl_jinja_call_macro(run, caller.macro, &args, &made) != 0 ? -1
                                                                         : nl_jv_str(run, made, run->out);
    if (nl_jinja_eval(run, activation, node->b->a, &callee) != 0 ||
        nl_jinja_eval_args(run, activation, node->b->b, &args) != 0)
        return -1;
    struct jinja_named *named = nl_jinja_alloc(run, (args.n_named + 1) * sizeof *named);
    if (!named)
        return -1;
    if (args.n_named)
        memcpy(named, args.named, args.n_named * sizeof *named);
    named[args.n_named++] = (struct jinja_named){jv_chars("caller"), caller};
    args.named = named;
    run->line = node->line;
    return nl_jinja_call(run, callee, &args, &made) != 0 ? -1 : nl_jv_str(run, made, run->out);
}

static enum jinja_flow execute_one(struct nl_jinja_run *run, struct jinja_activation *activation,
                                   const struct jn *node)
{
    switch (node->kind) {
    case JN_DATA:
        return nl_jv_str(run, node->value, run->out) != 0 ? JINJA_ERROR : JINJA_ON;
    case JN_OUTPUT:
        return print(run, activation, node->a) != 0 ? JINJA_ERROR : JINJA_ON;
    case JN_FOR:
        return execute_for(run, activation, node);
    case JN_IF:
        return execute_if(run, activation, node);
    case JN_SET:
        return execute_set(run, activation, node) != 0 ? JINJA_ERROR : JINJA_ON;
    case JN_SETBLOCK:
    case JN_FILTERBLOCK:
        return execute_block(run, activation, node);
    case JN_WITH:
        return execute_with(run, activation, node);
    case JN_MACRO:
        return make_macro(run, activation, node, nl_jinja_slot(activation, node->f)) != 0 ? JINJA_ERROR
                                                                                          : JINJA_ON;
    case JN_CALLBLOCK:
        return execute_call_block(run, activation, node) != 0 ? JINJA_ERROR : JINJA_ON;
    default:
        return node->kind == JN_BREAK ? JINJA_BREAK : JINJA_CONTINUE;
    }
}

enum jinja_flow nl_jinja_execute(struct nl_jinja_run *run, struct jinja_activation *activation,
                                 const struct jn *list)
{
    enum jinja_flow flow = JINJA_ON;
    if (nl_jinja_enter(run) != 0)
        return JINJA_ERROR;
    for (const struct jn *node = list; node && flow == JINJA_ON; node = node->next) {
        run->line = node->line;
        flow = nl_jinja_charge(run, 1) != 0 ? JINJA_ERROR : execute_one(run, activation, node);
    }
    run->depth--;
    return flow;
}

int nl_jinja_render(struct nl_jinja_run *run, struct nl_buf *out, struct nl_error *error)
{
    const struct nl_jinja *template = run->template;
    struct jinja_activation activation = {0};
    struct nl_buf text = {0};
    run->error = error;
    activation.slots = nl_jinja_alloc(run, (template->function.n_slots + 1) * sizeof *activation.slots);
    if (!activation.slots)
        return -1;
    run->out = &text;
    nl_jinja_enter_scope(run, &activation, template->scope);
    int result = nl_jinja_execute(run, &activation, template->body) == JINJA_ERROR ? -1 : 0;
    run->out = NULL;
    if (result == 0)
        nl_buf_add(out, text.data, text.size);
    nl_buf_free(&text);
    return result != 0 ? -1 : nl_buf_check(out, "rendered template", error);
}
