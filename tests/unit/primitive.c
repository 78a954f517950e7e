// primitive.c: what the rows of ops.def mean on single values: the corners of IEEE arithmetic, of
// two's complement and of conversions. Expected values are NumPy's or worked out by hand.
#include "ir/expand.h"

#include <criterion/criterion.h>
#include <math.h>

static double
f(uint16_t op, uint8_t dtype, double a, double b, double c)
{
    uint8_t rule = op_table[op].rule;
    uint64_t r = eval_primitive(op, dtype, dtype, scalar_from_double(dtype, a),
                                scalar_from_double(dtype, b), scalar_from_double(dtype, c));
    return rule == DTR_COMPARE || rule == DTR_PREDICATE ? (double)r : scalar_to_double(dtype, r);
}

static int64_t
n(uint16_t op, uint8_t dtype, int64_t a, int64_t b)
{
    return scalar_to_int(dtype, eval_primitive(op, dtype, dtype, scalar_from_int(dtype, a),
                                               scalar_from_int(dtype, b), 0));
}

static uint64_t
convert(uint8_t from, uint8_t to, uint64_t bits)
{
    return eval_primitive(OP_cast, from, to, bits, 0, 0);
}

static void
same(double got, double want, const char *what)
{
    bool equal = isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want);
    cr_expect(equal, "%s: %a, expected %a", what, got, want);
}
#define SAME(got, want) same(got, want, #got)

static const uint8_t floats[] = {DT_f64, DT_f32, DT_f16, DT_bf16};

Test(primitive, floats_keep_nan_and_signed_zero)
{
    for (int i = 0; i < 4; i++) {
        uint8_t d = floats[i];
        SAME(f(OP_max, d, NAN, 1, 0), (double)NAN);
        SAME(f(OP_max, d, 1, NAN, 0), (double)NAN);
        SAME(f(OP_min, d, NAN, -INFINITY, 0), (double)NAN);
        SAME(f(OP_max, d, -0.0, 0.0, 0), 0.0);
        SAME(f(OP_max, d, 0.0, -0.0, 0), 0.0);
        SAME(f(OP_min, d, 0.0, -0.0, 0), -0.0);
        SAME(f(OP_clamp, d, NAN, 0.5, 2), (double)NAN);
        SAME(f(OP_clamp, d, 5, 3, 1), 1.0);
        SAME(f(OP_add, d, -0.0, 0.0, 0), 0.0);
        SAME(f(OP_sub, d, -0.0, 0.0, 0), -0.0);
        SAME(f(OP_neg, d, 0.0, 0, 0), -0.0);
        SAME(f(OP_sqrt, d, -0.0, 0, 0), -0.0);
        SAME(f(OP_sqrt, d, -INFINITY, 0, 0), (double)NAN);
        SAME(f(OP_reciprocal, d, -0.0, 0, 0), -(double)INFINITY);
        SAME(f(OP_sign, d, -0.0, 0, 0), 0.0);
        SAME(f(OP_sign, d, NAN, 0, 0), (double)NAN);
        SAME(f(OP_sign, d, -INFINITY, 0, 0), -1.0);
        SAME(f(OP_copysign_raw, d, 3, -0.0, 0), -3.0);
        SAME(f(OP_round, d, 2.5, 0, 0), 2.0);
        SAME(f(OP_round, d, -0.5, 0, 0), -0.0);
        SAME(f(OP_trunc, d, -0.75, 0, 0), -0.0);
        SAME(f(OP_isnan, d, NAN, 0, 0), 1.0);
        SAME(f(OP_isinf, d, -INFINITY, 0, 0), 1.0);
        SAME(f(OP_isfinite, d, INFINITY, 0, 0), 0.0);
        SAME(f(OP_ne, d, NAN, NAN, 0), 1.0);
        SAME(f(OP_eq, d, 0.0, -0.0, 0), 1.0);
        SAME(f(OP_le, d, NAN, 1, 0), 0.0);
        SAME(f(OP_sigmoid, d, -INFINITY, 0, 0), 0.0);
        SAME(f(OP_tanh, d, -1e4, 0, 0), -1.0);
    }
}

