#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "file.h"

enum { MAX_SIZE = 1 << 26 }; /* of any dimension: products of two stay far below 2^63 */

static const struct nl_architecture architectures[] = {
    {.name = "LlamaForCausalLM", .default_max_positions = 2048},
    {.name = "Qwen2ForCausalLM",
     .qkv_bias = true,
     .optional_window = true,
     .default_kv_heads = 32,
     .default_max_positions = 32768},
    {.name = "MistralForCausalLM",
     .has_window = true,
     .default_kv_heads = 8,
     .default_max_positions = 4096 * 32},
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures };

/* Values of one JSON object; the first fault is kept, so that the caller checks once. */
struct keys {
    const struct nl_json *object;
    const char *path;
    struct nl_error *error;
    bool failed;
};

__attribute__((format(printf, 3, 4))) static void fault(struct keys *keys, enum nl_status code,
                                                        const char *format, ...)
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

enum { REQUIRED = -1 };

/* An integer in [low, high]; absent or null: the default, or a fault when that is REQUIRED. */
static int64_t integer(struct keys *keys, const char *key, int64_t fallback, int64_t low, int64_t high)
{
    const struct nl_json *value = nl_json_get(keys->object, key);
    int64_t number = fallback;
    if (!value || nl_json_is(value, NL_JSON_NULL)) {
        if (fallback == REQUIRED)
            fault(keys, NL_DATA, "%s is missing", key);
    } else if (!nl_json_integer(value, low, high, &number)) {
        fault(keys, NL_DATA, "%s is not a whole number from %lld to %lld", key, (long long)low,
              (long long)high);
        number = low;
    }
    return number;
}

/* A finite number in (above, high]; absent or null: the default, or a fault when that is NAN. */
static double number(struct keys *keys, const char *key, double fallback, double above, double high)
{
    const struct nl_json *value = nl_json_get(keys->object, key);
    if (!value || nl_json_is(value, NL_JSON_NULL)) {
        if (isnan(fallback))
            fault(keys, NL_DATA, "%s is missing", key);
        return isnan(fallback) ? 1 : fallback;
    }
    if (!nl_json_is(value, NL_JSON_NUMBER) ||
        !(nl_json_number(value) > above && nl_json_number(value) <= high)) {
        fault(keys, NL_DATA, "%s is not a number above %g and up to %g", key, above, high);
        return 1;
    }
    return nl_json_number(value);
}

static bool flag(struct keys *keys, const char *key, bool fallback)
{
    const struct nl_json *value = nl_json_get(keys->object, key);
    if (!value || nl_json_is(value, NL_JSON_NULL))
        return fallback;
    if (!nl_json_is(value, NL_JSON_TRUE) && !nl_json_is(value, NL_JSON_FALSE))
        fault(keys, NL_DATA, "%s is neither true nor false", key);
    return nl_json_is(value, NL_JSON_TRUE);
}

static const char *string(struct keys *keys, const char *key, const char *fallback)
{
    const struct nl_json *value = nl_json_get(keys->object, key);
    if (!value || nl_json_is(value, NL_JSON_NULL))
        return fallback;
    if (!nl_json_is(value, NL_JSON_STRING)) {
        fault(keys, NL_DATA, "%s is not a string", key);
        return fallback;
    }
    return nl_json_string(value);
}

static void read_architecture(struct keys *keys, struct nl_config *config)
{
    const struct nl_json *list = nl_json_get(keys->object, "architectures");
    const struct nl_json *first = nl_json_is(list, NL_JSON_ARRAY) ? nl_json_first(list) : NULL;
    if (!nl_json_is(first, NL_JSON_STRING)) {
        fault(keys, NL_DATA, "architectures is missing or not a list of names");
        return;
    }
    const char *name = nl_json_string(first);
    char known[200] = "";
    for (int i = 0; i < N_ARCHITECTURES; i++) {
        if (strcmp(architectures[i].name, name) == 0)
            config->architecture = &architectures[i];
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 architectures[i].name);
    }
    if (!config->architecture)
        fault(keys, NL_UNSUPPORTED, "unsupported architecture (supported: %s): %.60s", known, name);
}

