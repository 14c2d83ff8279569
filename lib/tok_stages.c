/* Normalizers, pre-tokenizers and decoders from their JSON into flat lists of stages. */
#include <stdlib.h>

#include "tok.h"
#include "tok_scan.h"
#include "unicode.h"

enum { DEEPEST = 50 };

/* What ByteLevel splits by: GPT-2's pattern (encoder.py). */
static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static int add_stage(struct tok_stages *stages, struct tok_stage stage, struct nl_error *error)
{
    if (stages->count == NL_TOK_MOST_STAGES)
        return nl_fail(error, NL_UNSUPPORTED,
                       "more than %d normalizers, pre_tokenizers or decoders in a Sequence",
                       NL_TOK_MOST_STAGES);
    struct tok_stage *data = realloc(stages->data, (stages->count + 1) * sizeof *data);
    if (!data)
        return nl_fail_memory(error, "tokenizer");
    stages->data = data;
    data[stages->count++] = stage;
    return 0;
}

static int refuse(const struct nl_json *json, const char *what, struct nl_error *error)
{
    return nl_fail(error, NL_UNSUPPORTED, "%s not supported: %.100s", what, nl_tok_json_type(json));
}

/* A string member into the pool; it must be there unless `otherwise` is given. */
static int text_member(struct nl_tokenizer *tok, const struct nl_json *json, const char *key,
                       const char *otherwise, struct tok_string *out, struct nl_error *error)
{
    struct nl_buf text = {0};
    int got = nl_tok_json_string(json, key, &text, error);
    if (got == 0 && !otherwise)
        got = nl_fail(error, NL_DATA, "no string %s: %.100s", key, nl_tok_json_type(json));
    else if (got == 0)
        nl_buf_puts(&text, otherwise);
    if (got >= 0)
        got =
            nl_buf_check(&text, key, error) != 0 ? -1 : nl_tok_intern(tok, text.data, text.size, out, error);
    nl_buf_free(&text);
    return got < 0 ? -1 : 0;
}

static int add_regex(struct nl_tokenizer *tok, const char *text, size_t size, struct tok_pattern *out,
                     struct nl_error *error)
{
    struct nl_regex **regexes = realloc(tok->regexes, (tok->n_regexes + 1) * sizeof *regexes);
    if (!regexes)
        return nl_fail_memory(error, "tokenizer");
    tok->regexes = regexes;
    struct tok_string *patterns = realloc(tok->patterns, (tok->n_regexes + 1) * sizeof *patterns);
    if (!patterns)
        return nl_fail_memory(error, "tokenizer");
    tok->patterns = patterns;
    if (nl_tok_intern(tok, text, size, &patterns[tok->n_regexes], error) != 0)
        return -1;
    out->scanner = nl_tok_scanner(text, size);
    regexes[tok->n_regexes] = out->scanner ? NULL : nl_regex_compile(text, size, error);
    if (!out->scanner && !regexes[tok->n_regexes])
        return -1;
    out->kind = TOK_REGEX;
    out->regex = (uint32_t)tok->n_regexes++;
    return 0;
}

/* {"String": ...} or {"Regex": ...}; a bare string is a String. */
static int pattern_member(struct nl_tokenizer *tok, const struct nl_json *json, struct tok_pattern *out,
                          struct nl_error *error)
{
    const struct nl_json *pattern = nl_json_get(json, "pattern");
    out->kind = TOK_LITERAL;
    if (nl_json_is(pattern, NL_JSON_STRING))
        return text_member(tok, json, "pattern", NULL, &out->literal, error);
    if (!nl_json_get(pattern, "Regex"))
        return text_member(tok, pattern, "String", NULL, &out->literal, error);
    struct nl_buf regex = {0};
    int got = nl_tok_json_string(pattern, "Regex", &regex, error);
    int result = got < 0 ? -1 : add_regex(tok, regex.data, regex.size, out, error);
    nl_buf_free(&regex);
    return result;
}

