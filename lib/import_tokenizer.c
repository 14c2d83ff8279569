/*
 * The tokenizers that are known, as the tokenizer.json of the models' own repositories describes them. GGUF
 * holds tokens, merges or scores, and a name; all the rest stands here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "import_parts.h"
#include "json.h"

#define BYTE_LEVEL(prefix, trim, regex)                                                                      \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": " prefix ", \"trim_offsets\": " trim                    \
    ", \"use_regex\": " regex "}"
#define SPLIT(regex)                                                                                         \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex   \
    "\"}, \"behavior\": \"Isolated\", \"invert\": false}, "
#define LETTERS_AND_MORE(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                           \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

/* The parts of tokenizer.json, in JSON. */
struct family {
    const char *names[4]; /* values of tokenizer.ggml.pre */
    const char *normalizer, *pre_tokenizer, *post_processor, *decoder;
    bool ignore_merges, adds_bos; /* adds_bos: when the file does not say */
};

static const struct family byte_level_families[] = {
    {
        .names = {"smollm"},
        .normalizer = "null",
        .pre_tokenizer = "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", "
                         "\"individual_digits\": true}, " BYTE_LEVEL("false", "true", "true") "]}",
        .post_processor = BYTE_LEVEL("true", "false", "true"),
        .decoder = BYTE_LEVEL("true", "true", "true"),
    },
    {
        .names = {"llama-bpe", "llama3", "llama-v3"},
        .normalizer = "null",
        .pre_tokenizer = SPLIT(LETTERS_AND_MORE("\\\\p{N}{1,3}")) BYTE_LEVEL("false", "true", "false") "]}",
        .post_processor = BYTE_LEVEL("true", "false", "true"),
        .decoder = BYTE_LEVEL("true", "true", "true"),
        .ignore_merges = true,
        .adds_bos = true,
    },
    {
        .names = {"qwen2"},
        .normalizer = "{\"type\": \"NFC\"}",
        .pre_tokenizer = SPLIT(LETTERS_AND_MORE("\\\\p{N}")) BYTE_LEVEL("false", "false", "false") "]}",
        .post_processor = BYTE_LEVEL("false", "false", "false"),
        .decoder = BYTE_LEVEL("false", "false", "false"),
    },
    {
        .names = {"gpt-2", "default"},
        .normalizer = "null",
        .pre_tokenizer = BYTE_LEVEL("false", "true", "true"),
        .post_processor = BYTE_LEVEL("true", "false", "true"),
        .decoder = BYTE_LEVEL("true", "true", "true"),
    },
};

/* SentencePiece BPE, with and without the blank that it puts before a text. */
#define REPLACE   "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\xe2\x96\x81\"}"
#define UNREPLACE "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\xe2\x96\x81\"}, \"content\": \" \"}"
static const struct family sentencepiece_families[] = {
    {
        .normalizer = REPLACE,
        .pre_tokenizer = "null",
        .decoder = "{\"type\": \"Sequence\", \"decoders\": [" UNREPLACE
                   ", {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]}",
        .adds_bos = true,
    },
    {
        .normalizer = "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": "
                      "\"\xe2\x96\x81\"}, " REPLACE "]}",
        .pre_tokenizer = "null",
        .decoder =
            "{\"type\": \"Sequence\", \"decoders\": [" UNREPLACE ", {\"type\": \"ByteFallback\"}, {\"type\": "
            "\"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}",
        .adds_bos = true,
    },
};

/* GGUF's kinds of tokens. */
enum { TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_USER_DEFINED = 4 };

struct tokenizer {
    const struct nl_gguf *file;
    const struct nl_import_config *config;
    const struct family *family;
    bool sentencepiece, add_bos, add_eos;
    struct nl_gguf_string *tokens; /* [count] */
    size_t count;
    const struct nl_gguf_pair *types; /* NULL: all are normal */
    struct nl_vocab vocab;
    struct nl_merge *merges; /* [n_merges] */
    size_t n_merges;
};

static bool equals(const struct nl_gguf_string *string, const char *text)
{
    return string->size == strlen(text) && memcmp(string->data, text, string->size) == 0;
}

