// layout.c: layouts (dtype, dims, strides, alignment) as small numbers, and the strides of views.
// Strides of axes with one element don't matter and are kept as 0 in layouts that are not dense, so
// that equal accesses are equal layouts. Numbers stay valid until layout_forget, which runs only
// between calls, when no key holds one.
#include "frontend/context.h"

#include "ir/base/check.h"

#include <string.h>

enum { ALIGN_MAX = 6 };

uint8_t
layout_align(const void *address)
{
    uintptr_t a = (uintptr_t)address | (uintptr_t)1 << ALIGN_MAX;
    return (uint8_t)__builtin_ctzll(a);
}

bool
layout_fill(const fc_context *ctx, struct layout *l, const int64_t *stride)
{
    bool fits = true, empty = false;
    l->count = 1;
    l->dense = true;
    for (uint32_t i = l->rank; i-- > 0;) {
        l->n[i] = sym_hint(ctx->sym, l->dim[i]);
        empty |= !l->n[i];
        if (stride && stride[i] != l->count && l->n[i] != 1)
            l->dense = false;
        l->stride[i] = stride && l->n[i] != 1 ? stride[i] : stride ? 0 : l->count;
        fits &= !__builtin_mul_overflow(l->count, l->n[i] ? l->n[i] : 1, &l->count);
    }
    fits &= !__builtin_mul_overflow(l->count, (int64_t)dtype_size(l->dtype), &l->bytes) &&
            l->bytes < (int64_t)1 << 48;
    if (empty)
        l->count = l->bytes = 0;
    if (!fits || (!l->dense && !empty))
        return fits;
    l->dense = true;
    for (int64_t i = l->rank, run = 1; i-- > 0;) {
        l->stride[i] = run;
        run *= l->n[i] ? l->n[i] : 1;
    }
    return fits;
}

static bool
same_layout(const struct layout *a, const struct layout *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->align_log2 != b->align_log2 ||
        a->dense != b->dense)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i].v != b->dim[i].v || a->stride[i] != b->stride[i])
            return false;
    return true;
}

static uint64_t
layout_hash(const struct layout *l)
{
    uint64_t h =
        hash_mix(l->dtype, (uint64_t)l->rank << 16 | (uint64_t)l->align_log2 << 8 | l->dense);
    for (uint32_t i = 0; i < l->rank; i++)
        h = hash_mix(hash_mix(h, (uint64_t)l->dim[i].v), (uint64_t)l->stride[i]);
    return h;
}

uint32_t
layout_intern(fc_context *ctx, const struct layout *l)
{
    uint64_t h = layout_hash(l);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&ctx->layout_map, h, &at));)
        if (same_layout(&ctx->layouts.at[id], l))
            return id;
    uint32_t id = ctx->layouts.n;
    vec_push(&ctx->layouts, *l);
    map_add(&ctx->layout_map, h, id);
    return id;
}

uint32_t
layout_dense(fc_context *ctx, uint8_t dtype, const struct shape *s)
{
    struct layout l = {.dtype = dtype, .rank = s->rank, .align_log2 = ALIGN_MAX};
    memcpy(l.dim, s->dim, s->rank * sizeof *l.dim);
    return layout_fill(ctx, &l, NULL) ? layout_intern(ctx, &l) : 0;
}

void
layout_forget(fc_context *ctx)
{
    cache_clear(&ctx->types);
    memset(ctx->recent, 0, sizeof ctx->recent);
    cache_clear(&ctx->plans);
    map_clear(&ctx->layout_map);
    struct layout *old = ctx->layouts.at;
    ctx->layouts.at = NULL;
    ctx->layouts.n = ctx->layouts.cap = 0;
    vec_push(&ctx->layouts, ((struct layout){0}));
    for (uint32_t i = 0; i < ctx->chunks.n; i++)
        for (uint32_t k = 0; k < CHUNK; k++) {
            struct value *v = &ctx->chunks.at[i][k];
            if (v->state != VALUE_FREE)
                v->layout = layout_intern(ctx, &old[v->layout]);
        }
    xfree(old);
}

// ---- views

// Strides of a reshape, where runs of axes of l that lie evenly in memory are split or joined
// (as NumPy decides whether a reshape needs a copy).
static bool
reshape_strides(const struct layout *l, const struct layout *out, int64_t *stride)
{
    uint32_t i = 0, o = 0;
    while (i < l->rank || o < out->rank) {
        int64_t have = 1, want = 1;
        uint32_t i0 = i, o0 = o;
        if (i < l->rank)
            have = l->n[i++];
        if (o < out->rank)
            want = out->n[o++];
        while (have != want)
            if (have < want && i < l->rank)
                have *= l->n[i++];
            else if (o < out->rank)
                want *= out->n[o++];
            else
                return false;
        // Axes i0..i of l must be one run: the stride of each is the next one's times its extent.
        int64_t step = 0, reach = 0;
        bool first = true;
        for (uint32_t k = i; k-- > i0;) {
            if (l->n[k] == 1)
                continue;
            if (first)
                step = l->stride[k];
            else if (l->stride[k] != reach)
                return false;
            reach = l->stride[k] * l->n[k];
            first = false;
        }
        for (uint32_t k = o; k-- > o0;) {
            stride[k] = step;
            step *= out->n[k];
        }
    }
    return true;
}

static bool
slice_strides(const struct layout *l, const int64_t *attr, int64_t *stride, int64_t *offset)
{
    const int64_t *start = attr + 1, *step = attr + 2 * (l->rank + 1) + 1;
    for (uint32_t i = 0; i < l->rank; i++) {
        *offset += start[i] * l->stride[i];
        stride[i] = step[i] * l->stride[i];
    }
    return true;
}

static bool
flip_strides(const struct layout *l, const int64_t *attr, int64_t *stride, int64_t *offset)
{
    memcpy(stride, l->stride, l->rank * sizeof *stride);
    for (int64_t k = 0; k < attr[0]; k++) {
        int64_t axis = attr[1 + k] < 0 ? attr[1 + k] + l->rank : attr[1 + k];
        *offset += (l->n[axis] - 1) * l->stride[axis];
        stride[axis] = -stride[axis];
    }
    return true;
}

bool
layout_view(const struct layout *l, uint16_t op, const int64_t *attr, const struct layout *out,
            int64_t *stride, int64_t *offset)
{
    *offset = 0;
    if (!out->count || !l->count)
        return false;
    switch (op) {
    case OP_permute:
        for (uint32_t i = 0; i < out->rank; i++)
            stride[i] = l->stride[attr[1 + i] < 0 ? attr[1 + i] + l->rank : attr[1 + i]];
        return true;
    case OP_broadcast:
        for (uint32_t i = 0, skip = out->rank - l->rank; i < out->rank; i++)
            stride[i] = i < skip || l->n[i - skip] == 1 ? 0 : l->stride[i - skip];
        return true;
    case OP_reshape:
        return reshape_strides(l, out, stride);
    case OP_slice:
        return slice_strides(l, attr, stride, offset);
    case OP_flip:
        return flip_strides(l, attr, stride, offset);
    default:
        return false;
    }
}
