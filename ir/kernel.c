// kernel.c: the kernel's text for people and goldens, and the small services around its body.
// The text is complete: all that kernel.h describes is in it, in the order of the arrays, so two
// kernels with the same text are the same kernel. It has no addresses and is never read back.
//
//   kernel fused_softmax_0: row, 3 stages
//     domain p0 < 4096 | r0 < 16384
//     b0 in f32 elements 0..67108863
//     %1 = load @0 b0[16384*p0 + r0] : f32, stage 0, elem
//     acc0 = max_reduce %1 over r : f32, stage 0
//     store @1 b1[16384*p0 + r0] = %6 : stage 2, elem
#include "ir/kernel.h"

#include "ir/base/str.h"
#include "ir/literal.h"

#include <inttypes.h>
#include <string.h>

const char *const kernel_class_name[CLASS_COUNT] = {
    [CLASS_POINTWISE] = "pointwise", [CLASS_ROW] = "row",           [CLASS_COLUMN] = "column",
    [CLASS_SPLIT] = "split",         [CLASS_CONTRACT] = "contract", [CLASS_SCAN] = "scan",
    [CLASS_SORT] = "sort",           [CLASS_SCATTER] = "scatter",
};

static const char *const scope_words[] = {
    [OVER_R] = "over r", [OVER_P] = "over p", [ALONG_R] = "along r"};

static const char *const level_name[] = {
    [LEVEL_ONCE] = "once", [LEVEL_ROW] = "row", [LEVEL_ELEM] = "elem"};

void
kernel_free_body(struct kernel *k)
{
    vec_free(&k->inst);
    vec_free(&k->acc);
    vec_free(&k->access);
    vec_free(&k->affine);
    vec_free(&k->store);
    vec_free(&k->buffers);
}

static void *
copy_array(const void *at, uint32_t n, size_t size)
{
    void *p = xmalloc(n * size);
    if (n)
        memcpy(p, at, n * size);
    return p;
}

#define COPY_VEC(v) ((v).at = copy_array((v).at, (v).n, sizeof *(v).at), (v).cap = (v).n)

void
kernel_copy(struct kernel *to, const struct kernel *from)
{
    *to = *from;
    COPY_VEC(to->inst);
    COPY_VEC(to->acc);
    COPY_VEC(to->access);
    COPY_VEC(to->affine);
    COPY_VEC(to->store);
    COPY_VEC(to->buffers);
}

int64_t
kernel_points(const struct kernel *k, enum axis_kind kind)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < k->naxis; i++)
        if (k->axis[i].kind == kind)
            n *= k->axis[i].extent;
    return n;
}

static const char *
level_text(uint8_t level)
{
    return level <= LEVEL_ELEM ? level_name[level] : "?";
}

// p0, p1 … then r0, r1 …
static void
print_axis(const struct kernel *k, uint32_t i, struct str *out)
{
    uint32_t npar = (uint32_t)(k->naxis - k->nred);
    str_printf(out, i < npar ? "p%u" : "r%u", i < npar ? i : i - npar);
}

static void
print_term(const struct kernel *k, int64_t stride, uint32_t axis, bool first, struct str *out)
{
    bool negative = stride < 0;
    if (first)
        str_add(out, negative ? "-" : "");
    else
        str_add(out, negative ? " - " : " + ");
    uint64_t magnitude = negative ? 0 - (uint64_t)stride : (uint64_t)stride;
    if (magnitude != 1)
        str_printf(out, "%" PRIu64 "*", magnitude);
    print_axis(k, axis, out);
}

// 128*p0 + r0 + 5
static void
print_affine(const struct kernel *k, const struct access *a, struct str *out)
{
    bool first = true;
    for (uint32_t i = 0; i < k->naxis; i++) {
        if (!a->stride[i])
            continue;
        print_term(k, a->stride[i], i, first, out);
        first = false;
    }
    if (first)
        str_printf(out, "%" PRId64, a->base);
    else if (a->base)
        str_printf(out, a->base < 0 ? " - %" PRIu64 : " + %" PRIu64,
                   a->base < 0 ? 0 - (uint64_t)a->base : (uint64_t)a->base);
}

static void
print_access(const struct kernel *k, uint32_t i, struct str *out)
{
    if (i >= k->access.n) {
        str_printf(out, "@%u (no such access)", i);
        return;
    }
    const struct access *a = &k->access.at[i];
    str_printf(out, "@%u b%u[", i, a->buffer);
    print_affine(k, a, out);
    str_add(out, "]");
    if (a->buffer >= k->buffers.n || k->buffers.at[a->buffer].dtype != a->dtype)
        str_printf(out, " as %s", dtype_name(a->dtype));
}

