// kmeans.c: k-means: distances by broadcasting, argmin, sums by one-hot labels
//
// A step stands between fc_scope_begin and fc_scope_end; the centres live on by fc_keep.
#include "example.h"

enum { N = 3000, K = 4, STEPS = 12 };

// Four clouds: point i belongs to cloud i % 4 and is off its centre by a sum of uniforms.
static fc_tensor
make_points(fc_context *ctx)
{
    static const double where[K][2] = {{0, 0}, {3, 1}, {1, 4}, {-2, 3}};
    static float u[4 * N];
    static double points[N][2];
    uniform(u, 4 * N, 0);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 2; j++) {
            double two = (double)u[4 * i + j] + (double)u[4 * i + 2 + j];
            points[i][j] = where[i % K][j] + 2 * (two - 1);
        }
    return fc_from_host(ctx, FC_F64, points, FC_SHAPE(N, 2));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    fc_tensor points = make_points(ctx);
    fc_tensor centres = fc_slice_axis(points, 0, 0, K, 1), next; // the first points: [K, 2]

    for (int step = 1; step <= STEPS; step++) {
        fc_scope_begin(ctx);
        fc_tensor off = fc_sub(fc_unsqueeze(points, 1), centres);        // [N, K, 2]
        fc_tensor distances = fc_sum(fc_square(off), FC_LIST(2), false); // [N, K]
        fc_tensor nearest = fc_argmin(distances, FC_LIST(1), false);     // [N]
        fc_tensor inertia = fc_sum(fc_min_reduce(distances, FC_LIST(1), false), FC_ALL, false);
        fc_tensor one_hot = fc_one_hot(nearest, K, FC_F64); // [N, K]
        fc_tensor counts = fc_sum(one_hot, FC_LIST(0), false);
        fc_tensor sums = fc_matmul(fc_transpose(one_hot, 0, 1), points);
        next = fc_keep(fc_div(sums, fc_unsqueeze(counts, 1)));
        check(ctx, fc_eval(ctx, (fc_tensor[]){next, inertia}, 2));
        double value;
        check(ctx, fc_item(inertia, &value));
        if (step % 3 == 0)
            printf("step %2d  inertia %10.4f\n", step, value);
        fc_scope_end(ctx);
        fc_release(centres);
        centres = next;
    }
    double c[K][2];
    check(ctx, fc_read(centres, c, sizeof c));
    for (int k = 0; k < K; k++)
        printf("centre %d  %7.4f %7.4f\n", k, c[k][0], c[k][1]);
    example_end(ctx);
    return 0;
}
