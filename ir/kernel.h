// kernel.h: a fused kernel, as the passes make it, the kernel interpreter runs it and the emitters
// print it.
//
// A kernel runs over a domain: parallel axes P, then reduce axes R (possibly none). The body is a
// straight line of scalar SSA instructions. Each instruction has
//   - a level: ONCE (the same everywhere), ROW (one value per point of P) or ELEM (one per point of
//     P x R);
//   - a stage: how many reductions over R must be finished before it can be computed.
// Accumulators reduce an ELEM instruction over R (scope OVER_R: the result is a ROW value usable
// from stage + 1 on), or a ROW instruction over P (scope OVER_P: the result is one value, usable in
// the epilogue only). A scan is an accumulator too (scope ALONG_R): its result is an ELEM value of
// the same stage, what all elements up to this point of R come to.
//
// The loops that an emitter writes, whatever the class:
//
//   for each point of P:
//     for s in 0 .. nstage-1:
//       for each point of R:                    (skipped when nothing of stage s is ELEM)
//         compute the ELEM instructions that stage s's sinks need; sinks are the values of
//         accumulators of stage s, stores of stage s, values kept for later stages
//       finish the accumulators of stage s
//     compute ROW instructions and ROW stores (each at its stage)
//   finish the OVER_P accumulators, compute the ONCE instructions that need them, and store them
//
// An ELEM instruction of stage t needed in stage s > t is either read back from on-chip scratch
// (schedule.keep) or computed again; both give the same bits.
//
// The order of a reduction over n elements is fixed, whatever the class, vector width and threads:
//   element j belongs to lane j % 16; a lane takes its elements in blocks of 16 (so a block of the
//   whole is 256 consecutive elements); within a block a lane starts from the identity and adds
//   its elements in order; the block results of a lane are joined pairwise in a binary tree by
//   block number (after block b is done, while bit k of b + 1 is 0 ... as a binary counter
//   carries; at the end what is left is joined from the newest to the oldest: older op newer);
//   last the 16 lanes are joined: l with l + 8, then l + 4, l + 2, l + 1. Absent elements count as
//   the identity. n is the product of the R extents, j their row-major index.
//   (Blocked pairwise summation; Higham, "The accuracy of floating point summation", 1993.)
//
// So is that of a scan along n elements. Where the order makes no difference (integers, maximum,
// minimum) it is nobody's business; else element j is ((S + B) + V) + L, where + stands for the op
// and each of the four starts from the identity:
//   L: the vector of 16 elements up to j, as log-step prefixes have it: for k = 0, 1, 2, 3, where
//      bit k of j is set, what the 2^k elements before those taken so far come to (which has been
//      made the same way) joins from the left (Sklansky, "Conditional-sum addition logic", 1960);
//   V: the vectors before it in the block of 256, one after the other;
//   B: the blocks before it in the span of 65536 (each is its V at its end), one after the other;
//   S: the spans before it (each is its B at its end), one after the other.
// So a sum of n terms has chains of about 4 + 16 + 256 + n / 65536 roundings instead of n, a vector
// takes four steps in registers, and a span can be summed before it is known what it starts from.
//
// f16 and bf16 occur only in loads, stores, casts, bitcasts and where: arithmetic has been widened
// to f32 by the passes. A bool instruction holds false or true; loads of bool normalise.
//
// An order kernel (class sort) puts the elements of a line in order: its P axes are batch axes and,
// last, j; its one R axis runs along the line. All its accumulators are order rows over one value
// of stage 0, which does not depend on j; their result at a point of P is the j-th element in
// order, or its position, as ir/ops.def says, so j has no more points than R. The prologue is
// computed once for a line; stage 1 is the epilogue over P.
//
// A contraction accumulates k = 0, 1, … in one chain of fused multiply-adds per element, from +0. A
// matmul of floats whose M or N is 1 is no contraction but products, each rounded, and their sum in
// the order above (passes/decompose.c).
#ifndef FUSEC_IR_KERNEL_H
#define FUSEC_IR_KERNEL_H

#include "ir/base/mem.h"
#include "ir/dtype.h"
#include "ir/ops.h"

#include <stdbool.h>
#include <stdint.h>

enum { MAX_STAGES = 32 }; // of a kernel: sets of them are masks of 32 bits
enum { MAX_AXES = 12, RED_LANES = 16, RED_STEPS = 16, RED_BLOCK = RED_LANES * RED_STEPS };
enum { SCAN_LANES = 16, SCAN_STEPS = 4, SCAN_BLOCK = 256, SCAN_SPAN = 65536 };

