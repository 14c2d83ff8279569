/* Values as text: Python's str and repr, and json.dumps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_tree.h"
#include "locale_c.h"
#include "unicode.h"

/* The shortest digits that read back as the number, as repr(float) writes them. */
void nl_jv_print_float(double number, struct nl_buf *out)
{
    char digits[40];
    int precision = 0;
    if (isnan(number) || isinf(number)) {
        nl_buf_puts(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    locale_t before = nl_locale_enter();
    do
        snprintf(digits, sizeof digits, "%.*e", precision, number);
    while (strtod(digits, NULL) != number && ++precision < 17);
    char *e = strchr(digits, 'e');
    int exponent = atoi(e + 1);
    if (exponent >= -4 && exponent < 16) {
        int decimals = precision > exponent ? precision - exponent : 0;
        snprintf(digits, sizeof digits, "%.*f%s", decimals, number, decimals == 0 ? ".0" : "");
    } else {
        snprintf(e, sizeof digits - (size_t)(e - digits), "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    }
    nl_locale_leave(before);
    nl_buf_puts(out, digits);
}

static bool is_printable(uint32_t c)
{
    enum nl_category category = nl_unicode_category(c);
    return c == ' ' || !(category <= NL_CAT_CS || category >= NL_CAT_ZL);
}

static void repr_text(struct jv text, struct nl_buf *out)
{
    bool single = text.size && memchr(text.text, '\'', text.size);
    bool both = single && memchr(text.text, '"', text.size);
    char quote = single && !both ? '"' : '\'';
    nl_buf_putc(out, quote);
    for (uint32_t i = 0; i < text.size;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        if (c == (unsigned char)quote || c == '\\')
            nl_buf_printf(out, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            nl_buf_printf(out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (is_printable(c))
            nl_buf_add(out, text.text + i, size);
        else
            nl_buf_printf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
        i += size;
    }
    nl_buf_putc(out, quote);
}

static int repr_list(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    bool tuple = jv_is(value, JV_TUPLE);
    nl_buf_putc(out, tuple ? '(' : '[');
    for (size_t i = 0; i < value.list->count; i++) {
        if (i)
            nl_buf_puts(out, ", ");
        if (nl_jv_repr(run, value.list->items[i], out) != 0)
            return -1;
    }
    if (tuple && value.list->count == 1)
        nl_buf_putc(out, ',');
    nl_buf_putc(out, tuple ? ')' : ']');
    return 0;
}

static int repr_dict(struct nl_jinja_run *run, const struct jv_dict *dict, struct nl_buf *out)
{
    nl_buf_putc(out, '{');
    for (size_t i = 0; i < dict->count; i++) {
        if (i)
            nl_buf_puts(out, ", ");
        if (nl_jv_repr(run, dict->entries[i].key, out) != 0)
            return -1;
        nl_buf_puts(out, ": ");
        if (nl_jv_repr(run, dict->entries[i].value, out) != 0)
            return -1;
    }
    nl_buf_putc(out, '}');
    return 0;
}

static int repr_view(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    static const char *const names[] = {"dict_keys(", "dict_values(", "dict_items("};
    struct jv_list *items = nl_jv_gather(run, value);
    nl_buf_puts(out, names[value.view->of]);
    if (!items || repr_list(run, jv_of_list(items, JV_LIST), out) != 0)
        return -1;
    nl_buf_putc(out, ')');
    return 0;
}

static int repr_range(const struct jv_range *range, struct nl_buf *out)
{
    nl_buf_printf(out, "range(%lld, %lld", (long long)range->start, (long long)range->stop);
    if (range->step != 1)
        nl_buf_printf(out, ", %lld", (long long)range->step);
    nl_buf_putc(out, ')');
    return 0;
}

static int repr_inside(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    int result;
    if (nl_jinja_enter(run) != 0)
        return -1;
    switch (value.kind) {
    case JV_LIST:
    case JV_TUPLE:
        result = repr_list(run, value, out);
        break;
    case JV_VIEW:
        result = repr_view(run, value, out);
        break;
    case JV_NAMESPACE:
        nl_buf_puts(out, "<Namespace ");
        result = repr_dict(run, value.dict, out);
        nl_buf_putc(out, '>');
        break;
    default:
        result = repr_dict(run, value.dict, out);
        break;
    }
    run->depth--;
    return result;
}

static int repr_macro(const struct jv_macro *macro, struct nl_buf *out)
{
    nl_buf_puts(out, "<Macro ");
    if (macro->node->kind == JN_CALLBLOCK)
        nl_buf_puts(out, "anonymous");
    else
        repr_text(macro->node->value, out);
    nl_buf_putc(out, '>');
    return 0;
}

int nl_jv_repr(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    if (out->size > JINJA_MOST_OUTPUT)
        return jinja_fail(run, NL_DATA, "the template makes a string that is too long");
    switch (value.kind) {
    case JV_UNDEFINED:
        nl_buf_puts(out, "Undefined");
        return 0;
    case JV_NONE:
        nl_buf_puts(out, "None");
        return 0;
    case JV_BOOL:
        nl_buf_puts(out, value.integer ? "True" : "False");
        return 0;
    case JV_INT:
        nl_buf_printf(out, "%lld", (long long)value.integer);
        return 0;
    case JV_FLOAT:
        nl_jv_print_float(value.number, out);
        return 0;
    case JV_STRING:
        if (value.safe)
            return jinja_fail(run, NL_UNSUPPORTED, "printing a string marked as safe inside of a list");
        repr_text(value, out);
        return nl_jinja_charge(run, value.size / 4);
    case JV_RANGE:
        return repr_range(value.range, out);
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
    case JV_VIEW:
    case JV_NAMESPACE:
        return repr_inside(run, value, out);
    case JV_MACRO:
        return repr_macro(value.macro, out);
    default: /* Python writes an address */
        return jinja_fail(run, NL_UNSUPPORTED, "printing a value of type %s", nl_jv_type_name(value));
    }
}

int nl_jv_str(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    if (jv_is(value, JV_UNDEFINED))
        return 0;
    if (!jv_is(value, JV_STRING))
        return nl_jv_repr(run, value, out);
    nl_buf_add(out, value.text, value.size);
    if (out->size > JINJA_MOST_OUTPUT)
        return jinja_fail(run, NL_DATA, "the template makes a text that is too long");
    return nl_jinja_charge(run, 1 + value.size / 64);
}

int nl_jv_to_string(struct nl_jinja_run *run, struct jv value, struct jv *out)
{
    struct nl_buf text = {0};
    if (jv_is(value, JV_STRING)) {
        *out = value;
        return 0;
    }
    return nl_jv_take(run, &text, nl_jv_str(run, value, &text), out);
}

static void json_text(struct jv text, bool ascii, struct nl_buf *out)
{
    static const char plain[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    nl_buf_putc(out, '"');
    for (uint32_t i = 0; i < text.size;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        const char *found = c && c < 0x80 ? strchr(plain, (int)c) : NULL;
        size_t run = 0; /* of what stands for itself */
        while (i + run < text.size && text.text[i + run] >= ' ' && text.text[i + run] < 0x7f &&
               text.text[i + run] != '"' && text.text[i + run] != '\\')
            run++;
        if (run > 0) {
            nl_buf_add(out, text.text + i, run);
            i += (uint32_t)run;
            continue;
        }
        if (found)
            nl_buf_printf(out, "\\%c", letters[found - plain]);
        else if (c >= 0x10000 && ascii)
            nl_buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                          (unsigned)(0xdc00 + (c & 0x3ff)));
        else if (c < 0x20 || (ascii && c >= 0x80))
            nl_buf_printf(out, "\\u%04x", (unsigned)c);
        else
            nl_buf_add(out, text.text + i, size);
        i += size;
    }
    nl_buf_putc(out, '"');
}

static int json_value(struct nl_jinja_run *, struct jv, const struct jinja_json_style *, unsigned level,
                      struct nl_buf *out);

static void json_line(const struct jinja_json_style *style, unsigned level, struct nl_buf *out)
{
    if (!style->has_indent)
        return;
    nl_buf_putc(out, '\n');
    for (unsigned i = 0; i < level; i++)
        nl_buf_add(out, style->indent.text, style->indent.size);
}

static int json_list(struct nl_jinja_run *run, const struct jv_list *list,
                     const struct jinja_json_style *style, unsigned level, struct nl_buf *out)
{
    nl_buf_putc(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            nl_buf_add(out, style->comma.text, style->comma.size);
        json_line(style, level + 1, out);
        if (json_value(run, list->items[i], style, level + 1, out) != 0)
            return -1;
    }
    if (list->count)
        json_line(style, level, out);
    nl_buf_putc(out, ']');
    return 0;
}

static int json_key(struct nl_jinja_run *run, struct jv key, const struct jinja_json_style *style,
                    struct nl_buf *out)
{
    if (jv_is(key, JV_STRING)) {
        json_text(key, style->ascii, out);
        return 0;
    }
    if (!jv_is_number(key) && !jv_is(key, JV_NONE))
        return jinja_fail(run, NL_DATA, "tojson of a key of type %s", nl_jv_type_name(key));
    nl_buf_putc(out, '"');
    int result = json_value(run, key, style, 0, out);
    nl_buf_putc(out, '"');
    return result;
}

/* The entries of a dict, sorted if asked for. */
static struct jv_list *json_entries(struct nl_jinja_run *run, struct jv_dict *dict, bool sorted)
{
    struct jv_view view = {.dict = dict, .of = JV_ITEMS};
    struct jv items = {.kind = JV_VIEW, .view = &view}, list;
    struct jinja_named exact = {jv_chars("case_sensitive"), jv_bool(true)};
    const struct jinja_args arguments = {.named = &exact, .n_named = 1};
    if (!sorted)
        return nl_jv_gather(run, items);
    return nl_jinja_filter(run, jv_chars("sort"), items, &arguments, &list) == 0 ? list.list : NULL;
}

static int json_dict(struct nl_jinja_run *run, struct jv_dict *dict, const struct jinja_json_style *style,
                     unsigned level, struct nl_buf *out)
{
    struct jv_list *entries = json_entries(run, dict, style->sort_keys);
    if (!entries)
        return -1;
    nl_buf_putc(out, '{');
    for (size_t i = 0; i < entries->count; i++) {
        const struct jv *pair = entries->items[i].list->items;
        if (i)
            nl_buf_add(out, style->comma.text, style->comma.size);
        json_line(style, level + 1, out);
        if (json_key(run, pair[0], style, out) != 0)
            return -1;
        nl_buf_add(out, style->colon.text, style->colon.size);
        if (json_value(run, pair[1], style, level + 1, out) != 0)
            return -1;
    }
    if (entries->count)
        json_line(style, level, out);
    nl_buf_putc(out, '}');
    return 0;
}

static int json_value(struct nl_jinja_run *run, struct jv value, const struct jinja_json_style *style,
                      unsigned level, struct nl_buf *out)
{
    int result;
    if (nl_jinja_charge(run, 1) != 0)
        return -1;
    if (out->size > JINJA_MOST_OUTPUT)
        return jinja_fail(run, NL_DATA, "the template makes a string that is too long");
    switch (value.kind) {
    case JV_NONE:
        nl_buf_puts(out, "null");
        return 0;
    case JV_BOOL:
        nl_buf_puts(out, value.integer ? "true" : "false");
        return 0;
    case JV_FLOAT:
        if (isnan(value.number) || isinf(value.number))
            nl_buf_puts(out, isnan(value.number) ? "NaN" : value.number < 0 ? "-Infinity" : "Infinity");
        else
            nl_jv_print_float(value.number, out);
        return 0;
    case JV_INT:
        return nl_jv_repr(run, value, out);
    case JV_STRING:
        json_text(value, style->ascii, out);
        return nl_jinja_charge(run, value.size / 16);
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
        if (nl_jinja_enter(run) != 0)
            return -1;
        result = value.kind == JV_DICT ? json_dict(run, value.dict, style, level, out)
                                       : json_list(run, value.list, style, level, out);
        run->depth--;
        return result;
    default:
        return jinja_fail(run, NL_DATA, "tojson of a value of type %s", nl_jv_type_name(value));
    }
}

int nl_jv_json(struct nl_jinja_run *run, struct jv value, const struct jinja_json_style *style,
               struct nl_buf *out)
{
    return json_value(run, value, style, 0, out);
}
