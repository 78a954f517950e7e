// bound_element.c: error bounds of elementwise ops: how much the op's own row (ops.def, for f64)
// changes between the corners of the operands' errors, doubled, plus the row's bound in units in
// the last place and the two roundings. Where corners disagree about a jump, anything goes. An op
// that may turn sharply (a division, a logarithm) is trusted only where its operands are known
// well.
#include "tests/support/bound_parts.h"

#include "ir/expand.h"
#include "ir/interp_walk.h"

#include <float.h>
#include <math.h>

int
bound_digits(uint8_t dtype)
{
    return dtype == DT_f64 ? 53 : dtype == DT_f32 ? 24 : dtype == DT_f16 ? 11 : 8;
}

static int
least_exponent(uint8_t dtype)
{
    return dtype == DT_f64 ? -1021 : dtype == DT_f16 ? -13 : -125;
}

double
bound_largest(uint8_t dtype)
{
    return dtype == DT_f64   ? DBL_MAX
           : dtype == DT_f32 ? (double)FLT_MAX
           : dtype == DT_f16 ? 65504
                             : 0x1.fep127;
}

double
ulp_of(uint8_t dtype, double x)
{
    int exponent, least = least_exponent(dtype);
    if (!dtype_is_float(dtype) || !isfinite(x))
        return 0;
    frexp(x, &exponent);
    return ldexp(1, (x == 0 || exponent < least ? least : exponent) - bound_digits(dtype));
}

double
bound_least(uint8_t dtype)
{
    return ldexp(1, least_exponent(dtype) - bound_digits(dtype));
}

// What the reference itself is off by, in units in the last place: it rounds once, half a unit,
// what libm gives in the next wider type (ir/primitive.c). Rows take a few of its steps, each off
// by no more than 5 of its last places (glibc's manual), of which a unit of f64 has 2048 and one of
// f32 2^29: below 20 / 2048 together. Measured (tests/unit/math_mpfr.c): 0.5011.
static const double REFERENCE = 0.51;

struct point {
    uint16_t op;
    uint32_t n;
    uint8_t dtype, to; // of operands, of the result
    uint64_t bits[3];
    double x[3], e[3];
    double value;
};

static double
evaluate(const struct point *p, const double *x)
{
    uint64_t v[3];
    if (p->op == OP_cast)
        return scalar_to_double(p->to, scalar_from_double(p->to, x[0]));
    for (uint32_t i = 0; i < 3; i++)
        v[i] = scalar_from_double(DT_f64, x[i]);
    bool predicate = p->to == DT_bool;
    uint64_t r = eval_primitive(p->op, DT_f64, predicate ? DT_bool : DT_f64, v[0], v[1], v[2]);
    return predicate ? (double)r : scalar_to_double(DT_f64, r);
}

// Bounded slope, or a monotone step: corners say all.
static bool
is_gentle(uint16_t op)
{
    switch (op) {
    case OP_add: case OP_sub: case OP_mul: case OP_neg: case OP_abs: case OP_max: case OP_min:
    case OP_fma: case OP_clamp: case OP_exp: case OP_tanh:
    case OP_sigmoid: case OP_erf: case OP_sqrt: case OP_floor: case OP_ceil: case OP_round:
    case OP_trunc: case OP_sign: case OP_lt: case OP_le: case OP_gt: case OP_ge: case OP_cast:
        return true;
    default:
        return false;
    }
}

// Goes up and down within the box of errors, whatever its corners say.
static bool
is_periodic(uint16_t op)
{
    return op == OP_sin || op == OP_cos || op == OP_tan;
}

static bool
is_free(const struct point *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (isinf(p->e[i]) || (p->e[i] > 0 && !dtype_is_float(p->dtype)))
            return true;
        bool gentle = is_gentle(p->op) || (p->op == OP_div && i == 0);
        if (p->e[i] > fabs(p->x[i]) / 4 && !gentle)
            return true;
        if (p->e[i] > 0.25 && is_periodic(p->op))
            return true;
    }
    if (p->op == OP_cast && p->to == DT_bool && fabs(p->x[0]) <= 2 * p->e[0])
        return true; // whether it is 0
    bool equality = p->op == OP_eq || p->op == OP_ne;
    return equality && fabs(p->x[0] - p->x[1]) <= 2 * (p->e[0] + p->e[1]);
}

// The value at a corner of the box of errors, or between two, or at its centre, which is the first.
static double
at_corner(const struct point *p, uint32_t corner)
{
    double x[3];
    for (uint32_t i = 0; i < 3; i++, corner /= 3)
        x[i] = p->x[i] + (corner % 3 == 1 ? -p->e[i] : corner % 3 == 2 ? p->e[i] : 0);
    return evaluate(p, x);
}

static uint32_t
corners(const struct point *p)
{
    return p->n == 1 ? 3 : p->n == 2 ? 9 : 27;
}

