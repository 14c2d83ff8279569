/* Expressions to values. */
#include "jinja_tree.h"

int nl_jinja_enter(struct nl_jinja_run *run)
{
    if (++run->depth > JINJA_MOST_DEPTH)
        return jinja_fail(run, NL_DATA, "the template nests too deeply");
    return 0;
}

struct jv *nl_jinja_slot(struct jinja_activation *activation, const struct jn *name)
{
    for (uint16_t i = 0; i < name->hops; i++)
        activation = activation->outer;
    return &activation->slots[name->slot];
}

static int eval_name(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                     struct jv *out)
{
    *out = *nl_jinja_slot(activation, node);
    return jv_is(*out, JV_MISSING) ? nl_jv_undefined(run, (struct jv){0}, node->value, out) : 0;
}

static int eval_items(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                      struct jv *out)
{
    struct jv_list *list = nl_jv_list_new(run, 0);
    struct jv item = {0};
    for (const struct jn *child = node->a; list && child; child = child->next)
        if (nl_jinja_eval(run, activation, child, &item) != 0 || nl_jv_list_push(run, list, item) != 0)
            return -1;
    *out = jv_of_list(list, node->kind == JN_LIST ? JV_LIST : JV_TUPLE);
    return list ? 0 : -1;
}

static int eval_dict(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                     struct jv *out)
{
    struct jv_dict *dict = nl_jv_dict_new(run);
    for (const struct jn *child = node->a; dict && child; child = child->next->next) {
        struct jv key = {0}, value = {0};
        if (nl_jinja_eval(run, activation, child, &key) != 0 ||
            nl_jinja_eval(run, activation, child->next, &value) != 0 ||
            nl_jv_dict_set(run, dict, key, value) != 0)
            return -1;
    }
    *out = (struct jv){.kind = JV_DICT, .dict = dict};
    return dict ? 0 : -1;
}

static int eval_truth(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                      struct jv *value, bool *out)
{
    return nl_jinja_eval(run, activation, node, value) != 0 ? -1 : nl_jv_truth(run, *value, out);
}

static int eval_condition(struct nl_jinja_run *run, struct jinja_activation *activation,
                          const struct jn *node, struct jv *out)
{
    bool truth;
    if (eval_truth(run, activation, node->b, out, &truth) != 0)
        return -1;
    if (truth || node->c)
        return nl_jinja_eval(run, activation, truth ? node->a : node->c, out);
    return nl_jv_undefined_hint(run, "an inline 'if' without 'else' was false", out);
}

static int eval_logic(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                      struct jv *out)
{
    bool truth;
    if (eval_truth(run, activation, node->a, out, &truth) != 0)
        return -1;
    if (node->kind == JN_NOT) {
        *out = jv_bool(!truth);
        return 0;
    }
    return truth == (node->kind == JN_OR) ? 0 : nl_jinja_eval(run, activation, node->b, out);
}

static int compare(struct nl_jinja_run *run, enum jn_comparison op, struct jv left, struct jv right,
                   bool *out)
{
    int order, result;
    bool unordered;
    switch (op) {
    case JN_EQ:
        return nl_jv_equal(run, left, right, out);
    case JN_NE:
        result = nl_jv_equal(run, left, right, out);
        *out = !*out;
        return result;
    case JN_IN:
        return nl_jv_contains(run, right, left, out);
    case JN_NOT_IN:
        result = nl_jv_contains(run, right, left, out);
        *out = !*out;
        return result;
    default:
        break;
    }
    if (nl_jv_order(run, left, right, &order, &unordered) != 0)
        return -1;
    bool equal = order == 0 && (op == JN_GE || op == JN_LE);
    bool more = order > 0 && (op == JN_GT || op == JN_GE), less = order < 0 && (op == JN_LT || op == JN_LE);
    *out = !unordered && (equal || more || less);
    return 0;
}

static int eval_comparison(struct nl_jinja_run *run, struct jinja_activation *activation,
                           const struct jn *node, struct jv *out)
{
    struct jv left = {0}, right = {0};
    bool truth = true;
    if (nl_jinja_eval(run, activation, node->a, &left) != 0)
        return -1;
    for (const struct jn *operand = node->b; operand && truth; operand = operand->next) {
        if (nl_jinja_eval(run, activation, operand->a, &right) != 0 ||
            compare(run, (enum jn_comparison)operand->op, left, right, &truth) != 0)
            return -1;
        left = right;
    }
    *out = jv_bool(truth);
    return 0;
}

