// chain.c: which launches run together, block by block, so that what they hand on stays in the
// second-level cache.
//
// Three kernels of attention, run one after the other, write the scores to memory and read them
// back twice. But scores of one head are read by the softmax and the second product of that head
// alone. So a thread may run all three over a head (or some rows of one) before it goes on to the
// next: the same kernels over the same elements, in another order, with one division among threads
// instead of three. Nothing about a result changes. What is written and read for the last time in
// the chain need not be in memory at all: one block of it, in a thread's scratch, will do.
//
// A chain is a run of consecutive launches, each reading an array that an earlier one of them
// wrote, and a number of blocks such that for every launch
//   - its units divide into that many equal parts, in order;
//   - part i touches only the i-th part of each array that the chain hands on (its elements
//     i S / blocks … (i + 1) S / blocks - 1): the axes that the units go through first have the
//     strides of equal parts, and the rest stays inside one.
// Worth it where the arrays exceed the second-level cache and the blocks keep all threads busy.
#include "passes/chain.h"

#include "passes/fuse.h"

enum { MAX_BLOCKS = 4096 };

static bool
in_chain(const struct plan *p, const struct chain *c, uint32_t buffer)
{
    const struct plan_buffer *b = &p->buffer.at[buffer];
    return b->place != PLACE_INPUT && b->first >= c->first && b->first < c->first + c->n &&
           b->last > b->first;
}

// Units of launch l that make one of `blocks` equal parts; 0: they do not divide so.
static int64_t
units_of_part(const struct launch *l, int64_t blocks)
{
    const struct kernel *k = &l->kernel;
    const struct schedule *s = &l->sched;
    if (s->finish_units || s->shared_scratch_bytes || s->units % blocks)
        return 0;
    if (k->cls == CLASS_ROW)
        return s->units == kernel_points(k, AXIS_P) ? s->units / blocks : 0;
    if (k->cls != CLASS_CONTRACT)
        return 0;
    int64_t batch = 1, rows = k->axis[k->naxis - 3].extent;
    for (uint32_t a = 0; a + 3 < k->naxis; a++)
        batch *= k->axis[a].extent;
    if (batch % blocks == 0)
        return s->units / blocks;
    // Rows are divided too: units go through them outside the columns unless the roles changed.
    int64_t parts = blocks % batch ? 0 : blocks / batch;
    bool whole = parts && !s->transpose && rows % parts == 0 && rows / parts % s->tile[0] == 0;
    return whole ? s->units / blocks : 0;
}

// The P axis in which `blocks` parts end, and how many parts it is cut into; false: in none.
static bool
find_cut(const struct kernel *k, int64_t blocks, uint32_t *axis, int64_t *pieces)
{
    uint32_t np = k->naxis - (uint32_t)k->nred;
    for (uint32_t a = 0; a < np; a++) {
        int64_t extent = k->axis[a].extent;
        if (extent >= blocks || a + 1 == np) {
            *axis = a;
            *pieces = blocks;
            return extent % blocks == 0;
        }
        if (blocks % extent)
            return false;
        blocks /= extent;
    }
    return false;
}

// Whether the i-th part of the iteration touches the i-th `part` elements only.
static bool
stays_in_part(const struct kernel *k, const struct access *x, int64_t blocks, int64_t part)
{
    uint32_t cut;
    int64_t pieces;
    if (!find_cut(k, blocks, &cut, &pieces))
        return false;
    int64_t inside = k->axis[cut].extent / pieces; // points of the cut axis in a part
    int64_t lo = x->base, hi = x->base, expected = part;
    if (x->stride[cut] * inside != part)
        return false;
    for (uint32_t a = cut, n = 0; a-- > 0; n++) {
        expected *= n ? k->axis[a + 1].extent : pieces;
        if (x->stride[a] != expected)
            return false;
    }
    hi += x->stride[cut] * (inside - 1);
    for (uint32_t a = cut + 1; a < k->naxis; a++)
        *(x->stride[a] < 0 ? &lo : &hi) += x->stride[a] * (k->axis[a].extent - 1);
    return lo >= 0 && hi < part;
}

static bool
launch_in_parts(const struct plan *p, const struct chain *c, const struct launch *l,
                int64_t blocks)
{
    const struct kernel *k = &l->kernel;
    if (!units_of_part(l, blocks) || k->buffers.n > CHAIN_BUFFERS)
        return false;
    for (uint32_t i = 1; i < k->inst.n; i++) { // where data say what is read, anything may be
        const struct inst *x = &k->inst.at[i];
        if (x->op == OP_load && x->a && in_chain(p, c, l->buffer[k->access.at[x->aux].buffer]))
            return false;
    }
    for (uint32_t i = 0; i < k->access.n; i++) {
        const struct access *x = &k->access.at[i];
        const struct plan_buffer *b = &p->buffer.at[l->buffer[x->buffer]];
        int64_t elements = b->bytes / dtype_size(b->dtype);
        if (in_chain(p, c, l->buffer[x->buffer]) &&
            (elements % blocks || !stays_in_part(k, x, blocks, elements / blocks)))
            return false;
    }
    return true;
}

