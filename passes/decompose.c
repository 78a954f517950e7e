// decompose.c: expands composites to primitives, and reductions to the forms that kernels have:
// over one run of adjacent axes, in the accumulation dtype, or unrolled when tiny.
//
// A reduction over several runs of axes goes innermost run first; axes of size 1 never separate
// runs. A reduction of at most UNROLL elements becomes elementwise ops over slices, joined as the
// lanes of ir/kernel.h's order are (l with l + 8, l + 4, l + 2, l + 1), so its bits are those of
// the reduction; fusion then sees a pointwise expression. Not so over the results of another
// reduction, which become an accumulator over P instead, nor where others read the operand too:
// they share the rows in one kernel. The order of additions depends on logical
// shapes alone, never on what surrounds the op.
//
// So it is with products of matrices that have one row or one column: they are sums.
#include "passes/decompose.h"

#include "ir/base/check.h"
#include "ir/composite.h"

enum { UNROLL = 8, OPERANDS = 5 }; // a composite's most

static const struct shape *
shape_of(const struct pass *p, ref r)
{
    return graph_shape(p->dst, r);
}

static int64_t
extent(const struct pass *p, ref r, int64_t axis)
{
    return dim_of(p->dst, shape_of(p, r), (uint32_t)axis);
}

static int64_t
elements_along(const struct pass *p, ref a, const int64_t *axes, uint32_t naxes)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < naxes; i++)
        n *= extent(p, a, axes[i]);
    return n;
}

// ---- reductions

// Joins the n <= UNROLL elements along axis (kept, size 1) in the order of lanes.
static ref
unrolled(struct pass *p, uint16_t op, ref a, uint32_t axis, int64_t n)
{
    ref lane[16] = {{0}};
    for (int64_t i = 0; i < n; i++)
        lane[i] = pass_slice(p, a, axis, i, 1, 1);
    for (uint32_t half = 8; half; half /= 2)
        for (uint32_t l = 0; l < half; l++)
            if (lane[l].i && lane[l + half].i)
                lane[l] = pass_op2(p, op_table[op].combine, lane[l], lane[l + half]);
    return lane[0];
}

// Whether a is computed, elementwise, from a reduction or contraction not too far away.
static bool
follows_reduction(const struct pass *p, ref a)
{
    enum { REACH = 64 };
    ref stack[REACH];
    uint32_t n = 0;
    stack[n++] = a;
    for (uint32_t steps = 0; n && steps < REACH; steps++) {
        const struct node *x = graph_node(p->dst, stack[--n]);
        if (op_is(x->op, OPK_REDUCE) || op_is(x->op, OPK_CONTRACT))
            return true;
        for (uint32_t i = 0; i < x->nin && x->nin <= 4 && n < REACH; i++)
            stack[n++] = x->in[i];
    }
    return false;
}

static ref
one_run(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes)
{
    int64_t n = elements_along(p, a, axes, naxes);
    if (n > UNROLL || n == 0 || !op_table[op].combine ||
        (n > 1 && (!p->unroll || follows_reduction(p, a))))
        return pass_reduce(p, op, a, axes, naxes, true);
    for (uint32_t i = 1; i < naxes; i++) // several tiny axes: as one
        if (extent(p, a, axes[i]) > 1 && n > extent(p, a, axes[i]))
            return pass_reduce(p, op, a, axes, naxes, true);
    for (uint32_t i = 0; i < naxes; i++)
        if (extent(p, a, axes[i]) > 1)
            return unrolled(p, op, a, (uint32_t)axes[i], n);
    return a;
}

static ref
reduce_runs(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes)
{
    const struct shape s = *shape_of(p, a);
    while (naxes) { // innermost run: back over adjacent reduced axes and kept axes of size 1
        uint32_t first = naxes - 1;
        while (first) {
            bool adjacent = true;
            for (int64_t d = axes[first - 1] + 1; d < axes[first]; d++)
                adjacent &= dim_of(p->dst, &s, (uint32_t)d) == 1;
            if (!adjacent)
                break;
            first--;
        }
        a = one_run(p, op, a, axes + first, naxes - first);
        naxes = first;
    }
    return a;
}

