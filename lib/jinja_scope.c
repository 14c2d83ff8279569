/*
 * Gives each variable its place, as jinja2/idtracking.py does.
 *
 * Loops, macros, with, block sets and filters open scopes, if does not. A name that a scope only reads is its
 * outer scope's variable, or else looked up in the context when the scope is entered. A name that it sets is
 * its own from the start: a copy of the outer one, or unset, or, when the first use is to read it or to set
 * it in one branch of an if, what the context has.
 */
#include <stdlib.h>

#include "escape.h"
#include "jinja_tree.h"

struct variable;
struct binding {
    struct variable *variable;
    struct binding *outer;              /* of the same name, in the scopes around */
    struct binding *next, *next_stored; /* in its scope */
    struct open_scope *scope;
    uint32_t slot, from;
    uint16_t depth, hops; /* depth: of its function */
    uint8_t kind;
    bool stored;
};
struct variable {
    struct jv name;
    uint64_t hash;
    struct binding *top;
};
struct open_scope {
    struct open_scope *outer;
    struct binding *first, *last, *first_stored, *last_stored;
    size_t count;
};
struct resolver {
    struct jinja_compile *compile;
    struct variable *table; /* by hash */
    size_t size, count;
    struct open_scope *scope;
    struct jinja_function *function;
    uint16_t depth;
};

static int resolve_list(struct resolver *, struct jn *list, bool soft);

