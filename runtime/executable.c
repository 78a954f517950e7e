// executable.c: a plan with its code. All pointers that launches receive stand in one table, launch
// after launch; a run fills in where each is (the arena, the caller's inputs and outputs) and
// launches in order. The table comes from one of a few instances, handed out by a bit mask, so the
// steady state takes no lock and allocates nothing; the arena comes from the device's caching
// allocator and is shared that way with all other plans.
#include "runtime/device.h"

#include "ir/base/check.h"
#include "runtime/pool.h"

#include <stdatomic.h>
#include <unistd.h>

enum { INSTANCES = 64 }; // concurrent calls that find an instance without allocating one

struct instance {
    uint32_t number; // INSTANCES: not kept
    int32_t *error;  // 1 + origin of an index out of range
    int32_t own_error;
    void *pointer[];
};

struct executable {
    atomic_uint refs;
    struct plan *plan;
    struct device *device;
    struct code **code;   // per launch
    uint32_t *first;      // per launch: its first pointer
    uint32_t pointers;
    bool checks; // some launch may set the error word, which is read when all are done
    const struct plan_buffer **source; // per pointer: what it points at
    atomic_uint made;     // instances, at most INSTANCES
    _Atomic uint64_t idle; // bit i: instance[i] is nobody's
    struct instance *instance[INSTANCES];
};

// ---- making and unmaking

struct compile_job {
    struct executable *e;
    struct diag *diag; // per launch
};

static void
compile_launches(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    (void)slot;
    struct compile_job *j = arg;
    struct executable *e = j->e;
    for (int64_t i = begin; i < end; i++) {
        const struct launch *l = &e->plan->launch.at[i];
        e->code[i] = e->device->ops->compile(e->device, &l->kernel, &l->sched, &j->diag[i]);
    }
}

static uint32_t
threads_of_host(const struct device *dev)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return dev->target.kind == DEVICE_CPU ? dev->target.units : cores > 1 ? (uint32_t)cores : 1;
}

// Different kernels compile at once, on the pool.
static bool
compile_all(struct executable *e, struct diag *d)
{
    uint32_t n = e->plan->launch.n;
    struct compile_job j = {e, xcalloc(n, sizeof *j.diag)};
    pool_run(n, 1, threads_of_host(e->device), compile_launches, &j);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++)
        if (!e->code[i])
            ok = diag_set(d, j.diag[i].code, "%s", j.diag[i].text);
    xfree(j.diag);
    return ok;
}

static void
lay_out_pointers(struct executable *e)
{
    const struct plan *p = e->plan;
    for (uint32_t i = 0; i < p->launch.n; i++) {
        e->first[i] = e->pointers;
        e->pointers += p->launch.at[i].kernel.buffers.n;
    }
    e->source = xcalloc(e->pointers, sizeof *e->source);
    for (uint32_t i = 0; i < p->launch.n; i++)
        for (uint32_t b = 0; b < p->launch.at[i].kernel.buffers.n; b++) {
            uint32_t index = p->launch.at[i].buffer[b];
            CHECK(index < p->buffer.n, "launch %u names buffer %u of %u", i, index, p->buffer.n);
            e->source[e->first[i] + b] = &p->buffer.at[index];
        }
}

// Whether positions that are data are checked in the kernel.
static bool
kernel_checks(const struct kernel *k)
{
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_checked || (k->inst.at[i].op == OP_load && k->inst.at[i].c))
            return true;
    return false;
}

struct executable *
executable_new(struct plan *p, struct device *dev, struct diag *d)
{
    struct executable *e = xcalloc(1, sizeof *e);
    atomic_init(&e->refs, 1);
    e->plan = p;
    e->device = dev;
    for (uint32_t i = 0; i < p->launch.n; i++)
        e->checks |= kernel_checks(&p->launch.at[i].kernel);
    e->code = xcalloc(p->launch.n, sizeof *e->code);
    e->first = xcalloc(p->launch.n, sizeof *e->first);
    lay_out_pointers(e);
    if (compile_all(e, d))
        return e;
    executable_unref(e);
    return NULL;
}

static void
instance_free(struct executable *e, struct instance *in)
{
    if (in && in->error && in->error != &in->own_error)
        e->device->ops->error_word_release(e->device, in->error);
    xfree(in);
}

struct executable *
executable_ref(struct executable *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void
executable_unref(struct executable *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < e->plan->launch.n; i++)
        e->device->ops->code_release(e->device, e->code[i]);
    for (uint32_t i = 0; i < INSTANCES; i++)
        instance_free(e, e->instance[i]);
    xfree(e->code);
    xfree(e->first);
    xfree(e->source);
    plan_free(e->plan);
    xfree(e);
}

const struct plan *
executable_plan(const struct executable *e)
{
    return e->plan;
}

// ---- instances

