// pairwise.c: nearest neighbours: distances by matmul, block by block
//
// |x - y|^2 = |x|^2 + |y|^2 - 2 x y. A block's rows and their numbers are views of the whole; a
// graph is one block, in a scope that releases it.
#include "example.h"
#include <math.h>

enum { N = 1200, FEATURES = 16, BLOCK = 300 };

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static float u[N * FEATURES];
    uniform(u, N * FEATURES, 0);
    fc_tensor all = fc_cast(fc_from_host(ctx, FC_F32, u, FC_SHAPE(N, FEATURES)), FC_F64);
    fc_tensor norms = fc_sum(fc_square(all), FC_LIST(1), false);
    fc_tensor number = fc_iota(ctx, FC_SHAPE(N), 0);
    check(ctx, fc_eval(ctx, (fc_tensor[]){fc_keep(all), fc_keep(norms)}, 2));

    static int64_t nearest[N];
    static double distance[N];
    for (int i = 0; i < N; i += BLOCK) {
        fc_scope_begin(ctx);
        fc_tensor rows = fc_slice_axis(all, 0, i, i + BLOCK, 1);
        fc_tensor row_norms = fc_unsqueeze(fc_slice_axis(norms, 0, i, i + BLOCK, 1), 1);
        fc_tensor row_number = fc_unsqueeze(fc_slice_axis(number, 0, i, i + BLOCK, 1), 1);
        fc_tensor products = fc_matmul(rows, fc_transpose(all, 0, 1));
        fc_tensor squares = fc_sub(fc_add(row_norms, norms), fc_mul_scalar(products, 2));
        fc_tensor self = fc_eq(row_number, number);
        squares = fc_where(self, fc_scalar(ctx, (double)INFINITY), squares);
        fc_tensor which = fc_argmin(squares, FC_LIST(1), false);
        fc_tensor far = fc_sqrt(fc_min_reduce(squares, FC_LIST(1), false));
        check(ctx, fc_eval(ctx, (fc_tensor[]){which, far}, 2));
        check(ctx, fc_read(which, nearest + i, BLOCK * sizeof *nearest));
        check(ctx, fc_read(far, distance + i, BLOCK * sizeof *distance));
        fc_scope_end(ctx);
    }

    int64_t mutual = 0;
    double sum = 0;
    for (int i = 0; i < N; i++) {
        mutual += nearest[nearest[i]] == i;
        sum += distance[i];
    }
    for (int i = 0; i < N; i += 240)
        printf("point %4d  nearest %4lld  distance %.6f\n", i, (long long)nearest[i], distance[i]);
    printf("mean distance %.6f, mutual neighbours %lld\n", sum / N, (long long)mutual);
    example_end(ctx);
    return 0;
}
