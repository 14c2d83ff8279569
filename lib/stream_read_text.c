/* The text twin, read: lines of ids, or of logits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "locale_c.h"
#include "stream_internal.h"

/* Also a newline, where there can be none. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int begin_object(struct nl_reader *reader, const char *kind, const char *text, struct nl_error *error)
{
    nl_reader_begin(reader, kind);
    nl_buf_puts(&reader->payload, text);
    return nl_buf_check(&reader->payload, "stream", error) == 0 ? 1 : -1;
}

/* DONE, when the line has ended or, where that is allowed, the input has. */
static int end_line(struct nl_reader *reader, bool newline, struct nl_error *error)
{
    if (!newline && reader->fragment)
        return nl_reader_cut(reader, false, error);
    reader->line += newline;
    return begin_object(reader, "DONE", "{\"finish\":\"input\"}", error);
}

/* NLS1, or 0 when no further line comes. */
static int begin_line(struct nl_reader *reader, struct nl_error *error)
{
    if (reader->in_at == reader->in.size) {
        ssize_t got = nl_reader_fill(reader, error);
        if (got <= 0)
            return (int)got;
    }
    char text[40];
    snprintf(text, sizeof text, "{\"seq\":%llu}", (unsigned long long)reader->sequences++);
    return begin_object(reader, "NLS1", text, error);
}

/* "what 'word': line ...", the word as far as the buffer goes. */
static int bad_word(const struct nl_reader *reader, const char *what, const char *word, const char *end,
                    struct nl_error *error)
{
    char text[120];
    int length = 0;
    while (word + length < end && length < 40 && word[length] > ' ' && word[length] < 127)
        length++;
    if (length == 0 && word < end)
        snprintf(text, sizeof text, "%s: byte 0x%02x", what, (unsigned)(uint8_t)*word);
    else
        snprintf(text, sizeof text, "%s: '%.*s'", what, length, word);
    return nl_reader_fault(reader, NL_DATA, text, error);
}

/* ---- Ids ---- */

static void end_id(struct nl_reader *reader)
{
    uint32_t id = (uint32_t)reader->number;
    if (reader->digits)
        nl_buf_add(&reader->payload, &id, sizeof id);
    reader->digits = 0;
    reader->number = 0;
}

/* Moves the complete ids that are in the buffer into the payload, up to the line's end. */
static int take_ids(struct nl_reader *reader, struct nl_error *error)
{
    const char *at = reader->in.data + reader->in_at, *end = reader->in.data + reader->in.size;
    for (; at < end && *at != '\n'; at++) {
        if (is_blank(*at)) {
            end_id(reader);
            continue;
        }
        const char *word = (size_t)(at - reader->in.data) >= reader->digits ? at - reader->digits : at;
        if (*at < '0' || *at > '9')
            return bad_word(reader, "not an id", word, end, error);
        reader->number = reader->number * 10 + (uint64_t)(*at - '0');
        reader->digits++;
        if (reader->number > UINT32_MAX || reader->digits > 1000)
            return bad_word(reader, "id out of range", word, end, error);
    }
    reader->in_at = (size_t)(at - reader->in.data);
    return 0;
}

static int next_ids(struct nl_reader *reader, struct nl_error *error)
{
    nl_reader_begin(reader, "TOKS");
    for (;;) {
        if (take_ids(reader, error) != 0)
            return -1;
        bool newline = reader->in_at < reader->in.size;
        if (newline || reader->eof)
            end_id(reader);
        if (nl_buf_check(&reader->payload, "stream", error) != 0)
            return -1;
        if (reader->payload.size > 0)
            return 1;
        reader->in_at += newline;
        if (newline || reader->eof)
            return end_line(reader, newline, error);
        if (nl_reader_fill(reader, error) < 0)
            return -1;
    }
}

/* ---- Logits ---- */

/* The number of digits at the start of `text`, and their value. */
static size_t parse_id(const char *text, const char *end, uint32_t *id)
{
    uint64_t value = 0;
    size_t size = 0;
    for (; text + size < end && text[size] >= '0' && text[size] <= '9' && value <= UINT32_MAX; size++)
        value = value * 10 + (uint64_t)(text[size] - '0');
    *id = (uint32_t)value;
    return value > UINT32_MAX ? 0 : size;
}

/* `id:value` at *at; steps over it. The line ends in a byte that no number holds. */
static int parse_logit(struct nl_reader *reader, const char **at, const char *end, struct nl_buf *values,
                       struct nl_error *error)
{
    const char *word = *at;
    uint32_t id;
    size_t digits = parse_id(word, end, &id);
    if (digits == 0 || word + digits == end || word[digits] != ':' || is_blank(word[digits + 1]))
        return bad_word(reader, "not id:value", word, end, error);
    char *rest;
    errno = 0;
    float value = strtof(word + digits + 1, &rest);
    bool too_large = errno == ERANGE && (value > 1 || value < -1);
    if (rest == word + digits + 1 || too_large || rest > end || (rest < end && !is_blank(*rest)))
        return bad_word(reader, "not id:value", word, end, error);
    nl_buf_add(&reader->payload, &id, sizeof id);
    nl_buf_add(values, &value, sizeof value);
    *at = rest;
    return 0;
}

/* LGTK from a line, 0 when it is blank. */
static int parse_line(struct nl_reader *reader, const char *at, const char *end, struct nl_buf *values,
                      struct nl_error *error)
{
    while (at < end && is_blank(*at))
        at++;
    if (at == end)
        return 0;
    uint32_t prefix[2] = {0};
    size_t digits = parse_id(at, end, &prefix[0]);
    if (digits == 0 || (at + digits < end && !is_blank(at[digits])))
        return bad_word(reader, "not a position", at, end, error);
    nl_reader_begin(reader, "LGTK");
    nl_buf_add(&reader->payload, prefix, sizeof prefix);
    for (at += digits;; prefix[1]++) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end)
            break;
        if (parse_logit(reader, &at, end, values, error) != 0)
            return -1;
    }
    if (values->size)
        nl_buf_add(&reader->payload, values->data, values->size);
    if (nl_buf_check(&reader->payload, "stream", error) != 0 || nl_buf_check(values, "stream", error) != 0)
        return -1;
    memcpy(reader->payload.data, prefix, sizeof prefix);
    return 1;
}

static int next_logits(struct nl_reader *reader, struct nl_error *error)
{
    char *line;
    size_t length;
    bool newline;
    int got = nl_reader_line(reader, &line, &length, &newline, error);
    if (got < 0)
        return -1;
    if (got == 0)
        return end_line(reader, false, error);
    line[length] = '\0'; /* over the newline, or over the NUL behind the buffer's end */
    struct nl_buf values = {0};
    locale_t before = nl_locale_enter();
    got = parse_line(reader, line, line + length, &values, error);
    nl_locale_leave(before);
    nl_buf_free(&values);
    if (got == 0)
        return end_line(reader, newline, error);
    reader->line += newline;
    return got;
}

int nl_reader_next_text(struct nl_reader *reader, struct nl_error *error)
{
    if (!reader->in_sequence)
        return begin_line(reader, error);
    return reader->expect_logits ? next_logits(reader, error) : next_ids(reader, error);
}
