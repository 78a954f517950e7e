// interp_walk.h: inside the graph interpreter: elements of tensors, and the walk over all points of
// a box that every rule of interp.c and interp_axes.c is made of.
#ifndef FUSEC_IR_INTERP_WALK_H
#define FUSEC_IR_INTERP_WALK_H

#include "ir/interp.h"

static inline uint64_t
tensor_get(const struct tensor *t, int64_t offset)
{
    return scalar_load(t->dtype, (const char *)t->data + offset * dtype_size(t->dtype));
}
static inline double
tensor_get_double(const struct tensor *t, int64_t offset)
{
    return scalar_to_double(t->dtype, tensor_get(t, offset));
}
static inline void
tensor_put(const struct tensor *t, int64_t offset, uint64_t bits)
{
    scalar_store(t->dtype, (char *)t->data + offset * dtype_size(t->dtype), bits);
}

// All points of a box in row-major order, with the element offsets of up to four tensors:
//   for (walk_start(&w, rank, dim); …walk_follow…; w.left; walk_next(&w))
enum { WALK_TENSORS = 4 };
struct walk {
    uint32_t rank, ntensor;
    int64_t left; // points not yet done, this one included
    int64_t dim[MAX_RANK], at[MAX_RANK];
    int64_t stride[WALK_TENSORS][MAX_RANK], offset[WALK_TENSORS];
};
void walk_start(struct walk *w, uint32_t rank, const int64_t *dim);
// Adds a tensor, broadcast to the box. Its offsets are w->offset[0], [1] … in order of adding.
void walk_follow(struct walk *w, const struct tensor *t);
void walk_next(struct walk *w);

// One node being computed: operands, the dense result to fill, and where an error goes.
struct interp_node {
    const struct graph *g;
    const struct node *n;
    const int64_t *attr;
    const struct tensor *const *in;
    struct tensor *out;
    struct diag *d;
};
void interp_index(const struct interp_node *x);    // and OPK_SCATTER
// The position that an index element means on an axis of n elements: negative ones wrap once. -1
// when out of range, and d names the op. at: the index element's own position.
int64_t interp_position(const struct interp_node *x, int64_t index, int64_t n, int64_t axis,
                        const struct walk *at);
void interp_copy(const struct tensor *to, const struct tensor *from); // broadcast and cast
void interp_axes(const struct interp_node *x);     // reductions and composites over axes
void interp_composite(const struct interp_node *x); // those whose operands have other roles
void interp_matmul(const struct interp_node *x);
void interp_order(const struct interp_node *x);
void interp_random(const struct interp_node *x);   // random bits and the numbers made of them

#endif
