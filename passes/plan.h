// plan.h: what compilation of a graph yields: an immutable list of launches over buffers, with the
// reasons and figures that explain prints.
#ifndef FUSEC_PASSES_PLAN_H
#define FUSEC_PASSES_PLAN_H

#include "ir/graph.h"
#include "ir/kernel.h"

// Whether eager execution launches a kernel for a node: not for leaves and views that only change
// strides.
bool runs_eagerly(const struct graph *g, ref r);

enum place { PLACE_INPUT, PLACE_OUTPUT, PLACE_ARENA };
struct plan_buffer {
    uint8_t place, dtype;
    uint32_t index;   // input or output number
    int64_t offset;   // into the arena, bytes, 64-byte aligned
    int64_t bytes;    // dense size
    uint32_t first, last; // launches that write it first and touch it last
    // A device that runs a chain block by block may keep one block of this array at local_at bytes
    // of a thread's scratch, in place of all of it in the arena.
    bool local;
    int64_t local_at;
};

struct launch {
    struct kernel kernel;
    struct schedule sched;
    uint32_t *buffer;  // per kernel buffer: plan.buffer index
    // Traffic in bytes: every visit of an element counts, except repeats of a row or tile that
    // stays in the second-level cache within this kernel.
    int64_t bytes_read, bytes_written, elements;
    int64_t *buffer_bytes; // per kernel buffer
    uint32_t nop;          // user ops that it computes, whole or in part
    uint16_t *op;          // their op numbers, in graph order
    int64_t units_of_block; // in a chain: its units in one block
};

// Consecutive launches that run together: first all of them over block 0, then over block 1 …;
// blocks are independent of each other (chain.c).
enum { CHAIN_LONGEST = 8, CHAIN_BUFFERS = 32 }; // launches, and buffers of each, at most
struct chain {
    uint32_t first, n; // launches
    int64_t blocks;
    int64_t local_bytes; // of arrays that are local to blocks, a thread; a multiple of 64
};

struct boundary {
    uint8_t reason;    // enum reason
    uint32_t from, to; // launch numbers
    int64_t bytes;     // stored and read again because of it
    const char *node;  // what is stored: "sum@12"
};

enum reason {
#define REASON(name, doc) REASON_##name,
#include "passes/reasons.def"
#undef REASON
    REASON_COUNT
};
extern const char *const reason_name[REASON_COUNT];
extern const char *const reason_doc[REASON_COUNT];

struct plan {
    struct graph *raw;       // as built by the user (a private copy)
    struct graph *canonical; // what was fused
    VEC(struct plan_buffer) buffer;
    VEC(struct launch) launch;
    VEC(struct boundary) boundary;
    VEC(struct chain) chain; // in the order of their launches
    int64_t arena_bytes, peak_bytes, eager_peak_bytes;
    int64_t traffic_bytes, traffic_elements, minimum_bytes;
    // Steps taken to fuse: values of the bodies built, groups visited in search of cycles, pairs
    // weighed, ops named. A count, so that a test can tell whether planning is linear.
    int64_t work;
    uint32_t eager_kernels;  // user ops that are not views
    int64_t eager_bytes;
    // An output that is an input unchanged, or another output again, is copied by a launch like
    // any other; there are no aliases.
    struct arena mem;
};

struct compile_options {
    bool strict;         // f16 and bf16 round after every op
    uint32_t stop_after; // merges of groups; 0: no limit (for bisecting)
    // For tools: told of each pass when it is done, with the graph it made (borrowed for the call).
    void (*after_pass)(void *user, const char *pass, const struct graph *g, double us);
    void *user;
};

// Compiles g (outputs set) for target. NULL: d says why.
struct plan *plan_build(const struct graph *g, const struct target *t,
                        const struct compile_options *o, struct diag *d);
void plan_free(struct plan *p);

#endif
