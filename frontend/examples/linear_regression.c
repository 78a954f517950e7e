// linear_regression.c: least squares: normal equations, solved by conjugate gradients
//
// With D unknowns, D steps give the solution. They are so few and small that all are one graph.
#include "example.h"

enum { N = 2000, D = 5 };

// Row i: a one, then D - 1 uniforms; y is a known combination of them and noise.
static void
make_data(double x[N][D], double y[N])
{
    static const double known[D] = {1, -2, 3, 0.5, 0};
    static float u[N * D];
    uniform(u, N * D, 0);
    for (int i = 0; i < N; i++) {
        y[i] = (double)u[i * D] - 0.5;
        for (int j = 0; j < D; j++) {
            x[i][j] = j ? (double)u[i * D + j] : 1;
            y[i] += known[j] * x[i][j];
        }
    }
}

static fc_tensor
dot(fc_tensor a, fc_tensor b)
{
    return fc_sum(fc_mul(a, b), FC_ALL, false);
}

// a is symmetric and positive definite: [D, D]. Returns w with a w = b.
static fc_tensor
solve(fc_context *ctx, fc_tensor a, fc_tensor b)
{
    fc_tensor w = fc_zeros(ctx, FC_F64, FC_SHAPE(D, 1)), residual = b, direction = b;
    fc_tensor square = dot(residual, residual);
    for (int i = 0; i < D; i++) {
        fc_tensor ad = fc_matmul(a, direction);
        fc_tensor length = fc_div(square, dot(direction, ad));
        w = fc_add(w, fc_mul(length, direction));
        residual = fc_sub(residual, fc_mul(length, ad));
        fc_tensor next = dot(residual, residual);
        direction = fc_add(residual, fc_mul(fc_div(next, square), direction));
        square = next;
    }
    return w;
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static double rows[N][D], right[N];
    make_data(rows, right);
    fc_tensor x = fc_from_host(ctx, FC_F64, rows, FC_SHAPE(N, D));
    fc_tensor y = fc_from_host(ctx, FC_F64, right, FC_SHAPE(N, 1));

    fc_tensor xt = fc_transpose(x, 0, 1);
    fc_tensor w = solve(ctx, fc_matmul(xt, x), fc_matmul(xt, y));
    fc_tensor error = fc_mean(fc_square(fc_sub(fc_matmul(x, w), y)), FC_ALL, false);
    fc_tensor r2 = fc_sub(fc_scalar(ctx, 1), fc_div(error, fc_var(y, FC_ALL, false, 0)));

    double found[D], quality;
    check(ctx, fc_eval(ctx, (fc_tensor[]){w, r2}, 2));
    check(ctx, fc_read(w, found, sizeof found));
    check(ctx, fc_item(r2, &quality));
    for (int j = 0; j < D; j++)
        printf("w[%d] = %9.6f\n", j, found[j]);
    printf("R2 = %.6f\n", quality);
    example_end(ctx);
    return 0;
}
