/*
 * What tokenizer_config.json changes, as transformers does it: add_bos_token or add_eos_token, when either is
 * there, make a new template; added_tokens_decoder adds tokens that tokenizer.json lacks, in the order of
 * their ids.
 */
#include <stdlib.h>

#include "tok.h"

/* "bos_token": a string, or an object with its content; 1 and the id, 0 when there is none. */
static int named_token(const struct nl_tokenizer *tok, const struct nl_json *config, const char *key,
                       uint32_t *id, struct nl_error *error)
{
    struct nl_buf content = {0};
    const struct nl_json *value = nl_json_get(config, key);
    int got = nl_json_is(value, NL_JSON_OBJECT) ? nl_tok_json_string(value, "content", &content, error)
                                                : nl_tok_json_string(config, key, &content, error);
    if (got == 1 && !nl_tokenizer_id(tok, content.data, content.size, id))
        got = nl_fail(error, NL_DATA, "not a token: %s of tokenizer_config.json: %.100s", key, content.data);
    nl_buf_free(&content);
    return got;
}

static int add_if(struct nl_tokenizer *tok, const struct nl_json *config, const char *flag, const char *key,
                  struct nl_error *error)
{
    bool wanted;
    uint32_t id;
    if (nl_tok_json_bool(config, flag, false, &wanted, error) != 0)
        return -1;
    int got = wanted ? named_token(tok, config, key, &id, error) : 0;
    return got == 1 ? nl_ids_add(&tok->template, &id, 1, error) : got;
}

static int rebuild_template(struct nl_tokenizer *tok, const struct nl_json *config, struct nl_error *error)
{
    const struct nl_json *bos = nl_json_get(config, "add_bos_token"),
                         *eos = nl_json_get(config, "add_eos_token");
    if ((!bos || nl_json_is(bos, NL_JSON_NULL)) && (!eos || nl_json_is(eos, NL_JSON_NULL)))
        return 0;
    const uint32_t mark = NL_TOK_NONE;
    tok->template.count = 0;
    if (add_if(tok, config, "add_bos_token", "bos_token", error) != 0 ||
        nl_ids_add(&tok->template, &mark, 1, error) != 0)
        return -1;
    return add_if(tok, config, "add_eos_token", "eos_token", error);
}

struct entry {
    long id;
    const struct nl_json *token;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int add_missing(struct nl_tokenizer *tok, const struct nl_json *token, struct nl_error *error)
{
    struct nl_buf content = {0};
    int got = nl_tok_json_string(token, "content", &content, error);
    uint32_t id;
    if (got == 1 && !nl_tokenizer_id(tok, content.data, content.size, &id))
        got = nl_tok_add_token(tok, token, error);
    nl_buf_free(&content);
    return got < 0 ? -1 : 0;
}

static int add_tokens(struct nl_tokenizer *tok, const struct nl_json *decoder, struct nl_error *error)
{
    size_t count = nl_json_count(decoder), n = 0;
    struct entry *entries = malloc((count ? count : 1) * sizeof *entries);
    if (!entries)
        return nl_fail_memory(error, "added tokens");
    for (const struct nl_json *token = nl_json_first(decoder); token; token = nl_json_next(token))
        entries[n++] = (struct entry){strtol(nl_json_key(token), NULL, 10), token};
    qsort(entries, n, sizeof *entries, compare);
    int result = 0;
    for (size_t i = 0; i < n && result == 0; i++)
        result = add_missing(tok, entries[i].token, error);
    free(entries);
    return result;
}

int nl_tok_load_config(struct nl_tokenizer *tok, const struct nl_json *config, struct nl_error *error)
{
    const struct nl_json *decoder = nl_json_get(config, "added_tokens_decoder");
    if (nl_json_is(decoder, NL_JSON_OBJECT) && add_tokens(tok, decoder, error) != 0)
        return -1;
    return rebuild_template(tok, config, error);
}
