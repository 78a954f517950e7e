// interp_axes.c: the graph interpreter's rules for ops that work along axes: reductions, scans,
// norms, softmax, losses, matmul. All but matmul are a function of a line: the elements that share
// the coordinates outside the reduced axes, in row-major order. The line is fetched, then the
// function is written down as the textbook has it, in double with sums in long double.
#include "ir/base/check.h"
#include "ir/expand.h"
#include "ir/interp_walk.h"

#include <math.h>
#include <string.h>

// Lines of a tensor: outer walks the kept axes, inner the reduced ones.
struct lines {
    struct walk outer, inner;
    int64_t n;        // elements of a line
    uint64_t *bits;   // the line at hand
    double *x;        // the same as numbers
};

static void
lines_start(struct lines *l, const struct tensor *t, const int64_t *axes, int64_t naxes)
{
    struct tensor kept = *t, reduced = *t;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool named = false;
        for (int64_t k = 0; k < naxes; k++)
            named |= axes[k] == i;
        *(named ? &kept.dim[i] : &reduced.dim[i]) = 1;
    }
    walk_start(&l->outer, t->rank, kept.dim);
    walk_follow(&l->outer, &kept);
    walk_start(&l->inner, t->rank, reduced.dim);
    walk_follow(&l->inner, &reduced);
    l->n = l->inner.left;
    l->bits = xmalloc((size_t)l->n * sizeof *l->bits);
    l->x = xmalloc((size_t)l->n * sizeof *l->x);
}

static void
lines_fetch(struct lines *l, const struct tensor *t)
{
    struct walk w = l->inner;
    for (int64_t k = 0; w.left; walk_next(&w), k++) {
        l->bits[k] = tensor_get(t, l->outer.offset[0] + w.offset[0]);
        l->x[k] = scalar_to_double(t->dtype, l->bits[k]);
    }
}

static void
lines_end(struct lines *l)
{
    xfree(l->bits);
    xfree(l->x);
}

// What each addition loses is added up apart: where large elements cancel, small ones are all that
// the result is made of, whatever their order (Neumaier, "Rundungsfehleranalyse einiger Verfahren
// zur Summation endlicher Summen", 1974).
static double
sum(const double *x, int64_t n)
{
    long double s = n ? -0.0L : 0.0L, lost = 0;
    for (int64_t i = 0; i < n; i++) {
        long double e = x[i], t = s + e;
        lost += fabsl(s) >= fabsl(e) ? s - t + e : e - t + s;
        s = t;
    }
    return (double)(isfinite(s) && lost != 0 ? s + lost : s);
}

static double
mean(const double *x, int64_t n)
{
    return sum(x, n) / (double)n;
}

static double
product(const double *x, int64_t n)
{
    long double p = 1;
    for (int64_t i = 0; i < n; i++)
        p *= x[i];
    return (double)p;
}

static double
variance(const double *x, int64_t n, int64_t correction)
{
    double m = mean(x, n);
    long double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += ((long double)x[i] - m) * ((long double)x[i] - m);
    int64_t degrees = n > correction ? n - correction : 0;
    return (double)(s / (long double)degrees);
}

static double
length(const double *x, int64_t n)
{
    long double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (long double)x[i] * x[i];
    return (double)sqrtl(s);
}

static double
largest(const double *x, int64_t n)
{
    double m = -(double)INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i]) || x[i] > m)
            m = isnan(m) ? m : x[i];
    return m;
}

static double
sum_exp(const double *x, int64_t n, double shift)
{
    long double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += expl((long double)x[i] - shift);
    return (double)s;
}

// An infinite maximum is no shift: x - max would be NaN where the sum of exponentials is not.
static double
logsumexp(const double *x, int64_t n)
{
    double m = largest(x, n), shift = isfinite(m) ? m : 0;
    return shift + log(sum_exp(x, n, shift));
}

// Integer sums and products wrap in 64 bits.
static uint64_t
integer_total(uint16_t op, uint8_t dtype, const uint64_t *bits, int64_t n)
{
    uint64_t total = op == OP_prod;
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)scalar_to_int(dtype, bits[i]);
        total = op == OP_prod ? total * x : total + x;
    }
    return total;
}

// The first NaN, else the first extreme element.
static int64_t
arg_extreme(uint16_t op, uint8_t dtype, const struct lines *l)
{
    uint16_t better = op == OP_argmax ? OP_gt : OP_lt;
    int64_t best = 0;
    for (int64_t i = 1; i < l->n && !isnan(l->x[best]); i++)
        if (isnan(l->x[i]) ||
            eval_primitive(better, dtype, DT_bool, l->bits[i], l->bits[best], 0))
            best = i;
    return best;
}

