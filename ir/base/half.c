// half.c: conversions by integer arithmetic. From f64 the value is first rounded to odd in f32 (the
// last bit records that something was lost), which makes the second rounding exact
// (Boldo, Melquiond: "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
// to odd", IEEE TC 2008).
#include "ir/base/half.h"

#include <math.h>
#include <string.h>

static uint32_t
bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static float
float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

float
f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = (h >> 10) & 31u, man = h & 0x3ffu;
    if (exp == 31)
        return float_of(sign | 0x7f800000u | (man << 13) | (man ? 0x400000u : 0));
    if (exp)
        return float_of(sign | ((exp + 112) << 23) | (man << 13));
    float x = (float)man * 0x1p-24f;
    return sign ? -x : x;
}

uint16_t
f32_to_f16(float x)
{
    uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) // 65520 and above
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) { // below 2^-14: the result is a multiple of 2^-24
        uint32_t r = bits_of(float_of(a) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | r);
    }
    uint32_t r = a - 0x38000000u; // exponent rebias, still 23 fraction bits
    r += 0xfffu + ((r >> 13) & 1u);
    return (uint16_t)(sign | (r >> 13));
}

float
bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t
f32_to_bf16(float x)
{
    uint32_t u = bits_of(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u);
    u += 0x7fffu + ((u >> 16) & 1u);
    return (uint16_t)(u >> 16);
}

static float
to_f32_odd(double x)
{
    float y = (float)x;
    if (isnan(x) || (double)y == x)
        return y;
    uint32_t u = bits_of(y);
    if (isinf(y))
        return float_of((u & 0x80000000u) | 0x7f7fffffu);
    if (fabs((double)y) > fabs(x))
        u--; // towards zero
    return float_of(u | 1u);
}

uint16_t
f64_to_f16(double x)
{
    return f32_to_f16(isinf(x) ? (float)x : to_f32_odd(x));
}

uint16_t
f64_to_bf16(double x)
{
    return f32_to_bf16(isinf(x) ? (float)x : to_f32_odd(x));
}
