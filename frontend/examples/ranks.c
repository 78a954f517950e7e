// ranks.c: medians, trimmed means, rank correlation: sort, argsort of argsort
//
// Outliers spoil the plain correlation of these columns, and leave that of their ranks.
#include "example.h"

enum { N = 1000, COLUMNS = 3 };

// Column 0 is uniform, 1 grows with it, 2 falls with it; each has noise, and every 50th row is
// wild.
static void
make_columns(double x[COLUMNS][N])
{
    static float u[COLUMNS][N];
    uniform(u[0], COLUMNS * N, 0);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < COLUMNS; c++) {
            double trend = c == 0 ? 0 : c == 1 ? (double)u[0][i] : -(double)u[0][i];
            x[c][i] = (double)u[c][i] + 2 * trend + (i % 50 == 7 ? 30 * (double)u[c][i] : 0);
        }
}

static fc_tensor
correlations(fc_tensor x) // of rows, with row 0
{
    fc_tensor off = fc_sub(x, fc_mean(x, FC_LIST(1), true));
    off = fc_div(off, fc_sqrt(fc_sum(fc_square(off), FC_LIST(1), true)));
    return fc_sum(fc_mul(off, fc_slice_axis(off, 0, 0, 1, 1)), FC_LIST(1), false);
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static double columns[COLUMNS][N];
    make_columns(columns);
    fc_tensor x = fc_from_host(ctx, FC_F64, columns, FC_SHAPE(COLUMNS, N));
    fc_tensor sorted = fc_sort(x, 1, false);
    fc_tensor median =
        fc_mean(fc_slice_axis(sorted, 1, N / 2 - 1, N / 2 + 1, 1), FC_LIST(1), false);
    fc_tensor trimmed = fc_mean(fc_slice_axis(sorted, 1, N / 20, -N / 20, 1), FC_LIST(1), false);
    fc_tensor rank = fc_argsort(fc_argsort(x, 1, false), 1, false);
    fc_tensor out[] = {fc_mean(x, FC_LIST(1), false), median, trimmed, correlations(x),
                       correlations(fc_cast(rank, FC_F64))};
    const char *names[] = {"mean", "median", "trimmed mean", "correlation", "of ranks"};

    check(ctx, fc_eval(ctx, out, 5));
    for (int i = 0; i < 5; i++) {
        double values[COLUMNS];
        check(ctx, fc_read(out[i], values, sizeof values));
        printf("%-12s %10.6f %10.6f %10.6f\n", names[i], values[0], values[1], values[2]);
    }
    example_end(ctx);
    return 0;
}
