#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "file.h"

enum { MAX_SIZE = 1 << 26 }; /* of any dimension: products of two stay far below 2^63 */

static void read_architecture(struct nl_keys *keys, struct nl_config *config)
{
    const struct nl_json *list = nl_keys_array(keys, "architectures");
    const struct nl_json *first = list ? nl_json_first(list) : NULL;
    if (!nl_json_is(first, NL_JSON_STRING)) {
        nl_keys_fault(keys, NL_DATA, "architectures is missing or not a list of names");
        return;
    }
    const char *name = nl_json_string(first);
    config->architecture = nl_architecture_find(name);
    if (!config->architecture) {
        char known[400];
        nl_architecture_list(known, sizeof known);
        nl_keys_fault(keys, NL_UNSUPPORTED, "unsupported architecture (supported: %s): %.60s", known, name);
        return;
    }
    const char *expected = config->architecture->model_type; /* transformers goes by this alone */
    const char *type = nl_keys_string(keys, "model_type", expected);
    if (strcmp(type, expected) != 0)
        nl_keys_fault(keys, NL_DATA, "model_type is %.40s, that of %s is %s", type, name, expected);
}

/* What would change the output of any architecture. */
static void refuse_unsupported(struct nl_keys *keys)
{
    const struct nl_json *quantised = nl_keys_object(keys, "quantization_config");
    if (quantised) {
        struct nl_keys inner = {quantised, keys->path, keys->error, keys->failed};
        nl_keys_fault(keys, NL_UNSUPPORTED, "unsupported quantisation: %.60s",
                      nl_keys_string(&inner, "quant_method", "unnamed"));
    }
    if (nl_keys_object(keys, "per_layer_config"))
        nl_keys_fault(keys, NL_UNSUPPORTED, "unsupported: per_layer_config");
    if (!nl_keys_flag(keys, "is_causal", true))
        nl_keys_fault(keys, NL_UNSUPPORTED, "unsupported: is_causal is false");
}

/* GPT-2 has names of its own for some keys, and of these it also knows the common one. */
static const char *size_key(const struct nl_keys *keys, const struct nl_architecture *arch, const char *name,
                            const char *gpt2)
{
    return arch->gpt2_keys && nl_json_get(keys->object, gpt2) ? gpt2 : name;
}

static void read_sizes(struct nl_keys *keys, struct nl_config *config)
{
    const struct nl_architecture *arch = config->architecture;
    config->vocab_size = (uint32_t)nl_keys_integer(keys, "vocab_size", NL_REQUIRED, 1, MAX_SIZE);
    bool gpt2 = arch->gpt2_keys;
    config->hidden_size = (uint32_t)nl_keys_integer(keys, size_key(keys, arch, "hidden_size", "n_embd"),
                                                    NL_REQUIRED, 1, MAX_SIZE);
    config->intermediate_size =
        (uint32_t)nl_keys_integer(keys, gpt2 ? "n_inner" : "intermediate_size",
                                  gpt2 ? 4 * (int64_t)config->hidden_size : NL_REQUIRED, 1, MAX_SIZE);
    config->n_layers = (uint32_t)nl_keys_integer(keys, size_key(keys, arch, "num_hidden_layers", "n_layer"),
                                                 NL_REQUIRED, 1, NL_MAX_LAYERS);
    config->n_heads = (uint32_t)nl_keys_integer(keys, size_key(keys, arch, "num_attention_heads", "n_head"),
                                                NL_REQUIRED, 1, 65536);
    config->n_kv_heads = config->n_heads;
    if (!gpt2)
        config->n_kv_heads = (uint32_t)nl_keys_integer(
            keys, "num_key_value_heads", arch->kv_heads ? arch->kv_heads : config->n_heads, 1, 65536);
    config->max_positions =
        (uint32_t)nl_keys_integer(keys, size_key(keys, arch, "max_position_embeddings", "n_positions"),
                                  arch->max_positions, 1, INT32_MAX);
    config->norm_epsilon =
        (float)nl_keys_number(keys, gpt2 ? "layer_norm_epsilon" : "rms_norm_eps", arch->norm_epsilon, -1, 1);
    if (config->norm_epsilon < 0)
        nl_keys_fault(keys, NL_DATA, "the epsilon of norms is below 0");
    if (keys->failed)
        return;
    bool has_head_dim = !gpt2 && (arch->head_dim || nl_json_get(keys->object, "head_dim"));
    if (config->hidden_size % config->n_heads != 0 && !has_head_dim)
        nl_keys_fault(keys, NL_DATA, "hidden_size %u is not a multiple of num_attention_heads %u",
                      config->hidden_size, config->n_heads);
    config->head_dim = config->hidden_size / config->n_heads;
    if (has_head_dim)
        config->head_dim = (uint32_t)nl_keys_integer(
            keys, "head_dim", arch->head_dim ? arch->head_dim : config->head_dim, 1, 65536);
    if (config->head_dim == 0)
        nl_keys_fault(keys, NL_DATA, "hidden_size %u is less than num_attention_heads %u",
                      config->hidden_size, config->n_heads);
    if ((uint64_t)config->n_heads * config->head_dim > MAX_SIZE)
        nl_keys_fault(keys, NL_DATA, "num_attention_heads %u times head_dim %u is too large", config->n_heads,
                      config->head_dim);
    if (config->n_heads % config->n_kv_heads != 0)
        nl_keys_fault(keys, NL_DATA, "num_attention_heads %u is not a multiple of num_key_value_heads %u",
                      config->n_heads, config->n_kv_heads);
    config->attention_scale = (float)(1 / sqrt(config->head_dim));
    config->embedding_scale = config->residual_scale = config->logits_divisor = 1;
}

