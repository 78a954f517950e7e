// body.c: builds the kernel body of a group.
//
// The obvious way, one loop nest per node, would store what fusion is to avoid. Instead each hero
// demands its operand at a map (where, as a function of the loop axes), and the demand walks back
// through pointwise nodes and views, composing maps, until it ends at a tensor in memory, a literal
// or a hero of the same group. A node demanded twice at one map is one instruction; at two maps it
// is computed twice, which recomputation always means here. The walk keeps its own stack: depth of
// the graph is no depth of the C stack.
//
// The body is built over the group's own axes in their order; kernel_normalise_axes follows.
#include "passes/body.h"

#include "ir/base/check.h"
#include "ir/order.h"

#include <string.h>

enum { MAX_INSTS = 4000 };

uint32_t
body_fail(struct body *b, uint8_t reason, ref node)
{
    if (!b->failed && !b->r.refine_axis)
        b->r = (struct body_result){.reason = reason, .node = node};
    b->failed = true;
    return 0;
}

// ---- maps

uint32_t
body_map(struct body *b, const struct imap *m)
{
    uint64_t h = hash_bytes(m->mask, m->c, m->rank * sizeof m->c[0]);
    h = hash_mix(hash_mix(h, m->check), m->rank);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&b->map_index, h, &at));)
        if (imap_equal(&b->maps.at[id], m))
            return id;
    vec_push(&b->maps, *m);
    map_add(&b->map_index, h, b->maps.n - 1);
    return b->maps.n - 1;
}

// ---- instructions

static uint8_t
level_of_strides(const struct body *b, const int64_t *stride)
{
    uint8_t level = LEVEL_ONCE;
    for (uint32_t a = 0; a < b->gr->naxes; a++) {
        if (!stride[a] || (b->gr->axis[a].extent == 1 && !b->keeps_unit))
            continue;
        if (b->gr->axis[a].kind == AXIS_R || !b->k->nred)
            return LEVEL_ELEM;
        level = LEVEL_ROW;
    }
    return level;
}

uint32_t
body_inst(struct body *b, struct inst in)
{
    const uint32_t operand[] = {in.a, in.b, in.c};
    for (uint32_t i = 0; i < 3; i++) {
        const struct inst *x = &b->k->inst.at[operand[i]];
        if (!operand[i])
            continue;
        in.stage = x->stage > in.stage ? x->stage : in.stage;
        in.level = x->level > in.level ? x->level : in.level;
    }
    in.origin = b->origin;
    uint64_t h = hash_mix(hash_mix(in.op, in.dtype), (uint64_t)in.a << 32 | in.b);
    h = hash_mix(hash_mix(h, (uint64_t)in.c << 32 | in.aux), in.bits);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&b->inst_index, h, &at));) {
        const struct inst *x = &b->k->inst.at[id];
        if (x->op == in.op && x->dtype == in.dtype && x->a == in.a && x->b == in.b &&
            x->c == in.c && x->aux == in.aux && x->bits == in.bits)
            return id;
    }
    if (b->k->inst.n >= MAX_INSTS)
        return body_fail(b, REASON_budget_insts, (ref){0});
    vec_push(&b->k->inst, in);
    map_add(&b->inst_index, h, b->k->inst.n - 1);
    return b->k->inst.n - 1;
}

uint32_t
body_literal(struct body *b, uint8_t dtype, uint64_t bits)
{
    return body_inst(b, (struct inst){.op = OP_literal, .dtype = dtype, .bits = bits});
}

static uint32_t
intern_access(struct body *b, bool affine, const struct access *a)
{
    struct map *index = affine ? &b->affine_index : &b->access_index;
    uint64_t h = hash_bytes((uint64_t)a->buffer << 8 | a->dtype, a->stride, sizeof a->stride);
    h = hash_mix(h, (uint64_t)a->base);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(index, h, &at));) {
        const struct access *x = affine ? &b->k->affine.at[id - 1] : &b->k->access.at[id - 1];
        if (x->buffer == a->buffer && x->dtype == a->dtype && x->base == a->base &&
            !memcmp(x->stride, a->stride, sizeof a->stride))
            return id - 1;
    }
    uint32_t id;
    if (affine) {
        id = b->k->affine.n;
        vec_push(&b->k->affine, *a);
    } else {
        id = b->k->access.n;
        vec_push(&b->k->access, *a);
    }
    map_add(index, h, id + 1);
    return id;
}

