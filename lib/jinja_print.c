/* Values as text: Python's str and repr; to and from JSON as json.dumps and json.loads do it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jinja_value.h"
#include "locale_c.h"
#include "strictjson.h"
#include "unicode.h"

/* The shortest digits that read back as the number, as repr(float) writes them. Above a power of two numbers
   lie twice as far apart as below: what reads back may be digits that are above it and not the nearest. */
static void print_float(double number, struct nl_buf *out)
{
    char digits[40];
    int precision = 0;
    locale_t before = nl_locale_enter();
    do {
        snprintf(digits, sizeof digits, "%.*e", precision, number);
        if (strtod(digits, NULL) != number)
            snprintf(digits, sizeof digits, "%.*Le", precision, (long double)number * (1 + 0x1p-54L));
    } while (strtod(digits, NULL) != number && ++precision < 17);
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
    char quote = single && !memchr(text.text, '"', text.size) ? '"' : '\'';
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

static void repr_list(struct nl_jinja_run *run, struct jv value, const char *brackets, struct nl_buf *out)
{
    nl_buf_putc(out, brackets[0]);
    for (size_t i = 0; i < value.list->count && !run->failed; i++) {
        nl_buf_puts(out, i ? ", " : "");
        nl_jv_repr(run, value.list->items[i], out);
    }
    if (jv_is(value, JV_TUPLE) && value.list->count == 1)
        nl_buf_putc(out, ',');
    nl_buf_putc(out, brackets[1]);
}

static void repr_dict(struct nl_jinja_run *run, const struct jv_dict *dict, struct nl_buf *out)
{
    nl_buf_putc(out, '{');
    for (size_t i = 0; i < dict->count && !run->failed; i++) {
        nl_buf_puts(out, i ? ", " : "");
        nl_jv_repr(run, dict->entries[i].key, out);
        nl_buf_puts(out, ": ");
        nl_jv_repr(run, dict->entries[i].value, out);
    }
    nl_buf_putc(out, '}');
}

static void repr_inside(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    static const char *const views[] = {"dict_keys(", "dict_values(", "dict_items("};
    switch (value.kind) {
    case JV_LIST:
    case JV_TUPLE:
        repr_list(run, value, jv_is(value, JV_LIST) ? "[]" : "()", out);
        break;
    case JV_DICT:
        repr_dict(run, value.dict, out);
        break;
    case JV_VIEW:
        nl_buf_puts(out, views[value.size]);
        repr_list(run, jv_of_list(nl_jv_gather(run, value), JV_LIST), "[]", out);
        nl_buf_putc(out, ')');
        break;
    default: /* Python writes an address, or what nobody wants to read */
        nl_jinja_fail(run, NL_UNSUPPORTED, "printing a value of type %s", nl_jv_type_name(value));
    }
}

void nl_jv_repr(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    if (!nl_jinja_put(run, out, jv_string("", 0)))
        return;
    switch (value.kind) {
    case JV_MISSING:
    case JV_UNDEFINED:
        nl_buf_puts(out, "Undefined");
        break;
    case JV_NONE:
        nl_buf_puts(out, "None");
        break;
    case JV_BOOL:
        nl_buf_puts(out, value.integer ? "True" : "False");
        break;
    case JV_INT:
        nl_buf_printf(out, "%lld", (long long)value.integer);
        break;
    case JV_FLOAT:
        print_float(value.number, out);
        break;
    case JV_STRING:
        if (value.safe)
            nl_jinja_fail(run, NL_UNSUPPORTED, "printing a string marked as safe inside of a list");
        if (nl_jinja_charge(run, value.size / 4))
            repr_text(value, out);
        break;
    default:
        if (nl_jinja_enter(run))
            repr_inside(run, value, out);
        run->depth--;
    }
}

void nl_jv_str(struct nl_jinja_run *run, struct jv value, struct nl_buf *out)
{
    if (jv_is(value, JV_STRING))
        nl_jinja_put(run, out, value);
    else if (!jv_is(value, JV_UNDEFINED))
        nl_jv_repr(run, value, out);
}

struct jv nl_jv_to_string(struct nl_jinja_run *run, struct jv value)
{
    struct nl_buf text = {0};
    if (jv_is(value, JV_STRING))
        return value;
    nl_jv_str(run, value, &text);
    return nl_jv_take(run, &text);
}

static void json_text(struct jv text, bool ascii, struct nl_buf *out)
{
    static const char plain[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    nl_buf_putc(out, '"');
    for (uint32_t i = 0; i < text.size;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        const char *found = c && c < 0x80 ? strchr(plain, (int)c) : NULL;
        if (found)
            nl_buf_printf(out, "\\%c", letters[found - plain]);
        else if (c >= 0x10000 && ascii)
            nl_buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                          (unsigned)(0xdc00 + (c & 0x3ff)));
        else if (c < 0x20 || (ascii && c >= 0x7f))
            nl_buf_printf(out, "\\u%04x", (unsigned)c);
        else
            nl_buf_add(out, text.text + i, size);
        i += size;
    }
    nl_buf_putc(out, '"');
}

static void json_key(struct nl_jinja_run *run, struct jv key, const struct jinja_json_style *style,
                     struct nl_buf *out)
{
    bool quotes = jv_is_number(key) || jv_is(key, JV_NONE);
    if (!quotes && !jv_is(key, JV_STRING))
        nl_jinja_fail_type(run, "'tojson' of a key", key);
    nl_buf_puts(out, quotes ? "\"" : "");
    nl_jv_json(run, key, style, 0, out);
    nl_buf_puts(out, quotes ? "\"" : "");
}

/* The entries of a dict, sorted if asked for. */
static struct jv_list *json_entries(struct nl_jinja_run *run, struct jv_dict *dict, bool sorted)
{
    struct jv a[JINJA_ARGUMENTS] = {jv_view(dict, JV_ITEMS), {0}, jv_bool(true)};
    struct jv entries = sorted ? nl_jinja_sort(run, a) : a[0];
    return nl_jv_gather(run, entries);
}

static void json_inside(struct nl_jinja_run *run, struct jv value, const struct jinja_json_style *style,
                        unsigned level, struct nl_buf *out)
{
    bool dict = jv_is(value, JV_DICT);
    const struct jv_list *items = dict ? json_entries(run, value.dict, style->sort_keys) : value.list;
    nl_buf_putc(out, dict ? '{' : '[');
    for (size_t i = 0; i <= items->count && !run->failed; i++) {
        bool last = i == items->count; /* only the bracket follows */
        if (i && !last)
            nl_jinja_put(run, out, style->comma);
        if (style->has_indent && items->count)
            nl_buf_putc(out, '\n');
        for (unsigned n = 0; style->has_indent && items->count && n < level + !last; n++)
            nl_jinja_put(run, out, style->indent);
        if (last)
            break;
        if (dict) {
            json_key(run, items->items[i].list->items[0], style, out);
            nl_jinja_put(run, out, style->colon);
        }
        nl_jv_json(run, dict ? items->items[i].list->items[1] : items->items[i], style, level + 1, out);
    }
    nl_buf_putc(out, dict ? '}' : ']');
}

void nl_jv_json(struct nl_jinja_run *run, struct jv value, const struct jinja_json_style *style,
                unsigned level, struct nl_buf *out)
{
    if (!nl_jinja_put(run, out, jv_string("", 0)))
        return;
    switch (value.kind) {
    case JV_NONE:
        nl_buf_puts(out, "null");
        break;
    case JV_BOOL:
        nl_buf_puts(out, value.integer ? "true" : "false");
        break;
    case JV_FLOAT:
    case JV_INT:
        nl_jv_repr(run, value, out);
        break;
    case JV_STRING:
        if (nl_jinja_charge(run, value.size / 16))
            json_text(value, style->ascii, out);
        break;
    case JV_LIST:
    case JV_TUPLE:
    case JV_DICT:
        if (nl_jinja_enter(run))
            json_inside(run, value, style, level, out);
        run->depth--;
        break;
    default:
        nl_jinja_fail(run, NL_DATA, "'tojson' of a value of type %s", nl_jv_type_name(value));
    }
}

enum { MOST_DEPTH = 120 }; /* that of strictjson */

struct reader {
    struct nl_jinja_run *run;
    struct nl_scan scan;
    struct nl_buf text;
    const char *name;
    unsigned depth;
};

static struct jv read_value(struct reader *);

static struct jv refuse(struct reader *reader, enum nl_status code, const char *what)
{
    if (!reader->run->failed)
        nl_set_error(reader->run->error, code, "%s: %s: byte %zu", what, reader->name, reader->scan.at);
    reader->run->failed = true;
    return jv_missing();
}

static struct jv fault(struct reader *reader)
{
    return refuse(reader, NL_DATA, reader->scan.fault ? reader->scan.fault : "not JSON");
}

/* The string in reader->text, its U+0000 as one byte. */
static struct jv take_text(struct reader *reader)
{
    struct nl_buf *text = &reader->text;
    size_t n = 0;
    if (text->failed)
        return refuse(reader, NL_RESOURCE, "out of memory");
    for (size_t i = 0; i < text->size; i++) {
        bool nul = (unsigned char)text->data[i] == 0xc0;
        text->data[n++] = nul ? '\0' : text->data[i];
        i += nul;
    }
    return nl_jv_copy(reader->run, text->data, n);
}

static struct jv read_object(struct reader *reader)
{
    struct jv_dict *dict = nl_jv_dict_new(reader->run);
    bool first = true;
    int more = 0;
    nl_scan_take(&reader->scan, '{');
    while (!reader->run->failed && (more = nl_scan_next(&reader->scan, '}', &first)) > 0) {
        if (!nl_scan_key(&reader->scan, &reader->text))
            return fault(reader);
        struct jv key = take_text(reader);
        nl_jv_dict_set(reader->run, dict, key, read_value(reader));
    }
    return more < 0 ? fault(reader) : jv_of_dict(dict);
}

static struct jv read_array(struct reader *reader)
{
    struct jv_list *list = nl_jv_list_new(reader->run, 0);
    bool first = true;
    int more = 0;
    nl_scan_take(&reader->scan, '[');
    while (!reader->run->failed && (more = nl_scan_next(&reader->scan, ']', &first)) > 0)
        nl_jv_push(reader->run, list, read_value(reader));
    return more < 0 ? fault(reader) : jv_of_list(list, JV_LIST);
}

static struct jv read_plain(struct reader *reader)
{
    size_t from = reader->scan.at;
    double number = 0;
    int64_t integer = 0;
    if (!nl_scan_skip(&reader->scan))
        return fault(reader);
    struct jv text = jv_string((const char *)reader->scan.text + from, reader->scan.at - from);
    if (jv_text_is(text, "null"))
        return jv_none();
    if (jv_text_is(text, "true") || jv_text_is(text, "false"))
        return jv_bool(text.size == 4);
    bool is_float = memchr(text.text, '.', text.size) || memchr(text.text, 'e', text.size) ||
                    memchr(text.text, 'E', text.size);
    if (is_float ? !nl_jv_parse_float(NULL, text, &number) || !isfinite(number)
                 : nl_jv_parse_int(NULL, text, 10, &integer) != 1)
        return refuse(reader, NL_UNSUPPORTED, "a number that is too large");
    return is_float ? jv_float(number) : jv_int(integer);
}

static struct jv read_value(struct reader *reader)
{
    int c = nl_scan_peek(&reader->scan);
    struct jv value;
    if (++reader->depth > MOST_DEPTH)
        return refuse(reader, NL_UNSUPPORTED, "nested too deeply");
    if (c == '{')
        value = read_object(reader);
    else if (c == '[')
        value = read_array(reader);
    else if (c == '"')
        value = nl_scan_string(&reader->scan, &reader->text) ? take_text(reader) : fault(reader);
    else
        value = read_plain(reader);
    reader->depth--;
    return value;
}

struct jv nl_jv_parse_json(struct nl_jinja_run *run, const char *text, size_t size, const char *name)
{
    struct reader reader = {.run = run, .name = name, .scan = {.text = (const uint8_t *)text, .size = size}};
    if (size > JINJA_MOST_OUTPUT)
        return refuse(&reader, NL_DATA, "too long");
    struct jv value = read_value(&reader);
    if (!run->failed && nl_scan_peek(&reader.scan) >= 0)
        refuse(&reader, NL_DATA, "something after the value");
    nl_buf_free(&reader.text);
    return value;
}
