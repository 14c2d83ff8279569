/* "%s" % value, "..."|format(...) and "{}".format(...), the plain cases of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_value.h"
#include "locale_c.h"
#include "unicode.h"

struct format {
    struct nl_jinja_run *run;
    struct jv text;
    size_t at;
    struct jv values; /* a tuple, or one value */
    size_t used;
    struct nl_buf out;
};

/* %[flags][width][.precision]kind */
struct conversion {
    char flags[8];
    int width, precision; /* -1: none */
    char kind;
};

static int next_value(struct format *format, struct jv *out)
{
    bool tuple = jv_is(format->values, JV_TUPLE);
    size_t count = tuple ? format->values.list->count : 1;
    if (format->used == count)
        return jinja_fail(format->run, NL_DATA, "not enough arguments for a format string");
    *out = tuple ? format->values.list->items[format->used] : format->values;
    format->used++;
    return 0;
}

static int read_number(struct format *format)
{
    enum { MOST = 1000 };
    int number = -1;
    while (format->at < format->text.size && format->text.text[format->at] >= '0' &&
           format->text.text[format->at] <= '9' && number <= MOST) {
        number = (number < 0 ? 0 : 10 * number) + (format->text.text[format->at] - '0');
        format->at++;
    }
    return number;
}

static int read_conversion(struct format *format, struct conversion *conversion)
{
    struct jv text = format->text;
    size_t n = 0;
    *conversion = (struct conversion){.precision = -1};
    while (format->at < text.size && text.text[format->at] && strchr("-+ #0", text.text[format->at]) && n < 5)
        conversion->flags[n++] = text.text[format->at++];
    conversion->width = read_number(format);
    if (format->at < text.size && text.text[format->at] == '.') {
        format->at++;
        conversion->precision = read_number(format);
        if (conversion->precision < 0)
            conversion->precision = 0;
    }
    if (format->at == text.size)
        return jinja_fail(format->run, NL_DATA, "a format string that ends in '%%'");
    conversion->kind = text.text[format->at++];
    if (conversion->width > 1000 || conversion->precision > 1000 ||
        !strchr("sridufFeEgGxXo%", conversion->kind))
        return jinja_fail(format->run, NL_UNSUPPORTED, "a conversion of a format string");
    return 0;
}

/* Pads text of `length` characters. */
static void put_padded(struct format *format, const struct conversion *conversion, const char *text,
                       size_t size, size_t length)
{
    size_t width = conversion->width > 0 ? (size_t)conversion->width : 0;
    bool left = strchr(conversion->flags, '-');
    for (size_t i = length; i < width && !left; i++)
        nl_buf_putc(&format->out, ' ');
    nl_buf_add(&format->out, text, size);
    for (size_t i = length; i < width && left; i++)
        nl_buf_putc(&format->out, ' ');
}

static int put_text(struct format *format, const struct conversion *conversion, struct jv value)
{
    struct nl_buf text = {0};
    int result = conversion->kind == 'r' ? nl_jv_repr(format->run, value, &text)
                                         : nl_jv_str(format->run, value, &text);
    size_t length = 0, size = 0;
    while (size < text.size && (conversion->precision < 0 || length < (size_t)conversion->precision)) {
        size += nl_utf8_size((unsigned char)text.data[size]);
        length++;
    }
    if (result == 0)
        put_padded(format, conversion, text.data, size, length);
    nl_buf_free(&text);
    return result;
}

static int put_number(struct format *format, const struct conversion *conversion, struct jv value)
{
    char pattern[32], made[1400];
    bool whole = strchr("diuxXo", conversion->kind), hexadecimal = strchr("xXo", conversion->kind);
    int64_t integer = value.integer;
    if (jv_is(value, JV_UNDEFINED))
        return nl_jv_fail_undefined(format->run, value);
    if (!jv_is_number(value) || (hexadecimal && !jv_is_integral(value)))
        return jinja_fail(format->run, NL_DATA, "a format string wants a number, not a value of type %s",
                          nl_jv_type_name(value));
    if (whole && jv_is(value, JV_FLOAT) && nl_jv_int_of_float(format->run, value.number, &integer) != 0)
        return -1;
    if ((hexadecimal && integer < 0) || (whole && conversion->precision >= 0) ||
        strchr(conversion->flags, '#') || (!whole && !isfinite(jv_double(value))))
        return jinja_fail(format->run, NL_UNSUPPORTED, "a conversion of a format string");
    const char *length = whole ? "ll" : "";
    char kind = conversion->kind == 'u' ? 'd' : conversion->kind;
    snprintf(pattern, sizeof pattern, "%%%s*.*%s%c", conversion->flags, length, kind);
    int width = conversion->width < 0 ? 0 : conversion->width;
    locale_t before = nl_locale_enter();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (whole)
        snprintf(made, sizeof made, pattern, width, -1, (long long)integer);
    else
        snprintf(made, sizeof made, pattern, width, conversion->precision, jv_double(value));
#pragma GCC diagnostic pop
    nl_locale_leave(before);
    nl_buf_puts(&format->out, made);
    return 0;
}