uint32_t
body_binary(struct body *b, uint16_t op, uint8_t dtype, uint32_t x, uint32_t y)
{
    return body_inst(b, (struct inst){.op = op, .dtype = dtype, .a = x, .b = y});
}

static uint32_t
affine_index(struct body *b, const struct coord *c)
{
    struct access a = {.dtype = DT_i64, .base = c->base};
    memcpy(a.stride, c->stride, sizeof a.stride);
    a.stride[AXIS_DYNAMIC] = 0;
    if (level_of_strides(b, a.stride) == LEVEL_ONCE)
        return body_literal(b, DT_i64, (uint64_t)c->base);
    return body_inst(b, (struct inst){.op = OP_index, .dtype = DT_i64,
                                      .aux = intern_access(b, true, &a),
                                      .level = level_of_strides(b, a.stride)});
}

// An instruction times a number.
static uint32_t
scaled(struct body *b, uint32_t x, int64_t times)
{
    if (times == 1)
        return x;
    return body_binary(b, OP_mul, DT_i64, x, body_literal(b, DT_i64, (uint64_t)times));
}

uint32_t
body_position(struct body *b, const struct coord *c)
{
    uint32_t at = affine_index(b, c);
    if (!c->dynamic)
        return at;
    uint32_t moved = scaled(b, (uint32_t)c->dynamic, c->stride[AXIS_DYNAMIC]);
    return body_binary(b, OP_add, DT_i64, at, moved);
}

bool
body_is_dynamic(const struct imap *m)
{
    bool dynamic = false;
    for (uint32_t d = 0; d < m->rank; d++)
        dynamic |= m->c[d].dynamic != 0;
    return dynamic;
}

uint32_t
body_both(struct body *b, uint32_t x, uint32_t y)
{
    return x && y ? body_binary(b, OP_and, DT_bool, x, y) : x ? x : y;
}

// lo <= coordinate < hi as a bool, or 0 when that always holds within the domain.
static uint32_t
in_bounds(struct body *b, const struct coord *c, int64_t lo, int64_t hi)
{
    int64_t least = c->base, most = c->base;
    for (uint32_t a = 0; a < b->gr->naxes; a++) {
        int64_t reach = c->stride[a] * (b->gr->axis[a].extent - 1);
        if (reach < 0)
            least += reach;
        else
            most += reach;
    }
    uint32_t at = body_position(b, c), ok = 0;
    if (least < lo || c->dynamic)
        ok = body_binary(b, OP_ge, DT_bool, at, body_literal(b, DT_i64, (uint64_t)lo));
    uint32_t end = body_literal(b, DT_i64, (uint64_t)hi);
    if (most >= hi || c->dynamic)
        ok = body_both(b, ok, body_binary(b, OP_lt, DT_bool, at, end));
    return ok;
}

// ---- tensors in memory

static uint16_t
kernel_buffer_of(struct body *b, uint32_t id, uint8_t dtype, uint8_t role)
{
    // Until the plan numbers buffers, a kernel buffer's span_lo holds the id asked for.
    for (uint32_t i = 0; i < b->k->buffers.n; i++)
        if (b->k->buffers.at[i].span_lo == (int64_t)id && b->k->buffers.at[i].role == role)
            return (uint16_t)i;
    struct kernel_buffer kb = {.dtype = dtype, .role = role, .span_lo = id};
    vec_push(&b->k->buffers, kb);
    return (uint16_t)(b->k->buffers.n - 1);
}

