// contract.c: the contraction class: C[batch, m, n] = sum over k of A[batch, m, k] B[batch, k, n].
//
// A unit is a tile of C, mc x nc of one batch. A unit goes through k in panels of kc; per panel:
//
//   A's rows of the unit are packed into scratch, micro-panels of [kc][width] (or read where they
//   lie: their place is the second-level cache);
//   for each group of vecs * lanes columns: B is packed, [kc][vecs * lanes] (or read where it lies:
//   its place is the first-level cache);
//     for each group of `rows` rows: micro() adds rows x vecs vectors to their accumulators in
//     scratch, and after the last panel the epilogue runs over them, row by row, vectors along n.
//
// An element's chain of fused multiply-adds thus runs over k in order, whatever the tile, and its
// accumulator passes through memory unrounded between panels. Nothing is split along k.
//
// When k fits one panel, one register tile of accumulators is enough (it stays in the first-level
// cache), and A stays packed from a unit to the next while these have the same rows: units are
// numbered with n fastest.
//
// schedule.transpose swaps the roles of m and n (and a and b): then vectors run along m.
#include "codegen/cpu/contract.h"

#include "ir/base/check.h"
#include "passes/schedule_contract.h"

enum { MAX_TILE_VECS = 16 };

struct contract {
    struct emitter *e;
    struct contract_tile tile;
    uint8_t dtype;
    uint32_t m, n, k;     // axes
    uint32_t a, b;        // instructions
    uint32_t nresult;     // OP_result instructions, and the values of the stores
    uint32_t *result, *value;
    const char *M, *N, *K, *mc, *nc, *kc; // operands
    struct contract_layout at;            // of scratch
    const char *c_row, *c_column;         // at's, as operands
    const struct access *sums;            // where sums lie between panels; NULL: in scratch
    uint32_t beside; // a load of the epilogue's, whose rows lie as those of sums do; 0: none
};

// A unit: its batch and bounds, as operands.
struct unit {
    struct emit_scope *batch;
    const char *m0, *m1, *n0, *n1;
    const char *k0, *steps; // the panel
    const char *more, *last; // i64 not the first panel; i1 the last one
};

// ---- set-up

static void
find_results(struct contract *c)
{
    struct emitter *e = c->e;
    c->result = arena_alloc(&e->mem, e->kernel.inst.n * sizeof *c->result);
    c->value = arena_alloc(&e->mem, (e->kernel.store.n + 1) * sizeof *c->value);
    for (uint32_t i = 1; i < e->kernel.inst.n; i++)
        if (e->kernel.inst.at[i].op == OP_result)
            c->result[c->nresult++] = i;
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        c->value[i] = e->kernel.store.at[i].value;
}

// How the loop in assembly reads A: along k where it lies so, else as rows that are neighbours.
static bool
runs_along_k(const struct contract *c)
{
    const struct kernel *k = &c->e->kernel;
    const int64_t *stride = k->access.at[k->inst.at[c->a].aux].stride;
    return stride[c->k] == 1 && c->e->sched->rows > 1;
}

// Whether the sums are all that is stored.
static bool
stores_sums(const struct contract *c)
{
    return c->sums && c->e->kernel.store.n == 1 &&
           c->e->kernel.inst.at[c->value[0]].op == OP_result;
}

// Whether the epilogue loads inst along the columns, other elements for other rows.
static bool
is_read_by_row(const struct contract *c, uint32_t inst)
{
    const struct kernel *k = &c->e->kernel;
    const struct inst *in = &k->inst.at[inst];
    if (in->op != OP_load || in->a || in->b || c->e->depends[inst] >> c->k & 1)
        return false;
    const int64_t *stride = k->access.at[in->aux].stride;
    return stride[c->n] == 1 && stride[c->m] != 0;
}

static uint32_t
load_beside_sums(const struct contract *c)
{
    const struct kernel *k = &c->e->kernel;
    for (uint32_t i = 1; c->sums && i < k->inst.n; i++) {
        if (!is_read_by_row(c, i))
            continue;
        const struct access *x = &k->access.at[k->inst.at[i].aux];
        if (dtype_size(x->dtype) == dtype_size(c->sums->dtype) &&
            x->stride[c->m] == c->sums->stride[c->m])
            return i;
    }
    return 0;
}

