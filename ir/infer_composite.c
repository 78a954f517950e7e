// infer_composite.c: dtypes and shapes of composites whose operands have roles of their own: norms
// by channel, masked softmax, attention, rotary positions, losses of classes. Operands promote to
// one float dtype.
#include "ir/infer.h"

static bool
is_bool(struct inference *f, uint32_t i)
{
    return infer_in_dtype(f, i) == DT_bool ||
           infer_error(f, "the mask is %s; it must be bool, true where an element counts",
                       dtype_name(infer_in_dtype(f, i)));
}

static bool
masked_softmax(struct inference *f)
{
    struct shape s[] = {infer_in_shape(f, 0), infer_in_shape(f, 1)};
    if (!is_bool(f, 1) || !infer_broadcast(f, s, 2, "shapes", &f->shape) ||
        !infer_axis(f, &f->attr[0], &f->shape))
        return false;
    infer_to_float(f, 1);
    return true;
}

static bool
check_eps(struct inference *f, int64_t bits)
{
    double eps = scalar_to_double(DT_f64, (uint64_t)bits);
    return eps >= 0 || infer_error(f, "eps is %g; it must not be negative", eps);
}

// x [N, C, …], all other operands [C].
static bool
check_channels(struct inference *f)
{
    f->shape = infer_in_shape(f, 0);
    if (f->shape.rank < 2)
        return infer_error(f, "shape %s; [N,C,…] is needed, with the channels on axis 1",
                           infer_shape_text(f, &f->shape));
    for (uint32_t i = 1; i < f->nin; i++) {
        struct shape s = infer_in_shape(f, i);
        uint32_t n;
        const char *name = op_operand_name(f->op, i, &n);
        if (s.rank != 1 || !infer_same_dim(f, f->shape.dim[1], s.dim[0], &f->shape.dim[1]))
            return infer_error(f, "%.*s has shape %s; the channels of %s ask for [%s]", (int)n,
                               name, infer_shape_text(f, &s), infer_shape_text(f, &f->shape),
                               infer_dim_text(f, f->shape.dim[1]));
    }
    infer_to_float(f, f->nin);
    return true;
}

static bool
group_norm(struct inference *f)
{
    if (!check_channels(f) || !check_eps(f, f->attr[1]))
        return false;
    int64_t channels = infer_hint(f, f->shape.dim[1]), groups = f->attr[0];
    return (groups > 0 && channels % groups == 0) ||
           infer_error(f, "%lld groups of the %lld channels of %s; their number must be a divisor",
                       (long long)groups, (long long)channels, infer_shape_text(f, &f->shape));
}

// x: numbers of N rows and C classes, targets: a class of each row. f16 and bf16 as f32: the mean
// of many rows needs that.
static bool
rows_and_targets(struct inference *f, const char *what)
{
    struct shape x = infer_in_shape(f, 0), target = infer_in_shape(f, 1);
    sym rows;
    if (x.rank != 2 || target.rank != 1 || !infer_same_dim(f, x.dim[0], target.dim[0], &rows))
        return infer_error(f, "%s %s and targets %s; they must be [N,C] and [N]", what,
                           infer_shape_text(f, &x), infer_shape_text(f, &target));
    if (!infer_is_index(f, 1))
        return infer_error(f, "the targets have dtype %s; cast them to i64",
                           dtype_name(infer_in_dtype(f, 1)));
    if (!infer_hint(f, x.dim[1]))
        return infer_error(f, "axis 1 of %s is empty: there are no classes",
                           infer_shape_text(f, &x));
    infer_to_float(f, 1);
    if (dtype_is_half(f->dtype))
        infer_cast_in(f, 0, f->dtype = DT_f32);
    f->shape.rank = 0;
    return true;
}

// Of the batch f->shape: the scores [T, S], and what they are made of and what is made of them.
static bool
check_scores(struct inference *f, sym t, sym d, sym s, sym e)
{
    struct shape scores = f->shape;
    scores.dim[scores.rank++] = t;
    scores.dim[scores.rank++] = s;
    return infer_size(f, &scores, "an array of scores") && infer_factors(f, &f->shape, t, d, s) &&
           infer_factors(f, &f->shape, t, s, e);
}

