// matvec.c: products with one row or one column. Their bits are those of a sum of products over k,
// in the order of sums, however the factors lie, whatever is fused around them, op by op, on one
// thread and on three, in generated code and in the kernel interpreter.
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include "ir/base/str.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

struct problem {
    uint32_t batch, m, n, k; // batch 0: no such axis
    const char *dtype;
    bool shared;                // b has no batch axis
    const char *before, *after; // what is done to a, and to the product; NULL: nothing
};

static struct problem
random_problem(struct rng *r)
{
    static const char *const dtype[] = {"f32", "f32", "f32", "f64", "bf16", "f16", "i32", "u8"};
    static const char *const before[] = {NULL, NULL, "neg %s", "exp %s", "div %s, %%c"};
    static const char *const after[] = {NULL, NULL, "max %s, %%c", "gelu_tanh %s", "sub %s, %%c"};
    struct problem p = {.dtype = dtype[rng_below(r, 8)]};
    bool whole = p.dtype[0] == 'i' || p.dtype[0] == 'u';
    p.batch = rng_below(r, 2) ? 1 + rng_below(r, 5) : 0;
    p.m = p.n = rng_below(r, 4) ? 1 + rng_below(r, 1u << (1 + rng_below(r, 7))) : 1;
    *(rng_below(r, 2) ? &p.m : &p.n) = 1;
    p.k = rng_below(r, 12) ? 1 + rng_below(r, 1u << (1 + rng_below(r, 11))) : 0;
    p.shared = p.batch && rng_below(r, 2);
    p.before = before[rng_below(r, whole ? 3 : 5)];
    p.after = after[rng_below(r, whole ? 3 : 5)];
    return p;
}

static void
shape(struct str *s, uint32_t batch, uint32_t x, uint32_t y)
{
    str_addc(s, '[');
    if (batch)
        str_printf(s, "%u, ", batch);
    str_printf(s, "%u, %u]", x, y);
}

static const char *
swap(uint32_t batch)
{
    return batch ? "{axes = [0, 2, 1]}" : "{axes = [1, 0]}";
}

// %p = the sum over k of f [..., m, k] times t, b turned to [..., n, k]: one of m and n is 1.
// Halves are multiplied and summed in f32.
static void
spell(struct str *s, const struct problem *p, const char *f)
{
    bool half = strcmp(p->dtype, "bf16") == 0 || strcmp(p->dtype, "f16") == 0;
    const char *wide = half ? "f32" : p->dtype;
    str_printf(s, "  %%t = permute %%b %s\n", swap(p->shared ? 0 : p->batch));
    str_printf(s, "  %%e = mul (cast %s {to = %s}), (cast %%t {to = %s})\n", f, wide, wide);
    str_printf(s, "  %%s = sum %%e {axes = [%u]}\n", p->batch ? 2 : 1);
    str_printf(s, "  %%p = cast (reshape %%s {shape = ");
    shape(s, p->batch, p->m, p->n);
    str_printf(s, "}) {to = %s}\n", p->dtype);
}

// The problem as text, its factors transposed or not, as a sum or as a product.
static struct graph *
make(const struct problem *p, bool at, bool bt, bool spelt)
{
    struct str s = {0};
    struct diag d = {0};
    uint32_t bb = p->shared ? 0 : p->batch;
    str_printf(&s, "graph @product(%%%s: %s", at ? "x" : "a", p->dtype);
    shape(&s, p->batch, at ? p->k : p->m, at ? p->m : p->k);
    str_printf(&s, ", %%%s: %s", bt ? "y" : "b", p->dtype);
    shape(&s, bb, bt ? p->n : p->k, bt ? p->k : p->n);
    str_printf(&s, ", %%c: %s[1]) {\n", p->dtype);
    if (at)
        str_printf(&s, "  %%a = permute %%x %s\n", swap(p->batch));
    if (bt)
        str_printf(&s, "  %%b = permute %%y %s\n", swap(bb));
    const char *f = p->before ? "%f" : "%a", *z = p->after ? "%z" : "%p";
    if (p->before) {
        str_add(&s, "  %f = ");
        str_printf(&s, p->before, "%a");
        str_addc(&s, '\n');
    }
    if (spelt)
        spell(&s, p, f);
    else
        str_printf(&s, "  %%p = matmul %s, %%b\n", f);
    if (p->after) {
        str_add(&s, "  %z = ");
        str_printf(&s, p->after, "%p");
        str_addc(&s, '\n');
    }
    str_printf(&s, "  return %s\n}\n", z);
    struct graph *g = graph_parse(str_text(&s), s.n, "product", &d);
    cr_assert(g, "%s\n%s", d.text, str_text(&s));
    str_free(&s);
    return g;
}

