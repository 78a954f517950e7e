// traffic.c: how many bytes a kernel moves, from its accesses.
//
// An access visits the product of the extents of the axes that it depends on, at most the elements
// of its buffer. Visits repeat (another stage reads the row again; an outer loop that the access
// does not depend on comes round) and are counted again only when what is touched in between
// exceeds half of the second-level cache. The kernel interpreter counts the same by simulation;
// tests hold the two equal.
#include "passes/fuse.h"

struct visits {
    int64_t per_row;  // elements over R
    int64_t distinct; // over the whole domain
    uint32_t axes;    // bit a: depends on axis a
};

static int64_t
product(const struct kernel *k, uint32_t axes, uint32_t from)
{
    int64_t n = 1;
    for (uint32_t a = from; a < k->naxis; a++)
        if (axes >> a & 1)
            n *= k->axis[a].extent;
    return n;
}

static uint32_t
axes_of(const struct kernel *k, const int64_t *stride)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < k->naxis; a++)
        if (stride[a])
            axes |= 1u << a;
    return axes;
}

// Which axes each instruction's value depends on.
static uint32_t *
dependences(const struct kernel *k)
{
    uint32_t *dep = xcalloc(k->inst.n, sizeof *dep);
    uint32_t parallel = (1u << (k->naxis - k->nred)) - 1;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        dep[i] = dep[x->a] | dep[x->b] | dep[x->c];
        if (x->op == OP_load)
            dep[i] |= axes_of(k, k->access.at[x->aux].stride);
        else if (x->op == OP_index)
            dep[i] |= axes_of(k, k->affine.at[x->aux].stride);
        else if (x->op == OP_result)
            dep[i] = k->acc.at[x->aux].scope == OVER_P   ? 0
                     : k->acc.at[x->aux].scope == OVER_R ? parallel
                                                         : (1u << k->naxis) - 1;
    }
    return dep;
}

// In how many stages each load is needed by something ELEM.
static uint32_t *
stages_of_loads(const struct kernel *k)
{
    uint64_t *in = xcalloc(k->inst.n, sizeof *in);
    uint32_t *n = xcalloc(k->inst.n, sizeof *n);
    for (uint32_t i = 0; i < k->store.n; i++)
        in[k->store.at[i].value] |= 1ull << k->store.at[i].stage;
    for (uint32_t i = 0; i < k->acc.n; i++)
        in[k->acc.at[i].value] |= 1ull << k->acc.at[i].stage;
    for (uint32_t i = k->inst.n; i-- > 1;) {
        const struct inst *x = &k->inst.at[i];
        const uint32_t operand[] = {x->a, x->b, x->c};
        for (uint32_t j = 0; j < 3 && x->op != OP_result; j++)
            if (operand[j] && k->inst.at[operand[j]].level == LEVEL_ELEM)
                in[operand[j]] |= in[i];
        n[i] = (uint32_t)__builtin_popcountll(in[i]);
    }
    xfree(in);
    return n;
}

// Bytes that all accesses touch over the axes from `from` on.
static int64_t
footprint(const struct kernel *k, uint32_t from)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->access.n; i++) {
        const struct access *a = &k->access.at[i];
        bytes += product(k, axes_of(k, a->stride), from) * dtype_size(a->dtype);
    }
    return bytes;
}

static int64_t
repeats(const struct kernel *k, uint32_t axes, int64_t l2)
{
    int64_t n = 1;
    uint32_t deepest = 0;
    for (uint32_t a = 0; a < k->naxis; a++)
        if (axes >> a & 1)
            deepest = a;
    uint32_t once = k->cls == CLASS_SORT ? k->naxis - 2u : MAX_AXES; // j: a line is read once
    for (uint32_t a = 0; a < deepest; a++)
        if (!(axes >> a & 1) && a != once && footprint(k, a + 1) > l2 / 2)
            n *= k->axis[a].extent;
    return n;
}

static int64_t
contract_repeats(const struct launch *l, uint32_t axes, int64_t bytes, int64_t l2)
{
    const struct kernel *k = &l->kernel;
    uint32_t m = k->naxis - 3u, n = k->naxis - 2u;
    if (bytes <= l2 / 2)
        return 1;
    int64_t r = 1;
    int64_t mc = l->sched.tile[l->sched.transpose], nc = l->sched.tile[!l->sched.transpose];
    if (!(axes >> m & 1) && mc)
        r *= (k->axis[m].extent + mc - 1) / mc;
    if (!(axes >> n & 1) && nc)
        r *= (k->axis[n].extent + nc - 1) / nc;
    return r;
}

