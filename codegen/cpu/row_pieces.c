// row_pieces.c: the row class where a row and what all rows share do not fit the first-level cache:
// the last stage takes a group of rows together, a piece of their columns at a time.
//
// Row by row, weights come from the second level each time, through the buffers that streaming
// stores hold. Here the stages before the last go through the rows of a group (the schedule's
// edge[0]) one by one and leave their results in stack slots; then the last stage goes through the
// columns piece by piece, all rows of a piece after each other, which read its weights from the
// first level. Each element is computed as before. What is asked for ahead is the next group.
#include "codegen/cpu/row.h"

enum { PIECE = 128 };

struct group {
    struct stages *st;
    uint32_t last;     // the stage that takes rows together
    const char *first; // its first row
    const char **slot; // per accumulator: a result a row
};

static const char *
slot_at(struct group *g, uint32_t acc, const char *index)
{
    struct emitter *e = g->st->e;
    const char *number = emit_op(e, "sub i64 %s, %s", index, g->first);
    uint8_t dtype = row_result_dtype(&e->kernel.acc.at[acc]);
    return emit_ptr(e, g->slot[acc], number, emit_memory_type(e, dtype, 1));
}

static void
make_slots(struct group *g)
{
    struct emitter *e = g->st->e;
    const struct kernel *k = &e->kernel;
    g->slot = arena_alloc(&e->mem, (k->acc.n + 1) * sizeof *g->slot);
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope == OVER_R)
            g->slot[i] = emit_entry_op(e, "alloca %s, i64 %u, align 16",
                                       emit_memory_type(e, row_result_dtype(&k->acc.at[i]), 1),
                                       e->sched->edge[0]);
}

// The stages before the last of one row, and what else belongs to it.
static void
row_results(struct group *g, const char *index)
{
    struct stages *st = g->st;
    struct emitter *e = st->e;
    struct emit_scope row = emit_scope(e, NULL, 1);
    row_bind(st, &row, index);
    for (uint32_t s = 0; s < g->last; s++) {
        struct emit_acc p[REDUCE_MAX];
        stages_row(st, &row, s, index);
        stages_run(st, &row, s, "0", st->n, p);
        for (uint32_t i = 0; i < st->set.n; i++) {
            const char *v = reduce_lanes(e, &st->set, i, p[i]);
            uint32_t acc = st->acc[i];
            stages_result(st, &row, acc, v);
            emit_store_raw(e, row_result_dtype(&e->kernel.acc.at[acc]), 1, slot_at(g, acc, index),
                           v, NULL, 1);
        }
    }
    stages_row(st, &row, g->last, index);
}

static void
row_piece(struct group *g, const char *index, const char *from, const char *to)
{
    struct stages *st = g->st;
    struct emitter *e = st->e;
    struct emit_scope row = emit_scope(e, NULL, 1);
    row_bind(st, &row, index);
    for (uint32_t i = 0; i < e->kernel.acc.n; i++)
        if (g->slot[i])
            stages_result(st, &row, i,
                          emit_load_raw(e, row_result_dtype(&e->kernel.acc.at[i]), 1,
                                        slot_at(g, i, index), NULL, 1));
    emit_hoist(e, &row, NULL, UINT32_MAX);
    stages_run(st, &row, g->last, from, to, NULL);
}

void
row_pieces(struct stages *st)
{
    struct emitter *e = st->e;
    struct group g = {.st = st, .last = e->kernel.nstage - 1u};
    struct emit_loop groups, rows, pieces;
    make_slots(&g);
    const char *size = emit_text(e, "%u", e->sched->edge[0]);
    emit_loop_open(e, &groups, "%begin", "%end", size);
    emit_loop_body(e, &groups);
    g.first = groups.index;
    const char *end = emit_min(e, emit_add(e, g.first, size), "%end");
    emit_loop_open(e, &rows, g.first, end, "1");
    emit_loop_body(e, &rows);
    row_results(&g, rows.index);
    emit_loop_close(e, &rows, NULL);
    emit_loop_open(e, &pieces, "0", st->n, emit_text(e, "%d", PIECE));
    emit_loop_body(e, &pieces);
    const char *to = emit_min(e, emit_add(e, pieces.index, emit_text(e, "%d", PIECE)), st->n);
    emit_loop_open(e, &rows, g.first, end, "1");
    emit_loop_body(e, &rows);
    row_piece(&g, rows.index, pieces.index, to);
    emit_loop_close(e, &rows, NULL);
    emit_loop_close(e, &pieces, NULL);
    emit_loop_close(e, &groups, NULL);
}
