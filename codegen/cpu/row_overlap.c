// row_overlap.c: the row class where memory would idle: stages of consecutive rows in one loop.
//
// A row that is normalised is read to its end several times, and only the first time from memory:
// in the other stages memory has nothing to do but what was asked for ahead, and requests that come
// faster than memory serves them are dropped. So all stages with work per element (the schedule's
// `overlap`) stand in one loop over R, the first over a row that is new, the second over the one
// before, and so on: each turn of the loop loads, computes and stores, and the processor overlaps
// the three. Each stage still goes through its row in the same order, so the bits are the same.
//
// Turn t gives stage s row t - delay(s), where delay counts the overlapping stages up to s, without
// the first; a stage that has work once a row only follows the one before it. In the first and last
// turns of a task some stages have no row; then, and where a row is not aligned for streaming
// stores, each stage runs by itself.
//
// Results of accumulators wait in stack slots for the turns in which later stages want them; the
// schedule sees to it that kept values are read before the next row's take their place.
#include "codegen/cpu/row.h"

struct overlap {
    struct merge merge;
    uint32_t delay[ROW_MAX_OVERLAP];
    const char *(*slot)[ROW_MAX_OVERLAP]; // per accumulator and age in turns
};

static uint32_t
oldest(const struct overlap *o, uint32_t acc)
{
    const struct kernel *k = &o->merge.st->e->kernel;
    return o->delay[k->nstage - 1] - o->delay[k->acc.at[acc].stage];
}

static void
make_slots(struct overlap *o)
{
    struct emitter *e = o->merge.st->e;
    const struct kernel *k = &e->kernel;
    o->slot = arena_alloc(&e->mem, (k->acc.n + 1) * sizeof *o->slot);
    for (uint32_t i = 0; i < k->acc.n; i++)
        for (uint32_t age = 0; k->acc.at[i].scope == OVER_R && age <= oldest(o, i); age++)
            o->slot[i][age] = emit_entry_op(
                e, "alloca %s, align 16", emit_memory_type(e, row_result_dtype(&k->acc.at[i]), 1));
}

static const char *
read_slot(struct overlap *o, uint32_t acc, uint32_t age)
{
    struct emitter *e = o->merge.st->e;
    uint8_t dtype = row_result_dtype(&e->kernel.acc.at[acc]);
    return emit_load_raw(e, dtype, 1, o->slot[acc][age], NULL, 1);
}

static void
write_slot(struct overlap *o, uint32_t acc, uint32_t age, const char *v)
{
    struct emitter *e = o->merge.st->e;
    uint8_t dtype = row_result_dtype(&e->kernel.acc.at[acc]);
    emit_store_raw(e, dtype, 1, o->slot[acc][age], v, NULL, 1);
}

// All results become a turn older.
static void
age_results(struct overlap *o)
{
    const struct kernel *k = &o->merge.st->e->kernel;
    for (uint32_t i = 0; i < k->acc.n; i++)
        for (uint32_t age = k->acc.at[i].scope == OVER_R ? oldest(o, i) : 0; age > 0; age--)
            write_slot(o, i, age, read_slot(o, i, age - 1));
}

static void
keep_results(struct overlap *o, const struct emit_acc *p)
{
    struct stages *st = o->merge.st;
    for (uint32_t i = 0; i < st->set.n; i++)
        write_slot(o, st->acc[i], 0, reduce_lanes(st->e, &st->set, i, p[i]));
}

static const char *
row_of(struct overlap *o, uint32_t stage, const char *turn)
{
    return emit_add(o->merge.st->e, turn, emit_text(o->merge.st->e, "%d", -(int)o->delay[stage]));
}

// The scope of the row that a stage has in this turn, with the results of earlier stages.
static struct emit_scope
enter_row(struct overlap *o, uint32_t stage, const char *index)
{
    struct stages *st = o->merge.st;
    const struct kernel *k = &st->e->kernel;
    struct emit_scope row = emit_scope(st->e, NULL, 1);
    row_bind(st, &row, index);
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        if (a->scope == OVER_R && a->stage < stage)
            stages_result(st, &row, i, read_slot(o, i, o->delay[stage] - o->delay[a->stage]));
    }
    stages_row(st, &row, stage, index);
    return row;
}

