// gradient.c: the gradients of ops.def against central differences of the ops themselves, both in
// double by the graph interpreter; and the conventions at kinks.
#include "ir/composite.h"
#include "ir/base/mem.h"
#include "ir/interp.h"

#include <criterion/criterion.h>
#include <math.h>

enum { POINTS = 256 };

struct values {
    double v[4][POINTS]; // operands, and what arrives for the result
};

static struct tensor
tensor_of(uint8_t dtype, void *v, int64_t n)
{
    return (struct tensor){.dtype = dtype, .rank = 1, .dim = {n}, .stride = {1}, .data = v};
}

// The op at the points, or what flows back to an operand (0 …) where nothing does: 0.
static void
evaluate(uint16_t op, int operand, struct values *x, int64_t n, double *out)
{
    struct graph *g = graph_new("gradient");
    struct shape s = {.rank = 1, .dim = {sym_num(n)}};
    struct tensor in[4], result;
    struct diag d = {0};
    uint32_t arity = op_table[op].arity;
    uint8_t truth[POINTS];
    ref node[4];
    for (uint32_t i = 0; i <= arity; i++) {
        bool condition = op == OP_where && i == 0;
        char name[2] = {(char)('a' + i), 0};
        for (int64_t k = 0; k < n; k++)
            truth[k] = x->v[0][k] > 0;
        in[i] = condition ? tensor_of(DT_bool, truth, n) : tensor_of(DT_f64, x->v[i], n);
        node[i] = graph_add_input(g, name, in[i].dtype, &s, NULL, 0);
    }
    ref y = graph_build(g, op, node, arity, NULL, 0, 0, &d);
    cr_assert(y.i, "%s", d.text);
    if (operand >= 0)
        y = gradient_expand(g, op, (uint32_t)operand, node, y, node[arity], 0);
    for (int64_t k = 0; k < n; k++)
        out[k] = 0;
    if (y.i) {
        graph_add_output(g, "", y);
        cr_assert(interp_graph(g, in, &result, &d), "%s", d.text);
        for (int64_t k = 0; k < n; k++)
            out[k] = ((double *)result.data)[k];
        xfree(result.data);
    }
    graph_free(g);
}

static double
unit(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) * 0x1p-53;
}

// Central differences of two widths; where they disagree a kink is near, or a pole.
static uint32_t
compare_with_differences(uint16_t op, uint32_t operand)
{
    enum { STEPS = 4 };
    static const double step[STEPS] = {1e-5, -1e-5, 5e-6, -5e-6};
    static struct values x, moved;
    double got[POINTS], f[STEPS][POINTS];
    uint64_t state = op * 31u + operand;
    uint32_t compared = 0;
    for (int k = 0; k < POINTS; k++)
        for (uint32_t i = 0; i < 4; i++)
            do // not so near 0 that a step passes several jumps of a quotient
                x.v[i][k] = (unit(&state) - 0.5) * (k % 2 ? 5 : 1.8);
            while (fabs(x.v[i][k]) < 0.02);
    evaluate(op, (int)operand, &x, POINTS, got);
    for (int i = 0; i < STEPS; i++) {
        moved = x;
        for (int k = 0; k < POINTS; k++)
            moved.v[operand][k] += step[i];
        evaluate(op, -1, &moved, POINTS, f[i]);
    }
    for (int k = 0; k < POINTS; k++) {
        double wide = (f[0][k] - f[1][k]) / 2e-5, narrow = (f[2][k] - f[3][k]) / 1e-5;
        double g = x.v[op_table[op].arity][k], bound = 1e-6 * (1 + fabs(wide));
        if (!isfinite(wide) || !(fabs(wide - narrow) <= bound))
            continue;
        cr_expect(fabs(got[k] - g * wide) <= 4 * bound * fabs(g) + 1e-8,
                  "gradient %u of %s at %g, %g, %g: %.9g, differences say %.9g", operand,
                  op_name(op), x.v[0][k], x.v[1][k], x.v[2][k], got[k], g * wide);
        compared++;
    }
    return compared;
}

Test(gradient, of_every_elementwise_op_agrees_with_differences)
{
    uint32_t ops = 0;
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        if (!op_table[op].grad)
            continue;
        ops++;
        for (uint32_t i = op == OP_where; i < op_table[op].arity; i++) {
            uint32_t n = compare_with_differences(op, i);
            cr_expect_geq(n, 40, "gradient %u of %s: compared at %u points", i, op_name(op), n);
        }
    }
    cr_log_info("%u ops", ops);
}

// Elementwise ops of numbers that give floats say their gradient.
Test(gradient, no_op_is_forgotten)
{
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        const struct op_info *o = &op_table[op];
        bool differentiable = o->kind == OPK_ELEM && o->rule != DTR_COMPARE &&
                              o->rule != DTR_PREDICATE && o->rule != DTR_BITS &&
                              o->rule != DTR_INT && o->rule != DTR_CAST && o->rule != DTR_OWN;
        cr_expect(!differentiable || o->grad, "%s has no gradient", o->name);
    }
}

static void
at(uint16_t op, int operand, double a, double b, double c, double right)
{
    static struct values x;
    double got[1], in[3] = {a, b, c};
    for (uint32_t i = 0; i < 3; i++)
        x.v[i][0] = in[i];
    x.v[op_table[op].arity][0] = 1;
    evaluate(op, operand, &x, 1, got);
    cr_expect(got[0] == right, "gradient %d of %s at %g, %g, %g: %g, right is %g", operand,
              op_name(op), a, b, c, got[0], right);
}

Test(gradient, at_kinks)
{
    const double inf = (double)INFINITY, nan_ = (double)NAN;
    at(OP_abs, 0, 0, 0, 0, 0);
    at(OP_abs, 0, -0.0, 0, 0, 0);
    at(OP_max, 0, 2, 2, 0, 1); // a tie: all to the first
    at(OP_max, 1, 2, 2, 0, 0);
    at(OP_min, 0, 2, 2, 0, 1);
    at(OP_min, 1, 2, 2, 0, 0);
    at(OP_max, 0, 1e-45, 0, 0, 1); // relu's
    at(OP_clamp, 0, 1, 1, 2, 1);
    at(OP_clamp, 0, 2, 1, 2, 1);
    at(OP_clamp, 1, 1, 1, 2, 0);
    at(OP_clamp, 0, 5, 3, 1, 0); // lower above upper: the upper
    at(OP_clamp, 2, 5, 3, 1, 1);
    at(OP_clamp, 1, 2, 3, 1, 0);
    at(OP_clamp, 2, 2, 3, 1, 1);
    at(OP_where, 1, -1, inf, nan_, 0);
    at(OP_where, 2, 1, nan_, inf, 0);
    at(OP_pow, 0, 0, 0, 0, 0);
    at(OP_pow, 0, 0, 1, 0, 1);
    at(OP_pow, 1, 0, 2, 0, 0);
    at(OP_pow, 0, -3, 2, 0, -6);
}
