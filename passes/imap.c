// imap.c: views as changes of coordinates.
//
// A map gives, for each dim of a node, its index as an affine function of the group's loop axes.
// Going from a view to its operand rewrites these functions. Permute, broadcast, slice, flip and
// pad are direct. Reshape regroups dims: in the smallest runs of equal products the index within
// the run is flattened (always affine) and taken apart in mixed radix again. Each term
// stride * axis must fall into one digit without carry; where an axis spans two digits, the loop
// axis has to be split at the digit's weight, and the result says which and by how much.
#include "passes/fuse.h"

#include <string.h>

bool
imap_equal(const struct imap *a, const struct imap *b)
{
    if (a->rank != b->rank || a->mask != b->mask || a->check != b->check)
        return false;
    return !memcmp(a->c, b->c, a->rank * sizeof a->c[0]);
}

void
broadcast_map(const struct graph *g, const struct imap *m, const struct shape *to, struct imap *out)
{
    struct imap r = {.rank = to->rank, .mask = m->mask, .check = m->check};
    uint32_t skip = m->rank - to->rank;
    for (uint32_t i = 0; i < to->rank; i++)
        if (dim_of(g, to, i) != 1)
            r.c[i] = m->c[skip + i];
    *out = r;
}

// False: two positions given by data in one sum.
static bool
coord_add(struct coord *c, const struct coord *x, int64_t times)
{
    if (c->dynamic && x->dynamic)
        return false;
    c->base += x->base * times;
    for (uint32_t a = 0; a < MAX_AXES; a++)
        c->stride[a] += x->stride[a] * times;
    c->dynamic += x->dynamic;
    return true;
}

static int64_t
axis_extent(const struct group *gr, uint32_t a)
{
    return a < gr->naxes ? gr->axis[a].extent : INT64_MAX;
}

// Takes flat (an index into dims of the given extents, row-major) apart into n digits.
static bool
split_digits(const struct coord *flat, const int64_t *extent, uint32_t n, const struct group *gr,
             struct coord *digit, struct body_result *r)
{
    int64_t weight[MAX_RANK + 1], top[MAX_RANK + 1];
    weight[n - 1] = 1;
    for (uint32_t k = n - 1; k-- > 0;)
        weight[k] = weight[k + 1] * extent[k + 1];
    int64_t base = flat->base;
    for (uint32_t k = 0; k < n; k++) {
        digit[k] = (struct coord){.base = base / weight[k]};
        top[k] = digit[k].base;
        base %= weight[k];
    }
    if (flat->base < 0)
        return false;
    for (uint32_t a = 0; a < MAX_AXES; a++) {
        int64_t s = flat->stride[a], e = axis_extent(gr, a);
        if (!s || e == 1)
            continue;
        if (s < 0 || a == AXIS_DYNAMIC)
            return false;
        uint32_t k = 0;
        while (weight[k] > s)
            k++;
        if (s % weight[k])
            return false;
        int64_t room = k ? weight[k - 1] : INT64_MAX; // the axis must stay below the next digit
        if (k && s * (e - 1) >= room) {
            int64_t inner = room / s;
            if (room % s == 0 && inner > 1 && e % inner == 0)
                *r = (struct body_result){.refine_axis = (uint8_t)(a + 1), .refine_by = inner};
            return false;
        }
        digit[k].stride[a] = s / weight[k];
        top[k] += s / weight[k] * (e - 1);
    }
    for (uint32_t k = 0; k < n; k++)
        if (top[k] >= extent[k])
            return false;
    return true;
}

static bool
reshape_map(const struct graph *g, const struct shape *from, const struct shape *to,
            const struct imap *m, const struct group *gr, struct imap *out, struct body_result *r)
{
    *out = (struct imap){.rank = to->rank, .mask = m->mask, .check = m->check};
    uint32_t i = 0, k = 0;
    while (i < from->rank || k < to->rank) {
        uint32_t i0 = i, k0 = k;
        int64_t p = i < from->rank ? dim_of(g, from, i++) : 1;
        int64_t q = k < to->rank ? dim_of(g, to, k++) : 1;
        while (p != q) {
            if (p < q && i < from->rank)
                p *= dim_of(g, from, i++);
            else if (q < p && k < to->rank)
                q *= dim_of(g, to, k++);
            else
                return false; // zero-sized shapes: nothing is read
        }
        struct coord flat = {0};
        int64_t weight = 1;
        for (uint32_t d = i; d-- > i0;) {
            if (!coord_add(&flat, &m->c[d], weight))
                return false;
            weight *= dim_of(g, from, d);
        }
        if (k - k0 == 1 && i - i0 >= 1) {
            if (dim_of(g, to, k0) != 1)
                out->c[k0] = flat;
            continue;
        }
        if (k == k0)
            continue;
        int64_t extent[MAX_RANK + 1];
        for (uint32_t d = k0; d < k; d++)
            extent[d - k0] = dim_of(g, to, d);
        if (!split_digits(&flat, extent, k - k0, gr, &out->c[k0], r))
            return false;
    }
    return true;
}

static void
slice_map(const int64_t *attr, uint32_t rank, struct imap *out)
{
    const int64_t *start = attr + 1, *step = attr + 2 * (rank + 1) + 1;
    for (uint32_t d = 0; d < rank; d++) {
        struct coord c = {.base = start[d]};
        coord_add(&c, &out->c[d], step[d]);
        out->c[d] = c;
    }
}

static void
flip_map(const struct graph *g, const struct shape *s, const int64_t *attr, struct imap *out)
{
    for (int64_t i = 0; i < attr[0]; i++) {
        uint32_t d = (uint32_t)attr[1 + i];
        struct coord c = {.base = dim_of(g, s, d) - 1};
        coord_add(&c, &out->c[d], -1);
        out->c[d] = c;
    }
}

bool
view_map(const struct graph *g, ref view, uint32_t operand, const struct imap *m,
         const struct group *gr, struct imap *out, struct body_result *r)
{
    const struct node *n = graph_node(g, view);
    const int64_t *attr = graph_attr(g, view);
    const struct shape *from = graph_shape(g, view);
    const struct shape *to = graph_shape(g, node_in(g, n, operand));
    *out = *m;
    switch (n->op) {
    case OP_reshape:
        return reshape_map(g, from, to, m, gr, out, r);
    case OP_permute:
        for (uint32_t d = 0; d < from->rank; d++)
            out->c[attr[1 + d]] = m->c[d];
        return true;
    case OP_broadcast:
        broadcast_map(g, m, to, out);
        return true;
    case OP_slice:
        slice_map(attr, from->rank, out);
        return true;
    case OP_flip:
        flip_map(g, to, attr, out);
        return true;
    case OP_pad:
        for (uint32_t d = 0; d < from->rank; d++)
            out->c[d].base -= attr[1 + d];
        return true;
    case OP_concat:
        for (uint32_t i = 0; i < operand; i++) {
            const struct shape *s = graph_shape(g, node_in(g, n, i));
            out->c[attr[0]].base -= dim_of(g, s, (uint32_t)attr[0]);
        }
        return true;
    default:
        return false;
    }
}
