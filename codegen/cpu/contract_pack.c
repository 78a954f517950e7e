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
enum { MAX_LANES = 64, MAX_VECS = 32, PREFETCH = 256, PREFETCH_STEPS = 8, LINE = 64 };

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

// Vectors of a line take up to 16 rows at once. Where these lie a power of two apart, all their
// lines are of one set of the first-level cache, which holds 12: what is asked for is used next.
static uint32_t
bytes_ahead(const struct contract_tile *t)
{
    return t->lanes * t->size == LINE ? LINE : PREFETCH;
}

// Lanes points of the free axis, from first + point on, an operand.
static void
pack_rows(struct emitter *e, struct emit_scope *up, const struct contract_tile *t,
          const struct contract_pack *p, uint32_t access, const char *point)
{
    uint32_t used = p->used < t->lanes ? p->used : t->lanes;
    struct emit_scope row[MAX_LANES];
    const char *v[MAX_LANES];
    struct emit_loop l;
    const char *last = emit_op(e, "sub i64 %s, 1", p->end), *first = emit_add(e, p->first, point);
    for (uint32_t r = 0; r < used; r++) {
        row[r] = emit_scope(e, up, t->lanes);
        const char *at = emit_add(e, first, emit_text(e, "%u", r));
        emit_bind(&row[r], p->free_axis, EMIT_UNIFORM, emit_min(e, at, last));
        emit_hoist(e, &row[r], &p->inst, 1);
    }
    emit_loop_open(e, &l, "0", p->steps, emit_text(e, "%u", t->lanes));
    emit_loop_body(e, &l);
    const char *mask = emit_tail_mask(e, t->lanes, emit_op(e, "sub i64 %s, %s", p->steps, l.index));
    for (uint32_t r = 0; r < used; r++) {
        struct emit_scope in = emit_scope(e, &row[r], t->lanes);
        emit_bind(&in, p->k_axis, EMIT_LANES, emit_add(e, p->k, l.index));
        in.mask = mask;
        prefetch(e, &in, access, emit_text(e, "%u", bytes_ahead(t)));
        v[r] = emit_value(e, &in, p->inst);
    }
    for (uint32_t r = used; r < t->lanes; r++)
        v[r] = "poison";
    const char *type = emit_transpose(e, v, t->lanes, t->size, t->type);
    const char *to = emit_mul(e, l.index, emit_text(e, "%u", p->width));
    to = panel(e, t, p, emit_add(e, to, point));
    for (uint32_t i = 0; i < t->lanes; i++)
        emit_line(e, "store %s %s, ptr %s, align %u", type, v[i],
                  emit_ptr(e, to, emit_text(e, "%u", i * p->width), t->type),
                  store_alignment(t, p, t->lanes));
    emit_loop_close(e, &l, NULL);
}

static void
pack_transposed(struct emitter *e, struct emit_scope *up, const struct contract_tile *t,
                const struct contract_pack *p, uint32_t access)
{
    if (p->used <= t->lanes) {
        pack_rows(e, up, t, p, access, "0");
        return;
    }
    struct emit_loop group;
    emit_loop_open(e, &group, "0", emit_text(e, "%u", p->used), emit_text(e, "%u", t->lanes));
    emit_loop_body(e, &group);
    pack_rows(e, up, t, p, access, group.index);
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
