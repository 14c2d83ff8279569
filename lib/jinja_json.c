/* JSON text to values, as Python's json.loads makes them. */
#include "jinja_value.h"
#include "strictjson.h"

enum { MOST_DEPTH = 120 }; /* that of strictjson */

struct reader {
    struct nl_jinja_run *run;
    struct nl_scan scan;
    struct nl_buf text;
    const char *name;
    unsigned depth;
};

static int read_value(struct reader *, struct jv *out);

static int fault(struct reader *reader)
{
    const char *what = reader->scan.fault ? reader->scan.fault : "not JSON";
    return nl_fail(reader->run->error, NL_DATA, "%s: %s: byte %zu", what, reader->name, reader->scan.at);
}

/* The string in reader->text, its U+0000 as one byte. */
static int take_text(struct reader *reader, struct jv *out)
{
    struct nl_buf *text = &reader->text;
    size_t n = 0;
    if (nl_buf_check(text, "JSON", reader->run->error) != 0)
        return -1;
    for (size_t i = 0; i < text->size; i++) {
        bool nul = (unsigned char)text->data[i] == 0xc0;
        text->data[n++] = nul ? '\0' : text->data[i];
        i += nul;
    }
    return nl_jv_copy(reader->run, text->data, n, out);
}

static int read_object(struct reader *reader, struct jv *out)
{
    struct jv_dict *dict = nl_jv_dict_new(reader->run);
    bool first = true;
    int more = -1;
    nl_scan_take(&reader->scan, '{');
    while (dict && (more = nl_scan_next(&reader->scan, '}', &first)) > 0) {
        struct jv key = {0}, value = {0};
        if (!nl_scan_key(&reader->scan, &reader->text))
            return fault(reader);
        if (take_text(reader, &key) != 0 || read_value(reader, &value) != 0 ||
            nl_jv_dict_set(reader->run, dict, key, value) != 0)
            return -1;
    }
    *out = (struct jv){.kind = JV_DICT, .dict = dict};
    return !dict ? -1 : more < 0 ? fault(reader) : 0;
}

static int read_array(struct reader *reader, struct jv *out)
{
    struct jv_list *list = nl_jv_list_new(reader->run, 0);
    bool first = true;
    int more = -1;
    nl_scan_take(&reader->scan, '[');
    while (list && (more = nl_scan_next(&reader->scan, ']', &first)) > 0) {
        struct jv value = {0};
        if (read_value(reader, &value) != 0 || nl_jv_list_push(reader->run, list, value) != 0)
            return -1;
    }
    *out = jv_of_list(list, JV_LIST);
    return !list ? -1 : more < 0 ? fault(reader) : 0;
}

static int read_number(struct reader *reader, struct jv text, struct jv *out)
{
    double number = 0;
    int64_t integer = 0;
    bool whole = true;
    for (uint32_t i = 0; i < text.size; i++)
        whole = whole && !strchr(".eE", text.text[i]);
    if (!whole) {
        nl_jv_parse_float(text, &number);
        *out = jv_float(number);
        return 0;
    }
    if (nl_jv_parse_int(NULL, text, 10, &integer) != 1)
        return nl_fail(reader->run->error, NL_UNSUPPORTED, "an integer of more than 64 bits: %s: byte %zu",
                       reader->name, reader->scan.at);
    *out = jv_int(integer);
    return 0;
}

static int read_plain(struct reader *reader, struct jv *out)
{
    size_t from = reader->scan.at;
    if (!nl_scan_skip(&reader->scan))
        return fault(reader);
    struct jv text = jv_string((const char *)reader->scan.text + from, reader->scan.at - from);
    if (jv_text_is(text, "null"))
        *out = jv_none();
    else if (jv_text_is(text, "true") || jv_text_is(text, "false"))
        *out = jv_bool(text.size == 4);
    else
        return read_number(reader, text, out);
    return 0;
}

static int read_value(struct reader *reader, struct jv *out)
{
    int c = nl_scan_peek(&reader->scan);
    if (++reader->depth > MOST_DEPTH)
        return nl_fail(reader->run->error, NL_UNSUPPORTED, "nested too deeply: %s: byte %zu", reader->name,
                       reader->scan.at);
    int result;
    if (c == '{')
        result = read_object(reader, out);
    else if (c == '[')
        result = read_array(reader, out);
    else if (c == '"')
        result = nl_scan_string(&reader->scan, &reader->text) ? take_text(reader, out) : fault(reader);
    else
        result = read_plain(reader, out);
    reader->depth--;
    return result;
}

int nl_jv_parse_json(struct nl_jinja_run *run, const char *text, size_t size, const char *name,
                     struct jv *out)
{
    struct reader reader = {.run = run, .name = name, .scan = {.text = (const uint8_t *)text, .size = size}};
    if (size > JINJA_MOST_OUTPUT)
        return nl_fail(run->error, NL_DATA, "too long: %s", name);
    int result = read_value(&reader, out);
    if (result == 0 && nl_scan_peek(&reader.scan) >= 0)
        result =
            nl_fail(run->error, NL_DATA, "something after the value: %s: byte %zu", name, reader.scan.at);
    nl_buf_free(&reader.text);
    return result;
}
