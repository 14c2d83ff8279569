#include "emit.h"

#include <inttypes.h>

#include "json.h"

static void new_line(struct nl_emit *emit)
{
    nl_buf_putc(emit->out, '\n');
    for (unsigned i = 0; i < emit->depth; i++)
        nl_buf_puts(emit->out, "  ");
}

/* What stands before a value or a key. */
static void begin(struct nl_emit *emit)
{
    if (!emit->after_key) {
        if (emit->has_member)
            nl_buf_putc(emit->out, ',');
        if (emit->depth)
            new_line(emit);
    }
    emit->after_key = false;
    emit->has_member = true;
}

void nl_emit_open(struct nl_emit *emit, char bracket)
{
    begin(emit);
    nl_buf_putc(emit->out, bracket);
    emit->depth++;
    emit->has_member = false;
}

void nl_emit_close(struct nl_emit *emit, char bracket)
{
    emit->depth--;
    if (emit->has_member)
        new_line(emit);
    nl_buf_putc(emit->out, bracket);
    emit->has_member = true;
    if (emit->depth == 0)
        nl_buf_putc(emit->out, '\n');
}

void nl_emit_key(struct nl_emit *emit, const char *key)
{
    nl_emit_long_key(emit, key, strlen(key));
}

void nl_emit_long_key(struct nl_emit *emit, const char *key, size_t length)
{
    nl_emit_string(emit, key, length);
    nl_buf_puts(emit->out, ": ");
    emit->after_key = true;
}

void nl_emit_string(struct nl_emit *emit, const char *string, size_t length)
{
    begin(emit);
    nl_json_quote(emit->out, string, length);
}

void nl_emit_integer(struct nl_emit *emit, int64_t value)
{
    begin(emit);
    nl_buf_printf(emit->out, "%" PRId64, value);
}

void nl_emit_float(struct nl_emit *emit, double value)
{
    begin(emit);
    size_t at = emit->out->size;
    nl_json_print_number(value, emit->out);
    if (!emit->out->failed && !strpbrk(emit->out->data + at, ".e"))
        nl_buf_puts(emit->out, ".0");
}

void nl_emit_raw(struct nl_emit *emit, const char *json)
{
    begin(emit);
    nl_buf_puts(emit->out, json);
}

void nl_emit_string_member(struct nl_emit *emit, const char *key, const char *value)
{
    nl_emit_key(emit, key);
    nl_emit_string(emit, value, strlen(value));
}

void nl_emit_integer_member(struct nl_emit *emit, const char *key, int64_t value)
{
    nl_emit_key(emit, key);
    nl_emit_integer(emit, value);
}

void nl_emit_bool_member(struct nl_emit *emit, const char *key, bool value)
{
    nl_emit_raw_member(emit, key, value ? "true" : "false");
}

void nl_emit_raw_member(struct nl_emit *emit, const char *key, const char *json)
{
    nl_emit_key(emit, key);
    nl_emit_raw(emit, json);
}
