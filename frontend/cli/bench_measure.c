// bench_measure.c: measures one workload: eager, compiled and the plan alone.
//
// Eager and compiled make the same calls of the public interface, in an eager and a lazy context;
// the third way runs the plan without the interface. They take turns, ABC CBA ABC …, so that what
// the machine does meanwhile hits all alike; each turn is a batch of calls long enough for the
// clock. Small workloads keep their arrays, which then stay in the caches; so do all when the user
// asks for hot arrays. Larger ones go round among sets of inputs and outputs that together are four
// times the last-level cache, with one counter for all three ways, so that none finds its arrays
// warm because another just read them.
#include "frontend/cli/bench.h"
#include "frontend/cli/translate.h"

#include "frontend/context.h"
#include "ir/base/clock.h"
#include "runtime/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS_LEAST = 30, PAIRS_MOST = 300, BATCH_MOST = 20000, WAYS = 3,
       WRITES_LITTLE = 16 };
static const double batch_us = 200, warm_us = 3000, pairs_us = 800e3;

struct side { // a context with its handles
    fc_context *ctx;
    fc_tensor *in, *out; // [set][input], [set][output]
    bool *live;          // [set]: out has handles
};

struct bench {
    const struct graph *g;
    struct translation *t;
    struct side eager, lazy;
    struct executable *plan;
    struct device *device; // the lazy context's: memory of arrays
    uint32_t nin, nout, sets, next;
    bool hot;
    struct tensor *shape;  // per input, then per output; data: element 0 relative to a block
    int64_t *span;         // bytes of each block
    void **block;          // [set][input, then output of the plan alone]
    void **in, **out;      // [set]: addresses of element 0
    struct diag *d;
};
typedef bool call_fn(struct bench *b, uint32_t set);

// ---- the three ways

static bool
side_failed(struct bench *b, const struct side *s)
{
    fc_status code = fc_error_code(s->ctx);
    return diag_set(b->d, code ? (enum diag_code)code : DIAG_INTERNAL, "%s", fc_error(s->ctx));
}

static bool
call_side(struct bench *b, struct side *s, uint32_t set, bool eval)
{
    fc_tensor *out = s->out + (size_t)set * b->nout;
    if (s->live[set])
        translate_release(b->t, out);
    s->live[set] = translate_run(b->t, s->ctx, s->in + (size_t)set * b->nin, out);
    if (!s->live[set] || (eval && fc_eval(s->ctx, out, (int)b->nout)))
        return side_failed(b, s);
    return true;
}

static bool
call_eager(struct bench *b, uint32_t set)
{
    return call_side(b, &b->eager, set, false);
}

static bool
call_compiled(struct bench *b, uint32_t set)
{
    return call_side(b, &b->lazy, set, true);
}

static bool
call_replay(struct bench *b, uint32_t set)
{
    return executable_run(b->plan, b->in + (size_t)set * b->nin, b->out + (size_t)set * b->nout,
                          b->d);
}

static call_fn *const way[WAYS] = {call_eager, call_compiled, call_replay};

// Microseconds of one call, over n calls; negative: it failed.
static double
time_calls(struct bench *b, call_fn *call, int64_t n)
{
    double start = clock_us();
    for (int64_t i = 0; i < n; i++) {
        if (!call(b, b->next))
            return -1;
        b->next = b->next + 1 == b->sets ? 0 : b->next + 1;
    }
    struct device *eager = b->eager.ctx->device;
    bool done = eager->ops->synchronize(eager, b->d) &&
                b->device->ops->synchronize(b->device, b->d);
    return done ? (clock_us() - start) / (double)n : -1;
}

// ---- arrays

static struct tensor
tensor_of(const struct graph *g, ref r)
{
    const struct shape *s = graph_shape(g, r);
    struct tensor t = {.dtype = graph_node(g, r)->dtype, .rank = s->rank};
    int64_t step = 1;
    for (uint32_t a = t.rank; a-- > 0;) {
        t.dim[a] = dim_of(g, s, a);
        t.stride[a] = step;
        step *= t.dim[a];
    }
    return t;
}

