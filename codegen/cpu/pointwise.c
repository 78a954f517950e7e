// pointwise.c: kernels without reductions.
//
// A task unit is a block of the domain: one point of the outer axes, `tile[0]` rows of the last
// axis but one, `chunk` elements of the last. A thread runs consecutive units, so their
// coordinates are divided out once, for the first, and then counted up like an odometer.
//
// Along the last axis a row is whole groups of `unroll` vectors, all of whose loads are printed
// before their stores so that they are in flight together, then single vectors, then one under a
// mask that says which lanes exist. Rows of at most one vector skip the groups. Masked lanes
// compute and are not stored: every element goes through the same instructions. Where a body is so
// long that a group is one vector, whole vectors and what is left share one copy of it.
//
// Streaming stores go around the caches and need aligned addresses: whether a row's are is asked
// at run time, and a second loop with ordinary stores stands beside the first.
//
// Loads that run along memory on another axis are transposed first: pointwise_tiles.c.
#include "codegen/cpu/pointwise.h"

#include "passes/schedule.h"

#include <string.h>

// ---- the vector loops along one row

enum { LINE = 64, PICKED_ROWS_AHEAD = 2 };
enum request { TO_L1, TO_L2, TO_WRITE };

// Asks for what this access reads or writes `ahead` lines after the group at `s`. Only where what
// follows in memory is used soon: along rows that are one run, or long ones.
static void
ask_ahead(struct emitter *e, uint32_t axis, const struct access *x, const char *address,
          uint32_t unroll, int64_t ahead, enum request request)
{
    int64_t size = dtype_size(x->dtype);
    if (x->stride[axis] != 1 || (axis && x->stride[axis - 1] == 0))
        return;
    for (int64_t at = 0; at < unroll * e->sched->vec * size; at += LINE) {
        const char *byte = emit_text(e, "%lld", (long long)(ahead * LINE + at));
        const char *p = emit_ptr(e, address, byte, "i8");
        if (request == TO_WRITE)
            emit_prefetch_write(e, p);
        else
            emit_prefetch(e, p, request == TO_L1 ? 1 : 2);
    }
}

// The largest part of a mask, itself or of those that it is the conjunction of, that is the same
// for all of a row but not for all rows; 0: none.
static uint32_t
row_part(const struct emitter *e, uint32_t mask, uint32_t last)
{
    const struct inst *in = &e->kernel.inst.at[mask];
    if (!(e->depends[mask] >> last & 1))
        return e->depends[mask] ? mask : 0;
    if (in->op != OP_and)
        return 0;
    uint32_t part = row_part(e, in->a, last);
    return part ? part : row_part(e, in->b, last);
}

static const char reads_none[] = "zeroinitializer", reads_all[] = "splat (i1 true)";

// Whether a load is known to read nothing in this row (emit_row_version).
static bool
is_idle(const struct emitter *e, const struct emit_scope *s, const struct inst *load,
        uint32_t last)
{
    uint32_t part = load->b ? row_part(e, load->b, last) : 0;
    for (; s && part; s = s->up)
        if (s->value[part])
            return s->value[part] == reads_none;
    return false;
}

// Streaming stores hold the few buffers between the first two levels, which loads that find their
// lines in the second level need too: a second request, a quarter as far, brings them to the first.
static void
ask_ahead_of_group(struct emitter *e, struct emit_scope *s, uint32_t axis, uint32_t unroll,
                   uint32_t flags)
{
    const struct kernel *k = &e->kernel;
    int64_t ahead = e->sched->prefetch;
    bool stream = flags & EMIT_NONTEMPORAL;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || (in->a && k->inst.at[in->a].level != LEVEL_ONCE) ||
            is_idle(e, s, in, axis))
            continue;
        const char *at = emit_load_address(e, s, i);
        ask_ahead(e, axis, &k->access.at[in->aux], at, unroll, ahead, TO_L2);
        if (stream)
            ask_ahead(e, axis, &k->access.at[in->aux], at, unroll, ahead / 4, TO_L1);
    }
    for (uint32_t i = 0; i < k->store.n && !stream; i++) {
        uint32_t access = k->store.at[i].access;
        ask_ahead(e, axis, &k->access.at[access], emit_address(e, s, access), unroll, ahead,
                  TO_WRITE);
    }
}

