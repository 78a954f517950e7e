// mem.h: memory. Three lifetimes exist in fusec: a graph's (arena), a call's (scratch arena) and
// reference-counted objects. The x-functions abort when the host is out of memory.
#ifndef FUSEC_IR_BASE_MEM_H
#define FUSEC_IR_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);

// A region that only grows and is freed whole. Zero-initialise it; pointers stay valid until
// arena_free.
struct arena {
    struct arena_block *head;
    size_t bytes; // taken from the system
};
void *arena_alloc(struct arena *a, size_t n);  // 16-byte aligned, zeroed; n = 0 is allowed
void *arena_copy(struct arena *a, const void *p, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a);

// A growable array: VEC(int) v = {0}; vec_push(&v, 3); v.at[0]; v.n; vec_free(&v).
#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        uint32_t n, cap;                                                                           \
    }
void *vec_grown(void *at, uint32_t *cap, uint32_t need, size_t size);
#define vec_reserve(v, need)                                                                       \
    ((need) > (v)->cap ? (void)((v)->at = vec_grown((v)->at, &(v)->cap, (need), sizeof *(v)->at))  \
                       : (void)0)
#define vec_push(v, x) (vec_reserve(v, (v)->n + 1), (void)((v)->at[(v)->n++] = (x)))
#define vec_free(v) (xfree((v)->at), (void)((v)->at = NULL, (v)->n = (v)->cap = 0))
void xfree(void *p);

#endif
