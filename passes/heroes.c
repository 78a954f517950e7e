// heroes.c: which values need a loop of their own.
//
// Reductions, scans, contractions, orders, scatters and outputs always. A pointwise value becomes a
// hero when the cone of pointwise work behind it grows past the budget of one kernel (instructions,
// tensors read), when several readers (or a contraction, for each tile, or windows that overlap)
// would compute a dear one again, or when a reader's view of it cannot be expressed with strides.
// The cone's size is estimated as a tree (shared nodes counted again) and only when the estimate
// passes the budget is it counted exactly, so the walk stays linear.
#include "passes/fuse.h"

#include "ir/base/check.h"
#include "ir/order.h"
#include "passes/cost.h"
#include "passes/pass.h"

enum { MAX_CONE = 600, MAX_TENSORS = 96, MAX_RECOMPUTE = 48 };
enum { PROLOGUE_COST = 8, PROLOGUE_TENSORS = 3 }; // of a value that is read many times

struct cone {
    uint32_t work, tensors;
};
struct chooser {
    struct fuser *f;
    struct cone *cone;
    uint32_t *mark; // node → stamp of the count that saw it last
    uint32_t stamp;
    VEC(uint32_t) stack;
    bool *live, *is_out;
    uint32_t *uses, *user; // per node: readers, and the last of them
    int64_t *windowed;     // per node: elements that slices of it have, together
    bool *ends_epilogue; // of a contraction
    bool *ends_row;      // the same of a reduction
};

static uint32_t
add_hero(struct fuser *f, ref node, uint8_t kind, uint8_t reason)
{
    struct hero h = {.node = node, .kind = kind, .reason = reason, .group = UINT32_MAX};
    vec_push(&f->hero, h);
    uint32_t id = f->hero.n - 1;
    // A copy of an input made for its own sake is no reason to read the copy elsewhere.
    bool copy = graph_node(f->g, node)->op == OP_input && reason == REASON_none;
    if (!f->hero_of[node.i] && !copy)
        f->hero_of[node.i] = id;
    return id;
}

static bool
is_inline(uint16_t op)
{
    return op_is(op, OPK_ELEM) || op_is(op, OPK_VIEW) || op_is(op, OPK_INDEX);
}

static uint8_t
hero_kind(uint16_t op)
{
    return op_is(op, OPK_CONTRACT)  ? HERO_CONTRACT
           : op_is(op, OPK_SCAN)    ? HERO_SCAN
           : op_is(op, OPK_ORDER)   ? HERO_ORDER
           : op_is(op, OPK_SCATTER) ? HERO_SCATTER
                                    : HERO_REDUCE;
}

static uint32_t
work_of(uint16_t op)
{
    return op_is(op, OPK_VIEW) ? 0 : 1u + op_table[op].cost / 2u;
}

static bool
ends_cone(const struct chooser *c, uint32_t node)
{
    const struct node *n = &c->f->g->node.at[node];
    return c->f->hero_of[node] || n->op == OP_input || n->op == OP_literal;
}

// Counts the cone behind a node exactly, up to the budget.
static struct cone
count_cone(struct chooser *c, uint32_t root)
{
    struct cone k = {0};
    c->stamp++;
    c->stack.n = 0;
    vec_push(&c->stack, root);
    c->mark[root] = c->stamp;
    while (c->stack.n && k.work <= 2 * MAX_CONE) {
        uint32_t i = c->stack.at[--c->stack.n];
        const struct node *n = &c->f->g->node.at[i];
        if (i != root && ends_cone(c, i)) {
            k.tensors += n->op != OP_literal;
            continue;
        }
        k.work += work_of(n->op);
        for (uint32_t x = 0; x < n->nin; x++) {
            uint32_t in = node_in(c->f->g, n, x).i;
            if (c->mark[in] != c->stamp) {
                c->mark[in] = c->stamp;
                vec_push(&c->stack, in);
            }
        }
    }
    return k;
}

