/*
 * jinja_value.h: inside the template interpreter: values, and the run that owns them. Programs include
 * jinja.h.
 *
 * A value is 16 bytes and is passed by value; what it points to lies in the run's arena and is never freed
 * before the run is closed. Strings, lists, tuples and dicts do not change once a template sees them, as in
 * jinja2's sandbox; namespaces, iterators, cyclers and joiners do.
 *
 * Functions return 0, or -1 with run->error filled by jinja_fail, which adds the template's name and line.
 */
#ifndef NL_JINJA_VALUE_H
#define NL_JINJA_VALUE_H

#include "jinja.h"

enum jv_kind {
    JV_MISSING, /* no value: an unset variable, an argument not given */
    JV_UNDEFINED,
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_FLOAT,
    JV_STRING,
    JV_LIST,
    JV_TUPLE,
    JV_DICT,
    JV_VIEW, /* dict.keys(), .values(), .items() */
    JV_RANGE,
    JV_ITERATOR, /* Python's generators and iterators: read once */
    JV_NAMESPACE,
    JV_MACRO,
    JV_LOOP,
    JV_GLOBAL, /* a function such as range; integer: enum jinja_global */
    JV_METHOD, /* bound to its object */
    JV_CYCLER,
    JV_JOINER,
    JV_SLICE, /* only inside a subscript */
};

struct jv {
    uint8_t kind;
    bool safe;     /* JV_STRING: marked as HTML (markupsafe.Markup) */
    uint32_t size; /* JV_STRING: bytes */
    union {
        bool truth;
        int64_t integer;
        double number;
        const char *text; /* UTF-8, may hold NUL, not terminated */
        struct jv_list *list;
        struct jv_dict *dict; /* also of a namespace */
        struct jv_view *view;
        struct jv_range *range;
        struct jv_iterator *iterator;
        struct jv_undefined *undefined;
        struct jv_macro *macro;
        struct jv_loop *loop;
        struct jv_method *method;
        struct jv_cycle *cycle; /* of cyclers and joiners */
        struct jv_slice *slice;
    };
};

struct jv_list {
    struct jv *items;
    size_t count, capacity;
};

struct jv_entry {
    struct jv key, value;
    uint64_t hash;
};
struct jv_dict {
    struct jv_entry *entries; /* in the order they came */
    size_t count, capacity;
    uint32_t *table; /* [table_size]: index + 1 of an entry, 0: free; NULL while the dict is small */
    size_t table_size;
};

enum jv_view_of { JV_KEYS, JV_VALUES, JV_ITEMS };
struct jv_view {
    struct jv_dict *dict;
    enum jv_view_of of;
};

struct jv_range {
    int64_t start, stop, step, count;
};

struct jv_slice {
    struct jv start, stop, step; /* JV_NONE: not given */
};

struct jv_undefined {
    const char *hint; /* the message, or NULL: made of the rest */
    struct jv object; /* what lacks the name; JV_MISSING: it is a variable */
    struct jv name;
};

struct jv_method {
    struct jv object;
    unsigned id; /* in the table of its type */
};

struct jv_cycle {
    struct jv_list *items; /* a joiner's: the separator */
    size_t at;
};

/* Where a function's variables lie; inner functions reach those of the outer ones. */
struct jinja_activation {
    struct jv *slots;
    struct jinja_activation *outer;
};

struct jv_macro {
    const struct jn *node; /* JN_MACRO or JN_CALLBLOCK */
    struct jinja_activation *outer;
};

/* What is called with: the value before a filter or test comes first. */
struct jinja_args {
    struct jv *values;
    size_t count;
    struct jinja_named {
        struct jv name, value;
    } * named;
    size_t n_named;
};

enum {
    JINJA_MOST_SOURCE = 1 << 20, /* bytes of a template */
    JINJA_MOST_OUTPUT = 256 << 20,
    JINJA_MOST_NESTING = 300, /* of a template's parts, of values */
    JINJA_MOST_DEPTH = 900,   /* of the evaluation: a call of a macro takes about six */
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
    const struct nl_jinja *template;
    struct nl_error *error;
    struct jinja_arena arena;
    struct jv_dict *variables;
    struct nl_buf *out; /* what is printed goes here */
    uint64_t steps;
    unsigned depth, line;
    const char *tip; /* behind the last long string, where `tip_room` bytes may be appended to it */
    size_t tip_room;
    time_t now;
    bool has_now;
};

