// explain_facts.c: what the forms of explain have in common: names, counts, schedules in words.
//
// Eager execution is counted as it would run the graph as the user wrote it: each op but views one
// kernel, its distinct operands read, its result written; a literal moves nothing.
#include "frontend/cli/cli.h"
#include "frontend/cli/explain.h"

#include "passes/schedule_scan.h"
#include "passes/schedule_sort.h"

#include <inttypes.h>
#include <stdio.h>

static bool
is_kernel(const struct graph *g, uint32_t i)
{
    return runs_eagerly(g, (ref){i}) && shape_count(g, graph_shape(g, (ref){i})) != 0;
}

static bool
moves(const struct graph *g, ref r)
{
    while (op_table[graph_node(g, r)->op].flags & OPF_ALIAS)
        r = graph_in(g, r, 0);
    return graph_node(g, r)->op != OP_literal;
}

uint32_t
eager_transfers(const struct plan *p)
{
    const struct graph *g = p->raw;
    uint32_t sum = 0;
    for (uint32_t i = 1; i < g->node.n; i++) {
        const struct node *n = &g->node.at[i];
        if (!is_kernel(g, i))
            continue;
        sum++;
        for (uint32_t k = 0; k < n->nin; k++) {
            ref in = node_in(g, n, k);
            bool again = false;
            for (uint32_t j = 0; j < k && n->nin <= 4; j++)
                again |= node_in(g, n, j).i == in.i;
            sum += !again && moves(g, in);
        }
    }
    return sum;
}

uint32_t
plan_transfers(const struct plan *p)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < p->launch.n; i++)
        sum += p->launch.at[i].kernel.buffers.n;
    return sum;
}

// ---- what became of each op

// The user's calls behind an origin, marked by their number. All graphs of a plan number origins
// alike.
static void
mark_origin(const struct graph *g, uint32_t origin, uint32_t mark, uint32_t *seen)
{
    VEC(uint32_t) stack = {0};
    vec_push(&stack, origin);
    while (stack.n) {
        uint32_t at = stack.at[--stack.n];
        if (!at || seen[at] == mark)
            continue;
        seen[at] = mark;
        if (!g->origins.at[at].op) {
            vec_push(&stack, g->origins.at[at].a);
            vec_push(&stack, g->origins.at[at].b);
        }
    }
    vec_free(&stack);
}

static bool
is_output_node(const struct graph *g, uint32_t node)
{
    for (uint32_t i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i].node.i == node)
            return true;
    return false;
}

// Marks ops whose result a launch stores in the arena: the newest call behind a stored value, if
// its result has as many elements (a part of a composite may be stored too, and is no result).
static void
mark_stored(const struct plan *p, const struct launch *l, uint32_t mark, uint32_t *seen,
            op_fates *out)
{
    const struct kernel *k = &l->kernel;
    for (uint32_t i = 0; i < k->store.n; i++) {
        const struct store *st = &k->store.at[i];
        const struct plan_buffer *b = &p->buffer.at[l->buffer[k->access.at[st->access].buffer]];
        if (b->place != PLACE_ARENA)
            continue;
        mark_origin(p->canonical, k->inst.at[st->value].origin, mark + i, seen);
        for (uint32_t f = out->n; f-- > 0;) {
            struct op_fate *o = &out->at[f];
            const struct node *n = &p->raw->node.at[o->node];
            if (seen[n->origin] != mark + i)
                continue;
            o->stored |= b->bytes / dtype_size(b->dtype) == o->bytes / dtype_size(n->dtype);
            break;
        }
    }
}