// NULL: no memory for its error word.
static struct instance *
instance_new(struct executable *e)
{
    struct instance *in = xcalloc(1, sizeof *in + e->pointers * sizeof *in->pointer);
    const struct device_ops *ops = e->device->ops;
    in->error = ops->error_word ? ops->error_word(e->device) : &in->own_error;
    if (!in->error) {
        xfree(in);
        return NULL;
    }
    in->number = atomic_load_explicit(&e->made, memory_order_relaxed);
    while (in->number < INSTANCES)
        if (atomic_compare_exchange_weak_explicit(&e->made, &in->number, in->number + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            e->instance[in->number] = in; // read by others only after the idle bit was set
            break;
        }
    return in;
}

static struct instance *
instance_take(struct executable *e)
{
    uint64_t idle = atomic_load_explicit(&e->idle, memory_order_relaxed);
    while (idle)
        if (atomic_compare_exchange_weak_explicit(&e->idle, &idle, idle & (idle - 1),
                                                  memory_order_acquire, memory_order_relaxed))
            return e->instance[__builtin_ctzll(idle)];
    return instance_new(e);
}

static void
instance_release(struct executable *e, struct instance *in)
{
    if (in->number < INSTANCES)
        atomic_fetch_or_explicit(&e->idle, (uint64_t)1 << in->number, memory_order_release);
    else
        instance_free(e, in);
}

// ---- running

static void
fill_in(const struct executable *e, struct instance *in, void *const *input, void *const *output,
        char *arena)
{
    for (uint32_t i = 0; i < e->pointers; i++) {
        const struct plan_buffer *b = e->source[i];
        void *p = b->place == PLACE_INPUT    ? input[b->index]
                  : b->place == PLACE_OUTPUT ? output[b->index]
                  : arena                    ? arena + b->offset
                                             : NULL;
        if (in->pointer[i] != p) // workers have the line in their caches
            in->pointer[i] = p;
    }
}

// The user's op behind an origin: of a union the first.
static bool
index_error(const struct plan *p, uint32_t origin, struct diag *d)
{
    const struct graph *g = p->canonical;
    const struct origin *o = NULL;
    while (origin && origin < g->origins.n && !o) {
        const struct origin *at = &g->origins.at[origin];
        if (at->op)
            o = at;
        else
            origin = at->a ? at->a : at->b;
    }
    if (!o)
        return diag_set(d, DIAG_INDEX, "an index computed from data was out of range; the elements "
                                       "concerned are 0");
    const char *file = o->file ? o->file : "";
    const char *then = op_is(o->op, OPK_SCATTER) ? "the updates concerned are left out"
                                                 : "the elements concerned are 0";
    return diag_set(d, DIAG_INDEX, *file ? "%s: an index was out of range; %s (%s:%u)"
                                         : "%s: an index was out of range; %s",
                    op_name(o->op), then, file, o->line);
}

static bool
run_chain(const struct executable *e, const struct chain *c, struct instance *in, struct diag *d)
{
    void *const *ptr[CHAIN_LONGEST];
    for (uint32_t i = 0; i < c->n; i++)
        ptr[i] = in->pointer + e->first[c->first + i];
    return e->device->ops->launch_chain(e->device, e->plan, c, e->code + c->first, ptr, in->error,
                                        d);
}

static bool
launch_all(const struct executable *e, struct instance *in, struct diag *d)
{
    struct device *dev = e->device;
    const struct chain *next = e->plan->chain.at, *end = next + e->plan->chain.n;
    for (uint32_t i = 0; i < e->plan->launch.n; i++) {
        const struct launch *l = &e->plan->launch.at[i];
        if (next < end && i == next->first) {
            if (!run_chain(e, next, in, d))
                return false;
            i += next++->n - 1;
        } else if (!dev->ops->launch(dev, e->code[i], &l->kernel, &l->sched,
                                     in->pointer + e->first[i], in->error, d))
            return false;
    }
    return !e->checks || dev->ops->synchronize(dev, d);
}

bool
executable_run(struct executable *e, void *const *input, void *const *output, struct diag *d)
{
    struct device *dev = e->device;
    int64_t bytes = e->plan->arena_bytes;
    struct instance *in = instance_take(e);
    if (!in)
        return diag_set(d, DIAG_RESOURCE, "no memory for a launch's error word");
    char *arena = bytes ? dev->ops->alloc(dev, bytes) : NULL;
    if (bytes && !arena) {
        instance_release(e, in);
        return diag_set(d, DIAG_RESOURCE, "no memory for %lld bytes of intermediate results",
                        (long long)bytes);
    }
    if (*in->error)
        *in->error = 0;
    fill_in(e, in, input, output, arena);
    bool ok = launch_all(e, in, d);
    int32_t error = *in->error;
    instance_release(e, in);
    if (arena)
        dev->ops->release(dev, arena, bytes);
    return ok && error ? index_error(e->plan, (uint32_t)error - 1, d) : ok;
}
