// orc.c: kernels written by hand in LLVM IR are loaded and called; entry points, host functions and
// half conversions arrive as LLVM passes them; what is missing is named; code can be unloaded.
#include "runtime/orc.h"

#include "ir/base/half.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static const struct target plain = {.kind = DEVICE_CPU, .arch = "x86-64"}; // no F16C, no FMA

static bool
load(struct jit *j, const char *text, struct jit_code *c, struct diag *d)
{
    size_t n = 0;
    void *object = cpu_object(text, strlen(text), &plain, CODE_OPTIMISED, &n, d);
    bool ok = object && jit_load(j, object, n, c, d);
    xfree(object);
    return ok;
}

#define HEAD "(ptr %args, i64 %begin, i64 %end, ptr %scratch) {\n"
#define POINTERS                                                                                   \
    "  %table = load ptr, ptr %args\n"                                                             \
    "  %out = load ptr, ptr %table\n"                                                              \
    "  %slot = getelementptr ptr, ptr %table, i64 1\n"                                             \
    "  %in = load ptr, ptr %slot\n"

// kernel: out[0] = end - begin; kernel_finish: out[0] = 77.
static const char two_entries[] = "define void @kernel" HEAD "  %table = load ptr, ptr %args\n"
                                  "  %p = load ptr, ptr %table\n"
                                  "  %n = sub i64 %end, %begin\n"
                                  "  store i64 %n, ptr %p\n  ret void\n}\n"
                                  "define void @kernel_finish" HEAD
                                  "  %table = load ptr, ptr %args\n"
                                  "  %p = load ptr, ptr %table\n"
                                  "  store i64 77, ptr %p\n  ret void\n}\n";

static void
call(kernel_fn *fn, void *out, const void *in)
{
    void *table[] = {out, (void *)(uintptr_t)in};
    struct kernel_args args = {.ptr = table};
    fn(&args, 0, 1, NULL);
}

Test(orc, off_says_so)
{
    if (cpu_codegen_available())
        return;
    struct diag d = {0};
    cr_assert_null(jit_new(&d));
    cr_assert_eq(d.code, DIAG_UNSUPPORTED);
}

Test(orc, entry_points)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    cr_assert_not_null(j, "%s", d.text);
    struct jit_code c;
    cr_assert(load(j, two_entries, &c, &d), "%s", d.text);
    int64_t out = 0;
    void *table[] = {&out};
    struct kernel_args args = {.ptr = table};
    c.kernel(&args, 10, 52, NULL);
    cr_assert_eq(out, 42);
    c.finish(&args, 0, 1, NULL);
    cr_assert_eq(out, 77);
    jit_unload(j, &c);
    jit_free(j);
}

Test(orc, many_objects_of_one_name_and_dylibs_used_again)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    struct jit_code c[12];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 12; i++) {
            struct str text = {0};
            str_add(&text, "define void @kernel" HEAD POINTERS);
            str_printf(&text, "  store i32 %d, ptr %%out\n  ret void\n}\n", round * 100 + i);
            cr_assert(load(j, text.at, &c[i], &d), "%s", d.text);
            str_free(&text);
            cr_assert_null(c[i].finish);
        }
        for (int i = 0; i < 12; i++) {
            int32_t out = -1;
            call(c[i].kernel, &out, NULL);
            cr_assert_eq(out, round * 100 + i);
            jit_unload(j, &c[i]);
        }
    }
    jit_free(j);
}

Test(orc, missing_symbols_are_named)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    struct jit_code c;
    const char *text = "declare void @no_such_function()\ndeclare double @lgamma(double)\n"
                       "define void @kernel" HEAD "  call void @no_such_function()\n"
                       "  %x = call double @lgamma(double 1.5)\n"
                       "  store double %x, ptr %scratch\n  ret void\n}\n";
    cr_assert_not(load(j, text, &c, &d));
    cr_assert_eq(d.code, DIAG_TOOLCHAIN);
    cr_assert_not_null(strstr(d.text, "no_such_function"), "%s", d.text);
    cr_assert_not_null(strstr(d.text, "lgamma"), "%s", d.text);
    d = (struct diag){0};
    cr_assert_not(load(j, "define void @other" HEAD "  ret void\n}\n", &c, &d));
    cr_assert_not_null(strstr(d.text, "'kernel'"), "%s", d.text);
    d = (struct diag){0};
    cr_assert(load(j, two_entries, &c, &d), "a refusal leaves the loader whole: %s", d.text);
    jit_free(j); // with code still loaded
}

