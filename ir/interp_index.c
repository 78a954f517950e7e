// interp_index.c: the graph interpreter's rules of ops that read or write at positions given by
// data. An index out of range leaves the result as if that element were 0, or were not there, and
// an error that names the op.
#include "ir/interp_walk.h"

#include "ir/base/check.h"
#include "ir/base/str.h"
#include "ir/expand.h"

int64_t
interp_position(const struct interp_node *x, int64_t index, int64_t n, int64_t axis,
                const struct walk *at)
{
    int64_t i = index < 0 ? index + n : index;
    if (i >= 0 && i < n)
        return i;
    struct str s = {0};
    for (uint32_t k = 0; k < at->rank; k++)
        str_printf(&s, "%s%lld", k ? "," : "", (long long)at->at[k]);
    diag_set(x->d, DIAG_INDEX, "%s: index %lld for result [%s] is out of range for axis %lld of "
                               "size %lld", op_name(x->n->op), (long long)index, str_text(&s),
             (long long)axis, (long long)n);
    str_free(&s);
    return -1;
}

// Walks over the points that an index names elements of x at: those of shape `window`, whose axes
// are x's with the index's in place of axis (op.._along: the index's own). Both tensors are given
// these axes: x does not move along those of the index, the index does not move along those of x;
// position times stride does the rest. Offset 0 is x's, offset 1 the index's.
static void
walk_indexed(const struct interp_node *n, const struct tensor *x, const struct tensor *window,
             struct walk *w)
{
    const struct tensor *index = n->in[1];
    bool along = op_table[n->n->op].flags & OPF_ALONG;
    uint32_t axis = (uint32_t)n->attr[0], wide = along ? 1 : index->rank;
    struct tensor a = *window, b = *window;
    for (uint32_t i = 0; i < window->rank; i++) {
        bool indexed = i >= axis && i < axis + wide;
        a.stride[i] = indexed ? 0 : x->stride[i < axis ? i : i - wide + 1];
        b.stride[i] = along ? index->stride[i] : indexed ? index->stride[i - axis] : 0;
    }
    walk_start(w, window->rank, window->dim);
    walk_follow(w, &a);
    walk_follow(w, &b);
}

static void
take(const struct interp_node *x)
{
    const struct tensor *from = x->in[0], *index = x->in[1];
    uint32_t axis = (uint32_t)x->attr[0];
    struct walk w;
    walk_indexed(x, from, x->out, &w);
    for (int64_t k = 0; w.left; walk_next(&w), k++) {
        int64_t i = scalar_to_int(index->dtype, tensor_get(index, w.offset[1]));
        i = interp_position(x, i, from->dim[axis], axis, &w);
        if (i >= 0)
            tensor_put(x->out, k, tensor_get(from, w.offset[0] + i * from->stride[axis]));
    }
}

static void
iota(const struct interp_node *x)
{
    struct walk w;
    walk_start(&w, x->out->rank, x->out->dim);
    int64_t axis = x->attr[1 + x->out->rank];
    for (int64_t k = 0; w.left; walk_next(&w), k++)
        tensor_put(x->out, k, (uint64_t)w.at[axis]);
}

static void
outside_window(const struct interp_node *x, const int64_t *start, const struct tensor *whole,
               const int64_t *size)
{
    struct str s = {0};
    for (uint32_t d = 0; d < whole->rank; d++)
        str_printf(&s, "%s%lld:%lld of %lld", d ? ", " : "", (long long)start[d],
                   (long long)(start[d] + size[d]), (long long)whole->dim[d]);
    diag_set(x->d, DIAG_INDEX, "%s: the window [%s] is out of range", op_name(x->n->op),
             str_text(&s));
    str_free(&s);
}

// The start of a window of the given size on each axis of t, from a tensor of one integer an axis;
// negative ones wrap once. A window with elements that is not inside t is an error, and is moved.
// (In the words of the error positions so far off that adding to them would overflow are nearer
// by.)
static void
window_start(const struct interp_node *x, const struct tensor *index, const struct tensor *t,
             const int64_t *size, int64_t *start)
{
    bool inside = true, empty = false;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t i = scalar_to_int(index->dtype, tensor_get(index, d * index->stride[0]));
        i += i < 0 ? t->dim[d] : 0;
        inside &= i >= 0 && i <= t->dim[d] - size[d];
        empty |= size[d] == 0;
        start[d] = i < -size[d] ? -size[d] : i > t->dim[d] ? t->dim[d] : i;
    }
    if (inside || empty)
        return;
    outside_window(x, start, t, size);
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t last = t->dim[d] - size[d];
        start[d] = start[d] < 0 ? 0 : start[d] > last ? last : start[d];
    }
}

