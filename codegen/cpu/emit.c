// emit.c: the emitter's text: functions, blocks, loops, numbers, types and constants.
//
// A function is written in two parts. The body grows as the class emits; the head (argument loads,
// numbers, addresses that never change) grows beside it and is put in front at the end: both begin
// the entry block.
// Every number that the text must not contain is interned in e->num and loaded in the entry block,
// so numbers and buffer pointers (%bK) may be named anywhere. What a function does not use, LLVM
// drops.
//
// Labels and values are numbered by one counter: equal kernels give equal text.
#include "codegen/cpu/emit_parts.h"

#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/expand.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- text

static const char *
vtext(struct emitter *e, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    char *p = arena_alloc(&e->mem, (size_t)n + 1);
    if ((size_t)n < sizeof small)
        memcpy(p, small, (size_t)n + 1);
    else
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

const char *
emit_text(struct emitter *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = vtext(e, fmt, ap);
    va_end(ap);
    return s;
}

static const char *
assign(struct emitter *e, struct str *where, const char *right)
{
    const char *name = emit_text(e, "%%v%u", ++e->fresh);
    str_add(where, "  ");
    str_add(where, name);
    str_add(where, " = ");
    str_add(where, right);
    str_addc(where, '\n');
    return name;
}

const char *
emit_op(struct emitter *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *right = vtext(e, fmt, ap);
    va_end(ap);
    return assign(e, &e->body, right);
}

const char *
emit_entry_op(struct emitter *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *right = vtext(e, fmt, ap);
    va_end(ap);
    return assign(e, &e->head, right);
}

void
emit_line(struct emitter *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *line = vtext(e, fmt, ap);
    va_end(ap);
    str_add(&e->body, "  ");
    str_add(&e->body, line);
    str_addc(&e->body, '\n');
}

const char *
emit_label(struct emitter *e, const char *stem)
{
    return emit_text(e, "%s%u", stem, ++e->fresh);
}

void
emit_place(struct emitter *e, const char *label)
{
    str_printf(&e->body, "%s:\n", label);
    e->block = label;
    e->known.n = 0;
}

void
emit_jump(struct emitter *e, const char *label)
{
    emit_line(e, "br label %%%s", label);
}

void
emit_branch(struct emitter *e, const char *cond, const char *yes, const char *no)
{
    emit_line(e, "br i1 %s, label %%%s, label %%%s", cond, yes, no);
}

void
emit_rarely(struct emitter *e, const char *cond, const char *yes, const char *no)
{
    emit_line(e, "br i1 %s, label %%%s, label %%%s, !prof !1", cond, yes, no);
}

// ---- kernels and functions

// Kept instructions travel through the expansion as extra stores, which it renumbers.
static void
copy_and_expand(struct emitter *e, const struct kernel *k)
{
    struct kernel *c = &e->kernel;
    kernel_copy(c, k);
    uint32_t nstore = c->store.n;
    for (uint32_t i = 1; i < k->inst.n && i < 256; i++)
        if (e->sched->keep[i / 64] >> (i % 64) & 1)
            vec_push(&c->store, ((struct store){.value = i, .stage = k->inst.at[i].stage,
                                                .level = k->inst.at[i].level}));
    kernel_expand(c);
    e->kept = arena_alloc(&e->mem, c->inst.n * sizeof *e->kept);
    for (uint32_t i = nstore; i < c->store.n; i++)
        e->kept[c->store.at[i].value] = true;
    c->store.n = nstore;
}

static uint16_t
access_axes(const struct kernel *k, const struct access *x)
{
    uint16_t axes = 0;
    for (uint32_t i = 0; i < k->naxis; i++)
        if (x->stride[i])
            axes |= (uint16_t)(1u << i);
    return axes;
}

static void
find_dependences(struct emitter *e)
{
    const struct kernel *k = &e->kernel;
    uint16_t red = (uint16_t)(((1u << k->nred) - 1) << (k->naxis - k->nred));
    e->depends = arena_alloc(&e->mem, k->inst.n * sizeof *e->depends);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        uint16_t m = e->depends[in->a] | e->depends[in->b] | e->depends[in->c];
        if (in->op == OP_load)
            m |= access_axes(k, &k->access.at[in->aux]);
        if (in->op == OP_index)
            m |= access_axes(k, &k->affine.at[in->aux]);
        if (in->op == OP_result) {
            const struct acc *a = &k->acc.at[in->aux];
            uint16_t of = e->depends[a->value];
            if (k->cls == CLASS_CONTRACT && in->aux == k->contraction.acc) // has no value
                of = e->depends[k->contraction.a] | e->depends[k->contraction.b];
            if (k->cls == CLASS_SCATTER)
                of = (uint16_t)(of | e->depends[k->scatter.init] | e->depends[k->scatter.index] |
                                1u << k->scatter.axis);
            m = a->scope == OVER_P   ? 0
                : a->scope == OVER_R ? (uint16_t)(of & ~red)
                                     : of | red;
            if (k->cls == CLASS_SORT) // and along j, the last of P
                m |= (uint16_t)(1u << (k->naxis - k->nred - 1));
        }
        e->depends[i] = m;
    }
}

