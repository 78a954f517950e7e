// histogram.c: counts and means by bin: scatter_add of ones and of weights
//
// Elements of one bin are added one after the other, in order, with any number of threads.
#include "example.h"

enum { N = 100000, BINS = 16 };

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static float u[3 * N];
    uniform(u, 3 * N, 0);
    fc_tensor thirds = fc_from_host(ctx, FC_F32, u, FC_SHAPE(3, N));
    fc_tensor x = fc_mean(fc_cast(thirds, FC_F64), FC_LIST(0), false); // bell-shaped, in [0, 1)
    fc_tensor weight = fc_square(fc_sub_scalar(x, 0.5));

    fc_tensor bin = fc_cast(fc_mul_scalar(x, BINS), FC_I32); // truncates
    fc_tensor zeros = fc_zeros(ctx, FC_I64, FC_SHAPE(BINS));
    fc_tensor counts = fc_scatter_add(zeros, bin, fc_scalar(ctx, 1), 0);
    fc_tensor sums = fc_scatter_add(fc_cast(zeros, FC_F64), bin, weight, 0);
    fc_tensor means = fc_div(sums, fc_max_scalar(counts, 1));

    int64_t count[BINS];
    double mean[BINS];
    check(ctx, fc_eval(ctx, (fc_tensor[]){counts, means}, 2));
    check(ctx, fc_read(counts, count, sizeof count));
    check(ctx, fc_read(means, mean, sizeof mean));
    for (int i = 0; i < BINS; i++) {
        printf("%6.4f  %5d  weight %.6f  ", (double)i / BINS, (int)count[i], mean[i]);
        for (int64_t k = 0; k < count[i]; k += 300)
            putchar('#');
        putchar('\n');
    }
    example_end(ctx);
    return 0;
}
