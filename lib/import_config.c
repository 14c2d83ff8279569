#include <math.h>
#include <stdio.h>

#include "import_parts.h"

enum { MOST = 1 << 30 };

static int missing(const struct nl_gguf *file, const char *key, struct nl_error *error)
{
    return nl_fail(error, NL_DATA, "GGUF key is missing: %s: %s", file->name, key);
}

static int unsupported(const struct nl_gguf *file, const char *what, struct nl_error *error)
{
    return nl_fail(error, NL_UNSUPPORTED, "not supported: %s: %s", file->name, what);
}

/* A count of at least 1 that has to be there. */
static int need(const struct nl_gguf *file, const char *key, int64_t *out, struct nl_error *error)
{
    const struct nl_gguf_pair *pair = nl_gguf_find(file, key);
    if (pair && pair->is_array) /* llama.cpp allows one value a layer for some */
        return nl_fail(error, NL_UNSUPPORTED, "layers that differ are not supported: %s: %s", file->name,
                       key);
    int found = nl_gguf_integer(file, key, 1, MOST, out, error);
    return found > 0 ? 0 : found < 0 ? -1 : missing(file, key, error);
}

/* A finite number greater than 0; -1, 0 (absent) or 1. */
static int positive(const struct nl_gguf *file, const char *key, double *out, struct nl_error *error)
{
    int found = nl_gguf_float(file, key, out, error);
    if (found > 0 && !(isfinite(*out) && *out > 0))
        return nl_fail(error, NL_DATA, "GGUF value %g is not a positive number: %s: %s", *out, file->name,
                       key);
    return found;
}

static int check_architecture(const struct nl_gguf *file, struct nl_error *error)
{
    struct nl_gguf_string name;
    int found = nl_gguf_text(file, "general.architecture", &name, error);
    if (found <= 0)
        return found < 0 ? -1 : missing(file, "general.architecture", error);
    if (name.size != 5 || memcmp(name.data, "llama", 5) != 0)
        return nl_fail(error, NL_UNSUPPORTED, "architecture '%.*s' is not supported, llama is: %s",
                       (int)(name.size < 100 ? name.size : 100), name.data, file->name);
    int64_t value = 0;
    if (nl_gguf_integer(file, "split.count", 0, MOST, &value, error) < 0)
        return -1;
    if (value > 1)
        return unsupported(file, "a model split over several files", error);
    value = 0;
    if (nl_gguf_integer(file, "llama.expert_count", 0, MOST, &value, error) < 0)
        return -1;
    if (value > 0)
        return unsupported(file, "a mixture of experts (llama.expert_count)", error);
    value = 0;
    if (nl_gguf_integer(file, "llama.attention.sliding_window", 0, MOST, &value, error) < 0)
        return -1;
    return value > 0 ? unsupported(file, "llama.attention.sliding_window", error) : 0;
}

static int read_heads(const struct nl_gguf *file, struct nl_import_config *c, struct nl_error *error)
{
    if (need(file, "llama.attention.head_count", &c->n_heads, error) != 0)
        return -1;
    c->n_kv_heads = c->n_heads;
    if (nl_gguf_find(file, "llama.attention.head_count_kv") &&
        need(file, "llama.attention.head_count_kv", &c->n_kv_heads, error) != 0)
        return -1;
    if (c->n_heads % c->n_kv_heads != 0)
        return nl_fail(error, NL_DATA, "heads are no multiple of key-value heads: %s", file->name);
    int given = nl_gguf_integer(file, "llama.attention.key_length", 1, MOST, &c->head_dim, error);
    if (given < 0)
        return -1;
    if (given == 0 && c->hidden_size % c->n_heads != 0)
        return nl_fail(error, NL_DATA, "llama.embedding_length is no multiple of the heads: %s", file->name);
    if (given == 0)
        c->head_dim = c->hidden_size / c->n_heads;
    int64_t value_length = c->head_dim, rotated = c->head_dim;
    if (nl_gguf_integer(file, "llama.attention.value_length", 1, MOST, &value_length, error) < 0 ||
        nl_gguf_integer(file, "llama.rope.dimension_count", 1, MOST, &rotated, error) < 0)
        return -1;
    if (value_length != c->head_dim)
        return unsupported(file, "keys and values of different lengths", error);
    if (rotated != c->head_dim)
        return unsupported(file, "rotary embeddings of a part of each head (llama.rope.dimension_count)",
                           error);
    return c->head_dim % 2 ? nl_fail(error, NL_DATA, "the heads' length is odd: %s", file->name) : 0;
}

