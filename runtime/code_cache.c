// code_cache.c: text → code, each text made once while anyone needs it.
//
// An entry is put into the map before its code is made, in state MAKING; whoever asks for the same
// text meanwhile waits for it. The lock is not held while code is made or dropped: makes of
// different texts run at once. Entries that nobody refers to stand in a list by last use and leave
// it from the old end when there are too many.
//
// A hash only finds candidates: the text decides, so equal hashes are harmless.
//
// Baseline code that is used a second time joins a queue (with a reference of its own) and is made
// again, optimised, by threads that live as long as there is something in the queue. The entry then
// holds both: who is in baseline code stays in it, and it goes when the entry does.
#include "runtime/code_cache.h"

#include "ir/base/check.h"
#include "ir/base/clock.h"
#include "ir/base/hash.h"
#include "ir/base/mem.h"
#include "runtime/fork.h"
#include "runtime/thread.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum state { MAKING, READY, FAILED };
enum { USES_OF_BASELINE = 2 }; // the use that asks for optimised code

struct cached_code {
    char *text;
    size_t n;
    uint64_t hash;
    uint32_t id, refs;
    uint8_t state;
    struct cached_code *newer, *older; // in the list of unused code
    struct cached_code *next_asked;    // in the queue
    struct diag failure;
    const void *baseline, *optimised;  // in `code`; NULL: not there. baseline never changes
    _Atomic(const void *) best;        // of the two
    atomic_uint uses;
    atomic_bool asked; // for optimised code
    _Alignas(16) char code[]; // [enum code_level], each code_stride bytes
};

struct optimiser {
    struct code_cache *cache;
    pthread_t thread;
    enum { NO_THREAD, RUNNING, ENDED } state; // of the cache, under its lock
};

struct code_cache {
    struct fork_lock lock;
    struct code_maker maker;
    int64_t max_unused, max_unused_bytes, unused_bytes;
    uint64_t hash_mask;
    struct map map;
    VEC(struct cached_code *) entry; // by id; entry.at[0] is a dummy
    VEC(uint32_t) free_ids;
    struct cached_code *newest, *oldest; // unused
    struct code_cache_stats stats;
    struct cached_code *first_asked, **last_asked; // the queue
    uint32_t optimising;                           // makes of optimised code under way
    bool closing;
    _Atomic(pid_t) process; // whose threads these are
    struct optimiser optimiser[OPTIMISERS_MOST];
};

static size_t
code_stride(const struct code_cache *c)
{
    return (c->maker.code_bytes + 15) & ~(size_t)15;
}

// ---- with the lock held: the list of unused code

static void
list_remove(struct code_cache *c, struct cached_code *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    e->newer = e->older = NULL;
    c->stats.unused--;
    c->unused_bytes -= (int64_t)e->n;
}

static void
list_add(struct code_cache *c, struct cached_code *e)
{
    e->older = c->newest;
    e->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
    c->stats.unused++;
    c->unused_bytes += (int64_t)e->n;
}

// ---- with the lock held: the map

static struct cached_code *
find(struct code_cache *c, uint64_t hash, const char *text, size_t n)
{
    uint32_t at = 0, id;
    while ((id = map_next(&c->map, hash, &at))) {
        struct cached_code *e = c->entry.at[id];
        if (e->n == n && memcmp(e->text, text, n) == 0)
            return e;
    }
    return NULL;
}

static struct cached_code *
add(struct code_cache *c, uint64_t hash, const char *text, size_t n)
{
    struct cached_code *e = xcalloc(1, sizeof *e + 2 * code_stride(c));
    e->text = memcpy(xmalloc(n), text, n);
    e->n = n;
    e->hash = hash;
    e->refs = 1;
    e->state = MAKING;
    if (c->free_ids.n) {
        e->id = c->free_ids.at[--c->free_ids.n];
        c->entry.at[e->id] = e;
    } else {
        e->id = c->entry.n;
        vec_push(&c->entry, e);
    }
    map_add(&c->map, hash, e->id);
    c->stats.entries++;
    c->stats.text_bytes += (int64_t)n;
    return e;
}

static void
unmap(struct code_cache *c, struct cached_code *e)
{
    map_remove(&c->map, e->hash, e->id);
    c->entry.at[e->id] = NULL;
    vec_push(&c->free_ids, e->id);
    c->stats.entries--;
    c->stats.text_bytes -= (int64_t)e->n;
}

// ---- without the lock

static void
entry_free(struct code_cache *c, struct cached_code *e)
{
    for (enum code_level l = CODE_BASELINE; l <= CODE_OPTIMISED; l++)
        if (l == CODE_BASELINE ? e->baseline : e->optimised)
            c->maker.drop(c->maker.user, e->code + l * code_stride(c));
    xfree(e->text);
    xfree(e);
}

