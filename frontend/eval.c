// eval.c: from pending values to kernels.
//
// Collect: the sub-graph below the wanted values is walked without recursion, each value after its
// operands, numbered in that order and written as words: leaves by layout number or literal bits,
// ops with attributes and operands' numbers, at the end the numbers of the outputs. The words are
// the plan key; they say all that compilation depends on (options and device are the context's,
// which owns the cache), and nothing of where the data is.
//
// Literals: the first time a structure is seen its literals are part of the code. When it comes
// again with other literals, a program that takes all of them as inputs is made, once.
//
// Run: inputs are held, results get fresh buffers, the lock is let go while kernels run. Then
// outputs become stored values and let go of their operands. Two threads that want one value at
// once both compute it; the second result is dropped.
#include "frontend/context.h"

#include "ir/base/check.h"
#include "ir/base/clock.h"

#include <stdio.h>
#include <string.h>

enum { WORD_OP = 1, WORD_LEAF = 2, WORD_LITERAL = 3, WORD_OUTPUTS = 4 };
enum { KEY_STRICT = 1, KEY_LITERALS_GIVEN = 2 };

static inline uint64_t
word(uint64_t tag, uint64_t content)
{
    return tag << 60 | content;
}

// ---- collecting

static void
number(fc_context *ctx, struct value *v)
{
    v->local = ctx->order.n;
    vec_push(&ctx->order, v);
}

static void
write_leaf(fc_context *ctx, struct value *v)
{
    number(ctx, v);
    if (v->state == VALUE_BUFFER) {
        vec_push(&ctx->key, word(WORD_LEAF, v->layout));
        return;
    }
    vec_push(&ctx->key, word(WORD_LITERAL, ctx->layouts.at[v->layout].dtype));
    vec_push(&ctx->literal_at, ctx->key.n);
    vec_push(&ctx->key, v->bits);
}

static void
write_op(fc_context *ctx, struct value *v)
{
    number(ctx, v);
    struct value *const *in = value_in(v);
    const int64_t *attr = value_attr(v);
    vec_reserve(&ctx->key, ctx->key.n + 1 + v->nattr + (v->nin + 1) / 2);
    uint64_t *k = ctx->key.at + ctx->key.n;
    *k++ = word(WORD_OP, v->op | (uint64_t)v->nattr << 16 | (uint64_t)v->nin << 28);
    for (uint32_t i = 0; i < v->nattr; i++)
        *k++ = (uint64_t)attr[i];
    for (uint32_t i = 0; i < v->nin; i += 2)
        *k++ = in[i]->local | (uint64_t)(i + 1 < v->nin ? in[i + 1]->local : 0) << 32;
    ctx->key.n = (uint32_t)(k - ctx->key.at);
}

static void
enter(fc_context *ctx, struct value *v)
{
    if (v->mark == ctx->mark)
        return;
    v->mark = ctx->mark;
    if (v->state == VALUE_PENDING)
        vec_push(&ctx->frames, ((struct frame){v, 0}));
    else
        write_leaf(ctx, v);
}

static void
walk(fc_context *ctx, struct value *root)
{
    enter(ctx, root);
    while (ctx->frames.n) {
        struct frame *f = &ctx->frames.at[ctx->frames.n - 1];
        if (f->next < f->value->nin) {
            enter(ctx, value_in(f->value)[f->next++]);
            continue;
        }
        write_op(ctx, f->value);
        ctx->frames.n--;
    }
}

static void
want(fc_context *ctx, struct value *v)
{
    if (v->wanted == ctx->mark)
        return;
    v->wanted = ctx->mark;
    vec_push(&ctx->roots, v);
}

static void
next_mark(fc_context *ctx)
{
    if (++ctx->mark)
        return;
    for (uint32_t i = 0; i < ctx->chunks.n; i++) // wrapped: old marks would lie
        for (uint32_t k = 0; k < CHUNK; k++)
            ctx->chunks.at[i][k].mark = ctx->chunks.at[i][k].wanted = 0;
    ctx->mark = 1;
}

