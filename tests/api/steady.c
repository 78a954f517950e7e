// steady.c: programs that build the same graph again and again allocate nothing once they are
// running. The linker puts the functions below in front of the allocator for all that fusec's own
// code calls; what LLVM and the C library do is not seen, and has no part in the steady state.
#include "api.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

static atomic_long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__real_mmap(void *p, size_t n, int protection, int flags, int file, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_mmap(void *p, size_t n, int protection, int flags, int file, off_t offset);

void *
__wrap_malloc(size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(p, n);
}

void *
__wrap_aligned_alloc(size_t align, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __real_aligned_alloc(align, n);
}

void *
__wrap_mmap(void *p, size_t n, int protection, int flags, int file, off_t offset)
{
    atomic_fetch_add(&allocations, 1);
    return __real_mmap(p, n, protection, flags, file, offset);
}

enum { WARM = 20, ROUNDS = 1000 };
static float data[4096], out[4096];

typedef void program(fc_context *ctx);

// Code that is made in the background is not the steady state's.
static void
await_optimised_code(fc_context *ctx)
{
    for (int ms = 0; ms < 20000 && stats(ctx).optimised < stats(ctx).compiles; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    cr_assert_eq(stats(ctx).optimised, stats(ctx).compiles, "what runs often is optimised");
    nanosleep(&(struct timespec){0, 5000000}, NULL); // and the thread that did it ends
}

static void
expect_no_allocation(int mode, program *run)
{
    fc_context *ctx = new_context(mode);
    for (int i = 0; i < WARM; i++)
        run(ctx);
    await_optimised_code(ctx);
    long before = atomic_load(&allocations);
    cr_assert_gt(before, 0, "allocations are seen");
    for (int i = 0; i < ROUNDS; i++)
        run(ctx);
    long made = atomic_load(&allocations) - before;
    cr_expect_eq(made, 0, "%ld allocations in %d rounds", made, ROUNDS);
    cr_expect_eq(fc_error_code(ctx), FC_OK, "%s", fc_error(ctx));
    fc_context_free(ctx);
}

static void
twenty_ops(fc_context *ctx)
{
    fc_scope_begin(ctx);
    fc_tensor x = fc_from_host(ctx, FC_F32, data, FC_SHAPE(16)), y = x;
    for (int i = 0; i < 10; i++)
        y = fc_relu(fc_add(x, y));
    fc_read(y, out, 16 * sizeof *out);
    fc_scope_end(ctx);
}

static void
released(void *user)
{
    *(int *)user += 1;
}

static void
borrowed_and_numbers(fc_context *ctx)
{
    int count = 0;
    double sum;
    fc_tensor x = fc_borrow(ctx, FC_F32, data, FC_SHAPE(8, 16), NULL, released, &count);
    fc_tensor y = fc_mul_scalar(x, 0.5), z = fc_sum(y, FC_ALL, false);
    fc_item(z, &sum);
    fc_release(x);
    fc_release(y);
    fc_release(z);
    cr_assert_eq(count, 1);
}

// Views and lists have long rows of attributes and operands.
static void
views_and_lists(fc_context *ctx)
{
    fc_scope_begin(ctx);
    fc_tensor x = fc_from_host(ctx, FC_F32, data, FC_SHAPE(4, 8, 8)), part[6];
    for (int i = 0; i < 6; i++)
        part[i] = fc_slice_axis(x, 1, i, i + 2, 1);
    fc_tensor all = fc_concat(part, 6, 1), t = fc_transpose(all, 0, 2);
    fc_read(fc_reshape(t, FC_SHAPE(8, 48)), out, 8 * 48 * sizeof *out);
    fc_scope_end(ctx);
}

static void
several_kernels(fc_context *ctx)
{
    fc_scope_begin(ctx);
    fc_tensor x = fc_from_host(ctx, FC_F32, data, FC_SHAPE(32, 32));
    fc_tensor y = fc_matmul(fc_softmax(x, -1), x), z = fc_mean(y, FC_LIST(0), false);
    fc_tensor both[] = {y, z};
    fc_eval(ctx, both, 2);
    fc_read(z, out, 32 * sizeof *out);
    fc_scope_end(ctx);
}

Test(steady, twenty_ops)
{
    expect_no_allocation(FC_LAZY, twenty_ops);
}

Test(steady, twenty_ops_at_once)
{
    expect_no_allocation(FC_EAGER, twenty_ops);
}

Test(steady, borrowed_memory_and_numbers)
{
    expect_no_allocation(FC_LAZY, borrowed_and_numbers);
}

Test(steady, views_and_lists)
{
    expect_no_allocation(FC_LAZY, views_and_lists);
}

Test(steady, views_and_lists_at_once)
{
    expect_no_allocation(FC_EAGER, views_and_lists);
}

Test(steady, several_kernels)
{
    expect_no_allocation(FC_LAZY, several_kernels);
}

Test(steady, optimised_at_once_where_asked_for)
{
    fc_options o = {.size = sizeof o, .threads = 2, .compile = FC_OPTIMISED};
    fc_context *ctx;
    cr_assert_eq(fc_context_new(&o, &ctx), FC_OK, "%s", fc_error(ctx));
    for (int i = 0; i < WARM; i++)
        several_kernels(ctx);
    cr_assert_eq(stats(ctx).optimised, 0);
    cr_assert_eq(stats(ctx).optimise_us, 0);
    fc_context_free(ctx);
}
