// reduce.c: accumulators of row, split and finishing loops.
//
// The order (ir/kernel.h): lanes take elements j % 16 in blocks of 256; blocks are joined by a
// binary counter; the lanes last. Within a block a lane is one dependency chain, so the loop runs
// four consecutive blocks at once, each with accumulators of its own: they are independent, and
// their join, (0 + 1) + (2 + 3), is just what the counter would do, so it is pushed at level 2.
//
// The counter's slots are stack memory of the generated function, one vector a level: slot k holds
// 2^k joined blocks. Pushing the block that makes the count c joins slots 0 .. ctz(c) - 1 and
// writes slot ctz(c); nothing is ever cleared, as the bits of the count say which slots live.
//
// What the schedule knows about the extent (enum row_extent) decides which of these loops exist.
#include "codegen/cpu/reduce.h"

#include "codegen/cpu/emit_parts.h"
#include "ir/base/check.h"

#include <string.h>

enum { SLOTS = 48 }; // 2^48 blocks are more than an address space holds

void
reduce_add(struct reduce_set *set, const struct acc *acc)
{
    CHECK(set->n < REDUCE_MAX, "more accumulators than a schedule may ask for");
    set->acc[set->n++] = acc;
}

void
reduce_identity(struct emitter *e, const struct reduce_set *set, struct emit_acc *out)
{
    for (uint32_t i = 0; i < set->n; i++)
        out[i] = emit_acc_identity(e, set->acc[i], RED_LANES);
}

// Older and newer where every position in older is smaller than its lane's in newer: the newer one
// must be strictly better. Elements that equal the identity are therefore never taken: a position
// that is still the identity's means that all elements equal it, and the first is the result.
static struct emit_acc
join_ordered(struct emitter *e, const struct acc *acc, struct emit_acc older,
             struct emit_acc newer)
{
    if (!acc_is_arg(acc))
        return emit_acc_join(e, acc, RED_LANES, older, newer);
    const char *type = emit_type(e, acc->dtype, RED_LANES), *take;
    const char *lanes = emit_type(e, DT_i64, RED_LANES);
    bool max = acc->op == OP_argmax;
    if (dtype_is_float(acc->dtype)) {
        const char *beats = emit_op(e, "fcmp %s %s %s, %s", max ? "ugt" : "ult", type, newer.value,
                                    older.value);
        const char *number = emit_op(e, "fcmp ord %s %s, %s", type, older.value, older.value);
        take = emit_and_mask(e, RED_LANES, beats, number);
    } else {
        take = emit_row(e, max ? OP_gt : OP_lt, acc->dtype, RED_LANES, newer.value, older.value,
                        NULL);
    }
    struct emit_acc r;
    r.value = emit_op(e, "select <%d x i1> %s, %s %s, %s %s", RED_LANES, take, type, newer.value,
                      type, older.value);
    r.index = emit_op(e, "select <%d x i1> %s, %s %s, %s %s", RED_LANES, take, lanes, newer.index,
                      lanes, older.index);
    return r;
}

static void
join_all(struct emitter *e, const struct reduce_set *set, const struct emit_acc *older,
         const struct emit_acc *newer, struct emit_acc *out)
{
    for (uint32_t i = 0; i < set->n; i++)
        out[i] = join_ordered(e, set->acc[i], older[i], newer[i]);
}

struct emit_acc
reduce_step(struct emitter *e, const struct reduce_set *set, uint32_t i, struct emit_acc old,
            const char *x, const char *j, const char *mask)
{
    const char *at = NULL;
    if (acc_is_arg(set->acc[i]))
        at = emit_op(e, "add <%d x i64> %s, %s", RED_LANES, emit_splat_i64(e, j, RED_LANES),
                     emit_iota(e, RED_LANES));
    struct emit_acc one = emit_acc_element(e, set->acc[i], RED_LANES, x, at, mask);
    return join_ordered(e, set->acc[i], old, one);
}

const char *
reduce_lanes(struct emitter *e, const struct reduce_set *set, uint32_t i, struct emit_acc p)
{
    struct emit_acc one = emit_acc_join_lanes(e, set->acc[i], RED_LANES, p);
    if (!acc_is_arg(set->acc[i]))
        return one.value;
    const char *none = emit_constant(e, DT_i64, INT64_MAX, 1);
    const char *unbeaten = emit_row(e, OP_eq, DT_i64, 1, one.index, none, NULL);
    return emit_op(e, "select <1 x i1> %s, <1 x i64> zeroinitializer, <1 x i64> %s", unbeaten,
                   one.index);
}

// ---- fields: a partial result is one vector, or two with the index

struct field {
    uint32_t acc, part;
    uint8_t dtype;
};

// All fields of a set, in order; returns how many.
static uint32_t
fields(const struct reduce_set *set, struct field *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        out[n++] = (struct field){i, 0, set->acc[i]->dtype};
        if (acc_is_arg(set->acc[i]))
            out[n++] = (struct field){i, 1, DT_i64};
    }
    return n;
}

