// alloc.c: a caching allocator. Sizes are rounded up to classes: multiples of 64 bytes up to 1 KiB,
// then eight to a doubling, so at most an eighth of a block is waste. A released block goes to its
// class's stack (last in, first out: it is the one still in the caches). Fresh memory is the
// expensive kind: a page fault costs more than streaming over the page.
//
// Blocks of 2 MiB and more are mapped, aligned to 2 MiB and marked for huge pages; the tail that
// the class adds is never touched and so never exists. Were they handed out at that alignment, the
// same element of every array would fall into the same set of the caches: successive blocks start
// at different offsets (kernels of 10 and 14 inputs ran 8 and 18 % faster, of 2 and 6 the same).
// Smaller ones come from the C library.
//
// When more is cached than was ever in use at once (plus 64 MiB), the largest blocks of other
// classes go first: they belong to shapes that are no longer asked for.
#include "runtime/alloc.h"

#include "ir/base/mem.h"
#include "runtime/fork.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    ALIGN = 64,
    FINE_UNITS = 16,     // sizes up to 16 x 64 bytes are classes of their own
    STEP_LOG2 = 3,       // then 2^3 classes to a doubling
    CLASSES = 320,       // enough for 2^43 bytes
    PAGE = 4096,
    OFFSETS = 16,
    OFFSET = PAGE + 256, // differs in page and in cache set, a multiple of 64
};
#define HUGE_PAGE ((int64_t)2 << 20)
#define SLACK ((int64_t)64 << 20)
#define MAX_BYTES ((int64_t)1 << 43)

struct allocator {
    struct fork_lock lock;
    int64_t limit;
    struct alloc_stats stats;
    struct alloc_source source;      // take NULL: the system
    VEC(void *) cached[CLASSES];
};

// ---- classes

static int
class_of(int64_t bytes)
{
    int64_t units = (bytes + ALIGN - 1) / ALIGN;
    if (units <= FINE_UNITS)
        return units < 1 ? 0 : (int)units - 1;
    int shift = 63 - __builtin_clzll((uint64_t)units - 1) - STEP_LOG2;
    int64_t steps = (units - 1) >> shift; // 8 .. 15
    return FINE_UNITS + ((shift - 1) << STEP_LOG2) + (int)(steps - (1 << STEP_LOG2));
}

static int64_t
class_bytes(int c)
{
    if (c < FINE_UNITS)
        return (int64_t)(c + 1) * ALIGN;
    int shift = ((c - FINE_UNITS) >> STEP_LOG2) + 1;
    int64_t steps = ((c - FINE_UNITS) & ((1 << STEP_LOG2) - 1)) + (1 << STEP_LOG2) + 1;
    return (steps << shift) * ALIGN;
}

int64_t
alloc_class_bytes(int64_t bytes)
{
    return class_bytes(class_of(bytes));
}

static int64_t
counted(int64_t bytes)
{
    return bytes < ALIGN ? ALIGN : (bytes + ALIGN - 1) & ~(int64_t)(ALIGN - 1);
}

// ---- the system

static size_t
mapped_bytes(int64_t size)
{
    int64_t all = size + (OFFSETS - 1) * OFFSET;
    return (size_t)((all + PAGE - 1) & ~(int64_t)(PAGE - 1));
}

static void *
map_aligned(int64_t size, int64_t number)
{
    size_t want = mapped_bytes(size), all = want + (size_t)HUGE_PAGE;
    char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t head = (size_t)(-(uintptr_t)p & ((uintptr_t)HUGE_PAGE - 1));
    if (head)
        munmap(p, head);
    if (all - head - want)
        munmap(p + head + want, all - head - want);
    madvise(p + head, want, MADV_HUGEPAGE); // refused where the kernel has none: no harm
    return p + head + number % OFFSETS * OFFSET;
}

static void *
system_take(int64_t size, int64_t number)
{
    return size >= HUGE_PAGE ? map_aligned(size, number) : aligned_alloc(ALIGN, (size_t)size);
}

