// add_relu.c: relu(a + b) over a thousand numbers, in one kernel.
//   cc add_relu.c $(pkg-config --cflags --libs fusec) && ./a.out
#include <fusec.h>
#include <stdio.h>

int
main(void)
{
    fc_context *ctx;
    if (fc_context_new(NULL, &ctx)) {
        fprintf(stderr, "%s\n", fc_error(ctx));
        return 1;
    }
    float a[1000], b[1000], out[1000];
    for (int i = 0; i < 1000; i++) {
        a[i] = (float)i;
        b[i] = -500;
    }
    fc_tensor x = fc_from_host(ctx, FC_F32, a, FC_SHAPE(1000));
    fc_tensor y = fc_from_host(ctx, FC_F32, b, FC_SHAPE(1000));
    fc_tensor z = fc_relu(fc_add(x, y)); // a graph, nothing computed yet

    if (fc_read(z, out, sizeof out)) {
        fprintf(stderr, "%s\n", fc_error(ctx));
        return 1;
    }
    fc_statistics s = {.size = sizeof s};
    fc_stats(ctx, &s);
    printf("relu(0 - 500) = %g, relu(999 - 500) = %g, kernels: %lld\n", (double)out[0],
           (double)out[999], (long long)s.kernels);
    fc_context_free(ctx);
    return 0;
}