// Streaming stores of less than a line are joined, up to a line: they would share a buffer, and
// LLVM makes ordinary stores of those that narrow integers on their way.
static uint32_t
vectors_a_store(const struct emitter *e, uint32_t access, uint32_t unroll)
{
    uint32_t bytes = dtype_size(e->kernel.access.at[access].dtype) * e->sched->vec, n = 1;
    while (2 * n <= unroll && 2 * n * bytes <= LINE)
        n *= 2;
    return n;
}

// The n values (a power of two) of one store, `stride` apart, as one vector.
static const char *
joined_values(struct emitter *e, uint32_t access, uint32_t n, const char **value, uint32_t stride)
{
    if (n == 1)
        return value[0];
    n /= 2;
    const char *low = joined_values(e, access, n, value, stride);
    const char *high = joined_values(e, access, n, value + n * stride, stride);
    return emit_concat(e, e->kernel.access.at[access].dtype, n * e->sched->vec, low, high);
}

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
    }
    if (e->sched->prefetch && !e->sched->transpose && unroll == e->sched->unroll && !mask)
        ask_ahead_of_group(e, &s[0], axis, unroll, flags);
    for (uint32_t u = 0; u < unroll; u++)
        for (uint32_t i = 0; i < nstore; i++)
            value[u * nstore + i] = emit_value(e, &s[u], e->kernel.store.at[i].value);
    for (uint32_t i = 0; i < nstore; i++) {
        uint32_t access = e->kernel.store.at[i].access;
        uint32_t joined = flags & EMIT_NONTEMPORAL ? vectors_a_store(e, access, unroll) : 1;
        for (uint32_t u = 0; u < unroll; u += joined) {
            struct emit_scope wide = emit_scope(e, row, joined * lanes);
            emit_bind(&wide, axis, EMIT_LANES, s[u].axis[axis].value);
            wide.mask = mask;
            const char *v = joined_values(e, access, joined, value + u * nstore + i, nstore);
            emit_store_value(e, joined > 1 ? &wide : &s[u], access, v, flags);
        }
    }
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

// The number of `left` elements at `at` that do not fill a vector, under a mask, if any.
static void
emit_partial(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *at,
             const char *left)
{
    const char *end = emit_if(e, emit_op(e, "icmp sgt i64 %s, 0", left));
    emit_group(e, row, axis, at, 1, emit_tail_mask(e, e->sched->vec, left), 0);
    emit_endif(e, end);
}

// The address of a store at element `at` of the axis, as an i64.
static const char *
store_address(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *at, uint32_t i)
{
    struct emit_scope s = emit_scope(e, row, 1);
    emit_bind(&s, axis, EMIT_UNIFORM, at);
    return emit_op(e, "ptrtoint ptr %s to i64",
                   emit_address(e, &s, e->kernel.store.at[i].access));
}

static uint32_t
stream_alignment(const struct emitter *e, uint32_t store)
{
    uint32_t access = e->kernel.store.at[store].access;
    uint32_t bytes = dtype_size(e->kernel.access.at[access].dtype) * e->sched->vec;
    bytes *= vectors_a_store(e, access, e->sched->unroll);
    return bytes < LINE ? bytes : LINE;
}

// i1: every store's address at `from` is a multiple of what a streaming store needs.
static const char *
all_aligned(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from)
{
    const char *low = NULL;
    for (uint32_t i = 0; i < e->kernel.store.n; i++) {
        const char *bits = emit_op(e, "and i64 %s, %u", store_address(e, row, axis, from, i),
                                   stream_alignment(e, i) - 1);
        low = low ? emit_op(e, "or i64 %s, %s", low, bits) : bits;
    }
    return emit_op(e, "icmp eq i64 %s, 0", low);
}

// Elements from `from` to where the first store may stream, at most `total`: less than a vector.
static const char *
head_length(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from,
            const char *total)
{
    uint8_t dtype = e->kernel.access.at[e->kernel.store.at[0].access].dtype;
    const char *below = emit_op(e, "sub i64 0, %s", store_address(e, row, axis, from, 0));
    const char *bytes = emit_op(e, "and i64 %s, %u", below, stream_alignment(e, 0) - 1);
    return emit_min(e, emit_op(e, "udiv i64 %s, %u", bytes, dtype_size(dtype)), total);
}

