// criterion.h: a stand-in for Criterion in builds with the thread sanitizer, whose address space
// has no room for the arena that Criterion's test processes share. Every test runs in a forked
// child; a failed assertion ends it. One test file is one executable, so main stands here too.
#ifndef FUSEC_TESTS_CRITERION_H
#define FUSEC_TESTS_CRITERION_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Children may start threads, and need not join those that they did not inherit.
__attribute__((weak, visibility("default"))) const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
    return "die_after_fork=0:report_thread_leaks=0:atexit_sleep_ms=0";
}

// LLVM is not compiled with the sanitizer, which cannot see its atomics: what it reports there says
// nothing.
__attribute__((weak, visibility("default"))) const char *__tsan_default_suppressions(void);
const char *
__tsan_default_suppressions(void)
{
    return "race:libLLVM\nmutex:libLLVM\ndeadlock:libLLVM\n";
}

struct standin_options {
    void (*init)(void), (*fini)(void);
    double timeout;
    int disabled;
    const char *description;
};
struct standin_suite {
    const char *name;
    const struct standin_options *options;
    struct standin_suite *next;
};
struct standin_test {
    const char *suite, *name;
    void (*run)(void);
    const struct standin_options *options;
    struct standin_test *next;
};
static struct standin_suite *standin_suites;
static struct standin_test *standin_tests;

static inline void
standin_run(const struct standin_test *t)
{
    const struct standin_options *o = NULL;
    for (struct standin_suite *s = standin_suites; s; s = s->next)
        if (strcmp(s->name, t->suite) == 0)
            o = s->options;
    if (o && o->init)
        o->init();
    if (t->options->init)
        t->options->init();
    t->run();
    if (t->options->fini)
        t->options->fini();
    if (o && o->fini)
        o->fini();
}

__attribute__((noreturn)) static inline void
standin_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    exit(1);
}

// A suite's init and fini run around each of its tests; the test's own options come after.
#define TestSuite(suite_, ...)                                                                     \
    static const struct standin_options suite_##_options = {__VA_ARGS__};                          \
    __attribute__((constructor)) static void suite_##_add(void)                                    \
    {                                                                                              \
        static struct standin_suite s = {#suite_, &suite_##_options, NULL};                        \
        s.next = standin_suites;                                                                   \
        standin_suites = &s;                                                                       \
    }                                                                                              \
    struct standin_options /* takes the semicolon */

#define Test(suite_, name_, ...)                                                                   \
    static void suite_##_##name_##_run(void);                                                      \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                          \
    {                                                                                              \
        static const struct standin_options options = {__VA_ARGS__};                               \
        static struct standin_test t = {#suite_, #name_, suite_##_##name_##_run, &options, NULL};  \
        t.next = standin_tests;                                                                    \
        standin_tests = &t;                                                                        \
    }                                                                                              \
    static void suite_##_##name_##_run(void)

#define STANDIN(cond, what, ...)                                                                   \
    ((cond) ? (void)0                                                                              \
            : (__VA_OPT__((void)fprintf(stderr, __VA_ARGS__), (void)fputc('\n', stderr), )         \
                   standin_failed(__FILE__, __LINE__, what)))
#define cr_fatal(...) STANDIN(0, "fatal" __VA_OPT__(, ) __VA_ARGS__)
#define cr_fail(...) STANDIN(0, "fail" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_fail cr_fail
#define cr_assert(c, ...) STANDIN(c, #c __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not(c, ...) STANDIN(!(c), "not " #c __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_eq(a, b, ...) STANDIN((a) == (b), #a " == " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_neq(a, b, ...) STANDIN((a) != (b), #a " != " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_lt(a, b, ...) STANDIN((a) < (b), #a " < " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_leq(a, b, ...) STANDIN((a) <= (b), #a " <= " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_gt(a, b, ...) STANDIN((a) > (b), #a " > " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_geq(a, b, ...) STANDIN((a) >= (b), #a " >= " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_null(p, ...) STANDIN((p) == NULL, #p " is null" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not_null(p, ...) STANDIN((p) != NULL, #p " not null" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)                                                                \
    STANDIN(strcmp(a, b) == 0, #a " equals " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)                                                               \
    STANDIN(strcmp(a, b) != 0, #a " differs from " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_not_empty(s, ...)                                                            \
    STANDIN(*(s) != '\0', #s " is not empty" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                             \
    STANDIN(memcmp(a, b, n) == 0, #a " equals " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                           \
    STANDIN(fabs((double)(a) - (double)(b)) <= (double)(e), #a " near " #b __VA_OPT__(, )          \
                __VA_ARGS__)
#define cr_skip_test(...) exit(0)
#define cr_log_info(...) ((void)fprintf(stderr, __VA_ARGS__), (void)fputc('\n', stderr))
#define cr_log_warn cr_log_info
#define cr_expect cr_assert
#define cr_expect_not cr_assert_not
#define cr_expect_eq cr_assert_eq
#define cr_expect_neq cr_assert_neq
#define cr_expect_lt cr_assert_lt
#define cr_expect_leq cr_assert_leq
#define cr_expect_gt cr_assert_gt
#define cr_expect_geq cr_assert_geq
#define cr_expect_null cr_assert_null
#define cr_expect_not_null cr_assert_not_null
#define cr_expect_str_eq cr_assert_str_eq
#define cr_expect_arr_eq cr_assert_arr_eq
#define cr_expect_float_eq cr_assert_float_eq

__attribute__((weak)) int // of a test and its support files the test's comes first
main(void)
{
    int failed = 0;
    for (struct standin_test *t = standin_tests; t; t = t->next) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            standin_run(t);
            exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status == 0)
            continue;
        fprintf(stderr, "%s::%s failed (status %x)\n", t->suite, t->name, (unsigned)status);
        failed++;
    }
    return failed != 0;
}

#endif
