// math_accuracy.c: the error of each math function's expansion, in units in the last place, against
// libm in the next wider format; the bounds are those that ops.def states.
//
// f32 walks through all bit patterns (every exponent, both signs, NaNs) in steps of a prime. With
// FUSEC_SWEEP_STEP=1 in the environment it takes all 2^32 of them and prints the worst error.
// f64 draws arguments of all magnitudes, and more where the functions bend. pow draws pairs: of all
// magnitudes, and such whose result has any exponent.
#include "ir/expand.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, F64_SAMPLES = 100 * BLOCK };

struct function {
    uint16_t op;
    uint8_t dtype;
    double (*wide)(double);
    long double (*widest)(long double);
    double spread; // f64: a third of the arguments are within this distance of 0
};

// A body of one load, expanded: instruction 1 is the argument, `result` the value.
struct body {
    struct kernel k;
    uint64_t (*value)[BLOCK]; // per instruction
    uint32_t result;
};

static void
body_ready(struct body *b)
{
    b->result = b->k.store.at[0].value;
    b->value = xcalloc(b->k.inst.n, sizeof *b->value);
    for (uint32_t i = 1; i < b->k.inst.n; i++)
        if (b->k.inst.at[i].op == OP_literal)
            for (uint32_t j = 0; j < BLOCK; j++)
                b->value[i][j] = b->k.inst.at[i].bits;
}

static struct body
body_new(uint16_t op, uint8_t dtype)
{
    struct body b = {0};
    vec_push(&b.k.inst, (struct inst){0});
    vec_push(&b.k.inst, ((struct inst){.op = OP_load, .dtype = dtype, .level = LEVEL_ELEM}));
    vec_push(&b.k.inst, ((struct inst){.op = op, .dtype = dtype, .a = 1, .level = LEVEL_ELEM}));
    vec_push(&b.k.store, ((struct store){.value = 2}));
    kernel_expand(&b.k);
    body_ready(&b);
    return b;
}

static const uint64_t *
body_run(struct body *b, const uint64_t *argument)
{
    memcpy(b->value[1], argument, sizeof b->value[1]);
    for (uint32_t i = 2; i < b->k.inst.n; i++) {
        const struct inst *in = &b->k.inst.at[i];
        if (in->op == OP_literal || in->op == OP_load)
            continue;
        uint8_t dtype = b->k.inst.at[in->op == OP_where ? in->b : in->a].dtype;
        const uint64_t *x = b->value[in->a], *y = b->value[in->b], *z = b->value[in->c];
        for (uint32_t j = 0; j < BLOCK; j++)
            b->value[i][j] = eval_primitive(in->op, dtype, in->dtype, x[j], y[j], z[j]);
    }
    return b->value[b->result];
}

static void
body_free(struct body *b)
{
    kernel_free_body(&b->k);
    xfree(b->value);
}

// Units in the last place of the dtype between got and the true value; infinite where one is NaN
// and the other is not, or where signs of zeros differ.
static double
distance(uint8_t dtype, double got, long double want)
{
    int fraction = dtype == DT_f32 ? 24 : 53, least = dtype == DT_f32 ? -125 : -1021, exponent;
    double rounded = scalar_to_double(dtype, scalar_from_double(dtype, (double)want));
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
    if (isinf(got) || isinf(rounded))
        return got == rounded ? 0 : (double)INFINITY;
    if (!signbit(got) != !signbit(want))
        return (double)INFINITY;
    frexpl(want, &exponent);
    return (double)ldexpl(fabsl((long double)got - want),
                          fraction - (exponent < least ? least : exponent));
}

struct worst {
    double error, at;
};

static void
compare(struct worst *w, const struct function *f, uint64_t argument, uint64_t result)
{
    double x = scalar_to_double(f->dtype, argument);
    long double want = f->dtype == DT_f32 ? (long double)f->wide(x) : f->widest((long double)x);
    double error = distance(f->dtype, scalar_to_double(f->dtype, result), want);
    if (error > w->error)
        *w = (struct worst){error, x};
}

static struct worst
sweep_f32(const struct function *f, uint64_t step)
{
    struct body b = body_new(f->op, DT_f32);
    struct worst w = {-1, 0};
    uint64_t argument[BLOCK];
    for (uint64_t next = 0; next < 1ull << 32;) {
        for (uint32_t i = 0; i < BLOCK; i++, next += step)
            argument[i] = next & 0xffffffff;
        const uint64_t *result = body_run(&b, argument);
        for (uint32_t i = 0; i < BLOCK; i++)
            compare(&w, f, argument[i], result[i]);
    }
    body_free(&b);
    return w;
}

static uint64_t
draw(uint64_t *state) // xorshift64*
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static uint64_t
draw_f64(uint64_t *state, uint32_t kind, double spread)
{
    uint64_t bits = draw(state);
    double unit = (double)(int64_t)bits * 0x1p-63;
    if (kind == 0)
        return bits;
    if (kind == 1)
        return scalar_from_double(DT_f64, unit * spread);
    return scalar_from_double(DT_f64, ldexp(unit, (int)(draw(state) % 24) - 16));
}

