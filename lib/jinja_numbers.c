/* Filters that make numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_value.h"
#include "locale_c.h"

/* a: value, default, base */
int nl_jinja_int(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t base = 10, integer = 0;
    double number = 0;
    struct jv otherwise = jv_is(a[1], JV_MISSING) ? jv_int(0) : a[1];
    if (jv_is(a[0], JV_UNDEFINED))
        return nl_jv_fail_undefined(run, a[0]);
    if (!jv_is(a[2], JV_MISSING) && nl_jv_to_int(run, a[2], "a base", &base) != 0)
        return -1;
    if (base != 0 && (base < 2 || base > 36))
        return jinja_fail(run, NL_UNSUPPORTED, "'int' with such a base");
    int got = 0;
    if (jv_is_integral(a[0])) {
        integer = a[0].integer;
        got = 1;
    } else if (jv_is(a[0], JV_STRING)) {
        got = nl_jv_parse_int(run, a[0], (int)base, &integer);
        if (got == 0 && nl_jv_parse_float(a[0], &number) && isfinite(number))
            got = nl_jv_int_of_float(run, number, &integer) != 0 ? -1 : 1;
    } else if (jv_is(a[0], JV_FLOAT) && !isnan(a[0].number)) {
        if (isinf(a[0].number))
            return jinja_fail(run, NL_DATA, "'int' of an infinity");
        got = nl_jv_int_of_float(run, a[0].number, &integer) != 0 ? -1 : 1;
    }
    *out = got ? jv_int(integer) : otherwise;
    return got < 0 ? -1 : 0;
}

/* a: value, default */
int nl_jinja_float(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    double number = 0;
    if (jv_is(a[0], JV_UNDEFINED))
        return nl_jv_fail_undefined(run, a[0]);
    if (jv_is_number(a[0]))
        *out = jv_float(jv_double(a[0]));
    else if (jv_is(a[0], JV_STRING) && nl_jv_parse_float(a[0], &number))
        *out = jv_float(number);
    else
        *out = jv_is(a[1], JV_MISSING) ? jv_float(0) : a[1];
    return 0;
}

int nl_jinja_abs(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    if (!jv_is_number(a[0]))
        return jinja_fail(run, NL_DATA, "'abs' of a value of type %s", nl_jv_type_name(a[0]));
    if (jv_is(a[0], JV_FLOAT))
        *out = jv_float(fabs(a[0].number));
    else if (a[0].integer < 0)
        return nl_jv_negate(run, a[0], out);
    else
        *out = jv_int(a[0].integer);
    return 0;
}

/* Half to even, exactly, as Python does by way of the decimal digits. */
static int round_common(struct nl_jinja_run *run, struct jv value, int64_t precision, struct jv *out)
{
    enum { MOST = 300 };
    char digits[800];
    if (jv_is_integral(value) && precision >= 0) {
        *out = jv_int(value.integer);
        return 0;
    }
    if (precision < 0 || precision > MOST)
        return jinja_fail(run, NL_UNSUPPORTED, "'round' with such a precision");
    if (!isfinite(value.number)) {
        *out = value;
        return 0;
    }
    locale_t before = nl_locale_enter();
    snprintf(digits, sizeof digits, "%.*f", (int)precision, value.number);
    *out = jv_float(strtod(digits, NULL));
    nl_locale_leave(before);
    return 0;
}

static int round_to(struct nl_jinja_run *run, struct jv value, int64_t precision, bool up, struct jv *out)
{
    struct jv scale = {0}, scaled = {0};
    int64_t whole = 0;
    if (nl_jv_arithmetic(run, JINJA_POW, jv_int(10), jv_int(precision), &scale) != 0 ||
        nl_jv_arithmetic(run, JINJA_MUL, value, scale, &scaled) != 0)
        return -1;
    if (jv_is(scaled, JV_FLOAT) &&
        nl_jv_int_of_float(run, up ? ceil(scaled.number) : floor(scaled.number), &whole) != 0)
        return -1;
    return nl_jv_arithmetic(run, JINJA_DIV, jv_is(scaled, JV_FLOAT) ? jv_int(whole) : scaled, scale, out);
}

/* a: value, precision, method */
int nl_jinja_round(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t precision = 0;
    bool common = jv_is(a[2], JV_MISSING) || jv_text_is(a[2], "common"), up = jv_text_is(a[2], "ceil");
    if (!common && !up && !jv_text_is(a[2], "floor"))
        return jinja_fail(run, NL_DATA, "'round' takes 'common', 'ceil' or 'floor'");
    if (jv_is(a[1], JV_NONE))
        return jinja_fail(run, NL_UNSUPPORTED, "'round' with such a precision");
    if (!jv_is(a[1], JV_MISSING) && nl_jv_to_int(run, a[1], "'round'", &precision) != 0)
        return -1;
    if (!jv_is_number(a[0]))
        return jinja_fail(run, NL_DATA, "'round' of a value of type %s", nl_jv_type_name(a[0]));
    return common ? round_common(run, a[0], precision, out) : round_to(run, a[0], precision, up, out);
}