static int unsupported(const struct tokenizer *t, const char *what, const struct nl_gguf_string *value,
                       struct nl_error *error)
{
    return nl_fail(error, NL_UNSUPPORTED, "%s '%.*s' is not supported: %s", what,
                   (int)(value->size < 100 ? value->size : 100), value->data, t->file->name);
}

static int find_byte_level(struct tokenizer *t, struct nl_error *error)
{
    struct nl_gguf_string pre = {"default", 7};
    bool prefix = false;
    if (nl_gguf_text(t->file, "tokenizer.ggml.pre", &pre, error) < 0 ||
        nl_gguf_bool(t->file, "tokenizer.ggml.add_space_prefix", &prefix, error) < 0)
        return -1;
    if (prefix)
        return nl_fail(error, NL_UNSUPPORTED,
                       "not supported with byte-level BPE: %s: tokenizer.ggml.add_space_prefix",
                       t->file->name);
    size_t n = sizeof byte_level_families / sizeof *byte_level_families;
    for (const struct family *f = byte_level_families; f < byte_level_families + n; f++)
        for (int i = 0; i < 4 && f->names[i]; i++)
            if (equals(&pre, f->names[i])) {
                t->family = f;
                return 0;
            }
    return unsupported(t, "pre-tokenizer (tokenizer.ggml.pre)", &pre, error);
}

static int find_sentencepiece(struct tokenizer *t, struct nl_error *error)
{
    bool prefix = true, squeeze = false;
    if (nl_gguf_bool(t->file, "tokenizer.ggml.add_space_prefix", &prefix, error) < 0 ||
        nl_gguf_bool(t->file, "tokenizer.ggml.remove_extra_whitespaces", &squeeze, error) < 0)
        return -1;
    const struct nl_gguf_pair *map = nl_gguf_find(t->file, "tokenizer.ggml.precompiled_charsmap");
    if (squeeze || (map && map->count > 0))
        return nl_fail(error, NL_UNSUPPORTED,
                       "SentencePiece normalization is not supported: %s: tokenizer.ggml.%s", t->file->name,
                       squeeze ? "remove_extra_whitespaces" : "precompiled_charsmap");
    t->sentencepiece = true;
    t->family = &sentencepiece_families[prefix];
    return 0;
}

static int find_family(struct tokenizer *t, struct nl_error *error)
{
    struct nl_gguf_string model;
    int found = nl_gguf_text(t->file, "tokenizer.ggml.model", &model, error);
    if (found < 0)
        return -1;
    if (found == 0)
        return nl_fail(error, NL_DATA, "GGUF key is missing: %s: tokenizer.ggml.model", t->file->name);
    if (equals(&model, "gpt2"))
        return find_byte_level(t, error);
    if (equals(&model, "llama"))
        return find_sentencepiece(t, error);
    return unsupported(t, "tokenizer (tokenizer.ggml.model)", &model, error);
}

static int read_tokens(struct tokenizer *t, struct nl_error *error)
{
    int found = nl_gguf_strings(t->file, "tokenizer.ggml.tokens", &t->tokens, &t->count, error);
    if (found <= 0)
        return found < 0
                   ? -1
                   : nl_fail(error, NL_DATA, "GGUF key is missing: %s: tokenizer.ggml.tokens", t->file->name);
    if (t->count > (uint64_t)t->config->vocab_size)
        return nl_fail(error, NL_DATA, "more tokens (%zu) than embeddings (%lld): %s", t->count,
                       (long long)t->config->vocab_size, t->file->name);
    if (nl_gguf_array(t->file, "tokenizer.ggml.token_type", NL_GGUF_I32, &t->types, error) < 0)
        return -1;
    if (t->types && t->types->count != t->count)
        return nl_fail(error, NL_DATA, "not as many values as tokens: %s: tokenizer.ggml.token_type",
                       t->file->name);
    return nl_vocab_init(&t->vocab, t->tokens, t->count, t->file->name, error);
}