static ref
drop_axes(struct pass *p, ref a, const int64_t *axes, uint32_t naxes)
{
    const struct shape s = *shape_of(p, a);
    struct shape out = {0};
    for (uint32_t d = 0, k = 0; d < s.rank; d++) {
        if (k < naxes && axes[k] == d)
            k++;
        else
            out.dim[out.rank++] = s.dim[d];
    }
    return pass_reshape(p, a, &out);
}

static ref
arg_position(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes)
{
    if (elements_along(p, a, axes, naxes) != 1)
        return pass_reduce(p, op, a, axes, naxes, true);
    const struct shape s = *shape_of(p, a); // the only element is the first
    return pass_broadcast(p, pass_number(p, DT_i64, 0), &s);
}

static ref
reduce(struct pass *p, uint16_t op, ref a, const int64_t *attr)
{
    uint32_t naxes = (uint32_t)attr[0];
    const int64_t *axes = attr + 1;
    uint8_t dtype = graph_node(p->dst, a)->dtype;
    if (op == OP_sum || op == OP_prod)
        a = pass_cast(p, a, dtype_is_float(dtype) ? dtype : dtype_table[dtype].acc);
    if ((op == OP_any || op == OP_all) && dtype != DT_bool)
        a = pass_op2(p, OP_ne, a, pass_number(p, dtype, 0));
    if (op_gives_position(op))
        a = arg_position(p, op, a, axes, naxes);
    else
        a = reduce_runs(p, op, a, axes, naxes);
    return attr[1 + naxes] ? a : drop_axes(p, a, axes, naxes);
}

// ---- products with one row or one column

// A contraction of which M or N is 1 does little with what it loads, so it gains nothing from the
// form that contractions have: it is a product of elements and a sum over k, in the order of sums,
// whichever way the factors lie. Rows of either factor that run along k are then rows of a kernel.
// Not integers: they wrap, so that both give the same bits, and sums are taken in 64.
static bool
is_product_with_vector(const struct graph *g, uint8_t dtype, ref a, ref b)
{
    const struct shape *s = graph_shape(g, a), *t = graph_shape(g, b);
    return dtype_is_float(dtype) &&
           (dim_of(g, s, s->rank - 2u) == 1 || dim_of(g, t, t->rank - 1u) == 1);
}

ref
decompose_swapped(struct pass *p, ref a)
{
    uint32_t rank = shape_of(p, a)->rank;
    int64_t attr[MAX_RANK + 1] = {rank};
    for (uint32_t d = 0; d < rank; d++)
        attr[1 + d] = d + 2 < rank ? d : 2 * (int64_t)rank - 3 - d;
    return pass_op(p, OP_permute, &a, 1, attr, rank + 1);
}

// a [..., M, K] and b [..., N, K] broadcast against each other: M or N is 1.
static ref
product_with_vector(struct pass *p, ref a, ref b)
{
    uint8_t dtype = graph_node(p->dst, a)->dtype;
    ref product = pass_op2(p, OP_mul, a, decompose_swapped(p, b));
    struct shape out = *shape_of(p, product);
    int64_t attr[] = {1, (int64_t)out.rank - 1, 1};
    out.dim[out.rank - 2] = shape_of(p, a)->dim[shape_of(p, a)->rank - 2];
    out.dim[out.rank - 1] = shape_of(p, b)->dim[shape_of(p, b)->rank - 1];
    p->unroll = true;
    return pass_reshape(p, pass_cast(p, reduce(p, OP_sum, product, attr), dtype), &out);
}

ref
decompose_matmul(struct pass *p, ref a, ref b)
{
    return is_product_with_vector(p->dst, graph_node(p->dst, a)->dtype, a, b)
               ? product_with_vector(p, a, b)
               : pass_op2(p, OP_matmul, a, b);
}

// ---- composites

