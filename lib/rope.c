#include "rope.h"

#include <math.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

static const struct {
    const char *name;
    enum nl_rope_type type;
} types[] = {{"default", NL_ROPE_DEFAULT}, {"linear", NL_ROPE_LINEAR},     {"dynamic", NL_ROPE_DYNAMIC},
             {"yarn", NL_ROPE_YARN},       {"longrope", NL_ROPE_LONGROPE}, {"llama3", NL_ROPE_LLAMA3}};

static enum nl_rope_type read_type(struct nl_keys *keys, bool is_phi3)
{
    const char *name = nl_keys_string(keys, "rope_type", nl_keys_string(keys, "type", "default"));
    if (is_phi3 && (strcmp(name, "yarn") == 0 || strcmp(name, "su") == 0))
        return NL_ROPE_LONGROPE;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    nl_keys_fault(
        keys, NL_UNSUPPORTED,
        "unsupported rope_type (supported: default, linear, dynamic, yarn, longrope, llama3): %.60s", name);
    return NL_ROPE_DEFAULT;
}

/* A list of dims / 2 positive numbers. */
static float *read_factors(struct nl_keys *keys, const char *key, uint32_t count)
{
    const struct nl_json *list = nl_keys_array(keys, key);
    if (!list || nl_json_count(list) != count) {
        nl_keys_fault(keys, NL_DATA, "%s is not a list of %u numbers", key, count);
        return NULL;
    }
    float *factors = malloc((count + 1) * sizeof *factors);
    if (!factors)
        nl_keys_fault(keys, NL_RESOURCE, "out of memory");
    size_t i = 0;
    for (const struct nl_json *v = nl_json_first(list); factors && v; v = nl_json_next(v), i++) {
        factors[i] = nl_json_is(v, NL_JSON_NUMBER) ? (float)nl_json_number(v) : 0;
        if (!(factors[i] > 0 && factors[i] < 1e30f))
            nl_keys_fault(keys, NL_DATA, "%s has an entry that is no positive number", key);
    }
    return factors;
}

static double mscale(double scale, double factor)
{
    return scale <= 1 ? 1 : 0.1 * factor * log(scale) + 1;
}

static void read_yarn(struct nl_keys *keys, struct nl_rope_config *rope)
{
    double all = nl_keys_number(keys, "mscale_all_dim", 0, -1e9, 1e9),
           one = nl_keys_number(keys, "mscale", 0, -1e9, 1e9);
    double implied = one != 0 && all != 0 ? mscale(rope->factor, one) / mscale(rope->factor, all)
                                          : mscale(rope->factor, 1);
    rope->attention_factor = (float)nl_keys_number(keys, "attention_factor", implied, 0, 1e9);
    rope->beta_fast = nl_keys_number(keys, "beta_fast", 32, -1e9, 1e9);
    rope->beta_slow = nl_keys_number(keys, "beta_slow", 1, -1e9, 1e9);
    rope->beta_fast = rope->beta_fast == 0 ? 32 : rope->beta_fast; /* as Python's `or` */
    rope->beta_slow = rope->beta_slow == 0 ? 1 : rope->beta_slow;
    rope->truncate = nl_keys_flag(keys, "truncate", true);
    if (rope->theta == 1 || rope->beta_fast < 0 || rope->beta_slow < 0)
        nl_keys_fault(keys, NL_DATA, "yarn with rope_theta 1 or a negative beta");
}

static void read_longrope(struct nl_keys *keys, struct nl_rope_config *rope)
{
    double implied = rope->factor <= 1 ? 1 : sqrt(1 + log(rope->factor) / log(rope->original_positions));
    rope->attention_factor = (float)nl_keys_number(keys, "attention_factor", implied, 0, 1e9);
    rope->short_factor = read_factors(keys, "short_factor", rope->dims / 2);
    rope->long_factor = read_factors(keys, "long_factor", rope->dims / 2);
    if (rope->original_positions <= 1)
        nl_keys_fault(keys, NL_DATA, "longrope with original_max_position_embeddings of 1 or less");
}

