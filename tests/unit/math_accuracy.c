// math_accuracy.c: the error of each math function's expansion, in units in the last place, against
// libm in the next wider format; the bounds are those that ops.def states.
//
// f32 walks through all bit patterns (every exponent, both signs, NaNs) in steps of a prime. f64
// draws arguments of all magnitudes, and more where the functions bend. pow draws pairs: of all
// magnitudes, and such whose result has any exponent; atan2 such as are of like magnitude too.
//
// What is measured is compiled code; the interpreter of expansions has to give the same bits, for
// all arguments of a short sweep and for every thousandth block or so of a long one.
//
// In the environment:
//   FUSEC_SWEEP_STEP=1     all 2^32 arguments, a hundred times as many of f64, and the worst error
//                          printed; a minute or two a function
//   FUSEC_SWEEP_PART=3/16  the fourth of 16 equal ranges of arguments, for several processes
// One function alone: --filter math_accuracy/exp_f32. Criterion runs as many functions at once as
// there are cores; -j N says otherwise.
#include "ir/expand.h"
#include "tests/support/accuracy.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F64_BLOCKS = 100, F64_BLOCKS_LONG = 100 * F64_BLOCKS, CHECKED_BLOCKS = 4096 };

struct function {
    uint16_t op;
    uint8_t dtype;
    double (*wide)(double);
    long double (*widest)(long double);
    double spread; // f64: a third of the arguments are within this distance of 0
    bool own_ulp;  // below 0 an error counts in the argument's last places, not in the result's
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

// The interpreter's results are those of the compiled code.
static void
check_bits(const struct compiled *c, const uint64_t *interpreted, const uint64_t *argument)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint64_t got = compiled_get(c, i), want = interpreted[i];
        bool both_nan =
            isnan(scalar_to_double(c->dtype, got)) && isnan(scalar_to_double(c->dtype, want));
        cr_assert(got == want || both_nan, "%s of %lx: compiled %lx, interpreted %lx",
                  dtype_name(c->dtype), (unsigned long)argument[i], (unsigned long)got,
                  (unsigned long)want);
    }
}

// The same for an f32 result that is an ordinary number, to the precision of a double.
static double
distance32(double got, double want)
{
    union {
        double value;
        uint64_t bits;
    } size = {fabs(want)}, places;
    if (!(size.value > 0x1p-140 && size.value < 0x1p127 && got * want > 0 && fabs(got) < 0x1p128))
        return distance(DT_f32, got, (long double)want);
    int64_t exponent = (int64_t)(size.bits >> 52) - 1023, least = -126;
    places.bits = (uint64_t)(1023 + 23 - (exponent < least ? least : exponent)) << 52;
    return fabs(got - want) * places.value;
}

struct worst {
    double error, at;
};

// The same for a result below an argument x < 0, in x's last places.
static double
distance_below(uint8_t dtype, double got, long double want, double x)
{
    double d = distance(dtype, got, want);
    if (d == 0 || isinf(d) || !(x < 0))
        return d;
    int fraction = dtype == DT_f32 ? 24 : 53, least = dtype == DT_f32 ? -125 : -1021, exponent;
    frexp(x, &exponent);
    return (double)ldexpl(fabsl((long double)got - want),
                          fraction - (exponent < least ? least : exponent));
}

static void
compare(struct worst *w, const struct function *f, uint64_t argument, uint64_t result)
{
    double x = scalar_to_double(f->dtype, argument), got = scalar_to_double(f->dtype, result);
    bool narrow = f->dtype == DT_f32;
    long double want = narrow ? (long double)f->wide(x) : f->widest((long double)x);
    double error = f->own_ulp ? distance_below(f->dtype, got, want, x)
                   : narrow   ? distance32(got, (double)want)
                              : distance(f->dtype, got, want);
    if (error > w->error)
        *w = (struct worst){error, x};
}

// FUSEC_SWEEP_PART's range of all f32.
static void
range_of_part(uint64_t *begin, uint64_t *end)
{
    const char *text = getenv("FUSEC_SWEEP_PART");
    unsigned long part = 0, parts = 1;
    if (text) {
        int fields = sscanf(text, "%lu/%lu", &part, &parts);
        cr_assert(fields == 2 && part < parts && parts < 1 << 16, "FUSEC_SWEEP_PART=%s", text);
    }
    *begin = (1ull << 32) * part / parts;
    *end = (1ull << 32) * (part + 1) / parts;
}

// Where a sweep of all arguments found the largest error of some function, now or once: a short one
// asks for them too.
static const double hard_f32[] = {
    0x1.904fbcp-1, 0x1.67f0f8p-1, -0x1.765026p+2, 0x1.0113cap-3, 0x1.11a21ep-3, 0x1.aca316p+67,
    0x1.7b9146p+37, -0x1.1abce6p+0, 0x1.019566p-126, 0x1.054922p+1, 0x1.045a42p+1,
};