// Bytes from the first to the last element; *first: bytes before element 0.
static int64_t
span_bytes(const struct tensor *t, int64_t *first)
{
    int64_t lo = 0, hi = 0;
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t reach = (t->dim[a] - 1) * t->stride[a];
        *(reach < 0 ? &lo : &hi) += reach;
    }
    *first = -lo * dtype_size(t->dtype);
    return tensor_count(t) ? (hi - lo + 1) * dtype_size(t->dtype) : 0;
}

static int64_t
physical_memory(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

// How many sets of arrays to go round among.
static void
choose_sets(struct bench *b, struct measurement *m)
{
    int64_t bytes = 0, llc = b->device->target.llc, outputs = 0;
    for (uint32_t i = 0; i < b->nin + b->nout; i++) {
        bytes += b->span[i];
        outputs += i >= b->nin ? b->span[i] : 0;
    }
    m->array_bytes = bytes;
    m->in_cache = b->hot || bytes <= llc / 4;
    int64_t sets = m->in_cache ? 1 : 4 * llc / bytes + 1;
    int64_t most = physical_memory() / 4 / (bytes + 2 * outputs + 1); // each way has outputs
    m->sets = sets < most ? sets : most < 1 ? 1 : most;
    b->sets = (uint32_t)m->sets;
}

static void
describe_arrays(struct bench *b)
{
    const struct graph *g = b->g;
    uint32_t n = b->nin + b->nout;
    b->shape = xcalloc(n + 1, sizeof *b->shape);
    b->span = xcalloc(n + 1, sizeof *b->span);
    for (uint32_t i = 0; i < n; i++) {
        bool input = i < b->nin;
        struct tensor *t = &b->shape[i];
        *t = tensor_of(g, input ? g->inputs.at[i].node : g->outputs.at[i - b->nin].node);
        for (uint32_t a = 0; input && a < t->rank && !g->inputs.at[i].dense; a++)
            t->stride[a] = g->inputs.at[i].stride[a];
        int64_t first;
        b->span[i] = span_bytes(t, &first);
    }
}

static void
tell_arrays(const struct bench *b, struct arena *mem, struct measurement *m)
{
    uint32_t n = b->nin + b->nout;
    struct bench_array *a = arena_alloc(mem, (n + 1) * sizeof *a);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t out = i - b->nin;
        const char *name = i < b->nin ? b->g->inputs.at[i].name : b->g->outputs.at[out].name;
        bool named = name && *name;
        a[i].name = named ? arena_strdup(mem, name) : arena_printf(mem, "out%u", out);
        a[i].shape = b->shape[i];
        a[i].places = i < b->nin ? bench_places(b->g, i) : 0;
    }
    m->arrays = a;
    m->inputs = b->nin;
    m->outputs = b->nout;
}

// The same values in every set.
static bool
fill_input(struct bench *b, uint32_t i)
{
    struct tensor t = b->shape[i];
    int64_t first;
    span_bytes(&t, &first);
    char *values = xcalloc(1, (size_t)b->span[i] + 1);
    t.data = values + first;
    bench_fill(b->g, i, &t);
    bool ok = true;
    for (uint32_t set = 0; set < b->sets && ok; set++)
        ok = b->device->ops->upload(b->device, b->block[set * (b->nin + b->nout) + i], values,
                                    b->span[i], b->d);
    xfree(values);
    return ok;
}

static bool
make_arrays(struct bench *b)
{
    uint32_t n = b->nin + b->nout;
    b->block = xcalloc((size_t)b->sets * n + 1, sizeof *b->block);
    b->in = xcalloc((size_t)b->sets * b->nin + 1, sizeof *b->in);
    b->out = xcalloc((size_t)b->sets * b->nout + 1, sizeof *b->out);
    for (uint32_t set = 0; set < b->sets; set++)
        for (uint32_t i = 0; i < n; i++) {
            int64_t first;
            span_bytes(&b->shape[i], &first);
            char *p = b->device->ops->alloc(b->device, b->span[i]);
            if (!p)
                return diag_set(b->d, DIAG_RESOURCE, "no memory for the arrays of %u calls",
                                b->sets);
            b->block[set * n + i] = p;
            if (i < b->nin)
                b->in[set * b->nin + i] = p + first;
            else
                b->out[set * b->nout + i - b->nin] = p + first;
        }
    for (uint32_t i = 0; i < b->nin; i++)
        if (!fill_input(b, i))
            return false;
    return true;
}