static void read_rope(struct keys *keys, struct nl_config *config)
{
    struct nl_rope_config *rope = &config->rope;
    const struct nl_json *parameters = nl_json_get(keys->object, "rope_parameters");
    const struct nl_json *scaling = nl_json_get(keys->object, "rope_scaling");
    struct keys outer = *keys, inner = *keys;
    inner.object = nl_json_is(parameters, NL_JSON_OBJECT) ? parameters
                   : nl_json_is(scaling, NL_JSON_OBJECT)  ? scaling
                                                          : NULL;
    double theta = number(&outer, "rope_theta", 10000, 0, 1e30);
    double partial = number(&outer, "partial_rotary_factor", 1, 0, 1);
    rope->theta = number(&inner, "rope_theta", theta, 0, 1e30);
    rope->partial = number(&inner, "partial_rotary_factor", partial, 0, 1);
    const char *type = string(&inner, "rope_type", string(&inner, "type", "default"));
    if (strcmp(type, "default") == 0) {
        rope->type = NL_ROPE_DEFAULT;
    } else if (strcmp(type, "linear") == 0) {
        rope->type = NL_ROPE_LINEAR;
        rope->factor = number(&inner, "factor", NAN, 0, 1e9);
    } else if (strcmp(type, "llama3") == 0) {
        rope->type = NL_ROPE_LLAMA3;
        rope->factor = number(&inner, "factor", NAN, 0, 1e9);
        rope->low_freq_factor = number(&inner, "low_freq_factor", NAN, 0, 1e9);
        rope->high_freq_factor = number(&inner, "high_freq_factor", NAN, rope->low_freq_factor, 1e9);
        rope->original_positions =
            number(&inner, "original_max_position_embeddings", config->max_positions, 0, 1e12);
    } else {
        fault(&inner, NL_UNSUPPORTED, "unsupported rope_type (supported: default, linear, llama3): %.60s",
              type);
    }
    keys->failed = keys->failed || outer.failed || inner.failed;
    if (!keys->failed && (uint32_t)(config->head_dim * rope->partial) % 2 != 0)
        fault(keys, NL_DATA, "the rotated part of a head is odd (head_dim %u)", config->head_dim);
}

static void read_windows(struct keys *keys, struct nl_config *config)
{
    const struct nl_architecture *arch = config->architecture;
    config->windows = malloc(config->n_layers * sizeof *config->windows);
    if (!config->windows) {
        fault(keys, NL_RESOURCE, "out of memory");
        return;
    }
    const struct nl_json *value = nl_json_get(keys->object, "sliding_window");
    bool on = arch->has_window || (arch->optional_window && flag(keys, "use_sliding_window", false));
    uint32_t window = UINT32_MAX;
    if (on && !nl_json_is(value, NL_JSON_NULL))
        window = (uint32_t)integer(keys, "sliding_window", 4096, 1, INT32_MAX);
    int64_t first = arch->has_window ? 0 : integer(keys, "max_window_layers", 28, 0, INT32_MAX);
    const struct nl_json *types = arch->optional_window ? nl_json_get(keys->object, "layer_types") : NULL;
    const struct nl_json *type = nl_json_is(types, NL_JSON_ARRAY) ? nl_json_first(types) : NULL;
    for (uint32_t i = 0; i < config->n_layers; i++, type = type ? nl_json_next(type) : NULL) {
        bool slides = i >= first;
        if (nl_json_is(types, NL_JSON_ARRAY)) {
            const char *name = nl_json_is(type, NL_JSON_STRING) ? nl_json_string(type) : "";
            slides = strcmp(name, "sliding_attention") == 0;
            if (!slides && strcmp(name, "full_attention") != 0)
                fault(keys, *name ? NL_UNSUPPORTED : NL_DATA,
                      "layer_types has no known type for layer %u: %.40s", i, name);
        }
        config->windows[i] = slides ? window : UINT32_MAX;
    }
}

