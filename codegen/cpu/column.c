// column.c: reductions over R where the last P axis runs along memory: vectors along P.
//
// A task unit is one point of the outer P axes and a strip of `tile[0]` columns of the last. Rows
// (points of R) are visited once per stage. The order of a reduction (ir/kernel.h) has 16 lanes
// per result, so a strip's accumulators are arrays [16 lanes][strip] in scratch memory, one set (a
// slot) per level of the binary counter that joins blocks of 256 rows. The current block adds into
// the slot on top; when it is done, slots are folded as the counter carries.
//
// `unroll` rows that share a lane (16 apart) are taken at once, so that accumulators are loaded
// and stored once for them. A block's first group starts from the identity instead of what the
// slot holds; blocks shorter than a group are cleared first.
//
// At most 16 rows (`tile[1]`) go another way, column_few.c, and kernels of one reduction, which
// store no elements, yet another: column_lanes.c.
//
// Results, and values of the row level that elements need, wait in scratch arrays of one strip.
// Elements needed again in a later stage are kept in scratch where the schedule says so, else
// computed again (their loads hit the second-level cache: strips are narrow enough for that).
#include "codegen/cpu/column.h"

#include <string.h>

static const char *
bytes_at(struct emitter *e, const char *base, int64_t byte)
{
    return emit_ptr(e, base, emit_text(e, "%lld", (long long)byte), "i8");
}

// The address of element `index` (i64) of an array of register values at base + byte.
static const char *
array_at(struct emitter *e, const char *base, int64_t byte, const char *index, uint8_t dtype)
{
    const char *offset = emit_mul(e, index, emit_text(e, "%u", dtype_size(dtype)));
    return emit_ptr(e, bytes_at(e, base, byte), offset, "i8");
}

const char *
column_load(struct column *c, const char *base, int64_t byte, const char *index, uint8_t dtype)
{
    return emit_load_raw(c->e, dtype, c->vec, array_at(c->e, base, byte, index, dtype), NULL,
                         dtype_size(dtype));
}

void
column_store(struct column *c, const char *base, int64_t byte, const char *index, uint8_t dtype,
             const char *value)
{
    emit_store_raw(c->e, dtype, c->vec, array_at(c->e, base, byte, index, dtype), value, NULL,
                   dtype_size(dtype));
}

// ---- loops along the strip

void
column_each(struct column *c, along_strip *f, void *arg)
{
    struct emitter *e = c->e;
    struct emit_loop l;
    const char *step = emit_text(e, "%u", c->vec);
    emit_loop_open(e, &l, "0", c->whole, step);
    emit_loop_body(e, &l);
    c->local = l.index;
    c->global = emit_add(e, c->first, l.index);
    f(c, arg, NULL);
    emit_loop_close(e, &l, NULL);
    const char *end = emit_if(e, emit_op(e, "icmp slt i64 %s, %s", c->whole, c->width));
    c->local = c->whole;
    c->global = emit_add(e, c->first, c->whole);
    f(c, arg, c->tail);
    emit_endif(e, end);
}

struct emit_scope
column_scope(struct column *c, struct emit_scope *up, const char *mask)
{
    struct emit_scope s = emit_scope(c->e, up, c->vec);
    emit_bind(&s, c->axis, EMIT_LANES, c->global);
    s.mask = mask;
    return s;
}

// The address of a kept element value at the row and vector at hand.
static const char *
kept_address(struct column *c, uint32_t inst)
{
    struct emitter *e = c->e;
    const char *strip = emit_text(e, "%lld", (long long)c->strip);
    const char *index = emit_add(e, emit_mul(e, c->row, strip), c->local);
    const char *base = bytes_at(e, "%scratch", c->keep_at);
    int64_t before = c->keep[inst].at * c->strip; // bytes per row of the arrays before
    if (before) {
        const char *rows = emit_named(e, "points", kernel_points(&e->kernel, AXIS_R));
        base = emit_ptr(e, base, emit_mul(e, rows, emit_text(e, "%lld", (long long)before)), "i8");
    }
    return array_at(e, base, 0, index, e->kernel.inst.at[inst].dtype);
}

