/* The table of filters, and those that make text. */
#include "jinja_value.h"
#include "unicode.h"

static bool given(struct jv value)
{
    return !jv_is(value, JV_MISSING) && !jv_is(value, JV_NONE);
}

static int flag(struct nl_jinja_run *run, struct jv value, bool *out)
{
    *out = false;
    return jv_is(value, JV_MISSING) ? 0 : nl_jv_truth(run, value, out);
}

/* A method of strings as a filter of anything. */
static int on_text(struct nl_jinja_run *run, jinja_function *function, struct jv *a, struct jv *out)
{
    struct jv value = a[0];
    return nl_jv_to_string(run, value, &a[0]) != 0 ? -1 : function(run, a, out);
}

static int filter_upper(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return on_text(run, nl_jinja_upper, a, out);
}

static int filter_lower(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return on_text(run, nl_jinja_lower, a, out);
}

static int filter_capitalize(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return on_text(run, nl_jinja_capitalize, a, out);
}

static int filter_trim(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return on_text(run, nl_jinja_strip, a, out);
}

static int filter_center(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    if (jv_is(a[1], JV_MISSING))
        a[1] = jv_int(80);
    a[2] = (struct jv){0};
    return on_text(run, nl_jinja_center, a, out);
}

static int filter_string(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    return nl_jv_to_string(run, a[0], out);
}

static int filter_length(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t length;
    if (nl_jv_length(run, a[0], &length) != 0)
        return -1;
    *out = jv_int(length);
    return 0;
}

/* a: value, default_value, boolean */
static int filter_default(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool boolean, truth = true;
    if (flag(run, a[2], &boolean) != 0 || (boolean && nl_jv_truth(run, a[0], &truth) != 0))
        return -1;
    bool other = jv_is(a[0], JV_UNDEFINED) || !truth;
    *out = !other ? a[0] : jv_is(a[1], JV_MISSING) ? jv_string("", 0) : a[1];
    return 0;
}

/* a: value, old, new, count */
static int filter_replace(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    for (int i = 0; i < 3; i++) {
        struct jv value = a[i];
        if (nl_jv_to_string(run, value, &a[i]) != 0)
            return -1;
    }
    if (jv_is(a[3], JV_NONE))
        a[3] = (struct jv){0};
    return nl_jinja_replace(run, a, out);
}

/* Words begin after white space and -({[<. */
static int filter_title(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv text = {0};
    struct nl_buf made = {0};
    bool inside = false;
    int result = nl_jv_to_string(run, a[0], &text);
    for (uint32_t i = 0; result == 0 && i < text.size;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        bool between = nl_jinja_is_space(c) || (c < 0x80 && c && strchr("-({[<", (int)c));
        result = nl_jinja_put_case(run, c, inside && !between ? JINJA_LOWER : JINJA_UPPER, &made);
        inside = !between;
        i += size;
    }
    return nl_jv_take(run, &made, result == 0 ? nl_jinja_charge(run, 1 + text.size / 4) : -1, out);
}

static int filter_wordcount(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv text = {0};
    int64_t n = 0;
    bool inside = false;
    if (nl_jv_to_string(run, a[0], &text) != 0)
        return -1;
    for (uint32_t i = 0; i < text.size;) {
        unsigned size;
        uint32_t c = nl_utf8_get(text.text + i, &size);
        enum nl_category category = nl_unicode_category(c);
        bool word = c == '_' || (category >= NL_CAT_LL && category <= NL_CAT_LU) || nl_unicode_is_numeric(c);
        n += word && !inside;
        inside = word;
        i += size;
    }
    *out = jv_int(n);
    return nl_jinja_charge(run, 1 + text.size / 4);
}

/* a: value, width, first, blank */
static int filter_indent(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    bool first, blank;
    int64_t width = 4;
    struct jv text, lines, args[2] = {{0}};
    struct nl_buf indention = {0}, made = {0};
    if (flag(run, a[2], &first) != 0 || flag(run, a[3], &blank) != 0 ||
        nl_jv_arithmetic(run, JINJA_ADD, a[0], jv_string("\n", 1), &text) != 0)
        return -1;
    if (jv_is(text, JV_STRING) && text.safe)
        return jinja_fail(run, NL_UNSUPPORTED, "'indent' of a string marked as safe");
    if (!jv_is(a[1], JV_STRING) && !jv_is(a[1], JV_MISSING) &&
        nl_jv_to_int(run, a[1], "'indent'", &width) != 0)
        return -1;
    if (width > 10000)
        return jinja_fail(run, NL_UNSUPPORTED, "'indent' by so much");
    if (jv_is(a[1], JV_STRING))
        nl_buf_add(&indention, a[1].text, a[1].size);
    for (int64_t i = 0; i < width && !jv_is(a[1], JV_STRING); i++)
        nl_buf_putc(&indention, ' ');
    args[0] = text;
    int result = nl_jinja_splitlines(run, args, &lines);
    for (size_t i = 0; result == 0 && i < lines.list->count; i++) {
        struct jv line = lines.list->items[i];
        if (i)
            nl_buf_putc(&made, '\n');
        if (i ? blank || line.size : first)
            nl_buf_add(&made, indention.data, indention.size);
        nl_buf_add(&made, line.text, line.size);
        result = made.size > JINJA_MOST_OUTPUT ? nl_jinja_too_long(run)
                                               : nl_jinja_charge(run, indention.size / 64);
    }
    nl_buf_free(&indention);
    return nl_jv_take(run, &made, result, out);
}

