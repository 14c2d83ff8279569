/* The stages of a decoder. See tok.h: bytes stream through them, so that text can be printed as its tokens
 * come. */
#include "tok.h"
#include "unicode.h"

static const char replacement_character[] = "\xef\xbf\xbd";

static int pass_on(struct nl_decoder *decoder, size_t i, const char *bytes, size_t size, bool end,
                   struct nl_error *error)
{
    return nl_tok_undo(decoder, i + 1, bytes, size, end, error);
}

int nl_tok_fallback_byte(const char *token, size_t size)
{
    int value = 0;
    if (size != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>')
        return -1;
    for (unsigned i = 3; i < 5; i++) {
        char c = token[i];
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            value = value * 16 + ((c | 32) - 'a' + 10);
        else if (c != '+' || i != 3) /* Rust's parser takes a plus sign */
            return -1;
    }
    return value;
}

/* How much of the text's end could be the beginning of the pattern. */
static size_t partial(const char *text, size_t length, const char *pattern, size_t size)
{
    size_t most = length < size - 1 ? length : size - 1;
    for (size_t n = most; n > 0; n--)
        if (memcmp(text + length - n, pattern, n) == 0)
            return n;
    return 0;
}

/* Inside a token that goes on, a string is replaced as far as no match can reach behind what is there. */
static int replace(struct nl_decoder *decoder, size_t i, bool end, struct nl_error *error)
{
    const struct nl_tokenizer *tok = decoder->tokenizer;
    const struct tok_stage *stage = &tok->decoders.data[i];
    struct tok_undo_state *state = &decoder->states[i];
    struct tok_string pattern = stage->pattern.literal;
    size_t keep = 0;
    if (!end) {
        if (stage->pattern.kind != TOK_LITERAL || pattern.size == 0)
            return 0;
        /* The part kept may begin inside a match: then the match decides. */
        const char *text = state->held.data, *found;
        size_t at = 0;
        while ((found = memmem(text + at, state->held.size - at, tok_text(tok, pattern), pattern.size)))
            at = (size_t)(found - text) + pattern.size;
        keep = partial(text + at, state->held.size - at, tok_text(tok, pattern), pattern.size);
    }
    size_t ready = state->held.size - keep;
    nl_buf_clear(&decoder->spare);
    nl_buf_add(&decoder->spare, "", 0);
    if (nl_tok_replace(tok, stage, decoder->regex, state->held.data, ready, &decoder->spare, error) != 0)
        return -1;
    memmove(state->held.data, state->held.data + ready, keep);
    state->held.size = keep;
    /* A copy of the buffer, for the next stage may use the spare one too. */
    struct nl_buf mine = decoder->spare;
    decoder->spare = (struct nl_buf){0};
    int result = mine.size > 0 || end ? pass_on(decoder, i, mine.data, mine.size, end, error) : 0;
    nl_buf_free(&decoder->spare);
    decoder->spare = mine;
    return result;
}

static int end_run(struct nl_decoder *decoder, size_t i, struct nl_error *error)
{
    struct tok_undo_state *state = &decoder->states[i];
    struct nl_buf *pending = &decoder->states[i].held;
    bool good = state->in_run && !state->bad;
    size_t broken = state->in_run ? pending->size : 0;
    state->in_run = state->bad = false;
    if (good && (broken == 0 || state->inside) && pass_on(decoder, i, "", 0, true, error) != 0)
        return -1;
    state->inside = false;
    pending->size = 0;
    for (; broken > 0; broken--)
        if (pass_on(decoder, i, replacement_character, 3, true, error) != 0)
            return -1;
    return 0;
}

/* One byte of a run of byte tokens. The batch decode takes a run whole, and replaces every byte of one that
   is not UTF-8; here each character goes out when it is complete, and from the first fault on every byte is
   replaced. */
static int run_byte(struct nl_decoder *decoder, size_t i, int byte, struct nl_error *error)
{
    struct tok_undo_state *state = &decoder->states[i];
    struct nl_buf *pending = &state->held; /* of an unfinished character */
    state->in_run = true;
    if (decoder->flags & NL_DECODE_BYTES) {
        char raw = (char)byte;
        state->inside = true;
        return pass_on(decoder, i, &raw, 1, false, error);
    }
    if (state->bad)
        return pass_on(decoder, i, replacement_character, 3, true, error);
    nl_buf_putc(pending, (char)byte);
    if (nl_buf_check(pending, "text", error) != 0)
        return -1;
    size_t fault = 0, good = nl_utf8_check(pending->data, pending->size, &fault);
    unsigned char first = (unsigned char)pending->data[0];
    if (good == pending->size) {
        char character[4];
        memcpy(character, pending->data, good);
        pending->size = 0;
        state->inside = true;
        return pass_on(decoder, i, character, good, false, error);
    }
    if (fault == pending->size && first >= 0xc2 && first <= 0xf4)
        return 0;
    if (end_run(decoder, i, error) != 0)
        return -1;
    state->in_run = state->bad = true;
    return 0;
}

static int byte_fallback(struct nl_decoder *decoder, size_t i, const char *token, size_t size,
                         struct nl_error *error)
{
    int byte = nl_tok_fallback_byte(token, size);
    if (byte >= 0)
        return run_byte(decoder, i, byte, error);
    if (end_run(decoder, i, error) != 0)
        return -1;
    return pass_on(decoder, i, token, size, true, error);
}

/* Bytes of byte-level tokens, which make one text: characters as they are complete, U+FFFD for what is none.
 */
static int byte_level(struct nl_decoder *decoder, size_t i, const char *bytes, size_t size,
                      struct nl_error *error)
{
    struct nl_buf *pending = &decoder->states[i].held;
    if (decoder->flags & NL_DECODE_BYTES)
        return pass_on(decoder, i, bytes, size, false, error);
    nl_buf_add(pending, bytes, size);
    if (nl_buf_check(pending, "text", error) != 0)
        return -1;
    size_t at = 0;
    while (at < pending->size) {
        size_t fault = 0, rest = pending->size - at, good = nl_utf8_check(pending->data + at, rest, &fault);
        if (good > 0 && pass_on(decoder, i, pending->data + at, good, false, error) != 0)
            return -1;
        at += good;
        if (good == rest)
            break;
        unsigned char first = (unsigned char)pending->data[at];
        if (at + fault == pending->size && first >= 0xc2 && first <= 0xf4)
            break; /* it may yet become a character */
        if (pass_on(decoder, i, replacement_character, 3, false, error) != 0)
            return -1;
        at += fault;
    }
    memmove(pending->data, pending->data + at, pending->size - at);
    pending->size -= at;
    return 0;
}

/* Up to `argument` leading and `end` trailing copies of one character are left out of each token. */
static int strip_ends(struct nl_decoder *decoder, size_t i, bool end, struct nl_error *error)
{
    const struct tok_stage *stage = &decoder->tokenizer->decoders.data[i];
    struct tok_undo_state *state = &decoder->states[i];
    const char *mark = tok_text(decoder->tokenizer, stage->text), *text = state->held.data;
    size_t size = stage->text.size, begin = 0, stop = state->held.size;
    while (state->left > 0 && stop - begin >= size) {
        bool same = memcmp(text + begin, mark, size) == 0;
        begin += same ? size : 0;
        state->left = same ? state->left - 1 : 0;
    }
    if (state->left > 0 && !end) /* what is left is less than a character: wait */
        stop = begin;
    for (uint32_t n = 0;
         n < stage->end && stop - begin >= size && memcmp(text + stop - size, mark, size) == 0; n++)
        stop -= size;
    if ((stop > begin || end) && pass_on(decoder, i, text + begin, stop - begin, end, error) != 0)
        return -1;
    size_t keep = end ? 0 : state->held.size - stop;
    memmove(state->held.data, state->held.data + stop, keep);
    state->held.size = keep;
    return 0;
}

/* The mark becomes a blank, in the first token of a text nothing. */
static int metaspace(struct nl_decoder *decoder, size_t i, struct nl_error *error)
{
    const struct tok_stage *stage = &decoder->tokenizer->decoders.data[i];
    struct tok_undo_state *state = &decoder->states[i];
    const char *mark = tok_text(decoder->tokenizer, stage->text);
    bool drop = state->tokens == 0 && stage->argument != TOK_NEVER && !(decoder->flags & NL_DECODE_CONTINUES);
    const char *at = state->held.data, *end = at + state->held.size, *found;
    while ((found = memmem(at, (size_t)(end - at), mark, stage->text.size))) {
        if (pass_on(decoder, i, at, (size_t)(found - at), false, error) != 0 ||
            (!drop && pass_on(decoder, i, " ", 1, false, error) != 0))
            return -1;
        at = found + stage->text.size;
    }
    return pass_on(decoder, i, at, (size_t)(end - at), true, error);
}

/* The suffix becomes a blank, in the last token nothing: what may be the last is held from its first suffix
 * on. */
static int bpe_suffix(struct nl_decoder *decoder, size_t i, bool last, struct nl_error *error)
{
    const struct tok_stage *stage = &decoder->tokenizer->decoders.data[i];
    struct nl_buf *held = &decoder->states[i].held;
    const char *at = held->data, *end = at + held->size, *found;
    const char *suffix = tok_text(decoder->tokenizer, stage->text);
    while (stage->text.size > 0 && (found = memmem(at, (size_t)(end - at), suffix, stage->text.size))) {
        if (pass_on(decoder, i, at, (size_t)(found - at), false, error) != 0 ||
            (!last && pass_on(decoder, i, " ", 1, false, error) != 0))
            return -1;
        at = found + stage->text.size;
    }
    int result = pass_on(decoder, i, at, (size_t)(end - at), true, error);
    held->size = 0;
    return result;
}

static int bpe_token(struct nl_decoder *decoder, size_t i, const char *token, size_t size,
                     struct nl_error *error)
{
    const struct tok_stage *stage = &decoder->tokenizer->decoders.data[i];
    struct tok_undo_state *state = &decoder->states[i];
    if (state->tokens > 0 && bpe_suffix(decoder, i, false, error) != 0)
        return -1;
    const char *found = stage->text.size
                            ? memmem(token, size, tok_text(decoder->tokenizer, stage->text), stage->text.size)
                            : NULL;
    size_t now = found ? (size_t)(found - token) : size;
    nl_buf_add(&state->held, token + now, size - now);
    nl_buf_add(&state->held, "", 0);
    if (nl_buf_check(&state->held, "text", error) != 0)
        return -1;
    return pass_on(decoder, i, token, now, false, error);
}

static int word_piece(struct nl_decoder *decoder, size_t i, const char *token, size_t size,
                      struct nl_error *error)
{
    const struct nl_tokenizer *tok = decoder->tokenizer;
    bool first = decoder->states[i].tokens == 0 && !(decoder->flags & NL_DECODE_CONTINUES);
    struct nl_buf text = {0};
    int result = nl_tok_undo_word_piece(tok, &tok->decoders.data[i], first, token, size, &text, error) != 0
                     ? -1
                     : pass_on(decoder, i, text.data ? text.data : "", text.size, true, error);
    nl_buf_free(&text);
    return result;
}

/* A token that is the same as the one before is left out, so is one of which nothing stays. */
static int ctc(struct nl_decoder *decoder, size_t i, const char *token, size_t size, struct nl_error *error)
{
    const struct nl_tokenizer *tok = decoder->tokenizer;
    struct tok_undo_state *state = &decoder->states[i];
    if (state->tokens > 0 && state->held.size == size && memcmp(state->held.data, token, size) == 0)
        return 0;
    nl_buf_clear(&state->held);
    nl_buf_add(&state->held, token, size);
    nl_buf_add(&state->held, "", 0);
    struct nl_buf text = {0};
    int result = nl_buf_check(&state->held, "text", error);
    if (result == 0)
        result = nl_tok_undo_ctc(tok, &tok->decoders.data[i], token, size, &text, error);
    if (result == 0 && text.size > 0)
        result = pass_on(decoder, i, text.data, text.size, true, error);
    nl_buf_free(&text);
    return result;
}

static int join(struct nl_decoder *decoder, size_t i, const char *bytes, size_t size, bool end,
                struct nl_error *error)
{
    struct tok_undo_state *state = &decoder->states[i];
    if (!state->inside && state->tokens > 0 && pass_on(decoder, i, " ", 1, false, error) != 0)
        return -1;
    state->inside = !end;
    return pass_on(decoder, i, bytes, size, end, error);
}

/* Stages that take bytes as they come. */
static int stream(struct nl_decoder *decoder, size_t i, const char *bytes, size_t size, bool end,
                  struct nl_error *error)
{
    const struct tok_stage *stage = &decoder->tokenizer->decoders.data[i];
    struct tok_undo_state *state = &decoder->states[i];
    switch ((enum tok_stage_kind)stage->kind) {
    case TOK_FUSE:
        return size ? pass_on(decoder, i, bytes, size, false, error) : 0;
    case TOK_JOIN:
        return join(decoder, i, bytes, size, end, error);
    case TOK_STRIP_ENDS:
        if (!state->inside)
            state->left = state->tokens == 0 && (decoder->flags & NL_DECODE_CONTINUES) ? 0 : stage->argument;
        state->inside = !end;
        nl_buf_add(&state->held, bytes, size);
        nl_buf_add(&state->held, "", 0);
        return nl_buf_check(&state->held, "text", error) != 0 ? -1 : strip_ends(decoder, i, end, error);
    case TOK_REPLACE:
        nl_buf_add(&state->held, bytes, size);
        nl_buf_add(&state->held, "", 0);
        return nl_buf_check(&state->held, "text", error) != 0 ? -1 : replace(decoder, i, end, error);
    default:
        return nl_fail(error, NL_UNSUPPORTED, "not a decoder: stage %u", stage->kind);
    }
}

/* Stages that need a token whole. */
static int whole(struct nl_decoder *decoder, size_t i, const char *token, size_t size, struct nl_error *error)
{
    struct tok_undo_state *state = &decoder->states[i];
    switch ((enum tok_stage_kind)decoder->tokenizer->decoders.data[i].kind) {
    case TOK_BYTE_FALLBACK:
        return byte_fallback(decoder, i, token, size, error);
    case TOK_BPE_DECODER:
        return bpe_token(decoder, i, token, size, error);
    case TOK_WORD_PIECE:
        return word_piece(decoder, i, token, size, error);
    case TOK_CTC:
        return ctc(decoder, i, token, size, error);
    case TOK_METASPACE:
        nl_buf_clear(&state->held);
        nl_buf_add(&state->held, token, size);
        return nl_buf_check(&state->held, "text", error) != 0 ? -1 : metaspace(decoder, i, error);
    default: { /* TOK_BYTE_LEVEL */
        struct nl_buf bytes = {0};
        bool mapped = nl_utf8_check(token, size, NULL) == size && nl_tok_chars_to_bytes(token, size, &bytes);
        int result = nl_buf_check(&bytes, "text", error) != 0 ? -1
                     : mapped ? byte_level(decoder, i, bytes.data, bytes.size, error)
                              : byte_level(decoder, i, token, size, error);
        nl_buf_free(&bytes);
        return result;
    }
    }
}

static bool needs_whole(uint32_t kind)
{
    return kind == TOK_BYTE_FALLBACK || kind == TOK_BPE_DECODER || kind == TOK_METASPACE ||
           kind == TOK_BYTE_LEVEL || kind == TOK_WORD_PIECE || kind == TOK_CTC;
}

int nl_tok_undo(struct nl_decoder *decoder, size_t i, const char *bytes, size_t size, bool end,
                struct nl_error *error)
{
    const struct tok_stages *stages = &decoder->tokenizer->decoders;
    if (i == stages->count) {
        nl_buf_add(decoder->out, bytes, size);
        return nl_buf_check(decoder->out, "text", error);
    }
    struct tok_undo_state *state = &decoder->states[i];
    int result;
    if (!needs_whole(stages->data[i].kind)) {
        result = stream(decoder, i, bytes, size, end, error);
    } else if (end && state->parts.size == 0) {
        result = whole(decoder, i, bytes, size, error);
    } else {
        nl_buf_add(&state->parts, bytes, size);
        if (nl_buf_check(&state->parts, "text", error) != 0)
            return -1;
        result = end ? whole(decoder, i, state->parts.data, state->parts.size, error) : 0;
        if (end)
            nl_buf_clear(&state->parts);
    }
    state->tokens += end;
    return result;
}

static int finish_stage(struct nl_decoder *decoder, size_t i, struct nl_error *error)
{
    struct tok_undo_state *state = &decoder->states[i];
    switch ((enum tok_stage_kind)decoder->tokenizer->decoders.data[i].kind) {
    case TOK_BYTE_FALLBACK:
        return end_run(decoder, i, error);
    case TOK_BPE_DECODER:
        return state->tokens > 0 ? bpe_suffix(decoder, i, true, error) : 0;
    case TOK_BYTE_LEVEL:
        if (state->held.size > 0 && pass_on(decoder, i, replacement_character, 3, false, error) != 0)
            return -1;
        return pass_on(decoder, i, "", 0, true, error);
    case TOK_FUSE:
        return pass_on(decoder, i, "", 0, true, error);
    default:
        return 0;
    }
}

int nl_tok_undo_finish(struct nl_decoder *decoder, struct nl_error *error)
{
    int result = 0;
    for (size_t i = 0; i < decoder->tokenizer->decoders.count; i++) {
        if (result == 0)
            result = finish_stage(decoder, i, error);
        struct tok_undo_state *state = &decoder->states[i];
        struct nl_buf held = state->held, parts = state->parts;
        *state = (struct tok_undo_state){.held = held, .parts = parts};
        nl_buf_clear(&state->held);
        nl_buf_clear(&state->parts);
    }
    return result;
}
