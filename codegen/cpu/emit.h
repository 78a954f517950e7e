// emit.h: the walk over a kernel body that all CPU classes share. A class file writes the loops;
// the walk writes what stands in them: values of instructions, loads, stores, casts.
//
// Everything is text. An SSA value is its operand text ("%v12", "zeroinitializer"), owned by the
// emitter. Every value of the body is a vector <n x T>, also where n is 1, so that the templates
// of ops.def serve both. Register types: f16 and bf16 are their bits in i16 (arithmetic never sees
// them), bool is i1, all else is the dtype's LLVM type. In memory a bool is an i8.
//
// A class works like this:
//
//   emit_function(e, "kernel");                     // %args, %begin, %end, %scratch exist
//   emit_loop_open(e, &l, "%begin", "%end", "1");   // for (l.index = %begin; < %end; += 1)
//   emit_loop_body(e, &l);                          // after the values it carries, if any
//   struct emit_scope row = emit_scope(e, NULL, 1); // one lane: a point of P
//   emit_bind(&row, 0, EMIT_UNIFORM, l.index);      // axis 0
//   emit_hoist(e, &row, NULL, UINT32_MAX);          // what depends on bound axes only, now
//   ... open an inner loop ...
//   struct emit_scope in = emit_scope(e, &row, 16); // a vector of 16 points
//   emit_bind(&in, 1, EMIT_LANES, inner.index);     // lane i stands at inner.index + i
//   in.mask = tail ? emit_tail_mask(e, 16, left) : NULL;
//   const char *v = emit_value(e, &in, inst);       // <16 x T>
//   emit_store(e, &in, &e->kernel.store.at[0], 0);
//   ... close loops, emit_function_end(e) ...
//
// Scopes nest like the loops: a scope sees the axes, values and addresses of the scopes above it,
// so it must not outlive them, and a value is only remembered in the scope that computed it (whose
// blocks dominate what follows inside). Reaching into a one-lane scope from one of n lanes splats.
#ifndef FUSEC_CODEGEN_CPU_EMIT_H
#define FUSEC_CODEGEN_CPU_EMIT_H

#include "codegen/codegen.h"
#include "ir/tables.h"

struct emit_scope;
struct emitter;
// Asked first for every OP_result and OP_load and every kept instruction (e->kept); returns its
// value in this scope (<scope->lanes x register type>) or NULL to let the walk compute it. Any
// other instruction can be given with emit_set. An OP_result that nobody gives is an error of ours.
typedef const char *emit_resolve(struct emitter *e, struct emit_scope *s, uint32_t inst,
                                 void *user);

// What is known of the low 16 bits of a 32-bit value (emit_nan.c), the least first.
enum emit_low_half { LOW_ANY, LOW_ZERO_IF_NAN, LOW_ZERO };

// Address arithmetic that the block being written has already: %name = right.
struct emit_known {
    uint64_t hash;
    const char *right, *name;
    const char *of, *by; // name is of + by, and by a number; else NULL
};

struct emitter {
    struct kernel kernel;         // a private copy, expanded: all instruction numbers are its own
    const struct schedule *sched;
    const struct target *target;
    bool *kept;                   // per instruction: schedule.keep in the expanded numbering
    uint16_t *depends;            // per instruction: bit i = it varies along axis i
    uint8_t *low_half;            // per instruction: enum emit_low_half
    emit_resolve *resolve;        // may be NULL
    void *user;
    struct arena mem;             // operand texts
    struct str *text;             // the finished functions
    struct str head, body;        // the function being written: entry block, all else
    num_vec *num;
    VEC(const char *) num_name;   // per number: its operand text
    const char **base;            // per access: element 0 plus base, in this function's entry block
    uint32_t fresh;
    const char *block;            // label of the block being written
    VEC(struct emit_known) known; // of this block
    uint32_t philox_words; // powers of two: numbers of words that emit_philox.c's functions are for
    uint8_t table_used[TABLE_COUNT]; // which forms of constant tables the text needs
    const char *table_half[2 * TABLE_COUNT]; // in this function's entry block: all, or halves
    struct diag *diag;
};

enum emit_how {
    EMIT_INHERIT,  // as in the scope above (or not bound at all)
    EMIT_UNIFORM,  // value: i64, the same for all lanes
    EMIT_LANES,    // value: i64, position of lane 0; lane i is at value + i
    EMIT_PER_LANE, // value: <lanes x i64>
};
struct emit_scope {
    struct emit_scope *up;
    uint32_t lanes;     // 1, 16, 64 ...
    const char *mask;   // <lanes x i1>: the lanes that exist; NULL: all. At least one does.
    struct {
        uint8_t how;
        const char *value;
    } axis[MAX_AXES];
    uint16_t bound;     // axes bound in this very scope
    const char **value; // per instruction, as computed or set in this scope
    bool *told;         // per instruction: a load whose check has been emitted here; NULL: none
    const char **addr;  // per access: address of lane 0 over the axes bound here and above, or NULL
};

