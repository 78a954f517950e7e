// scale.c: what a node costs as graphs grow. Everything between a call and a plan should be linear
// in the nodes: a column that grows from line to line shows what is not.
//   build/bench/scale [KIND] [NODES]
// Per kind of graph and size: nanoseconds a node for the calls of the public interface, for finding
// what is pending and writing the plan's key with a graph of it, for each pass, and for letting the
// handles go. No kernel is compiled. A kind stops where a size takes longer than three seconds.
#include "fusec.h"

#include "frontend/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 16 };
static float data[N * N];

struct build {
    fc_context *ctx;
    fc_tensor x, y;
    VEC(fc_tensor) out;
};

static void
output(struct build *b, fc_tensor t)
{
    vec_push(&b->out, fc_keep(t));
}

// ---- the kinds: each makes about n ops

static void
chain(struct build *b, int n)
{
    fc_tensor t = b->x;
    for (int i = 0; i < n; i++)
        t = fc_add(t, b->y);
    output(b, t);
}

static void
wide_sum(struct build *b, int n)
{
    VEC(fc_tensor) t = {0};
    for (int i = 0; i < n / 2; i++)
        vec_push(&t, fc_from_host(b->ctx, FC_F32, data, FC_SHAPE(N)));
    while (t.n > 1) {
        uint32_t k = 0;
        for (uint32_t i = 0; i + 1 < t.n; i += 2)
            t.at[k++] = fc_add(t.at[i], t.at[i + 1]);
        if (t.n % 2)
            t.at[k++] = t.at[t.n - 1];
        t.n = k;
    }
    output(b, t.at[0]);
    vec_free(&t);
}

static void
independent(struct build *b, int n)
{
    for (int i = 0; i < n / 2; i++) {
        fc_tensor t = fc_from_host(b->ctx, FC_F32, data, FC_SHAPE(N));
        output(b, fc_relu(fc_add(t, b->y)));
    }
}

static void
siblings(struct build *b, int n)
{
    for (int i = 0; i < n / 2; i++)
        output(b, fc_add_scalar(fc_mul_scalar(b->x, i + 2), 1));
}

static void
many_outputs(struct build *b, int n)
{
    fc_tensor t = b->x;
    for (int i = 0; i < n; i++) {
        t = fc_add(t, b->y);
        output(b, t);
    }
}

static void
reductions(struct build *b, int n)
{
    fc_tensor x = fc_from_host(b->ctx, FC_F32, data, FC_SHAPE(N, N)), t = x;
    for (int i = 0; i < n / 2; i++)
        t = fc_sub(t, fc_mean(t, FC_LIST(i % 2), true));
    output(b, t);
}

static void
views(struct build *b, int n)
{
    fc_tensor t = fc_from_host(b->ctx, FC_F32, data, FC_SHAPE(N, N));
    for (int i = 0; i < n / 4; i++)
        t = fc_add(fc_transpose(fc_reshape(fc_flip(t, FC_LIST(0)), FC_SHAPE(N, N)), 0, 1), t);
    output(b, t);
}

static void
diamonds(struct build *b, int n)
{
    fc_tensor t = b->x;
    for (int i = 0; i < n / 3; i++)
        t = fc_add(fc_neg(t), fc_abs(t));
    output(b, t);
}

static void
matmuls(struct build *b, int n)
{
    fc_tensor w = fc_from_host(b->ctx, FC_F32, data, FC_SHAPE(N, N)), t = w;
    for (int i = 0; i < n / 2; i++)
        t = fc_relu(fc_matmul(t, w));
    output(b, t);
}

static const struct kind {
    const char *name;
    void (*build)(struct build *b, int n);
} kinds[] = {
    {"chain", chain},           {"diamonds", diamonds},
    {"wide sum", wide_sum},     {"independent", independent},
    {"siblings", siblings},     {"many outputs", many_outputs},
    {"reductions", reductions}, {"views", views},
    {"matmuls", matmuls},
};

