// bench_inputs.c: inputs of benchmarks. Random bits are SplitMix64 of a counter (Steele, Lea,
// Flood, OOPSLA 2014), so an element depends on its place and the input's number alone; normal
// numbers come from pairs of uniform ones (Box, Muller, "A note on the generation of random normal
// deviates", 1958).
#include "frontend/cli/bench.h"

#include <math.h>
#include <string.h>

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
places(const struct graph *g) // of the first input's last axis
{
    const struct shape *s = graph_shape(g, g->inputs.at[0].node);
    int64_t n = s->rank ? dim_of(g, s, s->rank - 1u) : 1;
    return n > 0 ? n : 1;
}

void
bench_fill(const struct graph *g, uint32_t input, const struct tensor *t)
{
    uint64_t seed = hash_mix(1, input);
    int64_t n = tensor_count(t), limit = t->dtype == DT_i64 ? places(g) : 100;
    bool positive = is_positive(g->inputs.at[input].name);
    bool dense = g->inputs.at[input].dense;
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)i, bits;
        if (dtype_is_float(t->dtype)) {
            double x = normal(seed, at);
            bits = scalar_from_double(t->dtype, positive ? fabs(x) : x);
        } else {
            int64_t most = t->dtype == DT_bool ? 2 : limit;
            bits = scalar_from_int(t->dtype, (int64_t)(hash_mix(seed, at) >> 1) % most);
        }
        int64_t offset = dense ? i : offset_of(t, i);
        scalar_store(t->dtype, (char *)t->data + offset * dtype_size(t->dtype), bits);
    }
}
