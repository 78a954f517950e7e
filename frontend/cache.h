// cache.h: a bounded map from keys, arrays of 64-bit words, to payloads; the least recently used
// entry makes room (give or take an eighth of the entries). A hash finds candidates, the whole key
// decides.
#ifndef FUSEC_FRONTEND_CACHE_H
#define FUSEC_FRONTEND_CACHE_H

#include "ir/base/hash.h"
#include "ir/base/mem.h"

struct executable;

struct type {        // of an op's result
    uint32_t layout; // dense
    uint32_t alias;  // eager views: its layout within operand 0's buffer (alignment aside), or 0
    int64_t offset;  // of its first element from operand 0's, in elements
};

struct cache_entry {
    uint64_t hash, *key;
    uint32_t n, cap;     // words
    uint32_t prev, next; // ring in order of use; entry 0 is its head. Unused: next free entry
    bool used;
    uint64_t moved;             // uses of the cache when it last went to the front
    struct type type;           // payload of the type cache
    struct executable *program; // payload of the plan cache; NULL: a structure only seen
};

struct cache {
    VEC(struct cache_entry) entry;
    struct map map;
    uint32_t limit, count, free;
    uint64_t uses;
    uint64_t hash_mask; // all ones; tests narrow it to force collisions
};

void cache_init(struct cache *c, uint32_t limit);
uint64_t cache_hash(const struct cache *c, const uint64_t *key, uint32_t n);
// The entry of a key, now the most recently used; NULL: none. Valid until the next cache_add.
struct cache_entry *cache_find(struct cache *c, uint64_t hash, const uint64_t *key, uint32_t n);
// Adds a key that is not there; evicts when full.
struct cache_entry *cache_add(struct cache *c, uint64_t hash, const uint64_t *key, uint32_t n);
void cache_clear(struct cache *c);
void cache_free(struct cache *c);

#endif
