#include "architectures.h"

#include <math.h>
#include <stdio.h>

#include "config.h"

/* What most have in common. */
#define COMMON_NAMES                                                                                         \
    .embedding = "model.embed_tokens", .final_norm = "model.norm", .head = "lm_head",                        \
    .layer = "model.layers.%d.", .o = "self_attn.o_proj", .down = "mlp.down_proj"
#define SPLIT_NAMES                                                                                          \
    .q = "self_attn.q_proj", .k = "self_attn.k_proj", .v = "self_attn.v_proj", .gate = "mlp.gate_proj",      \
    .up = "mlp.up_proj"
#define QK_NORM_NAMES .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"
#define NORMS_BEFORE  .before_attention = "input_layernorm", .before_mlp = "post_attention_layernorm"
#define NORMS_AROUND                                                                                         \
    .before_attention = "input_layernorm", .after_attention = "post_attention_layernorm",                    \
    .before_mlp = "pre_feedforward_layernorm", .after_mlp = "post_feedforward_layernorm"
#define NORMS_AFTER .after_attention = "post_attention_layernorm", .after_mlp = "post_feedforward_layernorm"

static const struct nl_tensor_names llama_names = {COMMON_NAMES, SPLIT_NAMES, NORMS_BEFORE};
static const struct nl_tensor_names qwen3_names = {COMMON_NAMES, SPLIT_NAMES, NORMS_BEFORE, QK_NORM_NAMES};
static const struct nl_tensor_names gemma2_names = {COMMON_NAMES, SPLIT_NAMES, NORMS_AROUND};
static const struct nl_tensor_names gemma3_names = {COMMON_NAMES, SPLIT_NAMES, NORMS_AROUND, QK_NORM_NAMES};
static const struct nl_tensor_names olmo2_names = {COMMON_NAMES, SPLIT_NAMES, NORMS_AFTER, QK_NORM_NAMES};
static const struct nl_tensor_names phi3_names = {COMMON_NAMES, NORMS_BEFORE, .qkv = "self_attn.qkv_proj",
                                                  .gate_up = "mlp.gate_up_proj"};
static const struct nl_tensor_names gpt2_names = {
    .embedding = "transformer.wte",
    .positions = "transformer.wpe",
    .final_norm = "transformer.ln_f",
    .head = "lm_head",
    .layer = "transformer.h.%d.",
    .before_attention = "ln_1",
    .qkv = "attn.c_attn",
    .o = "attn.c_proj",
    .before_mlp = "ln_2",
    .up = "mlp.c_fc",
    .down = "mlp.c_proj",
};

/* Layer i slides as layer_types says; without it, as slides[i] says. */
static void read_layer_types(struct nl_keys *keys, struct nl_config *config, uint32_t window,
                             const bool *slides)
{
    const struct nl_json *types = nl_keys_array(keys, "layer_types");
    const struct nl_json *type = types ? nl_json_first(types) : NULL;
    if (types && nl_json_count(types) != config->n_layers)
        nl_keys_fault(keys, NL_DATA, "layer_types has %zu entries for %u layers", nl_json_count(types),
                      config->n_layers);
    for (uint32_t i = 0; i < config->n_layers; i++, type = type ? nl_json_next(type) : NULL) {
        bool slide = slides[i];
        if (types) {
            const char *name = nl_json_is(type, NL_JSON_STRING) ? nl_json_string(type) : "";
            slide = strcmp(name, "sliding_attention") == 0;
            if (!slide && strcmp(name, "full_attention") != 0)
                nl_keys_fault(keys, *name ? NL_UNSUPPORTED : NL_DATA,
                              "layer_types has no known type for layer %u: %.40s", i, name);
        }
        if (slide)
            config->windows[i] = window;
    }
}

/* sliding_window where it may be null, which is none. */
static uint32_t read_window(struct nl_keys *keys, int64_t absent)
{
    if (nl_json_is(nl_json_get(keys->object, "sliding_window"), NL_JSON_NULL))
        return UINT32_MAX;
    return (uint32_t)nl_keys_integer(keys, "sliding_window", absent, 1, INT32_MAX);
}

static void slide_all(struct nl_config *config, uint32_t window)
{
    for (uint32_t i = 0; i < config->n_layers; i++)
        config->windows[i] = window;
}

/* With layer_types, transformers takes it for a Ministral, which is the same but for these. */
static void read_mistral(struct nl_keys *keys, struct nl_config *config)
{
    bool slides[NL_MAX_LAYERS] = {false};
    uint32_t window = read_window(keys, 4096);
    if (nl_keys_array(keys, "layer_types"))
        read_layer_types(keys, config, window, slides);
    else
        slide_all(config, window);
}