static const char **
field_of(struct emit_acc *p, struct field f)
{
    return f.part ? &p[f.acc].index : &p[f.acc].value;
}

static void
list_fields(const struct reduce_set *set, struct emit_acc *p, const char **out)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    for (uint32_t i = 0; i < n; i++)
        out[i] = *field_of(p, f[i]);
}

static void
carry_fields(struct emitter *e, struct emit_loop *l, const struct reduce_set *set,
             const struct emit_acc *init, struct emit_acc *out)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    memset(out, 0, set->n * sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        const char *from = f[i].part ? init[f[i].acc].index : init[f[i].acc].value;
        *field_of(out, f[i]) = emit_carry(e, l, emit_type(e, f[i].dtype, RED_LANES), from);
    }
}

// ---- the binary counter

void
reduce_slots(struct emitter *e, struct reduce_set *set)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    for (uint32_t i = 0; i < n; i++) {
        const char *type = emit_memory_type(e, f[i].dtype, RED_LANES);
        set->stack[f[i].acc][f[i].part] =
            emit_entry_op(e, "alloca %s, i64 %d, align 64", type, SLOTS);
    }
}

static const char *
slot(struct emitter *e, const struct reduce_set *set, struct field f, const char *level)
{
    return emit_ptr(e, set->stack[f.acc][f.part], level, emit_memory_type(e, f.dtype, RED_LANES));
}

static void
load_slots(struct emitter *e, const struct reduce_set *set, const char *level,
           struct emit_acc *out)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    memset(out, 0, set->n * sizeof *out);
    for (uint32_t i = 0; i < n; i++)
        *field_of(out, f[i]) =
            emit_load_raw(e, f[i].dtype, RED_LANES, slot(e, set, f[i], level), NULL, 16);
}

static void
store_slots(struct emitter *e, const struct reduce_set *set, const char *level,
            struct emit_acc *p)
{
    struct field f[2 * REDUCE_MAX];
    uint32_t n = fields(set, f);
    for (uint32_t i = 0; i < n; i++)
        emit_store_raw(e, f[i].dtype, RED_LANES, slot(e, set, f[i], level), *field_of(p, f[i]),
                       NULL, 16);
}

static const char *
trailing_zeros(struct emitter *e, const char *count)
{
    return emit_op(e, "call i64 @llvm.cttz.i64(i64 %s, i1 true)", count);
}

void
reduce_push(struct emitter *e, const struct reduce_set *set, uint32_t level, const char *count,
            const struct emit_acc *p)
{
    const char *top = trailing_zeros(e, count);
    const char *next[EMIT_MAX_CARRY];
    struct emit_acc older[REDUCE_MAX], newer[REDUCE_MAX], both[REDUCE_MAX];
    struct emit_loop l;
    emit_loop_open(e, &l, emit_text(e, "%u", level), top, "1");
    carry_fields(e, &l, set, p, newer);
    emit_loop_body(e, &l);
    load_slots(e, set, l.index, older);
    join_all(e, set, older, newer, both);
    list_fields(set, both, next);
    emit_loop_close(e, &l, next);
    store_slots(e, set, top, newer);
}

void
reduce_pop(struct emitter *e, const struct reduce_set *set, const char *count,
           struct emit_acc *out)
{
    struct emit_acc first[REDUCE_MAX], older[REDUCE_MAX], both[REDUCE_MAX];
    const char *next[EMIT_MAX_CARRY];
    load_slots(e, set, trailing_zeros(e, count), first);
    const char *slots = emit_op(e, "call i64 @llvm.ctpop.i64(i64 %s)", count);
    struct emit_loop l;
    emit_loop_open(e, &l, "1", slots, "1");
    carry_fields(e, &l, set, first, out);
    const char *left = emit_carry(e, &l, "i64", count);
    emit_loop_body(e, &l);
    const char *rest = emit_op(e, "and i64 %s, %s", left, emit_add(e, left, "-1"));
    load_slots(e, set, trailing_zeros(e, rest), older);
    join_all(e, set, older, out, both);
    list_fields(set, both, next);
    next[l.ncarry - 1] = rest;
    emit_loop_close(e, &l, next);
}

// ---- the loop

struct feed { // what reduce_loop was given
    struct reduce_set *set;
    const char *from, *to;
    uint32_t extent;
    reduce_point *point;
    void *user;
};

