/* Calls, and what macros do with their arguments. */
#include "jinja_tree.h"

int nl_jinja_call(struct nl_jinja_run *run, struct jv callee, const struct jinja_args *args, struct jv *out)
{
    switch (callee.kind) {
    case JV_MACRO:
        return nl_jinja_call_macro(run, callee.macro, args, out);
    case JV_GLOBAL:
        return nl_jinja_call_global(run, (enum jinja_global)callee.integer, args, out);
    case JV_METHOD:
        return nl_jv_call_method(run, callee, args, out);
    case JV_UNDEFINED:
        return nl_jv_fail_undefined(run, callee);
    case JV_LOOP:
        return jinja_fail(run, NL_DATA, "a call of a loop that is not recursive");
    case JV_JOINER:
        if (args->count || args->n_named)
            return jinja_fail(run, NL_DATA, "an argument to a joiner");
        *out = callee.cycle->at ? callee.cycle->items->items[0] : jv_string("", 0);
        callee.cycle->at = 1;
        return 0;
    default:
        return jinja_fail(run, NL_DATA, "a value of type %s cannot be called", nl_jv_type_name(callee));
    }
}

static bool same_name(struct jv a, struct jv b)
{
    return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

/* The named argument, which is marked as used; JV_MISSING when there is none. */
static struct jv take_named(const struct jinja_args *args, bool *used, struct jv name)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (same_name(args->named[i].name, name)) {
            used[i] = true;
            return args->named[i].value;
        }
    return (struct jv){0};
}

static int pass_rest(struct nl_jinja_run *run, const struct jinja_function *function,
                     struct jinja_activation *activation, const struct jinja_args *args, const bool *used)
{
    struct jv_dict *rest = function->uses_kwargs ? nl_jv_dict_new(run) : NULL;
    if (function->uses_kwargs && !rest)
        return -1;
    for (size_t i = 0; i < args->n_named; i++) {
        if (used[i])
            continue;
        if (!rest)
            return jinja_fail(run, NL_DATA, "a macro takes no argument '%.*s'",
                              (int)(args->named[i].name.size < 100 ? args->named[i].name.size : 100),
                              args->named[i].name.text);
        if (nl_jv_dict_set(run, rest, args->named[i].name, args->named[i].value) != 0)
            return -1;
    }
    if (rest)
        activation->slots[function->kwargs] = (struct jv){.kind = JV_DICT, .dict = rest};
    return 0;
}

static int pass_more(struct nl_jinja_run *run, const struct jinja_function *function,
                     struct jinja_activation *activation, const struct jinja_args *args, size_t n)
{
    if (!function->uses_varargs)
        return args->count > n ? jinja_fail(run, NL_DATA, "a macro takes no more than %zu arguments", n) : 0;
    struct jv_list *more = nl_jv_list_new(run, 0);
    for (size_t i = n; more && i < args->count; i++)
        if (nl_jv_list_push(run, more, args->values[i]) != 0)
            return -1;
    if (more)
        activation->slots[function->varargs] = jv_of_list(more, JV_TUPLE);
    return more ? 0 : -1;
}

/* As jinja2's Macro.__call__. */
static int pass_arguments(struct nl_jinja_run *run, const struct jn *node,
                          struct jinja_activation *activation, const struct jinja_args *args)
{
    const struct jinja_function *function = node->function;
    bool *used = nl_jinja_alloc(run, args->n_named + 1);
    size_t n = 0;
    if (!used)
        return -1;
    for (const struct jn *parameter = node->a; parameter; parameter = parameter->next, n++) {
        struct jv value = n < args->count ? args->values[n] : take_named(args, used, parameter->a->value);
        *nl_jinja_slot(activation, parameter->a) = value;
    }
    if (function->uses_caller) {
        struct jv caller = take_named(args, used, jv_chars("caller"));
        if ((jv_is(caller, JV_MISSING) || jv_is(caller, JV_NONE)) &&
            nl_jv_undefined_hint(run, "No caller defined", &caller) != 0)
            return -1;
        activation->slots[function->caller] = caller;
    }
    return pass_rest(run, function, activation, args, used) != 0
               ? -1
               : pass_more(run, function, activation, args, n);
}

static int fill_defaults(struct nl_jinja_run *run, const struct jn *node, struct jinja_activation *activation)
{
    for (const struct jn *parameter = node->a; parameter; parameter = parameter->next) {
        struct jv *slot = nl_jinja_slot(activation, parameter->a), value;
        if (!jv_is(*slot, JV_MISSING))
            continue;
        int result = parameter->b ? nl_jinja_eval(run, activation, parameter->b, &value)
                                  : nl_jv_undefined(run, (struct jv){0}, parameter->a->value, &value);
        if (result != 0)
            return -1;
        *slot = value;
    }
    return 0;
}

int nl_jinja_call_macro(struct nl_jinja_run *run, struct jv_macro *macro, const struct jinja_args *args,
                        struct jv *out)
{
    const struct jn *node = macro->node;
    struct jinja_activation *activation = nl_jinja_alloc(run, sizeof *activation);
    if (!activation || nl_jinja_enter(run) != 0 || nl_jinja_charge(run, 1 + node->function->n_slots) != 0)
        return -1;
    activation->outer = macro->outer;
    activation->slots = nl_jinja_alloc(run, (node->function->n_slots + 1) * sizeof *activation->slots);
    if (!activation->slots)
        return -1;
    struct nl_buf text = {0}, *before = run->out;
    nl_jinja_enter_scope(run, activation, node->scope);
    int result = pass_arguments(run, node, activation, args);
    if (result == 0)
        result = fill_defaults(run, node, activation);
    run->out = &text;
    if (result == 0 && nl_jinja_execute(run, activation, node->d) == JINJA_ERROR)
        result = -1;
    run->out = before;
    run->depth--;
    return nl_jv_take(run, &text, result, out);
}
