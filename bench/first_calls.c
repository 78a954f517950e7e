// first_calls.c: how long a program waits for its first results, tiered and optimised at once.
//   first_calls [N]
// A small transformer block's worth of ops on f32[N, 256] (256 by default) is computed again and
// again in a fresh context; printed is the time from the first op until so many results are there,
// the median of some contexts of each kind, which take turns.
#include "fusec.h"

#include "ir/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 256, HIDDEN = 1024, CONTEXTS = 9, COUNTS = 6 };
static const int count[COUNTS] = {1, 2, 10, 30, 100, 300};

struct data {
    int64_t rows;
    float *x, *up, *down, *out;
};

static void
must(fc_context *ctx, fc_status s)
{
    if (!s)
        return;
    fprintf(stderr, "first_calls: %s: %s\n", fc_status_name(s), ctx ? fc_error(ctx) : "");
    exit(1);
}

static void
block(fc_context *ctx, const struct data *d)
{
    fc_scope_begin(ctx);
    fc_tensor x = fc_borrow(ctx, FC_F32, d->x, FC_SHAPE(d->rows, WIDTH), NULL, NULL, NULL);
    fc_tensor up = fc_borrow(ctx, FC_F32, d->up, FC_SHAPE(WIDTH, HIDDEN), NULL, NULL, NULL);
    fc_tensor down = fc_borrow(ctx, FC_F32, d->down, FC_SHAPE(HIDDEN, WIDTH), NULL, NULL, NULL);
    fc_tensor mean = fc_mean(x, FC_LIST(1), true);
    fc_tensor h = fc_div(fc_sub(x, mean), fc_sqrt(fc_var(x, FC_LIST(1), true, 0)));
    h = fc_matmul(fc_gelu_tanh(fc_matmul(h, up)), down);
    h = fc_softmax(fc_add(h, x), 1);
    must(ctx, fc_read(h, d->out, (size_t)(d->rows * WIDTH) * sizeof *d->out));
    fc_scope_end(ctx);
}

// Milliseconds until so many results.
static void
measure(const struct data *d, int compile, double ms[COUNTS])
{
    fc_options o = {.size = sizeof o, .compile = compile};
    fc_context *ctx = NULL;
    must(ctx, fc_context_new(&o, &ctx));
    double start = clock_us();
    for (int i = 0, done = 0; i < COUNTS; i++) {
        for (; done < count[i]; done++)
            block(ctx, d);
        ms[i] = (clock_us() - start) / 1e3;
    }
    fc_context_free(ctx);
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *
numbers(int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    must(NULL, x ? FC_OK : FC_RESOURCE);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i * 7919 % 1009) / 1009 - 0.5f;
    return x;
}

int
main(int argc, char **argv)
{
    struct data d = {.rows = argc > 1 ? atoll(argv[1]) : 256};
    if (argc > 2 || d.rows < 1 || d.rows > 1 << 20) {
        fprintf(stderr, "usage: first_calls [ROWS, 1 to %d]\n", 1 << 20);
        return 2;
    }
    d.x = numbers(d.rows * WIDTH);
    d.out = numbers(d.rows * WIDTH);
    d.up = numbers(WIDTH * HIDDEN);
    d.down = numbers(WIDTH * HIDDEN);
    static double ms[2][CONTEXTS][COUNTS];
    measure(&d, FC_OPTIMISED, ms[0][0]); // LLVM finds itself ready
    for (int i = 0; i < CONTEXTS; i++)
        for (int k = 0; k < 2; k++)
            measure(&d, k ^ (i & 1), ms[k ^ (i & 1)][i]);
    printf("%lld rows; ms until result      ", (long long)d.rows);
    for (int c = 0; c < COUNTS; c++)
        printf("%9d", count[c]);
    for (int k = 0; k < 2; k++) {
        printf("\n%-32s", k == FC_TIERED ? "tiered" : "optimised at once");
        for (int c = 0; c < COUNTS; c++) {
            double x[CONTEXTS];
            for (int i = 0; i < CONTEXTS; i++)
                x[i] = ms[k][i][c];
            qsort(x, CONTEXTS, sizeof *x, ascending);
            printf("%9.2f", x[CONTEXTS / 2]);
        }
    }
    printf("\n");
    free(d.x);
    free(d.out);
    free(d.up);
    free(d.down);
    return 0;
}
