// code_cache.h: compiled code by the text that it was made from.
#ifndef FUSEC_RUNTIME_CODE_CACHE_H
#define FUSEC_RUNTIME_CODE_CACHE_H

#include "ir/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_cache;
struct cached_code; // one text's code; counted

// How code is made and unmade: `make` fills in *code and returns true, or gives d words. Called
// without locks, for different texts at once, inside work that fork() waits for.
struct code_maker {
    bool (*make)(void *user, const char *text, size_t n, void *code, struct diag *d);
    void (*drop)(void *user, void *code);
    void *user;
    size_t code_bytes; // sizeof *code
};

struct code_cache_stats {
    int64_t makes, hits, evictions; // hits include waiting for another thread that makes the same
    int64_t entries, unused, text_bytes;
    double make_us;
};

// Code that nobody refers to is kept, least recently used first to go, up to so many entries and
// bytes of text. hash_bits: 64; tests take fewer to force collisions.
struct code_cache *code_cache_new(struct code_maker maker, int64_t max_unused,
                                  int64_t max_unused_bytes, uint32_t hash_bits);
void code_cache_free(struct code_cache *c); // drops all code; nobody may refer to any

// Finds or makes the code of a text (copied); the whole text is compared. Threads that ask for one
// text at once get one make. NULL: d; the failure is not kept. The caller releases the result.
struct cached_code *code_cache_get(struct code_cache *c, const char *text, size_t n,
                                   struct diag *d);
void code_cache_release(struct code_cache *c, struct cached_code *e);
void *cached_code_get(struct cached_code *e); // the maker's code, valid until released
struct code_cache_stats code_cache_read_stats(struct code_cache *c);

#endif