static void
set_by_hand(struct contract *c)
{
    const struct schedule *s = c->e->sched;
    uint32_t store = contract_sum_store(&c->e->kernel, c->m, c->n);
    if (s->pack & SUM_IN_OUTPUT && store != UINT32_MAX)
        c->sums = &c->e->kernel.access.at[c->e->kernel.store.at[store].access];
    c->tile.by_hand = true;
    c->tile.copy_b = !(s->pack & PACK_B) && s->pack & COPY_B;
    c->tile.a_by_row = !(s->pack & PACK_A) && runs_along_k(c);
    c->tile.c_in_output = c->sums != NULL;
    c->tile.c_in_place = stores_sums(c);
    c->beside = load_beside_sums(c);
    c->tile.reads_beside = c->beside != 0;
    c->tile.edge_rows = s->edge[0];
    c->tile.edge_vecs = s->edge[1];
}

static void
set_tile(struct contract *c)
{
    const struct schedule *s = c->e->sched;
    uint32_t lanes = s->vec, size = dtype_size(c->dtype);
    const char *type = dtype_table[c->dtype].llvm;
    bool is_float = dtype_is_float(c->dtype);
    c->tile = (struct contract_tile){
        .type = type,
        .vec = emit_text(c->e, "<%u x %s>", lanes, type),
        .mangle = emit_text(c->e, "v%u%c%u", lanes, is_float ? 'f' : 'i', size * 8),
        .size = size, .lanes = lanes, .rows = s->rows, .vecs = s->unroll,
        .width = c->at.width, .is_float = is_float,
        .pack_a = s->pack & PACK_A, .pack_b = (s->pack & PACK_B) != 0,
    };
    CHECK(c->tile.vecs <= MAX_TILE_VECS, "%u vectors in a tile", c->tile.vecs);
}

static void
contract_set_up(struct contract *c, struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    bool swap = e->sched->transpose != 0;
    c->e = e;
    c->dtype = k->acc.at[k->contraction.acc].dtype;
    c->k = k->naxis - 1u;
    c->m = k->naxis - (swap ? 2u : 3u);
    c->n = k->naxis - (swap ? 3u : 2u);
    c->a = swap ? k->contraction.b : k->contraction.a;
    c->b = swap ? k->contraction.a : k->contraction.b;
    c->M = emit_num(e, k->axis[c->m].extent);
    c->N = emit_num(e, k->axis[c->n].extent);
    c->K = emit_num(e, k->axis[c->k].extent);
    c->mc = emit_num(e, e->sched->tile[0]);
    c->nc = emit_num(e, e->sched->tile[1]);
    c->kc = emit_num(e, e->sched->tile[2]);
    c->at = contract_layout(e->sched, dtype_size(c->dtype), k->axis[c->k].extent);
    c->c_row = emit_num(e, c->at.c_row);
    c->c_column = emit_num(e, c->at.c_column);
    set_tile(c);
    find_results(c);
    if (e->sched->pack & BY_HAND)
        set_by_hand(c);
}

// Offsets into scratch depend on the tile of C, so they are numbers, not text.
static const char *
scratch(struct contract *c, int64_t byte)
{
    return emit_ptr(c->e, "%scratch", emit_num(c->e, byte), "i8");
}

// ---- factors

// The packed micro-panel of the rows from `row` on.
static const char *
packed_a(struct contract *c, struct unit *u, const char *row)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    const char *down = emit_op(e, "sub i64 %s, %s", row, u->m0);
    if (t->width != t->rows)
        down = emit_mul(e, emit_op(e, "udiv i64 %s, %u", down, t->rows),
                        emit_text(e, "%u", t->width));
    return emit_ptr(e, scratch(c, c->at.a_at), emit_mul(e, down, c->kc), t->type);
}

// The address of a direct factor's element in the panel's first step.
static const char *
factor_address(struct contract *c, struct unit *u, uint32_t inst, uint32_t axis, const char *at)
{
    struct emit_scope s = emit_scope(c->e, u->batch, 1);
    emit_bind(&s, axis, EMIT_UNIFORM, at);
    emit_bind(&s, c->k, EMIT_UNIFORM, u->k0);
    return emit_address(c->e, &s, c->e->kernel.inst.at[inst].aux);
}

static const char *
factor_stride(struct contract *c, uint32_t inst, uint32_t axis)
{
    const struct kernel *k = &c->e->kernel;
    return emit_stride(c->e, k->access.at[k->inst.at[inst].aux].stride[axis]);
}

