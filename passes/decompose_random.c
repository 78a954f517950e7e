// decompose_random.c: random numbers, of random bits and exact ops: the bits of a result depend on
// the state and the element's position alone, whatever is fused and wherever it runs (but f32 and
// f64 normal numbers go through log and cos, which are the same bits everywhere too).
//
// uniform: as many high bits as the dtype's significand holds, so each result is exact and below 1.
// normal (Box, Muller, "A note on the generation of random normal deviates", 1958): the radius is
// sqrt(-2 log a) with a in (0, 1], the angle pi b with b in [-1, 1). For f32 a = (w + 1/2) / 2^32
// with a word w rounded to f32, so that the tails reach 6.7 deviations; for f64 a and b have 53
// bits. One of the two numbers that a pair gives is used: the other belongs to another element,
// whose lane would have to compute the logarithm all the same.
#include "passes/decompose.h"

#include "ir/base/check.h"

#include <math.h>

static ref
random_bits(struct pass *p, ref state, const struct shape *s, uint8_t dtype)
{
    int64_t attr[MAX_RANK + 2] = {s->rank};
    for (uint32_t i = 0; i < s->rank; i++)
        attr[1 + i] = s->dim[i].v;
    attr[1 + s->rank] = dtype;
    return pass_op(p, OP_random_bits, &state, 1, attr, s->rank + 2u);
}

static ref
bitcast(struct pass *p, ref a, uint8_t dtype)
{
    int64_t to = dtype;
    return pass_op(p, OP_bitcast, &a, 1, &to, 1);
}

static ref
shifted(struct pass *p, ref a, double by)
{
    return pass_op2(p, OP_shr, a, pass_number(p, graph_node(p->dst, a)->dtype, by));
}

static ref
times(struct pass *p, ref a, double by)
{
    return pass_op2(p, OP_mul, a, pass_number(p, graph_node(p->dst, a)->dtype, by));
}

// The high `digits` bits as a fraction of 1, in f32 or f64. Signed conversions are cheaper.
static ref
fraction(struct pass *p, ref bits, int width, int digits)
{
    uint8_t integer = width == 64 ? DT_i64 : DT_i32, to = width == 64 ? DT_f64 : DT_f32;
    ref high = bitcast(p, shifted(p, bits, width - digits), integer);
    return times(p, pass_cast(p, high, to), ldexp(1, -digits));
}

static ref
uniform(struct pass *p, ref state, const struct shape *s, uint8_t dtype)
{
    if (dtype == DT_f64)
        return fraction(p, random_bits(p, state, s, DT_u64), 64, 53);
    int digits = dtype == DT_f32 ? 24 : dtype == DT_f16 ? 11 : 8;
    return pass_cast(p, fraction(p, random_bits(p, state, s, DT_u32), 32, digits), dtype);
}

static ref
box_muller(struct pass *p, ref a, ref b)
{
    ref radius = pass_op1(p, OP_sqrt, times(p, pass_op1(p, OP_log, a), -2));
    return pass_op2(p, OP_mul, radius, pass_op1(p, OP_cos, times(p, b, M_PI)));
}

static ref
normal32(struct pass *p, ref state, const struct shape *s)
{
    ref bits = random_bits(p, state, s, DT_u64);
    ref low = pass_cast(p, pass_cast(p, bits, DT_u32), DT_f32);
    ref high = pass_cast(p, bitcast(p, pass_cast(p, shifted(p, bits, 32), DT_u32), DT_i32), DT_f32);
    ref half = pass_number(p, DT_f32, 0x1p-33);
    ref a = pass_op2(p, OP_add, times(p, low, 0x1p-32), half);
    return box_muller(p, a, times(p, high, 0x1p-31));
}

static ref
normal64(struct pass *p, ref state, const struct shape *s)
{
    int64_t n = shape_count(p->dst, s);
    struct shape pair = {.rank = 2, .dim = {sym_num(n), sym_num(2)}};
    ref bits = random_bits(p, state, &pair, DT_u64);
    ref a = shifted(p, pass_reshape(p, pass_slice(p, bits, 1, 0, 1, 1), s), 11);
    ref b = bitcast(p, pass_reshape(p, pass_slice(p, bits, 1, 1, 1, 1), s), DT_i64);
    b = shifted(p, b, 11);
    a = pass_cast(p, pass_op2(p, OP_add, bitcast(p, a, DT_i64), pass_number(p, DT_i64, 1)), DT_f64);
    return box_muller(p, times(p, a, 0x1p-53), times(p, pass_cast(p, b, DT_f64), 0x1p-52));
}

// True with probability q, in units of 2^-32.
static ref
happens(struct pass *p, ref state, const struct shape *s, double q)
{
    double units = rint(ldexp(q, 32));
    if (units < 1 || units > 0x1p32 - 1)
        return pass_broadcast(p, pass_number(p, DT_bool, units >= 1), s);
    return pass_op2(p, OP_lt, random_bits(p, state, s, DT_u32), pass_number(p, DT_u32, units));
}

// low + the high word of the 128 bits of random bits times high - low.
static ref
integer(struct pass *p, ref state, const struct shape *s, int64_t low, int64_t high)
{
    ref bits = random_bits(p, state, s, DT_u64), n = pass_number(p, DT_u64, (double)(high - low));
    ref word = pass_number(p, DT_u64, 0xffffffff);
    ref below = shifted(p, pass_op2(p, OP_mul, pass_op2(p, OP_and, bits, word), n), 32);
    ref above = pass_op2(p, OP_mul, shifted(p, bits, 32), n);
    // The sum of two numbers below 2^64 may be beyond it where n is 2^32: its halves are added.
    ref sum = pass_op2(p, OP_add, pass_op2(p, OP_and, above, word), below);
    ref product = pass_op2(p, OP_add, shifted(p, above, 32), shifted(p, sum, 32));
    ref first = graph_literal(p->dst, DT_i64, (uint64_t)low, p->origin);
    return pass_op2(p, OP_add, bitcast(p, product, DT_i64), first);
}

static ref
dropout(struct pass *p, ref x, ref state, double q)
{
    const struct shape s = *graph_shape(p->dst, x);
    uint8_t dtype = graph_node(p->dst, x)->dtype;
    ref kept = pass_op2(p, OP_div, x, pass_number(p, dtype, 1 - q));
    return pass_op3(p, OP_where, happens(p, state, &s, q), pass_number(p, dtype, 0), kept);
}

static double
number(int64_t bits)
{
    return scalar_to_double(DT_f64, (uint64_t)bits);
}

ref
decompose_random(struct pass *p, ref r, const ref *in, const int64_t *attr)
{
    const struct shape s = *graph_shape(p->src, r);
    const struct node *n = graph_node(p->src, r);
    const int64_t *after_shape = n->op == OP_dropout ? NULL : attr + 1 + attr[0];
    switch (n->op) {
    case OP_uniform:
        return uniform(p, in[0], &s, n->dtype);
    case OP_normal:
        return n->dtype == DT_f64 ? normal64(p, in[0], &s)
                                  : pass_cast(p, normal32(p, in[0], &s), n->dtype);
    case OP_bernoulli:
        return happens(p, in[0], &s, number(after_shape[0]));
    case OP_randint:
        return integer(p, in[0], &s, after_shape[0], after_shape[1]);
    case OP_dropout:
        return dropout(p, in[0], in[1], number(attr[0]));
    default:
        CHECK(false, "%s is not random", op_name(n->op));
    }
}