// q [..., T, D], k [..., S, D], v [..., S, E]; mask: over [..., T, S].
static bool
attention(struct inference *f)
{
    struct shape s[3], batch[3];
    for (uint32_t i = 0; i < 3; i++)
        s[i] = batch[i] = infer_in_shape(f, i);
    if (s[0].rank < 2 || s[1].rank < 2 || s[2].rank < 2)
        return infer_error(f, "q, k and v of shapes %s, %s and %s; each needs two axes or more",
                           infer_shape_text(f, &s[0]), infer_shape_text(f, &s[1]),
                           infer_shape_text(f, &s[2]));
    for (uint32_t i = 0; i < 3; i++)
        batch[i].rank = (uint8_t)(s[i].rank - 2);
    sym depth, length;
    if (!infer_same_dim(f, s[0].dim[s[0].rank - 1], s[1].dim[s[1].rank - 1], &depth) ||
        !infer_same_dim(f, s[1].dim[s[1].rank - 2], s[2].dim[s[2].rank - 2], &length))
        return infer_error(f, "q %s, k %s and v %s; they must be [...,T,D], [...,S,D] and "
                              "[...,S,E]", infer_shape_text(f, &s[0]), infer_shape_text(f, &s[1]),
                           infer_shape_text(f, &s[2]));
    if (!infer_broadcast(f, batch, 3, "batch shapes", &f->shape) ||
        !check_scores(f, s[0].dim[s[0].rank - 2], depth, length, s[2].dim[s[2].rank - 1]))
        return false;
    f->shape.dim[f->shape.rank++] = s[0].dim[s[0].rank - 2];
    f->shape.dim[f->shape.rank++] = s[2].dim[s[2].rank - 1];
    if (f->op == OP_masked_attention) {
        struct shape scores = f->shape, both[] = {infer_in_shape(f, 3), scores}, joined;
        both[1].dim[scores.rank - 1] = scores.dim[scores.rank - 1] = length;
        if (!is_bool(f, 3) || !infer_broadcast(f, both, 2, "mask and scores of shapes", &joined))
            return false;
        if (!shape_equal(&joined, &scores))
            return infer_error(f, "the mask %s is larger than the scores %s",
                               infer_shape_text(f, &both[0]), infer_shape_text(f, &scores));
    }
    infer_to_float(f, 3);
    return true;
}

// x [..., T, D]; cos and sin: over [..., T, D / 2].
static bool
rope(struct inference *f)
{
    struct shape half = f->shape = infer_in_shape(f, 0), joined;
    if (!half.rank || infer_hint(f, half.dim[half.rank - 1]) % 2)
        return infer_error(f, "shape %s; the last axis must have an even size",
                           infer_shape_text(f, &half));
    half.dim[half.rank - 1] = sym_num(infer_hint(f, half.dim[half.rank - 1]) / 2);
    struct shape all[] = {half, infer_in_shape(f, 1), infer_in_shape(f, 2)};
    if (!infer_broadcast(f, all, 3, "half of x, cos and sin of shapes", &joined))
        return false;
    for (uint32_t d = 0; d < joined.rank; d++)
        if (joined.rank != half.rank || infer_hint(f, joined.dim[d]) != infer_hint(f, half.dim[d]))
            return infer_error(f, "cos %s and sin %s are larger than half of x, %s",
                               infer_shape_text(f, &all[1]), infer_shape_text(f, &all[2]),
                               infer_shape_text(f, &half));
    infer_to_float(f, 3);
    return true;
}

bool
infer_composite(struct inference *f)
{
    switch (f->op) {
    case OP_masked_softmax:
        return masked_softmax(f);
    case OP_group_norm:
        return group_norm(f);
    case OP_batch_norm:
        return check_channels(f) && check_eps(f, f->attr[0]);
    case OP_nll_loss:
        return rows_and_targets(f, "log-probabilities");
    case OP_cross_entropy:
        return rows_and_targets(f, "logits");
    case OP_attention:
    case OP_masked_attention:
        return attention(f);
    case OP_rope:
        return rope(f);
    default:
        return infer_error(f, "has no inference rule");
    }
}