static void
mark_launch(const struct plan *p, uint32_t launch, uint32_t mark, uint32_t *seen, op_fates *out)
{
    const struct kernel *k = &p->launch.at[launch].kernel;
    for (uint32_t i = 1; i < k->inst.n; i++)
        mark_origin(p->canonical, k->inst.at[i].origin, mark, seen);
    for (uint32_t i = 0; i < k->acc.n; i++)
        mark_origin(p->canonical, k->acc.at[i].origin, mark, seen);
    for (uint32_t f = 0; f < out->n; f++) {
        struct op_fate *o = &out->at[f];
        uint32_t origin = p->raw->node.at[o->node].origin;
        if (!origin || seen[origin] != mark)
            continue;
        o->kernel = xrealloc(o->kernel, (o->nkernel + 1) * sizeof *o->kernel);
        o->kernel[o->nkernel++] = launch;
    }
}

void
find_fates(const struct plan *p, op_fates *out)
{
    const struct graph *g = p->raw;
    for (uint32_t i = 1; i < g->node.n; i++) {
        struct op_fate f = {.node = i, .bytes = graph_bytes(g, (ref){i})};
        if (g->node.at[i].op == OP_input || g->node.at[i].op == OP_literal)
            continue;
        f.array = is_kernel(g, i) && !is_output_node(g, i);
        vec_push(out, f);
    }
    uint32_t origins = p->canonical->origins.n > g->origins.n ? p->canonical->origins.n
                                                              : g->origins.n;
    uint32_t *seen = xcalloc(origins + 1, sizeof *seen), mark = 1;
    for (uint32_t i = 0; i < p->launch.n; i++) {
        mark_launch(p, i, mark++, seen, out);
        mark_stored(p, &p->launch.at[i], mark, seen, out);
        mark += p->launch.at[i].kernel.store.n;
    }
    xfree(seen);
}

void
free_fates(op_fates *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        xfree(f->at[i].kernel);
    vec_free(f);
}

static const char *
output_name(const struct plan *p, uint32_t output, char name[64])
{
    const char *given = p->raw->outputs.at[output].name;
    if (given && *given)
        snprintf(name, 64, "%s", given);
    else
        snprintf(name, 64, "out%" PRIu32, output);
    return name;
}

const char *
buffer_name(const struct plan *p, uint32_t buffer, char name[64])
{
    const struct plan_buffer *b = &p->buffer.at[buffer];
    uint32_t before = 0;
    if (b->place == PLACE_OUTPUT)
        return output_name(p, b->index, name);
    if (b->place == PLACE_INPUT) {
        snprintf(name, 64, "%s", p->raw->inputs.at[b->index].name);
        return name;
    }
    for (uint32_t i = 0; i < buffer; i++)
        before += p->buffer.at[i].place == PLACE_ARENA;
    snprintf(name, 64, "tmp%" PRIu32, before);
    return name;
}

uint32_t *
launch_buffers(const struct launch *l, uint8_t role, uint32_t *n)
{
    uint32_t *order = xcalloc(l->kernel.buffers.n + 1, sizeof *order);
    *n = 0;
    for (uint32_t i = 0; i < l->kernel.buffers.n; i++) {
        if (l->kernel.buffers.at[i].role != role)
            continue;
        uint32_t at = (*n)++;
        for (; at && l->buffer[order[at - 1]] > l->buffer[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

int64_t
launch_scratch(const struct launch *l)
{
    return l->sched.scratch_bytes + l->sched.shared_scratch_bytes;
}

// ---- schedules

static uint32_t
kept(const struct schedule *s)
{
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        n += (uint32_t)__builtin_popcountll(s->keep[i]);
    return n;
}

static void
pointwise_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "vectors of %u, %u in flight", s->vec, s->unroll);
    if (s->transpose)
        str_printf(out, ", transposing tiles of %u x %u", s->tile[0], s->tile[1]);
}

static void
row_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "rows along memory, vectors of %u", s->vec);
    if (s->rows)
        str_printf(out, ", %u rows at once", s->rows);
}

static void
column_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "columns side by side in strips of %u, vectors of %u", s->tile[0], s->vec);
    if (s->tile[2] && s->tile[2] < RED_LANES)
        str_printf(out, ", %u of %u lanes a pass", s->tile[2], RED_LANES);
}

static void
split_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "long rows divided among threads, vectors of %u", s->vec);
}

