// composites.c: elementwise composites and losses against tests/fixtures/composites.h, whose
// numbers were worked out apart from this code: by the graph interpreter, by the kernel interpreter
// and by compiled code with one and two threads, which have to agree bit for bit. And every row of
// the table that has an expansion has one that parses, at every dtype, into primitive ops.
#include "tests/support/run_plan.h"

#include "ir/base/check.h"
#include "ir/composite.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

struct fixture {
    const char *name, *text;
    const double *value, *want; // all operands one after the other
    int64_t n;                  // results
    double ulps, scale;
};
#include "tests/fixtures/composites.h"

enum { FIXTURES = sizeof fixtures / sizeof *fixtures, MOST_INPUTS = 8 };

// One unit in the last place of a value's dtype, at x.
static double
ulp_at(uint8_t dtype, double x)
{
    static const struct {
        int digits, least;
    } of[] = {[DT_f64] = {53, -1074}, [DT_f32] = {24, -149}, [DT_f16] = {11, -24},
              [DT_bf16] = {8, -133}};
    int e;
    frexp(x, &e);
    e -= of[dtype].digits;
    return ldexp(1, x == 0 || e < of[dtype].least ? of[dtype].least : e);
}

static bool
is_near(uint8_t dtype, double got, double want, const struct fixture *f)
{
    double there = scalar_to_double(dtype, scalar_from_double(dtype, want));
    if (isnan(want) || !isfinite(there))
        return isnan(want) ? isnan(got) : got == there;
    double unit = ulp_at(dtype, fabs(want) > f->scale ? want : f->scale);
    // Half a unit more: the right value need not be one of the dtype's.
    return fabs(got - want) <= (f->ulps > 0 ? f->ulps : 0.5) * unit;
}

static void
check_near(const struct fixture *f, const struct graph *g, const void *out, const char *by)
{
    uint8_t dtype = graph_node(g, g->outputs.at[0].node)->dtype;
    size_t size = dtype_size(dtype);
    cr_assert_eq(output_bytes(g, 0), (size_t)f->n * size, "%s: shape", f->text);
    for (int64_t i = 0; i < f->n; i++) {
        uint64_t bits = scalar_load(dtype, (const char *)out + (size_t)i * size);
        double got = scalar_to_double(dtype, bits);
        cr_expect(is_near(dtype, got, f->want[i], f), "%s, %s, element %lld of %s: %.17g, not %.17g",
                  f->text, by, (long long)i, dtype_name(dtype), got, f->want[i]);
    }
}

static void
fill_inputs(const struct fixture *f, const struct graph *g, struct tensor *in)
{
    const double *value = f->value;
    cr_assert_leq(g->inputs.n, MOST_INPUTS);
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        ref r = g->inputs.at[i].node;
        const struct shape *s = graph_shape(g, r);
        struct tensor *t = &in[i];
        *t = (struct tensor){.dtype = graph_node(g, r)->dtype, .rank = s->rank};
        int64_t n = 1;
        for (uint32_t d = s->rank; d-- > 0;) {
            t->dim[d] = dim_of(g, s, d);
            t->stride[d] = n;
            n *= t->dim[d];
        }
        t->data = xmalloc((size_t)n * dtype_size(t->dtype) + 1);
        for (int64_t k = 0; k < n; k++)
            scalar_store(t->dtype, (char *)t->data + (size_t)k * dtype_size(t->dtype),
                         scalar_from_double(t->dtype, *value++));
    }
}

// Exact ops have the interpreter's very bits.
static void
check_fixture(const struct fixture *f, struct device *const *dev, uint32_t devices)
{
    struct diag d = {0};
    struct graph *g = graph_parse(f->text, strlen(f->text), f->name, &d);
    cr_assert(g, "%s", d.text);
    struct tensor in[MOST_INPUTS], right;
    fill_inputs(f, g, in);
    cr_assert(interp_graph(g, in, &right, &d), "%s: %s", f->text, d.text);
    check_near(f, g, right.data, "graph interpreter");
    void **first = outputs_of(g), **other = outputs_of(g);
    cr_assert(run_fused(g, in, first, NULL, NULL, &d), "%s: %s", f->text, d.text);
    check_near(f, g, first[0], "kernel interpreter");
    struct tally t = {0};
    char where[200];
    if (op_table[graph_node(g, g->outputs.at[0].node)->op].flags & OPF_EXACT)
        cr_expect(compare_outputs(g, &right.data, first, &t, where), "%s: %s", f->text, where);
    for (uint32_t i = 0; i < devices; i++) {
        cr_assert(run_fused(g, in, other, dev[i], NULL, &d), "%s: %s", f->text, d.text);
        cr_expect(compare_outputs(g, first, other, &t, where), "%s: %s", f->text, where);
    }
    free_outputs(g, first);
    free_outputs(g, other);
    xfree(right.data);
    for (uint32_t i = 0; i < g->inputs.n; i++)
        xfree(in[i].data);
    graph_free(g);
}

Test(composites, give_what_was_worked_out_elsewhere)
{
    struct diag d = {0};
    struct device *dev[] = {device_open("cpu", 1, 0, &d), device_open("cpu", 2, 0, &d)};
    cr_assert(dev[0] && dev[1], "%s", d.text);
    for (uint32_t i = 0; i < FIXTURES; i++)
        check_fixture(&fixtures[i], dev, 2);
    device_close(dev[0]);
    device_close(dev[1]);
}

// A row whose text does not parse, or that is made of rows of its own kind, is found here.
Test(composites, all_expansions_are_of_primitive_ops)
{
    uint32_t rows = 0;
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        if (!op_is_elementwise_composite(op))
            continue;
        rows++;
        for (uint8_t dtype = 1; dtype < DT_COUNT; dtype++) {
            struct graph *g = graph_new("t");
            struct shape s = {.rank = 1, .dim = {sym_num(5)}};
            ref in[4];
            for (uint32_t i = 0; i < op_table[op].arity; i++)
                in[i] = graph_add_input(g, "x", dtype, &s, NULL, 6);
            int64_t attr[COMPOSITE_NUMBERS] = {0};
            bool fits = op_table[op].rule != DTR_FLOAT || dtype_is_float(dtype);
            if (fits && (op_table[op].rule != DTR_NUMERIC || dtype != DT_bool)) {
                ref r = composite_expand(g, op, dtype, in, attr, 0);
                cr_expect_eq(graph_node(g, r)->dtype, dtype, "%s gives %s for %s", op_name(op),
                             dtype_name(graph_node(g, r)->dtype), dtype_name(dtype));
            }
            for (uint32_t i = 1; i < g->node.n; i++)
                cr_expect(op_is(g->node.at[i].op, OPK_ELEM) || op_is(g->node.at[i].op, OPK_LEAF),
                          "%s expands to %s", op_name(op), op_name(g->node.at[i].op));
            graph_free(g);
        }
    }
    cr_expect_geq(rows, 15);
}