bool
emitter_begin(struct emitter *e, const struct kernel *k, const struct schedule *s,
              const struct target *t, struct str *text, num_vec *num, struct diag *d)
{
    *e = (struct emitter){.sched = s, .target = t, .text = text, .num = num, .diag = d};
    copy_and_expand(e, k);
    find_dependences(e);
    emit_find_low_halves(e);
    e->base = arena_alloc(&e->mem, (e->kernel.access.n + 1) * sizeof *e->base);
    return true;
}

void
emitter_end(struct emitter *e)
{
    emit_philox_functions(e);
    emit_tables(e);
    str_printf(e->text, "attributes #0 = { nounwind%s }\n!0 = !{i32 1}\n"
               "!1 = !{!\"branch_weights\", i32 1, i32 4000}\n",
               e->target->vec_bytes >= 64 ? " \"prefer-vector-width\"=\"512\"" : "");
    kernel_free_body(&e->kernel);
    vec_free(&e->num_name);
    vec_free(&e->known);
    str_free(&e->head);
    str_free(&e->body);
    arena_free(&e->mem);
}

void
emit_function(struct emitter *e, const char *name)
{
    str_printf(e->text, "define void @%s(ptr %%args, i64 %%begin, i64 %%end, ptr %%scratch) #0 {\n",
               name);
    memset(e->base, 0, (e->kernel.access.n + 1) * sizeof *e->base);
    memset(e->table_half, 0, sizeof e->table_half);
    e->head.n = e->body.n = e->known.n = 0;
    e->block = "entry";
}

void
emit_function_end(struct emitter *e)
{
    struct str *t = e->text;
    str_add(t, "entry:\n  %ptrs = load ptr, ptr %args\n"
               "  %nums.at = getelementptr i8, ptr %args, i64 8\n"
               "  %nums = load ptr, ptr %nums.at\n");
    for (uint32_t i = 0; i < e->kernel.buffers.n; i++)
        str_printf(t, "  %%b%u.at = getelementptr ptr, ptr %%ptrs, i64 %u\n"
                      "  %%b%u = load ptr, ptr %%b%u.at\n", i, i, i, i);
    for (uint32_t i = 0; i < e->num->n; i++)
        str_printf(t, "  %s.at = getelementptr i64, ptr %%nums, i64 %u\n"
                      "  %s = load i64, ptr %s.at\n", e->num_name.at[i], i, e->num_name.at[i],
                   e->num_name.at[i]);
    str_addn(t, str_text(&e->head), e->head.n);
    str_addn(t, str_text(&e->body), e->body.n);
    str_add(t, "  ret void\n}\n");
}

// ---- types and constants

const char *
emit_memory_type(struct emitter *e, uint8_t dtype, uint32_t lanes)
{
    return emit_text(e, "<%u x %s>", lanes,
                     dtype_is_half(dtype) ? "i16" : dtype_table[dtype].llvm);
}

const char *
emit_type(struct emitter *e, uint8_t dtype, uint32_t lanes)
{
    if (dtype == DT_bool)
        return emit_text(e, "<%u x i1>", lanes);
    return emit_memory_type(e, dtype, lanes);
}

const char *
emit_constant(struct emitter *e, uint8_t dtype, uint64_t bits, uint32_t lanes)
{
    (void)lanes;
    if (dtype == DT_bool)
        return bits ? "splat (i1 true)" : "zeroinitializer";
    if (bits == 0)
        return "zeroinitializer";
    if (dtype == DT_f64)
        return emit_text(e, "splat (double 0x%016llX)", (unsigned long long)bits);
    if (dtype == DT_f32) { // written as the double of equal value; a NaN's payload is shifted
        uint32_t b = (uint32_t)bits;
        float f;
        memcpy(&f, &b, sizeof f);
        double x = f;
        uint64_t wide;
        memcpy(&wide, &x, sizeof wide);
        if (f != f)
            wide = (uint64_t)(b >> 31) << 63 | 0x7ff0000000000000u |
                   (uint64_t)(b & 0x7fffffu) << 29;
        return emit_text(e, "splat (float 0x%016llX)", (unsigned long long)wide);
    }
    uint32_t width = dtype_table[dtype].bits;
    int64_t value = (int64_t)(bits << (64 - width)) >> (64 - width);
    return emit_text(e, "splat (i%u %lld)", width, (long long)value);
}

