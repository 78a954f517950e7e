// scan.c: the scan class on CPUs: accumulators along R, and what is pointwise before and after.
//
// Where memory runs along the last P axis see scan_column.c; here R's last axis does.
//
// A task unit is a row. Its vectors of 16 elements are taken in order, each in a scope of its own:
// the operands of the scans, then for each scan the prefix of the vector in four log-steps (a
// shuffle, the op, and a blend of the lanes that take part), what has been carried so far joined
// from the left, then the stores. The order is ir/kernel.h's: the loop over vectors stands in one
// over blocks and that in one over spans, each carrying what lies before; rows that have only one
// block, or one span, do without. Where the order makes no difference one value goes through all of
// the loops.
//
// Few long rows are divided among threads: "kernel" finds out what each span comes to, all but the
// last of a row, and leaves it in args->shared; "kernel_finish" joins what lies before its spans,
// as the loop over spans would, and goes on from there. It begins with the last spans, which the
// caches still hold.
//
// Only the join of a vector's total with what was carried is a chain from vector to vector: one
// instruction long for a sum, so the steps of several vectors overlap.
#include "codegen/cpu/scan.h"

#include "codegen/cpu/row.h"
#include "ir/base/check.h"

#include <string.h>

void
scans_find(struct scans *p, struct emitter *e, uint32_t lanes)
{
    *p = (struct scans){.e = e, .lanes = lanes};
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        const struct acc *a = &e->kernel.acc.at[i];
        CHECK(i < SCAN_MAX, "a kernel of more than %d scans", SCAN_MAX);
        p->acc[i] = a;
        p->free[i] = op_any_order(a->op, a->dtype);
        p->none[i] = emit_constant(e, a->dtype, op_identity_bits(a->op, a->dtype), lanes);
        p->type[i] = emit_type(e, a->dtype, lanes);
    }
    p->n = e->kernel.acc.n;
}

const char *
scans_join(const struct scans *p, uint32_t i, const char *older, const char *newer)
{
    const struct acc *a = p->acc[i];
    return emit_row(p->e, op_table[a->op].combine, a->dtype, p->lanes, older, newer, NULL);
}

void
scans_give(const struct scans *p, struct emit_scope *s, uint32_t i, const char *v)
{
    const struct kernel *k = &p->e->kernel;
    for (uint32_t r = 1; r < k->inst.n; r++)
        if (k->inst.at[r].op == OP_result && k->inst.at[r].aux == i)
            emit_set(s, r, v);
}

struct scan {
    struct scans all;
    struct stages st;
    struct emit_scope *row;
    bool totals;                 // nothing is stored, only what all elements come to is wanted
    int64_t parts;               // spans of a row
    const char *whole;           // end of the last whole vector of a row
    const char *spans[SCAN_MAX]; // S of the span at hand; NULL: it is the row's only one
    const char *base[SCAN_MAX];  // S + B of the block at hand; NULL: it is the row's only one
};

typedef const char *carries[SCAN_MAX]; // a vector each, all lanes the same

static const char *
shuffled(struct emitter *e, uint8_t dtype, const char *v, const uint8_t *lane)
{
    return emit_shuffle(e, dtype, SCAN_LANES, v, "poison", lane);
}

// Each lane with the lanes before it: after step k those of its 2^(k + 1) aligned lanes.
static const char *
prefix(struct scan *p, uint32_t i, const char *v)
{
    struct emitter *e = p->st.e;
    uint8_t dtype = p->all.acc[i]->dtype;
    const char *type = p->all.type[i];
    for (uint32_t k = 0; k < SCAN_STEPS; k++) {
        uint8_t lane[SCAN_LANES];
        struct str taking = {0};
        for (uint32_t j = 0; j < SCAN_LANES; j++) {
            bool takes = j >> k & 1;
            lane[j] = (uint8_t)(takes ? (j >> k << k) - 1 : j);
            str_printf(&taking, "%si1 %u", j ? ", " : "", takes);
        }
        const char *sum = scans_join(&p->all, i, shuffled(e, dtype, v, lane), v);
        v = emit_op(e, "select <%u x i1> <%s>, %s %s, %s %s", SCAN_LANES, str_text(&taking), type,
                    sum, type, v);
        str_free(&taking);
    }
    return v;
}
_Static_assert(1 << SCAN_STEPS == SCAN_LANES, "as many steps as double one lane to all");

