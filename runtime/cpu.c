// cpu.c: the host as a device. compile: kernel → LLVM IR text (codegen) → code cache, which on a
// miss makes an object and has ORC load it. launch: units are divided over the pool's threads by
// the schedule's grain, in the default floating-point state; then the finish phase, likewise.
//
// On a tiered device the code of a miss is baseline code, and the cache has optimised code made
// when it is used again. Every chunk of units takes the best code there is, so a long launch goes
// on at full speed as soon as it can.
//
// Code is shared by all kernels of equal text; sizes, strides and bases are arguments and belong to
// one launch: struct code holds both. Scratch memory comes from a caching allocator of its own, so
// that what the counters call memory is buffers and arenas only. Nothing is allocated from the
// system in the steady state.
//
// A build without LLVM runs each kernel in the kernel interpreter: same results, very slowly.
#include "runtime/cpu.h"

#include "ir/base/clock.h"
#include "ir/interp.h"
#include "runtime/alloc.h"
#include "runtime/code_cache.h"
#include "runtime/fpstate.h"
#include "runtime/orc.h"
#include "runtime/pool.h"
#include "runtime/target.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { UNUSED_CODES = 256, UNUSED_TEXT = 64 << 20 };
// A first launch in baseline code that is under way for as long asks for optimised code: as much
// again is lost until it is there.
enum { LONG_LAUNCH_NS = 2000000 };
// Scratch of more than a few pages takes a huge page: what lies in it is read again and again, and
// small pages would have to be looked up each time.
enum { FEW_PAGES = 128 << 10, HUGE_PAGE = 2 << 20 };

struct cpu_device {
    struct device base; // first: struct device * is one of these
    struct allocator *memory, *scratch;
    struct jit *jit; // NULL in builds without LLVM
    struct code_cache *codes;
    atomic_int_fast64_t kernels;
};

struct code {
    struct cached_code *cached; // of struct jit_code; NULL: the interpreter runs it
    int64_t num[];
};

static struct cpu_device *
cpu_of(struct device *d)
{
    return (struct cpu_device *)d;
}

// ---- memory

static void *
cpu_alloc(struct device *d, int64_t bytes)
{
    return alloc_take(cpu_of(d)->memory, bytes);
}

static void
cpu_release(struct device *d, void *p, int64_t bytes)
{
    alloc_release(cpu_of(d)->memory, p, bytes);
}

static bool
cpu_copy(struct device *d, void *dst, const void *src, int64_t bytes, struct diag *diag)
{
    (void)d, (void)diag;
    if (bytes > 0)
        memcpy(dst, src, (size_t)bytes);
    return true;
}

// ---- compiling

static bool
make_code(void *user, const char *text, size_t n, enum code_level level, void *code,
          struct diag *diag)
{
    struct cpu_device *c = user;
    size_t size = 0;
    void *object = cpu_object(text, n, &c->base.target, level, &size, diag);
    bool ok = object && jit_load(c->jit, object, size, code, diag);
    xfree(object);
    return ok;
}

static void
drop_code(void *user, void *code)
{
    jit_unload(((struct cpu_device *)user)->jit, code);
}

static struct code *
code_new(const int64_t *num, uint32_t n)
{
    struct code *code = xcalloc(1, sizeof *code + n * sizeof *num);
    if (n)
        memcpy(code->num, num, n * sizeof *num);
    return code;
}

static struct code *
cpu_compile(struct device *d, const struct kernel *k, const struct schedule *s, struct diag *diag)
{
    struct cpu_device *c = cpu_of(d);
    if (!c->jit)
        return code_new(NULL, 0);
    struct str text = {0};
    num_vec num = {0};
    struct diag own = {0};
    struct code *code = NULL;
    struct cached_code *cached = NULL;
    if (cpu_emit(k, s, &d->target, &text, &num, &own))
        cached = code_cache_get(c->codes, text.at, text.n, &own);
    if (cached) {
        code = code_new(num.at, num.n);
        code->cached = cached;
    } else {
        diag_set(diag, own.code, "kernel %s: %s", k->name ? k->name : "?", own.text);
    }
    str_free(&text);
    vec_free(&num);
    return code;
}

static void
cpu_code_release(struct device *d, struct code *code)
{
    if (!code)
        return;
    code_cache_release(cpu_of(d)->codes, code->cached);
    xfree(code);
}

// ---- launching

struct launch_job {
    struct kernel_args args;
    struct code_cache *codes;
    struct cached_code *cached;
    int64_t patience; // until when baseline code may run before optimised code is asked for
    char *scratch;
    int64_t stride; // bytes of scratch from one thread to the next
};

