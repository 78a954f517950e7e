// tensor.c: tensors from and to host memory, and what is known of a tensor.
//
// Whatever waits for the device or copies much lets the context's lock go meanwhile, and so holds a
// reference to all that it will touch afterwards. Errors of work that nobody waited for (flushes,
// eager ops with an index out of range) are told by the first call here that waits.
#include "frontend/call.h"

#include "ir/base/check.h"

#include <stdio.h>
#include <string.h>

// ---- from host memory

// The layout of a caller's array. False: an error is recorded.
static bool
host_layout(fc_context *ctx, const char *file, int line, const char *what, fc_dtype dtype,
            const fc_dim *shape, int rank, const int64_t *strides, struct layout *l)
{
    if (dtype <= FC_DTYPE_NONE || (int)dtype >= DT_COUNT) {
        context_fail(ctx, file, line, FC_INVALID, "%s: %d is no dtype", what, (int)dtype);
        return false;
    }
    if (rank < 0 || rank > MAX_RANK || (rank && !shape)) {
        context_fail(ctx, file, line, FC_INVALID,
                     "%s: a rank from 0 to %d and its dims are needed, got rank %d", what, MAX_RANK,
                     rank);
        return false;
    }
    *l = (struct layout){.dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .align_log2 = 6};
    for (int i = 0; i < rank; i++)
        if (!dim_to_sym(ctx, shape[i], &l->dim[i]) || sym_hint(ctx->sym, l->dim[i]) < 0) {
            context_fail(ctx, file, line, FC_INVALID,
                         "%s: dim %d is negative, invalid or of another context", what, i);
            return false;
        }
    if (layout_fill(ctx, l, strides))
        return true;
    context_fail(ctx, file, line, FC_INVALID, "%s: the shape is too large to address", what);
    return false;
}

static fc_tensor
copy_from_host(fc_context *ctx, const char *file, int line, const struct layout *l,
               const void *data)
{
    if (!data && l->count) {
        context_fail(ctx, file, line, FC_INVALID, "fc_from_host: data is NULL");
        return invalid_handle(ctx);
    }
    uint32_t layout = layout_intern(ctx, l);
    struct value *v = NULL;
    struct buffer *b = buffer_new(ctx, l->bytes);
    if (b) // before the lock goes: the value keeps the layout known
        v = value_stored(ctx, layout, b, b->data);
    struct diag d;
    diag_clear(&d);
    bool done = b;
    if (b && l->bytes) {
        context_unlock(ctx);
        done = ctx->device->ops->upload(ctx->device, b->data, data, l->bytes, &d);
        context_lock(ctx);
    }
    if (done)
        return slot_new(ctx, v);
    if (v)
        value_unref(ctx, v);
    context_fail(ctx, file, line, d.code ? (fc_status)d.code : FC_RESOURCE, "fc_from_host: %s",
                 d.code ? d.text : "no memory for the copy");
    return invalid_handle(ctx);
}

fc_tensor
fc_from_host_at(const char *file, int line, fc_context *ctx, fc_dtype dtype, const void *data,
                const fc_dim *shape, int rank)
{
    if (!ctx)
        return (fc_tensor){0};
    context_lock(ctx);
    layout_tidy(ctx);
    fc_tensor t = invalid_handle(ctx);
    struct layout l;
    if (!ctx->device)
        context_fail_device(ctx);
    else if (host_layout(ctx, file, line, "fc_from_host", dtype, shape, rank, NULL, &l))
        t = copy_from_host(ctx, file, line, &l, data);
    context_unlock(ctx);
    return t;
}

// Offsets of all elements stay within what addresses can hold.
static bool
strides_in_range(const struct layout *l)
{
    int64_t reach = 0;
    for (uint32_t i = 0; i < l->rank && l->count; i++) {
        int64_t s = l->stride[i], step;
        if (s <= -((int64_t)1 << 48) || s >= (int64_t)1 << 48 ||
            __builtin_mul_overflow(s < 0 ? -s : s, l->n[i] - 1, &step) ||
            __builtin_add_overflow(reach, step, &reach) || reach >= (int64_t)1 << 48)
            return false;
    }
    return true;
}