// Results and row values that have been stored for the strip, and kept elements.
static const char *
read_strip(struct emitter *e, struct emit_scope *s, uint32_t inst, void *user)
{
    struct column *c = user;
    const struct inst *in = &e->kernel.inst.at[inst];
    if (s->lanes != c->vec)
        return NULL;
    if (c->keep[inst].kept && c->row && c->keep[inst].first < c->stage)
        return emit_load_raw(e, in->dtype, c->vec, kept_address(c, inst), NULL,
                             dtype_size(in->dtype));
    if (in->stage > c->stage || !c->array[inst])
        return NULL;
    return column_load(c, "%scratch", c->array[inst] - 1, c->local, in->dtype);
}

// ---- accumulators

void
column_store_acc(struct column *c, const struct acc *a, const char *slot, const char *index,
                 struct emit_acc v)
{
    int64_t at = c->acc_at[a - c->e->kernel.acc.at];
    column_store(c, slot, at, index, a->dtype, v.value);
    if (acc_is_arg(a))
        column_store(c, slot, at + c->lanes * c->strip * dtype_size(a->dtype), index, DT_i64,
                     v.index);
}

struct emit_acc
column_load_acc(struct column *c, const struct acc *a, const char *slot, const char *index)
{
    int64_t at = c->acc_at[a - c->e->kernel.acc.at];
    struct emit_acc v = {.value = column_load(c, slot, at, index, a->dtype)};
    if (acc_is_arg(a))
        v.index =
            column_load(c, slot, at + c->lanes * c->strip * dtype_size(a->dtype), index, DT_i64);
    return v;
}

const char *
column_slot(struct column *c, const char *level)
{
    struct emitter *e = c->e;
    const char *byte = emit_mul(e, level, emit_text(e, "%lld", (long long)c->slot_bytes));
    return emit_ptr(e, bytes_at(e, "%scratch", c->slots_at), byte, "i8");
}

// A loop over all accumulators of a slot, 16 lanes x strip.
static void
slot_loop_open(struct column *c, struct emit_loop *l)
{
    emit_loop_open(c->e, l, "0", emit_text(c->e, "%lld", (long long)(RED_LANES * c->strip)),
                   emit_text(c->e, "%u", c->vec));
    emit_loop_body(c->e, l);
}

static void
clear_slot(struct column *c, const char *slot)
{
    struct emit_loop l;
    slot_loop_open(c, &l);
    for (uint32_t i = 0; i < c->nacc; i++)
        column_store_acc(c, c->acc[i], slot, l.index, emit_acc_identity(c->e, c->acc[i], c->vec));
    emit_loop_close(c->e, &l, NULL);
}

// slot[top - 1] = slot[top - 1] joined with slot[top], `times` times, top counting down.
static void
fold_slots(struct column *c, const char *top, const char *times)
{
    struct emitter *e = c->e;
    struct emit_loop down, l;
    emit_loop_open(e, &down, "0", times, "1");
    emit_loop_body(e, &down);
    const char *newer_level = emit_op(e, "sub nsw i64 %s, %s", top, down.index);
    const char *newer = column_slot(c, newer_level);
    const char *older = column_slot(c, emit_op(e, "sub nsw i64 %s, 1", newer_level));
    slot_loop_open(c, &l);
    for (uint32_t i = 0; i < c->nacc; i++) {
        struct emit_acc a = column_load_acc(c, c->acc[i], older, l.index);
        struct emit_acc b = column_load_acc(c, c->acc[i], newer, l.index);
        column_store_acc(c, c->acc[i], older, l.index, emit_acc_join(e, c->acc[i], c->vec, a, b));
    }
    emit_loop_close(e, &l, NULL);
    emit_loop_close(e, &down, NULL);
}