// A launch of code, to begin now.
static struct launch_job
launch_job(const struct cpu_device *c, const struct code *code, void *const *ptr, int32_t *error)
{
    code_cache_use(c->codes, code->cached);
    bool optimised = cached_code_is_optimised(code->cached);
    return (struct launch_job){
        .args = {.ptr = ptr, .num = code->num, .error = error},
        .codes = c->codes,
        .cached = code->cached,
        .patience = optimised ? INT64_MAX : clock_ns() + LONG_LAUNCH_NS,
    };
}

// The code for some more units.
static const struct jit_code *
next_code(const struct launch_job *j)
{
    if (j->patience != INT64_MAX && clock_ns() > j->patience &&
        !cached_code_is_optimised(j->cached))
        code_cache_optimise(j->codes, j->cached);
    return cached_code_get(j->cached);
}

static void
run_units(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    const struct launch_job *j = arg;
    next_code(j)->kernel(&j->args, begin, end, j->scratch + slot * j->stride);
}

static void
finish_units(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    const struct launch_job *j = arg;
    next_code(j)->finish(&j->args, begin, end, j->scratch + slot * j->stride);
}

static int64_t
line(int64_t bytes) // whole cache lines
{
    return (bytes + 63) & ~(int64_t)63;
}

// The origin of the launch's first check of an index: the interpreter does not say which of several
// failed.
static int32_t
checked_origin(const struct kernel *k)
{
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_checked || (k->inst.at[i].op == OP_load && k->inst.at[i].c))
            return (int32_t)k->inst.at[i].origin;
    return 0;
}

static bool
interpret(struct cpu_device *c, const struct kernel *k, void *const *ptr, int32_t *error_op,
          struct diag *diag)
{
    struct diag own = {0};
    fp_state callers = fp_enter();
    bool ok = interp_kernel(k, ptr, c->base.target.l2, NULL, NULL, &own);
    fp_leave(callers);
    if (ok)
        return true;
    if (own.code != DIAG_INDEX)
        return diag_set(diag, own.code, "%s", own.text);
    *error_op = 1 + checked_origin(k);
    return true;
}

// Scratch for k, NULL for none; *bytes may grow. To be released with as many.
static bool
scratch_take(struct cpu_device *c, const struct kernel *k, int64_t *bytes, char **scratch,
             struct diag *diag)
{
    if (*bytes > FEW_PAGES && *bytes < HUGE_PAGE)
        *bytes = HUGE_PAGE;
    *scratch = *bytes ? alloc_take(c->scratch, *bytes) : NULL;
    if (*bytes && !*scratch)
        return diag_set(diag, DIAG_RESOURCE, "kernel %s: no memory for %lld bytes of scratch",
                        k->name, (long long)*bytes);
    return true;
}

static bool
cpu_launch(struct device *d, struct code *code, const struct kernel *k, const struct schedule *s,
           void *const *ptr, int32_t *error_op, struct diag *diag)
{
    struct cpu_device *c = cpu_of(d);
    if (s->units <= 0 && s->finish_units <= 0)
        return true;
    atomic_fetch_add_explicit(&c->kernels, 1, memory_order_relaxed);
    if (!code->cached)
        return interpret(c, k, ptr, error_op, diag);
    uint32_t threads = pool_threads(s->units, s->grain, d->target.units);
    uint32_t finishers = pool_threads(s->finish_units, s->grain, d->target.units);
    struct launch_job j = launch_job(c, code, ptr, error_op);
    j.stride = line(s->scratch_bytes);
    int64_t shared = line(s->shared_scratch_bytes);
    int64_t memory = shared + j.stride * (threads > finishers ? threads : finishers);
    if (!scratch_take(c, k, &memory, &j.args.shared, diag))
        return false;
    j.scratch = j.args.shared ? j.args.shared + shared : NULL;
    fp_state callers = fp_enter();
    pool_run(s->units, s->grain, threads, run_units, &j);
    if (s->finish_units > 0)
        pool_run(s->finish_units, s->grain, finishers, finish_units, &j);
    fp_leave(callers);
    alloc_release(c->scratch, j.args.shared, memory);
    return true;
}

struct chain_job {
    const struct plan *plan;
    const struct chain *chain;
    struct launch_job part[CHAIN_LONGEST];
};

// What is local to blocks lies, block after block, at the same place of the thread's scratch: its
// element 0 is as far before that as the block is from the first.
static void
place_locals(const struct chain_job *j, uint32_t part, int64_t block, char *local, void **ptr)
{
    const struct launch *l = &j->plan->launch.at[j->chain->first + part];
    for (uint32_t b = 0; b < l->kernel.buffers.n; b++) {
        const struct plan_buffer *x = &j->plan->buffer.at[l->buffer[b]];
        ptr[b] = x->local ? local + x->local_at - block * (x->bytes / j->chain->blocks)
                          : j->part[part].args.ptr[b];
    }
}

