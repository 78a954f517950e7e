// kernel_verify.c: the invariants of kernel.h, checked in the order of its declarations: axes,
// buffers, then instruction by instruction (each number in range before it is followed), then the
// accumulators, the contraction and the stores. Along the way two things are derived for every
// instruction: the axes that its value depends on (which bound its level from below), and whether
// it is late, that is needs an accumulator over P (then it belongs to the epilogue, level ONCE, and
// nothing inside the domain may use it).
//
// Reached elements are computed in 128 bits, so that no stride or extent overflows the check.
#include "ir/kernel.h"
#include "ir/tables.h"

#include "ir/base/str.h"
#include "ir/diag.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct facts {
    uint16_t axes; // bit i: depends on axis i
    bool late;
};

struct verifier {
    const struct kernel *k;
    struct diag *d;
    struct facts *fact; // per instruction
};

__attribute__((format(printf, 2, 3))) static bool
fail(struct verifier *v, const char *fmt, ...)
{
    char words[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    return diag_set(v->d, DIAG_INTERNAL, "kernel %s: %s", v->k->name ? v->k->name : "?", words);
}

static uint32_t
npar(const struct kernel *k)
{
    return (uint32_t)(k->naxis - k->nred);
}

// The axes of R, as bits.
static uint16_t
red_axes(const struct kernel *k)
{
    return (uint16_t)((1u << k->naxis) - (1u << npar(k)));
}

static bool
check_domain(struct verifier *v)
{
    const struct kernel *k = v->k;
    if (k->naxis > MAX_AXES || k->nred > k->naxis)
        return fail(v, "%u axes, %u of them reduced", k->naxis, k->nred);
    for (uint32_t i = 0; i < k->naxis; i++) {
        if (k->axis[i].kind != (i < npar(k) ? AXIS_P : AXIS_R))
            return fail(v, "axis %u: the P axes come first, then the R axes", i);
        if (k->axis[i].extent < 0)
            return fail(v, "axis %u has extent %" PRId64, i, k->axis[i].extent);
    }
    if (k->cls >= CLASS_COUNT)
        return fail(v, "no class %u", k->cls);
    if (!k->inst.n)
        return fail(v, "instruction 0, the dummy, is missing");
    for (uint32_t i = 0; i < k->buffers.n; i++) {
        const struct kernel_buffer *b = &k->buffers.at[i];
        if (b->dtype == DT_NONE || b->dtype >= DT_COUNT || b->role > BUF_OUT ||
            b->span_lo > b->span_hi)
            return fail(v, "buffer %u: bad dtype, role or span", i);
    }
    return true;
}

static uint16_t
access_axes(const struct kernel *k, const struct access *a)
{
    uint16_t axes = 0;
    for (uint32_t i = 0; i < k->naxis; i++)
        if (a->stride[i])
            axes = (uint16_t)(axes | 1u << i);
    return axes;
}

static uint8_t
level_of(const struct kernel *k, uint16_t axes)
{
    return axes & red_axes(k) ? LEVEL_ELEM : axes ? LEVEL_ROW : LEVEL_ONCE;
}

static bool
check_access(struct verifier *v, const char *what, uint32_t i, uint8_t role)
{
    const struct kernel *k = v->k;
    if (i >= k->access.n)
        return fail(v, "%s: no access %u", what, i);
    const struct access *a = &k->access.at[i];
    if (a->buffer >= k->buffers.n)
        return fail(v, "%s: access %u of no buffer", what, i);
    if (a->dtype != k->buffers.at[a->buffer].dtype)
        return fail(v, "%s: access %u is %s in a buffer of %s", what, i,
                    a->dtype < DT_COUNT ? dtype_name(a->dtype) : "?",
                    dtype_name(k->buffers.at[a->buffer].dtype));
    if (k->buffers.at[a->buffer].role != role)
        return fail(v, "%s: buffer %u is an %s", what, a->buffer,
                    role == BUF_IN ? "output" : "input");
    for (uint32_t j = k->naxis; j < MAX_AXES; j++)
        if (a->stride[j])
            return fail(v, "%s: access %u has a stride on axis %u, which does not exist", what, i,
                        j);
    return true;
}

// Every element that an access reaches lies in its buffer's span.
static bool
check_reach(struct verifier *v, const char *what, const struct access *a)
{
    const struct kernel *k = v->k;
    const struct kernel_buffer *b = &k->buffers.at[a->buffer];
    __int128 lo = a->base, hi = a->base;
    for (uint32_t i = 0; i < k->naxis; i++) {
        if (!k->axis[i].extent)
            return true;
        __int128 reach = (__int128)a->stride[i] * (k->axis[i].extent - 1);
        *(reach < 0 ? &lo : &hi) += reach;
    }
    if (lo < b->span_lo || hi > b->span_hi)
        return fail(v, "%s reaches beyond elements %" PRId64 "..%" PRId64 " of buffer %u", what,
                    b->span_lo, b->span_hi, a->buffer);
    return true;
}

// ---- instructions

static bool
takes_dtype(uint16_t op, uint8_t dtype)
{
    uint8_t kind = dtype_table[dtype].kind;
    if (dtype_is_half(dtype))
        return op == OP_cast || op == OP_bitcast || op == OP_where;
    switch ((enum op_dtype_rule)op_table[op].rule) {
    case DTR_FLOAT: return kind == DTK_FLOAT;
    case DTR_NUMERIC: return kind != DTK_BOOL;
    case DTR_INT: return kind == DTK_SINT || kind == DTK_UINT;
    case DTR_BITS: return kind != DTK_FLOAT;
    default: return true;
    }
}

static uint8_t
dtype_of(const struct verifier *v, uint32_t inst)
{
    return v->k->inst.at[inst].dtype;
}

// What the result must be, given the operands' dtype d.
static bool
result_fits(const struct inst *in, uint8_t d)
{
    switch ((enum op_dtype_rule)op_table[in->op].rule) {
    case DTR_COMPARE:
    case DTR_PREDICATE: return in->dtype == DT_bool;
    case DTR_CAST:
        if (in->op == OP_philox)
            return d == DT_i64 && (in->dtype == DT_u32 || in->dtype == DT_u64);
        return in->op == OP_cast || dtype_table[in->dtype].bits == dtype_table[d].bits;
    case DTR_OWN: return in->dtype == d || in->dtype == DT_bool;
    default: return in->dtype == d;
    }
}

static bool
check_dtypes(struct verifier *v, uint32_t i, const struct inst *in)
{
    const uint32_t operand[3] = {in->a, in->b, in->c};
    bool where = op_table[in->op].rule == DTR_WHERE;
    if (where && dtype_of(v, in->a) != DT_bool)
        return fail(v, "%%%u: the condition is %s, not bool", i, dtype_name(dtype_of(v, in->a)));
    uint8_t d = dtype_of(v, operand[where]);
    for (uint32_t j = where; j < op_table[in->op].arity; j++)
        if (dtype_of(v, operand[j]) != d)
            return fail(v, "%%%u: %s of %s and %s", i, op_name(in->op), dtype_name(d),
                        dtype_name(dtype_of(v, operand[j])));
    if (!takes_dtype(in->op, d))
        return fail(v, "%%%u: %s does not take %s", i, op_name(in->op), dtype_name(d));
    return result_fits(in, d) || fail(v, "%%%u: %s of %s gives no %s", i, op_name(in->op),
                                      dtype_name(d), dtype_name(in->dtype));
}

// Operands exist, come first, and have no higher level or stage. Sets what depends on them.
static bool
check_operands(struct verifier *v, uint32_t i, const struct inst *in, uint32_t least)
{
    const uint32_t operand[3] = {in->a, in->b, in->c};
    for (uint32_t j = 0; j < 3; j++) {
        uint32_t o = operand[j];
        if (!o && j < least)
            return fail(v, "%%%u: operand %u of %s is missing", i, j, op_name(in->op));
        if (!o)
            continue;
        if (o >= i)
            return fail(v, "%%%u: operand %%%u does not come before it", i, o);
        const struct inst *from = &v->k->inst.at[o];
        if (from->level > in->level)
            return fail(v, "%%%u: a lower level than its operand %%%u", i, o);
        if (from->stage > in->stage)
            return fail(v, "%%%u: an earlier stage than its operand %%%u", i, o);
        v->fact[i].axes |= v->fact[o].axes;
        v->fact[i].late |= v->fact[o].late;
    }
    return true;
}

static bool
check_load(struct verifier *v, uint32_t i, const struct inst *in)
{
    char what[32];
    snprintf(what, sizeof what, "%%%u", i);
    if (!check_access(v, what, in->aux, BUF_IN) || !check_operands(v, i, in, 0))
        return false;
    const struct access *a = &v->k->access.at[in->aux];
    v->fact[i].axes |= access_axes(v->k, a);
    if (in->dtype != a->dtype)
        return fail(v, "%%%u: a load of %s as %s", i, dtype_name(a->dtype), dtype_name(in->dtype));
    if (in->a && dtype_of(v, in->a) != DT_i64)
        return fail(v, "%%%u: the extra index %%%u is no i64", i, in->a);
    if ((in->b && dtype_of(v, in->b) != DT_bool) || (in->c && dtype_of(v, in->c) != DT_bool))
        return fail(v, "%%%u: the mask or the check is no bool", i);
    return in->a || in->b || in->c || check_reach(v, what, a);
}

static bool
check_result(struct verifier *v, uint32_t i, const struct inst *in)
{
    const struct kernel *k = v->k;
    if (in->aux >= k->acc.n)
        return fail(v, "%%%u: no accumulator %u", i, in->aux);
    const struct acc *a = &k->acc.at[in->aux];
    bool product = k->cls == CLASS_CONTRACT && in->aux == k->contraction.acc;
    bool scatter = k->cls == CLASS_SCATTER;
    uint32_t from[3] = {product ? k->contraction.a : a->value,
                        product ? k->contraction.b : a->value, a->value};
    if (scatter) {
        from[1] = k->scatter.init;
        from[2] = k->scatter.index;
    }
    for (int j = 0; j < 2 + scatter; j++) {
        if (!from[j] || from[j] >= i)
            return fail(v, "%%%u: what accumulator %u reduces does not come before", i, in->aux);
        v->fact[i].axes |= v->fact[from[j]].axes;
        v->fact[i].late |= v->fact[from[j]].late;
    }
    bool position = a->op < OP_COUNT && op_gives_position(a->op);
    if (in->dtype != (position ? DT_i64 : a->dtype))
        return fail(v, "%%%u: the result of accumulator %u has another dtype", i, in->aux);
    if (scatter && k->scatter.axis < npar(k))
        v->fact[i].axes |= (uint16_t)(1u << k->scatter.axis);
    if (a->scope == ALONG_R)
        v->fact[i].axes |= red_axes(k);
    else
        v->fact[i].axes = a->scope == OVER_R ? (uint16_t)(v->fact[i].axes & ~red_axes(k)) : 0;
    if (k->cls == CLASS_SORT && npar(k))
        v->fact[i].axes |= (uint16_t)(1u << (npar(k) - 1));
    v->fact[i].late |= a->scope == OVER_P;
    if (a->scope == OVER_R && (in->level < LEVEL_ROW || in->stage <= a->stage))
        return fail(v, "%%%u: accumulator %u is finished per row, from stage %u on", i, in->aux,
                    a->stage + 1u);
    for (uint32_t j = 1; j < i && a->scope == ALONG_R; j++)
        if (k->inst.at[j].op == OP_result && k->inst.at[j].aux == in->aux)
            return fail(v, "%%%u: scan %u has another result, and would move on twice", i,
                        in->aux);
    if (a->scope == ALONG_R && (in->level != LEVEL_ELEM || in->stage != a->stage))
        return fail(v, "%%%u: scan %u gives an element in stage %u", i, in->aux, a->stage);
    return true;
}

static bool
check_table(struct verifier *v, uint32_t i, const struct inst *in)
{
    const struct inst *table = &v->k->inst.at[in->b < i ? in->b : 0];
    if (table->op != OP_literal || table->bits >= TABLE_COUNT)
        return fail(v, "%%%u: operand b of lookup names no table", i);
    return in->dtype == table_named(table->bits).dtype ||
           fail(v, "%%%u: the table's entries are no %s", i, dtype_name(in->dtype));
}

static bool
check_kind(struct verifier *v, uint32_t i, const struct inst *in)
{
    const struct kernel *k = v->k;
    if (in->op == OP_load)
        return check_load(v, i, in);
    if (in->op == OP_result)
        return check_result(v, i, in);
    if (in->op == OP_index) {
        if (in->aux >= k->affine.n || in->dtype != DT_i64)
            return fail(v, "%%%u: an index is an i64 of an affine function", i);
        v->fact[i].axes = access_axes(k, &k->affine.at[in->aux]);
        return true;
    }
    if (in->op == OP_literal) {
        uint8_t bits = dtype_table[in->dtype].bits;
        return !((bits < 64 && in->bits >> bits) || (in->dtype == DT_bool && in->bits > 1)) ||
               fail(v, "%%%u: a literal of more bits than its dtype", i);
    }
    if (in->op == OP_checked)
        return check_operands(v, i, in, 2) &&
               ((in->dtype == dtype_of(v, in->a) && dtype_of(v, in->b) == DT_bool) ||
                fail(v, "%%%u: checked gives a's dtype and takes a bool b", i));
    if (in->op == OP_lookup && !check_table(v, i, in))
        return false;
    if (!op_is(in->op, OPK_ELEM) && !op_is(in->op, OPK_BODY))
        return fail(v, "%%%u: %s is no instruction", i, op_name(in->op));
    return check_operands(v, i, in, op_table[in->op].arity) && check_dtypes(v, i, in);
}

static bool
check_inst(struct verifier *v, uint32_t i)
{
    const struct inst *in = &v->k->inst.at[i];
    if (in->op == OP_none || in->op >= OP_COUNT)
        return fail(v, "%%%u: no op", i);
    if (in->dtype == DT_NONE || in->dtype >= DT_COUNT || in->level > LEVEL_ELEM)
        return fail(v, "%%%u: no dtype or level", i);
    if (!check_kind(v, i, in))
        return false;
    if (in->level < level_of(v->k, v->fact[i].axes))
        return fail(v, "%%%u: its level is below that of the axes it depends on", i);
    if (v->fact[i].late && in->level != LEVEL_ONCE)
        return fail(v, "%%%u: a result over the whole of P is used inside the domain", i);
    return true;
}

// ---- sinks

static bool
check_acc(struct verifier *v, uint32_t i)
{
    const struct kernel *k = v->k;
    const struct acc *a = &k->acc.at[i];
    bool orders = k->cls == CLASS_SORT;
    bool moves = k->cls == CLASS_SCATTER && a->op < OP_COUNT && !op_table[a->op].combine;
    enum op_kind kind = k->cls == CLASS_SCATTER ? OPK_SCATTER
                        : orders                ? OPK_ORDER
                        : a->scope == ALONG_R   ? OPK_SCAN
                                                : OPK_REDUCE;
    if (a->op >= OP_COUNT || a->scope > ALONG_R || !op_is(a->op, kind))
        return fail(v, "accumulator %u: not the reduction, scan, order or scatter that its class "
                       "asks for", i);
    if (a->dtype == DT_NONE || a->dtype >= DT_COUNT ||
        (dtype_is_half(a->dtype) && !orders && !moves))
        return fail(v, "accumulator %u: accumulates in no dtype that it may", i);
    if (a->scope != OVER_P && !k->nred)
        return fail(v, "accumulator %u: reduces over R, which has no axes", i);
    if (k->cls == CLASS_CONTRACT && i == k->contraction.acc)
        return true;
    if (!a->value || a->value >= k->inst.n)
        return fail(v, "accumulator %u: no value", i);
    const struct inst *in = &k->inst.at[a->value];
    if (in->dtype != a->dtype)
        return fail(v, "accumulator %u: %%%u is %s, not %s", i, a->value, dtype_name(in->dtype),
                    dtype_name(a->dtype));
    if (in->stage > a->stage)
        return fail(v, "accumulator %u: %%%u is of a later stage", i, a->value);
    if (in->level != (a->scope == OVER_P ? LEVEL_ROW : LEVEL_ELEM))
        return fail(v, "accumulator %u: %%%u has the wrong level to be reduced", i, a->value);
    return true;
}

static bool
check_contraction(struct verifier *v)
{
    const struct kernel *k = v->k;
    const struct contraction *c = &k->contraction;
    if (k->cls != CLASS_CONTRACT)
        return true;
    if (k->nred != 1 || npar(k) < 2)
        return fail(v, "a contraction has the axes m and n and one R axis");
    if (c->acc >= k->acc.n || !c->a || c->a >= k->inst.n || !c->b || c->b >= k->inst.n)
        return fail(v, "a contraction without factors or accumulator");
    const struct acc *a = &k->acc.at[c->acc];
    if (a->op != OP_sum || a->scope != OVER_R || a->stage || a->value)
        return fail(v, "a contraction's accumulator is a sum over R of stage 0 without a value");
    const uint32_t factor[2] = {c->a, c->b};
    for (uint32_t j = 0; j < 2; j++) {
        const struct inst *in = &k->inst.at[factor[j]];
        uint32_t other = npar(k) - 1 - j; // a does not depend on n, nor b on m
        if (in->dtype != a->dtype || in->stage)
            return fail(v, "factor %%%u: not of stage 0 and the accumulator's dtype", factor[j]);
        if (v->fact[factor[j]].axes >> other & 1)
            return fail(v, "factor %%%u depends on axis p%u", factor[j], other);
    }
    return true;
}

static bool
check_order(struct verifier *v)
{
    const struct kernel *k = v->k;
    if (k->cls != CLASS_SORT)
        return true;
    if (k->nred != 1 || !npar(k) || !k->acc.n || k->nstage > 2)
        return fail(v, "an order has the axis j, one R axis, results, and no stage behind them");
    uint32_t j = npar(k) - 1;
    const struct acc *first = &k->acc.at[0];
    if (k->axis[j].extent > k->axis[j + 1].extent)
        return fail(v, "an order of %" PRId64 " elements of which %" PRId64 " are asked for",
                    k->axis[j + 1].extent, k->axis[j].extent);
    if (v->fact[first->value].axes >> j & 1)
        return fail(v, "what is put in order, %%%u, depends on axis p%u", first->value, j);
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        if (a->value != first->value || a->descending != first->descending || a->stage ||
            a->scope != OVER_R)
            return fail(v, "accumulator %u: not the order over R that accumulator 0 is", i);
    }
    return true;
}