Test(primitive, float_division_follows_numpy)
{
    for (int i = 0; i < 4; i++) {
        uint8_t d = floats[i];
        SAME(f(OP_mod, d, -7.5, 2, 0), 0.5);
        SAME(f(OP_fmod, d, -7.5, 2, 0), -1.5);
        SAME(f(OP_floordiv, d, -7.5, 2, 0), -4.0);
        SAME(f(OP_mod, d, 6, -3, 0), -0.0);
        SAME(f(OP_mod, d, -1, INFINITY, 0), (double)INFINITY);
        SAME(f(OP_floordiv, d, -1, INFINITY, 0), -1.0);
        SAME(f(OP_floordiv, d, 1, 0.0, 0), (double)INFINITY);
        SAME(f(OP_floordiv, d, 0, 0.0, 0), (double)NAN);
        SAME(f(OP_floordiv, d, -0.0, 5, 0), -0.0);
        SAME(f(OP_mod, d, 1, 0.0, 0), (double)NAN);
    }
    SAME(f(OP_floordiv, DT_f64, 1, 0.1, 0), 9.0);
    SAME(f(OP_mod, DT_f64, 1, 0.1, 0), 0.09999999999999995);
    // Quotients that round to just below an integer are snapped to it.
    SAME(f(OP_floordiv, DT_f64, 0x1.1492fd9b62dap+52, 0x1.4ba9ep+16, 0), 0x1.aaf4e9878p+35);
    SAME(f(OP_floordiv, DT_f32, 0x1.1f9be4p+22, 0x1.68c9cap+1, 0), 0x1.98267p+20);
}

Test(primitive, exact_rows_round_once_in_their_dtype)
{
    float a = 0.1f, b = 0.2f;
    SAME(f(OP_mul, DT_f32, (double)a, (double)b, 0), (double)(a * b));
    // The product is a tie between two floats and c breaks it, out of double's sight.
    SAME(f(OP_fma, DT_f32, 0x1.001p0, 0x1.001p0, 0x1p-80), 0x1.002002p0);
    SAME(f(OP_fma, DT_f32, 0x1.001p0, 0x1.001p0, 0), 0x1.002p0);
    SAME(f(OP_mul, DT_f32, 0.1875, 0x1p-124, 0), 0x1.8p-127); // denormal, not flushed
    SAME(f(OP_mul, DT_f32, 0x1p-100, 0x1p-100, 0), 0.0);
    SAME(f(OP_add, DT_f16, 2048, 1, 0), 2048.0);
    SAME(f(OP_add, DT_bf16, 256, 3, 0), 260.0);
    SAME(f(OP_mul, DT_f16, 256, 256, 0), (double)INFINITY);
    SAME(f(OP_exp, DT_f64, 1, 0, 0), exp(1.0));
}

static int64_t
power3(int n)
{
    uint64_t r = 1;
    while (n--)
        r *= 3;
    return (int64_t)r;
}

static const uint8_t ints[] = {DT_i8, DT_i16, DT_i32, DT_i64};

