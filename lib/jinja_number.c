/* Arithmetic, as Python's, in 64 bits: what does not fit is refused. */
#include <math.h>
#include <stdlib.h>

#include "jinja_value.h"
#include "locale_c.h"
#include "unicode.h"

static int too_big(struct nl_jinja_run *run)
{
    return run ? jinja_fail(run, NL_UNSUPPORTED, "an integer of more than 64 bits") : -1;
}

static int divide_by_zero(struct nl_jinja_run *run)
{
    return jinja_fail(run, NL_DATA, "division by zero");
}

static int int_power(struct nl_jinja_run *run, int64_t base, int64_t exponent, struct jv *out)
{
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0)
            return divide_by_zero(run);
        *out = jv_float(pow((double)base, (double)exponent));
        return 0;
    }
    while (exponent > 0) {
        if (exponent & 1 && __builtin_mul_overflow(result, base, &result))
            return too_big(run);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base))
            return too_big(run);
    }
    *out = jv_int(result);
    return 0;
}

/* Towards minus infinity. */
static int int_divide(struct nl_jinja_run *run, enum jinja_operator op, int64_t a, int64_t b, struct jv *out)
{
    enum { EXACT = 53 };
    if (b == 0)
        return divide_by_zero(run);
    if (op == JINJA_DIV) {
        int64_t most = (int64_t)1 << EXACT;
        if (a > most || a < -most || b > most || b < -most)
            return jinja_fail(run, NL_UNSUPPORTED, "a quotient of integers of more than 53 bits");
        *out = jv_float((double)a / (double)b);
        return 0;
    }
    if (a == INT64_MIN && b == -1)
        return op == JINJA_MOD ? (*out = jv_int(0), 0) : too_big(run);
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *out = jv_int(op == JINJA_MOD ? rest : quotient);
    return 0;
}

static int int_arithmetic(struct nl_jinja_run *run, enum jinja_operator op, int64_t a, int64_t b,
                          struct jv *out)
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
    case JINJA_POW:
        return int_power(run, a, b, out);
    default:
        return int_divide(run, op, a, b, out);
    }
    if (overflow)
        return too_big(run);
    *out = jv_int(result);
    return 0;
}

/* Quotient and rest as CPython's float_divmod makes them. */
static void float_divide(double a, double b, double *quotient, double *rest)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = copysign(0.0, b);
    }
    if (div != 0) {
        double whole = floor(div);
        *quotient = div - whole > 0.5 ? whole + 1 : whole;
    } else {
        *quotient = copysign(0.0, a / b);
    }
    *rest = mod;
}

static int float_power(struct nl_jinja_run *run, double a, double b, struct jv *out)
{
    if (a == 0 && b < 0)
        return divide_by_zero(run);
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return jinja_fail(run, NL_UNSUPPORTED, "a power that is a complex number");
    double result = pow(a, b);
    if (isinf(result) && isfinite(a) && isfinite(b))
        return jinja_fail(run, NL_DATA, "a number that is too large");
    *out = jv_float(result);
    return 0;
}

static int float_arithmetic(struct nl_jinja_run *run, enum jinja_operator op, double a, double b,
                            struct jv *out)
{
    double quotient, rest;
    if (op == JINJA_POW)
        return float_power(run, a, b, out);
    if (op >= JINJA_DIV && b == 0)
        return divide_by_zero(run);
    switch (op) {
    case JINJA_ADD:
        *out = jv_float(a + b);
        return 0;
    case JINJA_SUB:
        *out = jv_float(a - b);
        return 0;
    case JINJA_MUL:
        *out = jv_float(a * b);
        return 0;
    case JINJA_DIV:
        *out = jv_float(a / b);
        return 0;
    default:
        float_divide(a, b, &quotient, &rest);
        *out = jv_float(op == JINJA_MOD ? rest : quotient);
        return 0;
    }
}

