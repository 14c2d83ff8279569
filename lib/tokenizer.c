#include <stdlib.h>
#include <sys/stat.h>

#include "file.h"
#include "tok.h"
#include "tok_fast.h"
#include "tok_source.h"
#include "unicode.h"

void nl_tokenizer_close(struct nl_tokenizer *tok)
{
    if (!tok)
        return;
    nl_encoder_close(tok->encoder);
    for (size_t i = 0; i < tok->n_regexes; i++)
        nl_regex_free(tok->regexes[i]);
    free(tok->regexes);
    struct tok_part parts[NL_TOK_PARTS];
    nl_tok_parts(tok, parts);
    for (unsigned i = 0; i < NL_TOK_PARTS && !tok->image.data; i++) {
        void *array;
        memcpy(&array, parts[i].pointer, sizeof array);
        free(array);
    }
    nl_map_close(&tok->image);
    free(tok);
}

/* Old files name no type: the first model that has all it needs, in the reference's order. */
static const char *model_type(const struct nl_json *model)
{
    if (nl_json_get(model, "type"))
        return nl_tok_json_type(model);
    if (nl_json_get(model, "merges"))
        return "BPE";
    if (nl_json_is(nl_json_get(model, "vocab"), NL_JSON_ARRAY))
        return "Unigram";
    if (!nl_json_get(model, "unk_token"))
        return "(none)";
    return nl_json_get(model, "continuing_subword_prefix") && nl_json_get(model, "max_input_chars_per_word")
               ? "WordPiece"
               : "WordLevel";
}

static int load_bpe(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    size_t n = tok->splits.count;
    tok->raw = n > 0 && tok->splits.data[n - 1].kind == TOK_BYTE_MAP;
    if (nl_tok_load_bpe(tok, model, error) != 0)
        return -1;
    if (tok->raw)
        tok->splits.count--;
    return 0;
}

static int load_model(struct nl_tokenizer *tok, const struct nl_json *model, struct nl_error *error)
{
    static const struct {
        const char *name;
        enum tok_model kind;
        int (*load)(struct nl_tokenizer *, const struct nl_json *, struct nl_error *);
    } models[] = {{"BPE", TOK_MODEL_BPE, load_bpe},
                  {"Unigram", TOK_MODEL_UNIGRAM, nl_tok_load_unigram},
                  {"WordPiece", TOK_MODEL_WORD_PIECE, nl_tok_load_word_piece},
                  {"WordLevel", TOK_MODEL_WORD_LEVEL, nl_tok_load_word_level}};
    if (!nl_json_is(model, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "no object model");
    const char *type = model_type(model);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(type, models[i].name) == 0) {
            tok->model = models[i].kind;
            return models[i].load(tok, model, error);
        }
    return nl_fail(error, NL_UNSUPPORTED, "tokenizer model not supported: %.100s", type);
}