Test(primitive, signed_integers_wrap_and_never_trap)
{
    for (int i = 0; i < 4; i++) {
        uint8_t d = ints[i];
        int64_t low = (int64_t)(~0ull << (dtype_table[d].bits - 1)), high = ~low;
        int w = dtype_table[d].bits;
        cr_expect_eq(n(OP_add, d, high, 1), low);
        cr_expect_eq(n(OP_mul, d, high, 2), -2);
        cr_expect_eq(n(OP_neg, d, low, 0), low);
        cr_expect_eq(n(OP_abs, d, low, 0), low);
        cr_expect_eq(n(OP_floordiv, d, low, -1), low);
        cr_expect_eq(n(OP_mod, d, low, -1), 0);
        cr_expect_eq(n(OP_fmod, d, low, -1), 0);
        cr_expect_eq(n(OP_floordiv, d, -5, 0), 0);
        cr_expect_eq(n(OP_mod, d, -5, 0), 0);
        cr_expect_eq(n(OP_fmod, d, -5, 0), 0);
        cr_expect_eq(n(OP_floordiv, d, -7, 3), -3);
        cr_expect_eq(n(OP_mod, d, -7, 3), 2);
        cr_expect_eq(n(OP_floordiv, d, 7, -3), -3);
        cr_expect_eq(n(OP_mod, d, 7, -3), -2);
        cr_expect_eq(n(OP_fmod, d, -7, 3), -1);
        cr_expect_eq(n(OP_mod, d, -6, 3), 0);
        cr_expect_eq(n(OP_pow, d, -3, 3), -27);
        cr_expect_eq(n(OP_pow, d, 3, w), scalar_to_int(d, scalar_from_int(d, power3(w))));
        cr_expect_eq(n(OP_pow, d, 2, w), 0);
        cr_expect_eq(n(OP_pow, d, 2, w - 1), low);
        cr_expect_eq(n(OP_pow, d, 0, 0), 1);
        cr_expect_eq(n(OP_pow, d, 0, -1), 0);
        cr_expect_eq(n(OP_pow, d, 2, -1), 0);
        cr_expect_eq(n(OP_pow, d, 1, low), 1);
        cr_expect_eq(n(OP_pow, d, -1, -3), -1);
        cr_expect_eq(n(OP_pow, d, -1, low), 1);
        cr_expect_eq(n(OP_pow, d, low, -1), 0);
        cr_expect_eq(n(OP_shl, d, 1, w - 1), low);
        cr_expect_eq(n(OP_shl, d, 1, w), 0);
        cr_expect_eq(n(OP_shl, d, 1, -1), 0);
        cr_expect_eq(n(OP_shr, d, -8, 1), -4);
        cr_expect_eq(n(OP_shr, d, -8, w), -1);
        cr_expect_eq(n(OP_shr, d, 8, -1), 0);
        cr_expect_eq(n(OP_not, d, 0, 0), -1);
        cr_expect_eq(n(OP_sign, d, low, 0), -1);
        cr_expect_eq(eval_primitive(OP_lt, d, d, scalar_from_int(d, -1), 0, 0), 1);
    }
}

Test(primitive, unsigned_and_bool)
{
    cr_expect_eq(n(OP_sub, DT_u8, 3, 5), 254);
    cr_expect_eq(n(OP_floordiv, DT_u64, -1, 2), INT64_MAX);
    cr_expect_eq(n(OP_mod, DT_u32, 7, 0), 0);
    cr_expect_eq(n(OP_max, DT_u64, -1, 1), -1);
    cr_expect_eq(n(OP_pow, DT_u8, 3, 255), 171); // 3^255 mod 256, by its inverse: 3 * 171 = 513
    cr_expect_eq(n(OP_pow, DT_u64, -1, -1), -1);
    cr_expect_eq(eval_primitive(OP_lt, DT_u64, DT_u64, 1, ~0ull, 0), 1);
    cr_expect_eq(n(OP_shl, DT_u16, 1, 16), 0);
    cr_expect_eq(n(OP_shr, DT_u16, 0x8000, 15), 1);
    cr_expect_eq(n(OP_not, DT_bool, 1, 0), 0);
    cr_expect_eq(n(OP_not, DT_u8, 0, 0), 255);
    cr_expect_eq(n(OP_add, DT_bool, 1, 1), 1);
    cr_expect_eq(n(OP_mul, DT_bool, 1, 0), 0);
    cr_expect_eq(n(OP_xor, DT_bool, 1, 1), 0);
}