static int repeat_text(struct nl_jinja_run *run, struct jv text, uint64_t times, struct jv *out)
{
    uint64_t size;
    if (!nl_mul(text.size, times, &size) || size > JINJA_MOST_OUTPUT)
        return jinja_fail(run, NL_DATA, "the template makes a string that is too long");
    char *made = nl_jinja_alloc(run, size ? (size_t)size : 1);
    if (!made || nl_jinja_charge(run, size / 64 + times) != 0)
        return -1;
    for (uint64_t i = 0; i < times && text.size; i++)
        memcpy(made + i * text.size, text.text, text.size);
    *out = jv_string(made, (size_t)size);
    out->safe = text.safe;
    return 0;
}

static int repeat(struct nl_jinja_run *run, struct jv value, int64_t times, struct jv *out)
{
    uint64_t n = times > 0 ? (uint64_t)times : 0;
    if (jv_is(value, JV_STRING))
        return repeat_text(run, value, value.size ? n : 0, out);
    struct jv_list *list = nl_jv_list_new(run, 0);
    if (!list)
        return -1;
    for (uint64_t i = 0; i < n && value.list->count; i++)
        for (size_t j = 0; j < value.list->count; j++)
            if (nl_jv_list_push(run, list, value.list->items[j]) != 0)
                return -1;
    *out = jv_of_list(list, value.kind);
    return 0;
}

static bool repeats(struct jv value)
{
    return jv_is(value, JV_STRING) || jv_is(value, JV_LIST) || jv_is(value, JV_TUPLE);
}

static int join_lists(struct nl_jinja_run *run, struct jv a, struct jv b, struct jv *out)
{
    size_t count = a.list->count + b.list->count;
    struct jv_list *list = nl_jv_list_new(run, count);
    if (!list || nl_jinja_charge(run, count) != 0)
        return -1;
    if (a.list->count)
        memcpy(list->items, a.list->items, a.list->count * sizeof *list->items);
    if (b.list->count)
        memcpy(list->items + a.list->count, b.list->items, b.list->count * sizeof *list->items);
    list->count = count;
    *out = jv_of_list(list, a.kind);
    return 0;
}

static int escape_html(struct nl_jinja_run *run, struct jv value, struct jv *out)
{
    if (value.safe) {
        *out = value;
        return 0;
    }
    const struct jinja_args none = {0};
    return nl_jinja_filter(run, jv_chars("escape"), value, &none, out);
}

/* What is marked as HTML escapes what it is joined to. */
static int add_strings(struct nl_jinja_run *run, struct jv a, struct jv b, struct jv *out)
{
    bool safe = a.safe || b.safe;
    if (safe && (escape_html(run, a, &a) != 0 || escape_html(run, b, &b) != 0))
        return -1;
    if (nl_jv_concat(run, a, b, out) != 0)
        return -1;
    out->safe = safe;
    return 0;
}

int nl_jv_arithmetic(struct nl_jinja_run *run, enum jinja_operator op, struct jv a, struct jv b,
                     struct jv *out)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (jv_is(a, JV_STRING) && op == JINJA_MOD)
        return nl_jinja_percent(run, a, b, out);
    if (jv_is(a, JV_UNDEFINED) || jv_is(b, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, jv_is(a, JV_UNDEFINED) ? a : b);
    if (jv_is_integral(a) && jv_is_integral(b))
        return int_arithmetic(run, op, a.integer, b.integer, out);
    if (jv_is_number(a) && jv_is_number(b))
        return float_arithmetic(run, op, jv_double(a), jv_double(b), out);
    if (op == JINJA_ADD && a.kind == b.kind && jv_is(a, JV_STRING))
        return add_strings(run, a, b, out);
    if (op == JINJA_ADD && a.kind == b.kind && (jv_is(a, JV_LIST) || jv_is(a, JV_TUPLE)))
        return join_lists(run, a, b, out);
    if (op == JINJA_MUL && repeats(a) && jv_is_integral(b))
        return repeat(run, a, b.integer, out);
    if (op == JINJA_MUL && repeats(b) && jv_is_integral(a))
        return repeat(run, b, a.integer, out);
    return jinja_fail(run, jv_is(a, JV_VIEW) || jv_is(b, JV_VIEW) ? NL_UNSUPPORTED : NL_DATA,
                      "'%s' of values of type %s and %s", names[op], nl_jv_type_name(a), nl_jv_type_name(b));
}

