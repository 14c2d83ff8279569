/* Decoders: from ids to text as they come, and what each id stands for alone. */
#include <stdlib.h>

#include "tok.h"
#include "unicode.h"

struct nl_decoder *nl_decoder_open(const struct nl_tokenizer *tok, unsigned flags, struct nl_error *error)
{
    struct nl_decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder)
        decoder->states = calloc(tok->decoders.count + 1, sizeof *decoder->states);
    if (!decoder || !decoder->states) {
        free(decoder);
        nl_fail_memory(error, "decoder");
        return NULL;
    }
    decoder->tokenizer = tok;
    decoder->flags = flags;
    decoder->regex = nl_regex_scratch_new(error);
    if (!decoder->regex) {
        nl_decoder_close(decoder);
        return NULL;
    }
    return decoder;
}

void nl_decoder_close(struct nl_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; i < decoder->tokenizer->decoders.count; i++) {
        nl_buf_free(&decoder->states[i].held);
        nl_buf_free(&decoder->states[i].parts);
    }
    free(decoder->states);
    nl_regex_scratch_free(decoder->regex);
    nl_buf_free(&decoder->token);
    nl_buf_free(&decoder->spare);
    free(decoder);
}

void nl_decoder_set_flags(struct nl_decoder *decoder, unsigned flags)
{
    decoder->flags = flags;
}

/* A token that a Unigram vocabulary has twice: the reference hides it by its content. */
static bool is_hidden_double(const struct nl_tokenizer *tok, uint32_t id, const struct nl_buf *token)
{
    if (tok->model != TOK_MODEL_UNIGRAM || nl_tok_find(tok, token->data, token->size) == id)
        return false;
    const struct tok_added_token *added = nl_tok_added_by_content(tok, token->data, token->size);
    return added && added->special;
}

int nl_decoder_push(struct nl_decoder *decoder, uint32_t id, struct nl_buf *out, struct nl_error *error)
{
    const struct nl_tokenizer *tok = decoder->tokenizer;
    const struct tok_added_token *added = nl_tok_added_by_id(tok, id);
    if (added && added->hidden && !(decoder->flags & NL_DECODE_SPECIAL))
        return 0;
    decoder->out = out;
    if (added)
        return nl_tok_undo(decoder, 0, tok_text(tok, added->pattern), added->pattern.size, true, error);
    nl_buf_clear(&decoder->token);
    nl_buf_add(&decoder->token, "", 0);
    if (!nl_tok_content(tok, id, &decoder->token))
        return nl_fail(error, NL_DATA, "no token has the id %u", id);
    if (nl_buf_check(&decoder->token, "token", error) != 0)
        return -1;
    if (!(decoder->flags & NL_DECODE_SPECIAL) && is_hidden_double(tok, id, &decoder->token))
        return 0;
    return nl_tok_undo(decoder, 0, decoder->token.data, decoder->token.size, true, error);
}

int nl_decoder_finish(struct nl_decoder *decoder, struct nl_buf *out, struct nl_error *error)
{
    decoder->out = out;
    return nl_tok_undo_finish(decoder, error);
}

/* One stage of a decoder on one token inside a text, bytes as they are. */
static int apply(const struct nl_tokenizer *tok, const struct tok_stage *stage,
                 struct nl_regex_scratch *regex, const struct nl_buf *in, struct nl_buf *out,
                 struct nl_error *error)
{
    struct tok_stage blank = *stage;
    int byte;
    if (nl_utf8_check(in->data, in->size, NULL) <
        in->size) { /* part of a character: no stage has a say in it */
        nl_buf_add(out, in->data, in->size);
        return nl_buf_check(out, "token", error);
    }
    switch ((enum tok_stage_kind)stage->kind) {
    case TOK_BYTE_LEVEL:
        if (!nl_tok_chars_to_bytes(in->data, in->size, out))
            nl_buf_add(out, in->data, in->size);
        break;
    case TOK_BYTE_FALLBACK:
        byte = nl_tok_fallback_byte(in->data, in->size);
        if (byte >= 0)
            nl_buf_putc(out, (char)byte);
        else
            nl_buf_add(out, in->data, in->size);
        break;
    case TOK_WORD_PIECE:
        return nl_tok_undo_word_piece(tok, stage, false, in->data, in->size, out, error);
    case TOK_CTC:
        return nl_tok_undo_ctc(tok, stage, in->data, in->size, out, error);
    case TOK_REPLACE:
        return nl_tok_replace(tok, stage, regex, in->data, in->size, out, error);
    case TOK_METASPACE:
    case TOK_BPE_DECODER: /* the mark becomes a blank: the stage the other way round */
        blank.pattern = (struct tok_pattern){.kind = TOK_LITERAL, .literal = stage->text};
        blank.text = tok->blank;
        if (stage->text.size > 0)
            return nl_tok_replace(tok, &blank, regex, in->data, in->size, out, error);
        nl_buf_add(out, in->data, in->size);
        break;
    default:
        nl_buf_add(out, in->data, in->size);
    }
    return nl_buf_check(out, "token", error);
}

/* The piece of one id: its token (in *a) through all stages. */
static int build_piece(struct nl_tokenizer *tok, uint32_t id, struct nl_regex_scratch *regex,
                       struct nl_buf *a, struct nl_buf *b, struct nl_error *error)
{
    for (size_t i = 0; i < tok->decoders.count; i++) {
        nl_buf_clear(b);
        nl_buf_add(b, "", 0);
        if (apply(tok, &tok->decoders.data[i], regex, a, b, error) != 0)
            return -1;
        struct nl_buf swap = *a;
        *a = *b;
        *b = swap;
    }
    return nl_tok_intern(tok, a->data, a->size, &tok->pieces[id], error);
}

/* Whether the decoder turns a model's token back into the bytes that are its key. */
static bool is_key(const struct nl_tokenizer *tok, uint32_t id)
{
    return tok->raw && tok->decoders.count == 1 && tok->decoders.data[0].kind == TOK_BYTE_LEVEL &&
           id < tok->vocab.n_ids && tok->vocab.tokens[id].used;
}

int nl_tok_build_pieces(struct nl_tokenizer *tok, struct nl_error *error)
{
    struct nl_regex_scratch *regex = nl_regex_scratch_new(error);
    struct nl_buf a = {0}, b = {0};
    tok->pieces = malloc((tok->n_ids ? tok->n_ids : 1) * sizeof *tok->pieces);
    int result = !regex ? -1 : tok->pieces ? 0 : nl_fail_memory(error, "tokenizer");
    for (uint32_t id = 0; result == 0 && id < tok->n_ids; id++) {
        const struct tok_added_token *added = nl_tok_added_by_id(tok, id);
        nl_buf_clear(&a);
        nl_buf_add(&a, "", 0);
        tok->pieces[id] = (struct tok_string){0, NL_TOK_NONE};
        if (!added && is_key(tok, id)) {
            tok->pieces[id] = tok->vocab.tokens[id].key;
            continue;
        }
        if (added)
            nl_buf_add(&a, tok_text(tok, added->pattern), added->pattern.size);
        if (added || nl_tok_content(tok, id, &a))
            result = nl_buf_check(&a, "token", error) != 0 ? -1 : build_piece(tok, id, regex, &a, &b, error);
    }
    nl_buf_free(&a);
    nl_buf_free(&b);
    nl_regex_scratch_free(regex);
    return result;
}
