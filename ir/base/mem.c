// mem.c: arenas and growable arrays. Arena blocks double up to 1 MiB; a larger request gets a block
// of its own. Memory handed out is zeroed, so records start in their neutral state.
#include "ir/base/mem.h"

#include "ir/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char data[];
};

enum { BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20 };

void *
xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    CHECK(p, "out of memory asking for %zu bytes", n);
    return p;
}

void *
xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    CHECK(p, "out of memory asking for %zu x %zu bytes", n, size);
    return p;
}

void *
xrealloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    CHECK(p, "out of memory asking for %zu bytes", n);
    return p;
}

void
xfree(void *p)
{
    free(p);
}

void *
vec_grown(void *at, uint32_t *cap, uint32_t need, size_t size)
{
    uint32_t n = *cap ? *cap : 8;
    while (n < need)
        n += n / 2 + 1;
    *cap = n;
    return xrealloc(at, (size_t)n * size);
}

static struct arena_block *
arena_add_block(struct arena *a, size_t need)
{
    size_t cap = a->head ? a->head->cap * 2 : BLOCK_MIN;
    if (cap > BLOCK_MAX)
        cap = BLOCK_MAX;
    if (cap < need)
        cap = need;
    struct arena_block *b = xmalloc(sizeof *b + cap);
    b->next = a->head;
    b->used = 0;
    b->cap = cap;
    a->head = b;
    a->bytes += cap;
    return b;
}

void *
arena_alloc(struct arena *a, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    struct arena_block *b = a->head;
    if (!b || b->cap - b->used < n)
        b = arena_add_block(a, n);
    void *p = b->data + b->used;
    b->used += n;
    return memset(p, 0, n);
}

void *
arena_copy(struct arena *a, const void *p, size_t n)
{
    void *q = arena_alloc(a, n);
    if (n)
        memcpy(q, p, n);
    return q;
}

char *
arena_strdup(struct arena *a, const char *s)
{
    return arena_copy(a, s, strlen(s) + 1);
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    CHECK(n >= 0, "bad format %s", fmt);
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

void
arena_free(struct arena *a)
{
    for (struct arena_block *b = a->head; b;) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    *a = (struct arena){0};
}