static fc_tensor
borrow(fc_context *ctx, const char *file, int line, struct layout *l, const void *data,
       void (*release)(void *), void *user)
{
    l->align_log2 = layout_align(data);
    if (!data && l->count)
        context_fail(ctx, file, line, FC_INVALID, "fc_borrow: data is NULL");
    else if (l->count && (uintptr_t)data % dtype_size(l->dtype))
        context_fail(ctx, file, line, FC_INVALID, "fc_borrow: data is not aligned for %s",
                     dtype_name(l->dtype));
    else if (!strides_in_range(l))
        context_fail(ctx, file, line, FC_INVALID, "fc_borrow: strides reach beyond memory");
    else {
        void *start = (void *)(uintptr_t)data; // only read
        struct buffer *b = buffer_borrow(ctx, start, l->bytes, release, user);
        return slot_new(ctx, value_stored(ctx, layout_intern(ctx, l), b, start));
    }
    return invalid_handle(ctx);
}

fc_tensor
fc_borrow_at(const char *file, int line, fc_context *ctx, fc_dtype dtype, const void *data,
             const fc_dim *shape, int rank, const int64_t *strides, void (*release)(void *user),
             void *user)
{
    fc_tensor t = {0};
    uint64_t invalid = 0;
    if (ctx) {
        context_lock(ctx);
        layout_tidy(ctx);
        struct layout l;
        t = invalid_handle(ctx);
        invalid = t.id;
        if (!ctx->device)
            context_fail_device(ctx);
        else if (host_layout(ctx, file, line, "fc_borrow", dtype, shape, rank, strides, &l))
            t = borrow(ctx, file, line, &l, data, release, user);
        context_unlock(ctx);
    }
    if (t.id == invalid && release)
        release(user);
    return t;
}

fc_tensor
fc_scalar_at(const char *file, int line, fc_context *ctx, fc_num value)
{
    (void)file, (void)line;
    if (!ctx)
        return (fc_tensor){0};
    uint64_t bits;
    uint8_t d = number_dtype(value);
    number_bits(d, value, &bits);
    context_lock(ctx);
    fc_tensor t = slot_new(ctx, value_literal(ctx, d, bits, true));
    context_unlock(ctx);
    return t;
}

fc_tensor
fc_full_at(const char *file, int line, fc_context *ctx, fc_dtype dtype, fc_num value,
           const fc_dim *shape, int rank)
{
    if (!ctx)
        return (fc_tensor){0};
    struct call c;
    call_begin(&c, OP_broadcast, file, line);
    c.name = "full";
    call_context(&c, ctx);
    call_number(&c, value);
    if (dtype <= FC_DTYPE_NONE || (int)dtype >= DT_COUNT)
        c.wrong = "no such dtype";
    else
        c.number_dtype = (uint8_t)dtype;
    call_dims(&c, shape, rank);
    return call_end(&c);
}

// ---- what is known

// The layout of a live handle, copied; false: none.
static bool
layout_of(fc_tensor t, struct layout *l)
{
    fc_context *ctx = context_of(t);
    if (!ctx)
        return false;
    context_lock(ctx);
    struct slot *s = slot_find(ctx, t);
    if (s)
        *l = ctx->layouts.at[s->value->layout];
    else
        context_fail_handle(ctx, "a question about a tensor");
    context_unlock(ctx);
    return s;
}

fc_dtype
fc_dtype_of(fc_tensor t)
{
    struct layout l;
    return layout_of(t, &l) ? (fc_dtype)l.dtype : FC_DTYPE_NONE;
}

int
fc_rank(fc_tensor t)
{
    struct layout l;
    return layout_of(t, &l) ? l.rank : -1;
}

int64_t
fc_count(fc_tensor t)
{
    struct layout l;
    return layout_of(t, &l) ? l.count : -1;
}

fc_dim
fc_shape(fc_tensor t, int axis)
{
    struct layout l;
    fc_context *ctx = context_of(t);
    if (!layout_of(t, &l) || axis < -l.rank || axis >= l.rank)
        return (fc_dim){INT64_MIN};
    return dim_from_sym(ctx, l.dim[axis < 0 ? axis + l.rank : axis]);
}