// A number of elements in bytes.
static const char *
bytes(struct contract *c, const char *elements)
{
    return emit_mul(c->e, elements, emit_text(c->e, "%u", c->tile.size));
}

// All of the unit's rows from the panel's step `from` on: micro-panels [kc][width], one after the
// other.
static void
pack_a_steps(struct contract *c, struct unit *u, const char *from, const char *steps)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    struct emit_loop l;
    emit_loop_open(e, &l, u->m0, u->m1, emit_text(e, "%u", t->rows));
    emit_loop_body(e, &l);
    const char *end = emit_add(e, l.index, emit_text(e, "%u", t->rows));
    end = emit_min(e, end, u->m1);
    const char *dst = packed_a(c, u, l.index), *k = u->k0;
    if (from) {
        dst = emit_ptr(e, dst, emit_mul(e, from, emit_text(e, "%u", t->width)), t->type);
        k = emit_add(e, k, from);
    }
    struct contract_pack p = {
        .inst = c->a, .free_axis = c->m, .k_axis = c->k, .width = t->width, .used = t->rows,
        .first = l.index, .end = end, .k = k, .steps = steps, .dst = dst,
    };
    contract_pack(e, u->batch, t, &p);
    emit_loop_close(e, &l, NULL);
}

// Whether several micro-panels share each line of A: steps of k lie apart, rows side by side. Only
// where none writes beyond its steps can they take turns.
static bool
shares_lines(const struct contract *c)
{
    const struct kernel *k = &c->e->kernel;
    const struct contract_tile *t = &c->tile;
    const struct inst *in = &k->inst.at[c->a];
    bool exact = t->width % t->lanes == 0 || t->width * 2 == t->lanes;
    if (!t->by_hand || t->lanes * t->size != 32 || !exact)
        return false;
    return in->op == OP_load && k->access.at[in->aux].stride[c->m] == 1;
}

static void
pack_a(struct contract *c, struct unit *u)
{
    enum { TURN = 16 }; // steps whose lines stay in the caches, however far apart they lie
    struct emitter *e = c->e;
    if (!shares_lines(c)) {
        pack_a_steps(c, u, NULL, u->steps);
        return;
    }
    struct emit_loop l;
    emit_loop_open(e, &l, "0", u->steps, emit_text(e, "%u", TURN));
    emit_loop_body(e, &l);
    const char *left = emit_op(e, "sub i64 %s, %s", u->steps, l.index);
    pack_a_steps(c, u, l.index, emit_min(e, left, emit_text(e, "%u", TURN)));
    emit_loop_close(e, &l, NULL);
}

// One micro-panel: [kc][vecs * lanes].
static const char *
pack_b(struct contract *c, struct unit *u, const char *column)
{
    uint32_t columns = c->tile.vecs * c->tile.lanes;
    const char *end = emit_add(c->e, column, emit_text(c->e, "%u", columns));
    struct contract_pack p = {
        .inst = c->b, .free_axis = c->n, .k_axis = c->k, .width = columns, .used = columns,
        .first = column, .end = emit_min(c->e, end, u->n1), .k = u->k0, .steps = u->steps,
        .dst = scratch(c, c->at.b_at),
    };
    contract_pack(c->e, u->batch, &c->tile, &p);
    return p.dst;
}

// ---- the epilogue over one register tile

// A register tile: its place in C and what is left of the unit from there, all operands.
struct spot {
    const char *row, *column, *rows, *columns;
    const char *acc; // its accumulators in scratch
};

// Vectors of a row that the epilogue takes in one turn: all, or one where it is long, since its
// text appears once for each.
static uint32_t
vectors_at_once(const struct contract *c)
{
    enum { LONG = 12 };
    const struct kernel *k = &c->e->kernel;
    uint32_t n = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        n += k->inst.at[i].stage > 0;
    return n > LONG ? 1 : c->tile.vecs;
}

// The scope of n vectors of columns: `first` is the first column of them, an operand. whole: all
// columns exist.
static void
open_columns(struct contract *c, struct unit *u, struct emit_scope *at, uint32_t n,
             const char *first, bool whole)
{
    struct emitter *e = c->e;
    for (uint32_t v = 0; v < n; v++) {
        at[v] = emit_scope(e, u->batch, c->tile.lanes);
        const char *column = emit_add(e, first, emit_text(e, "%u", v * c->tile.lanes));
        emit_bind(&at[v], c->n, EMIT_LANES, column);
        if (!whole) {
            const char *left = emit_op(e, "sub i64 %s, %s", u->n1, column);
            left = emit_op(e, "call i64 @llvm.smax.i64(i64 %s, i64 0)", left);
            at[v].mask = emit_tail_mask(e, c->tile.lanes, left);
        }
        emit_hoist(e, &at[v], c->value, e->kernel.store.n);
    }
}

