// threads.c: one context used by several threads at once.
#include "api.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 150 };

struct worker {
    fc_context *ctx;
    fc_tensor shared;
    int number;
    int wrong;
};

// Builds, computes and releases graphs: some the same in all threads, some its own.
static void *
work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        fc_scope_begin(w->ctx);
        float v[4] = {(float)w->number, (float)i, 1, 2}, out[4];
        fc_tensor x = fc_from_host(w->ctx, FC_F32, v, FC_SHAPE(4));
        fc_tensor y = fc_mul(fc_add(x, w->shared), fc_add(x, w->shared));
        if (i % 3 == 0)
            y = fc_reshape(fc_add(y, fc_neg(y)), FC_SHAPE(2, 2));
        if (i % 7 == w->number)
            fc_add(x, fc_zeros(w->ctx, FC_F32, FC_SHAPE(3))); // an error of this thread only
        w->wrong += fc_read(y, out, sizeof out) != FC_OK;
        for (int k = 0; k < 4; k++) {
            float right = i % 3 == 0 ? 0 : (v[k] + (float)k) * (v[k] + (float)k);
            w->wrong += out[k] != right;
        }
        w->wrong += (fc_error_code(w->ctx) == FC_INVALID) != (i % 7 == w->number);
        fc_error_clear(w->ctx);
        fc_scope_end(w->ctx);
        w->wrong += fc_valid(y);
    }
    return NULL;
}

static void
run_workers(int mode)
{
    fc_context *ctx = new_context(mode);
    fc_tensor shared = fc_from_host(ctx, FC_F32, ((float[]){0, 1, 2, 3}), FC_SHAPE(4));
    struct worker w[THREADS];
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){ctx, shared, i, 0};
        cr_assert_eq(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        cr_assert_eq(w[i].wrong, 0, "thread %d: %d wrong", i, w[i].wrong);
    }
    cr_assert_leq(stats(ctx).plan_misses, 8); // each graph compiled once
    cr_assert_eq(fc_error_code(ctx), FC_OK);
    fc_context_free(ctx);
}

Test(threads, bc64_lazy)
{
    run_workers(FC_LAZY);
}

Test(threads, bc64_eager)
{
    run_workers(FC_EAGER);
}

static void *
read_pending(void *arg)
{
    struct worker *w = arg;
    float out[4];
    for (int i = 0; i < ROUNDS; i++)
        w->wrong += fc_read(w->shared, out, sizeof out) != FC_OK || out[3] != 9;
    return NULL;
}

Test(threads, all_want_the_same_pending_tensor)
{
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor x = fc_from_host(ctx, FC_F32, ((float[]){0, 1, 2, 3}), FC_SHAPE(4)), y = fc_mul(x, x);
    struct worker w[THREADS];
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){ctx, y, i, 0};
        cr_assert_eq(pthread_create(&t[i], NULL, read_pending, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        cr_assert_eq(w[i].wrong, 0);
    }
    fc_context_free(ctx);
}

Test(threads, contexts_in_parallel)
{
    fc_context *ctx[THREADS];
    pthread_t t[THREADS];
    struct worker w[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ctx[i] = new_context(i % 2);
        w[i] = (struct worker){ctx[i], {0}, i, 0};
        w[i].shared = fc_from_host(ctx[i], FC_F32, ((float[]){0, 1, 2, 3}), FC_SHAPE(4));
        cr_assert_eq(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        cr_assert_eq(w[i].wrong, 0, "thread %d: %d wrong", i, w[i].wrong);
        fc_context_free(ctx[i]);
    }
}

// A child of fork finds a context whole, though other threads were in the middle of things.
Test(threads, bc65_fork)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("gcc 12's address sanitizer does not unlock its own allocator in a child of fork");
#endif
    fc_context *ctx = new_context(FC_LAZY);
    fc_tensor shared = fc_from_host(ctx, FC_F32, ((float[]){0, 1, 2, 3}), FC_SHAPE(4));
    struct worker w[THREADS];
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){ctx, shared, i, 0};
        cr_assert_eq(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (!pid) {
            float out[4];
            alarm(20); // a lock that nobody gives back
            fc_tensor y = fc_add(shared, shared);
            _exit(fc_read(y, out, sizeof out) == FC_OK && out[3] == 6 ? 0 : 1);
        }
        int status = -1;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "child: %x", status);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        cr_assert_eq(w[i].wrong, 0);
    }
    fc_context_free(ctx);
}
