// infer_view.c: shapes of views. Attribute rows leave here in normal form: reshape without -1, axes
// non-negative, slices with 0 <= start, a step of 1 where at most one element is taken, and the
// tightest stop, so that equal views are equal nodes.
#include "ir/infer.h"

// reshape's one -1: what is left of the input's elements once the other dims are taken out.
static bool
solve_dim(struct inference *f, const struct shape *from, struct shape *to, uint32_t unknown)
{
    struct symtab *t = f->g->sym;
    bool used[MAX_RANK] = {0};
    sym rest = sym_num(1), given = sym_num(1);
    int64_t total = shape_count(f->g, from), known = 1;
    for (uint32_t i = 0; i < to->rank; i++) {
        if (i == unknown)
            continue;
        known *= infer_hint(f, to->dim[i]);
        uint32_t k = 0;
        while (k < from->rank && (used[k] || from->dim[k].v != to->dim[i].v))
            k++;
        if (k < from->rank)
            used[k] = true;
        else
            given = sym_mul(t, given, to->dim[i]);
    }
    if (!known || total % known)
        return infer_error(f, "%s has %lld elements; axis %u of %s cannot be inferred from them",
                           infer_shape_text(f, from), (long long)total, unknown,
                           infer_shape_text(f, to));
    for (uint32_t k = 0; k < from->rank; k++)
        if (!used[k])
            rest = sym_mul(t, rest, from->dim[k]);
    sym *dim = &to->dim[unknown];
    if (!sym_is_num(given) || !sym_div(t, rest, given.v, dim))
        *dim = sym_num(total / known);
    return true;
}

static sym
product(struct inference *f, const struct shape *s)
{
    sym p = sym_num(1);
    for (uint32_t i = 0; i < s->rank; i++)
        p = sym_mul(f->g->sym, p, s->dim[i]);
    return p;
}

// The dims attribute: no dim negative, but one -1 where `unknown` is given.
static bool
dims_attr(struct inference *f, struct shape *s, int64_t *unknown)
{
    s->rank = (uint8_t)f->attr[0];
    for (uint32_t i = 0; i < s->rank; i++)
        s->dim[i] = (sym){f->attr[1 + i]};
    int64_t bytes = 8;
    for (uint32_t i = 0; i < s->rank; i++) {
        int64_t d = infer_hint(f, s->dim[i]);
        if (d == -1 && unknown && *unknown < 0)
            *unknown = i;
        else if (d == -1 && unknown)
            return infer_error(f, "shape %s has -1 on axes %lld and %u; only one size can be found",
                               infer_shape_text(f, s), (long long)*unknown, i);
        else if (d < 0)
            return infer_error(f, "axis %u of shape %s is negative", i, infer_shape_text(f, s));
        else if (__builtin_mul_overflow(bytes, d ? d : 1, &bytes) || bytes > SYM_HUGE)
            return infer_error(f, "shape %s is too large to address", infer_shape_text(f, s));
    }
    return true;
}

static bool
reshape(struct inference *f)
{
    struct shape from = infer_in_shape(f, 0), to = {0};
    int64_t unknown = -1;
    if (!dims_attr(f, &to, &unknown))
        return false;
    if (unknown >= 0 && !solve_dim(f, &from, &to, (uint32_t)unknown))
        return false;
    if (sym_eq(f->g->sym, product(f, &from), product(f, &to)) == SYM_NO &&
        shape_count(f->g, &from) != shape_count(f->g, &to))
        return infer_error(f, "%s has %lld elements and %s has %lld; the counts must be equal",
                           infer_shape_text(f, &from), (long long)shape_count(f->g, &from),
                           infer_shape_text(f, &to), (long long)shape_count(f->g, &to));
    for (uint32_t i = 0; i < to.rank; i++)
        f->attr[1 + i] = to.dim[i].v;
    f->shape = to;
    return true;
}

static bool
permute(struct inference *f)
{
    struct shape from = infer_in_shape(f, 0);
    bool named[MAX_RANK] = {0};
    if (f->attr[0] != from.rank)
        return infer_error(f, "%lld axes given for shape %s; name each of its %u axes once",
                           (long long)f->attr[0], infer_shape_text(f, &from), from.rank);
    f->shape.rank = from.rank;
    for (uint32_t i = 0; i < from.rank; i++) {
        int64_t *axis = &f->attr[1 + i];
        if (!infer_axis(f, axis, &from))
            return false;
        if (named[*axis])
            return infer_error(f, "axis %lld of %s is named twice", (long long)*axis,
                               infer_shape_text(f, &from));
        named[*axis] = true;
        f->shape.dim[i] = from.dim[*axis];
    }
    return true;
}

static bool
broadcast(struct inference *f)
{
    struct shape from = infer_in_shape(f, 0), to = {0};
    if (!dims_attr(f, &to, NULL))
        return false;
    if (from.rank > to.rank)
        return infer_error(f, "%s has more axes than %s; reshape it first",
                           infer_shape_text(f, &from), infer_shape_text(f, &to));
    for (uint32_t i = 0; i < from.rank; i++) {
        uint32_t at = to.rank - from.rank + i;
        sym same;
        if (infer_hint(f, from.dim[i]) != 1 && !infer_same_dim(f, from.dim[i], to.dim[at], &same))
            return infer_error(f, "%s does not broadcast to %s: axis %u is %s and not 1 or %s",
                               infer_shape_text(f, &from), infer_shape_text(f, &to), i,
                               infer_dim_text(f, from.dim[i]), infer_dim_text(f, to.dim[at]));
    }
    f->shape = to;
    return true;
}

