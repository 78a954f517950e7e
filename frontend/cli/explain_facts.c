// explain_facts.c: what the forms of explain have in common: names, counts, schedules in words.
//
// Eager execution is counted as it would run the graph as the user wrote it: each op but views one
// kernel, its distinct operands read, its result written; a literal moves nothing.
#include "frontend/cli/cli.h"
#include "frontend/cli/explain.h"

#include <inttypes.h>
#include <stdio.h>

static bool
is_kernel(const struct graph *g, uint32_t i)
{
    uint16_t op = g->node.at[i].op;
    return op != OP_input && op != OP_literal && !op_is_alias(op) &&
           shape_count(g, graph_shape(g, (ref){i})) != 0;
}

static bool
moves(const struct graph *g, ref r)
{
    while (op_is_alias(graph_node(g, r)->op))
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

struct intermediates
plan_intermediates(const struct plan *p)
{
    const struct graph *g = p->raw;
    struct intermediates x = {0};
    for (uint32_t i = 1; i < g->node.n; i++) {
        bool output = false;
        for (uint32_t k = 0; k < g->outputs.n; k++)
            output |= g->outputs.at[k].node.i == i;
        if (output || !is_kernel(g, i))
            continue;
        x.n++;
        x.bytes += shape_count(g, graph_shape(g, (ref){i})) * dtype_size(g->node.at[i].dtype);
    }
    for (uint32_t i = 0; i < p->buffer.n; i++)
        if (p->buffer.at[i].place == PLACE_ARENA) {
            x.stored_n++;
            x.stored_bytes += p->buffer.at[i].bytes;
        }
    return x;
}

const char *
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
}

static void
column_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "columns side by side in strips of %u, vectors of %u", s->tile[0], s->vec);
}

static void
split_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "long rows divided among threads, vectors of %u", s->vec);
}

static void
contract_words(const struct schedule *s, struct str *out)
{
    str_printf(out, "matrix tiles of %u x %u x %u (m, n, k), vectors of %u", s->tile[0], s->tile[1],
               s->tile[2], s->vec);
}

void
class_words(const struct launch *l, struct str *out)
{
    static void (*const words[CLASS_COUNT])(const struct schedule *, struct str *) = {
        [CLASS_POINTWISE] = pointwise_words, [CLASS_ROW] = row_words,
        [CLASS_COLUMN] = column_words,       [CLASS_SPLIT] = split_words,
        [CLASS_CONTRACT] = contract_words,
    };
    const struct schedule *s = &l->sched;
    char text[64];
    str_printf(out, "%s: ", kernel_class_name[l->kernel.cls]);
    words[l->kernel.cls](s, out);
    if (l->kernel.nstage > 1)
        str_printf(out, ", %u passes over the data", l->kernel.nstage);
    if (kept(s))
        str_printf(out, ", %s kept on chip between them", plural(kept(s), "value", "values", text));
    if (s->streaming_store)
        str_add(out, ", stores past the caches");
    str_printf(out, ", %s of work", plural(s->units, "unit", "units", text));
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