static struct cone
estimate(struct chooser *c, const struct node *n)
{
    struct cone k = {work_of(n->op), 0};
    for (uint32_t x = 0; x < n->nin; x++) {
        uint32_t in = node_in(c->f->g, n, x).i;
        if (ends_cone(c, in)) {
            k.tensors += c->f->g->node.at[in].op != OP_literal;
        } else {
            k.work += c->cone[in].work;
            k.tensors += c->cone[in].tensors;
        }
    }
    return k;
}

// Where memory is short a value that reads more than two tensors is stored: else all terms of a
// long sum are kept until its end.
static bool
over_budget(const struct chooser *c, struct cone k)
{
    return k.work > MAX_CONE || k.tensors > (c->f->level ? 2 : MAX_TENSORS);
}

// Stores the operand with the largest cone until the node's own cone fits.
static void
cut_cone(struct chooser *c, uint32_t node)
{
    const struct node *n = &c->f->g->node.at[node];
    for (;;) {
        c->cone[node] = estimate(c, n);
        if (!over_budget(c, c->cone[node]))
            return;
        c->cone[node] = count_cone(c, node);
        if (!over_budget(c, c->cone[node]))
            return;
        uint32_t worst = 0;
        for (uint32_t x = 0; x < n->nin; x++) {
            uint32_t in = node_in(c->f->g, n, x).i;
            if (!ends_cone(c, in) && (!worst || c->cone[in].work + c->cone[in].tensors >
                                                    c->cone[worst].work + c->cone[worst].tensors))
                worst = in;
        }
        if (!worst)
            return;
        add_hero(c->f, (ref){worst}, HERO_STORE,
                 c->cone[node].work > MAX_CONE ? REASON_budget_insts
                 : c->f->level                 ? REASON_peak
                                               : REASON_budget_args);
    }
}

// What to store for an operand that merely arranges a value: the value, when others read it.
static uint32_t
shared_operand(const struct chooser *c, uint32_t in)
{
    const struct graph *g = c->f->g;
    uint32_t at = in;
    while (!ends_cone(c, at) &&
           (g->node.at[at].op == OP_reshape || g->node.at[at].op == OP_permute))
        at = node_in(g, &g->node.at[at], 0).i;
    bool shared = op_is(g->node.at[at].op, OPK_ELEM) && c->uses[at] > 1 && !ends_cone(c, at);
    return shared ? at : in;
}

// What is read many times is stored where it costs more than a few operations, or reads more than a
// few tensors: else each step of a loop would read what all steps before it have left.
static void
store_if_dear(struct chooser *c, uint32_t in)
{
    uint32_t cost = 0, tensors = 0;
    if (ends_cone(c, in))
        return;
    c->stamp++;
    c->stack.n = 0;
    vec_push(&c->stack, in);
    bool dear = false;
    while (c->stack.n && !dear) {
        uint32_t i = c->stack.at[--c->stack.n];
        if (c->mark[i] == c->stamp)
            continue;
        c->mark[i] = c->stamp;
        const struct node *m = &c->f->g->node.at[i];
        if (ends_cone(c, i)) {
            tensors += m->op != OP_literal;
            dear = tensors > PROLOGUE_TENSORS;
            continue;
        }
        cost += op_table[m->op].cost;
        dear = op_is(m->op, OPK_INDEX) || m->op == OP_concat || cost > PROLOGUE_COST;
        for (uint32_t k = 0; k < m->nin; k++)
            vec_push(&c->stack, node_in(c->f->g, m, k).i);
    }
    if (dear)
        add_hero(c->f, (ref){shared_operand(c, in)}, HERO_STORE, REASON_recompute);
}

// A value that windows read, as a stencil's do, is computed again for each window that an element
// lies in: its tensors are read that many times over. It is stored when that is twice what storing
// it takes. Windows that lie beside each other, as the parts of a short sum, read it once.
static void
store_if_windowed(struct chooser *c, uint32_t node)
{
    const struct graph *g = c->f->g;
    uint32_t base = node;
    if (!c->windowed[node])
        return;
    while (op_is(g->node.at[base].op, OPK_VIEW) && g->node.at[base].nin == 1 && !ends_cone(c, base))
        base = node_in(g, &g->node.at[base], 0).i;
    int64_t n = shape_count(g, graph_shape(g, (ref){base}));
    int64_t reads = n ? c->windowed[node] / n : 0, tensors = c->cone[base].tensors;
    if (reads < 2 || !op_is(g->node.at[base].op, OPK_ELEM) || ends_cone(c, base))
        return;
    reads += base == node ? 0 : c->uses[base] - 1;
    if (reads * tensors <= 2 * (reads + tensors + 1))
        return;
    add_hero(c->f, (ref){base}, HERO_STORE, REASON_recompute);
    for (uint32_t i = base + 1; i <= node; i++)
        if (c->live[i])
            c->cone[i] = estimate(c, &g->node.at[i]);
}