static const char *
splat(struct emitter *e, const char *elem, const char *one, uint32_t lanes)
{
    return emit_op(e, "shufflevector <1 x %s> %s, <1 x %s> poison, <%u x i32> zeroinitializer",
                   elem, one, elem, lanes);
}

static const char *
element_type(uint8_t dtype)
{
    if (dtype == DT_bool)
        return "i1";
    return dtype_is_half(dtype) ? "i16" : dtype_table[dtype].llvm;
}

const char *
emit_splat(struct emitter *e, uint8_t dtype, const char *one, uint32_t lanes)
{
    return lanes == 1 || one[0] != '%' ? one : splat(e, element_type(dtype), one, lanes);
}

const char *
emit_splat_i64(struct emitter *e, const char *scalar, uint32_t lanes)
{
    if (scalar[0] != '%')
        return emit_text(e, "splat (i64 %s)", scalar);
    const char *one = emit_op(e, "insertelement <1 x i64> poison, i64 %s, i64 0", scalar);
    return lanes == 1 ? one : splat(e, "i64", one, lanes);
}

const char *
emit_extract(struct emitter *e, uint8_t dtype, const char *v, uint32_t from, uint32_t first,
             uint32_t n)
{
    if (v[0] != '%' || (first == 0 && n == from))
        return v;
    struct str s = {0};
    for (uint32_t i = 0; i < n; i++)
        str_printf(&s, "%si32 %u", i ? ", " : "", first + i);
    const char *t = element_type(dtype);
    const char *r = emit_op(e, "shufflevector <%u x %s> %s, <%u x %s> poison, <%u x i32> <%s>",
                            from, t, v, from, t, n, str_text(&s));
    str_free(&s);
    return r;
}

const char *
emit_shuffle(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *a, const char *b,
             const uint8_t *lane)
{
    const char *t = element_type(dtype);
    struct str s = {0};
    for (uint32_t i = 0; i < lanes; i++)
        str_printf(&s, "%si32 %u", i ? ", " : "", lane[i]);
    const char *r = emit_op(e, "shufflevector <%u x %s> %s, <%u x %s> %s, <%u x i32> <%s>", lanes,
                            t, a, lanes, t, b, lanes, str_text(&s));
    str_free(&s);
    return r;
}

const char *
emit_concat(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *low, const char *high)
{
    const char *t = element_type(dtype);
    struct str s = {0};
    for (uint32_t i = 0; i < 2 * lanes; i++)
        str_printf(&s, "%si32 %u", i ? ", " : "", i);
    const char *r = emit_op(e, "shufflevector <%u x %s> %s, <%u x %s> %s, <%u x i32> <%s>", lanes,
                            t, low, lanes, t, high, 2 * lanes, str_text(&s));
    str_free(&s);
    return r;
}

// ---- loops

void
emit_loop_open(struct emitter *e, struct emit_loop *l, const char *from, const char *to,
               const char *step)
{
    l->head = emit_label(e, "loop");
    l->exit = emit_text(e, "%s.exit", l->head);
    l->index = emit_text(e, "%%%s.i", l->head);
    l->from = from;
    l->to = to;
    l->step = step;
    l->ncarry = 0;
    l->next = NULL;
    l->before = e->block;
    emit_jump(e, l->head);
    emit_place(e, l->head);
    l->phis = e->body.n;
}

const char *
emit_carry(struct emitter *e, struct emit_loop *l, const char *type, const char *init)
{
    CHECK(l->ncarry < EMIT_MAX_CARRY, "a loop carries more than %d values", EMIT_MAX_CARRY);
    const char *name = emit_text(e, "%%%s.c%u", l->head, l->ncarry);
    l->type[l->ncarry] = type;
    l->init[l->ncarry] = init;
    l->carry[l->ncarry++] = name;
    return name;
}

void
emit_loop_body(struct emitter *e, struct emit_loop *l)
{
    const char *body = emit_text(e, "%s.body", l->head);
    const char *more = emit_op(e, "icmp slt i64 %s, %s", l->index, l->to);
    emit_branch(e, more, body, l->exit);
    emit_place(e, body);
}

