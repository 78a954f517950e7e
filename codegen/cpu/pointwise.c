// pointwise.c: kernels without reductions.
//
// A task unit is a block of the domain: one point of the outer axes, `tile[0]` rows of the last axis
// but one, `chunk` elements of the last. A thread runs consecutive units, so their coordinates are
// divided out once, for the first, and then counted up like an odometer.
//
// Along the last axis a row is whole groups of `unroll` vectors, all of whose loads are printed before
// their stores so that they are in flight together, then single vectors under a mask that says which
// lanes exist. Rows of at most one vector skip the groups. Masked lanes compute and are not stored:
// every element goes through the same instructions.
//
// Streaming stores go around the caches and need aligned addresses: whether a row's are is asked at
// run time, and a second loop with ordinary stores stands beside the first.
//
// Loads that run along memory on another axis (`transpose` - 1) would fetch a cache line for each
// element. Then a unit goes tile by tile: such loads are transposed through registers, 16 x 16
// elements at a time, into a tile in scratch memory which stays in the first-level cache, and the
// body reads it along the last axis.
#include "codegen/cpu/emit.h"

#include <string.h>

struct pointwise {
    struct emitter *e;
    uint32_t last;      // the vector axis
    bool *turned;       // per instruction: a load that goes through a tile
    int64_t *tile_at;   // per instruction: its tile's place in scratch
    const char *row, *column; // i64: position of the row, and of the tile's first column, in the tile
};

// ---- the vector loops along one row

static void
emit_group(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *index,
           uint32_t unroll, const char *mask, uint32_t flags)
{
    uint32_t lanes = e->sched->vec, nstore = e->kernel.store.n;
    const char **value = arena_alloc(&e->mem, unroll * nstore * sizeof *value);
    struct emit_scope *s = arena_alloc(&e->mem, unroll * sizeof *s);
    for (uint32_t u = 0; u < unroll; u++) {
        s[u] = emit_scope(e, row, lanes);
        emit_bind(&s[u], axis, EMIT_LANES, emit_add(e, index, emit_text(e, "%u", u * lanes)));
        s[u].mask = mask;
        for (uint32_t i = 0; i < nstore; i++)
            value[u * nstore + i] = emit_value(e, &s[u], e->kernel.store.at[i].value);
    }
    for (uint32_t i = 0; i < nstore; i++)
        for (uint32_t u = 0; u < unroll; u++)
            emit_store_value(e, &s[u], e->kernel.store.at[i].access, value[u * nstore + i], flags);
}

static void
emit_groups(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from,
            const char *to, uint32_t unroll, uint32_t flags)
{
    struct emit_loop l;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", unroll * e->sched->vec));
    emit_loop_body(e, &l);
    emit_group(e, row, axis, l.index, unroll, NULL, flags);
    emit_loop_close(e, &l, NULL);
}

// i1: every store's address at `from` is a multiple of what a streaming store needs.
static const char *
all_aligned(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from)
{
    struct emit_scope at = emit_scope(e, row, 1);
    emit_bind(&at, axis, EMIT_UNIFORM, from);
    const char *low = NULL;
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const struct access *x = &e->kernel.access.at[e->kernel.store.at[i].access];
        uint32_t bytes = dtype_size(x->dtype) * e->sched->vec;
        const char *p = emit_op(e, "ptrtoint ptr %s to i64",
                                emit_address(e, &at, e->kernel.store.at[i].access));
        const char *bits = emit_op(e, "and i64 %s, %u", p, (bytes < 64 ? bytes : 64) - 1);
        low = low ? emit_op(e, "or i64 %s, %s", low, bits) : bits;
    }
    return emit_op(e, "icmp eq i64 %s, 0", low);
}

// Elements [from, to) of the last axis, on the point of the others that `row` binds.
static void
emit_row_range(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from,
               const char *to)
{
    uint32_t lanes = e->sched->vec, step = lanes * e->sched->unroll;
    const char *total = emit_op(e, "sub nsw i64 %s, %s", to, from);
    const char *whole = emit_op(e, "and i64 %s, -%u", total, step);
    const char *mid = emit_add(e, from, whole);
    if (e->sched->streaming_store) {
        const char *plain = emit_label(e, "plain"), *rest = emit_label(e, "rest");
        const char *stream = emit_label(e, "stream");
        emit_branch(e, all_aligned(e, row, axis, from), stream, plain);
        emit_place(e, stream);
        emit_groups(e, row, axis, from, mid, e->sched->unroll, EMIT_NONTEMPORAL);
        emit_jump(e, rest);
        emit_place(e, plain);
        emit_groups(e, row, axis, from, mid, e->sched->unroll, 0);
        emit_jump(e, rest);
        emit_place(e, rest);
    } else {
        emit_groups(e, row, axis, from, mid, e->sched->unroll, 0);
    }
    struct emit_loop l;
    emit_loop_open(e, &l, mid, to, emit_text(e, "%u", lanes));
    emit_loop_body(e, &l);
    const char *left = emit_op(e, "sub nsw i64 %s, %s", to, l.index);
    emit_group(e, row, axis, l.index, 1, emit_tail_mask(e, lanes, left), 0);
    emit_loop_close(e, &l, NULL);
}

// ---- units

