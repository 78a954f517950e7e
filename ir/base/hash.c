// hash.c: linear probing with a load of at most 1/2; removal shifts followers back, so that no
// tombstones are needed.
#include "ir/base/hash.h"

#include "ir/base/mem.h"

#include <string.h>

uint64_t
hash_bytes(uint64_t seed, const void *p, size_t n)
{
    const unsigned char *c = p;
    uint64_t h = hash_mix(seed, n);
    for (; n >= 8; n -= 8, c += 8) {
        uint64_t v;
        memcpy(&v, c, 8);
        h = hash_mix(h, v);
    }
    uint64_t tail = 0;
    if (n)
        memcpy(&tail, c, n);
    return hash_mix(h, tail);
}

static void
map_place(struct map *m, uint64_t hash, uint32_t id)
{
    uint32_t i = (uint32_t)hash & (m->cap - 1);
    while (m->slot[i].id)
        i = (i + 1) & (m->cap - 1);
    m->slot[i] = (struct map_slot){hash, id};
}

void
map_add(struct map *m, uint64_t hash, uint32_t id)
{
    if ((m->n + 1) * 2 > m->cap) {
        struct map old = *m;
        m->cap = old.cap ? old.cap * 2 : 16;
        m->slot = xcalloc(m->cap, sizeof *m->slot);
        for (uint32_t i = 0; i < old.cap; i++)
            if (old.slot[i].id)
                map_place(m, old.slot[i].hash, old.slot[i].id);
        xfree(old.slot);
    }
    map_place(m, hash, id);
    m->n++;
}

bool
map_remove(struct map *m, uint64_t hash, uint32_t id)
{
    if (!m->cap)
        return false;
    uint32_t mask = m->cap - 1, i = (uint32_t)hash & mask;
    while (m->slot[i].id && !(m->slot[i].hash == hash && m->slot[i].id == id))
        i = (i + 1) & mask;
    if (!m->slot[i].id)
        return false;
    for (uint32_t j = (i + 1) & mask; m->slot[j].id; j = (j + 1) & mask) {
        uint32_t home = (uint32_t)m->slot[j].hash & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            m->slot[i] = m->slot[j];
            i = j;
        }
    }
    m->slot[i] = (struct map_slot){0};
    m->n--;
    return true;
}

void
map_clear(struct map *m)
{
    if (m->cap)
        memset(m->slot, 0, m->cap * sizeof *m->slot);
    m->n = 0;
}

void
map_free(struct map *m)
{
    xfree(m->slot);
    *m = (struct map){0};
}