void nl_jinja_set_error(struct nl_jinja_run *, enum nl_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define jinja_fail(...) (nl_jinja_set_error(__VA_ARGS__), nl_failed())
int nl_jinja_too_long(struct nl_jinja_run *); /* -1: too many steps */
/* Counts work; -1 when there was too much. */
static inline int nl_jinja_charge(struct nl_jinja_run *run, uint64_t steps)
{
    run->steps += steps;
    return run->steps > JINJA_MOST_STEPS ? nl_jinja_too_long(run) : 0;
}

/* The same for a search of `part` bytes among `size`: that of one byte is faster. */
static inline int nl_jinja_charge_search(struct nl_jinja_run *run, uint64_t size, uint64_t part)
{
    return nl_jinja_charge(run, 1 + size / (part > 1 ? 16 : 64));
}

/* jinja_value.c */
void *nl_jinja_alloc(struct nl_jinja_run *, size_t size); /* zeroed; NULL with the error filled */
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
static inline bool jv_is(struct jv value, enum jv_kind kind)
{
    return value.kind == kind;
}
static inline bool jv_is_integral(struct jv value) /* Python's int, which bool is a kind of */
{
    return value.kind == JV_INT || value.kind == JV_BOOL;
}
static inline bool jv_is_number(struct jv value)
{
    return jv_is_integral(value) || value.kind == JV_FLOAT;
}
static inline double jv_double(struct jv value) /* of a number */
{
    return value.kind == JV_FLOAT ? value.number : (double)value.integer;
}
static inline bool jv_text_is(struct jv value, const char *text)
{
    return value.kind == JV_STRING && value.size == strlen(text) && memcmp(value.text, text, value.size) == 0;
}
int nl_jv_copy(struct nl_jinja_run *, const char *text, size_t size, struct jv *out);
/* A string of what was gathered; frees the buffer in any case. `result`: of the gathering. */
int nl_jv_take(struct nl_jinja_run *, struct nl_buf *, int result, struct jv *out);
int nl_jv_concat(struct nl_jinja_run *, struct jv left, struct jv right, struct jv *out); /* of strings */
struct jv_list *nl_jv_list_new(struct nl_jinja_run *, size_t capacity);
int nl_jv_list_push(struct nl_jinja_run *, struct jv_list *, struct jv);
int nl_jv_pair(struct nl_jinja_run *, struct jv first, struct jv second, struct jv *out); /* a tuple */
struct jv_dict *nl_jv_dict_new(struct nl_jinja_run *);
/* Replaces or appends; -1 for a key that cannot be hashed. */
int nl_jv_dict_set(struct nl_jinja_run *, struct jv_dict *, struct jv key, struct jv value);
/* 1, 0 when there is none, -1. *out is left alone but for 1. */
int nl_jv_dict_get(struct nl_jinja_run *, const struct jv_dict *, struct jv key, struct jv *out);
int nl_jv_undefined(struct nl_jinja_run *, struct jv object, struct jv name, struct jv *out);
int nl_jv_undefined_hint(struct nl_jinja_run *, const char *hint, struct jv *out);
int nl_jv_fail_undefined(struct nl_jinja_run *, struct jv undefined); /* -1, always */
const char *nl_jv_type_name(struct jv);                               /* Python's: "str" */

/* jinja_compare.c */
int nl_jv_truth(struct nl_jinja_run *, struct jv, bool *out);
int nl_jv_equal(struct nl_jinja_run *, struct jv, struct jv, bool *out);
/* *out < 0, 0, > 0; -1: the types have no order. With NaN *unordered. */
int nl_jv_order(struct nl_jinja_run *, struct jv, struct jv, int *out, bool *unordered);
int nl_jv_hash(struct nl_jinja_run *, struct jv, uint64_t *out);
int nl_jv_contains(struct nl_jinja_run *, struct jv container, struct jv value, bool *out);
int nl_jv_length(struct nl_jinja_run *, struct jv, int64_t *out);

/* jinja_number.c */
enum jinja_operator { JINJA_ADD, JINJA_SUB, JINJA_MUL, JINJA_DIV, JINJA_FLOORDIV, JINJA_MOD, JINJA_POW };
int nl_jv_arithmetic(struct nl_jinja_run *, enum jinja_operator, struct jv, struct jv, struct jv *out);
int nl_jv_negate(struct nl_jinja_run *, struct jv, struct jv *out);
/* An integer or an error that names `what`. */
int nl_jv_to_int(struct nl_jinja_run *, struct jv, const char *what, int64_t *out);
/* Python's int() and float() of text: 1, 0 when it is none, -1 when it does not fit. */
int nl_jv_parse_int(struct nl_jinja_run *, struct jv text, int base, int64_t *out);
bool nl_jv_parse_float(struct jv text, double *out);
int nl_jv_int_of_float(struct nl_jinja_run *, double, int64_t *out); /* truncates */

/* jinja_print.c */
int nl_jv_str(struct nl_jinja_run *, struct jv, struct nl_buf *out);   /* Python's str() */
int nl_jv_repr(struct nl_jinja_run *, struct jv, struct nl_buf *out);  /* and repr() */
int nl_jv_to_string(struct nl_jinja_run *, struct jv, struct jv *out); /* str() as a value */
void nl_jv_print_float(double, struct nl_buf *out);
struct jinja_json_style {
    bool ascii, sort_keys, has_indent;
    struct jv indent; /* a string */
    struct jv comma, colon;
};
int nl_jv_json(struct nl_jinja_run *, struct jv, const struct jinja_json_style *, struct nl_buf *out);
/* jinja_json.c */
int nl_jv_parse_json(struct nl_jinja_run *, const char *text, size_t size, const char *name, struct jv *out);

/* jinja_iterate.c: what `for` walks over. */
struct jv_iterator *nl_jv_iterate(struct nl_jinja_run *, struct jv);         /* NULL: cannot be iterated */
int nl_jv_next(struct nl_jinja_run *, struct jv_iterator *, struct jv *out); /* 1, 0 at the end, -1 */
/* The rest of it, or the items of any iterable, in a list. */
struct jv_list *nl_jv_gather(struct nl_jinja_run *, struct jv iterable);
bool nl_jv_is_iterable(struct jv);
/* A generator: `step` makes the next value of what is walked over. */
struct jinja_generator {
    int (*step)(struct nl_jinja_run *, struct jinja_generator *, struct jv *out); /* 1, 0, -1 */
    struct jv over;
    struct jv_iterator *source; /* of it, once the first value was asked for */
    bool started, reject;
    struct jv name, attribute, otherwise; /* what the filter or test is called, and its arguments */
    struct jinja_args args;
    struct jv_dict *seen;
    int64_t size, at;
    const struct jn *node; /* a loop with a test */
    struct jinja_activation *activation;
};
int nl_jv_generator(struct nl_jinja_run *, const struct jinja_generator *, struct jv *out);
/* A loop's iterator with the sight of one value ahead. */
struct jv_loop {
    struct jv iterable;
    struct jv_iterator *iterator;
    int64_t index0, length; /* length: -1: not asked for yet */
    bool has_after, ended;
    struct jv after, current, before;
    struct jv changed; /* the arguments of the last changed() */
};
int nl_jv_loop_next(struct nl_jinja_run *, struct jv_loop *, struct jv *out);                /* 1, 0, -1 */
int nl_jv_loop_get(struct nl_jinja_run *, struct jv_loop *, struct jv name, struct jv *out); /* 1, 0, -1 */
int nl_jv_loop_call(struct nl_jinja_run *, struct jv_method *, const struct jinja_args *, struct jv *out);

/* jinja_access.c */
int nl_jv_getattr(struct nl_jinja_run *, struct jv object, struct jv name, struct jv *out);
int nl_jv_getitem(struct nl_jinja_run *, struct jv object, struct jv key, struct jv *out);
/* The path of an `attribute` argument: names and numbers between points. */
int nl_jv_get_path(struct nl_jinja_run *, struct jv object, struct jv path, struct jv otherwise,
                   struct jv *out);

/* jinja_methods.c, jinja_strings.c */
/* 1 and the bound method, 0 when the type has no such method, -1. */
int nl_jv_method(struct nl_jinja_run *, struct jv object, struct jv name, struct jv *out);
int nl_jv_call_method(struct nl_jinja_run *, struct jv method, const struct jinja_args *, struct jv *out);
/* `a` holds what was bound: the string itself first. */
typedef int jinja_function(struct nl_jinja_run *, struct jv *a, struct jv *out);
struct jinja_builtin {
    const char *name;
    jinja_function *function; /* NULL: known but not supported */
    const char *parameters;   /* names after the first, separated by blanks; "*": the arguments as they are */
    unsigned required;        /* of them */
};
enum { JINJA_MOST_PARAMETERS = 8 };
/* Puts the arguments where the names say, JV_MISSING where there is none. `self`: what comes first. */
int nl_jinja_bind(struct nl_jinja_run *, const struct jinja_builtin *, struct jv self,
                  const struct jinja_args *, struct jv a[1 + JINJA_MOST_PARAMETERS]);
extern const struct jinja_builtin nl_jinja_string_methods[];
int nl_jinja_format(struct nl_jinja_run *, struct jv format, const struct jinja_args *, struct jv *out);
int nl_jinja_percent(struct nl_jinja_run *, struct jv format, struct jv value, struct jv *out);
jinja_function nl_jinja_strip, nl_jinja_replace, nl_jinja_upper, nl_jinja_lower, nl_jinja_capitalize,
    nl_jinja_title, nl_jinja_center, nl_jinja_ljust, nl_jinja_rjust, nl_jinja_zfill, nl_jinja_isalnum,
    nl_jinja_isalpha, nl_jinja_isascii, nl_jinja_isdecimal, nl_jinja_isdigit, nl_jinja_islower,
    nl_jinja_isnumeric, nl_jinja_isspace, nl_jinja_isupper, nl_jinja_split, nl_jinja_rsplit,
    nl_jinja_splitlines, nl_jinja_rstrip;
bool nl_jinja_is_space(uint32_t c); /* Python's str.isspace */
/* The value is a string, or an error that names the method; an integer argument that may be missing. */
int nl_jinja_want_text(struct nl_jinja_run *, struct jv value, const char *method);
int nl_jinja_optional_int(struct nl_jinja_run *, struct jv value, const char *what, int64_t otherwise,
                          int64_t *out);
/* Where `part`, which is not empty, is last in text[0, to); NULL when it is not. Charge first: each place is
   compared. */
const char *nl_jinja_find_last(struct jv text, size_t to, struct jv part);
int nl_jinja_charge_last(struct nl_jinja_run *, struct jv text, struct jv part);
/* Appends one character or its upper, lower, title case; -1: its case is several characters. */
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE };
int nl_jinja_put_case(struct nl_jinja_run *, uint32_t c, enum jinja_case, struct nl_buf *out);
int nl_jinja_case_test(struct nl_jinja_run *, struct jv text, bool upper, bool *out); /* isupper, islower */

