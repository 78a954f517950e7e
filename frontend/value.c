// value.c: values and buffers. Both are counted and recycled through free lists, so that building
// and computing in a loop allocates nothing from the system. Values stand in chunks and don't
// move. Letting go of a value walks its inputs through a work list: a chain of any length is freed
// without recursion.
#include "frontend/context.h"

#include "ir/base/check.h"

#include <string.h>

struct value *
value_new(fc_context *ctx, uint32_t layout)
{
    if (!ctx->free_value) {
        struct value *chunk = xcalloc(CHUNK, sizeof *chunk);
        vec_push(&ctx->chunks, chunk);
        for (uint32_t i = 0; i < CHUNK; i++) {
            chunk[i].next = ctx->free_value;
            ctx->free_value = &chunk[i];
        }
    }
    struct value *v = ctx->free_value;
    ctx->free_value = v->next;
    v->refs = 1;
    v->slots = v->kept = 0;
    v->layout = layout;
    v->mark = v->wanted = 0;
    v->line = 0;
    v->file = NULL;
    v->op = OP_none;
    v->state = VALUE_PENDING;
    v->weak = v->computed = v->held = false;
    v->nin = v->nattr = 0;
    ctx->pending++;
    return v;
}

struct value *
value_literal(fc_context *ctx, uint8_t dtype, uint64_t bits, bool weak)
{
    struct value *v = value_new(ctx, layout_dense(ctx, dtype, &(struct shape){0}));
    v->state = VALUE_LITERAL;
    v->op = OP_literal;
    v->bits = bits;
    v->weak = weak;
    ctx->pending--;
    return v;
}

struct value *
value_stored(fc_context *ctx, uint32_t layout, struct buffer *b, char *data)
{
    struct value *v = value_new(ctx, layout);
    v->state = VALUE_BUFFER;
    v->buffer = b;
    v->data = data;
    ctx->pending--;
    return v;
}

// Rows of words for values with many operands or attributes, recycled by size.
static int
row_class(uint32_t words)
{
    return words <= 16 ? 0 : 28 - __builtin_clz(words - 1);
}

static void *
row_take(fc_context *ctx, uint32_t words)
{
    int c = row_class(words);
    uint64_t *row = ctx->free_row[c];
    if (!row)
        return xmalloc(((size_t)16 << c) * sizeof *row);
    ctx->free_row[c] = (uint64_t *)(uintptr_t)row[0];
    return row;
}

static void
row_give(fc_context *ctx, void *taken, uint32_t words)
{
    int c = row_class(words);
    uint64_t *row = taken;
    row[0] = (uintptr_t)ctx->free_row[c];
    ctx->free_row[c] = row;
}

static void
rows_free(fc_context *ctx)
{
    for (int c = 0; c < ROW_CLASSES; c++)
        for (uint64_t *row = ctx->free_row[c], *next; row; row = next) {
            next = (uint64_t *)(uintptr_t)row[0];
            xfree(row);
        }
}

void
value_set_op(fc_context *ctx, struct value *v, uint16_t op, struct value *const *in, uint32_t nin,
             const int64_t *attr, uint32_t nattr)
{
    v->op = op;
    v->nin = nin;
    v->nattr = nattr;
    if (nin > 4)
        v->many = row_take(ctx, nin);
    if (nattr > ATTR_INLINE)
        v->attr_many = row_take(ctx, nattr);
    struct value **to = nin > 4 ? v->many : v->few;
    for (uint32_t i = 0; i < nin; i++)
        to[i] = in[i];
    if (nattr)
        memcpy(nattr > ATTR_INLINE ? v->attr_many : v->attr, attr, nattr * sizeof *attr);
}

// Lets go of what a value holds by its state. Inputs that nothing else needs join the work list.
static struct value *
clear(fc_context *ctx, struct value *v, struct value *work)
{
    if (v->state == VALUE_BUFFER) {
        if (v->held)
            ctx->held_bytes -= v->buffer->bytes;
        v->held = false;
        buffer_unref(ctx, v->buffer);
    } else if (v->state == VALUE_PENDING) {
        struct value *const *in = value_in(v);
        for (uint32_t i = 0; i < v->nin; i++)
            if (!--in[i]->refs) {
                in[i]->next = work;
                work = in[i];
            }
        if (v->nin > 4)
            row_give(ctx, v->many, v->nin);
        if (v->nattr > ATTR_INLINE)
            row_give(ctx, v->attr_many, v->nattr);
        v->nin = v->nattr = 0;
        ctx->pending--;
    }
    return work;
}

static void
drain(fc_context *ctx, struct value *work)
{
    while (work) {
        struct value *v = work;
        work = clear(ctx, v, v->next);
        v->state = VALUE_FREE;
        v->next = ctx->free_value;
        ctx->free_value = v;
    }
}

void
value_drop(fc_context *ctx, struct value *v)
{
    CHECK(!v->refs && v->state != VALUE_FREE, "a value let go too often");
    v->next = NULL;
    drain(ctx, v);
}

void
value_store(fc_context *ctx, struct value *v, struct buffer *b)
{
    struct value *work = clear(ctx, v, NULL);
    v->state = VALUE_BUFFER;
    v->buffer = b;
    v->data = b->data;
    value_check_held(ctx, v);
    drain(ctx, work);
}

void
value_check_held(fc_context *ctx, struct value *v)
{
    if (v->state != VALUE_BUFFER || v->slots || v->held)
        return;
    v->held = true;
    ctx->held_bytes += v->buffer->bytes;
}

void
values_free(fc_context *ctx)
{
    for (uint32_t i = 0; i < ctx->chunks.n; i++) {
        struct value *chunk = ctx->chunks.at[i];
        for (uint32_t k = 0; k < CHUNK; k++)
            CHECK(chunk[k].state == VALUE_FREE || ctx->running,
                  "a value outlives its context: %s, %u references", op_name(chunk[k].op),
                  chunk[k].refs);
        xfree(chunk);
    }
    vec_free(&ctx->chunks);
    rows_free(ctx);
    for (struct buffer *b = ctx->free_buffer, *next; b; b = next) {
        next = b->next;
        xfree(b);
    }
    ctx->free_buffer = NULL;
}

// ---- buffers

static struct buffer *
buffer_header(fc_context *ctx, struct buffer content)
{
    struct buffer *b = ctx->free_buffer;
    if (b)
        ctx->free_buffer = b->next;
    else
        b = xmalloc(sizeof *b);
    *b = content;
    b->refs = 1;
    return b;
}

struct buffer *
buffer_new(fc_context *ctx, int64_t bytes)
{
    char *data = ctx->device->ops->alloc(ctx->device, bytes ? bytes : 1);
    if (!data)
        return NULL;
    return buffer_header(ctx, (struct buffer){.data = data, .bytes = bytes});
}

struct buffer *
buffer_borrow(fc_context *ctx, void *data, int64_t bytes, void (*release)(void *), void *user)
{
    return buffer_header(
        ctx, (struct buffer){
                 .data = data, .bytes = bytes, .release = release, .user = user, .borrowed = true});
}

void
buffer_unref(fc_context *ctx, struct buffer *b)
{
    if (--b->refs)
        return;
    if (b->borrowed) {
        b->next = ctx->dead;
        ctx->dead = b;
        return;
    }
    ctx->device->ops->release(ctx->device, b->data, b->bytes ? b->bytes : 1);
    b->next = ctx->free_buffer;
    ctx->free_buffer = b;
}
