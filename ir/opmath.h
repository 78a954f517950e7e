// opmath.h: what the F and I expressions of ops.def call beyond libm, for double, float (names that
// end in f, as in libm: the same steps, each rounded to float), long double (names that end in l),
// int64_t and uint64_t. They say what an op means, corner cases included. NaN results carry any
// payload.
#ifndef FUSEC_IR_OPMATH_H
#define FUSEC_IR_OPMATH_H

#include <math.h>
#include <stdint.h>

static inline double
roundeven_(double a)
{
    return roundeven(a);
}

// IEEE 754-2019 maximum and minimum: NaN wins, -0 < +0.
static inline double
maximum_(double a, double b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static inline double
minimum_(double a, double b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

// NumPy's divmod: the remainder is exact (fmod, moved to b's side); the quotient is derived from it
// and snapped to the nearest integer.
static inline double
mod_(double a, double b)
{
    double m = fmod(a, b);
    if (b == 0 || isnan(m))
        return m;
    return m == 0 ? copysign(0, b) : (m < 0) != (b < 0) ? m + b : m;
}
static inline double
floordiv_(double a, double b)
{
    if (b == 0)
        return a / b;
    double m = fmod(a, b), q = (a - m) / b;
    if (m != 0 && (m < 0) != (b < 0))
        q -= 1;
    if (q == 0)
        return copysign(0, a / b);
    double f = floor(q);
    return q - f > 0.5 ? f + 1 : f;
}

// x times what a normal variable below it has of probability, and an approximation. Below -40,
// where that is 0, so is the limit of the product. The roundings of steps in double would come to
// almost as much as f64's bounds.
static inline long double
gelu_l(long double a)
{
    return a < -40 ? -0.0l : a / 2 * (1 + erfl(a * M_SQRT1_2l));
}
static inline long double
gelu_tanh_l(long double a)
{
    long double z = M_2_SQRTPIl * M_SQRT1_2l * (a + 0.044715l * a * a * a);
    return a < -40 ? -0.0l : a / 2 * (1 + tanhl(z));
}
static inline double
gelu_(double a)
{
    return (double)gelu_l(a);
}
static inline double
gelu_tanh_(double a)
{
    return (double)gelu_tanh_l(a);
}

static inline long double
maximum_l(long double a, long double b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static inline long double
minimum_l(long double a, long double b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
// In rows that are exact, and so computed in no wider type than double.
static inline long double
roundeven_l(long double a)
{
    return roundeven_((double)a);
}
static inline long double
mod_l(long double a, long double b)
{
    return mod_((double)a, (double)b);
}
static inline long double
floordiv_l(long double a, long double b)
{
    return floordiv_((double)a, (double)b);
}

static inline float
gelu_f(float a)
{
    return (float)gelu_((double)a);
}
static inline float
gelu_tanh_f(float a)
{
    return (float)gelu_tanh_((double)a);
}
static inline float
roundeven_f(float a)
{
    return roundevenf(a);
}
static inline float
maximum_f(float a, float b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static inline float
minimum_f(float a, float b)
{
    if (isnan(a) || isnan(b))
        return a + b;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static inline float
mod_f(float a, float b)
{
    float m = fmodf(a, b);
    if (b == 0 || isnan(m))
        return m;
    return m == 0 ? copysignf(0, b) : (m < 0) != (b < 0) ? m + b : m;
}
static inline float
floordiv_f(float a, float b)
{
    if (b == 0)
        return a / b;
    float m = fmodf(a, b), q = (a - m) / b;
    if (m != 0 && (m < 0) != (b < 0))
        q -= 1;
    if (q == 0)
        return copysignf(0, a / b);
    float f = floorf(q);
    return q - f > 0.5f ? f + 1 : f;
}

// Integers. b = 0 gives 0; the least value by -1 wraps.
static inline int64_t
sabs_(int64_t a)
{
    return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
}
static inline int64_t
sfmod_(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}
static inline int64_t
smod_(int64_t a, int64_t b)
{
    int64_t r = sfmod_(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline int64_t
sfloordiv_(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return b ? (int64_t)(0 - (uint64_t)a) : 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t
sshr_(int64_t a, int64_t b, unsigned w)
{
    return a >> (b >= 0 && b < (int64_t)w ? b : 63);
}
static inline int64_t
sshl_(int64_t a, int64_t b, unsigned w)
{
    return b >= 0 && b < (int64_t)w ? (int64_t)((uint64_t)a << b) : 0;
}
static inline uint64_t
uabs_(uint64_t a)
{
    return a;
}
static inline uint64_t
umod_(uint64_t a, uint64_t b)
{
    return b ? a % b : 0;
}
static inline uint64_t
ufloordiv_(uint64_t a, uint64_t b)
{
    return b ? a / b : 0;
}
static inline uint64_t
ushr_(uint64_t a, uint64_t b, unsigned w)
{
    return b < w ? a >> b : 0;
}
static inline uint64_t
ushl_(uint64_t a, uint64_t b, unsigned w)
{
    return b < w ? a << b : 0;
}

static inline uint64_t
upow_(uint64_t a, uint64_t b)
{
    uint64_t r = 1;
    for (; b; b >>= 1, a *= a)
        r *= b & 1 ? a : 1;
    return r;
}
static inline int64_t
spow_(int64_t a, int64_t b)
{
    if (b >= 0)
        return (int64_t)upow_((uint64_t)a, (uint64_t)b);
    return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
}

#define iabs(a) _Generic(a, int64_t: sabs_, uint64_t: uabs_)(a)
#define ifmod(a, b) _Generic(a, int64_t: sfmod_, uint64_t: umod_)(a, b)
#define imod(a, b) _Generic(a, int64_t: smod_, uint64_t: umod_)(a, b)
#define ipow(a, b) _Generic(a, int64_t: spow_, uint64_t: upow_)(a, b)
#define ifloordiv(a, b) _Generic(a, int64_t: sfloordiv_, uint64_t: ufloordiv_)(a, b)
#define ishl(a, b, w) _Generic(a, int64_t: sshl_, uint64_t: ushl_)(a, b, w)
#define ishr(a, b, w) _Generic(a, int64_t: sshr_, uint64_t: ushr_)(a, b, w)

#endif
