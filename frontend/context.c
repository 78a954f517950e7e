// context.c: contexts, handles, scopes and errors.
//
// A handle carries the number of its context, so ops need no context argument; a table of live
// contexts, process-wide since handles are, turns the number into a pointer without a lock. Numbers
// of freed contexts come back only after 1023 others in the same place, slots' generations never
// (a slot whose generations are used up is retired), so stale handles are told from live ones.
//
// A scope is a ring of slots around a sentinel slot; scopes and errors belong to threads, found by
// a short search, because few threads have either.
#include "frontend/context.h"

#include "ir/base/check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_CONTEXTS = 1024,
    CONTEXT_ROUNDS = 1 << (64 - CONTEXT_SHIFT - 10),
    DEFAULT_FLUSH_OPS = 4096,
    DEFAULT_FLUSH_BYTES = 64 << 20,
    DEFAULT_PLANS = 1024,
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
context_lock(fc_context *ctx)
{
    fork_lock_take(&ctx->lock);
}

void
context_unlock(fc_context *ctx)
{
    struct buffer *dead = ctx->dead;
    ctx->dead = NULL;
    fork_lock_drop(&ctx->lock);
    while (dead) {
        struct buffer *next = dead->next;
        if (dead->release)
            dead->release(dead->user);
        xfree(dead);
        dead = next;
    }
}

// ---- making and freeing

// The caller's options, as far as its version of the struct reaches; the rest zero.
static bool
read_options(const fc_options *given, fc_options *o)
{
    *o = (fc_options){.size = sizeof *o};
    if (!given)
        return true;
    if (given->size < sizeof given->size || given->size > 4096)
        return false;
    memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    return o->threads >= 0 && (o->mode == FC_LAZY || o->mode == FC_EAGER) && o->flush_ops >= 0 &&
           o->flush_bytes >= 0 && o->cache_plans >= 0;
}

fc_status
fc_context_new(const fc_options *given, fc_context **out)
{
    if (!out)
        return FC_INVALID;
    *out = NULL;
    fc_options o;
    if (!read_options(given, &o))
        return FC_INVALID;
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
    struct diag d = {0};
    ctx->device = device_open(o.device ? o.device : "cpu", (uint32_t)o.threads, &d);
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
    values_free(ctx);
    context_unlock(ctx);
    cache_free(&ctx->plans);
    cache_free(&ctx->types);
    vec_free(&ctx->operands);
    vec_free(&ctx->order);
    vec_free(&ctx->roots);
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

// ---- threads: errors and scopes

struct thread_state *
thread_find(fc_context *ctx, bool make)
{
    pthread_t self = pthread_self();
    struct thread_state *spare = NULL;
    for (uint32_t i = 0; i < ctx->threads.n; i++) {
        struct thread_state *t = ctx->threads.at[i];
        if (pthread_equal(t->thread, self))
            return t;
        if (!t->error.code && !t->scopes.n)
            spare = t;
    }
    if (!make)
        return NULL;
    if (!spare) {
        spare = xcalloc(1, sizeof *spare);
        vec_push(&ctx->threads, spare);
    }
    spare->thread = self;
    spare->error.text[0] = 0;
    return spare;
}

fc_status
context_fail(fc_context *ctx, const char *file, int line, fc_status code, const char *fmt, ...)
{
    struct thread_state *t = thread_find(ctx, true);
    if (t->error.code)
        return code;
    t->error.code = (enum diag_code)code;
    int at = 0;
    if (file)
        at = snprintf(t->error.text, sizeof t->error.text, "%s:%d: ", file, line);
    if (at < 0 || at >= (int)sizeof t->error.text)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->error.text + at, sizeof t->error.text - (size_t)at, fmt, ap);
    va_end(ap);
    return code;
}

fc_status
context_fail_handle(fc_context *ctx, const char *what)
{
    struct thread_state *t = thread_find(ctx, false);
    if (t && t->error.code)
        return (fc_status)t->error.code;
    return context_fail(ctx, NULL, 0, FC_HANDLE,
                        "%s: the handle is null, was released, or belongs to another context", what);
}

