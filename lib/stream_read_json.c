/* The JSON twin, read: one object a line. */
#include <math.h>
#include <stdio.h>

#include "stream_internal.h"

static int fault_in(const struct nl_reader *reader, const char *key, const char *what, struct nl_error *error)
{
    char text[80];
    snprintf(text, sizeof text, "\"%s\" %s", key, what);
    return nl_reader_fault(reader, NL_DATA, text, error);
}

static int get_number(struct nl_reader *reader, const struct nl_json *object, const char *key, uint32_t *out,
                      struct nl_error *error)
{
    if (!nl_json_id(nl_json_get(object, key), out))
        return fault_in(reader, key, "is no number below 2^32", error);
    return 0;
}

/* Appends the ids and counts them. */
static int add_ids(struct nl_reader *reader, const struct nl_json *object, uint32_t *count,
                   struct nl_error *error)
{
    const struct nl_json *ids = nl_json_get(object, "ids");
    if (!nl_json_is(ids, NL_JSON_ARRAY))
        return fault_in(reader, "ids", "is no array", error);
    *count = 0;
    for (const struct nl_json *value = nl_json_first(ids); value; value = nl_json_next(value)) {
        uint32_t id;
        if (!nl_json_id(value, &id))
            return fault_in(reader, "ids", "holds what is no id", error);
        nl_buf_add(&reader->payload, &id, sizeof id);
        ++*count;
    }
    return 0;
}

static bool parse_logit(const struct nl_json *value, float *out)
{
    if (nl_json_is(value, NL_JSON_NUMBER)) {
        double number = nl_json_number(value);
        *out = (float)number;
        return fabs(number) < 0x1.ffffffp127; /* half a unit past the largest float */
    }
    static const struct {
        const char *word;
        float value;
    } words[] = {{"-inf", -INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    for (int i = 0; nl_json_is(value, NL_JSON_STRING) && i < 3; i++)
        if (strcmp(nl_json_string(value), words[i].word) == 0) {
            *out = words[i].value;
            return true;
        }
    return false;
}

static int add_logits(struct nl_reader *reader, const struct nl_json *object, uint32_t *count,
                      struct nl_error *error)
{
    const struct nl_json *logits = nl_json_get(object, "logits");
    if (!nl_json_is(logits, NL_JSON_ARRAY))
        return fault_in(reader, "logits", "is no array", error);
    *count = 0;
    for (const struct nl_json *value = nl_json_first(logits); value; value = nl_json_next(value)) {
        float logit;
        if (!parse_logit(value, &logit))
            return fault_in(reader, "logits", "holds what is no float, \"-inf\", \"inf\" or \"nan\"", error);
        nl_buf_add(&reader->payload, &logit, sizeof logit);
        ++*count;
    }
    return 0;
}

/* LGTS, or LGTK with ids. */
static int add_position(struct nl_reader *reader, const struct nl_json *object, bool sparse,
                        struct nl_error *error)
{
    uint32_t prefix[2] = {0}, n_ids = 0;
    if (get_number(reader, object, "position", &prefix[0], error) != 0)
        return -1;
    nl_buf_add(&reader->payload, prefix, sizeof prefix);
    if ((sparse && add_ids(reader, object, &n_ids, error) != 0) ||
        add_logits(reader, object, &prefix[1], error) != 0)
        return -1;
    if (sparse && n_ids != prefix[1])
        return nl_reader_fault(reader, NL_DATA, "\"ids\" and \"logits\" differ in length", error);
    if (!reader->payload.failed)
        memcpy(reader->payload.data, prefix, sizeof prefix);
    return 0;
}

/* The payload that the object stands for. */
static int convert(struct nl_reader *reader, struct nl_json *object, struct nl_error *error)
{
    if (!nl_json_is(object, NL_JSON_OBJECT))
        return nl_reader_fault(reader, NL_DATA, "not a JSON object", error);
    const char *kind = nl_json_get_string(object, "kind");
    if (!kind || strlen(kind) != 4 || !nl_reader_is_kind(kind))
        return nl_reader_fault(reader, NL_DATA, "\"kind\" is no four letters or digits", error);
    nl_reader_begin(reader, kind);
    uint32_t number;
    if (strcmp(reader->kind, "TOKS") == 0)
        return add_ids(reader, object, &number, error);
    if (strcmp(reader->kind, "LGTS") == 0 || strcmp(reader->kind, "LGTK") == 0)
        return add_position(reader, object, reader->kind[3] == 'K', error);
    if (strcmp(reader->kind, "CUTS") == 0) {
        if (get_number(reader, object, "count", &number, error) != 0)
            return -1;
        nl_buf_add(&reader->payload, &number, sizeof number);
        return 0;
    }
    nl_json_remove(object, "kind");
    nl_json_print(object, &reader->payload);
    return 0;
}

/* The next line that is not blank. */
static int next_line(struct nl_reader *reader, char **line, size_t *length, bool *ended,
                     struct nl_error *error)
{
    for (;;) {
        int got = nl_reader_line(reader, line, length, ended, error);
        if (got <= 0)
            return got;
        reader->line++;
        for (size_t i = 0; i < *length; i++)
            if (!memchr(" \t\r", (*line)[i], 3))
                return 1;
    }
}

int nl_reader_next_json(struct nl_reader *reader, struct nl_error *error)
{
    char *line;
    size_t length;
    bool ended;
    int got = next_line(reader, &line, &length, &ended, error);
    if (got <= 0)
        return got;
    struct nl_error reason;
    struct nl_json *object = nl_json_parse(line, length, "JSON", &reason);
    if (!object && !ended)
        return nl_reader_cut(reader, true, error);
    if (!object)
        return nl_reader_fault(reader, reason.code, reason.message, error);
    got = convert(reader, object, error);
    nl_json_free(object);
    return got == 0 && nl_buf_check(&reader->payload, "stream", error) == 0 ? 1 : -1;
}
