// code_cache.c: one make per text, whole texts compared, unused code bounded, failures not kept.
// Baseline code is used first and optimised code later. The maker here counts instead of compiling.
#include "runtime/code_cache.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct counts {
    atomic_int makes, drops, inside, most_inside;
    int sleep_ms;
};

// A child that leaves makes behind has this done by exit(): registered before the first, as
// libraries do when they are loaded, and by every optimised make, as LLVM does for what it makes at
// first use.
static struct counts *of_exit;

static void
nothing_is_made_any_more(void)
{
    int makes = of_exit->makes;
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    if (of_exit->inside || of_exit->makes != makes)
        _exit(2);
}

static bool
make(void *user, const char *text, size_t n, enum code_level level, void *code, struct diag *d)
{
    struct counts *c = user;
    int inside = ++c->inside;
    if (inside > c->most_inside)
        c->most_inside = inside;
    if (c == of_exit && level == CODE_OPTIMISED && atexit(nothing_is_made_any_more) != 0)
        _exit(3);
    c->makes++;
    if (c->sleep_ms)
        nanosleep(&(struct timespec){0, c->sleep_ms * 1000000l}, NULL);
    c->inside--;
    if (n && (text[0] == '!' || (text[0] == '?' && level == CODE_OPTIMISED)))
        return diag_set(d, DIAG_TOOLCHAIN, "refused: %.*s", (int)n, text);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum * 131 + (unsigned char)text[i];
    *(int64_t *)code = (int64_t)(sum & ~(uint64_t)1) | level;
    return true;
}

static void
drop(void *user, void *code)
{
    (void)code;
    ((struct counts *)user)->drops++;
}

static int64_t
value_at(const char *text, enum code_level level)
{
    struct counts c = {0};
    struct diag d = {0};
    int64_t v = 0;
    make(&c, text, strlen(text), level, &v, &d);
    return v;
}

static int64_t
value(const char *text)
{
    return value_at(text, CODE_OPTIMISED);
}

static struct code_cache *
tiered(struct counts *c, int64_t unused, uint32_t optimisers)
{
    struct code_maker maker = {make, drop, c, sizeof(int64_t), optimisers};
    return code_cache_new(maker, unused, 1000, 64);
}

static struct code_cache *
cache(struct counts *c, int64_t unused, int64_t bytes, uint32_t hash_bits)
{
    struct code_maker maker = {make, drop, c, sizeof(int64_t), 0};
    return code_cache_new(maker, unused, bytes, hash_bits);
}

static struct cached_code *
get(struct code_cache *c, const char *text)
{
    struct diag d = {0};
    struct cached_code *e = code_cache_get(c, text, strlen(text), &d);
    cr_assert_not_null(e, "%s", d.text);
    cr_assert_eq(*(const int64_t *)cached_code_get(e), value(text), "the code of '%s'", text);
    return e;
}

Test(code_cache, a_text_is_made_once)
{
    struct counts n = {0};
    struct code_cache *c = cache(&n, 10, 1000, 64);
    struct cached_code *a = get(c, "alpha"), *b = get(c, "beta"), *again = get(c, "alpha");
    cr_assert_eq(a, again);
    cr_assert_neq(a, b);
    code_cache_release(c, a);
    code_cache_release(c, again);
    code_cache_release(c, b);
    cr_assert_eq(get(c, "alpha"), a, "kept while unused");
    code_cache_release(c, a);
    code_cache_release(c, NULL);
    struct code_cache_stats s = code_cache_read_stats(c);
    cr_assert(s.makes == 2 && s.hits == 2 && s.evictions == 0 && s.entries == 2 && s.unused == 2);
    cr_assert_eq(s.text_bytes, 9);
    code_cache_free(c);
    cr_assert_eq(n.drops, 2, "freeing drops all code");
    code_cache_free(NULL);
}

Test(code_cache, colliding_hashes_never_decide)
{
    for (uint32_t bits = 0; bits <= 8; bits += 8) {
        struct counts n = {0};
        struct code_cache *c = cache(&n, 1000, 100000, bits);
        char text[32];
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < 600; i++) {
                snprintf(text, sizeof text, "%s%d", i % 2 ? "" : "x", i);
                code_cache_release(c, get(c, text));
            }
        code_cache_release(c, get(c, "")); // and prefixes of each other
        code_cache_release(c, get(c, "x"));
        cr_assert_eq(n.makes, 602);
        code_cache_free(c);
        cr_assert_eq(n.drops, 602);
    }
}

