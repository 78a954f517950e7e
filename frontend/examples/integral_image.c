// integral_image.c: means over boxes of any size: cumsum along both axes, then take
//
// A box takes four numbers, whatever its size: here its radius depends on the row.
#include "example.h"

enum { ROWS = 72, COLUMNS = 96 };

static fc_tensor
corner(fc_tensor integral, fc_tensor row, fc_tensor column)
{
    fc_tensor at = fc_add(fc_mul_scalar(row, COLUMNS + 1), column);
    return fc_take(fc_reshape(integral, FC_SHAPE((ROWS + 1) * (COLUMNS + 1))), at, 0);
}

static fc_tensor
clamp(fc_context *ctx, fc_tensor x, int high)
{
    return fc_clamp(x, fc_scalar(ctx, 0), fc_scalar(ctx, high));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static float u[ROWS * COLUMNS];
    static uint8_t image[ROWS][COLUMNS];
    uniform(u, ROWS * COLUMNS, 0);
    for (int i = 0; i < ROWS; i++) // a ramp and noise
        for (int j = 0; j < COLUMNS; j++)
            image[i][j] = (uint8_t)(i + j + (int)(80 * u[i * COLUMNS + j]));

    fc_tensor pixels = fc_from_host(ctx, FC_U8, image, FC_SHAPE(ROWS, COLUMNS));
    fc_tensor integral = fc_cumsum(fc_cumsum(pixels, 0, false), 1, false);
    integral = fc_pad(integral, 0, FC_LIST(1, 1), FC_LIST(0, 0)); // [ROWS + 1, COLUMNS + 1]

    fc_tensor row = fc_unsqueeze(fc_iota(ctx, FC_SHAPE(ROWS), 0), 1);
    fc_tensor column = fc_iota(ctx, FC_SHAPE(COLUMNS), 0);
    fc_tensor radius = fc_add_scalar(fc_floordiv_scalar(row, 10), 1);
    fc_tensor top = clamp(ctx, fc_sub(row, radius), ROWS);
    fc_tensor bottom = clamp(ctx, fc_add_scalar(fc_add(row, radius), 1), ROWS);
    fc_tensor left = clamp(ctx, fc_sub(column, radius), COLUMNS);
    fc_tensor right = clamp(ctx, fc_add_scalar(fc_add(column, radius), 1), COLUMNS);
    fc_tensor sums = fc_sub(fc_add(corner(integral, bottom, right), corner(integral, top, left)),
                            fc_add(corner(integral, top, right), corner(integral, bottom, left)));
    fc_tensor areas = fc_mul(fc_sub(bottom, top), fc_sub(right, left));
    fc_tensor mean = fc_div(sums, areas);
    fc_tensor bright = fc_sum(fc_gt(pixels, mean), FC_LIST(1), false);

    static double means[ROWS][COLUMNS];
    int64_t counts[ROWS];
    check(ctx, fc_eval(ctx, (fc_tensor[]){mean, bright}, 2));
    check(ctx, fc_read(mean, means, sizeof means));
    check(ctx, fc_read(bright, counts, sizeof counts));
    for (int i = 0; i < ROWS; i += 10)
        printf("row %2d  bright %2d  means %9.4f %9.4f %9.4f\n", i, (int)counts[i], means[i][0],
               means[i][50], means[i][COLUMNS - 1]);
    example_end(ctx);
    return 0;
}