static int eval_sign(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                     struct jv *out)
{
    struct jv value = {0};
    if (nl_jinja_eval(run, activation, node->a, &value) != 0)
        return -1;
    if (node->kind == JN_NEG)
        return nl_jv_negate(run, value, out);
    if (jv_is(value, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, value);
    if (!jv_is_number(value))
        return jinja_fail(run, NL_DATA, "'+' of a value of type %s", nl_jv_type_name(value));
    *out = jv_is(value, JV_BOOL) ? jv_int(value.integer) : value;
    return 0;
}

static int eval_concat(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                       struct jv *out)
{
    struct jv value, text, left = jv_string("", 0);
    for (const struct jn *child = node->a; child; child = child->next) {
        if (nl_jinja_eval(run, activation, child, &value) != 0 || nl_jv_to_string(run, value, &text) != 0 ||
            nl_jv_concat(run, left, text, out) != 0)
            return -1;
        left = *out;
    }
    out->safe = false;
    return 0;
}

static int eval_slice(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                      struct jv *out)
{
    struct jv_slice *slice = nl_jinja_alloc(run, sizeof *slice);
    if (!slice)
        return -1;
    *slice = (struct jv_slice){jv_none(), jv_none(), jv_none()};
    if ((node->a && nl_jinja_eval(run, activation, node->a, &slice->start) != 0) ||
        (node->b && nl_jinja_eval(run, activation, node->b, &slice->stop) != 0) ||
        (node->c && nl_jinja_eval(run, activation, node->c, &slice->step) != 0))
        return -1;
    *out = (struct jv){.kind = JV_SLICE, .slice = slice};
    return 0;
}

/* Whether jinja2 cannot compute it when it compiles. */
static bool has_name(const struct jn *list)
{
    for (const struct jn *node = list; node; node = node->next)
        if (node->kind == JN_NAME || has_name(node->a) || has_name(node->b) || has_name(node->c))
            return true;
    return false;
}

/* jinja2 writes a negative constant into Python code without brackets: -3 ** x is -(3 ** x) there, while -3
 ** 2 is (-3) ** 2. */
static bool is_odd_power(const struct jn *node, struct jv left)
{
    return node->kind == JN_BINARY && node->op == JINJA_POW && jv_is_number(left) && jv_double(left) <= 0 &&
           node->a->kind != JN_NAME && has_name(node->b) && !has_name(node->a->a) && !has_name(node->a->b);
}

static int eval_binary(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                       struct jv *out)
{
    struct jv left = {0}, right = {0};
    if (nl_jinja_eval(run, activation, node->a, &left) != 0 ||
        nl_jinja_eval(run, activation, node->b, &right) != 0)
        return -1;
    run->line = node->line;
    if (is_odd_power(node, left))
        return jinja_fail(run, NL_UNSUPPORTED, "a power of a negative constant");
    if (node->kind == JN_GETITEM)
        return nl_jv_getitem(run, left, right, out);
    return nl_jv_arithmetic(run, (enum jinja_operator)node->op, left, right, out);
}

static int eval_attribute(struct nl_jinja_run *run, struct jinja_activation *activation,
                          const struct jn *node, struct jv *out)
{
    struct jv object = {0};
    if (nl_jinja_eval(run, activation, node->a, &object) != 0)
        return -1;
    run->line = node->line;
    return nl_jv_getattr(run, object, node->value, out);
}

static int add_named(struct nl_jinja_run *run, struct jinja_args *args, struct jv name, struct jv value)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (args->named[i].name.size == name.size &&
            memcmp(args->named[i].name.text, name.text, name.size) == 0)
            return jinja_fail(run, NL_DATA, "an argument is given twice");
    if ((args->n_named & (args->n_named - 1)) == 0) { /* full: the capacity is a power of two */
        struct jinja_named *named =
            nl_jinja_alloc(run, (args->n_named ? 2 * args->n_named : 1) * sizeof *named);
        if (!named)
            return -1;
        if (args->n_named)
            memcpy(named, args->named, args->n_named * sizeof *named);
        args->named = named;
    }
    args->named[args->n_named++] = (struct jinja_named){name, value};
    return nl_jinja_charge(run, args->n_named);
}