static void
join_lanes(struct column *c, const char *slot)
{
    struct emitter *e = c->e;
    for (uint32_t i = 0; i < c->nacc; i++) {
        const struct acc *a = c->acc[i];
        struct emit_acc lane[RED_LANES];
        for (int64_t l = 0; l < RED_LANES; l++) {
            const char *at = emit_text(e, "%lld", (long long)(l * c->strip));
            lane[l] = column_load_acc(c, a, slot, emit_add(e, c->local, at));
        }
        for (uint32_t n = RED_LANES / 2; n >= 1; n /= 2)
            for (uint32_t l = 0; l < n; l++)
                lane[l] = emit_acc_join(e, a, c->vec, lane[l], lane[l + n]);
        for (uint32_t r = 1; r < e->kernel.inst.n; r++) {
            const struct inst *in = &e->kernel.inst.at[r];
            if (in->op == OP_result && &e->kernel.acc.at[in->aux] == a)
                column_store(c, "%scratch", c->array[r] - 1, c->local, in->dtype,
                             emit_acc_result(a, lane[0]));
        }
    }
}

void
column_results(struct column *c, const char *slot)
{
    struct emit_loop l;
    emit_loop_open(c->e, &l, "0", c->width, emit_text(c->e, "%u", c->vec)); // arrays are padded
    emit_loop_body(c->e, &l);
    c->local = l.index;
    join_lanes(c, slot);
    emit_loop_close(c->e, &l, NULL);
}

// ---- rows

static bool
stage_stores_elements(const struct column *c)
{
    const struct kernel *k = &c->e->kernel;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == c->stage && k->store.at[i].level == LEVEL_ELEM)
            return true;
    return false;
}

enum { MAX_ROWS = 4 };
struct rows { // rows taken at once; those of one lane, 16 apart
    uint32_t n;
    struct emit_scope scope[MAX_ROWS];
    const char *j[MAX_ROWS];  // i64
    const char *lane_at;      // i64: lane * strip
    const char *first;        // i1: the accumulators start here; NULL: they don't
    const char *slot;
};

static const char *
choose(struct emitter *e, const char *cond, const char *type, const char *yes, const char *no)
{
    return emit_op(e, "select i1 %s, %s %s, %s %s", cond, type, yes, type, no);
}

static struct emit_acc
start_or(struct column *c, const struct acc *a, const char *first, struct emit_acc v)
{
    struct emit_acc none = emit_acc_identity(c->e, a, c->vec);
    v.value = choose(c->e, first, emit_type(c->e, a->dtype, c->vec), none.value, v.value);
    if (v.index)
        v.index = choose(c->e, first, emit_type(c->e, DT_i64, c->vec), none.index, v.index);
    return v;
}

void
column_ask_ahead(struct column *c, struct emit_scope *s)
{
    struct emitter *e = c->e;
    for (uint32_t i = 1; i < e->kernel.inst.n; i++) {
        const struct inst *in = &e->kernel.inst.at[i];
        const struct access *x = &e->kernel.access.at[in->aux];
        if (in->op != OP_load || in->level != LEVEL_ELEM || in->stage > c->stage ||
            x->stride[c->axis] != 1 || (c->keep[i].kept && c->keep[i].first < c->stage))
            continue;
        const char *stride = emit_stride(e, x->stride[e->kernel.naxis - 1]);
        const char *ahead = emit_text(e, "%u", e->sched->prefetch * dtype_size(in->dtype));
        const char *byte = emit_mul(e, stride, ahead);
        emit_prefetch(e, emit_ptr(e, emit_address(e, s, in->aux), byte, "i8"), 2);
    }
}

// What this stage computes for later ones.
static void
keep_elements(struct column *c, struct emit_scope *s, const char *row)
{
    struct emitter *e = c->e;
    c->row = row;
    for (uint32_t i = 1; i < e->kernel.inst.n; i++)
        if (c->keep[i].kept && c->keep[i].first == c->stage)
            emit_store_raw(e, e->kernel.inst.at[i].dtype, c->vec, kept_address(c, i),
                           emit_value(e, s, i), NULL, dtype_size(e->kernel.inst.at[i].dtype));
}

