// dtype.c: element types and scalars as bit patterns. Conversions are those of the language of
// graphs: floats round to nearest even, once, also from 64-bit integers to 16-bit floats (by
// rounding to odd first, see base/half.c); floats to integers truncate and saturate, NaN is 0;
// integers wrap.
#include "ir/dtype.h"

#include "ir/base/check.h"
#include "ir/base/half.h"

#include <math.h>
#include <string.h>

const struct dtype_info dtype_table[DT_COUNT] = {
    [DT_NONE] = {.name = "none"},
#define DTYPE(dname, dkind, dbits, ctype, dnpy, dllvm, dacc, ddoc)                                 \
    [DT_##dname] = {.name = #dname, .kind = DTK_##dkind, .bits = dbits, .npy = dnpy,               \
                    .llvm = dllvm, .doc = ddoc, .acc = DT_##dacc},
#include "ir/dtypes.def"
#undef DTYPE
};

static uint8_t
int_of(uint8_t bits, bool is_signed)
{
    for (uint8_t i = 1; i < DT_COUNT; i++)
        if (dtype_table[i].bits == bits && dtype_table[i].kind == (is_signed ? DTK_SINT : DTK_UINT))
            return i;
    return DT_NONE;
}

static uint8_t
promote_ints(const struct dtype_info *a, const struct dtype_info *b)
{
    uint8_t wider = a->bits > b->bits ? a->bits : b->bits;
    if (a->kind == b->kind)
        return int_of(wider, a->kind == DTK_SINT);
    uint8_t s = a->kind == DTK_SINT ? a->bits : b->bits;
    uint8_t u = a->kind == DTK_UINT ? a->bits : b->bits;
    if (s > u)
        return int_of(s, true);
    return u == 64 ? DT_f64 : int_of((uint8_t)(u * 2), true);
}

// A float with an integer: NumPy keeps the float when its significand holds the integer's range.
static uint8_t
promote_float_int(uint8_t f, const struct dtype_info *i)
{
    if (i->kind == DTK_BOOL || f == DT_f64)
        return f;
    if (i->bits >= 32)
        return DT_f64;
    if (f == DT_f32)
        return DT_f32;
    return i->bits == 8 ? f : DT_f32;
}

uint8_t
dtype_promote(uint8_t a, uint8_t b)
{
    if (a == b)
        return a;
    const struct dtype_info *x = &dtype_table[a], *y = &dtype_table[b];
    if (x->kind == DTK_BOOL)
        return b;
    if (y->kind == DTK_BOOL)
        return a;
    if (x->kind == DTK_FLOAT && y->kind == DTK_FLOAT)
        return x->bits == y->bits ? DT_f32 : x->bits > y->bits ? a : b;
    if (x->kind == DTK_FLOAT)
        return promote_float_int(a, y);
    if (y->kind == DTK_FLOAT)
        return promote_float_int(b, x);
    return promote_ints(x, y);
}

static uint64_t
float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static uint64_t
double_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static uint64_t
mask_of(uint8_t bits)
{
    return ~0ull >> (64 - bits);
}

static uint64_t
int_saturated(const struct dtype_info *d, double x)
{
    if (isnan(x))
        return 0;
    x = trunc(x);
    if (d->kind == DTK_UINT) {
        if (x <= 0)
            return 0;
        return x >= ldexp(1, d->bits) ? mask_of(d->bits) : (uint64_t)x;
    }
    double top = ldexp(1, d->bits - 1);
    int64_t v = x >= top ? (int64_t)(mask_of(d->bits) >> 1)
                : x < -top ? (int64_t)(~0ull << (d->bits - 1))
                           : (int64_t)x;
    return (uint64_t)v & mask_of(d->bits);
}

uint64_t
scalar_from_double(uint8_t d, double x)
{
    switch (d) {
    case DT_f64:
        return double_bits(x);
    case DT_f32:
        return float_bits((float)x);
    case DT_f16:
        return f64_to_f16(x);
    case DT_bf16:
        return f64_to_bf16(x);
    case DT_bool:
        return x != 0;
    default:
        return int_saturated(&dtype_table[d], x);
    }
}

uint64_t
scalar_from_int(uint8_t d, int64_t x)
{
    switch (d) {
    case DT_f64:
        return double_bits((double)x);
    case DT_f32:
        return float_bits((float)x);
    case DT_f16: // beyond 2^53 the value is far outside f16, so the double rounding is harmless
        return f64_to_f16((double)x);
    case DT_bf16: {
        double y = (double)x; // round to odd, so that the second rounding is exact
        if ((x > (1ll << 53) || x < -(1ll << 53)) && y < 0x1p63 && (int64_t)y != x) {
            uint64_t u = double_bits(y);
            u = (((int64_t)y > x) == (x > 0) ? u - 1 : u) | 1;
            memcpy(&y, &u, 8);
        }
        return f64_to_bf16(y);
    }
    case DT_bool:
        return x != 0;
    default:
        return (uint64_t)x & mask_of(dtype_table[d].bits);
    }
}

double
scalar_to_double(uint8_t d, uint64_t bits)
{
    uint32_t u = (uint32_t)bits;
    float f;
    double x;
    switch (d) {
    case DT_f64:
        memcpy(&x, &bits, 8);
        return x;
    case DT_f32:
        memcpy(&f, &u, 4);
        return f;
    case DT_f16:
        return f16_to_f32((uint16_t)bits);
    case DT_bf16:
        return bf16_to_f32((uint16_t)bits);
    case DT_u64:
        return (double)bits;
    default:
        return (double)scalar_to_int(d, bits);
    }
}

int64_t
scalar_to_int(uint8_t d, uint64_t bits)
{
    const struct dtype_info *t = &dtype_table[d];
    if (t->kind == DTK_FLOAT)
        return (int64_t)int_saturated(&dtype_table[DT_i64], scalar_to_double(d, bits));
    if (t->kind == DTK_SINT)
        return (int64_t)(bits << (64 - t->bits)) >> (64 - t->bits);
    return (int64_t)bits;
}

uint64_t
scalar_load(uint8_t d, const void *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, dtype_size(d));
    return d == DT_bool ? bits != 0 : bits;
}

void
scalar_store(uint8_t d, void *p, uint64_t bits)
{
    memcpy(p, &bits, dtype_size(d));
}
