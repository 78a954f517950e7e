// slot.c: handles and scopes. A slot's generation grows with every use and is part of the handle,
// so a stale handle never names the slot's next value; a slot whose generations are used up is
// retired. A scope is a ring of slots around a sentinel slot, so that a handle leaves its scope in
// constant time, whichever thread releases it.
#include "frontend/context.h"

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
    return (fc_tensor){(uint64_t)ctx->id << CONTEXT_SHIFT | (uint64_t)s->generation << SLOT_BITS |
                       i};
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
        status =
            context_fail(ctx, NULL, 0, FC_INVALID, "fc_scope_end: this thread has no open scope");
    }
    context_unlock(ctx);
    return status;
}