Test(code_cache, every_byte_of_the_text_counts)
{
    struct counts n = {0};
    struct code_cache *c = cache(&n, 1000, 100000, 8);
    char text[] = "define void @kernel() { ret void }";
    code_cache_release(c, get(c, text));
    for (size_t i = 0; text[i]; i++) {
        text[i] ^= 1;
        code_cache_release(c, get(c, text));
        text[i] ^= 1;
    }
    cr_assert_eq(n.makes, (int)sizeof text);
    code_cache_free(c);
}

Test(code_cache, the_least_recently_used_goes_first)
{
    struct counts n = {0};
    struct code_cache *c = cache(&n, 2, 1000, 64);
    struct cached_code *held = get(c, "held");
    code_cache_release(c, get(c, "a"));
    code_cache_release(c, get(c, "b"));
    code_cache_release(c, get(c, "a"));
    code_cache_release(c, get(c, "c")); // b goes
    cr_assert_eq(n.drops, 1);
    cr_assert_eq(n.makes, 4);
    code_cache_release(c, get(c, "a"));
    cr_assert_eq(n.makes, 4, "a is still there");
    code_cache_release(c, get(c, "b"));
    cr_assert_eq(n.makes, 5, "b was not");
    cr_assert_eq(*(const int64_t *)cached_code_get(held), value("held"), "what is in use stays");
    code_cache_release(c, held);
    cr_assert_eq(code_cache_read_stats(c).evictions, n.drops);
    code_cache_free(c);
}

Test(code_cache, bounded_in_bytes_too)
{
    struct counts n = {0};
    struct code_cache *c = cache(&n, 1000, 100, 64);
    char text[64];
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "%039d", i);
        code_cache_release(c, get(c, text));
    }
    struct code_cache_stats s = code_cache_read_stats(c);
    cr_assert_eq(s.entries, 2);
    cr_assert_leq(s.text_bytes, 100);
    code_cache_free(c);
}

Test(code_cache, failures_have_words_and_are_not_kept)
{
    struct counts n = {0};
    struct code_cache *c = cache(&n, 10, 1000, 64);
    for (int i = 1; i <= 3; i++) {
        struct diag d = {0};
        cr_assert_null(code_cache_get(c, "!bad", 4, &d));
        cr_assert_eq(d.code, DIAG_TOOLCHAIN);
        cr_assert_str_eq(d.text, "refused: !bad");
        cr_assert_eq(n.makes, i);
    }
    cr_assert_eq(code_cache_read_stats(c).entries, 0);
    code_cache_free(c);
    cr_assert_eq(n.drops, 0);
}

struct shared {
    struct code_cache *c;
    const char *text[4];
    atomic_int wrong;
};

static void *
ask(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < 4; i++) {
        struct diag d = {0};
        struct cached_code *e = code_cache_get(s->c, s->text[i], strlen(s->text[i]), &d);
        bool bad = s->text[i][0] == '!';
        if (bad ? e || d.code != DIAG_TOOLCHAIN
                : !e || *(const int64_t *)cached_code_get(e) != value(s->text[i]))
            s->wrong++;
        code_cache_release(s->c, e);
    }
    return NULL;
}

Test(code_cache, threads_share_one_make)
{
    struct counts n = {.sleep_ms = 20};
    struct shared s = {cache(&n, 10, 1000, 64), {"one", "two", "!three", "four"}, 0};
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, ask, &s);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    cr_assert_eq(s.wrong, 0);
    struct code_cache_stats st = code_cache_read_stats(s.c);
    cr_assert_eq(st.entries, 3);
    cr_assert_eq(st.makes + st.hits, 32);
    cr_assert(n.makes >= 4 && n.makes <= 3 + 8, "three texts once each, the failing one again");
    code_cache_free(s.c);
}

static void *
churn(void *arg)
{
    struct shared *s = arg;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (int i = 0; i < 2000; i++) {
        seed = seed * 1664525u + 1013904223u;
        char text[16];
        snprintf(text, sizeof text, "t%u", seed >> 27);
        struct diag d = {0};
        struct cached_code *e = code_cache_get(s->c, text, strlen(text), &d);
        if (!e || *(const int64_t *)cached_code_get(e) != value(text))
            s->wrong++;
        code_cache_release(s->c, e);
    }
    return NULL;
}

