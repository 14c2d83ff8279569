/*
 * jinja_tree.h: inside the template interpreter: the compiled template.
 *
 * Source -> tokens (jinja_lex.c) -> tree (jinja_parse.c, jinja_expression.c) -> the place of each variable
 * (jinja_scope.c). The tree lies in the template's arena; constants in it are values that runs share.
 */
#ifndef NL_JINJA_TREE_H
#define NL_JINJA_TREE_H

#include "jinja_value.h"

enum jt_kind {
    JT_END,
    JT_DATA, /* text between tags */
    JT_VARIABLE_BEGIN,
    JT_VARIABLE_END,
    JT_BLOCK_BEGIN,
    JT_BLOCK_END,
    JT_NAME,
    JT_STRING,
    JT_INTEGER,
    JT_FLOAT,
    JT_FLOORDIV,
    JT_POW,
    JT_EQ,
    JT_NE,
    JT_GE,
    JT_LE,
    /* one character each, in the order of the string in jinja_lex.c */
    JT_ADD,
    JT_SUB,
    JT_DIV,
    JT_MUL,
    JT_MOD,
    JT_TILDE,
    JT_LBRACKET,
    JT_RBRACKET,
    JT_LPAREN,
    JT_RPAREN,
    JT_LBRACE,
    JT_RBRACE,
    JT_GT,
    JT_LT,
    JT_ASSIGN,
    JT_DOT,
    JT_COLON,
    JT_PIPE,
    JT_COMMA,
    JT_SEMICOLON,
};

struct jt {
    enum jt_kind kind;
    uint32_t line;
    struct jv value; /* of data, names and literals */
};

enum jn_kind {
    /* expressions: children in a, b, c; lists are chained by next */
    JN_CONST,    /* value */
    JN_NAME,     /* value: the name; slot, hops */
    JN_TUPLE,    /* a: items */
    JN_LIST,     /* a: items */
    JN_DICT,     /* a: key, value, key, value ... */
    JN_COND,     /* a if b else c (may be NULL) */
    JN_OR,       /* a, b */
    JN_AND,      /* a, b */
    JN_NOT,      /* a */
    JN_COMPARE,  /* a; b: JN_OPERANDs */
    JN_OPERAND,  /* op: enum jn_comparison; a */
    JN_BINARY,   /* op: enum jinja_operator; a, b */
    JN_NEG,      /* a */
    JN_POS,      /* a */
    JN_CONCAT,   /* a: parts */
    JN_GETATTR,  /* a; value: the name */
    JN_GETITEM,  /* a, b */
    JN_SLICE,    /* a, b, c, each may be NULL */
    JN_CALL,     /* a; b: JN_ARGUMENTs */
    JN_FILTER,   /* a (NULL: the block's text), value: the name, b: JN_ARGUMENTs */
    JN_TEST,     /* the same */
    JN_ARGUMENT, /* op: enum jn_argument; a; value: the name of a keyword */
    JN_NSREF,    /* a: JN_NAME; value: the attribute */
    /* statements */
    JN_DATA,        /* value: text */
    JN_OUTPUT,      /* a */
    JN_FOR,         /* a: target, b: iterable, c: test (NULL), d: body, e: else, f: the target for the test */
    JN_IF,          /* a: test, d: body, c: JN_IFs of elif, e: else */
    JN_SET,         /* a: target, b: value */
    JN_SETBLOCK,    /* a: target, b: filter (NULL), d: body */
    JN_MACRO,       /* value: the name; f: JN_NAME of it; a: JN_PARAMETERs, d: body */
    JN_CALLBLOCK,   /* a: JN_PARAMETERs, b: JN_CALL (NULL: generation), d: body */
    JN_PARAMETER,   /* a: JN_NAME, b: default (NULL) */
    JN_FILTERBLOCK, /* b: filter, d: body */
    JN_WITH,        /* a: targets, b: values, d: body */
    JN_BREAK,
    JN_CONTINUE,
};
enum jn_comparison { JN_EQ, JN_NE, JN_GT, JN_GE, JN_LT, JN_LE, JN_IN, JN_NOT_IN };
enum jn_argument { JN_POSITIONAL, JN_KEYWORD, JN_STAR, JN_STAR_STAR };

struct jn {
    uint8_t kind, op;
    uint16_t height; /* of the tree below, so that walks can recurse */
    uint32_t line;
    uint32_t slot;
    uint16_t hops; /* functions outwards to the one that has the slot */
    bool soft;     /* filters, tests: an unknown name is an error only when it is reached */
    struct jv value;
    struct jn *next;
    struct jn *a, *b, *c, *d, *e, *f;
    struct jinja_scope *scope, *test_scope, *else_scope;
    struct jinja_function *function; /* of macros and call blocks */
};

/* What happens to the variables of a scope when it is entered. */
enum jinja_load_kind { JINJA_PARAMETER, JINJA_RESOLVE, JINJA_ALIAS, JINJA_UNSET };
struct jinja_scope {
    struct jinja_load {
        uint8_t kind;
        uint16_t hops; /* JINJA_ALIAS: where from */
        uint32_t slot, from;
        struct jv name;
    } * loads;
    size_t count;
};

