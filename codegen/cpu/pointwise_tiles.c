// pointwise_tiles.c: pointwise kernels with loads that run along memory on another axis than the
// last.
//
// Such loads (along `transpose` - 1) would fetch a cache line for each element. So a unit goes tile
// by tile: they are transposed through registers, 16 x 16 elements at a time, into a tile in
// scratch memory which stays in the first- or second-level cache, and the body reads it along the
// last axis.
#include "codegen/cpu/pointwise.h"

#include "passes/schedule.h"

enum { LINE = 64, ROWS_AHEAD = 8 };

struct turn {
    uint32_t across, last;     // the axis along which the turned loads run, and the vector axis
    int64_t rows, columns;     // of a tile
    int64_t apart;             // elements from one of its rows to the next
    int64_t *tile;             // per instruction: 1 + its tile's place in scratch; 0: not turned
    const char *row, *column0; // the row in the tile, the tile's first column (i64), once known
};

static bool
find_turned(struct emitter *e, struct turn *t)
{
    int64_t at = 0;
    for (uint32_t i = 1; i < e->kernel.inst.n; i++) {
        const struct inst *in = &e->kernel.inst.at[i];
        if (in->op != OP_load || in->a || in->b || in->c)
            continue;
        const struct access *x = &e->kernel.access.at[in->aux];
        int64_t s = x->stride[t->last];
        if (x->stride[t->across] != 1 || s == 0 || s == 1 || s == -1)
            continue;
        t->tile[i] = 1 + at;
        at += t->rows * t->apart * dtype_size(in->dtype);
    }
    return at <= e->sched->scratch_bytes;
}

static const char *
tile_address(struct emitter *e, const struct turn *t, uint32_t inst, const char *row,
             const char *column)
{
    const char *flat = emit_add(e, emit_mul(e, row, emit_text(e, "%d", (int)t->apart)), column);
    uint32_t size = dtype_size(e->kernel.inst.at[inst].dtype);
    const char *byte = emit_mul(e, flat, emit_text(e, "%u", size));
    return emit_ptr(e, emit_scratch(e, t->tile[inst] - 1), byte, "i8");
}

static const char *
read_tile(struct emitter *e, struct emit_scope *s, uint32_t inst, void *user)
{
    const struct turn *t = user;
    if (!t->tile[inst] || s->axis[t->last].how != EMIT_LANES)
        return NULL;
    uint8_t dtype = e->kernel.inst.at[inst].dtype;
    const char *column = emit_op(e, "sub nsw i64 %s, %s", s->axis[t->last].value, t->column0);
    return emit_load_raw(e, dtype, s->lanes, tile_address(e, t, inst, t->row, column), s->mask,
                         dtype_size(dtype));
}

// A square of a turned load: n vectors along memory, which start `stride` elements apart.
struct square {
    const char *base, *stride, *elem;
    uint32_t n, size; // lanes and vectors, bytes of an element
};

static const char *
square_row(struct emitter *e, const struct square *q, uint32_t j)
{
    return emit_ptr(e, q->base, emit_mul(e, emit_text(e, "%u", j), q->stride), q->elem);
}

static void
load_square(struct emitter *e, const struct square *q, const char **v)
{
    for (uint32_t j = 0; j < q->n; j++) {
        const char *p = square_row(e, q, j);
        if (e->sched->prefetch) {
            const char *next = emit_mul(e, emit_text(e, "%u", q->n), q->stride);
            emit_prefetch(e, emit_ptr(e, p, next, q->elem), 2);
        }
        v[j] = emit_op(e, "load <%u x %s>, ptr %s, align %u", q->n, q->elem, p, q->size);
    }
}