static void
free_arrays(struct bench *b)
{
    uint32_t n = b->nin + b->nout;
    for (uint32_t i = 0; b->block && i < b->sets * n; i++)
        if (b->block[i])
            b->device->ops->release(b->device, b->block[i], b->span[i % n]);
    xfree(b->block);
    xfree(b->in);
    xfree(b->out);
    xfree(b->shape);
    xfree(b->span);
}

// ---- contexts

static bool
open_side(struct bench *b, struct side *s, int mode, const struct bench_options *how)
{
    fc_options o = {.size = sizeof o, .mode = mode, .threads = (int)how->threads,
                    .device = how->device};
    if (fc_context_new(&o, &s->ctx))
        return side_failed(b, s);
    return true;
}

static bool
lend_inputs(struct bench *b, struct side *s)
{
    s->in = xcalloc((size_t)b->sets * b->nin + 1, sizeof *s->in);
    s->out = xcalloc((size_t)b->sets * b->nout + 1, sizeof *s->out);
    s->live = xcalloc(b->sets, sizeof *s->live);
    for (uint32_t i = 0; i < b->sets * b->nin; i++) {
        const struct tensor *t = &b->shape[i % b->nin];
        fc_dim dim[MAX_RANK];
        for (uint32_t a = 0; a < t->rank; a++)
            dim[a] = fc_n(t->dim[a]);
        s->in[i] = fc_borrow(s->ctx, (fc_dtype)t->dtype, b->in[i], dim, t->rank, t->stride, NULL,
                             NULL);
        if (!fc_valid(s->in[i]))
            return side_failed(b, s);
    }
    return true;
}

static void
close_side(struct bench *b, struct side *s)
{
    for (uint32_t set = 0; s->live && set < b->sets; set++)
        if (s->live[set])
            translate_release(b->t, s->out + (size_t)set * b->nout);
    for (uint32_t i = 0; s->in && i < b->sets * b->nin; i++)
        fc_release(s->in[i]);
    xfree(s->in);
    xfree(s->out);
    xfree(s->live);
}

// ---- figures

static int64_t
kernels_of(const struct side *s)
{
    fc_statistics x = {.size = sizeof x};
    fc_stats(s->ctx, &x);
    return x.kernels;
}

// The first calls: they compile; what they launch is counted.
static bool
first_calls(struct bench *b, struct measurement *m)
{
    struct compile_options o = {0};
    fc_statistics stats = {.size = sizeof stats};
    if (!call_eager(b, 0) || !call_compiled(b, 0))
        return false;
    fc_stats(b->lazy.ctx, &stats);
    m->compile_ms = stats.plan_us / 1e3;
    int64_t eager = kernels_of(&b->eager), compiled = kernels_of(&b->lazy);
    if (!call_eager(b, 0) || !call_compiled(b, 0))
        return false;
    m->eager_kernels = kernels_of(&b->eager) - eager;
    m->kernels = kernels_of(&b->lazy) - compiled;
    struct plan *p = plan_build(b->g, &b->device->target, &o, b->d);
    if (!p)
        return false;
    m->traffic_bytes = p->traffic_bytes;
    m->minimum_bytes = p->minimum_bytes;
    b->plan = executable_new(p, b->device, b->d);
    if (!b->plan || !call_replay(b, 0))
        return false;
    // All have run twice: what is measured from here on is optimised code.
    b->eager.ctx->device->ops->settle(b->eager.ctx->device);
    b->device->ops->settle(b->device);
    return true;
}