// Whether some dear value behind `in` is read elsewhere too, and so is a reduction's result: as
// exp(x - max) of a softmax by its sum and by its result.
static bool
shares_dear_work(struct chooser *c, uint32_t in)
{
    const struct graph *g = c->f->g;
    bool dear = false, reduced = false;
    c->stamp++;
    c->stack.n = 0;
    vec_push(&c->stack, in);
    while (c->stack.n && !(dear && reduced)) {
        uint32_t i = c->stack.at[--c->stack.n];
        const struct node *m = &g->node.at[i];
        if (c->mark[i] == c->stamp)
            continue;
        c->mark[i] = c->stamp;
        reduced |= op_is(m->op, OPK_REDUCE);
        if (ends_cone(c, i))
            continue;
        dear |= i != in && c->uses[i] > 1 && op_table[m->op].cost > PROLOGUE_COST;
        for (uint32_t k = 0; k < m->nin; k++)
            vec_push(&c->stack, node_in(g, m, k).i);
    }
    return dear && reduced;
}

// What a loop of its own, or a view that is stored, reads: a value that shares dear work with a
// reduction before it belongs to that one's kernel. Where the two become one it is not stored.
static void
store_if_shared(struct chooser *c, uint32_t node)
{
    const struct graph *g = c->f->g;
    uint32_t at = node;
    while (op_is(g->node.at[at].op, OPK_VIEW) && g->node.at[at].nin == 1 && !ends_cone(c, at))
        at = node_in(g, &g->node.at[at], 0).i;
    if (op_is(g->node.at[at].op, OPK_ELEM) && !ends_cone(c, at) && shares_dear_work(c, at)) {
        uint32_t id = add_hero(c->f, (ref){at}, HERO_STORE, REASON_none);
        c->f->hero.at[id].shares = true;
    }
}

// Contractions read their operands many times.
static void
store_dear_operands(struct chooser *c, const struct node *n)
{
    store_if_dear(c, n->in[0].i);
    store_if_dear(c, n->in[1].i);
}

// Whether operand in of an elementwise op, whose result is summed to shape out, is the same at
// several kept points, and has a value for each reduced one: as the vector of a product with a
// matrix.
static bool
repeats_along_kept(const struct graph *g, ref product, ref in, const struct shape *out)
{
    const struct shape *all = graph_shape(g, product), *s = graph_shape(g, in);
    bool repeats = false;
    for (uint32_t d = 0; d < all->rank; d++) {
        uint32_t before = (uint32_t)all->rank - s->rank;
        int64_t n = dim_of(g, all, d), own = d < before ? 1 : dim_of(g, s, d - before);
        bool reduced = n != dim_of(g, out, d);
        if (reduced && own != n)
            return false;
        repeats |= !reduced && own != n;
    }
    return repeats;
}

// A sum of products: a factor that many sums share is computed for each of them.
static void
store_dear_factors(struct chooser *c, ref sum)
{
    const struct graph *g = c->f->g;
    ref product = graph_in(g, sum, 0);
    while (graph_node(g, product)->op == OP_cast && !ends_cone(c, product.i))
        product = graph_in(g, product, 0);
    const struct node *n = graph_node(g, product);
    if (n->op != OP_mul || ends_cone(c, product.i))
        return;
    for (uint32_t x = 0; x < 2; x++)
        if (repeats_along_kept(g, product, n->in[x], graph_shape(g, sum)))
            store_if_dear(c, n->in[x].i);
}