static int load(struct nl_tokenizer *tok, const struct nl_json *json, const struct nl_json *config,
                struct nl_error *error)
{
    if (!nl_json_is(json, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "not an object");
    if (nl_tok_intern(tok, " ", 1, &tok->blank, error) != 0 ||
        nl_tok_load_normalizer(tok, nl_json_get(json, "normalizer"), error) != 0 ||
        nl_tok_load_splitter(tok, nl_json_get(json, "pre_tokenizer"), error) != 0 ||
        load_model(tok, nl_json_get(json, "model"), error) != 0 ||
        nl_tok_load_added(tok, nl_json_get(json, "added_tokens"), error) != 0 ||
        nl_tok_load_template(tok, nl_json_get(json, "post_processor"), error) != 0 ||
        nl_tok_load_decoder(tok, nl_json_get(json, "decoder"), error) != 0 ||
        (config && nl_tok_load_config(tok, config, error) != 0) || nl_tok_build_added(tok, error) != 0)
        return -1;
    tok->n_ids = tok->vocab.n_ids;
    for (uint32_t i = 0; i < tok->added.count; i++)
        if (tok->added.tokens[i].id >= tok->n_ids)
            tok->n_ids = tok->added.tokens[i].id + 1;
    return nl_tok_build_pieces(tok, error);
}

/* The file's JSON, and its tokenizer_config.json where `path` is a folder that has one. */
static int read_files(const char *path, struct nl_buf *name, struct nl_json **json, struct nl_json **config,
                      struct nl_error *error)
{
    struct stat status;
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    nl_buf_printf(name, folder ? "%s/tokenizer_config.json" : "%s", path);
    if (nl_buf_check(name, path, error) != 0)
        return -1;
    if (folder && nl_path_taken(name->data) && !(*config = nl_json_load(name->data, error)))
        return -1;
    if (folder) {
        nl_buf_clear(name);
        nl_buf_printf(name, "%s/tokenizer.json", path);
    }
    *json = nl_json_load(name->data, error);
    return *json ? 0 : -1;
}

static struct nl_tokenizer *open_files(const char *path, struct nl_error *error)
{
    struct nl_buf name = {0};
    struct nl_json *json = NULL, *config = NULL;
    struct nl_error cause;
    struct nl_tokenizer *tok = calloc(1, sizeof *tok);
    if (!tok) {
        nl_fail_memory(error, "tokenizer");
    } else if (read_files(path, &name, &json, &config, error) != 0) {
        nl_tokenizer_close(tok);
        tok = NULL;
    } else if (load(tok, json, config, &cause) != 0) {
        nl_fail(error, cause.code, "%.800s: %.180s", cause.message, name.data);
        nl_tokenizer_close(tok);
        tok = NULL;
    }
    nl_json_free(json);
    nl_json_free(config);
    nl_buf_free(&name);
    return tok;
}

struct nl_tokenizer *nl_tokenizer_open(const char *path, struct nl_error *error)
{
    struct nl_tok_sources sources;
    struct nl_error ignored;
    struct nl_tokenizer *tok = NULL;
    bool known = nl_tok_sources_look(&sources, path, &ignored) == 0;
    if (known)
        tok = nl_tok_cache_open(&sources);
    if (!tok && (tok = open_files(path, error)) && known)
        nl_tok_cache_keep(tok, &sources);
    nl_tok_sources_free(&sources);
    return tok;
}

uint32_t nl_tokenizer_vocab_size(const struct nl_tokenizer *tok)
{
    return tok->n_ids;
}

const char *nl_tokenizer_piece(const struct nl_tokenizer *tok, uint32_t id, size_t *length)
{
    if (id >= tok->n_ids || tok->pieces[id].size == NL_TOK_NONE)
        return NULL;
    *length = tok->pieces[id].size;
    return tok_text(tok, tok->pieces[id]);
}

bool nl_tokenizer_id(const struct nl_tokenizer *tok, const char *content, size_t length, uint32_t *id)
{
    const struct tok_added_token *added = nl_tok_added_by_content(tok, content, length);
    *id = added ? added->id : nl_tok_find_content(tok, content, length);
    return *id != NL_TOK_NONE;
}

bool nl_tokenizer_affixes(const struct nl_tokenizer *tok, struct nl_ids *before, struct nl_ids *after)
{
    const struct nl_ids *template = &tok->template;
    size_t at = 0, texts = 0;
    for (size_t i = 0; i < template->count; i++)
        if (template->data[i] == NL_TOK_NONE) {
            at = i;
            texts++;
        }
    return texts == 1 && nl_ids_add(before, template->data, at, NULL) == 0 &&
           nl_ids_add(after, template->data + at + 1, template->count - at - 1, NULL) == 0;
}

struct nl_encoder *nl_encoder_open(const struct nl_tokenizer *tok, struct nl_error *error)
{
    struct nl_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder) {
        nl_fail_memory(error, "encoder");
        return NULL;
    }
    encoder->tokenizer = tok;
    encoder->can_cut = nl_tok_can_cut(tok);
    encoder->regex = nl_regex_scratch_new(error);
    encoder->byte_merges = tok->raw ? calloc(65536, sizeof *encoder->byte_merges) : NULL; /* not needed */
    if (encoder->regex && nl_tok_fast_fits(tok))
        encoder->memory = nl_tok_memory_open(error);
    if (!encoder->regex || (nl_tok_fast_fits(tok) && !encoder->memory)) {
        nl_encoder_close(encoder);
        return NULL;
    }
    return encoder;
}

void nl_encoder_close(struct nl_encoder *encoder)
{
    if (!encoder)
        return;
    nl_regex_scratch_free(encoder->regex);
    nl_tok_memory_close(encoder->memory);
    free(encoder->byte_merges);
    nl_buf_free(&encoder->normalized);
    nl_buf_free(&encoder->spare);
    nl_buf_free(&encoder->rewritten[0]);
    nl_buf_free(&encoder->rewritten[1]);
    free(encoder->ranges.data);
    free(encoder->next.data);
    free(encoder->word);
    free(encoder->windows);
    free(encoder->symbols);
    free(encoder->heap);
    free(encoder->steps);
    free(encoder->best);
    free(encoder);
}