static void read_sizes(struct keys *keys, struct nl_config *config)
{
    const struct nl_architecture *arch = config->architecture;
    config->vocab_size = (uint32_t)integer(keys, "vocab_size", REQUIRED, 1, MAX_SIZE);
    config->hidden_size = (uint32_t)integer(keys, "hidden_size", REQUIRED, 1, MAX_SIZE);
    config->intermediate_size = (uint32_t)integer(keys, "intermediate_size", REQUIRED, 1, MAX_SIZE);
    config->n_layers = (uint32_t)integer(keys, "num_hidden_layers", REQUIRED, 1, 10000);
    config->n_heads = (uint32_t)integer(keys, "num_attention_heads", REQUIRED, 1, 65536);
    config->n_kv_heads =
        (uint32_t)integer(keys, "num_key_value_heads",
                          arch->default_kv_heads ? arch->default_kv_heads : config->n_heads, 1, 65536);
    config->max_positions =
        (uint32_t)integer(keys, "max_position_embeddings", arch->default_max_positions, 1, INT32_MAX);
    config->norm_epsilon = (float)number(keys, "rms_norm_eps", 1e-6, -1, 1);
    if (keys->failed)
        return;
    if (config->hidden_size % config->n_heads != 0 && !nl_json_get(keys->object, "head_dim"))
        fault(keys, NL_DATA, "hidden_size %u is not a multiple of num_attention_heads %u",
              config->hidden_size, config->n_heads);
    config->head_dim = (uint32_t)integer(keys, "head_dim", config->hidden_size / config->n_heads, 1, 65536);
    if (config->n_heads % config->n_kv_heads != 0)
        fault(keys, NL_DATA, "num_attention_heads %u is not a multiple of num_key_value_heads %u",
              config->n_heads, config->n_kv_heads);
}

static void read_config(struct keys *keys, struct nl_config *config)
{
    if (!nl_json_is(keys->object, NL_JSON_OBJECT)) {
        fault(keys, NL_DATA, "not a JSON object");
        return;
    }
    read_architecture(keys, config);
    const struct nl_json *quantised = nl_json_get(keys->object, "quantization_config");
    if (nl_json_is(quantised, NL_JSON_OBJECT)) {
        struct keys inner = {quantised, keys->path, keys->error, keys->failed};
        fault(keys, NL_UNSUPPORTED, "unsupported quantisation: %.60s",
              string(&inner, "quant_method", "unnamed"));
    }
    if (keys->failed)
        return;
    read_sizes(keys, config);
    const char *activation = string(keys, "hidden_act", "silu");
    if (strcmp(activation, "silu") != 0)
        fault(keys, NL_UNSUPPORTED, "unsupported hidden_act (supported: silu): %.60s", activation);
    bool attention_bias = !config->architecture->qkv_bias && flag(keys, "attention_bias", false);
    config->qkv_bias = config->architecture->qkv_bias || attention_bias;
    config->o_bias = attention_bias;
    config->mlp_bias = flag(keys, "mlp_bias", false);
    config->tied = flag(keys, "tie_word_embeddings", false);
    if (!keys->failed)
        read_rope(keys, config);
    if (!keys->failed)
        read_windows(keys, config);
}

int nl_config_load(const char *folder, struct nl_config *config, struct nl_error *error)
{
    *config = (struct nl_config){0};
    char *path = nl_path_join(folder, "config.json", error);
    struct nl_json *root = path ? nl_json_load(path, error) : NULL;
    struct keys keys = {root, path, error, root == NULL};
    if (root)
        read_config(&keys, config);
    nl_json_free(root);
    free(path);
    if (!keys.failed)
        return 0;
    nl_config_free(config);
    return -1;
}

void nl_config_free(struct nl_config *config)
{
    free(config->windows);
    *config = (struct nl_config){0};
}

void nl_rope_frequencies(const struct nl_rope_config *rope, uint32_t dims, float *inv_freq)
{
    const double pi = 3.14159265358979323846;
    float low_wavelength = (float)(rope->original_positions / rope->low_freq_factor);
    float high_wavelength = (float)(rope->original_positions / rope->high_freq_factor);
    for (uint32_t i = 0; i < dims / 2; i++) {
        float plain = 1.0f / powf((float)rope->theta, (float)(2 * i) / (float)dims);
        inv_freq[i] = plain;
        if (rope->type == NL_ROPE_LINEAR)
            inv_freq[i] = plain / (float)rope->factor;
        if (rope->type != NL_ROPE_LLAMA3)
            continue;
        float wavelength = (float)(2 * pi) / plain, low = (float)rope->low_freq_factor;
        if (wavelength > low_wavelength) {
            inv_freq[i] = plain / (float)rope->factor;
        } else if (!(wavelength < high_wavelength)) {
            float smooth = ((float)rope->original_positions / wavelength - low) /
                           (float)(rope->high_freq_factor - rope->low_freq_factor);
            inv_freq[i] = (1 - smooth) * plain / (float)rope->factor + smooth * plain;
        }
    }
}
