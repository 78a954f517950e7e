// lifetime.c: what lives how long: scopes, kept and forced tensors, borrowed memory, loops without
// reads, long chains.
#include "api.h"

#include <pthread.h>

Test(lifetime, a_scope_releases_what_was_made_in_it)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor outer = fc_ones(ctx, FC_F32, FC_SHAPE(3));
    cr_assert_eq(fc_scope_begin(ctx), FC_OK);
    fc_tensor a = fc_add(outer, outer), kept = fc_keep(fc_mul(a, a));
    cr_assert_eq(fc_scope_begin(ctx), FC_OK);
    fc_tensor inner = fc_neg(a);
    cr_assert_eq(fc_scope_end(ctx), FC_OK);
    cr_assert_not(fc_valid(inner));
    cr_assert(fc_valid(a));
    cr_assert_eq(fc_release(a), FC_OK); // early: the scope's end does not mind
    fc_tensor b = fc_neg(outer);
    cr_assert_eq(fc_scope_end(ctx), FC_OK);
    cr_assert_not(fc_valid(b));
    cr_assert(fc_valid(outer));
    EXPECT(ctx, kept, 4, 4, 4); // still to be computed, though its operand's handle is gone
    cr_assert_eq(fc_release(kept), FC_OK);
    cr_assert_not(fc_valid(kept));
    fc_context_free(ctx);
}

static void *
work_in_a_scope(void *arg)
{
    fc_context *ctx = arg;
    fc_scope_begin(ctx);
    fc_tensor t = fc_ones(ctx, FC_F32, FC_SHAPE(2));
    fc_scope_end(ctx);
    return (void *)(uintptr_t)fc_valid(t);
}

Test(lifetime, scopes_belong_to_threads)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_scope_begin(ctx);
    fc_tensor mine = fc_ones(ctx, FC_F32, FC_SHAPE(2));
    pthread_t t;
    void *alive;
    pthread_create(&t, NULL, work_in_a_scope, ctx);
    pthread_join(t, &alive);
    cr_assert_null(alive);
    cr_assert(fc_valid(mine));
    fc_scope_end(ctx);
    cr_assert_not(fc_valid(mine));
    fc_context_free(ctx);
}

Test(lifetime, temporaries_are_not_stored_and_can_be_asked_for_later)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){1, 2, 3}), FC_SHAPE(3));
    fc_tensor t = fc_mul(x, x), y = fc_add(t, x);
    EXPECT(ctx, y, 2, 6, 12);
    int64_t with_y = stats(ctx).memory;
    cr_assert_eq(stats(ctx).recomputed, 0);
    EXPECT(ctx, t, 1, 4, 9); // asked for after all: computed now
    cr_assert_gt(stats(ctx).memory, with_y);
    EXPECT(ctx, t, 1, 4, 9);
    fc_tensor u = fc_neg(t), v = fc_neg(u), w = fc_neg(u);
    EXPECT(ctx, v, 1, 4, 9);
    EXPECT(ctx, w, 1, 4, 9);
    cr_assert_eq(stats(ctx).recomputed, 1); // u, a second time
    fc_context_free(ctx);
}

Test(lifetime, kept_tensors_are_stored_on_the_way)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){1, 2, 3}), FC_SHAPE(3));
    fc_tensor t = fc_keep(fc_mul(x, x)), y = fc_add(t, x);
    EXPECT(ctx, y, 2, 6, 12);
    int64_t kernels = stats(ctx).kernels;
    EXPECT(ctx, t, 1, 4, 9);
    cr_assert_eq(stats(ctx).kernels, kernels);
    fc_context_free(ctx);
}

Test(lifetime, forced_tensors_are_not_computed_again_and_drop_their_inputs)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){1, 2, 3}), FC_SHAPE(3));
    fc_scope_begin(ctx);
    fc_tensor y = fc_keep(fc_exp(fc_sub(x, x)));
    fc_scope_end(ctx);
    fc_release(x);
    int64_t before = stats(ctx).memory;
    cr_assert_eq(fc_eval(ctx, (fc_tensor[]){y, y, y}, 3), FC_OK);
    cr_assert_eq(stats(ctx).memory, before); // y came, x went
    cr_assert_eq(stats(ctx).pending, 0);
    int64_t kernels = stats(ctx).kernels;
    EXPECT(ctx, y, 1, 1, 1);
    EXPECT(ctx, y, 1, 1, 1);
    cr_assert_eq(stats(ctx).kernels, kernels);
    fc_release(y);
    fc_context_free(ctx);
}

