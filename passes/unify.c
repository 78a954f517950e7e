// unify.c: one domain for two groups.
//
// The witness is a tensor that both know: a result of a that b reads, or an input of both. Each
// group's map of its dims is taken apart into digits (loop axes in mixed radix); digits of equal
// extent at equal places are the same loop. Where one side has a coarser axis it is split. b's axes
// that stay without partner must be a's reduce axes, in order (softmax: max over R, then exp over
// P x R). A reduction of b over exactly a's parallel axes, of a ROW value, becomes an accumulator
// over P. All other cases are refused: domain_differs.
#include "passes/fuse.h"

#include "ir/base/check.h"
#include "ir/order.h"

#include <string.h>

struct digits {
    uint32_t n;
    uint8_t axis[MAX_AXES]; // outermost first
};

// The axes that make up an index of the given extent, if they cover it exactly, densely.
static bool
digits_of(const struct group *gr, const struct coord *c, int64_t extent, struct digits *out)
{
    out->n = 0;
    if (c->base)
        return false;
    int64_t want = extent;
    while (want > 1) {
        uint32_t found = MAX_AXES;
        for (uint32_t a = 0; a < gr->naxes; a++)
            if (gr->axis[a].extent > 1 && c->stride[a] > 0 &&
                c->stride[a] * gr->axis[a].extent == want)
                found = a;
        if (found == MAX_AXES || out->n == MAX_AXES)
            return false;
        want = c->stride[found];
        out->axis[out->n++] = (uint8_t)found;
    }
    uint32_t used = 0;
    for (uint32_t a = 0; a < MAX_AXES; a++)
        used += c->stride[a] != 0 && (a >= gr->naxes || gr->axis[a].extent > 1);
    return used == out->n;
}

struct pairing {
    uint8_t of_b[MAX_AXES]; // a's axis + 1 for each axis of b
    bool a_used[MAX_AXES];
};

enum step { STEP_NO, STEP_YES, STEP_AGAIN };

// Pairs two axes, or splits the coarser one (then everything is read anew: STEP_AGAIN).
static enum step
pair_axes(struct fuser *f, struct group *a, struct group *b, uint32_t x, uint32_t y,
          struct pairing *p)
{
    int64_t ea = a->axis[x].extent, eb = b->axis[y].extent;
    if (ea == eb) {
        if (p->of_b[y] ? p->of_b[y] != x + 1 : p->a_used[x])
            return STEP_NO;
        p->of_b[y] = (uint8_t)(x + 1);
        p->a_used[x] = true;
        return STEP_YES;
    }
    if (a->naxes + 1 >= AXIS_DYNAMIC || b->naxes + 1 >= AXIS_DYNAMIC)
        return STEP_NO;
    if (ea > eb && ea % eb == 0 && group_may_split(f, a, x))
        group_split_axis(f, a, x, eb);
    else if (eb > ea && eb % ea == 0 && group_may_split(f, b, y))
        group_split_axis(f, b, y, ea);
    else
        return STEP_NO;
    return STEP_AGAIN;
}

static enum step
pair_dims(struct fuser *f, struct group *a, struct group *b, const struct imap *ma,
          const struct imap *mb, const struct shape *s, struct pairing *p)
{
    for (uint32_t d = 0; d < s->rank; d++) {
        struct digits da, db;
        int64_t extent = dim_of(f->g, s, d);
        if (extent == 1)
            continue;
        if (!digits_of(a, &ma->c[d], extent, &da) || !digits_of(b, &mb->c[d], extent, &db))
            return STEP_NO;
        uint32_t i = da.n, k = db.n;
        while (i && k) {
            enum step st = pair_axes(f, a, b, da.axis[--i], db.axis[--k], p);
            if (st != STEP_YES)
                return st;
        }
        if (i != k)
            return STEP_NO;
    }
    return STEP_YES;
}

