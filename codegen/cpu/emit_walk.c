// emit_walk.c: values of body instructions, on demand and once a scope.
//
// emit_value marks what an instruction needs that no visible scope has yet (operands have smaller
// numbers, so one pass downwards finds all), then prints the marked ones in order. No recursion:
// bodies of thousands of instructions are fine. (But the operand that a rare where skips is emitted
// by a call in its turn: as deep as such operands nest.) A remembered value of an outer scope
// counts only if no axis that it varies along has been bound anew further in.
#include "codegen/cpu/emit_parts.h"

#include "ir/base/check.h"

#include <string.h>

struct emit_scope
emit_scope(struct emitter *e, struct emit_scope *up, uint32_t lanes)
{
    struct emit_scope s = {.up = up, .lanes = lanes};
    s.value = arena_alloc(&e->mem, e->kernel.inst.n * sizeof *s.value);
    s.addr = arena_alloc(&e->mem, (e->kernel.access.n + 1) * sizeof *s.addr);
    return s;
}

void
emit_bind(struct emit_scope *s, uint32_t axis, enum emit_how how, const char *value)
{
    s->axis[axis].how = (uint8_t)how;
    s->axis[axis].value = value;
    s->bound |= (uint16_t)(1u << axis);
}

void
emit_set(struct emit_scope *s, uint32_t inst, const char *value)
{
    s->value[inst] = value;
}

const struct emit_scope *
scope_of_axis(const struct emit_scope *s, uint32_t axis)
{
    while (s && !(s->bound >> axis & 1))
        s = s->up;
    return s;
}

// Axes along which the lanes of this scope differ.
static uint16_t
lane_axes(const struct emitter *e, const struct emit_scope *s)
{
    uint16_t m = 0;
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        const struct emit_scope *b = scope_of_axis(s, i);
        if (b && b->axis[i].how != EMIT_UNIFORM)
            m |= (uint16_t)(1u << i);
    }
    return m;
}

bool
varies(const struct emitter *e, const struct emit_scope *s, uint16_t axes)
{
    return s->lanes > 1 && (axes & lane_axes(e, s));
}

static const char *
remembered(struct emitter *e, struct emit_scope *s, uint32_t i)
{
    uint16_t rebound = 0;
    for (struct emit_scope *u = s; u; u = u->up) {
        bool fits = u->lanes == s->lanes || u->lanes == 1;
        if (u->value[i] && fits && !(rebound & e->depends[i])) {
            if (u->lanes != s->lanes)
                s->value[i] = emit_splat(e, e->kernel.inst.at[i].dtype, u->value[i], s->lanes);
            else
                s->value[i] = u->value[i];
            return s->value[i];
        }
        rebound |= u->bound;
    }
    return NULL;
}

static bool
class_may_know(const struct emitter *e, uint32_t i)
{
    uint16_t op = e->kernel.inst.at[i].op;
    return e->resolve && (op == OP_result || op == OP_load || e->kept[i]);
}

static const char *
known(struct emitter *e, struct emit_scope *s, uint32_t i)
{
    const char *v = remembered(e, s, i);
    if (!v && class_may_know(e, i)) {
        v = e->resolve(e, s, i, e->user);
        s->value[i] = v;
    }
    return v;
}

// Right-hand side of an op row: the template with its operands filled in.
static void
fill_template(struct emitter *e, struct str *out, const char *t, uint8_t dtype, uint32_t lanes,
              const char *const *operand)
{
    const char *type = emit_type(e, dtype, lanes);
    for (; *t; t++) {
        if (*t != '$') {
            str_addc(out, *t);
        } else if (strncmp(t, "$ONES", 5) == 0) {
            str_add(out, emit_constant(e, dtype, UINT64_MAX, lanes));
            t += 4;
        } else {
            char c = *++t;
            if (c == 'T')
                str_add(out, type);
            else if (c == 'M')
                str_printf(out, "v%u%c%u", lanes, dtype_is_float(dtype) ? 'f' : 'i',
                           dtype == DT_bool ? 1u : dtype_table[dtype].bits);
            else if (c == 'V')
                str_printf(out, "%u", lanes);
            else
                str_add(out, operand[c - '0']);
        }
    }
}

static const char *
template_of(uint16_t op, uint8_t dtype)
{
    const struct op_info *o = &op_table[op];
    switch (dtype_table[dtype].kind) {
    case DTK_FLOAT:
        return o->llvm_f;
    case DTK_SINT:
        return o->llvm_s;
    case DTK_UINT:
        return o->llvm_u;
    default:
        return o->llvm_b;
    }
}

