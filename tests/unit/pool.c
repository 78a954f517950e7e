// pool.c: every unit runs exactly once, whoever calls, from a forked child too; workers have the
// default floating-point state; a busy pool never makes a caller wait for another's job.
#include "runtime/pool.h"

#include "runtime/fpstate.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 5000 };
struct marks {
    _Atomic uint8_t seen[MOST];
    atomic_bool slot_used[POOL_MAX_THREADS];
    atomic_int calls, small, clash, bad_slot, bad_state;
    int64_t grain;
    uint32_t threads;
};

static void
mark(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    struct marks *m = arg;
    if (slot >= m->threads)
        m->bad_slot++;
    if (atomic_exchange(&m->slot_used[slot], true))
        m->clash++;
    m->calls++;
    if (end - begin < m->grain)
        m->small++;
    for (int64_t u = begin; u < end; u++)
        m->seen[u]++;
    fp_state s = fp_enter();
#if defined(__x86_64__)
    if (slot > 0 && (s & ~0x3fu) != 0x1f80)
        m->bad_state++;
#endif
    fp_leave(s);
    atomic_store(&m->slot_used[slot], false);
}

static const char *
check(int64_t units, int64_t grain, uint32_t threads)
{
    static _Thread_local struct marks m;
    memset(&m, 0, sizeof m);
    m.grain = units < grain ? units : grain;
    m.threads = threads ? threads : 1;
    pool_run(units, grain, threads, mark, &m);
    for (int64_t u = 0; u < MOST; u++)
        if (m.seen[u] != (u < units))
            return "a unit did not run exactly once";
    return m.small      ? "fewer units than the grain"
           : m.clash    ? "two threads shared a slot"
           : m.bad_slot ? "a slot beyond the thread count"
           : m.bad_state ? "a worker without the default floating-point state"
                         : NULL;
}

#define CHECK_RUN(units, grain, threads)                                                           \
    do {                                                                                           \
        const char *words = check(units, grain, threads);                                          \
        cr_assert_null(words, "%lld units, grain %lld, %u threads: %s", (long long)(units),        \
                       (long long)(grain), (unsigned)(threads), words);                            \
    } while (0)

Test(pool, every_unit_once)
{
    for (uint32_t threads = 0; threads <= 9; threads++) {
        for (int64_t units = 0; units <= 70; units++)
            CHECK_RUN(units, 1 + units % 7, threads);
        CHECK_RUN(MOST, 1, threads);
        CHECK_RUN(MOST, 600, threads);
        CHECK_RUN(MOST - 1, 2500, threads);
    }
}

Test(pool, threads_follow_the_grain)
{
    cr_assert_eq(pool_threads(0, 1, 8), 1);
    cr_assert_eq(pool_threads(1, 1, 8), 1);
    cr_assert_eq(pool_threads(2, 1, 8), 2);
    cr_assert_eq(pool_threads(99, 50, 8), 1, "small work stays on the caller");
    cr_assert_eq(pool_threads(100, 50, 8), 2);
    cr_assert_eq(pool_threads(100, 0, 8), 8, "a grain of 0 counts as 1");
    cr_assert_eq(pool_threads(INT64_MAX, 1, 8), 8);
    cr_assert_eq(pool_threads(INT64_MAX, 1, UINT32_MAX), POOL_MAX_THREADS);
    cr_assert_eq(pool_threads(100, 1, 0), 1);
}

static void
note_thread(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    (void)begin, (void)end, (void)slot;
    if (!pthread_equal(pthread_self(), *(pthread_t *)arg))
        *(volatile pthread_t *)arg = pthread_self();
}

Test(pool, small_work_stays_on_the_caller)
{
    pthread_t self = pthread_self(), seen = self;
    pool_run(1, 1, 8, note_thread, &seen);
    pool_run(63, 32, 8, note_thread, &seen);
    pool_run(MOST, 1, 1, note_thread, &seen);
    cr_assert(pthread_equal(seen, self));
}

struct wait {
    atomic_int inside, most;
};
static void
wait_for_company(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    (void)begin, (void)end, (void)slot;
    struct wait *w = arg;
    int n = ++w->inside, most = w->most;
    while (n > most && !atomic_compare_exchange_weak(&w->most, &most, n))
        ;
    for (int i = 0; i < 2000 && w->most < 3; i++) // 2 s at most
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    w->inside--;
}

Test(pool, workers_take_part)
{
    struct wait w = {0};
    pool_run(3, 1, 3, wait_for_company, &w);
    cr_assert_eq(w.most, 3, "three threads were inside at once");
}

Test(pool, late_workers_are_not_waited_for_asleep)
{
    for (int i = 0; i < 50; i++) { // gaps longer than the spin: workers sleep in between
        CHECK_RUN(100, 1, 4);
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

static void
nested(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    (void)slot;
    for (int64_t u = begin; u < end; u++)
        if (check(200, 1, 4))
            (*(atomic_int *)arg)++;
}

Test(pool, nested_runs)
{
    atomic_int wrong = 0;
    pool_run(40, 1, 4, nested, &wrong);
    cr_assert_eq(wrong, 0);
}

static void *
hammer(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 300; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (check(seed % 400, 1 + (seed >> 20) % 30, 1 + (seed >> 10) % 6))
            return "wrong";
    }
    return NULL;
}

static bool
hammer_from(int threads)
{
    pthread_t t[8];
    bool good = true;
    for (int i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, hammer, (void *)(uintptr_t)(i * 77 + 1));
    for (int i = 0; i < threads; i++) {
        void *wrong = NULL;
        pthread_join(t[i], &wrong);
        good = good && !wrong;
    }
    return good;
}

Test(pool, eight_callers)
{
    cr_assert(hammer_from(8));
}

static void
child_works(void)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
        uint32_t threads = 1; // their own tables of threads do not survive a fork
#else
        uint32_t threads = 4;
#endif
        bool good = !check(MOST, 1, threads) && !check(777, 3, threads) &&
                    (threads == 1 || hammer_from(3));
#if defined(__SANITIZE_ADDRESS__)
        _exit(good ? 0 : 1); // nor does the search for leaks
#endif
        exit(good ? 0 : 1); // not _exit: what runs at exit must not hang
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", status);
}

Test(pool, forked_child_has_workers_of_its_own)
{
    child_works(); // the parent never ran
    CHECK_RUN(MOST, 1, 4);
    child_works(); // workers spin or sleep
    CHECK_RUN(MOST, 1, 4);
}

#if !defined(__SANITIZE_ADDRESS__) // its own allocator's locks do not survive such a fork
Test(pool, fork_while_another_thread_runs)
{
    pthread_t t;
    pthread_create(&t, NULL, hammer, (void *)5);
    for (int i = 0; i < 5; i++)
        child_works();
    void *wrong = NULL;
    pthread_join(t, &wrong);
    cr_assert_null(wrong);
    CHECK_RUN(MOST, 1, 4);
}
#endif

#if defined(__x86_64__)
Test(pool, workers_ignore_the_callers_float_state)
{
    fp_state old = fp_enter();
    _mm_setcsr(0x1f80 | 0x8040); // flush to zero, denormals are zero: inherited by new threads
    const char *wrong = check(MOST, 1, 4);
    cr_assert_eq(_mm_getcsr() & 0xffc0u, 0x1f80u | 0x8040u, "the caller's state stays");
    fp_leave(old);
    cr_assert_null(wrong, "%s", wrong);
}
#endif