Test(primitive, conversions)
{
    static const double from[] = {NAN, INFINITY, -INFINITY, 3e9, -1.9, 300, -0.5};
    static const int64_t to_i32[] = {0, INT32_MAX, INT32_MIN, INT32_MAX, -1, 300, 0};
    static const int64_t to_u8[] = {0, 255, 0, 255, 0, 255, 0};
    static const int64_t to_bool[] = {1, 1, 1, 1, 1, 1, 1};
    for (int i = 0; i < 7; i++) {
        uint64_t bits = scalar_from_double(DT_f32, from[i]);
        cr_expect_eq(scalar_to_int(DT_i32, convert(DT_f32, DT_i32, bits)), to_i32[i]);
        cr_expect_eq(scalar_to_int(DT_u8, convert(DT_f32, DT_u8, bits)), to_u8[i]);
        cr_expect_eq(scalar_to_int(DT_bool, convert(DT_f32, DT_bool, bits)), to_bool[i]);
    }
    cr_expect_eq(convert(DT_f32, DT_i64, scalar_from_double(DT_f32, 0x1p63)), INT64_MAX);
    cr_expect_eq(convert(DT_f64, DT_u64, scalar_from_double(DT_f64, 0x1p64)), UINT64_MAX);
    cr_expect_eq(convert(DT_i64, DT_u8, 0x1ff), 0xff);
    cr_expect_eq(convert(DT_i8, DT_i64, 0x80), (uint64_t)-128);
    cr_expect_eq(convert(DT_i64, DT_bool, 0x100), 1);
    SAME(scalar_to_double(DT_f32, convert(DT_u64, DT_f32, UINT64_MAX)), 0x1p64);
    // One rounding only: above the midpoint by one in the 64th bit.
    SAME(scalar_to_double(DT_f32, convert(DT_i64, DT_f32, (1ull << 60) + (1ull << 36) + 1)),
         0x1p60 + 0x1p37);
    SAME(scalar_to_double(DT_bf16, convert(DT_u64, DT_bf16, (1ull << 63) + (1ull << 55) + 1)),
         0x1p63 + 0x1p56);
    SAME(scalar_to_double(DT_bf16, convert(DT_i64, DT_bf16, (1ull << 62) + (1ull << 54) + 1)),
         0x1p62 + 0x1p55);
    uint64_t tie = scalar_from_double(DT_f32, 1.00390625);
    SAME(scalar_to_double(DT_bf16, convert(DT_f32, DT_bf16, tie)), 1.0);
    cr_expect_eq(eval_primitive(OP_bitcast, DT_f32, DT_i32, 0x80000000u, 0, 0), 0x80000000u);
}

// Operand patterns whose pairs and triples tell most operators apart.
static const uint64_t corners[] = {0, 1, 2, 3, 5, 0x7f, 0x80, 0xff, 0x3f800001, 0x80000000,
                                   0xc0490fdb, 0x7f7fffff, 0x7f800000};
enum { CORNERS = sizeof corners / sizeof *corners };

static uint64_t
corner(uint8_t d, int i)
{
    uint64_t bits = corners[i];
    return d == DT_bool ? bits & 1 : bits & ~0ull >> (64 - dtype_table[d].bits);
}

static bool
is_defined(uint16_t op, uint8_t d)
{
    const struct op_info *o = &op_table[op];
    return d == DT_f32 ? o->llvm_f : d == DT_i32 ? o->llvm_s : d == DT_u8 ? o->llvm_u : o->llvm_b;
}

static bool
commutes(uint16_t op, uint8_t d)
{
    bool same = true;
    for (int i = 0; i < CORNERS; i++)
        for (int k = 0; k < i; k++)
            same &= eval_primitive(op, d, d, corner(d, i), corner(d, k), 0) ==
                    eval_primitive(op, d, d, corner(d, k), corner(d, i), 0);
    return same;
}

static bool
associates(uint16_t op, uint8_t d)
{
    bool same = true;
    for (int i = 0; i < CORNERS * CORNERS * CORNERS; i++) {
        uint64_t a = corner(d, i % CORNERS), b = corner(d, i / CORNERS % CORNERS);
        uint64_t c = corner(d, i / CORNERS / CORNERS);
        uint64_t ab = eval_primitive(op, d, d, a, b, 0), bc = eval_primitive(op, d, d, b, c, 0);
        same &= eval_primitive(op, d, d, ab, c, 0) == eval_primitive(op, d, d, a, bc, 0);
    }
    return same;
}

Test(primitive, flags_of_two_operand_rows_are_true)
{
    static const uint8_t dtypes[] = {DT_f32, DT_i32, DT_u8, DT_bool};
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        const struct op_info *o = &op_table[op];
        if (o->kind != OPK_ELEM || o->arity != 2 || o->flags & OPF_EXPAND)
            continue;
        bool commutative = true, associative = true;
        for (int i = 0; i < 4; i++) {
            if (!is_defined(op, dtypes[i]))
                continue;
            commutative &= commutes(op, dtypes[i]);
            associative &= dtypes[i] == DT_f32 || associates(op, dtypes[i]);
        }
        bool closed = o->rule != DTR_COMPARE && (o->llvm_s || o->llvm_u);
        cr_expect_eq(commutative, (o->flags & OPF_COMM) != 0, "%s commutes: %d", o->name,
                     commutative);
        cr_expect_eq(associative && closed, (o->flags & OPF_ASSOC) != 0, "%s associates: %d",
                     o->name, associative);
    }
}