// The axes that a scatter goes through: the index's in place of its own.
static void
scattered_axes(const struct graph *g, ref r, struct axis *axis, uint32_t *n)
{
    const struct shape *index = graph_shape(g, graph_in(g, r, 1));
    bool along = op_table[graph_node(g, r)->op].flags & OPF_ALONG;
    uint32_t own = (uint32_t)graph_attr(g, r)[0], first = along ? own : 0;
    for (uint32_t d = first; d < (along ? own + 1 : index->rank); d++)
        axis[(*n)++] = (struct axis){dim_of(g, index, d), AXIS_R};
    if (!along && !index->rank) // a scalar names one place
        axis[(*n)++] = (struct axis){1, AXIS_R};
}

// Whether two shapes are one but for dims of 1.
static bool
same_loops(const struct graph *g, const struct shape *a, const struct shape *b)
{
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->rank && dim_of(g, a, i) == 1)
            i++;
        while (k < b->rank && dim_of(g, b, k) == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (dim_of(g, a, i++) != dim_of(g, b, k++))
            return false;
    }
}

// The last of the pointwise ops that follow a contraction or a reduction one by one: what is stored
// instead of the bare result, because all of them fit its epilogue. A reduction's result may change
// its dims of 1 on the way.
static ref
epilogue_end(const struct chooser *c, uint32_t node)
{
    uint32_t at = node;
    while (c->uses[at] == 1 && !c->is_out[at]) {
        uint32_t next = c->user[at];
        const struct graph *g = c->f->g;
        const struct node *n = &g->node.at[next];
        bool turns = n->op == OP_reshape && g->node.at[node].op != OP_matmul &&
                     same_loops(g, graph_shape(g, (ref){at}), graph_shape(g, (ref){next}));
        if (!turns && (!op_is(n->op, OPK_ELEM) || n->shape != g->node.at[at].shape))
            break;
        at = next;
    }
    return (ref){at};
}

// A value that takes the place of a reduction's result, as the sum that a layer adds to: stored
// instead of it, what else it reads is read once, not by each reader, nor kept for them.
static bool
replaces_reduction(const struct chooser *c, uint32_t node)
{
    return c->ends_row[node] && c->uses[node] > 1 && c->cone[node].tensors > 1;
}

static void
count_uses(struct chooser *c)
{
    const struct graph *g = c->f->g;
    for (uint32_t i = 1; i < g->node.n; i++)
        for (uint32_t k = 0; c->live[i] && k < g->node.at[i].nin; k++) {
            uint32_t in = node_in(g, &g->node.at[i], k).i;
            c->uses[in]++;
            c->user[in] = i;
            if (g->node.at[i].op == OP_slice)
                c->windowed[in] += shape_count(g, graph_shape(g, (ref){i}));
        }
    for (uint32_t i = 0; i < g->outputs.n; i++)
        c->is_out[g->outputs.at[i].node.i] = true;
}

static void
mark_outputs(struct fuser *f)
{
    for (uint32_t i = 0; i < f->g->outputs.n; i++) {
        ref r = f->g->outputs.at[i].node;
        uint32_t id = f->hero_of[r.i];
        if (!id || f->hero.at[id].is_output)
            id = add_hero(f, r, HERO_STORE, REASON_none);
        f->hero.at[id].is_output = true;
        f->hero.at[id].output = i;
    }
}

// Batch axes, then j, the place in order, then the line.
static void
order_map(const struct fuser *f, struct group *gr, struct hero *h)
{
    const struct graph *g = f->g;
    const struct shape *s = graph_shape(g, h->node), *x = graph_shape(g, graph_in(g, h->node, 0));
    uint32_t along = (uint32_t)order_of(graph_node(g, h->node)->op, graph_attr(g, h->node)).axis;
    h->map = (struct imap){.rank = (uint8_t)(s->rank + 1)};
    for (uint32_t d = 0; d < s->rank; d++) {
        if (d == along || dim_of(g, s, d) == 1)
            continue;
        h->map.c[d].stride[gr->naxes] = 1;
        gr->axis[gr->naxes++] = (struct axis){dim_of(g, s, d), AXIS_P};
    }
    h->map.c[along].stride[gr->naxes] = 1;
    gr->axis[gr->naxes++] = (struct axis){dim_of(g, s, along), AXIS_P};
    h->map.c[s->rank].stride[gr->naxes] = 1;
    gr->axis[gr->naxes++] = (struct axis){dim_of(g, x, along), AXIS_R};
}