// The part of an address that data give: an extra index and what it is multiplied by. Positions of
// several dims are added up first.
static void
add_gather(struct body *b, struct inst *in, uint32_t index, int64_t stride)
{
    if (!in->a) {
        in->a = index;
        in->bits = (uint64_t)stride;
        return;
    }
    uint32_t so_far = scaled(b, in->a, (int64_t)in->bits);
    in->a = body_binary(b, OP_add, DT_i64, so_far, scaled(b, index, stride));
    in->bits = 1;
}

// gather: the load whose access it is; NULL: no position of the map is given by data.
static struct access
dense_access(struct body *b, const struct shape *s, const int64_t *stride, const struct imap *m,
             struct inst *gather)
{
    struct access a = {0};
    int64_t run = 1;
    for (uint32_t d = s->rank; d-- > 0;) {
        int64_t step = stride ? stride[d] : run;
        a.base += m->c[d].base * step;
        for (uint32_t i = 0; i < AXIS_DYNAMIC; i++)
            a.stride[i] += m->c[d].stride[i] * step;
        if (m->c[d].dynamic && step)
            add_gather(b, gather, (uint32_t)m->c[d].dynamic, m->c[d].stride[AXIS_DYNAMIC] * step);
        run *= dim_of(b->f->g, s, d);
    }
    return a;
}

// node: what the map is over: the stored value, or a reshape of it where it is dense.
static uint32_t
emit_load(struct body *b, ref node, ref stored, uint32_t hero, const struct imap *m)
{
    const struct node *n = graph_node(b->f->g, node);
    const int64_t *stride = NULL;
    uint32_t id = hero;
    bool by_value = false;
    if (!hero) {
        uint32_t input = (uint32_t)graph_attr(b->f->g, stored)[0];
        stride = node.i == stored.i ? b->f->g->inputs.at[input].stride : NULL;
        id = b->f->hero.n + input;
        by_value = b->f->g->inputs.at[input].by_value;
    }
    struct use u = {hero, node, *m};
    vec_push(&b->gr->use, u);
    struct inst in = {.op = OP_load, .dtype = n->dtype, .b = m->mask};
    struct access a = dense_access(b, graph_shape(b->f->g, node), stride, m, &in);
    a.dtype = n->dtype;
    a.buffer = kernel_buffer_of(b, id, n->dtype, BUF_IN);
    b->k->buffers.at[a.buffer].by_value = by_value;
    in.level = level_of_strides(b, a.stride);
    in.aux = intern_access(b, false, &a);
    if (in.a && m->check) {
        in.c = m->check;
        b->origin = b->k->inst.at[m->check].origin; // whose indices are out of range, if they are
    }
    return body_inst(b, in);
}

// ---- nodes

// The instruction of a node at a map, or 0 after pushing it on the stack.
uint32_t
body_demand(struct body *b, ref node, uint32_t map)
{
    uint64_t key = hash_mix(node.i, map);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&b->done_index, key, &at));)
        if (b->done.at[id].node.i == node.i && b->done.at[id].map == map)
            return b->done.at[id].inst;
    struct value v = {node, map, 0};
    vec_push(&b->stack, v);
    return 0;
}

static void
record(struct body *b, ref node, uint32_t map, uint32_t inst)
{
    struct value v = {node, map, inst};
    vec_push(&b->done, v);
    map_add(&b->done_index, hash_mix(node.i, map), b->done.n - 1);
}

static uint32_t
emit_elementwise(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    uint32_t v[3] = {0};
    bool ready = true;
    for (uint32_t i = 0; i < n->nin; i++) {
        struct imap m;
        broadcast_map(g, &b->maps.at[map], graph_shape(g, n->in[i]), &m);
        v[i] = body_demand(b, n->in[i], body_map(b, &m));
        ready &= v[i] != 0;
    }
    if (!ready)
        return 0;
    b->origin = n->origin;
    return body_inst(b, (struct inst){.op = n->op, .dtype = n->dtype, .a = v[0], .b = v[1],
                                     .c = v[2]});
}