/* YaRN's settings; llama.cpp's own factors on top of them have no counterpart in config.json. */
static int read_yarn(const struct nl_gguf *file, struct nl_import_config *c, struct nl_error *error)
{
    static const char *const neutral[] = {"llama.rope.scaling.attn_factor",
                                          "llama.rope.scaling.yarn_ext_factor",
                                          "llama.rope.scaling.yarn_attn_factor"};
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
        double value = 1;
        if (positive(file, neutral[i], &value, error) < 0)
            return -1;
        if (value != 1)
            return unsupported(file, neutral[i], error);
    }
    if (nl_gguf_find(file, "llama.rope.scaling.yarn_log_multiplier"))
        return unsupported(file, "llama.rope.scaling.yarn_log_multiplier", error);
    c->rope = NL_IMPORT_ROPE_YARN;
    c->beta_fast = 32;
    c->beta_slow = 1;
    return need(file, "llama.rope.scaling.original_context_length", &c->original_positions, error) != 0 ||
                   positive(file, "llama.rope.scaling.yarn_beta_fast", &c->beta_fast, error) < 0 ||
                   positive(file, "llama.rope.scaling.yarn_beta_slow", &c->beta_slow, error) < 0
               ? -1
               : 0;
}

static int read_scaling(const struct nl_gguf *file, struct nl_import_config *c, struct nl_error *error)
{
    struct nl_gguf_string type = {"", 0};
    int typed = nl_gguf_text(file, "llama.rope.scaling.type", &type, error);
    int factored = positive(file, "llama.rope.scaling.factor", &c->factor, error);
    if (typed < 0 || factored < 0)
        return -1;
    if (!typed && !factored) { /* the spelling before scaling.type */
        factored = positive(file, "llama.rope.scale_linear", &c->factor, error);
        if (factored < 0)
            return -1;
    }
    if (type.size == 4 && memcmp(type.data, "none", 4) == 0)
        return 0;
    if (!factored)
        return typed ? missing(file, "llama.rope.scaling.factor", error) : 0;
    if (!typed || (type.size == 6 && memcmp(type.data, "linear", 6) == 0)) {
        c->rope = c->factor == 1 ? NL_IMPORT_ROPE_DEFAULT : NL_IMPORT_ROPE_LINEAR;
        return 0;
    }
    if (type.size == 4 && memcmp(type.data, "yarn", 4) == 0)
        return read_yarn(file, c, error);
    return unsupported(file, "the kind of llama.rope.scaling.type", error);
}

/* The divisor of the inverse frequency of pair i, by the rule of Llama 3.1. */
static double llama3_divisor(const struct nl_import_config *c, double factor, int64_t i)
{
    double inverse = pow(c->rope_theta, -2.0 * (double)i / (double)c->head_dim),
           wavelength = 2 * M_PI / inverse;
    double turns = (double)c->original_positions / wavelength;
    if (turns > c->high_freq_factor)
        return 1;
    if (turns < c->low_freq_factor)
        return factor;
    double smooth = (turns - c->low_freq_factor) / (c->high_freq_factor - c->low_freq_factor);
    return 1 / ((1 - smooth) / factor + smooth);
}

/* Whether rope_freqs.weight is what Llama 3.1's rule gives for c's settings and some factor, which is then
   set. The factor is that of the last pair, the one with the longest wave; the other pairs prove it. */
static bool fits_llama3(struct nl_import_config *c, const float *divisors, int64_t n)
{
    double last = (double)divisors[n - 1], rest = llama3_divisor(c, INFINITY, n - 1);
    /* 1 / last = (1 - smooth) / factor + smooth, and 1 / rest = smooth */
    double factor = isinf(rest) ? last : (1 - 1 / rest) / (1 / last - 1 / rest);
    if (!(isfinite(factor) && factor >= 1))
        return false;
    if (fabs(factor - round(factor)) < 1e-3 * factor)
        factor = round(factor);
    for (int64_t i = 0; i < n; i++) {
        double want = llama3_divisor(c, factor, i);
        if (!(fabs((double)divisors[i] - want) <= 1e-4 * want))
            return false;
    }
    c->factor = factor;
    return true;
}

