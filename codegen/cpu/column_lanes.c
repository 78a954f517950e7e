// column_lanes.c: column kernels of one reduction whose lanes are taken one after the other.
//
// column.c visits rows in order, so that the 16 lanes of a column (ir/kernel.h) are all under way
// and their partial sums take 16 arrays a level. Here a pass goes through the blocks of 256 rows
// for `tile[2]` lanes only: the 16 rows of a lane and block are one chain in registers, which goes
// to the lane's binary counter by one load and store in the mean. With few lanes a pass strips are
// as wide as rows of memory, which then are read from end to end, 16 at once; where rows are short
// the lanes of a pass, which stand one after the other in memory, are as good as one long row.
//
// A unit is a strip, a group of lanes and a part: `chunk` rows, a power of two of blocks, so that
// each part is a subtree of the counter. What it leaves, one partial result a lane and column, goes
// to args->shared, and kernel_finish joins parts and lanes. Without a second phase (finish_units 0)
// a unit is a strip with all its lanes and rows.
//
// The columns of a strip are taken `rows` vectors at once, so that several chains are under way and
// what belongs to a row is fetched once for all. Chains of `unroll` rows are written out, all rows
// at once or, where these come from memory, edge[1] of them in a go through the strip, as memory
// likes few streams; between the goes chains are held in the counter's free level. With `prefetch`
// each load asks for what lies so many rows on. Others (shorter ones of the last block, costly
// bodies) are loops. Columns that fill no such group go by single vectors under a mask.
#include "codegen/cpu/column.h"

#include "ir/base/size.h"
#include "passes/schedule.h"

#include <string.h>

enum { MAX_VECTORS = 4, MAX_ACCS = 8 };

struct lanes {
    struct column c;
    uint32_t vectors;    // at once
    uint32_t run;        // rows of a chain taken in one go through the strip
    const char *lane;    // i64: the lane at hand
    const char *lane_at; // i64: its place in a slot
    const char *row0;    // i64: first row of the block
    const char *count;   // i64: blocks of the part so far, this one too
    const char *rows;    // i64: rows of the lane in the block
    bool counts;         // there is more than one block (or part) to be counted
};

// ---- the binary counter

// Carries n vectors of all accumulators around a loop; v: [n][nacc], their start and then the phis.
static void
carry(struct column *c, struct emit_loop *l, uint32_t n, struct emit_acc *v)
{
    struct emitter *e = c->e;
    for (uint32_t i = 0; i < n * c->nacc; i++) {
        uint8_t dtype = c->acc[i % c->nacc]->dtype;
        v[i].value = emit_carry(e, l, emit_type(e, dtype, c->vec), v[i].value);
        if (v[i].index)
            v[i].index = emit_carry(e, l, emit_type(e, DT_i64, c->vec), v[i].index);
    }
}

static void
close_carrying(struct column *c, struct emit_loop *l, uint32_t n, const struct emit_acc *v)
{
    const char *next[EMIT_MAX_CARRY];
    uint32_t m = 0;
    for (uint32_t i = 0; i < n * c->nacc; i++) {
        next[m++] = v[i].value;
        if (v[i].index)
            next[m++] = v[i].index;
    }
    emit_loop_close(c->e, l, next);
}

// The place of vector w of those at hand.
static const char *
place(struct lanes *s, uint32_t w)
{
    struct emitter *e = s->c.e;
    const char *at = emit_add(e, s->lane_at, s->c.local);
    return emit_add(e, at, emit_text(e, "%u", w * s->c.vec));
}

// The level at which the counter is empty below `count`, and what makes that count ends up.
static const char *
first_free(struct lanes *s)
{
    return s->counts ? emit_op(s->c.e, "call i64 @llvm.cttz.i64(i64 %s, i1 true)", s->count) : "0";
}

