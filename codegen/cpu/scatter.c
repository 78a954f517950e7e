// scatter.c: the scatter class on CPUs: updates at positions given by data.
//
// A task unit owns a box of the result: a point of the axes before the one that is scattered along,
// a block of that axis, a piece of the axis behind it (along which the result runs in memory, if
// there is one). It first writes what the elements start from, then goes through R in order: where
// the index names a place of its block, the update joins the element there, in the output itself,
// a row of the piece at once in vectors. Nobody else touches the box, so the result does not depend
// on who runs which unit.
//
// Where the index differs along the innermost axis, or there is none, updates are taken one by one.
// Those that belong to nobody here (another block's, or out of range) then go to a dummy: a branch
// that data decide would cost more than the update.
//
// Where R is divided (passes/schedule_scatter.c), units collect in arrays of their own.
#include "codegen/cpu/emit_parts.h"

#include "passes/schedule.h"

#include "ir/base/check.h"
#include "ir/base/size.h"

struct scatter_code {
    struct emitter *e;
    uint32_t np, axis, inner; // inner: the axis behind `axis`, or naxis: none
    uint32_t value, access;
    uint8_t dtype;
    bool one_by_one;
    const char *d0, *d1, *i0, *i1; // the unit's box along axis and inner
    const char *part;              // where R is divided: the array that updates go to, else NULL
};

// Calls step for the elements of an axis from `from` to `to`, a vector at a time, in a scope below
// `up`; the last ones under a mask.
typedef void span_step(struct scatter_code *c, struct emit_scope *s);
static void
vectors(struct scatter_code *c, struct emit_scope *up, uint32_t axis, const char *from,
        const char *to, span_step *step)
{
    struct emitter *e = c->e;
    uint32_t lanes = e->sched->vec;
    const char *total = emit_op(e, "sub nsw i64 %s, %s", to, from);
    const char *end = emit_add(e, from, emit_op(e, "and i64 %s, -%u", total, lanes));
    struct emit_loop l;
    emit_loop_open(e, &l, from, end, emit_text(e, "%u", lanes));
    emit_loop_body(e, &l);
    struct emit_scope s = emit_scope(e, up, lanes);
    emit_bind(&s, axis, EMIT_LANES, l.index);
    step(c, &s);
    emit_loop_close(e, &l, NULL);
    const char *left = emit_op(e, "sub nsw i64 %s, %s", to, end);
    const char *rest = emit_if(e, emit_op(e, "icmp sgt i64 %s, 0", left));
    struct emit_scope t = emit_scope(e, up, lanes);
    emit_bind(&t, axis, EMIT_LANES, end);
    t.mask = emit_tail_mask(e, lanes, left);
    step(c, &t);
    emit_endif(e, rest);
}

// ---- what the elements start from

static void
store_start(struct scatter_code *c, struct emit_scope *s)
{
    const char *v = emit_value(c->e, s, c->e->kernel.scatter.init);
    emit_store_value(c->e, s, c->access, v, 0);
}

// Whether the start is an element of an array at the place of the result's own: then that array may
// be the output itself, which holds it already.
static bool
starts_in_place(const struct scatter_code *c)
{
    const struct kernel *k = &c->e->kernel;
    const struct inst *init = &k->inst.at[k->scatter.init];
    if (init->op != OP_load || init->a || init->b || init->c)
        return false;
    const struct access *from = &k->access.at[init->aux], *to = &k->access.at[c->access];
    bool same = from->base == to->base;
    for (uint32_t a = 0; a < k->naxis; a++)
        same &= from->stride[a] == to->stride[a];
    return same;
}

static void
write_starts(struct scatter_code *c, struct emit_scope *unit)
{
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    const char *skip = NULL;
    if (starts_in_place(c)) {
        const char *from = emit_buffer(e, k->access.at[k->inst.at[k->scatter.init].aux].buffer);
        const char *to = emit_buffer(e, k->access.at[c->access].buffer);
        skip = emit_if(e, emit_op(e, "icmp ne ptr %s, %s", from, to));
    }
    if (c->inner == k->naxis) {
        vectors(c, unit, c->axis, c->d0, c->d1, store_start);
    } else {
        struct emit_loop l;
        emit_loop_open(e, &l, c->d0, c->d1, "1");
        emit_loop_body(e, &l);
        struct emit_scope row = emit_scope(e, unit, 1);
        emit_bind(&row, c->axis, EMIT_UNIFORM, l.index);
        emit_hoist(e, &row, &k->scatter.init, 1);
        vectors(c, &row, c->inner, c->i0, c->i1, store_start);
        emit_loop_close(e, &l, NULL);
    }
    if (skip)
        emit_endif(e, skip);
}

