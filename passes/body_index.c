// body_index.c: bodies of ops that read or write at positions given by data.
//
// The position of take differs from element to element: the load has an extra index and a check
// that raises the launch's error. The start of a window is the same for all of its elements: it is
// an extra index of level ONCE, so that what runs along memory is still loaded in vectors. The
// error is raised where the start is computed (OP_checked), not for each element, and the window
// moved inside: what is read in it needs no mask.
#include "passes/body.h"

#include "ir/base/check.h"
#include "ir/base/mem.h"

#include <stdlib.h>

static uint32_t
body_where(struct body *b, uint8_t dtype, uint32_t cond, uint32_t x, uint32_t y)
{
    return body_inst(b, (struct inst){.op = OP_where, .dtype = dtype, .a = cond, .b = x, .c = y});
}

// An i64 compared with a number.
static uint32_t
compared(struct body *b, uint16_t op, uint32_t x, int64_t y)
{
    return body_binary(b, op, DT_bool, x, body_literal(b, DT_i64, (uint64_t)y));
}

// 0 <= at < n, in one comparison of unsigned numbers.
static uint32_t
below_size(struct body *b, uint32_t at, int64_t n)
{
    at = body_inst(b, (struct inst){.op = OP_bitcast, .dtype = DT_u64, .a = at});
    return body_binary(b, OP_lt, DT_bool, at, body_literal(b, DT_u64, (uint64_t)n));
}

// An index on an axis of n elements, as an i64: negative ones wrap once. inside: whether it is in
// range then; 0: it always is.
static uint32_t
wrapped_index(struct body *b, uint32_t index, int64_t n, uint32_t *inside)
{
    const struct dtype_info *d = &dtype_table[b->k->inst.at[index].dtype];
    bool negative = d->kind != DTK_UINT;
    if (b->k->inst.at[index].dtype != DT_i64)
        index = body_inst(b, (struct inst){.op = OP_cast, .dtype = DT_i64, .a = index});
    if (negative) {
        uint32_t below = compared(b, OP_lt, index, 0);
        uint32_t size = body_literal(b, DT_i64, (uint64_t)n);
        uint32_t moved = body_binary(b, OP_add, DT_i64, index, size);
        index = body_where(b, DT_i64, below, moved, index);
    }
    *inside = 0;
    if (negative || d->bits >= 63 || n < (int64_t)1 << d->bits)
        *inside = below_size(b, index, n);
    return index;
}

// What take gives where the index is out of range: 0, and an error. A load does both itself; a
// value computed of loads needs a select. What depends on no checked load (constants, broadcast
// elements) could not tell the error: it is stored first and then loaded.
static uint32_t
zero_outside(struct body *b, ref take, uint32_t x, uint32_t check)
{
    bool told = false;
    for (uint32_t i = 1; i < b->k->inst.n; i++)
        told |= b->k->inst.at[i].op == OP_load && b->k->inst.at[i].c == check;
    if (!told)
        return body_fail(b, REASON_view_not_affine, graph_in(b->f->g, take, 0));
    const struct inst *v = &b->k->inst.at[x];
    if (v->op == OP_load && v->c == check)
        return x;
    uint8_t dtype = v->dtype;
    return body_where(b, dtype, check, x, body_literal(b, dtype, 0));
}

// take: x's dims before axis, the index's dims in place of axis, x's dims after it.
// take_along: the index has x's rank and gives the position along axis at each of its points.
static uint32_t
take(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    const struct shape *xs = graph_shape(g, n->in[0]), *is = graph_shape(g, n->in[1]);
    const struct imap *m = &b->maps.at[map];
    uint32_t axis = (uint32_t)graph_attr(g, r)[0];
    if (m->check)
        return body_fail(b, REASON_view_not_affine, r);
    struct imap mi = {.rank = is->rank, .mask = m->mask}, mx = {.rank = xs->rank, .mask = m->mask};
    bool along = n->op == OP_take_along;
    for (uint32_t d = 0; d < is->rank; d++)
        if (dim_of(g, is, d) != 1)
            mi.c[d] = m->c[along ? d : axis + d];
    for (uint32_t d = 0; d < xs->rank; d++)
        if (d != axis && dim_of(g, xs, d) != 1)
            mx.c[d] = m->c[along || d < axis ? d : d + is->rank - 1];
    uint32_t at = body_demand(b, n->in[1], body_map(b, &mi));
    if (!at)
        return 0;
    b->origin = n->origin;
    mx.c[axis].dynamic = wrapped_index(b, at, dim_of(g, xs, axis), &mx.check);
    mx.c[axis].stride[AXIS_DYNAMIC] = 1;
    uint32_t x = body_demand(b, n->in[0], body_map(b, &mx));
    return x && mx.check ? zero_outside(b, r, x, mx.check) : x;
}