// The block (or part) that makes the count `count` joins what has been counted. v: [n][nacc].
static void
push(struct lanes *s, uint32_t n, struct emit_acc *v)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const char *top = first_free(s);
    if (s->counts) {
        struct emit_acc joined[MAX_VECTORS * MAX_ACCS];
        struct emit_loop l;
        emit_loop_open(e, &l, "0", top, "1");
        carry(c, &l, n, v);
        emit_loop_body(e, &l);
        const char *slot = column_slot(c, l.index);
        for (uint32_t i = 0; i < n * c->nacc; i++) {
            const struct acc *a = c->acc[i % c->nacc];
            struct emit_acc older = column_load_acc(c, a, slot, place(s, i / c->nacc));
            joined[i] = emit_acc_join(e, a, c->vec, older, v[i]);
        }
        close_carrying(c, &l, n, joined);
    }
    const char *slot = column_slot(c, top);
    for (uint32_t i = 0; i < n * c->nacc; i++)
        column_store_acc(c, c->acc[i % c->nacc], slot, place(s, i / c->nacc), v[i]);
}

// Joins what the counter holds after `count` blocks into its lowest slot in use; returns that slot.
static const char *
pop(struct lanes *s, const char *count)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    if (!s->counts)
        return column_slot(c, "0");
    const char *lowest = emit_op(e, "call i64 @llvm.cttz.i64(i64 %s, i1 true)", count);
    const char *newest = column_slot(c, lowest);
    const char *rest = emit_op(e, "and i64 %s, %s", count, emit_add(e, count, "-1"));
    const char *slots = emit_op(e, "call i64 @llvm.ctpop.i64(i64 %s)", rest);
    struct emit_loop down, l;
    emit_loop_open(e, &down, "0", slots, "1");
    const char *left = emit_carry(e, &down, "i64", rest);
    emit_loop_body(e, &down);
    const char *level = emit_op(e, "call i64 @llvm.cttz.i64(i64 %s, i1 false)", left);
    const char *slot = column_slot(c, level);
    emit_loop_open(e, &l, "0", emit_text(e, "%lld", (long long)(c->lanes * c->strip)),
                   emit_text(e, "%u", c->vec));
    emit_loop_body(e, &l);
    for (uint32_t i = 0; i < c->nacc; i++) {
        struct emit_acc older = column_load_acc(c, c->acc[i], slot, l.index);
        struct emit_acc newer = column_load_acc(c, c->acc[i], newest, l.index);
        column_store_acc(c, c->acc[i], newest, l.index,
                         emit_acc_join(e, c->acc[i], c->vec, older, newer));
    }
    emit_loop_close(e, &l, NULL);
    const char *next = emit_op(e, "and i64 %s, %s", left, emit_add(e, left, "-1"));
    emit_loop_close(e, &down, &next);
    return newest;
}

// ---- chains

// Row `step` of the lane in the block: what belongs to it alone is computed, or read, here.
static struct emit_scope
bind_row(struct lanes *s, const char *step, const char **row)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    struct emit_scope scope = emit_scope(e, c->unit, 1);
    const char *at = emit_add(e, emit_mul(e, step, emit_text(e, "%d", RED_LANES)), s->lane);
    *row = emit_add(e, s->row0, at);
    emit_bind(&scope, k->naxis - 1, EMIT_UNIFORM, *row);
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (c->factor[i]) {
            const char *index =
                emit_mul(e, at, emit_text(e, "%u", dtype_size(k->inst.at[i].dtype)));
            const char *p = emit_ptr(e, emit_scratch(e, c->factor[i] - 1), index, "i8");
            emit_set(
                &scope, i,
                emit_load_raw(e, k->inst.at[i].dtype, 1, p, NULL, dtype_size(k->inst.at[i].dtype)));
        }
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        const uint32_t operand[] = {in->a, in->b, in->c};
        if (in->level != LEVEL_ELEM || !(e->depends[i] >> c->axis & 1))
            continue;
        for (uint32_t j = 0; j < 3; j++)
            if (operand[j] && k->inst.at[operand[j]].level == LEVEL_ELEM &&
                !(e->depends[operand[j]] >> c->axis & 1))
                emit_value(e, &scope, operand[j]);
        if (in->op == OP_load)
            emit_address(e, &scope, in->aux);
    }
    return scope;
}

