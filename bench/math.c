// math.c: what fusec's own vector functions take, in nanoseconds an element, next to those of
// glibc's libmvec and of SLEEF, where this machine has them.
//
//   build/bench/math [--avx2] [NAME...]
//
// Each function runs over arrays that fit in the first-level cache, on one thread: ours as a
// compiled kernel, launched as any plan is; theirs in a loop of load, call and store. The ways take
// turns in batches of some microseconds; minimum and median over the batches are printed, and the
// largest error over the arguments, in units in the last place, against libm in the next wider
// format (powl for pow). "ratio" is our median over that of the fastest library whose error is at
// most 1.5 times ours or below 1 (all of them, where none is). The last figure is ours over
// arguments drawn wide, with 0, -inf and inf among them: what saturates is ordinary data.
// --avx2: code for 256-bit vectors, and the libraries' forms for those.
#include "ir/base/clock.h"
#include "ir/text.h"
#include "runtime/device.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3072, ROUNDS = 160, PEERS = 2, WAYS = 1 + PEERS };
static const double batch_us = 15;

typedef long double wide_fn(long double, long double);

struct function {
    const char *name, *body; // of x, and of y where there are two operands
    const char *mvec, *sleef;// stems; NULL: not in that library
    uint32_t arity;
    uint8_t dtype;
    double low, high, low2, high2; // arguments
    wide_fn *wide;
};

#define WIDE(name, value)                                                                          \
    static long double name##_wide(long double x, long double y)                                   \
    {                                                                                              \
        (void)y;                                                                                   \
        return value;                                                                              \
    }
WIDE(exp, expl(x))
WIDE(log, logl(x))
WIDE(tanh, tanhl(x))
WIDE(erf, erfl(x))
WIDE(sin, sinl(x))
WIDE(cos, cosl(x))
WIDE(exp2, exp2l(x))
WIDE(expm1, expm1l(x))
WIDE(sinh, sinhl(x))
WIDE(cosh, coshl(x))
WIDE(log2, log2l(x))
WIDE(log10, log10l(x))
WIDE(log1p, log1pl(x))
WIDE(tan, tanl(x))
WIDE(asin, asinl(x))
WIDE(acos, acosl(x))
WIDE(atan, atanl(x))
WIDE(atan2, atan2l(x, y))
WIDE(asinh, asinhl(x))
WIDE(acosh, acoshl(x))
WIDE(atanh, atanhl(x))
WIDE(cbrt, cbrtl(x))
WIDE(erfc, erfcl(x))
WIDE(pow, powl(x, y))
WIDE(sigmoid, 1 / (1 + expl(-x)))
WIDE(rsqrt, 1 / sqrtl(x))