struct loan {
    int released;
    fc_context *ctx;
};

static void
give_back(void *user)
{
    struct loan *l = user;
    l->released++;
    fc_stats(l->ctx, &(fc_statistics){.size = sizeof(fc_statistics)}); // calling fusec is allowed
}

Test(lifetime, borrowed_memory_is_let_go_after_its_last_use)
{
    fc_context *ctx = new_context(FC_LAZY);
    float data[6] = {0, 1, 2, 3, 4, 5};
    struct loan loan = {0, ctx};
    fc_tensor x = fc_borrow(ctx, FC_F32, data, FC_SHAPE(6), NULL, give_back, &loan);
    fc_tensor y = fc_add(x, x);
    fc_release(x);
    cr_assert_eq(loan.released, 0); // y needs it
    EXPECT(ctx, y, 0, 2, 4, 6, 8, 10);
    cr_assert_eq(loan.released, 1);
    fc_tensor z = fc_borrow(ctx, FC_F32, data, FC_SHAPE(6), NULL, give_back, &loan);
    fc_neg(z);
    fc_context_free(ctx);
    cr_assert_eq(loan.released, 2);
}

Test(lifetime, borrowed_strides_may_be_negative_zero_or_wide)
{
    fc_context *ctx = new_context(FC_LAZY);
    float d[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    fc_tensor back = fc_borrow(ctx, FC_F32, d + 5, FC_SHAPE(6), &(int64_t){-1}, NULL, NULL);
    EXPECT(ctx, back, 5, 4, 3, 2, 1, 0);
    EXPECT(ctx, fc_add_scalar(back, 1.0), 6, 5, 4, 3, 2, 1);
    fc_tensor t = fc_borrow(ctx, FC_F32, d, FC_SHAPE(3, 2), ((int64_t[]){1, 3}), NULL, NULL);
    EXPECT(ctx, t, 0, 3, 1, 4, 2, 5);
    fc_tensor same = fc_borrow(ctx, FC_F32, d + 7, FC_SHAPE(2, 2), ((int64_t[]){0, 0}), NULL, NULL);
    EXPECT(ctx, fc_neg(same), -7, -7, -7, -7);
    fc_tensor wide = fc_borrow(ctx, FC_F32, d + 1, FC_SHAPE(2, 2), ((int64_t[]){5, 2}), NULL, NULL);
    EXPECT(ctx, wide, 1, 3, 6, 8);
    const void *p;
    cr_assert_eq(fc_data(wide, &p), FC_OK);
    cr_assert_eq(((const float *)p)[3], 8.0f);
    EXPECT(ctx, fc_neg(wide), -1, -3, -6, -8);
    fc_context_free(ctx);
}

Test(lifetime, bc55_accumulating_without_reads_stays_bounded)
{
    fc_options o = {.size = sizeof o, .threads = 1, .flush_bytes = 1 << 20};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
    enum { N = 1 << 14, ROUNDS = 200 }; // 64 KiB each
    static float ones[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    fc_tensor acc = fc_zeros(ctx, FC_F32, FC_SHAPE(N));
    for (int i = 0; i < ROUNDS; i++) {
        fc_tensor x = fc_from_host(ctx, FC_F32, ones, FC_SHAPE(N)), next = fc_add(acc, x);
        fc_release(x);
        fc_release(acc);
        acc = next;
    }
    cr_assert_geq(stats(ctx).flushes, 5);
    cr_assert_leq(stats(ctx).plan_misses, 4);
    double sum;
    cr_assert_eq(fc_item(fc_mean(acc, FC_ALL, false), &sum), FC_OK, "%s", fc_error(ctx));
    cr_assert_eq(sum, ROUNDS);
    cr_assert_leq(stats(ctx).peak_memory, 3 << 20, "%lld", (long long)stats(ctx).peak_memory);
    fc_context_free(ctx);
}

Test(lifetime, a_loop_over_one_tensor_stays_bounded_in_ops)
{
    fc_options o = {.size = sizeof o, .threads = 1, .flush_ops = 100};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
    fc_tensor x = fc_ones(ctx, FC_F32, FC_SHAPE(4)), acc = fc_zeros(ctx, FC_F32, FC_SHAPE(4));
    for (int i = 0; i < 1000; i++) {
        fc_scope_begin(ctx);
        fc_tensor next = fc_keep(fc_add(acc, x));
        fc_scope_end(ctx);
        fc_release(acc);
        acc = next;
        cr_assert_leq(stats(ctx).pending, 110);
    }
    cr_assert_geq(stats(ctx).flushes, 9);
    EXPECT(ctx, acc, 1000, 1000, 1000, 1000);
    fc_context_free(ctx);
}

static void *
long_chains(void *arg)
{
    fc_context *ctx = arg;
    fc_tensor x = fc_zeros(ctx, FC_F32, FC_SHAPE(1)), one = fc_ones(ctx, FC_F32, FC_SHAPE(1));
    for (int i = 0; i < 200000; i++) { // only to be destroyed
        fc_tensor next = fc_add(x, one);
        fc_release(x);
        x = next;
    }
    cr_assert_geq(stats(ctx).pending, 200000);
    fc_release(x);
    cr_assert_eq(stats(ctx).pending, 1); // `one`
    return NULL;
}

Test(lifetime, bc42_a_chain_of_200000_ops_is_destroyed_on_a_small_stack)
{
    fc_options o = {.size = sizeof o, .threads = 1, .flush_ops = INT64_MAX};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    pthread_t t;
    cr_assert_eq(pthread_create(&t, &attr, long_chains, ctx), 0);
    pthread_join(t, NULL);
    pthread_attr_destroy(&attr);
    fc_context_free(ctx);
}

Test(lifetime, bc42_a_chain_of_10000_ops_is_right)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){0, 10}), FC_SHAPE(2));
    for (int i = 0; i < 10000; i++) {
        fc_tensor next = fc_add_scalar(x, 1.0);
        fc_release(x);
        x = next;
    }
    EXPECT(ctx, x, 10000, 10010);
    fc_context_free(ctx);
}

