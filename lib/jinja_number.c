/* Arithmetic, as Python's, in 64 bits: what does not fit is refused. The filters that make numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_value.h"
#include "locale_c.h"
#include "unicode.h"

static struct jv too_big(struct nl_jinja_run *run)
{
    return nl_jinja_fail(run, NL_UNSUPPORTED, "an integer of more than 64 bits");
}

/* Not finite: jinja2 cannot compile such constants, and NaN is equal to itself in Python's lists. */
static struct jv finite_float(struct nl_jinja_run *run, double number)
{
    if (!isfinite(number))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "a number that is infinite, or none");
    return jv_float(number);
}

/* jinja2 writes a negative constant into Python code without brackets, so that -3 ** x is -(3 ** x) there. */
static struct jv power(struct nl_jinja_run *run, struct jv a, struct jv b)
{
    int64_t result = 1, base = a.integer;
    if (jv_double(a) <= 0)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "a power of a number that is not positive");
    if (!jv_is_integral(a) || !jv_is_integral(b) || b.integer < 0)
        return finite_float(run, pow(jv_double(a), jv_double(b)));
    for (int64_t exponent = b.integer; exponent > 0; exponent >>= 1) {
        if ((exponent & 1 && __builtin_mul_overflow(result, base, &result)) ||
            (exponent > 1 && __builtin_mul_overflow(base, base, &base)))
            return too_big(run);
    }
    return jv_int(result);
}

/* Towards minus infinity. */
static struct jv int_divide(struct nl_jinja_run *run, enum jinja_operator op, int64_t a, int64_t b)
{
    const int64_t exact = (int64_t)1 << 53;
    if (b == 0)
        return nl_jinja_fail(run, NL_DATA, "division by zero");
    if (op == JINJA_DIV && (a > exact || a < -exact || b > exact || b < -exact))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "a quotient of integers of more than 53 bits");
    if (op == JINJA_DIV)
        return jv_float((double)a / (double)b);
    if (a == INT64_MIN && b == -1)
        return op == JINJA_MOD ? jv_int(0) : too_big(run);
    int64_t quotient = a / b, remainder = a % b;
    if (remainder != 0 && (remainder < 0) != (b < 0)) {
        quotient--;
        remainder += b;
    }
    return jv_int(op == JINJA_MOD ? remainder : quotient);
}

static struct jv int_arithmetic(struct nl_jinja_run *run, enum jinja_operator op, int64_t a, int64_t b)
{
    int64_t result;
    bool overflow;
    switch (op) {
    case JINJA_ADD:
        overflow = __builtin_add_overflow(a, b, &result);
        break;
    case JINJA_SUB:
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
    case JINJA_MUL:
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
    default:
        return int_divide(run, op, a, b);
    }
    return overflow ? too_big(run) : jv_int(result);
}