// Fills in order, roots, key and literal_at.
static void
collect(fc_context *ctx, struct value *const *v, uint32_t n)
{
    next_mark(ctx);
    ctx->order.n = ctx->roots.n = ctx->key.n = ctx->literal_at.n = 0;
    vec_push(&ctx->key, ctx->strict ? KEY_STRICT : 0);
    for (uint32_t i = 0; i < n; i++)
        if (v[i]->state != VALUE_BUFFER) {
            want(ctx, v[i]);
            walk(ctx, v[i]);
        }
    for (uint32_t i = 0; i < ctx->order.n; i++) {
        struct value *u = ctx->order.at[i];
        if (u->state != VALUE_PENDING)
            continue;
        if (u->kept)
            want(ctx, u);
        if (u->wanted == ctx->mark)
            continue;
        ctx->recomputed += u->computed;
        u->computed = true;
    }
    vec_push(&ctx->key, word(WORD_OUTPUTS, ctx->roots.n));
    for (uint32_t i = 0; i < ctx->roots.n; i++)
        vec_push(&ctx->key, ctx->roots.at[i]->local);
}

// ---- finding or making the program

static ref
add_leaf(fc_context *ctx, struct graph *g, const struct value *v, bool literals_given)
{
    const struct layout *l = &ctx->layouts.at[v->layout];
    if (v->state == VALUE_LITERAL && !literals_given)
        return graph_literal(g, l->dtype, v->bits, 0);
    char name[16];
    snprintf(name, sizeof name, "x%u", g->inputs.n);
    struct shape s = {.rank = l->rank};
    memcpy(s.dim, l->dim, sizeof s.dim);
    uint8_t align = v->state == VALUE_LITERAL ? 3 : l->align_log2;
    ref r = graph_add_input(g, name, l->dtype, &s, l->dense ? NULL : l->stride, align);
    g->inputs.at[g->inputs.n - 1].by_value = v->state == VALUE_LITERAL;
    return r;
}

// The collected values as a graph of its own, over the context's symbols.
static struct graph *
build_graph(fc_context *ctx, bool literals_given, struct diag *d)
{
    struct graph *g = graph_new_over(ctx->eager ? "eager" : "lazy", ctx->sym);
    VEC(ref) made = {0}, in = {0};
    for (uint32_t i = 0; i < ctx->order.n && !d->code; i++) {
        const struct value *v = ctx->order.at[i];
        ref r;
        if (v->state == VALUE_PENDING) {
            in.n = 0;
            for (uint32_t k = 0; k < v->nin; k++)
                vec_push(&in, made.at[value_in(v)[k]->local]);
            uint32_t origin = graph_add_origin(g, v->op, v->file, v->line);
            r = graph_build(g, v->op, in.at, v->nin, value_attr(v), v->nattr, origin, d);
            CHECK(r.i || d->code, "%s gave neither a node nor an error", op_name(v->op));
        } else {
            r = add_leaf(ctx, g, v, literals_given);
        }
        vec_push(&made, r);
    }
    for (uint32_t i = 0; i < ctx->roots.n && !d->code; i++)
        graph_add_output(g, "", made.at[ctx->roots.at[i]->local]);
    vec_free(&made);
    vec_free(&in);
    if (!d->code)
        return g;
    graph_free(g);
    return NULL;
}

uint64_t
eval_key(fc_context *ctx, struct value *const *v, uint32_t n)
{
    collect(ctx, v, n);
    return cache_hash(&ctx->plans, ctx->key.at, ctx->key.n);
}

struct graph *
eval_graph(fc_context *ctx, struct value *const *v, uint32_t n, struct diag *d)
{
    collect(ctx, v, n);
    return build_graph(ctx, false, d);
}

