/* Expressions to values; calls, in which arguments become parameters, of what is built in and of macros. */
#include "jinja_tree.h"

const struct jinja_builtin *nl_jinja_find(const struct jinja_builtin *table, struct jv name)
{
    for (; table->name; table++)
        if (jv_text_is(name, table->name))
            return table;
    return NULL;
}

struct jv nl_jinja_bound(struct nl_jinja_run *run, const struct jinja_builtin *builtin, struct jv object)
{
    struct jv_function *function = nl_jinja_alloc(run, sizeof *function);
    if (!function)
        return jv_missing();
    *function = (struct jv_function){builtin, object};
    return (struct jv){.kind = JV_FUNCTION, .function = function};
}

static bool bind(struct nl_jinja_run *run, const struct jinja_builtin *builtin, const struct jinja_args *args,
                 struct jv *a)
{
    const char *parameters = builtin->parameters;
    struct jv name;
    size_t n = 0, used = 0;
    for (; nl_jinja_next_word(&parameters, &name); n++) {
        bool named = nl_jv_dict_get(run, args->named, name, &a[1 + n]);
        used += named;
        if (named && n < args->list->count)
            nl_jinja_fail(run, NL_DATA, "'%s' gets an argument twice", builtin->name);
        else if (n < args->list->count)
            a[1 + n] = args->list->items[n];
        if (n < builtin->required && jv_is(a[1 + n], JV_MISSING))
            nl_jinja_fail(run, NL_DATA, "an argument of '%s' is missing", builtin->name);
    }
    if (args->list->count > n || used < args->named->count)
        nl_jinja_fail(run, NL_UNSUPPORTED, "more or other arguments of '%s'", builtin->name);
    return !run->failed;
}

struct jv nl_jinja_call_builtin(struct nl_jinja_run *run, const struct jinja_builtin *builtin, struct jv self,
                                const struct jinja_args *args)
{
    struct jv a[JINJA_ARGUMENTS] = {builtin->of_text ? nl_jv_to_string(run, self) : self};
    a[JINJA_VARIANT] = jv_int(builtin->variant);
    if (builtin->parameters[0] == '*') {
        a[1] = jv_of_list(args->list, JV_TUPLE);
        a[2] = jv_of_dict(args->named);
    } else if (!bind(run, builtin, args, a)) {
        return jv_missing();
    }
    return run->failed ? jv_missing() : builtin->function(run, a);
}

static bool is_passed(struct nl_jinja_run *run, const struct jinja_args *args, size_t n, struct jv name,
                      struct jv *out)
{
    if (n >= args->list->count)
        return nl_jv_dict_get(run, args->named, name, out);
    *out = args->list->items[n];
    return true;
}

/* As jinja2's Macro.__call__: what is passed first, then the defaults, which see the other parameters. */
static void pass_arguments(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *macro,
                           const struct jinja_args *args)
{
    size_t n = 0, passed = 0;
    struct jv ignored;
    for (const struct jn *parameter = macro->a; parameter && !run->failed; parameter = parameter->next, n++) {
        struct jv *value = &scope->values[parameter->a->id];
        if (is_passed(run, args, n, parameter->a->value, value))
            passed++;
        else
            *value = nl_jv_undefined(run, jv_missing(), parameter->a->value);
    }
    if (passed < args->list->count + args->named->count)
        nl_jinja_fail(run, NL_DATA, "more or other arguments than a macro takes");
    n = 0;
    for (const struct jn *parameter = macro->a; parameter && !run->failed; parameter = parameter->next, n++)
        if (parameter->b && !is_passed(run, args, n, parameter->a->value, &ignored))
            scope->values[parameter->a->id] = nl_jinja_eval(run, scope, parameter->b);
}

static struct jv call_macro(struct nl_jinja_run *run, const struct jn *macro, const struct jinja_args *args)
{
    struct jinja_scope *scope = nl_jinja_scope_new(run, run->top);
    struct nl_buf text = {0}, *before = run->out;
    if (!scope)
        return jv_missing();
    nl_jinja_enter(run);
    nl_jinja_scope_begin(run, scope, macro->unset);
    pass_arguments(run, scope, macro, args);
    run->out = &text;
    nl_jinja_execute(run, scope, macro->d);
    run->out = before;
    run->depth--;
    return nl_jv_take(run, &text);
}

static struct jv call(struct nl_jinja_run *run, struct jv callee, const struct jinja_args *args)
{
    if (jv_is(callee, JV_MACRO))
        return call_macro(run, callee.macro, args);
    if (jv_is(callee, JV_FUNCTION))
        return nl_jinja_call_builtin(run, callee.function->builtin, callee.function->object, args);
    return nl_jinja_fail_type(run, "a call", callee);
}

static struct jv eval_name(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    (void)run;
    while (jv_is(scope->values[node->id], JV_MISSING) && scope->outer)
        scope = scope->outer;
    return scope->values[node->id];
}

static struct jv eval_items(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv_list *list = nl_jv_list_new(run, 0);
    for (const struct jn *child = node->a; child && !run->failed; child = child->next)
        nl_jv_push(run, list, nl_jinja_eval(run, scope, child));
    return jv_of_list(list, node->kind == JN_LIST ? JV_LIST : JV_TUPLE);
}

