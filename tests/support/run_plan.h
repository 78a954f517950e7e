// run_plan.h: runs graphs in ways that must agree: fused as one plan, and op by op as eager mode
// does, each through the kernel interpreter or through a device.
#ifndef FUSEC_TESTS_RUN_PLAN_H
#define FUSEC_TESTS_RUN_PLAN_H

#include "ir/interp.h"
#include "passes/plan.h"
#include "runtime/device.h"

struct target test_target(void); // fixed: two cores, 64-byte vectors, 1 MiB of L2

// out[i]: dense memory for output i, given by the caller. dev NULL: the kernel interpreter.
bool run_fused(const struct graph *g, const struct tensor *in, void *const *out,
               struct device *dev, const struct compile_options *o, struct diag *d);
// One plan per op of g, intermediates stored. Views too are kernels here.
bool run_eager(const struct graph *g, const struct tensor *in, void *const *out,
               struct device *dev, const struct compile_options *o, struct diag *d);

// A graph of one op of g, which it must not outlive; inputs in operand order, literals inside.
struct graph *graph_of_one_op(const struct graph *g, ref r);

// Whether fused results may differ from those of ops run one by one, unless strict.
bool graph_has_halves(const struct graph *g);

// Bytes of graph output i.
size_t output_bytes(const struct graph *g, uint32_t i);

// ---- comparing

struct tally {
    uint64_t graphs, elements, finite;
};
void **outputs_of(const struct graph *g); // dense memory for each output
void free_outputs(const struct graph *g, void **out);
// Bit for bit, any NaN equal to any other. where: 200 bytes for words about the first difference.
bool compare_outputs(const struct graph *g, void *const *a, void *const *b, struct tally *t,
                     char *where);
// Fails the running test with the graph's text.
void fail_with(const struct graph *g, uint64_t seed, const char *what, const char *where);
// How many seeds to run, and from which: FUSEC_SEEDS and FUSEC_FIRST_SEED by hand.
uint32_t seed_count(uint32_t usual);
uint32_t seed_first(void);

#endif