/* A name among several; the index, or -1 with `what` and the name refused. */
static int choice(const struct nl_json *json, const char *key, const char *const *names, int count,
                  int otherwise, struct nl_error *error)
{
    const struct nl_json *value = nl_json_get(json, key);
    if (!value || nl_json_is(value, NL_JSON_NULL))
        return otherwise >= 0 ? otherwise
                              : nl_fail(error, NL_DATA, "no %s: %.100s", key, nl_tok_json_type(json));
    for (int i = 0; nl_json_is(value, NL_JSON_STRING) && i < count; i++)
        if (strcmp(nl_json_string(value), names[i]) == 0)
            return i;
    return nl_fail(error, NL_UNSUPPORTED, "%s of %.100s not supported: %.100s", key, nl_tok_json_type(json),
                   nl_json_is(value, NL_JSON_STRING) ? nl_json_string(value) : "(no string)");
}

/* The members of a Sequence, each given to `load`. */
static int sequence(struct nl_tokenizer *tok, const struct nl_json *json, const char *key, unsigned depth,
                    int (*load)(struct nl_tokenizer *, const struct nl_json *, unsigned, struct nl_error *),
                    struct nl_error *error)
{
    const struct nl_json *array = nl_json_get(json, key);
    if (!nl_json_is(array, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "no array %s in a Sequence", key);
    if (depth > DEEPEST)
        return nl_fail(error, NL_DATA, "Sequences nested too deeply: %s", key);
    for (const struct nl_json *item = nl_json_first(array); item; item = nl_json_next(item))
        if (load(tok, item, depth + 1, error) != 0)
            return -1;
    return 0;
}

static int replace(struct nl_tokenizer *tok, const struct nl_json *json, struct tok_stages *stages,
                   struct nl_error *error)
{
    struct tok_stage stage = {.kind = TOK_REPLACE};
    if (pattern_member(tok, json, &stage.pattern, error) != 0 ||
        text_member(tok, json, "content", NULL, &stage.text, error) != 0)
        return -1;
    return add_stage(stages, stage, error);
}

/* strip_accents: null means as lowercase. */
static int bert_normalizer(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    struct tok_stage stage = {.kind = TOK_BERT};
    bool clean, chinese, accents, lowercase;
    if (nl_tok_json_bool(json, "clean_text", true, &clean, error) != 0 ||
        nl_tok_json_bool(json, "handle_chinese_chars", true, &chinese, error) != 0 ||
        nl_tok_json_bool(json, "lowercase", true, &lowercase, error) != 0 ||
        nl_tok_json_bool(json, "strip_accents", lowercase, &accents, error) != 0)
        return -1;
    stage.argument = (clean ? TOK_BERT_CLEAN : 0) | (chinese ? TOK_BERT_CHINESE : 0) |
                     (accents ? TOK_BERT_ACCENTS : 0) | (lowercase ? TOK_BERT_LOWERCASE : 0);
    return add_stage(&tok->normalizers, stage, error);
}

static int normalizer(struct nl_tokenizer *tok, const struct nl_json *json, unsigned depth,
                      struct nl_error *error)
{
    static const struct {
        const char *name;
        enum tok_stage_kind kind;
    } simple[] = {{"NFC", TOK_NFC},
                  {"NFD", TOK_NFD},
                  {"NFKC", TOK_NFKC},
                  {"NFKD", TOK_NFKD},
                  {"Lowercase", TOK_LOWERCASE},
                  {"StripAccents", TOK_STRIP_ACCENTS},
                  {"Nmt", TOK_NMT},
                  {"ByteLevel", TOK_BYTE_MAP}};
    struct tok_stages *stages = &tok->normalizers;
    struct tok_stage stage = {0};
    if (nl_tok_json_type_is(json, "Sequence"))
        return sequence(tok, json, "normalizers", depth, normalizer, error);
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
        if (nl_tok_json_type_is(json, simple[i].name)) {
            stage.kind = simple[i].kind;
            return add_stage(stages, stage, error);
        }
    if (nl_tok_json_type_is(json, "Replace"))
        return replace(tok, json, stages, error);
    if (nl_tok_json_type_is(json, "BertNormalizer"))
        return bert_normalizer(tok, json, error);
    if (nl_tok_json_type_is(json, "Precompiled")) {
        stage.kind = TOK_PRECOMPILED;
        return nl_tok_load_charsmap(tok, json, &stage, error) != 0 ? -1 : add_stage(stages, stage, error);
    }
    if (nl_tok_json_type_is(json, "Prepend")) {
        stage.kind = TOK_PREPEND;
        if (text_member(tok, json, "prepend", NULL, &stage.text, error) != 0)
            return -1;
        return add_stage(stages, stage, error);
    }
    if (nl_tok_json_type_is(json, "Strip")) {
        bool left, right;
        if (nl_tok_json_bool(json, "strip_left", true, &left, error) != 0 ||
            nl_tok_json_bool(json, "strip_right", true, &right, error) != 0)
            return -1;
        stage.kind = TOK_STRIP;
        stage.argument = (left ? 1u : 0) | (right ? 2u : 0);
        return add_stage(stages, stage, error);
    }
    return refuse(json, "normalizer", error);
}

int nl_tok_load_normalizer(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    return !json || nl_json_is(json, NL_JSON_NULL) ? 0 : normalizer(tok, json, 0, error);
}

static int byte_level(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    bool prefix, regex;
    if (nl_tok_json_bool(json, "add_prefix_space", true, &prefix, error) != 0 ||
        nl_tok_json_bool(json, "use_regex", true, &regex, error) != 0)
        return -1;
    if (prefix && add_stage(&tok->splits, (struct tok_stage){.kind = TOK_PREFIX_SPACE}, error) != 0)
        return -1;
    struct tok_stage stage = {.kind = TOK_SPLIT, .argument = TOK_ISOLATED};
    if (regex &&
        (add_regex(tok, byte_level_pattern, strlen(byte_level_pattern), &stage.pattern, error) != 0 ||
         add_stage(&tok->splits, stage, error) != 0))
        return -1;
    return add_stage(&tok->splits, (struct tok_stage){.kind = TOK_BYTE_MAP}, error);
}

/* Old files say add_prefix_space where new ones have prepend_scheme. */
static int scheme(const struct nl_json *json, struct nl_error *error)
{
    static const char *const names[] = {"always", "first", "never"};
    bool prefix;
    if (nl_tok_json_bool(json, "add_prefix_space", true, &prefix, error) != 0)
        return -1;
    return choice(json, "prepend_scheme", names, 3, prefix ? TOK_ALWAYS : TOK_NEVER, error);
}

/* Replacement and scheme, of the pre-tokenizer and the decoder. */
static int metaspace(struct nl_tokenizer *tok, const struct nl_json *json, struct tok_stage *stage,
                     struct nl_error *error)
{
    int which = scheme(json, error);
    if (which < 0 || text_member(tok, json, "replacement", NULL, &stage->text, error) != 0)
        return -1;
    if (stage->text.size == 0 || nl_utf8_size((unsigned char)*tok_text(tok, stage->text)) != stage->text.size)
        return nl_fail(error, NL_DATA, "not one character: replacement of Metaspace");
    stage->kind = TOK_METASPACE;
    stage->pattern.literal = tok->blank;
    stage->argument = (uint32_t)which;
    return 0;
}

static int metaspace_splitter(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    struct tok_stage stage = {0};
    bool split;
    if (metaspace(tok, json, &stage, error) != 0 ||
        nl_tok_json_bool(json, "split", true, &split, error) != 0 ||
        add_stage(&tok->splits, stage, error) != 0)
        return -1;
    if (!split)
        return 0;
    struct tok_pattern mark = {.kind = TOK_LITERAL, .literal = stage.text};
    return add_stage(&tok->splits,
                     (struct tok_stage){.kind = TOK_SPLIT, .argument = TOK_MERGED_WITH_NEXT, .pattern = mark},
                     error);
}

static int behavior_member(const struct nl_json *json, int otherwise, struct nl_error *error)
{
    static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                            "Contiguous"};
    return choice(json, "behavior", behaviors, 5, otherwise, error);
}

