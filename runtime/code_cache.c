// code_cache.c: text → code, each text made once while anyone needs it.
//
// An entry is put into the map before its code is made, in state MAKING; whoever asks for the same
// text meanwhile waits for it. The lock is not held while code is made or dropped: makes of
// different texts run at once. Entries that nobody refers to stand in a list by last use and leave
// it from the old end when there are too many.
//
// A hash only finds candidates: the text decides, so equal hashes are harmless.
#include "runtime/code_cache.h"

#include "ir/base/clock.h"
#include "ir/base/hash.h"
#include "ir/base/mem.h"
#include "runtime/fork.h"

#include <string.h>

enum state { MAKING, READY, FAILED };

struct cached_code {
    char *text;
    size_t n;
    uint64_t hash;
    uint32_t id, refs;
    uint8_t state;
    struct cached_code *newer, *older; // in the list of unused code
    struct diag failure;
    _Alignas(16) char code[];
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
};

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
    struct cached_code *e = xcalloc(1, sizeof *e + c->maker.code_bytes);
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
    if (e->state == READY)
        c->maker.drop(c->maker.user, e->code);
    xfree(e->text);
    xfree(e);
}

static void
make(struct code_cache *c, struct cached_code *e)
{
    double start = clock_us();
    bool ok = c->maker.make(c->maker.user, e->text, e->n, e->code, &e->failure);
    double us = clock_us() - start;
    fork_lock_take(&c->lock);
    c->stats.makes++;
    c->stats.make_us += us;
    e->state = ok ? READY : FAILED;
    if (!ok)
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
    c->hash_mask = hash_bits >= 64 ? UINT64_MAX : ((uint64_t)1 << hash_bits) - 1;
    vec_push(&c->entry, NULL);
    return c;
}

void
code_cache_free(struct code_cache *c)
{
    if (!c)
        return;
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

void *
cached_code_get(struct cached_code *e)
{
    return e->code;
}

struct code_cache_stats
code_cache_read_stats(struct code_cache *c)
{
    fork_lock_take(&c->lock);
    struct code_cache_stats s = c->stats;
    fork_lock_drop(&c->lock);
    return s;
}
