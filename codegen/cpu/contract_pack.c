// contract_pack.c: writes a panel of a factor of a contraction in the order in which the innermost
// loop reads it: [k][width]. The factor's instructions (load, cast, scale: the prologue) run here,
// once per element and panel.
//
// Which way the vectors lie is the factor's layout's business: where its loads run along k, vectors
// are taken along k, one for each of `lanes` points of the free axis, and transposed in registers;
// else they are taken along the free axis. Lanes past the end of k are masked. Points past the end
// of the free axis are masked, or repeat the last point; both are in bounds, and what they give is
// never stored in the end.
#include "codegen/cpu/contract.h"

#include "ir/base/check.h"

#include <string.h>

// PREFETCH: bytes ahead along k; PREFETCH_STEPS: steps of k ahead where the rows of k lie apart.
enum { MAX_LANES = 64, MAX_VECS = 32, PREFETCH = 256, PREFETCH_STEPS = 8 };

// ---- transposition
//
// lanes rows of lanes elements. Within each 128-bit block by unpacking, then whole blocks among
// rows: every step is one shuffle of two registers with an immediate on x86.
struct transpose {
    struct emitter *e;
    const struct contract_tile *t;
    const char *v[MAX_LANES];
};

// A shuffle of x and y; index i of the result is index[i] of x ++ y.
static const char *
shuffle(const struct transpose *s, const char *x, const char *y, const uint32_t *index)
{
    struct str mask = {0};
    for (uint32_t i = 0; i < s->t->lanes; i++)
        str_printf(&mask, "%si32 %u", i ? ", " : "", index[i]);
    const char *r = emit_op(s->e, "shufflevector %s %s, %s %s, <%u x i32> <%s>", s->t->vec, x,
                            s->t->vec, y, s->t->lanes, str_text(&mask));
    str_free(&mask);
    return r;
}

// Interleaves the low (high) halves of each 128-bit block of x and y in units of `unit` elements.
static const char *
unpack(const struct transpose *s, const char *x, const char *y, uint32_t unit, bool high)
{
    uint32_t index[MAX_LANES], block = 16 / s->t->size;
    for (uint32_t i = 0; i < s->t->lanes; i++) {
        uint32_t in = i % block, pair = in / (2 * unit);
        uint32_t from = i - in + (high ? block / 2 : 0) + pair * unit + in % unit;
        index[i] = from + (in / unit % 2 ? s->t->lanes : 0);
    }
    return shuffle(s, x, y, index);
}

// Four blocks picked from x ++ y.
static const char *
blocks(const struct transpose *s, const char *x, const char *y, const uint32_t *pick)
{
    uint32_t index[MAX_LANES], block = 16 / s->t->size;
    for (uint32_t i = 0; i < s->t->lanes; i++)
        index[i] = pick[i / block] * block + i % block;
    return shuffle(s, x, y, index);
}

// Rows r .. r + block - 1: afterwards row r + j holds, in block b, their column b * block + j.
// Vectors stand for so many columns each of so many rows, at first all of one. Two groups of rows
// side by side become one: the low and the high halves of their vectors, interleaved, stand for
// half as many columns of twice as many rows.
static void
transpose_in_blocks(struct transpose *s, uint32_t r)
{
    uint32_t block = 16 / s->t->size;
    for (uint32_t rows = 1; rows < block; rows *= 2)
        for (uint32_t g = r; g < r + block; g += 2 * rows) {
            const char *merged[MAX_LANES];
            for (uint32_t c = 0; c < rows; c++) {
                merged[2 * c] = unpack(s, s->v[g + c], s->v[g + rows + c], rows, false);
                merged[2 * c + 1] = unpack(s, s->v[g + c], s->v[g + rows + c], rows, true);
            }
            memcpy(s->v + g, merged, 2 * rows * sizeof *merged);
        }
}

