#include "dequant.h"

static uint16_t u16_at(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static float half_at(const uint8_t *p)
{
    return nl_float_of_f16(u16_at(p));
}

static void f32(const uint8_t *p, float *out)
{
    *out =
        nl_float_of_bits((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

static void f16(const uint8_t *p, float *out)
{
    *out = half_at(p);
}

static void bf16(const uint8_t *p, float *out)
{
    *out = nl_float_of_bf16(u16_at(p));
}

/* Q4_0: scale, then 16 bytes whose low halves are elements 0..15 and high halves 16..31, each less 8. */
static void q4_0(const uint8_t *p, float *out)
{
    float d = half_at(p);
    const uint8_t *q = p + 2;
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((q[i] & 15) - 8);
        out[i + 16] = d * (float)((q[i] >> 4) - 8);
    }
}

/* Q4_1: scale, minimum, 16 bytes. */
static void q4_1(const uint8_t *p, float *out)
{
    float d = half_at(p), m = half_at(p + 2);
    const uint8_t *q = p + 4;
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)(q[i] & 15) + m;
        out[i + 16] = d * (float)(q[i] >> 4) + m;
    }
}

/* Element i of the 5-bit types: bit 4 of all 32 lies in a little-endian word of its own. */
static int five_bits(const uint8_t *high, const uint8_t *low, int i)
{
    int nibble = i < 16 ? low[i] & 15 : low[i - 16] >> 4;
    return nibble | (high[i / 8] >> i % 8 & 1) << 4;
}

/* Q5_0: scale, high bits, 16 bytes; less 16. */
static void q5_0(const uint8_t *p, float *out)
{
    float d = half_at(p);
    for (int i = 0; i < 32; i++)
        out[i] = d * (float)(five_bits(p + 2, p + 6, i) - 16);
}

/* Q5_1: scale, minimum, high bits, 16 bytes. */
static void q5_1(const uint8_t *p, float *out)
{
    float d = half_at(p), m = half_at(p + 2);
    for (int i = 0; i < 32; i++)
        out[i] = d * (float)five_bits(p + 4, p + 8, i) + m;
}

static int signed_byte(uint8_t byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* Q8_0: scale, 32 signed bytes. */
static void q8_0(const uint8_t *p, float *out)
{
    float d = half_at(p);
    for (int i = 0; i < 32; i++)
        out[i] = (float)signed_byte(p[2 + i]) * d;
}

/* The 6-bit scale and minimum of group g in 0..7 of Q4_K and Q5_K, from their 12 bytes s: groups 0..3 have
   their six bits in s[g] and s[g + 4]; groups 4..7 four bits each in s[g + 4], two in the top of s[g - 4] and
   s[g]. */
static void k_scale(const uint8_t *s, int g, float *scale, float *minimum)
{
    if (g < 4) {
        *scale = (float)(s[g] & 63);
        *minimum = (float)(s[g + 4] & 63);
    } else {
        *scale = (float)((s[g + 4] & 15) | (s[g - 4] >> 6) << 4);
        *minimum = (float)((s[g + 4] >> 4) | (s[g] >> 6) << 4);
    }
}

/* Q4_K: scale of scales, scale of minimums, 12 bytes of scales, 128 bytes: each 32 of them hold two groups of
   32 elements, the even one in the low halves. */
static void q4_k(const uint8_t *p, float *out)
{
    float d = half_at(p), dmin = half_at(p + 2);
    for (int g = 0; g < 8; g++) {
        float scale, minimum;
        k_scale(p + 4, g, &scale, &minimum);
        float dl = d * scale, ml = dmin * minimum;
        const uint8_t *q = p + 16 + g / 2 * 32;
        for (int i = 0; i < 32; i++)
            out[g * 32 + i] = dl * (float)(q[i] >> g % 2 * 4 & 15) - ml;
    }
}

/* Q5_K: as Q4_K with 32 bytes before the low bits: bit g of byte i is bit 4 of element i of group g. */
static void q5_k(const uint8_t *p, float *out)
{
    float d = half_at(p), dmin = half_at(p + 2);
    const uint8_t *high = p + 16;
    for (int g = 0; g < 8; g++) {
        float scale, minimum;
        k_scale(p + 4, g, &scale, &minimum);
        float dl = d * scale, ml = dmin * minimum;
        const uint8_t *q = p + 48 + g / 2 * 32;
        for (int i = 0; i < 32; i++)
            out[g * 32 + i] = dl * (float)((q[i] >> g % 2 * 4 & 15) | (high[i] >> g & 1) << 4) - ml;
    }
}

/* Q6_K: 128 bytes of low halves, 64 of high pairs, 16 signed scales, scale of scales. In each half of the
   block 64 low bytes hold elements 0..63 (low halves) and 64..127; 32 high bytes hold bits for
   0..31, 32..63, 64..95, 96..127. */
static void q6_k(const uint8_t *p, float *out)
{
    float d = half_at(p + 208);
    for (int half = 0; half < 2; half++) {
        const uint8_t *low = p + half * 64, *high = p + 128 + half * 32;
        for (int i = 0; i < 128; i++) {
            int q = (low[i % 64] >> i / 64 * 4 & 15) | (high[i % 32] >> i / 32 * 2 & 3) << 4;
            int at = half * 128 + i;
            out[at] = d * (float)signed_byte(p[192 + at / 16]) * (float)(q - 32);
        }
    }
}

/* The types without a function are known by name and size only, so that a file that holds them can be
 * described. */
static const struct nl_ggml_type types[] = {
    [0] = {"F32", 1, 4, f32},          [1] = {"F16", 1, 2, f16},          [2] = {"Q4_0", 32, 18, q4_0},
    [3] = {"Q4_1", 32, 20, q4_1},      [6] = {"Q5_0", 32, 22, q5_0},      [7] = {"Q5_1", 32, 24, q5_1},
    [8] = {"Q8_0", 32, 34, q8_0},      [9] = {"Q8_1", 32, 40, NULL},      [10] = {"Q2_K", 256, 84, NULL},
    [11] = {"Q3_K", 256, 110, NULL},   [12] = {"Q4_K", 256, 144, q4_k},   [13] = {"Q5_K", 256, 176, q5_k},
    [14] = {"Q6_K", 256, 210, q6_k},   [15] = {"Q8_K", 256, 292, NULL},   [16] = {"IQ2_XXS", 256, 66, NULL},
    [17] = {"IQ2_XS", 256, 74, NULL},  [18] = {"IQ3_XXS", 256, 98, NULL}, [19] = {"IQ1_S", 256, 50, NULL},
    [20] = {"IQ4_NL", 32, 18, NULL},   [21] = {"IQ3_S", 256, 110, NULL},  [22] = {"IQ2_S", 256, 82, NULL},
    [23] = {"IQ4_XS", 256, 136, NULL}, [24] = {"I8", 1, 1, NULL},         [25] = {"I16", 1, 2, NULL},
    [26] = {"I32", 1, 4, NULL},        [27] = {"I64", 1, 8, NULL},        [28] = {"F64", 1, 8, NULL},
    [29] = {"IQ1_M", 256, 56, NULL},   [30] = {"BF16", 1, 2, bf16},       [34] = {"TQ1_0", 256, 54, NULL},
    [35] = {"TQ2_0", 256, 66, NULL},   [39] = {"MXFP4", 32, 17, NULL},    [40] = {"NVFP4", 64, 36, NULL},
    [41] = {"Q1_0", 128, 18, NULL},
};

const struct nl_ggml_type *nl_ggml_type(uint32_t id)
{
    return id < sizeof types / sizeof *types && types[id].name ? &types[id] : NULL;
}

void nl_dequantize(const struct nl_ggml_type *type, const uint8_t *blocks, size_t n_blocks, float *out)
{
    for (size_t i = 0; i < n_blocks; i++)
        type->dequantize(blocks + i * type->bytes, out + i * type->elements);
}