int nl_jv_negate(struct nl_jinja_run *run, struct jv value, struct jv *out)
{
    if (jv_is(value, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, value);
    if (jv_is(value, JV_FLOAT)) {
        *out = jv_float(-value.number);
        return 0;
    }
    if (!jv_is_integral(value))
        return jinja_fail(run, NL_DATA, "'-' of a value of type %s", nl_jv_type_name(value));
    return int_arithmetic(run, JINJA_SUB, 0, value.integer, out);
}

int nl_jv_to_int(struct nl_jinja_run *run, struct jv value, const char *what, int64_t *out)
{
    if (jv_is(value, JV_UNDEFINED))
        return nl_jv_fail_undefined(run, value);
    if (!jv_is_integral(value))
        return jinja_fail(run, NL_DATA, "%s takes an integer, not a value of type %s", what,
                          nl_jv_type_name(value));
    *out = value.integer;
    return 0;
}

int nl_jv_int_of_float(struct nl_jinja_run *run, double number, int64_t *out)
{
    if (isnan(number) || fabs(number) >= JINJA_INT64_END)
        return too_big(run);
    *out = (int64_t)number;
    return 0;
}

static struct jv trim(struct jv text)
{
    unsigned size;
    while (text.size && nl_jinja_is_space(nl_utf8_get(text.text, &size))) {
        text.text += size;
        text.size -= size;
    }
    while (text.size) {
        size_t last = nl_utf8_back(text.text, text.size);
        if (!nl_jinja_is_space(nl_utf8_get(text.text + last, &size)))
            break;
        text.size = (uint32_t)last;
    }
    return text;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
}

/* Skips what may stand before digits in base 0, 2, 8, 16; the base that it tells. */
static int take_prefix(struct jv *text, int base)
{
    char kind = text->size > 1 && text->text[0] == '0' ? (char)(text->text[1] | 32) : 0;
    int told = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (told && (base == 0 || base == told)) {
        text->text += 2;
        text->size -= 2;
        if (text->size && text->text[0] == '_') {
            text->text++;
            text->size--;
        }
        return told;
    }
    return base ? base : 10;
}

int nl_jv_parse_int(struct nl_jinja_run *run, struct jv text, int base, int64_t *out)
{
    int64_t value = 0;
    text = trim(text);
    bool negative = text.size && text.text[0] == '-', zeros = base == 0;
    if (text.size && (text.text[0] == '-' || text.text[0] == '+')) {
        text.text++;
        text.size--;
    }
    int told = take_prefix(&text, base);
    zeros = zeros && told == 10 && text.size > 1 && text.text[0] == '0';
    if (text.size == 0)
        return 0;
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.text[i] == '_' && i > 0 && i + 1 < text.size && text.text[i - 1] != '_')
            continue;
        int digit = digit_of(text.text[i]);
        if (digit >= told || (zeros && digit != 0))
            return (unsigned char)text.text[i] < 0x80 || !run
                       ? 0
                       : jinja_fail(run, NL_UNSUPPORTED, "a number with a character that is not ASCII");
        if (__builtin_mul_overflow(value, told, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return too_big(run);
    }
    *out = value;
    return 1;
}

bool nl_jv_parse_float(struct jv text, double *out)
{
    struct nl_buf digits = {0};
    text = trim(text);
    nl_buf_add(&digits, "", 0);
    bool good = text.size > 0, hexadecimal = false;
    for (uint32_t i = 0; i < text.size && good; i++) {
        char c = text.text[i];
        bool between =
            i > 0 && i + 1 < text.size && digit_of(text.text[i - 1]) < 10 && digit_of(text.text[i + 1]) < 10;
        if (c == '_' && between)
            continue;
        good =
            c != '\0' && c != '_' && c != '(' && (unsigned char)c < 0x80 && !nl_jinja_is_space((uint32_t)c);
        hexadecimal = hexadecimal || (c | 32) == 'x';
        nl_buf_putc(&digits, c);
    }
    good = good && !hexadecimal && !digits.failed;
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
