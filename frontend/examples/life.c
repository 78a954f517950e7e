// life.c: Conway's Game of Life on a torus of u8: neighbours are views
//
// Each generation is evaluated on its own: the same graph again and again, which is compiled once.
#include "example.h"

enum { ROWS = 16, COLUMNS = 40, GENERATIONS = 30 };

static fc_tensor
next_generation(fc_context *ctx, fc_tensor cells)
{
    fc_tensor around = fc_scalar(ctx, 0);
    for (int down = -1; down <= 1; down++)
        for (int right = -1; right <= 1; right++)
            if (down || right)
                around = fc_add(around, fc_roll(fc_roll(cells, down, 0), right, 1));
    fc_tensor alive = fc_ne_scalar(cells, 0);
    fc_tensor stays = fc_and(alive, fc_eq_scalar(around, 2));
    return fc_cast(fc_or(stays, fc_eq_scalar(around, 3)), FC_U8);
}

int
main(int argc, char **argv)
{
    fc_context *ctx = example_begin(argc, argv);
    float u[ROWS * COLUMNS];
    uint8_t grid[ROWS][COLUMNS];
    uniform(u, ROWS * COLUMNS, 0);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        grid[i / COLUMNS][i % COLUMNS] = u[i] < 0.3f;

    fc_tensor cells = fc_from_host(ctx, FC_U8, grid, FC_SHAPE(ROWS, COLUMNS));
    for (int i = 0; i < GENERATIONS; i++) {
        fc_scope_begin(ctx);
        fc_tensor next = fc_keep(next_generation(ctx, cells));
        check(ctx, fc_eval(ctx, &next, 1));
        fc_scope_end(ctx);
        fc_release(cells);
        cells = next;
    }
    check(ctx, fc_read(cells, grid, sizeof grid));
    int64_t count;
    check(ctx, fc_item_int(fc_sum(cells, FC_ALL, false), &count));
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            putchar(grid[i][j] ? '#' : '.');
        putchar('\n');
    }
    printf("%lld alive after %d generations\n", (long long)count, GENERATIONS);
    example_end(ctx);
    return 0;
}