// ---- computing and reading

// Errors of work that nobody waited for come out at the first call that waits.
static fc_status
take_late(fc_context *ctx, fc_status status)
{
    if (!ctx->late.code)
        return status;
    fc_status late = (fc_status)ctx->late.code;
    context_fail(ctx, NULL, 0, late, "%s", ctx->late.text);
    diag_clear(&ctx->late);
    return status ? status : late;
}

static fc_status
force(fc_context *ctx, struct value *const *v, uint32_t n, const char *what)
{
    struct diag d;
    diag_clear(&d);
    fc_status status = eval_values(ctx, v, n, &d);
    if (status)
        context_fail(ctx, NULL, 0, status, "%s: %s", what, d.text);
    return take_late(ctx, status);
}

fc_status
fc_eval(fc_context *ctx, const fc_tensor *tensors, int n)
{
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    fc_status status = FC_OK;
    if (n < 0 || (n && !tensors))
        status = context_fail(ctx, NULL, 0, FC_INVALID, "fc_eval: the list of %d tensors%s", n,
                              n < 0 ? " has a negative length" : " is NULL");
    struct value *few[16], **v = few;
    uint32_t found = 0;
    if (!status && n > 16)
        v = xmalloc((size_t)n * sizeof *v);
    for (int i = 0; i < n && !status; i++) {
        struct slot *s = slot_find(ctx, tensors[i]);
        if (s)
            v[found++] = value_ref(s->value);
        else
            status = context_fail_handle(ctx, "fc_eval");
    }
    if (!status)
        status = force(ctx, v, found, "fc_eval");
    for (uint32_t i = 0; i < found; i++)
        value_unref(ctx, v[i]);
    if (v != few)
        xfree(v);
    context_unlock(ctx);
    return status;
}

// A value with the same elements, stored row-major: v itself, computed if need be, or a copy. An
// index out of range leaves a value and a status.
static struct value *
dense_value(fc_context *ctx, struct value *v, const char *what, fc_status *status)
{
    *status = force(ctx, &v, 1, what);
    if (*status && *status != FC_INDEX)
        return NULL;
    const struct layout *l = &ctx->layouts.at[v->layout];
    if (l->dense)
        return value_ref(v);
    int64_t attr[1 + MAX_RANK] = {l->rank}; // a reshape to the same shape: the input, copied
    for (uint32_t i = 0; i < l->rank; i++)
        attr[1 + i] = l->dim[i].v;
    struct shape s = {.rank = l->rank};
    memcpy(s.dim, l->dim, sizeof s.dim);
    struct value *copy = value_new(ctx, layout_dense(ctx, l->dtype, &s));
    struct value *in = value_ref(v);
    value_set_op(ctx, copy, OP_reshape, &in, 1, attr, 1u + s.rank);
    fc_status copied = force(ctx, &copy, 1, what);
    if (!copied)
        return copy;
    *status = copied;
    value_unref(ctx, copy);
    return NULL;
}

enum { LAYOUT_WORDS = 16 + MAX_RANK * 21 };
static const char *
layout_words(const struct layout *l, char *words) // f32[3,4]
{
    int at = snprintf(words, LAYOUT_WORDS, "%s[", dtype_name(l->dtype));
    for (uint32_t i = 0; i < l->rank; i++)
        at += snprintf(words + at, LAYOUT_WORDS - (size_t)at, "%s%lld", i ? "," : "",
                       (long long)l->n[i]);
    snprintf(words + at, LAYOUT_WORDS - (size_t)at, "]");
    return words;
}