static int slice_of(struct nl_jinja_run *run, struct jv text, int64_t end, struct jv *out)
{
    struct jv_slice head = {jv_none(), jv_int(end), jv_none()};
    return nl_jv_getitem(run, text, (struct jv){.kind = JV_SLICE, .slice = &head}, out);
}

/* a: value, length, killwords, end, leeway */
static int filter_truncate(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int64_t length = 255, leeway = 5, size, end_size;
    struct jv end = jv_is(a[3], JV_MISSING) ? jv_chars("...") : a[3], head;
    bool kill;
    if ((!jv_is(a[1], JV_MISSING) && nl_jv_to_int(run, a[1], "'truncate'", &length) != 0) ||
        (given(a[4]) && nl_jv_to_int(run, a[4], "'truncate'", &leeway) != 0) || flag(run, a[2], &kill) != 0 ||
        nl_jv_length(run, a[0], &size) != 0 || nl_jv_length(run, end, &end_size) != 0)
        return -1;
    if (!jv_is(a[0], JV_STRING) || a[0].safe || !jv_is(end, JV_STRING))
        return jinja_fail(run, NL_UNSUPPORTED, "'truncate' of what is not a string");
    if (length < end_size || leeway < 0 || length > INT32_MAX || leeway > INT32_MAX)
        return jinja_fail(run, NL_DATA, "'truncate' to such a length");
    if (size <= length + leeway) {
        *out = a[0];
        return 0;
    }
    if (slice_of(run, a[0], length - end_size, &head) != 0)
        return -1;
    const char *blank = !kill && head.size ? memrchr(head.text, ' ', head.size) : NULL;
    if (blank)
        head.size = (uint32_t)(blank - head.text);
    return nl_jv_concat(run, head, end, out);
}

static int filter_escape(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jv text = {0};
    struct nl_buf made = {0};
    if (nl_jv_to_string(run, a[0], &text) != 0)
        return -1;
    *out = text;
    if (text.safe)
        return 0;
    for (uint32_t i = 0; i < text.size; i++) {
        static const char plain[] = "&<>'\"";
        static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
        const char *found = text.text[i] ? strchr(plain, text.text[i]) : NULL;
        if (found)
            nl_buf_puts(&made, escaped[found - plain]);
        else
            nl_buf_putc(&made, text.text[i]);
    }
    int result = nl_jv_take(run, &made, nl_jinja_charge(run, 1 + text.size / 4), out);
    out->safe = true;
    return result;
}

static int filter_safe(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    int result = nl_jv_to_string(run, a[0], out);
    out->safe = true;
    return result;
}

/* The indent of json.dumps: a number of blanks, or a string. */
static int json_indent(struct nl_jinja_run *run, struct jv value, struct jinja_json_style *style)
{
    int64_t width;
    style->has_indent = given(value);
    style->comma = jv_chars(style->has_indent ? "," : ", ");
    style->colon = jv_chars(": ");
    style->indent = value;
    if (!style->has_indent || jv_is(value, JV_STRING))
        return 0;
    if (nl_jv_to_int(run, value, "'tojson'", &width) != 0)
        return -1;
    return nl_jv_arithmetic(run, JINJA_MUL, jv_chars(" "), jv_int(width), &style->indent);
}

/* a: value, ensure_ascii, indent, separators, sort_keys */
static int filter_tojson(struct nl_jinja_run *run, struct jv *a, struct jv *out)
{
    struct jinja_json_style style = {0};
    struct nl_buf made = {0};
    if (flag(run, a[1], &style.ascii) != 0 || flag(run, a[4], &style.sort_keys) != 0 ||
        json_indent(run, a[2], &style) != 0)
        return -1;
    if (given(a[3])) {
        const struct jv_list *pair = jv_is(a[3], JV_LIST) || jv_is(a[3], JV_TUPLE) ? a[3].list : NULL;
        if (!pair || pair->count != 2 || !jv_is(pair->items[0], JV_STRING) ||
            !jv_is(pair->items[1], JV_STRING))
            return jinja_fail(run, NL_DATA, "'tojson' with separators that are not two strings");
        style.comma = pair->items[0];
        style.colon = pair->items[1];
    }
    return nl_jv_take(run, &made, nl_jv_json(run, a[0], &style, &made), out);
}