static int
by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static double
median(double *x, uint32_t n, double *least)
{
    qsort(x, n, sizeof *x, by_size);
    *least = x[0];
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static bool
warm_up(struct bench *b, int64_t batch[WAYS])
{
    for (int w = 0; w < WAYS; w++) {
        double start = clock_us(), one = 0;
        int64_t rounds = 0;
        do {
            one = time_calls(b, way[w], b->sets < 2 ? 2 : b->sets);
            rounds++;
        } while (one >= 0 && clock_us() - start < warm_us && rounds < BATCH_MOST);
        if (one < 0)
            return false;
        double n = batch_us / (one > 1e-3 ? one : 1e-3) + 1;
        batch[w] = one > batch_us ? 1 : n > BATCH_MOST ? BATCH_MOST : (int64_t)n;
    }
    return true;
}

struct samples {
    double time[WAYS][PAIRS_MOST], ratio[PAIRS_MOST];
    uint32_t n;
};

static bool
take_samples(struct bench *b, struct samples *s)
{
    int64_t batch[WAYS];
    if (!warm_up(b, batch))
        return false;
    double start = clock_us();
    while (s->n < PAIRS_LEAST || (s->n < PAIRS_MOST && clock_us() - start < pairs_us)) {
        for (int i = 0; i < WAYS; i++) {
            int w = s->n % 2 ? WAYS - 1 - i : i;
            s->time[w][s->n] = time_calls(b, way[w], batch[w]);
            if (s->time[w][s->n] < 0)
                return false;
        }
        s->ratio[s->n] = s->time[0][s->n] / s->time[1][s->n];
        s->n++;
    }
    return true;
}

// What the workload's traffic is compared with: a copy of as many bytes, or plain reading where
// next to nothing is written. A core waits for what it reads, not for what it writes, so beyond the
// caches few cores read fewer bytes than they copy; many cores, or the caches, give more.
static void
measure_memory(const struct bench *b, struct measurement *m)
{
    int64_t half = m->traffic_bytes / 2 > 64 ? m->traffic_bytes / 2 : 64, written = 0;
    int64_t sets = m->in_cache ? 1 : 4 * b->device->target.llc / (2 * half) + 1;
    for (uint32_t i = 0; i < b->nout; i++)
        written += b->span[b->nin + i];
    if (b->device->ops->copy_gbps) {
        m->copy_gbps = m->read_gbps = m->limit_gbps =
            b->device->ops->copy_gbps(b->device, half, sets);
        return;
    }
    m->copy_gbps = cpu_copy_gbps_among(half, m->threads, sets);
    m->read_gbps = cpu_read_gbps_among(2 * half, m->threads, sets);
    m->only_reads = written < m->traffic_bytes / WRITES_LITTLE;
    m->limit_gbps = m->only_reads ? m->read_gbps : m->copy_gbps;
}

static void
fill_in(struct bench *b, struct samples *s, struct measurement *m)
{
    double least, saved;
    m->threads = b->device->target.units;
    snprintf(m->device, sizeof m->device, "%s", b->device->name);
    snprintf(m->machine, sizeof m->machine, "%s", b->device->words);
    m->eager_us = median(s->time[0], s->n, &m->eager_min_us);
    m->compiled_us = median(s->time[1], s->n, &m->compiled_min_us);
    m->replay_us = median(s->time[2], s->n, &m->replay_min_us);
    m->ratio = median(s->ratio, s->n, &least);
    m->gbps = (double)m->traffic_bytes / m->compiled_us * 1e-3;
    saved = m->eager_us - m->compiled_us;
    m->breakeven_calls = saved > 0 ? (double)(int64_t)(m->compile_ms * 1e3 / saved) + 1 : -1;
    measure_memory(b, m);
}

static bool
measure(struct bench *b, const struct bench_options *o, struct arena *mem, struct measurement *m)
{
    if (!open_side(b, &b->eager, FC_EAGER, o) || !open_side(b, &b->lazy, FC_LAZY, o))
        return false;
    b->device = b->lazy.ctx->device;
    describe_arrays(b);
    tell_arrays(b, mem, m);
    choose_sets(b, m);
    if (!make_arrays(b) || !lend_inputs(b, &b->eager) || !lend_inputs(b, &b->lazy) ||
        !first_calls(b, m))
        return false;
    struct samples *s = xcalloc(1, sizeof *s);
    bool ok = take_samples(b, s);
    if (ok)
        fill_in(b, s, m);
    xfree(s);
    return ok;
}

bool
bench_measure(const struct graph *g, const struct bench_options *o, struct arena *mem,
              struct measurement *m, struct diag *d)
{
    struct bench b = {.g = g, .t = translate_new(g), .nin = g->inputs.n, .nout = g->outputs.n,
                      .hot = o->hot, .d = d};
    m->graph = arena_strdup(mem, g->name);
    bool ok = measure(&b, o, mem, m);
    if (b.plan)
        executable_unref(b.plan);
    close_side(&b, &b.eager);
    close_side(&b, &b.lazy);
    free_arrays(&b);
    fc_context_free(b.eager.ctx);
    fc_context_free(b.lazy.ctx);
    translate_free(b.t);
    return ok;
}
