/* Which of caller, kwargs, varargs a macro's body reads before anything in it sets them, in the order in
   which jinja2 walks the tree. */
#include "jinja_tree.h"

struct special {
    unsigned names, used; /* bits */
};
const char *const nl_jinja_specials[3] = {"caller", "kwargs", "varargs"};

static void see_name(struct special *special, struct jv name, bool stores)
{
    for (unsigned i = 0; i < 3; i++) {
        if (!jv_text_is(name, nl_jinja_specials[i]))
            continue;
        if (stores)
            special->names &= ~(1u << i);
        else
            special->used |= special->names & 1u << i;
    }
}

static void walk(struct special *special, const struct jn *list, bool stores)
{
    for (const struct jn *node = list; node; node = node->next) {
        if (node->kind == JN_NAME)
            see_name(special, node->value, stores);
        if (node->kind == JN_NSREF)
            continue;
        bool target = node->kind == JN_FOR || node->kind == JN_SET || node->kind == JN_SETBLOCK ||
                      node->kind == JN_WITH;
        bool function = node->kind == JN_MACRO || node->kind == JN_CALLBLOCK;
        if (node->kind == JN_FILTERBLOCK)
            walk(special, node->d, false);
        if (!function)
            walk(special, node->a, target || stores);
        walk(special, node->b, false);
        for (const struct jn *parameter = function ? node->a : NULL; parameter; parameter = parameter->next)
            walk(special, parameter->a, true);
        for (const struct jn *parameter = function ? node->a : NULL; parameter; parameter = parameter->next)
            walk(special, parameter->b, false);
        if (node->kind != JN_FILTERBLOCK)
            walk(special, node->d, false);
        bool loop = node->kind == JN_FOR; /* its test comes last */
        walk(special, loop ? node->e : node->c, false);
        walk(special, loop ? node->c : node->e, false);
    }
}

unsigned nl_jinja_find_specials(const struct jn *body)
{
    struct special special = {.names = 7};
    walk(&special, body, false);
    return special.used;
}