// What of it lies in the domain, zeros elsewhere.
static void
load_part_of_square(struct emitter *e, const struct square *q, const char *rows_left,
                    const char *columns_left, const char **v)
{
    uint32_t n = q->n;
    const char *mask = emit_tail_mask(e, n, rows_left);
    for (uint32_t j = 0; j < n; j++) {
        const char *inside = emit_op(e, "icmp sgt i64 %s, %u", columns_left, j);
        const char *m = emit_op(e, "select i1 %s, <%u x i1> %s, <%u x i1> zeroinitializer", inside,
                                n, mask, n);
        v[j] = emit_op(e,
                       "call <%u x %s> @llvm.masked.load.v%u%s.p0(ptr %s, i32 %u, <%u x i1> %s, "
                       "<%u x %s> zeroinitializer)",
                       n, q->elem, n, q->elem, square_row(e, q, j), q->size, n, m, n, q->elem);
    }
}

// Fills the tile of one turned load for rows [r0, r1) and columns [c0, c1) of the domain.
static void
fill_tile(struct emitter *e, struct emit_scope *unit, const struct turn *t, uint32_t inst,
          const char *r0, const char *r1, const char *c0, const char *c1)
{
    const struct inst *in = &e->kernel.inst.at[inst];
    uint32_t size = dtype_size(in->dtype), n = size == 8 ? 8 : 16;
    const char *step = emit_text(e, "%u", n);
    struct emit_loop columns, rows;
    emit_loop_open(e, &columns, c0, c1, step);
    emit_loop_body(e, &columns);
    emit_loop_open(e, &rows, r0, r1, step);
    emit_loop_body(e, &rows);
    struct emit_scope at = emit_scope(e, unit, 1);
    emit_bind(&at, t->across, EMIT_UNIFORM, rows.index);
    emit_bind(&at, t->last, EMIT_UNIFORM, columns.index);
    struct square q = {.base = emit_address(e, &at, in->aux), .n = n, .size = size};
    q.stride = emit_stride(e, e->kernel.access.at[in->aux].stride[t->last]);
    q.elem = emit_text(e, "i%u", dtype_table[in->dtype].bits);
    const char *row = emit_op(e, "sub nsw i64 %s, %s", rows.index, r0);
    const char *column = emit_op(e, "sub nsw i64 %s, %s", columns.index, c0);
    const char *rows_left = emit_op(e, "sub nsw i64 %s, %s", r1, rows.index);
    const char *columns_left = emit_op(e, "sub nsw i64 %s, %s", c1, columns.index);
    const char *least = emit_min(e, rows_left, columns_left);
    const char *whole = emit_op(e, "icmp sge i64 %s, %u", least, n);
    const char *inside = emit_label(e, "whole"), *edge = emit_label(e, "edge");
    const char *loaded = emit_label(e, "loaded"), *all[16], *some[16];
    emit_branch(e, whole, inside, edge);
    emit_place(e, inside);
    load_square(e, &q, all);
    emit_jump(e, loaded);
    emit_place(e, edge);
    load_part_of_square(e, &q, rows_left, columns_left, some);
    emit_jump(e, loaded);
    emit_place(e, loaded);
    for (uint32_t j = 0; j < n; j++)
        all[j] = emit_op(e, "phi <%u x %s> [ %s, %%%s ], [ %s, %%%s ]", n, q.elem, all[j], inside,
                         some[j], edge);
    const char *type = emit_transpose(e, all, n, size, q.elem);
    const char *to = tile_address(e, t, inst, row, column);
    for (uint32_t j = 0; j < n; j++) {
        const char *p = emit_ptr(e, to, emit_text(e, "%lld", (long long)(j * t->apart)), q.elem);
        emit_line(e, "store %s %s, ptr %s, align %u", type, all[j], p, size);
    }
    emit_loop_close(e, &rows, NULL);
    emit_loop_close(e, &columns, NULL);
}

// While a row of a tile is computed: asks for the part of a row ROWS_AHEAD on that lies in the
// tile. Each is a run too short for hardware to see it coming; two rows on is late, 4 % slower.
static void
prefetch_row(struct emitter *e, struct emit_scope *unit, const struct turn *t, const char *row,
             const char *c0)
{
    struct emit_scope ahead = emit_scope(e, unit, 1);
    emit_bind(&ahead, t->across, EMIT_UNIFORM, emit_add(e, row, emit_text(e, "%d", ROWS_AHEAD)));
    emit_bind(&ahead, t->last, EMIT_UNIFORM, c0);
    for (uint32_t i = 1; i < e->kernel.inst.n; i++) {
        const struct inst *in = &e->kernel.inst.at[i];
        if (t->tile[i] || in->op != OP_load || e->kernel.access.at[in->aux].stride[t->last] != 1)
            continue;
        const char *p = emit_address(e, &ahead, in->aux);
        for (int64_t at = 0; at < t->columns * dtype_size(in->dtype); at += LINE)
            emit_prefetch(e, emit_ptr(e, p, emit_text(e, "%d", (int)at), "i8"), 2);
    }
}