struct span { // [from, to) of the last axis: groups to mid, vectors to end, less than a vector
    const char *from, *to, *mid, *end;
};

static struct span
divide(struct emitter *e, const char *from, const char *to)
{
    uint32_t lanes = e->sched->vec;
    struct span p = {from, to, NULL, NULL};
    const char *total = emit_op(e, "sub nsw i64 %s, %s", to, from);
    p.mid = emit_add(e, from, emit_op(e, "and i64 %s, -%u", total, lanes * e->sched->unroll));
    p.end = p.mid;
    if (e->sched->unroll > 1)
        p.end = emit_add(e, from, emit_op(e, "and i64 %s, -%u", total, lanes));
    return p;
}

// Elements from `from` to `to` a vector at a time, each under a mask.
static void
emit_partials(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from,
              const char *to)
{
    uint32_t lanes = e->sched->vec;
    struct emit_loop l;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", lanes));
    emit_loop_body(e, &l);
    const char *left = emit_op(e, "sub nsw i64 %s, %s", to, l.index);
    emit_group(e, row, axis, l.index, 1, emit_tail_mask(e, lanes, left), 0);
    emit_loop_close(e, &l, NULL);
}

// ---- whole vectors and parts of one through one copy of the body

// Loads come through pointers: a part of a vector is copied to the stack first. So the body loads
// as if there were only whole vectors, and has no mask.

static bool
moves(const struct emitter *e, uint32_t inst, uint32_t axis)
{
    return e->kernel.inst.at[inst].op == OP_load && (e->depends[inst] >> axis & 1);
}

// A long body takes longer to compile a second time than two branches a vector, which are seldom
// wrong. A short one stands there twice, and so does one whose loads do not run along memory.
static bool
joins(const struct emitter *e, uint32_t axis)
{
    enum { LONG = 24 };
    const struct kernel *k = &e->kernel;
    bool can = e->sched->unroll == 1 && !e->sched->transpose && k->inst.n > LONG;
    for (uint32_t i = 1; i < k->inst.n && can; i++) {
        const struct inst *in = &k->inst.at[i];
        if (moves(e, i, axis))
            can = !in->a && !in->b && !in->c && k->access.at[in->aux].stride[axis] == 1;
    }
    return can;
}

// Copies of what is left of a vector, under its mask; per access the copy's address.
static const char **
copy_parts(struct emitter *e, struct emit_scope *s, uint32_t axis, const char *mask)
{
    const char **copy = arena_alloc(&e->mem, e->kernel.access.n * sizeof *copy);
    for (uint32_t i = 1; i < e->kernel.inst.n; i++) {
        uint32_t access = e->kernel.inst.at[i].aux;
        if (!moves(e, i, axis) || copy[access])
            continue;
        uint8_t dtype = e->kernel.inst.at[i].dtype;
        copy[access] = emit_entry_op(e, "alloca %s, align 64",
                                     emit_memory_type(e, dtype, s->lanes));
        const char *v = emit_load_raw(e, dtype, s->lanes, emit_address(e, s, access), mask,
                                      dtype_size(dtype));
        emit_store_raw(e, dtype, s->lanes, copy[access], v, NULL, LINE);
    }
    return copy;
}

static void
emit_all_stores(struct emitter *e, struct emit_scope *s, const char *mask, uint32_t flags)
{
    struct emit_scope under = emit_scope(e, s, s->lanes);
    under.mask = mask;
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        emit_store(e, &under, &e->kernel.store.at[i], flags);
}

struct joined { // [first, first + whole) of [from, to) are whole vectors; flags: of their stores
    const char *from, *to, *first, *whole;
    uint32_t flags;
};