static uint32_t
emit_pad(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    const struct shape *s = graph_shape(g, n->in[0]);
    struct imap m;
    view_map(g, r, 0, &b->maps.at[map], b->gr, &m, &b->r);
    b->origin = n->origin;
    uint32_t inside = 0;
    if (m.check) // where it fails, the position is none
        return body_fail(b, REASON_view_not_affine, r);
    for (uint32_t d = 0; d < s->rank; d++)
        inside = body_both(b, inside, in_bounds(b, &m.c[d], 0, dim_of(g, s, d)));
    m.mask = body_both(b, m.mask, inside);
    uint32_t x = body_demand(b, n->in[0], body_map(b, &m));
    if (!x || !inside)
        return x;
    uint64_t fill = (uint64_t)graph_attr(g, r)[2 * (s->rank + 1)];
    b->origin = n->origin;
    return body_inst(b, (struct inst){.op = OP_where, .dtype = n->dtype, .a = inside, .b = x,
                                     .c = body_literal(b, n->dtype, fill)});
}

// The input whose part holds the element; parts that the domain never reaches are left out.
static uint32_t
emit_concat(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    uint32_t axis = (uint32_t)graph_attr(g, r)[0], value = 0;
    bool ready = true;
    b->origin = n->origin;
    for (uint32_t i = n->nin; i-- > 0;) {
        ref in = node_in(g, n, i);
        int64_t extent = dim_of(g, graph_shape(g, in), axis);
        struct imap m;
        if (b->maps.at[map].check && b->maps.at[map].c[axis].dynamic)
            return body_fail(b, REASON_view_not_affine, r);
        view_map(g, r, i, &b->maps.at[map], b->gr, &m, &b->r);
        uint32_t inside = in_bounds(b, &m.c[axis], 0, extent);
        if (!extent)
            continue;
        m.mask = body_both(b, m.mask, inside);
        uint32_t x = body_demand(b, in, body_map(b, &m));
        ready &= x != 0;
        if (!ready)
            continue;
        b->origin = n->origin;
        value = !value || !inside ? x
                                  : body_inst(b, (struct inst){.op = OP_where, .dtype = n->dtype,
                                                              .a = inside, .b = x, .c = value});
    }
    return ready ? value : 0;
}

// A group on trial is not in the fuser's list yet; its heroes carry no number.
static bool
is_own(const struct body *b, uint32_t hero)
{
    uint32_t group = b->f->hero.at[hero].group;
    return group == UINT32_MAX || &b->f->group.at[group] == b->gr;
}

// A reshape that no loop axes express is still affine in its own dims when its operand lies dense
// in memory: row-major order is what a reshape keeps.
static bool
reads_as_stored(const struct body *b, ref r)
{
    const struct graph *g = b->f->g;
    if (graph_node(g, r)->op != OP_reshape)
        return false;
    ref x = graph_in(g, r, 0);
    uint32_t hero = b->f->hero_of[x.i];
    if (hero && !is_own(b, hero))
        return true;
    return graph_node(g, x)->op == OP_input && g->inputs.at[graph_attr(g, x)[0]].dense;
}

static uint32_t
emit_view(struct body *b, ref r, uint32_t map)
{
    const struct graph *g = b->f->g;
    const struct node *n = graph_node(g, r);
    if (n->op == OP_pad)
        return emit_pad(b, r, map);
    if (n->op == OP_concat)
        return emit_concat(b, r, map);
    struct imap m;
    if (view_map(g, r, 0, &b->maps.at[map], b->gr, &m, &b->r))
        return body_demand(b, n->in[0], body_map(b, &m));
    if (b->r.refine_axis && !group_may_split(b->f, b->gr, b->r.refine_axis - 1u))
        b->r.refine_axis = 0; // what would split it is stored
    if (!b->r.refine_axis && reads_as_stored(b, r)) {
        uint32_t hero = b->f->hero_of[n->in[0].i];
        return emit_load(b, r, n->in[0], hero && !is_own(b, hero) ? hero : 0, &b->maps.at[map]);
    }
    b->failed = true;
    if (!b->r.refine_axis) // read from its own dims it is affine; if that was tried, its operand
        b->r = (struct body_result){.reason = REASON_view_not_affine,
                                    .node = b->f->hero_of[r.i] ? n->in[0] : r};
    return 0;
}