// Steps past the end are taken from the front of the range.
static struct worst
sweep_f32(const struct function *f, uint64_t step)
{
    struct body b = body_new(f->op, DT_f32);
    struct compiled c = compiled_new(f->op, DT_f32);
    struct worst w = {-1, 0};
    uint64_t argument[BLOCK], begin, end;
    range_of_part(&begin, &end);
    uint64_t blocks = (end - begin) / step / BLOCK + 1;
    uint64_t each = (1ull << 32) / step / BLOCK / CHECKED_BLOCKS + 1;
    for (uint64_t n = 0, next = begin; n < blocks; n++) {
        for (uint32_t i = 0; i < BLOCK; i++, next += step) {
            next -= next < end ? 0 : end - begin;
            bool hard = n == 0 && step > 1 && i < sizeof hard_f32 / sizeof *hard_f32;
            argument[i] = hard ? scalar_from_double(DT_f32, hard_f32[i]) : next;
            compiled_set(&c, 0, i, argument[i]);
        }
        compiled_run(&c);
        if (n % each == 0)
            check_bits(&c, body_run(&b, argument), argument);
        for (uint32_t i = 0; i < BLOCK; i++)
            compare(&w, f, argument[i], compiled_get(&c, i));
    }
    body_free(&b);
    compiled_free(&c);
    return w;
}

static struct worst
sweep_f64(const struct function *f, uint32_t blocks)
{
    struct body b = body_new(f->op, DT_f64);
    struct compiled c = compiled_new(f->op, DT_f64);
    struct worst w = {-1, 0};
    uint64_t argument[BLOCK], state = 1, each = blocks / CHECKED_BLOCKS + 1;
    for (uint32_t n = 0; n < blocks; n++) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            argument[i] = draw_f64(&state, i % 3, f->spread);
            compiled_set(&c, 0, i, argument[i]);
        }
        compiled_run(&c);
        if (n % each == 0)
            check_bits(&c, body_run(&b, argument), argument);
        for (uint32_t i = 0; i < BLOCK; i++)
            compare(&w, f, argument[i], compiled_get(&c, i));
    }
    body_free(&b);
    compiled_free(&c);
    return w;
}