// ---- measuring

// Of this thread: what the machine does beside it does not count.
static double
clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static double
lap(double *since)
{
    double now = clock_us(), us = now - *since;
    *since = now;
    return us;
}

enum { MAX_PASSES = 16 };
struct pass_times {
    double us[MAX_PASSES], clock;
    const char *name[MAX_PASSES];
    int n;
};

static void
note_pass(void *user, const char *pass, const struct graph *g, double us)
{
    (void)g, (void)us;
    struct pass_times *t = user;
    if (t->n == MAX_PASSES)
        return;
    t->name[t->n] = pass;
    t->us[t->n++] = lap(&t->clock);
}

static void
print_head(const struct pass_times *t)
{
    printf("nanoseconds a node\n%-13s %8s %8s %8s %8s", "kind", "nodes", "calls", "key", "graph");
    for (int i = 0; i < t->n; i++)
        printf(" %8.8s", t->name[i]);
    printf(" %8s %8s\n", "release", "kernels");
}

static bool
measure(const struct kind *k, int n, bool *headed)
{
    fc_options o = {.size = sizeof o, .flush_ops = INT64_MAX, .flush_bytes = INT64_MAX};
    struct build b = {0};
    if (fc_context_new(&o, &b.ctx))
        exit(3);
    b.x = fc_from_host(b.ctx, FC_F32, data, FC_SHAPE(N));
    b.y = fc_from_host(b.ctx, FC_F32, data, FC_SHAPE(N));
    double clock = clock_us(), start = clock;
    fc_scope_begin(b.ctx);
    k->build(&b, n);
    double calls = lap(&clock);
    VEC(struct value *) v = {0};
    context_lock(b.ctx);
    for (uint32_t i = 0; i < b.out.n; i++)
        vec_push(&v, slot_find(b.ctx, b.out.at[i])->value);
    clock = clock_us();
    struct diag d = {0};
    eval_key(b.ctx, v.at, v.n);
    double key = lap(&clock);
    struct graph *g = eval_graph(b.ctx, v.at, v.n, &d);
    double graph = lap(&clock) - key;
    context_unlock(b.ctx);
    clock = clock_us();
    struct pass_times t = {.clock = clock};
    struct compile_options c = {.after_pass = note_pass, .user = &t};
    struct plan *p = g ? plan_build(g, &b.ctx->device->target, &c, &d) : NULL;
    uint32_t kernels = p ? p->launch.n : 0;
    if (!p)
        printf("%s\n", d.text);
    plan_free(p);
    graph_free(g);
    clock = clock_us();
    fc_scope_end(b.ctx);
    for (uint32_t i = 0; i < b.out.n; i++)
        fc_release(b.out.at[i]);
    double release = lap(&clock), per = 1e3 / n;
    if (!*headed)
        print_head(&t);
    *headed = true;
    printf("%-13s %8d %8.0f %8.0f %8.0f", k->name, n, calls * per, key * per, graph * per);
    for (int i = 0; i < t.n; i++)
        printf(" %8.0f", t.us[i] * per);
    printf(" %8.0f %8u\n", release * per, kernels);
    fflush(stdout);
    vec_free(&v);
    vec_free(&b.out);
    fc_context_free(b.ctx);
    return clock_us() - start < 3e6;
}

int
main(int argc, char **argv)
{
    int most = argc > 2 ? atoi(argv[2]) : 1000000;
    bool headed = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc > 1 && strcmp(argv[1], "all") && strcmp(argv[1], kinds[i].name))
            continue;
        for (int n = 1000; n <= most && measure(&kinds[i], n, &headed); n *= 10)
            continue;
    }
    if (headed)
        return 0;
    fprintf(stderr, "usage: scale [KIND] [NODES]\n  at least 1000 nodes; KIND: all");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        fprintf(stderr, ", '%s'", kinds[i].name);
    fprintf(stderr, "\n");
    return 2;
}