static bool
check_scatter(struct verifier *v)
{
    const struct kernel *k = v->k;
    const struct scatter *s = &k->scatter;
    if (k->cls != CLASS_SCATTER)
        return true;
    if (k->acc.n != 1 || s->acc || s->axis >= npar(k) || !k->nred)
        return fail(v, "a scatter has one accumulator, an axis of P to scatter along, and R axes");
    const struct acc *a = &k->acc.at[0];
    if (!s->init || s->init >= k->inst.n || !s->index || s->index >= k->inst.n || a->stage ||
        a->scope != OVER_R)
        return fail(v, "a scatter without a start or an index, or not of stage 0");
    const struct inst *init = &k->inst.at[s->init], *index = &k->inst.at[s->index];
    if (init->dtype != a->dtype || init->stage || init->level == LEVEL_ELEM)
        return fail(v, "%%%u: the start of a scatter has its dtype, stage 0 and no point of R",
                    s->init);
    if (index->dtype != DT_i64 || index->stage || index->level != LEVEL_ELEM)
        return fail(v, "%%%u: the index of a scatter is an i64 of stage 0, level elem", s->index);
    if ((v->fact[s->index].axes | v->fact[a->value].axes) >> s->axis & 1)
        return fail(v, "the index or the value depends on the axis that is scattered along");
    return true;
}