// The vector at `index`, whole or a part; the elements it holds.
static const char *
emit_either(struct emitter *e, struct emit_scope *row, uint32_t axis, const struct joined *j,
            const char *index, const char *next)
{
    const struct kernel *k = &e->kernel;
    uint32_t lanes = e->sched->vec;
    const char *name = emit_label(e, "vector"), *whole = emit_text(e, "%s.whole", name);
    const char *part = emit_text(e, "%s.part", name), *body = emit_text(e, "%s.body", name);
    const char *put = emit_text(e, "%s.put", name), *rest = emit_text(e, "%s.put.part", name);
    struct emit_scope s = emit_scope(e, row, lanes), in = emit_scope(e, &s, lanes);
    emit_bind(&s, axis, EMIT_LANES, index);
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (moves(e, i, axis))
            emit_address(e, &s, k->inst.at[i].aux);
    for (uint32_t i = 0; i < k->store.n; i++)
        emit_address(e, &s, k->store.at[i].access);
    const char *at = emit_op(e, "sub nsw i64 %s, %s", index, j->first);
    const char *is_part = emit_op(e, "icmp uge i64 %s, %s", at, j->whole);
    emit_rarely(e, is_part, part, whole);
    emit_place(e, whole);
    if (e->sched->prefetch)
        ask_ahead_of_group(e, &s, axis, 1, j->flags);
    emit_jump(e, body);
    emit_place(e, part);
    const char *to = j->to;
    if (j->first != j->from) {
        const char *before = emit_op(e, "icmp slt i64 %s, %s", index, j->first);
        to = emit_op(e, "select i1 %s, i64 %s, i64 %s", before, j->first, to);
    }
    const char *left = emit_op(e, "sub nsw i64 %s, %s", to, index);
    left = emit_min(e, left, emit_text(e, "%u", lanes));
    const char **copy = copy_parts(e, &s, axis, emit_tail_mask(e, lanes, left));
    emit_jump(e, body);
    emit_place(e, body);
    const char *count = emit_op(e, "phi i64 [ %u, %%%s ], [ %s, %%%s ]", lanes, whole, left, part);
    for (uint32_t i = 0; i < k->access.n; i++)
        if (copy[i])
            in.addr[i] = emit_op(e, "phi ptr [ %s, %%%s ], [ %s, %%%s ]", s.addr[i], whole,
                                 copy[i], part);
    for (uint32_t i = 0; i < k->store.n; i++)
        emit_value(e, &in, k->store.at[i].value);
    emit_rarely(e, is_part, rest, put);
    emit_place(e, put);
    emit_all_stores(e, &in, NULL, j->flags);
    emit_jump(e, next);
    emit_place(e, rest);
    emit_all_stores(e, &in, emit_tail_mask(e, lanes, count), 0);
    return count;
}

static void
emit_joined(struct emitter *e, struct emit_scope *row, uint32_t axis, const struct joined *j)
{
    struct emit_loop l;
    emit_loop_open(e, &l, j->from, j->to, NULL);
    emit_loop_body(e, &l);
    l.step = emit_either(e, row, axis, j, l.index, emit_loop_next(e, &l));
    emit_loop_close(e, &l, NULL);
}

// Streaming stores want aligned addresses: what is left before and behind whole vectors takes turns
// in one copy of the body, and so does everything where the first store is aligned and another
// isn't, which only a caller's own buffers bring about. (A third copy of the body for that took a
// quarter of the time to compile.)
static void
emit_streamed_range(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from,
                    const char *to)
{
    const char *total = emit_op(e, "sub nsw i64 %s, %s", to, from);
    const char *start = emit_add(e, from, head_length(e, row, axis, from, total));
    struct span p = divide(e, start, to);
    const char *may = all_aligned(e, row, axis, start);
    const char *end = emit_op(e, "select i1 %s, i64 %s, i64 %s", may, p.end, start);
    if (joins(e, axis)) {
        const char *whole = emit_op(e, "sub nsw i64 %s, %s", end, start);
        emit_joined(e, row, axis, &(struct joined){from, to, start, whole, EMIT_NONTEMPORAL});
        return;
    }
    const char *mid = emit_op(e, "select i1 %s, i64 %s, i64 %s", may, p.mid, start);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", "2", "1");
    emit_loop_body(e, &l);
    const char *first = emit_op(e, "icmp eq i64 %s, 0", l.index);
    emit_partials(e, row, axis, emit_op(e, "select i1 %s, i64 %s, i64 %s", first, from, end),
                  emit_op(e, "select i1 %s, i64 %s, i64 %s", first, start, to));
    const char *done = emit_if(e, first);
    emit_groups(e, row, axis, start, mid, e->sched->unroll, EMIT_NONTEMPORAL);
    if (e->sched->unroll > 1)
        emit_groups(e, row, axis, mid, end, 1, 0);
    emit_endif(e, done);
    emit_loop_close(e, &l, NULL);
}