// One row for f32 and one for f64.
#define BOTH(name, arity, ...)                                                                     \
    {#name, #name, #name, #name, arity, DT_f32, __VA_ARGS__, name##_wide},                         \
    {#name, #name, #name, #name, arity, DT_f64, __VA_ARGS__, name##_wide}
#define OURS(name, body, dtype, low, high) {name, body, NULL, NULL, 1, dtype, low, high, 0, 0, NULL}
static const struct function functions[] = {
    BOTH(exp, 1, -80, 80, 0, 0),
    BOTH(log, 1, 1e-3, 1e3, 0, 0),
    BOTH(tanh, 1, -5, 5, 0, 0),
    BOTH(erf, 1, -3.5, 3.5, 0, 0),
    BOTH(sin, 1, -10, 10, 0, 0),
    BOTH(cos, 1, -10, 10, 0, 0),
    BOTH(exp2, 1, -120, 120, 0, 0),
    BOTH(expm1, 1, -5, 5, 0, 0),
    BOTH(sinh, 1, -5, 5, 0, 0),
    BOTH(cosh, 1, -5, 5, 0, 0),
    BOTH(log2, 1, 1e-3, 1e3, 0, 0),
    BOTH(log10, 1, 1e-3, 1e3, 0, 0),
    BOTH(log1p, 1, -0.9, 10, 0, 0),
    BOTH(tan, 1, -10, 10, 0, 0),
    BOTH(asin, 1, -1, 1, 0, 0),
    BOTH(acos, 1, -1, 1, 0, 0),
    BOTH(atan, 1, -5, 5, 0, 0),
    BOTH(atan2, 2, -5, 5, -5, 5),
    BOTH(asinh, 1, -5, 5, 0, 0),
    BOTH(acosh, 1, 1, 10, 0, 0),
    BOTH(atanh, 1, -1, 1, 0, 0),
    BOTH(cbrt, 1, -30, 30, 0, 0),
    BOTH(erfc, 1, -3.5, 3.5, 0, 0),
    BOTH(pow, 2, 1e-2, 1e2, -8, 8),
    {"sigmoid", "sigmoid", NULL, NULL, 1, DT_f32, -20, 20, 0, 0, sigmoid_wide},
    {"sigmoid", "sigmoid", NULL, NULL, 1, DT_f64, -20, 20, 0, 0, sigmoid_wide},
    {"rsqrt", "rsqrt", NULL, NULL, 1, DT_f32, 1e-3, 1e3, 0, 0, rsqrt_wide},
    OURS("gelu", "gelu", DT_f32, -5, 5),
    OURS("gelu_tanh", "gelu_tanh", DT_f32, -5, 5),
    OURS("silu", "silu", DT_f32, -9, 9),
    OURS("relu", "relu", DT_f32, -9, 9),
    OURS("max", "max %x, ", DT_f32, -9, 9),
    OURS("cast", "cast %x {to = bf16}", DT_f32, -9, 9),
    OURS("neg", "neg", DT_bf16, -9, 9),
    OURS("gelu", "gelu", DT_bf16, -5, 5),
    OURS("exp", "exp", DT_bf16, -80, 80),
};

// ---- the libraries

#if defined __x86_64__
typedef float f32x16 __attribute__((vector_size(64)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));

// Loops that call a vector function of one or two operands.
#define LOOPS(type, elem, isa)                                                                     \
    __attribute__((target(isa))) static void type##_loop1(void *fn, const void *x, const void *y,  \
                                                          void *out)                               \
    {                                                                                              \
        type (*call)(type);                                                                        \
        memcpy(&call, &fn, sizeof call);                                                           \
        (void)y;                                                                                   \
        for (size_t i = 0; i < COUNT * sizeof(elem); i += sizeof(type))                            \
            *(type *)((char *)out + i) = call(*(const type *)((const char *)x + i));               \
    }                                                                                              \
    __attribute__((target(isa))) static void type##_loop2(void *fn, const void *x, const void *y,  \
                                                          void *out)                               \
    {                                                                                              \
        type (*call)(type, type);                                                                  \
        memcpy(&call, &fn, sizeof call);                                                           \
        for (size_t i = 0; i < COUNT * sizeof(elem); i += sizeof(type))                            \
            *(type *)((char *)out + i) =                                                           \
                call(*(const type *)((const char *)x + i), *(const type *)((const char *)y + i));  \
    }
LOOPS(f32x16, float, "avx512f")
LOOPS(f64x8, double, "avx512f")
LOOPS(f32x8, float, "avx2")
LOOPS(f64x4, double, "avx2")

typedef void loop_fn(void *fn, const void *x, const void *y, void *out);
static loop_fn *const loops[2][2][2] = { // [256-bit][f64][operands - 1]
    {{f32x16_loop1, f32x16_loop2}, {f64x8_loop1, f64x8_loop2}},
    {{f32x8_loop1, f32x8_loop2}, {f64x4_loop1, f64x4_loop2}},
};

static loop_fn *
loop_of(const struct function *f, bool narrow)
{
    return loops[narrow][f->dtype == DT_f64][f->arity - 1];
}
#else
typedef void loop_fn(void *fn, const void *x, const void *y, void *out);

static loop_fn *
loop_of(const struct function *f, bool narrow)
{
    (void)f, (void)narrow;
    return NULL;
}
#endif

static void *
peer_function(const struct function *f, uint32_t peer, bool narrow)
{
    static const char *const file[PEERS] = {"libmvec.so.1", "libsleef.so.3"};
    const char *stem = peer ? f->sleef : f->mvec;
    void *lib = stem ? dlopen(file[peer], RTLD_NOW) : NULL;
    if (!lib)
        return NULL;
    bool wide = f->dtype == DT_f64;
    int lanes = (wide ? 8 : 16) / (narrow ? 2 : 1);
    char name[64];
    if (peer)
        snprintf(name, sizeof name, "Sleef_%s%c%d_u10%s", stem, wide ? 'd' : 'f', lanes,
                 narrow ? "avx2" : "avx512f");
    else
        snprintf(name, sizeof name, "_ZGV%cN%d%s_%s%s", narrow ? 'd' : 'e', lanes,
                 f->arity == 2 ? "vv" : "v", stem, wide ? "" : "f");
    return dlsym(lib, name);
}