// ---- updates

// What is stored at ptr after the update v of <lanes>.
static const char *
joined(struct scatter_code *c, uint32_t lanes, const char *ptr, const char *v, const char *mask)
{
    uint16_t combine = op_table[c->e->kernel.acc.at[0].op].combine;
    if (!combine)
        return v;
    const char *old = emit_load_raw(c->e, c->dtype, lanes, ptr, mask, dtype_size(c->dtype));
    return emit_row(c->e, combine, c->dtype, lanes, old, v, NULL);
}

static void
update_vector(struct scatter_code *c, struct emit_scope *s)
{
    const char *v = emit_value(c->e, s, c->value), *ptr = emit_address(c->e, s, c->access);
    emit_store_value(c->e, s, c->access, joined(c, s->lanes, ptr, v, s->mask), 0);
}

// The place that the index names at the scope's point, and whether it is one of the unit's.
static const char *
place(struct scatter_code *c, struct emit_scope *s, const char **ours)
{
    struct emitter *e = c->e;
    const char *index = emit_value(e, s, e->kernel.scatter.index);
    const char *at = emit_op(e, "extractelement <1 x i64> %s, i64 0", index);
    const char *from = emit_op(e, "sub i64 %s, %s", at, c->d0);
    *ours = emit_op(e, "icmp ult i64 %s, %s", from, emit_op(e, "sub i64 %s, %s", c->d1, c->d0));
    return at;
}

static void
update_one(struct scatter_code *c, struct emit_scope *point)
{
    struct emitter *e = c->e;
    const char *ours, *at = place(c, point, &ours);
    struct emit_scope s = emit_scope(e, point, 1);
    emit_bind(&s, c->axis, EMIT_UNIFORM, at);
    const char *ptr = c->part ? emit_ptr(e, c->part, at, emit_memory_type(e, c->dtype, 1))
                              : emit_address(e, &s, c->access);
    if (!e->kernel.scatter.in_range || (!c->part && e->sched->tile[SCATTER_TILE_BLOCKS] > 1))
        ptr = emit_op(e, "select i1 %s, ptr %s, ptr %s", ours, ptr,
                      emit_entry_op(e, "alloca i64"));
    const char *v = joined(c, 1, ptr, emit_value(e, &s, c->value), NULL);
    emit_store_raw(e, c->dtype, 1, ptr, v, NULL, dtype_size(c->dtype));
}

static void
update_row(struct scatter_code *c, struct emit_scope *point)
{
    struct emitter *e = c->e;
    const char *ours, *at = place(c, point, &ours), *end = emit_if(e, ours);
    struct emit_scope row = emit_scope(e, point, 1);
    emit_bind(&row, c->axis, EMIT_UNIFORM, at);
    emit_hoist(e, &row, &c->value, 1);
    vectors(c, &row, c->inner, c->i0, c->i1, update_vector);
    emit_endif(e, end);
}

// All elements of the unit's piece of the innermost axis, if there is one, one by one.
static void
update_elements(struct scatter_code *c, struct emit_scope *point)
{
    struct emitter *e = c->e;
    if (c->inner == e->kernel.naxis) {
        update_one(c, point);
        return;
    }
    struct emit_loop l;
    emit_loop_open(e, &l, c->i0, c->i1, "1");
    emit_loop_body(e, &l);
    struct emit_scope s = emit_scope(e, point, 1);
    emit_bind(&s, c->inner, EMIT_UNIFORM, l.index);
    update_one(c, &s);
    emit_loop_close(e, &l, NULL);
}