fc_status
context_fail_device(fc_context *ctx)
{
    struct thread_state *t = thread_find(ctx, false);
    if (t && t->error.code)
        return (fc_status)t->error.code;
    return context_fail(ctx, NULL, 0, FC_UNSUPPORTED, "the context's device could not be opened");
}

const char *
fc_error(fc_context *ctx)
{
    if (!ctx)
        return "no context";
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    const char *words = t && t->error.code ? t->error.text : "";
    context_unlock(ctx);
    return words;
}

fc_status
fc_error_code(fc_context *ctx)
{
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    fc_status s = t ? (fc_status)t->error.code : FC_OK;
    context_unlock(ctx);
    return s;
}

void
fc_error_clear(fc_context *ctx)
{
    if (!ctx)
        return;
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    if (t)
        t->error.code = DIAG_OK;
    context_unlock(ctx);
}

// ---- slots and scopes

static uint32_t
slot_take(fc_context *ctx)
{
    uint32_t i = ctx->free_slot;
    if (i) {
        ctx->free_slot = ctx->slots.at[i].next;
    } else {
        i = ctx->slots.n;
        if (i >= 1u << SLOT_BITS)
            return 0;
        vec_push(&ctx->slots, ((struct slot){.generation = 1}));
    }
    struct slot *s = &ctx->slots.at[i];
    s->prev = s->next = 0;
    s->used = true;
    s->kept = false;
    s->value = NULL;
    return i;
}

static void
slot_give(fc_context *ctx, struct slot *s)
{
    s->used = false;
    s->value = NULL;
    s->generation++;
    if (s->generation >= 1u << GENERATION_BITS)
        return; // retired
    s->next = ctx->free_slot;
    ctx->free_slot = (uint32_t)(s - ctx->slots.at);
}

static void
slot_leave_scope(fc_context *ctx, struct slot *s)
{
    if (!s->next)
        return;
    ctx->slots.at[s->prev].next = s->next;
    ctx->slots.at[s->next].prev = s->prev;
    s->prev = s->next = 0;
}

struct slot *
slot_find(fc_context *ctx, fc_tensor t)
{
    uint32_t i = (uint32_t)(t.id & ((1u << SLOT_BITS) - 1));
    uint32_t generation = (uint32_t)(t.id >> SLOT_BITS) & ((1u << GENERATION_BITS) - 1);
    if (t.id >> CONTEXT_SHIFT != ctx->id || i >= ctx->slots.n)
        return NULL;
    struct slot *s = &ctx->slots.at[i];
    return s->used && s->value && s->generation == generation ? s : NULL;
}

fc_tensor
slot_new(fc_context *ctx, struct value *v)
{
    uint32_t i = slot_take(ctx);
    if (!i) {
        value_unref(ctx, v);
        context_fail(ctx, NULL, 0, FC_RESOURCE, "too many live handles");
        return invalid_handle(ctx);
    }
    struct slot *s = &ctx->slots.at[i];
    s->value = v;
    v->slots++;
    if (v->held) {
        v->held = false;
        ctx->held_bytes -= v->buffer->bytes;
    }
    struct thread_state *t = ctx->threads.n ? thread_find(ctx, false) : NULL;
    if (t && t->scopes.n) {
        uint32_t ring = t->scopes.at[t->scopes.n - 1];
        struct slot *sentinel = &ctx->slots.at[ring];
        s->prev = ring;
        s->next = sentinel->next;
        ctx->slots.at[sentinel->next].prev = i;
        sentinel->next = i;
    }
    return (fc_tensor){(uint64_t)ctx->id << CONTEXT_SHIFT | (uint64_t)s->generation << SLOT_BITS | i};
}

void
slot_free(fc_context *ctx, struct slot *s)
{
    struct value *v = s->value;
    slot_leave_scope(ctx, s);
    v->slots--;
    v->kept -= s->kept;
    slot_give(ctx, s);
    value_check_held(ctx, v);
    value_unref(ctx, v);
}

