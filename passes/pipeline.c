// pipeline.c: plan_build: the straight list of passes, then groups of nodes become launches over
// buffers, with the boundaries between them and the plan's figures.
//
// Until buffers are numbered, a kernel buffer holds in span_lo the number of its hero (inputs count
// on from the heroes), and then in span_hi its elements; set_spans puts in what kernel.h says.
//
// Fusing may need more memory at once than eager execution: a value lives longer when its readers
// are one late kernel. Then the graph is fused again, more carefully, until the peak is no higher.
#include "passes/pipeline.h"

#include "ir/base/check.h"
#include "ir/base/clock.h"
#include "ir/base/str.h"
#include "ir/text.h"
#include "passes/chain.h"
#include "passes/fuse.h"
#include "passes/pass.h"

enum {
    LEVELS = 4,            // of struct fuser
    PEAK_SLACK = 64 << 10, // bytes that do not make a difference; 64 an array are alignment beside
};

static const struct {
    const char *name;
    pass_fn *run;
} pass_list[] = {
    {"canon", pass_canon},
    {"rounding", pass_rounding},
    {"decompose", pass_decompose},
    {"canon", pass_canon},
};
enum { PASSES = sizeof pass_list / sizeof *pass_list };

static void
verify(const struct graph *g, const char *pass)
{
#ifdef FUSEC_VERIFY
    struct diag d = {0};
    CHECK(graph_verify(g, &d), "after pass %s: %s", pass, d.text);
#else
    (void)g;
    (void)pass;
#endif
}

static struct graph *
run_passes(const struct graph *raw, const struct compile_options *o)
{
    struct graph *g = NULL;
    for (uint32_t i = 0; i < PASSES; i++) {
        double start = clock_us();
        struct graph *next = pass_list[i].run(g ? g : raw, o);
        // Symbols belong to the raw graph: every later graph borrows them.
        graph_free(g);
        g = next;
        verify(g, pass_list[i].name);
        if (o->after_pass)
            o->after_pass(o->user, pass_list[i].name, g, clock_us() - start);
    }
    return g;
}

// ---- from groups to launches

static void
add_buffers(struct fuser *f, struct plan *p)
{
    for (uint32_t i = 0; i < f->g->inputs.n; i++) {
        ref r = f->g->inputs.at[i].node;
        struct plan_buffer b = {.place = PLACE_INPUT, .dtype = graph_node(f->g, r)->dtype,
                                .index = i, .bytes = graph_bytes(f->g, r)};
        vec_push(&p->buffer, b);
    }
    for (uint32_t i = 1; i < f->hero.n; i++) {
        struct hero *h = &f->hero.at[i];
        if (!hero_is_stored(f, i))
            continue;
        h->buffer = p->buffer.n;
        struct plan_buffer b = {.place = h->is_output ? PLACE_OUTPUT : PLACE_ARENA,
                                .dtype = graph_node(f->g, h->node)->dtype, .index = h->output,
                                .bytes = graph_bytes(f->g, h->node), .first = UINT32_MAX};
        vec_push(&p->buffer, b);
    }
}

// Groups in an order in which producers come first (depth first over what each reads, own stack).
static uint32_t *
launch_order(struct fuser *f, uint32_t *n)
{
    uint32_t *order = xmalloc((f->group.n + 1) * sizeof *order);
    uint32_t *next = xcalloc(f->group.n + 1, sizeof *next); // 0: not seen; else 1 + next use
    VEC(uint32_t) stack = {0};
    *n = 0;
    for (uint32_t root = 0; root < f->group.n; root++) {
        if (f->group.at[root].dead || next[root])
            continue;
        vec_push(&stack, root);
        next[root] = 1;
        while (stack.n) {
            uint32_t g = stack.at[stack.n - 1];
            const struct group *gr = &f->group.at[g];
            if (next[g] > gr->use.n) {
                order[(*n)++] = g;
                stack.n--;
                continue;
            }
            const struct use *u = &gr->use.at[next[g]++ - 1];
            uint32_t from = u->hero ? f->hero.at[u->hero].group : g;
            if (u->hero && !f->group.at[from].dead && !next[from]) {
                next[from] = 1;
                vec_push(&stack, from);
            }
        }
    }
    vec_free(&stack);
    xfree(next);
    return order;
}

static uint32_t
plan_buffer_of(const struct fuser *f, int64_t id)
{
    return id >= (int64_t)f->hero.n ? (uint32_t)(id - f->hero.n) : f->hero.at[id].buffer;
}

