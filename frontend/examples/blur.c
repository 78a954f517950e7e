// blur.c: a separable Gaussian blur of an u8 image: shifted views, edges by pad
//
// What lies beyond the edge counts nothing: the blurred image is divided by blurred ones.
#include "example.h"
#include <math.h>

enum { ROWS = 60, COLUMNS = 80, RADIUS = 3 };

static fc_tensor
blur_axis(fc_tensor x, int axis)
{
    int64_t size = fc_dim_value(fc_shape(x, axis));
    int64_t around[2] = {0, 0};
    around[axis] = RADIUS;
    fc_tensor padded = fc_pad(x, 0, around, 2, around, 2);
    fc_tensor sum = {0};
    for (int k = 0; k <= 2 * RADIUS; k++) {
        float weight = (float)exp(-0.5 * (k - RADIUS) * (k - RADIUS) / (1.5 * 1.5));
        fc_tensor term = fc_mul_scalar(fc_slice_axis(padded, axis, k, k + size, 1), weight);
        sum = k ? fc_add(sum, term) : term;
    }
    return sum;
}

static fc_tensor
blur(fc_tensor x)
{
    return blur_axis(blur_axis(x, 0), 1);
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static uint8_t image[ROWS][COLUMNS], out[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; i++) // a disc, stripes, and a gradient
        for (int j = 0; j < COLUMNS; j++) {
            int y = i - 30, x = j - 25, disc = y * y + x * x < 300;
            image[i][j] = (uint8_t)(disc ? 240 : j > 55 ? j / 4 % 2 * 200 : i + j);
        }
    fc_tensor x = fc_cast(fc_from_host(ctx, FC_U8, image, FC_SHAPE(ROWS, COLUMNS)), FC_F32);
    fc_tensor ones = fc_ones(ctx, FC_F32, FC_SHAPE(ROWS, COLUMNS));
    fc_tensor blurred = fc_cast(fc_round(fc_div(blur(x), blur(ones))), FC_U8);
    check(ctx, fc_read(blurred, out, sizeof out));

    long long sum = 0, checksum = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            sum += out[i][j];
            checksum = (checksum * 31 + out[i][j]) % 1000003;
        }
    for (int i = 0; i < ROWS; i += 10) {
        for (int j = 0; j < COLUMNS; j += 5)
            printf("%4d", out[i][j]);
        putchar('\n');
    }
    printf("sum %lld, checksum %lld\n", sum, checksum);
    example_end(ctx);
    return 0;
}
