// plan_memory.c: places the arrays that live between launches in one arena. Launches run in order,
// so each array lives over an interval; the free list is kept sorted by offset and the best fit
// taken. Offsets are multiples of 64 bytes.
#include "passes/fuse.h"

struct hole {
    int64_t offset, bytes;
};
typedef VEC(struct hole) holes;

static int64_t
rounded(int64_t bytes)
{
    return bytes ? (bytes + 63) & ~(int64_t)63 : 64;
}

static int64_t
take(holes *h, int64_t bytes, int64_t *top)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < h->n; i++)
        if (h->at[i].bytes >= bytes && (best == UINT32_MAX || h->at[i].bytes < h->at[best].bytes))
            best = i;
    if (best != UINT32_MAX) {
        int64_t at = h->at[best].offset;
        h->at[best].offset += bytes;
        h->at[best].bytes -= bytes;
        if (!h->at[best].bytes) {
            for (uint32_t i = best; i + 1 < h->n; i++)
                h->at[i] = h->at[i + 1];
            h->n--;
        }
        return at;
    }
    struct hole *last = h->n ? &h->at[h->n - 1] : NULL;
    if (last && last->offset + last->bytes == *top) { // grow the arena from its last hole
        int64_t at = last->offset;
        h->n--;
        *top = at + bytes;
        return at;
    }
    int64_t at = *top;
    *top += bytes;
    return at;
}

static void
give(holes *h, int64_t offset, int64_t bytes)
{
    uint32_t i = 0;
    while (i < h->n && h->at[i].offset < offset)
        i++;
    bool left = i && h->at[i - 1].offset + h->at[i - 1].bytes == offset;
    bool right = i < h->n && offset + bytes == h->at[i].offset;
    if (left && right) {
        h->at[i - 1].bytes += bytes + h->at[i].bytes;
        for (uint32_t k = i; k + 1 < h->n; k++)
            h->at[k] = h->at[k + 1];
        h->n--;
    } else if (left) {
        h->at[i - 1].bytes += bytes;
    } else if (right) {
        h->at[i].offset = offset;
        h->at[i].bytes += bytes;
    } else {
        vec_push(h, ((struct hole){0}));
        for (uint32_t k = h->n - 1; k > i; k--)
            h->at[k] = h->at[k - 1];
        h->at[i] = (struct hole){offset, bytes};
    }
}

// Launch numbers of each array's birth and death as linked lists, so that the sweep is linear.
static uint32_t *
lists(const struct plan *p, bool by_last, uint32_t *head)
{
    uint32_t *next = xcalloc(p->buffer.n + 1, sizeof *next);
    for (uint32_t i = p->buffer.n; i-- > 0;) {
        const struct plan_buffer *b = &p->buffer.at[i];
        if (b->place != PLACE_ARENA)
            continue;
        uint32_t at = by_last ? b->last : b->first;
        next[i + 1] = head[at];
        head[at] = i + 1;
    }
    return next;
}

void
plan_memory(struct plan *p)
{
    uint32_t n = p->launch.n;
    uint32_t *born = xcalloc(n + 1, sizeof *born), *dies = xcalloc(n + 1, sizeof *dies);
    uint32_t *next_born = lists(p, false, born), *next_dies = lists(p, true, dies);
    holes h = {0};
    int64_t top = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t b = born[i]; b; b = next_born[b])
            p->buffer.at[b - 1].offset = take(&h, rounded(p->buffer.at[b - 1].bytes), &top);
        for (uint32_t b = dies[i]; b; b = next_dies[b])
            give(&h, p->buffer.at[b - 1].offset, rounded(p->buffer.at[b - 1].bytes));
    }
    p->arena_bytes = top;
    vec_free(&h);
    xfree(born);
    xfree(dies);
    xfree(next_born);
    xfree(next_dies);
}