// ---- windows

// Where a window of `size` elements starts on an axis of n, from what its tensor of starts says.
// The error is raised unless all of the window is inside; then it starts where it just is.
static uint32_t
window_start(struct body *b, uint32_t start, int64_t size, int64_t n)
{
    uint32_t ignored, at = wrapped_index(b, start, n, &ignored);
    uint32_t fits = compared(b, OP_le, at, n - size);
    uint32_t inside = body_both(b, compared(b, OP_ge, at, 0), fits);
    at = body_binary(b, OP_max, DT_i64, at, body_literal(b, DT_i64, 0));
    at = body_binary(b, OP_min, DT_i64, at, body_literal(b, DT_i64, (uint64_t)(n - size)));
    return body_inst(b, (struct inst){.op = OP_checked, .dtype = DT_i64, .a = at, .b = inside});
}

// The window's start on each axis of x, from tensor `start`; false: come again.
static bool
window_starts(struct body *b, ref op, ref start, const struct shape *x, const struct shape *window,
              uint32_t *at)
{
    const struct graph *g = b->f->g;
    bool ready = true;
    for (uint32_t d = 0; d < x->rank; d++) {
        struct imap m = {.rank = 1, .c[0].base = x->rank == 1 ? 0 : d};
        at[d] = body_demand(b, start, body_map(b, &m));
        ready &= at[d] != 0;
    }
    b->origin = graph_node(g, op)->origin;
    for (uint32_t d = 0; d < x->rank && ready; d++)
        at[d] = window_start(b, at[d], dim_of(g, window, d), dim_of(g, x, d));
    return ready;
}

// Moves a coordinate by an instruction of level ONCE times 1 or -1.
static void
coord_move(struct body *b, struct coord *c, uint32_t by, int64_t sign)
{
    struct coord other = {.dynamic = c->dynamic};
    other.stride[AXIS_DYNAMIC] = c->stride[AXIS_DYNAMIC];
    if (c->dynamic) {
        by = body_binary(b, sign < 0 ? OP_sub : OP_add, DT_i64, body_position(b, &other), by);
        sign = 1;
    }
    c->dynamic = by;
    c->stride[AXIS_DYNAMIC] = sign;
}

// Of the n instructions `which`, the ones that x is not computed of.
static uint32_t
unused_by(const struct body *b, uint32_t x, const uint32_t *which, uint32_t n, uint32_t *unused)
{
    bool *used = xcalloc(x + 1, sizeof *used);
    used[x] = true;
    for (uint32_t i = x; i > 0; i--) {
        const struct inst *in = &b->k->inst.at[i];
        if (used[i])
            used[in->a] = used[in->b] = used[in->c] = true;
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++)
        if (which[i] > x || !used[which[i]])
            unused[left++] = which[i];
    free(used);
    return left;
}

// A start that no position depends on (on an axis of one element, or of a constant) still tells its
// error: it is at least 0, which the result now waits for.
static uint32_t
with_starts_told(struct body *b, uint32_t x, const uint32_t *start, uint32_t n)
{
    uint32_t unused[MAX_RANK], inside = 0, left = unused_by(b, x, start, n, unused);
    for (uint32_t i = 0; i < left; i++)
        inside = body_both(b, inside, compared(b, OP_ge, unused[i], 0));
    uint8_t dtype = b->k->inst.at[x].dtype;
    return inside ? body_where(b, dtype, inside, x, body_literal(b, dtype, 0)) : x;
}