// The loops over R, in its order.
static void
go_through(struct scatter_code *c, struct emit_scope *unit)
{
    struct emitter *e = c->e;
    struct emit_loop loop[MAX_AXES];
    struct emit_scope scope[MAX_AXES + 1];
    uint32_t nred = e->kernel.nred;
    const uint32_t need[] = {e->kernel.scatter.index, c->value};
    scope[0] = *unit;
    for (uint32_t r = 0; r < nred; r++) {
        emit_loop_open(e, &loop[r], "0", emit_extent(e, c->np + r), "1");
        emit_loop_body(e, &loop[r]);
        scope[r + 1] = emit_scope(e, &scope[r], 1);
        emit_bind(&scope[r + 1], c->np + r, EMIT_UNIFORM, loop[r].index);
        if (r + 1 < nred)
            emit_hoist(e, &scope[r + 1], need, 2);
    }
    if (c->one_by_one)
        update_elements(c, &scope[nred]);
    else
        update_row(c, &scope[nred]);
    for (uint32_t r = nred; r-- > 0;)
        emit_loop_close(e, &loop[r], NULL);
}

// ---- units

// Piece number `at` of an axis cut into pieces of `size`.
static void
piece(struct scatter_code *c, uint32_t axis, const char *at, const char *size, const char **from,
      const char **to)
{
    *from = emit_mul(c->e, at, size);
    *to = emit_min(c->e, emit_add(c->e, *from, size), emit_extent(c->e, axis));
}

// Takes the next digit off a unit's number.
static const char *
digit(struct emitter *e, const char **number, const char *base)
{
    const char *all = *number;
    *number = emit_op(e, "udiv i64 %s, %s", all, base);
    return emit_op(e, "sub i64 %s, %s", all, emit_op(e, "mul i64 %s, %s", *number, base));
}

static void
divide(struct scatter_code *c, const char *unit, struct emit_scope *s)
{
    struct emitter *e = c->e;
    const struct axis *axis = e->kernel.axis;
    int64_t blocks = e->sched->tile[SCATTER_TILE_BLOCKS];
    if (c->inner < e->kernel.naxis) {
        int64_t n = ceil_div(axis[c->inner].extent, e->sched->chunk);
        const char *at = digit(e, &unit, emit_named(e, "pieces", n));
        piece(c, c->inner, at, emit_named(e, "piece", e->sched->chunk), &c->i0, &c->i1);
    }
    const char *at = digit(e, &unit, emit_named(e, "blocks", blocks));
    const char *size = emit_named(e, "block", ceil_div(axis[c->axis].extent, blocks));
    piece(c, c->axis, at, size, &c->d0, &c->d1);
    const char *index[MAX_AXES] = {0};
    emit_decode(e, unit, 0, c->axis, index);
    for (uint32_t a = 0; a < c->axis; a++)
        emit_bind(s, a, EMIT_UNIFORM, index[a]);
}

// ---- R divided among units

// Array number `at` of all units' own.
static const char *
part_at(struct scatter_code *c, const char *at)
{
    struct emitter *e = c->e;
    const char *bytes = emit_named(e, "part", scatter_part_bytes(&e->kernel));
    return emit_ptr(e, emit_shared(e), emit_mul(e, at, bytes), "i8");
}

static void
store_identity(struct scatter_code *c, struct emit_scope *s)
{
    struct emitter *e = c->e;
    const char *type = emit_memory_type(e, c->dtype, 1);
    const char *ptr = emit_ptr(e, c->part, s->axis[c->axis].value, type);
    uint64_t none = op_identity_bits(e->kernel.acc.at[0].op, c->dtype);
    emit_store_raw(e, c->dtype, s->lanes, ptr, emit_constant(e, c->dtype, none, s->lanes), s->mask,
                   dtype_size(c->dtype));
}

// Updates [from, to) of R, `turns` at a time, each into an array of its own.
static void
updates_in_turns(struct scatter_code *c, const char *const *part, uint32_t turns, const char *from,
                 const char *to)
{
    struct emitter *e = c->e;
    struct emit_loop l;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", turns));
    emit_loop_body(e, &l);
    for (uint32_t t = 0; t < turns; t++) {
        struct emit_scope s = emit_scope(e, NULL, 1);
        emit_bind(&s, c->np, EMIT_UNIFORM, emit_add(e, l.index, emit_text(e, "%u", t)));
        c->part = part[t];
        update_one(c, &s);
    }
    emit_loop_close(e, &l, NULL);
}

