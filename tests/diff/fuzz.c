// fuzz.c: random graphs of all ops (tests/support/graph_any.h), each computed in four ways that
// must agree: by the graph interpreter (bit for bit where exact, else within the bound that travels
// with the values), fused, op by op, and fused in the kernel interpreter (all three: the same
// bits).
//
// Graphs are run in as many processes as there are cores; a crash is a failure like any other. What
// fails is cut down while it goes on failing (outputs dropped, nodes replaced by an operand or a
// new input), printed, and written to fuzz-SEED.fuse in the working directory.
//
//   FUSEC_FUZZ_SECONDS=3600    runs so long; FUSEC_FIRST_SEED=n from that seed on
//   FUSEC_FUZZ_FILE=x.fuse     runs that graph on the values of FUSEC_FIRST_SEED
#include "tests/support/check_ways.h"
#include "tests/support/graph_any.h"
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"
#include "ir/base/clock.h"
#include "ir/text.h"
#include "passes/pass.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRAPHS_USUAL = 260, SHRINKS_MOST = 400, PROCESSES_MOST = 64, GRAPHS_OF_DEVICE = 500 };

// What a process tells its parent: lies in memory that both have.
struct told {
    uint64_t seed; // at work on
    struct outcome outcome;
    uint64_t graphs, nodes, kernels, compiles;
    uint64_t pair[OP_COUNT][DT_COUNT], reason[REASON_COUNT], class[CLASS_COUNT];
};

static struct any_options
options_of(uint64_t seed)
{
    static const int64_t extent[] = {1, 2, 7, 8, 16, 17, 31, 33, 64, 65, 130, 257, 300};
    struct rng r = {hash_mix(seed, 12)};
    struct any_options o = {.seed = seed, .n = extent[rng_below(&r, 13)],
                            .ops = 2 + rng_below(&r, 14), .halves = rng_below(&r, 3) == 0};
    o.tiny = rng_below(&r, 4) == 0;
    if (o.tiny)
        o.n = 1 + rng_below(&r, 3);
    return o;
}

// What a graph reaches.
static void
count(const struct graph *g, const struct device *dev, struct told *t)
{
    struct diag d = {0};
    bool *live = graph_live(g);
    for (uint32_t i = 1; i < g->node.n; i++)
        if (live[i]) {
            t->pair[g->node.at[i].op][g->node.at[i].dtype]++;
            t->nodes++;
        }
    xfree(live);
    struct plan *p = plan_build(g, &dev->target, NULL, &d);
    if (!p)
        return;
    for (uint32_t i = 0; i < p->boundary.n; i++)
        t->reason[p->boundary.at[i].reason]++;
    for (uint32_t i = 0; i < p->launch.n; i++)
        t->class[p->launch.at[i].sched.cls]++;
    plan_free(p);
}

static struct device *
new_device(void)
{
    struct diag d = {0};
    struct device *dev = own_device_open((struct own_options){.pieces = 3}, &d);
    cr_assert(dev, "%s", d.text);
    return dev;
}

// ---- many graphs

struct share { // what one process does
    uint64_t first, step, graphs;
    int64_t until; // 0: graphs
};

static void
run_share(struct share s, struct told *told)
{
    struct device *dev = new_device();
    uint64_t kernels = 0, compiles = 0; // of devices before this one
    for (uint64_t i = 0; s.until ? clock_ns() < s.until : i < s.graphs; i++) {
        told->seed = s.first + i * s.step;
        struct any_options o = options_of(told->seed);
        struct graph *g = any_graph(&o);
        own_device_level(dev, told->seed % 8 ? CODE_BASELINE : CODE_OPTIMISED);
        if (!check_ways(g, told->seed, dev, &told->outcome))
            _exit(1);
        count(g, dev, told);
        told->graphs++;
        graph_free(g);
        struct own_counts c = own_device_counts(dev);
        told->kernels = kernels + c.kernels;
        told->compiles = compiles + c.compiles;
        if (told->graphs % GRAPHS_OF_DEVICE == 0) { // it keeps all code
            kernels += c.kernels;
            compiles += c.compiles;
            device_close(dev);
            dev = new_device();
        }
    }
    device_close(dev);
    _exit(0);
}