static int put_conversion(struct format *format)
{
    struct conversion conversion;
    struct jv value = {0};
    if (read_conversion(format, &conversion) != 0)
        return -1;
    if (conversion.kind == '%') {
        nl_buf_putc(&format->out, '%');
        return 0;
    }
    if (next_value(format, &value) != 0)
        return -1;
    return strchr("sr", conversion.kind) ? put_text(format, &conversion, value)
                                         : put_number(format, &conversion, value);
}

int nl_jinja_percent(struct nl_jinja_run *run, struct jv text, struct jv value, struct jv *out)
{
    struct format format = {.run = run, .text = text, .values = value};
    if (text.safe)
        return jinja_fail(run, NL_UNSUPPORTED, "'%%' of a string marked as safe");
    int result = 0;
    while (format.at < text.size && result == 0) {
        const char *percent = memchr(text.text + format.at, '%', text.size - format.at);
        size_t plain = percent ? (size_t)(percent - text.text) - format.at : text.size - format.at;
        nl_buf_add(&format.out, text.text + format.at, plain);
        format.at += plain;
        if (!percent)
            break;
        format.at++;
        if (format.at < text.size && text.text[format.at] == '(')
            result = jinja_fail(run, NL_UNSUPPORTED, "a format string with names");
        else
            result = put_conversion(&format);
        if (result == 0)
            result = nl_jinja_charge(run, 1);
    }
    bool tuple = jv_is(value, JV_TUPLE), mapping = jv_is(value, JV_DICT) || jv_is(value, JV_LIST);
    if (result == 0 && jv_is(value, JV_UNDEFINED) && format.used == 0)
        result = nl_jv_fail_undefined(run, value);
    else if (result == 0 && format.used < (tuple ? value.list->count : 1) && !mapping)
        result = jinja_fail(run, NL_DATA, "not all arguments of a format string are used");
    return nl_jv_take(run, &format.out, result, out);
}

/* The value of "{}", "{0}" or "{name}". */
static int field_value(struct format *format, const struct jinja_args *args, struct jv name, struct jv *out)
{
    struct nl_jinja_run *run = format->run;
    size_t index = 0;
    bool number = name.size > 0 && name.size < 6;
    for (uint32_t i = 0; i < name.size; i++) {
        number = number && name.text[i] >= '0' && name.text[i] <= '9';
        if (strchr(".[]!:{", name.text[i]))
            return jinja_fail(run, NL_UNSUPPORTED, "a field '{%.*s}' of a format string",
                              (int)(name.size < 60 ? name.size : 60), name.text);
        if (number)
            index = 10 * index + (size_t)(name.text[i] - '0');
    }
    if (name.size == 0)
        index = format->used++;
    if (name.size == 0 || number) {
        if (index >= args->count)
            return jinja_fail(run, NL_DATA, "not enough arguments for a format string");
        *out = args->values[index];
        return 0;
    }
    for (size_t i = 0; i < args->n_named; i++)
        if (args->named[i].name.size == name.size &&
            memcmp(args->named[i].name.text, name.text, name.size) == 0) {
            *out = args->named[i].value;
            return 0;
        }
    return jinja_fail(run, NL_DATA, "a format string names an argument that is not there");
}

static int put_field(struct format *format, const struct jinja_args *args, bool *numbered)
{
    struct jv text = format->text, value;
    const char *from = text.text + format->at, *end = memchr(from, '}', text.size - format->at);
    if (!end)
        return jinja_fail(format->run, NL_DATA, "a format string with '{' alone");
    struct jv name = jv_string(from, (size_t)(end - from));
    format->at += name.size + 1;
    *numbered = *numbered || (name.size && from[0] >= '0' && from[0] <= '9');
    if (*numbered && format->used)
        return jinja_fail(format->run, NL_DATA, "a format string with numbered and other fields");
    if (field_value(format, args, name, &value) != 0)
        return -1;
    if (*numbered && format->used)
        return jinja_fail(format->run, NL_DATA, "a format string with numbered and other fields");
    return nl_jv_str(format->run, value, &format->out);
}

int nl_jinja_format(struct nl_jinja_run *run, struct jv text, const struct jinja_args *args, struct jv *out)
{
    struct format format = {.run = run, .text = text};
    bool numbered = false;
    int result = 0;
    while (format.at < text.size && result == 0) {
        char c = text.text[format.at++];
        bool twice = format.at < text.size && text.text[format.at] == c;
        if ((c == '{' || c == '}') && twice)
            format.at++;
        else if (c == '}')
            result = jinja_fail(run, NL_DATA, "a format string with '}' alone");
        else if (c == '{')
            result = put_field(&format, args, &numbered);
        if ((c != '{' && c != '}') || ((c == '{' || c == '}') && twice))
            nl_buf_putc(&format.out, c);
        if (result == 0)
            result = nl_jinja_charge(run, 1);
    }
    return nl_jv_take(run, &format.out, result, out);
}