struct jinja_function {
    uint32_t n_slots;
    bool keeps; /* has macros inside, which may outlive a call */
    /* what a macro's body uses beyond its parameters; slots where so */
    bool uses_caller, uses_kwargs, uses_varargs;
    uint32_t caller, kwargs, varargs;
};

struct nl_jinja {
    struct jinja_arena arena;
    char *name;
    struct jn *body;
    struct jinja_scope *scope;
    struct jinja_function function; /* the template itself */
};

struct jinja_compile {
    struct nl_jinja *template;
    struct nl_error *error;
    struct jt *tokens; /* [n_tokens], the last is JT_END; freed by nl_jinja_open */
    size_t n_tokens, capacity, at;
    unsigned depth;
    unsigned in_loops;    /* how many of this function are around */
    unsigned in_any_loop; /* of all functions */
};

int nl_jinja_compile_error(struct jinja_compile *, enum nl_status, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));                         /* -1 */
void *nl_jinja_compile_alloc(struct jinja_compile *, size_t size); /* NULL with the error filled */
int nl_jinja_lex(struct jinja_compile *, const char *source, size_t length);
/* A name or "end of template", for messages. */
const char *nl_jinja_token_text(const struct jt *, char shown[64]);

/* jinja_parse.c */
int nl_jinja_parse(struct jinja_compile *);
/* jinja_operand.c, jinja_expression.c: NULL with the error filled. */
struct jn *nl_jinja_new_node(struct jinja_compile *, enum jn_kind, uint32_t line);
void nl_jinja_adopt(struct jn *parent, const struct jn *child); /* heights; child: a list or NULL */
struct jt *nl_jinja_current(struct jinja_compile *);
bool nl_jinja_at_name(const struct jt *, const char *name);
bool nl_jinja_skip(struct jinja_compile *, enum jt_kind);
bool nl_jinja_skip_name(struct jinja_compile *, const char *name);
int nl_jinja_expect(struct jinja_compile *, enum jt_kind);
struct jt *nl_jinja_take(struct jinja_compile *); /* the current token; never past the end */
const struct jt *nl_jinja_look_ahead(const struct jinja_compile *);
/* A node with up to three children; NULL when it gets too high. */
struct jn *nl_jinja_node_of(struct jinja_compile *, enum jn_kind, uint32_t line, struct jn *a, struct jn *b,
                            struct jn *c);
/* Of a node, which may be NULL: subscripts, attributes and calls; filters and tests. */
struct jn *nl_jinja_parse_postfix(struct jinja_compile *, struct jn *node);
struct jn *nl_jinja_parse_filters_and_tests(struct jinja_compile *, struct jn *node);
struct jn *nl_jinja_parse_expression(struct jinja_compile *, bool with_condition);
struct jn *nl_jinja_parse_primary(struct jinja_compile *, bool with_namespace);
struct jn *nl_jinja_parse_filters(struct jinja_compile *, struct jn *node, bool inside);
/* With `end_name` a name that ends the tuple. */
struct jinja_tuple {
    bool simple, with_condition, parentheses, with_namespace;
    const char *end_name;
};
struct jn *nl_jinja_parse_tuple(struct jinja_compile *, struct jinja_tuple);

/* jinja_special.c: the bits of those names that a macro's body uses without having them. */
extern const char *const nl_jinja_specials[3]; /* caller, kwargs, varargs */
unsigned nl_jinja_find_specials(const struct jn *body);
/* jinja_scope.c */
int nl_jinja_resolve(struct jinja_compile *);

/* jinja_eval.c, jinja_run.c */
int nl_jinja_eval(struct nl_jinja_run *, struct jinja_activation *, const struct jn *, struct jv *out);
int nl_jinja_eval_args(struct nl_jinja_run *, struct jinja_activation *, const struct jn *,
                       struct jinja_args *out);
/* One level deeper; -1 when too deep. Left by run->depth--. */
int nl_jinja_enter(struct nl_jinja_run *);
enum jinja_flow { JINJA_ERROR = -1, JINJA_ON, JINJA_BREAK, JINJA_CONTINUE };
enum jinja_flow nl_jinja_execute(struct nl_jinja_run *, struct jinja_activation *, const struct jn *list);
int nl_jinja_assign(struct nl_jinja_run *, struct jinja_activation *, const struct jn *target,
                    struct jv value);
int nl_jinja_call_macro(struct nl_jinja_run *, struct jv_macro *, const struct jinja_args *, struct jv *out);
void nl_jinja_enter_scope(struct nl_jinja_run *, struct jinja_activation *, const struct jinja_scope *);
void nl_jinja_leave_scope(struct jinja_activation *, const struct jinja_scope *);
struct jv *nl_jinja_slot(struct jinja_activation *, const struct jn *);

#endif
