// column_layout.c: the scratch memory of the column class.
//
//   [ arrays of one strip: results; row values that elements read ] [ slot 0 ] [ slot 1 ] ...
//   [ element values kept between stages: rows x strip each ]
//   [ factors of a block of rows (column_lanes.c) ]
//
// A slot holds, for each accumulator of the stage at hand, its 16 lanes of one strip (argmax and
// argmin: values, then positions). Stages use the same slots one after the other. As many slots are
// needed as a binary counter up to the number of blocks has digits.
// The same arithmetic, on the unexpanded body, is in passes/schedule_column.c as an upper bound.
#include "codegen/cpu/column.h"

#include <string.h>

static int64_t
round64(int64_t n)
{
    return (n + 63) / 64 * 64;
}

// A row value worth keeping for the strip: computed (a load or a literal is as cheap as reading it
// back), different in each column, and an operand of an element.
static bool
is_row_value(const struct emitter *e, uint32_t i, uint32_t axis)
{
    const struct inst *in = &e->kernel.inst.at[i];
    if (in->level != LEVEL_ROW || in->op == OP_literal || in->op == OP_load ||
        in->op == OP_result || in->op == OP_index)
        return false;
    return e->depends[i] >> axis & 1;
}

static void
mark(struct column *c, uint32_t i, int64_t *at)
{
    const struct inst *in = &c->e->kernel.inst.at[i];
    if (c->array[i])
        return;
    c->array[i] = 1 + *at;
    *at += round64(c->strip * dtype_size(in->dtype));
}

static int64_t
place_arrays(struct column *c)
{
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    int64_t at = 0;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op == OP_result)
            mark(c, i, &at);
        if (in->level != LEVEL_ELEM)
            continue;
        const uint32_t operand[] = {in->a, in->b, in->c};
        for (uint32_t j = 0; j < 3; j++)
            if (operand[j] && is_row_value(e, operand[j], c->axis)) {
                mark(c, operand[j], &at);
                e->kept[operand[j]] = true; // so that the walk asks for it
            }
    }
    return at;
}

static uint32_t
slot_count(int64_t rows)
{
    uint32_t n = 1;
    for (int64_t blocks = (rows + RED_BLOCK - 1) / RED_BLOCK; blocks > 1; blocks /= 2)
        n++;
    return n;
}

void
column_accs(struct column *c, uint32_t stage)
{
    const struct kernel *k = &c->e->kernel;
    c->nacc = 0;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].stage == stage)
            c->acc[c->nacc++] = &k->acc.at[i];
    c->slot_bytes = 0;
    for (uint32_t i = 0; i < c->nacc; i++) {
        const struct acc *a = c->acc[i];
        int64_t lanes = c->lanes * c->strip;
        c->acc_at[a - c->e->kernel.acc.at] = c->slot_bytes;
        c->slot_bytes += lanes * (dtype_size(a->dtype) + (acc_is_arg(a) ? 8 : 0));
    }
}

static int64_t
place_kept(struct column *c)
{
    const struct kernel *k = &c->e->kernel;
    c->keep = arena_alloc(&c->e->mem, k->inst.n * sizeof *c->keep);
    return column_keep(k, c->e->kept, c->keep) * kernel_points(k, AXIS_R) * c->strip;
}

// Where factors lie, from byte `at` on; returns where they end.
static int64_t
place_factors(struct column *c, int64_t at)
{
    const struct kernel *k = &c->e->kernel;
    bool *factor = arena_alloc(&c->e->mem, k->inst.n * sizeof *factor);
    c->factor = arena_alloc(&c->e->mem, k->inst.n * sizeof *c->factor);
    if (!c->e->sched->tile[2])
        return at;
    column_factors(k, factor);
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (factor[i]) {
            c->factor[i] = 1 + at;
            at += RED_BLOCK * dtype_size(k->inst.at[i].dtype);
        }
    return at;
}

bool
column_layout(struct column *c, struct emitter *e, int64_t strip, uint32_t lanes, int64_t rows)
{
    const struct kernel *k = &e->kernel;
    *c = (struct column){.e = e, .axis = k->naxis - k->nred - 1u, .vec = e->sched->vec,
                         .unroll = e->sched->unroll, .strip = strip, .lanes = lanes};
    c->array = arena_alloc(&e->mem, k->inst.n * sizeof *c->array);
    c->acc_at = arena_alloc(&e->mem, (k->acc.n + 1) * sizeof *c->acc_at);
    c->acc = arena_alloc(&e->mem, (k->acc.n + 1) * sizeof *c->acc);
    c->slots_at = place_arrays(c);
    int64_t slot = 0;
    for (uint32_t s = 0; s < k->nstage; s++) {
        column_accs(c, s);
        slot = c->slot_bytes > slot ? c->slot_bytes : slot;
    }
    c->keep_at = place_factors(c, c->slots_at + slot * slot_count(rows));
    int64_t kept = place_kept(c), need = c->keep_at + kept;
    if (need > e->sched->scratch_bytes) { // the expanded body holds more than was foreseen
        memset(c->keep, 0, k->inst.n * sizeof *c->keep);
        need -= kept;
    }
    if (need <= e->sched->scratch_bytes)
        return true;
    return diag_set(e->diag, DIAG_INTERNAL, "column scratch: %lld bytes needed, %lld scheduled",
                    (long long)need, (long long)e->sched->scratch_bytes);
}