static uint64_t
folded(uint16_t op, uint8_t dtype, const struct lines *l)
{
    uint64_t r = op_identity_bits(op, dtype);
    for (int64_t i = 0; i < l->n; i++)
        r = eval_primitive(op_table[op].combine, dtype, dtype, r, l->bits[i], 0);
    return r;
}

// One value per line, from a reduction or a composite that reduces.
static uint64_t
line_value(const struct interp_node *x, const struct lines *l)
{
    uint8_t from = x->in[0]->dtype, to = x->out->dtype;
    switch (x->n->op) {
    case OP_sum:
    case OP_prod:
        if (!dtype_is_float(from))
            return integer_total(x->n->op, from, l->bits, l->n);
        return scalar_from_double(to, x->n->op == OP_sum ? sum(l->x, l->n) : product(l->x, l->n));
    case OP_argmax:
    case OP_argmin:
        return (uint64_t)arg_extreme(x->n->op, from, l);
    case OP_mean:
        return scalar_from_double(to, mean(l->x, l->n));
    case OP_var:
        return scalar_from_double(to, variance(l->x, l->n, x->attr[x->attr[0] + 2]));
    case OP_std:
        return scalar_from_double(to, sqrt(variance(l->x, l->n, x->attr[x->attr[0] + 2])));
    case OP_norm:
        return scalar_from_double(to, length(l->x, l->n));
    case OP_logsumexp:
        return scalar_from_double(to, logsumexp(l->x, l->n));
    default:
        return folded(x->n->op, from, l);
    }
}

static void
reduce(const struct interp_node *x)
{
    struct lines l;
    lines_start(&l, x->in[0], x->attr + 1, x->attr[0]);
    for (int64_t k = 0; l.outer.left; walk_next(&l.outer), k++) {
        lines_fetch(&l, x->in[0]);
        tensor_put(x->out, k, line_value(x, &l));
    }
    lines_end(&l);
}

// The running value of elements first, first + step …, rounded element by element.
static void
scan_line(const struct interp_node *x, const struct lines *l, int64_t first, int64_t step)
{
    uint8_t from = x->in[0]->dtype, to = x->out->dtype;
    uint16_t op = x->n->op;
    bool sums = op == OP_cumsum, wide = sums || op == OP_cumprod;
    uint64_t bits = op_identity_bits(op, to);
    long double value = sums ? -0.0L : 1;
    for (int64_t k = 0, i = first; k < l->n; k++, i += step) {
        if (!wide) {
            bits = eval_primitive(op_table[op].combine, from, from, bits, l->bits[i], 0);
        } else if (dtype_is_float(from)) {
            value = sums ? value + l->x[i] : value * l->x[i];
            bits = scalar_from_double(to, (double)value);
        } else {
            uint64_t e = (uint64_t)scalar_to_int(from, l->bits[i]);
            bits = sums ? bits + e : bits * e;
        }
        l->bits[i] = bits;
    }
}

static void
scan(const struct interp_node *x)
{
    struct lines l, o; // in and out: the same lines, each by its own strides
    lines_start(&l, x->in[0], x->attr, 1);
    lines_start(&o, x->out, x->attr, 1);
    for (; l.outer.left; walk_next(&l.outer), walk_next(&o.outer)) {
        lines_fetch(&l, x->in[0]);
        scan_line(x, &l, x->attr[1] ? l.n - 1 : 0, x->attr[1] ? -1 : 1);
        struct walk w = o.inner;
        for (int64_t k = 0; w.left; walk_next(&w), k++)
            tensor_put(x->out, o.outer.offset[0] + w.offset[0], l.bits[k]);
    }
    lines_end(&l);
    lines_end(&o);
}

// Replaces the line by its softmax or norm.
static void
line_map(const struct interp_node *x, double *v, int64_t n)
{
    double shift = 0, scale = 1, eps = 0;
    bool soft = x->n->op == OP_softmax || x->n->op == OP_log_softmax;
    if (!soft)
        eps = scalar_to_double(DT_f64, (uint64_t)x->attr[0]);
    if (soft) {
        shift = largest(v, n);
        scale = sum_exp(v, n, shift);
    } else if (x->n->op == OP_layer_norm) {
        shift = mean(v, n);
        scale = sqrt(variance(v, n, 0) + eps);
    } else {
        long double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += (long double)v[i] * v[i];
        scale = sqrt((double)(squares / (long double)n) + eps);
    }
    for (int64_t i = 0; i < n; i++) {
        if (x->n->op == OP_softmax)
            v[i] = exp(v[i] - shift) / scale;
        else if (x->n->op == OP_log_softmax)
            v[i] = v[i] - shift - log(scale);
        else
            v[i] = (v[i] - shift) / scale * tensor_get_double(x->in[1], i * x->in[1]->stride[0]);
        if (x->n->op == OP_layer_norm)
            v[i] += tensor_get_double(x->in[2], i * x->in[2]->stride[0]);
    }
}

