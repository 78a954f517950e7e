// example.h: what the examples share: the context that the command line asks for, an end when
// something went wrong, and numbers made by a formula, the same as example.py's.
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <fusec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ends the program if a status is not FC_OK. An op that was given something wrong shows where its
// result is asked for: that returns the status, and fc_error has the words of the op.
static inline void
check(fc_context *ctx, fc_status status)
{
    if (status == FC_OK)
        return;
    fprintf(stderr, "%s: %s\n", fc_status_name(status), ctx ? fc_error(ctx) : "");
    exit(1);
}

// A lazy context, or with "eager" as the program's argument one that runs op by op.
static inline fc_context *
example_begin(int argc, char **argv)
{
    bool eager = argc > 1 && !strcmp(argv[1], "eager");
    fc_options options = {.size = sizeof options, .mode = eager ? FC_EAGER : FC_LAZY};
    fc_context *ctx;
    fc_status status = fc_context_new(&options, &ctx);
    check(ctx, status);
    return ctx;
}

// Frees the context; says on standard error how many kernels were launched.
static inline void
example_end(fc_context *ctx)
{
    fc_statistics s = {.size = sizeof s};
    check(ctx, fc_stats(ctx, &s));
    fprintf(stderr, "kernels: %lld\n", (long long)s.kernels);
    fc_context_free(ctx);
}

// Scrambles the bits of i: MurmurHash3's last steps, by Austin Appleby.
static inline uint32_t
scramble(uint32_t i)
{
    i = (i ^ i >> 16) * 0x85ebca6b;
    i = (i ^ i >> 13) * 0xc2b2ae35;
    return i ^ i >> 16;
}

// Fills x with n numbers of [0, 1), multiples of 2^-24: element i is a hash of seed * 2^24 + i.
static inline void
uniform(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(scramble((seed << 24) + (uint32_t)i) >> 8) * 0x1p-24f;
}

#endif
