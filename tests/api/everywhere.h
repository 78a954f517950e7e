// everywhere.h: values checked wherever they can be: lazy and eager, as tensors once and 37 times
// over (vector body and tail), and as constants of the graph.
#ifndef FUSEC_TESTS_EVERYWHERE_H
#define FUSEC_TESTS_EVERYWHERE_H

#include "api.h"

#include <math.h>
#include <stdlib.h>

struct world {
    fc_context *ctx;
    bool constants;
    int times; // each list of values is repeated so often
    const char *words;
};

#define N_OF(T, ...) (int)(sizeof((const T[]){__VA_ARGS__}) / sizeof(T))
#define F(...) leaf(w, FC_F32, (const float[]){__VA_ARGS__}, N_OF(float, __VA_ARGS__), 4)
#define I(...) leaf(w, FC_I32, (const int32_t[]){__VA_ARGS__}, N_OF(int32_t, __VA_ARGS__), 4)
#define IS_F(t, ...) is_floats(w, t, (const float[]){__VA_ARGS__}, N_OF(float, __VA_ARGS__), #t)
#define IS_I(t, ...) is_ints(w, t, (const int64_t[]){__VA_ARGS__}, N_OF(int64_t, __VA_ARGS__), #t)

static inline fc_tensor
leaf(const struct world *w, fc_dtype dtype, const void *v, int n, int size)
{
    if (!w->constants) {
        size_t bytes = (size_t)n * (size_t)size;
        char *all = malloc(bytes * (size_t)w->times);
        for (size_t i = 0; i < (size_t)w->times; i++)
            memcpy(all + i * bytes, v, bytes);
        fc_tensor t = fc_from_host(w->ctx, dtype, all, FC_SHAPE(n * w->times));
        free(all);
        return t;
    }
    fc_tensor part[16];
    for (int i = 0; i < n; i++)
        part[i] = dtype == FC_F32 ? fc_full(w->ctx, dtype, ((const float *)v)[i], FC_SHAPE(1))
                                  : fc_full(w->ctx, dtype, ((const int32_t *)v)[i], FC_SHAPE(1));
    return fc_concat(part, n, 0);
}

static inline void
is_floats(const struct world *w, fc_tensor t, const float *right, int n, const char *what)
{
    float got[37 * 16];
    fc_status s = fc_read(t, got, (size_t)(n * w->times) * 4);
    cr_assert_eq(s, FC_OK, "%s, %s: %s", what, w->words, fc_error(w->ctx));
    for (int i = 0; i < n * w->times; i++) {
        float g = got[i], r = right[i % n];
        cr_assert((isnan(g) && isnan(r)) || !memcmp(&g, &r, 4),
                  "%s, %s: element %d is %.9g, not %.9g", what, w->words, i, g, r);
    }
}

static inline void
is_ints(const struct world *w, fc_tensor t, const int64_t *right, int n, const char *what)
{
    int64_t got[37 * 16];
    fc_status s = fc_read(fc_cast(t, FC_I64), got, (size_t)(n * w->times) * 8);
    cr_assert_eq(s, FC_OK, "%s, %s: %s", what, w->words, fc_error(w->ctx));
    for (int i = 0; i < n * w->times; i++)
        cr_assert_eq(got[i], right[i % n], "%s, %s: element %d is %lld, not %lld", what, w->words,
                     i, (long long)got[i], (long long)right[i % n]);
}

static inline void
everywhere(void (*check)(const struct world *w))
{
    for (int i = 0; i < 6; i++) {
        static const char *const words[] = {"lazy",
                                            "eager",
                                            "lazy, 37 times",
                                            "eager, 37 times",
                                            "lazy, constants",
                                            "eager, constants"};
        struct world w = {new_context(i & 1 ? FC_EAGER : FC_LAZY), i >= 4, i / 2 == 1 ? 37 : 1,
                          words[i]};
        check(&w);
        cr_assert_eq(fc_error_code(w.ctx), FC_OK, "%s", fc_error(w.ctx));
        fc_context_free(w.ctx);
    }
}

#endif