static void *
shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED, "mmap");
    return p;
}

// Waits for a process and says how it ended, if badly.
static bool
ended_well(pid_t pid, struct told *t)
{
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status) && !t->outcome.failed)
        snprintf(t->outcome.words, sizeof t->outcome.words, "crashed: signal %d", WTERMSIG(status));
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

// ---- cutting down what fails

// Whether g fails, in a process of its own.
static bool
still_fails(const struct graph *g, uint64_t seed, struct told *t)
{
    t->outcome.failed = false;
    pid_t pid = fork();
    if (!pid) {
        alarm(60);
        _exit(!check_ways(g, seed, new_device(), &t->outcome));
    }
    return !ended_well(pid, t);
}

// As printed and read again: a graph of its own, without dead nodes.
static struct graph *
reread(const struct graph *g)
{
    struct str s = {0};
    struct diag d = {0};
    graph_print(g, &s);
    struct graph *h = graph_parse(str_text(&s), s.n, "shrunk", &d);
    cr_assert(h, "%s\n%s", d.text, str_text(&s));
    str_free(&s);
    return h;
}

// g without output `drop`, node `gone` replaced: by operand `by`, or a new input when that is none.
static struct graph *
cut(const struct graph *g, uint32_t drop, uint32_t gone, uint32_t by)
{
    struct graph *h = graph_new_like(g);
    ref *to = xcalloc(g->node.n, sizeof *to);
    bool *needed = xcalloc(g->node.n, 1);
    for (uint32_t i = 0; i < g->outputs.n; i++)
        needed[g->outputs.at[i].node.i] |= i != drop;
    for (uint32_t i = g->node.n; i-- > 1;)
        for (uint32_t k = 0; needed[i] && k < g->node.at[i].nin; k++)
            needed[graph_in(g, (ref){i}, k).i] |= i != gone || k == by;
    for (uint32_t i = 1; i < g->node.n; i++) {
        const struct node *n = &g->node.at[i];
        ref in[300];
        for (uint32_t k = 0; k < n->nin && k < 300; k++)
            in[k] = to[graph_in(g, (ref){i}, k).i];
        if (!needed[i])
            continue;
        if (n->op == OP_input) {
            const struct graph_input *x = &g->inputs.at[graph_attr(g, (ref){i})[0]];
            to[i] = graph_add_input(h, x->name, n->dtype, graph_shape(g, (ref){i}), x->stride, 0);
        } else if (i == gone && by < n->nin) {
            to[i] = in[by];
        } else if (i == gone) {
            char name[16];
            snprintf(name, sizeof name, "x%u", 1000 + i);
            to[i] = graph_add_input(h, name, n->dtype, graph_shape(g, (ref){i}), NULL, 0);
        } else {
            to[i] = graph_copy(h, g, (ref){i}, in);
        }
    }
    for (uint32_t i = 0; i < g->outputs.n; i++)
        if (i != drop && !op_is(graph_node(h, to[g->outputs.at[i].node.i])->op, OPK_LEAF))
            graph_add_output(h, g->outputs.at[i].name, to[g->outputs.at[i].node.i]);
    xfree(to);
    xfree(needed);
    struct graph *out = h->outputs.n ? reread(h) : NULL;
    graph_free(h);
    return out;
}

