// mandelbrot.c: points that stay near 0 under z^2 + c: 60 iterations, one graph
//
// One kernel that reads nothing but constants; z never leaves the registers.
#include "example.h"

enum { ROWS = 24, COLUMNS = 72, ITERATIONS = 60 };

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    fc_tensor cr = fc_linspace(ctx, FC_F64, -2.1, 0.7, COLUMNS);                 // [COLUMNS]
    fc_tensor ci = fc_unsqueeze(fc_linspace(ctx, FC_F64, -1.15, 1.15, ROWS), 1); // [ROWS, 1]
    fc_tensor zr = fc_zeros(ctx, FC_F64, FC_SHAPE(ROWS, COLUMNS)), zi = zr;
    fc_tensor count = fc_zeros(ctx, FC_I32, FC_SHAPE(ROWS, COLUMNS));

    for (int i = 0; i < ITERATIONS; i++) {
        fc_tensor near = fc_le_scalar(fc_add(fc_square(zr), fc_square(zi)), 4);
        fc_tensor r = fc_add(fc_sub(fc_square(zr), fc_square(zi)), cr);
        fc_tensor im = fc_add(fc_mul_scalar(fc_mul(zr, zi), 2), ci);
        zr = fc_where(near, r, zr); // what left stays where it is
        zi = fc_where(near, im, zi);
        count = fc_add(count, near);
    }

    static int32_t out[ROWS][COLUMNS];
    check(ctx, fc_read(count, out, sizeof out));
    long long total = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            putchar(" .:-=+*%@#"[out[i][j] * 9 / ITERATIONS]);
            total += out[i][j];
        }
        putchar('\n');
    }
    printf("iterations: %lld\n", total);
    example_end(ctx);
    return 0;
}
