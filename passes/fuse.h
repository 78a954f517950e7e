// fuse.h: what the fusion files share. Private to passes/.
//
// A hero is a node whose value needs a loop of its own: a reduction, a scan, a contraction, an
// order, a scatter, or a pointwise value that must be stored (an output, or one that is not worth
// or not able to be recomputed). Everything else is computed inside the groups that read it. A
// group is a set of heroes over one domain: one future kernel.
#ifndef FUSEC_PASSES_FUSE_H
#define FUSEC_PASSES_FUSE_H

#include "ir/graph.h"
#include "ir/kernel.h"
#include "passes/plan.h"

enum { AXIS_DYNAMIC = MAX_AXES - 1 }; // stands for a position given by data, while maps compose

struct coord { // an index of one dim: base + sum stride * axis, over a group's axes
    int64_t base, stride[MAX_AXES];
    int64_t dynamic; // the instruction that stride[AXIS_DYNAMIC] multiplies; 0: none
};
struct imap { // where an element of a node is, for a point of the group's domain
    uint8_t rank;
    struct coord c[MAX_RANK + 1];
    uint32_t mask;  // instruction: the element exists (0: always)
    uint32_t check; // instruction: a position given by data is in range (0: it always is)
};

enum hero_kind {
    HERO_STORE,
    HERO_REDUCE,
    HERO_CONTRACT,
    HERO_SCAN,
    HERO_ORDER,
    HERO_SCATTER
};
struct hero {
    ref node;
    uint8_t kind;
    bool over_p;      // a reduction over the group's P axes, of a ROW value
    bool is_output;
    bool shares;      // dear work with reductions before it, whose kernel it should be in
    uint32_t output;  // number, when is_output
    uint32_t group;
    uint32_t buffer;  // plan buffer, once stored
    uint8_t reason;   // why a pointwise value was made a hero
    VEC(uint32_t) readers; // groups that read it from memory, dead ones included
    // Of its iteration: a store's and a scan's over its dims, a reduce's over its operand's, a
    // contract's over batch …, m, n, k, an order's over its dims and, last, the line, a scatter's
    // over its dims and then what it goes through.
    struct imap map;
};

// Whether a hero's class knows its own axes only: the kernel's are those, of extent 1 too.
static inline bool
hero_sets_domain(uint8_t kind)
{
    return kind == HERO_CONTRACT || kind == HERO_ORDER || kind == HERO_SCATTER;
}

struct use { // a tensor that a group reads, and where
    uint32_t hero; // or 0: input
    ref node;      // what map is over: the tensor, or a reshape of it
    struct imap map;
};

struct group {
    bool dead;
    uint8_t naxes;
    uint32_t first_node, last_node; // of its heroes
    struct axis axis[MAX_AXES];
    VEC(uint32_t) hero; // in graph order
    VEC(struct use) use;
    int64_t cost; // of its kernel when it was built last (cost.h)
};

struct refusal {
    uint32_t from, to; // heroes: a producer and the first hero of the group that was refused
    uint8_t reason;
};

struct fuser {
    const struct graph *g;
    const struct target *target;
    const struct compile_options *options;
    uint32_t *hero_of;      // per node: hero, 0 = none
    VEC(struct hero) hero;  // [0] is a dummy
    VEC(struct group) group;
    VEC(struct refusal) refused;
    struct map tried;       // pairs of groups that were refused
    uint32_t *seen, nseen, stamp; // of the search for cycles
    uint8_t level;          // 0: all merges; 1: the same, of values that read two tensors at most;
                            // 2: of these producers with readers only; 3: none
    uint32_t rewrites;
    int64_t work; // see plan.work
};

static inline uint64_t
pair_key(uint32_t a, uint32_t b) // of two groups, in this order; exact (see hash_mix)
{
    return hash_mix(0, (uint64_t)a << 32 | b);
}

// What building a body came to.
struct body_result {
    bool ok;
    uint8_t reason;          // when it failed
    ref node;                // the node it failed at: storing its operand may help
    uint8_t refine_axis;     // + 1, when splitting that axis by refine_by (the inner part) may help
    int64_t refine_by;
};

// body.c: builds the kernel body of a group over the group's own axes; fills in group.use.
// Heroes of other groups are read from their buffers: buffer numbers are hero numbers, inputs
// count from hero.n on.
struct body_result body_build(struct fuser *f, struct group *gr, struct kernel *k);
// The same with axes split on demand until it succeeds or fails for good.
struct body_result body_build_refined(struct fuser *f, struct group *gr, struct kernel *k);
void group_split_axis(struct fuser *f, struct group *gr, uint32_t axis, int64_t inner);
// Whether an axis may be split. A class that sets the domain has one loop for each of the last two
// axes: n and k of a contraction, j and the line of an order.
bool group_may_split(const struct fuser *f, const struct group *gr, uint32_t axis);

// imap.c: composing maps with views. view_map: the operand's map for the i-th operand of a view;
// false: not affine, or axes must be split (r says which).
bool view_map(const struct graph *g, ref view, uint32_t operand, const struct imap *m,
              const struct group *gr, struct imap *out, struct body_result *r);
void broadcast_map(const struct graph *g, const struct imap *m, const struct shape *to,
                   struct imap *out);
bool imap_equal(const struct imap *a, const struct imap *b);

// unify.c: one domain for two groups. a produces what b reads (edge), or both read one tensor.
// On success out is a new group (axes, heroes of both with maps over them), not yet built.
bool unify_groups(struct fuser *f, struct group *a, struct group *b, struct group *out,
                  uint8_t *reason);
void group_free(struct group *gr);

// axes.c: permutes a built kernel's axes to P first, merges what can be merged, puts the axis that
// runs along memory last.
void kernel_normalise_axes(struct kernel *k);

// heroes.c: which nodes are heroes; one group each, built.
void choose_heroes(struct fuser *f);

// fuse.c: merges groups while that saves time. Afterwards each live group is a kernel.
void fuse_graph(struct fuser *f);
void fuser_free(struct fuser *f);
bool hero_is_stored(const struct fuser *f, uint32_t hero); // an output, or read by another group
// The group's kernel, stores that nobody needs left out, axes normalised, scheduled. False: reason.
bool finish_kernel(struct fuser *f, struct group *gr, struct kernel *k, struct schedule *s,
                   uint32_t a, uint32_t b, uint8_t *reason); // a, b: groups that gr replaces
bool group_kernel(struct fuser *f, struct group *gr, struct kernel *k, struct schedule *s,
                  uint8_t *reason);

// name.c: fused_add_relu_3, and the user's ops of a kernel.
void launch_name(const struct graph *g, const struct kernel *k, struct launch *l, uint32_t number,
                 struct arena *mem);

// traffic.c
void launch_traffic(struct launch *l, const struct target *t);

// plan_memory.c: arena offsets by lifetimes.
void plan_memory(struct plan *p);

#endif