static struct jv eval_dict(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv_dict *dict = nl_jv_dict_new(run);
    for (const struct jn *child = node->a; child && !run->failed; child = child->next->next) {
        struct jv key = nl_jinja_eval(run, scope, child);
        nl_jv_dict_set(run, dict, key, nl_jinja_eval(run, scope, child->next));
    }
    return jv_of_dict(dict);
}

static struct jv eval_condition(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    bool truth = nl_jv_truth(run, nl_jinja_eval(run, scope, node->b));
    if (truth || node->c)
        return nl_jinja_eval(run, scope, truth ? node->a : node->c);
    return nl_jv_undefined_hint(run, "an inline 'if' without 'else' was false");
}

static struct jv eval_logic(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv left = nl_jinja_eval(run, scope, node->a);
    bool truth = nl_jv_truth(run, left);
    if (node->kind == JN_NOT)
        return jv_bool(!truth);
    return truth == (node->kind == JN_OR) ? left : nl_jinja_eval(run, scope, node->b);
}

static struct jv eval_comparison(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv left = nl_jinja_eval(run, scope, node->a);
    bool truth = true;
    for (const struct jn *operand = node->b; operand && truth && !run->failed; operand = operand->next) {
        struct jv right = nl_jinja_eval(run, scope, operand->a);
        truth = nl_jv_compare(run, (enum jv_comparison)operand->op, left, right);
        left = right;
    }
    return jv_bool(truth);
}

static struct jv eval_sign(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv value = nl_jinja_eval(run, scope, node->a);
    if (node->kind == JN_NEG)
        return nl_jv_negate(run, value);
    if (!jv_is_number(value))
        return nl_jinja_fail_type(run, "'+'", value);
    return jv_is(value, JV_BOOL) ? jv_int(value.integer) : value;
}

static struct jv eval_concat(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv text = jv_string("", 0);
    for (const struct jn *child = node->a; child && !run->failed; child = child->next)
        text = nl_jv_concat(run, text, nl_jv_to_string(run, nl_jinja_eval(run, scope, child)));
    return text;
}

static struct jv eval_slice(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    const struct jn *const parts[] = {node->b, node->c, node->d};
    struct jv object = nl_jinja_eval(run, scope, node->a), bounds[3];
    for (int i = 0; i < 3; i++)
        bounds[i] = parts[i] ? nl_jinja_eval(run, scope, parts[i]) : jv_none();
    return run->failed ? object : nl_jv_slice(run, object, bounds);
}

/* Operators, subscripts and attributes. */
static struct jv eval_binary(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv left = nl_jinja_eval(run, scope, node->a);
    struct jv right = node->b ? nl_jinja_eval(run, scope, node->b) : node->value;
    run->line = node->line;
    if (run->failed)
        return left;
    if (node->kind == JN_BINARY)
        return nl_jv_arithmetic(run, (enum jinja_operator)node->op, left, right);
    return node->kind == JN_GETATTR ? nl_jv_getattr(run, left, right) : nl_jv_getitem(run, left, right);
}

/* Calls, filters and tests. */
static struct jv eval_call(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    struct jv value = nl_jinja_eval(run, scope, node->a);
    const struct jinja_args args = {nl_jv_list_new(run, 0), nl_jv_dict_new(run)};
    for (const struct jn *argument = node->b; argument && !run->failed; argument = argument->next) {
        struct jv given = nl_jinja_eval(run, scope, argument->a);
        if (jv_is(argument->value, JV_STRING)) {
            nl_jv_dict_set(run, args.named, argument->value, given);
            continue;
        }
        const struct jv_list one = {.items = &given, .count = 1};
        const struct jv_list *list = argument->op ? nl_jv_gather(run, given) : &one;
        for (size_t i = 0; i < list->count; i++)
            nl_jv_push(run, args.list, list->items[i]);
    }
    run->line = node->line;
    if (run->failed)
        return value;
    if (node->kind == JN_FILTER)
        return nl_jinja_filter(run, node->value, value, &args);
    if (node->kind == JN_TEST)
        return jv_bool(nl_jinja_test(run, node->value, value, &args));
    return call(run, value, &args);
}

struct jv nl_jinja_eval(struct nl_jinja_run *run, struct jinja_scope *scope, const struct jn *node)
{
    static struct jv (*const evals[])(struct nl_jinja_run *, struct jinja_scope *, const struct jn *) = {
        [JN_NAME] = eval_name,     [JN_TUPLE] = eval_items,    [JN_LIST] = eval_items,
        [JN_DICT] = eval_dict,     [JN_COND] = eval_condition, [JN_OR] = eval_logic,
        [JN_AND] = eval_logic,     [JN_NOT] = eval_logic,      [JN_COMPARE] = eval_comparison,
        [JN_NEG] = eval_sign,      [JN_POS] = eval_sign,       [JN_CONCAT] = eval_concat,
        [JN_BINARY] = eval_binary, [JN_GETATTR] = eval_binary, [JN_GETITEM] = eval_binary,
        [JN_SLICE] = eval_slice,   [JN_CALL] = eval_call,      [JN_FILTER] = eval_call,
        [JN_TEST] = eval_call,
    };
    struct jv value = {0};
    if (!nl_jinja_charge(run, 1))
        return value;
    if (node->kind == JN_CONST)
        return node->value;
    run->line = node->line;
    if (nl_jinja_enter(run))
        value = evals[node->kind](run, scope, node);
    run->depth--;
    return value;
}