/* Quotient or remainder as CPython's float_divmod makes them. */
static double float_divide(enum jinja_operator op, double a, double b)
{
    double remainder = fmod(a, b), quotient = (a - remainder) / b;
    if (remainder == 0) {
        remainder = copysign(0.0, b);
    } else if ((b < 0) != (remainder < 0)) {
        remainder += b;
        quotient -= 1;
    }
    if (op == JINJA_MOD)
        return remainder;
    if (quotient == 0)
        return copysign(0.0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static struct jv float_arithmetic(struct nl_jinja_run *run, enum jinja_operator op, double a, double b)
{
    switch (op) {
    case JINJA_ADD:
        return finite_float(run, a + b);
    case JINJA_SUB:
        return finite_float(run, a - b);
    case JINJA_MUL:
        return finite_float(run, a * b);
    default:
        if (b == 0)
            return nl_jinja_fail(run, NL_DATA, "division by zero");
        return finite_float(run, op == JINJA_DIV ? a / b : float_divide(op, a, b));
    }
}

static struct jv repeat(struct nl_jinja_run *run, struct jv value, int64_t times)
{
    struct nl_buf made = {0};
    if (jv_is(value, JV_STRING)) {
        for (int64_t i = 0; value.size && i < times && nl_jinja_put(run, &made, value); i++)
            ;
        return nl_jv_take(run, &made);
    }
    struct jv_list *list = nl_jv_list_new(run, 0);
    for (int64_t i = 0; value.list->count && i < times && !run->failed; i++)
        for (size_t j = 0; j < value.list->count && !run->failed; j++)
            nl_jv_push(run, list, value.list->items[j]);
    return jv_of_list(list, value.kind);
}

static struct jv join_lists(struct nl_jinja_run *run, struct jv a, struct jv b)
{
    struct jv_list *list = nl_jv_list_new(run, a.list->count + b.list->count);
    for (size_t i = 0; i < a.list->count && !run->failed; i++)
        nl_jv_push(run, list, a.list->items[i]);
    for (size_t i = 0; i < b.list->count && !run->failed; i++)
        nl_jv_push(run, list, b.list->items[i]);
    return jv_of_list(list, a.kind);
}

static struct jv escape_html(struct nl_jinja_run *run, struct jv text)
{
    static const char plain[] = "&<>'\"", *const escaped[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    struct nl_buf made = {0};
    nl_jinja_charge(run, 1 + text.size / 4);
    for (uint32_t i = 0; i < text.size && !run->failed; i++) {
        const char *found = text.text[i] ? strchr(plain, text.text[i]) : NULL;
        nl_buf_add(&made, found ? escaped[found - plain] : text.text + i,
                   found ? strlen(escaped[found - plain]) : 1);
    }
    return nl_jv_take(run, &made);
}

/* What is marked as HTML escapes what it is joined to. */
static struct jv add_texts(struct nl_jinja_run *run, struct jv a, struct jv b)
{
    bool safe = a.safe || b.safe;
    struct jv text = nl_jv_concat(run, safe && !a.safe ? escape_html(run, a) : a,
                                  safe && !b.safe ? escape_html(run, b) : b);
    text.safe = safe;
    return text;
}

struct jv nl_jv_arithmetic(struct nl_jinja_run *run, enum jinja_operator op, struct jv a, struct jv b)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (jv_is(a, JV_STRING) && op == JINJA_MOD)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'%%' of a string");
    if (jv_is(a, JV_UNDEFINED) || jv_is(b, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, jv_is(a, JV_UNDEFINED) ? a : b);
    if ((a.safe || b.safe) && (op != JINJA_ADD || !jv_is(a, JV_STRING) || !jv_is(b, JV_STRING)))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'%s' of a string marked as safe", names[op]);
    if (op == JINJA_POW && jv_is_number(a) && jv_is_number(b))
        return power(run, a, b);
    if (jv_is_integral(a) && jv_is_integral(b))
        return int_arithmetic(run, op, a.integer, b.integer);
    if (jv_is_number(a) && jv_is_number(b))
        return float_arithmetic(run, op, jv_double(a), jv_double(b));
    if (op == JINJA_ADD && a.kind == b.kind && jv_is(a, JV_STRING))
        return add_texts(run, a, b);
    if (op == JINJA_ADD && a.kind == b.kind && jv_is_sequence(a))
        return join_lists(run, a, b);
    if (op == JINJA_MUL && jv_is_integral(a))
        return nl_jv_arithmetic(run, op, b, a);
    if (op == JINJA_MUL && (jv_is(a, JV_STRING) || jv_is_sequence(a)) && jv_is_integral(b))
        return repeat(run, a, b.integer);
    /* views and dicts know "-" and "|" as sets do */
    return nl_jinja_fail(run, jv_is(a, JV_VIEW) || jv_is(b, JV_VIEW) ? NL_UNSUPPORTED : NL_DATA,
                         "'%s' of values of type %s and %s", names[op], nl_jv_type_name(a),
                         nl_jv_type_name(b));
}

struct jv nl_jv_negate(struct nl_jinja_run *run, struct jv value)
{
    if (jv_is(value, JV_FLOAT))
        return jv_float(-value.number);
    if (!jv_is_integral(value))
        return nl_jinja_fail_type(run, "'-'", value);
    return int_arithmetic(run, JINJA_SUB, 0, value.integer);
}

int64_t nl_jv_to_int(struct nl_jinja_run *run, struct jv value, const char *what, int64_t otherwise)
{
    if (jv_is(value, JV_MISSING))
        return otherwise;
    if (jv_is(value, JV_UNDEFINED))
        nl_jv_fail_undefined(run, value);
    else if (!jv_is_integral(value))
        nl_jinja_fail(run, NL_DATA, "%s takes an integer, not a value of type %s", what,
                      nl_jv_type_name(value));
    return jv_is_integral(value) ? value.integer : otherwise;
}

static struct jv int_of_float(struct nl_jinja_run *run, double number)
{
    if (fabs(number) >= JINJA_INT64_END)
        return too_big(run);
    return jv_int((int64_t)number);
}

int nl_jinja_digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
}

int nl_jv_parse_int(struct nl_jinja_run *run, struct jv text, int base, int64_t *out)
{
    int64_t value = 0;
    text = nl_jinja_strip_ends(text, jv_missing(), JINJA_LEFT | JINJA_RIGHT);
    bool negative = text.size && text.text[0] == '-';
    if (text.size && (text.text[0] == '-' || text.text[0] == '+'))
        text = jv_part(text, 1, text.size);
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.text[i] == '_' && i > 0 && i + 1 < text.size && text.text[i - 1] != '_')
            continue;
        int digit = nl_jinja_digit(text.text[i]);
        if (run && (unsigned char)text.text[i] >= 0x80)
            nl_jinja_fail(run, NL_UNSUPPORTED, "a number with a character that is not ASCII");
        if (digit >= base)
            return run && run->failed ? -1 : 0;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value)) {
            if (run)
                too_big(run);
            return -1;
        }
    }
    *out = value;
    return text.size > 0;
}