// What all lanes come to, in the last one: the same joins.
static const char *
total(struct scan *p, uint32_t i, const char *v)
{
    for (uint32_t k = 0; k < SCAN_STEPS; k++) {
        uint8_t lane[SCAN_LANES];
        for (uint32_t j = 0; j < SCAN_LANES; j++)
            lane[j] = (uint8_t)(j >> k ? j - (1u << k) : j);
        v = scans_join(&p->all, i, shuffled(p->st.e, p->all.acc[i]->dtype, v, lane), v);
    }
    return v;
}

// Asks for the lines that the same loads will read some vectors on: hardware follows a row within a
// page only.
static void
ask_ahead(struct scan *p, struct emit_scope *s)
{
    struct emitter *e = p->st.e;
    const struct kernel *k = &e->kernel;
    for (uint32_t i = 1; i < k->inst.n && e->sched->prefetch; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op != OP_load || in->a || k->access.at[in->aux].stride[k->naxis - 1] != 1)
            continue;
        for (uint32_t at = 0; at < SCAN_LANES * dtype_size(in->dtype); at += 64) {
            const char *further = emit_text(e, "%u", e->sched->prefetch * 64 + at);
            emit_prefetch(e, emit_ptr(e, emit_address(e, s, in->aux), further, "i8"), 2);
        }
    }
}

// The 16 elements from j on. before: V of each scan, or all that lies before where order is free;
// after: the same for the next vector.
static void
scan_vector(struct scan *p, const char *j, const char *mask, const char *const *before,
            const char **after)
{
    static const uint8_t last[SCAN_LANES] = {15, 15, 15, 15, 15, 15, 15, 15,
                                             15, 15, 15, 15, 15, 15, 15, 15};
    struct emitter *e = p->st.e;
    struct emit_scope s = emit_scope(e, p->row, SCAN_LANES);
    s.mask = mask;
    p->st.at = j;
    stages_bind(&p->st, &s, j);
    if (!mask)
        ask_ahead(p, &s);
    for (uint32_t i = 0; i < p->all.n; i++) {
        const char *own = emit_value(e, &s, p->all.acc[i]->value);
        own = p->totals ? total(p, i, own) : prefix(p, i, own);
        after[i] = scans_join(&p->all, i, before[i], shuffled(e, p->all.acc[i]->dtype, own, last));
        if (p->totals)
            continue;
        const char *all = p->base[i] ? scans_join(&p->all, i, p->base[i], before[i]) : before[i];
        scans_give(&p->all, &s, i, scans_join(&p->all, i, all, own));
    }
    if (!p->totals)
        stages_store(&p->st, &s, mask || !e->sched->streaming_store ? 0 : EMIT_NONTEMPORAL);
}
_Static_assert(SCAN_LANES == 16 && (int)SCAN_LANES == (int)RED_LANES, "as stages_bind has them");

static void
carry(struct scan *p, struct emit_loop *l, const char *const *init, const char **in)
{
    for (uint32_t i = 0; i < p->all.n; i++)
        in[i] = emit_carry(p->st.e, l, p->all.type[i], init[i]);
}

// Vectors at from, from + 16 … before to; masked: at most one, of which lanes are missing.
static void
vectors(struct scan *p, const char *from, const char *to, bool masked, carries v)
{
    struct emitter *e = p->st.e;
    struct emit_loop l;
    carries in, out;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", SCAN_LANES));
    carry(p, &l, v, in);
    emit_loop_body(e, &l);
    const char *mask = NULL;
    if (masked)
        mask = emit_tail_mask(e, SCAN_LANES, emit_op(e, "sub i64 %s, %s", p->st.n, l.index));
    scan_vector(p, l.index, mask, in, out);
    emit_loop_close(e, &l, out);
    for (uint32_t i = 0; i < p->all.n; i++)
        v[i] = in[i];
}

