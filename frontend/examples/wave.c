// wave.c: a string that swings: a stencil of slices and pad, two states kept
//
// Each step makes one new state and releases the oldest; it is one kernel, compiled once.
#include "example.h"

enum { N = 400, STEPS = 600 };

// The next state of the inner points from their neighbours; the ends stay 0.
static fc_tensor
swing(fc_tensor now, fc_tensor before)
{
    fc_tensor left = fc_slice_axis(now, 0, 0, -2, 1), right = fc_slice_axis(now, 0, 2, FC_END, 1);
    fc_tensor middle = fc_slice_axis(now, 0, 1, -1, 1);
    fc_tensor bend = fc_sub(fc_add(left, right), fc_mul_scalar(middle, 2));
    fc_tensor on = fc_sub(fc_mul_scalar(middle, 2), fc_slice_axis(before, 0, 1, -1, 1));
    return fc_pad(fc_add(on, fc_mul_scalar(bend, 0.25)), 0, FC_LIST(1), FC_LIST(1));
}

// From neighbour to neighbour.
static fc_tensor
slope(fc_tensor x)
{
    return fc_sub(fc_slice_axis(x, 0, 1, FC_END, 1), fc_slice_axis(x, 0, 0, -1, 1));
}

// Of the motion and of the tension; no step changes the sum.
static fc_tensor
energy(fc_tensor now, fc_tensor before)
{
    fc_tensor motion = fc_sum(fc_square(fc_sub(now, before)), FC_ALL, false);
    fc_tensor tension = fc_sum(fc_mul(slope(now), slope(before)), FC_ALL, false);
    return fc_add(motion, fc_mul_scalar(tension, 0.25));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    double start[N] = {0};
    for (int i = 0; i < N; i++) // plucked at a quarter
        start[i] = i < 100 ? i / 100.0 : (N - 1 - i) / (double)(N - 1 - 100);
    fc_tensor before = fc_from_host(ctx, FC_F64, start, FC_SHAPE(N)), now = before;

    for (int step = 1; step <= STEPS; step++) {
        fc_scope_begin(ctx);
        fc_tensor next = fc_keep(swing(now, before));
        check(ctx, fc_eval(ctx, &next, 1));
        if (step % 150 == 0) {
            double x[N], value;
            check(ctx, fc_read(next, x, sizeof x));
            check(ctx, fc_item(energy(next, now), &value));
            printf("step %3d  energy %.10f  string", step, value);
            for (int i = 0; i < N; i += 80)
                printf(" %8.5f", x[i]);
            putchar('\n');
        }
        fc_scope_end(ctx);
        if (step > 1)
            fc_release(before);
        before = now;
        now = next;
    }
    example_end(ctx);
    return 0;
}