// Rows j, j + block, …: whole blocks are transposed among them.
static void
transpose_blocks(struct transpose *s, uint32_t j)
{
    static const uint32_t low[4] = {0, 1, 4, 5}, high[4] = {2, 3, 6, 7};
    static const uint32_t even[4] = {0, 2, 4, 6}, odd[4] = {1, 3, 5, 7};
    static const uint32_t first[2] = {0, 2}, second[2] = {1, 3};
    uint32_t block = 16 / s->t->size, n = s->t->lanes / block;
    const char **v = s->v + j;
    if (n == 2) {
        const char *x = blocks(s, v[0], v[block], first), *y = blocks(s, v[0], v[block], second);
        v[0] = x, v[block] = y;
        return;
    }
    if (n < 4)
        return;
    const char *ab0 = blocks(s, v[0], v[block], low), *ab1 = blocks(s, v[0], v[block], high);
    const char *cd0 = blocks(s, v[2 * block], v[3 * block], low);
    const char *cd1 = blocks(s, v[2 * block], v[3 * block], high);
    v[0] = blocks(s, ab0, cd0, even), v[block] = blocks(s, ab0, cd0, odd);
    v[2 * block] = blocks(s, ab1, cd1, even), v[3 * block] = blocks(s, ab1, cd1, odd);
}

static void
transpose(struct transpose *s)
{
    uint32_t block = 16 / s->t->size;
    for (uint32_t r = 0; r < s->t->lanes; r += block)
        transpose_in_blocks(s, r);
    for (uint32_t j = 0; j < block; j++)
        transpose_blocks(s, j);
}

// ---- the two ways

// The access of a load that the factor needs and that runs along one axis (its stride is 1) and not
// along the other; or NONE.
enum { NONE = UINT32_MAX };
static uint32_t
access_along(const struct emitter *e, uint32_t inst, uint32_t axis, uint32_t other)
{
    const struct kernel *k = &e->kernel;
    uint32_t found = NONE;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    needed[inst] = true;
    for (uint32_t i = inst; i > 0; i--) {
        const struct inst *in = &k->inst.at[i];
        if (!needed[i])
            continue;
        needed[in->a] = needed[in->b] = needed[in->c] = true;
        if (in->op != OP_load)
            continue;
        const int64_t *stride = k->access.at[in->aux].stride;
        if (stride[axis] == 1 && stride[other] != 0 && stride[other] != 1)
            found = in->aux;
    }
    xfree(needed);
    return found;
}

// Addresses past a buffer's end are harmless here.
static void
prefetch(struct emitter *e, struct emit_scope *s, uint32_t access, const char *bytes)
{
    emit_line(e, "call void @llvm.prefetch.p0(ptr %s, i32 0, i32 3, i32 1)",
              emit_ptr(e, emit_address(e, s, access), bytes, "i8"));
}

// Element `index` (i64 operand) of the panel.
static const char *
panel(struct emitter *e, const struct contract_tile *t, const struct contract_pack *p,
      const char *index)
{
    return emit_ptr(e, p->dst, index, t->type);
}

// A narrow panel's stores overlap: each vector's surplus is overwritten by the next step's.
static uint32_t
store_alignment(const struct contract_tile *t, const struct contract_pack *p, uint32_t lanes)
{
    return p->width % lanes ? t->size : lanes * t->size;
}

// Lanes of the vectors along the free axis: half, where that is the width of A's panel for the loop
// of 256 bits, so that nothing is written beyond a step.
static uint32_t
vector_along(const struct contract_tile *t, const struct contract_pack *p)
{
    bool half = t->by_hand && t->lanes * t->size == 32 && p->width * 2 == t->lanes;
    return half ? p->width : t->lanes;
}

