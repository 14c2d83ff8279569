/*
 * emu_math.h: the part of emu_device.h that computes: atomics, cached loads, bit functions, float functions.
 * Functions that exist in <math.h> under the same name (expf, sincosf, fmaf, ...) are the host's: within 1 or
 * 2 ulp of the device's, not the same bits.
 */
#ifndef EMU_MATH_H
#define EMU_MATH_H

/* ---- atomics: one fiber runs at a time, so a plain read and write would do; relaxed for TSan's sake ---- */

namespace emu
{
template <class T, class F> static inline T update(T *address, F f)
{
    T old, now;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    now = f(old);
    __atomic_store(address, &now, __ATOMIC_RELAXED);
    return old;
}
/* The second argument takes no part in the deduction of T, as with CUDA's overloads. */
template <class T> using same = typename std::common_type<T>::type;
template <class T>
constexpr bool atomic_integer = std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8);
} // namespace emu

#define EMU_ATOMIC(name, condition, expression)                                                              \
    template <class T> static inline T name(T *address, emu::same<T> value)                                  \
    {                                                                                                        \
        static_assert(condition, #name " has no such type");                                                 \
        return emu::update(address, [value](T old) -> T { return expression; });                             \
    }
EMU_ATOMIC(atomicAdd, emu::atomic_integer<T> || std::is_floating_point<T>::value, T(old + value))
EMU_ATOMIC(atomicSub, emu::atomic_integer<T>, T(old - value))
EMU_ATOMIC(atomicMax, emu::atomic_integer<T>, old < value ? value : old)
EMU_ATOMIC(atomicMin, emu::atomic_integer<T>, value < old ? value : old)
EMU_ATOMIC(atomicAnd, emu::atomic_integer<T>, T(old &value))
EMU_ATOMIC(atomicOr, emu::atomic_integer<T>, T(old | value))
EMU_ATOMIC(atomicXor, emu::atomic_integer<T>, T(old ^ value))
EMU_ATOMIC(atomicExch, emu::atomic_integer<T> || sizeof(T) == 4, ((void)old, value))
EMU_ATOMIC(atomicInc, (std::is_same<T, unsigned>::value), old >= value ? 0 : old + 1)
EMU_ATOMIC(atomicDec, (std::is_same<T, unsigned>::value), old == 0 || old > value ? value : old - 1)
#undef EMU_ATOMIC
template <class T> static inline T atomicCAS(T *address, emu::same<T> expected, emu::same<T> value)
{
    static_assert(emu::atomic_integer<T>, "atomicCAS has no such type");
    return emu::update(address, [=](T old) { return old == expected ? value : old; });
}

/* ---- loads and stores with cache hints ---- */

#define EMU_LOAD(name)                                                                                       \
    template <class T> static inline T name(const T *address)                                                \
    {                                                                                                        \
        return *address;                                                                                     \
    }
EMU_LOAD(__ldg)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD
#define EMU_STORE(name)                                                                                      \
    template <class T> static inline void name(T *address, emu::same<T> value)                               \
    {                                                                                                        \
        *address = value;                                                                                    \
    }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

/* ---- bits ---- */

namespace emu
{
template <class To, class From> static inline To bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace emu
static inline unsigned __float_as_uint(float x)
{
    return emu::bits<unsigned>(x);
}
static inline int __float_as_int(float x)
{
    return emu::bits<int>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return emu::bits<float>(x);
}
static inline float __int_as_float(int x)
{
    return emu::bits<float>(x);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz(unsigned(x)) : 32;
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline unsigned __brev(unsigned x)
{
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return unsigned(uint64_t(a) * b >> 32);
}
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    uint64_t bytes = uint64_t(high) << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s = selector >> 4 * i & 15, byte = unsigned(bytes >> 8 * (s & 7)) & 255;
        if (s & 8) /* the sign, spread */
            byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}

/* ---- floats ---- */

/* Macros, because newer C libraries have functions of these names. */
#define rsqrtf(x) emu::reciprocal_root(float(x))
#define rsqrt(x)  emu::reciprocal_root(double(x))
namespace emu
{
static inline float reciprocal_root(float x)
{
    return float(1.0 / std::sqrt(double(x)));
}
static inline double reciprocal_root(double x)
{
    return 1.0 / std::sqrt(x);
}
} // namespace emu

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __frcp_rn(float a)
{
    return 1.0f / a;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline int __float2int_rn(float x)
{
    return int(rintf(x));
}
static inline int __float2int_rz(float x)
{
    return int(x);
}
static inline unsigned __float2uint_rn(float x)
{
    return unsigned(rintf(x));
}
static inline float __int2float_rn(int x)
{
    return float(x);
}
static inline float __uint2float_rn(unsigned x)
{
    return float(x);
}
static inline float __saturatef(float x)
{
    return fminf(fmaxf(x, 0.0f), 1.0f);
}

#define EMU_MIN_MAX(T)                                                                                       \
    static inline T min(T a, T b)                                                                            \
    {                                                                                                        \
        return b < a ? b : a;                                                                                \
    }                                                                                                        \
    static inline T max(T a, T b)                                                                            \
    {                                                                                                        \
        return a < b ? b : a;                                                                                \
    }
EMU_MIN_MAX(int)
EMU_MIN_MAX(unsigned)
EMU_MIN_MAX(long)
EMU_MIN_MAX(unsigned long)
EMU_MIN_MAX(long long)
EMU_MIN_MAX(unsigned long long)
#undef EMU_MIN_MAX
static inline unsigned min(int a, unsigned b)
{
    return min(unsigned(a), b);
}
static inline unsigned min(unsigned a, int b)
{
    return min(a, unsigned(b));
}
static inline unsigned max(int a, unsigned b)
{
    return max(unsigned(a), b);
}
static inline unsigned max(unsigned a, int b)
{
    return max(a, unsigned(b));
}
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}

#pragma GCC poison __expf __exp10f __logf __log2f __log10f __powf __sinf __cosf __tanf __sincosf __tanhf     \
    __fdividef

#endif
