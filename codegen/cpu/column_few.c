// column_few.c: column kernels of at most 16 rows. Every lane of the order (ir/kernel.h) then has
// one element or none, so a vector of columns goes through all stages in registers: its rows are
// written out one after the other, a result is the tree over them, and nothing goes to scratch.
// Lanes without an element hold the identity, which changes no bit, so they are left out.
#include "codegen/cpu/column.h"

#include "ir/base/check.h"

struct few {
    uint32_t n;
    struct emit_scope *row; // per row
};

static void
reduce(struct column *c, struct few *f, struct emit_scope *s, uint32_t acc)
{
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    const struct acc *a = &k->acc.at[acc];
    struct emit_acc v[RED_LANES];
    for (uint32_t r = 0; r < f->n; r++) {
        const char *j = acc_is_arg(a) ? emit_constant(e, DT_i64, r, c->vec) : NULL;
        v[r] = emit_acc_element(e, a, c->vec, emit_value(e, &f->row[r], a->value), j, NULL);
    }
    for (uint32_t n = RED_LANES / 2; n >= 1; n /= 2)
        for (uint32_t l = 0; l < n && l + n < f->n; l++)
            v[l] = emit_acc_join(e, a, c->vec, v[l], v[l + n]);
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_result && k->inst.at[i].aux == acc)
            emit_set(s, i, emit_acc_result(a, v[0]));
}

static void
emit_vector(struct column *c, void *arg, const char *mask)
{
    struct emitter *e = c->e;
    const struct kernel *k = &e->kernel;
    struct few *f = arg;
    struct emit_scope s = column_scope(c, c->unit, mask);
    for (uint32_t r = 0; r < f->n; r++) {
        f->row[r] = emit_scope(e, &s, c->vec);
        f->row[r].mask = mask;
        uint32_t rest = r;
        for (uint32_t axis = k->naxis; axis-- > c->axis + 1;) {
            uint32_t extent = (uint32_t)k->axis[axis].extent;
            emit_bind(&f->row[r], axis, EMIT_UNIFORM, emit_text(e, "%u", rest % extent));
            rest /= extent;
        }
    }
    for (uint32_t stage = 0; stage < k->nstage; stage++) {
        emit_hoist(e, &s, NULL, UINT32_MAX);
        for (uint32_t i = 0; i < k->acc.n; i++)
            if (k->acc.at[i].stage == stage)
                reduce(c, f, &s, i);
        for (uint32_t i = 0; i < k->store.n; i++) {
            const struct store *st = &k->store.at[i];
            if (st->stage == stage && st->level != LEVEL_ELEM)
                emit_store(e, &s, st, 0);
            for (uint32_t r = 0; r < f->n && st->stage == stage && st->level == LEVEL_ELEM; r++)
                emit_store(e, &f->row[r], st, mask ? 0 : c->store_flags);
        }
    }
}

void
column_few(struct column *c)
{
    struct emitter *e = c->e;
    struct few f = {.n = (uint32_t)kernel_points(&e->kernel, AXIS_R)};
    CHECK(f.n >= 1 && f.n <= RED_LANES, "%u rows are not few", f.n);
    f.row = arena_alloc(&e->mem, f.n * sizeof *f.row);
    if (!c->aligned) {
        column_each(c, emit_vector, &f);
        return;
    }
    const char *plain = emit_label(e, "plain"), *done = emit_label(e, "stored");
    const char *stream = emit_label(e, "stream");
    emit_branch(e, c->aligned, stream, plain);
    emit_place(e, stream);
    c->store_flags = EMIT_NONTEMPORAL;
    column_each(c, emit_vector, &f);
    c->store_flags = 0;
    emit_jump(e, done);
    emit_place(e, plain);
    column_each(c, emit_vector, &f);
    emit_jump(e, done);
    emit_place(e, done);
}
