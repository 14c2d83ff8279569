/* Pre-tokenizers: a text and ranges over it, refined stage by stage. */
#include "tok.h"
#include "unicode.h"
#include "unicode_sets.h"

static int add_range(struct nl_encoder *encoder, size_t begin, size_t end, struct nl_error *error)
{
    struct tok_ranges *next = &encoder->next;
    if (begin == end)
        return 0;
    if (nl_grow(&next->data, &next->capacity, next->count + 1, sizeof *next->data, "text", error) != 0)
        return -1;
    next->data[next->count++] = (struct tok_range){begin, end};
    return 0;
}

static void swap_ranges(struct nl_encoder *encoder)
{
    struct tok_ranges old = encoder->ranges;
    encoder->ranges = encoder->next;
    encoder->next = old;
    encoder->next.count = 0;
}

/* Puts matches and what lies between them together as a behaviour says. */
struct splitter {
    struct nl_encoder *encoder;
    enum tok_behavior behavior;
    struct tok_range held;  /* not yet added: a later part may join it */
    bool holding, previous; /* the part before was a match */
};

static int flush(struct splitter *s, struct nl_error *error)
{
    bool holding = s->holding;
    s->holding = false;
    return holding ? add_range(s->encoder, s->held.begin, s->held.end, error) : 0;
}

static int feed(struct splitter *s, size_t begin, size_t end, bool match, struct nl_error *error)
{
    bool join = false;
    switch (s->behavior) {
    case TOK_REMOVED:
        return match ? 0 : add_range(s->encoder, begin, end, error);
    case TOK_ISOLATED:
        return add_range(s->encoder, begin, end, error);
    case TOK_CONTIGUOUS:
        join = match == s->previous;
        break;
    case TOK_MERGED_WITH_PREVIOUS:
        join = match && !s->previous;
        break;
    case TOK_MERGED_WITH_NEXT:
        join = s->previous && !match;
        break;
    }
    s->previous = match;
    if (join && s->holding) {
        s->held.end = end;
        return 0;
    }
    if (flush(s, error) != 0)
        return -1;
    s->held = (struct tok_range){begin, end};
    s->holding = true;
    return 0;
}

static int split_range(struct nl_encoder *encoder, const struct tok_stage *stage, struct tok_range range,
                       struct nl_error *error)
{
    const char *text = encoder->text + range.begin;
    struct splitter s = {.encoder = encoder, .behavior = (enum tok_behavior)stage->argument};
    struct tok_matches matches = {
        encoder->tokenizer, &stage->pattern, encoder->regex, text, range.end - range.begin, 0, SIZE_MAX};
    size_t done = range.begin, begin, end;
    int got;
    while ((got = nl_tok_next_match(&matches, &begin, &end, error)) == 1) {
        begin += range.begin;
        end += range.begin;
        if ((done != begin && feed(&s, done, begin, stage->invert, error) != 0) ||
            feed(&s, begin, end, !stage->invert, error) != 0)
            return -1;
        done = end;
    }
    if (got < 0 || (done != range.end && feed(&s, done, range.end, stage->invert, error) != 0))
        return -1;
    return flush(&s, error);
}

/* pre_tokenizers/unicode_scripts of the reference: what is of every script stays with what is before it, and
 * is dropped where nothing is. */
static int split_scripts(struct nl_encoder *encoder, struct tok_range range, struct nl_error *error)
{
    int script = NL_ANY_SCRIPT;
    size_t start = range.end;
    unsigned size;
    for (size_t at = range.begin; at < range.end; at += size) {
        int now = nl_reference_script(nl_utf8_get(encoder->text + at, &size));
        if (now == NL_ANY_SCRIPT || now == script)
            continue;
        if (script != NL_ANY_SCRIPT && add_range(encoder, start, at, error) != 0)
            return -1;
        start = at;
        script = now;
    }
    return add_range(encoder, start, range.end, error);
}

static int split_lengths(struct nl_encoder *encoder, uint32_t most, struct tok_range range,
                         struct nl_error *error)
{
    size_t start = range.begin;
    uint32_t count = 0;
    for (size_t at = range.begin; at < range.end; at += nl_utf8_size((unsigned char)encoder->text[at])) {
        if (count == most) {
            if (add_range(encoder, start, at, error) != 0)
                return -1;
            start = at;
            count = 0;
        }
        count++;
    }
    return add_range(encoder, start, range.end, error);
}