static void
run_blocks(void *arg, int64_t begin, int64_t end, uint32_t slot)
{
    struct chain_job *j = arg;
    for (int64_t block = begin; block < end; block++)
        for (uint32_t i = 0; i < j->chain->n; i++) {
            const struct launch_job *part = &j->part[i];
            int64_t units = j->plan->launch.at[j->chain->first + i].units_of_block;
            char *scratch = part->scratch + slot * part->stride;
            void *ptr[CHAIN_BUFFERS];
            struct kernel_args args = part->args;
            place_locals(j, i, block, scratch, ptr);
            args.ptr = ptr;
            next_code(part)->kernel(&args, block * units, (block + 1) * units,
                                    scratch + j->chain->local_bytes);
        }
}

static bool
cpu_launch_chain(struct device *d, const struct plan *p, const struct chain *c,
                 struct code *const *code, void *const *const *ptr, int32_t *error_op,
                 struct diag *diag)
{
    struct cpu_device *cpu = cpu_of(d);
    const struct launch *l = &p->launch.at[c->first];
    struct chain_job j = {.plan = p, .chain = c};
    int64_t stride = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!code[i]->cached && !cpu_launch(d, code[i], &l[i].kernel, &l[i].sched, ptr[i],
                                            error_op, diag))
            return false;
        stride = l[i].sched.scratch_bytes > stride ? l[i].sched.scratch_bytes : stride;
    }
    if (!code[0]->cached)
        return true;
    stride = line(stride) + c->local_bytes;
    uint32_t threads = pool_threads(c->blocks, 1, d->target.units);
    int64_t memory = stride * threads;
    char *scratch;
    if (!scratch_take(cpu, &l->kernel, &memory, &scratch, diag))
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        j.part[i] = launch_job(cpu, code[i], ptr[i], error_op);
        j.part[i].scratch = scratch;
        j.part[i].stride = stride;
    }
    atomic_fetch_add_explicit(&cpu->kernels, c->n, memory_order_relaxed);
    fp_state callers = fp_enter();
    pool_run(c->blocks, 1, threads, run_blocks, &j);
    fp_leave(callers);
    alloc_release(cpu->scratch, scratch, memory);
    return true;
}

static bool
cpu_synchronize(struct device *d, struct diag *diag)
{
    (void)d, (void)diag; // launches return when they are done
    return true;
}

static void
cpu_settle(struct device *d)
{
    code_cache_settle(cpu_of(d)->codes);
}

// ---- opening and closing

static void
cpu_counters(struct device *d, struct device_counters *out)
{
    struct cpu_device *c = cpu_of(d);
    struct code_cache_stats codes = code_cache_read_stats(c->codes);
    struct alloc_stats memory = alloc_read_stats(c->memory);
    *out = (struct device_counters){
        .kernels = atomic_load_explicit(&c->kernels, memory_order_relaxed),
        .compiles = codes.makes,
        .optimised = codes.optimised,
        .code_hits = codes.hits,
        .compile_us = codes.make_us,
        .optimise_us = codes.optimise_us,
        .bytes_allocated = memory.in_use,
        .peak_bytes = memory.peak,
    };
}

static void
cpu_close(struct device *d)
{
    struct cpu_device *c = cpu_of(d);
    code_cache_free(c->codes);
    jit_free(c->jit);
    allocator_free(c->scratch);
    allocator_free(c->memory);
    xfree(c);
}

static const struct device_ops cpu_ops = {
    .alloc = cpu_alloc,
    .release = cpu_release,
    .upload = cpu_copy,
    .download = cpu_copy,
    .compile = cpu_compile,
    .code_release = cpu_code_release,
    .launch = cpu_launch,
    .launch_chain = cpu_launch_chain,
    .synchronize = cpu_synchronize,
    .settle = cpu_settle,
    .close = cpu_close,
};

// Half of the threads may be busy making code, while the others compute.
static uint32_t
optimisers(uint32_t threads)
{
    return threads / 2 < OPTIMISERS_MOST ? threads / 2 : OPTIMISERS_MOST;
}

struct device *
cpu_open(uint32_t threads, uint32_t flags, struct diag *diag)
{
    struct jit *jit = NULL;
    if (cpu_codegen_available() && !(jit = jit_new(diag)))
        return NULL;
    struct cpu_device *c = xcalloc(1, sizeof *c);
    c->base.ops = &cpu_ops;
    c->base.counters = cpu_counters;
    snprintf(c->base.name, sizeof c->base.name, "cpu");
    cpu_target(&c->base.target, threads, c->base.words, sizeof c->base.words);
    int64_t physical = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    c->memory = allocator_new(physical);
    c->scratch = allocator_new(physical);
    c->jit = jit;
    struct code_maker maker = {make_code, drop_code, c, sizeof(struct jit_code),
                               flags & DEVICE_TIERED ? optimisers(c->base.target.units) : 0};
    c->codes = code_cache_new(maker, UNUSED_CODES, UNUSED_TEXT, 64);
    return &c->base;
}