static void
initial_map(struct fuser *f, struct group *gr, struct hero *h)
{
    const struct graph *g = f->g;
    const struct shape *s = graph_shape(g, h->node);
    struct axis axis[MAX_RANK + 1];
    uint32_t n = s->rank;
    CHECK(n <= MAX_RANK, "a value of rank %u", n);
    for (uint32_t d = 0; d < n; d++)
        axis[d] = (struct axis){dim_of(g, s, d), AXIS_P};
    if (h->kind == HERO_REDUCE) {
        const struct shape *in = graph_shape(g, graph_in(g, h->node, 0));
        for (uint32_t d = 0; d < n; d++) {
            int64_t e = dim_of(g, in, d);
            axis[d] = (struct axis){e, e != axis[d].extent ? AXIS_R : AXIS_P};
        }
    } else if (h->kind == HERO_SCAN) {
        axis[graph_attr(g, h->node)[0]].kind = AXIS_R;
    } else if (h->kind == HERO_SCATTER) {
        scattered_axes(g, h->node, axis, &n);
    } else if (h->kind == HERO_ORDER) {
        return order_map(f, gr, h);
    } else if (h->kind == HERO_CONTRACT) {
        const struct shape *a = graph_shape(g, graph_in(g, h->node, 0));
        axis[n++] = (struct axis){dim_of(g, a, a->rank - 1u), AXIS_R};
    }
    h->map = (struct imap){.rank = (uint8_t)n};
    for (uint32_t d = 0; d < n; d++) {
        if (axis[d].extent == 1 && h->kind != HERO_CONTRACT && h->kind != HERO_SCATTER)
            continue;
        bool back = h->kind == HERO_SCAN && axis[d].kind == AXIS_R && graph_attr(g, h->node)[1];
        h->map.c[d].base = back ? axis[d].extent - 1 : 0;
        h->map.c[d].stride[gr->naxes] = back ? -1 : 1;
        gr->axis[gr->naxes++] = axis[d];
    }
}

static void
add_group(struct fuser *f, uint32_t id)
{
    struct group gr = {0};
    initial_map(f, &gr, &f->hero.at[id]);
    vec_push(&gr.hero, id);
    gr.first_node = gr.last_node = f->hero.at[id].node.i;
    for (uint32_t a = 0; a < gr.naxes; a++)
        gr.dead |= gr.axis[a].extent == 0; // nothing to compute, nothing to launch
    f->hero.at[id].group = f->group.n;
    vec_push(&f->group, gr);
}

// Of the values that a group computes on its way to a node too large for one kernel, the nearest
// that can be stored instead, in breadth-first order, plain views last; 0: all it reads is stored.
static ref
nearest_inner(const struct fuser *f, ref node)
{
    const struct graph *g = f->g;
    bool *seen = xcalloc(g->node.n, 1);
    VEC(uint32_t) queue = {0};
    vec_push(&queue, node.i);
    ref found = {0}, view = {0};
    for (uint32_t next = 0; next < queue.n && !found.i; next++) {
        const struct node *n = graph_node(g, (ref){queue.at[next]});
        for (uint32_t k = 0; k < n->nin && !found.i; k++) {
            ref in = node_in(g, n, k);
            uint16_t op = graph_node(g, in)->op;
            if (seen[in.i] || f->hero_of[in.i] || op == OP_input || op == OP_literal)
                continue;
            seen[in.i] = true;
            if (op == OP_concat || !op_is(op, OPK_VIEW))
                found = in;
            else if (!view.i)
                view = in;
            vec_push(&queue, in.i);
        }
    }
    vec_free(&queue);
    xfree(seen);
    return found.i ? found : view;
}