Test(orc, bad_objects_are_refused)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    struct jit_code c;
    size_t n = 0;
    char *object = cpu_object(two_entries, strlen(two_entries), &plain, CODE_OPTIMISED, &n, &d);
    cr_assert_not_null(object);
    cr_assert_not(jit_load(j, "nonsense", 8, &c, &d));
    for (size_t cut = 0; cut < n; cut += 64) {
        d = (struct diag){0};
        char *part = xmalloc(cut ? cut : 1);
        memcpy(part, object, cut);
        cr_assert_not(jit_load(j, part, cut, &c, &d), "%zu of %zu bytes", cut, n);
        cr_assert_eq(d.code, DIAG_TOOLCHAIN);
        xfree(part);
    }
    xfree(object);
    jit_free(j);
}

// ---- host functions: called through plain x86-64, where each conversion is a call

static const char from_f32[] = "define void @kernel" HEAD POINTERS
                               "  %x = load float, ptr %in\n"
                               "  %h = fptrunc float %x to half\n  store half %h, ptr %out\n"
                               "  %b = fptrunc float %x to bfloat\n"
                               "  %q = getelementptr i16, ptr %out, i64 1\n"
                               "  store bfloat %b, ptr %q\n  ret void\n}\n";
static const char from_f64[] = "define void @kernel" HEAD POINTERS
                               "  %x = load double, ptr %in\n"
                               "  %h = fptrunc double %x to half\n  store half %h, ptr %out\n"
                               "  %b = fptrunc double %x to bfloat\n"
                               "  %q = getelementptr i16, ptr %out, i64 1\n"
                               "  store bfloat %b, ptr %q\n  ret void\n}\n";
static const char from_half[] = "define void @kernel" HEAD POINTERS
                                "  %h = load half, ptr %in\n"
                                "  %x = fpext half %h to float\n  store float %x, ptr %out\n"
                                "  %y = fpext half %h to double\n"
                                "  %q = getelementptr i8, ptr %out, i64 8\n"
                                "  store double %y, ptr %q\n  ret void\n}\n";

static bool
same_half(uint16_t a, uint16_t b, uint16_t infinity)
{
    return a == b || ((a & 0x7fff) > infinity && (b & 0x7fff) > infinity); // any NaN is a NaN
}

Test(orc, half_conversions)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    struct jit_code f32, f64, half;
    cr_assert(load(j, from_f32, &f32, &d) && load(j, from_f64, &f64, &d) &&
                  load(j, from_half, &half, &d),
              "%s", d.text);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t bits = i * 214748u + i; // all exponents, infinities, NaNs, denormals
        float x;
        memcpy(&x, &bits, 4);
        uint16_t got[2];
        call(f32.kernel, got, &x);
        cr_assert(same_half(got[0], f32_to_f16(x), 0x7c00), "%a", (double)x);
        cr_assert(same_half(got[1], f32_to_bf16(x), 0x7f80), "%a", (double)x);
        double y = ldexp(1 + (double)(i % 4096) / 4096 + 0x1p-50 * (i % 3), (int)(i % 60) - 30);
        call(f64.kernel, got, &y);
        cr_assert_eq(got[0], f64_to_f16(y), "%a", y);
        cr_assert_eq(got[1], f64_to_bf16(y), "%a", y);
    }
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        struct {
            float x;
            double y;
        } got;
        call(half.kernel, &got, &h);
        float want = f16_to_f32(h);
        cr_assert(got.x == want || (isnan(got.x) && isnan(want)), "%x", i);
        cr_assert(got.y == (double)want || (isnan(got.y) && isnan(want)), "%x", i);
    }
    jit_free(j);
}

