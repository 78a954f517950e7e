// composites.c: composites against tests/fixtures/composites.txt, whose numbers were worked out
// apart from this code (composites.py): by the graph interpreter, by the kernel interpreter and by
// compiled code with one and two threads, which have to agree bit for bit. And every row of the
// table that has an expansion has one that parses, at every dtype, into primitive ops.
#include "tests/support/bound.h"
#include "tests/support/fixture.h"
#include "tests/support/run_plan.h"

#include "ir/base/check.h"
#include "ir/composite.h"

#include <criterion/criterion.h>
#include <math.h>

enum { FIXTURES = 184, DEVICES = 2 };

static bool
is_near(uint8_t dtype, double got, double want, const struct fixture_answer *a)
{
    double there = scalar_to_double(dtype, scalar_from_double(dtype, want));
    if (isnan(want) || !isfinite(there))
        return isnan(want) ? isnan(got) : got == there;
    double unit = ulp_of(dtype, fabs(want) > a->scale ? want : a->scale);
    // No units: the right value need not be one of the dtype's.
    return fabs(got - want) <= (a->units > 0 ? a->units : 0.5) * unit;
}

static void
check_near(const struct fixture *f, const void *out, const char *by)
{
    const struct fixture_answer *a = &f->out[0];
    uint8_t dtype = graph_node(f->g, f->g->outputs.at[0].node)->dtype;
    size_t size = dtype_size(dtype);
    const double *want = a->right.data;
    cr_assert_eq(output_bytes(f->g, 0), a->right.n * size, "%s:%u: shape", f->file, f->line);
    for (size_t i = 0; i < a->right.n; i++) {
        double got = scalar_to_double(dtype, scalar_load(dtype, (const char *)out + i * size));
        cr_expect(is_near(dtype, got, want[i], a), "%s:%u, %s, element %zu of %s: %.17g, not %.17g",
                  f->file, f->line, by, i, dtype_name(dtype), got, want[i]);
    }
}

// Exact ops have the interpreter's very bits.
static void
check_fixture(const struct fixture *f, void *to)
{
    struct device *const *dev = to;
    const struct graph *g = f->g;
    struct diag d = {0};
    struct tensor right;
    fixture_must_have_type(f, 0);
    cr_assert(interp_graph(g, f->in, &right, &d), "%s:%u: %s", f->file, f->line, d.text);
    check_near(f, right.data, "graph interpreter");
    void **first = outputs_of(g), **other = outputs_of(g);
    cr_assert(run_fused(g, f->in, first, NULL, NULL, &d), "%s:%u: %s", f->file, f->line, d.text);
    check_near(f, first[0], "kernel interpreter");
    struct tally t = {0};
    char where[200];
    if (op_table[graph_node(g, g->outputs.at[0].node)->op].flags & OPF_EXACT)
        cr_expect(compare_outputs(g, &right.data, first, &t, where), "%s:%u: %s", f->file, f->line,
                  where);
    for (uint32_t i = 0; i < DEVICES; i++) {
        cr_assert(run_fused(g, f->in, other, dev[i], NULL, &d), "%s:%u: %s", f->file, f->line,
                  d.text);
        cr_expect(compare_outputs(g, first, other, &t, where), "%s:%u: %s", f->file, f->line,
                  where);
    }
    free_outputs(g, first);
    free_outputs(g, other);
    xfree(right.data);
}

Test(composites, give_what_was_worked_out_elsewhere)
{
    struct diag d = {0};
    struct device *dev[DEVICES] = {device_open("cpu", 1, 0, &d), device_open("cpu", 2, 0, &d)};
    cr_assert(dev[0] && dev[1], "%s", d.text);
    cr_expect_geq(fixtures_each("composites.txt", check_fixture, dev), FIXTURES);
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