const char *
emit_row(struct emitter *e, uint16_t op, uint8_t dtype, uint32_t lanes, const char *a,
         const char *b, const char *c)
{
    if ((op == OP_max || op == OP_min) && dtype_is_float(dtype))
        return emit_extreme(e, op == OP_max, dtype, lanes, a, b, NULL);
    const char *t = template_of(op, dtype);
    CHECK(t, "%s of %s has no LLVM template", op_name(op), dtype_name(dtype));
    const char *operand[] = {a, b, c};
    struct str right = {0};
    fill_template(e, &right, t, dtype, lanes, operand);
    const char *v = emit_op(e, "%s", str_text(&right));
    str_free(&right);
    return v;
}

// An affine function of the axes at lane 0, an i64.
const char *
emit_affine_first(struct emitter *e, const struct emit_scope *s, const struct access *f)
{
    const char *sum = emit_stride(e, f->base);
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        const struct emit_scope *b = f->stride[i] ? scope_of_axis(s, i) : NULL;
        if (b && b->axis[i].how != EMIT_PER_LANE)
            sum = emit_add(e, sum, emit_mul(e, b->axis[i].value, emit_stride(e, f->stride[i])));
    }
    return sum;
}

// The same as <lanes x i64>.
static const char *
emit_affine(struct emitter *e, struct emit_scope *s, const struct access *f)
{
    const char *sum = emit_affine_first(e, s, f);
    const char *lanes = NULL; // <lanes x i64>
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        if (!f->stride[i])
            continue;
        const struct emit_scope *b = scope_of_axis(s, i);
        CHECK(b, "axis %u is not bound", i);
        const char *stride = emit_stride(e, f->stride[i]);
        const char *part = NULL;
        if (b->axis[i].how == EMIT_PER_LANE)
            part = b->axis[i].value;
        if (b->axis[i].how == EMIT_LANES && s->lanes > 1)
            part = emit_iota(e, s->lanes);
        if (part && strcmp(stride, "1") != 0)
            part = emit_op(e, "mul <%u x i64> %s, %s", s->lanes, part,
                           emit_splat_i64(e, stride, s->lanes));
        if (part)
            lanes = lanes ? emit_op(e, "add <%u x i64> %s, %s", s->lanes, lanes, part) : part;
    }
    const char *all = emit_splat_i64(e, sum, s->lanes);
    return lanes ? emit_op(e, "add <%u x i64> %s, %s", s->lanes, all, lanes) : all;
}

// max and min with a literal operand; NULL: it is something else.
static const char *
compute_extreme(struct emitter *e, struct emit_scope *s, const struct inst *in)
{
    const struct inst *at = e->kernel.inst.at;
    if ((in->op != OP_max && in->op != OP_min) || !dtype_is_float(in->dtype))
        return NULL;
    bool first = at[in->a].op == OP_literal;
    uint32_t a = first ? in->b : in->a, b = first ? in->a : in->b;
    if (at[b].op != OP_literal)
        return NULL;
    return emit_extreme(e, in->op == OP_max, in->dtype, s->lanes, s->value[a], s->value[b], &at[b]);
}

static const char *
compute(struct emitter *e, struct emit_scope *s, uint32_t i)
{
    const struct inst *in = &e->kernel.inst.at[i];
    const char *a = s->value[in->a], *b = s->value[in->b], *c = s->value[in->c];
    uint8_t from = e->kernel.inst.at[in->a].dtype;
    switch (in->op) {
    case OP_literal:
        return emit_constant(e, in->dtype, in->bits, s->lanes);
    case OP_load:
        return emit_load(e, s, i);
    case OP_index:
        return emit_affine(e, s, &e->kernel.affine.at[in->aux]);
    case OP_cast:
        return emit_cast(e, from, in->dtype, s->lanes, a, e->low_half[in->a]);
    case OP_bitcast: {
        const char *ta = emit_type(e, from, s->lanes), *tb = emit_type(e, in->dtype, s->lanes);
        return strcmp(ta, tb) == 0 ? a : emit_op(e, "bitcast %s %s to %s", ta, a, tb);
    }
    case OP_checked:
        emit_check(e, s, i, b, s->mask);
        return a;
    case OP_philox:
        return emit_philox(e, s, in);
    case OP_lookup:
        return emit_lookup(e, (uint32_t)e->kernel.inst.at[in->b].bits, s->lanes, a);
    default:
        CHECK(in->op != OP_result, "the class has not given the result of an accumulator");
        if (emit_divides_by_shared(e, s, in))
            return emit_divide_by_shared(e, s->lanes, a, b);
        const char *special = compute_extreme(e, s, in);
        if (!special)
            special = emit_size_within(e, s, in);
        if (special)
            return special;
        return emit_row(e, in->op, in->op == OP_where ? in->dtype : from, s->lanes, a, b, c);
    }
}

