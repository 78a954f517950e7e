// cache.c: entries stand in a vector and are found through ir/base/hash's map; a ring of indices
// keeps the order of use. Keys of evicted entries keep their memory for the next one, so a cache
// that is full and busy allocates little.
#include "frontend/cache.h"

#include "runtime/device.h"

#include <string.h>

void
cache_init(struct cache *c, uint32_t limit)
{
    *c = (struct cache){.limit = limit ? limit : 1, .hash_mask = ~0ull};
    vec_push(&c->entry, ((struct cache_entry){0}));
}

// One multiplication a word (the folded 128-bit product of wyhash; Wang Yi, 2019), since keys are
// hashed at every call.
static inline uint64_t
fold(uint64_t a, uint64_t b)
{
    unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t
cache_hash(const struct cache *c, const uint64_t *key, uint32_t n)
{
    uint64_t h = n * 0x9e3779b97f4a7c15u;
    uint32_t i = 0;
    for (; i + 1 < n; i += 2)
        h = fold(h ^ key[i] ^ 0xa0761d6478bd642fu, key[i + 1] ^ 0xe7037ed1a0b428dbu) + i;
    if (i < n)
        h = fold(h ^ key[i] ^ 0xa0761d6478bd642fu, 0x8ebc6af09c88c6e3u);
    return hash_mix(h, n) & c->hash_mask;
}

static void
ring_remove(struct cache *c, uint32_t i)
{
    struct cache_entry *e = &c->entry.at[i];
    c->entry.at[e->prev].next = e->next;
    c->entry.at[e->next].prev = e->prev;
}

static void
ring_to_front(struct cache *c, uint32_t i)
{
    struct cache_entry *head = &c->entry.at[0], *e = &c->entry.at[i];
    e->moved = c->uses;
    e->prev = 0;
    e->next = head->next;
    c->entry.at[head->next].prev = i;
    head->next = i;
}

// The keys of single ops are a few words, which a call of memcmp is too long a way for.
static inline bool
same_key(const uint64_t *a, const uint64_t *b, uint32_t n)
{
    if (n > 8)
        return !memcmp(a, b, n * sizeof *a);
    uint64_t differ = 0;
    for (uint32_t i = 0; i < n; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}

// An entry that went to the front not long ago stays where it is: a loop over a few keys would
// otherwise shuffle the ring at every step. Small caches keep the exact order.
struct cache_entry *
cache_find(struct cache *c, uint64_t hash, const uint64_t *key, uint32_t n)
{
    c->uses++;
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&c->map, hash, &at));) {
        struct cache_entry *e = &c->entry.at[id];
        if (e->n != n || !same_key(e->key, key, n))
            continue;
        if (c->uses - e->moved > c->limit / 8 && c->entry.at[0].next != id) {
            ring_remove(c, id);
            ring_to_front(c, id);
        }
        return e;
    }
    return NULL;
}

static void
evict(struct cache *c, uint32_t i)
{
    struct cache_entry *e = &c->entry.at[i];
    ring_remove(c, i);
    map_remove(&c->map, e->hash, i);
    if (e->program)
        executable_unref(e->program);
    e->program = NULL;
    e->used = false;
    e->next = c->free;
    c->free = i;
    c->count--;
}

struct cache_entry *
cache_add(struct cache *c, uint64_t hash, const uint64_t *key, uint32_t n)
{
    if (c->count >= c->limit)
        evict(c, c->entry.at[0].prev);
    uint32_t i = c->free;
    if (i) {
        c->free = c->entry.at[i].next;
    } else {
        i = c->entry.n;
        vec_push(&c->entry, ((struct cache_entry){0}));
    }
    struct cache_entry *e = &c->entry.at[i];
    if (e->cap < n) {
        e->key = xrealloc(e->key, n * sizeof *key);
        e->cap = n;
    }
    memcpy(e->key, key, n * sizeof *key);
    e->n = n;
    e->hash = hash;
    e->used = true;
    e->type = (struct type){0};
    map_add(&c->map, hash, i);
    ring_to_front(c, i);
    c->count++;
    return e;
}

void
cache_clear(struct cache *c)
{
    while (c->count)
        evict(c, c->entry.at[0].prev);
}

void
cache_free(struct cache *c)
{
    cache_clear(c);
    for (uint32_t i = 0; i < c->entry.n; i++)
        xfree(c->entry.at[i].key);
    vec_free(&c->entry);
    map_free(&c->map);
}