ref
decompose_reduce(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes)
{
    int64_t attr[MAX_RANK + 3] = {naxes};
    for (uint32_t i = 0; i < naxes; i++)
        attr[1 + i] = axes[i];
    attr[1 + naxes] = 1;
    return reduce(p, op, a, attr);
}

static ref
mean_kept(struct pass *p, ref a, const int64_t *axes, uint32_t naxes)
{
    double n = (double)elements_along(p, a, axes, naxes);
    ref s = decompose_reduce(p, OP_sum, a, axes, naxes);
    return pass_op2(p, OP_div, s, pass_number(p, graph_node(p->dst, s)->dtype, n));
}

static ref
centred(struct pass *p, ref a, const int64_t *axes, uint32_t naxes)
{
    return pass_op2(p, OP_sub, a, mean_kept(p, a, axes, naxes));
}

static ref
squared(struct pass *p, ref a)
{
    return pass_op2(p, OP_mul, a, a);
}

// The variance of c, whose mean should be 0 but is *m, what rounding left of it: with a mean far
// from 0 that is no small part of a small deviation (the corrected two-pass algorithm; Chan, Golub,
// LeVeque, "Algorithms for computing the sample variance", 1983). Never below 0; squares that are
// infinite stay so.
static ref
corrected_variance(struct pass *p, ref c, const int64_t *axes, uint32_t naxes, int64_t correction,
                   ref *m)
{
    uint8_t t = graph_node(p->dst, c)->dtype;
    double n = (double)elements_along(p, c, axes, naxes);
    ref sum = decompose_reduce(p, OP_sum, c, axes, naxes);
    ref squares = decompose_reduce(p, OP_sum, squared(p, c), axes, naxes);
    *m = pass_op2(p, OP_div, sum, pass_number(p, t, n));
    ref rest = pass_op2(p, OP_sub, squares, pass_op2(p, OP_mul, sum, *m));
    rest = pass_op2(p, OP_max, rest, pass_number(p, t, 0));
    ref inf = pass_number(p, t, (double)__builtin_inf());
    rest = pass_op3(p, OP_where, pass_op2(p, OP_lt, squares, inf), rest, squares);
    n -= (double)correction;
    return pass_op2(p, OP_div, rest, pass_number(p, t, n > 0 ? n : 0));
}

static ref
finish_axes(struct pass *p, ref a, const int64_t *attr)
{
    return attr[1 + attr[0]] ? a : drop_axes(p, a, attr + 1, (uint32_t)attr[0]);
}

// exp(x - max) and its sum along axes; *m the maximum.
static ref
shifted_exp(struct pass *p, ref x, const int64_t *axes, uint32_t n, ref *m, ref *sum)
{
    *m = decompose_reduce(p, OP_max_reduce, x, axes, n);
    ref e = pass_op1(p, OP_exp, pass_op2(p, OP_sub, x, *m));
    *sum = decompose_reduce(p, OP_sum, e, axes, n);
    return e;
}

ref
decompose_softmax(struct pass *p, ref x, int64_t axis)
{
    ref m, s, e = shifted_exp(p, x, &axis, 1, &m, &s);
    return pass_op2(p, OP_div, e, s);
}

static ref
log_softmax(struct pass *p, ref x, const int64_t *attr)
{
    ref m, s;
    shifted_exp(p, x, attr, 1, &m, &s);
    return pass_op2(p, OP_sub, pass_op2(p, OP_sub, x, m), pass_op1(p, OP_log, s));
}

static ref
logsumexp(struct pass *p, ref x, const int64_t *attr)
{
    ref m, s;
    shifted_exp(p, x, attr + 1, (uint32_t)attr[0], &m, &s);
    // An infinite maximum is the answer; the shifted sum would be NaN.
    ref inf = pass_number(p, graph_node(p->dst, m)->dtype, (double)__builtin_inf());
    ref infinite = pass_op2(p, OP_eq, pass_op1(p, OP_abs, m), inf);
    ref y = pass_op3(p, OP_where, infinite, m, pass_op2(p, OP_add, m, pass_op1(p, OP_log, s)));
    return finish_axes(p, y, attr);
}