static uint32_t
dynamic_slice(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    const struct shape *xs = graph_shape(g, n->in[0]);
    struct imap m = b->maps.at[map];
    uint32_t start[MAX_RANK];
    if (m.check) // where it fails, the position is none
        return body_fail(b, REASON_view_not_affine, r);
    if (!window_starts(b, r, n->in[1], xs, graph_shape(g, r), start))
        return 0;
    for (uint32_t d = 0; d < xs->rank; d++)
        if (dim_of(g, xs, d) != 1)
            coord_move(b, &m.c[d], start[d], 1);
    uint32_t x = body_demand(b, n->in[0], body_map(b, &m));
    b->origin = n->origin;
    return x ? with_starts_told(b, x, start, xs->rank) : 0;
}

// From a point of the result to the update's element on it: moves m, whose rank is s's, back by
// the starts and masks out what is not inside shape s. Gives the mask of that.
static uint32_t
update_element(struct body *b, struct imap *m, const uint32_t *start, const struct shape *s)
{
    uint32_t inside = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        int64_t n = dim_of(b->f->g, s, d);
        coord_move(b, &m->c[d], start[d], -1);
        inside = body_both(b, inside, below_size(b, body_position(b, &m->c[d]), n));
        if (n == 1)
            m->c[d] = (struct coord){0};
    }
    m->mask = body_both(b, m->mask, inside);
    return inside;
}

static uint32_t
slice_update(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    const struct shape *xs = graph_shape(g, r), *us = graph_shape(g, n->in[1]);
    struct imap m = b->maps.at[map];
    uint32_t start[MAX_RANK], x = body_demand(b, n->in[0], map);
    if (m.check)
        return body_fail(b, REASON_view_not_affine, r);
    bool ready = window_starts(b, r, n->in[2], xs, us, start) && x;
    if (!ready || !shape_count(g, us))
        return ready ? x : 0;
    uint32_t inside = update_element(b, &m, start, us);
    uint32_t update = body_demand(b, n->in[1], body_map(b, &m));
    b->origin = n->origin;
    return update && inside ? body_where(b, n->dtype, inside, update, x) : update;
}

// ---- positions as values

static uint32_t
iota(struct body *b, ref r, uint32_t map)
{
    const int64_t *attr = graph_attr(b->f->g, r);
    b->origin = graph_node(b->f->g, r)->origin;
    return body_position(b, &b->maps.at[map].c[attr[1 + attr[0]]]);
}

static uint32_t
one_hot(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    struct imap m = b->maps.at[map];
    const struct coord *class = &m.c[m.rank - 1];
    m.rank--;
    uint32_t index = body_demand(b, n->in[0], body_map(b, &m));
    if (!index)
        return 0;
    b->origin = n->origin;
    if (b->k->inst.at[index].dtype != DT_i64)
        index = body_inst(b, (struct inst){.op = OP_cast, .dtype = DT_i64, .a = index});
    uint32_t hit = body_binary(b, OP_eq, DT_bool, index, body_position(b, class));
    if (n->dtype == DT_bool)
        return hit;
    uint32_t one = body_literal(b, n->dtype, scalar_from_int(n->dtype, 1));
    return body_where(b, n->dtype, hit, one, body_literal(b, n->dtype, 0));
}

// Random bits of the element's row-major position, and of the two numbers of the state.
static uint32_t
random_bits(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    const struct shape *s = graph_shape(g, r);
    struct coord at = {0};
    int64_t run = 1;
    for (uint32_t d = s->rank; d-- > 0;) {
        const struct coord *c = &b->maps.at[map].c[d];
        if (c->stride[AXIS_DYNAMIC])
            return body_fail(b, REASON_view_not_affine, r);
        if (dim_of(g, s, d) == 1)
            continue;
        at.base += c->base * run;
        for (uint32_t a = 0; a < b->gr->naxes; a++)
            at.stride[a] += c->stride[a] * run;
        run *= dim_of(g, s, d);
    }
    uint32_t state[2]; // key, counter
    for (uint32_t i = 0; i < 2; i++) {
        struct imap m = {.rank = 1};
        m.c[0].base = i;
        state[i] = body_demand(b, n->in[0], body_map(b, &m));
    }
    if (!state[0] || !state[1])
        return 0;
    b->origin = n->origin;
    for (uint32_t i = 0; i < 2; i++)
        state[i] = body_inst(b, (struct inst){.op = OP_bitcast, .dtype = DT_i64, .a = state[i]});
    uint32_t position = body_position(b, &at);
    return body_inst(b, (struct inst){.op = OP_philox, .dtype = n->dtype, .a = position,
                                     .b = state[0], .c = state[1]});
}