static struct executable *
compile(fc_context *ctx, bool literals_given, struct diag *d)
{
    double start = clock_us();
    struct graph *g = build_graph(ctx, literals_given, d);
    if (!g)
        return NULL;
    struct compile_options o = {.strict = ctx->strict};
    struct plan *p = plan_build(g, &ctx->device->target, &o, d);
    graph_free(g);
    if (p && ctx->on_plan)
        ctx->on_plan(ctx->on_plan_user, p);
    struct executable *e = p ? executable_new(p, ctx->device, d) : NULL;
    ctx->plan_misses++;
    ctx->plan_us += clock_us() - start;
    return e;
}

static void
set_literals(fc_context *ctx, bool given)
{
    for (uint32_t i = 0, k = 0; i < ctx->order.n; i++)
        if (ctx->order.at[i]->state == VALUE_LITERAL)
            ctx->key.at[ctx->literal_at.at[k++]] = given ? 0 : ctx->order.at[i]->bits;
    ctx->key.at[0] ^= KEY_LITERALS_GIVEN;
}

static struct executable *
compile_into_cache(fc_context *ctx, uint64_t hash, bool literals_given, struct diag *d)
{
    struct executable *e = compile(ctx, literals_given, d);
    if (e)
        cache_add(&ctx->plans, hash, ctx->key.at, ctx->key.n)->program = e;
    return e;
}

// The program for what was collected. *literals_given: it takes literals as inputs.
static struct executable *
find_program(fc_context *ctx, bool *literals_given, struct diag *d)
{
    *literals_given = false;
    uint64_t hash = cache_hash(&ctx->plans, ctx->key.at, ctx->key.n);
    struct cache_entry *e = cache_find(&ctx->plans, hash, ctx->key.at, ctx->key.n);
    if (e) {
        ctx->plan_hits++;
        return e->program;
    }
    if (!ctx->literal_at.n)
        return compile_into_cache(ctx, hash, false, d);
    set_literals(ctx, true);
    uint64_t structure = cache_hash(&ctx->plans, ctx->key.at, ctx->key.n);
    e = cache_find(&ctx->plans, structure, ctx->key.at, ctx->key.n);
    *literals_given = e;
    if (e && e->program) {
        ctx->plan_hits++;
        return e->program;
    }
    if (e)
        return e->program = compile(ctx, true, d);
    cache_add(&ctx->plans, structure, ctx->key.at, ctx->key.n);
    set_literals(ctx, false);
    return compile_into_cache(ctx, hash, false, d);
}

// ---- running

struct job {
    struct executable *program;
    uint32_t nin, nout;
    // Per input: address, buffer held (NULL: a literal), literal. Per output: address, fresh
    // buffer, value it is for.
    void **in, **out;
    struct buffer **source, **result;
    uint64_t *literal;
    struct value **value;
    uint64_t *heap, space[72];
};

static uint64_t *
take_words(uint64_t **at, uint32_t n)
{
    uint64_t *p = *at;
    *at += n;
    return p;
}

static void
job_inputs(fc_context *ctx, struct job *j, bool literals_given)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < ctx->order.n; i++) {
        struct value *v = ctx->order.at[i];
        if (v->state == VALUE_BUFFER) {
            j->source[k] = buffer_ref(v->buffer);
            j->in[k++] = v->data;
        } else if (v->state == VALUE_LITERAL && literals_given) {
            j->source[k] = NULL;
            scalar_store(ctx->layouts.at[v->layout].dtype, &j->literal[k], v->bits);
            j->in[k] = &j->literal[k];
            k++;
        }
    }
}

static bool
job_outputs(fc_context *ctx, struct job *j, struct diag *d)
{
    for (; j->nout < ctx->roots.n; j->nout++) {
        struct value *v = ctx->roots.at[j->nout];
        int64_t bytes = ctx->layouts.at[v->layout].bytes;
        struct buffer *b = buffer_new(ctx, bytes);
        if (!b)
            return diag_set(d, DIAG_RESOURCE, "no memory for a result of %lld bytes",
                            (long long)bytes);
        j->result[j->nout] = b;
        j->out[j->nout] = b->data;
        j->value[j->nout] = value_ref(v);
    }
    return true;
}