static double
attr_double(int64_t bits)
{
    return scalar_to_double(DT_f64, (uint64_t)bits);
}

static ref
inverse_root(struct pass *p, ref v, double eps)
{
    ref e = pass_number(p, graph_node(p->dst, v)->dtype, eps);
    return pass_op1(p, OP_rsqrt, pass_op2(p, OP_add, v, e));
}

ref
decompose_normalised(struct pass *p, ref x, int64_t axis, double eps)
{
    ref m, c = centred(p, x, &axis, 1);
    ref v = corrected_variance(p, c, &axis, 1, 0, &m);
    ref scale = inverse_root(p, v, eps); // before the difference, whatever the C compiler's order
    return pass_op2(p, OP_mul, pass_op2(p, OP_sub, c, m), scale);
}

static ref
layer_norm(struct pass *p, ref x, ref weight, ref bias, const int64_t *attr)
{
    ref y = decompose_normalised(p, x, shape_of(p, x)->rank - 1, attr_double(attr[0]));
    return pass_op2(p, OP_add, pass_op2(p, OP_mul, y, weight), bias);
}

static ref
rms_norm(struct pass *p, ref x, ref weight, const int64_t *attr)
{
    int64_t last = shape_of(p, x)->rank - 1;
    ref v = mean_kept(p, squared(p, x), &last, 1);
    ref y = pass_op2(p, OP_mul, x, inverse_root(p, v, attr_double(attr[0])));
    return pass_op2(p, OP_mul, y, weight);
}

ref
decompose_picked(struct pass *p, ref x, ref target)
{
    int64_t classes = 1;
    struct shape column = {.rank = 2, .dim = {shape_of(p, x)->dim[0], sym_num(1)}};
    ref in[] = {x, pass_cast(p, pass_reshape(p, target, &column), DT_i64)};
    return pass_op(p, OP_take_along, in, 2, &classes, 1);
}

ref
decompose_mean_of_rows(struct pass *p, ref x)
{
    int64_t rows = 0;
    struct shape scalar = {0};
    return pass_reshape(p, mean_kept(p, x, &rows, 1), &scalar);
}

static ref
cross_entropy(struct pass *p, ref x, ref target)
{
    int64_t classes = 1;
    ref m, s, picked = decompose_picked(p, x, target);
    shifted_exp(p, x, &classes, 1, &m, &s);
    ref loss = pass_op2(p, OP_sub, pass_op2(p, OP_add, m, pass_op1(p, OP_log, s)), picked);
    return decompose_mean_of_rows(p, loss);
}

// A row with its expansion as text, or the mean of one over all axes.
static ref
elementwise(struct pass *p, ref r, const ref *in, const int64_t *attr)
{
    const struct node *n = graph_node(p->src, r);
    ref x = composite_expand(p->dst, n->op, n->dtype, in, attr, p->origin);
    if (!(op_table[n->op].flags & OPF_MEAN))
        return x;
    int64_t axes[MAX_RANK];
    uint32_t rank = shape_of(p, x)->rank;
    for (uint32_t d = 0; d < rank; d++)
        axes[d] = d;
    return drop_axes(p, mean_kept(p, x, axes, rank), axes, rank);
}