// b's axes without partner must be a's reduce axes in order.
static enum step
pair_rest(struct fuser *f, struct group *a, struct group *b, struct pairing *p)
{
    uint32_t x = 0;
    bool any = false;
    for (uint32_t y = 0; y < b->naxes; y++) {
        if (p->of_b[y] || b->axis[y].extent == 1)
            continue;
        while (x < a->naxes &&
               (p->a_used[x] || a->axis[x].kind != AXIS_R || a->axis[x].extent == 1))
            x++;
        if (x == a->naxes)
            return STEP_NO;
        enum step st = pair_axes(f, a, b, x, y, p);
        if (st != STEP_YES)
            return st;
        any = true;
    }
    if (any)
        for (; x < a->naxes; x++)
            if (!p->a_used[x] && a->axis[x].kind == AXIS_R && a->axis[x].extent > 1)
                return STEP_NO;
    return STEP_YES;
}

// The map of b's use of a tensor that a makes or reads too, and a's own map of it.
static bool
find_witness(struct fuser *f, struct group *a, struct group *b, uint32_t skip, struct imap *ma,
             struct imap *mb, ref *node, bool *is_edge)
{
    *is_edge = true;
    for (uint32_t i = 0; i < b->use.n; i++) {
        const struct use *u = &b->use.at[i];
        for (uint32_t k = 0; k < a->hero.n; k++)
            if (u->hero == a->hero.at[k] && u->node.i == f->hero.at[u->hero].node.i &&
                skip-- == 0) {
                const struct hero *h = &f->hero.at[u->hero];
                *node = h->node;
                *mb = u->map;
                *ma = h->map;
                if (h->kind == HERO_REDUCE) { // reduced dims have extent 1 in the result
                    const struct shape *s = graph_shape(f->g, h->node);
                    for (uint32_t d = 0; d < s->rank; d++)
                        if (dim_of(f->g, s, d) == 1)
                            ma->c[d] = (struct coord){0};
                }
                return true;
            }
    }
    *is_edge = false;
    for (uint32_t i = 0; i < b->use.n; i++)
        for (uint32_t k = 0; k < a->use.n; k++)
            if (b->use.at[i].node.i == a->use.at[k].node.i && skip-- == 0) {
                *node = b->use.at[i].node;
                *mb = b->use.at[i].map;
                *ma = a->use.at[k].map;
                return true;
            }
    return false;
}

static const struct hero *
domain_setter(const struct fuser *f, const struct group *gr)
{
    for (uint32_t i = 0; i < gr->hero.n; i++)
        if (hero_sets_domain(f->hero.at[gr->hero.at[i]].kind))
            return &f->hero.at[gr->hero.at[i]];
    return NULL;
}

static bool
scatters(const struct fuser *f, const struct group *gr)
{
    const struct hero *h = domain_setter(f, gr);
    return h && h->kind == HERO_SCATTER;
}

// Whether b's loops, laid on a's, reduce over what a keeps apart: only as accumulators over all of
// P, of a group that does nothing else.
static bool
becomes_over_p(const struct fuser *f, const struct group *a, const struct group *b,
               const struct pairing *p, bool *conflict)
{
    *conflict = false;
    bool a_reduces = false;
    for (uint32_t i = 0; i < a->hero.n; i++)
        a_reduces |= f->hero.at[a->hero.at[i]].kind != HERO_STORE;
    bool all = true;
    uint32_t last = 0;
    for (uint32_t y = 0; y < b->naxes; y++) {
        uint32_t x = p->of_b[y];
        if (!x || b->axis[y].kind != AXIS_R || a->axis[x - 1].kind == AXIS_R)
            all &= b->axis[y].extent == 1;
        else if (a_reduces)
            *conflict = true;
        if (x && x < last)
            all = false;
        last = x > last ? x : last;
    }
    if (!*conflict || domain_setter(f, a))
        return false;
    for (uint32_t x = 0; x < a->naxes; x++)
        if (a->axis[x].kind == AXIS_P && a->axis[x].extent > 1 && !p->a_used[x])
            all = false;
    for (uint32_t i = 0; i < b->hero.n; i++)
        if (f->hero.at[b->hero.at[i]].over_p || f->hero.at[b->hero.at[i]].kind == HERO_SCAN)
            all = false;
    return all;
}