static void read_phi3(struct nl_keys *keys, struct nl_config *config)
{
    slide_all(config, read_window(keys, UINT32_MAX));
}

static void read_qwen2(struct nl_keys *keys, struct nl_config *config)
{
    bool slides[NL_MAX_LAYERS] = {false};
    uint32_t window = nl_keys_flag(keys, "use_sliding_window", false) ? read_window(keys, 4096) : UINT32_MAX;
    int64_t first = nl_keys_integer(keys, "max_window_layers", 28, 0, INT32_MAX);
    for (uint32_t i = 0; i < config->n_layers; i++)
        slides[i] = i >= first;
    read_layer_types(keys, config, window, slides);
}

static void read_smollm3(struct nl_keys *keys, struct nl_config *config)
{
    bool slides[NL_MAX_LAYERS] = {false};
    uint32_t window = read_window(keys, UINT32_MAX);
    bool sliding = nl_keys_flag(keys, "use_sliding_window", false);
    const struct nl_json *list = nl_keys_array(keys, "no_rope_layers"); /* 1 where a layer has rope */
    const struct nl_json *item = list ? nl_json_first(list) : NULL;
    int64_t interval = nl_keys_integer(keys, "no_rope_layer_interval", 4, 1, INT32_MAX);
    for (uint32_t i = 0; i < config->n_layers; i++, item = item ? nl_json_next(item) : NULL) {
        int64_t rotates = (i + 1) % interval != 0;
        if (list && !nl_json_integer(item ? item : list, 0, 1, &rotates))
            nl_keys_fault(keys, NL_DATA, "no_rope_layers has no 0 or 1 for layer %u", i);
        config->layer_rope[i] = rotates ? 0 : NL_NO_LAYER_ROPE;
        slides[i] = sliding && !rotates;
    }
    read_layer_types(keys, config, window, slides);
}

static void refuse_bidirectional(struct nl_keys *keys)
{
    if (nl_keys_flag(keys, "use_bidirectional_attention", false))
        nl_keys_fault(keys, NL_UNSUPPORTED, "unsupported: use_bidirectional_attention");
}

static void read_gemma(struct nl_keys *keys, struct nl_config *config)
{
    refuse_bidirectional(keys);
    config->embedding_scale = (float)sqrt(config->hidden_size);
    if (config->activation == NL_GELU_ERF) /* the first files say "gelu" and mean this */
        config->activation = NL_GELU_TANH;
}

/* null is none, which an absent key need not be. */
static float read_cap(struct nl_keys *keys, const char *key, double absent)
{
    if (nl_json_is(nl_json_get(keys->object, key), NL_JSON_NULL))
        return 0;
    return (float)nl_keys_number(keys, key, absent, 0, 1e9);
}

static void read_gemma2(struct nl_keys *keys, struct nl_config *config)
{
    bool slides[NL_MAX_LAYERS];
    bool third = config->architecture->rope_by_type;
    int64_t pattern = third ? nl_keys_integer(keys, "sliding_window_pattern", 6, 1, INT32_MAX) : 2;
    uint32_t window = read_window(keys, 4096);
    config->embedding_scale = (float)sqrt(config->hidden_size);
    config->attention_scale = (float)(1 / sqrt(nl_keys_number(keys, "query_pre_attn_scalar", 256, 0, 1e9)));
    if (!third) /* transformers' Gemma 3 reads this cap and does not use it */
        config->attention_cap = read_cap(keys, "attn_logit_softcapping", 50);
    config->logits_cap = read_cap(keys, "final_logit_softcapping", third ? 0 : 30);
    for (uint32_t i = 0; i < config->n_layers; i++)
        slides[i] = (i + 1) % pattern != 0;
    read_layer_types(keys, config, window, slides);
    refuse_bidirectional(keys);
    for (uint32_t i = 0; third && i < config->n_layers; i++) /* rope 0: full attention, rope 1: sliding */
        config->layer_rope[i] = config->windows[i] != UINT32_MAX;
}

static void read_granite(struct nl_keys *keys, struct nl_config *config)
{
    config->embedding_scale = (float)nl_keys_number(keys, "embedding_multiplier", 1, -1e9, 1e9);
    config->attention_scale = (float)nl_keys_number(keys, "attention_multiplier", 1, -1e9, 1e9);
    config->residual_scale = (float)nl_keys_number(keys, "residual_multiplier", 1, -1e9, 1e9);
    config->logits_divisor = (float)nl_keys_number(keys, "logits_scaling", 1, -1e9, 1e9);
    if (config->logits_divisor == 0)
        nl_keys_fault(keys, NL_DATA, "logits_scaling is 0");
}