static ref
composite(struct pass *p, ref r, const ref *in, const int64_t *attr)
{
    uint8_t dtype = graph_node(p->src, r)->dtype;
    ref x = in[0];
    if (op_is_elementwise_composite(graph_node(p->src, r)->op))
        return elementwise(p, r, in, attr);
    switch (graph_node(p->src, r)->op) {
    case OP_uniform:
    case OP_normal:
    case OP_bernoulli:
    case OP_randint:
    case OP_dropout:
        return decompose_random(p, r, in, attr);
    case OP_mean:
        x = mean_kept(p, pass_cast(p, x, dtype), attr + 1, (uint32_t)attr[0]);
        return finish_axes(p, x, attr);
    case OP_std:
    case OP_var: {
        ref m, c = centred(p, pass_cast(p, x, dtype), attr + 1, (uint32_t)attr[0]);
        x = corrected_variance(p, c, attr + 1, (uint32_t)attr[0], attr[2 + attr[0]], &m);
        x = graph_node(p->src, r)->op == OP_std ? pass_op1(p, OP_sqrt, x) : x;
        return finish_axes(p, x, attr);
    }
    case OP_norm:
        x = squared(p, pass_cast(p, x, dtype));
        x = decompose_reduce(p, OP_sum, x, attr + 1, (uint32_t)attr[0]);
        return finish_axes(p, pass_op1(p, OP_sqrt, x), attr);
    case OP_logsumexp:
        return logsumexp(p, pass_cast(p, x, dtype), attr);
    case OP_softmax:
        return decompose_softmax(p, pass_cast(p, x, dtype), attr[0]);
    case OP_log_softmax:
        return log_softmax(p, pass_cast(p, x, dtype), attr);
    case OP_layer_norm:
        return layer_norm(p, x, in[1], in[2], attr);
    case OP_rms_norm:
        return rms_norm(p, x, in[1], attr);
    case OP_cross_entropy:
        return cross_entropy(p, pass_cast(p, x, dtype), in[1]);
    default:
        return decompose_composite(p, r, in, attr);
    }
}

// A concat of very many parts becomes a tree of concats, each small enough for one kernel.
static ref
concat_tree(struct pass *p, ref r)
{
    enum { WIDE = 16 };
    uint32_t n = graph_node(p->src, r)->nin;
    int64_t axis = graph_attr(p->src, r)[0];
    ref *part = xmalloc(n * sizeof *part);
    for (uint32_t i = 0; i < n; i++)
        part[i] = pass_operand(p, r, i);
    while (n > 1) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i += WIDE) {
            uint32_t take = n - i < WIDE ? n - i : WIDE;
            part[m++] = take == 1 ? part[i] : pass_op(p, OP_concat, part + i, take, &axis, 1);
        }
        n = m;
    }
    ref out = part[0];
    xfree(part);
    return out;
}

// In the dtype that it accumulates in; of one element it is that element.
static ref
scan(struct pass *p, ref r)
{
    const struct node *n = graph_node(p->src, r);
    const int64_t *attr = graph_attr(p->src, r);
    ref x = pass_cast(p, pass_operand(p, r, 0), n->dtype);
    return extent(p, x, attr[0]) == 1 ? x : pass_op(p, n->op, &x, 1, attr, 2);
}

static ref
rewrite(struct pass *p, ref r)
{
    const struct node *n = graph_node(p->src, r);
    const int64_t *attr = graph_attr(p->src, r);
    if (n->op == OP_concat)
        return concat_tree(p, r);
    if (op_is(n->op, OPK_SCAN))
        return scan(p, r);
    bool vector = op_is(n->op, OPK_CONTRACT) &&
                  is_product_with_vector(p->src, n->dtype, n->in[0], n->in[1]);
    if (!op_is(n->op, OPK_COMPOSITE) && !op_is(n->op, OPK_REDUCE) && !vector)
        return pass_copy(p, r);
    ref in[OPERANDS] = {{0}};
    CHECK(n->nin <= OPERANDS, "%s of %u operands", op_name(n->op), n->nin);
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = pass_operand(p, r, i);
    if (vector)
        return pass_cast(p, product_with_vector(p, in[0], in[1]), n->dtype);
    p->unroll = (op_is(n->op, OPK_REDUCE) || n->op == OP_mean) &&
                p->uses[graph_in(p->src, r, 0).i] == 1;
    ref out = op_is(n->op, OPK_REDUCE) ? reduce(p, n->op, in[0], attr) : composite(p, r, in, attr);
    CHECK(graph_node(p->dst, out)->dtype == n->dtype, "%s expands to %s instead of %s",
          op_name(n->op), dtype_name(graph_node(p->dst, out)->dtype), dtype_name(n->dtype));
    return out;
}

struct graph *
pass_decompose(const struct graph *g, const struct compile_options *o)
{
    return pass_run(g, o, rewrite);
}
