// plan_memory.c: places the arrays that live between launches in one arena. Launches run in order,
// so each array lives over an interval; the free list is kept sorted by offset and the best fit
// taken. Offsets are multiples of 64 bytes.
//
// An array that a kernel writes may take the place of one that dies in it, where each element is
// read by the very iteration that writes it: the store and every load of the dying array have one
// and the same access, and the store belongs to the last stage.
//
// The launches of a chain run block by block: while one reads an array for the last time in one
// block, an earlier one may not have come to the next. So what dies in a chain gives its place back
// when the whole chain is done, and only what the chain itself wrote, in the same blocks, is
// overwritten in place.
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

// Whether kernel buffer `in` of a launch may be overwritten by `out`.
static bool
is_lane_local(const struct launch *l, uint32_t in, uint32_t out)
{
    const struct kernel *k = &l->kernel;
    const struct access *a = NULL;
    if (k->cls != CLASS_POINTWISE && k->cls != CLASS_ROW && k->cls != CLASS_SCAN &&
        k->cls != CLASS_SCATTER)
        return false;
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->access.at[k->store.at[i].access].buffer == out) {
            a = &k->access.at[k->store.at[i].access];
            if (k->store.at[i].stage + 1 < k->nstage)
                return false;
        }
    if (!a || dtype_size(a->dtype) != dtype_size(k->buffers.at[in].dtype))
        return false;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        if (x->op != OP_load || k->access.at[x->aux].buffer != in)
            continue;
        const struct access *b = &k->access.at[x->aux];
        if (x->a || b->base != a->base)
            return false;
        for (uint32_t d = 0; d < k->naxis; d++)
            if (b->stride[d] != a->stride[d])
                return false;
    }
    return true;
}

// The array that dies in launch i and whose place array b may take; UINT32_MAX: none.
static uint32_t
place_to_take(const struct plan *p, const struct chain *chain, uint32_t i, uint32_t b,
              const bool *taken)
{
    const struct launch *l = &p->launch.at[i];
    uint32_t since = chain ? chain->first : 0;
    for (uint32_t out = 0; out < l->kernel.buffers.n; out++)
        for (uint32_t in = 0; l->buffer[out] == b && in < l->kernel.buffers.n; in++) {
            const struct plan_buffer *x = &p->buffer.at[l->buffer[in]];
            if (l->kernel.buffers.at[in].role == BUF_IN && x->place == PLACE_ARENA &&
                x->last == i && x->first < i && x->first >= since && !taken[l->buffer[in]] &&
                x->bytes == p->buffer.at[b].bytes && is_lane_local(l, in, out))
                return l->buffer[in];
        }
    return UINT32_MAX;
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

static void
give_dead(const struct plan *p, holes *h, uint32_t first, const uint32_t *next, const bool *taken)
{
    for (uint32_t b = first; b; b = next[b])
        if (!taken[b - 1])
            give(h, p->buffer.at[b - 1].offset, rounded(p->buffer.at[b - 1].bytes));
}

void
plan_memory(struct plan *p)
{
    uint32_t n = p->launch.n;
    uint32_t *born = xcalloc(n + 1, sizeof *born), *dies = xcalloc(n + 1, sizeof *dies);
    uint32_t *next_born = lists(p, false, born), *next_dies = lists(p, true, dies);
    holes h = {0};
    int64_t top = 0;
    bool *taken = xcalloc(p->buffer.n + 1, 1);
    const struct chain *next = p->chain.at, *end = next + p->chain.n;
    for (uint32_t i = 0; i < n; i++) {
        const struct chain *chain = next < end && i >= next->first ? next : NULL;
        for (uint32_t b = born[i]; b; b = next_born[b]) {
            uint32_t from = place_to_take(p, chain, i, b - 1, taken);
            if (from != UINT32_MAX)
                taken[from] = true;
            p->buffer.at[b - 1].offset =
                from != UINT32_MAX ? p->buffer.at[from].offset
                                   : take(&h, rounded(p->buffer.at[b - 1].bytes), &top);
        }
        if (chain && i + 1 < chain->first + chain->n)
            continue;
        for (uint32_t k = chain ? chain->first : i; k <= i; k++)
            give_dead(p, &h, dies[k], next_dies, taken);
        next += chain != NULL;
    }
    p->arena_bytes = top;
    xfree(taken);
    vec_free(&h);
    xfree(born);
    xfree(dies);
    xfree(next_born);
    xfree(next_dies);
}
