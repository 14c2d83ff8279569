/*
 * Normalizers with the origin of each byte. Those that work on characters or clusters of them are given one
 * at a time; where the parts do not add up to the whole (a character that joins the next), more are taken
 * together.
 */
#include "tok_align.h"

#include <stdlib.h>

#include "unicode.h"
#include "unicode_sets.h"

enum { MOST_TOGETHER = 64 /* bytes; then the rest of the text is one part */ };

void nl_tok_aligned_free(struct tok_aligned *aligned)
{
    nl_buf_free(&aligned->text);
    free(aligned->origins);
    *aligned = (struct tok_aligned){0};
}

int nl_tok_aligned_add(struct tok_aligned *aligned, const char *bytes, size_t size, struct tok_origin origin,
                       struct nl_error *error)
{
    size_t start = aligned->text.size;
    nl_buf_add(&aligned->text, bytes, size);
    if (nl_buf_check(&aligned->text, "text", error) != 0 ||
        nl_grow(&aligned->origins, &aligned->capacity, start + size, sizeof *aligned->origins, "text",
                error) != 0)
        return -1;
    for (size_t i = start; i < start + size; i++)
        aligned->origins[i] = origin;
    return 0;
}

int nl_tok_aligned_copy(struct tok_aligned *aligned, const struct tok_aligned *from, size_t begin, size_t end,
                        struct nl_error *error)
{
    static const struct tok_origin nowhere;
    size_t start = aligned->text.size;
    if (nl_tok_aligned_add(aligned, from->text.data + begin, end - begin, nowhere, error) != 0)
        return -1;
    if (end > begin)
        memcpy(aligned->origins + start, from->origins + begin, (end - begin) * sizeof *from->origins);
    return 0;
}

struct tok_origin nl_tok_aligned_origin(const struct tok_aligned *aligned, size_t begin, size_t end)
{
    if (begin == end) { /* between two bytes */
        size_t at = begin < aligned->text.size ? aligned->origins[begin].begin
                    : begin > 0                ? aligned->origins[begin - 1].end
                                               : 0;
        return (struct tok_origin){at, at};
    }
    struct tok_origin origin = aligned->origins[begin];
    for (size_t i = begin + 1; i < end; i++) {
        if (aligned->origins[i].begin < origin.begin)
            origin.begin = aligned->origins[i].begin;
        if (aligned->origins[i].end > origin.end)
            origin.end = aligned->origins[i].end;
    }
    return origin;
}

static int prepend(const struct nl_tokenizer *tok, const struct tok_stage *stage,
                   const struct tok_aligned *in, struct tok_aligned *out, struct nl_error *error)
{
    if (in->text.size == 0)
        return 0;
    struct tok_origin first = nl_tok_aligned_origin(in, 0, nl_utf8_size((unsigned char)in->text.data[0]));
    if (nl_tok_aligned_add(out, tok_text(tok, stage->text), stage->text.size, first, error) != 0)
        return -1;
    return nl_tok_aligned_copy(out, in, 0, in->text.size, error);
}

static int replace(struct nl_encoder *encoder, const struct tok_stage *stage, const struct tok_aligned *in,
                   struct tok_aligned *out, struct nl_error *error)
{
    const struct nl_tokenizer *tok = encoder->tokenizer;
    struct tok_matches matches = {tok, &stage->pattern, encoder->regex, in->text.data, in->text.size,
                                  0,   SIZE_MAX};
    size_t done = 0, begin, end;
    int got;
    while ((got = nl_tok_next_match(&matches, &begin, &end, error)) == 1) {
        if (nl_tok_aligned_copy(out, in, done, begin, error) != 0 ||
            nl_tok_aligned_add(out, tok_text(tok, stage->text), stage->text.size,
                               nl_tok_aligned_origin(in, begin, end), error) != 0)
            return -1;
        done = end;
    }
    return got < 0 ? -1 : nl_tok_aligned_copy(out, in, done, in->text.size, error);
}

static bool by_character(const struct tok_stage *stage)
{
    uint32_t kind = stage->kind;
    return kind == TOK_LOWERCASE || kind == TOK_STRIP_ACCENTS || kind == TOK_NMT || kind == TOK_BYTE_MAP;
}

/* The end of the part that begins at `at`: a character or a cluster. */
static size_t part_end(const struct tok_stage *stage, const struct tok_aligned *in, size_t at)
{
    return by_character(stage) ? at + nl_utf8_size((unsigned char)in->text.data[at])
                               : nl_reference_grapheme(in->text.data, in->text.size, at);
}

/* The part's normalized text when `whole` goes on with it. */
static int try_part(struct nl_encoder *encoder, const struct tok_stage *stage, const struct tok_aligned *in,
                    size_t begin, size_t end, struct nl_buf *part, struct nl_error *error)
{
    nl_buf_clear(part);
    nl_buf_add(part, "", 0);
    return nl_tok_normalize_stage(encoder, stage, in->text.data + begin, end - begin, part, error);
}

static int by_parts(struct nl_encoder *encoder, const struct tok_stage *stage, const struct tok_aligned *in,
                    const struct nl_buf *whole, struct tok_aligned *out, struct nl_error *error)
{
    struct nl_buf part = {0};
    int result = 0;
    for (size_t at = 0, end = 0; at < in->text.size && result == 0; at = end) {
        size_t done = out->text.size;
        for (end = at; result == 0;) {
            end = part_end(stage, in, end);
            if (end - at > MOST_TOGETHER)
                end = in->text.size;
            result = try_part(encoder, stage, in, at, end, &part, error);
            if (end == in->text.size ||
                (part.size <= whole->size - done && memcmp(part.data, whole->data + done, part.size) == 0))
                break;
        }
        if (result == 0 && end == in->text.size) /* the rest, whatever it is */
            result = nl_tok_aligned_add(out, whole->data + done, whole->size - done,
                                        nl_tok_aligned_origin(in, at, end), error);
        else if (result == 0)
            result = nl_tok_aligned_add(out, part.data, part.size, nl_tok_aligned_origin(in, at, end), error);
    }
    nl_buf_free(&part);
    return result;
}

int nl_tok_align_normalizer(struct nl_encoder *encoder, const struct tok_stage *stage,
                            const struct tok_aligned *in, struct tok_aligned *out, struct nl_error *error)
{
    if (stage->kind == TOK_PREPEND)
        return prepend(encoder->tokenizer, stage, in, out, error);
    if (stage->kind == TOK_REPLACE)
        return replace(encoder, stage, in, out, error);
    struct nl_buf whole = {0};
    nl_buf_add(&whole, "", 0);
    int result = nl_tok_normalize_stage(encoder, stage, in->text.data, in->text.size, &whole, error);
    if (result == 0 && stage->kind == TOK_STRIP) {
        const char *found = memmem(in->text.data, in->text.size, whole.data, whole.size);
        size_t begin = found ? (size_t)(found - in->text.data) : 0;
        /* What is left begins with no blank, so that its first place is the right one, unless only the end
           was stripped: then it is the beginning. */
        begin = stage->argument & 1 ? begin : 0;
        result = nl_tok_aligned_copy(out, in, begin, begin + whole.size, error);
    } else if (result == 0) {
        result = by_parts(encoder, stage, in, &whole, out, error);
    }
    nl_buf_free(&whole);
    return result;
}