// Asks for what the tile of the next rows reads at this place: while that tile is multiplied it has
// time to come, and one request a vector does not fill any queue.
static void
ask_for_next(struct contract *c, struct emit_scope *column, const char *row)
{
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    struct emit_scope s = emit_scope(e, column, c->tile.lanes);
    emit_bind(&s, c->m, EMIT_UNIFORM, emit_add(e, row, emit_text(e, "%u", c->tile.rows)));
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (is_read_by_row(c, i) && i != c->beside)
            emit_prefetch(e, emit_address(e, &s, k->inst.at[i].aux), 1);
}

// One vector of one row; sum: where its accumulators lie.
static void
finish_vector(struct contract *c, struct emit_scope *column, const char *row, const char *sum)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    struct emit_scope s = emit_scope(e, column, t->lanes);
    s.mask = column->mask;
    emit_bind(&s, c->m, EMIT_UNIFORM, row);
    const char *v = emit_load_raw(e, c->dtype, t->lanes, sum, NULL, t->lanes * t->size);
    for (uint32_t i = 0; i < c->nresult; i++)
        emit_set(&s, c->result[i], v);
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        emit_store(e, &s, &e->kernel.store.at[i], 0);
    ask_for_next(c, column, row);
}

// All rows of n vectors of columns, from the tile's vector number `vector` on, an operand.
static void
finish_columns(struct contract *c, struct unit *u, const struct spot *s, uint32_t n,
               const char *vector, bool whole)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    struct emit_scope at[MAX_TILE_VECS];
    struct emit_loop rows;
    const char *end = emit_add(e, s->row, emit_text(e, "%u", t->rows));
    end = emit_min(e, end, u->m1);
    const char *first = emit_mul(e, vector, emit_text(e, "%u", t->lanes));
    open_columns(c, u, at, n, emit_add(e, s->column, first), whole);
    emit_loop_open(e, &rows, s->row, end, "1");
    emit_loop_body(e, &rows);
    const char *down = emit_op(e, "sub i64 %s, %s", rows.index, s->row);
    const char *in = emit_mul(e, down, emit_text(e, "%u", t->vecs));
    in = emit_add(e, in, vector);
    for (uint32_t v = 0; v < n; v++)
        finish_vector(c, &at[v], rows.index,
                      emit_ptr(e, s->acc, emit_add(e, in, emit_text(e, "%u", v)), t->vec));
    emit_loop_close(e, &rows, NULL);
}

static void
epilogue(struct contract *c, struct unit *u, const struct spot *s, bool whole)
{
    struct emitter *e = c->e;
    uint32_t n = vectors_at_once(c), all = c->tile.vecs;
    if (n == all) {
        finish_columns(c, u, s, n, "0", whole);
        return;
    }
    struct emit_loop vectors;
    emit_loop_open(e, &vectors, "0", emit_text(e, "%u", all), emit_text(e, "%u", n));
    emit_loop_body(e, &vectors);
    finish_columns(c, u, s, n, vectors.index, whole);
    emit_loop_close(e, &vectors, NULL);
}

// Tiles that are whole, nearly all, have no masks. Where masks cost nothing, in registers of their
// own, all tiles have them: the text of the epilogue is there once.
static void
finish_tile(struct contract *c, struct unit *u, const struct spot *s)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    if (t->by_hand && t->edge_vecs && e->target->vec_bytes >= 64) {
        epilogue(c, u, s, false);
        return;
    }
    if (!t->by_hand || !t->edge_vecs) {
        epilogue(c, u, s, t->by_hand);
        return;
    }
    const char *yes = emit_label(e, "whole"), *no = emit_label(e, "cut");
    const char *end = emit_label(e, "done");
    emit_branch(e, emit_op(e, "icmp sge i64 %s, %u", s->columns, t->vecs * t->lanes), yes, no);
    emit_place(e, yes);
    epilogue(c, u, s, true);
    emit_jump(e, end);
    emit_place(e, no);
    epilogue(c, u, s, false);
    emit_endif(e, end);
}

// ---- loops