/* GGUF holds Llama 3's scaling as a tensor of divisors; config.json wants the rule's parameters. */
static int read_divisors(const struct nl_gguf *file, struct nl_import_config *c, struct nl_error *error)
{
    const struct nl_gguf_tensor *tensor = nl_gguf_tensor(file, "rope_freqs.weight");
    if (!tensor)
        return 0;
    int64_t n = c->head_dim / 2;
    float divisors[512];
    if (tensor->elements != (uint64_t)n || tensor->type != nl_ggml_type(NL_GGML_F32))
        return nl_fail(error, NL_DATA, "tensor is not %lld values of F32: %s: rope_freqs.weight",
                       (long long)n, file->name);
    if (n > (int64_t)(sizeof divisors / sizeof *divisors) || c->rope != NL_IMPORT_ROPE_DEFAULT)
        return unsupported(file, "rope_freqs.weight of this size or beside rope.scaling", error);
    nl_dequantize(tensor->type, tensor->data, (size_t)n, divisors);
    bool plain = true;
    for (int64_t i = 0; i < n; i++)
        plain = plain && divisors[i] == 1.0f;
    if (plain)
        return 0;
    c->low_freq_factor = 1;
    c->high_freq_factor = 4;
    int64_t candidates[] = {8192, c->max_positions, 0};
    if (nl_gguf_integer(file, "llama.rope.scaling.original_context_length", 1, MOST, &candidates[2], error) <
        0)
        return -1;
    for (int k = 0; k < 3 && candidates[k]; k++) {
        c->original_positions = candidates[k];
        if (fits_llama3(c, divisors, n)) {
            c->rope = NL_IMPORT_ROPE_LLAMA3;
            return 0;
        }
    }
    return unsupported(file, "rope_freqs.weight that is not Llama 3.1's scaling", error);
}

static int read_ids(const struct nl_gguf *file, struct nl_import_config *c, struct nl_error *error)
{
    struct {
        const char *key;
        int64_t *id;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", &c->bos},     {"tokenizer.ggml.eos_token_id", &c->eos},
        {"tokenizer.ggml.unknown_token_id", &c->unk}, {"tokenizer.ggml.padding_token_id", &c->pad},
        {"tokenizer.ggml.eot_token_id", &c->eot},     {"tokenizer.ggml.eom_token_id", &c->eom},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        *ids[i].id = -1;
        if (nl_gguf_integer(file, ids[i].key, -1, UINT32_MAX, ids[i].id, error) < 0)
            return -1;
        if (*ids[i].id == UINT32_MAX) /* some writers' "none" */
            *ids[i].id = -1;
        if (*ids[i].id >= c->vocab_size)
            return nl_fail(error, NL_DATA, "GGUF token id is beyond the vocabulary: %s: %s", file->name,
                           ids[i].key);
    }
    if (c->eos < 0)
        c->eos = c->eot;
    return 0;
}

int nl_import_config(const struct nl_gguf *file, struct nl_import_config *c, struct nl_error *error)
{
    *c = (struct nl_import_config){.rope_theta = 10000};
    if (check_architecture(file, error) != 0)
        return -1;
    const struct nl_gguf_tensor *embedding = nl_gguf_tensor(file, "token_embd.weight");
    if (!embedding)
        return nl_fail(error, NL_DATA, "tensor is missing: %s: token_embd.weight", file->name);
    if (embedding->rank != 2 || embedding->dims[1] < 1 || embedding->dims[1] > MOST)
        return nl_fail(error, NL_DATA, "tensor is not a table of embeddings: %s: token_embd.weight",
                       file->name);
    c->vocab_size = (int64_t)embedding->dims[1];
    c->tied = !nl_gguf_tensor(file, "output.weight");
    c->attention_bias = nl_gguf_tensor(file, "blk.0.attn_q.bias");
    c->mlp_bias = nl_gguf_tensor(file, "blk.0.ffn_up.bias");
    static const char eps[] = "llama.attention.layer_norm_rms_epsilon";
    if (need(file, "llama.block_count", &c->n_layers, error) != 0 ||
        need(file, "llama.embedding_length", &c->hidden_size, error) != 0 ||
        need(file, "llama.feed_forward_length", &c->intermediate_size, error) != 0 ||
        need(file, "llama.context_length", &c->max_positions, error) != 0 || read_heads(file, c, error) != 0)
        return -1;
    int found = positive(file, eps, &c->rms_norm_eps, error);
    if (found <= 0)
        return found < 0 ? -1 : missing(file, eps, error);
    if (positive(file, "llama.rope.freq_base", &c->rope_theta, error) < 0 ||
        read_scaling(file, c, error) != 0 || read_divisors(file, c, error) != 0)
        return -1;
    return read_ids(file, c, error);
}

