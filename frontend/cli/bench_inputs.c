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
places(const struct graph *g) // of the first input's last axis
{
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
    int64_t n = tensor_count(t), limit = t->dtype == DT_i64 ? places(g) : 100;
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
