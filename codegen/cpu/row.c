// row.c: the row class on CPUs: P outside, vectors along R.
//
// A task unit is one point of P. Each stage runs over the row (stage.c), its accumulators are
// joined across lanes into scalars that the next stage uses, and whatever depends on the row only
// is computed between the loops. Rows of a few vectors are unrolled and live in registers. Stages
// of consecutive rows may share a loop (row_overlap.c), or the last one take a group of rows
// together (row_pieces.c).
//
// Accumulators over P: each unit leaves its value in args->shared, at its row's number;
// kernel_finish reduces that array in the fixed order, whichever thread computed what.
#include "codegen/cpu/row.h"

#include "codegen/cpu/abreast.h"

void
row_bind(struct stages *st, struct emit_scope *row, const char *flat)
{
    const char *index[MAX_AXES] = {flat};
    if (st->np > 1)
        emit_decode(st->e, flat, 0, st->np, index);
    for (uint32_t a = 0; a < st->np; a++)
        emit_bind(row, a, EMIT_UNIFORM, index[a]);
}

uint8_t
row_result_dtype(const struct acc *a)
{
    return acc_is_arg(a) ? DT_i64 : a->dtype;
}

static void
take_results(struct stages *st, struct emit_scope *row, const struct emit_acc *p)
{
    for (uint32_t i = 0; i < st->set.n; i++)
        stages_result(st, row, st->acc[i], reduce_lanes(st->e, &st->set, i, p[i]));
}

// One row, stage after stage, each a loop.
static void
row_loops(struct stages *st, struct emit_scope *row, const char *index)
{
    for (uint32_t s = 0; s < st->e->kernel.nstage; s++) {
        struct emit_acc p[REDUCE_MAX];
        stages_row(st, row, s, index);
        stages_run(st, row, s, "0", st->n, p);
        take_results(st, row, p);
    }
}

// One row in registers.
static void
row_unrolled(struct stages *st, struct emit_scope *row, const char *index, const char *last_mask)
{
    struct emitter *e = st->e;
    uint32_t vectors = e->sched->tile[ROW_TILE_VECTORS];
    struct emit_scope *vector = arena_alloc(&e->mem, vectors * sizeof *vector);
    for (uint32_t s = 0; s < e->kernel.nstage; s++) {
        struct emit_acc p[REDUCE_MAX];
        stages_row(st, row, s, index);
        for (uint32_t v = 0; s == 0 && v < vectors; v++) {
            vector[v] = emit_scope(e, row, RED_LANES);
            vector[v].mask = v + 1 == vectors ? last_mask : NULL;
            stages_bind(st, &vector[v], emit_text(e, "%u", v * RED_LANES));
        }
        stages_unrolled(st, vector, vectors, s, p);
        take_results(st, row, p);
    }
}

static void
row_by_row(struct stages *st, uint32_t vectors, const char *last_mask)
{
    struct emit_loop l;
    emit_loop_open(st->e, &l, "%begin", "%end", "1");
    emit_loop_body(st->e, &l);
    struct emit_scope row = emit_scope(st->e, NULL, 1);
    row_bind(st, &row, l.index);
    if (vectors)
        row_unrolled(st, &row, l.index, last_mask);
    else
        row_loops(st, &row, l.index);
    emit_loop_close(st->e, &l, NULL);
}

static bool
has_over_p(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope == OVER_P)
            return true;
    return false;
}

static bool
has_once_store(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].level == LEVEL_ONCE)
            return true;
    return false;
}

// Values that are the same everywhere and need no accumulator are stored by the first unit.
static void
store_once(struct stages *st)
{
    struct emitter *e = st->e;
    const char *end = emit_if(e, emit_op(e, "icmp eq i64 %%begin, 0"));
    stages_finish(st);
    emit_endif(e, end);
}

bool
cpu_row(struct emitter *e)
{
    if (e->sched->rows)
        return cpu_row_abreast(e);
    struct stages st;
    stages_begin(&st, e);
    emit_function(e, "kernel");
    stages_function(&st);
    bool over_p = has_over_p(&e->kernel);
    if (!over_p && has_once_store(&e->kernel))
        store_once(&st);
    uint32_t vectors = e->sched->tile[ROW_TILE_VECTORS];
    const char *mask = NULL;
    if (vectors && !(st.extent & ROW_NO_TAIL))
        mask = emit_tail_mask(e, RED_LANES,
                              emit_add(e, st.n, emit_text(e, "-%u", (vectors - 1) * RED_LANES)));
    if (e->sched->overlap)
        row_overlap(&st);
    else if (e->sched->edge[0])
        row_pieces(&st);
    else
        row_by_row(&st, vectors, mask);
    if (e->sched->streaming_store)
        emit_line(e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(e);
    if (over_p) {
        emit_function(e, "kernel_finish");
        stages_function(&st);
        stages_finish(&st);
        emit_function_end(e);
    }
    return true;
}