// The elements of a row joined to n vectors' chains; start: they begin here.
static void
add_row(struct lanes *s, struct emit_scope *row, const char *j, uint32_t n, const char *mask,
        bool start, struct emit_acc *v)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const char *first = c->global, *local = c->local;
    for (uint32_t w = 0; w < n; w++) {
        c->global = emit_add(e, first, emit_text(e, "%u", w * c->vec));
        c->local = emit_add(e, local, emit_text(e, "%u", w * c->vec));
        struct emit_scope at = column_scope(c, row, mask);
        if (e->sched->prefetch && !mask)
            column_ask_ahead(c, &at);
        for (uint32_t i = 0; i < c->nacc; i++) {
            const struct acc *a = c->acc[i];
            struct emit_acc *to = &v[w * c->nacc + i];
            const char *position = acc_is_arg(a) ? emit_splat_i64(e, j, c->vec) : NULL;
            struct emit_acc x =
                emit_acc_element(e, a, c->vec, emit_value(e, &at, a->value), position, NULL);
            *to = start ? x : emit_acc_join(e, a, c->vec, *to, x);
        }
    }
    c->global = first;
    c->local = local;
}

// Chains as loops over the lane's rows of the block.
static void
looping_chains(struct lanes *s, uint32_t n, const char *mask)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    struct emit_acc v[MAX_VECTORS * MAX_ACCS], next[MAX_VECTORS * MAX_ACCS];
    for (uint32_t i = 0; i < n * c->nacc; i++)
        v[i] = emit_acc_identity(e, c->acc[i % c->nacc], c->vec);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", s->rows, "1");
    carry(c, &l, n, v);
    emit_loop_body(e, &l);
    const char *j;
    struct emit_scope row = bind_row(s, l.index, &j);
    memcpy(next, v, sizeof *v * n * c->nacc);
    add_row(s, &row, j, n, mask, false, next);
    close_carrying(c, &l, n, next);
    push(s, n, v);
}

static void
column_loop(struct lanes *s, struct emit_loop *l, const char *from, const char *to, uint32_t step)
{
    struct column *c = &s->c;
    emit_loop_open(c->e, l, from, to, emit_text(c->e, "%u", step));
    emit_loop_body(c->e, l);
    c->local = l->index;
    c->global = emit_add(c->e, c->first, l->index);
}

// Some rows of all chains: `at`'s rows are added to what chains hold, or begin them; what they come
// to is held, in the place of the counter that it will take, or goes to the counter.
struct run {
    const char *at; // the first row, a step of the lane
    bool begins, ends;
};

static void
run_of_chains(struct lanes *s, const char *whole, const struct run *r)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    struct emit_scope row[RED_STEPS];
    const char *j[RED_STEPS];
    for (uint32_t u = 0; u < s->run; u++)
        row[u] = bind_row(s, emit_add(e, r->at, emit_text(e, "%u", u)), &j[u]);
    const char *held = r->begins && r->ends ? NULL : column_slot(c, first_free(s));
    struct emit_loop l;
    column_loop(s, &l, "0", whole, s->vectors * c->vec);
    struct emit_acc v[MAX_VECTORS * MAX_ACCS];
    uint32_t n = s->vectors * c->nacc;
    for (uint32_t i = 0; !r->begins && i < n; i++)
        v[i] = column_load_acc(c, c->acc[i % c->nacc], held, place(s, i / c->nacc));
    for (uint32_t u = 0; u < s->run; u++)
        add_row(s, &row[u], j[u], s->vectors, NULL, r->begins && u == 0, v);
    for (uint32_t i = 0; !r->ends && i < n; i++)
        column_store_acc(c, c->acc[i % c->nacc], held, place(s, i / c->nacc), v[i]);
    if (r->ends)
        push(s, s->vectors, v);
    emit_loop_close(e, &l, NULL);
}