const char *
emit_loop_next(struct emitter *e, struct emit_loop *l)
{
    l->next = emit_text(e, "%s.next", l->head);
    return l->next;
}

static void
print_phi(struct str *s, const struct emit_loop *l, const char *name, const char *type,
          const char *init, const char *next, const char *from)
{
    str_printf(s, "  %s = phi %s [ %s, %%%s ], [ %s, %%%s ]\n", name, type, init, l->before, next,
               from);
}

void
emit_loop_close(struct emitter *e, struct emit_loop *l, const char *const *next)
{
    if (l->next) {
        emit_jump(e, l->next);
        emit_place(e, l->next);
    }
    const char *sum = emit_op(e, "add nsw i64 %s, %s", l->index, l->step);
    // Empty assembly: LLVM no longer sees that the index grows by steps. Its loop strength
    // reduction took a third of the time of compiling, to replace [base + index] by pointers that
    // gain nothing.
    emit_line(e, "%s.next = call i64 asm \"\", \"=r,0\"(i64 %s)", l->index, sum);
    emit_jump(e, l->head);
    struct str phis = {0};
    print_phi(&phis, l, l->index, "i64", l->from, emit_text(e, "%s.next", l->index), e->block);
    for (uint32_t i = 0; i < l->ncarry; i++)
        print_phi(&phis, l, l->carry[i], l->type[i], l->init[i], next[i], e->block);
    str_insert(&e->body, l->phis, str_text(&phis), phis.n);
    str_free(&phis);
    emit_place(e, l->exit);
}

const char *
emit_if(struct emitter *e, const char *cond)
{
    const char *yes = emit_label(e, "then");
    const char *end = emit_text(e, "%s.end", yes);
    emit_branch(e, cond, yes, end);
    emit_place(e, yes);
    return end;
}

void
emit_endif(struct emitter *e, const char *end)
{
    emit_jump(e, end);
    emit_place(e, end);
}

// ---- numbers and addresses

static const char *
number(struct emitter *e, const char *name, int64_t value)
{
    for (uint32_t i = 0; i < e->num->n; i++)
        if (strcmp(e->num_name.at[i], name) == 0) {
            CHECK(e->num->at[i] == value, "number %s has two values", name);
            return e->num_name.at[i];
        }
    vec_push(e->num, value);
    vec_push(&e->num_name, name);
    return name;
}

// Numbers interned by value are named by their family's letter and a count.
static const char *
number_of_family(struct emitter *e, const char *family, int64_t value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->num->n; i++) {
        const char *name = e->num_name.at[i];
        size_t len = strlen(family);
        if (strncmp(name, family, len) != 0 || name[len] < '0' || name[len] > '9')
            continue;
        if (e->num->at[i] == value)
            return name;
        n++;
    }
    return number(e, emit_text(e, "%s%u", family, n), value);
}

const char *
emit_extent(struct emitter *e, uint32_t axis)
{
    return number(e, emit_text(e, "%%extent%u", axis), e->kernel.axis[axis].extent);
}

const char *
emit_named(struct emitter *e, const char *name, int64_t value)
{
    return number(e, emit_text(e, "%%%s", name), value);
}

const char *
emit_num(struct emitter *e, int64_t value)
{
    return number_of_family(e, "%n", value);
}

const char *
emit_stride(struct emitter *e, int64_t stride)
{
    return stride >= -1 && stride <= 1 ? emit_text(e, "%d", (int)stride)
                                       : number_of_family(e, "%stride", stride);
}

// ---- address arithmetic: each operation once a block

// Addresses that differ by a number should say so: LLVM takes four times as long for
// base + (index + 16) as for (base + index) + 16, of which it has the inner sum already.