enum axis_kind { AXIS_P, AXIS_R };
struct axis {
    int64_t extent;
    uint8_t kind;
};

enum level { LEVEL_ONCE, LEVEL_ROW, LEVEL_ELEM };

// Where an element lives: buffer[base + sum stride[i] * axis[i]], in elements, signed.
struct access {
    uint16_t buffer; // kernel.buffers
    uint8_t dtype;
    int64_t base;
    int64_t stride[MAX_AXES];
};

// An instruction. Operands are instruction numbers (always smaller than its own); instruction 0 is
// a dummy, so 0 = none. Unless said otherwise dtype is the result's; compare-like rows give bool
// and take their dtype from operand a.
//   elementwise rows of ops.def     a, b, c operands (cast, bitcast: from inst[a].dtype to dtype)
//   OP_literal                      bits: the value
//   OP_load                         aux: access; a: extra index (i64, added as a * gather stride)
//                                   or 0; b: mask (bool) or 0: where false the lane reads nothing
//                                   and gives 0; c: in-range check (bool) or 0: where false (and
//                                   the mask is true) the same, and the launch's error is raised
//   OP_checked                      a, and where b (bool) is false the launch's error is raised
//   OP_index                        aux: index of kernel.affine: base + sum stride * axis, an i64
//   OP_result                       aux: accumulator
//   OP_where                        aux: WHERE_RARELY: a is true for few elements and b is dear, so
//                                   that emitters compute b where some lane needs it only. A hint
//                                   of ir/expand.c's: it changes no value.
//   OP_bitcast                      aux: BITCAST_NUMBER: to a float that is never NaN in an element
//                                   whose value is used. A promise of ir/expand.c's rules.
enum { WHERE_RARELY = 1, BITCAST_NUMBER = 1 };
struct inst {
    uint16_t op;
    uint8_t dtype, stage, level;
    uint32_t a, b, c;
    uint32_t aux;
    uint32_t origin;   // of the plan's origins
    uint64_t bits;     // literal value, or a load's gather stride (int64_t)
};

enum acc_scope { OVER_R, OVER_P, ALONG_R };
struct acc {
    uint16_t op;      // a reduction row, or an order row; ALONG_R: a scan row; of CLASS_SCATTER: a
                      // scatter row
    uint8_t dtype;    // accumulation dtype; of rows that give positions the dtype compared (the
                      // result is i64)
    uint8_t stage;    // of the instruction reduced
    uint8_t scope;
    bool descending;  // of an order row
    uint32_t value;   // the instruction reduced or scanned, cast to dtype already
    uint32_t origin;
};

struct store {
    uint32_t value;   // instruction; its dtype equals the access's
    uint32_t access;
    uint8_t stage, level;
};

enum buffer_role { BUF_IN, BUF_OUT };
struct kernel_buffer {
    uint8_t dtype, role;
    bool by_value; // one element, in 8 bytes of the host's memory
    int64_t span_lo, span_hi; // least and greatest element offset reached (hi >= lo), 0 if none
};

enum kernel_class {
    CLASS_POINTWISE, // no R
    CLASS_ROW,       // R's last axis runs along memory: vectors along R
    CLASS_COLUMN,    // P's last axis runs along memory: vectors along P
    CLASS_SPLIT,     // few rows, long R: R itself is divided among threads
    CLASS_CONTRACT,
    CLASS_SCATTER,   // writes at positions given by data
    CLASS_SCAN,      // accumulators along R
    CLASS_SORT,      // one R axis whose elements are put in order
    CLASS_COUNT
};
extern const char *const kernel_class_name[CLASS_COUNT];

// A contraction: C[batch..., m, n] = sum_k A[batch, m, k] B[batch, k, n]. The P axes are the batch
// axes, then m, then n; the one R axis is k. a and b are the instructions of stage 0 that give the
// factors (level ELEM, or lower where all k have the same; their loads do not depend on n, resp. m:
// the prologue); the product is accumulator acc (op OP_sum, accumulation dtype, value 0). Stage 1
// is the epilogue over P.
struct contraction {
    uint32_t a, b, acc;
};