// ---- one function's ways

struct ways {
    const struct function *f;
    struct executable *ours;
    void *peer[PEERS];
    loop_fn *loop;
    void *in[2], *out;
};

static bool
run_way(struct ways *w, uint32_t way, struct diag *d)
{
    if (way == 0)
        return executable_run(w->ours, w->in, &w->out, d);
    w->loop(w->peer[way - 1], w->in[0], w->in[1], w->out);
    return true;
}

static struct executable *
compile(const struct function *f, struct device *dev, struct diag *d)
{
    char text[300];
    const char *t = dtype_name(f->dtype);
    bool call = strchr(f->body, '%') != NULL;
    bool second = f->arity == 2 || !strcmp(f->name, "max");
    snprintf(text, sizeof text, "graph @g(%%x: %s[%d]%s%s%s) {\n  return %s%s%s\n}\n", t, COUNT,
             second ? ", %y: " : "", second ? t : "", second ? "[3072]" : "", f->body,
             call ? "" : " %x", second ? (call ? "%y" : ", %y") : "");
    struct graph *g = graph_parse(text, strlen(text), f->name, d);
    struct plan *p = g ? plan_build(g, &dev->target, NULL, d) : NULL;
    if (g)
        graph_free(g);
    return p ? executable_new(p, dev, d) : NULL;
}

static double
argument(double low, double high, uint32_t i)
{
    double unit = (double)((i * 2654435761u) >> 8) * 0x1p-24;
    return low + (high - low) * unit;
}

// Close to normal with a deviation of 100; every sixteenth is 0, -infinity or infinity.
static double
wide_argument(uint32_t i)
{
    static const double end[3] = {0, -(double)INFINITY, (double)INFINITY};
    double sum = 0;
    for (uint32_t k = 0; k < 12; k++)
        sum += argument(-100, 100, 12 * i + k) * 0.5;
    return i % 16 == 5 ? end[i / 16 % 3] : sum;
}

static void
fill(const struct function *f, void *const in[2], bool wide)
{
    uint32_t size = (uint32_t)dtype_size(f->dtype);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < COUNT; i++) {
            double v = wide  ? wide_argument(i * (1 + 6 * k) + 3 * k)
                       : k   ? argument(f->low2, f->high2, i * 7 + 3)
                             : argument(f->low, f->high, i);
            uint64_t bits = scalar_from_double(f->dtype, v);
            memcpy((char *)in[k] + (size_t)i * size, &bits, size);
        }
}

static double
element(const struct function *f, const void *p, uint32_t i)
{
    uint64_t bits = 0;
    uint32_t size = (uint32_t)dtype_size(f->dtype);
    memcpy(&bits, (const char *)p + (size_t)i * size, size);
    return scalar_to_double(f->dtype, bits);
}

