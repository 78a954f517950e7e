// hash.h: 64-bit hashing and a map from hashes to 32-bit ids. The mixing step is the finaliser of
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). Hashes never decide equality: callers compare.
#ifndef FUSEC_IR_BASE_HASH_H
#define FUSEC_IR_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For a fixed h a bijection of v: hash_mix(0, key) identifies a 64-bit key exactly.
static inline uint64_t
hash_mix(uint64_t h, uint64_t v)
{
    h = (h * 0xd1342543de82ef95u ^ v) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}
uint64_t hash_bytes(uint64_t seed, const void *p, size_t n);

// Open addressing; several ids may share one hash. Zero-initialise.
struct map {
    struct map_slot {
        uint64_t hash;
        uint32_t id; // 0 = empty
    } *slot;
    uint32_t n, cap;
};
void map_add(struct map *m, uint64_t hash, uint32_t id); // id != 0; duplicates are kept
// Walks the ids stored under a hash: start with *at = 0; 0 = no more.
static inline uint32_t
map_next(const struct map *m, uint64_t hash, uint32_t *at)
{
    for (uint32_t step = *at; step < m->cap; step++) {
        const struct map_slot *s = &m->slot[((uint32_t)hash + step) & (m->cap - 1)];
        if (!s->id)
            return 0;
        if (s->hash == hash) {
            *at = step + 1;
            return s->id;
        }
    }
    return 0;
}
bool map_remove(struct map *m, uint64_t hash, uint32_t id);
void map_clear(struct map *m);
void map_free(struct map *m);

#endif
