/* The tokenizer.json of a trainer: the form, with the new vocabulary and ids in it. */
#include "emit.h"
#include "train_bpe_parts.h"

/* Where in the form a value stands: in the post_processor some hold ids. */
enum place {
    ANYWHERE,
    PROCESSOR,       /* or an array of them */
    TEMPLATE_TOKENS, /* {name: TEMPLATE_TOKEN} */
    TEMPLATE_TOKEN,  /* {"id": name, "ids": [...], "tokens": [...]} */
    NAME_AND_ID,     /* [name, id] of BertProcessing and RobertaProcessing */
};

struct writer {
    const struct nl_train_bpe *trainer;
    struct nl_emit emit;
    struct nl_buf text; /* of one value */
};

static int emit_id_of(struct writer *w, const struct nl_json *name, struct nl_error *error)
{
    uint32_t id;
    nl_buf_clear(&w->text);
    nl_buf_add(&w->text, "", 0);
    if (nl_json_is(name, NL_JSON_STRING))
        nl_json_copy_string(name, &w->text);
    if (nl_buf_check(&w->text, "token", error) != 0)
        return -1;
    if (!nl_train_words_find(&w->trainer->vocab, w->text.data, w->text.size, &id))
        return nl_fail(error, NL_DATA, "the post_processor names what is no special token: %.100s",
                       w->text.data);
    nl_emit_integer(&w->emit, id);
    return 0;
}

static void emit_plain(struct writer *w, const struct nl_json *value)
{
    nl_buf_clear(&w->text);
    nl_json_print(value, &w->text);
    if (w->text.failed)
        w->emit.out->failed = true;
    else
        nl_emit_raw(&w->emit, w->text.data);
}

static int emit_ids(struct writer *w, const struct nl_json *names, struct nl_error *error)
{
    if (!nl_json_is(names, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "no array tokens in special_tokens of the post_processor");
    nl_emit_open(&w->emit, '[');
    for (const struct nl_json *name = nl_json_first(names); name; name = nl_json_next(name))
        if (emit_id_of(w, name, error) != 0)
            return -1;
    nl_emit_close(&w->emit, ']');
    return 0;
}

static int emit_name_and_id(struct writer *w, const struct nl_json *pair, struct nl_error *error)
{
    const struct nl_json *name = nl_json_first(pair);
    if (!name)
        return nl_fail(error, NL_DATA, "not a token and its id: post_processor");
    nl_emit_open(&w->emit, '[');
    emit_plain(w, name);
    if (emit_id_of(w, name, error) != 0)
        return -1;
    nl_emit_close(&w->emit, ']');
    return 0;
}

static enum place place_of(enum place parent, const char *key)
{
    if (parent == TEMPLATE_TOKENS)
        return TEMPLATE_TOKEN;
    if (parent != PROCESSOR)
        return ANYWHERE;
    if (strcmp(key, "processors") == 0)
        return PROCESSOR;
    if (strcmp(key, "special_tokens") == 0)
        return TEMPLATE_TOKENS;
    return strcmp(key, "cls") == 0 || strcmp(key, "sep") == 0 ? NAME_AND_ID : ANYWHERE;
}

static int emit_value(struct writer *w, const struct nl_json *value, enum place place, struct nl_error *error)
{
    bool object = nl_json_is(value, NL_JSON_OBJECT);
    if (place == NAME_AND_ID && nl_json_is(value, NL_JSON_ARRAY))
        return emit_name_and_id(w, value, error);
    if (!object && !nl_json_is(value, NL_JSON_ARRAY)) {
        emit_plain(w, value);
        return 0;
    }
    nl_emit_open(&w->emit, object ? '{' : '[');
    for (const struct nl_json *item = nl_json_first(value); item; item = nl_json_next(item)) {
        const char *key = object ? nl_json_key(item) : "";
        if (object)
            nl_emit_key(&w->emit, key);
        int result = object && place == TEMPLATE_TOKEN && strcmp(key, "ids") == 0
                         ? emit_ids(w, nl_json_get(value, "tokens"), error)
                         : emit_value(w, item, object ? place_of(place, key) : place, error);
        if (result != 0)
            return -1;
    }
    nl_emit_close(&w->emit, object ? '}' : ']');
    return 0;
}

/* A member of the form, or `otherwise` where there is none. */
static int emit_member(struct writer *w, const struct nl_json *object, const char *key, const char *otherwise,
                       enum place place, struct nl_error *error)
{
    const struct nl_json *value = nl_json_get(object, key);
    nl_emit_key(&w->emit, key);
    if (value)
        return emit_value(w, value, place, error);
    nl_emit_raw(&w->emit, otherwise);
    return 0;
}

static void emit_token(struct writer *w, uint32_t id)
{
    const struct train_words *vocab = &w->trainer->vocab;
    nl_emit_string(&w->emit, vocab->bytes.data + vocab->words[id].at, vocab->words[id].size);
}

static int emit_added_tokens(struct writer *w, struct nl_error *error)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    const struct nl_train_bpe *t = w->trainer;
    nl_emit_key(&w->emit, "added_tokens");
    nl_emit_open(&w->emit, '[');
    for (size_t i = 0; i < t->n_special; i++) {
        nl_emit_open(&w->emit, '{');
        nl_emit_integer_member(&w->emit, "id", t->special[i].id);
        nl_emit_key(&w->emit, "content");
        emit_token(w, t->special[i].id);
        for (int k = 0; k < 4; k++) {
            bool set;
            if (nl_tok_json_bool(t->special[i].source, flags[k], false, &set, error) != 0)
                return -1;
            nl_emit_bool_member(&w->emit, flags[k], set);
        }
        nl_emit_bool_member(&w->emit, "special", true);
        nl_emit_close(&w->emit, '}');
    }
    nl_emit_close(&w->emit, ']');
    return 0;
}