// Five children, one after the other, do this; `wrong` is 0 after it.
__attribute__((unused)) static void
fork_children(struct shared *s, void *(*work)(void *))
{
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            work(s);
            exit(s->wrong != 0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", status);
    }
}

Test(code_cache, eviction_under_threads_and_fork)
{
    struct counts n = {0};
    struct shared s = {cache(&n, 8, 1000, 64), {0}, 0};
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, churn, &s);
#if !defined(__SANITIZE_ADDRESS__) // its own allocator's locks do not survive such a fork
    fork_children(&s, churn); // while others hold the lock and make code
#endif
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    cr_assert_eq(s.wrong, 0);
    struct code_cache_stats st = code_cache_read_stats(s.c);
    cr_assert_leq(st.entries, 8);
    cr_assert_eq(st.makes - st.evictions, st.entries);
    code_cache_free(s.c);
    cr_assert_eq(n.makes, n.drops);
}

// ---- baseline code, then optimised code

static bool
is_code(const void *code, const char *text, enum code_level level)
{
    return *(const int64_t *)code == value_at(text, level);
}

static struct cached_code *
get_any(struct code_cache *c, const char *text)
{
    struct diag d = {0};
    struct cached_code *e = code_cache_get(c, text, strlen(text), &d);
    cr_assert_not_null(e, "%s", d.text);
    return e;
}

Test(code_cache, the_second_use_asks_for_optimised_code)
{
    struct counts n = {0};
    struct code_cache *c = tiered(&n, 10, 1);
    struct cached_code *e = get_any(c, "text");
    const void *first = code_cache_use(c, e);
    cr_assert(is_code(first, "text", CODE_BASELINE));
    code_cache_settle(c);
    cr_assert(is_code(cached_code_get(e), "text", CODE_BASELINE) && !cached_code_is_optimised(e));
    code_cache_use(c, e);
    code_cache_settle(c);
    cr_assert(cached_code_is_optimised(e));
    cr_assert(is_code(cached_code_get(e), "text", CODE_OPTIMISED));
    cr_assert(is_code(code_cache_use(c, e), "text", CODE_OPTIMISED));
    cr_assert(is_code(first, "text", CODE_BASELINE), "who is in it stays in it");
    struct code_cache_stats s = code_cache_read_stats(c);
    cr_assert(s.makes == 1 && s.optimised == 1 && n.makes == 2 && n.drops == 0);
    code_cache_release(c, e);
    code_cache_free(c);
    cr_assert_eq(n.drops, 2);
}

Test(code_cache, a_long_use_asks_at_once)
{
    struct counts n = {0};
    struct code_cache *c = tiered(&n, 10, 1);
    struct cached_code *e = get_any(c, "text");
    for (int i = 0; i < 3; i++)
        code_cache_optimise(c, e);
    code_cache_settle(c);
    cr_assert(is_code(cached_code_get(e), "text", CODE_OPTIMISED));
    cr_assert_eq(n.makes, 2, "asked three times, made once");
    code_cache_release(c, e);
    code_cache_free(c);
}

Test(code_cache, without_optimisers_all_is_optimised)
{
    struct counts n = {0};
    struct code_cache *c = tiered(&n, 10, 0);
    struct cached_code *e = get_any(c, "text");
    for (int i = 0; i < 3; i++)
        cr_assert(is_code(code_cache_use(c, e), "text", CODE_OPTIMISED));
    code_cache_optimise(c, e);
    code_cache_settle(c);
    cr_assert(cached_code_is_optimised(e) && n.makes == 1);
    code_cache_release(c, e);
    code_cache_free(c);
    cr_assert_eq(n.drops, 1);
}

Test(code_cache, baseline_code_goes_on_where_optimised_code_fails)
{
    struct counts n = {0};
    struct code_cache *c = tiered(&n, 10, 1);
    struct cached_code *e = get_any(c, "?text");
    for (int i = 0; i < 4; i++) {
        cr_assert(is_code(code_cache_use(c, e), "?text", CODE_BASELINE));
        code_cache_settle(c);
    }
    cr_assert_eq(n.makes, 2, "not tried again");
    code_cache_release(c, e);
    code_cache_free(c);
    cr_assert_eq(n.drops, 1);
}