static void
remap(struct imap *m, const struct pairing *p, uint32_t nb)
{
    for (uint32_t d = 0; d < m->rank; d++) {
        struct coord c = {.base = m->c[d].base};
        for (uint32_t y = 0; y < nb; y++)
            if (p->of_b[y])
                c.stride[p->of_b[y] - 1] += m->c[d].stride[y];
        m->c[d] = c;
    }
}

static bool
comes_first(const struct fuser *f, uint32_t x, uint32_t y)
{
    uint32_t nx = f->hero.at[x].node.i, ny = f->hero.at[y].node.i;
    return nx != ny ? nx < ny : x < y;
}

static void
merge_heroes(struct fuser *f, const struct group *a, const struct group *b, struct group *out)
{
    uint32_t i = 0, k = 0;
    while (i < a->hero.n || k < b->hero.n) {
        bool from_a = k == b->hero.n ||
                      (i < a->hero.n && comes_first(f, a->hero.at[i], b->hero.at[k]));
        uint32_t id = from_a ? a->hero.at[i++] : b->hero.at[k++];
        vec_push(&out->hero, id);
        f->hero.at[id].group = UINT32_MAX;
    }
}

// A contraction's class knows batch, m, n and k, and no other reduction beside it; an order's knows
// batch, j and the line, and results of one order.
static bool
domain_agrees(const struct fuser *f, const struct group *gr)
{
    const struct hero *setter = domain_setter(f, gr);
    if (!setter)
        return true;
    uint32_t r = 0, others = 0;
    for (uint32_t x = 0; x < gr->naxes; x++)
        r += gr->axis[x].kind == AXIS_R;
    for (uint32_t i = 0; i < gr->hero.n; i++) {
        const struct hero *h = &f->hero.at[gr->hero.at[i]];
        bool same = setter->kind == HERO_ORDER && h->kind == HERO_ORDER && h != setter;
        others += h->kind != HERO_STORE && !same;
        for (uint32_t x = 0; x < gr->naxes; x++) {
            bool over_k = false;
            for (uint32_t d = 0; d < h->map.rank; d++)
                over_k |= h->map.c[d].stride[x] != 0;
            if (gr->axis[x].kind == AXIS_R && over_k != hero_sets_domain(h->kind))
                return false;
        }
    }
    return r == 1 && others == 1;
}

// Every reduction's reduced axes, and a scan's own, must be R, in the order of its operand's dims;
// the others P.
static bool
kinds_agree(const struct fuser *f, const struct group *gr)
{
    for (uint32_t i = 0; i < gr->hero.n; i++) {
        const struct hero *h = &f->hero.at[gr->hero.at[i]];
        bool scans = h->kind == HERO_SCAN;
        if ((h->kind != HERO_REDUCE && !scans) || h->over_p)
            continue;
        const struct shape *s = graph_shape(f->g, h->node);
        bool is_r[MAX_AXES] = {false};
        uint32_t order = 0;
        for (uint32_t d = 0; d < h->map.rank; d++) {
            bool reduced = scans ? graph_attr(f->g, h->node)[0] == d : dim_of(f->g, s, d) == 1;
            for (uint32_t x = 0; x < gr->naxes; x++) {
                if (!h->map.c[d].stride[x] || gr->axis[x].extent == 1)
                    continue;
                if (gr->axis[x].kind != (reduced ? AXIS_R : AXIS_P))
                    return false;
                if (reduced && x + 1 < order)
                    return false;
                if (reduced)
                    order = x + 1;
                is_r[x] = reduced;
            }
        }
        for (uint32_t x = 0; x < gr->naxes; x++)
            if (gr->axis[x].kind == AXIS_R && gr->axis[x].extent > 1 && !is_r[x])
                return false;
    }
    return true;
}