// The tile at rows [r0, r1), columns [c0, c1): turned loads to scratch, then the rows one by one.
static void
emit_tile(struct emitter *e, struct emit_scope *unit, struct turn *t, const char *r0,
          const char *r1, const char *c0, const char *c1)
{
    for (uint32_t i = 1; i < e->kernel.inst.n; i++)
        if (t->tile[i])
            fill_tile(e, unit, t, i, r0, r1, c0, c1);
    struct emit_loop l;
    emit_loop_open(e, &l, r0, r1, "1");
    emit_loop_body(e, &l);
    struct emit_scope row = emit_scope(e, unit, 1);
    emit_bind(&row, t->across, EMIT_UNIFORM, l.index);
    emit_hoist(e, &row, NULL, UINT32_MAX);
    t->row = emit_op(e, "sub nsw i64 %s, %s", l.index, r0);
    t->column0 = c0;
    if (e->sched->prefetch)
        prefetch_row(e, unit, t, l.index, c0);
    pointwise_row_range(e, &row, t->last, c0, c1);
    emit_loop_close(e, &l, NULL);
}

bool
pointwise_tiles(struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    struct turn t = {.across = e->sched->transpose - 1u, .last = k->naxis - 1u,
                     .rows = e->sched->tile[0], .columns = e->sched->tile[1],
                     .apart = e->sched->tile[1] + POINTWISE_TILE_PAD};
    t.tile = arena_alloc(&e->mem, k->inst.n * sizeof *t.tile);
    if (!find_turned(e, &t))
        return diag_set(e->diag, DIAG_INTERNAL,
                        "the transposing tiles exceed the schedule's scratch");
    e->resolve = read_tile;
    e->user = &t;
    struct emit_scope all = emit_scope(e, NULL, 1), unit = emit_scope(e, &all, 1);
    emit_hoist(e, &all, NULL, UINT32_MAX);
    struct odometer o = {.n = 0};
    uint32_t axis_of[MAX_AXES];
    for (uint32_t i = 0; i < t.last; i++) {
        if (i == t.across)
            continue;
        axis_of[o.n] = i;
        o.count[o.n++] = emit_extent(e, i);
    }
    uint32_t outer = o.n;
    o.count[o.n++] = pointwise_blocks(e, "blocks", t.across, t.rows);
    o.count[o.n++] = pointwise_blocks(e, "chunks", t.last, e->sched->chunk);
    const char *rows = emit_text(e, "%d", (int)t.rows);
    const char *chunk = emit_named(e, "chunk", e->sched->chunk);
    odometer_open(e, &o);
    for (uint32_t i = 0; i < outer; i++)
        emit_bind(&unit, axis_of[i], EMIT_UNIFORM, o.at[i]);
    emit_hoist(e, &unit, NULL, UINT32_MAX);
    const char *r0, *r1, *from, *to;
    pointwise_block_range(e, o.at[outer], rows, t.across, &r0, &r1);
    pointwise_block_range(e, o.at[outer + 1], chunk, t.last, &from, &to);
    struct emit_loop l;
    emit_loop_open(e, &l, from, to, emit_text(e, "%d", (int)t.columns));
    emit_loop_body(e, &l);
    const char *c1 = emit_op(e, "add nsw i64 %s, %d", l.index, (int)t.columns);
    emit_tile(e, &unit, &t, r0, r1, l.index, emit_min(e, c1, to));
    emit_loop_close(e, &l, NULL);
    odometer_close(e, &o);
    return true;
}