int nl_tok_encode_word(struct nl_encoder *encoder, const char *text, size_t length, struct nl_ids *out,
                       struct nl_error *error)
{
    switch (encoder->tokenizer->model) {
    case TOK_MODEL_UNIGRAM:
        return nl_tok_unigram(encoder, text, length, out, error);
    case TOK_MODEL_WORD_PIECE:
        return nl_tok_word_piece(encoder, text, length, out, error);
    case TOK_MODEL_WORD_LEVEL:
        return nl_tok_word_level(encoder, text, length, out, error);
    default:
        return nl_tok_bpe(encoder, text, length, out, error);
    }
}

/* Normalized text that holds no added token. */
static int encode_piece(struct nl_encoder *encoder, const char *text, size_t length, bool at_start,
                        struct nl_ids *out, struct nl_error *error)
{
    size_t n_splits = encoder->tokenizer->splits.count;
    if (encoder->memory && n_splits == 1)
        return nl_tok_fast_encode(encoder, text, length, out, error);
    if (nl_tok_split_some(encoder, n_splits - (encoder->memory != NULL), text, length, at_start, error) != 0)
        return -1;
    for (size_t i = 0; i < encoder->ranges.count; i++) {
        struct tok_range range = encoder->ranges.data[i];
        if ((encoder->memory ? nl_tok_fast_encode : nl_tok_encode_word)(
                encoder, encoder->text + range.begin, range.end - range.begin, out, error) != 0)
            return -1;
    }
    return 0;
}

/* Text between the added tokens that are not normalized. */
static int encode_part(struct nl_encoder *encoder, const char *text, size_t length, bool at_start, bool plain,
                       struct nl_ids *out, struct nl_error *error)
{
    const char *normalized;
    size_t size, begin, end;
    if (nl_tok_normalize(encoder, text, length, &normalized, &size, error) != 0)
        return -1;
    struct tok_cut cut = {
        .tokenizer = encoder->tokenizer, .pass = 1, .plain = plain, .text = normalized, .length = size};
    const struct tok_added_token *token;
    while (nl_tok_next_piece(&cut, &begin, &end, &token)) {
        if (token ? nl_ids_add(out, &token->id, 1, error) != 0
                  : encode_piece(encoder, normalized + begin, end - begin, at_start && begin == 0, out,
                                 error) != 0)
            return -1;
    }
    return 0;
}

static int encode_text(struct nl_encoder *encoder, const char *text, size_t length, bool plain,
                       struct nl_ids *out, struct nl_error *error)
{
    struct tok_cut cut = {.tokenizer = encoder->tokenizer, .plain = plain, .text = text, .length = length};
    const struct tok_added_token *token;
    size_t begin, end;
    while (nl_tok_next_piece(&cut, &begin, &end, &token)) {
        if (token ? nl_ids_add(out, &token->id, 1, error) != 0
                  : encode_part(encoder, text + begin, end - begin, begin == 0, plain, out, error) != 0)
            return -1;
    }
    return 0;
}

int nl_encoder_encode(struct nl_encoder *encoder, const char *text, size_t length, unsigned flags,
                      struct nl_ids *out, struct nl_error *error)
{
    size_t good = nl_utf8_check(text, length, NULL);
    if (good < length)
        return nl_fail(error, NL_DATA, "not UTF-8: byte %zu", good);
    const struct nl_ids *template = &encoder->tokenizer->template;
    bool behind = false;
    for (size_t i = 0; i < template->count; i++) {
        uint32_t id = template->data[i];
        unsigned outside = behind ? NL_ENCODE_GOES_ON : NL_ENCODE_CONTINUES;
        if (id == NL_TOK_NONE) {
            if (encode_text(encoder, text, length, flags & NL_ENCODE_PLAIN, out, error) != 0)
                return -1;
            behind = true;
        } else if ((flags & NL_ENCODE_SPECIAL) && !(flags & outside) && nl_ids_add(out, &id, 1, error) != 0) {
            return -1;
        }
    }
    return 0;
}

int nl_tokenizer_encode(struct nl_tokenizer *tok, const char *text, size_t length, unsigned flags,
                        struct nl_ids *out, struct nl_error *error)
{
    if (!tok->encoder && !(tok->encoder = nl_encoder_open(tok, error)))
        return -1;
    return nl_encoder_encode(tok->encoder, text, length, flags, out, error);
}