void nl_rope_read(struct nl_keys *keys, const struct nl_json *object, const struct nl_rope_context *context,
                  struct nl_rope_config *rope)
{
    struct nl_keys inner = {object, keys->path, keys->error, keys->failed};
    *rope = (struct nl_rope_config){.type = read_type(&inner, context->is_phi3), .attention_factor = 1};
    rope->max_positions = context->max_positions;
    rope->theta = nl_keys_number(&inner, "rope_theta", context->theta, 0, 1e30);
    rope->dims = context->head_dim;
    double partial = nl_keys_number(&inner, "partial_rotary_factor", context->partial, 0, 1);
    if (context->is_phi3)
        rope->dims = (uint32_t)(context->head_dim * partial);
    else if (partial != 1 && rope->type != NL_ROPE_DEFAULT) /* the default's code leaves it out */
        nl_keys_fault(&inner, NL_UNSUPPORTED, "unsupported: partial_rotary_factor with this rope_type");
    if (rope->dims % 2 != 0 || rope->dims == 0)
        nl_keys_fault(&inner, NL_DATA, "the rotated part of a head of %u is odd or nothing",
                      context->head_dim);
    rope->original_positions =
        nl_keys_number(&inner, "original_max_position_embeddings", context->max_positions, 0, 1e12);
    if (context->original_positions > 0)
        rope->original_positions = context->original_positions;
    double ratio = context->max_positions / rope->original_positions;
    bool may_imply = rope->type == NL_ROPE_YARN || rope->type == NL_ROPE_LONGROPE;
    if (rope->type != NL_ROPE_DEFAULT)
        rope->factor = nl_keys_number(&inner, "factor", may_imply ? ratio : NAN, 0, 1e9);
    if (rope->type == NL_ROPE_LLAMA3) {
        rope->low_freq_factor = nl_keys_number(&inner, "low_freq_factor", NAN, 0, 1e9);
        rope->high_freq_factor = nl_keys_number(&inner, "high_freq_factor", NAN, rope->low_freq_factor, 1e9);
    } else if (rope->type == NL_ROPE_YARN) {
        read_yarn(&inner, rope);
    } else if (rope->type == NL_ROPE_LONGROPE) {
        read_longrope(&inner, rope);
        rope->anew = context->is_phi3;
    } else if (rope->type == NL_ROPE_DYNAMIC && rope->dims == 2) {
        nl_keys_fault(&inner, NL_DATA, "dynamic rope with 2 rotated dimensions");
    }
    keys->failed = inner.failed;
}

void nl_rope_free(struct nl_rope_config *rope)
{
    free(rope->short_factor);
    free(rope->long_factor);
    *rope = (struct nl_rope_config){0};
}

bool nl_rope_varies(const struct nl_rope_config *rope)
{
    return rope->type == NL_ROPE_DYNAMIC || rope->type == NL_ROPE_LONGROPE;
}

uint32_t nl_rope_border(const struct nl_rope_config *rope)
{
    if (!rope->anew || rope->original_positions >= (double)UINT32_MAX)
        return UINT32_MAX;
    return (uint32_t)rope->original_positions;
}

/* theta^(2i / dims): a float32 power, as torch computes it. */
static float frequency_base(const struct nl_rope_config *rope, double theta, uint32_t i)
{
    return powf((float)theta, (float)(2 * i) / (float)rope->dims);
}

static float llama3_frequency(const struct nl_rope_config *rope, float plain)
{
    float low_wavelength = (float)(rope->original_positions / rope->low_freq_factor);
    float high_wavelength = (float)(rope->original_positions / rope->high_freq_factor);
    float wavelength = (float)(2 * pi) / plain, factor = (float)rope->factor;
    if (wavelength > low_wavelength)
        return plain / factor;
    if (wavelength < high_wavelength)
        return plain;
    float smooth = ((float)rope->original_positions / wavelength - (float)rope->low_freq_factor) /
                   (float)(rope->high_freq_factor - rope->low_freq_factor);
    return (1 - smooth) * plain / factor + smooth * plain;
}

/* The dimension that turns `rotations` times over the original length. */
static double correction_dim(const struct nl_rope_config *rope, double rotations)
{
    return rope->dims * log(rope->original_positions / (rotations * 2 * pi)) / (2 * log(rope->theta));
}

static void yarn_frequencies(const struct nl_rope_config *rope, float *inv_freq)
{
    double low = correction_dim(rope, rope->beta_fast), high = correction_dim(rope, rope->beta_slow);
    if (rope->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = low > 0 ? low : 0;
    high = high < rope->dims - 1 ? high : rope->dims - 1;
    if (low == high)
        high += 0.001;
    for (uint32_t i = 0; i < rope->dims / 2; i++) {
        float base = frequency_base(rope, rope->theta, i);
        float ramp = ((float)i - (float)low) / (float)(high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        float keep = 1 - ramp;
        inv_freq[i] = 1 / ((float)rope->factor * base) * (1 - keep) + 1 / base * keep;
    }
}

void nl_rope_frequencies(const struct nl_rope_config *rope, uint32_t length, float *inv_freq)
{
    double theta = rope->theta;
    if (rope->type == NL_ROPE_YARN) {
        yarn_frequencies(rope, inv_freq);
        return;
    }
    if (rope->type == NL_ROPE_DYNAMIC) {
        double longest = length > rope->max_positions ? length : rope->max_positions, dims = rope->dims;
        theta *= pow(rope->factor * longest / rope->max_positions - (rope->factor - 1), dims / (dims - 2));
    }
    const float *factors = length > rope->original_positions ? rope->long_factor : rope->short_factor;
    for (uint32_t i = 0; i < rope->dims / 2; i++) {
        float base = frequency_base(rope, theta, i);
        float plain = 1 / base;
        if (rope->type == NL_ROPE_LINEAR)
            plain /= (float)rope->factor;
        else if (rope->type == NL_ROPE_LONGROPE)
            plain = 1 / (factors[i] * base);
        else if (rope->type == NL_ROPE_LLAMA3)
            plain = llama3_frequency(rope, plain);
        inv_freq[i] = plain;
    }
}
