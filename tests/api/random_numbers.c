// random_numbers.c: a context's random numbers: repeatable by seed, new at each call, without a
// compilation each, the same lazy, eager and with any number of threads; and what is refused.
#include "api.h"

enum { N = 1000 };

static fc_context *
context_with(int mode, int threads)
{
    fc_options o = {.size = sizeof o, .mode = mode, .threads = threads};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK, "%s", fc_error(ctx));
    return ctx;
}

static void
read_all(fc_context *ctx, fc_tensor t, void *to, size_t bytes)
{
    cr_assert_eq(fc_read(t, to, bytes), FC_OK, "%s", fc_error(ctx));
}

// Draws in a fixed order; everything computed together.
static void
program(fc_context *ctx, uint64_t seed, float out[5][N])
{
    cr_assert_eq(fc_seed(ctx, seed), FC_OK);
    fc_tensor u = fc_rand_uniform(ctx, FC_SHAPE(N), FC_F32);
    fc_tensor z = fc_rand_normal(ctx, FC_SHAPE(10, N / 10), FC_F32);
    fc_tensor b = fc_cast(fc_rand_bernoulli(ctx, FC_SHAPE(N), 0.25), FC_F32);
    fc_tensor d = fc_rand_dropout(fc_add_scalar(u, 1.0), 0.5);
    fc_tensor again = fc_rand_uniform(ctx, FC_SHAPE(N), FC_F32);
    fc_tensor all[] = {u, z, b, d, again};
    cr_assert_eq(fc_eval(ctx, all, 5), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < 5; i++)
        read_all(ctx, all[i], out[i], sizeof out[i]);
}

Test(random_numbers, a_seed_and_the_order_of_calls_say_everything)
{
    static float right[5][N], other[5][N];
    fc_context *lazy = context_with(FC_LAZY, 1);
    program(lazy, 7, right);
    for (int i = 0; i < 3; i++) {
        fc_context *ctx = i == 2 ? lazy : context_with(i ? FC_EAGER : FC_LAZY, 2);
        program(ctx, 7, other);
        cr_expect(!memcmp(right, other, sizeof right), "context %d", i);
        if (ctx != lazy)
            fc_context_free(ctx);
    }
    program(lazy, 8, other);
    cr_expect(memcmp(right[0], other[0], sizeof right[0]));
    cr_expect(memcmp(right[0], right[4], sizeof right[0]), "two calls gave the same numbers");
    int quarter = 0, half = 0;
    for (int i = 0; i < N; i++) {
        quarter += right[2][i] != 0;
        half += right[3][i] == 0;
        cr_assert(right[0][i] >= 0 && right[0][i] < 1);
        cr_assert(right[3][i] == 0 || right[3][i] == (right[0][i] + 1) * 2);
    }
    cr_expect(quarter > 200 && quarter < 300, "%d of %d", quarter, N);
    cr_expect(half > 440 && half < 560, "%d of %d", half, N);
    fc_context_free(lazy);
}

Test(random_numbers, a_loop_draws_anew_without_compiling)
{
    fc_context *ctx = context_with(FC_LAZY, 2);
    static float x[N], y[N];
    fc_tensor ones = fc_keep(fc_ones(ctx, FC_F32, FC_SHAPE(N)));
    int64_t plans = 0;
    cr_assert_eq(fc_eval(ctx, &ones, 1), FC_OK);
    for (int turn = 0; turn < 5; turn++) {
        fc_scope_begin(ctx);
        fc_tensor both = fc_add(fc_rand_dropout(ones, 0.5), fc_rand_dropout(ones, 0.5));
        read_all(ctx, both, turn % 2 ? x : y, sizeof x);
        fc_scope_end(ctx);
        int unlike = 0;
        for (int i = 0; i < N; i++)
            unlike += (turn % 2 ? x : y)[i] == 2; // one of the two masks has it, not the other
        cr_expect(unlike > 400 && unlike < 600, "two dropouts differ in %d places", unlike);
        cr_expect(memcmp(x, y, sizeof x), "turn %d has the numbers of the last", turn);
        plans = turn ? plans : stats(ctx).plan_misses;
    }
    cr_expect_eq(stats(ctx).plan_misses, plans);
    fc_context_free(ctx);
}

