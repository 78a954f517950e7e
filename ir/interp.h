// interp.h: the two interpreters. Slow and obvious on purpose: they say what is right.
#ifndef FUSEC_IR_INTERP_H
#define FUSEC_IR_INTERP_H

#include "ir/graph.h"
#include "ir/kernel.h"

// A tensor in host memory; strides in elements.
struct tensor {
    uint8_t dtype, rank;
    int64_t dim[MAX_RANK], stride[MAX_RANK];
    void *data;
};
int64_t tensor_count(const struct tensor *t);

// Runs a graph: every node computed in double (or 64-bit integers), then rounded to its dtype;
// inexact functions through libm, those of f64 in long double; sums in long double. in[i] for graph
// input i; out[i] dense tensors allocated here (free their data with xfree). False: d has words (an
// index out of range, say).
bool interp_graph(const struct graph *g, const struct tensor *in, struct tensor *out,
                  struct diag *d);

// Runs one kernel's stages on buffers, bit for bit what generated code computes (the body is
// expanded first, reductions in their fixed order), counting what it reads and writes.
struct kernel_counts {
    int64_t bytes_read, bytes_written; // see traffic in passes/plan.h
    int64_t loads, stores;             // executed, element by element
};
// buffer[i] points at element 0 of kernel buffer i. per_buffer: NULL or one entry per buffer.
// l2: bytes of the second-level cache: a repeated read with less than half of this read in between
// is not counted as traffic.
bool interp_kernel(const struct kernel *k, void *const *buffer, int64_t l2,
                   struct kernel_counts *total, int64_t *per_buffer, struct diag *d);

#endif
