/*
 * jinja_tree.h: inside the template interpreter: the compiled template, and how it is run.
 *
 * Source -> tokens (jinja_lex.c) -> tree (jinja_parse.c, jinja_expression.c) -> which names a scope has
 * without a value (jinja_scope.c). The tree lies in the template's arena; constants in it are values that
 * runs share.
 *
 * Errors stick here too: after the first one the current token is the end, every loop of the parser ends
 * there, and nodes are of no use, but never NULL.
 */
#ifndef NL_JINJA_TREE_H
#define NL_JINJA_TREE_H

#include "jinja_value.h"

/* An operator of one character is its own kind. */
enum jt_kind {
    JT_END = 256,
    JT_DATA, /* text between tags */
    JT_VARIABLE_BEGIN,
    JT_VARIABLE_END,
    JT_BLOCK_BEGIN,
    JT_BLOCK_END,
    JT_NAME,
    JT_STRING,
    JT_NUMBER,
    JT_FLOORDIV,
    JT_POW,
    JT_EQ,
    JT_NE,
    JT_GE,
    JT_LE,
};

struct jt {
    int kind;
    uint32_t line;
    struct jv value; /* of data, names and literals */
};

enum jn_kind {
    /* expressions: children in a, b, c, d; lists are chained by next */
    JN_CONST,    /* value */
    JN_NAME,     /* value: the name; id */
    JN_TUPLE,    /* a: items */
    JN_LIST,     /* a: items */
    JN_DICT,     /* a: key, value, key, value ... */
    JN_COND,     /* a if b else c (may be NULL) */
    JN_OR,       /* a, b */
    JN_AND,      /* a, b */
    JN_NOT,      /* a */
    JN_COMPARE,  /* a; b: JN_OPERANDs */
    JN_OPERAND,  /* op: enum jv_comparison; a */
    JN_BINARY,   /* op: enum jinja_operator; a, b */
    JN_NEG,      /* a */
    JN_POS,      /* a */
    JN_CONCAT,   /* a: parts */
    JN_GETATTR,  /* a; value: the name */
    JN_GETITEM,  /* a, b */
    JN_SLICE,    /* a; b, c, d: the bounds, each may be NULL */
    JN_CALL,     /* a; b: JN_ARGUMENTs */
    JN_FILTER,   /* a; value: the name; b: JN_ARGUMENTs */
    JN_TEST,     /* the same */
    JN_ARGUMENT, /* a; value: the name of a keyword, or JV_MISSING; op: "*", the items of a are arguments */
    JN_NSREF,    /* a: JN_NAME; value: the attribute */
    /* statements; those with `unset` open a scope for d */
    JN_DATA,   /* value: text */
    JN_OUTPUT, /* a */
    JN_FOR, /* a: target, b: iterable, c: test (NULL), d: body, e: JN_SCOPE of else (NULL); id: of "loop" */
    JN_IF,  /* a: test, d: body, e: else, also the JN_IF of an elif */
    JN_SET, /* a: target, b: value */
    JN_SETBLOCK,    /* a: target, d: body */
    JN_FILTERBLOCK, /* a: filters of the variable `id`, d: body */
    JN_MACRO,       /* a: JN_PARAMETERs, b: JN_NAME of it, d: body */
    JN_PARAMETER,   /* a: JN_NAME, b: default (NULL) */
    JN_SCOPE,       /* d: body */
    JN_BREAK,
    JN_CONTINUE,
};

struct jn {
    uint8_t kind, op;
    uint16_t id; /* of a name: where its value lies in each scope */
    uint32_t line;
    struct jv value;
    struct jn *next;
    struct jn *a, *b, *c, *d, *e;
    /* The names that the scope has without a value when it begins; ends in JINJA_NO_NAME. */
    const uint16_t *unset;
};

enum { JINJA_MOST_NAMES = 500, JINJA_NO_NAME = 0xffff };

struct nl_jinja {
    struct jinja_arena arena;
    char *name;
    struct jn *body; /* JN_SCOPE */
    struct jv names[JINJA_MOST_NAMES];
    uint16_t n_names;
};

struct jinja_compile {
    struct nl_jinja *template;
    struct nl_error *error;
    bool failed;
    struct jt *tokens; /* [n_tokens], the last is JT_END; freed by nl_jinja_open */
    size_t n_tokens, capacity, at;
    unsigned depth;
    unsigned in_loops;  /* how many are around */
    unsigned in_scopes; /* loops, macros and blocks around */
    struct jn no_node;
};

/* Only the first failure counts. */
void nl_jinja_refuse(struct jinja_compile *, enum nl_status, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool nl_jinja_deeper(struct jinja_compile *, uint32_t line); /* false: too deep; left by compile->depth-- */
void *nl_jinja_compile_alloc(struct jinja_compile *, size_t size); /* NULL after a failure */
void nl_jinja_parse(struct jinja_compile *);
void nl_jinja_resolve(struct jinja_compile *);

/* jinja_lex.c */
void nl_jinja_lex(struct jinja_compile *, const char *source, size_t length);
const struct jt *nl_jinja_current(const struct jinja_compile *);
const struct jt *nl_jinja_take(struct jinja_compile *); /* the current token; never past the end */
const struct jt *nl_jinja_expect(struct jinja_compile *, int kind); /* the same, or an error */
int nl_jinja_kind_ahead(const struct jinja_compile *);              /* of the token after the current one */
bool nl_jinja_at_name(const struct jinja_compile *, const char *name);
bool nl_jinja_skip(struct jinja_compile *, int kind); /* takes it if it is there */
bool nl_jinja_skip_name(struct jinja_compile *, const char *name);
void nl_jinja_refuse_token(struct jinja_compile *);

/* jinja_expression.c */
struct jn *nl_jinja_node(struct jinja_compile *, enum jn_kind, uint32_t line);
struct jn **nl_jinja_append(struct jn **end, struct jn *node);           /* the list's new end */
struct jn *nl_jinja_name(struct jinja_compile *, const struct jt *name); /* JN_NAME */
struct jn *nl_jinja_parse_target_name(struct jinja_compile *);
struct jn *nl_jinja_parse_expression(struct jinja_compile *);
struct jn *nl_jinja_parse_filters(struct jinja_compile *, struct jn *value); /* one or more */
/* An expression, or a tuple of them without brackets. */
enum jinja_tuple { JINJA_WITH_CONDITION, JINJA_WITHOUT_CONDITION, JINJA_TARGET, JINJA_NAMESPACE_TARGET };
struct jn *nl_jinja_parse_tuple(struct jinja_compile *, enum jinja_tuple);

/* Where variables lie: what is JV_MISSING in one scope is looked for in the scope around. */
struct jinja_scope {
    struct jinja_scope *outer;
    struct jv values[]; /* [n_names] */
};
/* NULL: a failure. */
struct jinja_scope *nl_jinja_scope_new(struct nl_jinja_run *, struct jinja_scope *outer);
void nl_jinja_scope_begin(struct nl_jinja_run *, struct jinja_scope *, const uint16_t *unset);
struct jv nl_jinja_eval(struct nl_jinja_run *, struct jinja_scope *, const struct jn *);
enum jinja_flow { JINJA_ON, JINJA_BREAK, JINJA_CONTINUE };
enum jinja_flow nl_jinja_execute(struct nl_jinja_run *, struct jinja_scope *, const struct jn *list);

#endif
