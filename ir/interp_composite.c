// interp_composite.c: the graph interpreter's rules for composites whose operands have roles of
// their own: each the textbook's formula, in double with sums in long double, over coordinates.
#include "ir/base/check.h"
#include "ir/interp_walk.h"

#include <math.h>

// An element by coordinates in a box of this rank, to which t is broadcast.
static double
at(const struct tensor *t, uint32_t rank, const int64_t *index)
{
    int64_t offset = 0;
    const int64_t *own = index + rank - t->rank;
    for (uint32_t i = 0; i < t->rank; i++)
        offset += t->dim[i] == 1 ? 0 : own[i] * t->stride[i];
    return tensor_get_double(t, offset);
}

static void
put(const struct tensor *t, const int64_t *index, double v)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        offset += index[i] * t->stride[i];
    tensor_put(t, offset, scalar_from_double(t->dtype, v));
}

static double
float_attr(int64_t bits)
{
    return scalar_to_double(DT_f64, (uint64_t)bits);
}

// Softmax of n scores of which some count; all 0 where none does.
static void
softmax_where(double *v, const bool *counts, int64_t n)
{
    double most = -(double)INFINITY;
    long double sum = 0;
    bool any = false, nan = false;
    for (int64_t i = 0; i < n; i++) {
        any |= counts[i];
        nan |= counts[i] && isnan(v[i]);
        most = counts[i] && v[i] > most ? v[i] : most;
    }
    for (int64_t i = 0; i < n; i++) {
        v[i] = counts[i] ? exp(v[i] - (nan ? (double)NAN : most)) : 0;
        sum += (long double)v[i];
    }
    for (int64_t i = 0; i < n && any; i++)
        v[i] = (double)((long double)v[i] / sum);
}

static void
masked_softmax(const struct interp_node *x)
{
    int64_t axis = x->attr[0], outer[MAX_RANK], n = x->out->dim[axis];
    uint32_t rank = x->out->rank;
    double *v = xmalloc((size_t)n * sizeof *v + 1);
    bool *counts = xmalloc((size_t)n + 1);
    for (uint32_t d = 0; d < rank; d++)
        outer[d] = d == axis ? 1 : x->out->dim[d];
    struct walk w;
    for (walk_start(&w, rank, outer); w.left && n; walk_next(&w)) {
        for (w.at[axis] = 0; w.at[axis] < n; w.at[axis]++) {
            v[w.at[axis]] = at(x->in[0], rank, w.at);
            counts[w.at[axis]] = at(x->in[1], rank, w.at) != 0;
        }
        softmax_where(v, counts, n);
        for (w.at[axis] = 0; w.at[axis] < n; w.at[axis]++)
            put(x->out, w.at, v[w.at[axis]]);
        w.at[axis] = 0;
    }
    xfree(v);
    xfree(counts);
}

// Mean and variance of a group of channels of one image: those that `in` is within.
static void
group_moments(const struct tensor *x, int64_t image, int64_t first, int64_t channels, double *mean,
              double *var)
{
    long double sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++) {
        int64_t n = 0, dim[MAX_RANK];
        struct walk w;
        for (uint32_t d = 0; d < x->rank; d++)
            dim[d] = d == 0 ? 1 : d == 1 ? channels : x->dim[d];
        for (walk_start(&w, x->rank, dim); w.left; walk_next(&w), n++) {
            int64_t index[MAX_RANK];
            for (uint32_t d = 0; d < x->rank; d++)
                index[d] = w.at[d] + (d == 0 ? image : d == 1 ? first : 0);
            long double v = (long double)at(x, x->rank, index);
            if (pass)
                squares += (v - (long double)*mean) * (v - (long double)*mean);
            else
                sum += v;
        }
        *(pass ? var : mean) = (double)((pass ? squares : sum) / (long double)n);
    }
}

static void
group_norm(const struct interp_node *x)
{
    const struct tensor *in = x->in[0];
    int64_t groups = x->attr[0], channels = in->dim[1] / groups, last[2] = {-1, -1};
    double mean = 0, var = 0, eps = float_attr(x->attr[1]);
    struct walk w;
    for (walk_start(&w, in->rank, in->dim); w.left; walk_next(&w)) {
        int64_t group = w.at[1] / channels;
        if (last[0] != w.at[0] || last[1] != group)
            group_moments(in, w.at[0], group * channels, channels, &mean, &var);
        last[0] = w.at[0];
        last[1] = group;
        double y = (at(in, in->rank, w.at) - mean) / sqrt(var + eps);
        put(x->out, w.at, y * at(x->in[1], 1, &w.at[1]) + at(x->in[2], 1, &w.at[1]));
    }
}