// Where in t the element is that the window's point w is on.
static int64_t
window_offset(const struct tensor *t, const int64_t *start, const struct walk *w)
{
    int64_t offset = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        offset += (start[d] + w->at[d]) * t->stride[d];
    return offset;
}

static void
dynamic_slice(const struct interp_node *x)
{
    const struct tensor *from = x->in[0];
    int64_t start[MAX_RANK];
    window_start(x, x->in[1], from, x->out->dim, start);
    struct walk w;
    walk_start(&w, x->out->rank, x->out->dim);
    for (int64_t k = 0; w.left; walk_next(&w), k++)
        tensor_put(x->out, k, tensor_get(from, window_offset(from, start, &w)));
}

static void
slice_update(const struct interp_node *x)
{
    const struct tensor *update = x->in[1];
    int64_t start[MAX_RANK];
    interp_copy(x->out, x->in[0]);
    window_start(x, x->in[2], x->out, update->dim, start);
    struct walk w;
    walk_start(&w, update->rank, update->dim);
    walk_follow(&w, update);
    for (; w.left; walk_next(&w))
        tensor_put(x->out, window_offset(x->out, start, &w), tensor_get(update, w.offset[0]));
}

static void
one_hot(const struct interp_node *x)
{
    const struct tensor *index = x->in[0];
    int64_t classes = x->attr[0];
    struct walk w;
    walk_start(&w, index->rank, index->dim);
    walk_follow(&w, index);
    for (int64_t k = 0; w.left; walk_next(&w), k += classes) {
        int64_t i = scalar_to_int(index->dtype, tensor_get(index, w.offset[0]));
        if (i >= 0 && i < classes)
            tensor_put(x->out, k + i, scalar_from_int(x->out->dtype, 1));
    }
}

// Sums of half types are taken in f32 and rounded at the end. Where there is no element nothing is
// computed, so no index is looked at.
static void
scatter(const struct interp_node *x)
{
    const struct tensor *index = x->in[1], *update = x->in[2];
    uint8_t dtype = x->out->dtype;
    struct tensor sum = *x->out;
    uint16_t combine = op_table[x->n->op].combine;
    uint32_t axis = (uint32_t)x->attr[0];
    sum.dtype = dtype_is_half(dtype) ? DT_f32 : dtype;
    sum.data = xcalloc((size_t)tensor_count(&sum) + 1, dtype_size(sum.dtype));
    interp_copy(&sum, x->in[0]);
    struct walk w;
    walk_indexed(x, &sum, update, &w);
    walk_follow(&w, update);
    for (w.left = tensor_count(&sum) ? w.left : 0; w.left; walk_next(&w)) {
        int64_t i = scalar_to_int(index->dtype, tensor_get(index, w.offset[1]));
        i = interp_position(x, i, sum.dim[axis], axis, &w);
        if (i < 0)
            continue;
        int64_t at = w.offset[0] + i * sum.stride[axis];
        uint64_t v = tensor_get(update, w.offset[2]);
        v = eval_primitive(OP_cast, dtype, sum.dtype, v, 0, 0);
        if (combine)
            v = eval_primitive(combine, sum.dtype, sum.dtype, tensor_get(&sum, at), v, 0);
        tensor_put(&sum, at, v);
    }
    interp_copy(x->out, &sum);
    xfree(sum.data);
}

void
interp_index(const struct interp_node *x)
{
    if (op_is(x->n->op, OPK_SCATTER))
        return scatter(x);
    switch (x->n->op) {
    case OP_iota:
        return iota(x);
    case OP_take:
    case OP_take_along:
        return take(x);
    case OP_dynamic_slice:
        return dynamic_slice(x);
    case OP_slice_update:
        return slice_update(x);
    case OP_one_hot:
        return one_hot(x);
    case OP_random_bits:
        return interp_random(x);
    default:
        CHECK(false, "no rule for %s", op_name(x->n->op));
    }
}