// Elements [from, to) of the last axis, on the point of the others that `row` binds.
void
pointwise_row_range(struct emitter *e, struct emit_scope *row, uint32_t axis, const char *from,
                    const char *to)
{
    if (e->sched->streaming_store) {
        emit_streamed_range(e, row, axis, from, to);
        return;
    }
    struct span p = divide(e, from, to);
    if (joins(e, axis)) {
        const char *whole = emit_op(e, "sub nsw i64 %s, %s", p.end, from);
        emit_joined(e, row, axis, &(struct joined){from, to, from, whole, 0});
        return;
    }
    emit_groups(e, row, axis, from, p.mid, e->sched->unroll, 0);
    if (e->sched->unroll > 1)
        emit_groups(e, row, axis, p.mid, p.end, 1, 0);
    emit_partial(e, row, axis, p.end, emit_op(e, "sub nsw i64 %s, %s", to, p.end));
}

// ---- units

const char *
pointwise_blocks(struct emitter *e, const char *name, uint32_t axis, int64_t size)
{
    return emit_named(e, name, (e->kernel.axis[axis].extent + size - 1) / size);
}

void
odometer_open(struct emitter *e, struct odometer *o)
{
    const char *first[MAX_AXES], *flat = "%begin";
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

void
odometer_close(struct emitter *e, struct odometer *o)
{
    const char *next[MAX_AXES], *carry = "1";
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

void
pointwise_block_range(struct emitter *e, const char *at, const char *size, uint32_t axis,
                      const char **from, const char **to)
{
    *from = emit_mul(e, at, size);
    *to = emit_min(e, emit_op(e, "add nsw i64 %s, %s", *from, size), emit_extent(e, axis));
}

// One axis: a thread's units are one range.
static void
emit_line_kernel(struct emitter *e)
{
    const char *chunk = emit_named(e, "chunk", e->sched->chunk);
    struct emit_scope all = emit_scope(e, NULL, 1);
    emit_hoist(e, &all, NULL, UINT32_MAX);
    const char *extent = emit_extent(e, 0);
    const char *from = emit_min(e, emit_op(e, "mul nsw i64 %%begin, %s", chunk), extent);
    const char *to = emit_min(e, emit_op(e, "mul nsw i64 %%end, %s", chunk), extent);
    pointwise_row_range(e, &all, 0, from, to);
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

// Whether data say which row of an array the load reads, and it reads along that.
static bool
picks_row(const struct emitter *e, const struct inst *in, uint32_t mid, uint32_t last)
{
    if (in->op != OP_load || !in->a || e->depends[in->a] >> last & 1)
        return false;
    return e->depends[in->a] >> mid & 1 && e->kernel.access.at[in->aux].stride[last] == 1;
}

// No processor foresees which rows data pick: asks for elements [from, to) of those of a row to
// come, in the range that ends at row_to.
static void
ask_for_picked_rows(struct emitter *e, struct emit_scope *unit, const char *at, const char *row_to,
                    const char *from, const char *to)
{
    const struct kernel *k = &e->kernel;
    uint32_t last = k->naxis - 1u, mid = last - 1;
    const char *row = NULL;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (!picks_row(e, in, mid, last))
            continue;
        if (!row)
            row = emit_min(e, emit_add(e, at, emit_text(e, "%d", PICKED_ROWS_AHEAD)),
                           emit_add(e, row_to, "-1"));
        struct emit_scope s = emit_scope(e, unit, 1);
        emit_bind(&s, mid, EMIT_UNIFORM, row);
        emit_value(e, &s, in->a);
        struct emit_loop l;
        emit_loop_open(e, &l, from, to, emit_text(e, "%u", LINE / dtype_size(in->dtype)));
        emit_loop_body(e, &l);
        struct emit_scope line = emit_scope(e, &s, 1);
        emit_bind(&line, last, EMIT_UNIFORM, l.index);
        emit_prefetch(e, emit_load_address(e, &line, i), 1);
        emit_loop_close(e, &l, NULL);
    }
}

// What tells rows apart in which a load reads nothing (those beside a window or a part that others
// are joined to): 0 where there is none, rows are short, or a second copy of the body is long.
static uint32_t
empty_rows_mask(const struct emitter *e, uint32_t last)
{
    enum { LONG_ROW = 64, MOST = 24 };
    const struct kernel *k = &e->kernel;
    uint32_t varying = 0, part = 0;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        varying += e->depends[i] >> last & 1;
        if (in->op == OP_load && in->b && !part)
            part = row_part(e, in->b, last);
    }
    return k->axis[last].extent >= LONG_ROW && varying <= MOST ? part : 0;
}

// A row whose loads under `mask` read something, or one where they don't: as if mask were a
// literal.
static void
emit_row_version(struct emitter *e, struct emit_scope *row, uint32_t mask, bool value,
                 const char *from, const char *to)
{
    struct emit_scope known = emit_scope(e, row, 1);
    emit_set(&known, mask, value ? reads_all : reads_none);
    pointwise_row_range(e, &known, e->kernel.naxis - 1u, from, to);
}

static void
emit_row_versions(struct emitter *e, struct emit_scope *row, uint32_t mask, const char *from,
                  const char *to)
{
    const char *reads = emit_op(e, "extractelement <1 x i1> %s, i64 0", emit_value(e, row, mask));
    const char *end = emit_if(e, reads);
    emit_row_version(e, row, mask, true, from, to);
    emit_endif(e, end);
    end = emit_if(e, emit_op(e, "xor i1 %s, true", reads));
    emit_row_version(e, row, mask, false, from, to);
    emit_endif(e, end);
}

static void
emit_rows_kernel(struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    uint32_t last = k->naxis - 1u, mid = last - 1, lanes = e->sched->vec;
    const char *rows = emit_named(e, "rows", e->sched->tile[0]);
    const char *chunk = emit_named(e, "chunk", e->sched->chunk);
    bool brief = k->axis[last].extent <= lanes; // a row is one vector
    struct emit_scope all = emit_scope(e, NULL, 1), unit = emit_scope(e, &all, 1);
    emit_hoist(e, &all, NULL, UINT32_MAX);
    struct odometer o = {.n = k->naxis - (uint32_t)brief};
    for (uint32_t i = 0; i < mid; i++)
        o.count[i] = emit_extent(e, i);
    o.count[mid] = pointwise_blocks(e, "blocks", mid, e->sched->tile[0]);
    if (!brief)
        o.count[last] = pointwise_blocks(e, "chunks", last, e->sched->chunk);
    const char *mask = NULL;
    if (brief && k->axis[last].extent < lanes)
        mask = emit_tail_mask(e, lanes, emit_extent(e, last));
    odometer_open(e, &o);
    for (uint32_t i = 0; i < mid; i++)
        emit_bind(&unit, i, EMIT_UNIFORM, o.at[i]);
    emit_hoist(e, &unit, NULL, UINT32_MAX);
    const char *from = NULL, *to = NULL, *row_from, *row_to;
    pointwise_block_range(e, o.at[mid], rows, mid, &row_from, &row_to);
    if (!brief)
        pointwise_block_range(e, o.at[last], chunk, last, &from, &to);
    struct emit_loop l;
    emit_loop_open(e, &l, row_from, row_to, "1");
    emit_loop_body(e, &l);
    struct emit_scope row = emit_scope(e, &unit, 1);
    emit_bind(&row, mid, EMIT_UNIFORM, l.index);
    if (e->sched->prefetch && !brief)
        ask_for_picked_rows(e, &unit, l.index, row_to, from, to);
    emit_hoist(e, &row, NULL, UINT32_MAX);
    uint32_t parted = empty_rows_mask(e, last);
    if (brief)
        emit_group(e, &row, last, "0", 1, mask, 0);
    else if (parted)
        emit_row_versions(e, &row, parted, from, to);
    else
        pointwise_row_range(e, &row, last, from, to);
    emit_loop_close(e, &l, NULL);
    odometer_close(e, &o);
}

bool
cpu_pointwise(struct emitter *e)
{
    bool ok = true;
    emit_function(e, "kernel");
    if (e->sched->transpose)
        ok = pointwise_tiles(e);
    else if (e->kernel.naxis == 0)
        emit_point_kernel(e);
    else if (e->kernel.naxis == 1)
        emit_line_kernel(e);
    else
        emit_rows_kernel(e);
    if (e->sched->streaming_store)
        emit_line(e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(e);
    return ok;
}