// The value to store first so that a group can be built and scheduled alone; 0: it can be already.
static ref
obstacle(struct fuser *f, uint32_t group, uint8_t *reason)
{
    struct kernel k;
    struct schedule s;
    struct group *gr = &f->group.at[group];
    ref node = f->hero.at[gr->hero.at[0]].node, in = {0};
    struct body_result r = body_build_refined(f, gr, &k);
    bool fits = r.ok && finish_kernel(f, gr, &k, &s, UINT32_MAX, UINT32_MAX, &r.reason);
    gr->cost = fits ? kernel_cost(&k, &s, f->target) : COST_UNKNOWN;
    *reason = r.reason;
    if (!r.ok)
        in = r.node;
    else if (!fits)
        in = graph_in(f->g, node, 0); // dense, its axes merge
    if (!fits && (!in.i || f->hero_of[in.i]))
        in = nearest_inner(f, node);
    kernel_free_body(&k);
    CHECK(fits || in.i, "%s cannot be built: %s", op_name(graph_node(f->g, node)->op),
          reason_name[*reason]);
    return in;
}

// A value that becomes stored is from then on read by every group that computed it before: their
// bodies, and so what they are known to read, are built anew.
static void
build_alone(struct fuser *f)
{
    for (uint32_t known = 0; known < f->hero.n;) {
        known = f->hero.n;
        for (uint32_t i = 0; i < f->group.n; i++) {
            uint8_t reason;
            ref in = {0};
            while (!f->group.at[i].dead && (in = obstacle(f, i, &reason)).i)
                add_group(f, add_hero(f, in, HERO_STORE, reason));
        }
    }
}

void
choose_heroes(struct fuser *f)
{
    const struct graph *g = f->g;
    struct chooser c = {.f = f, .cone = xcalloc(g->node.n, sizeof *c.cone),
                        .mark = xcalloc(g->node.n, sizeof *c.mark), .live = graph_live(g),
                        .is_out = xcalloc(g->node.n, 1),
                        .uses = xcalloc(g->node.n, sizeof *c.uses),
                        .user = xcalloc(g->node.n, sizeof *c.user),
                        .windowed = xcalloc(g->node.n, sizeof *c.windowed),
                        .ends_epilogue = xcalloc(g->node.n, 1),
                        .ends_row = xcalloc(g->node.n, 1)};
    count_uses(&c);
    for (uint32_t i = 1; i < g->node.n; i++) {
        const struct node *n = &g->node.at[i];
        if (!c.live[i] || n->op == OP_input || n->op == OP_literal)
            continue;
        if (n->op == OP_matmul)
            store_dear_operands(&c, n);
        if (op_is(n->op, OPK_SCATTER)) // each part of the result goes through the whole index
            store_if_dear(&c, n->in[1].i);
        if (n->op == OP_sum)
            store_dear_factors(&c, (ref){i});
        if (op_is(n->op, OPK_SCAN) || op_is(n->op, OPK_ORDER) || op_is(n->op, OPK_REDUCE))
            store_if_shared(&c, n->in[0].i);
        if (c.is_out[i] && op_is(n->op, OPK_VIEW))
            store_if_shared(&c, i);
        cut_cone(&c, i);
        if (n->op == OP_matmul)
            c.ends_epilogue[epilogue_end(&c, i).i] = true;
        if (op_is(n->op, OPK_REDUCE))
            c.ends_row[epilogue_end(&c, i).i] = true;
        if (!is_inline(n->op))
            add_hero(f, (ref){i}, hero_kind(n->op), REASON_none);
        else if (c.is_out[i] || c.ends_epilogue[i] || replaces_reduction(&c, i))
            add_hero(f, (ref){i}, HERO_STORE, REASON_none);
        else if (c.uses[i] > 1 && c.cone[i].work > MAX_RECOMPUTE)
            add_hero(f, (ref){i}, HERO_STORE, REASON_recompute);
        store_if_windowed(&c, i);
    }
    mark_outputs(f);
    for (uint32_t id = 1; id < f->hero.n; id++)
        add_group(f, id);
    build_alone(f);
    xfree(c.is_out);
    xfree(c.uses);
    xfree(c.user);
    xfree(c.windowed);
    xfree(c.ends_epilogue);
    xfree(c.ends_row);
    xfree(c.cone);
    xfree(c.mark);
    xfree(c.live);
    vec_free(&c.stack);
}
