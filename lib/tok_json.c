/* Members of tokenizer.json's objects; the pool. */
#include <stdlib.h>

#include "tok.h"

int nl_tok_intern(struct nl_tokenizer *tok, const char *bytes, size_t size, struct tok_string *out,
                  struct nl_error *error)
{
    if (size > UINT32_MAX - 1 || tok->pool.size > UINT32_MAX - 1 - size)
        return nl_fail(error, NL_RESOURCE, "tokenizer larger than 4 GiB");
    *out = (struct tok_string){(uint32_t)tok->pool.size, (uint32_t)size};
    nl_buf_add(&tok->pool, bytes, size);
    nl_buf_putc(&tok->pool, '\0');
    return nl_buf_check(&tok->pool, "tokenizer", error);
}

int nl_tok_json_bool(const struct nl_json *object, const char *key, bool otherwise, bool *out,
                     struct nl_error *error)
{
    const struct nl_json *value = nl_json_get(object, key);
    *out = otherwise;
    if (!value || nl_json_is(value, NL_JSON_NULL))
        return 0;
    *out = nl_json_is(value, NL_JSON_TRUE);
    if (!*out && !nl_json_is(value, NL_JSON_FALSE))
        return nl_fail(error, NL_DATA, "not true or false: %s", key);
    return 0;
}

int nl_tok_json_string(const struct nl_json *object, const char *key, struct nl_buf *out,
                       struct nl_error *error)
{
    const struct nl_json *value = nl_json_get(object, key);
    nl_buf_clear(out);
    nl_buf_add(out, "", 0);
    if (!value || nl_json_is(value, NL_JSON_NULL))
        return nl_buf_check(out, key, error);
    if (!nl_json_is(value, NL_JSON_STRING))
        return nl_fail(error, NL_DATA, "not a string: %s", key);
    nl_json_copy_string(value, out);
    return nl_buf_check(out, key, error) == 0 ? 1 : -1;
}

const char *nl_tok_json_type(const struct nl_json *object)
{
    const struct nl_json *type = nl_json_get(object, "type");
    return nl_json_is(type, NL_JSON_STRING) ? nl_json_string(type) : "(none)";
}

bool nl_tok_json_type_is(const struct nl_json *object, const char *type)
{
    return strcmp(nl_tok_json_type(object), type) == 0;
}