static uint32_t
hero_position(const struct group *gr, uint32_t hero)
{
    for (uint32_t i = 0; i < gr->hero.n; i++)
        if (gr->hero.at[i] == hero)
            return i;
    CHECK(false, "hero %u is not in its group", hero);
}

// Where a hero's own result lies, as a map over its output's dims.
static void
result_map(const struct graph *g, const struct hero *h, struct imap *out)
{
    const struct shape *s = graph_shape(g, h->node);
    *out = (struct imap){.rank = s->rank};
    for (uint32_t d = 0; d < s->rank; d++)
        if (dim_of(g, s, d) != 1)
            out->c[d] = h->map.c[d];
}

static uint32_t
emit_own_result(struct body *b, uint32_t hero, uint32_t map)
{
    const struct hero *h = &b->f->hero.at[hero];
    struct imap own, asked = b->maps.at[map];
    result_map(b->f->g, h, &own);
    asked.mask = asked.check = 0;
    uint32_t result = b->result_of[hero_position(b->gr, hero)];
    if (!result || !imap_equal(&own, &asked))
        return body_fail(b, REASON_domain_differs, h->node);
    return result;
}

// Whether a value that is stored because it is dear is asked for at other points than its own.
static bool
again_elsewhere(const struct body *b, uint32_t hero, uint32_t map)
{
    const struct hero *h = &b->f->hero.at[hero];
    struct imap own, asked = b->maps.at[map];
    result_map(b->f->g, h, &own);
    asked.mask = asked.check = 0;
    return h->reason == REASON_recompute && !imap_equal(&own, &asked) &&
           !imap_equal(&h->map, &asked);
}

static uint32_t
emit_node(struct body *b, ref r, uint32_t map)
{
    const struct node *n = graph_node(b->f->g, r);
    uint32_t hero = b->f->hero_of[r.i];
    if (n->op == OP_input && (!hero || is_own(b, hero)))
        return emit_load(b, r, r, 0, &b->maps.at[map]);
    if (n->op == OP_literal) {
        b->origin = n->origin;
        return body_literal(b, n->dtype, (uint64_t)graph_attr(b->f->g, r)[0]);
    }
    if (hero && !is_own(b, hero)) {
        b->origin = 0; // computed elsewhere
        return emit_load(b, r, r, hero, &b->maps.at[map]);
    }
    if (hero && b->f->hero.at[hero].kind != HERO_STORE)
        return emit_own_result(b, hero, map);
    if (hero && again_elsewhere(b, hero, map))
        return body_fail(b, REASON_recompute, r);
    if (op_is(n->op, OPK_ELEM))
        return emit_elementwise(b, r, map);
    if (op_is(n->op, OPK_VIEW))
        return emit_view(b, r, map);
    if (op_is(n->op, OPK_INDEX))
        return body_index_op(b, r, map);
    CHECK(false, "%s reached the kernel builder", op_name(n->op));
}

uint32_t
body_emit(struct body *b, ref node, const struct imap *m)
{
    uint32_t map = body_map(b, m), inst = body_demand(b, node, map);
    while (b->stack.n && !b->failed) {
        struct value top = b->stack.at[b->stack.n - 1];
        uint32_t before = b->stack.n;
        inst = body_demand(b, top.node, top.map);
        if (inst) {
            b->stack.n = before - 1;
            continue;
        }
        b->stack.n = before; // demand pushed it again
        inst = emit_node(b, top.node, top.map);
        if (inst && !b->failed) {
            record(b, top.node, top.map, inst);
            b->stack.n = before - 1;
        }
    }
    if (b->failed)
        return 0;
    b->stack.n = 0;
    inst = body_demand(b, node, map);
    b->stack.n = 0;
    return inst;
}

// ---- heroes