// One vector of columns of some rows: accumulate and store.
static void
emit_elements(struct column *c, void *arg, const char *mask)
{
    struct rows *r = arg;
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    struct emit_scope s[MAX_ROWS];
    for (uint32_t u = 0; u < r->n; u++) {
        s[u] = column_scope(c, &r->scope[u], mask);
        c->row = r->j[u];
        if (e->sched->prefetch && !mask)
            column_ask_ahead(c, &s[u]);
        for (uint32_t i = 0; i < c->nacc; i++)
            emit_value(e, &s[u], c->acc[i]->value);
        for (uint32_t i = 0; i < k->store.n; i++)
            if (k->store.at[i].stage == c->stage && k->store.at[i].level == LEVEL_ELEM)
                emit_value(e, &s[u], k->store.at[i].value);
    }
    for (uint32_t u = 0; u < r->n; u++)
        keep_elements(c, &s[u], r->j[u]);
    c->row = NULL;
    for (uint32_t i = 0; i < c->nacc; i++) {
        const struct acc *a = c->acc[i];
        const char *index = emit_add(e, r->lane_at, c->local);
        struct emit_acc v = column_load_acc(c, a, r->slot, index);
        if (r->first)
            v = start_or(c, a, r->first, v);
        for (uint32_t u = 0; u < r->n; u++) {
            const char *j = acc_is_arg(a) ? emit_splat_i64(e, r->j[u], c->vec) : NULL;
            v = emit_acc_join(e, a, c->vec, v,
                              emit_acc_element(e, a, c->vec, emit_value(e, &s[u], a->value), j,
                                               NULL));
        }
        column_store_acc(c, a, r->slot, index, v);
    }
    for (uint32_t i = 0; i < k->store.n; i++)
        for (uint32_t u = 0; u < r->n; u++)
            if (k->store.at[i].stage == c->stage && k->store.at[i].level == LEVEL_ELEM)
                emit_store(e, &s[u], &k->store.at[i], mask ? 0 : c->store_flags);
}

// n rows from j on, `apart` rows apart, over the strip.
static void
emit_some_rows(struct column *c, struct rows *r, const char *j, uint32_t n)
{
    struct emitter *e = c->e;
    uint32_t first = e->kernel.naxis - e->kernel.nred;
    r->n = n;
    for (uint32_t u = 0; u < n; u++) {
        const char *at[MAX_AXES];
        r->j[u] = emit_add(e, j, emit_text(e, "%u", u * RED_LANES));
        emit_decode(e, r->j[u], first, e->kernel.nred, at);
        r->scope[u] = emit_scope(e, c->unit, 1);
        for (uint32_t i = 0; i < e->kernel.nred; i++)
            emit_bind(&r->scope[u], first + i, EMIT_UNIFORM, at[i]);
        emit_hoist(e, &r->scope[u], NULL, UINT32_MAX);
    }
    if (!c->aligned || !stage_stores_elements(c)) {
        column_each(c, emit_elements, r);
        return;
    }
    const char *stream = emit_label(e, "stream"), *plain = emit_label(e, "plain");
    const char *done = emit_label(e, "stored");
    emit_branch(e, c->aligned, stream, plain);
    emit_place(e, stream);
    c->store_flags = EMIT_NONTEMPORAL;
    column_each(c, emit_elements, r);
    c->store_flags = 0;
    emit_jump(e, done);
    emit_place(e, plain);
    column_each(c, emit_elements, r);
    emit_jump(e, done);
    emit_place(e, done);
}

// Rows [j0, j1) of one block into a slot.
static void
emit_block(struct column *c, const char *slot, const char *j0, const char *j1)
{
    struct emitter *e = c->e;
    uint32_t group = RED_LANES * c->unroll;
    const char *rows = emit_op(e, "sub nsw i64 %s, %s", j1, j0);
    const char *end = emit_if(e, emit_op(e, "icmp slt i64 %s, %u", rows, group));
    clear_slot(c, slot);
    emit_endif(e, end);
    const char *whole = emit_op(e, "and i64 %s, -%u", rows, group);
    const char *mid = emit_add(e, j0, whole);
    struct emit_loop g, l, rest;
    emit_loop_open(e, &g, j0, mid, emit_text(e, "%u", group));
    emit_loop_body(e, &g);
    struct rows r = {.slot = slot, .first = emit_op(e, "icmp eq i64 %s, %s", g.index, j0)};
    emit_loop_open(e, &l, "0", emit_text(e, "%u", RED_LANES), "1");
    emit_loop_body(e, &l);
    const char *strip = emit_text(e, "%lld", (long long)c->strip);
    r.lane_at = emit_mul(e, l.index, strip);
    emit_some_rows(c, &r, emit_add(e, g.index, l.index), c->unroll);
    emit_loop_close(e, &l, NULL);
    emit_loop_close(e, &g, NULL);
    emit_loop_open(e, &rest, mid, j1, "1");
    emit_loop_body(e, &rest);
    struct rows one = {.slot = slot};
    one.lane_at = emit_mul(e, emit_op(e, "and i64 %s, %u", rest.index, RED_LANES - 1u), strip);
    emit_some_rows(c, &one, rest.index, 1);
    emit_loop_close(e, &rest, NULL);
}