static bool
job_begin(fc_context *ctx, struct job *j, struct executable *program, bool literals_given,
          struct diag *d)
{
    uint32_t nin = 0, nout = ctx->roots.n;
    for (uint32_t i = 0; i < ctx->order.n; i++) {
        uint8_t state = ctx->order.at[i]->state;
        nin += state == VALUE_BUFFER || (state == VALUE_LITERAL && literals_given);
    }
    size_t words = 3 * ((size_t)nin + nout);
    j->heap = words <= sizeof j->space / sizeof *j->space ? NULL : xmalloc(words * sizeof *j->heap);
    uint64_t *at = j->heap ? j->heap : j->space;
    j->program = executable_ref(program);
    j->nin = nin;
    j->nout = 0;
    j->in = (void **)take_words(&at, nin);
    j->source = (struct buffer **)take_words(&at, nin);
    j->literal = take_words(&at, nin);
    j->out = (void **)take_words(&at, nout);
    j->result = (struct buffer **)take_words(&at, nout);
    j->value = (struct value **)take_words(&at, nout);
    job_inputs(ctx, j, literals_given);
    return job_outputs(ctx, j, d);
}

static void
job_end(fc_context *ctx, struct job *j, bool done)
{
    for (uint32_t i = 0; i < j->nout; i++) {
        struct value *v = j->value[i];
        if (done && v->state != VALUE_BUFFER)
            value_store(ctx, v, j->result[i]);
        else
            buffer_unref(ctx, j->result[i]);
        value_unref(ctx, v);
    }
    for (uint32_t i = 0; i < j->nin; i++)
        if (j->source[i])
            buffer_unref(ctx, j->source[i]);
    if (done)
        ctx->bytes += executable_plan(j->program)->traffic_bytes;
    executable_unref(j->program);
    xfree(j->heap);
}

fc_status
eval_values(fc_context *ctx, struct value *const *v, uint32_t n, struct diag *d)
{
    collect(ctx, v, n);
    if (!ctx->roots.n)
        return FC_OK;
    bool literals_given;
    struct executable *program = find_program(ctx, &literals_given, d);
    if (!program)
        return d->code ? (fc_status)d->code : FC_INTERNAL;
    struct job j;
    bool done = job_begin(ctx, &j, program, literals_given, d);
    if (done) {
        ctx->running++;
        context_unlock(ctx);
        done = executable_run(j.program, j.in, j.out, d);
        context_lock(ctx);
        ctx->running--;
    }
    job_end(ctx, &j, done || d->code == DIAG_INDEX);
    return done ? FC_OK : d->code ? (fc_status)d->code : FC_INTERNAL;
}

// Computes what nothing pending reads and a handle names.
static void
flush(fc_context *ctx)
{
    ctx->sinks.n = 0;
    for (uint32_t i = 1; i < ctx->slots.n; i++) {
        struct value *v = ctx->slots.at[i].used ? ctx->slots.at[i].value : NULL;
        if (v && v->state == VALUE_PENDING && (v->kept || v->refs == v->slots))
            vec_push(&ctx->sinks, v);
    }
    struct diag d;
    diag_clear(&d);
    if (ctx->sinks.n && eval_values(ctx, ctx->sinks.at, ctx->sinks.n, &d) && !ctx->late.code)
        ctx->late = d;
    ctx->flushes++;
    ctx->pending_before = ctx->pending;
    ctx->held_before = ctx->held_bytes;
}

void
eval_count_op(fc_context *ctx)
{
    if (ctx->eager)
        return;
    // What outlived the last flush may have gone since.
    if (ctx->held_bytes < ctx->held_before)
        ctx->held_before = ctx->held_bytes;
    if (ctx->pending < ctx->pending_before)
        ctx->pending_before = ctx->pending;
    if (ctx->pending - ctx->pending_before >= ctx->flush_ops ||
        ctx->held_bytes - ctx->held_before > ctx->flush_bytes)
        flush(ctx);
}
