// abreast.c: the row class where several rows go through R together (passes/schedule_abreast.c says
// when).
//
// A task unit is a strip of 16 rows along the last P axis. ROW_ABREAST rows at a time run through
// their elements, each with accumulators of its own (to reduce_loop they are so many accumulators
// of one loop); what is the same for all rows is loaded or computed once for them, or read from
// scratch, where it was put when the outer P axes last changed. The 16 lanes that each row comes to
// wait in stack memory. Then all 16 rows are joined at once:
//
//   row 0: a0 a1 ... a15        a0+a8 ... a7+a15  b0+b8 ... b7+b15
//   row 1: b0 b1 ... b15   ->   (and so for each pair of rows)        -> ... -> a b c ... p
//
// every step halves a row's lanes and pairs vectors, so that 15 joins and 30 shuffles do what takes
// 64 and 64 a row at a time; a row ends in the lane of its number, in the order of ir/kernel.h.
// What follows the reductions is computed for the 16 rows as vectors.
//
// In the last strip rows that do not exist are read as the last one, and stored by no lane.
#include "codegen/cpu/abreast.h"

#include "codegen/cpu/stage.h"

struct abreast {
    struct stages st;           // axes and extents of R
    uint32_t last, nacc;        // the last P axis; accumulators of a row
    bool whole;                 // no strip is begun only
    bool *edge;                 // per instruction: computed once for all rows
    int64_t *kept_at;           // per instruction: where in scratch; -1: it is not there
    bool filling;               // scratch is being written
    const char *at;             // first element of the vector at hand
    const char *rows;           // extent of the last P axis
    const char **shared;        // per instruction: the value of an edge at the vector at hand
    uint32_t acc[REDUCE_MAX];   // kernel.acc of a row's accumulators
    uint32_t value[REDUCE_MAX]; // what each accumulator reduces
    struct emit_scope *unit;
    struct emit_scope row[ROW_ABREAST];
    struct reduce_set set;        // ROW_ABREAST times a row's accumulators
    const char *part[REDUCE_MAX]; // per accumulator of a row: 16 vectors
};

static const char *
scratch_at(struct abreast *a, uint32_t inst)
{
    struct emitter *e = a->st.e;
    const char *base = emit_scratch(e, a->kept_at[inst]);
    return emit_ptr(e, base, a->at, emit_memory_type(e, e->kernel.inst.at[inst].dtype, 1));
}

static const char *
resolve(struct emitter *e, struct emit_scope *s, uint32_t inst, void *user)
{
    struct abreast *a = user;
    if (a->kept_at[inst] < 0 || a->filling || s->lanes != RED_LANES)
        return NULL;
    return emit_load_raw(e, e->kernel.inst.at[inst].dtype, RED_LANES, scratch_at(a, inst), NULL,
                         16);
}

static void
begin(struct abreast *a, struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    *a = (struct abreast){0};
    stages_begin(&a->st, e);
    a->last = a->st.np - 1;
    a->whole = a->st.extent & ROW_WHOLE_STRIPS;
    a->edge = row_shared_edge(k);
    a->shared = arena_alloc(&e->mem, k->inst.n * sizeof *a->shared);
    a->kept_at = arena_alloc(&e->mem, k->inst.n * sizeof *a->kept_at);
    int64_t at = 0, padded = (a->st.points + RED_LANES - 1) / RED_LANES * RED_LANES;
    for (uint32_t i = 0; i < k->inst.n; i++) {
        a->kept_at[i] = -1;
        if (!e->kept[i] || k->inst.at[i].level != LEVEL_ELEM)
            continue;
        a->kept_at[i] = at;
        at += (padded * dtype_size(k->inst.at[i].dtype) + 63) & ~(int64_t)63;
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope == OVER_R) {
            a->acc[a->nacc] = i;
            a->value[a->nacc++] = k->acc.at[i].value;
        }
    for (uint32_t r = 0; r < ROW_ABREAST; r++)
        for (uint32_t i = 0; i < a->nacc; i++)
            reduce_add(&a->set, &k->acc.at[a->acc[i]]);
    e->resolve = resolve;
    e->user = a;
}

// ---- what rows share

static bool
keeps_any(const struct abreast *a)
{
    for (uint32_t i = 1; i < a->st.e->kernel.inst.n; i++)
        if (a->kept_at[i] >= 0)
            return true;
    return false;
}

static void
fill_vector(struct abreast *a, const char *j, const char *mask)
{
    struct emitter *e = a->st.e;
    const struct kernel *k = &e->kernel;
    struct emit_scope s = emit_scope(e, a->unit, RED_LANES);
    s.mask = mask;
    stages_bind(&a->st, &s, j);
    a->at = j;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (a->kept_at[i] >= 0)
            emit_store_raw(e, k->inst.at[i].dtype, RED_LANES, scratch_at(a, i),
                           emit_value(e, &s, i), NULL, 16);
}