// ---- scatters

// Where an operand is whose dims are those of the updates from `first` on: x's own outside of axis,
// the axes of R in its place.
static void
update_map(struct body *b, const struct hero *h, const struct shape *s, uint32_t first,
           struct imap *m)
{
    const struct graph *g = b->f->g;
    uint32_t rank = graph_shape(g, h->node)->rank, axis = (uint32_t)graph_attr(g, h->node)[0];
    bool along = op_table[graph_node(g, h->node)->op].flags & OPF_ALONG;
    uint32_t wide = along ? 1 : graph_shape(g, graph_in(g, h->node, 1))->rank;
    *m = (struct imap){.rank = s->rank};
    for (uint32_t d = 0; d < s->rank; d++) {
        uint32_t at = first + d; // of the updates' dims
        uint32_t own = at < axis ? at : at - wide + 1; // of x
        if (dim_of(g, s, d) != 1)
            m->c[d] = h->map.c[at >= axis && at < axis + wide ? rank + at - axis : own];
    }
}

static uint32_t
axis_of_coord(const struct coord *c)
{
    uint32_t a = 0;
    while (a < AXIS_DYNAMIC && !c->stride[a])
        a++;
    return a;
}

uint32_t
body_scatter(struct body *b, const struct hero *h)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, h->node);
    const struct shape *is = graph_shape(g, n->in[1]), *us = graph_shape(g, n->in[2]);
    uint32_t axis = (uint32_t)graph_attr(g, h->node)[0];
    struct imap mx = h->map, mi, mu;
    mx.rank = graph_shape(g, h->node)->rank;
    for (uint32_t d = 0; d < mx.rank; d++)
        if (dim_of(g, graph_shape(g, h->node), d) == 1)
            mx.c[d] = (struct coord){0};
    update_map(b, h, is, op_table[n->op].flags & OPF_ALONG ? 0 : axis, &mi);
    update_map(b, h, us, 0, &mu);
    b->k->cls = CLASS_SCATTER; // body_build_refined asks for the axis
    b->k->scatter.axis = (uint8_t)axis_of_coord(&h->map.c[axis]);
    uint32_t init = body_emit(b, n->in[0], &mx);
    uint32_t index = init ? body_emit(b, n->in[1], &mi) : 0;
    uint32_t value = index ? body_emit(b, n->in[2], &mu) : 0;
    if (!value)
        return 0;
    b->origin = n->origin;
    int64_t extent = dim_of(g, graph_shape(g, h->node), axis);
    uint32_t inside, at = wrapped_index(b, index, extent, &inside);
    if (inside)
        at = body_inst(b, (struct inst){.op = OP_checked, .dtype = DT_i64, .a = at, .b = inside});
    at = body_per_element(b, at);
    value = body_per_element(b, value);
    uint32_t result = body_acc(b, h, n->op, n->dtype, value, 0);
    b->k->scatter.init = init;
    b->k->scatter.index = at;
    b->k->scatter.acc = b->k->acc.n - 1;
    b->k->scatter.in_range = !inside;
    return result;
}

uint32_t
body_index_op(struct body *b, ref r, uint32_t map)
{
    switch (graph_node(b->f->g, r)->op) {
    case OP_iota:
        return iota(b, r, map);
    case OP_take:
    case OP_take_along:
        return take(b, r, map);
    case OP_dynamic_slice:
        return dynamic_slice(b, r, map);
    case OP_slice_update:
        return slice_update(b, r, map);
    case OP_one_hot:
        return one_hot(b, r, map);
    case OP_random_bits:
        return random_bits(b, r, map);
    default:
        CHECK(false, "%s reached the kernel builder", op_name(graph_node(b->f->g, r)->op));
    }
}