static uint64_t hash_name(struct jv name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.text[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static int grow(struct resolver *resolver)
{
    size_t size = resolver->size ? 2 * resolver->size : 64;
    struct variable *table = nl_jinja_compile_alloc(resolver->compile, size * sizeof *table);
    if (!table)
        return -1;
    for (size_t i = 0; i < resolver->size; i++) {
        const struct variable *old = &resolver->table[i];
        if (!old->name.kind)
            continue;
        size_t at = old->hash & (size - 1);
        while (table[at].name.kind)
            at = (at + 1) & (size - 1);
        table[at] = *old;
        for (struct binding *binding = old->top; binding; binding = binding->outer)
            binding->variable = &table[at];
    }
    resolver->table = table;
    resolver->size = size;
    return 0;
}

static struct variable *find(struct resolver *resolver, struct jv name)
{
    if (2 * resolver->count >= resolver->size && grow(resolver) != 0)
        return NULL;
    uint64_t hash = hash_name(name);
    size_t at = hash & (resolver->size - 1);
    for (; resolver->table[at].name.kind; at = (at + 1) & (resolver->size - 1)) {
        const struct variable *there = &resolver->table[at];
        if (there->hash == hash && there->name.size == name.size &&
            memcmp(there->name.text, name.text, name.size) == 0)
            return &resolver->table[at];
    }
    resolver->table[at] = (struct variable){.name = name, .hash = hash};
    resolver->count++;
    return &resolver->table[at];
}

static struct binding *define(struct resolver *resolver, struct variable *variable, enum jinja_load_kind kind)
{
    struct binding *binding = nl_jinja_compile_alloc(resolver->compile, sizeof *binding);
    struct open_scope *scope = resolver->scope;
    if (!binding)
        return NULL;
    *binding = (struct binding){.variable = variable, .outer = variable->top, .scope = scope};
    binding->kind = (uint8_t)kind;
    binding->depth = resolver->depth;
    binding->slot = resolver->function->n_slots++;
    if (variable->top) {
        binding->from = variable->top->slot;
        binding->hops = (uint16_t)(resolver->depth - variable->top->depth);
    }
    *(scope->last ? &scope->last->next : &scope->first) = binding;
    scope->last = binding;
    scope->count++;
    variable->top = binding;
    return binding;
}

static void mark_stored(struct open_scope *scope, struct binding *binding)
{
    if (binding->stored)
        return;
    binding->stored = true;
    *(scope->last_stored ? &scope->last_stored->next_stored : &scope->first_stored) = binding;
    scope->last_stored = binding;
}

static int load(struct resolver *resolver, struct jv name)
{
    struct variable *variable = find(resolver, name);
    return variable && (variable->top || define(resolver, variable, JINJA_RESOLVE)) ? 0 : -1;
}

/* The binding of a name that this scope sets. */
static struct binding *store(struct resolver *resolver, struct jv name, bool parameter)
{
    struct variable *variable = find(resolver, name);
    if (!variable)
        return NULL;
    struct binding *binding = variable->top;
    if (!binding || binding->scope != resolver->scope)
        binding = define(resolver, variable, binding ? JINJA_ALIAS : JINJA_UNSET);
    if (!binding)
        return NULL;
    if (parameter)
        binding->kind = JINJA_PARAMETER;
    mark_stored(resolver->scope, binding);
    return binding;
}

static int load_all(struct resolver *resolver, const struct jn *list)
{
    for (const struct jn *node = list; node; node = node->next) {
        if (node->kind == JN_NAME && load(resolver, node->value) != 0)
            return -1;
        if (load_all(resolver, node->a) != 0 || load_all(resolver, node->b) != 0 ||
            load_all(resolver, node->c) != 0)
            return -1;
    }
    return 0;
}

static int store_targets(struct resolver *resolver, const struct jn *list, bool parameter)
{
    for (const struct jn *node = list; node; node = node->next) {
        int result = node->kind == JN_NAME    ? (store(resolver, node->value, parameter) ? 0 : -1)
                     : node->kind == JN_TUPLE ? store_targets(resolver, node->a, parameter)
                                              : load(resolver, node->a->value);
        if (result != 0)
            return -1;
    }
    return 0;
}

static int analyze(struct resolver *, const struct jn *list);

/* What only some branches set may come from outside. */
static int analyze_if(struct resolver *resolver, const struct jn *node)
{
    struct open_scope *scope = resolver->scope;
    if (load_all(resolver, node->a) != 0)
        return -1;
    struct binding *before = scope->last_stored;
    if (analyze(resolver, node->d) != 0 || analyze(resolver, node->c) != 0 || analyze(resolver, node->e) != 0)
        return -1;
    struct binding *binding = before ? before->next_stored : scope->first_stored;
    for (; binding; binding = binding->next_stored)
        binding->kind = binding->outer ? JINJA_ALIAS : JINJA_RESOLVE;
    return 0;
}

/* The names that statements use in this scope, not in those within. */
static int analyze(struct resolver *resolver, const struct jn *list)
{
    int result = 0;
    for (const struct jn *node = list; node && result == 0; node = node->next) {
        switch (node->kind) {
        case JN_OUTPUT:
            result = load_all(resolver, node->a);
            break;
        case JN_IF:
            result = analyze_if(resolver, node);
            break;
        case JN_SET:
            result = load_all(resolver, node->b) != 0 ? -1 : store_targets(resolver, node->a, false);
            break;
        case JN_SETBLOCK:
            result = store_targets(resolver, node->a, false);
            break;
        case JN_MACRO:
            result = store_targets(resolver, node->f, false);
            break;
        case JN_FOR:
        case JN_WITH:
        case JN_CALLBLOCK:
        case JN_FILTERBLOCK:
            result = load_all(resolver, node->b);
            break;
        default:
            break;
        }
    }
    return result;
}

static void open_scope(struct resolver *resolver, struct open_scope *scope)
{
    *scope = (struct open_scope){.outer = resolver->scope};
    resolver->scope = scope;
}

static int close_scope(struct resolver *resolver, struct jinja_scope **out)
{
    struct open_scope *scope = resolver->scope;
    struct jinja_scope *made = nl_jinja_compile_alloc(resolver->compile, sizeof *made);
    struct jinja_load *loads =
        nl_jinja_compile_alloc(resolver->compile, (scope->count ? scope->count : 1) * sizeof *loads);
    if (!made || !loads)
        return -1;
    made->loads = loads;
    for (struct binding *binding = scope->first; binding; binding = binding->next) {
        made->loads[made->count++] = (struct jinja_load){.kind = binding->kind,
                                                         .hops = binding->hops,
                                                         .slot = binding->slot,
                                                         .from = binding->from,
                                                         .name = binding->variable->name};
        binding->variable->top = binding->outer;
    }
    resolver->scope = scope->outer;
    *out = made;
    return 0;
}

static int unknown(struct resolver *resolver, const struct jn *node, const char *what)
{
    struct nl_buf name = {0};
    nl_buf_add(&name, node->value.text, node->value.size < 100 ? node->value.size : 100);
    int result = nl_jinja_compile_error(resolver->compile, NL_UNSUPPORTED, node->line, "no %s '%s'", what,
                                        name.data ? name.data : "");
    nl_buf_free(&name);
    return result;
}

/* Names in expressions and targets. `soft`: in a branch, where an unknown filter fails when it is reached. */
static int bind(struct resolver *resolver, struct jn *list, bool soft)
{
    for (struct jn *node = list; node; node = node->next) {
        if (node->kind == JN_NAME) {
            const struct variable *variable = find(resolver, node->value);
            if (!variable || !variable->top)
                return variable ? unknown(resolver, node, "variable known here") : -1;
            node->slot = variable->top->slot;
            node->hops = (uint16_t)(resolver->depth - variable->top->depth);
        }
        if (node->kind == JN_FILTER && !soft && !nl_jinja_has_filter(node->value))
            return unknown(resolver, node, "filter");
        if (node->kind == JN_TEST && !soft && !nl_jinja_has_test(node->value))
            return unknown(resolver, node, "test");
        bool below = soft || node->kind == JN_COND;
        if (bind(resolver, node->a, below) != 0 || bind(resolver, node->b, below) != 0 ||
            bind(resolver, node->c, below) != 0)
            return -1;
    }
    return 0;
}

static int resolve_test(struct resolver *resolver, struct jn *node)
{
    struct open_scope scope;
    open_scope(resolver, &scope);
    if (store_targets(resolver, node->f, true) != 0 || load_all(resolver, node->c) != 0 ||
        bind(resolver, node->f, false) != 0 || bind(resolver, node->c, false) != 0)
        return -1;
    return close_scope(resolver, &node->test_scope);
}

static int resolve_for(struct resolver *resolver, struct jn *node)
{
    struct open_scope scope;
    open_scope(resolver, &scope);
    const struct binding *loop = store(resolver, jv_chars("loop"), true);
    if (!loop || store_targets(resolver, node->a, true) != 0 || analyze(resolver, node->d) != 0 ||
        bind(resolver, node->a, false) != 0 || resolve_list(resolver, node->d, false) != 0)
        return -1;
    node->slot = loop->slot;
    if (close_scope(resolver, &node->scope) != 0 || (node->c && resolve_test(resolver, node) != 0))
        return -1;
    if (!node->e)
        return 0;
    open_scope(resolver, &scope);
    if (analyze(resolver, node->e) != 0 || resolve_list(resolver, node->e, false) != 0)
        return -1;
    return close_scope(resolver, &node->else_scope);
}

static int resolve_with(struct resolver *resolver, struct jn *node)
{
    struct open_scope scope;
    open_scope(resolver, &scope);
    if (store_targets(resolver, node->a, true) != 0 || analyze(resolver, node->d) != 0 ||
        bind(resolver, node->a, false) != 0 || resolve_list(resolver, node->d, false) != 0)
        return -1;
    return close_scope(resolver, &node->scope);
}

/* Block sets and filter blocks: the filter belongs to the block's scope. */
static int resolve_block(struct resolver *resolver, struct jn *node)
{
    struct open_scope scope;
    open_scope(resolver, &scope);
    if (analyze(resolver, node->d) != 0 ||
        (node->kind == JN_FILTERBLOCK && load_all(resolver, node->b) != 0) ||
        resolve_list(resolver, node->d, false) != 0 || bind(resolver, node->b, false) != 0)
        return -1;
    return close_scope(resolver, &node->scope);
}

static const struct jn *find_parameter(const struct jn *macro, const char *name)
{
    for (const struct jn *parameter = macro->a; parameter; parameter = parameter->next)
        if (jv_text_is(parameter->a->value, name))
            return parameter;
    return NULL;
}

static int declare_specials(struct resolver *resolver, struct jn *node, struct jinja_function *function)
{
    bool *const used[] = {&function->uses_caller, &function->uses_kwargs, &function->uses_varargs};
    uint32_t *const slots[] = {&function->caller, &function->kwargs, &function->varargs};
    unsigned uses = nl_jinja_find_specials(node->d);
    for (unsigned i = 0; i < 3; i++) {
        const struct jn *parameter = find_parameter(node, nl_jinja_specials[i]);
        if (!(uses & 1u << i))
            continue;
        if (i == 0 && parameter && !parameter->b)
            return nl_jinja_compile_error(resolver->compile, NL_DATA, node->line,
                                          "a parameter 'caller' without a default");
        if (parameter)
            continue;
        const struct binding *binding = store(resolver, jv_chars(nl_jinja_specials[i]), true);
        if (!binding)
            return -1;
        *used[i] = true;
        *slots[i] = binding->slot;
    }
    return 0;
}

static int resolve_function_body(struct resolver *resolver, struct jn *node, struct jinja_function *function)
{
    for (struct jn *parameter = node->a; parameter; parameter = parameter->next)
        if (!store(resolver, parameter->a->value, true))
            return -1;
    for (struct jn *parameter = node->a; parameter; parameter = parameter->next)
        if (load_all(resolver, parameter->b) != 0)
            return -1;
    if (analyze(resolver, node->d) != 0 || declare_specials(resolver, node, function) != 0)
        return -1;
    for (struct jn *parameter = node->a; parameter; parameter = parameter->next)
        if (bind(resolver, parameter->a, false) != 0 || bind(resolver, parameter->b, false) != 0)
            return -1;
    return resolve_list(resolver, node->d, false);
}

/* Macros and call blocks. */
static int resolve_function(struct resolver *resolver, struct jn *node)
{
    struct jinja_function *outer = resolver->function;
    struct open_scope scope;
    node->function = nl_jinja_compile_alloc(resolver->compile, sizeof *node->function);
    if (!node->function)
        return -1;
    outer->keeps = true;
    resolver->function = node->function;
    resolver->depth++;
    open_scope(resolver, &scope);
    if (resolve_function_body(resolver, node, node->function) != 0 ||
        close_scope(resolver, &node->scope) != 0)
        return -1;
    resolver->function = outer;
    resolver->depth--;
    return 0;
}

static int resolve_if(struct resolver *resolver, struct jn *node)
{
    if (bind(resolver, node->a, true) != 0 || resolve_list(resolver, node->d, true) != 0)
        return -1;
    for (struct jn *branch = node->c; branch; branch = branch->next)
        if (resolve_if(resolver, branch) != 0)
            return -1;
    return resolve_list(resolver, node->e, true);
}

static int resolve_statement(struct resolver *resolver, struct jn *node, bool soft)
{
    switch (node->kind) {
    case JN_OUTPUT:
        return bind(resolver, node->a, soft);
    case JN_IF:
        return resolve_if(resolver, node);
    case JN_SET:
        return bind(resolver, node->a, soft) != 0 ? -1 : bind(resolver, node->b, soft);
    case JN_SETBLOCK:
        return bind(resolver, node->a, soft) != 0 ? -1 : resolve_block(resolver, node);
    case JN_FILTERBLOCK:
        return resolve_block(resolver, node);
    case JN_FOR:
        return bind(resolver, node->b, soft) != 0 ? -1 : resolve_for(resolver, node);
    case JN_WITH:
        return bind(resolver, node->b, soft) != 0 ? -1 : resolve_with(resolver, node);
    case JN_MACRO:
        return bind(resolver, node->f, soft) != 0 ? -1 : resolve_function(resolver, node);
    case JN_CALLBLOCK:
        return node->b && bind(resolver, node->b, soft) != 0 ? -1 : resolve_function(resolver, node);
    default:
        return 0;
    }
}

static int resolve_list(struct resolver *resolver, struct jn *list, bool soft)
{
    for (struct jn *node = list; node; node = node->next)
        if (resolve_statement(resolver, node, soft) != 0)
            return -1;
    return 0;
}

int nl_jinja_resolve(struct jinja_compile *compile)
{
    struct nl_jinja *template = compile->template;
    struct resolver resolver = {.compile = compile, .function = &template->function};
    struct open_scope scope;
    open_scope(&resolver, &scope);
    if (analyze(&resolver, template->body) != 0 || resolve_list(&resolver, template->body, false) != 0)
        return -1;
    return close_scope(&resolver, &template->scope);
}