// Cut number c of g, if there is one and it makes sense.
static struct graph *
candidate(const struct graph *g, uint32_t c, bool *more)
{
    *more = true;
    if (c < g->outputs.n)
        return g->outputs.n > 1 ? cut(g, c, 0, 0) : NULL;
    c -= g->outputs.n;
    uint32_t node = g->node.n - 1 - c / 4, by = c % 4;
    *more = node > 0 && c / 4 < g->node.n;
    if (!*more)
        return NULL;
    const struct node *n = &g->node.at[node];
    if (op_is(n->op, OPK_LEAF))
        return NULL;
    if (by == 3)
        return cut(g, UINT32_MAX, node, UINT32_MAX);
    if (by >= n->nin)
        return NULL;
    const struct node *x = graph_node(g, graph_in(g, (ref){node}, by));
    bool alike = x->dtype == n->dtype && x->shape == n->shape;
    return alike ? cut(g, UINT32_MAX, node, by) : NULL;
}

static struct graph *
shrink(struct graph *g /* taken */, uint64_t seed, struct told *t)
{
    uint32_t tries = 0;
    for (bool again = true; again && tries < SHRINKS_MOST;) {
        again = false;
        bool more = true;
        for (uint32_t c = 0; more && tries < SHRINKS_MOST; c++) {
            struct graph *h = candidate(g, c, &more);
            if (!h)
                continue;
            tries++;
            bool smaller = h->node.n < g->node.n || h->outputs.n < g->outputs.n;
            if (smaller && still_fails(h, seed, t)) {
                graph_free(g);
                g = h;
                again = true;
                c = UINT32_MAX; // from the start
            } else {
                graph_free(h);
            }
        }
    }
    return g;
}

// The same seed with a smaller extent may fail as well.
static struct graph *
smallest_extent(uint64_t seed, struct told *t)
{
    struct any_options o = options_of(seed);
    int64_t n = o.n;
    for (o.n = 1; o.n < n; o.n++) {
        struct graph *g = any_graph(&o);
        if (still_fails(g, seed, t))
            return g;
        graph_free(g);
    }
    return any_graph(&o);
}

static void
report_failure(uint64_t seed, struct told *t)
{
    char first[sizeof t->outcome.words], path[64];
    memcpy(first, t->outcome.words, sizeof first);
    struct graph *g = shrink(smallest_extent(seed, t), seed, t);
    if (!still_fails(g, seed, t)) // what the process had done before counts
        snprintf(t->outcome.words, sizeof t->outcome.words, "right in a process of its own");
    struct str s = {0};
    graph_print(g, &s);
    snprintf(path, sizeof path, "fuzz-%" PRIu64 ".fuse", seed);
    FILE *f = fopen(path, "w");
    if (f) {
        fprintf(f, "# FUSEC_FIRST_SEED=%" PRIu64 ": %s\n%s", seed, t->outcome.words, str_text(&s));
        fclose(f);
    }
    cr_assert(false, "seed %" PRIu64 ": %s\ncut down, in %s: %s\n%s", seed, first, path,
              t->outcome.words, str_text(&s));
}

// ---- the report

static void
add_up(struct told *sum, const struct told *t)
{
    sum->graphs += t->graphs;
    sum->nodes += t->nodes;
    sum->kernels += t->kernels;
    sum->compiles += t->compiles;
    sum->outcome.compared.exact += t->outcome.compared.exact;
    sum->outcome.compared.bounded += t->outcome.compared.bounded;
    sum->outcome.compared.anything += t->outcome.compared.anything;
    for (uint32_t i = 0; i < OP_COUNT; i++)
        for (uint32_t k = 0; k < DT_COUNT; k++)
            sum->pair[i][k] += t->pair[i][k];
    for (uint32_t i = 0; i < REASON_COUNT; i++)
        sum->reason[i] += t->reason[i];
    for (uint32_t i = 0; i < CLASS_COUNT; i++)
        sum->class[i] += t->class[i];
}

