#include "base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void nl_set_error(struct nl_error *error, enum nl_status code, const char *format, ...)
{
    if (!error)
        return;
    va_list arguments;
    va_start(arguments, format);
    error->code = code;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    /* Names in a message come from files: no control character of theirs may reach a terminal. */
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

void nl_set_error_errno(struct nl_error *error, const char *what, const char *path)
{
    int reason = errno;
    enum nl_status code = reason == ENOENT || reason == ENOTDIR ? NL_NOT_FOUND
                          : reason == ENOMEM                    ? NL_RESOURCE
                                                                : NL_IO;
    nl_set_error(error, code, "%s: %s: %s", what, path, strerror(reason));
}

static const struct {
    const char *name;
    unsigned bits;
} dtypes[NL_DTYPES] = {
    [NL_BOOL] = {"BOOL", 8},
    [NL_F4] = {"F4", 4},
    [NL_F6_E2M3] = {"F6_E2M3", 6},
    [NL_F6_E3M2] = {"F6_E3M2", 6},
    [NL_U8] = {"U8", 8},
    [NL_I8] = {"I8", 8},
    [NL_F8_E5M2] = {"F8_E5M2", 8},
    [NL_F8_E4M3] = {"F8_E4M3", 8},
    [NL_F8_E8M0] = {"F8_E8M0", 8},
    [NL_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [NL_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [NL_I16] = {"I16", 16},
    [NL_U16] = {"U16", 16},
    [NL_F16] = {"F16", 16},
    [NL_BF16] = {"BF16", 16},
    [NL_I32] = {"I32", 32},
    [NL_U32] = {"U32", 32},
    [NL_F32] = {"F32", 32},
    [NL_C64] = {"C64", 64},
    [NL_F64] = {"F64", 64},
    [NL_I64] = {"I64", 64},
    [NL_U64] = {"U64", 64},
};

const char *nl_dtype_name(enum nl_dtype dtype)
{
    return dtypes[dtype].name;
}

unsigned nl_dtype_bits(enum nl_dtype dtype)
{
    return dtypes[dtype].bits;
}

bool nl_dtype_parse(const char *name, size_t length, enum nl_dtype *dtype)
{
    for (int i = 0; i < NL_DTYPES; i++)
        if (strlen(dtypes[i].name) == length && memcmp(dtypes[i].name, name, length) == 0) {
            *dtype = (enum nl_dtype)i;
            return true;
        }
    return false;
}

uint16_t nl_bf16_of_float(float value)
{
    uint32_t bits = nl_bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float nl_float_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    if (exponent == 31)
        return nl_float_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return nl_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t nl_f16_of_float(float value)
{
    uint32_t bits = nl_bits_of_float(value), magnitude = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520 rounds up past the largest finite value */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude <
        0x38800000) { /* subnormal: adding 0.5 makes the unit of the sum 2^-24, and rounds to even */
        float aligned = nl_float_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (nl_bits_of_float(aligned) - 0x3f000000));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

float nl_float_of_f8_e4m3(uint8_t byte)
{
    uint32_t sign = (uint32_t)(byte & 0x80) << 24, magnitude = byte & 0x7f;
    if (magnitude == 0x7f)
        return nl_float_of_bits(sign | 0x7fc00000);
    /* Shifted into place the exponent is 120 too small; a multiplication mends that, subnormals too. */
    float value = nl_float_of_bits(magnitude << 20) * 0x1p120f;
    return sign ? -value : value;
}
