// reduce_loop.c: the loop that feeds accumulators, in the fixed order and still fast.
//
// A lane's elements of one block are one dependency chain. Blocks are independent, so where nothing
// else hides latency four consecutive blocks run at once, each with accumulators of its own. Their
// join, (0 + 1) + (2 + 3), is what the binary counter would do, so it goes on as one value of
// level 2.
//
// Few blocks, in a number that the schedule gives: each leaves its result in a slot of its own, and
// straight-line code joins the slots as the counter would have. Else the counter itself runs.
//
// Where every order gives the same bits (maximum, argmax, integers) there are no blocks at all:
// four neighbouring vectors at once, from end to end.
#include "codegen/cpu/reduce.h"

#include "ir/base/check.h"

enum { MAX_STATIC_SLOTS = 16 };

struct feed { // what reduce_loop was given
    struct reduce_set *set;
    const struct reduce_range *range;
    const char *whole; // end of the last whole vector
    reduce_point *point;
    void *user;
};

static const char *
number(struct emitter *e, int64_t n)
{
    return emit_text(e, "%lld", (long long)n);
}

// A loop over vectors at first, first + step … before last, and with each the vectors that follow
// it `apart` elements apart, each of them with accumulators of its own.
struct strands {
    const char *first, *last;
    int64_t step, apart;
    uint32_t n;
    bool masked;
};

static void
run_vectors(struct emitter *e, struct feed *f, struct strands s, const struct emit_acc *init,
            struct emit_acc *out)
{
    struct reduce_set *set = f->set;
    struct emit_acc new[REDUCE_MAX * REDUCE_WIDE];
    const char *next[EMIT_MAX_CARRY];
    struct emit_loop l;
    emit_loop_open(e, &l, s.first, s.last, number(e, s.step));
    for (uint32_t b = 0; b < s.n; b++)
        reduce_carry(e, &l, set, init + b * set->n, out + b * set->n);
    emit_loop_body(e, &l);
    const char *mask = NULL;
    if (s.masked)
        mask = emit_tail_mask(e, RED_LANES, emit_op(e, "sub i64 %s, %s", f->range->to, l.index));
    for (uint32_t b = 0; b < s.n; b++) {
        const char *j = emit_add(e, l.index, number(e, b * s.apart));
        f->point(e, j, mask, out + b * set->n, new + b * set->n, f->user);
        reduce_fields(set, new + b * set->n, next + b * (l.ncarry / s.n));
    }
    emit_loop_close(e, &l, next);
}

// Vectors one after the other, and what is left behind them.
static void
run_along(struct emitter *e, struct feed *f, const char *first, const char *last, const char *end,
          const struct emit_acc *init, struct emit_acc *out)
{
    struct emit_acc body[REDUCE_MAX];
    bool tail = !(f->range->extent & ROW_NO_TAIL);
    struct strands s = {first, last, RED_LANES, 0, 1, false};
    run_vectors(e, f, s, init, tail ? body : out);
    if (tail) { // at most one round
        s = (struct strands){last, end, RED_LANES, 0, 1, true};
        run_vectors(e, f, s, body, out);
    }
}

// from + the greatest multiple of m in to - from.
static const char *
whole_multiple(struct emitter *e, const struct feed *f, int64_t m)
{
    const char *length = emit_op(e, "sub i64 %s, %s", f->range->to, f->range->from);
    return emit_add(e, f->range->from, emit_op(e, "and i64 %s, %lld", length, (long long)-m));
}

// ---- any order

static void
run_any_order(struct emitter *e, struct feed *f, struct emit_acc *out)
{
    const struct reduce_range *r = f->range;
    struct emit_acc init[REDUCE_MAX * REDUCE_WIDE], p[REDUCE_MAX * REDUCE_WIDE];
    struct emit_acc all[REDUCE_MAX];
    reduce_wide_identity(e, f->set, init);
    if (r->width == 1) {
        run_along(e, f, r->from, f->whole, r->to, init, out);
        return;
    }
    enum { STEP = REDUCE_WIDE * RED_LANES };
    const char *end = r->extent & ROW_NO_REST ? r->to : whole_multiple(e, f, STEP);
    run_vectors(e, f, (struct strands){r->from, end, STEP, RED_LANES, REDUCE_WIDE, false}, init, p);
    if (r->extent & ROW_NO_REST) {
        reduce_join_strands(e, f->set, p, out);
        return;
    }
    reduce_join_strands(e, f->set, p, all);
    run_along(e, f, end, f->whole, r->to, all, out);
}

// ---- the fixed order

// REDUCE_WIDE blocks from first on, joined.
static void
run_group(struct emitter *e, struct feed *f, const char *first, struct emit_acc *out)
{
    struct reduce_set *set = f->set;
    struct emit_acc init[REDUCE_MAX * REDUCE_WIDE], p[REDUCE_MAX * REDUCE_WIDE];
    struct emit_acc low[REDUCE_MAX], high[REDUCE_MAX];
    uint32_t n = set->n;
    reduce_wide_identity(e, set, init);
    const char *last = emit_add(e, first, number(e, RED_BLOCK));
    run_vectors(e, f, (struct strands){first, last, RED_LANES, RED_BLOCK, REDUCE_WIDE, false}, init,
                p);
    reduce_join(e, set, p, p + n, low);
    reduce_join(e, set, p + 2 * n, p + 3 * n, high);
    reduce_join(e, set, low, high, out);
}

// One block, or what is left of it.
static void
run_block(struct emitter *e, struct feed *f, const char *first, struct emit_acc *out)
{
    struct emit_acc init[REDUCE_MAX];
    reduce_identity(e, f->set, init);
    const char *end = emit_add(e, first, number(e, RED_BLOCK));
    run_along(e, f, first, emit_min(e, end, f->whole), emit_min(e, end, f->range->to), init, out);
}