struct range {
    int64_t start, stop, step, count;
};

static int64_t
clamped(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

// n elements; negative starts (and, with a positive step, stops) count from the end.
static bool
slice_axis(struct inference *f, uint32_t axis, int64_t n, struct range *r)
{
    if (!r->step)
        return infer_error(f, "the step of axis %u is 0; use 1 for every element", axis);
    if (r->step < 0 && r->stop < -1)
        return infer_error(f, "axis %u stops at %lld with a negative step; use -1 for past the "
                              "front", axis, (long long)r->stop);
    int64_t back = r->step < 0;
    int64_t start = clamped(r->start < 0 ? r->start + n : r->start, -back, n - back);
    int64_t stop = clamped(r->stop < 0 && !back ? r->stop + n : r->stop, -back, n - back);
    uint64_t span = (uint64_t)(back ? start - stop : stop - start);
    uint64_t step = back ? 0 - (uint64_t)r->step : (uint64_t)r->step;
    r->count = (back ? start > stop : start < stop) ? (int64_t)((span - 1) / step) + 1 : 0;
    if (r->count <= 1)
        r->step = 1;
    r->start = r->count ? start : 0;
    r->stop = r->count ? start + (r->count - 1) * r->step + (r->step < 0 ? -1 : 1) : 0;
    return true;
}

static bool
slice(struct inference *f)
{
    struct shape from = infer_in_shape(f, 0);
    uint32_t rank = from.rank, row = rank + 1;
    if (f->nattr != 3 * row || f->attr[0] != rank || f->attr[row] != rank)
        return infer_error(f, "start, stop and step need one entry for each of the %u axes of %s",
                           rank, infer_shape_text(f, &from));
    f->shape = from;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t *start = &f->attr[1 + i], *stop = start + row, *step = stop + row;
        struct range r = {*start, *stop, *step, 0};
        int64_t n = infer_hint(f, from.dim[i]);
        if (!slice_axis(f, i, n, &r))
            return false;
        *start = r.start;
        *stop = r.stop;
        *step = r.step;
        if (r.count != n)
            f->shape.dim[i] = sym_num(r.count);
    }
    return true;
}

static bool
flip(struct inference *f)
{
    f->shape = infer_in_shape(f, 0);
    return infer_axes(f, &f->attr[1], f->attr[0], &f->shape);
}

static bool
pad(struct inference *f)
{
    struct shape from = infer_in_shape(f, 0);
    uint32_t rank = from.rank, row = rank + 1;
    if (f->nattr != 2 * row + 1 || f->attr[0] != rank)
        return infer_error(f, "low and high need one entry for each of the %u axes of %s", rank,
                           infer_shape_text(f, &from));
    f->shape = from;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t low = f->attr[1 + i], high = f->attr[1 + row + i];
        if (low < 0 || high < 0)
            return infer_error(f, "axis %u is padded by %lld and %lld; use slice to take elements "
                                  "away", i, (long long)low, (long long)high);
        sym wider = sym_add(f->g->sym, from.dim[i], sym_num(low < SYM_HUGE ? low : SYM_HUGE));
        f->shape.dim[i] = sym_add(f->g->sym, wider, sym_num(high < SYM_HUGE ? high : SYM_HUGE));
    }
    return true;
}

static bool
concat(struct inference *f)
{
    struct shape all = infer_in_shape(f, 0);
    if (!infer_axis(f, &f->attr[0], &all))
        return false;
    uint32_t axis = (uint32_t)f->attr[0];
    for (uint32_t i = 1; i < f->nin; i++) {
        struct shape s = infer_in_shape(f, i), first = infer_in_shape(f, 0);
        if (s.rank != all.rank)
            return infer_error(f, "shapes %s and %s have different ranks; reshape one",
                               infer_shape_text(f, &first), infer_shape_text(f, &s));
        for (uint32_t k = 0; k < s.rank; k++)
            if (k != axis && !infer_same_dim(f, all.dim[k], s.dim[k], &all.dim[k]))
                return infer_error(f, "shapes %s and %s differ on axis %u; only axis %u may differ",
                                   infer_shape_text(f, &first), infer_shape_text(f, &s), k, axis);
        all.dim[axis] = sym_add(f->g->sym, all.dim[axis], s.dim[axis]);
    }
    f->dtype = infer_promoted(f, 0, f->nin);
    for (uint32_t i = 0; i < f->nin; i++)
        infer_cast_in(f, i, f->dtype);
    f->shape = all;
    return true;
}

bool
infer_view(struct inference *f)
{
    f->dtype = infer_in_dtype(f, 0);
    switch (f->op) {
    case OP_reshape:
        return reshape(f);
    case OP_permute:
        return permute(f);
    case OP_broadcast:
        return broadcast(f);
    case OP_slice:
        return slice(f);
    case OP_flip:
        return flip(f);
    case OP_pad:
        return pad(f);
    case OP_concat:
        return concat(f);
    default:
        return infer_error(f, "has no inference rule");
    }
}