// All elements of a buffer, as a gather may reach them.
static void
widen_to_buffer(const struct plan *p, const struct plan_buffer *pb, struct kernel_buffer *b)
{
    int64_t lo = 0, hi = pb->bytes / dtype_size(pb->dtype) - 1;
    if (pb->place == PLACE_INPUT) {
        const struct graph_input *in = &p->canonical->inputs.at[pb->index];
        const struct shape *s = graph_shape(p->canonical, in->node);
        hi = 0;
        for (uint32_t i = 0; i < s->rank; i++) {
            int64_t reach = in->stride[i] * (dim_of(p->canonical, s, i) - 1);
            *(reach < 0 ? &lo : &hi) += reach;
        }
    }
    b->span_lo = lo < b->span_lo ? lo : b->span_lo;
    b->span_hi = hi > b->span_hi ? hi : b->span_hi;
}

static void
set_spans(const struct plan *p, const struct launch *l, struct kernel *k)
{
    for (uint32_t i = 0; i < k->buffers.n; i++)
        k->buffers.at[i].span_lo = k->buffers.at[i].span_hi = 0;
    for (uint32_t i = 0; i < k->access.n; i++) {
        const struct access *a = &k->access.at[i];
        struct kernel_buffer *b = &k->buffers.at[a->buffer];
        int64_t lo = a->base, hi = a->base;
        for (uint32_t x = 0; x < k->naxis; x++) {
            int64_t reach = a->stride[x] * (k->axis[x].extent - 1);
            *(reach < 0 ? &lo : &hi) += reach;
        }
        b->span_lo = lo < b->span_lo ? lo : b->span_lo;
        b->span_hi = hi > b->span_hi ? hi : b->span_hi;
    }
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_load && k->inst.at[i].a) {
            uint32_t buffer = k->access.at[k->inst.at[i].aux].buffer;
            widen_to_buffer(p, &p->buffer.at[l->buffer[buffer]], &k->buffers.at[buffer]);
        }
}

static void
add_launch(struct fuser *f, struct plan *p, uint32_t group)
{
    struct launch l = {0};
    uint8_t reason;
    bool ok = group_kernel(f, &f->group.at[group], &l.kernel, &l.sched, &reason);
    CHECK(ok, "a group that was built once cannot be built again: %s", reason_name[reason]);
    struct kernel *k = &l.kernel;
    l.buffer = arena_alloc(&p->mem, (k->buffers.n + 1) * sizeof *l.buffer);
    l.buffer_bytes = arena_alloc(&p->mem, (k->buffers.n + 1) * sizeof *l.buffer_bytes);
    uint32_t number = p->launch.n;
    for (uint32_t i = 0; i < k->buffers.n; i++) {
        l.buffer[i] = plan_buffer_of(f, k->buffers.at[i].span_lo);
        struct plan_buffer *b = &p->buffer.at[l.buffer[i]];
        k->buffers.at[i].span_hi = b->bytes / dtype_size(b->dtype);
        b->first = number < b->first ? number : b->first;
        b->last = number > b->last ? number : b->last;
    }
    launch_traffic(&l, f->target);
    set_spans(p, &l, k);
    launch_name(f->g, k, &l, number, &p->mem);
    f->work += l.nop;
    vec_push(&p->launch, l);
}

// The last reason why two groups, as they are now, were not merged.
static uint8_t
refusal_between(const struct fuser *f, const struct map *index, uint32_t from, uint32_t to,
                uint8_t otherwise)
{
    uint32_t at = 0, newest = 0;
    for (uint32_t id; (id = map_next(index, pair_key(from, to), &at));)
        newest = id > newest ? id : newest;
    return newest ? f->refused.at[newest - 1].reason : otherwise;
}

static void
add_boundaries(struct fuser *f, struct plan *p, const uint32_t *launch_of)
{
    struct map index = {0};
    for (uint32_t x = 0; x < f->refused.n; x++) {
        const struct refusal *q = &f->refused.at[x];
        map_add(&index, pair_key(f->hero.at[q->from].group, f->hero.at[q->to].group), x + 1);
    }
    uint8_t otherwise = f->level ? REASON_peak : REASON_none;
    for (uint32_t i = 1; i < f->hero.n; i++) {
        const struct hero *h = &f->hero.at[i];
        uint32_t seen = UINT32_MAX;
        for (uint32_t r = 0; r < h->readers.n; r++) {
            uint32_t to = h->readers.at[r];
            if (f->group.at[to].dead || to == h->group || to == seen || f->group.at[h->group].dead)
                continue;
            seen = to;
            uint8_t reason = h->reason ? h->reason
                                       : refusal_between(f, &index, h->group, to, otherwise);
            struct boundary b = {reason, launch_of[h->group], launch_of[to],
                                 2 * graph_bytes(f->g, h->node), NULL};
            b.node = arena_printf(&p->mem, "%s@%u", op_name(graph_node(f->g, h->node)->op),
                                  h->node.i);
            vec_push(&p->boundary, b);
        }
    }
    map_free(&index);
}