// ---- a kernel: begin (copies and expands k), functions, end. The classes get a begun emitter.
bool emitter_begin(struct emitter *e, const struct kernel *k, const struct schedule *s,
                   const struct target *t, struct str *text, num_vec *num, struct diag *d);
void emitter_end(struct emitter *e);
// Starts "kernel" or "kernel_finish".
void emit_function(struct emitter *e, const char *name);
void emit_function_end(struct emitter *e);               // ret void; appends to e->text

// One per class, in the class's file. False: e->diag says why.
bool cpu_pointwise(struct emitter *e);
bool cpu_row(struct emitter *e);
bool cpu_column(struct emitter *e);
bool cpu_split(struct emitter *e);
bool cpu_contract(struct emitter *e);
bool cpu_scatter(struct emitter *e);
bool cpu_scan(struct emitter *e);
bool cpu_sort(struct emitter *e);

// ---- text
// "%vN = <fmt>" on a line; returns "%vN".
const char *emit_op(struct emitter *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emit_line(struct emitter *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// As emit_op, in the entry block (dominates everything; operands must be there too).
const char *emit_entry_op(struct emitter *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *emit_text(struct emitter *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); // a formatted string owned by the emitter
const char *emit_label(struct emitter *e, const char *stem); // a fresh label name, not yet placed
void emit_place(struct emitter *e, const char *label);       // starts the block, no fall-through
void emit_jump(struct emitter *e, const char *label);
void emit_branch(struct emitter *e, const char *cond, const char *yes, const char *no);

void emit_rarely(struct emitter *e, const char *cond, const char *yes, const char *no); // seldom

// Types: "<16 x float>". emit_type: in registers; emit_memory_type: f16 i16, bool i8.
const char *emit_type(struct emitter *e, uint8_t dtype, uint32_t lanes);
const char *emit_memory_type(struct emitter *e, uint8_t dtype, uint32_t lanes);
// A constant of a dtype in all lanes, from its bits.
const char *emit_constant(struct emitter *e, uint8_t dtype, uint64_t bits, uint32_t lanes);
const char *emit_splat(struct emitter *e, uint8_t dtype, const char *one /* <1 x T> */,
                       uint32_t lanes);
const char *emit_splat_i64(struct emitter *e, const char *scalar /* i64 */, uint32_t lanes);
// <from x T> → lanes [first, first + n) of it.
const char *emit_extract(struct emitter *e, uint8_t dtype, const char *v, uint32_t from,
                         uint32_t first, uint32_t n);

// Lanes of a and b, two <lanes x T>, one after the other: lane[i] is the number of the i-th.
const char *emit_shuffle(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *a,
                         const char *b, const uint8_t *lane);
// <2 * lanes x T>: low, then high.
const char *emit_concat(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *low,
                        const char *high);

// Transposes n vectors of n elements of `size` bytes, <n x elem> (or poison), in place. They come
// back as vectors of the type returned, of as many bytes.
const char *emit_transpose(struct emitter *e, const char **v, uint32_t n, uint32_t size,
                           const char *elem);

// ---- loops: for (index = from; index < to; index += step), tested at the top (signed). from, to,
// step are i64 operands. Values carried around the loop: emit_carry right after emit_loop_open,
// before anything else; it returns the phi, which is also the value after the loop. next[i] is the
// new value of the i-th carry.
enum { EMIT_MAX_CARRY = 64 };
struct emit_loop {
    const char *index, *head, *exit, *step;
    const char *type[EMIT_MAX_CARRY], *carry[EMIT_MAX_CARRY], *init[EMIT_MAX_CARRY];
    uint32_t ncarry;
    const char *from, *to, *before;
    const char *next; // a block that ends the body, if something jumps there; else NULL
    size_t phis;      // where they go in the text: they name what is known at the end only
};
void emit_loop_open(struct emitter *e, struct emit_loop *l, const char *from, const char *to,
                    const char *step);
const char *emit_carry(struct emitter *e, struct emit_loop *l, const char *type, const char *init);
void emit_loop_body(struct emitter *e, struct emit_loop *l); // after the carries; starts the body
const char *emit_loop_next(struct emitter *e, struct emit_loop *l); // label of the body's end
void emit_loop_close(struct emitter *e, struct emit_loop *l, const char *const *next);
// if (cond) { ... } without values: emit_if returns the label that emit_endif places.
const char *emit_if(struct emitter *e, const char *cond);
void emit_endif(struct emitter *e, const char *end);

// ---- numbers: i64 operands that are not part of the text, loaded from args->num in the entry
// block.
// Which numbers are one must not depend on which happen to be equal, or equal code would have
// different texts; so they are interned by what they are.
const char *emit_extent(struct emitter *e, uint32_t axis); // %extent0
// By name: "chunk" gives %chunk. One name, one value (in both functions of a kernel).
const char *emit_named(struct emitter *e, const char *name, int64_t value);
// By value among strides and bases (equal ones share address arithmetic); 0, 1, -1 are written out.
const char *emit_stride(struct emitter *e, int64_t stride);
// By value among what has no name. Prefer the others.
const char *emit_num(struct emitter *e, int64_t value);
// i64 arithmetic that folds constants 0 and 1: a + b, a * b.
const char *emit_add(struct emitter *e, const char *a, const char *b);
const char *emit_mul(struct emitter *e, const char *a, const char *b);
const char *emit_min(struct emitter *e, const char *a, const char *b); // signed
// flat → indices of axes [first, first + n), row-major, the last fastest; index[i] for axis
// first + i. The first gets the whole quotient.
void emit_decode(struct emitter *e, const char *flat, uint32_t first, uint32_t n,
                 const char **index);
const char *emit_buffer(struct emitter *e, uint32_t buffer); // ptr of element 0 (entry block)
const char *emit_shared(struct emitter *e);                  // args->shared (entry block)
const char *emit_scratch(struct emitter *e, int64_t byte);   // %scratch + constant
const char *emit_ptr(struct emitter *e, const char *base, const char *index, const char *elem_type);
// <lanes x i1>: lane < left, for an i64 left >= 0 (any size).
const char *emit_tail_mask(struct emitter *e, uint32_t lanes, const char *left);
// a and b, either may be NULL (all true).
const char *emit_and_mask(struct emitter *e, uint32_t lanes, const char *a, const char *b);

// ---- the walk
struct emit_scope emit_scope(struct emitter *e, struct emit_scope *up, uint32_t lanes);
void emit_bind(struct emit_scope *s, uint32_t axis, enum emit_how how, const char *value);
void emit_set(struct emit_scope *s, uint32_t inst, const char *value);
// The value of an instruction here; computes it and what it needs, once a scope.
const char *emit_value(struct emitter *e, struct emit_scope *s, uint32_t inst);
// Computes here every value and address that can be (depends only on axes bound uniformly in s and
// above) of the instructions listed and all that they need, except OP_results not yet given and
// what needs them; n = UINT32_MAX: of the whole body. Call it right after binding, before inner
// loops are opened; again when results become known.
void emit_hoist(struct emitter *e, struct emit_scope *s, const uint32_t *inst, uint32_t n);
enum emit_store_flag { EMIT_NONTEMPORAL = 1 }; // only at a multiple of the vector, or of 64 bytes
void emit_store(struct emitter *e, struct emit_scope *s, const struct store *st, uint32_t flags);
// Stores a given value (register type of the access's dtype) instead of the instruction's.
void emit_store_value(struct emitter *e, struct emit_scope *s, uint32_t access, const char *value,
                      uint32_t flags);
// The address of lane 0 of an access at the scope's point.
const char *emit_address(struct emitter *e, struct emit_scope *s, uint32_t access);
// The same of a load, with its extra index where that is the same for all lanes.
const char *emit_load_address(struct emitter *e, struct emit_scope *s, uint32_t inst);
// Asks for the cache line at ptr, any address, in a level of cache (1, 2); nothing depends on it.
void emit_prefetch(struct emitter *e, const char *ptr, uint32_t level);
void emit_prefetch_write(struct emitter *e, const char *ptr); // the line will be written
// One elementwise row on given operands (all n lanes): what emit_value does for a body instruction.
// dtype: the operands' (where: of b and c).
const char *emit_row(struct emitter *e, uint16_t op, uint8_t dtype, uint32_t lanes, const char *a,
                     const char *b, const char *c);
const char *emit_cast(struct emitter *e, uint8_t from, uint8_t to, uint32_t lanes, const char *a,
                      enum emit_low_half low);
void emit_find_low_halves(struct emitter *e); // e->low_half
// Register values to and from scratch memory at ptr (bool as i8); mask may be NULL.
const char *emit_load_raw(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptr,
                          const char *mask, uint32_t align);
void emit_store_raw(struct emitter *e, uint8_t dtype, uint32_t lanes, const char *ptr,
                    const char *value, const char *mask, uint32_t align);

// ---- reductions in the order of ir/kernel.h (for every class)
// A partial result: <lanes x T> and, of argmax and argmin, the <lanes x i64> position (else NULL).
struct emit_acc {
    const char *value, *index;
};
static inline bool
acc_is_arg(const struct acc *a)
{
    return op_gives_position(a->op);
}
struct emit_acc emit_acc_identity(struct emitter *e, const struct acc *a, uint32_t lanes);
// An element as a partial result: value, and position j (<lanes x i64>; may be NULL unless argmax,
// argmin); lanes where mask (may be NULL) is false hold the identity.
struct emit_acc emit_acc_element(struct emitter *e, const struct acc *a, uint32_t lanes,
                                 const char *value, const char *j, const char *mask);
struct emit_acc emit_acc_join(struct emitter *e, const struct acc *a, uint32_t lanes,
                              struct emit_acc older, struct emit_acc newer);
// All lanes joined (l with l + lanes / 2, and so on): one lane.
struct emit_acc emit_acc_join_lanes(struct emitter *e, const struct acc *a, uint32_t lanes,
                                    struct emit_acc v);
// What OP_result gives: the index of argmax and argmin, else the value.
const char *emit_acc_result(const struct acc *a, struct emit_acc v);

#endif