static void
system_release(void *p, int64_t size)
{
    if (size >= HUGE_PAGE)
        munmap((void *)((uintptr_t)p & ~((uintptr_t)HUGE_PAGE - 1)), mapped_bytes(size));
    else
        free(p);
}

// ---- with the lock held

static void
drop_cached(struct allocator *a, int c)
{
    void *p = a->cached[c].at[--a->cached[c].n];
    if (a->source.take)
        a->source.give(a->source.user, p, class_bytes(c));
    else
        system_release(p, class_bytes(c));
    a->stats.cached -= class_bytes(c);
    a->stats.held -= class_bytes(c);
}

static void
drop_until(struct allocator *a, int64_t cached, int keep)
{
    for (int c = CLASSES - 1; c >= 0; c--)
        while (c != keep && a->cached[c].n && a->stats.cached > cached)
            drop_cached(a, c);
}

static void *
fresh_block(struct allocator *a, int64_t size)
{
    if (a->source.take)
        return a->source.take(a->source.user, size);
    return system_take(size, a->stats.system_blocks);
}

static void *
take_fresh(struct allocator *a, int c)
{
    int64_t size = class_bytes(c);
    if (size > a->limit - a->stats.held)
        drop_until(a, 0, -1);
    if (size > a->limit - a->stats.held)
        return NULL;
    void *p = fresh_block(a, size);
    if (!p) {
        drop_until(a, 0, -1);
        p = fresh_block(a, size);
    }
    if (p) {
        a->stats.held += size;
        a->stats.system_blocks++;
    }
    return p;
}

// ---- the interface

struct allocator *
allocator_new(int64_t limit)
{
    struct allocator *a = xcalloc(1, sizeof *a);
    fork_lock_init(&a->lock, FORK_MEMORY);
    a->limit = limit;
    return a;
}

struct allocator *
allocator_new_of(int64_t limit, struct alloc_source source)
{
    struct allocator *a = allocator_new(limit);
    a->source = source;
    return a;
}

void
allocator_free(struct allocator *a)
{
    if (!a)
        return;
    drop_until(a, -1, -1);
    for (int c = 0; c < CLASSES; c++)
        vec_free(&a->cached[c]);
    fork_lock_destroy(&a->lock);
    xfree(a);
}

void *
alloc_take(struct allocator *a, int64_t bytes)
{
    if (bytes < 0 || bytes > MAX_BYTES)
        return NULL;
    int c = class_of(bytes);
    fork_lock_take(&a->lock);
    void *b = NULL;
    if (a->cached[c].n) {
        b = a->cached[c].at[--a->cached[c].n];
        a->stats.cached -= class_bytes(c);
    } else {
        b = take_fresh(a, c);
    }
    if (b) {
        a->stats.in_use += counted(bytes);
        if (a->stats.in_use > a->stats.peak)
            a->stats.peak = a->stats.in_use;
    }
    fork_lock_drop(&a->lock);
    return b;
}

void
alloc_release(struct allocator *a, void *p, int64_t bytes)
{
    if (!p)
        return;
    int c = class_of(bytes);
    fork_lock_take(&a->lock);
    vec_push(&a->cached[c], p);
    a->stats.cached += class_bytes(c);
    a->stats.in_use -= counted(bytes);
    if (a->stats.cached > a->stats.peak + SLACK)
        drop_until(a, a->stats.peak + SLACK, c);
    fork_lock_drop(&a->lock);
}

void
alloc_trim(struct allocator *a)
{
    fork_lock_take(&a->lock);
    drop_until(a, 0, -1);
    fork_lock_drop(&a->lock);
}

struct alloc_stats
alloc_read_stats(struct allocator *a)
{
    fork_lock_take(&a->lock);
    struct alloc_stats s = a->stats;
    fork_lock_drop(&a->lock);
    return s;
}