static struct emit_known *
once(struct emitter *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static struct emit_known *
once(struct emitter *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *right = vtext(e, fmt, ap);
    va_end(ap);
    uint64_t hash = hash_bytes(0, right, strlen(right));
    for (uint32_t i = 0; i < e->known.n; i++)
        if (e->known.at[i].hash == hash && !strcmp(e->known.at[i].right, right))
            return &e->known.at[i];
    const char *name = assign(e, &e->body, right);
    vec_push(&e->known, ((struct emit_known){.hash = hash, .right = right, .name = name}));
    return &e->known.at[e->known.n - 1];
}

static bool
is_number(const char *operand)
{
    return operand[0] != '%';
}

static const char *
number_text(struct emitter *e, int64_t n)
{
    return emit_text(e, "%lld", (long long)n);
}

// The sum with a number that an operand is; NULL: this block has none.
static const struct emit_known *
sum_with_number(const struct emitter *e, const char *operand)
{
    for (uint32_t i = 0; i < e->known.n; i++)
        if (e->known.at[i].by && e->known.at[i].name == operand)
            return &e->known.at[i];
    return NULL;
}

const char *
emit_add(struct emitter *e, const char *a, const char *b)
{
    if (strcmp(a, "0") == 0)
        return b;
    if (strcmp(b, "0") == 0)
        return a;
    if (is_number(a) && is_number(b))
        return number_text(e, atoll(a) + atoll(b));
    struct emit_known *sum = once(e, "add nsw i64 %s, %s", a, b);
    if (is_number(b)) {
        sum->of = a;
        sum->by = b;
    }
    return sum->name;
}

const char *
emit_mul(struct emitter *e, const char *a, const char *b)
{
    if (strcmp(a, "0") == 0 || strcmp(b, "0") == 0)
        return "0";
    if (strcmp(a, "1") == 0)
        return b;
    if (strcmp(b, "1") == 0)
        return a;
    if (is_number(a) && is_number(b))
        return number_text(e, atoll(a) * atoll(b));
    const struct emit_known *sum = is_number(b) ? sum_with_number(e, a) : NULL;
    if (!sum)
        return once(e, "mul nsw i64 %s, %s", a, b)->name;
    const char *by = number_text(e, atoll(sum->by) * atoll(b));
    return emit_add(e, emit_mul(e, sum->of, b), by);
}

const char *
emit_min(struct emitter *e, const char *a, const char *b)
{
    return once(e, "call i64 @llvm.smin.i64(i64 %s, i64 %s)", a, b)->name;
}

const char *
emit_ptr(struct emitter *e, const char *base, const char *index, const char *elem_type)
{
    if (strcmp(index, "0") == 0)
        return base;
    const struct emit_known *sum = sum_with_number(e, index);
    const char *by = sum ? sum->by : NULL;
    if (sum)
        index = sum->of;
    base = once(e, "getelementptr %s, ptr %s, i64 %s", elem_type, base, index)->name;
    return by ? once(e, "getelementptr %s, ptr %s, i64 %s", elem_type, base, by)->name : base;
}

void
emit_decode(struct emitter *e, const char *flat, uint32_t first, uint32_t n, const char **index)
{
    for (uint32_t i = n; i-- > 1;) {
        const char *extent = emit_extent(e, first + i);
        const char *q = emit_op(e, "udiv i64 %s, %s", flat, extent);
        const char *back = emit_op(e, "mul nsw i64 %s, %s", q, extent);
        index[i] = emit_op(e, "sub nsw i64 %s, %s", flat, back);
        flat = q;
    }
    if (n)
        index[0] = flat;
}

const char *
emit_buffer(struct emitter *e, uint32_t buffer)
{
    return emit_text(e, "%%b%u", buffer);
}

const char *
emit_shared(struct emitter *e)
{
    const char *at = emit_entry_op(e, "getelementptr i8, ptr %%args, i64 16");
    return emit_entry_op(e, "load ptr, ptr %s", at);
}
_Static_assert(offsetof(struct kernel_args, ptr) == 0 && offsetof(struct kernel_args, num) == 8 &&
                   offsetof(struct kernel_args, shared) == 16,
               "emit_function_end and emit_shared know the places");

const char *
emit_scratch(struct emitter *e, int64_t byte)
{
    if (byte == 0)
        return "%scratch";
    return emit_op(e, "getelementptr i8, ptr %%scratch, i64 %lld", (long long)byte);
}

const char *
emit_tail_mask(struct emitter *e, uint32_t lanes, const char *left)
{
    const char *few = emit_min(e, left, emit_text(e, "%u", lanes));
    const char *narrow = emit_op(e, "trunc i64 %s to i8", few);
    const char *one = emit_op(e, "insertelement <1 x i8> poison, i8 %s, i64 0", narrow);
    const char *all = splat(e, "i8", one, lanes);
    struct str s = {0};
    for (uint32_t i = 0; i < lanes; i++)
        str_printf(&s, "%si8 %u", i ? ", " : "", i);
    const char *m = emit_op(e, "icmp ult <%u x i8> <%s>, %s", lanes, str_text(&s), all);
    str_free(&s);
    return m;
}

const char *
emit_and_mask(struct emitter *e, uint32_t lanes, const char *a, const char *b)
{
    if (!a || !b)
        return a ? a : b;
    return emit_op(e, "and <%u x i1> %s, %s", lanes, a, b);
}