static void
print_load(const struct kernel *k, const struct inst *in, struct str *out)
{
    print_access(k, in->aux, out);
    if (in->a)
        str_printf(out, " at %%%u*%" PRId64, in->a, (int64_t)in->bits);
    if (in->b)
        str_printf(out, " if %%%u", in->b);
    if (in->c)
        str_printf(out, " check %%%u", in->c);
}

static void
print_inst(const struct kernel *k, uint32_t i, struct str *out)
{
    const struct inst *in = &k->inst.at[i];
    str_printf(out, "  %%%u = %s ", i, in->op < OP_COUNT && in->op ? op_name(in->op) : "?");
    if (in->op == OP_literal) {
        literal_print(in->dtype, in->bits, out);
    } else if (in->op == OP_load) {
        print_load(k, in, out);
    } else if (in->op == OP_index) {
        str_printf(out, "f%u ", in->aux);
        if (in->aux < k->affine.n)
            print_affine(k, &k->affine.at[in->aux], out);
    } else if (in->op == OP_result) {
        str_printf(out, "acc%u", in->aux);
    } else {
        const uint32_t operand[3] = {in->a, in->b, in->c};
        for (uint32_t j = 0; j < 3 && operand[j]; j++)
            str_printf(out, "%s%%%u", j ? ", " : "", operand[j]);
    }
    str_printf(out, " : %s, stage %u, %s", dtype_name(in->dtype), in->stage,
               level_text(in->level));
    if (in->origin)
        str_printf(out, " #%u", in->origin);
    str_addc(out, '\n');
}

static void
print_domain(const struct kernel *k, struct str *out)
{
    str_add(out, "  domain");
    for (uint32_t i = 0; i < k->naxis; i++) {
        bool first_red = k->axis[i].kind == AXIS_R && (i == 0 || k->axis[i - 1].kind == AXIS_P);
        str_add(out, first_red ? " | " : i ? ", " : " ");
        print_axis(k, i, out);
        str_printf(out, " < %" PRId64, k->axis[i].extent);
    }
    str_add(out, k->naxis ? "\n" : " one point\n");
}

static void
print_sinks(const struct kernel *k, struct str *out)
{
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        str_printf(out, "  acc%u = %s", i, a->op < OP_COUNT && a->op ? op_name(a->op) : "?");
        if (a->value)
            str_printf(out, " %%%u", a->value);
        str_printf(out, "%s %s : %s, stage %u", a->descending ? " descending" : "",
                   a->scope <= ALONG_R ? scope_words[a->scope] : "?", dtype_name(a->dtype),
                   a->stage);
        if (a->origin)
            str_printf(out, " #%u", a->origin);
        str_addc(out, '\n');
    }
    if (k->cls == CLASS_SCATTER) {
        str_printf(out, "  scatter acc%u from %%%u where %%%u is ", k->scatter.acc,
                   k->scatter.init, k->scatter.index);
        print_axis(k, k->scatter.axis, out);
        str_addc(out, '\n');
    }
    if (k->cls == CLASS_CONTRACT)
        str_printf(out, "  contract %%%u * %%%u into acc%u\n", k->contraction.a, k->contraction.b,
                   k->contraction.acc);
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct store *s = &k->store.at[i];
        str_add(out, "  store ");
        print_access(k, s->access, out);
        str_printf(out, " = %%%u : stage %u, %s\n", s->value, s->stage, level_text(s->level));
    }
}

void
kernel_print(const struct kernel *k, struct str *out)
{
    str_printf(out, "kernel %s: %s, %u stage%s\n", k->name ? k->name : "?",
               k->cls < CLASS_COUNT ? kernel_class_name[k->cls] : "?", k->nstage,
               k->nstage == 1 ? "" : "s");
    if (k->naxis > MAX_AXES || k->nred > k->naxis) {
        str_printf(out, "  %u axes, %u of them reduced\n", k->naxis, k->nred);
        return;
    }
    print_domain(k, out);
    for (uint32_t i = 0; i < k->buffers.n; i++) {
        const struct kernel_buffer *b = &k->buffers.at[i];
        str_printf(out, "  b%u %s %s elements %" PRId64 "..%" PRId64 "\n", i,
                   b->by_value ? "value" : b->role == BUF_IN ? "in" : "out",
                   dtype_name(b->dtype), b->span_lo, b->span_hi);
    }
    for (uint32_t i = 1; i < k->inst.n; i++)
        print_inst(k, i, out);
    print_sinks(k, out);
}