Test(code_cache, what_nobody_needs_any_more_is_not_optimised)
{
    struct counts n = {.sleep_ms = 20};
    struct code_cache *c = tiered(&n, 10, 1);
    struct cached_code *busy = get_any(c, "busy"), *gone = get_any(c, "gone");
    code_cache_optimise(c, busy);
    code_cache_optimise(c, gone);
    code_cache_release(c, gone); // before its turn comes
    code_cache_settle(c);
    cr_assert_eq(n.makes, 3);
    gone = get_any(c, "gone");
    code_cache_optimise(c, gone);
    code_cache_settle(c);
    cr_assert(is_code(cached_code_get(gone), "gone", CODE_OPTIMISED), "asked again");
    code_cache_release(c, gone);
    code_cache_release(c, busy);
    code_cache_free(c);
    cr_assert_eq(n.makes, n.drops);
}

Test(code_cache, freed_while_the_queue_is_long)
{
    for (uint32_t optimisers = 1; optimisers <= 4; optimisers++) {
        struct counts n = {.sleep_ms = 5};
        struct code_cache *c = tiered(&n, 100, optimisers);
        for (int i = 0; i < 20; i++) {
            char text[8];
            snprintf(text, sizeof text, "%d", i);
            code_cache_optimise(c, get_any(c, text));
        }
        nanosleep(&(struct timespec){0, 12000000}, NULL);
        code_cache_free(c);
        cr_assert_eq(n.makes, n.drops, "%d makes, %d drops", n.makes, n.drops);
        cr_assert_leq(n.most_inside, (int)optimisers + 1, "and this thread");
    }
}

// Leaves a queue behind: at first nothing of it is begun, then the first, then some.
static void
exit_with_a_queue(uint32_t optimisers, int ms)
{
    static struct code_cache *c; // static, as that is no leak
    static struct counts n = {.sleep_ms = 10};
    of_exit = &n;
    if (atexit(nothing_is_made_any_more) != 0)
        _exit(3);
    c = tiered(&n, 100, optimisers);
    for (int i = 0; i < 8; i++) {
        char text[8];
        snprintf(text, sizeof text, "%d", i);
        code_cache_optimise(c, get_any(c, text));
    }
    nanosleep(&(struct timespec){0, ms * 1000000l}, NULL);
    exit(0);
}

Test(code_cache, exit_waits_for_what_is_being_made)
{
    for (uint32_t optimisers = 1; optimisers <= 4; optimisers++)
        for (int ms = 0; ms <= 15; ms += 5) {
            pid_t child = fork();
            if (child == 0)
                exit_with_a_queue(optimisers, ms);
            int status = -1;
            waitpid(child, &status, 0);
            cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%u optimisers, %d ms: %x",
                      optimisers, ms, status);
        }
}

static void *
churn_tiered(void *arg)
{
    struct shared *s = arg;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (int i = 0; i < 2000; i++) {
        seed = seed * 1664525u + 1013904223u;
        char text[16];
        snprintf(text, sizeof text, "t%u", seed >> 28);
        struct diag d = {0};
        struct cached_code *e = code_cache_get(s->c, text, strlen(text), &d);
        const void *code = e ? code_cache_use(s->c, e) : NULL;
        if (!e || !(is_code(code, text, CODE_BASELINE) || is_code(code, text, CODE_OPTIMISED)))
            s->wrong++;
        if (i % 500 == 499)
            code_cache_settle(s->c);
        code_cache_release(s->c, e);
    }
    return NULL;
}

__attribute__((unused)) static void *
go_on_in_child(void *arg)
{
    struct shared *s = arg;
    churn_tiered(s);
    code_cache_settle(s->c); // what the parent asked for included
    struct cached_code *e = get_any(s->c, "the child's own");
    code_cache_optimise(s->c, e);
    for (int ms = 0; ms < 10000 && !cached_code_is_optimised(e); ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    s->wrong += !cached_code_is_optimised(e);
    return NULL;
}

Test(code_cache, tiers_under_threads_and_fork)
{
    struct counts n = {0};
    struct shared s = {tiered(&n, 8, 3), {0}, 0};
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, churn_tiered, &s);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // do not survive such a fork
    fork_children(&s, go_on_in_child);
#endif
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    code_cache_settle(s.c);
    cr_assert_eq(s.wrong, 0);
    cr_assert_leq(code_cache_read_stats(s.c).entries, 8);
    code_cache_free(s.c);
    cr_assert_eq(n.makes, n.drops);
}