static void read_switches(struct nl_keys *keys, struct nl_config *config)
{
    static const struct {
        const char *name;
        enum nl_activation activation;
    } activations[] = {{"silu", NL_SILU},
                       {"swish", NL_SILU},
                       {"gelu_new", NL_GELU_NEW},
                       {"gelu_pytorch_tanh", NL_GELU_TANH},
                       {"gelu", NL_GELU_ERF}};
    const struct nl_architecture *arch = config->architecture;
    const char *name =
        nl_keys_string(keys, arch->activation_key ? arch->activation_key : "hidden_act", arch->activation);
    bool known = false;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].name, name) == 0) {
            config->activation = activations[i].activation;
            known = true;
        }
    if (!known)
        nl_keys_fault(keys, NL_UNSUPPORTED,
                      "unsupported activation (supported: silu, gelu, gelu_new, gelu_pytorch_tanh): %.60s",
                      name);
    bool attention_bias = arch->attention_bias && nl_keys_flag(keys, "attention_bias", false);
    config->qkv_bias = arch->all_bias || arch->qkv_bias || attention_bias;
    config->o_bias = arch->all_bias || attention_bias;
    config->mlp_bias = arch->all_bias || (arch->mlp_bias && nl_keys_flag(keys, "mlp_bias", false));
    config->tied = nl_keys_flag(keys, "tie_word_embeddings", arch->tied);
}

static int allocate_layers(struct nl_keys *keys, struct nl_config *config)
{
    config->windows = malloc(config->n_layers * sizeof *config->windows);
    config->layer_rope = calloc(config->n_layers, sizeof *config->layer_rope);
    if (!config->windows || !config->layer_rope) {
        nl_keys_fault(keys, NL_RESOURCE, "out of memory");
        return -1;
    }
    for (uint32_t i = 0; i < config->n_layers; i++)
        config->windows[i] = UINT32_MAX;
    return 0;
}

/* rope_scaling beats rope_parameters where both are there, as in transformers; an empty one counts as none.
 */
static const struct nl_json *rope_object(struct nl_keys *keys, const struct nl_json *parameters)
{
    const struct nl_json *scaling = nl_keys_object(keys, "rope_scaling");
    const struct nl_json *object = scaling && nl_json_first(scaling) ? scaling : parameters;
    if (nl_json_is(nl_json_get(object, "full_attention"), NL_JSON_OBJECT) ||
        nl_json_is(nl_json_get(object, "sliding_attention"), NL_JSON_OBJECT))
        nl_keys_fault(keys, NL_UNSUPPORTED, "unsupported: rope settings by layer type in this place");
    return object;
}