static int split(struct nl_encoder *encoder, const struct tok_stage *stage, struct nl_error *error)
{
    for (size_t i = 0; i < encoder->ranges.count; i++) {
        struct tok_range range = encoder->ranges.data[i];
        int result = stage->kind == TOK_SCRIPTS        ? split_scripts(encoder, range, error)
                     : stage->kind == TOK_FIXED_LENGTH ? split_lengths(encoder, stage->argument, range, error)
                                                       : split_range(encoder, stage, range, error);
        if (result != 0)
            return -1;
    }
    swap_ranges(encoder);
    return 0;
}

static bool begins_with(const char *text, size_t length, const char *prefix, size_t size)
{
    return length >= size && memcmp(text, prefix, size) == 0;
}

static int metaspace(struct nl_encoder *encoder, const struct tok_stage *stage, const char *text,
                     size_t length, bool first, struct nl_buf *out, struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    const char *mark = tok_text(tok, stage->text);
    bool marked = begins_with(text, length, mark, stage->text.size) || begins_with(text, length, " ", 1);
    if (!marked && (stage->argument == TOK_ALWAYS || (stage->argument == TOK_FIRST && first)))
        nl_buf_add(out, mark, stage->text.size);
    return nl_tok_replace(tok, stage, encoder->regex, text, length, out, error);
}

/* A stage that changes the text: each range anew, one behind the other, into the buffer that is not in use.
 */
static int rewrite(struct nl_encoder *encoder, const struct tok_stage *stage, struct nl_error *error)
{
    struct nl_buf *out = &encoder->rewritten[encoder->text == encoder->rewritten[0].data];
    nl_buf_clear(out);
    nl_buf_add(out, "", 0);
    for (size_t i = 0; i < encoder->ranges.count; i++) {
        struct tok_range range = encoder->ranges.data[i];
        const char *text = encoder->text + range.begin;
        size_t length = range.end - range.begin, start = out->size;
        bool first = encoder->at_start && range.begin == 0;
        if (stage->kind == TOK_METASPACE) {
            if (metaspace(encoder, stage, text, length, first, out, error) != 0)
                return -1;
        } else if (stage->kind == TOK_BYTE_MAP) {
            nl_tok_bytes_to_chars(text, length, out);
        } else {
            if (!begins_with(text, length, " ", 1))
                nl_buf_putc(out, ' ');
            nl_buf_add(out, text, length);
        }
        if (encoder->hook.call && (nl_buf_check(out, "text", error) != 0 ||
                                   encoder->hook.call(encoder->hook.context, stage, range, out->data + start,
                                                      out->size - start, error) != 0))
            return -1;
        if (add_range(encoder, start, out->size, error) != 0)
            return -1;
    }
    encoder->at_start = encoder->at_start && encoder->ranges.count > 0 && encoder->ranges.data[0].begin == 0;
    if (nl_buf_check(out, "text", error) != 0)
        return -1;
    encoder->text = out->data;
    encoder->length = out->size;
    swap_ranges(encoder);
    return 0;
}

int nl_tok_split(struct nl_encoder *encoder, const char *text, size_t length, bool at_start,
                 struct nl_error *error)
{
    return nl_tok_split_some(encoder, encoder->tokenizer->splits.count, text, length, at_start, error);
}

int nl_tok_split_some(struct nl_encoder *encoder, size_t count, const char *text, size_t length,
                      bool at_start, struct nl_error *error)
{
    const struct tok_stages *stages = &encoder->tokenizer->splits;
    encoder->text = text;
    encoder->length = length;
    encoder->at_start = at_start;
    encoder->next.count = 0;
    if (add_range(encoder, 0, length, error) != 0)
        return -1;
    swap_ranges(encoder);
    for (size_t i = 0; i < count; i++) {
        uint32_t kind = stages->data[i].kind;
        bool splits = kind == TOK_SPLIT || kind == TOK_SCRIPTS || kind == TOK_FIXED_LENGTH;
        if ((splits ? split : rewrite)(encoder, &stages->data[i], error) != 0)
            return -1;
    }
    return 0;
}
