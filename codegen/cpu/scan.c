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
    for (uint32_t i = 0; i < p->all.n; i++) {
        const char *own = prefix(p, i, emit_value(e, &s, p->all.acc[i]->value));
        const char *all = p->base[i] ? scans_join(&p->all, i, p->base[i], before[i]) : before[i];
        scans_give(&p->all, &s, i, scans_join(&p->all, i, all, own));
        after[i] = scans_join(&p->all, i, before[i], shuffled(e, p->all.acc[i]->dtype, own, last));
    }
    stages_store(&p->st, &s, mask || !e->sched->streaming_store ? 0 : EMIT_NONTEMPORAL);
}
_Static_assert(SCAN_LANES == 16 && (int)SCAN_LANES == (int)RED_LANES, "stages_bind binds a vector's lanes");

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
    static const uint32_t length[] = {0, SCAN_LANES, SCAN_BLOCK, SCAN_SPAN};
    struct emitter *e = p->st.e;
    if (level == 1) {
        vectors(p, from, emit_min(e, to, p->whole), false, v);
        if (!(p->st.extent & ROW_NO_TAIL))
            vectors(p, p->whole, to, true, v);
        return;
    }
    struct emit_loop l;
    carries in, inner, out;
    emit_loop_open(e, &l, from, to, emit_text(e, "%u", length[level]));
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
    const char *end = emit_add(e, l.index, emit_text(e, "%u", length[level]));
    run(p, level - 1, l.index, emit_min(e, end, to), inner);
    for (uint32_t i = 0; i < p->all.n; i++)
        out[i] = p->all.free[i] ? inner[i] : scans_join(&p->all, i, in[i], inner[i]);
    emit_loop_close(e, &l, out);
    memcpy(v, in, sizeof in);
}

static void
scan_row(struct scan *p, const char *index)
{
    struct emitter *e = p->st.e;
    struct emit_scope row = emit_scope(e, NULL, 1);
    carries v;
    p->row = &row;
    row_bind(&p->st, &row, index);
    emit_hoist(e, &row, NULL, UINT32_MAX);
    p->st.aligned = e->sched->streaming_store ? stages_aligned(&p->st, &row, 0, "0") : NULL;
    memcpy(v, p->all.none, sizeof v);
    run(p, e->sched->tile[SCAN_TILE_LEVELS], "0", p->st.n, v);
}

bool
cpu_scan(struct emitter *e)
{
    struct scan p = {0};
    struct emit_loop l;
    if (e->sched->tile[SCAN_TILE_STRIP]) {
        scan_columns(e);
        return true;
    }
    stages_begin(&p.st, e);
    scans_find(&p.all, e, SCAN_LANES);
    emit_function(e, "kernel");
    stages_function(&p.st);
    p.whole = emit_op(e, "and i64 %s, %d", p.st.n, -SCAN_LANES);
    emit_loop_open(e, &l, "%begin", "%end", "1");
    emit_loop_body(e, &l);
    scan_row(&p, l.index);
    emit_loop_close(e, &l, NULL);
    if (e->sched->streaming_store)
        emit_line(e, "call void @llvm.x86.sse.sfence()");
    emit_function_end(e);
    return true;
}