// Elements from … to - 1 of a row. level 1: of one block, 2: of one span, 3: any number. v: what
// lies before the first of them in their block, span, row; at the end the same of what follows.
static void
run(struct scan *p, uint32_t level, const char *from, const char *to, const char **v)
{
    struct emitter *e = p->st.e;
    if (level == 1) {
        vectors(p, from, emit_min(e, to, p->whole), false, v);
        if (!(p->st.extent & ROW_NO_TAIL))
            vectors(p, p->whole, to, true, v);
        return;
    }
    struct emit_loop l;
    carries in, inner, out;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", scan_step(level)));
    carry(p, &l, v, in);
    emit_loop_body(e, &l);
    for (uint32_t i = 0; i < p->all.n; i++) {
        inner[i] = p->all.free[i] ? in[i] : p->all.none[i];
        if (p->all.free[i])
            continue;
        if (level == 3)
            p->spans[i] = in[i];
        else
            p->base[i] = p->spans[i] ? scans_join(&p->all, i, p->spans[i], in[i]) : in[i];
    }
    const char *end = emit_add(e, l.index, emit_text(e, "%u", scan_step(level)));
    run(p, level - 1, l.index, emit_min(e, end, to), inner);
    for (uint32_t i = 0; i < p->all.n; i++)
        out[i] = p->all.free[i] ? inner[i] : scans_join(&p->all, i, in[i], inner[i]);
    emit_loop_close(e, &l, out);
    memcpy(v, in, sizeof in);
}

static void
row_open(struct scan *p, struct emit_scope *row, const char *index)
{
    struct emitter *e = p->st.e;
    p->row = row;
    row_bind(&p->st, row, index);
    emit_hoist(e, row, NULL, UINT32_MAX);
}

// Elements from … to - 1 of the row, and their stores; v: what lies before them.
static void
scan_elements(struct scan *p, uint32_t levels, const char *from, const char *to, const char **v)
{
    struct emitter *e = p->st.e;
    p->st.aligned = e->sched->streaming_store ? stages_aligned(&p->st, p->row, 0, "0") : NULL;
    run(p, levels, from, to, v);
}

static void
function_open(struct scan *p, const char *name)
{
    emit_function(p->st.e, name);
    stages_function(&p->st);
    p->whole = emit_op(p->st.e, "and i64 %s, %d", p->st.n, -SCAN_LANES);
}