// What differs between the points of R is gone through once for each point of the axes before the
// one that is scattered along.
static int64_t
scatter_repeats(const struct kernel *k, uint32_t axes, int64_t l2)
{
    uint32_t axis = k->scatter.axis;
    bool stays = footprint(k, axis) <= l2 / 2;
    int64_t n = 1;
    for (uint32_t a = 0; a < axis; a++)
        n *= axes >> a & 1 || stays ? 1 : k->axis[a].extent;
    return n;
}

// Bytes of the elements that updates read and write again, one way, where the cache has not kept
// them.
static int64_t
updated_bytes(const struct kernel *k, const struct access *out, int64_t l2)
{
    uint32_t np = k->naxis - k->nred, axes = (1u << k->naxis) - 1;
    int64_t places = product(k, (1u << np) - 1, k->scatter.axis) * dtype_size(out->dtype);
    if (places <= l2 / 2)
        return 0;
    return product(k, axes & ~(1u << k->scatter.axis), 0) * dtype_size(out->dtype);
}

// Elements that one access moves, all repeats included.
static int64_t
access_elements(const struct launch *l, uint32_t axes, uint32_t stages, int64_t size, int64_t limit,
                const struct target *t)
{
    const struct kernel *k = &l->kernel;
    int64_t n = product(k, axes, 0);
    n = n < limit ? n : limit;
    if (k->cls == CLASS_CONTRACT)
        return n * contract_repeats(l, axes, n * size, t->l2);
    if (k->cls == CLASS_SCATTER)
        return n * scatter_repeats(k, axes, t->l2);
    int64_t again = k->cls == CLASS_COLUMN ? 1 : repeats(k, axes, t->l2);
    if (k->cls == CLASS_SCAN && l->sched.finish_units) // what spans come to, then their elements
        again *= 2;
    uint32_t reduce = ((1u << k->nred) - 1) << (k->naxis - k->nred);
    int64_t row = footprint(k, k->naxis - k->nred);
    if (k->cls == CLASS_COLUMN)
        row *= 16; // the narrowest strip
    if (stages > 1 && (axes & reduce) && row > t->l2 / 2)
        again *= stages;
    return n * again;
}

// A gather from rows that the kernel reads anyway, while they are in the cache.
static bool
is_cached_gather(const struct kernel *k, const struct inst *x, const struct target *t)
{
    if (!x->a || footprint(k, k->naxis - k->nred) > t->l2 / 2)
        return false;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *y = &k->inst.at[i];
        if (y->op == OP_load && !y->a && y->level == LEVEL_ELEM && k->nred &&
            k->access.at[y->aux].buffer == k->access.at[x->aux].buffer)
            return true;
    }
    return false;
}

void
launch_traffic(struct launch *l, const struct target *t)
{
    struct kernel *k = &l->kernel;
    uint32_t *dep = dependences(k), *stages = stages_of_loads(k);
    int64_t *most = xcalloc(k->buffers.n + 1, sizeof *most);
    l->bytes_read = l->bytes_written = l->elements = 0;
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *x = &k->inst.at[i];
        if (x->op != OP_load || is_cached_gather(k, x, t))
            continue;
        const struct access *a = &k->access.at[x->aux];
        int64_t size = dtype_size(a->dtype);
        int64_t limit = k->buffers.at[a->buffer].span_hi; // elements, while the plan is built
        int64_t n = access_elements(l, dep[i], stages[i], size, dep[x->a] ? INT64_MAX : limit, t);
        int64_t *sum = &l->buffer_bytes[a->buffer];
        *sum += n * size;
        if (n > most[a->buffer])
            most[a->buffer] = n;
        // Several views of one tensor: what was read stays, if the tensor fits the cache.
        int64_t cap = (most[a->buffer] > limit ? most[a->buffer] : limit) * size;
        if (*sum > cap && limit * size <= t->l2 / 2)
            *sum = cap;
    }
    int64_t updates = 0; // bytes read of what a scatter writes
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct access *a = &k->access.at[k->store.at[i].access];
        l->buffer_bytes[a->buffer] += product(k, axes_of(k, a->stride), 0) * dtype_size(a->dtype);
        if (k->cls != CLASS_SCATTER)
            continue;
        int64_t again = updated_bytes(k, a, t->l2);
        l->buffer_bytes[a->buffer] += again;
        updates += op_table[k->acc.at[0].op].combine ? again : 0;
    }
    for (uint32_t i = 0; i < k->buffers.n; i++) {
        const struct kernel_buffer *b = &k->buffers.at[i];
        *(b->role == BUF_OUT ? &l->bytes_written : &l->bytes_read) += l->buffer_bytes[i];
        l->elements += l->buffer_bytes[i] / dtype_size(b->dtype);
    }
    l->bytes_read += updates;
    xfree(dep);
    xfree(stages);
    xfree(most);
}