static void
pack_along(struct emitter *e, struct emit_scope *up, const struct contract_tile *t,
           const struct contract_pack *p)
{
    uint32_t lanes = vector_along(t, p), nvec = (p->width + lanes - 1) / lanes;
    uint8_t dtype = e->kernel.inst.at[p->inst].dtype;
    CHECK(nvec <= MAX_VECS, "a panel of %u vectors", nvec);
    struct emit_scope column[MAX_VECS];
    for (uint32_t v = 0; v < nvec; v++) {
        column[v] = emit_scope(e, up, lanes);
        const char *at = emit_add(e, p->first, emit_text(e, "%u", v * lanes));
        const char *left = emit_op(e, "sub i64 %s, %s", p->end, at);
        left = emit_op(e, "call i64 @llvm.smax.i64(i64 %s, i64 0)", left);
        emit_bind(&column[v], p->free_axis, EMIT_LANES, at);
        column[v].mask = emit_tail_mask(e, lanes, left);
        emit_hoist(e, &column[v], &p->inst, 1);
    }
    uint32_t row = access_along(e, p->inst, p->free_axis, p->k_axis);
    struct emit_loop l;
    emit_loop_open(e, &l, "0", p->steps, "1");
    emit_loop_body(e, &l);
    const char *at = emit_mul(e, l.index, emit_text(e, "%u", p->width));
    for (uint32_t v = 0; v < nvec; v++) {
        struct emit_scope s = emit_scope(e, &column[v], lanes);
        s.mask = column[v].mask;
        emit_bind(&s, p->k_axis, EMIT_UNIFORM, emit_add(e, p->k, l.index));
        if (row != NONE) {
            struct emit_scope ahead = emit_scope(e, &column[v], lanes);
            const char *later = emit_add(e, l.index, emit_text(e, "%d", PREFETCH_STEPS));
            emit_bind(&ahead, p->k_axis, EMIT_UNIFORM, emit_add(e, p->k, later));
            prefetch(e, &ahead, row, "0");
        }
        const char *to = panel(e, t, p, emit_add(e, at, emit_text(e, "%u", v * lanes)));
        emit_store_raw(e, dtype, lanes, to, emit_value(e, &s, p->inst), NULL,
                       store_alignment(t, p, lanes));
    }
    emit_loop_close(e, &l, NULL);
}

static void
pack_transposed(struct emitter *e, struct emit_scope *up, const struct contract_tile *t,
                const struct contract_pack *p, uint32_t access)
{
    uint8_t dtype = e->kernel.inst.at[p->inst].dtype;
    uint32_t used = p->used < t->lanes ? p->used : t->lanes;
    struct emit_scope row[MAX_LANES];
    struct transpose s = {.e = e, .t = t};
    struct emit_loop group, l;
    const char *width = emit_text(e, "%u", p->width), *lanes = emit_text(e, "%u", t->lanes);
    const char *last = emit_op(e, "sub i64 %s, 1", p->end);
    emit_loop_open(e, &group, "0", emit_text(e, "%u", p->used), lanes);
    emit_loop_body(e, &group);
    for (uint32_t r = 0; r < used; r++) {
        row[r] = emit_scope(e, up, t->lanes);
        const char *at = emit_add(e, emit_add(e, p->first, group.index), emit_text(e, "%u", r));
        emit_bind(&row[r], p->free_axis, EMIT_UNIFORM, emit_min(e, at, last));
        emit_hoist(e, &row[r], &p->inst, 1);
    }
    emit_loop_open(e, &l, "0", p->steps, lanes);
    emit_loop_body(e, &l);
    const char *mask = emit_tail_mask(e, t->lanes, emit_op(e, "sub i64 %s, %s", p->steps, l.index));
    for (uint32_t r = 0; r < used; r++) {
        struct emit_scope in = emit_scope(e, &row[r], t->lanes);
        emit_bind(&in, p->k_axis, EMIT_LANES, emit_add(e, p->k, l.index));
        in.mask = mask;
        prefetch(e, &in, access, emit_text(e, "%d", PREFETCH));
        s.v[r] = emit_value(e, &in, p->inst);
    }
    for (uint32_t r = used; r < t->lanes; r++)
        s.v[r] = "poison";
    transpose(&s);
    for (uint32_t i = 0; i < t->lanes; i++) {
        const char *step = emit_add(e, l.index, emit_text(e, "%u", i));
        const char *to = panel(e, t, p, emit_add(e, emit_mul(e, step, width), group.index));
        emit_store_raw(e, dtype, t->lanes, to, s.v[i], NULL, store_alignment(t, p, t->lanes));
    }
    emit_loop_close(e, &l, NULL);
    emit_loop_close(e, &group, NULL);
}

void
contract_pack(struct emitter *e, struct emit_scope *up, const struct contract_tile *t,
              const struct contract_pack *p)
{
    uint32_t along_k = access_along(e, p->inst, p->k_axis, p->free_axis);
    if (along_k != NONE)
        pack_transposed(e, up, t, p, along_k);
    else
        pack_along(e, up, t, p);
}
