// expand.c: the rewrite of a kernel body into primitive rows, and the exact evaluator on top of it.
//
// The body is a straight line, so the rewrite is one walk: each instruction is copied with its
// operands renumbered, or replaced by what its rule appends. Everything appended is hash-consed, so
// that literals and common parts (the exp of two sigmoids of one value) occur once, and folded
// where all operands are literals, with the very evaluator that the kernel interpreter uses; so
// folding cannot change a bit. New instructions take the greatest level and stage of their
// operands.
//
// Rules nest their calls, and C leaves the order of such calls to the compiler. So the body is put
// in order at the end, by its data flow alone: each original instruction in turn, behind those of
// its operands that have no place yet, first operand first. What nothing needs falls out.
#include "ir/expand_rules.h"

#include "ir/base/check.h"
#include "ir/base/mem.h"
#include "ir/tables.h"

#include <string.h>

static expand_rule *const rules[OP_COUNT] = {
    [OP_sign] = expand_sign,         [OP_rsqrt] = expand_rsqrt,
    [OP_reciprocal] = expand_reciprocal, [OP_isnan] = expand_isnan,
    [OP_isinf] = expand_isinf,       [OP_isfinite] = expand_isfinite,
    [OP_shl] = expand_shl,           [OP_shr] = expand_shr,
    [OP_clamp] = expand_clamp,       [OP_fma] = expand_fma,
    [OP_copysign] = expand_copysign,
    [OP_floordiv] = expand_floordiv, [OP_mod] = expand_mod,
    [OP_fmod] = expand_fmod,         [OP_exp] = expand_exp,
    [OP_sigmoid] = expand_sigmoid,   [OP_tanh] = expand_tanh,
    [OP_erf] = expand_erf,           [OP_log] = expand_log,
    [OP_sin] = expand_sin,           [OP_cos] = expand_cos,
    [OP_pow] = expand_pow,           [OP_gelu] = expand_gelu,
    [OP_gelu_tanh] = expand_gelu_tanh,
    [OP_exp2] = expand_exp2,         [OP_expm1] = expand_expm1,
    [OP_sinh] = expand_sinh,         [OP_cosh] = expand_cosh,
    [OP_log2] = expand_log2,         [OP_log10] = expand_log10,
    [OP_log1p] = expand_log1p,       [OP_tan] = expand_tan,
    [OP_asin] = expand_asin,         [OP_acos] = expand_acos,
    [OP_atan] = expand_atan,         [OP_atan2] = expand_atan2,
    [OP_asinh] = expand_asinh,       [OP_acosh] = expand_acosh,
    [OP_atanh] = expand_atanh,       [OP_cbrt] = expand_cbrt,
    [OP_erfc] = expand_erfc,
};

static bool
same_inst(const struct inst *p, const struct inst *q)
{
    return p->op == q->op && p->dtype == q->dtype && p->stage == q->stage &&
           p->level == q->level && p->a == q->a && p->b == q->b && p->c == q->c &&
           p->aux == q->aux && p->bits == q->bits;
}

// The instruction as given, or the equal one that exists.
static val
x_inst(struct expander *x, const struct inst *in)
{
    uint64_t h = hash_mix(in->op | (uint64_t)in->dtype << 16, in->a | (uint64_t)in->b << 32);
    h = hash_mix(hash_mix(h, in->c | (uint64_t)in->aux << 32), in->bits);
    uint32_t at = 0, id;
    while ((id = map_next(&x->seen, h, &at)))
        if (same_inst(&x->k->inst.at[id], in))
            return id;
    vec_push(&x->k->inst, *in);
    map_add(&x->seen, h, x->k->inst.n - 1);
    return x->k->inst.n - 1;
}

val
x_bits(struct expander *x, uint8_t dtype, uint64_t bits)
{
    return x_inst(x, &(struct inst){.op = OP_literal, .dtype = dtype, .bits = bits,
                                    .level = LEVEL_ONCE, .origin = x->origin});
}

val
x_num(struct expander *x, uint8_t dtype, double v)
{
    return x_bits(x, dtype, scalar_from_double(dtype, v));
}

static bool
is_literal(const struct expander *x, val a)
{
    return !a || x->k->inst.at[a].op == OP_literal;
}