static void
add_store(struct body *b, const struct hero *h, uint32_t hero, uint32_t value, const struct imap *m)
{
    struct access a = dense_access(b, graph_shape(b->f->g, h->node), NULL, m, NULL);
    a.dtype = graph_node(b->f->g, h->node)->dtype;
    a.buffer = kernel_buffer_of(b, hero, a.dtype, BUF_OUT);
    const struct inst *v = &b->k->inst.at[value];
    struct store s = {.value = value, .access = intern_access(b, false, &a), .stage = v->stage,
                      .level = level_of_strides(b, a.stride)};
    if (v->level == LEVEL_ROW && s.level == LEVEL_ONCE && kernel_points(b->k, AXIS_P) == 1)
        s.level = LEVEL_ROW; // one row: its store depends on no axis
    bool once = s.level == LEVEL_ONCE && b->has_over_p, distinct = true;
    for (uint32_t x = 0; x < b->gr->naxes && !once; x++)
        distinct &= a.stride[x] || b->gr->axis[x].extent == 1 ||
                    (b->gr->axis[x].kind == AXIS_R && s.level <= LEVEL_ROW);
    if (v->level > s.level || !distinct) {
        body_fail(b, REASON_domain_differs, h->node);
        return;
    }
    vec_push(&b->k->store, s);
}

uint32_t
body_acc(struct body *b, const struct hero *h, uint16_t op, uint8_t dtype, uint32_t value,
        uint8_t stage)
{
    bool scan = h->kind == HERO_SCAN;
    if (stage + 1 >= MAX_STAGES)
        return body_fail(b, REASON_budget_stages, h->node);
    struct acc acc = {.op = op, .dtype = dtype, .stage = stage, .value = value,
                      .scope = scan ? ALONG_R : h->over_p ? OVER_P : OVER_R,
                      .origin = graph_node(b->f->g, h->node)->origin};
    vec_push(&b->k->acc, acc);
    b->origin = acc.origin;
    return body_inst(b, (struct inst){.op = OP_result,
                                     .dtype = op_gives_position(op) ? DT_i64 : dtype,
                                     .aux = b->k->acc.n - 1, .stage = (uint8_t)(stage + !scan),
                                     .level = scan        ? LEVEL_ELEM
                                              : h->over_p ? LEVEL_ONCE
                                                          : LEVEL_ROW});
}

uint32_t
body_per_element(struct body *b, uint32_t v)
{
    const struct inst *x = &b->k->inst.at[v];
    if (x->level == LEVEL_ELEM)
        return v;
    return body_inst(b, (struct inst){.op = OP_cast, .dtype = x->dtype, .a = v,
                                     .level = LEVEL_ELEM});
}

// A reduction or a scan.
static uint32_t
build_reduce(struct body *b, const struct hero *h)
{
    ref operand = graph_in(b->f->g, h->node, 0);
    uint32_t v = body_emit(b, operand, &h->map);
    if (!v)
        return 0;
    if (!h->over_p)
        v = body_per_element(b, v);
    const struct inst *x = &b->k->inst.at[v];
    if (h->over_p && x->level == LEVEL_ELEM)
        return body_fail(b, REASON_domain_differs, h->node);
    return body_acc(b, h, graph_node(b->f->g, h->node)->op, x->dtype, v, x->stage);
}

// Whether c is the index of axis a and nothing else.
static bool
is_axis(const struct body *b, const struct coord *c, uint32_t a)
{
    bool plain = c->stride[a] == 1 && !c->base;
    for (uint32_t i = 0; i < b->gr->naxes; i++)
        plain &= i == a || !c->stride[i];
    return plain;
}