static void
print_told(const struct told *t)
{
    uint32_t pairs = 0, ops = 0, of = 0;
    for (uint32_t i = 1; i < OP_COUNT; i++) {
        uint32_t before = pairs;
        for (uint32_t k = 1; k < DT_COUNT; k++)
            pairs += t->pair[i][k] > 0;
        ops += pairs > before;
        of += !op_is((uint16_t)i, OPK_BODY);
    }
    printf("%" PRIu64 " graphs of %" PRIu64 " nodes; %u of %u ops, %u pairs of op and result dtype;"
           " %" PRIu64 " launches, %" PRIu64 " kernels compiled\n", t->graphs, t->nodes, ops, of,
           pairs, t->kernels, t->compiles);
    printf("  elements: %" PRIu64 " bit for bit, %" PRIu64 " within a bound, %" PRIu64 " unbounded"
           "\n  reasons:", t->outcome.compared.exact, t->outcome.compared.bounded,
           t->outcome.compared.anything);
    for (uint32_t i = 0; i < REASON_COUNT; i++)
        if (t->reason[i])
            printf(" %s %" PRIu64, reason_name[i], t->reason[i]);
    printf("\n  classes:");
    for (uint32_t i = 0; i < CLASS_COUNT; i++)
        if (t->class[i])
            printf(" %s %" PRIu64, kernel_class_name[i], t->class[i]);
    printf("\n");
}

Test(fuzz, all_ops)
{
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    const char *seconds = getenv("FUSEC_FUZZ_SECONDS");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t processes = cores < 1 ? 1 : cores > PROCESSES_MOST ? PROCESSES_MOST : (uint32_t)cores;
    struct told *told = shared(processes * sizeof *told), *sum = shared(sizeof *sum);
    pid_t pid[PROCESSES_MOST];
    int64_t until = seconds ? clock_ns() + 1000000000 * strtoll(seconds, NULL, 10) : 0;
    for (uint32_t i = 0; i < processes; i++) {
        struct share s = {seed_first() + i, processes, seed_count(GRAPHS_USUAL) / processes, until};
        if (!(pid[i] = fork()))
            run_share(s, &told[i]);
    }
    uint32_t bad = processes;
    for (uint32_t i = 0; i < processes; i++) {
        if (!ended_well(pid[i], &told[i]))
            bad = i;
        add_up(sum, &told[i]);
    }
    printf("seeds %u to %" PRIu64 ": ", seed_first(), seed_first() + sum->graphs - 1);
    print_told(sum);
    if (bad < processes)
        report_failure(told[bad].seed, &told[bad]);
    cr_assert_gt(sum->outcome.compared.exact, 0);
    cr_assert_gt(sum->outcome.compared.bounded, 0);
}

Test(fuzz, a_graph_from_a_file)
{
    const char *path = getenv("FUSEC_FUZZ_FILE");
    if (!path || !cpu_codegen_available())
        cr_skip_test("FUSEC_FUZZ_FILE names no file");
    FILE *f = fopen(path, "r");
    cr_assert(f, "%s", path);
    char text[100000];
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    struct diag d = {0};
    struct graph *g = graph_parse(text, n, path, &d);
    cr_assert(g, "%s", d.text);
    struct told *t = shared(sizeof *t);
    cr_assert(!still_fails(g, seed_first(), t), "%s", t->outcome.words);
    graph_free(g);
}

// A weight that rounds to 0 in one way and not in another, times infinity.
Test(fuzz, bounds_of_infinities_times_what_may_be_0)
{
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    static const char text[] =
        "graph @g(%x0: f16[2, 3, 4], %x1: f16[2, 5, 4], %x2: f16[2, 5, 7], %x3: bool[3, 5]) {\n"
        "  return attention %x0, %x1, %x2 {scale = 0.5, causal = true},\n"
        "         masked_attention %x0, %x1, %x2, %x3 {scale = 1.0}\n"
        "}\n";
    struct diag d = {0};
    struct graph *g = graph_parse(text, strlen(text), "text", &d);
    cr_assert(g, "%s", d.text);
    static const uint64_t seed[] = {57219, 77127}; // of special values
    for (int i = 0; i < 2; i++) {
        struct told *t = shared(sizeof *t);
        cr_expect(!still_fails(g, seed[i], t), "%s", t->outcome.words);
    }
    graph_free(g);
}