static int punctuation(struct nl_tokenizer *tok, int behavior, struct nl_error *error)
{
    struct tok_stage stage = {.kind = TOK_SPLIT, .pattern.kind = TOK_PUNCTUATION};
    stage.argument = (uint32_t)behavior;
    return behavior < 0 ? -1 : add_stage(&tok->splits, stage, error);
}

static int fixed_length(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    const struct nl_json *length = nl_json_get(json, "length");
    int64_t number = 5;
    if (length && !nl_json_integer(length, 1, UINT32_MAX, &number))
        return nl_fail(error, NL_DATA, "not a count of 1 or more: length of FixedLength");
    struct tok_stage stage = {.kind = TOK_FIXED_LENGTH, .argument = (uint32_t)number};
    return add_stage(&tok->splits, stage, error);
}

static int split(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    struct tok_stage stage = {.kind = TOK_SPLIT};
    int behavior = behavior_member(json, -1, error);
    if (behavior < 0 || pattern_member(tok, json, &stage.pattern, error) != 0 ||
        nl_tok_json_bool(json, "invert", false, &stage.invert, error) != 0)
        return -1;
    stage.argument = (uint32_t)behavior;
    return add_stage(&tok->splits, stage, error);
}

static int splitter(struct nl_tokenizer *tok, const struct nl_json *json, unsigned depth,
                    struct nl_error *error)
{
    struct tok_stage stage = {.kind = TOK_SPLIT, .argument = TOK_REMOVED};
    if (nl_tok_json_type_is(json, "Sequence"))
        return sequence(tok, json, "pretokenizers", depth, splitter, error);
    if (nl_tok_json_type_is(json, "ByteLevel"))
        return byte_level(tok, json, error);
    if (nl_tok_json_type_is(json, "Split"))
        return split(tok, json, error);
    if (nl_tok_json_type_is(json, "Metaspace"))
        return metaspace_splitter(tok, json, error);
    if (nl_tok_json_type_is(json, "Punctuation"))
        return punctuation(tok, behavior_member(json, TOK_ISOLATED, error), error);
    if (nl_tok_json_type_is(json, "FixedLength"))
        return fixed_length(tok, json, error);
    if (nl_tok_json_type_is(json, "UnicodeScripts"))
        return add_stage(&tok->splits, (struct tok_stage){.kind = TOK_SCRIPTS}, error);
    if (nl_tok_json_type_is(json, "BertPreTokenizer")) {
        stage.pattern.kind = TOK_SPACE;
        return add_stage(&tok->splits, stage, error) != 0 ? -1 : punctuation(tok, TOK_ISOLATED, error);
    }
    if (nl_tok_json_type_is(json, "Digits")) {
        bool individual;
        if (nl_tok_json_bool(json, "individual_digits", false, &individual, error) != 0)
            return -1;
        stage.argument = individual ? TOK_ISOLATED : TOK_CONTIGUOUS;
        stage.pattern.kind = TOK_NUMERIC;
    } else if (nl_tok_json_type_is(json, "WhitespaceSplit")) {
        stage.pattern.kind = TOK_SPACE;
    } else if (nl_tok_json_type_is(json, "Whitespace")) {
        stage.pattern.kind = TOK_WORDS;
        stage.invert = true;
    } else if (nl_tok_json_type_is(json, "CharDelimiterSplit")) {
        stage.pattern.kind = TOK_LITERAL;
        if (text_member(tok, json, "delimiter", NULL, &stage.pattern.literal, error) != 0)
            return -1;
    } else {
        return refuse(json, "pre_tokenizer", error);
    }
    return add_stage(&tok->splits, stage, error);
}