static bool
try_witness(struct fuser *f, struct group *a, struct group *b, uint32_t skip, struct pairing *p,
            bool *more)
{
    for (;;) {
        struct imap ma, mb;
        ref node;
        bool edge;
        *more = find_witness(f, a, b, skip, &ma, &mb, &node, &edge);
        if (!*more)
            return false;
        *p = (struct pairing){0};
        enum step st = pair_dims(f, a, b, &ma, &mb, graph_shape(f->g, node), p);
        if (st == STEP_YES)
            st = pair_rest(f, a, b, p);
        for (uint32_t x = 0; st == STEP_YES && !edge && x < a->naxes; x++)
            if (!p->a_used[x] && a->axis[x].extent > 1)
                return false; // readers of one tensor must share the whole domain
        if (st == STEP_YES)
            return true;
        if (st == STEP_NO)
            return false;
        // An axis was split: maps of uses are stale until the bodies are built again.
        struct kernel k;
        body_build(f, a, &k);
        kernel_free_body(&k);
        body_build(f, b, &k);
        kernel_free_body(&k);
    }
}

static bool
reads_from(const struct group *b, const struct group *a)
{
    for (uint32_t i = 0; i < b->use.n; i++)
        for (uint32_t k = 0; b->use.at[i].hero && k < a->hero.n; k++)
            if (a->hero.at[k] == b->use.at[i].hero)
                return true;
    return false;
}

// Two groups that each ask for results of one and the same order, over the same loops.
static bool
unify_orders(struct fuser *f, const struct group *a, const struct group *b, struct group *out)
{
    const struct hero *x = domain_setter(f, a), *y = domain_setter(f, b);
    if (x->kind != HERO_ORDER || y->kind != HERO_ORDER || a->naxes != b->naxes)
        return false;
    const struct graph *g = f->g;
    struct order ox = order_of(graph_node(g, x->node)->op, graph_attr(g, x->node));
    struct order oy = order_of(graph_node(g, y->node)->op, graph_attr(g, y->node));
    if (graph_in(g, x->node, 0).i != graph_in(g, y->node, 0).i || ox.axis != oy.axis ||
        ox.descending != oy.descending || !imap_equal(&x->map, &y->map))
        return false;
    for (uint32_t i = 0; i < a->naxes; i++)
        if (a->axis[i].extent != b->axis[i].extent || a->axis[i].kind != b->axis[i].kind)
            return false;
    *out = (struct group){.naxes = a->naxes};
    memcpy(out->axis, a->axis, sizeof a->axis);
    merge_heroes(f, a, b, out);
    return domain_agrees(f, out);
}

bool
unify_groups(struct fuser *f, struct group *a, struct group *b, struct group *out, uint8_t *reason)
{
    struct pairing p;
    bool found = false, more = true;
    if (scatters(f, a) || scatters(f, b)) { // all of its loops are its own
        *reason = REASON_no_class;
        return false;
    }
    if (domain_setter(f, b)) { // its axes lead, those of extent 1 too
        *reason = REASON_no_class;
        if (domain_setter(f, a))
            return !reads_from(b, a) && !reads_from(a, b) && unify_orders(f, a, b, out);
        if (reads_from(b, a))
            return false;
        struct group *t = a;
        a = b;
        b = t;
    }
    for (uint32_t skip = 0; more && !found && skip < 16; skip++)
        found = try_witness(f, a, b, skip, &p, &more);
    // Such a class has an epilogue over its own P axes, and nothing else.
    *reason = domain_setter(f, a) ? REASON_no_class : REASON_domain_differs;
    if (!found)
        return false;
    bool conflict, over_p = becomes_over_p(f, a, b, &p, &conflict);
    if (conflict && !over_p)
        return false;
    *out = (struct group){.naxes = a->naxes};
    memcpy(out->axis, a->axis, sizeof a->axis);
    for (uint32_t y = 0; y < b->naxes; y++)
        if (p.of_b[y] && b->axis[y].kind == AXIS_R && !over_p)
            out->axis[p.of_b[y] - 1].kind = AXIS_R;
    for (uint32_t i = 0; i < b->hero.n; i++) {
        struct hero *h = &f->hero.at[b->hero.at[i]];
        remap(&h->map, &p, b->naxes);
        if (over_p && h->kind == HERO_REDUCE)
            h->over_p = true;
    }
    merge_heroes(f, a, b, out);
    if (!kinds_agree(f, out) || !domain_agrees(f, out))
        return false;
    return true;
}

void
group_free(struct group *gr)
{
    vec_free(&gr->hero);
    vec_free(&gr->use);
}