// A stage by itself, if it has a row.
static void
run_alone(struct overlap *o, uint32_t stage, const char *turn)
{
    struct stages *st = o->merge.st;
    struct emitter *e = st->e;
    struct emit_acc p[REDUCE_MAX];
    const char *index = row_of(o, stage, turn);
    const char *rows = emit_op(e, "sub i64 %%end, %%begin");
    const char *number = emit_op(e, "sub i64 %s, %%begin", index);
    const char *end = emit_if(e, emit_op(e, "icmp ult i64 %s, %s", number, rows));
    struct emit_scope row = enter_row(o, stage, index);
    stages_run(st, &row, stage, "0", st->n, p);
    keep_results(o, p);
    emit_endif(e, end);
}

static void
run_merged(struct overlap *o, const char *turn)
{
    struct merge *m = &o->merge;
    struct emitter *e = m->st->e;
    struct emit_acc p[REDUCE_MAX];
    struct emit_scope row[ROW_MAX_OVERLAP];
    for (uint32_t s = 0; s < e->kernel.nstage; s++) {
        if (!(m->stages >> s & 1))
            continue;
        row[s] = enter_row(o, s, row_of(o, s, turn));
        m->row[s] = &row[s];
    }
    stages_merged(m, p);
    keep_results(o, p);
}

// i1: all overlapping stages have a row, and it is aligned where stores stream.
static const char *
can_merge(struct overlap *o, const char *turn)
{
    struct merge *m = &o->merge;
    struct emitter *e = m->st->e;
    uint32_t depth = 0;
    const char *can = emit_op(e, "icmp slt i64 %s, %%end", turn);
    for (uint32_t s = 0; s < e->kernel.nstage; s++) {
        if (!(m->stages >> s & 1))
            continue;
        depth = o->delay[s];
        if (!m->store_flags)
            continue;
        struct emit_scope row = emit_scope(e, NULL, 1);
        row_bind(m->st, &row, row_of(o, s, turn));
        can = emit_op(e, "and i1 %s, %s", can, stages_aligned(m->st, &row, s, "0"));
    }
    const char *number = emit_op(e, "sub i64 %s, %%begin", turn);
    const char *deep = emit_op(e, "icmp sge i64 %s, %u", number, depth);
    return emit_op(e, "and i1 %s, %s", can, deep);
}

void
row_overlap(struct stages *st)
{
    struct emitter *e = st->e;
    uint32_t nstage = e->kernel.nstage, stages = e->sched->overlap;
    struct overlap o = {.merge = {.st = st, .stages = stages}};
    o.merge.store_flags = e->sched->streaming_store ? EMIT_NONTEMPORAL : 0;
    for (uint32_t s = 1; s < nstage; s++)
        o.delay[s] = o.delay[s - 1] + (stages >> s & 1);
    make_slots(&o);
    struct emit_loop l;
    emit_loop_open(e, &l, "%begin", emit_add(e, "%end", emit_text(e, "%u", o.delay[nstage - 1])),
                   "1");
    emit_loop_body(e, &l);
    age_results(&o);
    const char *merged = emit_label(e, "merged"), *apart = emit_label(e, "apart");
    const char *others = emit_label(e, "others");
    emit_branch(e, can_merge(&o, l.index), merged, apart);
    emit_place(e, merged);
    run_merged(&o, l.index);
    emit_jump(e, others);
    emit_place(e, apart);
    for (uint32_t s = nstage; s-- > 0;)
        if (stages >> s & 1)
            run_alone(&o, s, l.index);
    emit_jump(e, others);
    emit_place(e, others);
    for (uint32_t s = 0; s < nstage; s++)
        if (!(stages >> s & 1))
            run_alone(&o, s, l.index);
    emit_loop_close(e, &l, NULL);
}