static double
largest_error(struct ways *w)
{
    double worst = 0;
    int digits = w->f->dtype == DT_f32 ? 24 : 53;
    for (uint32_t i = 0; i < COUNT; i++) {
        long double want = w->f->wide(element(w->f, w->in[0], i), element(w->f, w->in[1], i));
        int exponent;
        frexpl(want, &exponent);
        double e = (double)ldexpl(fabsl(element(w->f, w->out, i) - want), digits - exponent);
        worst = e > worst ? e : worst;
    }
    return worst;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct result {
    double least, median, error, wide;
};

static double
time_batch(struct ways *w, uint32_t way, uint32_t calls, struct diag *d)
{
    double start = clock_us();
    for (uint32_t i = 0; i < calls; i++)
        run_way(w, way, d);
    return (clock_us() - start) * 1e3 / calls / COUNT;
}

static void
measure(struct ways *w, struct result r[WAYS], struct diag *d)
{
    static double sample[WAYS][ROUNDS];
    uint32_t calls[WAYS] = {0};
    for (uint32_t k = 0; k < WAYS; k++) {
        if (k && !w->peer[k - 1])
            continue;
        double once = time_batch(w, k, 20, d);
        calls[k] = (uint32_t)(batch_us * 1e3 / (once * COUNT)) + 1;
        r[k].error = w->f->wide ? largest_error(w) : 0;
    }
    for (uint32_t i = 0; i < ROUNDS; i++)
        for (uint32_t j = 0; j < WAYS; j++) {
            uint32_t k = i & 1 ? WAYS - 1 - j : j;
            if (calls[k])
                sample[k][i] = time_batch(w, k, calls[k], d);
        }
    for (uint32_t k = 0; k < WAYS; k++) {
        qsort(sample[k], ROUNDS, sizeof(double), by_size);
        r[k].least = sample[k][0];
        r[k].median = sample[k][ROUNDS / 2];
    }
}

static double
wide_time(struct ways *w, struct diag *d)
{
    double sample[ROUNDS];
    fill(w->f, w->in, true);
    time_batch(w, 0, 20, d);
    for (uint32_t i = 0; i < ROUNDS; i++)
        sample[i] = time_batch(w, 0, 8, d);
    qsort(sample, ROUNDS, sizeof *sample, by_size);
    return sample[ROUNDS / 2];
}

static void
report(const struct ways *w, const struct result r[WAYS])
{
    printf("%-10s %-5s", w->f->name, dtype_name(w->f->dtype));
    double best = 0, any = 0;
    for (uint32_t k = 0; k < WAYS; k++) {
        if (k && !w->peer[k - 1]) {
            printf("  %22s", "-");
            continue;
        }
        printf("  %7.3f %7.3f  %5.2f", r[k].least, r[k].median, r[k].error);
        bool equal = r[k].error <= 1.5 * r[0].error || r[k].error < 1;
        if (k && (any == 0 || r[k].median < any))
            any = r[k].median;
        if (k && equal && (best == 0 || r[k].median < best))
            best = r[k].median;
    }
    best = best > 0 ? best : any;
    if (best > 0)
        printf("  %6.2f", r[0].median / best);
    else
        printf("  %6s", "");
    printf("  %7.3f\n", r[0].wide);
}

static bool
bench(const struct function *f, struct device *dev, bool narrow, struct diag *d)
{
    struct ways w = {.f = f, .loop = loop_of(f, narrow)};
    for (uint32_t k = 0; k < PEERS; k++)
        w.peer[k] = w.loop ? peer_function(f, k, narrow) : NULL;
    int64_t bytes = COUNT * (int64_t)sizeof(double);
    void *memory = dev->ops->alloc(dev, 3 * bytes);
    if (!memory)
        return diag_set(d, DIAG_RESOURCE, "no memory for %lld bytes", (long long)(3 * bytes));
    w.in[0] = memory;
    w.in[1] = (char *)memory + bytes;
    w.out = (char *)memory + 2 * bytes;
    fill(f, w.in, false);
    w.ours = compile(f, dev, d);
    struct result r[WAYS] = {0};
    bool ok = w.ours && run_way(&w, 0, d);
    if (ok) {
        measure(&w, r, d);
        r[0].wide = wide_time(&w, d);
        report(&w, r);
    }
    if (w.ours)
        executable_unref(w.ours);
    dev->ops->release(dev, memory, 3 * bytes);
    return ok;
}

static bool
wanted(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc == 0;
}

static bool
known(const char *name)
{
    for (uint32_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name))
            return true;
    return false;
}

int
main(int argc, char **argv)
{
    bool narrow = argc > 1 && !strcmp(argv[1], "--avx2"), ok = true;
    argc -= 1 + narrow, argv += 1 + narrow; // names of functions are left
    for (int i = 0; i < argc; i++)
        if (!known(argv[i])) {
            fprintf(stderr, "'%s' is no function here\nusage: math [--avx2] [FUNCTION…]\n",
                    argv[i]);
            return 2;
        }
    struct diag d = {0};
    struct device *dev = device_open("cpu", 1, 0, &d);
    if (!dev) {
        fprintf(stderr, "%s\n", d.text);
        return 3;
    }
    if (narrow) {
        snprintf(dev->target.arch, sizeof dev->target.arch, "x86-64-v3");
        snprintf(dev->target.features, sizeof dev->target.features, "+avx2,+fma,+f16c");
        dev->target.vec_bytes = 32;
    }
    narrow = dev->target.vec_bytes < 64;
    printf("%s\n%d elements, ns an element: minimum, median; error in ulp\n", dev->words, COUNT);
    printf("%-16s  %22s  %22s  %22s  %6s  %7s\n", "", "ours", "libmvec", "SLEEF u10", "ratio",
           "wide");
    for (uint32_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (wanted(functions[i].name, argc, argv) && !bench(&functions[i], dev, narrow, &d)) {
            fprintf(stderr, "%s: %s\n", functions[i].name, d.text);
            d = (struct diag){0};
            ok = false;
        }
    device_close(dev);
    return ok ? 0 : 3;
}
