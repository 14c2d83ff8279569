/*
 * jinja_value.h: inside the template interpreter: values, and the run that owns them. Programs include
 * jinja.h; chat.c, which makes variables, this.
 *
 * A value is 16 bytes and is passed by value; what it points to lies in the run's arena and is never freed
 * before the run is closed. Strings, lists, tuples and dicts do not change once a template sees them, as in
 * jinja2's sandbox; namespaces and iterators do.
 *
 * Errors stick, as those of nl_buf do: the first one fills run->error, by nl_jinja_fail, which adds the
 * template's name and line, and sets run->failed. From then on values are JV_MISSING, answers false, lists
 * empty, and nl_jinja_charge ends loops, so that only they and those who follow pointers need to ask.
 */
#ifndef NL_JINJA_VALUE_H
#define NL_JINJA_VALUE_H

#include "jinja.h"

enum jv_kind {
    JV_MISSING, /* no value: an argument not given, what a failure leaves */
    JV_UNDEFINED,
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_FLOAT,
    JV_STRING,
    JV_LIST,
    JV_TUPLE,
    JV_DICT,
    JV_VIEW,     /* dict.keys(), .values(), .items() */
    JV_RANGE,    /* its list holds the numbers */
    JV_ITERATOR, /* Python's generators and iterators: read once */
    JV_NAMESPACE,
    JV_MACRO,
    JV_LOOP,
    JV_FUNCTION, /* a global one such as range, or a method bound to its object */
};
enum jv_view_of { JV_KEYS, JV_VALUES, JV_ITEMS };

struct jv {
    uint8_t kind;
    bool safe;     /* JV_STRING: marked as HTML (markupsafe.Markup) */
    uint32_t size; /* JV_STRING: bytes; JV_VIEW: enum jv_view_of */
    union {
        int64_t integer; /* also of JV_BOOL */
        double number;
        const char *text; /* UTF-8, may hold NUL, not terminated */
        struct jv_list *list;
        struct jv_dict *dict; /* also of views and namespaces */
        struct jv_iterator *iterator;
        struct jv_undefined *undefined;
        const struct jn *macro; /* its statement; macros stand at the top of a template */
        struct jv_loop *loop;
        struct jv_function *function;
    };
};

struct jv_list {
    struct jv *items;
    size_t count, capacity;
};

struct jv_dict {
    struct jv_entry {
        struct jv key, value;
    } * entries; /* in the order they came */
    size_t count, capacity;
};

struct jv_undefined {
    const char *hint; /* the message, or NULL: made of the rest */
    struct jv object; /* what lacks the name; JV_MISSING: it is a variable */
    struct jv name;
};

/* What is called with. */
struct jinja_args {
    struct jv_list *list;
    struct jv_dict *named;
};

enum {
    JINJA_MOST_SOURCE = 1 << 20, /* bytes of a template */
    JINJA_MOST_OUTPUT = 256 << 20,
    JINJA_MOST_NESTING = 300, /* of a template's parts */
    JINJA_MOST_DEPTH = 900,   /* of the evaluation: a call of a macro takes four to six */
    JINJA_MOST_STEPS = 10000000,
    JINJA_MOST_RANGE = 100000, /* items, as jinja2's sandbox has it */
};
#define JINJA_MOST_MEMORY ((size_t)1 << 29)
#define JINJA_INT64_END   9223372036854775808.0 /* 2^63 */

/* Memory that is freed as a whole. */
struct jinja_arena {
    struct jinja_block *blocks;
    size_t used, total; /* used: of the first block */
};
void *nl_jinja_arena_alloc(struct jinja_arena *, size_t size); /* zeroed; NULL: no memory, or too much */
void nl_jinja_arena_free(struct jinja_arena *);

struct nl_jinja_run {
    const struct nl_jinja *template; /* NULL while variables are set */
    struct nl_error *error;
    bool failed;
    struct jinja_arena arena;
    struct jv_dict *variables;
    struct jinja_scope *top; /* the template's own variables */
    struct nl_buf *out;      /* what is printed goes here */
    uint64_t steps;
    unsigned depth, line;
    const char *tip; /* behind the last long string, where `tip_room` bytes may be appended to it */
    size_t tip_room;
    time_t now;
    bool has_now;
    struct jv_list no_list; /* what there is instead where there is no memory; never written to */
    struct jv_dict no_dict;
};

