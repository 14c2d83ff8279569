/* The twins, written: text for people and awk, JSON lines for jq. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "locale_c.h"
#include "stream_internal.h"

static void put_u32(struct nl_buf *out, uint32_t value)
{
    char digits[10], *at = digits + sizeof digits;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    nl_buf_add(out, at, (size_t)(digits + sizeof digits - at));
}

/* Nine digits bring every float back. The caller has set the locale. */
static void put_float(struct nl_buf *out, float value, bool json)
{
    char text[32];
    if (isfinite(value))
        snprintf(text, sizeof text, "%.9g", (double)value);
    else
        snprintf(text, sizeof text, json ? "\"%s\"" : "%s",
                 isnan(value) ? "nan"
                 : value < 0  ? "-inf"
                              : "inf");
    nl_buf_puts(out, text);
}

static int check(const struct nl_writer *writer, struct nl_error *error)
{
    return nl_buf_check(&writer->out, writer->name, error);
}

/* ---- Text ---- */

int nl_writer_text_ids(struct nl_writer *writer, const uint32_t *ids, size_t count, struct nl_error *error)
{
    for (size_t i = 0; i < count && !writer->shows_logits; i++) {
        put_u32(&writer->out, ids[i]);
        nl_buf_putc(&writer->out, ' ');
    }
    return check(writer, error);
}

struct shown {
    uint32_t id;
    float logit;
};

static int by_id(const void *a, const void *b)
{
    const struct shown *one = a, *two = b;
    return one->id < two->id ? -1 : one->id > two->id;
}

/* The largest first, a NaN before all; among equals the lowest id. */
static int by_logit(const void *a, const void *b)
{
    const struct shown *one = a, *two = b;
    if (isnan(one->logit) != isnan(two->logit))
        return isnan(one->logit) ? -1 : 1;
    if (one->logit != two->logit && !isnan(one->logit))
        return one->logit > two->logit ? -1 : 1;
    return by_id(a, b);
}

int nl_writer_text_logits(struct nl_writer *writer, uint32_t position, const uint32_t *ids,
                          const float *logits, size_t count, struct nl_error *error)
{
    if (!writer->shows_logits)
        return 0;
    struct shown *shown = malloc((count + 1) * sizeof *shown);
    if (!shown)
        return nl_fail_memory(error, writer->name);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (logits[i] != -INFINITY)
            shown[n++] = (struct shown){ids ? ids[i] : (uint32_t)i, logits[i]};
    if (writer->top || ids)
        qsort(shown, n, sizeof *shown, writer->top ? by_logit : by_id);
    if (writer->top && n > writer->top)
        n = writer->top;
    locale_t before = nl_locale_enter();
    put_u32(&writer->out, position);
    for (size_t i = 0; i < n; i++) {
        nl_buf_putc(&writer->out, ' ');
        put_u32(&writer->out, shown[i].id);
        nl_buf_putc(&writer->out, ':');
        put_float(&writer->out, shown[i].logit, false);
    }
    nl_locale_leave(before);
    nl_buf_putc(&writer->out, '\n');
    free(shown);
    return check(writer, error);
}

/* ---- JSON ---- */

static void put_kind(struct nl_writer *writer, const char *kind)
{
    nl_buf_puts(&writer->out, "{\"kind\":\"");
    nl_buf_puts(&writer->out, kind);
    nl_buf_putc(&writer->out, '"');
}

static int end_line(struct nl_writer *writer, struct nl_error *error)
{
    nl_buf_puts(&writer->out, "}\n");
    return check(writer, error);
}

/* A member called "kind" gives way to the frame's. */
int nl_writer_json_object(struct nl_writer *writer, const char *kind, const struct nl_json *object,
                          struct nl_error *error)
{
    put_kind(writer, kind);
    for (const struct nl_json *member = nl_json_first(object); member; member = nl_json_next(member)) {
        if (strcmp(nl_json_key(member), "kind") == 0)
            continue;
        nl_buf_putc(&writer->out, ',');
        nl_json_print_key(member, &writer->out);
        nl_buf_putc(&writer->out, ':');
        nl_json_print(member, &writer->out);
    }
    return end_line(writer, error);
}

int nl_writer_json_cuts(struct nl_writer *writer, uint32_t count, struct nl_error *error)
{
    put_kind(writer, "CUTS");
    nl_buf_puts(&writer->out, ",\"count\":");
    put_u32(&writer->out, count);
    return end_line(writer, error);
}

static void put_ids(struct nl_writer *writer, const uint32_t *ids, size_t count)
{
    nl_buf_puts(&writer->out, ",\"ids\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            nl_buf_putc(&writer->out, ',');
        put_u32(&writer->out, ids[i]);
    }
    nl_buf_putc(&writer->out, ']');
}

int nl_writer_json_ids(struct nl_writer *writer, const uint32_t *ids, size_t count, struct nl_error *error)
{
    put_kind(writer, "TOKS");
    put_ids(writer, ids, count);
    return end_line(writer, error);
}

int nl_writer_json_logits(struct nl_writer *writer, uint32_t position, const uint32_t *ids,
                          const float *logits, size_t count, struct nl_error *error)
{
    put_kind(writer, ids ? "LGTK" : "LGTS");
    nl_buf_puts(&writer->out, ",\"position\":");
    put_u32(&writer->out, position);
    if (ids)
        put_ids(writer, ids, count);
    nl_buf_puts(&writer->out, ",\"logits\":[");
    locale_t before = nl_locale_enter();
    for (size_t i = 0; i < count; i++) {
        if (i)
            nl_buf_putc(&writer->out, ',');
        put_float(&writer->out, logits[i], true);
    }
    nl_locale_leave(before);
    nl_buf_putc(&writer->out, ']');
    return end_line(writer, error);
}
