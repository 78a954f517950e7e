// context.h: what stands behind the public handles. Everything here is guarded by the context's
// one lock, which functions of this folder expect to be held unless they say otherwise; only
// kernels run outside it.
//
//   handle → slot → value → buffer
//
// A slot is what a handle names; its generation tells a stale handle. A value is a tensor: pending
// (an op over other values), a literal, or stored in a buffer. Values and buffers are counted. A
// value knows its layout by an interned number, so that the key of an op is a handful of words.
#ifndef FUSEC_FRONTEND_CONTEXT_H
#define FUSEC_FRONTEND_CONTEXT_H

#include "frontend/cache.h"
#include "fusec.h"
#include "ir/graph.h"
#include "runtime/device.h"
#include "runtime/fork.h"

#include <pthread.h>

// A handle: context 20 bits, generation 20, slot 24. Slot 0 stands for "invalid, of this context".
enum { SLOT_BITS = 24, GENERATION_BITS = 20, CONTEXT_SHIFT = SLOT_BITS + GENERATION_BITS };

struct layout { // interned; number 0 is a dummy
    uint8_t dtype, rank, align_log2;
    bool dense; // row-major
    sym dim[MAX_RANK];
    int64_t n[MAX_RANK];      // the dims' values
    int64_t stride[MAX_RANK]; // in elements
    int64_t count, bytes;     // of the elements, densely
};

struct buffer {
    uint32_t refs;
    char *data;
    int64_t bytes;
    bool borrowed;
    void (*release)(void *user); // borrowed: called at the end, unless NULL
    void *user;
    struct buffer *next; // of a free or dead list
};

enum value_state { VALUE_FREE, VALUE_PENDING, VALUE_LITERAL, VALUE_BUFFER };
enum { ATTR_INLINE = 8, ROW_CLASSES = 29 };

struct value {
    uint32_t refs;  // slots, values that read it, jobs
    uint32_t slots; // handles that name it
    uint32_t kept;  // of these, kept ones
    uint32_t layout;
    uint32_t mark, wanted; // eval.c: the last collection that saw it, that has it as an output
    uint32_t local;        // its place there
    uint32_t line;
    const char *file;
    uint16_t op;
    uint8_t state;
    bool weak;     // made of scalars of the host language only
    bool computed; // pending, and was computed as a temporary before
    bool held;     // a buffer that only pending work holds
    uint32_t nin, nattr;
    union {
        struct value *few[4]; // nin <= 4
        struct value **many;
    };
    struct value *next; // of the free list or a work list
    union {
        int64_t attr[ATTR_INLINE]; // nattr <= ATTR_INLINE
        int64_t *attr_many;
        uint64_t bits; // VALUE_LITERAL
        struct {       // VALUE_BUFFER
            struct buffer *buffer;
            char *data; // of element 0
        };
    };
};

struct slot {
    uint32_t generation;
    uint32_t prev, next; // ring of a scope's slots; 0: in no scope. Free: next free slot
    bool used, kept;
    struct value *value;
};

struct thread_state { // made when a thread has an error or opens a scope
    pthread_t thread;
    struct diag error;
    VEC(uint32_t) scopes; // a sentinel slot each
};

struct recent_type { // of an op without attributes: what it was last called with
    uint64_t two; // layouts of two operands
    uint32_t one; // and of a third; 0: no operand
    struct type type; // layout 0: not called yet
};

struct frame { // eval.c: a value whose operands are being walked
    struct value *value;
    uint32_t next;
};

struct dim_name { // the symbols that a name has stood for
    const char *name;
    int64_t value;
    sym sym;
};

struct fc_context {
    uint32_t id;
    struct fork_lock lock;
    struct device *device; // NULL: could not be opened
    bool eager, strict;
    int64_t flush_ops, flush_bytes;

    struct symtab *sym;
    VEC(struct dim_name) dims;
    VEC(struct layout) layouts;
    struct map layout_map;
    struct arena mem;

    VEC(struct slot) slots;
    uint32_t free_slot;
    VEC(struct value *) chunks; // of CHUNK values each
    struct value *free_value;
    uint64_t *free_row[ROW_CLASSES]; // rows of 16 words, 32, 64 …: the first word is the next one
    struct buffer *free_buffer;
    struct buffer *dead; // borrowed buffers whose release is called once the lock is free
    VEC(struct thread_state *) threads;
    struct diag late; // of work that no caller was waiting for: told at the next synchronising call

    struct cache types; // op, attributes, operands' layouts → result's layout
    struct recent_type recent[OP_COUNT]; // before types: a loop's ops come with the same operands
    struct cache plans; // a collected graph → executable

    uint64_t random_key, random_counter; // of the next fc_rand_state
    uint32_t running;    // jobs outside the lock (in a forked child some have no thread any more)
    int64_t pending;     // pending values
    int64_t pending_before; // the same after the last flush
    int64_t held_bytes;  // of buffers that only pending work holds
    int64_t held_before; // the same after the last flush

    // Scratch of one call.
    VEC(struct value *) operands, order, roots, sinks;
    VEC(struct frame) frames;
    VEC(uint64_t) key;
    VEC(uint32_t) literal_at; // places of literals' bits in the key
    uint32_t mark;

    int64_t plan_hits, plan_misses, bytes, recomputed, flushes;
    double plan_us;
    void (*on_plan)(void *user, const struct plan *p);
    void *on_plan_user;
};

// ---- context.c

