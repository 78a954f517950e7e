// alloc.c: alignment, reuse, bounded waste, limits, counting, threads and fork.
#include "runtime/alloc.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)

Test(alloc, classes_waste_an_eighth_at_most)
{
    int64_t last = 0;
    for (int64_t b = 0; b < (int64_t)1 << 43; b = b < 5000 ? b + 1 : b + b / 37) {
        int64_t c = alloc_class_bytes(b);
        cr_assert(c >= b && c >= 64 && c % 64 == 0, "%lld in %lld", (long long)b, (long long)c);
        cr_assert(c - b <= 64 || (c - b) * 8 <= b, "%lld in %lld", (long long)b, (long long)c);
        cr_assert_geq(c, last, "classes grow with the size");
        cr_assert_eq(alloc_class_bytes(c), c, "a class holds itself: %lld", (long long)c);
        last = c;
    }
}

Test(alloc, aligned_writable_and_reused)
{
    struct allocator *a = allocator_new(1 << 30);
    int64_t sizes[] = {0, 1, 63, 64, 65, 1000, 1024, 1025, 4097, 65536, 2 * MIB - 1, 2 * MIB,
                       2 * MIB + 1, 5 * MIB + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *p = alloc_take(a, sizes[i]), *q = alloc_take(a, sizes[i]);
        cr_assert(p && q && p != q);
        cr_assert_eq((uintptr_t)p % 64, 0);
        memset(p, 1, (size_t)sizes[i]);
        memset(q, 2, (size_t)sizes[i]);
        for (int64_t j = 0; j < sizes[i]; j += 61)
            cr_assert_eq(p[j], 1);
        alloc_release(a, p, sizes[i]);
        cr_assert_eq(alloc_take(a, sizes[i]), p, "the block just released comes back");
        alloc_release(a, q, sizes[i]);
        alloc_release(a, p, sizes[i]);
    }
    alloc_release(a, NULL, 100);
    cr_assert_eq(alloc_read_stats(a).in_use, 0);
    cr_assert_eq(alloc_read_stats(a).held, alloc_read_stats(a).cached);
    allocator_free(a);
    allocator_free(NULL);
}

Test(alloc, counts)
{
    struct allocator *a = allocator_new(1 << 30);
    void *p = alloc_take(a, 1000), *q = alloc_take(a, 3 * MIB);
    struct alloc_stats s = alloc_read_stats(a);
    cr_assert_eq(s.in_use, 1024 + 3 * MIB);
    cr_assert_eq(s.peak, s.in_use);
    cr_assert_eq(s.cached, 0);
    cr_assert_eq(s.system_blocks, 2);
    alloc_release(a, q, 3 * MIB);
    s = alloc_read_stats(a);
    cr_assert_eq(s.in_use, 1024);
    cr_assert_eq(s.peak, 1024 + 3 * MIB, "the peak stays");
    cr_assert_eq(s.cached, 3 * MIB);
    q = alloc_take(a, 3 * MIB);
    cr_assert_eq(alloc_read_stats(a).system_blocks, 2, "no new block in the steady state");
    alloc_release(a, p, 1000);
    alloc_release(a, q, 3 * MIB);
    alloc_trim(a);
    s = alloc_read_stats(a);
    cr_assert(s.held == 0 && s.cached == 0);
    allocator_free(a);
}

Test(alloc, the_limit_trims_then_refuses)
{
    struct allocator *a = allocator_new(10 * MIB);
    void *p = alloc_take(a, 4 * MIB), *q = alloc_take(a, 5 * MIB);
    cr_assert(p && q);
    cr_assert_null(alloc_take(a, 2 * MIB), "beyond the limit");
    cr_assert_eq(alloc_read_stats(a).in_use, 9 * MIB, "a refusal counts nothing");
    alloc_release(a, q, 5 * MIB);
    void *r = alloc_take(a, 6 * MIB); // fits only when the cached 5 MiB go
    cr_assert_not_null(r);
    cr_assert_eq(alloc_read_stats(a).held, 10 * MIB);
    alloc_release(a, r, 6 * MIB);
    alloc_release(a, p, 4 * MIB);
    cr_assert_null(alloc_take(a, -1));
    cr_assert_null(alloc_take(a, INT64_MAX));
    cr_assert_null(alloc_take(a, 11 * MIB));
    allocator_free(a);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they map terabytes
Test(alloc, refusal_of_the_system_trims_then_is_a_null)
{
    struct allocator *a = allocator_new(INT64_MAX);
    void *p = alloc_take(a, 600 * MIB);
    alloc_release(a, p, 600 * MIB);
    struct rlimit limit = {1 << 30, 1 << 30};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    p = alloc_take(a, 700 * MIB); // fits only when the cached 600 MiB go
    cr_assert_not_null(p);
    cr_assert_null(alloc_take(a, 700 * MIB));
    alloc_release(a, p, 700 * MIB);
    allocator_free(a);
}
#endif

Test(alloc, the_cache_is_bounded)
{
    struct allocator *a = allocator_new((int64_t)4 << 30);
    for (int64_t i = 0; i < 200; i++) // sizes never asked for again, 3 to 9 MiB
        alloc_release(a, alloc_take(a, 3 * MIB + i * 32768), 3 * MIB + i * 32768);
    struct alloc_stats s = alloc_read_stats(a);
    cr_assert_leq(s.cached, s.peak + 64 * MIB + 10 * MIB, "%lld cached", (long long)s.cached);
    allocator_free(a);
}

static void *
churn(void *arg)
{
    struct allocator *a = arg;
    struct {
        unsigned char *p;
        int64_t n;
    } held[16] = {0};
    unsigned seed = (unsigned)(uintptr_t)&held;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned k = seed >> 28;
        if (held[k].p) {
            if (held[k].p[0] != k || held[k].p[held[k].n - 1] != k)
                return "overwritten";
            alloc_release(a, held[k].p, held[k].n);
        }
        held[k].n = 1 + (seed >> 8) % 20000;
        held[k].p = alloc_take(a, held[k].n);
        held[k].p[0] = held[k].p[held[k].n - 1] = (unsigned char)k;
    }
    for (int k = 0; k < 16; k++)
        alloc_release(a, held[k].p, held[k].n);
    return NULL;
}

Test(alloc, threads_and_fork)
{
    struct allocator *a = allocator_new(1 << 30);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, churn, a);
#if !defined(__SANITIZE_ADDRESS__) // its own allocator's locks do not survive such a fork
    for (int i = 0; i < 5; i++) {
        pid_t child = fork(); // while others hold the lock
        if (child == 0) {
            alarm(20);
            exit(churn(a) ? 1 : 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", status);
    }
#endif
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        pthread_join(t[i], &wrong);
        cr_assert_null(wrong);
    }
    cr_assert_eq(alloc_read_stats(a).in_use, 0);
    allocator_free(a);
}