bool nl_jv_parse_float(struct nl_jinja_run *run, struct jv text, double *out)
{
    struct nl_buf digits = {0};
    text = nl_jinja_strip_ends(text, jv_missing(), JINJA_LEFT | JINJA_RIGHT);
    bool good = text.size > 0;
    for (uint32_t i = 0; i < text.size && good; i++) {
        char c = text.text[i];
        if (c == '_' && i > 0 && i + 1 < text.size && nl_jinja_digit(text.text[i - 1]) < 10 &&
            nl_jinja_digit(text.text[i + 1]) < 10)
            continue;
        if (run && (unsigned char)c >= 0x80)
            nl_jinja_fail(run, NL_UNSUPPORTED, "a number with a character that is not ASCII");
        /* what strtod knows and Python does not: hexadecimal, "nan(...)", white space */
        good = c > ' ' && c < 0x7f && !strchr("_(xX", c);
        nl_buf_putc(&digits, c);
    }
    good = good && !digits.failed;
    if (good) {
        char *end;
        locale_t before = nl_locale_enter();
        *out = strtod(digits.data, &end);
        nl_locale_leave(before);
        good = *end == '\0' && end != digits.data;
    }
    nl_buf_free(&digits);
    return good;
}

/* a: value, default, base */
struct jv nl_jinja_int(struct nl_jinja_run *run, struct jv *a)
{
    int64_t integer = 0;
    double number = 0;
    if (!jv_is(a[2], JV_MISSING) && (!jv_is(a[2], JV_INT) || a[2].integer != 10))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'int' with a base");
    if (jv_is(a[0], JV_UNDEFINED))
        return nl_jv_fail_undefined(run, a[0]);
    if (jv_is_integral(a[0]))
        return jv_int(a[0].integer);
    if (jv_is(a[0], JV_FLOAT))
        return int_of_float(run, a[0].number);
    if (jv_is(a[0], JV_STRING) && nl_jv_parse_int(run, a[0], 10, &integer) != 0)
        return jv_int(integer);
    if (jv_is(a[0], JV_STRING) && nl_jv_parse_float(run, a[0], &number) && isfinite(number))
        return int_of_float(run, number);
    return jv_is(a[1], JV_MISSING) ? jv_int(0) : a[1];
}

/* a: value, default */
struct jv nl_jinja_float(struct nl_jinja_run *run, struct jv *a)
{
    double number = 0;
    if (jv_is(a[0], JV_UNDEFINED))
        return nl_jv_fail_undefined(run, a[0]);
    if (jv_is_number(a[0]))
        return jv_float(jv_double(a[0]));
    if (jv_is(a[0], JV_STRING) && nl_jv_parse_float(run, a[0], &number))
        return finite_float(run, number);
    return jv_is(a[1], JV_MISSING) ? jv_float(0) : a[1];
}

struct jv nl_jinja_abs(struct nl_jinja_run *run, struct jv *a)
{
    if (jv_is(a[0], JV_FLOAT))
        return jv_float(fabs(a[0].number));
    if (!jv_is_integral(a[0]))
        return nl_jinja_fail_type(run, "'abs'", a[0]);
    return a[0].integer < 0 ? nl_jv_negate(run, a[0]) : jv_int(a[0].integer);
}

/* Half to even, exactly, as Python does by way of the decimal digits. */
static struct jv round_common(struct nl_jinja_run *run, struct jv value, int64_t precision)
{
    enum { MOST = 300 };
    char digits[800];
    if (precision < 0 || precision > MOST)
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'round' with such a precision");
    if (jv_is_integral(value))
        return jv_int(value.integer);
    locale_t before = nl_locale_enter();
    snprintf(digits, sizeof digits, "%.*f", (int)precision, value.number);
    double rounded = strtod(digits, NULL);
    nl_locale_leave(before);
    return jv_float(rounded);
}

/* a: value, precision, method */
struct jv nl_jinja_round(struct nl_jinja_run *run, struct jv *a)
{
    bool up = jv_text_is(a[2], "ceil");
    if (!jv_is_number(a[0]))
        return nl_jinja_fail_type(run, "'round'", a[0]);
    if (jv_is(a[1], JV_NONE))
        return nl_jinja_fail(run, NL_UNSUPPORTED, "'round' with such a precision");
    int64_t precision = nl_jv_to_int(run, a[1], "'round'", 0);
    if (jv_is(a[2], JV_MISSING) || jv_text_is(a[2], "common"))
        return round_common(run, a[0], precision);
    if (!up && !jv_text_is(a[2], "floor"))
        return nl_jinja_fail(run, NL_DATA, "'round' takes 'common', 'ceil' or 'floor'");
    struct jv scale = nl_jv_arithmetic(run, JINJA_POW, jv_int(10), jv_int(precision));
    struct jv scaled = nl_jv_arithmetic(run, JINJA_MUL, a[0], scale);
    if (jv_is(scaled, JV_FLOAT))
        scaled = int_of_float(run, up ? ceil(scaled.number) : floor(scaled.number));
    return nl_jv_arithmetic(run, JINJA_DIV, scaled, scale);
}
