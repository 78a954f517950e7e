// op_cases.h: calls of every op of the table, made from its row: for a dtype, a size and one of the
// op's forms (which axes, which target dtype …) the operands' shapes and the attributes.
#ifndef FUSEC_TESTS_OP_CASES_H
#define FUSEC_TESTS_OP_CASES_H

#include "ir/graph.h"
#include "ir/interp.h"
#include "tests/support/graph_gen.h"

// What an operand's elements are.
enum fill {
    FILL_ORDINARY, // small numbers
    FILL_NAN,      // … a third of them NaN
    FILL_INFINITE,
    FILL_MINUS_ZERO, // … or all of them
    FILL_DENORMAL,
    FILL_EXTREME, // the ends of the range, and what lies beside them
    FILL_COUNT
};
extern const char *const fill_name[FILL_COUNT];
bool fill_exists(enum fill f, uint8_t dtype); // integers have no NaN

enum size_case {
    SIZE_SCALAR,
    SIZE_1,
    SIZE_7,
    SIZE_37,
    SIZE_1025,
    SIZE_EMPTY,
    SIZE_BROADCAST,  // operands of shapes that differ
    SIZE_STRIDED,    // gaps between elements
    SIZE_REVERSED,   // all strides negative
    SIZE_MISALIGNED, // element 0 lies one element past an aligned address
    SIZE_COUNT
};
extern const char *const size_name[SIZE_COUNT];

// Why a combination is not run.
enum skip {
    SKIP_NOT,
    SKIP_DTYPE,     // the op does not take it, and says so
    SKIP_VALUE,     // the dtype has no such value
    SKIP_NO_AXIS,   // a scalar has no axis
    SKIP_NO_VALUE,  // no elements, no maximum; the op says so
    SKIP_ONE_SHAPE, // operands cannot be of shapes that differ
    SKIP_BODY_ONLY, // the row occurs in kernel bodies only; its users are swept
    SKIP_LEAF,      // inputs and literals: operands of everything
    SKIP_SAMPLED,   // left to the long run (FUSEC_SWEEP=all)
    SKIP_COUNT
};
extern const char *const skip_words[SKIP_COUNT];

enum { OPERANDS_MOST = 5 };
struct operand {
    uint8_t dtype;
    struct shape shape; // numbers
    int64_t below;      // > 0: positions 0 … below - 1
    int64_t wrap;       // > 0: some of them counted from the end of an axis of so many elements
};
struct call {
    uint16_t op;
    uint32_t nin, nattr;
    int64_t n;
    struct operand in[OPERANDS_MOST];
    int64_t attr[64];
};

// How an op's operands follow from its row.
enum call_rule {
    BY_ELEMENT,
    BY_AXES,      // axes, keepdims, and perhaps more
    BY_AXIS,      // one operand, an axis
    BY_LAST_AXIS, // norms: weights of the last axis
    BY_TABLE,     // rules of its own, in op_cases.c
    BY_NOTHING,   // unknown
};
enum call_rule call_rule(uint16_t op);

// Forms of an op: 0 … n - 1; 0: the table has a row that nothing here knows to call.
uint32_t call_forms(uint16_t op);
// The op with dtype for its (main) operand. SKIP_NOT: *c is the call. SKIP_DTYPE and SKIP_NO_VALUE
// also fill in *c, so that the refusal can be looked at.
// n: the extent that varies, size_extent(size) or another.
enum skip call_make(uint16_t op, uint8_t dtype, uint32_t form, enum size_case size, int64_t n,
                    struct call *c);
int64_t size_extent(enum size_case size);

uint64_t draw_filled(struct rng *r, uint8_t dtype, enum fill f);
// Memory for an operand, laid out as the case says, filled; t gets strides and the address of
// element 0.
struct guarded operand_memory(const struct operand *o, enum size_case size, enum fill f,
                              uint64_t seed, bool at_end, struct tensor *t);
// The same with strides as given, element 0 so many elements past where it could be.
struct guarded strided_memory(const struct operand *o, const int64_t *stride, int64_t before,
                              enum fill f, uint64_t seed, bool at_end, struct tensor *t);
void operand_strides(const struct operand *o, enum size_case size, int64_t *stride);

#endif