// Code of a level, if it can be made. *us: how long that took.
static const void *
make_code(struct code_cache *c, struct cached_code *e, enum code_level level, double *us,
          struct diag *failure)
{
    double start = clock_us();
    void *code = e->code + level * code_stride(c);
    bool ok = c->maker.make(c->maker.user, e->text, e->n, level, code, failure);
    *us = clock_us() - start;
    return ok ? code : NULL;
}

static void
make(struct code_cache *c, struct cached_code *e)
{
    double us;
    enum code_level level = c->maker.optimisers ? CODE_BASELINE : CODE_OPTIMISED;
    const void *code = make_code(c, e, level, &us, &e->failure);
    fork_lock_take(&c->lock);
    c->stats.makes++;
    c->stats.make_us += us;
    *(level == CODE_BASELINE ? &e->baseline : &e->optimised) = code;
    atomic_store_explicit(&e->best, code, memory_order_release);
    e->state = code ? READY : FAILED;
    if (!code)
        unmap(c, e);
    fork_lock_end_work(&c->lock);
}

// Lets go of a reference; with the lock held, which it drops and takes again to drop code.
static void
release(struct code_cache *c, struct cached_code *e)
{
    if (--e->refs)
        return;
    if (e->state == FAILED) {
        entry_free(c, e);
        return;
    }
    list_add(c, e);
    while (c->stats.unused > c->max_unused || c->unused_bytes > c->max_unused_bytes) {
        struct cached_code *old = c->oldest;
        list_remove(c, old);
        unmap(c, old);
        c->stats.evictions++;
        fork_lock_begin_work(&c->lock);
        fork_lock_drop(&c->lock);
        entry_free(c, old);
        fork_lock_take(&c->lock);
        fork_lock_end_work(&c->lock);
    }
}

// ---- optimised code, in the background

// With the lock held, which it drops meanwhile: makes what was asked for first. False: there is
// nothing. Nothing is taken from the queue before fork() is kept waiting, as a child has no more
// than what is in the queue.
static bool
optimise_next(struct code_cache *c)
{
    fork_lock_begin_work(&c->lock);
    struct cached_code *e = c->closing ? NULL : c->first_asked;
    if (!e) {
        fork_lock_end_work(&c->lock);
        return false;
    }
    c->first_asked = e->next_asked;
    if (!c->first_asked)
        c->last_asked = &c->first_asked;
    if (e->refs == 1) { // nobody else's any more
        atomic_store_explicit(&e->asked, false, memory_order_relaxed);
    } else {
        struct diag failure = {0};
        double us;
        c->optimising++;
        fork_lock_drop(&c->lock);
        const void *code = make_code(c, e, CODE_OPTIMISED, &us, &failure);
        fork_lock_take(&c->lock);
        c->optimising--;
        c->stats.optimise_us += us;
        c->stats.optimised += code != NULL;
        e->optimised = code;
        if (code) // else baseline code goes on
            atomic_store_explicit(&e->best, code, memory_order_release);
    }
    fork_lock_end_work(&c->lock);
    release(c, e);
    return true;
}

static void *
optimiser_main(void *arg)
{
    struct optimiser *o = arg;
    struct fork_lock *lock = &o->cache->lock;
    for (bool more = true; more;) {
        bool may = thread_work_begin();
        fork_lock_take(lock);
        more = may && optimise_next(o->cache);
        if (!more)
            o->state = ENDED;
        fork_lock_drop(lock);
        if (may)
            thread_work_end();
    }
    return NULL;
}

// A forked child has the parent's queue and none of its threads.
static bool
is_inherited(const struct code_cache *c)
{
    return atomic_load_explicit(&c->process, memory_order_relaxed) != getpid();
}

static void
forget_parents_threads(struct code_cache *c)
{
    if (!is_inherited(c))
        return;
    atomic_store_explicit(&c->process, getpid(), memory_order_relaxed);
    for (uint32_t i = 0; i < OPTIMISERS_MOST; i++)
        c->optimiser[i].state = NO_THREAD;
}

// With the lock held. Where no thread can be had the queue waits for the next one to ask.
static void
start_optimiser(struct code_cache *c)
{
    forget_parents_threads(c);
    for (uint32_t i = 0; i < c->maker.optimisers; i++) {
        struct optimiser *o = &c->optimiser[i];
        if (o->state == RUNNING)
            continue;
        if (o->state == ENDED) // has nothing left to do but to return
            pthread_join(o->thread, NULL);
        o->cache = c;
        o->state = thread_start(&o->thread, optimiser_main, o) ? RUNNING : NO_THREAD;
        return;
    }
}

