// spectrum.c: a discrete Fourier transform: products with matrices made by iota
//
// The matrices of cosines and sines are never stored. The signal is two tones and noise.
#include "example.h"
#include <math.h>

enum { N = 512, BINS = N / 2 + 1 };

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    const double turn = 2 * acos(-1) / N;
    static float u[N];
    uniform(u, N, 0);
    fc_tensor time = fc_iota(ctx, FC_SHAPE(N), 0);
    fc_tensor noise =
        fc_sub_scalar(fc_cast(fc_from_host(ctx, FC_F32, u, FC_SHAPE(N)), FC_F64), 0.5);
    fc_tensor signal = fc_add(fc_sin(fc_mul_scalar(time, 50 * turn)), noise);
    signal = fc_add(signal, fc_mul_scalar(fc_cos(fc_mul_scalar(time, 120 * turn)), 0.5));
    signal = fc_unsqueeze(signal, 1); // [N, 1]

    fc_tensor frequency = fc_unsqueeze(fc_iota(ctx, FC_SHAPE(BINS), 0), 1);
    fc_tensor angle = fc_mul_scalar(fc_mod_scalar(fc_mul(frequency, time), N), turn); // [BINS, N]
    fc_tensor re = fc_matmul(fc_cos(angle), signal), im = fc_matmul(fc_sin(angle), signal);
    fc_tensor power = fc_squeeze(fc_add(fc_square(re), fc_square(im)), 1);
    fc_tensor loudest = fc_argmax(power, FC_LIST(0), false);
    // Parseval: the sum over all N bins, of which the inner ones stand for two each.
    fc_tensor sum = fc_sub(fc_mul_scalar(fc_sum(power, FC_ALL, false), 2),
                           fc_sum(fc_slice_axis(power, 0, 0, FC_END, N / 2), FC_ALL, false));
    fc_tensor in_time = fc_sum(fc_square(signal), FC_ALL, false);

    double bins[BINS], both[2];
    int64_t peak;
    check(ctx, fc_eval(ctx, (fc_tensor[]){power, loudest, sum, in_time}, 4));
    check(ctx, fc_read(power, bins, sizeof bins));
    check(ctx, fc_item_int(loudest, &peak));
    check(ctx, fc_item(sum, &both[0]));
    check(ctx, fc_item(in_time, &both[1]));
    printf("loudest bin %d\n", (int)peak);
    for (int i = 0; i < BINS; i += 30)
        printf("bin %3d  power %12.5f\n", i, bins[i]);
    printf("energy by frequency %.6f, in time %.6f\n", both[0] / N, both[1]);
    example_end(ctx);
    return 0;
}
