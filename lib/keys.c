#include "keys.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void nl_keys_fault(struct nl_keys *keys, enum nl_status code, const char *format, ...)
{
    if (keys->failed)
        return;
    keys->failed = true;
    char message[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    nl_fail(keys->error, code, "%s: %s", message, keys->path);
}

static const struct nl_json *get(const struct nl_keys *keys, const char *key)
{
    const struct nl_json *value = nl_json_get(keys->object, key);
    return nl_json_is(value, NL_JSON_NULL) ? NULL : value;
}

int64_t nl_keys_integer(struct nl_keys *keys, const char *key, int64_t fallback, int64_t low, int64_t high)
{
    const struct nl_json *value = get(keys, key);
    int64_t number = fallback;
    if (!value && fallback == NL_REQUIRED) {
        nl_keys_fault(keys, NL_DATA, "%s is missing", key);
        number = low;
    } else if (value && !nl_json_integer(value, low, high, &number)) {
        nl_keys_fault(keys, NL_DATA, "%s is not a whole number from %lld to %lld", key, (long long)low,
                      (long long)high);
        number = low;
    }
    return number;
}

double nl_keys_number(struct nl_keys *keys, const char *key, double fallback, double above, double high)
{
    const struct nl_json *value = get(keys, key);
    if (!value) {
        if (isnan(fallback))
            nl_keys_fault(keys, NL_DATA, "%s is missing", key);
        return isnan(fallback) ? high : fallback;
    }
    if (!nl_json_is(value, NL_JSON_NUMBER) ||
        !(nl_json_number(value) > above && nl_json_number(value) <= high)) {
        nl_keys_fault(keys, NL_DATA, "%s is not a number above %g and up to %g", key, above, high);
        return high;
    }
    return nl_json_number(value);
}

bool nl_keys_flag(struct nl_keys *keys, const char *key, bool fallback)
{
    const struct nl_json *value = get(keys, key);
    if (value && !nl_json_is(value, NL_JSON_TRUE) && !nl_json_is(value, NL_JSON_FALSE))
        nl_keys_fault(keys, NL_DATA, "%s is neither true nor false", key);
    return value ? nl_json_is(value, NL_JSON_TRUE) : fallback;
}

const char *nl_keys_string(struct nl_keys *keys, const char *key, const char *fallback)
{
    const struct nl_json *value = get(keys, key);
    if (value && !nl_json_is(value, NL_JSON_STRING))
        nl_keys_fault(keys, NL_DATA, "%s is not a string", key);
    return nl_json_is(value, NL_JSON_STRING) ? nl_json_string(value) : fallback;
}

static const struct nl_json *typed(struct nl_keys *keys, const char *key, enum nl_json_type type,
                                   const char *what)
{
    const struct nl_json *value = get(keys, key);
    if (!value || nl_json_is(value, type))
        return value;
    nl_keys_fault(keys, NL_DATA, "%s is not %s", key, what);
    return NULL;
}

const struct nl_json *nl_keys_object(struct nl_keys *keys, const char *key)
{
    return typed(keys, key, NL_JSON_OBJECT, "an object");
}

const struct nl_json *nl_keys_array(struct nl_keys *keys, const char *key)
{
    return typed(keys, key, NL_JSON_ARRAY, "a list");
}
