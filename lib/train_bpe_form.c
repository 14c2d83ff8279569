/* The forms of published pre-tokenizers, and what of a tokenizer.json can be trained. */
#include <stdlib.h>

#include "train_bpe_parts.h"

#define BYTE_LEVEL(regex)                                                                                    \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":" regex "}"
#define SPLIT(pattern)                                                                                       \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"Isolated\",\"invert\":"      \
    "false}"
#define SEQUENCE(first, second) "{\"type\":\"Sequence\",\"pretokenizers\":[" first "," second "]}"
/* What Llama 3, Qwen 2 and o200k (https://github.com/openai/tiktoken, openai_public.py) have in common. */
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define NEITHER      "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
#define BLANKS       "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define WORDS(digits)                                                                                        \
    CONTRACTIONS "|" NEITHER "\\\\p{L}+|" digits "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|" BLANKS
#define CASED(upper, lower)                                                                                  \
    NEITHER "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]" upper                                           \
            "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]" lower CONTRACTIONS "?"

static const struct form {
    const char *name, *normalizer, *pre_tokenizer;
} forms[] = {
    {"gpt2", "null", BYTE_LEVEL("true")},
    {"llama3", "null", SEQUENCE(SPLIT(WORDS("\\\\p{N}{1,3}")), BYTE_LEVEL("false"))},
    {"qwen2", "{\"type\":\"NFC\"}", SEQUENCE(SPLIT(WORDS("\\\\p{N}")), BYTE_LEVEL("false"))},
    {"o200k", "null",
     SEQUENCE(SPLIT(CASED("*", "+") "|" CASED(
                  "+", "*") "|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|" BLANKS),
              BYTE_LEVEL("false"))},
    {"smollm", "null", SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}", BYTE_LEVEL("true"))},
    {"none", "null", BYTE_LEVEL("false")},
};

const char *nl_train_bpe_form_names(void)
{
    return "gpt2, llama3, qwen2, o200k, smollm, none";
}

struct nl_json *nl_train_bpe_form(const char *name, struct nl_error *error)
{
    const struct form *form = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            form = &forms[i];
    if (!form) {
        nl_fail(error, NL_USAGE, "unknown pre-tokenizer '%.100s': there are %s", name,
                nl_train_bpe_form_names());
        return NULL;
    }
    struct nl_buf text = {0};
    nl_buf_printf(&text,
                  "{\"normalizer\":%s,\"pre_tokenizer\":%s,"
                  "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                  "\"trim_offsets\":false,\"use_regex\":true},"
                  "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
                  "\"trim_offsets\":true,\"use_regex\":true}}",
                  form->normalizer, form->pre_tokenizer);
    struct nl_json *json = nl_buf_check(&text, "form", error) == 0
                               ? nl_json_parse(text.data, text.size, form->name, error)
                               : NULL;
    nl_buf_free(&text);
    return json;
}

static int check_model(const struct nl_json *model, struct nl_error *error)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (!model)
        return 0;
    if (!nl_json_is(model, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "no object model");
    bool old_bpe = !nl_json_get(model, "type") && nl_json_get(model, "merges");
    if (!old_bpe && !nl_tok_json_type_is(model, "BPE"))
        return nl_fail(error, NL_UNSUPPORTED, "tokenizer model cannot be trained: %.100s",
                       nl_tok_json_type(model));
    for (int i = 0; i < 2; i++) {
        const struct nl_json *affix = nl_json_get(model, affixes[i]);
        if (affix && !nl_json_is(affix, NL_JSON_NULL) &&
            !(nl_json_is(affix, NL_JSON_STRING) && !*nl_json_string(affix)))
            return nl_fail(error, NL_UNSUPPORTED, "training with this is not supported: %s", affixes[i]);
    }
    return 0;
}

int nl_train_load_form(struct nl_tokenizer *tok, const struct nl_json *form, struct nl_error *error)
{
    if (!nl_json_is(form, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "not an object");
    if (check_model(nl_json_get(form, "model"), error) != 0 ||
        nl_tok_intern(tok, " ", 1, &tok->blank, error) != 0 ||
        nl_tok_load_normalizer(tok, nl_json_get(form, "normalizer"), error) != 0 ||
        nl_tok_load_splitter(tok, nl_json_get(form, "pre_tokenizer"), error) != 0)
        return -1;
    struct tok_stages *splits = &tok->splits;
    if (splits->count == 0 || splits->data[splits->count - 1].kind != TOK_BYTE_MAP)
        return nl_fail(error, NL_UNSUPPORTED, "not byte-level BPE: the last pre-tokenizer is not ByteLevel");
    /* Words are counted, and symbols are, as the bytes that its characters stand for. */
    splits->count--;
    tok->raw = true;
    return 0;
}