// Chains of `unroll` rows, `run` rows at a time.
static void
written_out_chains(struct lanes *s, const char *whole)
{
    struct emitter *e = s->c.e;
    uint32_t last = s->c.unroll - s->run;
    run_of_chains(s, whole, &(struct run){.at = "0", .begins = true, .ends = !last});
    if (!last)
        return;
    if (last > s->run) {
        struct emit_loop l;
        emit_loop_open(e, &l, emit_text(e, "%u", s->run), emit_text(e, "%u", last),
                       emit_text(e, "%u", s->run));
        emit_loop_body(e, &l);
        run_of_chains(s, whole, &(struct run){.at = l.index});
        emit_loop_close(e, &l, NULL);
    }
    run_of_chains(s, whole, &(struct run){.at = emit_text(e, "%u", last), .ends = true});
}

static void
wide_loops(struct lanes *s, const char *whole)
{
    struct column *c = &s->c;
    struct emit_loop l;
    column_loop(s, &l, "0", whole, s->vectors * c->vec);
    looping_chains(s, s->vectors, NULL);
    emit_loop_close(c->e, &l, NULL);
}

// One lane's rows of one block.
static void
emit_lane(struct lanes *s)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const char *whole = emit_op(e, "and i64 %s, -%u", c->width, s->vectors * c->vec);
    bool loops = !c->unroll || e->sched->edge[0];
    if (c->unroll && loops) {
        const char *same = emit_op(e, "icmp eq i64 %s, %u", s->rows, c->unroll);
        const char *out = emit_label(e, "whole"), *part = emit_label(e, "short");
        const char *done = emit_label(e, "chained");
        emit_branch(e, same, out, part);
        emit_place(e, out);
        written_out_chains(s, whole);
        emit_jump(e, done);
        emit_place(e, part);
        wide_loops(s, whole);
        emit_jump(e, done);
        emit_place(e, done);
    } else if (loops) {
        wide_loops(s, whole);
    } else {
        written_out_chains(s, whole);
    }
    struct emit_loop l;
    column_loop(s, &l, whole, c->width, c->vec);
    const char *left = emit_op(e, "sub nsw i64 %s, %s", c->width, l.index);
    looping_chains(s, 1, emit_tail_mask(e, c->vec, left));
    emit_loop_close(e, &l, NULL);
}

// ---- blocks

// Factors of the block's rows, in vectors along them.
static void
emit_factors(struct lanes *s, const char *rows)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    bool any = false;
    for (uint32_t i = 1; i < k->inst.n; i++)
        any |= c->factor[i] != 0;
    if (!any)
        return;
    struct emit_loop l;
    emit_loop_open(e, &l, "0", rows, emit_text(e, "%u", c->vec));
    emit_loop_body(e, &l);
    struct emit_scope at = emit_scope(e, c->unit, c->vec);
    emit_bind(&at, k->naxis - 1, EMIT_LANES, emit_add(e, s->row0, l.index));
    at.mask = emit_tail_mask(e, c->vec, emit_op(e, "sub nsw i64 %s, %s", rows, l.index));
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (c->factor[i])
            column_store(c, "%scratch", c->factor[i] - 1, l.index, k->inst.at[i].dtype,
                         emit_value(e, &at, i));
    emit_loop_close(e, &l, NULL);
}

