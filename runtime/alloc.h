// alloc.h: memory for buffers, arenas and scratch, kept for reuse after release.
#ifndef FUSEC_RUNTIME_ALLOC_H
#define FUSEC_RUNTIME_ALLOC_H

#include <stdint.h>

struct allocator;
struct alloc_stats {
    int64_t in_use, peak;  // bytes handed out (rounded up to 64), now and at most
    int64_t held;          // bytes taken from the system, in use or cached
    int64_t cached;        // of these, waiting for reuse
    int64_t system_blocks; // times that the system was asked
};

// limit: bytes that may be held at once.
struct allocator *allocator_new(int64_t limit);
// Memory of another kind, never touched by the allocator: `take` gives blocks of so many bytes,
// aligned to 64, or NULL.
struct alloc_source {
    void *(*take)(void *user, int64_t bytes);
    void (*give)(void *user, void *p, int64_t bytes);
    void *user;
};
struct allocator *allocator_new_of(int64_t limit, struct alloc_source source);
void allocator_free(struct allocator *a); // and all memory that it handed out and took back

// 64-byte aligned; content undefined; 0 bytes give a block too. NULL: the limit or the system's end
// was reached even after cached blocks were given back, or bytes is negative. Any thread.
void *alloc_take(struct allocator *a, int64_t bytes);
// bytes: as asked for. p may be NULL.
void alloc_release(struct allocator *a, void *p, int64_t bytes);
void alloc_trim(struct allocator *a); // gives all cached blocks back to the system
struct alloc_stats alloc_read_stats(struct allocator *a);

// What a block of so many bytes occupies: at most an eighth more, or 64 bytes.
int64_t alloc_class_bytes(int64_t bytes);

#endif
