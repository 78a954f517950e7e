// context.c: contexts from start to end. A handle carries the number of its context, so ops need no
// context argument; a table of live contexts, process-wide since handles are, turns the number into
// a pointer without a lock. The number of a freed context comes back only after 1022 others in the
// same place.
#include "frontend/context.h"

#include <stdatomic.h>
#include <string.h>

enum {
    MAX_CONTEXTS = 1024,
    CONTEXT_ROUNDS = 1 << (64 - CONTEXT_SHIFT - 10),
    DEFAULT_FLUSH_OPS = 4096,
    DEFAULT_FLUSH_BYTES = 64 << 20,
    DEFAULT_PLANS = 512,
    TYPE_ENTRIES = 1 << 14,
};
_Static_assert(MAX_CONTEXTS == 1 << 10, "a context's number: 10 bits of place, the rest rounds");

static struct {
    _Atomic(fc_context *) at[MAX_CONTEXTS];
    _Atomic uint32_t round[MAX_CONTEXTS];
} registry;

static bool
registry_add(fc_context *ctx)
{
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        fc_context *none = NULL;
        if (atomic_load(&registry.at[i]))
            continue;
        uint32_t round = atomic_fetch_add(&registry.round[i], 1) % (CONTEXT_ROUNDS - 1) + 1;
        ctx->id = round * MAX_CONTEXTS + i; // never 0
        if (atomic_compare_exchange_strong(&registry.at[i], &none, ctx))
            return true;
    }
    return false;
}

static void
registry_remove(fc_context *ctx)
{
    atomic_store(&registry.at[ctx->id % MAX_CONTEXTS], NULL);
}

fc_context *
context_of(fc_tensor t)
{
    uint32_t id = (uint32_t)(t.id >> CONTEXT_SHIFT);
    fc_context *ctx = atomic_load_explicit(&registry.at[id % MAX_CONTEXTS], memory_order_acquire);
    return ctx && ctx->id == id ? ctx : NULL;
}

void
context_unlock_dead(fc_context *ctx)
{
    struct buffer *first = ctx->dead, *last = NULL;
    ctx->dead = NULL;
    fork_lock_drop(&ctx->lock);
    for (struct buffer *b = first; b; b = b->next) {
        if (b->release)
            b->release(b->user);
        last = b;
    }
    fork_lock_take(&ctx->lock);
    last->next = ctx->free_buffer;
    ctx->free_buffer = first;
    fork_lock_drop(&ctx->lock);
}

// ---- making and freeing

static bool
check_options(const fc_options *o, struct diag *d)
{
    const struct {
        const char *name;
        int64_t value;
    } count[] = {{"threads", o->threads}, {"flush_ops", o->flush_ops},
                 {"flush_bytes", o->flush_bytes}, {"cache_plans", o->cache_plans}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].value < 0)
            return diag_set(d, DIAG_INVALID, "fc_options.%s is %lld; 0 is the default, no number "
                            "below it makes sense", count[i].name, (long long)count[i].value);
    if (o->mode != FC_LAZY && o->mode != FC_EAGER)
        return diag_set(d, DIAG_INVALID,
                        "fc_options.mode is %d; it is FC_LAZY (%d) or FC_EAGER (%d)", o->mode,
                        FC_LAZY, FC_EAGER);
    if (o->compile != FC_TIERED && o->compile != FC_OPTIMISED)
        return diag_set(d, DIAG_INVALID,
                        "fc_options.compile is %d; it is FC_TIERED (%d) or FC_OPTIMISED (%d)",
                        o->compile, FC_TIERED, FC_OPTIMISED);
    return true;
}

// The caller's options, as far as its version of the struct reaches; the rest zero. If something is
// wrong with them, d has words and *o is the defaults.
static void
read_options(const fc_options *given, fc_options *o, struct diag *d)
{
    *o = (fc_options){.size = sizeof *o};
    if (!given)
        return;
    bool sized = given->size >= sizeof given->size && given->size <= 4096;
    if (sized)
        memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    else
        diag_set(d, DIAG_INVALID, "fc_options.size is %zu; set it to sizeof(fc_options)",
                 given->size);
    if (!sized || !check_options(o, d))
        *o = (fc_options){.size = sizeof *o};
}