static void
function_close(struct scan *p)
{
    if (p->st.e->sched->streaming_store)
        emit_line(p->st.e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(p->st.e);
}

// Rows one by one.
static void
scan_rows(struct scan *p)
{
    struct emitter *e = p->st.e;
    struct emit_loop l;
    carries v;
    function_open(p, "kernel");
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    struct emit_scope row = emit_scope(e, NULL, 1);
    row_open(p, &row, l.index);
    memcpy(v, p->all.none, sizeof v);
    scan_elements(p, e->sched->tile[SCAN_TILE_LEVELS], "0", p->st.n, v);
    emit_loop_close(e, &l, NULL);
    function_close(p);
}

// ---- rows divided among threads

// Where what a span comes to is kept: of scan i, span `part` of row `row` (both i64).
static const char *
part_at(struct scan *p, uint32_t i, const char *row, const char *part)
{
    struct emitter *e = p->st.e;
    int64_t at = 0;
    for (uint32_t x = 0; x < i; x++)
        at += kernel_points(&e->kernel, AXIS_P) * p->parts * SCAN_LANES *
              dtype_size(p->all.acc[x]->dtype);
    const char *base = emit_ptr(e, emit_shared(e), emit_num(e, at), "i8");
    const char *n = emit_add(e, emit_mul(e, row, emit_named(e, "parts", p->parts)), part);
    return emit_ptr(e, base, n, emit_memory_type(e, p->all.acc[i]->dtype, SCAN_LANES));
}

// The row of a unit, not bound yet, its number, and the unit's elements from … to - 1.
static struct emit_scope
unit_open(struct scan *p, const char *unit, const char **index, const char **from, const char **to)
{
    struct emitter *e = p->st.e;
    int64_t each = ceil_div(p->st.points, e->sched->chunk);
    const char *units = emit_named(e, "row.units", each);
    const char *chunk = emit_named(e, "chunk", e->sched->chunk);
    struct emit_scope row = emit_scope(e, NULL, 1);
    *index = emit_op(e, "udiv i64 %s, %s", unit, units);
    *from = emit_mul(e, emit_op(e, "sub i64 %s, %s", unit, emit_mul(e, *index, units)), chunk);
    *to = emit_min(e, emit_add(e, *from, chunk), p->st.n);
    return row;
}

static const char *
span_of(struct emitter *e, const char *element)
{
    return emit_op(e, "lshr i64 %s, 16", element);
}
_Static_assert(SCAN_SPAN == 1 << 16, "a shift divides by it");

static void
sum_spans(struct scan *p)
{
    struct emitter *e = p->st.e;
    struct emit_loop l, spans;
    const char *index, *from, *to;
    carries v;
    function_open(p, "kernel");
    const char *end = emit_named(e, "whole.spans", (p->parts - 1) * SCAN_SPAN);
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    struct emit_scope row = unit_open(p, l.index, &index, &from, &to);
    row_open(p, &row, index);
    emit_loop_open(e, &spans, from, emit_min(e, to, end), emit_text(e, "%d", SCAN_SPAN));
    emit_loop_body(e, &spans);
    memcpy(v, p->all.none, sizeof v);
    p->totals = true;
    run(p, 2, spans.index, emit_add(e, spans.index, emit_text(e, "%d", SCAN_SPAN)), v);
    p->totals = false;
    for (uint32_t i = 0; i < p->all.n; i++)
        emit_store_raw(e, p->all.acc[i]->dtype, SCAN_LANES,
                       part_at(p, i, index, span_of(e, spans.index)), v[i], NULL, 16);
    emit_loop_close(e, &spans, NULL);
    emit_loop_close(e, &l, NULL);
    emit_function_end(e);
}

// What the spans of row `index` before element `from` come to.
static void
join_spans(struct scan *p, const char *index, const char *from, carries v)
{
    struct emitter *e = p->st.e;
    struct emit_loop l;
    carries in, out;
    emit_loop_open(e, &l, "0", span_of(e, from), "1");
    carry(p, &l, p->all.none, in);
    emit_loop_body(e, &l);
    for (uint32_t i = 0; i < p->all.n; i++)
        out[i] = scans_join(&p->all, i, in[i],
                            emit_load_raw(e, p->all.acc[i]->dtype, SCAN_LANES,
                                          part_at(p, i, index, l.index), NULL, 16));
    emit_loop_close(e, &l, out);
    memcpy(v, in, sizeof in);
}

static void
scan_spans(struct scan *p)
{
    struct emitter *e = p->st.e;
    struct emit_loop l;
    const char *index, *from, *to;
    carries v;
    function_open(p, "kernel_finish");
    const char *last = emit_named(e, "last.unit", e->sched->finish_units - 1);
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    const char *unit = emit_op(e, "sub i64 %s, %s", last, l.index);
    struct emit_scope row = unit_open(p, unit, &index, &from, &to);
    row_open(p, &row, index);
    join_spans(p, index, from, v);
    scan_elements(p, 3, from, to, v);
    emit_loop_close(e, &l, NULL);
    function_close(p);
}

bool
cpu_scan(struct emitter *e)
{
    struct scan p = {0};
    if (e->sched->tile[SCAN_TILE_STRIP]) {
        scan_columns(e);
        return true;
    }
    stages_begin(&p.st, e);
    scans_find(&p.all, e, SCAN_LANES);
    if (!e->sched->finish_units) {
        scan_rows(&p);
        return true;
    }
    p.parts = scan_span_count(p.st.points);
    sum_spans(&p);
    scan_spans(&p);
    return true;
}