static struct spot
spot_at(struct contract *c, struct unit *u, const char *row, const char *column)
{
    struct emitter *e = c->e;
    struct spot s = {.row = row, .column = column};
    s.rows = emit_op(e, "sub i64 %s, %s", u->m1, row);
    s.columns = emit_op(e, "sub i64 %s, %s", u->n1, column);
    const char *down = emit_op(e, "sub i64 %s, %s", row, u->m0);
    const char *across = emit_op(e, "sub i64 %s, %s", column, u->n0);
    const char *at = emit_add(e, emit_mul(e, down, c->c_row), emit_mul(e, across, c->c_column));
    s.acc = emit_ptr(e, scratch(c, c->at.c_at), at, c->tile.type);
    return s;
}

static void
tile_by_llvm(struct contract *c, struct unit *u, const struct spot *s, const char *b)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    const char *am = "0", *ak = "0", *bk = "0", *a;
    if (t->pack_a) {
        a = packed_a(c, u, s->row);
    } else {
        a = factor_address(c, u, c->a, c->m, s->row);
        am = factor_stride(c, c->a, c->m), ak = factor_stride(c, c->a, c->k);
    }
    if (!t->pack_b)
        bk = factor_stride(c, c->b, c->k);
    emit_line(e, "call void @micro(ptr %s, i64 %s, i64 %s, i64 %s, ptr %s, i64 %s, i64 %s, i64 %s, "
                 "ptr %s, i64 %s)", a, am, ak, s->rows, b, bk, s->columns, u->steps, s->acc,
              u->more);
}

// Between panels the sums lie in an output or in scratch; after the last one they go to the output,
// if they are all that is stored, or to scratch, where the epilogue finds them.
static void
place_sums(struct contract *c, struct unit *u, const struct spot *s, struct contract_call *call)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    const char *line = emit_text(e, "%u", t->vecs * t->lanes * t->size);
    call->to = call->from = s->acc;
    call->to_row = call->from_row = line;
    if (!c->sums)
        return;
    struct emit_scope at = emit_scope(e, u->batch, 1);
    emit_bind(&at, c->m, EMIT_UNIFORM, s->row);
    emit_bind(&at, c->n, EMIT_UNIFORM, s->column);
    call->from = emit_address(e, &at, (uint32_t)(c->sums - e->kernel.access.at));
    call->from_row = bytes(c, emit_stride(e, c->sums->stride[c->m]));
    if (t->c_in_place) {
        call->to = call->from, call->to_row = call->from_row;
        return;
    }
    if (c->beside) {
        const char *read = emit_address(e, &at, e->kernel.inst.at[c->beside].aux);
        call->beside = emit_op(e, "select i1 %s, ptr %s, ptr null", u->last, read);
    }
    call->to = emit_op(e, "select i1 %s, ptr %s, ptr %s", u->last, s->acc, call->from);
    call->to_row = emit_op(e, "select i1 %s, i64 %s, i64 %s", u->last, line, call->from_row);
}

static void
tile_by_hand(struct contract *c, struct unit *u, const struct spot *s, const char *b)
{
    struct emitter *e = c->e;
    const struct contract_tile *t = &c->tile;
    struct contract_call call = {.b = b, .b_step = "0", .a_step = "0", .steps = u->steps,
                                 .more = u->more, .rows = s->rows, .columns = s->columns,
                                 .copy = "null", .beside = "null"};
    if (t->pack_a) {
        call.a = packed_a(c, u, s->row);
    } else {
        call.a = factor_address(c, u, c->a, c->m, s->row);
        call.a_step = bytes(c, factor_stride(c, c->a, t->a_by_row ? c->m : c->k));
    }
    if (!t->pack_b)
        call.b_step = bytes(c, factor_stride(c, c->b, c->k));
    if (t->copy_b) {
        call.copy = scratch(c, c->at.b_at);
        call.first_rows = emit_op(e, "icmp eq i64 %s, %s", s->row, u->m0);
        call.b = emit_op(e, "select i1 %s, ptr %s, ptr %s", call.first_rows, b, call.copy);
    }
    place_sums(c, u, s, &call);
    contract_asm_call(e, t, &call);
}

// One register tile: row and column are its first indices, b its factor's address.
static void
register_tile(struct contract *c, struct unit *u, const char *row, const char *column,
              const char *b)
{
    struct spot s = spot_at(c, u, row, column);
    if (!c->tile.by_hand)
        tile_by_llvm(c, u, &s, b);
    else
        tile_by_hand(c, u, &s, b);
    if (c->tile.c_in_place)
        return;
    const char *end = emit_if(c->e, u->last);
    finish_tile(c, u, &s);
    emit_endif(c->e, end);
}