fc_status
fc_context_new(const fc_options *given, fc_context **out)
{
    if (!out)
        return FC_INVALID;
    *out = NULL;
    fc_options o;
    struct diag d = {0};
    read_options(given, &o, &d);
    fc_context *ctx = xcalloc(1, sizeof *ctx);
    fork_lock_init(&ctx->lock, FORK_CONTEXT);
    if (!registry_add(ctx)) {
        fork_lock_destroy(&ctx->lock);
        xfree(ctx);
        return FC_RESOURCE;
    }
    ctx->eager = o.mode == FC_EAGER;
    ctx->strict = o.strict;
    ctx->flush_ops = o.flush_ops ? o.flush_ops : DEFAULT_FLUSH_OPS;
    ctx->flush_bytes = o.flush_bytes ? o.flush_bytes : DEFAULT_FLUSH_BYTES;
    ctx->sym = symtab_new();
    vec_push(&ctx->layouts, ((struct layout){0}));
    vec_push(&ctx->slots, ((struct slot){0}));
    cache_init(&ctx->types, TYPE_ENTRIES);
    cache_init(&ctx->plans, o.cache_plans ? (uint32_t)o.cache_plans : DEFAULT_PLANS);
    *out = ctx;
    if (!d.code)
        ctx->device = device_open(o.device ? o.device : "cpu", (uint32_t)o.threads,
                                  o.compile == FC_TIERED ? DEVICE_TIERED : 0, &d);
    report_if_asked(ctx);
    if (ctx->device)
        return FC_OK;
    fc_status s = d.code ? (fc_status)d.code : FC_UNSUPPORTED;
    return context_fail(ctx, NULL, 0, s, "%s", d.text);
}

void
fc_context_free(fc_context *ctx)
{
    if (!ctx)
        return;
    registry_remove(ctx);
    context_lock(ctx);
    for (uint32_t i = 1; i < ctx->slots.n; i++)
        if (ctx->slots.at[i].used && ctx->slots.at[i].value)
            slot_free(ctx, &ctx->slots.at[i]);
    context_unlock(ctx); // with the last of borrowed memory
    values_free(ctx);
    cache_free(&ctx->plans);
    cache_free(&ctx->types);
    vec_free(&ctx->operands);
    vec_free(&ctx->order);
    vec_free(&ctx->roots);
    vec_free(&ctx->sinks);
    vec_free(&ctx->frames);
    vec_free(&ctx->key);
    vec_free(&ctx->literal_at);
    for (uint32_t i = 0; i < ctx->threads.n; i++) {
        vec_free(&ctx->threads.at[i]->scopes);
        xfree(ctx->threads.at[i]);
    }
    vec_free(&ctx->threads);
    vec_free(&ctx->slots);
    vec_free(&ctx->layouts);
    map_free(&ctx->layout_map);
    vec_free(&ctx->dims);
    if (ctx->device)
        device_close(ctx->device);
    symtab_free(ctx->sym);
    arena_free(&ctx->mem);
    fork_lock_destroy(&ctx->lock);
    xfree(ctx);
}

void
context_on_plan(fc_context *ctx, void (*fn)(void *user, const struct plan *p), void *user)
{
    context_lock(ctx);
    ctx->on_plan = fn;
    ctx->on_plan_user = user;
    context_unlock(ctx);
}

const char *
fc_device_words(fc_context *ctx)
{
    return ctx && ctx->device ? ctx->device->words : "";
}

// ---- figures

fc_status
fc_stats(fc_context *ctx, fc_statistics *out)
{
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    if (!out || out->size < sizeof out->size || out->size > 4096) {
        context_fail(ctx, NULL, 0, FC_INVALID,
                     out ? "fc_stats: out->size is not sizeof(fc_statistics)"
                         : "fc_stats: out is NULL");
        context_unlock(ctx);
        return FC_INVALID;
    }
    struct device_counters c = {0};
    if (ctx->device)
        ctx->device->counters(ctx->device, &c);
    fc_statistics s = {
        .size = out->size,
        .kernels = c.kernels,
        .compiles = c.compiles,
        .optimised = c.optimised,
        .code_hits = c.code_hits,
        .plan_hits = ctx->plan_hits,
        .plan_misses = ctx->plan_misses,
        .bytes = ctx->bytes,
        .memory = c.bytes_allocated,
        .peak_memory = c.peak_bytes,
        .pending = ctx->pending,
        .recomputed = ctx->recomputed,
        .flushes = ctx->flushes,
        .compile_us = c.compile_us,
        .optimise_us = c.optimise_us,
        .plan_us = ctx->plan_us,
    };
    context_unlock(ctx);
    memcpy(out, &s, s.size < sizeof s ? s.size : sizeof s);
    return FC_OK;
}
