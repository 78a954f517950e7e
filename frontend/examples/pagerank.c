// pagerank.c: power iteration until a step changes little: a scalar read a step
//
// A page without links counts as linking to all. Ranks live from step to step by fc_keep.
#include "example.h"

enum { PAGES = 200 };

// The links: page j links to page i where element (i, j) is true. Low pages are popular.
static fc_tensor
make_links(fc_context *ctx)
{
    static float u[PAGES][PAGES];
    static bool links[PAGES][PAGES];
    uniform(u[0], PAGES * PAGES, 0);
    for (int i = 0; i < PAGES; i++)
        for (int j = 0; j < PAGES; j++)
            links[i][j] = i != j && u[i][j] < 0.4f / (float)(i + 4);
    return fc_from_host(ctx, FC_BOOL, links, FC_SHAPE(PAGES, PAGES));
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    const double damping = 0.85;
    fc_tensor links = make_links(ctx);
    fc_tensor out = fc_sum(links, FC_LIST(0), true); // links that leave each page: i64 [1, PAGES]
    fc_tensor dangling = fc_eq_scalar(out, 0);
    fc_tensor even = fc_scalar(ctx, 1.0 / PAGES);
    fc_tensor follow = fc_keep(fc_where(dangling, even, fc_div(links, out)));
    fc_tensor rank = fc_full(ctx, FC_F64, 1.0 / PAGES, FC_SHAPE(PAGES));

    int steps = 0;
    for (double change = 1; change > 1e-10; steps++) {
        fc_scope_begin(ctx);
        fc_tensor next = fc_squeeze(fc_matmul(follow, fc_unsqueeze(rank, 1)), 1);
        next = fc_add_scalar(fc_mul_scalar(next, damping), (1 - damping) / PAGES);
        fc_keep(next);
        fc_tensor moved = fc_sum(fc_abs(fc_sub(next, rank)), FC_ALL, false);
        check(ctx, fc_eval(ctx, (fc_tensor[]){next, moved}, 2));
        check(ctx, fc_item(moved, &change));
        fc_scope_end(ctx);
        fc_release(rank);
        rank = next;
    }
    double ranks[PAGES], sum = 0;
    check(ctx, fc_read(rank, ranks, sizeof ranks));
    for (int i = 0; i < PAGES; i++)
        sum += ranks[i];
    printf("%d steps, sum %.9f\n", steps, sum);
    for (int i = 0; i < PAGES; i += i < 5 ? 1 : 48)
        printf("page %3d  rank %.7f\n", i, ranks[i]);
    example_end(ctx);
    return 0;
}
