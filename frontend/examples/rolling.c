// rolling.c: moving average and deviation: windows are a view that overlaps itself
//
// fc_borrow with strides {1, 1} over the caller's array: nothing is copied.
#include "example.h"

enum { N = 5000, WINDOW = 50, ROWS = N - WINDOW + 1 };

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static float u[N];
    static double price[N], mean[ROWS], deviation[ROWS];
    uniform(u, N, 0);
    price[0] = 100;
    for (int i = 1; i < N; i++)
        price[i] = price[i - 1] + ((double)u[i] - 0.5);

    const int64_t strides[] = {1, 1}; // row i begins at element i
    fc_tensor windows = fc_borrow(ctx, FC_F64, price, FC_SHAPE(ROWS, WINDOW), strides, NULL, NULL);
    fc_tensor average = fc_mean(windows, FC_LIST(1), false);
    fc_tensor std = fc_sqrt(fc_var(windows, FC_LIST(1), false, 0));
    fc_tensor last = fc_slice_axis(windows, 1, WINDOW - 1, WINDOW, 1);
    fc_tensor far = fc_gt(fc_abs(fc_sub(fc_squeeze(last, 1), average)), fc_mul_scalar(std, 2));
    fc_tensor outside = fc_sum(far, FC_ALL, false); // a count: bools sum to i64

    check(ctx, fc_eval(ctx, (fc_tensor[]){average, std, outside}, 3));
    check(ctx, fc_read(average, mean, sizeof mean));
    check(ctx, fc_read(std, deviation, sizeof deviation));
    int64_t count;
    check(ctx, fc_item_int(outside, &count));
    for (int i = 0; i < ROWS; i += 990)
        printf("from %4d  mean %8.4f  deviation %6.4f\n", i, mean[i], deviation[i]);
    printf("beyond two deviations: %lld of %d\n", (long long)count, ROWS);
    example_end(ctx);
    return 0;
}