/* jinja_filters.c, jinja_lists.c, jinja_lazy.c, jinja_tests.c */
bool nl_jinja_has_filter(struct jv name); /* one that jinja2 has, supported or not */
bool nl_jinja_has_test(struct jv name);
int nl_jinja_filter(struct nl_jinja_run *, struct jv name, struct jv value, const struct jinja_args *,
                    struct jv *out);
int nl_jinja_test(struct nl_jinja_run *, struct jv name, struct jv value, const struct jinja_args *,
                  bool *out);
/* map, select, reject, selectattr, rejectattr */
int nl_jinja_lazy_filter(struct nl_jinja_run *, struct jv name, struct jv value, const struct jinja_args *,
                         struct jv *out);
jinja_function nl_jinja_batch, nl_jinja_slice, nl_jinja_unique, nl_jinja_items; /* jinja_lazy.c */
jinja_function nl_jinja_first, nl_jinja_last, nl_jinja_reverse, nl_jinja_list, nl_jinja_join, nl_jinja_sum,
    nl_jinja_min, nl_jinja_max, nl_jinja_sort, nl_jinja_dictsort;          /* jinja_lists.c */
jinja_function nl_jinja_int, nl_jinja_float, nl_jinja_abs, nl_jinja_round; /* jinja_numbers.c */
/* The lower case of a string unless case counts; other values as they are. */
int nl_jinja_fold(struct nl_jinja_run *, struct jv value, struct jv case_sensitive, struct jv *out);

/* jinja_globals.c */
enum jinja_global {
    JINJA_RANGE,
    JINJA_DICT,
    JINJA_NAMESPACE,
    JINJA_RAISE,
    JINJA_STRFTIME,
    JINJA_CYCLER,
    JINJA_JOINER,
    JINJA_LIPSUM
};
bool nl_jinja_find_global(struct jv name, struct jv *out);
int nl_jinja_call_global(struct nl_jinja_run *, enum jinja_global, const struct jinja_args *, struct jv *out);
int nl_jinja_set_attribute(struct nl_jinja_run *, struct jv space, struct jv name, struct jv value);

/* jinja_call.c */
int nl_jinja_call(struct nl_jinja_run *, struct jv callee, const struct jinja_args *, struct jv *out);

#endif