// The largest change of the value over the corners of the box of errors; infinite where the op
// jumps.
static double
spread(const struct point *p)
{
    double most = 0, centre = evaluate(p, p->x);
    for (uint32_t c = 0; c < corners(p); c++) {
        double y = at_corner(p, c);
        if (isnan(y) != isnan(centre) || (isinf(y) != isinf(centre)))
            return (double)INFINITY;
        if (isfinite(y) && fabs(y - centre) > most)
            most = fabs(y - centre);
    }
    if (p->op == OP_mod || p->op == OP_fmod) { // remainders jump where their quotient does
        struct point quotient = *p;
        quotient.op = OP_floordiv;
        if (spread(&quotient) > 0)
            return (double)INFINITY;
    }
    return !dtype_is_float(p->to) && most > 0 ? (double)INFINITY : most;
}

static double
own_rounding(const struct point *p)
{
    const struct op_info *op = &op_table[p->op];
    if (!dtype_is_float(p->to))
        return 0;
    double bound = p->to == DT_f64 ? (double)op->ulp64 : (double)op->ulp32, unit = 0;
    bound = fmax(bound, 0.5); // exact rows round to nearest
    double ulp = ulp_of(p->to, p->value);
    if (dtype_is_half(p->to)) { // computed in f32
        unit = bound * ulp_of(DT_f32, p->value);
        bound = 0.5;
    }
    bool own = p->op == OP_gelu || p->op == OP_gelu_tanh; // see their rows
    if (own && p->x[0] < 0)
        ulp = fmax(ulp, ulp_of(p->to, p->x[0]));
    return unit + (bound + REFERENCE) * ulp;
}

// Near the end of the range one way of computing may be finite where another is not. The true
// result (every) may be so far beyond it.
static bool
overflow_is_near(const struct bounding *b, const struct point *p, double error)
{
    if (isinf(p->value)) {
        struct point near = *p;
        for (uint32_t i = 0; i < p->n; i++)
            near.e[i] = p->e[i] + 8 * ulp_of(p->dtype, p->x[i]);
        for (uint32_t i = 0; i < p->n; i++)
            if (isinf(p->x[i]))
                return false;
        double true_value = evaluate(p, p->x);
        if (b->every && (isfinite(true_value) || is_gentle(p->op)))
            return true;
        return isinf(spread(&near)) || fabs(true_value) < 1.001 * bound_largest(p->to);
    }
    return isfinite(p->value) && dtype_is_float(p->to) &&
           fabs(p->value) + error >= bound_largest(p->to);
}

// Whether an f16 or bf16 result that is infinite, of finite operands, is finite where it goes on to
// its readers in f32. (Casts round it.)
static bool
overflows_by_rounding(const struct bounding *b, const struct point *p)
{
    if (!isinf(p->value) || !dtype_is_half(p->to) || p->op == OP_cast)
        return false;
    for (uint32_t c = 0; c < corners(p); c++)
        if (fabs(at_corner(p, c)) < 1.001 * bound_largest(DT_f32))
            return true;
    return overflow_is_near(b, p, 0);
}

static double
elementwise_error(const struct bounding *b, const struct point *p, bool rounded)
{
    bool exact = op_table[p->op].flags & OPF_EXACT || !dtype_is_float(p->dtype);
    bool moves = p->op == OP_neg || p->op == OP_abs || p->op == OP_max || p->op == OP_min;
    bool inexact_operand = p->e[0] > 0 || p->e[1] > 0 || p->e[2] > 0;
    bool rounds = !exact || inexact_operand || (b->every && !moves && dtype_is_float(p->to));
    if (!rounded && overflows_by_rounding(b, p))
        return (double)INFINITY;
    if (!rounds)
        return 0;
    if (is_free(p))
        return (double)INFINITY;
    double error = own_rounding(p);
    if (inexact_operand)
        error += 2 * spread(p);
    if (isnan(p->value))
        return isinf(error) ? error : 0;
    return overflow_is_near(b, p, error) ? (double)INFINITY : error;
}

double *
bound_errors(const struct tensor *t)
{
    return xcalloc((size_t)tensor_count(t) + 1, sizeof(double));
}

// where: the error of what was chosen.
static double
chosen_error(const struct point *p)
{
    return p->e[0] > 0 ? (double)INFINITY : p->bits[0] ? p->e[1] : p->e[2];
}

void
bound_elementwise(struct bounding *b, const struct node *n, bool rounded, struct bounded *out)
{
    struct walk w;
    uint32_t first = n->op == OP_where;
    walk_start(&w, out->value.rank, out->value.dim);
    const struct bounded *in[3] = {0};
    for (uint32_t i = 0; i < n->nin; i++) {
        in[i] = &b->at[node_in(b->g, n, i).i];
        walk_follow(&w, &in[i]->value);
    }
    out->error = bound_errors(&out->value);
    for (int64_t k = 0; w.left; walk_next(&w), k++) {
        struct point p = {.op = n->op, .n = n->nin, .dtype = in[first]->value.dtype,
                          .to = n->dtype};
        for (uint32_t i = 0; i < n->nin; i++) {
            p.bits[i] = tensor_get(&in[i]->value, w.offset[i]);
            p.x[i] = scalar_to_double(in[i]->value.dtype, p.bits[i]);
            p.e[i] = in[i]->error ? in[i]->error[w.offset[i]] : 0;
        }
        p.value = tensor_get_double(&out->value, k);
        out->error[k] = n->op == OP_where     ? chosen_error(&p)
                        : n->op == OP_bitcast ? (p.e[0] > 0 ? (double)INFINITY : 0)
                                              : elementwise_error(b, &p, rounded);
    }
}