// The rows of part `part`, lanes from `first` on; returns the slot that holds what they come to.
static const char *
emit_part(struct lanes *s, const char *part, const char *first)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const char *rows = emit_named(e, "points", kernel_points(&e->kernel, AXIS_R));
    const char *length = emit_named(e, "chunk", e->sched->chunk);
    const char *from = emit_mul(e, part, length);
    const char *to = emit_min(e, emit_add(e, from, length), rows);
    const char *blocks = emit_op(e, "sub nsw i64 %s, %s", to, from);
    blocks = emit_op(e, "lshr i64 %s, 8", emit_add(e, blocks, emit_text(e, "%d", RED_BLOCK - 1)));
    blocks = emit_op(e, "call i64 @llvm.smax.i64(i64 %s, i64 1)", blocks); // no rows: one, empty
    struct emit_loop b, l;
    emit_loop_open(e, &b, "0", blocks, "1");
    emit_loop_body(e, &b);
    s->count = emit_add(e, b.index, "1");
    s->row0 = emit_add(e, from, emit_op(e, "shl nsw i64 %s, 8", b.index));
    const char *left = emit_op(e, "sub nsw i64 %s, %s", to, s->row0);
    left = emit_min(e, left, emit_text(e, "%d", RED_BLOCK));
    emit_factors(s, left);
    emit_loop_open(e, &l, "0", emit_text(e, "%u", c->lanes), "1");
    emit_loop_body(e, &l);
    s->lane = emit_add(e, first, l.index);
    s->lane_at = emit_mul(e, l.index, emit_text(e, "%lld", (long long)c->strip));
    const char *mine = emit_op(e, "sub nsw i64 %s, %s", left, s->lane);
    mine = emit_add(e, mine, emit_text(e, "%d", RED_LANES - 1));
    s->rows = emit_op(e, "ashr i64 %s, 4", mine);
    emit_lane(s);
    emit_loop_close(e, &l, NULL);
    emit_loop_close(e, &b, NULL);
    return pop(s, blocks);
}

// ---- functions

struct split { // how units are counted: strips fastest, then groups, parts, outer points
    int64_t strips, groups, parts;
    int64_t strip, lanes, slot_bytes; // of the slot that a unit leaves
    int64_t *acc_at;                  // per accumulator of the stage: its place in there
};

// What a unit leaves, an image of its slot.
static const char *
shared_slot(struct column *c, const struct split *p, const char *unit)
{
    const char *bytes = emit_text(c->e, "%lld", (long long)p->slot_bytes);
    return emit_ptr(c->e, emit_shared(c->e), emit_mul(c->e, unit, bytes), "i8");
}

static void
emit_kernel(struct lanes *s, const struct split *p)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    struct column_units u;
    column_units_open(c, &u, "kernel");
    const char *strip, *group = "0", *part = "0";
    const char *outer = column_divide(e, u.loop.index, "strips", p->strips, &strip);
    if (c->partial) {
        outer = column_divide(e, outer, "groups", p->groups, &group);
        outer = column_divide(e, outer, "parts", p->parts, &part);
    }
    column_unit(c, outer, strip);
    column_stage(c, 0);
    const char *lane = emit_mul(e, group, emit_text(e, "%u", c->lanes));
    const char *slot = emit_part(s, part, lane);
    if (c->partial) {
        const char *to = shared_slot(c, p, u.loop.index);
        struct emit_loop copy;
        emit_loop_open(e, &copy, "0", emit_text(e, "%lld", (long long)(c->lanes * c->strip)),
                       emit_text(e, "%u", c->vec));
        emit_loop_body(e, &copy);
        for (uint32_t i = 0; i < c->nacc; i++)
            column_store_acc(c, c->acc[i], to, copy.index,
                             column_load_acc(c, c->acc[i], slot, copy.index));
        emit_loop_close(e, &copy, NULL);
    } else {
        column_results(c, slot);
        for (uint32_t stage = 1; stage < e->kernel.nstage; stage++)
            column_stage(c, stage);
    }
    emit_loop_close(e, &u.loop, NULL);
    emit_function_end(e);
}

// What a unit left of its lane `lane`, columns from `column` on (i64 both).
static struct emit_acc
load_shared(struct column *c, const struct split *p, uint32_t acc, const char *slot,
            const char *index)
{
    const struct acc *a = c->acc[acc];
    struct emit_acc v = {.value = column_load(c, slot, p->acc_at[acc], index, a->dtype)};
    if (acc_is_arg(a))
        v.index = column_load(c, slot, p->acc_at[acc] + p->lanes * p->strip * dtype_size(a->dtype),
                              index, DT_i64);
    return v;
}