// No two points store to one element: sorted by size, each stride steps over all that the smaller
// ones reach. (Sufficient for arbitrary strides, and true of every part of a dense output.)
static bool
stores_once(const struct kernel *k, const struct access *a, uint32_t naxis)
{
    __int128 reach = 0;
    uint16_t left = 0;
    for (uint32_t i = 0; i < naxis; i++) {
        if (!k->axis[i].extent)
            return true;
        if (k->axis[i].extent > 1)
            left = (uint16_t)(left | 1u << i);
    }
    while (left) {
        uint32_t least = 0;
        __int128 size = -1;
        for (uint32_t i = 0; i < naxis; i++) {
            __int128 s = a->stride[i] < 0 ? -(__int128)a->stride[i] : a->stride[i];
            if (left >> i & 1 && (size < 0 || s < size)) {
                size = s;
                least = i;
            }
        }
        if (size <= reach)
            return false;
        reach += size * (k->axis[least].extent - 1);
        left = (uint16_t)(left & ~(1u << least));
    }
    return true;
}

static bool
check_store(struct verifier *v, uint32_t i)
{
    const struct kernel *k = v->k;
    const struct store *s = &k->store.at[i];
    char what[32];
    snprintf(what, sizeof what, "store %u", i);
    if (!check_access(v, what, s->access, BUF_OUT))
        return false;
    if (!s->value || s->value >= k->inst.n || s->level > LEVEL_ELEM)
        return fail(v, "%s: no value or level", what);
    const struct inst *in = &k->inst.at[s->value];
    const struct access *a = &k->access.at[s->access];
    if (in->dtype != a->dtype)
        return fail(v, "%s: a %s into a buffer of %s", what, dtype_name(in->dtype),
                    dtype_name(a->dtype));
    if (in->level > s->level || in->stage > s->stage)
        return fail(v, "%s: comes before its value", what);
    if (v->fact[s->value].late && s->level != LEVEL_ONCE)
        return fail(v, "%s: a result over the whole of P is stored inside the domain", what);
    if (level_of(k, access_axes(k, a)) > s->level)
        return fail(v, "%s: its level is below that of the axes it moves along", what);
    uint32_t naxis = s->level == LEVEL_ELEM ? k->naxis : s->level == LEVEL_ROW ? npar(k) : 0;
    if (!stores_once(k, a, naxis))
        return fail(v, "%s: several points store to one element", what);
    return check_reach(v, what, a);
}