Test(lifetime, bc41_a_sum_of_5000_inputs_is_right)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor sum = fc_zeros(ctx, FC_F32, FC_SHAPE(3));
    for (int i = 0; i < 5000; i++) {
        float v[3] = {1, (float)(i % 2), 2};
        fc_tensor x = fc_from_host(ctx, FC_F32, v, FC_SHAPE(3)), next = fc_add(sum, x);
        fc_release(x);
        fc_release(sum);
        sum = next;
    }
    EXPECT(ctx, sum, 5000, 2500, 10000);
    fc_context_free(ctx);
}

Test(lifetime, values_without_elements_and_scalars)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor empty = fc_from_host(ctx, FC_F32, NULL, FC_SHAPE(0, 3));
    cr_assert_eq(fc_read(fc_add_scalar(empty, 1.0), NULL, 0), FC_OK, "%s", fc_error(ctx));
    EXPECT(ctx, fc_sum(empty, FC_LIST(0), false), 0, 0, 0);
    double x;
    cr_assert_eq(fc_item(fc_scalar(ctx, 2.5), &x), FC_OK);
    cr_assert_eq(x, 2.5);
    int64_t i;
    cr_assert_eq(fc_item_int(fc_scalar(ctx, INT64_MIN), &i), FC_OK);
    cr_assert_eq(i, INT64_MIN);
    fc_tensor zero = fc_from_host(ctx, FC_F32, &(float){3}, FC_SCALAR_SHAPE);
    cr_assert_eq(fc_rank(zero), 0);
    cr_assert_eq(fc_item(fc_neg(zero), &x), FC_OK);
    cr_assert_eq(x, -3);
    fc_context_free(ctx);
}
