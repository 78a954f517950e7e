// monte_carlo.c: a million random points, made by integer ops where they are used
//
// Point i is a hash of i: no array of random numbers is ever stored, and none is read.
#include "example.h"
#include <math.h>

enum { N = 1000000 };

// As in example.h, for a tensor of u32: arithmetic wraps at 32 bits.
static fc_tensor
scramble_each(fc_context *ctx, fc_tensor i)
{
    fc_tensor first = fc_full(ctx, FC_U32, 0x85ebca6b, FC_SCALAR_SHAPE);
    fc_tensor second = fc_full(ctx, FC_U32, 0xc2b2ae35, FC_SCALAR_SHAPE);
    i = fc_mul(fc_xor(i, fc_shr_scalar(i, 16)), first);
    i = fc_mul(fc_xor(i, fc_shr_scalar(i, 13)), second);
    return fc_xor(i, fc_shr_scalar(i, 16));
}

// Numbers of [0, 1) in f64.
static fc_tensor
random_numbers(fc_context *ctx, int seed)
{
    fc_tensor i = fc_cast(fc_iota(ctx, FC_SHAPE(N), 0), FC_U32);
    fc_tensor bits = fc_shr_scalar(scramble_each(ctx, fc_add_scalar(i, seed << 24)), 8);
    return fc_mul_scalar(fc_cast(bits, FC_F64), 0x1p-24);
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    fc_tensor x = random_numbers(ctx, 0), y = random_numbers(ctx, 1);
    fc_tensor from_origin = fc_add(fc_square(x), fc_square(y));
    fc_tensor inside = fc_sum(fc_lt_scalar(from_origin, 1), FC_ALL, false);
    fc_tensor far = fc_mean(fc_sqrt(from_origin), FC_ALL, false);
    fc_tensor ripple = fc_mean(fc_exp(fc_neg(fc_mul(x, y))), FC_ALL, false);

    check(ctx, fc_eval(ctx, (fc_tensor[]){inside, far, ripple}, 3));
    int64_t count;
    double distance, integral;
    check(ctx, fc_item_int(inside, &count));
    check(ctx, fc_item(far, &distance));
    check(ctx, fc_item(ripple, &integral));
    double share = (double)count / N;
    printf("inside the circle: %lld\n", (long long)count);
    printf("pi = %.6f +- %.6f\n", 4 * share, 4 * sqrt(share * (1 - share) / N));
    printf("mean distance from a corner of the unit square: %.8f\n", distance);
    printf("integral of exp(-xy) over it: %.8f\n", integral);
    example_end(ctx);
    return 0;
}