static int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// The coordinates of a unit, the last the fastest, as values carried around the loop over units.
struct odometer {
    struct emit_loop loop;
    uint32_t n;
    const char *count[MAX_AXES + 1], *at[MAX_AXES + 1];
};

static void
odometer_open(struct emitter *e, struct odometer *o)
{
    const char *first[MAX_AXES + 1], *flat = "%begin";
    for (uint32_t i = o->n; i-- > 1;) {
        const char *q = emit_op(e, "udiv i64 %s, %s", flat, o->count[i]);
        first[i] = emit_op(e, "sub nsw i64 %s, %s", flat, emit_mul(e, q, o->count[i]));
        flat = q;
    }
    first[0] = flat;
    emit_loop_open(e, &o->loop, "%begin", "%end", "1");
    for (uint32_t i = 0; i < o->n; i++)
        o->at[i] = emit_carry(e, &o->loop, "i64", first[i]);
    emit_loop_body(e, &o->loop);
}

static void
odometer_close(struct emitter *e, struct odometer *o)
{
    const char *next[MAX_AXES + 1], *carry = "1";
    for (uint32_t i = o->n; i-- > 0;) {
        next[i] = emit_add(e, o->at[i], carry);
        if (i == 0)
            break;
        const char *wrap = emit_op(e, "icmp eq i64 %s, %s", next[i], o->count[i]);
        next[i] = emit_op(e, "select i1 %s, i64 0, i64 %s", wrap, next[i]);
        carry = emit_op(e, "zext i1 %s to i64", wrap);
    }
    emit_loop_close(e, &o->loop, next);
}

// [from, to) of block number `at` of an axis.
static void
block_range(struct emitter *e, const char *at, int64_t size, int64_t extent, const char **from,
            const char **to)
{
    *from = emit_mul(e, at, emit_num(e, size));
    *to = emit_min(e, emit_op(e, "add nsw i64 %s, %s", *from, emit_num(e, size)),
                   emit_num(e, extent));
}

// One axis: a thread's units are one range.
static void
emit_line_kernel(struct emitter *e)
{
    const char *chunk = emit_num(e, e->sched->chunk);
    struct emit_scope all = emit_scope(e, NULL, 1);
    emit_hoist(e, &all, NULL, UINT32_MAX);
    const char *extent = emit_num(e, e->kernel.axis[0].extent);
    const char *from = emit_min(e, emit_op(e, "mul nsw i64 %%begin, %s", chunk), extent);
    const char *to = emit_min(e, emit_op(e, "mul nsw i64 %%end, %s", chunk), extent);
    emit_row_range(e, &all, 0, from, to);
}

static void
emit_point_kernel(struct emitter *e)
{
    struct emit_loop l;
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    struct emit_scope s = emit_scope(e, NULL, 1);
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        emit_value(e, &s, e->kernel.store.at[i].value);
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        emit_store(e, &s, &e->kernel.store.at[i], 0);
    emit_loop_close(e, &l, NULL);
}

static void
emit_rows_kernel(struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    uint32_t last = k->naxis - 1u, mid = last - 1, lanes = e->sched->vec;
    int64_t rows = e->sched->tile[0], chunk = e->sched->chunk;
    bool brief = k->axis[last].extent <= lanes; // a row is one vector
    struct emit_scope all = emit_scope(e, NULL, 1), unit = emit_scope(e, &all, 1);
    emit_hoist(e, &all, NULL, UINT32_MAX);
    struct odometer o = {.n = k->naxis + 1u - brief};
    for (uint32_t i = 0; i < mid; i++)
        o.count[i] = emit_num(e, k->axis[i].extent);
    o.count[mid] = emit_num(e, ceil_div(k->axis[mid].extent, rows));
    if (!brief)
        o.count[last] = emit_num(e, ceil_div(k->axis[last].extent, chunk));
    const char *mask = NULL;
    if (brief && k->axis[last].extent < lanes)
        mask = emit_tail_mask(e, lanes, emit_num(e, k->axis[last].extent));
    odometer_open(e, &o);
    for (uint32_t i = 0; i < mid; i++)
        emit_bind(&unit, i, EMIT_UNIFORM, o.at[i]);
    emit_hoist(e, &unit, NULL, UINT32_MAX);
    const char *from = NULL, *to = NULL, *row_from, *row_to;
    block_range(e, o.at[mid], rows, k->axis[mid].extent, &row_from, &row_to);
    if (!brief)
        block_range(e, o.at[last], chunk, k->axis[last].extent, &from, &to);
    struct emit_loop l;
    emit_loop_open(e, &l, row_from, row_to, "1");
    emit_loop_body(e, &l);
    struct emit_scope row = emit_scope(e, &unit, 1);
    emit_bind(&row, mid, EMIT_UNIFORM, l.index);
    emit_hoist(e, &row, NULL, UINT32_MAX);
    if (brief)
        emit_group(e, &row, last, "0", 1, mask, 0);
    else
        emit_row_range(e, &row, last, from, to);
    emit_loop_close(e, &l, NULL);
    odometer_close(e, &o);
}

bool
cpu_pointwise(struct emitter *e)
{
    emit_function(e, "kernel");
    if (e->kernel.naxis == 0)
        emit_point_kernel(e);
    else if (e->kernel.naxis == 1)
        emit_line_kernel(e);
    else
        emit_rows_kernel(e);
    if (e->sched->streaming_store)
        emit_line(e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(e);
    return true;
}
