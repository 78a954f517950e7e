// scan_column.c: the scan class where memory runs along the last P axis: a column a lane.
//
// A task unit is a strip of columns. It goes through R row by row, and along each row over the
// strip, as memory lies; what columns carry from row to row is in arrays of one strip in scratch:
// of ir/kernel.h's order V, B, S, S + B, and D, which is (S + B) + V. Within 16 rows row j joins
// what the last 1, 2, 4, 8 rows before it came to, as its bits say: parts, arrays too. The bits are
// the same for the whole row, so the branches on them are foreseen. Beyond the caches this moved
// 0.87 of what a copy does, 16 rows side by side 0.75: long runs of memory are what counts there.
//
// Arrays that the caches hold are taken 16 rows at a time instead, vector by vector: written out
// one after the other, so that the parts stay in registers and what is carried is loaded and stored
// once for 16 rows. What is left over of rows and columns goes row by row.
#include "codegen/cpu/column.h"
#include "codegen/cpu/scan.h"

#include "ir/base/check.h"
#include "ir/base/size.h"

#include <string.h>

// Of a scan whose order is free there is only V, all that lies before.
enum place { PLACE_V, PLACE_PART, PLACE_D = PLACE_PART + SCAN_STEPS, PLACE_BLOCKS, PLACE_BASE,
             PLACE_SPANS, PLACES };
_Static_assert((int)PLACES == (int)SCAN_COLUMN_PLACES, "the schedule counts the arrays");

struct strip {
    struct scans all;
    struct column c;
    uint32_t levels, rows; // rows: of a group that is written out; 0: none is
    int64_t at[SCAN_MAX][PLACES];
    const char *n; // rows
};

static const char *
load(struct strip *p, uint32_t i, uint32_t x)
{
    return column_load(&p->c, "%scratch", p->at[i][x], p->c.local, p->all.acc[i]->dtype);
}

static void
store(struct strip *p, uint32_t i, uint32_t x, const char *v)
{
    column_store(&p->c, "%scratch", p->at[i][x], p->c.local, p->all.acc[i]->dtype, v);
}

static void
lay_out(struct strip *p)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < p->all.n; i++) {
        int64_t bytes = round_up(p->c.strip * dtype_size(p->all.acc[i]->dtype), 64) +
                        SCAN_COLUMN_GAP;
        uint32_t n = scan_column_places(p->all.free[i], p->levels);
        for (uint32_t x = 0; x < n; x++, at += bytes)
            p->at[i][x] = at;
        if (p->levels == 1) // all else is the identity
            p->at[i][PLACE_D] = p->at[i][PLACE_V];
        if (p->levels == 2)
            p->at[i][PLACE_BASE] = p->at[i][PLACE_BLOCKS];
    }
    CHECK(at <= p->c.e->sched->scratch_bytes, "a strip of scans needs %lld bytes", (long long)at);
}

// What a group of 16 rows came to is known: V and D of the next.
static void
end_group(struct strip *p, uint32_t i, const char *v, const char *own)
{
    v = scans_join(&p->all, i, v, own);
    store(p, i, PLACE_V, v);
    if (p->levels > 1)
        store(p, i, PLACE_D, scans_join(&p->all, i, load(p, i, PLACE_BASE), v));
}

// ---- a row of one vector

static struct emit_scope
row_scope(struct strip *p, struct emit_scope *vector, const char *j)
{
    struct emitter *e = p->all.e;
    struct emit_scope s = emit_scope(e, vector, p->all.lanes);
    const char *index[MAX_AXES];
    s.mask = vector->mask;
    emit_decode(e, j, p->c.axis + 1, e->kernel.nred, index);
    for (uint32_t r = 0; r < e->kernel.nred; r++)
        emit_bind(&s, p->c.axis + 1 + r, EMIT_UNIFORM, index[r]);
    return s;
}

static struct emit_scope
vector_scope(struct strip *p, const char *mask)
{
    struct emit_scope s = column_scope(&p->c, p->c.unit, mask);
    emit_hoist(p->all.e, &s, NULL, UINT32_MAX);
    return s;
}