// Vectors first .. last (i64, multiples of 16 apart) of `blocks` consecutive blocks at once.
static void
run_vectors(struct emitter *e, struct feed *f, const char *first, const char *last,
            uint32_t blocks, const struct emit_acc *init, struct emit_acc *out, bool masked)
{
    struct reduce_set *set = f->set;
    struct emit_acc new[REDUCE_MAX * REDUCE_WIDE];
    const char *next[EMIT_MAX_CARRY];
    struct emit_loop l;
    emit_loop_open(e, &l, first, last, emit_text(e, "%d", RED_LANES));
    for (uint32_t b = 0; b < blocks; b++)
        carry_fields(e, &l, set, init + b * set->n, out + b * set->n);
    emit_loop_body(e, &l);
    const char *mask = NULL;
    if (masked)
        mask = emit_tail_mask(e, RED_LANES, emit_op(e, "sub i64 %s, %s", f->to, l.index));
    uint32_t n = 0;
    for (uint32_t b = 0; b < blocks; b++) {
        const char *j = emit_add(e, l.index, emit_text(e, "%u", b * RED_BLOCK));
        f->point(e, j, mask, out + b * set->n, new + b * set->n, f->user);
        list_fields(set, new + b * set->n, next + n);
        n += l.ncarry / blocks;
    }
    emit_loop_close(e, &l, next);
}

// Blocks done once the one at b is: (b - from) / 256 + add.
static const char *
blocks_done(struct emitter *e, const struct feed *f, const char *b, uint32_t add)
{
    const char *offset = emit_op(e, "sub i64 %s, %s", b, f->from);
    const char *blocks = emit_op(e, "lshr i64 %s, 8", offset);
    return emit_add(e, blocks, emit_text(e, "%u", add));
}
_Static_assert(RED_BLOCK == 1 << 8, "shifts by 8 divide by the block");

// Whole groups of REDUCE_WIDE blocks. Returns where they end.
static const char *
run_groups(struct emitter *e, struct feed *f)
{
    struct reduce_set *set = f->set;
    struct emit_acc init[REDUCE_MAX * REDUCE_WIDE], p[REDUCE_MAX * REDUCE_WIDE];
    uint32_t n = set->n;
    for (uint32_t b = 0; b < REDUCE_WIDE; b++)
        reduce_identity(e, set, init + b * n);
    const char *length = emit_op(e, "sub i64 %s, %s", f->to, f->from);
    const char *whole = emit_op(e, "and i64 %s, %d", length, -(REDUCE_WIDE * RED_BLOCK));
    const char *end = emit_add(e, f->from, whole);
    struct emit_loop l;
    emit_loop_open(e, &l, f->from, end, emit_text(e, "%d", REDUCE_WIDE * RED_BLOCK));
    emit_loop_body(e, &l);
    const char *last = emit_add(e, l.index, emit_text(e, "%d", RED_BLOCK));
    run_vectors(e, f, l.index, last, REDUCE_WIDE, init, p, false);
    struct emit_acc low[REDUCE_MAX], high[REDUCE_MAX], all[REDUCE_MAX];
    join_all(e, set, p, p + n, low);
    join_all(e, set, p + 2 * n, p + 3 * n, high);
    join_all(e, set, low, high, all);
    reduce_push(e, set, 2, blocks_done(e, f, l.index, REDUCE_WIDE), all);
    emit_loop_close(e, &l, NULL);
    return end;
}

// One block, or what is left of it.
static void
run_block(struct emitter *e, struct feed *f, const char *first, const char *whole,
          struct emit_acc *out)
{
    struct emit_acc init[REDUCE_MAX], body[REDUCE_MAX];
    reduce_identity(e, f->set, init);
    bool tail = !(f->extent & ROW_NO_TAIL);
    const char *end = emit_add(e, first, emit_text(e, "%d", RED_BLOCK));
    const char *last = emit_min(e, end, whole);
    run_vectors(e, f, first, last, 1, init, tail ? body : out, false);
    if (tail) // at most one round, in the last block
        run_vectors(e, f, last, emit_min(e, end, f->to), 1, body, out, true);
}

void
reduce_loop(struct emitter *e, struct reduce_set *set, const char *from, const char *to,
            uint32_t extent, uint32_t width, reduce_point *point, void *user, struct emit_acc *out)
{
    struct feed f = {set, from, to, extent, point, user};
    const char *whole =
        extent & ROW_NO_TAIL ? to : emit_op(e, "and i64 %s, %d", to, -RED_LANES);
    if (extent & ROW_ONE_BLOCK) {
        run_block(e, &f, from, whole, out);
        return;
    }
    reduce_slots(e, set);
    bool groups = width > 1 && !(extent & ROW_NO_GROUPS);
    const char *start = groups ? run_groups(e, &f) : from;
    if (!groups || !(extent & ROW_NO_REST)) {
        struct emit_acc p[REDUCE_MAX];
        struct emit_loop l;
        emit_loop_open(e, &l, start, to, emit_text(e, "%d", RED_BLOCK));
        emit_loop_body(e, &l);
        run_block(e, &f, l.index, whole, p);
        reduce_push(e, set, 0, blocks_done(e, &f, l.index, 1), p);
        emit_loop_close(e, &l, NULL);
    }
    const char *length = emit_op(e, "sub i64 %s, %s", to, from);
    const char *blocks = emit_op(e, "lshr i64 %s, 8", emit_add(e, length, "255"));
    reduce_pop(e, set, blocks, out);
}
