// fixtures.c: answers made elsewhere. The graphs of tests/fixtures/*.txt, whose results NumPy,
// mpmath and exact rationals computed (make_fixtures.py there), in the graph interpreter, which the
// other tests call right, and as compiled code.
#include "tests/support/bound.h"
#include "tests/support/fixture.h"
#include "tests/support/graph_gen.h"
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Units that the bound is counted in, and how many; exact: none.
static double
tolerance(const struct fixture *f, uint32_t i, double right, double argument, bool interpreted)
{
    const char *bound = f->out[i].bound;
    const struct graph *g = f->g;
    uint8_t dtype = f->out[i].right.dtype;
    const struct op_info *row = &op_table[graph_node(g, g->outputs.at[i].node)->op];
    double ulp = ulp_of(dtype, right), units = 1;
    if (*bound == '=')
        return 0;
    if (!strncmp(bound, "+-", 2))
        return strtod(bound + 2, NULL);
    if (!strcmp(bound, "~x") && argument < 0)
        ulp = fmax(ulp, ulp_of(dtype, argument));
    if (bound[1] == 'r' || bound[1] == 'x') // libm is right to a last place
        units = interpreted || dtype_is_half(dtype) ? 1
                : dtype == DT_f64                   ? (double)row->ulp64 + 0.5
                                                    : (double)row->ulp32 + 0.5;
    else
        units = strtod(bound + 1, NULL);
    return units * ulp;
}

static void
must_be_right(const struct fixture *f, uint32_t i, const void *got, const char *who)
{
    const struct fixture_values *right = &f->out[i].right;
    bool unary = f->nin == 1 && (size_t)tensor_count(&f->in[0]) == right->n;
    for (size_t k = 0; k < right->n; k++) {
        uint64_t a = scalar_load(right->dtype, (const char *)got + k * dtype_size(right->dtype));
        uint64_t b = scalar_load(right->dtype,
                                 (const char *)right->data + k * dtype_size(right->dtype));
        double x = scalar_to_double(right->dtype, a), y = scalar_to_double(right->dtype, b);
        uint8_t from = unary ? f->in[0].dtype : DT_NONE;
        double argument = unary ? scalar_to_double(from, scalar_load(from, (char *)f->in[0].data +
                                                                     k * dtype_size(from)))
                                : 0;
        double t = tolerance(f, i, y, argument, strcmp(who, "compiled code") != 0);
        bool fits = same_bits(right->dtype, a, b) || (t > 0 && fabs(x - y) <= t);
        cr_assert(fits, "%s:%u: %s, output %u, element %zu: %.17g (%#llx), right is %.17g (%#llx) "
                  "within %g; argument %.17g", f->file, f->line, who, i, k, x,
                  (unsigned long long)a, y, (unsigned long long)b, t, argument);
    }
}

// dev: NULL in builds without a code generator.
static void
run_fixture(const struct fixture *f, void *dev)
{
    struct diag d = {0};
    struct tensor out[FIXTURE_TENSORS];
    cr_assert(interp_graph(f->g, f->in, out, &d), "%s:%u: %s", f->file, f->line, d.text);
    void **compiled = outputs_of(f->g);
    bool ok = !dev || run_fused(f->g, f->in, compiled, dev, NULL, &d);
    cr_assert(ok, "%s:%u: %s", f->file, f->line, d.text);
    for (uint32_t i = 0; i < f->nout; i++) {
        fixture_must_have_type(f, i);
        must_be_right(f, i, out[i].data, "the interpreter");
        if (dev)
            must_be_right(f, i, compiled[i], "compiled code");
        xfree(out[i].data);
    }
    free_outputs(f->g, compiled);
}

static void
run_file(const char *name, uint32_t at_least)
{
    struct diag d = {0};
    struct device *dev = NULL;
    if (cpu_codegen_available())
        dev = own_device_open((struct own_options){.level = CODE_BASELINE, .pieces = 2}, &d);
    cr_assert_geq(fixtures_each(name, run_fixture, dev), at_least);
    if (dev)
        device_close(dev);
}

Test(fixtures, elementwise)
{
    run_file("elementwise.txt", 447);
}
Test(fixtures, casts)
{
    run_file("casts.txt", 207);
}
Test(fixtures, math)
{
    run_file("math.txt", 190);
}
Test(fixtures, reductions)
{
    run_file("reductions.txt", 781);
}
Test(fixtures, moves) // scans, views, indexing, products
{
    run_file("moves.txt", 326);
}