// Where finished blocks go: to the counter, or (base >= 0) to the slots from base on.
static void
put(struct emitter *e, struct feed *f, const char *at, const char *start, uint32_t blocks,
    int64_t base, struct emit_acc *p)
{
    uint32_t shift = blocks == 1 ? 8 : 10, level = blocks == 1 ? 0 : 2;
    const char *offset = emit_op(e, "sub i64 %s, %s", at, base < 0 ? f->range->from : start);
    if (base >= 0) {
        const char *slot = emit_op(e, "lshr i64 %s, %u", offset, shift);
        reduce_store_slot(e, f->set, emit_add(e, slot, number(e, base)), p);
    } else {
        const char *done = emit_op(e, "lshr i64 %s, 8", offset);
        reduce_push(e, f->set, level, emit_add(e, done, number(e, blocks)), p);
    }
}
_Static_assert(RED_BLOCK == 1 << 8 && REDUCE_WIDE == 4, "shifts divide by the block and the group");

// All pieces (groups, or blocks) from start to end.
static void
run_pieces(struct emitter *e, struct feed *f, const char *start, const char *end, uint32_t blocks,
           int64_t base)
{
    struct emit_acc p[REDUCE_MAX];
    struct emit_loop l;
    emit_loop_open(e, &l, start, end, number(e, (int64_t)blocks * RED_BLOCK));
    emit_loop_body(e, &l);
    if (blocks == 1)
        run_block(e, f, l.index, p);
    else
        run_group(e, f, l.index, p);
    put(e, f, l.index, start, blocks, base, p);
    emit_loop_close(e, &l, NULL);
}

// Slots 0 .. groups - 1 of level 2, then `blocks` of level 0, joined as the counter does.
static void
join_slots(struct emitter *e, struct feed *f, uint32_t groups, uint32_t blocks,
           struct emit_acc *out)
{
    struct {
        uint32_t level;
        struct emit_acc p[REDUCE_MAX];
    } stack[MAX_STATIC_SLOTS];
    uint32_t n = 0;
    for (uint32_t s = 0; s < groups + blocks; s++) {
        stack[n].level = s < groups ? 2 : 0;
        reduce_load_slot(e, f->set, number(e, s), stack[n++].p);
        while (n > 1 && stack[n - 2].level == stack[n - 1].level) {
            reduce_join(e, f->set, stack[n - 2].p, stack[n - 1].p, stack[n - 2].p);
            stack[--n - 1].level++;
        }
    }
    for (; n > 1; n--)
        reduce_join(e, f->set, stack[n - 2].p, stack[n - 1].p, stack[n - 2].p);
    for (uint32_t i = 0; i < f->set->n; i++)
        out[i] = stack[0].p[i];
}

// A known, small number of blocks.
static void
run_static(struct emitter *e, struct feed *f, uint32_t groups, uint32_t blocks,
           struct emit_acc *out)
{
    const struct reduce_range *r = f->range;
    if (groups + blocks == 1) {
        if (groups)
            run_group(e, f, r->from, out);
        else
            run_block(e, f, r->from, out);
        return;
    }
    reduce_slots(e, f->set);
    const char *start = groups && blocks ? whole_multiple(e, f, REDUCE_WIDE * RED_BLOCK) : r->from;
    if (groups)
        run_pieces(e, f, r->from, blocks ? start : r->to, REDUCE_WIDE, 0);
    if (blocks)
        run_pieces(e, f, start, r->to, 1, groups);
    join_slots(e, f, groups, blocks, out);
}

static void
run_counter(struct emitter *e, struct feed *f, struct emit_acc *out)
{
    const struct reduce_range *r = f->range;
    reduce_slots(e, f->set);
    const char *start = r->from;
    if (r->width > 1) {
        start = r->extent & ROW_NO_REST ? r->to : whole_multiple(e, f, REDUCE_WIDE * RED_BLOCK);
        run_pieces(e, f, r->from, start, REDUCE_WIDE, -1);
    }
    if (r->width == 1 || !(r->extent & ROW_NO_REST))
        run_pieces(e, f, start, r->to, 1, -1);
    const char *length = emit_op(e, "sub i64 %s, %s", r->to, r->from);
    const char *up = emit_add(e, length, number(e, RED_BLOCK - 1));
    reduce_pop(e, f->set, emit_op(e, "lshr i64 %s, 8", up), out);
}

void
reduce_loop(struct emitter *e, struct reduce_set *set, const struct reduce_range *range,
            reduce_point *point, void *user, struct emit_acc *out)
{
    struct feed f = {set, range, range->to, point, user};
    CHECK(range->width == 1 || set->n * 2 * REDUCE_WIDE <= EMIT_MAX_CARRY, "too many to run wide");
    if (!(range->extent & ROW_NO_TAIL))
        f.whole = emit_op(e, "and i64 %s, %d", range->to, -RED_LANES);
    // a group is whole: the last block, perhaps begun only, belongs to one if all are
    bool exact = range->extent & ROW_NO_REST;
    uint32_t full = exact ? range->blocks : range->blocks - (range->blocks > 0);
    uint32_t groups = range->width > 1 ? full / REDUCE_WIDE : 0;
    uint32_t rest = range->blocks - groups * REDUCE_WIDE;
    if (reduce_any_order(set))
        run_any_order(e, &f, out);
    else if (range->blocks && groups + rest <= MAX_STATIC_SLOTS)
        run_static(e, &f, groups, rest, out);
    else
        run_counter(e, &f, out);
}
