// attention.c: causal self-attention: batched matmuls, a mask by where, softmax
//
// Heads are split off and joined again by reshape and permute, which move nothing on their own.
#include "example.h"
#include <math.h>

enum { TOKENS = 48, HEADS = 4, WIDTH = 8, MODEL = HEADS * WIDTH };

// A matrix of numbers in [-scale, scale).
static fc_tensor
matrix(fc_context *ctx, int rows, int columns, double scale, uint32_t seed)
{
    static float u[TOKENS * MODEL];
    uniform(u, rows * columns, seed);
    fc_tensor x = fc_from_host(ctx, FC_F32, u, FC_SHAPE(rows, columns));
    return fc_mul_scalar(fc_sub_scalar(fc_mul_scalar(x, 2), 1), scale);
}

// [TOKENS, MODEL] to [HEADS, TOKENS, WIDTH]
static fc_tensor
split_heads(fc_tensor x)
{
    return fc_permute(fc_reshape(x, FC_SHAPE(TOKENS, HEADS, WIDTH)), FC_LIST(1, 0, 2));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    fc_tensor x = matrix(ctx, TOKENS, MODEL, 1, 0), projected[3];
    for (int i = 0; i < 3; i++) // queries, keys, values
        projected[i] = split_heads(fc_matmul(x, matrix(ctx, MODEL, MODEL, 0.5, (uint32_t)i + 1)));

    fc_tensor scores = fc_matmul(projected[0], fc_transpose(projected[1], -1, -2));
    scores = fc_div_scalar(scores, sqrt(WIDTH));
    fc_tensor key = fc_iota(ctx, FC_SHAPE(TOKENS), 0), query = fc_unsqueeze(key, 1);
    scores = fc_where(fc_le(key, query), scores, fc_scalar(ctx, (double)-INFINITY));
    fc_tensor weights = fc_softmax(scores, -1); // [HEADS, TOKENS, TOKENS]

    fc_tensor heads = fc_permute(fc_matmul(weights, projected[2]), FC_LIST(1, 0, 2));
    fc_tensor y =
        fc_matmul(fc_reshape(heads, FC_SHAPE(TOKENS, MODEL)), matrix(ctx, MODEL, MODEL, 0.5, 4));
    fc_tensor entropy = fc_sum(fc_mul(weights, fc_log(fc_max_scalar(weights, 1e-30))), FC_LIST(-1),
                               false); // [HEADS, TOKENS]
    entropy = fc_neg(fc_mean(entropy, FC_LIST(-1), false));

    check(ctx, fc_eval(ctx, (fc_tensor[]){y, entropy}, 2));
    static float out[TOKENS][MODEL];
    float mean_entropy[HEADS];
    check(ctx, fc_read(y, out, sizeof out));
    check(ctx, fc_read(entropy, mean_entropy, sizeof mean_entropy));
    for (int h = 0; h < HEADS; h++)
        printf("head %d  entropy %.4f\n", h, (double)mean_entropy[h]);
    for (int t = 0; t < TOKENS; t += 12)
        printf("token %2d  %8.4f %8.4f ... %8.4f\n", t, (double)out[t][0], (double)out[t][1],
               (double)out[t][MODEL - 1]);
    example_end(ctx);
    return 0;
}