static void
map_lines(const struct interp_node *x, int64_t axis)
{
    struct lines l, o; // in and out: the same lines, each by its own strides
    lines_start(&l, x->in[0], &axis, 1);
    lines_start(&o, x->out, &axis, 1);
    for (; l.outer.left; walk_next(&l.outer), walk_next(&o.outer)) {
        lines_fetch(&l, x->in[0]);
        line_map(x, l.x, l.n);
        struct walk w = o.inner;
        for (int64_t k = 0; w.left; walk_next(&w), k++)
            tensor_put(x->out, o.outer.offset[0] + w.offset[0],
                       scalar_from_double(x->out->dtype, l.x[k]));
    }
    lines_end(&l);
    lines_end(&o);
}

// By plain IEEE, as softmax: a row with an infinite maximum is NaN.
static void
cross_entropy(const struct interp_node *x)
{
    const struct tensor *target = x->in[1];
    struct lines l;
    long double total = 0;
    int64_t rows = x->in[0]->dim[0];
    lines_start(&l, x->in[0], &(int64_t){1}, 1);
    for (int64_t k = 0; l.outer.left; walk_next(&l.outer), k++) {
        lines_fetch(&l, x->in[0]);
        int64_t i = scalar_to_int(target->dtype, tensor_get(target, k * target->stride[0]));
        i = interp_position(x, i, l.n, 1, &l.outer);
        double m = largest(l.x, l.n);
        total += m + log(sum_exp(l.x, l.n, m)) - (i >= 0 ? l.x[i] : 0);
    }
    lines_end(&l);
    tensor_put(x->out, 0, scalar_from_double(x->out->dtype, (double)(total / (long double)rows)));
}

void
interp_axes(const struct interp_node *x)
{
    if (op_is(x->n->op, OPK_REDUCE))
        return reduce(x);
    if (op_is(x->n->op, OPK_SCAN))
        return scan(x);
    switch (x->n->op) {
    case OP_mean:
    case OP_var:
    case OP_std:
    case OP_norm:
    case OP_logsumexp:
        return reduce(x);
    case OP_softmax:
    case OP_log_softmax:
        return map_lines(x, x->attr[0]);
    case OP_layer_norm:
    case OP_rms_norm:
        return map_lines(x, x->in[0]->rank - 1);
    case OP_cross_entropy:
        return cross_entropy(x);
    case OP_uniform:
    case OP_normal:
    case OP_bernoulli:
    case OP_randint:
    case OP_dropout:
        return interp_random(x);
    default:
        return interp_composite(x);
    }
}

static uint64_t
dot(const struct tensor *a, int64_t at_a, int64_t step_a, const struct tensor *b, int64_t at_b,
    int64_t step_b, int64_t n)
{
    if (!dtype_is_float(a->dtype)) {
        uint64_t total = 0;
        for (int64_t k = 0; k < n; k++)
            total += (uint64_t)scalar_to_int(a->dtype, tensor_get(a, at_a + k * step_a)) *
                     (uint64_t)scalar_to_int(b->dtype, tensor_get(b, at_b + k * step_b));
        return scalar_from_int(a->dtype, (int64_t)total);
    }
    long double total = 0;
    for (int64_t k = 0; k < n; k++)
        total += (long double)tensor_get_double(a, at_a + k * step_a) *
                 tensor_get_double(b, at_b + k * step_b);
    return scalar_from_double(a->dtype, (double)total);
}

void
interp_matmul(const struct interp_node *x)
{
    struct tensor a = *x->in[0], b = *x->in[1];
    uint32_t row = a.rank - 2u, col = b.rank - 1u;
    int64_t n = a.dim[row + 1], step_a = a.stride[row + 1], step_b = b.stride[col - 1];
    // Both operands as the result's points see them: a does not move along columns, b along rows.
    a.dim[row + 1] = 1;
    b.dim[col - 1] = 1;
    struct walk w;
    walk_start(&w, x->out->rank, x->out->dim);
    walk_follow(&w, &a);
    walk_follow(&w, &b);
    for (int64_t k = 0; w.left; walk_next(&w), k++)
        tensor_put(x->out, k, dot(&a, w.offset[0], step_a, &b, w.offset[1], step_b, n));
}
