// interp_order.c: the order ops as the interpreters compute them: a line is collected, merged by
// comparing elements as numbers, and the first k are what the op gives.
#include "ir/order.h"

#include "ir/interp_walk.h"

#include <math.h>
#include <string.h>

struct order
order_of(uint16_t op, const int64_t *attr)
{
    if (op == OP_topk || op == OP_argtopk)
        return (struct order){.axis = attr[1], .k = attr[0], .descending = attr[2]};
    return (struct order){.axis = attr[0], .k = -1, .descending = attr[1]};
}

bool
order_less(uint8_t dtype, uint64_t x, uint64_t y)
{
    if (dtype_is_float(dtype)) {
        double a = scalar_to_double(dtype, x), b = scalar_to_double(dtype, y);
        return a < b || (isnan(b) && !isnan(a));
    }
    if (dtype_table[dtype].kind == DTK_SINT)
        return scalar_to_int(dtype, x) < scalar_to_int(dtype, y);
    return x < y;
}

void
order_items(struct order_item *item, int64_t n, uint8_t dtype, bool descending)
{
    struct order_item *to = xmalloc((size_t)n * sizeof *to), *from = item;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t at = 0; at < n; at += 2 * run) {
            int64_t i = at, mid = at + run < n ? at + run : n, j = mid;
            int64_t end = mid + run < n ? mid + run : n;
            for (int64_t k = at; k < end; k++) {
                bool second = i == mid;
                if (i < mid && j < end)
                    second = descending ? order_less(dtype, from[i].bits, from[j].bits)
                                        : order_less(dtype, from[j].bits, from[i].bits);
                to[k] = second ? from[j++] : from[i++];
            }
        }
        struct order_item *swap = from;
        from = to;
        to = swap;
    }
    if (from != item && n)
        memcpy(item, from, (size_t)n * sizeof *item);
    xfree(from != item ? from : to);
}

void
interp_order(const struct interp_node *x)
{
    const struct tensor *from = x->in[0], *out = x->out;
    struct order o = order_of(x->n->op, x->attr);
    int64_t n = from->dim[o.axis], k = out->dim[o.axis];
    bool position = op_gives_position(x->n->op);
    struct order_item *line = xmalloc((size_t)n * sizeof *line);
    struct tensor first = *out; // lines: the axis held at its first element
    first.dim[o.axis] = 1;
    struct tensor source = *from;
    source.dim[o.axis] = 1;
    struct walk w;
    walk_start(&w, out->rank, first.dim);
    walk_follow(&w, &source);
    walk_follow(&w, &first);
    for (; w.left; walk_next(&w)) {
        for (int64_t i = 0; i < n; i++)
            line[i] = (struct order_item){
                tensor_get(from, w.offset[0] + i * from->stride[o.axis]), i};
        order_items(line, n, from->dtype, o.descending);
        for (int64_t i = 0; i < k; i++)
            tensor_put(out, w.offset[1] + i * out->stride[o.axis],
                       position ? (uint64_t)line[i].position : line[i].bits);
    }
    xfree(line);
}