// All blocks of a stage that has accumulators, then their joins.
static void
emit_reduction(struct column *c)
{
    struct emitter *e = c->e;
    const char *rows = emit_named(e, "points", kernel_points(&e->kernel, AXIS_R));
    const char *blocks = emit_op(e, "add nsw i64 %s, %u", rows, RED_BLOCK - 1u);
    blocks = emit_op(e, "lshr i64 %s, 8", blocks);
    blocks = emit_op(e, "call i64 @llvm.smax.i64(i64 %s, i64 1)", blocks); // no rows: one, empty
    struct emit_loop l;
    emit_loop_open(e, &l, "0", blocks, "1");
    const char *level = emit_carry(e, &l, "i64", "0");
    emit_loop_body(e, &l);
    const char *j0 = emit_op(e, "shl nsw i64 %s, 8", l.index);
    const char *j1 = emit_min(e, emit_op(e, "add nsw i64 %s, %u", j0, RED_BLOCK), rows);
    emit_block(c, column_slot(c, level), j0, j1);
    const char *done = emit_op(e, "add nsw i64 %s, 1", l.index);
    const char *carries = emit_op(e, "call i64 @llvm.cttz.i64(i64 %s, i1 true)", done);
    fold_slots(c, level, carries);
    const char *next = emit_op(e, "sub nsw i64 %s, %s", emit_add(e, level, "1"), carries);
    emit_loop_close(e, &l, &next);
    const char *top = emit_op(e, "sub nsw i64 %s, 1", level);
    fold_slots(c, top, top);
    column_results(c, column_slot(c, "0"));
}

// A stage that only stores elements.
static void
emit_plain_rows(struct column *c)
{
    struct emitter *e = c->e;
    struct emit_loop l;
    emit_loop_open(e, &l, "0", emit_named(e, "points", kernel_points(&e->kernel, AXIS_R)), "1");
    emit_loop_body(e, &l);
    struct rows r = {0};
    emit_some_rows(c, &r, l.index, 1);
    emit_loop_close(e, &l, NULL);
}

// ---- the row level: stores, and values that elements will read

static void
row_values(struct column *c, void *arg, const char *mask)
{
    (void)arg;
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    struct emit_scope s = column_scope(c, c->unit, mask);
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (c->array[i] && k->inst.at[i].op != OP_result && k->inst.at[i].stage == c->stage) {
            int64_t at = c->array[i] - 1;
            c->array[i] = 0; // not to be read while it is computed
            column_store(c, "%scratch", at, c->local, k->inst.at[i].dtype, emit_value(e, &s, i));
            c->array[i] = at + 1;
        }
    for (uint32_t i = 0; i < k->store.n && !c->partial; i++)
        if (k->store.at[i].stage == c->stage && k->store.at[i].level != LEVEL_ELEM)
            emit_store(e, &s, &k->store.at[i], 0);
}

static bool
stage_has_row_values(const struct column *c)
{
    const struct kernel *k = &c->e->kernel;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (c->array[i] && k->inst.at[i].op != OP_result && k->inst.at[i].stage == c->stage)
            return true;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == c->stage && k->store.at[i].level != LEVEL_ELEM)
            return true;
    return false;
}

void
column_stage(struct column *c, uint32_t stage)
{
    c->stage = stage;
    column_accs(c, stage);
    if (stage_has_row_values(c))
        column_each(c, row_values, NULL);
}

static void
emit_stage(struct column *c, uint32_t stage)
{
    column_stage(c, stage);
    if (c->nacc)
        emit_reduction(c);
    else if (stage_stores_elements(c))
        emit_plain_rows(c);
}

// ---- units