// The last P axis must be the place in order and the one R axis the line: what has split one of
// them (a reshape of the result) is read from memory.
static uint32_t
build_order(struct body *b, const struct hero *h)
{
    const struct graph *g = b->f->g;
    struct order o = order_of(graph_node(g, h->node)->op, graph_attr(g, h->node));
    ref operand = graph_in(g, h->node, 0);
    const struct shape *s = graph_shape(g, operand);
    uint32_t j = 0, r = 0;
    for (uint32_t a = 0; a < b->gr->naxes; a++)
        *(b->gr->axis[a].kind == AXIS_R ? &r : &j) = a;
    if (b->k->nred != 1 || !is_axis(b, &h->map.c[o.axis], j) || !is_axis(b, &h->map.c[s->rank], r))
        return body_fail(b, REASON_no_class, operand);
    struct imap m = {.rank = s->rank};
    for (uint32_t d = 0; d < s->rank; d++)
        if (dim_of(g, s, d) != 1)
            m.c[d] = h->map.c[d == o.axis ? s->rank : d];
    uint32_t v = body_emit(b, operand, &m);
    if (!v)
        return 0;
    v = body_per_element(b, v);
    if (b->k->inst.at[v].stage)
        return body_fail(b, REASON_no_class, operand);
    uint16_t op = graph_node(g, h->node)->op;
    uint32_t result = body_acc(b, h, op, b->k->inst.at[v].dtype, v, 0);
    if (result)
        b->k->acc.at[b->k->acc.n - 1].descending = o.descending;
    b->k->cls = CLASS_SORT;
    return result;
}

static uint32_t
build_contract(struct body *b, const struct hero *h)
{
    const struct graph *g = b->f->g;
    uint32_t rank = h->map.rank, value[2]; // map: batch …, m, n, k
    for (uint32_t side = 0; side < 2; side++) {
        ref in = graph_in(g, h->node, side);
        const struct shape *s = graph_shape(g, in);
        struct imap m = {.rank = s->rank};
        uint32_t skip = rank - 1 - s->rank;
        for (uint32_t d = 0; d + 2 < s->rank; d++)
            if (dim_of(g, s, d) != 1)
                m.c[d] = h->map.c[skip + d];
        m.c[s->rank - 2] = side ? h->map.c[rank - 1] : h->map.c[rank - 3];
        m.c[s->rank - 1] = side ? h->map.c[rank - 2] : h->map.c[rank - 1];
        value[side] = body_emit(b, in, &m);
        if (!value[side])
            return 0;
        if (b->k->inst.at[value[side]].stage)
            return body_fail(b, REASON_no_class, h->node);
    }
    uint8_t dtype = graph_node(g, h->node)->dtype;
    uint32_t result = body_acc(b, h, OP_sum, dtype, 0, 0);
    b->k->cls = CLASS_CONTRACT;
    b->k->contraction = (struct contraction){value[0], value[1], b->k->acc.n - 1};
    return result;
}

static void
build_hero(struct body *b, uint32_t position)
{
    uint32_t id = b->gr->hero.at[position];
    const struct hero *h = &b->f->hero.at[id];
    uint32_t v = h->kind == HERO_STORE      ? body_emit(b, h->node, &h->map)
                 : h->kind == HERO_CONTRACT ? build_contract(b, h)
                 : h->kind == HERO_ORDER    ? build_order(b, h)
                 : h->kind == HERO_SCATTER  ? body_scatter(b, h)
                                            : build_reduce(b, h);
    if (!v || b->failed) {
        b->failed = true;
        return;
    }
    b->result_of[position] = v;
    if (h->kind == HERO_STORE) {
        add_store(b, h, id, v, &h->map);
    } else {
        struct imap own;
        result_map(b->f->g, h, &own);
        add_store(b, h, id, v, &own); // dropped later when nobody outside reads it
    }
}

// A result over the whole of P exists only when all points of P are done: what needs it must be
// ONCE too.
static void
check_over_p(struct body *b)
{
    const struct kernel *k = b->k;
    bool *after = xcalloc(k->inst.n, 1);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        after[i] = after[x->a] || after[x->b] || after[x->c] ||
                   (x->op == OP_result && k->acc.at[x->aux].scope == OVER_P);
        if (after[i] && x->level != LEVEL_ONCE)
            body_fail(b, REASON_needs_grid_barrier, (ref){0});
    }
    for (uint32_t i = 0; i < k->store.n; i++)
        if (after[k->store.at[i].value] && k->store.at[i].level != LEVEL_ONCE)
            body_fail(b, REASON_needs_grid_barrier, (ref){0});
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (after[k->acc.at[i].value])
            body_fail(b, REASON_needs_grid_barrier, (ref){0});
    xfree(after);
}