/* Only the first failure counts. Returns JV_MISSING. */
struct jv nl_jinja_fail(struct nl_jinja_run *, enum nl_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "'what' of a value of type ..." */
struct jv nl_jinja_fail_type(struct nl_jinja_run *, const char *what, struct jv);
/* Counts work; false when there was too much, or another failure. */
static inline bool nl_jinja_charge(struct nl_jinja_run *run, uint64_t steps)
{
    run->steps += steps;
    if (run->steps > JINJA_MOST_STEPS)
        nl_jinja_fail(run, NL_DATA, "more than %d steps", JINJA_MOST_STEPS);
    return !run->failed;
}
/* One level deeper; false when too deep. Left by run->depth--. */
bool nl_jinja_enter(struct nl_jinja_run *);

/* jinja_value.c */
void *nl_jinja_alloc(struct nl_jinja_run *, size_t size); /* zeroed; NULL after a failure */
static inline struct jv jv_missing(void)
{
    return (struct jv){.kind = JV_MISSING};
}
static inline struct jv jv_none(void)
{
    return (struct jv){.kind = JV_NONE};
}
static inline struct jv jv_bool(bool truth)
{
    return (struct jv){.kind = JV_BOOL, .integer = truth};
}
static inline struct jv jv_int(int64_t integer)
{
    return (struct jv){.kind = JV_INT, .integer = integer};
}
static inline struct jv jv_float(double number)
{
    return (struct jv){.kind = JV_FLOAT, .number = number};
}
/* Of memory that lives as long as the run. */
static inline struct jv jv_string(const char *text, size_t size)
{
    return (struct jv){.kind = JV_STRING, .size = (uint32_t)size, .text = text};
}
static inline struct jv jv_part(struct jv text, size_t from, size_t to)
{
    return jv_string(text.text + from, to - from);
}
static inline struct jv jv_chars(const char *text)
{
    return jv_string(text, strlen(text));
}
static inline struct jv jv_of_list(struct jv_list *list, enum jv_kind kind)
{
    return (struct jv){.kind = (uint8_t)kind, .list = list};
}
static inline struct jv jv_of_dict(struct jv_dict *dict)
{
    return (struct jv){.kind = JV_DICT, .dict = dict};
}
static inline struct jv jv_view(struct jv_dict *dict, enum jv_view_of of)
{
    return (struct jv){.kind = JV_VIEW, .size = of, .dict = dict};
}
static inline bool jv_is(struct jv value, enum jv_kind kind)
{
    return value.kind == kind;
}
static inline bool jv_is_given(struct jv value) /* an argument that is there and not none */
{
    return value.kind != JV_MISSING && value.kind != JV_NONE;
}
static inline bool jv_is_integral(struct jv value) /* Python's int, which bool is a kind of */
{
    return value.kind == JV_INT || value.kind == JV_BOOL;
}
static inline bool jv_is_number(struct jv value)
{
    return jv_is_integral(value) || value.kind == JV_FLOAT;
}
static inline bool jv_is_sequence(struct jv value)
{
    return value.kind == JV_LIST || value.kind == JV_TUPLE;
}
static inline double jv_double(struct jv value) /* of a number */
{
    return value.kind == JV_FLOAT ? value.number : (double)value.integer;
}
static inline bool jv_same_text(struct jv a, struct jv b) /* of strings */
{
    return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}
static inline bool jv_text_is(struct jv value, const char *text)
{
    return value.kind == JV_STRING && jv_same_text(value, jv_chars(text));
}
/* Lists of words with blanks between: the word at *list, which moves behind it; false at the end. */
bool nl_jinja_next_word(const char **list, struct jv *word);
bool nl_jinja_is_listed(struct jv name, const char *list);
/* For "%.*s": what a message shows of a text. */
#define JINJA_SHOWN(value)                                                                                   \
    (int)(!jv_is(value, JV_STRING) ? 0 : (value).size < 100 ? (value).size : 100), (value).text
struct jv nl_jv_copy(struct nl_jinja_run *, const char *text, size_t size);
/* Appends a string to what is gathered, within the limits of work and size; false after a failure. */
bool nl_jinja_put(struct nl_jinja_run *, struct nl_buf *, struct jv text);
struct jv nl_jv_take(struct nl_jinja_run *, struct nl_buf *); /* a string of what was gathered; frees it */
struct jv nl_jv_concat(struct nl_jinja_run *, struct jv left, struct jv right); /* of strings */
struct jv_list *nl_jv_list_new(struct nl_jinja_run *, size_t capacity);         /* never NULL */
void nl_jv_push(struct nl_jinja_run *, struct jv_list *, struct jv);
struct jv_dict *nl_jv_dict_new(struct nl_jinja_run *); /* never NULL */
/* Replaces or appends; a key that cannot be hashed is a failure. */
void nl_jv_dict_set(struct nl_jinja_run *, struct jv_dict *, struct jv key, struct jv value);
/* False and *out as it was when there is none. */
bool nl_jv_dict_get(struct nl_jinja_run *, const struct jv_dict *, struct jv key, struct jv *out);
struct jv nl_jv_undefined(struct nl_jinja_run *, struct jv object, struct jv name);
struct jv nl_jv_undefined_hint(struct nl_jinja_run *, const char *hint);
struct jv nl_jv_fail_undefined(struct nl_jinja_run *, struct jv undefined);
const char *nl_jv_type_name(struct jv); /* Python's: "str" */

/* jinja_compare.c */
bool nl_jv_truth(struct nl_jinja_run *, struct jv);
static inline bool nl_jv_flag(struct nl_jinja_run *run, struct jv argument)
{
    return argument.kind != JV_MISSING && nl_jv_truth(run, argument);
}
bool nl_jv_equal(struct nl_jinja_run *, struct jv, struct jv);
int nl_jv_order(struct nl_jinja_run *, struct jv, struct jv); /* -1, 0, 1 */
enum jv_comparison { JV_EQ, JV_NE, JV_GT, JV_GE, JV_LT, JV_LE, JV_IN, JV_NOT_IN };
bool nl_jv_compare(struct nl_jinja_run *, enum jv_comparison, struct jv, struct jv);
int64_t nl_jv_length(struct nl_jinja_run *, struct jv);

/* jinja_number.c */
enum jinja_operator { JINJA_ADD, JINJA_SUB, JINJA_MUL, JINJA_DIV, JINJA_FLOORDIV, JINJA_MOD, JINJA_POW };
struct jv nl_jv_arithmetic(struct nl_jinja_run *, enum jinja_operator, struct jv, struct jv);
struct jv nl_jv_negate(struct nl_jinja_run *, struct jv);
/* An integer argument, or a failure that names `what`; `otherwise` when it is not given. */
int64_t nl_jv_to_int(struct nl_jinja_run *, struct jv, const char *what, int64_t otherwise);
int nl_jinja_digit(int c); /* of a number in a base up to 36; 99: none */
/* Python's int() and float() of text: 1, 0 when it is none, -1 when it is refused: a failure if there is a
   run, which may be NULL for ASCII. */
int nl_jv_parse_int(struct nl_jinja_run *, struct jv text, int base, int64_t *out);
bool nl_jv_parse_float(struct nl_jinja_run *, struct jv text, double *out);

/* jinja_print.c */
void nl_jv_str(struct nl_jinja_run *, struct jv, struct nl_buf *out);  /* Python's str() */
void nl_jv_repr(struct nl_jinja_run *, struct jv, struct nl_buf *out); /* and repr() */
struct jv nl_jv_to_string(struct nl_jinja_run *, struct jv);           /* str() as a value */
struct jinja_json_style {
    bool ascii, sort_keys, has_indent;
    struct jv indent, comma, colon; /* strings */
};
void nl_jv_json(struct nl_jinja_run *, struct jv, const struct jinja_json_style *, unsigned level,
                struct nl_buf *out);
struct jv nl_jv_parse_json(struct nl_jinja_run *, const char *text, size_t size, const char *name);

/* jinja_lists.c: what `for` walks over. */
struct jv_iterator *nl_jv_iterate(struct nl_jinja_run *, struct jv);          /* NULL: a failure */
bool nl_jv_next(struct nl_jinja_run *, struct jv_iterator *, struct jv *out); /* false at the end */
/* The rest of it, or the items of any iterable; never NULL. */
struct jv_list *nl_jv_gather(struct nl_jinja_run *, struct jv iterable);
/* A generator: `step` makes the next value of what is walked over. */
struct jinja_generator {
    bool (*step)(struct nl_jinja_run *, struct jinja_generator *, struct jv *out);
    struct jv over;
    struct jv_iterator *source; /* of it, once the first value was asked for */
    struct jv name;             /* of the filter or test, and its arguments; JV_MISSING: there is none */
    struct jinja_args args;
    struct jv attribute, otherwise; /* its path, and what `map` takes where that leads nowhere */
    bool reject;
    struct jv case_sensitive; /* `unique`, and the keys that came already */
    struct jv_dict *seen;
    const struct jn *node; /* a loop with a test, and the scope of that */
    struct jinja_scope *scope;
};
struct jv nl_jv_generator(struct nl_jinja_run *, const struct jinja_generator *);
/* The next of what it walks over; false at the end. */
bool nl_jv_next_input(struct nl_jinja_run *, struct jinja_generator *, struct jv *out);
/* A loop's iterator with the sight of one value ahead. */
struct jv_loop {
    struct jv iterable;
    struct jv_iterator *iterator;
    int64_t index0, length; /* length: -1: not asked for yet */
    bool has_after;
    struct jv after, current, before;
};
bool nl_jv_loop_next(struct nl_jinja_run *, struct jv_loop *, struct jv *out);
bool nl_jv_loop_get(struct nl_jinja_run *, struct jv_loop *, struct jv name, struct jv *out);
int64_t nl_jv_loop_length(struct nl_jinja_run *, struct jv_loop *);

/* jinja_access.c */
struct jv nl_jv_getattr(struct nl_jinja_run *, struct jv object, struct jv name);
struct jv nl_jv_getitem(struct nl_jinja_run *, struct jv object, struct jv key);
/* The bounds: start, stop and step; none: not given. */
struct jv nl_jv_slice(struct nl_jinja_run *, struct jv object, const struct jv bounds[3]);
/* The path of an `attribute` argument: names and numbers between points; nothing: the object. */
struct jv nl_jv_get_path(struct nl_jinja_run *, struct jv object, struct jv path, struct jv otherwise);

/* jinja_eval.c */
/* a[0]: the object of a method, the value of a filter; a[1] to a[4]: what was bound, JV_MISSING where it was
   not given; a[JINJA_VARIANT]: which one of several functions that share code. */
enum { JINJA_VARIANT = 5, JINJA_ARGUMENTS };
typedef struct jv jinja_function(struct nl_jinja_run *, struct jv *a);
struct jinja_builtin {
    const char *name;
    jinja_function *function;
    /* The names of a[1] to a[4], separated by blanks, with "-" in front of what has no name for callers; "*":
       a tuple of all arguments in a[1], a dict of those by name in a[2]. */
    const char *parameters;
    unsigned required; /* of them */
    int variant;
    bool of_text; /* a filter that makes a string of its value first */
};
struct jv_function {
    const struct jinja_builtin *builtin;
    struct jv object;
};
const struct jinja_builtin *nl_jinja_find(const struct jinja_builtin *table, struct jv name); /* or NULL */
struct jv nl_jinja_call_builtin(struct nl_jinja_run *, const struct jinja_builtin *, struct jv self,
                                const struct jinja_args *);
struct jv nl_jinja_bound(struct nl_jinja_run *, const struct jinja_builtin *, struct jv object);

/* jinja_globals.c, jinja_text.c: tables that end in a name that is NULL. */
extern const struct jinja_builtin nl_jinja_globals[], nl_jinja_string_methods[];
void nl_jinja_set_attribute(struct nl_jinja_run *, struct jv space, struct jv name, struct jv value);

/* jinja_filters.c */
bool nl_jinja_has_filter(struct jv name); /* one that jinja2 has, supported or not */
bool nl_jinja_has_test(struct jv name);
struct jv nl_jinja_filter(struct nl_jinja_run *, struct jv name, struct jv value, const struct jinja_args *);
bool nl_jinja_test(struct nl_jinja_run *, struct jv name, struct jv value, const struct jinja_args *);
/* jinja_lists.c; nl_jinja_select: variants of enum jinja_select; nl_jinja_extreme: 1: max, -1: min */
enum jinja_select { JINJA_REJECT = 1, JINJA_BY_ATTRIBUTE };
jinja_function nl_jinja_map, nl_jinja_select, nl_jinja_unique, nl_jinja_items, nl_jinja_first, nl_jinja_last,
    nl_jinja_reverse, nl_jinja_list, nl_jinja_join, nl_jinja_sum, nl_jinja_extreme, nl_jinja_sort,
    nl_jinja_dictsort;
jinja_function nl_jinja_int, nl_jinja_float, nl_jinja_abs, nl_jinja_round; /* jinja_number.c */
/* jinja_text.c: of strings. nl_jinja_strip: which sides; nl_jinja_change_case: enum jinja_case */
enum jinja_side { JINJA_LEFT = 1, JINJA_RIGHT };
enum jinja_case { JINJA_LOWER, JINJA_UPPER, JINJA_CAPITALIZED };
jinja_function nl_jinja_strip, nl_jinja_replace, nl_jinja_change_case, nl_jinja_title, nl_jinja_splitlines;
bool nl_jinja_is_space(uint32_t c); /* Python's str.isspace */
/* Without `chars`, or white space if they are no string, at its sides (enum jinja_side). */
struct jv nl_jinja_strip_ends(struct jv text, struct jv chars, unsigned sides);

#endif