// i1: streaming stores can be used, for vectors of elements start at multiples of 64 bytes.
static const char *
all_aligned(struct column *c)
{
    struct emitter *e = c->e;
    struct emit_scope at = emit_scope(e, c->unit, 1);
    const char *bits = "0";
    emit_bind(&at, c->axis, EMIT_UNIFORM, c->first);
    for (uint32_t r = c->axis + 1; r < e->kernel.naxis; r++)
        emit_bind(&at, r, EMIT_UNIFORM, "0");
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        if (e->kernel.store.at[i].level != LEVEL_ELEM)
            continue;
        const struct access *x = &e->kernel.access.at[e->kernel.store.at[i].access];
        const char *size = emit_text(e, "%u", dtype_size(x->dtype));
        const char *p = emit_op(e, "ptrtoint ptr %s to i64",
                                emit_address(e, &at, e->kernel.store.at[i].access));
        bits = emit_op(e, "or i64 %s, %s", p, bits);
        for (uint32_t r = c->axis + 1; r < e->kernel.naxis; r++)
            bits = emit_op(e, "or i64 %s, %s", bits,
                           emit_mul(e, emit_stride(e, x->stride[r]), size));
    }
    return emit_op(e, "icmp eq i64 %s, 0", emit_op(e, "and i64 %s, 63", bits));
}

int64_t
column_strips(const struct column *c)
{
    return (c->e->kernel.axis[c->axis].extent + c->strip - 1) / c->strip;
}

const char *
column_divide(struct emitter *e, const char *i, const char *name, int64_t by, const char **rest)
{
    const char *n = emit_named(e, name, by);
    const char *quotient = emit_op(e, "udiv i64 %s, %s", i, n);
    *rest = emit_op(e, "sub nsw i64 %s, %s", i, emit_mul(e, quotient, n));
    return quotient;
}

void
column_unit(struct column *c, const char *outer, const char *number)
{
    struct emitter *e = c->e;
    const char *strip = emit_text(e, "%lld", (long long)c->strip);
    const char *at[MAX_AXES];
    emit_decode(e, outer, 0, c->axis, at);
    for (uint32_t i = 0; i < c->axis; i++)
        emit_bind(c->unit, i, EMIT_UNIFORM, at[i]);
    emit_hoist(e, c->unit, NULL, UINT32_MAX);
    c->first = emit_mul(e, number, strip);
    const char *left = emit_op(e, "sub nsw i64 %s, %s", emit_extent(e, c->axis), c->first);
    c->width = emit_min(e, left, strip);
    c->whole = emit_op(e, "and i64 %s, -%u", c->width, c->vec);
    c->tail = emit_tail_mask(e, c->vec, emit_op(e, "sub nsw i64 %s, %s", c->width, c->whole));
    c->aligned = e->sched->streaming_store ? all_aligned(c) : NULL;
}

void
column_units_open(struct column *c, struct column_units *u, const char *function)
{
    struct emitter *e = c->e;
    emit_function(e, function);
    u->all = emit_scope(e, NULL, 1);
    emit_hoist(e, &u->all, NULL, UINT32_MAX);
    emit_loop_open(e, &u->loop, "%begin", "%end", "1");
    emit_loop_body(e, &u->loop);
    u->unit = emit_scope(e, &u->all, 1);
    c->unit = &u->unit;
}

bool
cpu_column(struct emitter *e)
{
    struct column c;
    e->resolve = e->sched->tile[1] ? NULL : read_strip; // few rows: all is in registers
    e->user = &c;
    if (e->sched->tile[2])
        return column_lanes(e);
    if (!column_layout(&c, e, e->sched->tile[0], RED_LANES, kernel_points(&e->kernel, AXIS_R)))
        return false;
    struct column_units u;
    column_units_open(&c, &u, "kernel");
    const char *number;
    const char *outer = column_divide(e, u.loop.index, "strips", column_strips(&c), &number);
    column_unit(&c, outer, number);
    if (e->sched->tile[1])
        column_few(&c);
    for (uint32_t s = 0; s < e->kernel.nstage && !e->sched->tile[1]; s++)
        emit_stage(&c, s);
    emit_loop_close(e, &u.loop, NULL);
    if (e->sched->streaming_store)
        emit_line(e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(e);
    return true;
}
