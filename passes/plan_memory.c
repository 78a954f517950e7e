// plan_memory.c: places the arrays that live between launches in one arena. Launches run in order,
// so each array lives over an interval; the free list is kept sorted by offset and the best fit
// taken. Offsets are multiples of 64 bytes.
//
// An array that a kernel writes may take the place of one that dies in it, where each element is
// read by the very iteration that writes it, and before it is written, whatever the order in which
// a class runs its iterations and stages (may_take_place). Emitters see to it that all values of a
// vector are computed before the first of them is stored.
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

// ---- arrays in the place of others

// The store that writes array b, each element once; NULL: there are several, or it writes some
// element at more than one point (of an array that all points of a row have, say).
static const struct store *
only_store(const struct plan *p, const struct launch *l, uint32_t b)
{
    const struct kernel *k = &l->kernel;
    const struct store *only = NULL;
    for (uint32_t i = 0; i < k->store.n; i++) {
        if (l->buffer[k->access.at[k->store.at[i].access].buffer] != b)
            continue;
        if (only)
            return NULL;
        only = &k->store.at[i];
    }
    if (!only)
        return NULL;
    int64_t points = kernel_points(k, AXIS_P);
    if (k->cls == CLASS_ROW || k->cls == CLASS_SCAN)
        points *= kernel_points(k, AXIS_R);
    const struct plan_buffer *x = &p->buffer.at[b];
    return points * dtype_size(x->dtype) == x->bytes ? only : NULL;
}

// Whether all that reads a dying array at a point comes before the store at that point.
//   pointwise: a vector's values come before its stores.
//   row, scan: so they do in the last stage, and all of a row's earlier stages come before it. That
//     holds for elements. Values of a row or of the whole are loaded again by later pieces of a row
//     and in the finish, and stored before the elements are read.
//   scatter: the start is written before any index or update is read.
// In all other classes a result is stored while elements of others' operands are still to be read.
static bool
reads_come_first(const struct kernel *k, const struct store *to, uint32_t load, const bool *updates)
{
    switch (k->cls) {
    case CLASS_POINTWISE:
        return true;
    case CLASS_ROW:
    case CLASS_SCAN:
        return to->level == LEVEL_ELEM && to->stage + 1 == k->nstage &&
               k->inst.at[load].level == LEVEL_ELEM;
    case CLASS_SCATTER:
        return !updates[load];
    default:
        return false;
    }
}

// Instructions that a scatter's index and updates need.
static bool *
of_updates(const struct kernel *k)
{
    bool *need = xcalloc(k->inst.n, sizeof *need);
    if (k->cls != CLASS_SCATTER)
        return need;
    need[k->scatter.index] = need[k->acc.at[k->scatter.acc].value] = true;
    for (uint32_t i = k->inst.n; i-- > 1;)
        if (need[i])
            need[k->inst.at[i].a] = need[k->inst.at[i].b] = need[k->inst.at[i].c] = true;
    return need;
}

static bool
same_place(const struct kernel *k, const struct access *a, const struct access *b)
{
    bool same = a->base == b->base && dtype_size(a->dtype) == dtype_size(b->dtype);
    for (uint32_t d = 0; d < k->naxis; d++)
        same &= a->stride[d] == b->stride[d];
    return same;
}

// Whether array `out`, which a launch writes, may lie where `in` does, which it reads.
static bool
may_take_place(const struct plan *p, const struct launch *l, uint32_t in, uint32_t out)
{
    const struct kernel *k = &l->kernel;
    const struct store *to = only_store(p, l, out);
    if (!to)
        return false;
    bool may = true, *updates = of_updates(k);
    for (uint32_t i = 1; i < k->inst.n && may; i++) {
        const struct inst *x = &k->inst.at[i];
        if (x->op == OP_load && l->buffer[k->access.at[x->aux].buffer] == in)
            may = !x->a && same_place(k, &k->access.at[x->aux], &k->access.at[to->access]) &&
                  reads_come_first(k, to, i, updates);
    }
    xfree(updates);
    return may;
}

// The array that dies in launch i and whose place array b may take; UINT32_MAX: none.
static uint32_t
place_to_take(const struct plan *p, const struct chain *chain, uint32_t i, uint32_t b,
              const bool *taken)
{
    const struct launch *l = &p->launch.at[i];
    uint32_t since = chain ? chain->first : 0;
    for (uint32_t k = 0; k < l->kernel.buffers.n; k++) {
        uint32_t in = l->buffer[k];
        const struct plan_buffer *x = &p->buffer.at[in];
        if (l->kernel.buffers.at[k].role == BUF_IN && x->place == PLACE_ARENA && x->last == i &&
            x->first < i && x->first >= since && !taken[in] && x->bytes == p->buffer.at[b].bytes &&
            may_take_place(p, l, in, b))
            return in;
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