int nl_tok_load_splitter(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    return !json || nl_json_is(json, NL_JSON_NULL) ? 0 : splitter(tok, json, 0, error);
}

static int strip_ends(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    struct tok_stage stage = {.kind = TOK_STRIP_ENDS};
    int64_t start, stop;
    if (text_member(tok, json, "content", NULL, &stage.text, error) != 0)
        return -1;
    if (stage.text.size == 0 || nl_utf8_size((unsigned char)*tok_text(tok, stage.text)) != stage.text.size)
        return nl_fail(error, NL_DATA, "not one character: content of Strip");
    if (!nl_json_integer(nl_json_get(json, "start"), 0, UINT32_MAX, &start) ||
        !nl_json_integer(nl_json_get(json, "stop"), 0, UINT32_MAX, &stop))
        return nl_fail(error, NL_DATA, "not a count: start or stop of Strip");
    stage.argument = (uint32_t)start;
    stage.end = (uint32_t)stop;
    return add_stage(&tok->decoders, stage, error);
}

/* CTC: pad_token, word_delimiter_token; WordPiece: prefix. */
static int words_decoder(struct nl_tokenizer *tok, const struct nl_json *json, enum tok_stage_kind kind,
                         struct nl_error *error)
{
    struct tok_stage stage = {.kind = kind};
    bool clean, ctc = kind == TOK_CTC;
    if (nl_tok_json_bool(json, "cleanup", true, &clean, error) != 0 ||
        text_member(tok, json, ctc ? "pad_token" : "prefix", NULL, &stage.text, error) != 0 ||
        (ctc && text_member(tok, json, "word_delimiter_token", NULL, &stage.more, error) != 0))
        return -1;
    stage.argument = clean;
    return add_stage(&tok->decoders, stage, error);
}