static int read_merges(struct tokenizer *t, struct nl_error *error)
{
    struct nl_gguf_string *strings;
    int found = nl_gguf_strings(t->file, "tokenizer.ggml.merges", &strings, &t->n_merges, error);
    if (found > 0) {
        t->merges = calloc(t->n_merges ? t->n_merges : 1, sizeof *t->merges);
        int result = t->merges
                         ? nl_merges_parse(&t->vocab, strings, t->n_merges, t->merges, t->file->name, error)
                         : nl_fail_memory(error, "merges");
        free(strings);
        return result;
    }
    if (found < 0)
        return -1;
    if (!t->sentencepiece)
        return nl_fail(error, NL_DATA, "GGUF key is missing: %s: tokenizer.ggml.merges", t->file->name);
    const struct nl_gguf_pair *scores;
    found = nl_gguf_array(t->file, "tokenizer.ggml.scores", NL_GGUF_F32, &scores, error);
    if (found < 0)
        return -1;
    if (found == 0 || scores->count != t->count)
        return nl_fail(error, NL_DATA, "not as many values as tokens: %s: tokenizer.ggml.scores",
                       t->file->name);
    return nl_merges_from_scores(&t->vocab, scores, &t->merges, &t->n_merges, t->file->name, error);
}

static int read_flags(struct tokenizer *t, struct nl_error *error)
{
    t->add_bos = t->family->adds_bos;
    if (nl_gguf_bool(t->file, "tokenizer.ggml.add_bos_token", &t->add_bos, error) < 0 ||
        nl_gguf_bool(t->file, "tokenizer.ggml.add_eos_token", &t->add_eos, error) < 0)
        return -1;
    int64_t count = (int64_t)t->count;
    const struct nl_import_config *c = t->config;
    if (t->add_bos && (c->bos < 0 || c->bos >= count))
        return nl_fail(error, NL_DATA, "no token for it: %s: tokenizer.ggml.add_bos_token", t->file->name);
    if (t->add_eos && (c->eos < 0 || c->eos >= count))
        return nl_fail(error, NL_DATA, "no token for it: %s: tokenizer.ggml.add_eos_token", t->file->name);
    return 0;
}

static int type_of(const struct tokenizer *t, size_t id)
{
    return t->types ? nl_gguf_i32_at(t->types, id) : 1;
}

static void emit_token(struct nl_emit *e, const struct tokenizer *t, uint32_t id)
{
    nl_emit_string(e, t->tokens[id].data, t->tokens[id].size);
}

static void emit_added_tokens(struct nl_emit *e, const struct tokenizer *t)
{
    nl_emit_key(e, "added_tokens");
    nl_emit_open(e, '[');
    for (uint32_t id = 0; id < t->count; id++) {
        int type = type_of(t, id);
        bool special = type == TOKEN_CONTROL || (type == TOKEN_UNKNOWN && t->sentencepiece);
        if ((!special && type != TOKEN_USER_DEFINED) || t->tokens[id].size == 0)
            continue;
        nl_emit_open(e, '{');
        nl_emit_integer_member(e, "id", id);
        nl_emit_key(e, "content");
        emit_token(e, t, id);
        nl_emit_bool_member(e, "single_word", false);
        nl_emit_bool_member(e, "lstrip", false);
        nl_emit_bool_member(e, "rstrip", false);
        nl_emit_bool_member(e, "normalized", false);
        nl_emit_bool_member(e, "special", special);
        nl_emit_close(e, '}');
    }
    nl_emit_close(e, ']');
}

static void emit_special(struct nl_emit *e, const struct tokenizer *t, int64_t id, int type_id)
{
    nl_emit_open(e, '{');
    nl_emit_key(e, "SpecialToken");
    nl_emit_open(e, '{');
    nl_emit_key(e, "id");
    emit_token(e, t, (uint32_t)id);
    nl_emit_integer_member(e, "type_id", type_id);
    nl_emit_close(e, '}');
    nl_emit_close(e, '}');
}

/* One text of a template: [BOS] text [EOS]. */
static void emit_text(struct nl_emit *e, const struct tokenizer *t, const char *sequence, int type_id)
{
    if (t->add_bos)
        emit_special(e, t, t->config->bos, type_id);
    nl_emit_raw(e, sequence);
    if (t->add_eos)
        emit_special(e, t, t->config->eos, type_id);
}