// Writes the kept values of the unit's outer axes to scratch.
static void
fill(struct abreast *a)
{
    struct emitter *e = a->st.e;
    bool tail = !(a->st.extent & ROW_NO_TAIL);
    const char *n = a->st.n, *whole = tail ? emit_op(e, "and i64 %s, %d", n, -RED_LANES) : n;
    struct emit_loop l;
    a->filling = true;
    emit_loop_open(e, &l, "0", whole, emit_text(e, "%d", RED_LANES));
    emit_loop_body(e, &l);
    fill_vector(a, l.index, NULL);
    emit_loop_close(e, &l, NULL);
    if (tail) {
        const char *end = emit_if(e, emit_op(e, "icmp slt i64 %s, %s", whole, n));
        const char *left = emit_op(e, "sub i64 %s, %s", n, whole);
        fill_vector(a, whole, emit_tail_mask(e, RED_LANES, left));
        emit_endif(e, end);
    }
    a->filling = false;
}

// ---- rows

// 16 elements of each of the rows at hand.
static void
point(struct emitter *e, const char *j, const char *mask, const struct emit_acc *in,
      struct emit_acc *out, void *user)
{
    struct abreast *a = user;
    uint32_t n = e->kernel.inst.n;
    struct emit_scope common = emit_scope(e, a->unit, RED_LANES);
    common.mask = mask;
    stages_bind(&a->st, &common, j);
    a->at = j;
    for (uint32_t i = 1; i < n; i++)
        a->shared[i] = a->edge[i] ? emit_value(e, &common, i) : NULL;
    for (uint32_t r = 0; r < ROW_ABREAST; r++) {
        struct emit_scope s = emit_scope(e, &a->row[r], RED_LANES);
        s.mask = mask;
        stages_bind(&a->st, &s, j);
        for (uint32_t i = 1; i < n; i++)
            if (a->shared[i])
                emit_set(&s, i, a->shared[i]);
        for (uint32_t i = 0; i < a->nacc; i++) {
            uint32_t at = r * a->nacc + i;
            const char *x = emit_value(e, &s, a->value[i]);
            out[at] = reduce_step(e, &a->set, at, in[at], x, j, mask);
        }
    }
}

// The rows at hand from end to end.
static void
run(struct abreast *a, struct emit_acc *p)
{
    struct emitter *e = a->st.e;
    uint32_t vectors = e->sched->tile[ROW_TILE_VECTORS];
    if (!vectors) {
        struct reduce_range range = {"0", a->st.n, a->st.extent, a->st.blocks, 1};
        reduce_loop(e, &a->set, &range, point, a, p);
        return;
    }
    reduce_identity(e, &a->set, p);
    for (uint32_t v = 0; v < vectors; v++) {
        struct emit_acc next[REDUCE_MAX];
        const char *mask = NULL;
        if (v + 1 == vectors && !(a->st.extent & ROW_NO_TAIL))
            mask = emit_tail_mask(e, RED_LANES,
                                  emit_add(e, a->st.n, emit_text(e, "-%u", v * RED_LANES)));
        point(e, emit_text(e, "%u", v * RED_LANES), mask, p, next, a);
        for (uint32_t i = 0; i < a->set.n; i++)
            p[i] = next[i];
    }
}

static const char *
part_at(struct abreast *a, uint32_t acc, const char *row)
{
    struct emitter *e = a->st.e;
    return emit_ptr(e, a->part[acc], row, emit_memory_type(e, a->set.acc[acc]->dtype, RED_LANES));
}

// The strip that begins at row `first`, of which `left` rows exist: its partial results to memory.
static void
run_strip(struct abreast *a, const char *first, const char *left)
{
    struct emitter *e = a->st.e;
    const char *strip = emit_text(e, "%d", RED_LANES);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", a->whole ? strip : emit_min(e, left, strip),
                   emit_text(e, "%d", ROW_ABREAST));
    emit_loop_body(e, &l);
    for (uint32_t r = 0; r < ROW_ABREAST; r++) {
        const char *row = emit_add(e, emit_add(e, first, l.index), emit_text(e, "%u", r));
        if (!a->whole)
            row = emit_min(e, row, emit_add(e, a->rows, "-1"));
        a->row[r] = emit_scope(e, a->unit, 1);
        emit_bind(&a->row[r], a->last, EMIT_UNIFORM, row);
        emit_hoist(e, &a->row[r], a->value, a->nacc);
    }
    struct emit_acc p[REDUCE_MAX];
    run(a, p);
    for (uint32_t r = 0; r < ROW_ABREAST; r++)
        for (uint32_t i = 0; i < a->nacc; i++)
            emit_store_raw(e, a->set.acc[i]->dtype, RED_LANES,
                           part_at(a, i, emit_add(e, l.index, emit_text(e, "%u", r))),
                           p[r * a->nacc + i].value, NULL, 16);
    emit_loop_close(e, &l, NULL);
}

// ---- the end of 16 rows

