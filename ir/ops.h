// ops.h: the op table's C side. Everything about an op is written once, in ops.def.
#ifndef FUSEC_IR_OPS_H
#define FUSEC_IR_OPS_H

#include <stdbool.h>
#include <stdint.h>

enum op {
    OP_none,
#define OP(name, F, I, ...) OP_##name,
#include "ir/ops.def"
#undef OP
    OP_COUNT
};

enum op_kind {
    OPK_NONE,
    OPK_LEAF,      // input, literal
    OPK_ELEM,      // elementwise: broadcasts its operands
    OPK_REDUCE,    // over attr axes
    OPK_SCAN,      // along attr axis: what the elements up to each one come to
    OPK_VIEW,      // moves elements, computes nothing
    OPK_INDEX,     // reads at positions given by data, or makes positions
    OPK_SCATTER,   // writes at positions given by data
    OPK_ORDER,     // puts the elements along an axis in order, or some of them (ir/order.h)
    OPK_CONTRACT,  // matmul
    OPK_COMPOSITE, // expands to other ops before fusion
    OPK_BODY,      // exists in kernel bodies only
};

enum op_flag {
    OPF_COMM = 1,    // commutative, bit for bit
    OPF_ASSOC = 2,   // associative for integers
    OPF_EXACT = 4,   // correctly rounded or exact: every evaluator gives the same bits
    OPF_EXPAND = 8,  // rewritten into exact primitives in kernel bodies (ir/expand.h)
    OPF_ALIAS = 16,  // a view that eager execution expresses with strides alone
    OPF_MEAN = 32,   // a loss: the mean over all elements of what F and .expand say
    OPF_POSITION = 64, // of an order: gives i64 positions instead of elements
    OPF_ALONG = 128, // the index has x's rank: a position for each line along axis
    OPF_SCORES = 256, // attention: eager execution stores scores and weights between three kernels
};

// How an elementwise op's result dtype follows from its operands' (promoted first).
enum op_dtype_rule {
    DTR_SAME,       // promoted operand type
    DTR_FLOAT,      // floats only; integers and bool are promoted to f32 (64- and 32-bit ints: f64)
    DTR_NUMERIC,    // promoted type, not bool
    DTR_INT,        // integers only
    DTR_BITS,       // integers or bool
    DTR_COMPARE,    // operands promoted, result bool
    DTR_PREDICATE,  // one operand, result bool
    DTR_WHERE,      // bool, then promoted pair
    DTR_CAST,       // given by the node
    DTR_OWN,        // an inference rule of its own (not elementwise)
};

// A reduction's identity at any dtype. ZERO is -0.0 for floats, so that -0.0 + x == x, bit for bit.
enum op_ident { ID_NONE, ID_ZERO, ID_ONE, ID_LOWEST, ID_HIGHEST, ID_FALSE, ID_TRUE };

struct op_info {
    const char *name;
    uint8_t kind, arity; // arity 255: any number of inputs, at least one
    uint8_t rule;
    uint8_t cost;        // flops-like weight of one element: 1 add, 4 div/sqrt, about 20 exp
    uint16_t flags;
    const char *operands; // "x weight": their names, where they have better ones than x or a, b, c
    const char *dtypes; // that it takes and gives, in words, where rule and kind do not say it all
    const char *attrs;   // "axes:ints keepdims:bool eps:float=1e-5": the schema, see schema.h
    const char *grad;    // what flows back to the operands, as text (composite.h); NULL: see kind
    const char *expand;  // elementwise composites: the expansion as text, see composite.h
    // LLVM right-hand sides (see ops.def). Floats, signed, unsigned, bool; NULL: not taken.
    const char *llvm_f, *llvm_s, *llvm_u, *llvm_b;
    const char *cuda_f, *cuda_i, *cuda_b; // CUDA C: floats, integers, bool
    float ulp32, ulp64;  // error bound of inexact ops, in units in the last place
    uint8_t ident;       // reductions, scans, scatters: what an absent element counts as
    uint16_t combine;    // reductions, scans: the binary op that joins two partial results;
                         // scatters: an element and an update (OP_none: the last one stays)
    const char *doc;
};
extern const struct op_info op_table[OP_COUNT];

static inline const char *
op_name(uint16_t op)
{
    return op_table[op].name;
}
static inline bool
op_is(uint16_t op, enum op_kind k)
{
    return op_table[op].kind == k;
}
// Has a function of its own in fusec.h, and may be called in .fuse text.
static inline bool
op_is_public(uint16_t op)
{
    return !op_is(op, OPK_NONE) && !op_is(op, OPK_LEAF) && !op_is(op, OPK_BODY);
}
// A reduction or order that gives positions (argmax, argsort) instead of elements.
static inline bool
op_gives_position(uint16_t op)
{
    return (op_is(op, OPK_REDUCE) && op_table[op].combine == OP_none) ||
           op_table[op].flags & OPF_POSITION;
}
uint16_t op_by_name(const char *name); // OP_none when unknown
// The name of operand i, not terminated, in op_table or of static life; *n its length.
const char *op_operand_name(uint16_t op, uint32_t i, uint32_t *n);
// A composite that is elementwise, or the mean of one that is.
static inline bool
op_is_elementwise_composite(uint16_t op)
{
    return op_is(op, OPK_COMPOSITE) && op_table[op].rule != DTR_OWN;
}
// Of a reduction, a scan or a scatter that combines, in the dtype that it accumulates in.
uint64_t op_identity_bits(uint16_t op, uint8_t dtype);
// Whether a reduction or scan that accumulates in dtype has the same bits in any order.
bool op_any_order(uint16_t op, uint8_t dtype);

#endif
