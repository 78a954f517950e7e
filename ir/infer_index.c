// infer_index.c: shapes of ops that read at positions given by data, or make positions. Index
// operands keep their own integer dtype; u64 is refused because positions are signed.
#include "ir/infer.h"

static bool
check_index(struct inference *f, uint32_t i)
{
    return infer_is_index(f, i) || infer_error(f, "the index has dtype %s; cast it to i64",
                                               dtype_name(infer_in_dtype(f, i)));
}

// Operand i gives a window's start: one integer for each axis of x.
static bool
check_start(struct inference *f, uint32_t i, const struct shape *x)
{
    struct shape s = infer_in_shape(f, i);
    if (!infer_is_index(f, i))
        return infer_error(f, "the start has dtype %s; cast it to i64",
                           dtype_name(infer_in_dtype(f, i)));
    if (s.rank != 1 || infer_hint(f, s.dim[0]) != x->rank)
        return infer_error(f, "the start has shape %s; %s asks for [%u], an integer for each axis",
                           infer_shape_text(f, &s), infer_shape_text(f, x), x->rank);
    return true;
}

// A window of shape w has as many axes as x and is nowhere longer.
static bool
check_window(struct inference *f, const struct shape *x, const struct shape *w)
{
    if (w->rank != x->rank)
        return infer_error(f, "a window of shape %s in %s; both need the same number of axes",
                           infer_shape_text(f, w), infer_shape_text(f, x));
    for (uint32_t i = 0; i < x->rank; i++)
        if (infer_hint(f, w->dim[i]) < 0 || infer_hint(f, w->dim[i]) > infer_hint(f, x->dim[i]))
            return infer_error(f, "a window of shape %s in %s; axis %u may be 0 to %s",
                               infer_shape_text(f, w), infer_shape_text(f, x), i,
                               infer_dim_text(f, x->dim[i]));
    return true;
}

static bool
iota(struct inference *f)
{
    f->dtype = DT_i64;
    f->shape.rank = (uint8_t)f->attr[0];
    for (uint32_t i = 0; i < f->shape.rank; i++)
        f->shape.dim[i] = (sym){f->attr[1 + i]};
    return infer_axis(f, &f->attr[1 + f->shape.rank], &f->shape);
}

static bool
random_bits(struct inference *f)
{
    f->dtype = (uint8_t)f->attr[f->attr[0] + 1];
    if (f->dtype != DT_u32 && f->dtype != DT_u64)
        return infer_error(f, "gives u32 or u64, not %s; uniform and normal give floats",
                           dtype_name(f->dtype));
    return infer_random(f, 0);
}

static bool
take(struct inference *f)
{
    struct shape x = infer_in_shape(f, 0), index = infer_in_shape(f, 1);
    if (!check_index(f, 1) || !infer_axis(f, &f->attr[0], &x))
        return false;
    uint32_t axis = (uint32_t)f->attr[0], n = 0;
    if (x.rank + index.rank - 1 > MAX_RANK)
        return infer_error(f, "shape %s indexed by %s has more than %d axes",
                           infer_shape_text(f, &x), infer_shape_text(f, &index), MAX_RANK);
    for (uint32_t i = 0; i < axis; i++)
        f->shape.dim[n++] = x.dim[i];
    for (uint32_t i = 0; i < index.rank; i++)
        f->shape.dim[n++] = index.dim[i];
    for (uint32_t i = axis + 1; i < x.rank; i++)
        f->shape.dim[n++] = x.dim[i];
    f->shape.rank = (uint8_t)n;
    return true;
}

static bool
take_along(struct inference *f)
{
    struct shape x = infer_in_shape(f, 0), index = infer_in_shape(f, 1);
    if (!check_index(f, 1) || !infer_axis(f, &f->attr[0], &x))
        return false;
    if (x.rank != index.rank)
        return infer_error(f, "shapes %s and %s have different ranks; reshape one",
                           infer_shape_text(f, &x), infer_shape_text(f, &index));
    f->shape = index;
    for (uint32_t i = 0; i < x.rank; i++)
        if (i != f->attr[0] && !infer_same_dim(f, x.dim[i], index.dim[i], &f->shape.dim[i]))
            return infer_error(f, "shapes %s and %s differ on axis %u; only axis %lld may differ",
                               infer_shape_text(f, &x), infer_shape_text(f, &index), i,
                               (long long)f->attr[0]);
    return true;
}