// to[.., j, i] = from[.., i, j]; both dense.
static void
transpose(const struct tensor *from, const struct tensor *to)
{
    uint32_t r = from->rank, size = dtype_size(from->dtype);
    int64_t rows = from->dim[r - 2], columns = from->dim[r - 1];
    int64_t batch = r > 2 ? from->dim[0] : 1;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                memcpy((char *)to->data + ((b * columns + j) * rows + i) * size,
                       (char *)from->data + ((b * rows + i) * columns + j) * size, size);
}

static void
make_ordinary(struct tensor *x, uint64_t seed)
{
    struct rng r = {seed};
    for (int64_t i = 0; i < tensor_count(x) && dtype_is_float(x->dtype); i++)
        scalar_store(x->dtype, (char *)x->data + i * dtype_size(x->dtype),
                     scalar_from_double(x->dtype, rng_unit(&r) - 0.5));
}

// The problem's data in this layout: plain[] holds it in the first.
static void
fill(struct tensor *in, const struct tensor *plain, bool at, bool bt)
{
    const bool turned[3] = {at, bt, false};
    for (uint32_t i = 0; i < 3; i++) {
        if (turned[i])
            transpose(&plain[i], &in[i]);
        else
            memcpy(in[i].data, plain[i].data,
                   (size_t)(tensor_count(&plain[i]) * dtype_size(plain[i].dtype)));
    }
}

static void
compare(struct device *const *dev, uint64_t seed, struct tally *t)
{
    static const struct compile_options strict = {.strict = true};
    struct rng r = {seed};
    struct problem p = random_problem(&r);
    struct graph *first = make(&p, false, false, true);
    struct tensor plain[3], in[3];
    struct guarded plain_mem[3], mem[3];
    for (uint32_t i = 0; i < 3; i++)
        plain_mem[i] = gen_input(first, i, seed, true, &plain[i]);
    for (uint32_t i = 0; i < 3 && seed % 4; i++)
        make_ordinary(&plain[i], seed + i);
    void **right = outputs_of(first);
    struct diag d = {0};
    char where[200], what[100];
    if (!run_fused(first, plain, right, NULL, &strict, &d))
        fail_with(first, seed, "did not run", d.text);
    for (uint32_t how = 0; how < 8; how++) {
        bool at = how & 1, bt = how & 2, spelt = how & 4;
        struct graph *g = make(&p, at, bt, spelt);
        for (uint32_t i = 0; i < 3; i++)
            mem[i] = gen_input(g, i, seed, true, &in[i]);
        fill(in, plain, at, bt);
        void **out = outputs_of(g);
        for (uint32_t mode = 0; mode < 4; mode++) {
            snprintf(what, sizeof what, "layout %u, way %u differs from the sum", how, mode);
            bool ok = mode == 0   ? run_fused(g, in, out, NULL, &strict, &d)
                      : mode == 1 ? run_eager(g, in, out, dev[0], &strict, &d)
                                  : run_fused(g, in, out, dev[mode - 2], &strict, &d);
            if (!ok)
                fail_with(g, seed, "did not run", d.text);
            if (!compare_outputs(g, right, out, t, where))
                fail_with(g, seed, what, where);
        }
        free_outputs(g, out);
        for (uint32_t i = 0; i < 3; i++)
            guarded_free(&mem[i]);
        graph_free(g);
    }
    free_outputs(first, right);
    for (uint32_t i = 0; i < 3; i++)
        guarded_free(&plain_mem[i]);
    graph_free(first);
}

Test(matvec, the_same_bits_in_every_layout)
{
    struct diag d = {0};
    struct device *dev[] = {device_open("cpu", 1, 0, &d), device_open("cpu", 3, DEVICE_TIERED, &d)};
    struct tally t = {0};
    cr_assert(dev[0] && dev[1], "%s", d.text);
    uint32_t n = seed_count(120), first = seed_first();
    for (uint32_t i = 0; i < n; i++)
        compare(dev, first + i, &t);
    cr_assert_gt(t.elements, (uint64_t)n * 8);
    cr_assert_gt(t.finite, t.elements / 4, "hardly any number among the results");
    device_close(dev[0]);
    device_close(dev[1]);
}