Test(random_numbers, states_may_be_the_callers)
{
    fc_context *ctx = context_with(FC_LAZY, 2);
    uint64_t state[2] = {1, 2}, a[8], b[8];
    fc_tensor s = fc_from_host(ctx, FC_U64, state, FC_SHAPE(2));
    read_all(ctx, fc_random_bits(s, FC_SHAPE(8), FC_U64), a, sizeof a);
    read_all(ctx, fc_random_bits(s, FC_SHAPE(2, 4), FC_U64), b, sizeof b);
    cr_expect(!memcmp(a, b, sizeof a), "bits depend on the position, not on the shape");
    fc_seed(ctx, 1);
    fc_rand_state(ctx);
    fc_rand_state(ctx);
    read_all(ctx, fc_random_bits(fc_rand_state(ctx), FC_SHAPE(8), FC_U64), b, sizeof b);
    cr_expect(!memcmp(a, b, sizeof a), "the state is the seed and the count of calls");
    fc_context_free(ctx);
}

Test(random_numbers, integers_of_all_32_bits_are_the_high_words_of_random_bits)
{
    fc_context *ctx = context_with(FC_LAZY, 1);
    uint64_t state[2] = {1, 2}, bits[8];
    int64_t x[8], least = -((int64_t)1 << 40);
    fc_tensor s = fc_from_host(ctx, FC_U64, state, FC_SHAPE(2));
    read_all(ctx, fc_random_bits(s, FC_SHAPE(8), FC_U64), bits, sizeof bits);
    read_all(ctx, fc_randint(s, FC_SHAPE(8), least, least + ((int64_t)1 << 32)), x, sizeof x);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(x[i], least + (int64_t)(bits[i] >> 32), "element %d is %lld", i,
                     (long long)x[i]);
    fc_context_free(ctx);
}

Test(random_numbers, what_makes_no_sense_is_refused)
{
    fc_context *ctx = context_with(FC_LAZY, 1);
    fc_tensor x = fc_zeros(ctx, FC_F32, FC_SHAPE(2)), s = fc_rand_state(ctx);
    fc_tensor words = fc_zeros(ctx, FC_U64, FC_SHAPE(3));
    fc_uniform(x, FC_SHAPE(3), FC_F32);
    EXPECT_ERROR(ctx, FC_INVALID, "uniform", "f32[2]", "u64[2]");
    fc_random_bits(words, FC_SHAPE(3), FC_U32);
    EXPECT_ERROR(ctx, FC_INVALID, "random_bits", "u64[3]", "u64[2]");
    fc_random_bits(s, FC_SHAPE(3), FC_F32);
    EXPECT_ERROR(ctx, FC_INVALID, "random_bits", "f32", "uniform");
    fc_normal(s, FC_SHAPE(3), FC_I32);
    EXPECT_ERROR(ctx, FC_INVALID, "normal", "i32", "randint");
    fc_uniform(s, FC_SHAPE(3, -1), FC_F32);
    EXPECT_ERROR(ctx, FC_INVALID, "uniform");
    fc_rand_bernoulli(ctx, FC_SHAPE(3), 1.5);
    EXPECT_ERROR(ctx, FC_INVALID, "bernoulli", "1.5", "between 0 and 1");
    fc_rand_dropout(x, -0.5);
    EXPECT_ERROR(ctx, FC_INVALID, "dropout", "-0.5");
    fc_randint(s, FC_SHAPE(3), 5, 5);
    EXPECT_ERROR(ctx, FC_INVALID, "randint", "from 5 to below 5");
    cr_expect(!fc_valid(fc_rand_dropout((fc_tensor){0}, 0.5)));
    cr_expect_eq(fc_seed(NULL, 1), FC_INVALID);
    fc_context_free(ctx);
}
