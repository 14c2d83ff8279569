#include "element.h"

#include <math.h>

bool nl_element_known(enum nl_dtype dtype)
{
    return nl_dtype_bits(dtype) >= 8 && dtype != NL_C64;
}

/* An 8-bit float of FNUZ kind: `mantissa` bits of it, the rest exponent. */
static double of_fnuz(uint8_t byte, int mantissa, int bias)
{
    int exponent = (byte & 0x7f) >> mantissa, fraction = byte & ((1 << mantissa) - 1);
    if (byte == 0x80)
        return NAN;
    if (exponent > 0)
        fraction += 1 << mantissa;
    else
        exponent = 1;
    double value = ldexp(fraction, exponent - bias - mantissa);
    return byte & 0x80 ? -value : value;
}

static double of_byte(enum nl_dtype dtype, uint8_t byte)
{
    switch (dtype) {
    case NL_I8:
        return (int8_t)byte;
    case NL_F8_E4M3:
        return nl_float_of_f8_e4m3(byte);
    case NL_F8_E5M2:
        return nl_float_of_f16((uint16_t)(byte << 8));
    case NL_F8_E8M0:
        return byte == 0xff ? NAN : ldexp(1, byte - 127);
    case NL_F8_E4M3FNUZ:
        return of_fnuz(byte, 3, 8);
    case NL_F8_E5M2FNUZ:
        return of_fnuz(byte, 2, 16);
    default: /* BOOL, U8 */
        return byte;
    }
}

static double of_half(enum nl_dtype dtype, uint16_t half)
{
    switch (dtype) {
    case NL_F16:
        return nl_float_of_f16(half);
    case NL_BF16:
        return nl_float_of_bf16(half);
    case NL_I16:
        return (int16_t)half;
    default:
        return half;
    }
}

static double of_word(enum nl_dtype dtype, uint32_t word)
{
    return dtype == NL_F32 ? nl_float_of_bits(word) : dtype == NL_I32 ? (int32_t)word : (double)word;
}

static double of_long(enum nl_dtype dtype, uint64_t word)
{
    double value;
    memcpy(&value, &word, sizeof value);
    return dtype == NL_F64 ? value : dtype == NL_I64 ? (double)(int64_t)word : (double)word;
}

void nl_elements(const struct nl_tensor *tensor, uint64_t first, size_t count, double *out)
{
    size_t size = nl_dtype_bits(tensor->dtype) / 8;
    const uint8_t *at = tensor->data + first * size;
    for (size_t i = 0; i < count; i++, at += size) {
        uint16_t half;
        uint32_t word;
        uint64_t wide;
        if (size == 1) {
            out[i] = of_byte(tensor->dtype, *at);
        } else if (size == 2) {
            memcpy(&half, at, sizeof half);
            out[i] = of_half(tensor->dtype, half);
        } else if (size == 4) {
            memcpy(&word, at, sizeof word);
            out[i] = of_word(tensor->dtype, word);
        } else {
            memcpy(&wide, at, sizeof wide);
            out[i] = of_long(tensor->dtype, wide);
        }
    }
}
