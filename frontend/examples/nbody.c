// nbody.c: bodies under gravity: forces between all pairs by broadcasts and sums
//
// What the loop reads each time is kept before it: a temporary would be computed anew in each step.
#include "example.h"

enum { N = 64, STEPS = 100 };

struct state {
    fc_tensor position, velocity; // [N, 3]
};

// What pulls each body: sum over others of mass times offset over distance^3, softened.
static fc_tensor
pull(fc_tensor position, fc_tensor mass)
{
    fc_tensor offset = fc_sub(fc_unsqueeze(position, 0), fc_unsqueeze(position, 1)); // [N, N, 3]
    fc_tensor squares = fc_add_scalar(fc_sum(fc_square(offset), FC_LIST(2), false), 0.01);
    fc_tensor weight = fc_div(mass, fc_mul(squares, fc_sqrt(squares))); // [N, N]
    return fc_sum(fc_mul(offset, fc_unsqueeze(weight, 2)), FC_LIST(1), false);
}

static fc_tensor
energy(fc_tensor position, fc_tensor velocity, fc_tensor mass)
{
    fc_tensor offset = fc_sub(fc_unsqueeze(position, 0), fc_unsqueeze(position, 1));
    fc_tensor distance = fc_sqrt(fc_add_scalar(fc_sum(fc_square(offset), FC_LIST(2), false), 0.01));
    fc_tensor pairs = fc_div(fc_mul(mass, fc_unsqueeze(mass, 1)), distance);
    fc_tensor moving = fc_mul(fc_sum(fc_square(velocity), FC_LIST(1), false), mass);
    return fc_mul_scalar(fc_sub(fc_sum(moving, FC_ALL, false), fc_sum(pairs, FC_ALL, false)), 0.5);
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    const double dt = 0.01;
    static float u[7 * N];
    uniform(u, 7 * N, 0);
    fc_tensor numbers = fc_cast(fc_from_host(ctx, FC_F32, u, FC_SHAPE(N, 7)), FC_F64);
    fc_tensor centred = fc_sub_scalar(numbers, 0.5);
    fc_tensor mass = fc_squeeze(fc_slice_axis(numbers, 1, 6, 7, 1), 1);
    mass = fc_keep(fc_div(mass, fc_sum(mass, FC_ALL, false)));
    fc_tensor position = fc_mul_scalar(fc_slice_axis(centred, 1, 0, 3, 1), 2);
    fc_tensor velocity = fc_slice_axis(centred, 1, 3, 6, 1);
    struct state s = {fc_keep(position), fc_keep(velocity)};

    for (int step = 0; step <= STEPS; step++) {
        fc_scope_begin(ctx);
        if (step % 25 == 0) {
            double value, first[3];
            check(ctx, fc_item(energy(s.position, s.velocity, mass), &value));
            check(ctx, fc_read(fc_slice_axis(s.position, 0, 0, 1, 1), first, sizeof first));
            printf("step %3d  energy %.7f  body 0 at %9.6f %9.6f %9.6f\n", step, value, first[0],
                   first[1], first[2]);
        }
        fc_tensor half = fc_add(s.velocity, fc_mul_scalar(pull(s.position, mass), dt / 2));
        struct state next = {.position = fc_add(s.position, fc_mul_scalar(half, dt))};
        next.velocity = fc_add(half, fc_mul_scalar(pull(next.position, mass), dt / 2));
        fc_keep(next.position);
        fc_keep(next.velocity);
        check(ctx, fc_eval(ctx, (fc_tensor[]){next.position, next.velocity}, 2));
        fc_scope_end(ctx);
        fc_release(s.position);
        fc_release(s.velocity);
        s = next;
    }
    example_end(ctx);
    return 0;
}
