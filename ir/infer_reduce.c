// infer_reduce.c: dtypes and shapes of reductions, scans, of composites that work along axes, and
// of the contraction. An empty list of axes reduces nothing (NumPy's axis=()): such a reduction is
// a cast, and is built as one. A softmax over no elements is its operand.
#include "ir/infer.h"

#include <string.h>

// attr: count, axes, keepdims, rest. Sets the result's shape.
static bool
reduced_shape(struct inference *f)
{
    struct shape x = infer_in_shape(f, 0);
    int64_t n = f->attr[0], *axes = &f->attr[1];
    if (!infer_axes(f, axes, n, &x))
        return false;
    bool keepdims = axes[n];
    f->shape.rank = 0;
    for (uint32_t i = 0, at = 0; i < x.rank; i++) {
        bool reduced = at < n && axes[at] == i;
        at += reduced;
        if (!reduced || keepdims)
            f->shape.dim[f->shape.rank++] = reduced ? sym_num(1) : x.dim[i];
    }
    return true;
}

// For ops without a value for no elements.
static bool
refuse_empty(struct inference *f, const int64_t *axes, int64_t n)
{
    struct shape x = infer_in_shape(f, 0);
    bool least = f->op == OP_argmin || f->op == OP_min_reduce;
    for (int64_t i = 0; i < n; i++)
        if (!infer_hint(f, x.dim[axes[i]]))
            return infer_error(f, "axis %lld of %s is empty and so has no %s; give it at least "
                                  "one element", (long long)axes[i], infer_shape_text(f, &x),
                               least ? "minimum" : "maximum");
    return true;
}

static uint8_t
sum_dtype(uint8_t d)
{
    if (dtype_is_float(d))
        return d;
    return dtype_table[d].kind == DTK_UINT ? DT_u64 : DT_i64;
}

static bool
reduction(struct inference *f)
{
    uint8_t d = infer_in_dtype(f, 0);
    if (!reduced_shape(f))
        return false;
    switch (f->op) {
    case OP_sum:
    case OP_prod:
        f->dtype = sum_dtype(d);
        break;
    case OP_any:
    case OP_all:
        infer_cast_in(f, 0, DT_bool);
        f->dtype = DT_bool;
        break;
    case OP_argmax:
    case OP_argmin:
        f->dtype = DT_i64;
        if (f->attr[0] != 1)
            return infer_error(f, "takes one axis, got %lld; reshape to reduce over several",
                               (long long)f->attr[0]);
        return refuse_empty(f, &f->attr[1], 1);
    default:
        f->dtype = d;
        if (!refuse_empty(f, &f->attr[1], f->attr[0]))
            return false;
    }
    if (!f->attr[0]) {
        infer_cast_in(f, 0, f->dtype);
        f->instead = f->in[0];
    }
    return true;
}

// Sums and products in their accumulation dtype, as reductions.
static bool
scan(struct inference *f)
{
    uint8_t d = infer_in_dtype(f, 0);
    f->shape = infer_in_shape(f, 0);
    f->dtype = f->op == OP_cumsum || f->op == OP_cumprod ? sum_dtype(d) : d;
    return infer_axis(f, &f->attr[0], &f->shape);
}

static bool
softmax(struct inference *f)
{
    f->shape = infer_in_shape(f, 0);
    if (!infer_axis(f, &f->attr[0], &f->shape))
        return false;
    infer_to_float(f, 1);
    if (!infer_hint(f, f->shape.dim[f->attr[0]]))
        f->instead = f->in[0];
    return true;
}

static bool
norm(struct inference *f)
{
    f->shape = infer_in_shape(f, 0);
    if (!f->shape.rank)
        return infer_error(f, "needs at least one axis to normalise over, got a scalar");
    sym *last = &f->shape.dim[f->shape.rank - 1];
    for (uint32_t i = 1; i < f->nin; i++) {
        struct shape s = infer_in_shape(f, i);
        if (s.rank != 1 || !infer_same_dim(f, *last, s.dim[0], last))
            return infer_error(f, "%s has shape %s; the last axis of %s asks for [%s]",
                               i == 1 ? "weight" : "bias", infer_shape_text(f, &s),
                               infer_shape_text(f, &f->shape), infer_dim_text(f, *last));
    }
    double eps;
    memcpy(&eps, &f->attr[0], sizeof eps);
    if (!(eps >= 0))
        return infer_error(f, "eps is %g; it must not be negative", eps);
    infer_to_float(f, f->nin);
    return true;
}

bool
infer_reduce(struct inference *f)
{
    if (op_is(f->op, OPK_REDUCE))
        return reduction(f);
    if (op_is(f->op, OPK_SCAN))
        return scan(f);
    switch (f->op) {
    case OP_mean:
    case OP_var:
    case OP_std:
    case OP_norm:
    case OP_logsumexp:
        if (!reduced_shape(f) ||
            (f->op == OP_logsumexp && !refuse_empty(f, &f->attr[1], f->attr[0])))
            return false;
        infer_to_float(f, 1);
        if (f->op == OP_mean && !f->attr[0])
            f->instead = f->in[0];
        return true;
    case OP_softmax:
    case OP_log_softmax:
        return softmax(f);
    case OP_layer_norm:
    case OP_rms_norm:
        return norm(f);
    case OP_uniform:
    case OP_normal:
    case OP_bernoulli:
    case OP_randint:
    case OP_dropout:
        return infer_random_numbers(f);
    default:
        return infer_composite(f);
    }
}

bool
infer_factors(struct inference *f, const struct shape *batch, sym m, sym k, sym n)
{
    struct shape s = *batch;
    s.dim[s.rank++] = infer_hint(f, m) > infer_hint(f, n) ? m : n;
    s.dim[s.rank++] = k;
    return infer_size(f, &s, "a factor");
}

bool
infer_contract(struct inference *f)
{
    struct shape s[2] = {infer_in_shape(f, 0), infer_in_shape(f, 1)}, batch[2];
    if (s[0].rank < 2 || s[1].rank < 2)
        return infer_error(f, "shapes %s and %s; both need at least two axes, reshape vectors to "
                              "[1,K] or [K,1]", infer_shape_text(f, &s[0]),
                           infer_shape_text(f, &s[1]));
    sym inner_a = s[0].dim[s[0].rank - 1], inner_b = s[1].dim[s[1].rank - 2], k;
    if (!infer_same_dim(f, inner_a, inner_b, &k))
        return infer_error(f, "shapes %s and %s: the last axis of the first is %s and the axis "
                              "before the last of the second is %s; they must be equal, perhaps "
                              "permute one", infer_shape_text(f, &s[0]), infer_shape_text(f, &s[1]),
                           infer_dim_text(f, inner_a), infer_dim_text(f, inner_b));
    for (uint32_t i = 0; i < 2; i++) {
        batch[i] = s[i];
        batch[i].rank = (uint8_t)(s[i].rank - 2);
    }
    if (!infer_broadcast(f, batch, 2, "batch shapes", &f->shape) ||
        !infer_factors(f, &f->shape, s[0].dim[s[0].rank - 2], k, s[1].dim[s[1].rank - 1]))
        return false;
    f->shape.dim[f->shape.rank++] = s[0].dim[s[0].rank - 2];
    f->shape.dim[f->shape.rank++] = s[1].dim[s[1].rank - 1];
    f->dtype = infer_promoted(f, 0, 2);
    if (f->dtype == DT_bool)
        return infer_error(f, "not defined for bool; cast the operands to a number first");
    infer_cast_in(f, 0, f->dtype);
    infer_cast_in(f, 1, f->dtype);
    return true;
}