static const struct jinja_builtin filters[] = {
    {"abs", nl_jinja_abs, "", 0},
    {"attr", NULL, "name", 1},
    {"batch", nl_jinja_batch, "linecount fill_with", 1},
    {"capitalize", filter_capitalize, "", 0},
    {"center", filter_center, "width", 0},
    {"count", filter_length, "", 0},
    {"d", filter_default, "default_value boolean", 0},
    {"default", filter_default, "default_value boolean", 0},
    {"dictsort", nl_jinja_dictsort, "case_sensitive by reverse", 0},
    {"e", filter_escape, "", 0},
    {"escape", filter_escape, "", 0},
    {"filesizeformat", NULL, "binary", 0},
    {"first", nl_jinja_first, "", 0},
    {"float", nl_jinja_float, "default", 0},
    {"forceescape", NULL, "", 0},
    {"format", NULL, "*", 0},
    {"groupby", NULL, "attribute default case_sensitive", 1},
    {"indent", filter_indent, "width first blank", 0},
    {"int", nl_jinja_int, "default base", 0},
    {"items", nl_jinja_items, "", 0},
    {"join", nl_jinja_join, "d attribute", 0},
    {"last", nl_jinja_last, "", 0},
    {"length", filter_length, "", 0},
    {"list", nl_jinja_list, "", 0},
    {"lower", filter_lower, "", 0},
    {"map", NULL, "*", 0},
    {"max", nl_jinja_max, "case_sensitive attribute", 0},
    {"min", nl_jinja_min, "case_sensitive attribute", 0},
    {"pprint", NULL, "", 0},
    {"random", NULL, "", 0},
    {"reject", NULL, "*", 0},
    {"rejectattr", NULL, "*", 0},
    {"replace", filter_replace, "old new count", 2},
    {"reverse", nl_jinja_reverse, "", 0},
    {"round", nl_jinja_round, "precision method", 0},
    {"safe", filter_safe, "", 0},
    {"select", NULL, "*", 0},
    {"selectattr", NULL, "*", 0},
    {"slice", nl_jinja_slice, "slices fill_with", 1},
    {"sort", nl_jinja_sort, "reverse case_sensitive attribute", 0},
    {"string", filter_string, "", 0},
    {"striptags", NULL, "", 0},
    {"sum", nl_jinja_sum, "attribute start", 0},
    {"title", filter_title, "", 0},
    {"tojson", filter_tojson, "ensure_ascii indent separators sort_keys", 0},
    {"trim", filter_trim, "chars", 0},
    {"truncate", filter_truncate, "length killwords end leeway", 0},
    {"unique", nl_jinja_unique, "case_sensitive attribute", 0},
    {"upper", filter_upper, "", 0},
    {"urlencode", NULL, "", 0},
    {"urlize", NULL, "*", 0},
    {"wordcount", filter_wordcount, "", 0},
    {"wordwrap", NULL, "*", 0},
    {"xmlattr", NULL, "*", 0},
};

static const struct jinja_builtin *find_filter(struct jv name)
{
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (jv_text_is(name, filters[i].name))
            return &filters[i];
    return NULL;
}

bool nl_jinja_has_filter(struct jv name)
{
    return find_filter(name);
}

static int filter_format(struct nl_jinja_run *run, struct jv value, const struct jinja_args *args,
                         struct jv *out)
{
    struct jv text = {0};
    struct jv_list values = {.items = args->values, .count = args->count};
    if (args->n_named)
        return jinja_fail(run, NL_UNSUPPORTED, "'format' with arguments by name");
    return nl_jv_to_string(run, value, &text) != 0
               ? -1
               : nl_jinja_percent(run, text, jv_of_list(&values, JV_TUPLE), out);
}

int nl_jinja_filter(struct nl_jinja_run *run, struct jv name, struct jv value, const struct jinja_args *args,
                    struct jv *out)
{
    const struct jinja_builtin *filter = find_filter(name);
    struct jv a[1 + JINJA_MOST_PARAMETERS];
    if (jv_text_is(name, "format"))
        return filter_format(run, value, args, out);
    if (filter && strstr(" map select reject selectattr rejectattr ", filter->name) &&
        filter->parameters[0] == '*')
        return nl_jinja_lazy_filter(run, name, value, args, out);
    if (!filter || !filter->function)
        return jinja_fail(run, NL_UNSUPPORTED, "no filter '%.*s'",
                          (int)(jv_is(name, JV_STRING) && name.size < 100 ? name.size : 0),
                          jv_is(name, JV_STRING) ? name.text : "");
    return nl_jinja_bind(run, filter, value, args, a) != 0 ? -1 : filter->function(run, a, out);
}