static void
store_row(struct strip *p, struct emit_scope *s)
{
    struct emitter *e = p->all.e;
    for (uint32_t i = 0; i < e->kernel.store.n; i++) // before the first of them is stored
        emit_value(e, s, e->kernel.store.at[i].value);
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const struct store *x = &e->kernel.store.at[i];
        if (!p->c.aligned || s->mask) {
            emit_store(e, s, x, 0);
            continue;
        }
        emit_address(e, s, x->access);
        const char *yes = emit_label(e, "stream"), *no = emit_label(e, "plain");
        const char *end = emit_label(e, "stored");
        emit_branch(e, p->c.aligned, yes, no);
        emit_place(e, yes);
        emit_store(e, s, x, EMIT_NONTEMPORAL);
        emit_jump(e, end);
        emit_place(e, no);
        emit_store(e, s, x, 0);
        emit_endif(e, end);
    }
}

// ---- row by row

struct row { // its number's bits, the same along the strip
    const char *j;
    const char *bit[SCAN_STEPS];    // i1
    const char *first[SCAN_STEPS];  // i1: the lowest that is not set
    const char *last;               // i1: all are set
};

static struct row
row_bits(struct strip *p, const char *j)
{
    struct emitter *e = p->all.e;
    struct row r = {.j = j};
    for (uint32_t k = 0; k < SCAN_STEPS; k++) {
        const char *low = emit_op(e, "and i64 %s, %u", j, (2u << k) - 1);
        r.bit[k] = emit_op(e, "trunc i64 %s to i1", emit_op(e, "lshr i64 %s, %u", j, k));
        r.first[k] = emit_op(e, "icmp eq i64 %s, %u", low, (1u << k) - 1);
    }
    const char *low = emit_op(e, "and i64 %s, %u", j, SCAN_LANES - 1);
    r.last = emit_op(e, "icmp eq i64 %s, %u", low, SCAN_LANES - 1);
    return r;
}

// Step k of scan i: the part of 2^k rows joins, or is there now.
static const char *
step(struct strip *p, const struct row *r, uint32_t i, uint32_t k, const char *x)
{
    struct emitter *e = p->all.e;
    const char *yes = emit_label(e, "set"), *no = emit_label(e, "unset");
    const char *keep = emit_label(e, "part"), *end = emit_label(e, "step");
    emit_branch(e, r->bit[k], yes, no);
    emit_place(e, yes);
    const char *sum = scans_join(&p->all, i, load(p, i, PLACE_PART + k), x);
    const char *from = e->block;
    emit_jump(e, end);
    emit_place(e, no);
    emit_branch(e, r->first[k], keep, end);
    emit_place(e, keep);
    store(p, i, PLACE_PART + k, x);
    emit_endif(e, end);
    return emit_op(e, "phi %s [ %s, %%%s ], [ %s, %%%s ], [ %s, %%%s ]", p->all.type[i], sum, from,
                   x, no, x, keep);
}

// Asks for what is loaded, and stored unless around the caches, some rows on.
static void
ask_ahead(struct strip *p, struct emit_scope *s)
{
    struct emitter *e = p->all.e;
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 1; i < k->inst.n && e->sched->prefetch; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || in->a || k->access.at[in->aux].stride[p->c.axis] != 1)
            continue;
        const struct access *x = &k->access.at[in->aux];
        int64_t bytes = x->stride[k->naxis - 1] * e->sched->prefetch * dtype_size(x->dtype);
        if (bytes)
            emit_prefetch(e, emit_ptr(e, emit_address(e, s, in->aux), emit_num(e, bytes), "i8"), 1);
    }
    for (uint32_t i = 0; i < k->store.n && e->sched->prefetch && !e->sched->streaming_store; i++) {
        const struct access *x = &k->access.at[k->store.at[i].access];
        int64_t bytes = x->stride[k->naxis - 1] * e->sched->prefetch * dtype_size(x->dtype);
        if (x->stride[p->c.axis] == 1 && bytes)
            emit_prefetch_write(e, emit_ptr(e, emit_address(e, s, k->store.at[i].access),
                                            emit_num(e, bytes), "i8"));
    }
}

static void
row_vector(struct strip *p, const struct row *r, const char *mask)
{
    struct emitter *e = p->all.e;
    p->c.global = emit_add(e, p->c.first, p->c.local);
    struct emit_scope column = vector_scope(p, mask), s = row_scope(p, &column, r->j);
    if (!mask)
        ask_ahead(p, &s);
    for (uint32_t i = 0; i < p->all.n; i++) {
        const char *own = emit_value(e, &s, p->all.acc[i]->value);
        for (uint32_t k = 0; k < SCAN_STEPS && !p->all.free[i]; k++)
            own = step(p, r, i, k, own);
        const char *x = scans_join(&p->all, i, load(p, i, p->all.free[i] ? PLACE_V : PLACE_D), own);
        scans_give(&p->all, &s, i, x);
        if (p->all.free[i]) {
            store(p, i, PLACE_V, x);
        } else {
            const char *end = emit_if(e, r->last);
            end_group(p, i, load(p, i, PLACE_V), own);
            emit_endif(e, end);
        }
    }
    store_row(p, &s);
}