fc_status
fc_release(fc_tensor t)
{
    fc_context *ctx = context_of(t);
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    struct slot *s = slot_find(ctx, t);
    fc_status status = FC_OK;
    if (s)
        slot_free(ctx, s);
    else
        status = context_fail_handle(ctx, "fc_release");
    context_unlock(ctx);
    return status;
}

fc_tensor
fc_keep(fc_tensor t)
{
    fc_context *ctx = context_of(t);
    if (!ctx)
        return (fc_tensor){0};
    context_lock(ctx);
    struct slot *s = slot_find(ctx, t);
    if (s) {
        slot_leave_scope(ctx, s);
        s->value->kept += !s->kept;
        s->kept = true;
    } else {
        context_fail_handle(ctx, "fc_keep");
        t = invalid_handle(ctx);
    }
    context_unlock(ctx);
    return t;
}

bool
fc_valid(fc_tensor t)
{
    fc_context *ctx = context_of(t);
    if (!ctx)
        return false;
    context_lock(ctx);
    bool valid = slot_find(ctx, t);
    context_unlock(ctx);
    return valid;
}

fc_status
fc_scope_begin(fc_context *ctx)
{
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    fc_status status = FC_OK;
    struct thread_state *t = thread_find(ctx, true);
    uint32_t i = slot_take(ctx);
    if (i) {
        ctx->slots.at[i].prev = ctx->slots.at[i].next = i;
        vec_push(&t->scopes, i);
    } else {
        status = context_fail(ctx, NULL, 0, FC_RESOURCE, "fc_scope_begin: too many live handles");
    }
    context_unlock(ctx);
    return status;
}

fc_status
fc_scope_end(fc_context *ctx)
{
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    struct thread_state *t = thread_find(ctx, false);
    fc_status status = FC_OK;
    if (t && t->scopes.n) {
        uint32_t ring = t->scopes.at[--t->scopes.n];
        for (uint32_t i; (i = ctx->slots.at[ring].next) != ring;)
            slot_free(ctx, &ctx->slots.at[i]);
        slot_give(ctx, &ctx->slots.at[ring]);
    } else {
        status = context_fail(ctx, NULL, 0, FC_INVALID,
                              "fc_scope_end: this thread has no open scope");
    }
    context_unlock(ctx);
    return status;
}

// ---- names and figures

const char *
fc_version(void)
{
    return FUSEC_VERSION;
}

const char *
fc_status_name(fc_status s)
{
    switch ((int)s) {
#define STATUS(name, value, doc)                                                                   \
    case value:                                                                                    \
        return "FC_" #name;
#include "ir/status.def"
#undef STATUS
    }
    return "unknown status";
}

const char *
fc_status_words(fc_status s)
{
    switch ((int)s) {
#define STATUS(name, value, doc)                                                                   \
    case value:                                                                                    \
        return doc;
#include "ir/status.def"
#undef STATUS
    }
    return "no such status";
}

const char *
fc_dtype_name(fc_dtype d)
{
    return dtype_name((unsigned)d < DT_COUNT ? (uint8_t)d : DT_NONE);
}

size_t
fc_dtype_size(fc_dtype d)
{
    return (unsigned)d < DT_COUNT ? dtype_size((uint8_t)d) : 0;
}

fc_status
fc_stats(fc_context *ctx, fc_statistics *out)
{
    if (!ctx)
        return FC_HANDLE;
    if (!out || out->size < sizeof out->size || out->size > 4096)
        return FC_INVALID;
    context_lock(ctx);
    struct device_counters c = {0};
    if (ctx->device)
        ctx->device->counters(ctx->device, &c);
    fc_statistics s = {
        .size = out->size,
        .kernels = c.kernels,
        .compiles = c.compiles,
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
        .plan_us = ctx->plan_us,
    };
    context_unlock(ctx);
    memcpy(out, &s, s.size < sizeof s ? s.size : sizeof s);
    return FC_OK;
}