static void read_gpt2(struct nl_keys *keys, struct nl_config *config)
{
    if (!nl_keys_flag(keys, "scale_attn_weights", true))
        config->attention_scale = 1;
    config->scale_by_layer = nl_keys_flag(keys, "scale_attn_by_inverse_layer_idx", false);
    for (uint32_t i = 0; i < config->n_layers; i++)
        config->layer_rope[i] = NL_NO_LAYER_ROPE;
}

#define SILU_DEFAULTS .rope_theta = 10000, .norm_epsilon = 1e-6f, .activation = "silu"
#define GEMMA_DEFAULTS                                                                                       \
    .rope_theta = 10000, .norm_epsilon = 1e-6f, .activation = "gelu_pytorch_tanh", .norm_plus_one = true,    \
    .norm_rounds_once = true, .rounds_embedding_scale = true, .tied = true, .head_dim = 256,                 \
    .attention_bias = true
#define GEMMA2_DEFAULTS GEMMA_DEFAULTS, .kv_heads = 4, .activation_key = "hidden_activation"

static const struct nl_architecture architectures[] = {
    {"LlamaForCausalLM", "llama", &llama_names, NULL, .attention_bias = true, .mlp_bias = true,
     .max_positions = 2048, SILU_DEFAULTS},
    {"MistralForCausalLM", "mistral", &llama_names, read_mistral, .kv_heads = 8, .max_positions = 131072,
     SILU_DEFAULTS},
    {"Qwen2ForCausalLM", "qwen2", &llama_names, read_qwen2, .qkv_bias = true, .kv_heads = 32,
     .max_positions = 32768, SILU_DEFAULTS},
    {"Qwen3ForCausalLM", "qwen3", &qwen3_names, read_qwen2, .attention_bias = true, .kv_heads = 32,
     .head_dim = 128, .max_positions = 32768, SILU_DEFAULTS},
    {"SmolLM3ForCausalLM", "smollm3", &llama_names, read_smollm3, .attention_bias = true, .mlp_bias = true,
     .kv_heads = 4, .max_positions = 32768, .tied = true, .rope_theta = 2000000, .norm_epsilon = 1e-6f,
     .activation = "silu"},
    {"Phi3ForCausalLM", "phi3", &phi3_names, read_phi3, .phi3_rope = true, .max_positions = 4096,
     .rope_theta = 10000, .norm_epsilon = 1e-5f, .activation = "silu"},
    {"GemmaForCausalLM", "gemma", &llama_names, read_gemma, .kv_heads = 16, .max_positions = 8192,
     GEMMA_DEFAULTS},
    {"Gemma2ForCausalLM", "gemma2", &gemma2_names, read_gemma2, .eager_attention = true,
     .max_positions = 8192, GEMMA2_DEFAULTS},
    {"Gemma3ForCausalLM", "gemma3_text", &gemma3_names, read_gemma2, .rope_by_type = true,
     .max_positions = 131072, GEMMA2_DEFAULTS},
    {"Olmo2ForCausalLM", "olmo2", &olmo2_names, NULL, .attention_bias = true, .norm_whole_qk = true,
     .norm_rounds_once = true, .rope_rounds_once = true, .max_positions = 2048, .rope_theta = 10000,
     .norm_epsilon = 1e-5f, .activation = "silu"},
    {"GraniteForCausalLM", "granite", &llama_names, read_granite, .attention_bias = true, .mlp_bias = true,
     .max_positions = 2048, SILU_DEFAULTS},
    {"GPT2LMHeadModel", "gpt2", &gpt2_names, read_gpt2, .gpt2_keys = true, .all_bias = true,
     .centred_norm = true, .norm_rounds_once = true, .transposed = true, .max_positions = 1024,
     .rope_theta = 10000, .norm_epsilon = 1e-5f, .tied = true, .activation_key = "activation_function",
     .activation = "gelu_new"},
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures };

const struct nl_architecture *nl_architecture_find(const char *name)
{
    for (int i = 0; i < N_ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return &architectures[i];
    return NULL;
}

void nl_architecture_list(char *out, size_t size)
{
    size_t length = 0;
    for (int i = 0; i < N_ARCHITECTURES && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%s", i ? ", " : "", architectures[i].name);
}