// Rows from … to - 1 of columns from `first` of the strip on.
static void
row_by_row(struct strip *p, const char *from, const char *to, const char *first)
{
    struct emitter *e = p->all.e;
    struct emit_loop l, along;
    emit_loop_open(e, &l, from, to, "1");
    emit_loop_body(e, &l);
    struct row r = row_bits(p, l.index);
    emit_loop_open(e, &along, first, p->c.whole, emit_text(e, "%u", p->all.lanes));
    emit_loop_body(e, &along);
    p->c.local = along.index;
    row_vector(p, &r, NULL);
    emit_loop_close(e, &along, NULL);
    if (!(e->sched->tile[SCAN_TILE_EXTENT] & ROW_WHOLE_STRIPS)) {
        const char *end = emit_if(e, emit_op(e, "icmp slt i64 %s, %s", p->c.whole, p->c.width));
        p->c.local = p->c.whole;
        row_vector(p, &r, p->c.tail);
        emit_endif(e, end);
    }
    emit_loop_close(e, &l, NULL);
}

// ---- 16 rows at a time

// Rows j, j + 1 … of a vector.
static void
written_out(struct strip *p, const char *j)
{
    struct emitter *e = p->all.e;
    struct emit_scope column = vector_scope(p, NULL);
    const char *part[SCAN_MAX][SCAN_STEPS] = {{0}}, *before[SCAN_MAX], *own[SCAN_MAX];
    for (uint32_t i = 0; i < p->all.n; i++)
        before[i] = load(p, i, p->all.free[i] ? PLACE_V : PLACE_D);
    for (uint32_t row = 0; row < p->rows; row++) {
        struct emit_scope s = row_scope(p, &column, emit_add(e, j, emit_text(e, "%u", row)));
        for (uint32_t i = 0; i < p->all.n; i++) {
            const char *x = emit_value(e, &s, p->all.acc[i]->value);
            for (uint32_t k = 0; k < SCAN_STEPS && !p->all.free[i]; k++)
                if (row >> k & 1)
                    x = scans_join(&p->all, i, part[i][k], x);
                else if (((row + 1) & ((1u << k) - 1)) == 0)
                    part[i][k] = x;
            own[i] = x;
            x = scans_join(&p->all, i, before[i], x);
            scans_give(&p->all, &s, i, x);
            if (p->all.free[i])
                before[i] = x;
        }
        store_row(p, &s);
    }
    for (uint32_t i = 0; i < p->all.n; i++)
        if (p->all.free[i])
            store(p, i, PLACE_V, before[i]);
        else if (p->rows == SCAN_LANES)
            end_group(p, i, load(p, i, PLACE_V), own[i]);
}

static void
group(struct strip *p, const char *j)
{
    struct emitter *e = p->all.e;
    struct emit_loop l;
    emit_loop_open(e, &l, "0", p->c.whole, emit_text(e, "%u", p->all.lanes));
    emit_loop_body(e, &l);
    p->c.local = l.index;
    p->c.global = emit_add(e, p->c.first, l.index);
    written_out(p, j);
    emit_loop_close(e, &l, NULL);
}

// Rows from … to - 1, of one block: groups as far as they are whole, in their whole vectors; the
// rest row by row.
static void
groups(struct strip *p, const char *from, const char *to)
{
    struct emitter *e = p->all.e;
    uint32_t known = e->sched->tile[SCAN_TILE_EXTENT];
    bool all_rows = p->rows < SCAN_LANES || known & ROW_NO_TAIL;
    struct emit_loop l;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", SCAN_LANES));
    emit_loop_body(e, &l);
    const char *left = emit_op(e, "sub i64 %s, %s", to, l.index), *first = p->c.whole, *end = NULL;
    if (!all_rows)
        end = emit_if(e, emit_op(e, "icmp sge i64 %s, %u", left, SCAN_LANES));
    group(p, l.index);
    if (end) {
        emit_endif(e, end);
        const char *few = emit_op(e, "icmp slt i64 %s, %u", left, SCAN_LANES);
        first = emit_op(e, "select i1 %s, i64 0, i64 %s", few, p->c.whole);
    }
    if (!all_rows || !(known & ROW_WHOLE_STRIPS)) {
        const char *stop = emit_add(e, l.index, emit_text(e, "%u", SCAN_LANES));
        const char *rest = emit_if(e, emit_op(e, "icmp slt i64 %s, %s", first, p->c.width));
        row_by_row(p, l.index, emit_min(e, stop, to), first);
        emit_endif(e, rest);
    }
    emit_loop_close(e, &l, NULL);
}