static const char math[] =
    "declare float @llvm.floor.f32(float)\ndeclare float @llvm.ceil.f32(float)\n"
    "declare float @llvm.trunc.f32(float)\ndeclare float @llvm.roundeven.f32(float)\n"
    "declare double @llvm.roundeven.f64(double)\ndeclare float @llvm.fma.f32(float, float, float)\n"
    "declare double @llvm.fma.f64(double, double, double)\n"
    "define void @kernel" HEAD POINTERS "  %x = load float, ptr %in\n"
    "  %y = fpext float %x to double\n"
    "  %f0 = call float @llvm.floor.f32(float %x)\n"
    "  %f1 = call float @llvm.ceil.f32(float %x)\n"
    "  %f2 = call float @llvm.trunc.f32(float %x)\n"
    "  %f3 = call float @llvm.roundeven.f32(float %x)\n"
    "  %g0 = call double @llvm.roundeven.f64(double %y)\n  %f4 = fptrunc double %g0 to float\n"
    "  %f5 = frem float %x, 0x3FFC000000000000\n"
    "  %g1 = frem double %y, 1.75\n  %f6 = fptrunc double %g1 to float\n"
    "  %f7 = call float @llvm.fma.f32(float %x, float %x, float -1.0)\n"
    "  %g2 = call double @llvm.fma.f64(double %y, double %y, double -1.0)\n"
    "  %f8 = fptrunc double %g2 to float\n"
    "  store float %f0, ptr %out\n"
    "  %p1 = getelementptr float, ptr %out, i64 1\n  store float %f1, ptr %p1\n"
    "  %p2 = getelementptr float, ptr %out, i64 2\n  store float %f2, ptr %p2\n"
    "  %p3 = getelementptr float, ptr %out, i64 3\n  store float %f3, ptr %p3\n"
    "  %p4 = getelementptr float, ptr %out, i64 4\n  store float %f4, ptr %p4\n"
    "  %p5 = getelementptr float, ptr %out, i64 5\n  store float %f5, ptr %p5\n"
    "  %p6 = getelementptr float, ptr %out, i64 6\n  store float %f6, ptr %p6\n"
    "  %p7 = getelementptr float, ptr %out, i64 7\n  store float %f7, ptr %p7\n"
    "  %p8 = getelementptr float, ptr %out, i64 8\n  store float %f8, ptr %p8\n"
    "  ret void\n}\n";

Test(orc, math_without_instructions)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    struct jit_code c;
    cr_assert(load(j, math, &c, &d), "%s", d.text);
    float xs[] = {0.0f, -0.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e10f, -3.7f, 0x1.000002p0f};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++) {
        float x = xs[i], got[9];
        double y = x;
        call(c.kernel, got, &x);
        float want[9] = {floorf(x),        ceilf(x),          truncf(x),
                         rintf(x),         (float)rint(y),    fmodf(x, 1.75f),
                         (float)fmod(y, 1.75), fmaf(x, x, -1), (float)fma(y, y, -1)};
        for (int k = 0; k < 9; k++)
            cr_assert(memcmp(&got[k], &want[k], 4) == 0, "%d of %a: %a, not %a", k, y,
                      (double)got[k], (double)want[k]);
    }
    jit_free(j);
}

static void *
load_and_unload(void *arg)
{
    for (int i = 0; i < 20; i++) {
        struct diag d = {0};
        struct jit_code c;
        int64_t out = 0;
        if (!load(arg, two_entries, &c, &d))
            return "not loaded";
        call(c.kernel, &out, NULL);
        if (out != 1)
            return "wrong result";
        jit_unload(arg, &c);
    }
    return NULL;
}

Test(orc, threads)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct jit *j = jit_new(&d);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, load_and_unload, j);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        pthread_join(t[i], &wrong);
        cr_assert_null(wrong, "%s", (char *)wrong);
    }
    jit_free(j);
}

struct loader {
    pthread_t thread;
    struct jit *jit;
    const void *object;
    size_t n;
    int64_t wrong;
};

static void *
load_often(void *arg)
{
    struct loader *l = arg;
    for (int i = 0; i < 3000; i++) {
        struct diag d = {0};
        struct jit_code c = {0};
        int64_t out = 0;
        if (!jit_load(l->jit, l->object, l->n, &c, &d) || !c.kernel || !c.finish) {
            l->wrong++;
            continue;
        }
        call(c.finish, &out, NULL);
        l->wrong += out != 77;
        jit_unload(l->jit, &c);
    }
    return NULL;
}

// ORC lets any thread link what another one added: the other one has to wait for it.
Test(orc, loads_of_many_threads_end_before_they_return)
{
    if (!cpu_codegen_available())
        return;
    struct diag d = {0};
    struct loader l[4] = {{.jit = jit_new(&d)}};
    size_t n = 0;
    void *object = cpu_object(two_entries, strlen(two_entries), &plain, CODE_OPTIMISED, &n, &d);
    cr_assert_not_null(object, "%s", d.text);
    for (int i = 0; i < 4; i++) {
        l[i] = (struct loader){.jit = l[0].jit, .object = object, .n = n};
        cr_assert_eq(pthread_create(&l[i].thread, NULL, load_often, &l[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(l[i].thread, NULL);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(l[i].wrong, 0, "thread %d: %lld loads", i, (long long)l[i].wrong);
    xfree(object);
    jit_free(l[0].jit);
}