static bool
dynamic_slice(struct inference *f)
{
    struct shape x = infer_in_shape(f, 0);
    f->shape.rank = (uint8_t)f->attr[0];
    for (uint32_t i = 0; i < f->shape.rank; i++)
        f->shape.dim[i] = (sym){f->attr[1 + i]};
    return check_window(f, &x, &f->shape) && check_start(f, 1, &x);
}

// Operand i takes x's dtype, if that can hold all its values as promotion sees it.
static bool
cast_to_target(struct inference *f, uint32_t i)
{
    uint8_t own = infer_in_dtype(f, i);
    if (dtype_promote(f->dtype, own) != f->dtype)
        return infer_error(f, "%s has no room for values of %s; cast one of the two",
                           dtype_name(f->dtype), dtype_name(own));
    infer_cast_in(f, i, f->dtype);
    return true;
}

static bool
slice_update(struct inference *f)
{
    struct shape window = infer_in_shape(f, 1);
    f->shape = infer_in_shape(f, 0);
    return check_window(f, &f->shape, &window) && check_start(f, 2, &f->shape) &&
           cast_to_target(f, 1);
}

static bool
one_hot(struct inference *f)
{
    f->shape = infer_in_shape(f, 0);
    if (f->shape.rank == MAX_RANK)
        return infer_error(f, "shape %s has %d axes already; a new one does not fit",
                           infer_shape_text(f, &f->shape), MAX_RANK);
    if (f->attr[0] < 0)
        return infer_error(f, "classes is %lld; it must not be negative", (long long)f->attr[0]);
    if (f->attr[1] <= DT_NONE || f->attr[1] >= DT_COUNT)
        return infer_error(f, "no such dtype");
    f->shape.dim[f->shape.rank++] = sym_num(f->attr[0] < SYM_HUGE ? f->attr[0] : SYM_HUGE);
    f->dtype = (uint8_t)f->attr[1];
    return check_index(f, 0);
}

// Operand i is broadcast to a shape.
static bool
broadcast_to(struct inference *f, uint32_t i, const struct shape *to)
{
    struct shape from = infer_in_shape(f, i);
    if (shape_equal(&from, to))
        return true;
    bool fits = from.rank <= to->rank;
    for (uint32_t d = 0; fits && d < from.rank; d++) {
        sym same;
        fits = infer_hint(f, from.dim[d]) == 1 ||
               infer_same_dim(f, from.dim[d], to->dim[to->rank - from.rank + d], &same);
    }
    if (!fits)
        return infer_error(f, "updates of shape %s do not broadcast to %s, what the index names; "
                           "reshape or permute them",
                           infer_shape_text(f, &from), infer_shape_text(f, to));
    int64_t attr[MAX_RANK + 1] = {to->rank};
    for (uint32_t d = 0; d < to->rank; d++)
        attr[1 + d] = to->dim[d].v;
    f->in[i] = graph_add(f->g, OP_broadcast, infer_in_dtype(f, i), graph_add_shape(f->g, to),
                         graph_add_attr(f->g, attr, to->rank + 1u), &f->in[i], 1, f->origin);
    return true;
}

// The updates have the shape of what take, or take_along, would read.
static bool
scatter(struct inference *f)
{
    bool along = op_table[f->op].flags & OPF_ALONG;
    if (!(along ? take_along(f) : take(f)))
        return false;
    struct shape window = f->shape;
    f->shape = infer_in_shape(f, 0);
    return infer_size(f, &window, "an array of updates") && cast_to_target(f, 2) &&
           broadcast_to(f, 2, &window);
}

bool
infer_index(struct inference *f)
{
    if (f->nin)
        f->dtype = infer_in_dtype(f, 0);
    if (op_is(f->op, OPK_SCATTER))
        return scatter(f);
    switch (f->op) {
    case OP_iota:
        return iota(f);
    case OP_take:
        return take(f);
    case OP_take_along:
        return take_along(f);
    case OP_dynamic_slice:
        return dynamic_slice(f);
    case OP_slice_update:
        return slice_update(f);
    case OP_one_hot:
        return one_hot(f);
    case OP_random_bits:
        return random_bits(f);
    default:
        return infer_error(f, "has no inference rule");
    }
}
