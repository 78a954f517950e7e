// interp_random.c: the graph interpreter's random numbers: bits by ir/philox.h, and what is made of
// them by its definition, in double.
#include "ir/base/check.h"
#include "ir/interp_walk.h"
#include "ir/philox.h"

#include <math.h>

struct generator {
    uint64_t key, counter;
};

static uint64_t
element(struct generator r, uint64_t i, unsigned bits)
{
    return philox_element(i, r.key, r.counter, bits);
}

// As many of the high bits as the dtype's significand holds, hence never 1.
static double
uniform(struct generator r, uint8_t dtype, uint64_t i)
{
    if (dtype == DT_f64)
        return ldexp((double)(element(r, i, 64) >> 11), -53);
    int digits = dtype == DT_f32 ? 24 : dtype == DT_f16 ? 11 : 8;
    return ldexp((double)(element(r, i, 32) >> (32 - digits)), -digits);
}

// Box and Muller: of the radius, from a number in (0, 1], and an angle, the cosine. The two come
// from the low and the high half of 64 bits, of 128 for f64.
static double
normal(struct generator r, uint8_t dtype, uint64_t i)
{
    if (dtype == DT_f64) {
        double a = ldexp((double)((element(r, 2 * i, 64) >> 11) + 1), -53);
        double b = ldexp((double)((int64_t)element(r, 2 * i + 1, 64) >> 11), -52);
        return sqrt(-2 * log(a)) * cos(M_PI * b);
    }
    uint64_t bits = element(r, i, 64);
    float low = (float)(uint32_t)bits; // rounded, as the op says
    double a = ldexp((double)low, -32) + 0x1p-33;
    double b = ldexp((double)(float)(int32_t)(bits >> 32), -31);
    return sqrt(-2 * log((double)(float)a)) * cos(M_PI * b);
}

// Whether an event of probability p happens: p in units of 2^-32, to the nearest.
static bool
happens(struct generator r, double p, uint64_t i)
{
    return (double)element(r, i, 32) < rint(ldexp(p, 32));
}

static int64_t
integer(struct generator r, int64_t low, int64_t high, uint64_t i)
{
    unsigned __int128 n = (unsigned __int128)(high - low);
    return low + (int64_t)(n * element(r, i, 64) >> 64);
}

static double
probability(int64_t bits)
{
    return scalar_to_double(DT_f64, (uint64_t)bits);
}

static uint64_t
number(const struct interp_node *x, struct generator r, uint64_t i)
{
    uint8_t dtype = x->out->dtype;
    const int64_t *after_shape = x->attr + 1 + x->attr[0];
    switch (x->n->op) {
    case OP_random_bits:
        return element(r, i, dtype_table[dtype].bits);
    case OP_uniform:
        return scalar_from_double(dtype, uniform(r, dtype, i));
    case OP_normal:
        return scalar_from_double(dtype, normal(r, dtype, i));
    case OP_bernoulli:
        return happens(r, probability(after_shape[0]), i);
    case OP_randint:
        return (uint64_t)integer(r, after_shape[0], after_shape[1], i);
    default:
        CHECK(false, "%s is not random", op_name(x->n->op));
    }
}

static void
dropout(const struct interp_node *x, struct generator r)
{
    double p = probability(x->attr[0]);
    struct walk w;
    walk_start(&w, x->out->rank, x->out->dim);
    walk_follow(&w, x->in[0]);
    for (int64_t k = 0; w.left; walk_next(&w), k++) {
        double v = tensor_get_double(x->in[0], w.offset[0]) / (1 - p);
        v = happens(r, p, (uint64_t)k) ? 0 : v;
        tensor_put(x->out, k, scalar_from_double(x->out->dtype, v));
    }
}

void
interp_random(const struct interp_node *x)
{
    const struct tensor *state = x->in[x->n->op == OP_dropout];
    struct generator r = {tensor_get(state, 0), tensor_get(state, state->stride[0])};
    if (x->n->op == OP_dropout)
        return dropout(x, r);
    int64_t n = tensor_count(x->out);
    for (int64_t k = 0; k < n; k++)
        tensor_put(x->out, k, number(x, r, (uint64_t)k));
}
