// bench_inputs.c: inputs of benchmarks. Random bits are SplitMix64 of a counter (Steele, Lea,
// Flood, OOPSLA 2014), so an element depends on its place and the input's number alone; normal
// numbers come from pairs of uniform ones (Box, Muller, "A note on the generation of random normal
// deviates", 1958). They repeat after a million, in steps that no shape has: gigabytes of
// logarithms would take longer than what is measured.
#include "frontend/cli/bench.h"

#include <math.h>
#include <string.h>

enum { PERIOD = (1 << 20) + 6 }; // even: normal numbers come in pairs

static double
uniform(uint64_t seed, uint64_t i) // in (0, 1)
{
    return ((double)(hash_mix(seed, i) >> 12) + 0.5) * 0x1p-52;
}

static double
normal(uint64_t seed, uint64_t i)
{
    const double turn = 6.283185307179586;
    double r = sqrt(-2 * log(uniform(seed, i | 1)));
    double angle = turn * uniform(seed, i & ~(uint64_t)1);
    return i & 1 ? r * sin(angle) : r * cos(angle);
}

static bool
is_positive(const char *name)
{
    return !strcmp(name, "v") || !strcmp(name, "var") || !strcmp(name, "variance");
}

// Offset of the i-th element in row-major order.
static int64_t
offset_of(const struct tensor *t, int64_t i)
{
    int64_t offset = 0;
    for (uint32_t a = t->rank; a-- > 0; i /= t->dim[a])
        offset += i % t->dim[a] * t->stride[a];
    return offset;
}

static int64_t
extent(const struct graph *g, ref r, uint32_t axis)
{
    return dim_of(g, graph_shape(g, r), axis);
}

// How many places there are for what operand i of node r gives positions of; 0: of nothing.
static int64_t
places_of_operand(const struct graph *g, ref r, uint32_t i)
{
    const struct node *n = graph_node(g, r);
    ref x = n->nin ? graph_in(g, r, 0) : (ref){0}, window = n->op == OP_slice_update && i == 2
                                                                ? graph_in(g, r, 1) : r;
    bool starts = (n->op == OP_dynamic_slice && i == 1) || (n->op == OP_slice_update && i == 2);
    if (n->op == OP_one_hot)
        return graph_attr(g, r)[0];
    bool reads = n->op == OP_take || n->op == OP_take_along;
    if (i == 1 && (reads || op_is(n->op, OPK_SCATTER)))
        return extent(g, x, (uint32_t)graph_attr(g, r)[0]);
    int64_t least = starts ? INT64_MAX : 0;
    for (uint32_t d = 0; starts && d < graph_shape(g, x)->rank; d++) {
        int64_t room = extent(g, x, d) - extent(g, window, d) + 1;
        least = room < least ? room : least;
    }
    return least;
}

int64_t
bench_places(const struct graph *g, uint32_t input)
{
    ref own = g->inputs.at[input].node;
    for (uint32_t i = 1; i < g->node.n; i++)
        for (uint32_t k = 0; k < g->node.at[i].nin; k++) {
            int64_t n = graph_in(g, (ref){i}, k).i == own.i ? places_of_operand(g, (ref){i}, k) : 0;
            if (n > 0)
                return n;
        }
    if (graph_node(g, own)->dtype != DT_i64)
        return 0;
    const struct shape *s = graph_shape(g, g->inputs.at[0].node);
    int64_t n = s->rank ? dim_of(g, s, s->rank - 1u) : 1;
    return n > 0 ? n : 1;
}

static uint64_t
random_bits(uint64_t seed, uint64_t at, uint8_t dtype, int64_t limit, bool positive)
{
    if (dtype_is_float(dtype)) {
        double x = normal(seed, at);
        return scalar_from_double(dtype, positive ? fabs(x) : x);
    }
    int64_t most = dtype == DT_bool ? 2 : limit;
    return scalar_from_int(dtype, (int64_t)(hash_mix(seed, at) >> 1) % most);
}

void
bench_fill(const struct graph *g, uint32_t input, const struct tensor *t)
{
    uint64_t seed = hash_mix(1, input);
    int64_t n = tensor_count(t), limit = bench_places(g, input);
    limit = limit ? limit : 100;
    int64_t distinct = n < PERIOD ? n : PERIOD, size = dtype_size(t->dtype);
    bool positive = is_positive(g->inputs.at[input].name);
    char *data = t->data, *pattern = xcalloc((size_t)distinct + 1, (size_t)size);
    for (int64_t i = 0; i < distinct; i++)
        scalar_store(t->dtype, pattern + i * size,
                     random_bits(seed, (uint64_t)i, t->dtype, limit, positive));
    if (g->inputs.at[input].dense)
        for (int64_t i = 0; i < n; i += distinct)
            memcpy(data + i * size, pattern,
                   (size_t)((n - i < distinct ? n - i : distinct) * size));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(data + offset_of(t, i) * size, pattern + i % distinct * size, (size_t)size);
    xfree(pattern);
}
