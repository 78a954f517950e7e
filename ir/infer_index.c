// infer_index.c: shapes of ops that read at positions given by data, or make positions. Index
// operands keep their own integer dtype; u64 is refused because positions are signed.
#include "ir/infer.h"

static bool
check_index(struct inference *f, uint32_t i)
{
    uint8_t d = infer_in_dtype(f, i);
    if (!dtype_is_int(d) || d == DT_u64)
        return infer_error(f, "the index has dtype %s; cast it to i64", dtype_name(d));
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
        return infer_error(f, "shapes %s and %s have different ranks", infer_shape_text(f, &x),
                           infer_shape_text(f, &index));
    f->shape = index;
    for (uint32_t i = 0; i < x.rank; i++)
        if (i != f->attr[0] && !infer_same_dim(f, x.dim[i], index.dim[i], &f->shape.dim[i]))
            return infer_error(f, "shapes %s and %s differ on axis %u; only axis %lld may differ",
                               infer_shape_text(f, &x), infer_shape_text(f, &index), i,
                               (long long)f->attr[0]);
    return true;
}

bool
infer_index(struct inference *f)
{
    if (f->op == OP_iota)
        return iota(f);
    f->dtype = infer_in_dtype(f, 0);
    return f->op == OP_take ? take(f) : take_along(f);
}