static bool
is_balanced(int64_t blocks, int64_t threads)
{
    int64_t rounds = (blocks + threads - 1) / threads;
    return blocks >= threads && blocks * 10 >= rounds * threads * 9;
}

// Bytes of the arrays handed on.
static int64_t
handed_on(const struct plan *p, const struct chain *c)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct launch *l = &p->launch.at[c->first + i];
        for (uint32_t b = 0; b < l->kernel.buffers.n; b++)
            if (l->kernel.buffers.at[b].role == BUF_OUT && in_chain(p, c, l->buffer[b]))
                bytes += p->buffer.at[l->buffer[b]].bytes;
    }
    return bytes;
}

// Sets c->blocks: the fewest whose parts fit half the second-level cache, else the most there are.
static bool
choose_blocks(const struct plan *p, const struct target *t, struct chain *c)
{
    int64_t bytes = handed_on(p, c), threads = t->units ? t->units : 1;
    c->blocks = 0;
    if (bytes <= t->l2)
        return false;
    for (int64_t blocks = threads; blocks <= MAX_BLOCKS; blocks++) {
        bool ok = is_balanced(blocks, threads);
        for (uint32_t i = 0; i < c->n && ok; i++)
            ok = launch_in_parts(p, c, &p->launch.at[c->first + i], blocks);
        if (!ok)
            continue;
        c->blocks = blocks;
        if (bytes / blocks <= t->l2 / 2)
            break;
    }
    return c->blocks > 0;
}

// Does launch i read what launches first … i - 1 wrote?
static bool
reads_from(const struct plan *p, uint32_t first, uint32_t i)
{
    const struct launch *l = &p->launch.at[i];
    for (uint32_t b = 0; b < l->kernel.buffers.n; b++) {
        const struct plan_buffer *x = &p->buffer.at[l->buffer[b]];
        if (l->kernel.buffers.at[b].role == BUF_IN && x->place != PLACE_INPUT &&
            x->first >= first && x->first < i)
            return true;
    }
    return false;
}

static bool
can_start(const struct launch *l)
{
    return l->kernel.cls == CLASS_CONTRACT || l->kernel.cls == CLASS_ROW;
}

void
plan_chains(struct plan *p, const struct target *t)
{
    p->chain.n = 0;
    for (uint32_t i = 0; i + 1 < p->launch.n;) {
        struct chain best = {.first = i, .n = 1};
        uint32_t most = can_start(&p->launch.at[i]) ? CHAIN_LONGEST : 1;
        most = p->launch.n - i < most ? p->launch.n - i : most;
        for (uint32_t n = 2; n <= most && reads_from(p, i, i + n - 1); n++) {
            struct chain c = {.first = i, .n = n};
            if (choose_blocks(p, t, &c))
                best = c;
        }
        if (best.n > 1)
            vec_push(&p->chain, best);
        i += best.n;
    }
    for (uint32_t i = 0; i < p->chain.n; i++)
        for (uint32_t k = 0; k < p->chain.at[i].n; k++) {
            struct launch *l = &p->launch.at[p->chain.at[i].first + k];
            l->units_of_block = units_of_part(l, p->chain.at[i].blocks);
        }
}

// The next array after *launch, *buffer that is written in chain c and lives in it alone; NULL: no
// more.
static struct plan_buffer *
next_private(const struct plan *p, const struct chain *c, uint32_t *launch, uint32_t *buffer)
{
    for (; *launch < c->n; ++*launch, *buffer = 0) {
        const struct launch *l = &p->launch.at[c->first + *launch];
        while (*buffer < l->kernel.buffers.n) {
            struct plan_buffer *b = &p->buffer.at[l->buffer[*buffer]];
            if (l->kernel.buffers.at[(*buffer)++].role == BUF_OUT && b->place == PLACE_ARENA &&
                b->last < c->first + c->n)
                return b;
        }
    }
    return NULL;
}

// Arrays at one place of the arena (one overwrites the other) share their place in the block.
static bool
local_like_another(const struct plan *p, const struct chain *c, struct plan_buffer *b)
{
    uint32_t launch = 0, at = 0;
    for (struct plan_buffer *x; (x = next_private(p, c, &launch, &at)) && x != b;)
        if (x->offset == b->offset) {
            b->local_at = x->local_at;
            return true;
        }
    return false;
}

void
plan_chain_locals(struct plan *p, const struct target *t)
{
    for (uint32_t i = 0; i < p->chain.n; i++) {
        struct chain *c = &p->chain.at[i];
        bool whole_lines = true;
        uint32_t launch = 0, at = 0;
        for (struct plan_buffer *b; (b = next_private(p, c, &launch, &at));) {
            if (local_like_another(p, c, b))
                continue;
            b->local_at = c->local_bytes;
            c->local_bytes += b->bytes / c->blocks;
            whole_lines &= b->bytes / c->blocks % 64 == 0;
        }
        if (c->local_bytes > t->l2 / 2 || !whole_lines)
            c->local_bytes = 0;
        launch = at = 0;
        for (struct plan_buffer *b; c->local_bytes && (b = next_private(p, c, &launch, &at));)
            b->local = true;
    }
}
