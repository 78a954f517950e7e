// softmax_regression.c: gradient descent with the gradient written out
//
// The gradient of the mean cross-entropy with respect to the logits is (softmax - one-hot) / N. The
// weights live from step to step by fc_keep; the old ones are released when the new ones are there.
#include "example.h"

enum { N = 600, FEATURES = 4, CLASSES = 3, STEPS = 50 };

// Point i belongs to class i % 3 and is off that class's mean by uniforms.
static void
make_data(float x[N][FEATURES], int32_t y[N])
{
    static const float mean[CLASSES][FEATURES] = {
        {0, 0.5f, 0, -0.5f}, {0.75f, 0, -0.25f, 0}, {-0.5f, -0.5f, 0.5f, 0}};
    uniform(x[0], N * FEATURES, 0);
    for (int i = 0; i < N; i++) {
        y[i] = i % CLASSES;
        for (int j = 0; j < FEATURES; j++)
            x[i][j] = 2 * (x[i][j] - 0.5f) + mean[y[i]][j];
    }
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    static float data[N][FEATURES];
    static int32_t classes[N];
    make_data(data, classes);
    fc_tensor x = fc_from_host(ctx, FC_F32, data, FC_SHAPE(N, FEATURES));
    fc_tensor y = fc_from_host(ctx, FC_I32, classes, FC_SHAPE(N));
    fc_tensor w = fc_zeros(ctx, FC_F32, FC_SHAPE(FEATURES, CLASSES));
    fc_tensor b = fc_zeros(ctx, FC_F32, FC_SHAPE(CLASSES));

    for (int step = 0; step <= STEPS; step++) {
        fc_scope_begin(ctx);
        fc_tensor logits = fc_add(fc_matmul(x, w), b);
        fc_tensor loss = fc_cross_entropy(logits, y);
        fc_tensor right = fc_eq(fc_argmax(logits, FC_LIST(1), false), y);
        fc_tensor accuracy = fc_mean(fc_cast(right, FC_F32), FC_ALL, false);

        fc_tensor off = fc_sub(fc_softmax(logits, 1), fc_one_hot(y, CLASSES, FC_F32));
        fc_tensor gradient = fc_div_scalar(off, N);
        fc_tensor dw = fc_matmul(fc_transpose(x, 0, 1), gradient);
        fc_tensor db = fc_sum(gradient, FC_LIST(0), false);
        fc_tensor next_w = fc_keep(fc_sub(w, fc_mul_scalar(dw, 2)));
        fc_tensor next_b = fc_keep(fc_sub(b, fc_mul_scalar(db, 2)));

        check(ctx, fc_eval(ctx, (fc_tensor[]){next_w, next_b, loss, accuracy}, 4));
        double values[2];
        check(ctx, fc_item(loss, &values[0]));
        check(ctx, fc_item(accuracy, &values[1]));
        if (step % 10 == 0)
            printf("step %2d  loss %.4f  accuracy %.4f\n", step, values[0], values[1]);
        fc_scope_end(ctx);
        fc_release(w);
        fc_release(b);
        w = next_w;
        b = next_b;
    }
    float weights[FEATURES][CLASSES];
    check(ctx, fc_read(w, weights, sizeof weights));
    for (int j = 0; j < FEATURES; j++)
        printf("weights %d %8.3f %8.3f %8.3f\n", j, (double)weights[j][0], (double)weights[j][1],
               (double)weights[j][2]);
    example_end(ctx);
    return 0;
}