static bool
check_stages(struct verifier *v)
{
    const struct kernel *k = v->k;
    uint8_t last = 0;
    for (uint32_t i = 1; i < k->inst.n; i++)
        last = k->inst.at[i].stage > last ? k->inst.at[i].stage : last;
    for (uint32_t i = 0; i < k->acc.n; i++)
        last = k->acc.at[i].stage > last ? k->acc.at[i].stage : last;
    for (uint32_t i = 0; i < k->store.n; i++)
        last = k->store.at[i].stage > last ? k->store.at[i].stage : last;
    if (last >= MAX_STAGES)
        return fail(v, "stage %u of at most %d", last, MAX_STAGES);
    return k->nstage == last + 1 || fail(v, "nstage is %u and the last stage %u", k->nstage, last);
}

static bool
check_body(struct verifier *v)
{
    const struct kernel *k = v->k;
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (!check_inst(v, i))
            return false;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (!check_acc(v, i))
            return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (!check_store(v, i))
            return false;
    return check_contraction(v) && check_order(v) && check_scatter(v) && check_stages(v);
}

bool
kernel_verify(const struct kernel *k, struct diag *d)
{
    struct diag mine = {0};
    struct verifier v = {.k = k, .d = &mine};
    if (check_domain(&v)) {
        v.fact = xcalloc(k->inst.n, sizeof *v.fact);
        check_body(&v);
        xfree(v.fact);
    }
    return mine.code == DIAG_OK || diag_set(d, mine.code, "%s", mine.text);
}
