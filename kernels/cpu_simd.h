/*
 * cpu_simd.h: vectors of NL_LANES floats, for the files that define NL_LANES (4, 8 or 16) before including
 * it.
 *
 * Written with the compilers' vector extensions, so that one source serves every instruction set; intrinsics
 * only where those have no word for the instruction (fused multiply-add, half floats). Sixteen lanes also
 * compile without AVX-512, as pairs of eight: the same bits, for tests on processors that lack it.
 */
#ifndef NL_CPU_SIMD_H
#define NL_CPU_SIMD_H

#include "base.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

#define ALWAYS static inline __attribute__((always_inline))
#if defined __clang__
#define UNROLL_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define UNROLL_FOR(...) _Pragma("GCC unroll 32") for (__VA_ARGS__)
#endif

typedef float vf __attribute__((vector_size(4 * NL_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * NL_LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * NL_LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * NL_LANES)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));

ALWAYS vf broadcast(float x)
{
    return x - (vf){0}; /* minus zero keeps -0 */
}
ALWAYS vf load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
/* The first n < NL_LANES floats, then zeros. */
ALWAYS vf load_part(const float *p, size_t n)
{
    vf v = {0};
    memcpy(&v, p, n * sizeof *p);
    return v;
}
ALWAYS void store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
ALWAYS void store_part(float *p, vf v, size_t n)
{
    memcpy(p, &v, n * sizeof *p);
}
/* 0, 1, 2 ... */
ALWAYS vi lane_numbers(void)
{
    static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vi v;
    memcpy(&v, numbers, sizeof v);
    return v;
}
ALWAYS vf choose(vi mask, vf yes, vf no) /* lanes of mask are 0 or -1 */
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* a * b + c, fused where the instruction set has it. */
ALWAYS vf fma_lanes(vf a, vf b, vf c)
{
#if NL_LANES == 16 && defined __AVX512F__
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif NL_LANES == 16 && defined __FMA__
    union {
        vf whole;
        __m256 half[2];
    } x = {a}, y = {b}, z = {c};
    z.half[0] = _mm256_fmadd_ps(x.half[0], y.half[0], z.half[0]);
    z.half[1] = _mm256_fmadd_ps(x.half[1], y.half[1], z.half[1]);
    return z.whole;
#elif NL_LANES == 8 && defined __FMA__
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined __aarch64__
    for (int i = 0; i < NL_LANES; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
}

/* Halves added to halves, down to four lanes. */
ALWAYS v4 fold_lanes(vf v)
{
#if NL_LANES == 16
    v8 w = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
           __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(w, w, 0, 1, 2, 3) + __builtin_shufflevector(w, w, 4, 5, 6, 7);
#elif NL_LANES == 8
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
    return v;
#endif
}

/* The sum of the lanes. */
ALWAYS float sum_lanes(vf v)
{
    v4 x = fold_lanes(v);
    return (x[0] + x[2]) + (x[1] + x[3]);
}

/* The sums of the lanes of four vectors: the same bits. */
ALWAYS v4 sum_lanes_of_four(vf v, vf w, vf x, vf y)
{
    v4 a = fold_lanes(v), b = fold_lanes(w), c = fold_lanes(x), d = fold_lanes(y);
    v4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    v4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

ALWAYS vf half_to_float(vh half)
{
#if NL_LANES == 16 && defined __AVX512F__
    return (vf)_mm512_cvtph_ps((__m256i)half);
#elif NL_LANES == 8 && defined __F16C__
    return (vf)_mm256_cvtph_ps((__m128i)half);
#else
    /* Shifted into place, the exponent is 112 too small; a multiplication by 2^112 mends that, subnormals
     * too. */
    vu bits = __builtin_convertvector(half, vu), magnitude = (bits & 0x7fff) << 13;
    vf value = (vf)magnitude * 0x1p112f;
    vu special = (vu)((bits & 0x7c00) == 0x7c00) & (0x7f800000 | magnitude);
    return (vf)((vu)value | special | (bits & 0x8000) << 16);
#endif
}

ALWAYS vf bf16_to_float(vh half)
{
#if NL_LANES == 16 && defined __AVX512F__
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)half), 16);
#elif NL_LANES == 8 && defined __AVX2__
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)half), 16);
#elif NL_LANES == 4 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (vf)__builtin_shufflevector((vh){0}, half, 0, 4, 1, 5, 2, 6, 3, 7);
#else
    return (vf)(__builtin_convertvector(half, vu) << 16);