static bool
is_rare(const struct inst *in)
{
    return in->op == OP_where && in->aux == WHERE_RARELY;
}

// The operands that are computed before an instruction; 0 where there is none.
static void
mark_operands(const struct inst *in, bool *need)
{
    need[in->a] = need[in->c] = true;
    if (!is_rare(in))
        need[in->b] = true;
}

// A rare operand b, in a block of its own: what it needs beyond the scope is remembered in there
// only.
static const char *
emit_rare_where(struct emitter *e, struct emit_scope *s, const struct inst *in)
{
    const char *type = emit_type(e, in->dtype, s->lanes), *fast = s->value[in->c];
    const char *mask = emit_type(e, DT_bool, s->lanes), *before = e->block;
    const char *any = emit_op(e, "call i1 @llvm.vector.reduce.or.v%ui1(%s %s)", s->lanes, mask,
                              s->value[in->a]);
    const char *then = emit_label(e, "rare"), *end = emit_text(e, "%s.end", then);
    emit_rarely(e, any, then, end);
    emit_place(e, then);
    struct emit_scope inside = emit_scope(e, s, s->lanes);
    inside.mask = s->mask;
    const char *slow = emit_value(e, &inside, in->b);
    const char *mixed = emit_op(e, "select %s %s, %s %s, %s %s", mask, s->value[in->a], type, slow,
                                type, fast);
    const char *after = e->block;
    emit_endif(e, end);
    return emit_op(e, "phi %s [ %s, %%%s ], [ %s, %%%s ]", type, fast, before, mixed, after);
}

const char *
emit_value(struct emitter *e, struct emit_scope *s, uint32_t inst)
{
    const char *v = remembered(e, s, inst);
    if (v)
        return v;
    bool *need = xcalloc(inst + 1, sizeof *need);
    need[inst] = true;
    for (uint32_t i = inst; i > 0; i--) {
        if (need[i] && known(e, s, i))
            need[i] = false;
        else if (need[i])
            mark_operands(&e->kernel.inst.at[i], need);
    }
    for (uint32_t i = 1; i <= inst; i++)
        if (need[i] && !s->value[i])
            s->value[i] = is_rare(&e->kernel.inst.at[i])
                              ? emit_rare_where(e, s, &e->kernel.inst.at[i])
                              : compute(e, s, i);
    xfree(need);
    return s->value[inst];
}

// ---- hoisting

static void
mark_needed(const struct emitter *e, const uint32_t *inst, uint32_t n, bool *need)
{
    if (n == UINT32_MAX) {
        memset(need, true, e->kernel.inst.n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        need[inst[i]] = true;
    for (uint32_t i = e->kernel.inst.n; i-- > 1;)
        if (need[i])
            mark_operands(&e->kernel.inst.at[i], need);
}

static uint16_t
bound_axes(const struct emit_scope *s)
{
    uint16_t m = 0;
    for (; s; s = s->up)
        m |= s->bound;
    return m;
}

void
emit_hoist(struct emitter *e, struct emit_scope *s, const uint32_t *inst, uint32_t n)
{
    const struct kernel *k = &e->kernel;
    uint16_t bound = bound_axes(s);
    bool *need = xcalloc(k->inst.n, sizeof *need), *have = xcalloc(k->inst.n, sizeof *have);
    mark_needed(e, inst, n, need);
    have[0] = true;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (in->op == OP_load && need[i])
            emit_base(e, s, in->aux);
        bool known_check = in->op == OP_load && in->c && have[in->b] && have[in->c];
        if (known_check && need[i] && (e->depends[i] & ~bound)) {
            emit_value(e, s, in->c);
            if (in->b)
                emit_value(e, s, in->b);
            emit_check_load(e, s, i);
        }
        bool b = have[in->b] || is_rare(in);
        if (!need[i] || !have[in->a] || !b || !have[in->c] || (e->depends[i] & ~bound))
            continue;
        have[i] = in->op == OP_result ? known(e, s, i) != NULL : true;
        if (have[i] && in->op != OP_literal)
            emit_value(e, s, i);
    }
    for (uint32_t i = 0; i < k->store.n && n == UINT32_MAX; i++)
        emit_base(e, s, k->store.at[i].access);
    xfree(need);
    xfree(have);
}