static void float_member(struct nl_emit *e, const char *key, double value)
{
    nl_emit_key(e, key);
    nl_emit_float(e, value);
}

static void emit_scaling(struct nl_emit *e, const struct nl_import_config *c)
{
    static const char *const names[] = {"default", "linear", "yarn", "llama3"};
    if (c->rope == NL_IMPORT_ROPE_DEFAULT) {
        nl_emit_raw_member(e, "rope_scaling", "null");
        return;
    }
    nl_emit_key(e, "rope_scaling");
    nl_emit_open(e, '{');
    if (c->rope == NL_IMPORT_ROPE_YARN) {
        float_member(e, "beta_fast", c->beta_fast);
        float_member(e, "beta_slow", c->beta_slow);
    }
    float_member(e, "factor", c->factor);
    if (c->rope == NL_IMPORT_ROPE_LLAMA3) {
        float_member(e, "high_freq_factor", c->high_freq_factor);
        float_member(e, "low_freq_factor", c->low_freq_factor);
    }
    if (c->rope != NL_IMPORT_ROPE_LINEAR)
        nl_emit_integer_member(e, "original_max_position_embeddings", c->original_positions);
    nl_emit_string_member(e, "rope_type", names[c->rope]);
    nl_emit_close(e, '}');
}

/* The ids that config.json and generation_config.json both hold. */
static void emit_ids(struct nl_emit *e, const struct nl_import_config *c)
{
    if (c->bos >= 0)
        nl_emit_integer_member(e, "bos_token_id", c->bos);
    bool eot = c->eot >= 0 && c->eot != c->eos, eom = c->eom >= 0 && c->eom != c->eos && c->eom != c->eot;
    if (c->eos >= 0 && (eot || eom)) { /* any of them ends a turn */
        nl_emit_key(e, "eos_token_id");
        nl_emit_open(e, '[');
        nl_emit_integer(e, c->eos);
        if (eot)
            nl_emit_integer(e, c->eot);
        if (eom)
            nl_emit_integer(e, c->eom);
        nl_emit_close(e, ']');
    } else if (c->eos >= 0) {
        nl_emit_integer_member(e, "eos_token_id", c->eos);
    }
    if (c->pad >= 0)
        nl_emit_integer_member(e, "pad_token_id", c->pad);
}

void nl_import_config_json(const struct nl_import_config *c, enum nl_dtype dtype, struct nl_buf *out)
{
    struct nl_emit e = {.out = out};
    nl_emit_open(&e, '{');
    nl_emit_raw_member(&e, "architectures", "[\"LlamaForCausalLM\"]");
    nl_emit_bool_member(&e, "attention_bias", c->attention_bias);
    emit_ids(&e, c);
    nl_emit_integer_member(&e, "head_dim", c->head_dim);
    nl_emit_string_member(&e, "hidden_act", "silu");
    nl_emit_integer_member(&e, "hidden_size", c->hidden_size);
    nl_emit_integer_member(&e, "intermediate_size", c->intermediate_size);
    nl_emit_integer_member(&e, "max_position_embeddings", c->max_positions);
    nl_emit_bool_member(&e, "mlp_bias", c->mlp_bias);
    nl_emit_string_member(&e, "model_type", "llama");
    nl_emit_integer_member(&e, "num_attention_heads", c->n_heads);
    nl_emit_integer_member(&e, "num_hidden_layers", c->n_layers);
    nl_emit_integer_member(&e, "num_key_value_heads", c->n_kv_heads);
    float_member(&e, "rms_norm_eps", c->rms_norm_eps);
    emit_scaling(&e, c);
    float_member(&e, "rope_theta", c->rope_theta);
    nl_emit_bool_member(&e, "tie_word_embeddings", c->tied);
    nl_emit_string_member(&e, "torch_dtype",
                          dtype == NL_F32   ? "float32"
                          : dtype == NL_F16 ? "float16"
                                            : "bfloat16");
    nl_emit_integer_member(&e, "vocab_size", c->vocab_size);
    nl_emit_close(&e, '}');
}

void nl_import_generation_json(const struct nl_import_config *c, struct nl_buf *out)
{
    struct nl_emit e = {.out = out};
    nl_emit_open(&e, '{');
    nl_emit_raw_member(&e, "_from_model_config", "true");
    emit_ids(&e, c);
    nl_emit_close(&e, '}');
}