static void emit_special_ids(struct nl_emit *e, const struct tokenizer *t, int64_t id)
{
    nl_emit_long_key(e, t->tokens[id].data, t->tokens[id].size);
    nl_emit_open(e, '{');
    nl_emit_key(e, "id");
    emit_token(e, t, (uint32_t)id);
    nl_emit_key(e, "ids");
    nl_emit_open(e, '[');
    nl_emit_integer(e, id);
    nl_emit_close(e, ']');
    nl_emit_key(e, "tokens");
    nl_emit_open(e, '[');
    emit_token(e, t, (uint32_t)id);
    nl_emit_close(e, ']');
    nl_emit_close(e, '}');
}

static void emit_template(struct nl_emit *e, const struct tokenizer *t)
{
    static const char a[] = "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}";
    static const char b[] = "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}";
    nl_emit_open(e, '{');
    nl_emit_string_member(e, "type", "TemplateProcessing");
    nl_emit_key(e, "single");
    nl_emit_open(e, '[');
    emit_text(e, t, a, 0);
    nl_emit_close(e, ']');
    nl_emit_key(e, "pair");
    nl_emit_open(e, '[');
    emit_text(e, t, a, 0);
    emit_text(e, t, b, 1);
    nl_emit_close(e, ']');
    nl_emit_key(e, "special_tokens");
    nl_emit_open(e, '{');
    if (t->add_bos)
        emit_special_ids(e, t, t->config->bos);
    if (t->add_eos && !(t->add_bos && t->config->bos == t->config->eos))
        emit_special_ids(e, t, t->config->eos);
    nl_emit_close(e, '}');
    nl_emit_close(e, '}');
}

static void emit_post_processor(struct nl_emit *e, const struct tokenizer *t)
{
    const char *own = t->family->post_processor;
    nl_emit_key(e, "post_processor");
    if (!t->add_bos && !t->add_eos) {
        nl_emit_raw(e, own ? own : "null");
    } else if (!own) {
        emit_template(e, t);
    } else {
        nl_emit_open(e, '{');
        nl_emit_string_member(e, "type", "Sequence");
        nl_emit_key(e, "processors");
        nl_emit_open(e, '[');
        nl_emit_raw(e, own);
        emit_template(e, t);
        nl_emit_close(e, ']');
        nl_emit_close(e, '}');
    }
}

/* The id of the token for unknown characters; -1 without one. */
static int64_t unknown_id(const struct tokenizer *t)
{
    if (t->config->unk >= 0 && t->config->unk < (int64_t)t->count)
        return t->config->unk;
    for (size_t id = 0; id < t->count; id++)
        if (type_of(t, id) == TOKEN_UNKNOWN)
            return (int64_t)id;
    return -1;
}

static void emit_vocab(struct nl_emit *e, const struct tokenizer *t)
{
    nl_emit_key(e, "vocab");
    nl_emit_open(e, '{');
    for (uint32_t id = 0; id < t->count; id++) {
        nl_emit_long_key(e, t->tokens[id].data, t->tokens[id].size);
        nl_emit_integer(e, id);
    }
    nl_emit_close(e, '}');
}

/* Each on a line of its own. */
static void emit_merges(struct nl_emit *e, const struct tokenizer *t)
{
    struct nl_buf pair = {0};
    nl_emit_key(e, "merges");
    nl_emit_open(e, '[');
    for (size_t i = 0; i < t->n_merges; i++) {
        const struct nl_gguf_string *left = &t->tokens[t->merges[i].left],
                                    *right = &t->tokens[t->merges[i].right];
        nl_buf_clear(&pair);
        nl_buf_putc(&pair, '[');
        nl_json_quote(&pair, left->data, left->size);
        nl_buf_puts(&pair, ", ");
        nl_json_quote(&pair, right->data, right->size);
        nl_buf_putc(&pair, ']');
        nl_emit_raw(e, pair.failed ? "null" : pair.data);
    }
    nl_emit_close(e, ']');
    e->out->failed = e->out->failed || pair.failed;
    nl_buf_free(&pair);
}