// A scatter: one P axis, `axis`, is the destination. At a point of P the accumulator (op a scatter
// row) starts from instruction init and takes its value at those points of R, in order, at which
// the index equals the point's place on the axis: value and index, both of stage 0 and level ELEM,
// do not depend on that axis. An index that equals no place belongs to nobody.
struct scatter {
    uint32_t init, index, acc;
    uint8_t axis;
    bool in_range; // the index's dtype has no value that is no place
};

struct kernel {
    const char *name; // fused_add_relu_0
    uint8_t cls;
    uint8_t naxis, nred; // all axes, P first; the last nred of them are R
    uint8_t nstage;      // 1 + the greatest stage
    struct axis axis[MAX_AXES];
    VEC(struct inst) inst;     // inst.at[0] is a dummy
    VEC(struct acc) acc;
    VEC(struct access) access;
    VEC(struct access) affine; // OP_index functions; buffer unused
    VEC(struct store) store;
    VEC(struct kernel_buffer) buffers;
    struct contraction contraction; // cls == CLASS_CONTRACT
    struct scatter scatter;         // cls == CLASS_SCATTER
};

void kernel_free_body(struct kernel *k);
void kernel_copy(struct kernel *to, const struct kernel *from); // its own body, the same name
int64_t kernel_points(const struct kernel *k, enum axis_kind kind); // product of extents
struct str;
void kernel_print(const struct kernel *k, struct str *out); // for people and goldens

struct diag;
bool kernel_verify(const struct kernel *k, struct diag *d);

// How a kernel is laid out on a device. With the body this is the whole key of generated code;
// extents, strides and bases are arguments unless noted.
struct schedule {
    uint8_t cls;
    uint8_t vec;        // lanes; 16, or 64 for bodies of 8-bit types only
    uint8_t unroll;     // pointwise: vectors in flight per step; contract: vectors of the register
                        // tile; column: rows at once; column, lane by lane: rows of a chain that is
                        // written out, 0: a loop; split: blocks in flight, 1 or 4
    uint8_t streaming_store;
    uint8_t prefetch;   // column: rows ahead; pointwise transposed: 1: ask for the next squares and
                        // rows of a tile; pointwise, split: cache lines ahead; row: the cache
                        // (1, 2) that the next row, or group of rows, is asked for; scan:
                        // rows or lines, passes/schedule_scan.h; 0: none
    uint8_t transpose;  // pointwise: axis + 1 along which some access runs when it is not the last;
                        // contract: 1: m and n (and so a and b) change roles
    uint8_t rows;       // contract: the register tile is rows x (unroll vectors of vec lanes); row:
                        // rows taken at once, 0: one; column, lane by lane: vectors at once
    uint8_t pack;       // contract: bits of enum contract_way: what is packed, where sums lie
    uint8_t overlap;    // row: bit s: stage s runs in one loop with such stages of other rows
    uint8_t edge[2];    // contract: rows and vectors of the last register tiles, 0: as all others;
                        // column, lane by lane: 1: some chains have not `unroll` rows; rows of a
                        // chain taken in one go, 0: all; row: [0] rows whose last stage goes
                        // through the columns together, 0: one
    uint16_t tile[3];   // column: strip width, rows if few, lanes a pass if lane by lane
                        // (1 ... 16); contract: mc, nc, kc; pointwise: rows of a unit, of a tile
                        // where transposed, and its columns; row, split: passes/schedule_row.h
    int64_t chunk;      // elements of the vector axis per task unit (a multiple of vec); column,
                        // lane by lane: rows, a power of two of blocks
    int64_t units;      // task units: the range that threads divide among themselves
    int64_t grain;      // least units a thread takes
    int64_t finish_units; // units of the second phase (OVER_P, split); 0 = none
    int64_t scratch_bytes;        // per thread
    int64_t shared_scratch_bytes; // per launch (partials)
    uint16_t threads;   // cuda: of a block; units are blocks
    bool index64;       // cuda: positions and offsets need 64 bits
    uint64_t keep[4];   // bit i: the ELEM value of instruction i (< 256) is kept between stages
};

enum device_kind { DEVICE_CPU, DEVICE_CUDA };
// Plain data about a device; the runtime fills it in, tests may make their own.
struct target {
    uint8_t kind;
    char arch[64];      // cpu: LLVM's CPU name; cuda: sm_90
    char features[2048];// cpu: LLVM's feature string
    uint32_t units;     // cores or multiprocessors used
    uint32_t vec_bytes; // widest vector register
    int64_t l1, l2, llc;
};

#endif
