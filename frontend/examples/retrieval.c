// retrieval.c: the nearest documents of each query: cosines by matmul, topk
//
// topk and argtopk of the same scores are one kernel.
#include "example.h"

enum { DOCUMENTS = 2000, QUERIES = 4, FEATURES = 24, K = 3 };

// Rows of length 1.
static fc_tensor
make_rows(fc_context *ctx, int rows, uint32_t seed)
{
    static float u[DOCUMENTS * FEATURES];
    uniform(u, rows * FEATURES, seed);
    fc_tensor x = fc_cast(fc_from_host(ctx, FC_F32, u, FC_SHAPE(rows, FEATURES)), FC_F64);
    x = fc_sub_scalar(x, 0.5);
    return fc_div(x, fc_sqrt(fc_sum(fc_square(x), FC_LIST(1), true)));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    fc_tensor documents = make_rows(ctx, DOCUMENTS, 0), queries = make_rows(ctx, QUERIES, 1);
    fc_tensor scores = fc_matmul(queries, fc_transpose(documents, 0, 1)); // [QUERIES, DOCUMENTS]
    fc_tensor best = fc_topk(scores, K, 1, true), which = fc_argtopk(scores, K, 1, true);

    double score[QUERIES][K];
    int64_t document[QUERIES][K];
    check(ctx, fc_eval(ctx, (fc_tensor[]){best, which}, 2));
    check(ctx, fc_read(best, score, sizeof score));
    check(ctx, fc_read(which, document, sizeof document));
    for (int q = 0; q < QUERIES; q++) {
        printf("query %d ", q);
        for (int k = 0; k < K; k++)
            printf("  %4d (%.6f)", (int)document[q][k], score[q][k]);
        putchar('\n');
    }
    example_end(ctx);
    return 0;
}
