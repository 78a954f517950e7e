// api.h: what the tests of the public interface share.
#ifndef FUSEC_TESTS_API_H
#define FUSEC_TESTS_API_H

#include "fusec.h"

#include <criterion/criterion.h>
#include <string.h>

static inline fc_context *
new_context(int mode)
{
    fc_options o = {.size = sizeof o, .mode = mode, .threads = 2};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK, "%s", fc_error(ctx));
    return ctx;
}

static inline fc_statistics
stats(fc_context *ctx)
{
    fc_statistics s = {.size = sizeof s};
    cr_assert_eq(fc_stats(ctx, &s), FC_OK);
    return s;
}

static inline void
expect_floats(fc_context *ctx, fc_tensor t, const float *right, int64_t n)
{
    float got[1024];
    cr_assert_leq(n, 1024);
    cr_assert_eq(fc_read(t, got, (size_t)n * sizeof *got), FC_OK, "%s", fc_error(ctx));
    for (int64_t i = 0; i < n; i++)
        cr_assert(!memcmp(&got[i], &right[i], sizeof *got) || got[i] == right[i],
                  "element %lld: %.9g, right is %.9g", (long long)i, got[i], right[i]);
}
#define EXPECT(ctx, t, ...)                                                                        \
    expect_floats(ctx, t, (const float[]){__VA_ARGS__},                                            \
                  sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

// The first error has this code and all these words; then it is cleared.
static inline void
expect_error(fc_context *ctx, fc_status code, const char *const *words, int n)
{
    cr_assert_eq(fc_error_code(ctx), code, "code %s: %s", fc_status_name(fc_error_code(ctx)),
                 fc_error(ctx));
    for (int i = 0; i < n; i++)
        cr_assert(strstr(fc_error(ctx), words[i]), "'%s' not in: %s", words[i], fc_error(ctx));
    fc_error_clear(ctx);
}
#define EXPECT_ERROR(ctx, code, ...)                                                               \
    expect_error(ctx, code, (const char *const[]){__VA_ARGS__},                                    \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

#endif
