/*
 * Which names a scope has without a value when it begins, as jinja2/idtracking.py finds it.
 *
 * The template, loops, macros and blocks are scopes, if is not. A name that is not set in a scope is that of
 * the scope around. But one that a scope sets has no value there before, not even one of the context, unless
 * it is read first, or set in a branch of an if, or known in a scope around.
 */
#include "jinja_tree.h"

enum { KNOWN = 1, UNSET };
struct open_scope {
    struct open_scope *outer;
    uint8_t names[JINJA_MOST_NAMES]; /* 0, or why it is a name of this scope */
};
struct resolver {
    struct jinja_compile *compile;
    struct open_scope *scope;
    bool soft; /* in a branch: an unknown filter or test is an error only when it is reached */
};

static void resolve_list(struct resolver *, struct jn *list);

static bool is_known(const struct open_scope *scope, uint16_t id)
{
    while (scope && !scope->names[id])
        scope = scope->outer;
    return scope;
}

static void check_filter(struct resolver *resolver, const struct jn *node)
{
    bool filter = node->kind == JN_FILTER, test = node->kind == JN_TEST;
    if (!resolver->soft &&
        ((filter && !nl_jinja_has_filter(node->value)) || (test && !nl_jinja_has_test(node->value))))
        nl_jinja_refuse(resolver->compile, NL_UNSUPPORTED, node->line, "no %s '%.*s'",
                        filter ? "filter" : "test", JINJA_SHOWN(node->value));
}

static void load(struct resolver *resolver, const struct jn *list)
{
    bool before = resolver->soft;
    if (!list || !nl_jinja_deeper(resolver->compile, list->line))
        return;
    for (const struct jn *node = list; node && !resolver->compile->failed; node = node->next) {
        if (node->kind == JN_NAME && !is_known(resolver->scope, node->id))
            resolver->scope->names[node->id] = KNOWN;
        check_filter(resolver, node);
        resolver->soft = before || node->kind == JN_COND;
        load(resolver, node->a);
        load(resolver, node->b);
        load(resolver, node->c);
        load(resolver, node->d);
        resolver->soft = before;
    }
    resolver->compile->depth--;
}

static void store(struct resolver *resolver, const struct jn *target)
{
    struct open_scope *scope = resolver->scope;
    if (target->kind == JN_NSREF)
        load(resolver, target->a);
    for (const struct jn *item = target->kind == JN_TUPLE ? target->a : NULL; item; item = item->next)
        store(resolver, item);
    if (target->kind == JN_NAME && !scope->names[target->id])
        scope->names[target->id] = resolver->soft || is_known(scope, target->id) ? KNOWN : UNSET;
}

/* The names that statements use in this scope, not in those within. */
static void analyze(struct resolver *resolver, const struct jn *list)
{
    for (const struct jn *node = list; node && !resolver->compile->failed; node = node->next) {
        bool before = resolver->soft;
        switch (node->kind) {
        case JN_OUTPUT:
        case JN_FILTERBLOCK:
            load(resolver, node->a);
            break;
        case JN_IF:
            resolver->soft = true;
            load(resolver, node->a);
            if (nl_jinja_deeper(resolver->compile, node->line)) {
                analyze(resolver, node->d);
                analyze(resolver, node->e);
            }
            resolver->compile->depth--;
            resolver->soft = before;
            break;
        case JN_SET:
            load(resolver, node->b);
            store(resolver, node->a);
            break;
        case JN_SETBLOCK:
            store(resolver, node->a);
            break;
        case JN_MACRO:
            store(resolver, node->b);
            break;
        case JN_FOR:
            load(resolver, node->b);
            break;
        default:
            break;
        }
    }
}

static void keep_unset(struct resolver *resolver, struct jn *node)
{
    uint16_t n_names = resolver->compile->template->n_names;
    size_t n = 1;
    for (uint16_t id = 0; id < n_names; id++)
        n += resolver->scope->names[id] == UNSET;
    uint16_t *ids = nl_jinja_compile_alloc(resolver->compile, n * sizeof *ids);
    if (!ids)
        return;
    node->unset = ids;
    for (uint16_t id = 0; id < n_names; id++)
        if (resolver->scope->names[id] == UNSET)
            *ids++ = id;
    *ids = JINJA_NO_NAME;
}

/* The scope of a node's body; before it begins a loop sets its variables, a macro its parameters. */
static void resolve_scope(struct resolver *resolver, struct jn *node)
{
    struct open_scope scope = {.outer = resolver->scope};
    bool before = resolver->soft;
    resolver->scope = &scope;
    resolver->soft = true; /* known, not unset */
    if (node->kind == JN_FOR) {
        scope.names[node->id] = KNOWN;
        store(resolver, node->a);
    }
    resolver->soft = false;
    for (const struct jn *parameter = node->kind == JN_MACRO ? node->a : NULL; parameter;
         parameter = parameter->next) {
        scope.names[parameter->a->id] = KNOWN;
        load(resolver, parameter->b);
    }
    analyze(resolver, node->d);
    if (node->kind == JN_FILTERBLOCK)
        load(resolver, node->a);
    resolve_list(resolver, node->d);
    keep_unset(resolver, node);
    if (node->kind == JN_FOR)
        load(resolver, node->c);
    resolver->scope = scope.outer;
    resolver->soft = before;
}

static void resolve_list(struct resolver *resolver, struct jn *list)
{
    if (!list || !nl_jinja_deeper(resolver->compile, list->line))
        return;
    for (struct jn *node = list; node && !resolver->compile->failed; node = node->next) {
        if (node->kind == JN_IF) {
            resolve_list(resolver, node->d);
            resolve_list(resolver, node->e);
        } else if (node->kind == JN_FOR || node->kind == JN_SETBLOCK || node->kind == JN_FILTERBLOCK ||
                   node->kind == JN_MACRO || node->kind == JN_SCOPE) {
            resolve_scope(resolver, node);
        }
        if (node->kind == JN_FOR)
            resolve_list(resolver, node->e);
    }
    resolver->compile->depth--;
}

void nl_jinja_resolve(struct jinja_compile *compile)
{
    struct resolver resolver = {.compile = compile};
    resolve_scope(&resolver, compile->template->body);
}