// ---- blocks and spans

enum moment { BEFORE_ALL, BEFORE_BLOCK, AFTER_BLOCK, AFTER_SPAN };

// What is carried, brought up to date along the strip.
static void
carry(struct strip *p, enum moment m)
{
    struct emitter *e = p->all.e;
    struct emit_loop l;
    emit_loop_open(e, &l, "0", p->c.width, emit_text(e, "%u", p->all.lanes)); // arrays are padded
    emit_loop_body(e, &l);
    p->c.local = l.index;
    for (uint32_t i = 0; i < p->all.n; i++) {
        const char *none = p->all.none[i];
        bool spans = p->levels == 3;
        if (m == BEFORE_ALL)
            store(p, i, PLACE_V, none);
        if (p->all.free[i] || p->levels == 1)
            continue;
        if (m == BEFORE_ALL || m == AFTER_SPAN) {
            if (spans)
                store(p, i, PLACE_SPANS, m == BEFORE_ALL
                                             ? none
                                             : scans_join(&p->all, i, load(p, i, PLACE_SPANS),
                                                          load(p, i, PLACE_BLOCKS)));
            store(p, i, PLACE_BLOCKS, none);
        } else if (m == AFTER_BLOCK) {
            store(p, i, PLACE_BLOCKS,
                  scans_join(&p->all, i, load(p, i, PLACE_BLOCKS), load(p, i, PLACE_V)));
        } else {
            const char *base = load(p, i, PLACE_BLOCKS);
            base = spans ? scans_join(&p->all, i, load(p, i, PLACE_SPANS), base) : base;
            store(p, i, PLACE_V, none);
            store(p, i, PLACE_BASE, base);
            store(p, i, PLACE_D, base);
        }
    }
    emit_loop_close(e, &l, NULL);
}

// Rows from … to - 1. level 1: of one block, 2: of one span, 3: any number.
static void
rows(struct strip *p, uint32_t level, const char *from, const char *to)
{
    struct emitter *e = p->all.e;
    struct emit_loop l;
    if (level == 1) {
        if (p->rows)
            groups(p, from, to);
        else
            row_by_row(p, from, to, "0");
        return;
    }
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", scan_step(level)));
    emit_loop_body(e, &l);
    const char *end = emit_add(e, l.index, emit_text(e, "%u", scan_step(level)));
    if (level == 2)
        carry(p, BEFORE_BLOCK);
    rows(p, level - 1, l.index, emit_min(e, end, to));
    carry(p, level == 2 ? AFTER_BLOCK : AFTER_SPAN);
    emit_loop_close(e, &l, NULL);
}

void
scan_columns(struct emitter *e)
{
    struct strip p = {.levels = e->sched->tile[SCAN_TILE_LEVELS], .rows = e->sched->unroll};
    struct column_units u;
    const char *number;
    scans_find(&p.all, e, e->sched->vec);
    p.c = (struct column){.e = e, .vec = e->sched->vec, .strip = e->sched->tile[SCAN_TILE_STRIP]};
    p.c.axis = (uint32_t)e->kernel.naxis - e->kernel.nred - 1;
    e->resolve = NULL;
    lay_out(&p);
    column_units_open(&p.c, &u, "kernel");
    p.n = emit_named(e, "points", kernel_points(&e->kernel, AXIS_R));
    const char *outer = column_divide(e, u.loop.index, "strips", column_strips(&p.c), &number);
    column_unit(&p.c, outer, number);
    carry(&p, BEFORE_ALL);
    rows(&p, p.levels, "0", p.n);
    emit_loop_close(e, &u.loop, NULL);
    if (e->sched->streaming_store)
        emit_line(e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(e);
}