static void
collect(struct scatter_code *c)
{
    struct emitter *e = c->e;
    uint32_t turns = e->sched->tile[SCATTER_TILE_TURNS];
    const char *part[SCATTER_TURNS], *n = emit_extent(e, c->np);
    emit_function(e, "kernel");
    struct emit_loop l;
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    int64_t points = kernel_points(&e->kernel, AXIS_R), units = e->sched->units;
    const char *size = emit_named(e, "updates", ceil_div(points, units));
    const char *from = emit_min(e, emit_mul(e, l.index, size), n);
    const char *to = emit_min(e, emit_add(e, from, size), n);
    c->d0 = "0";
    c->d1 = emit_extent(e, c->axis);
    for (uint32_t t = 0; t < turns; t++) {
        const char *at = emit_mul(e, l.index, emit_text(e, "%u", turns));
        c->part = part[t] = part_at(c, emit_add(e, at, emit_text(e, "%u", t)));
        struct emit_scope all = emit_scope(e, NULL, 1);
        vectors(c, &all, c->axis, c->d0, c->d1, store_identity);
    }
    const char *total = emit_op(e, "sub nsw i64 %s, %s", to, from);
    const char *mid = emit_add(e, from, emit_op(e, "and i64 %s, -%u", total, turns));
    updates_in_turns(c, part, turns, from, mid);
    if (turns > 1)
        updates_in_turns(c, part, 1, mid, to);
    emit_loop_close(e, &l, NULL);
    emit_function_end(e);
}

// The start and all parts of a vector of places.
static void
join_parts(struct scatter_code *c, struct emit_scope *s)
{
    struct emitter *e = c->e;
    const char *type = emit_type(e, c->dtype, s->lanes);
    const char *start = emit_value(e, s, e->kernel.scatter.init);
    int64_t parts = e->sched->units * e->sched->tile[SCATTER_TILE_TURNS];
    struct emit_loop l;
    emit_loop_open(e, &l, "0", emit_named(e, "parts", parts), "1");
    const char *sum = emit_carry(e, &l, type, start);
    emit_loop_body(e, &l);
    const char *ptr = emit_ptr(e, part_at(c, l.index), s->axis[c->axis].value,
                               emit_memory_type(e, c->dtype, 1));
    const char *next = joined(c, s->lanes, ptr, sum, s->mask);
    emit_loop_close(e, &l, &next);
    emit_store_value(e, s, c->access, sum, 0);
}

static void
finish(struct scatter_code *c)
{
    struct emitter *e = c->e;
    emit_function(e, "kernel_finish");
    struct emit_loop l;
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    const char *from, *to;
    piece(c, c->axis, l.index, emit_named(e, "piece", e->sched->chunk), &from, &to);
    struct emit_scope all = emit_scope(e, NULL, 1);
    emit_hoist(e, &all, &e->kernel.scatter.init, 1);
    vectors(c, &all, c->axis, from, to, join_parts);
    emit_loop_close(e, &l, NULL);
    emit_function_end(e);
}

bool
cpu_scatter(struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    struct scatter_code c = {.e = e, .np = k->naxis - k->nred, .axis = k->scatter.axis};
    CHECK(k->acc.n == 1 && k->store.n == 1, "a scatter kernel stores one accumulator");
    c.inner = c.axis + 1 < c.np ? c.axis + 1 : k->naxis;
    CHECK(c.axis + 2 >= c.np, "a scatter kernel with %u axes behind its own", c.np - c.axis - 1);
    c.value = k->acc.at[0].value;
    c.access = k->store.at[0].access;
    c.dtype = k->acc.at[0].dtype;
    c.one_by_one = c.inner == k->naxis || e->depends[k->scatter.index] >> c.inner & 1;
    if (e->sched->tile[SCATTER_TILE_TURNS]) {
        collect(&c);
        finish(&c);
        return true;
    }
    emit_function(e, "kernel");
    struct emit_loop l;
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    struct emit_scope unit = emit_scope(e, NULL, 1);
    divide(&c, l.index, &unit);
    const uint32_t need[] = {k->scatter.init, k->scatter.index, c.value};
    emit_hoist(e, &unit, need, 3);
    write_starts(&c, &unit);
    go_through(&c, &unit);
    emit_loop_close(e, &l, NULL);
    emit_function_end(e);
    return true;
}
