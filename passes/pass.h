// pass.h: graph-to-graph passes. A pass walks its source in order and builds a new graph; a node
// that no output needs is left behind. All passes keep inputs (also unused ones) and outputs in
// their order and names.
#ifndef FUSEC_PASSES_PASS_H
#define FUSEC_PASSES_PASS_H

#include "ir/graph.h"
#include "passes/plan.h"

typedef struct graph *pass_fn(const struct graph *g, const struct compile_options *o);

struct graph *pass_canon(const struct graph *g, const struct compile_options *o);
struct graph *pass_rounding(const struct graph *g, const struct compile_options *o);
struct graph *pass_decompose(const struct graph *g, const struct compile_options *o);

// The skeleton of a pass: calls rewrite(p, r) for each live node of src in order; to[r.i] is the
// node of dst that stands for it. The default rewriting is pass_copy.
struct pass {
    const struct graph *src;
    struct graph *dst;
    const struct compile_options *options;
    ref *to;
    bool *live;
    uint32_t *uses;  // per node of src: live readers, an output counting as two
    bool unroll;     // pass_decompose: the reduction at hand may become elementwise ops
    uint32_t origin; // of the node being rewritten: new nodes inherit it
};
typedef ref pass_rewrite(struct pass *p, ref r);
struct graph *pass_run(const struct graph *src, const struct compile_options *o,
                       pass_rewrite *rewrite);
ref pass_copy(struct pass *p, ref r);
ref pass_operand(const struct pass *p, ref r, uint32_t i); // operand i of source node r, in dst

// Builders for rewriting: infer, insert, inherit the origin; a mistake here is a bug.
ref pass_op(struct pass *p, uint16_t op, const ref *in, uint32_t nin, const int64_t *attr,
            uint32_t nattr);
ref pass_op1(struct pass *p, uint16_t op, ref a);
ref pass_op2(struct pass *p, uint16_t op, ref a, ref b);
ref pass_op3(struct pass *p, uint16_t op, ref a, ref b, ref c);
ref pass_cast(struct pass *p, ref a, uint8_t dtype); // a itself when it has that dtype
ref pass_number(struct pass *p, uint8_t dtype, double x);
ref pass_reduce(struct pass *p, uint16_t op, ref a, const int64_t *axes, uint32_t naxes,
                bool keepdims);
// The n elements start, start + step … along an axis, which stays.
ref pass_slice(struct pass *p, ref a, uint32_t axis, int64_t start, int64_t step, int64_t n);
ref pass_reshape(struct pass *p, ref a, const struct shape *s); // a itself when it has that shape
ref pass_broadcast(struct pass *p, ref a, const struct shape *s);

// Which nodes the outputs need, inputs included always. Caller frees.
bool *graph_live(const struct graph *g);

#endif