static void
column_groups(struct contract *c, struct unit *u)
{
    struct emitter *e = c->e;
    struct emit_loop rows, columns;
    emit_loop_open(e, &columns, u->n0, u->n1, emit_text(e, "%u", c->tile.vecs * c->tile.lanes));
    emit_loop_body(e, &columns);
    const char *b = c->tile.pack_b ? pack_b(c, u, columns.index)
                                   : factor_address(c, u, c->b, c->n, columns.index);
    emit_loop_open(e, &rows, u->m0, u->m1, emit_text(e, "%u", c->tile.rows));
    emit_loop_body(e, &rows);
    register_tile(c, u, rows.index, columns.index, b);
    emit_loop_close(e, &rows, NULL);
    emit_loop_close(e, &columns, NULL);
}

// All panels of k. fresh: i1, A of this unit is not the one packed last.
static void
panels(struct contract *c, struct unit *u, const char *fresh)
{
    struct emitter *e = c->e;
    struct emit_loop l;
    // Without any k there is one empty panel: zeros are stored.
    int64_t depth = e->kernel.axis[c->k].extent;
    emit_loop_open(e, &l, "0", emit_num(e, depth ? depth : 1), c->kc);
    emit_loop_body(e, &l);
    const char *left = emit_op(e, "sub i64 %s, %s", c->K, l.index);
    u->k0 = l.index;
    u->steps = emit_min(e, left, c->kc);
    u->more = l.index;
    u->last = emit_op(e, "icmp sle i64 %s, %s", left, c->kc);
    if (c->tile.pack_a) {
        const char *more = emit_op(e, "icmp sgt i64 %s, %s", c->K, c->kc);
        const char *end = emit_if(e, emit_op(e, "or i1 %s, %s", more, fresh));
        pack_a(c, u);
        emit_endif(e, end);
    }
    column_groups(c, u);
    emit_loop_close(e, &l, NULL);
}

// Batch and bounds of unit `index`. Returns the number of its rows of A among all.
static const char *
decode_unit(struct contract *c, const char *index, struct emit_scope *batch, struct unit *u)
{
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    int64_t mc = e->sched->tile[0], nc = e->sched->tile[1];
    const char *down = emit_num(e, (k->axis[c->m].extent + mc - 1) / mc);
    const char *across = emit_num(e, (k->axis[c->n].extent + nc - 1) / nc);
    const char *strip = emit_op(e, "udiv i64 %s, %s", index, across);
    const char *column = emit_op(e, "urem i64 %s, %s", index, across);
    const char *which = emit_op(e, "udiv i64 %s, %s", strip, down);
    const char *row = emit_op(e, "urem i64 %s, %s", strip, down);
    const char *at[MAX_AXES];
    emit_decode(e, which, 0, k->naxis - 3u, at);
    for (uint32_t i = 0; i + 3 < k->naxis; i++)
        emit_bind(batch, i, EMIT_UNIFORM, at[i]);
    u->batch = batch;
    u->m0 = emit_mul(e, row, c->mc);
    u->m1 = emit_min(e, emit_add(e, u->m0, c->mc), c->M);
    u->n0 = emit_mul(e, column, c->nc);
    u->n1 = emit_min(e, emit_add(e, u->n0, c->nc), c->N);
    return strip;
}

bool
cpu_contract(struct emitter *e)
{
    struct contract c = {0};
    struct emit_loop units;
    contract_set_up(&c, e);
    if (c.tile.by_hand)
        contract_asm(&c.tile, e->text);
    else
        contract_micro(&c.tile, e->text);
    emit_function(e, "kernel");
    emit_loop_open(e, &units, "%begin", "%end", "1");
    const char *packed = emit_carry(e, &units, "i64", "-1");
    emit_loop_body(e, &units);
    struct emit_scope batch = emit_scope(e, NULL, 1);
    struct unit u = {0};
    const char *strip = decode_unit(&c, units.index, &batch, &u);
    emit_hoist(e, &batch, NULL, UINT32_MAX);
    panels(&c, &u, emit_op(e, "icmp ne i64 %s, %s", strip, packed));
    emit_loop_close(e, &units, &strip);
    emit_function_end(e);
    return true;
}
