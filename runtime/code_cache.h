// code_cache.h: compiled code by the text that it was made from, first baseline code, soon there,
// and optimised code in its place once it is used again.
#ifndef FUSEC_RUNTIME_CODE_CACHE_H
#define FUSEC_RUNTIME_CODE_CACHE_H

#include "codegen/codegen.h"

struct code_cache;
struct cached_code; // one text's code; counted

enum { OPTIMISERS_MOST = 8 };

// How code is made and unmade: `make` fills in *code and returns true, or gives d words. Called
// without locks, for different texts at once, inside work that fork() waits for.
struct code_maker {
    bool (*make)(void *user, const char *text, size_t n, enum code_level level, void *code,
                 struct diag *d);
    void (*drop)(void *user, void *code);
    void *user;
    size_t code_bytes;   // sizeof *code
    uint32_t optimisers; // threads at most, up to OPTIMISERS_MOST, that make optimised code in the
                         // background; 0: there is no baseline code, all is optimised at once
};

struct code_cache_stats {
    int64_t makes, hits, evictions; // hits include waiting for another thread that makes the same
    int64_t optimised;              // of these makes, how many were followed by optimised code
    int64_t entries, unused, text_bytes;
    double make_us, optimise_us;
};

// Code that nobody refers to is kept, least recently used first to go, up to so many entries and
// bytes of text. hash_bits: 64; tests take fewer to force collisions.
struct code_cache *code_cache_new(struct code_maker maker, int64_t max_unused,
                                  int64_t max_unused_bytes, uint32_t hash_bits);
// Drops all code; nobody may refer to any. Waits for a make under way in the background.
void code_cache_free(struct code_cache *c);

// Finds or makes the code of a text (copied); the whole text is compared. Threads that ask for one
// text at once get one make. NULL: d; the failure is not kept. The caller releases the result.
struct cached_code *code_cache_get(struct code_cache *c, const char *text, size_t n,
                                   struct diag *d);
void code_cache_release(struct code_cache *c, struct cached_code *e);
// The maker's code, the best there is now: for one use of it. Code that was returned stays valid
// until e is released, so a use may go on with it or look again. The second use asks for optimised
// code, which is made in the background. Any thread; takes no lock but once.
const void *code_cache_use(struct code_cache *c, struct cached_code *e);
// The same without counting as a use.
const void *cached_code_get(const struct cached_code *e);
bool cached_code_is_optimised(const struct cached_code *e);
// Asks for optimised code now: a use takes long.
void code_cache_optimise(struct code_cache *c, struct cached_code *e);
// Returns when nothing that was asked for is left to be optimised; helps meanwhile.
void code_cache_settle(struct code_cache *c);
struct code_cache_stats code_cache_read_stats(struct code_cache *c);

#endif