static void emit_vocab(struct writer *w)
{
    const struct nl_train_bpe *t = w->trainer;
    nl_emit_key(&w->emit, "vocab");
    nl_emit_open(&w->emit, '{');
    for (uint32_t id = 0; id < t->vocab.n; id++) {
        const struct train_word *token = &t->vocab.words[id];
        nl_emit_long_key(&w->emit, t->vocab.bytes.data + token->at, token->size);
        nl_emit_integer(&w->emit, id);
    }
    nl_emit_close(&w->emit, '}');
    nl_emit_key(&w->emit, "merges");
    nl_emit_open(&w->emit, '[');
    for (uint32_t i = 0; i < t->n_merges; i++) {
        nl_emit_open(&w->emit, '[');
        emit_token(w, t->merges[i].left);
        emit_token(w, t->merges[i].right);
        nl_emit_close(&w->emit, ']');
    }
    nl_emit_close(&w->emit, ']');
}

static int emit_model(struct writer *w, struct nl_error *error)
{
    static const char *const options[][2] = {{"dropout", "null"},
                                             {"unk_token", "null"},
                                             {"continuing_subword_prefix", "null"},
                                             {"end_of_word_suffix", "null"},
                                             {"fuse_unk", "false"},
                                             {"byte_fallback", "false"},
                                             {"ignore_merges", "false"}};
    const struct nl_json *model = nl_json_get(w->trainer->form, "model");
    nl_emit_key(&w->emit, "model");
    nl_emit_open(&w->emit, '{');
    nl_emit_string_member(&w->emit, "type", "BPE");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (emit_member(w, model, options[i][0], options[i][1], ANYWHERE, error) != 0)
            return -1;
    emit_vocab(w);
    nl_emit_close(&w->emit, '}');
    return 0;
}

static int emit_all(struct writer *w, struct nl_error *error)
{
    const struct nl_json *form = w->trainer->form;
    nl_emit_open(&w->emit, '{');
    nl_emit_string_member(&w->emit, "version", "1.0");
    nl_emit_raw_member(&w->emit, "truncation", "null");
    nl_emit_raw_member(&w->emit, "padding", "null");
    if (emit_added_tokens(w, error) != 0 ||
        emit_member(w, form, "normalizer", "null", ANYWHERE, error) != 0 ||
        emit_member(w, form, "pre_tokenizer", "null", ANYWHERE, error) != 0 ||
        emit_member(w, form, "post_processor", "null", PROCESSOR, error) != 0 ||
        emit_member(w, form, "decoder", "null", ANYWHERE, error) != 0 || emit_model(w, error) != 0)
        return -1;
    nl_emit_close(&w->emit, '}');
    return nl_buf_check(w->emit.out, "tokenizer.json", error);
}

int nl_train_bpe_write(const struct nl_train_bpe *trainer, struct nl_buf *out, struct nl_error *error)
{
    struct writer writer = {.trainer = trainer, .emit = {.out = out}};
    int result = emit_all(&writer, error);
    nl_buf_free(&writer.text);
    return result;
}