// Copies a handle's elements to host memory, when it has as many bytes as expected.
static fc_status
read_bytes(fc_tensor t, void *dst, size_t bytes, const char *what, bool one, uint8_t *dtype)
{
    fc_context *ctx = context_of(t);
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    struct slot *s = slot_find(ctx, t);
    if (!s) {
        fc_status status = context_fail_handle(ctx, what);
        context_unlock(ctx);
        return status;
    }
    fc_status status = FC_OK;
    char words[LAYOUT_WORDS];
    struct value *v = value_ref(s->value), *stored = NULL;
    struct layout l = ctx->layouts.at[v->layout];
    if (one && l.count != 1)
        status = context_fail(ctx, NULL, 0, FC_INVALID, "%s: %s has %lld elements, not one", what,
                              layout_words(&l, words), (long long)l.count);
    else if (!one && (bytes != (size_t)l.bytes || (bytes && !dst)))
        status =
            context_fail(ctx, NULL, 0, FC_INVALID, "%s: %s has %lld bytes, dst %s%zu", what,
                         layout_words(&l, words), (long long)l.bytes,
                         dst || !bytes ? "" : "is NULL with ", bytes);
    else
        stored = dense_value(ctx, v, what, &status);
    if (stored && l.bytes) {
        struct diag d;
        diag_clear(&d);
        context_unlock(ctx);
        bool done = ctx->device->ops->download(ctx->device, dst, stored->data, l.bytes, &d);
        context_lock(ctx);
        if (!done)
            status = context_fail(ctx, NULL, 0, d.code ? (fc_status)d.code : FC_INTERNAL, "%s: %s",
                                  what, d.text);
    }
    if (stored)
        value_unref(ctx, stored);
    value_unref(ctx, v);
    if (dtype)
        *dtype = l.dtype;
    context_unlock(ctx);
    return status;
}

fc_status
fc_read(fc_tensor t, void *dst, size_t bytes)
{
    return read_bytes(t, dst, bytes, "fc_read", false, NULL);
}

// A NULL where the answer should go.
static fc_status
no_place(fc_tensor t, const char *what)
{
    fc_context *ctx = context_of(t);
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    fc_status status = context_fail(ctx, NULL, 0, FC_INVALID, "%s: out is NULL", what);
    context_unlock(ctx);
    return status;
}

static fc_status
read_item(fc_tensor t, const char *what, uint8_t *dtype, uint64_t *bits)
{
    uint64_t element = 0;
    fc_status status = read_bytes(t, &element, 0, what, true, dtype);
    if (!status || status == FC_INDEX)
        *bits = scalar_load(*dtype, &element);
    return status;
}

fc_status
fc_item(fc_tensor t, double *out)
{
    uint8_t dtype;
    uint64_t bits;
    if (!out)
        return no_place(t, "fc_item");
    fc_status status = read_item(t, "fc_item", &dtype, &bits);
    if (!status || status == FC_INDEX)
        *out = scalar_to_double(dtype, bits);
    return status;
}

fc_status
fc_item_int(fc_tensor t, int64_t *out)
{
    uint8_t dtype;
    uint64_t bits;
    if (!out)
        return no_place(t, "fc_item_int");
    fc_status status = read_item(t, "fc_item_int", &dtype, &bits);
    if (!status || status == FC_INDEX)
        *out = scalar_to_int(dtype, bits);
    return status;
}

fc_status
fc_data(fc_tensor t, const void **out)
{
    fc_context *ctx = context_of(t);
    if (!out)
        return no_place(t, "fc_data");
    *out = NULL;
    if (!ctx)
        return FC_HANDLE;
    context_lock(ctx);
    struct slot *s = slot_find(ctx, t);
    fc_status status = FC_OK;
    if (!s)
        status = context_fail_handle(ctx, "fc_data");
    else if (ctx->device->target.kind != DEVICE_CPU)
        status = context_fail(ctx, NULL, 0, FC_UNSUPPORTED, "fc_data: %s is not host memory",
                              ctx->device->name);
    else {
        struct value *v = value_ref(s->value), *stored = dense_value(ctx, v, "fc_data", &status);
        if (stored && stored != v) { // from now on the value is its row-major copy
            v->layout = stored->layout;
            value_store(ctx, v, buffer_ref(stored->buffer));
        }
        if (stored)
            *out = v->data;
        if (stored)
            value_unref(ctx, stored);
        value_unref(ctx, v);
    }
    context_unlock(ctx);
    return status;
}