// An instruction whose result dtype is known: level and stage follow from the operands.
static val
derived(struct expander *x, uint16_t op, uint8_t dtype, uint32_t aux, val a, val b, val c)
{
    const struct inst *at = x->k->inst.at; // at[0], the dummy, is level ONCE, stage 0
    if (is_literal(x, a) && is_literal(x, b) && is_literal(x, c))
        return x_bits(x, dtype, eval_primitive(op, at[op == OP_where ? b : a].dtype, dtype,
                                               at[a].bits, at[b].bits, at[c].bits));
    if (op == OP_where && is_literal(x, a))
        return at[a].bits ? b : c;
    struct inst in = {.op = op, .dtype = dtype, .a = a, .b = b, .c = c, .aux = aux,
                      .origin = x->origin};
    const val operand[3] = {a, b, c};
    for (uint32_t i = 0; i < 3; i++) {
        const struct inst *o = &at[operand[i]];
        in.level = o->level > in.level ? o->level : in.level;
        in.stage = o->stage > in.stage ? o->stage : in.stage;
    }
    return x_inst(x, &in);
}

val
x_op(struct expander *x, uint16_t op, val a, val b, val c)
{
    uint8_t rule = op_table[op].rule, dtype = x_dtype(x, op == OP_where ? b : a);
    if (rule == DTR_COMPARE || op == OP_unordered_raw)
        dtype = DT_bool;
    return derived(x, op, dtype, 0, a, b, c);
}

val
x_where_rarely(struct expander *x, val a, val b, val c)
{
    return derived(x, OP_where, x_dtype(x, b), WHERE_RARELY, a, b, c);
}

val
x_bitcast(struct expander *x, uint8_t to, val a)
{
    return x_dtype(x, a) == to ? a : derived(x, OP_bitcast, to, 0, a, 0, 0);
}

val
x_bitcast_number(struct expander *x, uint8_t to, val a)
{
    return derived(x, OP_bitcast, to, BITCAST_NUMBER, a, 0, 0);
}

val
x_cast(struct expander *x, uint8_t to, val a)
{
    return x_dtype(x, a) == to ? a : derived(x, OP_cast, to, 0, a, 0, 0);
}

val
x_lookup(struct expander *x, uint32_t table, val index)
{
    val name = x_num(x, x_dtype(x, index), table);
    return derived(x, OP_lookup, table_named(table).dtype, 0, index, name, 0);
}

val
x_poly(struct expander *x, val z, const double *c, uint32_t n)
{
    uint8_t dtype = x_dtype(x, z);
    val p = x_num(x, dtype, c[n - 1]);
    for (uint32_t i = n - 1; i-- > 0;)
        p = x_fma(x, p, z, x_num(x, dtype, c[i]));
    return p;
}

val
x_poly_by_pairs(struct expander *x, val z, val z2, const double *c, uint32_t n)
{
    uint8_t dtype = x_dtype(x, z);
    val p = 0;
    for (uint32_t i = (n - 1) / 2 + 1; i-- > 0;) {
        val pair = x_num(x, dtype, c[2 * i]);
        if (2 * i + 1 < n)
            pair = x_fma(x, x_num(x, dtype, c[2 * i + 1]), z, pair);
        p = p ? x_fma(x, p, z2, pair) : pair;
    }
    return p;
}

val
x_poly_by_fours(struct expander *x, val z, val z2, const double *c, uint32_t n)
{
    val z4 = x_mul(x, z2, z2), p = 0;
    for (uint32_t i = (n - 1) / 4 + 1; i-- > 0;) {
        uint32_t left = n - 4 * i;
        val four = x_poly_by_pairs(x, z, z2, c + 4 * i, left < 4 ? left : 4);
        p = p ? x_fma(x, p, z4, four) : four;
    }
    return p;
}

static val
rewrite(struct expander *x, const struct inst *in)
{
    if (op_table[in->op].flags & OPF_EXPAND) {
        CHECK(rules[in->op], "%s has no expansion", op_name(in->op));
        return rules[in->op](x, in->a, in->b, in->c);
    }
    if (in->op == OP_cast)
        return expand_cast(x, in->dtype, in->a);
    return x_inst(x, in);
}