/* Layers that see everything, and those that slide: rope_parameters has an object for each, or none. */
static void read_ropes_by_type(struct nl_keys *keys, const struct nl_json *parameters,
                               struct nl_rope_context *context, struct nl_config *config)
{
    struct nl_keys inner = {parameters, keys->path, keys->error, keys->failed};
    struct nl_keys full = inner;
    full.object = nl_keys_object(&inner, "full_attention");
    const struct nl_json *sliding = nl_keys_object(&inner, "sliding_attention");
    config->n_ropes = 2;
    context->theta =
        nl_keys_number(&full, "rope_theta", nl_keys_number(keys, "rope_theta", 1e6, 0, 1e30), 0, 1e30);
    keys->failed = keys->failed || inner.failed || full.failed;
    nl_rope_read(keys, rope_object(keys, full.object), context, &config->ropes[0]);
    context->theta = nl_keys_number(keys, "rope_local_base_freq", 10000, 0, 1e30);
    nl_rope_read(keys, sliding, context, &config->ropes[1]);
}

static void read_ropes(struct nl_keys *keys, struct nl_config *config)
{
    const struct nl_architecture *arch = config->architecture;
    const struct nl_json *parameters = nl_keys_object(keys, "rope_parameters");
    struct nl_rope_context context = {.head_dim = config->head_dim, .max_positions = config->max_positions};
    bool used = false;
    for (uint32_t i = 0; i < config->n_layers; i++)
        used = used || config->layer_rope[i] != NL_NO_LAYER_ROPE;
    if (!used)
        return;
    context.is_phi3 = arch->phi3_rope;
    context.partial = nl_keys_number(keys, "partial_rotary_factor", 1, 0, 1);
    if (arch->rope_by_type) {
        read_ropes_by_type(keys, parameters, &context, config);
        return;
    }
    context.original_positions =
        nl_keys_number(keys, "original_max_position_embeddings", arch->phi3_rope ? 4096 : 0, 0, 1e12);
    context.theta = nl_keys_number(keys, "rope_theta", arch->rope_theta, 0, 1e30);
    config->n_ropes = 1;
    nl_rope_read(keys, rope_object(keys, parameters), &context, &config->ropes[0]);
}

int nl_config_read(const struct nl_json *root, const char *path, struct nl_config *config,
                   struct nl_error *error)
{
    *config = (struct nl_config){0};
    struct nl_keys keys = {root, path, error, false};
    if (!nl_json_is(root, NL_JSON_OBJECT))
        nl_keys_fault(&keys, NL_DATA, "not a JSON object");
    if (!keys.failed)
        read_architecture(&keys, config);
    if (!keys.failed)
        refuse_unsupported(&keys);
    if (!keys.failed)
        read_sizes(&keys, config);
    if (!keys.failed)
        read_switches(&keys, config);
    if (!keys.failed && allocate_layers(&keys, config) == 0 && config->architecture->read)
        config->architecture->read(&keys, config);
    if (!keys.failed)
        read_ropes(&keys, config);
    if (!keys.failed)
        return 0;
    nl_config_free(config);
    return -1;
}

int nl_config_load(const char *folder, struct nl_config *config, struct nl_error *error)
{
    char *path = nl_path_join(folder, "config.json", error);
    struct nl_json *root = path ? nl_json_load(path, error) : NULL;
    int result = root ? nl_config_read(root, path, config, error) : -1;
    nl_json_free(root);
    free(path);
    return result;
}

void nl_config_free(struct nl_config *config)
{
    free(config->windows);
    free(config->layer_rope);
    for (uint32_t i = 0; i < NL_MAX_ROPES; i++)
        nl_rope_free(&config->ropes[i]);
    *config = (struct nl_config){0};
}