static int decoder(struct nl_tokenizer *tok, const struct nl_json *json, unsigned depth,
                   struct nl_error *error)
{
    struct tok_stage stage = {0};
    if (nl_tok_json_type_is(json, "Sequence"))
        return sequence(tok, json, "decoders", depth, decoder, error);
    if (nl_tok_json_type_is(json, "Replace"))
        return replace(tok, json, &tok->decoders, error);
    if (nl_tok_json_type_is(json, "Strip"))
        return strip_ends(tok, json, error);
    if (nl_tok_json_type_is(json, "WordPiece"))
        return words_decoder(tok, json, TOK_WORD_PIECE, error);
    if (nl_tok_json_type_is(json, "CTC"))
        return words_decoder(tok, json, TOK_CTC, error);
    if (nl_tok_json_type_is(json, "ByteLevel")) {
        stage.kind = TOK_BYTE_LEVEL;
    } else if (nl_tok_json_type_is(json, "ByteFallback")) {
        stage.kind = TOK_BYTE_FALLBACK;
    } else if (nl_tok_json_type_is(json, "Fuse")) {
        stage.kind = TOK_FUSE;
    } else if (nl_tok_json_type_is(json, "Metaspace")) {
        if (metaspace(tok, json, &stage, error) != 0)
            return -1;
    } else if (nl_tok_json_type_is(json, "BPEDecoder")) {
        stage.kind = TOK_BPE_DECODER;
        if (text_member(tok, json, "suffix", "</w>", &stage.text, error) != 0)
            return -1;
    } else {
        return refuse(json, "decoder", error);
    }
    return add_stage(&tok->decoders, stage, error);
}

int nl_tok_load_decoder(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    if (!json || nl_json_is(json, NL_JSON_NULL))
        return add_stage(&tok->decoders, (struct tok_stage){.kind = TOK_JOIN}, error);
    return decoder(tok, json, 0, error);
}