// Appends the expansion of src's instructions to x. Returns their new numbers (xfree them).
static uint32_t *
expand_body(struct expander *x, const struct inst *src, uint32_t n)
{
    uint32_t *to = xcalloc(n ? n : 1, sizeof *to);
    vec_push(&x->k->inst, (struct inst){0});
    for (uint32_t i = 1; i < n; i++) {
        struct inst in = src[i];
        in.a = to[in.a];
        in.b = to[in.b];
        in.c = to[in.c];
        x->origin = in.origin;
        to[i] = rewrite(x, &in);
    }
    return to;
}

typedef VEC(struct inst) inst_vec;

// Appends instruction `root` of src behind its operands; place: the new numbers, 0 = none yet.
static void
put_in_order(const struct inst *src, uint32_t root, uint32_t *place, inst_vec *out)
{
    VEC(uint32_t) waiting = {0};
    vec_push(&waiting, root);
    while (waiting.n) {
        uint32_t i = waiting.at[waiting.n - 1], next = 0;
        const uint32_t operand[3] = {src[i].a, src[i].b, src[i].c};
        for (uint32_t j = 0; j < 3 && !next; j++)
            next = place[operand[j]] ? 0 : operand[j];
        if (next) {
            vec_push(&waiting, next);
            continue;
        }
        waiting.n--;
        if (!i || place[i])
            continue;
        struct inst in = src[i];
        in.a = place[in.a];
        in.b = place[in.b];
        in.c = place[in.c];
        vec_push(out, in);
        place[i] = out->n - 1;
    }
    vec_free(&waiting);
}

// Orders k's instructions and brings the numbers in to[1 .. n-1], its roots, up to date.
static void
order_body(struct kernel *k, uint32_t *to, uint32_t n)
{
    inst_vec ordered = {0};
    uint32_t *place = xcalloc(k->inst.n, sizeof *place);
    vec_push(&ordered, (struct inst){0});
    for (uint32_t i = 1; i < n; i++) {
        put_in_order(k->inst.at, to[i], place, &ordered);
        to[i] = place[to[i]];
    }
    xfree(place);
    vec_free(&k->inst);
    k->inst.at = ordered.at;
    k->inst.n = ordered.n;
    k->inst.cap = ordered.cap;
}

void
kernel_expand(struct kernel *k)
{
    struct inst *src = k->inst.at;
    uint32_t n = k->inst.n;
    k->inst.at = NULL;
    k->inst.n = k->inst.cap = 0;
    struct expander x = {.k = k};
    uint32_t *to = expand_body(&x, src, n);
    order_body(k, to, n);
    for (uint32_t i = 0; i < k->acc.n; i++)
        k->acc.at[i].value = to[k->acc.at[i].value];
    for (uint32_t i = 0; i < k->store.n; i++)
        k->store.at[i].value = to[k->store.at[i].value];
    if (k->cls == CLASS_SCATTER) {
        k->scatter.init = to[k->scatter.init];
        k->scatter.index = to[k->scatter.index];
    }
    if (k->cls == CLASS_CONTRACT) {
        k->contraction.a = to[k->contraction.a];
        k->contraction.b = to[k->contraction.b];
    }
    map_free(&x.seen);
    xfree(to);
    xfree(src);
}

static bool
is_narrow(uint8_t dtype)
{
    return dtype_is_float(dtype) && dtype_table[dtype].bits < 32;
}

uint64_t
eval_exact(uint16_t op, uint8_t dtype, uint8_t to, const uint64_t *in)
{
    if (!(op_table[op].flags & OPF_EXPAND))
        return eval_primitive(op, dtype, to, in[0], op_table[op].arity > 1 ? in[1] : 0,
                              op_table[op].arity > 2 ? in[2] : 0);
    struct kernel k = {0};
    struct expander x = {.k = &k};
    vec_push(&k.inst, (struct inst){0});
    val v[3] = {0};
    for (uint32_t i = 0; i < op_table[op].arity; i++)
        v[i] = x_cast(&x, is_narrow(dtype) ? DT_f32 : dtype, x_bits(&x, dtype, in[i]));
    val r = rules[op](&x, v[0], v[1], v[2]);
    if (is_narrow(dtype) && x_dtype(&x, r) == DT_f32)
        r = x_cast(&x, dtype, r);
    uint64_t bits = k.inst.at[r].bits;
    map_free(&x.seen);
    kernel_free_body(&k);
    return bits;
}