// All parts of a lane's columns, one after the other, to the counter.
static void
emit_join(struct lanes *s, const struct split *p, const char *outer)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    const char *width = emit_text(e, "%lld", (long long)p->strip), *at, *mine;
    const char *strip = emit_op(e, "udiv i64 %s, %s", c->first, width);
    at = emit_op(e, "sub nsw i64 %s, %s", c->first, emit_mul(e, strip, width));
    const char *parts = emit_named(e, "parts", p->parts),
               *groups = emit_named(e, "groups", p->groups);
    const char *strips = emit_named(e, "strips", p->strips);
    struct emit_loop part, lane, l;
    emit_loop_open(e, &part, "0", parts, "1");
    emit_loop_body(e, &part);
    s->count = emit_add(e, part.index, "1");
    const char *above = emit_add(e, emit_mul(e, outer, parts), part.index);
    emit_loop_open(e, &lane, "0", emit_text(e, "%d", RED_LANES), "1");
    emit_loop_body(e, &lane);
    const char *group = emit_op(e, "udiv i64 %s, %lld", lane.index, (long long)p->lanes);
    mine = emit_op(e, "urem i64 %s, %lld", lane.index, (long long)p->lanes);
    const char *unit = emit_add(e, emit_mul(e, above, groups), group);
    unit = emit_add(e, emit_mul(e, unit, strips), strip);
    const char *slot = shared_slot(c, p, unit);
    const char *from = emit_add(e, emit_mul(e, mine, width), at);
    s->lane_at = emit_mul(e, lane.index, emit_text(e, "%lld", (long long)c->strip));
    column_loop(s, &l, "0", c->width, c->vec);
    struct emit_acc v[MAX_ACCS];
    for (uint32_t i = 0; i < c->nacc; i++)
        v[i] = load_shared(c, p, i, slot, emit_add(e, from, l.index));
    push(s, 1, v);
    emit_loop_close(e, &l, NULL);
    emit_loop_close(e, &lane, NULL);
    emit_loop_close(e, &part, NULL);
}

static void
emit_finish(struct lanes *s, const struct split *p)
{
    struct column *c = &s->c;
    struct emitter *e = c->e;
    struct column_units u;
    column_units_open(c, &u, "kernel_finish");
    const char *piece, *outer = column_divide(e, u.loop.index, "pieces", column_strips(c), &piece);
    column_unit(c, outer, piece);
    column_stage(c, 0);
    emit_join(s, p, outer);
    column_results(c, pop(s, emit_named(e, "parts", p->parts)));
    for (uint32_t stage = 1; stage < e->kernel.nstage; stage++)
        column_stage(c, stage);
    emit_loop_close(e, &u.loop, NULL);
    emit_function_end(e);
}

bool
column_lanes(struct emitter *e)
{
    const struct schedule *sched = e->sched;
    int64_t rows = kernel_points(&e->kernel, AXIS_R);
    struct lanes s = {.vectors = sched->rows,
                      .run = sched->edge[1] ? sched->edge[1] : sched->unroll,
                      .counts = min64(rows, sched->chunk) > RED_BLOCK};
    struct column *c = &s.c;
    struct split p = {.lanes = sched->tile[2],
                      .strip = sched->tile[0],
                      .groups = RED_LANES / sched->tile[2],
                      .parts = max64(ceil_div(rows, sched->chunk), 1)};
    if (!column_layout(c, e, p.strip, sched->tile[2], min64(rows, sched->chunk)))
        return false;
    e->user = c;
    c->partial = sched->finish_units > 0;
    p.strips = column_strips(c);
    column_accs(c, 0);
    p.slot_bytes = c->slot_bytes;
    p.acc_at = arena_alloc(&e->mem, e->kernel.acc.n * sizeof *p.acc_at);
    for (uint32_t i = 0; i < c->nacc; i++)
        p.acc_at[i] = c->acc_at[c->acc[i] - e->kernel.acc.at];
    emit_kernel(&s, &p);
    if (!c->partial)
        return true;
    int64_t piece = min64(p.strip, COLUMN_PIECE);
    if (!column_layout(c, e, piece, RED_LANES, p.parts * RED_BLOCK))
        return false;
    s.counts = p.parts > 1;
    emit_finish(&s, &p);
    return true;
}