// Both may be called with any handle. Without a context: NULL.
fc_context *context_of(fc_tensor t);
static inline fc_tensor
invalid_handle(const fc_context *ctx)
{
    return (fc_tensor){(uint64_t)ctx->id << CONTEXT_SHIFT};
}
static inline void
context_lock(fc_context *ctx)
{
    fork_lock_take(&ctx->lock);
}
void context_unlock_dead(fc_context *ctx); // with buffers in ctx->dead
// Also tells the owners of borrowed memory that was let go.
static inline void
context_unlock(fc_context *ctx)
{
    if (ctx->dead)
        context_unlock_dead(ctx);
    else
        fork_lock_drop(&ctx->lock);
}

// Hooks of the command line and of tests. fn sees each plan once, when it is made, under the lock.
void context_on_plan(fc_context *ctx, void (*fn)(void *user, const struct plan *p), void *user);

// ---- report.c

void report_if_asked(fc_context *ctx); // reports to standard error where FUSEC_EXPLAIN says so

// ---- slot.c

struct slot *slot_find(fc_context *ctx, fc_tensor t); // NULL: not a live handle of ctx
// A handle for a value, in the thread's open scope. Takes the caller's reference.
fc_tensor slot_new(fc_context *ctx, struct value *v);
void slot_free(fc_context *ctx, struct slot *s);

// ---- error.c

struct thread_state *thread_find(fc_context *ctx, bool make);
// Records the thread's first error: "FILE:LINE: words". Returns code.
fc_status context_fail(fc_context *ctx, const char *file, int line, fc_status code, const char *fmt,
                       ...) __attribute__((format(printf, 5, 6)));
// For calls on a handle that names nothing: the reason why it does not, if this thread knows one.
fc_status context_fail_handle(fc_context *ctx, const char *what);
fc_status context_fail_device(fc_context *ctx); // for calls on a context without a device

// ---- value.c

// One reference, VALUE_PENDING, no inputs.
struct value *value_new(fc_context *ctx, uint32_t layout);
struct value *value_literal(fc_context *ctx, uint8_t dtype, uint64_t bits, bool weak);
struct value *value_stored(fc_context *ctx, uint32_t layout, struct buffer *b /* taken */,
                           char *data);
// Takes the caller's references to in.
void value_set_op(fc_context *ctx, struct value *v, uint16_t op, struct value *const *in,
                  uint32_t nin, const int64_t *attr, uint32_t nattr);
// A pending value becomes a stored one and lets go of its inputs.
void value_store(fc_context *ctx, struct value *v, struct buffer *b /* taken */);
void value_drop(fc_context *ctx, struct value *v);       // iterative at any depth
static inline void
value_unref(fc_context *ctx, struct value *v)
{
    if (v->refs-- <= 1)
        value_drop(ctx, v);
}
void value_check_held(fc_context *ctx, struct value *v); // after its last slot went
static inline struct value *
value_ref(struct value *v)
{
    v->refs++;
    return v;
}
static inline struct value *const *
value_in(const struct value *v)
{
    return v->nin > 4 ? v->many : v->few;
}
static inline const int64_t *
value_attr(const struct value *v)
{
    return v->nattr > ATTR_INLINE ? v->attr_many : v->attr;
}
void values_free(fc_context *ctx);
enum { CHUNK = 256 };

struct buffer *buffer_new(fc_context *ctx, int64_t bytes); // one reference; NULL: no memory
struct buffer *buffer_borrow(fc_context *ctx, void *data, int64_t bytes, void (*release)(void *),
                             void *user);
static inline struct buffer *
buffer_ref(struct buffer *b)
{
    b->refs++;
    return b;
}
void buffer_unref(fc_context *ctx, struct buffer *b);

// ---- layout.c

// Fills in n, count, bytes, dense (and strides when stride is NULL). False: too large.
bool layout_fill(const fc_context *ctx, struct layout *l, const int64_t *stride);
uint32_t layout_intern(fc_context *ctx, const struct layout *l);
uint32_t layout_dense(fc_context *ctx, uint8_t dtype, const struct shape *s); // 0: too large
uint8_t layout_align(const void *address);
// Once very many have been interned, forgets those that no value has. Only between calls.
enum { LAYOUTS_TIDY_AT = 1 << 16 };
void layout_forget(fc_context *ctx);
static inline void
layout_tidy(fc_context *ctx)
{
    if (ctx->layouts.n >= LAYOUTS_TIDY_AT)
        layout_forget(ctx);
}
// The layout of a view of l, and its first element relative to l's. False: needs a copy.
bool layout_view(const struct layout *l, uint16_t op, const int64_t *attr, const struct layout *out,
                 int64_t *stride, int64_t *offset);

// ---- dim.c

// A public dim as a sym of ctx; false: invalid or of another context.
bool dim_to_sym(const fc_context *ctx, fc_dim d, sym *out);
fc_dim dim_from_sym(const fc_context *ctx, sym s);

// ---- eval.c

// Computes values (pending or literal ones of the list, and kept ones on the way). Lets the lock go
// while kernels run. words, when not NULL, has what failed; index errors leave results in place.
fc_status eval_values(fc_context *ctx, struct value *const *v, uint32_t n, struct diag *d);
// For tools: the hash of the key that eval_values would look up, and the graph it would compile.
uint64_t eval_key(fc_context *ctx, struct value *const *v, uint32_t n);
struct graph *eval_graph(fc_context *ctx, struct value *const *v, uint32_t n, struct diag *d);
// After each new op: past the limits, computes what nothing pending reads and a handle names.
void eval_count_op(fc_context *ctx);

#endif
