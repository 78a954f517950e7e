// infer_order.c: dtypes and shapes of the order ops. The result has the operand's shape, but k
// elements along the axis where only so many are asked for.
#include "ir/infer.h"
#include "ir/order.h"

bool
infer_order(struct inference *f)
{
    bool some = f->op == OP_topk || f->op == OP_argtopk;
    int64_t k = f->attr[0], *axis = &f->attr[some];
    f->shape = infer_in_shape(f, 0);
    f->dtype = op_gives_position(f->op) ? DT_i64 : infer_in_dtype(f, 0);
    if (!infer_axis(f, axis, &f->shape))
        return false;
    if (!some)
        return true;
    sym *dim = &f->shape.dim[*axis];
    if (k < 0 || k > infer_hint(f, *dim))
        return infer_error(f, "k is %lld, and axis %lld of %s has %s elements; use 0 to %s",
                           (long long)k, (long long)*axis, infer_shape_text(f, &f->shape),
                           infer_dim_text(f, *dim), infer_dim_text(f, *dim));
    *dim = sym_num(k);
    return true;
}
