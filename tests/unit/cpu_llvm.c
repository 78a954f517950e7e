// cpu_llvm.c: IR text to objects and assembly: what is good compiles, what is bad is refused with
// LLVM's words, from several threads at once.
#include "codegen/codegen.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

static const char good[] = "define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {\n"
                           "  %p = load ptr, ptr %args\n"
                           "  store i64 %end, ptr %p\n"
                           "  ret void\n"
                           "}\n";

static struct target
generic(void)
{
    struct target t = {.kind = DEVICE_CPU, .arch = "generic"};
    return t;
}

Test(cpu_llvm, object_is_elf)
{
    if (!cpu_codegen_available())
        cr_skip_test("built without LLVM");
    struct target t = generic();
    struct diag d = {0};
    size_t size = 0;
    unsigned char *o = cpu_object(good, strlen(good), &t, CODE_OPTIMISED, &size, &d);
    cr_assert_not_null(o, "%s", d.text);
    cr_assert(size > 64 && memcmp(o, "\177ELF", 4) == 0);
    cr_assert_eq(o[16], 1, "a relocatable object");
    xfree(o);
}

Test(cpu_llvm, assembly_names_the_kernel)
{
    if (!cpu_codegen_available())
        cr_skip_test("built without LLVM");
    struct target t = generic();
    struct diag d = {0};
    struct str s = {0};
    cr_assert(cpu_assembly(good, strlen(good), &t, &s, &d), "%s", d.text);
    cr_assert_not_null(strstr(s.at, "kernel:"));
    str_free(&s);
}

Test(cpu_llvm, bad_text_is_refused_with_words)
{
    if (!cpu_codegen_available())
        cr_skip_test("built without LLVM");
    struct target t = generic();
    const char *bad[] = {
        "define void @kernel( {",                                             // syntax
        "define float @kernel(float %a) {\n  %b = fadd double %a, %a\n  ret float %b\n}\n", // types
        ("define void @kernel() {\n  br label %x\nx:\n  %a = phi i32 [0, %y]\n  ret void\ny:\n"
         "  ret void\n}\n"),                                                  // verifier
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct diag d = {0}, again = {0};
        struct str s = {0};
        cr_assert(!cpu_assembly(bad[i], strlen(bad[i]), &t, &s, &d));
        cr_assert_eq(d.code, DIAG_TOOLCHAIN);
        cr_assert(strlen(d.text) > 30, "%s", d.text);
        str_free(&s);
        size_t size = 0;
        if (i == 2) // objects are made of text that has been verified while it was written
            break;
        cr_assert_null(cpu_object(bad[i], strlen(bad[i]), &t, CODE_OPTIMISED, &size, &again));
        cr_assert_str_eq(again.text, d.text);
    }
}

// Machines are used again, by compilations for the same processor only.
Test(cpu_llvm, processors_do_not_mix)
{
    if (!cpu_codegen_available())
        cr_skip_test("built without LLVM");
    static const char add[] = "define void @kernel(ptr %a, i64 %b, i64 %e, ptr %s) {\n"
                              "  %x = load <8 x float>, ptr %a, align 4\n"
                              "  %y = fadd <8 x float> %x, %x\n"
                              "  store <8 x float> %y, ptr %a, align 4\n"
                              "  ret void\n"
                              "}\n";
    struct target wide = {.kind = DEVICE_CPU, .arch = "haswell", .features = "+avx,+avx2"};
    struct target target[3] = {generic(), wide, generic()};
    struct str text[3] = {0};
    struct diag d = {0};
    for (int i = 0; i < 3; i++)
        cr_assert(cpu_assembly(add, strlen(add), &target[i], &text[i], &d), "%s", d.text);
#ifdef __x86_64__
    cr_expect_null(strstr(text[0].at, "ymm"), "%s", text[0].at);
    cr_expect_not_null(strstr(text[1].at, "ymm"), "%s", text[1].at);
#endif
    cr_expect_str_eq(text[0].at, text[2].at);
    for (int i = 0; i < 3; i++)
        str_free(&text[i]);
}

Test(cpu_llvm, unavailable_says_so)
{
    if (cpu_codegen_available())
        cr_skip_test("built with LLVM");
    struct target t = generic();
    struct diag d = {0};
    size_t size = 0;
    cr_assert_null(cpu_object(good, strlen(good), &t, CODE_OPTIMISED, &size, &d));
    cr_assert_eq(d.code, DIAG_UNSUPPORTED);
}

static void *
compile_many(void *failures)
{
    struct target t = generic();
    for (int i = 0; i < 20; i++) {
        struct diag d = {0};
        size_t size = 0;
        void *o = cpu_object(good, strlen(good), &t, CODE_OPTIMISED, &size, &d);
        if (!o)
            __atomic_add_fetch((int *)failures, 1, __ATOMIC_RELAXED);
        xfree(o);
    }
    return NULL;
}

Test(cpu_llvm, threads)
{
    if (!cpu_codegen_available())
        cr_skip_test("built without LLVM");
    int failures = 0;
    pthread_t th[4];
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, compile_many, &failures), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(th[i], NULL);
    cr_assert_eq(failures, 0);
}