static int add_argument(struct nl_jinja_run *run, const struct jn *argument, struct jv value,
                        struct jv_list *list, struct jinja_args *out)
{
    if (argument->op == JN_POSITIONAL)
        return nl_jv_list_push(run, list, value);
    if (argument->op == JN_KEYWORD)
        return add_named(run, out, argument->value, value);
    if (argument->op == JN_STAR) {
        struct jv_list *more = nl_jv_gather(run, value);
        for (size_t i = 0; more && i < more->count; i++)
            if (nl_jv_list_push(run, list, more->items[i]) != 0)
                return -1;
        return more ? 0 : -1;
    }
    if (!jv_is(value, JV_DICT))
        return jinja_fail(run, NL_DATA, "'**' of a value of type %s", nl_jv_type_name(value));
    for (size_t i = 0; i < value.dict->count; i++) {
        const struct jv_entry *entry = &value.dict->entries[i];
        if (!jv_is(entry->key, JV_STRING))
            return jinja_fail(run, NL_DATA, "'**' of a dict with keys that are not strings");
        if (add_named(run, out, entry->key, entry->value) != 0)
            return -1;
    }
    return 0;
}

int nl_jinja_eval_args(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *first,
                       struct jinja_args *out)
{
    *out = (struct jinja_args){0};
    if (!first)
        return 0;
    struct jv_list *list = nl_jv_list_new(run, 0);
    struct jv value = {0};
    for (const struct jn *argument = first; list && argument; argument = argument->next)
        if (nl_jinja_eval(run, activation, argument->a, &value) != 0 ||
            add_argument(run, argument, value, list, out) != 0)
            return -1;
    if (!list)
        return -1;
    out->values = list->items;
    out->count = list->count;
    return 0;
}

static int eval_call(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                     struct jv *out)
{
    struct jv callee = {0};
    struct jinja_args args;
    if (nl_jinja_eval(run, activation, node->a, &callee) != 0 ||
        nl_jinja_eval_args(run, activation, node->b, &args) != 0)
        return -1;
    run->line = node->line;
    return nl_jinja_call(run, callee, &args, out);
}

/* Filters and tests. */
static int eval_filter(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                       struct jv *out)
{
    struct jv value = {0};
    struct jinja_args args;
    bool truth;
    if (nl_jinja_eval(run, activation, node->a, &value) != 0 ||
        nl_jinja_eval_args(run, activation, node->b, &args) != 0)
        return -1;
    run->line = node->line;
    if (node->kind == JN_FILTER)
        return nl_jinja_filter(run, node->value, value, &args, out);
    if (nl_jinja_test(run, node->value, value, &args, &truth) != 0)
        return -1;
    *out = jv_bool(truth);
    return 0;
}

static int eval_kind(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                     struct jv *out)
{
    switch (node->kind) {
    case JN_TUPLE:
    case JN_LIST:
        return eval_items(run, activation, node, out);
    case JN_DICT:
        return eval_dict(run, activation, node, out);
    case JN_COND:
        return eval_condition(run, activation, node, out);
    case JN_OR:
    case JN_AND:
    case JN_NOT:
        return eval_logic(run, activation, node, out);
    case JN_COMPARE:
        return eval_comparison(run, activation, node, out);
    case JN_NEG:
    case JN_POS:
        return eval_sign(run, activation, node, out);
    case JN_CONCAT:
        return eval_concat(run, activation, node, out);
    case JN_GETATTR:
        return eval_attribute(run, activation, node, out);
    case JN_BINARY:
    case JN_GETITEM:
        return eval_binary(run, activation, node, out);
    case JN_SLICE:
        return eval_slice(run, activation, node, out);
    case JN_CALL:
        return eval_call(run, activation, node, out);
    default:
        return eval_filter(run, activation, node, out);
    }
}

int nl_jinja_eval(struct nl_jinja_run *run, struct jinja_activation *activation, const struct jn *node,
                  struct jv *out)
{
    if (node->kind == JN_CONST) {
        *out = node->value;
        return nl_jinja_charge(run, 1);
    }
    run->line = node->line;
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    if (node->kind == JN_NAME)
        return eval_name(run, activation, node, out);
    if (nl_jinja_enter(run) != 0)
        return -1;
    int result = eval_kind(run, activation, node, out);
    run->depth--;
    return result;
}
