/* Post-processors: all that they mean for ids is what is put before and behind the text. */
#include "tok.h"

enum { DEEPEST = 50 };

static const uint32_t text_mark = NL_TOK_NONE;

/* "special_tokens": {name: {"ids": [...]}} of a template. */
static int special_token(struct nl_tokenizer *tok, const struct nl_json *json, const char *name,
                         struct nl_error *error)
{
    const struct nl_json *ids = nl_json_get(nl_json_get(nl_json_get(json, "special_tokens"), name), "ids");
    if (!nl_json_is(ids, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "a special token without ids: post_processor: %.100s", name);
    for (const struct nl_json *value = nl_json_first(ids); value; value = nl_json_next(value)) {
        int64_t number;
        if (!nl_json_integer(value, 0, NL_TOK_LARGEST_ID, &number))
            return nl_fail(error, NL_DATA, "not an id: post_processor: %.100s", name);
        uint32_t id = (uint32_t)number;
        if (nl_ids_add(&tok->template, &id, 1, error) != 0)
            return -1;
    }
    return 0;
}

static int template(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    const struct nl_json *single = nl_json_get(json, "single");
    if (!nl_json_is(single, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "no array single: post_processor");
    for (const struct nl_json *piece = nl_json_first(single); piece; piece = nl_json_next(piece)) {
        const struct nl_json *name = nl_json_get(nl_json_get(piece, "SpecialToken"), "id");
        if (nl_json_is(name, NL_JSON_STRING)) {
            if (special_token(tok, json, nl_json_string(name), error) != 0)
                return -1;
        } else if (!nl_json_is(nl_json_get(piece, "Sequence"), NL_JSON_OBJECT)) {
            return nl_fail(error, NL_DATA, "neither Sequence nor SpecialToken: post_processor.single");
        } else if (nl_ids_add(&tok->template, &text_mark, 1, error) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ["[SEP]", 102], the way of the BERT and RoBERTa processors. */
static int pair_id(const struct nl_json *json, const char *key, uint32_t *id, struct nl_error *error)
{
    const struct nl_json *pair = nl_json_get(json, key),
                         *first = nl_json_is(pair, NL_JSON_ARRAY) ? nl_json_first(pair) : NULL;
    int64_t number;
    if (!first || !nl_json_next(first) ||
        !nl_json_integer(nl_json_next(first), 0, NL_TOK_LARGEST_ID, &number))
        return nl_fail(error, NL_DATA, "not a token and its id: post_processor.%s", key);
    *id = (uint32_t)number;
    return 0;
}

static int cls_sep(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    uint32_t ids[3] = {0, text_mark, 0};
    if (pair_id(json, "cls", &ids[0], error) != 0 || pair_id(json, "sep", &ids[2], error) != 0)
        return -1;
    return nl_ids_add(&tok->template, ids, 3, error);
}

static int processor(struct nl_tokenizer *tok, const struct nl_json *json, unsigned depth,
                     struct nl_error *error)
{
    if (nl_tok_json_type_is(json, "ByteLevel"))
        return 0; /* it moves offsets only */
    if (nl_tok_json_type_is(json, "Sequence")) {
        const struct nl_json *list = nl_json_get(json, "processors");
        if (!nl_json_is(list, NL_JSON_ARRAY) || depth > DEEPEST)
            return nl_fail(error, NL_DATA, "no array processors: post_processor");
        for (const struct nl_json *item = nl_json_first(list); item; item = nl_json_next(item))
            if (processor(tok, item, depth + 1, error) != 0)
                return -1;
        return 0;
    }
    if (tok->template.count > 0) /* the reference takes the first one's parts for a pair of texts */
        return nl_fail(error, NL_UNSUPPORTED, "two templates in one post_processor are not supported");
    if (nl_tok_json_type_is(json, "TemplateProcessing"))
        return template(tok, json, error);
    if (nl_tok_json_type_is(json, "BertProcessing") || nl_tok_json_type_is(json, "RobertaProcessing"))
        return cls_sep(tok, json, error);
    return nl_fail(error, NL_UNSUPPORTED, "post_processor not supported: %.100s", nl_tok_json_type(json));
}

int nl_tok_load_template(struct nl_tokenizer *tok, const struct nl_json *json, struct nl_error *error)
{
    if (json && !nl_json_is(json, NL_JSON_NULL) && processor(tok, json, 0, error) != 0)
        return -1;
    return tok->template.count > 0 ? 0 : nl_ids_add(&tok->template, &text_mark, 1, error);
}