static void
stop_optimisers(struct code_cache *c)
{
    pthread_t thread[OPTIMISERS_MOST];
    uint32_t n = 0;
    fork_lock_take(&c->lock);
    c->closing = true;
    forget_parents_threads(c);
    for (uint32_t i = 0; i < OPTIMISERS_MOST; i++)
        if (c->optimiser[i].state != NO_THREAD)
            thread[n++] = c->optimiser[i].thread;
    fork_lock_drop(&c->lock);
    while (n > 0)
        pthread_join(thread[--n], NULL);
}

// ---- the interface

struct code_cache *
code_cache_new(struct code_maker maker, int64_t max_unused, int64_t max_unused_bytes,
               uint32_t hash_bits)
{
    struct code_cache *c = xcalloc(1, sizeof *c);
    fork_lock_init(&c->lock, FORK_CODE);
    c->maker = maker;
    c->max_unused = max_unused;
    c->max_unused_bytes = max_unused_bytes;
    CHECK(maker.optimisers <= OPTIMISERS_MOST, "%u optimisers", maker.optimisers);
    c->hash_mask = hash_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << hash_bits) - 1;
    c->last_asked = &c->first_asked;
    atomic_init(&c->process, getpid());
    vec_push(&c->entry, NULL);
    if (maker.optimisers)
        thread_work_wanted();
    return c;
}

void
code_cache_free(struct code_cache *c)
{
    if (!c)
        return;
    stop_optimisers(c);
    for (uint32_t i = 1; i < c->entry.n; i++)
        if (c->entry.at[i])
            entry_free(c, c->entry.at[i]);
    vec_free(&c->entry);
    vec_free(&c->free_ids);
    map_free(&c->map);
    fork_lock_destroy(&c->lock);
    xfree(c);
}

struct cached_code *
code_cache_get(struct code_cache *c, const char *text, size_t n, struct diag *d)
{
    uint64_t hash = hash_bytes(0, text, n) & c->hash_mask;
    fork_lock_take(&c->lock);
    struct cached_code *e = find(c, hash, text, n);
    if (!e) {
        fork_lock_begin_work(&c->lock); // may let others in
        e = find(c, hash, text, n);
        if (e)
            fork_lock_end_work(&c->lock);
    }
    if (e) {
        c->stats.hits++;
        if (e->refs++ == 0)
            list_remove(c, e);
        while (e->state == MAKING)
            fork_lock_wait(&c->lock);
    } else {
        e = add(c, hash, text, n);
        fork_lock_drop(&c->lock);
        make(c, e); // returns with the lock
    }
    if (e->state == FAILED) {
        diag_set(d, e->failure.code, "%s", e->failure.text);
        release(c, e);
        e = NULL;
    }
    fork_lock_drop(&c->lock);
    return e;
}

void
code_cache_release(struct code_cache *c, struct cached_code *e)
{
    if (!e)
        return;
    fork_lock_take(&c->lock);
    release(c, e);
    fork_lock_drop(&c->lock);
}

const void *
cached_code_get(const struct cached_code *e)
{
    return atomic_load_explicit(&e->best, memory_order_acquire);
}

bool
cached_code_is_optimised(const struct cached_code *e)
{
    return cached_code_get(e) != e->baseline;
}

const void *
code_cache_use(struct code_cache *c, struct cached_code *e)
{
    const void *code = cached_code_get(e);
    if (code == e->baseline &&
        atomic_fetch_add_explicit(&e->uses, 1, memory_order_relaxed) + 1 >= USES_OF_BASELINE)
        code_cache_optimise(c, e);
    return code;
}

void
code_cache_optimise(struct code_cache *c, struct cached_code *e)
{
    bool asked = atomic_exchange_explicit(&e->asked, true, memory_order_relaxed);
    if (!e->baseline || (asked && !is_inherited(c)))
        return;
    thread_work_wanted();
    fork_lock_take(&c->lock);
    if (!asked) {
        e->refs++;
        e->next_asked = NULL;
        *c->last_asked = e;
        c->last_asked = &e->next_asked;
    }
    start_optimiser(c);
    fork_lock_drop(&c->lock);
}

void
code_cache_settle(struct code_cache *c)
{
    fork_lock_take(&c->lock);
    for (;;) {
        if (optimise_next(c))
            continue;
        if (!c->optimising)
            break;
        fork_lock_wait(&c->lock);
    }
    fork_lock_drop(&c->lock);
}

struct code_cache_stats
code_cache_read_stats(struct code_cache *c)
{
    fork_lock_take(&c->lock);
    struct code_cache_stats s = c->stats;
    fork_lock_drop(&c->lock);
    return s;
}
