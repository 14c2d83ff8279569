/*
 * base.h: what every layer shares: errors, element types, 16-bit floats, checked sizes.
 *
 * Functions that can fail return 0 (or a pointer, or a count) on success; on failure they return -1 (or
 * NULL) and fill the caller's struct nl_error. Nothing below cmd/ prints, exits or keeps global state.
 */
#ifndef NL_BASE_H
#define NL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The exit statuses of all programs, and the codes of all errors. */
enum nl_status {
    NL_OK = 0,
    NL_NO = 1,          /* a negative answer: differs, invalid, not met */
    NL_USAGE = 2,       /* wrong options or operands */
    NL_DATA = 3,        /* bad input data */
    NL_NOT_FOUND = 4,   /* model or file not found */
    NL_UNSUPPORTED = 5, /* a model or feature that is not supported, named in the message */
    NL_RESOURCE = 6,    /* no memory, no device */
    NL_TOO_LONG = 7,    /* prompt longer than the context */
    NL_UPSTREAM = 8,    /* the program upstream failed or was cut short */
    NL_IO = 9,          /* reading or writing failed */
};

struct nl_error {
    enum nl_status code;
    char message[1000]; /* "what is wrong: where": lower case, no full stop, no newline; "" = already reported
                         */
};

/* Fills *error (which may be NULL); control characters in the message become '?'. */
void nl_set_error(struct nl_error *error, enum nl_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "what: path: strerror(errno)". ENOENT and ENOTDIR give NL_NOT_FOUND, ENOMEM NL_RESOURCE, all else NL_IO. */
void nl_set_error_errno(struct nl_error *error, const char *what, const char *path);

/* The same as expressions of value -1, so that a caller can `return nl_fail(...)`; macros, so that analysers
   see the value. */
#define nl_fail(...)                     (nl_set_error(__VA_ARGS__), nl_failed())
#define nl_fail_errno(error, what, path) (nl_set_error_errno(error, what, path), nl_failed())
/* An allocation that failed; `what` names it. */
#define nl_fail_memory(error, what) nl_fail(error, NL_RESOURCE, "out of memory: %s", what)
static inline int nl_failed(void)
{
    return -1;
}

/* Element types, in the spelling of safetensors. */
enum nl_dtype {
    NL_BOOL,
    NL_F4,
    NL_F6_E2M3,
    NL_F6_E3M2,
    NL_U8,
    NL_I8,
    NL_F8_E5M2,
    NL_F8_E4M3,
    NL_F8_E8M0,
    NL_F8_E4M3FNUZ,
    NL_F8_E5M2FNUZ,
    NL_I16,
    NL_U16,
    NL_F16,
    NL_BF16,
    NL_I32,
    NL_U32,
    NL_F32,
    NL_C64,
    NL_F64,
    NL_I64,
    NL_U64,
    NL_DTYPES,
};
const char *nl_dtype_name(enum nl_dtype dtype); /* "BF16" */
unsigned nl_dtype_bits(enum nl_dtype dtype);    /* 16 */
bool nl_dtype_parse(const char *name, size_t length,
                    enum nl_dtype *dtype); /* exact spelling; false if unknown */

/* *out = a * b, *out = a + b; false on overflow. */
static inline bool nl_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool nl_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline float nl_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t nl_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float nl_float_of_bf16(uint16_t half)
{
    return nl_float_of_bits((uint32_t)half << 16);
}
/* To nearest, ties to even; a NaN stays a (quiet) NaN. */
uint16_t nl_bf16_of_float(float value);
/* value as bfloat16 where `rounds`, else as it is. */
static inline float nl_rounded(float value, bool rounds)
{
    return rounds ? nl_float_of_bf16(nl_bf16_of_float(value)) : value;
}
float nl_float_of_f16(uint16_t half);
uint16_t nl_f16_of_float(float value);
/* 4 bits of exponent, 3 of mantissa, no infinities: 0x7f and 0xff are NaN. */
float nl_float_of_f8_e4m3(uint8_t byte);

#endif