static void
batch_norm(const struct interp_node *x)
{
    double eps = float_attr(x->attr[0]);
    struct walk w;
    for (walk_start(&w, x->out->rank, x->out->dim); w.left; walk_next(&w)) {
        double v[5];
        for (uint32_t i = 0; i < 5; i++)
            v[i] = at(x->in[i], i ? 1 : x->out->rank, i ? &w.at[1] : w.at);
        put(x->out, w.at, (v[0] - v[1]) / sqrt(v[2] + eps) * v[3] + v[4]);
    }
}

static void
nll_loss(const struct interp_node *x)
{
    const struct tensor *in = x->in[0], *target = x->in[1];
    long double total = 0;
    struct walk w;
    for (walk_start(&w, 1, target->dim); w.left; walk_next(&w)) {
        int64_t row = w.at[0];
        int64_t i = scalar_to_int(target->dtype, tensor_get(target, row * target->stride[0]));
        i = interp_position(x, i, in->dim[1], 1, &w);
        total -= i < 0 ? 0 : (long double)at(in, 2, (int64_t[]){row, i});
    }
    tensor_put(x->out, 0, scalar_from_double(x->out->dtype,
                                             (double)(total / (long double)in->dim[0])));
}

// Scores and weights are arrays of attention's dtype, or of f32: rounded, and where they overflow
// infinite.
static double
stored(const struct tensor *t, double v)
{
    uint8_t dtype = dtype_is_half(t->dtype) ? DT_f32 : t->dtype;
    return scalar_to_double(dtype, scalar_from_double(dtype, v));
}

static void
attention(const struct interp_node *x)
{
    const struct tensor *q = x->in[0], *k = x->in[1], *v = x->in[2];
    bool masked = x->n->op == OP_masked_attention, causal = !masked && x->attr[1];
    uint32_t rank = x->out->rank, row = rank - 2, col = rank - 1;
    int64_t depth = q->dim[q->rank - 1], length = k->dim[k->rank - 2], dim[MAX_RANK];
    double scale = float_attr(x->attr[0]);
    scale = scale == 0 ? 1 / sqrt((double)depth) : scale;
    double *score = xmalloc((size_t)length * sizeof *score + 1);
    bool *counts = xmalloc((size_t)length + 1);
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = d == col ? 1 : x->out->dim[d];
    struct walk w;
    for (walk_start(&w, rank, dim); w.left; walk_next(&w)) {
        int64_t a[MAX_RANK], b[MAX_RANK];
        for (uint32_t d = 0; d < rank; d++)
            a[d] = b[d] = w.at[d];
        for (int64_t j = 0; j < length; j++) {
            long double dot = 0;
            b[row] = j;
            for (a[col] = b[col] = 0; a[col] < depth; a[col]++, b[col]++)
                dot += (long double)at(q, rank, a) * (long double)at(k, rank, b);
            score[j] = stored(x->out, stored(x->out, (double)dot) * scale);
            a[col] = j;
            counts[j] = masked ? at(x->in[3], rank, a) != 0 : !causal || j <= a[row];
        }
        softmax_where(score, counts, length);
        for (a[col] = 0; a[col] < x->out->dim[col]; a[col]++) {
            long double sum = 0;
            b[col] = a[col];
            for (b[row] = 0; b[row] < length; b[row]++)
                sum += (long double)score[b[row]] * (long double)at(v, rank, b);
            put(x->out, a, (double)sum);
        }
    }
    xfree(score);
    xfree(counts);
}

// Pairs of elements turned by an angle: y0 = x0 cos - x1 sin, y1 = x1 cos + x0 sin.
static void
rope(const struct interp_node *x)
{
    uint32_t rank = x->out->rank, last = rank - 1;
    int64_t half = x->out->dim[last] / 2;
    bool interleaved = x->attr[0];
    struct walk w;
    for (walk_start(&w, rank, x->out->dim); w.left; walk_next(&w)) {
        int64_t pair[MAX_RANK], other[MAX_RANK], i = w.at[last];
        bool second = interleaved ? i % 2 : i >= half;
        for (uint32_t d = 0; d < rank; d++)
            pair[d] = other[d] = w.at[d];
        pair[last] = interleaved ? i / 2 : i % half;
        other[last] = interleaved ? i ^ 1 : (i + half) % (2 * half);
        double c = at(x->in[1], rank, pair), s = at(x->in[2], rank, pair);
        put(x->out, w.at, at(x->in[0], rank, w.at) * c +
                              (second ? s : -s) * at(x->in[0], rank, other));
    }
}

void
interp_composite(const struct interp_node *x)
{
    switch (x->n->op) {
    case OP_masked_softmax:
        return masked_softmax(x);
    case OP_group_norm:
        return group_norm(x);
    case OP_batch_norm:
        return batch_norm(x);
    case OP_nll_loss:
        return nll_loss(x);
    case OP_attention:
    case OP_masked_attention:
        return attention(x);
    case OP_rope:
        return rope(x);
    default:
        CHECK(false, "no rule for %s", op_name(x->n->op));
    }
}
