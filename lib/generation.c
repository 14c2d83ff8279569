#include "generation.h"

#include <stdlib.h>

#include "file.h"

enum off { OFF_NEVER, OFF_ONE, OFF_ZERO, OFF_EMPTY, OFF_FALSE };

static const struct {
    const char *key;
    enum off off;
} keys[] = {
    {"sequence_bias", OFF_EMPTY},
    {"encoder_repetition_penalty", OFF_ONE},
    {"repetition_penalty", OFF_ONE},
    {"no_repeat_ngram_size", OFF_ZERO},
    {"encoder_no_repeat_ngram_size", OFF_ZERO},
    {"bad_words_ids", OFF_EMPTY},
    {"min_length", OFF_ZERO},
    {"min_new_tokens", OFF_ZERO},
    {"forced_bos_token_id", OFF_NEVER},
    {"forced_eos_token_id", OFF_NEVER},
    {"exponential_decay_length_penalty", OFF_NEVER},
    {"suppress_tokens", OFF_EMPTY},
    {"begin_suppress_tokens", OFF_EMPTY},
    {"num_beams", OFF_ONE},
    {"num_beam_groups", OFF_ONE},
    {"guidance_scale", OFF_ONE},
    {"penalty_alpha", OFF_ZERO},
    {"token_healing", OFF_FALSE},
    {"stop_strings", OFF_EMPTY},
    {"constraints", OFF_EMPTY},
    {"force_words_ids", OFF_EMPTY},
    {"watermarking_config", OFF_NEVER},
    {"dola_layers", OFF_NEVER},
};

static bool is_off(const struct nl_json *value, enum off off)
{
    if (nl_json_is(value, NL_JSON_NULL))
        return true;
    bool number = nl_json_is(value, NL_JSON_NUMBER);
    switch (off) {
    case OFF_ONE:
        return number && nl_json_number(value) == 1;
    case OFF_ZERO:
        return number && nl_json_number(value) <= 0;
    case OFF_EMPTY:
        return nl_json_is(value, NL_JSON_ARRAY) && !nl_json_first(value);
    case OFF_FALSE:
        return nl_json_is(value, NL_JSON_FALSE);
    case OFF_NEVER:
        break;
    }
    return false;
}

bool nl_generation_matters(const char *key, const struct nl_json *value)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, key) == 0)
            return !is_off(value, keys[i].off);
    return false;
}

/* A negative id ends nothing (transformers only warns of it), so it is left out. */
static int add_id(const struct nl_json *value, struct nl_ids *out, const char *key, const char *path,
                  struct nl_error *error)
{
    int64_t id;
    if (!nl_json_integer(value, INT32_MIN, UINT32_MAX, &id))
        return nl_fail(error, NL_DATA, "%s is not a token id: %s", key, path);
    if (id < 0)
        return 0;
    uint32_t found = (uint32_t)id;
    return nl_ids_add(out, &found, 1, error);
}

static int add_ids(const struct nl_json *value, struct nl_ids *out, const char *key, const char *path,
                   struct nl_error *error)
{
    if (!value || nl_json_is(value, NL_JSON_NULL))
        return 0;
    if (!nl_json_is(value, NL_JSON_ARRAY))
        return add_id(value, out, key, path, error);
    for (const struct nl_json *item = nl_json_first(value); item; item = nl_json_next(item))
        if (add_id(item, out, key, path, error) != 0)
            return -1;
    return 0;
}

struct config {
    char *path;
    struct nl_json *json; /* NULL: there is no such file */
};

static int config_load(struct config *config, const char *folder, const char *name, struct nl_error *error)
{
    config->path = nl_path_join(folder, name, error);
    if (!config->path)
        return -1;
    if (!nl_path_taken(config->path))
        return 0;
    config->json = nl_json_load(config->path, error);
    if (!config->json)
        return -1;
    if (!nl_json_is(config->json, NL_JSON_OBJECT))
        return nl_fail(error, NL_DATA, "not a JSON object: %s", config->path);
    return 0;
}

static void config_free(struct config *config)
{
    nl_json_free(config->json);
    free(config->path);
}

/* `key` in the first of generation_config.json, config.json and its text_config that has it. */
static int find_ids(const struct config *generation, const struct config *model, const char *key,
                    struct nl_ids *out, struct nl_error *error)
{
    const struct nl_json *value = nl_json_get(generation->json, key);
    if (value)
        return add_ids(value, out, key, generation->path, error);
    value = nl_json_get(model->json, key);
    if (!value || nl_json_is(value, NL_JSON_NULL))
        value = nl_json_get(nl_json_get(model->json, "text_config"), key);
    return add_ids(value, out, key, model->path, error);
}

static int copy_processors(const struct nl_json *from, struct nl_json **out, struct nl_error *error)
{
    for (const struct nl_json *member = nl_json_first(from); member; member = nl_json_next(member)) {
        const char *key = nl_json_key(member);
        if (!nl_generation_matters(key, member))
            continue;
        if (!*out && !(*out = nl_json_new_object()))
            return nl_fail_memory(error, "generation_config.json");
        if (nl_json_set_copy(*out, key, member, error) != 0)
            return -1;
    }
    return 0;
}

static int collect(const struct config *generation, const struct config *model, struct nl_generation *out,
                   struct nl_error *error)
{
    struct nl_ids bos = {0};
    int result = find_ids(generation, model, "eos_token_id", &out->eos, error);
    if (result == 0)
        result = find_ids(generation, model, "bos_token_id", &bos, error);
    if (result == 0 && bos.count) {
        out->has_bos = true;
        out->bos = bos.data[0];
    }
    nl_ids_free(&bos);
    if (result != 0)
        return result;
    return copy_processors(generation->json ? generation->json : model->json, &out->processors, error);
}

int nl_generation_load(const char *folder, struct nl_generation *out, struct nl_error *error)
{
    *out = (struct nl_generation){0};
    struct config generation = {0}, model = {0};
    int result = config_load(&generation, folder, "generation_config.json", error);
    if (result == 0)
        result = config_load(&model, folder, "config.json", error);
    if (result == 0 && !generation.json && !model.json)
        result = nl_fail(error, NL_NOT_FOUND, "neither generation_config.json nor config.json: %s", folder);
    if (result == 0)
        result = collect(&generation, &model, out, error);
    config_free(&generation);
    config_free(&model);
    if (result != 0)
        nl_generation_free(out);
    return result;
}

void nl_generation_free(struct nl_generation *generation)
{
    nl_ids_free(&generation->eos);
    nl_json_free(generation->processors);
    *generation = (struct nl_generation){0};
}