static void emit_model(struct nl_emit *e, const struct tokenizer *t)
{
    nl_emit_key(e, "model");
    nl_emit_open(e, '{');
    nl_emit_string_member(e, "type", "BPE");
    nl_emit_raw_member(e, "dropout", "null");
    nl_emit_key(e, "unk_token");
    int64_t unknown = t->sentencepiece ? unknown_id(t) : -1;
    if (unknown >= 0)
        emit_token(e, t, (uint32_t)unknown);
    else
        nl_emit_raw(e, "null");
    nl_emit_raw_member(e, "continuing_subword_prefix", "null");
    nl_emit_raw_member(e, "end_of_word_suffix", "null");
    nl_emit_bool_member(e, "fuse_unk", t->sentencepiece);
    nl_emit_bool_member(e, "byte_fallback", t->sentencepiece);
    nl_emit_bool_member(e, "ignore_merges", t->family->ignore_merges);
    emit_vocab(e, t);
    emit_merges(e, t);
    nl_emit_close(e, '}');
}

static void emit_tokenizer(const struct tokenizer *t, struct nl_buf *out)
{
    struct nl_emit e = {.out = out};
    nl_emit_open(&e, '{');
    nl_emit_string_member(&e, "version", "1.0");
    nl_emit_raw_member(&e, "truncation", "null");
    nl_emit_raw_member(&e, "padding", "null");
    emit_added_tokens(&e, t);
    nl_emit_raw_member(&e, "normalizer", t->family->normalizer);
    nl_emit_raw_member(&e, "pre_tokenizer", t->family->pre_tokenizer);
    emit_post_processor(&e, t);
    nl_emit_raw_member(&e, "decoder", t->family->decoder);
    emit_model(&e, t);
    nl_emit_close(&e, '}');
}

static void emit_named_token(struct nl_emit *e, const struct tokenizer *t, const char *key, int64_t id)
{
    if (id < 0 || id >= (int64_t)t->count)
        return;
    nl_emit_key(e, key);
    emit_token(e, t, (uint32_t)id);
}

static int emit_tokenizer_config(const struct tokenizer *t, struct nl_buf *out, struct nl_error *error)
{
    struct nl_gguf_string template;
    int found = nl_gguf_text(t->file, "tokenizer.chat_template", &template, error);
    if (found < 0)
        return -1;
    struct nl_emit e = {.out = out};
    nl_emit_open(&e, '{');
    nl_emit_bool_member(&e, "add_bos_token", t->add_bos);
    nl_emit_bool_member(&e, "add_eos_token", t->add_eos);
    emit_named_token(&e, t, "bos_token", t->config->bos);
    if (found) {
        nl_emit_key(&e, "chat_template");
        nl_emit_string(&e, template.data, template.size);
    }
    nl_emit_bool_member(&e, "clean_up_tokenization_spaces", false);
    emit_named_token(&e, t, "eos_token", t->config->eos);
    nl_emit_integer_member(&e, "model_max_length", t->config->max_positions);
    emit_named_token(&e, t, "pad_token", t->config->pad);
    nl_emit_string_member(&e, "tokenizer_class", "PreTrainedTokenizerFast");
    emit_named_token(&e, t, "unk_token", unknown_id(t));
    nl_emit_close(&e, '}');
    return nl_buf_check(out, "tokenizer_config.json", error);
}

int nl_import_tokenizer(const struct nl_gguf *file, const struct nl_import_config *config,
                        struct nl_buf *tokenizer, struct nl_buf *tokenizer_config, struct nl_error *error)
{
    struct tokenizer t = {.file = file, .config = config};
    int result = find_family(&t, error) != 0 || read_tokens(&t, error) != 0 || read_merges(&t, error) != 0 ||
                         read_flags(&t, error) != 0
                     ? -1
                     : 0;
    if (result == 0) {
        emit_tokenizer(&t, tokenizer);
        result = nl_buf_check(tokenizer, "tokenizer.json", error);
    }
    if (result == 0)
        result = emit_tokenizer_config(&t, tokenizer_config, error);
    nl_vocab_free(&t.vocab);
    free(t.merges);
    free(t.tokens);
    return result;
}
