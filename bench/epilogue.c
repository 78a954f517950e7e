// epilogue.c: what an epilogue costs on top of the plain product, C = A B in f32.
//
//   build/bench/epilogue [--threads N] [--rounds N] [--size M K N]
//
// The ways take turns in one process, forwards and backwards, on the same arrays; each turn is a
// call that is not counted and then the fastest of three. Printed: median and least of the turns,
// their ratios to the plain product's, and the median of the ratios within a round.
#include "ir/base/check.h"
#include "ir/base/clock.h"
#include "ir/base/mem.h"
#include "ir/text.h"
#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_ROUNDS = 1000, CALLS = 3 };

struct way {
    const char *name, *body; // of the product %c, %bias: f32[N] and %r: f32[M, N]
    struct executable *run;
    double us[MAX_ROUNDS], ratio[MAX_ROUNDS];
};
static struct way ways[] = {
    {.name = "plain", .body = "%c"},
    {.name = "bias", .body = "add %c, %bias"},
    {.name = "residual", .body = "add %c, %r"},
    {.name = "bias, gelu_tanh", .body = "gelu_tanh (add %c, %bias)"},
    {.name = "bias, gelu_tanh, residual", .body = "add (gelu_tanh (add %c, %bias)), %r"},
    {.name = "bias, gelu, residual", .body = "add (gelu (add %c, %bias)), %r"},
};
enum { WAYS = sizeof ways / sizeof *ways };

struct options {
    int threads, rounds;
    long m, k, n;
};

static float *
array(int64_t n, uint64_t seed, double scale)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t bytes = ((size_t)n * sizeof(float) + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    float *x = aligned_alloc(HUGE_PAGE, bytes);
    CHECK(x, "no memory for %zu bytes", bytes);
    madvise(x, bytes, MADV_HUGEPAGE);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(((double)(int64_t)(seed >> 33) / (1 << 30) - 1) * scale);
    }
    return x;
}

static struct executable *
compile(const struct options *o, const char *body, struct device *dev)
{
    struct diag d = {0};
    char text[400];
    snprintf(text, sizeof text,
             "graph @g(%%a: f32[%ld, %ld], %%b: f32[%ld, %ld], %%bias: f32[%ld], "
             "%%r: f32[%ld, %ld]) {\n  %%c = matmul %%a, %%b\n  return %s\n}\n",
             o->m, o->k, o->k, o->n, o->n, o->m, o->n, body);
    struct graph *g = graph_parse(text, strlen(text), "bench", &d);
    CHECK(g, "%s", d.text);
    struct plan *p = plan_build(g, &dev->target, NULL, &d);
    struct executable *e = p ? executable_new(p, dev, &d) : NULL;
    CHECK(e, "%s", d.text);
    graph_free(g);
    return e;
}

static double
turn(struct executable *e, void *const *in, void **out)
{
    struct diag d = {0};
    double best = 0;
    for (int i = 0; i <= CALLS; i++) {
        double start = clock_us();
        CHECK(executable_run(e, in, out, &d), "%s", d.text);
        double us = clock_us() - start;
        best = i && (best == 0 || us < best) ? us : best;
    }
    return best;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
report(const struct options *o)
{
    size_t rounds = (size_t)o->rounds;
    for (int w = WAYS - 1; w >= 0; w--)
        for (size_t r = 0; r < rounds; r++)
            ways[w].ratio[r] = ways[w].us[r] / ways[0].us[r];
    printf("%-28s %10s %10s %8s %8s %8s\n", "us; over the plain product", "median", "least",
           "medians", "leasts", "rounds");
    for (int w = 0; w < WAYS; w++) {
        qsort(ways[w].us, rounds, sizeof *ways[w].us, by_size);
        qsort(ways[w].ratio, rounds, sizeof *ways[w].ratio, by_size);
        double median = ways[w].us[rounds / 2], least = ways[w].us[0];
        printf("%-28s %10.1f %10.1f %8.3f %8.3f %8.3f\n", ways[w].name, median, least,
               median / ways[0].us[rounds / 2], least / ways[0].us[0], ways[w].ratio[rounds / 2]);
    }
}

static struct options
parse(int argc, char **argv)
{
    struct options o = {.threads = 0, .rounds = 31, .m = 1024, .k = 1024, .n = 1024};
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            o.threads = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--rounds") && i + 1 < argc) {
            o.rounds = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--size") && i + 3 < argc) {
            o.m = atol(argv[i + 1]), o.k = atol(argv[i + 2]), o.n = atol(argv[i + 3]);
            i += 3;
        } else {
            fprintf(stderr, "usage: epilogue [--threads N] [--rounds N] [--size M K N]\n");
            exit(2);
        }
    CHECK(o.rounds > 0 && o.rounds <= MAX_ROUNDS, "1 to %d rounds", MAX_ROUNDS);
    return o;
}

int
main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    struct diag d = {0};
    struct device *dev = device_open("cpu", (uint32_t)o.threads, 0, &d);
    CHECK(dev, "%s", d.text);
    void *in[4] = {array(o.m * o.k, 1, 1), array(o.k * o.n, 2, 0.1), array(o.n, 3, 1),
                   array(o.m * o.n, 4, 1)};
    void *c = array(o.m * o.n, 5, 1);
    printf("%s\n%ld x %ld x %ld, %d rounds\n", dev->words, o.m, o.k, o.n, o.rounds);
    for (int w = 0; w < WAYS; w++)
        ways[w].run = compile(&o, ways[w].body, dev);
    for (int r = 0; r < o.rounds; r++)
        for (int j = 0; j < WAYS; j++) {
            int w = r % 2 ? WAYS - 1 - j : j;
            ways[w].us[r] = turn(ways[w].run, in, &c);
        }
    report(&o);
    for (int w = 0; w < WAYS; w++)
        executable_unref(ways[w].run);
    device_close(dev);
    return 0;
}