static struct worst
sweep_f64(const struct function *f)
{
    struct body b = body_new(f->op, DT_f64);
    struct worst w = {-1, 0};
    uint64_t argument[BLOCK], state = 1;
    for (uint32_t n = 0; n < F64_SAMPLES; n += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++)
            argument[i] = draw_f64(&state, i % 3, f->spread);
        const uint64_t *result = body_run(&b, argument);
        for (uint32_t i = 0; i < BLOCK; i++)
            compare(&w, f, argument[i], result[i]);
    }
    body_free(&b);
    return w;
}

static void
check(const struct function *f)
{
    const char *text = getenv("FUSEC_SWEEP_STEP");
    uint64_t step = text ? strtoull(text, NULL, 10) : 0;
    struct worst w = f->dtype == DT_f32 ? sweep_f32(f, step ? step : 2039) : sweep_f64(f);
    float bound = f->dtype == DT_f32 ? op_table[f->op].ulp32 : op_table[f->op].ulp64;
    cr_expect(w.error <= (double)bound, "%s %s: %.4f ulp at %a, bound %.2f", op_name(f->op),
              dtype_name(f->dtype), w.error, w.at, (double)bound);
    if (step)
        printf("%s %s: at most %.4f ulp, at %a\n", op_name(f->op), dtype_name(f->dtype), w.error,
               w.at);
}

static double
sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static long double
sigmoidl(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
static double
rsqrt(double x)
{
    return 1 / sqrt(x);
}
static long double
rsqrtl(long double x)
{
    return 1 / sqrtl(x);
}

#define ACCURACY(name, distance_from_0)                                                            \
    Test(math_accuracy, name##_f32)                                                                \
    {                                                                                              \
        check(&(struct function){OP_##name, DT_f32, name, name##l, distance_from_0});              \
    }                                                                                              \
    Test(math_accuracy, name##_f64)                                                                \
    {                                                                                              \
        check(&(struct function){OP_##name, DT_f64, name, name##l, distance_from_0});              \
    }
ACCURACY(exp, 760)
ACCURACY(log, 3)
ACCURACY(sin, 1e5)
ACCURACY(cos, 1e5)
ACCURACY(tanh, 25)
ACCURACY(erf, 7)
ACCURACY(sigmoid, 760)
ACCURACY(rsqrt, 1e10)

// ---- pow

static uint64_t
pow_pair(uint8_t dtype, uint32_t kind, uint64_t *state, uint64_t *y)
{
    static const double plain[] = {2, 3, 0.5, -1, 1, -2, 0, 4};
    int bits = dtype_table[dtype].bits, top = dtype == DT_f32 ? 150 : 1080;
    uint64_t x = draw(state) >> (64 - bits);
    *y = draw(state) >> (64 - bits);
    double unit = (double)(int64_t)draw(state) * 0x1p-63;
    if (kind == 1)
        *y = scalar_from_double(dtype, plain[draw(state) % 8]);
    if (kind == 2) // near 1, where the logarithm is small
        x = scalar_from_double(dtype, 1 + ldexp(unit, -(int)(draw(state) % 50)));
    double log2x = log2(fabs(scalar_to_double(dtype, x)));
    if (kind >= 2)
        *y = scalar_from_double(dtype, unit * top / (log2x != 0 ? log2x : 1));
    if (kind == 4) // few digits: negative x, exact results
        *y = scalar_from_double(dtype, rint(scalar_to_double(dtype, *y)));
    return x;
}

static struct worst
sweep_pow(uint8_t dtype, uint32_t samples)
{
    struct body b = {0};
    vec_push(&b.k.inst, (struct inst){0});
    for (int i = 0; i < 2; i++)
        vec_push(&b.k.inst, ((struct inst){.op = OP_load, .dtype = dtype, .level = LEVEL_ELEM,
                                           .aux = (uint32_t)i}));
    vec_push(&b.k.inst, ((struct inst){.op = OP_pow, .dtype = dtype, .a = 1, .b = 2,
                                       .level = LEVEL_ELEM}));
    vec_push(&b.k.store, ((struct store){.value = 3}));
    kernel_expand(&b.k);
    body_ready(&b);
    struct worst w = {-1, 0};
    uint64_t x[BLOCK], state = 1;
    for (uint32_t n = 0; n < samples; n += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++)
            x[i] = pow_pair(dtype, i % 5, &state, &b.value[2][i]);
        const uint64_t *r = body_run(&b, x);
        for (uint32_t i = 0; i < BLOCK; i++) {
            double base = scalar_to_double(dtype, x[i]);
            double power = scalar_to_double(dtype, b.value[2][i]);
            long double want = powl((long double)base, (long double)power);
            double error = distance(dtype, scalar_to_double(dtype, r[i]), want);
            if (error > w.error)
                w = (struct worst){error, base};
        }
    }
    body_free(&b);
    return w;
}

static void
check_pow(uint8_t dtype)
{
    bool all = getenv("FUSEC_SWEEP_STEP") != NULL;
    struct worst w = sweep_pow(dtype, (all ? 4000 : 60) * BLOCK);
    float bound = dtype == DT_f32 ? op_table[OP_pow].ulp32 : op_table[OP_pow].ulp64;
    cr_expect(w.error <= (double)bound, "pow %s: %.4f ulp at %a", dtype_name(dtype), w.error, w.at);
    if (all)
        printf("pow %s: at most %.4f ulp, at %a\n", dtype_name(dtype), w.error, w.at);
}

Test(math_accuracy, pow_f32)
{
    check_pow(DT_f32);
}

Test(math_accuracy, pow_f64)
{
    check_pow(DT_f64);
}