#endif
}

/* NL_LANES weights of a type known when the caller is compiled, widened. */
ALWAYS vf load_weights(enum nl_dtype dtype, const uint8_t *p)
{
    if (dtype == NL_F32)
        return load((const float *)(const void *)p);
    vh half;
    memcpy(&half, p, sizeof half);
    return dtype == NL_F16 ? half_to_float(half) : bf16_to_float(half);
}
ALWAYS vf load_weights_part(enum nl_dtype dtype, const uint8_t *p, size_t n)
{
    uint8_t bytes[4 * NL_LANES] = {0};
    memcpy(bytes, p, n * (dtype == NL_F32 ? 4 : 2));
    return load_weights(dtype, bytes);
}

/*
 * e^x within 2 ulp, NaN for NaN: x = n ln 2 + r, a polynomial for e^r, then two exact scalings by powers of
 * two, so that results down to the smallest subnormal are rounded once. Coefficients: Cephes' expf.
 */
ALWAYS vf exp_lanes(vf x)
{
    x = choose(x > 89.0f, broadcast(89.0f), x);
    x = choose(x < -104.0f, broadcast(-104.0f), x);
    const float to_integer = 0x1.8p23f;
    vf n = (x * 1.44269504f + to_integer) - to_integer;
    vf r = fma_lanes(n, broadcast(-0.693359375f), x);
    r = fma_lanes(n, broadcast(2.12194440e-4f), r);
    vf y = broadcast(1.9875691500e-4f);
    y = fma_lanes(y, r, broadcast(1.3981999507e-3f));
    y = fma_lanes(y, r, broadcast(8.3334519073e-3f));
    y = fma_lanes(y, r, broadcast(4.1665795894e-2f));
    y = fma_lanes(y, r, broadcast(1.6666665459e-1f));
    y = fma_lanes(y, r, broadcast(5.0000001201e-1f));
    y = fma_lanes(y, r * r, r) + 1.0f;
    vi power = __builtin_convertvector(choose(n == n, n, (vf){0}), vi), half = power >> 1;
    return y * (vf)((half + 127) << 23) * (vf)((power - half + 127) << 23);
}
ALWAYS float exp_one(float x)
{
    return exp_lanes(broadcast(x))[0];
}

/* tanh x within 2 ulp: an odd polynomial near 0 (Cephes' tanhf), else by e^2|x|. NaN for NaN. */
ALWAYS vf tanh_lanes(vf x)
{
    vf magnitude = (vf)((vi)x & 0x7fffffff), z = x * x;
    vf p = broadcast(-5.70498872745e-3f);
    p = fma_lanes(p, z, broadcast(2.06390887954e-2f));
    p = fma_lanes(p, z, broadcast(-5.37397155531e-2f));
    p = fma_lanes(p, z, broadcast(1.33314422036e-1f));
    p = fma_lanes(p, z, broadcast(-3.33332819422e-1f));
    vf small = fma_lanes(p * z, x, x);
    vf large = 1.0f - 2.0f / (exp_lanes(2.0f * magnitude) + 1.0f);
    large = (vf)((vi)large | ((vi)x & (vi)broadcast(-0.0f)));
    return choose(magnitude < 0.625f, small, large);
}

/* cap tanh(x / cap); x where cap is 0. */
ALWAYS vf cap_lanes(vf x, float cap)
{
    return cap == 0 ? x : cap * tanh_lanes(x / cap);
}

#endif