static void
body_free(struct body *b)
{
    vec_free(&b->maps);
    vec_free(&b->done);
    vec_free(&b->stack);
    map_free(&b->map_index);
    map_free(&b->done_index);
    map_free(&b->inst_index);
    map_free(&b->access_index);
    map_free(&b->affine_index);
    xfree(b->result_of);
}

struct body_result
body_build(struct fuser *f, struct group *gr, struct kernel *k)
{
    struct body b = {.f = f, .gr = gr, .k = k};
    *k = (struct kernel){.naxis = gr->naxes};
    memcpy(k->axis, gr->axis, sizeof gr->axis);
    for (uint32_t a = 0; a < gr->naxes; a++)
        k->nred = (uint8_t)(k->nred + (gr->axis[a].kind == AXIS_R));
    vec_push(&k->inst, ((struct inst){0}));
    vec_push(&b.maps, ((struct imap){0}));
    vec_push(&b.done, ((struct value){0}));
    b.result_of = xcalloc(gr->hero.n, sizeof *b.result_of);
    gr->use.n = 0;
    for (uint32_t i = 0; i < gr->hero.n; i++) {
        b.keeps_unit |= hero_sets_domain(f->hero.at[gr->hero.at[i]].kind);
        b.has_over_p |= f->hero.at[gr->hero.at[i]].over_p;
    }
    for (uint32_t i = 0; i < gr->hero.n && !b.failed; i++)
        build_hero(&b, i);
    if (!b.failed)
        check_over_p(&b);
    b.r.ok = !b.failed;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].stage >= k->nstage)
            k->nstage = (uint8_t)(k->inst.at[i].stage + 1);
    f->work += b.done.n;
    body_free(&b);
    return b.r;
}

bool
group_may_split(const struct fuser *f, const struct group *gr, uint32_t axis)
{
    for (uint32_t i = 0; i < gr->hero.n; i++)
        if (hero_sets_domain(f->hero.at[gr->hero.at[i]].kind))
            return axis + 2 < gr->naxes;
    return true;
}

void
group_split_axis(struct fuser *f, struct group *gr, uint32_t axis, int64_t inner)
{
    CHECK(gr->naxes < AXIS_DYNAMIC, "too many axes");
    CHECK(group_may_split(f, gr, axis), "a class has one loop for axis %u", axis);
    for (uint32_t a = gr->naxes; a > axis + 1; a--)
        gr->axis[a] = gr->axis[a - 1];
    gr->naxes++;
    gr->axis[axis + 1] = (struct axis){inner, gr->axis[axis].kind};
    gr->axis[axis].extent /= inner;
    for (uint32_t i = 0; i < gr->hero.n; i++) {
        struct imap *m = &f->hero.at[gr->hero.at[i]].map;
        for (uint32_t d = 0; d < m->rank; d++) {
            int64_t *s = m->c[d].stride;
            for (uint32_t a = AXIS_DYNAMIC - 1; a > axis + 1; a--)
                s[a] = s[a - 1];
            s[axis + 1] = s[axis];
            s[axis] *= inner;
        }
    }
}

struct body_result
body_build_refined(struct fuser *f, struct group *gr, struct kernel *k)
{
    for (;;) {
        struct body_result r = body_build(f, gr, k);
        if (r.ok || !r.refine_axis)
            return r;
        bool scattered = k->cls == CLASS_SCATTER && k->scatter.axis == r.refine_axis - 1;
        kernel_free_body(k);
        if (gr->naxes + 1 >= AXIS_DYNAMIC || scattered)
            return (struct body_result){.reason = REASON_view_not_affine, .node = r.node};
        group_split_axis(f, gr, r.refine_axis - 1u, r.refine_by);
    }
}