static void
sort_words(const struct schedule *s, struct str *out)
{
    if (s->finish_units)
        str_add(out, "a long line spread over buckets, each put in order");
    else
        str_printf(out, "lines put in order, %u a unit, vectors of %u",
                   s->tile[SORT_TILE_LINES], s->vec);
}

static void
contract_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "matrix tiles of %u x %u x %u (m, n, k), vectors of %u", s->tile[0], s->tile[1],
               s->tile[2], s->vec);
}

static void
scan_words(const struct schedule *s, struct str *out)
{
    if (s->tile[SCAN_TILE_STRIP])
        str_printf(out, "columns side by side in strips of %u", s->tile[SCAN_TILE_STRIP]);
    else
        str_add(out, s->finish_units ? "long rows divided among threads" : "rows along memory");
    str_printf(out, ", vectors of %u", s->vec);
}

static void
scatter_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "updates in the order of the index, vectors of %u", s->vec);
}

static void
cuda_words(const struct launch *l, struct str *out)
{
    const struct schedule *s = &l->sched;
    str_printf(out, "%lld blocks of %u threads", (long long)s->units, s->threads);
    if (s->vec > 1)
        str_printf(out, ", vectors of %u", s->vec);
    if (s->unroll > 1)
        str_printf(out, ", %u in flight", s->unroll);
    if (l->kernel.cls == CLASS_ROW)
        str_printf(out, ", %u threads a row", s->tile[0]);
    if (l->kernel.nstage > 1)
        str_printf(out, ", in %u stages", l->kernel.nstage);
    if (s->index64)
        str_add(out, ", positions of 64 bits");
}

void
class_words(const struct launch *l, struct str *out)
{
    static void (*const words[CLASS_COUNT])(const struct schedule *, struct str *) = {
        [CLASS_POINTWISE] = pointwise_words, [CLASS_ROW] = row_words,
        [CLASS_COLUMN] = column_words,       [CLASS_SPLIT] = split_words,
        [CLASS_CONTRACT] = contract_words,   [CLASS_SCAN] = scan_words,
        [CLASS_SORT] = sort_words,           [CLASS_SCATTER] = scatter_words,
    };
    const struct schedule *s = &l->sched;
    char text[64];
    str_printf(out, "%s: ", kernel_class_name[l->kernel.cls]);
    if (s->threads) {
        cuda_words(l, out);
        return;
    }
    words[l->kernel.cls](s, out);
    bool whole = l->kernel.cls == CLASS_CONTRACT || l->kernel.cls == CLASS_SORT ||
                 l->kernel.cls == CLASS_SCATTER;
    if (l->kernel.nstage > 1 && !whole)
        str_printf(out, ", in %u stages", l->kernel.nstage);
    if (s->overlap)
        str_printf(out, ", %d rows at once", __builtin_popcount(s->overlap));
    if (kept(s))
        str_printf(out, ", %s kept on chip %s", plural(kept(s), "value", "values", text),
                   l->kernel.cls == CLASS_ROW && s->rows ? "for all rows" : "between them");
    if (s->streaming_store)
        str_add(out, ", stores past the caches");
}

// ---- guards

void
guard_words(const struct plan *p, uint32_t input, struct str *out)
{
    const struct graph *g = p->raw;
    const struct graph_input *in = &g->inputs.at[input];
    const struct shape *s = graph_shape(g, in->node);
    str_printf(out, "%s, rank %u, dims [", dtype_name(graph_node(g, in->node)->dtype), s->rank);
    for (uint32_t i = 0; i < s->rank; i++)
        str_printf(out, "%s%" PRId64, i ? ", " : "", dim_of(g, s, i));
    str_add(out, in->dense ? "], row-major" : "], strides [");
    for (uint32_t i = 0; i < s->rank && !in->dense; i++)
        str_printf(out, "%s%" PRId64, i ? ", " : "", in->stride[i]);
    str_printf(out, "%s, aligned to %u bytes", in->dense ? "" : "]", 1u << in->align_log2);
}