static void
check(const struct function *f)
{
    const char *text = getenv("FUSEC_SWEEP_STEP");
    uint64_t step = text ? strtoull(text, NULL, 10) : 0;
    struct worst w = f->dtype == DT_f32 ? sweep_f32(f, step ? step : 2039)
                                        : sweep_f64(f, step ? F64_BLOCKS_LONG : F64_BLOCKS);
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

// 0 at -infinity, as the limit is.
static long double
gelul(long double x)
{
    return x < -1000 ? -0.0L : x / 2 * erfcl(x * -0.70710678118654752440L);
}
static long double
gelu_tanhl(long double x)
{
    long double z = 0.79788456080286535588L * (x + 0.044715L * x * x * x);
    return x < -1000 ? -0.0L : x / (1 + expl(-2 * z));
}
static double
gelu(double x)
{
    return x < -1000 ? -0.0 : x / 2 * erfc(x * -0.70710678118654752440);
}
static double
gelu_tanh(double x)
{
    double z = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return x < -1000 ? -0.0 : x / (1 + exp(-2 * z));
}

#define ACCURACY(name, distance_from_0, own_ulp)                                                   \
    Test(math_accuracy, name##_f32)                                                                \
    {                                                                                              \
        check(&(struct function){OP_##name, DT_f32, name, name##l, distance_from_0, own_ulp});     \
    }                                                                                              \
    Test(math_accuracy, name##_f64)                                                                \
    {                                                                                              \
        check(&(struct function){OP_##name, DT_f64, name, name##l, distance_from_0, own_ulp});     \
    }
ACCURACY(exp, 760, false)
ACCURACY(log, 3, false)
ACCURACY(sin, 1e5, false)
ACCURACY(cos, 1e5, false)
ACCURACY(tanh, 25, false)
ACCURACY(erf, 7, false)
ACCURACY(sigmoid, 760, false)
ACCURACY(rsqrt, 1e10, false)
ACCURACY(gelu, 8, true)
ACCURACY(gelu_tanh, 8, true)
ACCURACY(exp2, 1100, false)
ACCURACY(expm1, 760, false)
ACCURACY(sinh, 760, false)
ACCURACY(cosh, 760, false)
ACCURACY(log2, 3, false)
ACCURACY(log10, 3, false)
ACCURACY(log1p, 3, false)
ACCURACY(tan, 1e5, false)
ACCURACY(asin, 1.01, false)
ACCURACY(acos, 1.01, false)
ACCURACY(atan, 5, false)
ACCURACY(asinh, 5, false)
ACCURACY(acosh, 5, false)
ACCURACY(atanh, 1.01, false)
ACCURACY(cbrt, 30, false)
ACCURACY(erfc, 28, false)

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

// Of all magnitudes; of like ones; and near each other, where the smaller by the larger is cut.
static uint64_t
atan2_pair(uint8_t dtype, uint32_t kind, uint64_t *state, uint64_t *y)
{
    int bits = dtype_table[dtype].bits;
    uint64_t first = draw(state) >> (64 - bits);
    *y = draw(state) >> (64 - bits);
    double unit = (double)(int64_t)draw(state) * 0x1p-63;
    double v = scalar_to_double(dtype, first);
    if (kind == 1)
        *y = scalar_from_double(dtype, v * unit);
    if (kind == 2)
        *y = scalar_from_double(dtype, v / unit);
    if (kind == 3)
        *y = scalar_from_double(dtype, v * (1 + unit / 8) * (draw(state) % 2 ? 0.41421356 : 1));
    if (kind == 4)
        *y = scalar_from_double(dtype, ldexp(v * unit, (int)(draw(state) % 64) - 32));
    return first;
}

struct pair_function {
    uint16_t op;
    long double (*wide)(long double, long double);
    uint64_t (*draw)(uint8_t dtype, uint32_t kind, uint64_t *state, uint64_t *second);
};

static struct worst
sweep_pair(const struct pair_function *f, uint8_t dtype, uint32_t samples)
{
    struct body b = {0};
    vec_push(&b.k.inst, (struct inst){0});
    for (int i = 0; i < 2; i++)
        vec_push(&b.k.inst, ((struct inst){.op = OP_load, .dtype = dtype, .level = LEVEL_ELEM,
                                           .aux = (uint32_t)i}));
    vec_push(&b.k.inst, ((struct inst){.op = f->op, .dtype = dtype, .a = 1, .b = 2,
                                       .level = LEVEL_ELEM}));
    vec_push(&b.k.store, ((struct store){.value = 3}));
    kernel_expand(&b.k);
    body_ready(&b);
    struct compiled c = compiled_new(f->op, dtype);
    struct worst w = {-1, 0};
    uint64_t x[BLOCK], state = 1, each = samples / BLOCK / CHECKED_BLOCKS + 1;
    for (uint32_t n = 0; n < samples / BLOCK; n++) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            x[i] = f->draw(dtype, i % 5, &state, &b.value[2][i]);
            compiled_set(&c, 0, i, x[i]);
            compiled_set(&c, 1, i, b.value[2][i]);
        }
        compiled_run(&c);
        if (n % each == 0)
            check_bits(&c, body_run(&b, x), x);
        for (uint32_t i = 0; i < BLOCK; i++) {
            double base = scalar_to_double(dtype, x[i]);
            double power = scalar_to_double(dtype, b.value[2][i]);
            long double want = f->wide((long double)base, (long double)power);
            double error = distance(dtype, scalar_to_double(dtype, compiled_get(&c, i)), want);
            if (error > w.error)
                w = (struct worst){error, base};
        }
    }
    body_free(&b);
    compiled_free(&c);
    return w;
}

static void
check_pair(const struct pair_function *f, uint8_t dtype)
{
    bool all = getenv("FUSEC_SWEEP_STEP") != NULL;
    struct worst w = sweep_pair(f, dtype, (all ? 4000 : 60) * BLOCK);
    float bound = dtype == DT_f32 ? op_table[f->op].ulp32 : op_table[f->op].ulp64;
    cr_expect(w.error <= (double)bound, "%s %s: %.4f ulp at %a", op_name(f->op), dtype_name(dtype),
              w.error, w.at);
    if (all)
        printf("%s %s: at most %.4f ulp, at %a\n", op_name(f->op), dtype_name(dtype), w.error,
               w.at);
}

static const struct pair_function pow_function = {OP_pow, powl, pow_pair};
static const struct pair_function atan2_function = {OP_atan2, atan2l, atan2_pair};

Test(math_accuracy, pow_f32)
{
    check_pair(&pow_function, DT_f32);
}

Test(math_accuracy, pow_f64)
{
    check_pair(&pow_function, DT_f64);
}

Test(math_accuracy, atan2_f32)
{
    check_pair(&atan2_function, DT_f32);
}

Test(math_accuracy, atan2_f64)
{
    check_pair(&atan2_function, DT_f64);
}
