// math_mpfr.c: the math functions, against MPFR with 160 bits: as compiled within the bounds that
// ops.def states, in the graph interpreter within the 0.51 that tests/support/bound_element.c
// counts on: special values, every power of two, the neighbours of places where the functions
// or their expansions change, the multiples of pi / 2 with the hardest ones among them, and random
// arguments. atan2 and pow take all pairs of a grid of magnitudes and signs, and random ones.
//
// math_accuracy.c measures more arguments, f64 by libm's long double, which is itself off by some
// 1/1000 of f64's last place, and by more where it is not good; here nothing is.
//
// FUSEC_SWEEP_STEP, set to anything: fifty times as many random arguments, and the worst errors
// printed.
#include "tests/support/accuracy.h"

#include "ir/expand.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpfr.h>

enum { PRECISION = 160, NEIGHBOURS = 3, RANDOM = 12 * BLOCK, MORE = 50 };

typedef int unary_fn(mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int binary_fn(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

struct function {
    uint16_t op;
    unary_fn *one;
    binary_fn *two;
    double spread; // random arguments: a third of them are this near 0
};

struct worst {
    double error, at[2];
};

struct trial {
    const struct function *f;
    uint8_t dtype;
    struct compiled c;
    uint64_t in[2][BLOCK];
    uint32_t n; // arguments waiting
    mpfr_t x, y, want, off;
    struct worst compiled, interpreted;
};

// Units in the last place between got and t->want; infinite where they differ in kind or sign.
static double
off_by(struct trial *t, double got)
{
    int fraction = t->dtype == DT_f32 ? 24 : 53, least = t->dtype == DT_f32 ? -125 : -1021;
    if (mpfr_nan_p(t->want) || isnan(got))
        return mpfr_nan_p(t->want) && isnan(got) ? 0 : (double)INFINITY;
    if (!mpfr_signbit(t->want) != !signbit(got))
        return (double)INFINITY;
    double rounded = t->dtype == DT_f32 ? (double)mpfr_get_flt(t->want, MPFR_RNDN)
                                        : mpfr_get_d(t->want, MPFR_RNDN);
    if (isinf(got) || isinf(rounded))
        return got == rounded ? 0 : (double)INFINITY;
    mpfr_exp_t exponent = mpfr_zero_p(t->want) ? least : mpfr_get_exp(t->want);
    mpfr_sub_d(t->off, t->want, got, MPFR_RNDN);
    mpfr_mul_2si(t->off, t->off, fraction - (exponent < least ? least : exponent), MPFR_RNDN);
    return fabs(mpfr_get_d(t->off, MPFR_RNDN));
}

static void
compare(struct trial *t, struct worst *w, uint64_t got, double x, double y)
{
    double error = off_by(t, scalar_to_double(t->dtype, got));
    if (error > w->error)
        *w = (struct worst){error, {x, y}};
}

static void
run_block(struct trial *t)
{
    uint16_t op = t->f->op;
    for (uint32_t i = t->n; i < BLOCK; i++) // the rest once more
        for (int k = 0; k < 2; k++)
            t->in[k][i] = t->in[k][0];
    for (uint32_t i = 0; i < BLOCK; i++)
        for (uint32_t k = 0; k < op_table[op].arity; k++)
            compiled_set(&t->c, k, i, t->in[k][i]);
    compiled_run(&t->c);
    for (uint32_t i = 0; i < t->n; i++) {
        double x = scalar_to_double(t->dtype, t->in[0][i]);
        double y = scalar_to_double(t->dtype, t->in[1][i]);
        mpfr_set_d(t->x, x, MPFR_RNDN);
        mpfr_set_d(t->y, y, MPFR_RNDN);
        if (t->f->two)
            t->f->two(t->want, t->x, t->y, MPFR_RNDN);
        else
            t->f->one(t->want, t->x, MPFR_RNDN);
        compare(t, &t->compiled, compiled_get(&t->c, i), x, y);
        compare(t, &t->interpreted,
                eval_primitive(op, t->dtype, t->dtype, t->in[0][i], t->in[1][i], 0), x, y);
    }
    t->n = 0;
}

static void
ask_bits(struct trial *t, uint64_t x, uint64_t y)
{
    t->in[0][t->n] = x;
    t->in[1][t->n] = y;
    if (++t->n == BLOCK)
        run_block(t);
}

// x and its neighbours, of both signs.
static void
ask_around(struct trial *t, double x)
{
    uint64_t bits = scalar_from_double(t->dtype, fabs(x));
    uint64_t sign = scalar_from_double(t->dtype, -0.0);
    for (int i = -NEIGHBOURS; i <= NEIGHBOURS; i++) {
        if (i < 0 && bits < (uint64_t)-i)
            continue;
        ask_bits(t, bits + (uint64_t)i, 0);
        ask_bits(t, (bits + (uint64_t)i) | sign, 0);
    }
}

// Where a function, or an expansion, turns, ends or takes another way.
static const double turns[] = {
    0, 0.1, 0.17157287525380990, 0.25, 0.29289321881345248, 0.34657359027997264, 0.375,
    0.41421356237309503, 0.5, 0.70710678118654752, 0.78539816339744831, 0.8813735870195430,
    1 - 0x1p-10, 1, 1.0397207708399179, 1.1752011936438014, 1.5, 2, 2.4142135623730950, 3, 5.93, 9,
    10, 17.4, 20, 26.5, 27.3, 37, 40, 86, 87, 88, 88.3, 88.722839, 89, 89.415986, 104, 150, 707,
    708, 709, 709.4, 709.782712893384, 710, 710.4758600739439, 745.13321910194122, 746, 1074, 1075,
    1e5, 0x1p14, 0x1p20, 1e10, 1e22, 1e37, 1e200, 1e308, (double)INFINITY,
};

static void
ask_turns(struct trial *t)
{
    for (uint32_t i = 0; i < sizeof turns / sizeof *turns; i++)
        ask_around(t, turns[i]);
    ask_bits(t, scalar_from_double(t->dtype, (double)NAN), 0);
    int least = t->dtype == DT_f32 ? -149 : -1074, most = t->dtype == DT_f32 ? 127 : 1023;
    for (int n = least; n <= most; n++) {
        ask_around(t, ldexp(1, n));
        ask_around(t, ldexp(1.25, n));
    }
    for (int n = 1; n < 1500; n++)
        ask_around(t, n * 1.5707963267948966);
    // The multiples of pi / 2 that an f64, and an f32, comes closest to.
    ask_around(t, ldexp(6381956970095103, 797));
    ask_around(t, ldexp(16367173, 72));
    for (int n = 1; n <= 22; n++)
        ask_around(t, pow(10, n));
    for (int n = 1; n < 200; n++)
        ask_around(t, n * 0.69314718055994531 / 2);
}

static uint64_t
random_argument(const struct trial *t, uint32_t kind, uint64_t *state)
{
    uint64_t bits = draw_f64(state, kind, t->f->spread);
    if (t->dtype == DT_f64)
        return bits;
    return kind == 0 ? bits >> 32
                     : scalar_from_double(DT_f32, scalar_to_double(DT_f64, bits));
}

static void
ask_random(struct trial *t)
{
    uint64_t state = 99;
    for (uint32_t i = 0; i < RANDOM * (getenv("FUSEC_SWEEP_STEP") ? MORE : 1); i++) {
        uint64_t x = random_argument(t, i % 3, &state);
        ask_bits(t, x, random_argument(t, i % 2 ? i % 3 : (i + 1) % 3, &state));
    }
}

// Magnitudes of both signs, each with each.
static void
ask_grid(struct trial *t)
{
    static const double plain[] = {0, 0x1p-1074, 0x1p-149, 1e-310, 1e-40, 0.3, 0.41421356, 1,
                                   1.5, 2.4142136, 3, 0x1.fffffep127, 1.7e308, (double)INFINITY,
                                   (double)NAN};
    enum { PLAIN = sizeof plain / sizeof *plain, EACH = 80, N = PLAIN + EACH };
    uint64_t grid[2 * N], state = 5, sign = scalar_from_double(t->dtype, -0.0);
    for (int i = 0; i < N; i++) {
        int low = t->dtype == DT_f32 ? -149 : -1074, span = t->dtype == DT_f32 ? 276 : 2097;
        double v = 1 + (double)(draw(&state) >> 12) * 0x1p-52;
        v = i < PLAIN ? plain[i] : ldexp(v, low + (i - PLAIN) * span / (EACH - 1));
        grid[2 * i] = scalar_from_double(t->dtype, v);
        grid[2 * i + 1] = grid[2 * i] | sign;
    }
    for (int i = 0; i < 2 * N; i++)
        for (int j = 0; j < 2 * N; j++)
            ask_bits(t, grid[i], grid[j]);
}

static void
expect_within(const struct trial *t, const char *who, const struct worst *w, double bound)
{
    cr_expect(w->error <= bound, "%s %s, %s: %.4f ulp at %a, %a; bound %.2f", op_name(t->f->op),
              dtype_name(t->dtype), who, w->error, w->at[0], w->at[1], bound);
    if (getenv("FUSEC_SWEEP_STEP"))
        printf("%s %s, %s: at most %.4f ulp, at %a, %a\n", op_name(t->f->op),
               dtype_name(t->dtype), who, w->error, w->at[0], w->at[1]);
}

static void
check(const struct function *f, uint8_t dtype)
{
    struct trial *t = calloc(1, sizeof *t);
    cr_assert_not_null(t);
    t->f = f;
    t->dtype = dtype;
    t->c = compiled_new(f->op, dtype);
    mpfr_inits2(PRECISION, t->x, t->y, t->want, t->off, (mpfr_ptr)NULL);
    if (f->two)
        ask_grid(t);
    else
        ask_turns(t);
    ask_random(t);
    run_block(t);
    expect_within(t, "compiled", &t->compiled,
                  (double)(dtype == DT_f32 ? op_table[f->op].ulp32 : op_table[f->op].ulp64));
    expect_within(t, "interpreted", &t->interpreted, 0.51);
    mpfr_clears(t->x, t->y, t->want, t->off, (mpfr_ptr)NULL);
    mpfr_free_cache();
    compiled_free(&t->c);
    free(t);
}

#define AGAINST(name, member, reach)                                                               \
    Test(math_mpfr, name##_f32)                                                                    \
    {                                                                                              \
        check(&(struct function){.op = OP_##name, .member = mpfr_##name, .spread = reach},         \
              DT_f32);                                                                             \
    }                                                                                              \
    Test(math_mpfr, name##_f64)                                                                    \
    {                                                                                              \
        check(&(struct function){.op = OP_##name, .member = mpfr_##name, .spread = reach},         \
              DT_f64);                                                                             \
    }
AGAINST(exp, one, 760)
AGAINST(exp2, one, 1100)
AGAINST(expm1, one, 760)
AGAINST(log, one, 3)
AGAINST(log2, one, 3)
AGAINST(log10, one, 3)
AGAINST(log1p, one, 3)
AGAINST(sin, one, 1e5)
AGAINST(cos, one, 1e5)
AGAINST(tan, one, 1e5)
AGAINST(asin, one, 1.01)
AGAINST(acos, one, 1.01)
AGAINST(atan, one, 5)
AGAINST(sinh, one, 760)
AGAINST(cosh, one, 760)
AGAINST(tanh, one, 25)
AGAINST(asinh, one, 5)
AGAINST(acosh, one, 5)
AGAINST(atanh, one, 1.01)
AGAINST(cbrt, one, 30)
AGAINST(erf, one, 7)
AGAINST(erfc, one, 28)
AGAINST(atan2, two, 5)
AGAINST(pow, two, 40)