static void
plan_figures(struct plan *p)
{
    int64_t *input = xcalloc(p->canonical->inputs.n + 1, sizeof *input), outputs = 0;
    p->traffic_bytes = p->traffic_elements = 0;
    for (uint32_t i = 0; i < p->launch.n; i++) {
        const struct launch *l = &p->launch.at[i];
        p->traffic_bytes += l->bytes_read + l->bytes_written;
        p->traffic_elements += l->elements;
        for (uint32_t b = 0; b < l->kernel.buffers.n; b++)
            if (p->buffer.at[l->buffer[b]].place == PLACE_INPUT)
                input[p->buffer.at[l->buffer[b]].index] += l->buffer_bytes[b];
    }
    for (uint32_t i = 0; i < p->buffer.n; i++)
        if (p->buffer.at[i].place == PLACE_OUTPUT)
            outputs += p->buffer.at[i].bytes;
    p->minimum_bytes = outputs;
    for (uint32_t i = 0; i < p->canonical->inputs.n; i++) {
        int64_t whole = p->buffer.at[i].bytes;
        p->minimum_bytes += input[i] < whole ? input[i] : whole;
    }
    p->peak_bytes = p->arena_bytes + outputs;
    xfree(input);
}

static void
make_launches(struct fuser *f, struct plan *p)
{
    uint32_t n, *order = launch_order(f, &n);
    uint32_t *launch_of = xcalloc(f->group.n + 1, sizeof *launch_of);
    add_buffers(f, p);
    for (uint32_t i = 0; i < n; i++) {
        launch_of[order[i]] = i;
        add_launch(f, p, order[i]);
    }
    add_boundaries(f, p, launch_of);
    xfree(order);
    xfree(launch_of);
}

static void
drop_launches(struct plan *p)
{
    for (uint32_t i = 0; i < p->launch.n; i++)
        kernel_free_body(&p->launch.at[i].kernel);
    p->launch.n = p->buffer.n = p->boundary.n = p->chain.n = 0;
}

static void
fuse_at_level(struct plan *p, const struct target *t, const struct compile_options *o,
              uint8_t level)
{
    drop_launches(p);
    struct fuser f = {.g = p->canonical, .target = t, .options = o, .level = level};
    f.hero_of = xcalloc(p->canonical->node.n, sizeof *f.hero_of);
    vec_push(&f.hero, ((struct hero){0}));
    fuse_graph(&f);
    make_launches(&f, p);
    p->work += f.work;
    fuser_free(&f);
    plan_chains(p, t);
    plan_memory(p);
    plan_chain_locals(p, t);
    plan_figures(p);
}

// The fewest kernels whose memory stays within eager's. Where none does (eager's result may be a
// view of what it reads) the first that needs little more than the least, of those with no more
// kernels than eager.
static void
fuse_within_memory(struct plan *p, const struct target *t, const struct compile_options *o)
{
    int64_t peak[LEVELS], least = INT64_MAX;
    for (uint8_t level = 0; level < LEVELS; level++) {
        fuse_at_level(p, t, o, level);
        if (p->peak_bytes <= p->eager_peak_bytes + PEAK_SLACK + 64 * (int64_t)p->buffer.n)
            return;
        bool few = !level || p->launch.n <= p->eager_kernels;
        peak[level] = few ? p->peak_bytes : INT64_MAX;
        least = few && p->peak_bytes < least ? p->peak_bytes : least;
    }
    uint8_t best = 0;
    while (peak[best] > least + least / 4)
        best++;
    if (best + 1 < LEVELS)
        fuse_at_level(p, t, o, best);
}

struct plan *
plan_build(const struct graph *g, const struct target *t, const struct compile_options *o,
           struct diag *d)
{
    static const struct compile_options defaults = {0};
    o = o ? o : &defaults;
    if (!g->outputs.n) {
        diag_set(d, DIAG_INVALID, "the graph has no outputs: nothing to compute");
        return NULL;
    }
    struct plan *p = xcalloc(1, sizeof *p);
    p->raw = graph_specialise(g);
    p->canonical = run_passes(p->raw, o);
    double start = clock_us();
    plan_eager_figures(p);
    fuse_within_memory(p, t, o);
    if (o->after_pass)
        o->after_pass(o->user, "fuse", p->canonical, clock_us() - start);
    return p;
}

void
plan_free(struct plan *p)
{
    if (!p)
        return;
    drop_launches(p);
    vec_free(&p->launch);
    vec_free(&p->buffer);
    vec_free(&p->boundary);
    vec_free(&p->chain);
    graph_free(p->canonical);
    graph_free(p->raw);
    arena_free(&p->mem);
    xfree(p);
}