// Of x and y, which hold as many rows each in groups of 2 width lanes, the lower or upper halves of
// all groups.
static const char *
halves(struct emitter *e, uint8_t dtype, const char *x, const char *y, uint32_t width, bool upper)
{
    uint8_t lane[RED_LANES];
    for (uint32_t i = 0; i < RED_LANES; i++)
        lane[i] = (uint8_t)(i / width * 2 * width + i % width + (upper ? width : 0));
    return emit_shuffle(e, dtype, RED_LANES, x, y, lane);
}

// <16 x T>: the result of accumulator acc in row first + lane.
static const char *
join_rows(struct abreast *a, uint32_t acc)
{
    struct emitter *e = a->st.e;
    const struct acc *x = a->set.acc[acc];
    struct emit_acc v[RED_LANES];
    for (uint32_t r = 0; r < RED_LANES; r++)
        v[r] = (struct emit_acc){.value = emit_load_raw(e, x->dtype, RED_LANES,
                                                        part_at(a, acc, emit_text(e, "%u", r)),
                                                        NULL, 16)};
    for (uint32_t width = RED_LANES / 2; width; width /= 2)
        for (uint32_t r = 0; r < width; r++) {
            const char *even = v[2 * r].value, *odd = v[2 * r + 1].value;
            struct emit_acc low = {.value = halves(e, x->dtype, even, odd, width, false)};
            struct emit_acc high = {.value = halves(e, x->dtype, even, odd, width, true)};
            v[r] = emit_acc_join(e, x, RED_LANES, low, high);
        }
    return v[0].value;
}

// flat: the number of row first.
static void
finish_strip(struct abreast *a, const char *first, const char *left, const char *flat)
{
    struct emitter *e = a->st.e;
    struct emit_scope s = emit_scope(e, a->unit, RED_LANES);
    s.mask = a->whole ? NULL : emit_tail_mask(e, RED_LANES, left);
    emit_bind(&s, a->last, EMIT_LANES, first);
    for (uint32_t i = 0; i < a->nacc; i++)
        stages_result(&a->st, &s, a->acc[i], join_rows(a, i));
    for (uint32_t stage = 0; stage < e->kernel.nstage; stage++)
        stages_row(&a->st, &s, stage, flat);
}

// ---- units

static void
bind_unit(struct abreast *a, const char *unit, const char **outer, const char **strip)
{
    struct emitter *e = a->st.e;
    *outer = "0";
    *strip = unit;
    if (!a->last)
        return;
    int64_t n = (e->kernel.axis[a->last].extent + RED_LANES - 1) / RED_LANES;
    const char *strips = emit_named(e, "strips", n), *index[MAX_AXES];
    *outer = emit_op(e, "udiv i64 %s, %s", unit, strips);
    *strip = emit_op(e, "sub i64 %s, %s", unit, emit_mul(e, *outer, strips));
    emit_decode(e, *outer, 0, a->last, index);
    for (uint32_t x = 0; x < a->last; x++)
        emit_bind(a->unit, x, EMIT_UNIFORM, index[x]);
}

// Scratch holds what rows share of the outer point `before`; now it is *outer's.
static void
fill_if_new(struct abreast *a, const char *outer, const char *before)
{
    struct emitter *e = a->st.e;
    const char *end = emit_if(e, emit_op(e, "icmp ne i64 %s, %s", outer, before));
    fill(a);
    emit_endif(e, end);
}

bool
cpu_row_abreast(struct emitter *e)
{
    struct abreast a;
    begin(&a, e);
    emit_function(e, "kernel");
    stages_function(&a.st);
    a.rows = emit_extent(e, a.last);
    for (uint32_t i = 0; i < a.nacc; i++)
        a.part[i] = emit_entry_op(e, "alloca %s, i64 %d, align 64",
                                  emit_memory_type(e, a.set.acc[i]->dtype, RED_LANES), RED_LANES);
    struct emit_scope once = emit_scope(e, NULL, 1);
    a.unit = &once;
    bool keeps = keeps_any(&a);
    if (keeps && !a.last)
        fill(&a);
    struct emit_loop l;
    const char *before = NULL, *outer, *strip;
    emit_loop_open(e, &l, "%begin", "%end", "1");
    if (keeps && a.last)
        before = emit_carry(e, &l, "i64", "-1");
    emit_loop_body(e, &l);
    struct emit_scope unit = emit_scope(e, NULL, 1);
    a.unit = &unit;
    bind_unit(&a, l.index, &outer, &strip);
    if (before)
        fill_if_new(&a, outer, before);
    emit_hoist(e, &unit, a.value, a.nacc);
    const char *first = emit_mul(e, strip, emit_text(e, "%d", RED_LANES));
    const char *left = emit_op(e, "sub i64 %s, %s", a.rows, first);
    run_strip(&a, first, left);
    const char *rows_before = emit_mul(e, outer, a.rows);
    finish_strip(&a, first, left, emit_add(e, rows_before, first));
    emit_loop_close(e, &l, &outer);
    emit_function_end(e);
    if (e->sched->finish_units) {
        emit_function(e, "kernel_finish");
        stages_function(&a.st);
        stages_finish(&a.st);
        emit_function_end(e);
    }
    xfree(a.edge);
    return true;
}
