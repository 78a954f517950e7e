// emit.h: what the CUDA classes share: names of arguments, loads and stores, bodies within loops.
//
// A kernel is one C function over `struct kernel_args`: pointers, the launch's error word, numbers
// (extents, strides, bases). Its text depends on none of the numbers, as on the CPU. Positions and
// offsets are of type `ix`: int where all that the kernel reaches fits, else long long.
//
// Names in generated text: b0 … the buffers; x0 … the coordinates of the point at hand; v1 … the
// values of instructions; w1 … vectors loaded from memory, of which element e is v1's at lane e; r0
// … the results of accumulators. A class opens loops, declares the coordinates, and asks for those
// instructions of the body that its sinks need there.
#ifndef FUSEC_CODEGEN_CUDA_EMIT_H
#define FUSEC_CODEGEN_CUDA_EMIT_H

#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"

struct cuda_emitter {
    struct kernel kernel; // a private copy, expanded
    const struct schedule *sched;
    struct str *text;     // the function being written
    num_vec *num;
    uint32_t vec_axis;    // the axis along which vectors lie, with vec elements each
    bool *given;          // per instruction: declared in a scope that holds here
    bool *vector;         // per instruction: a load that comes as a vector
    // Declares the value of an OP_result; NULL: it is that of r0 … .
    void (*result)(struct cuda_emitter *e, uint32_t inst);
    bool result_per_lane; // r0[l], one for each element of a vector; else one for all: r0
};

// A number that is an argument: "a.n[3]".
const char *cuda_number(struct cuda_emitter *e, int64_t value, char at[static 24]);

// Which instructions the given ones are computed of, themselves included. needed: kernel.inst.n
// flags, added to. What is given is not looked behind.
void cuda_need(const struct cuda_emitter *e, uint32_t inst, bool *needed);
// What stage s computes element by element: the values of its accumulators and of its stores.
void cuda_need_stage(const struct cuda_emitter *e, uint32_t stage, bool *needed);

// Declares coordinates of axes [from, to) of the linear position `at` of them, row-major.
void cuda_coordinates(struct cuda_emitter *e, const char *at, uint32_t from, uint32_t to);

// Vector loads of the needed instructions, with subscript `[u]` when in_flight is > 1: their arrays
// declared, and their loading where `exists` (C text) holds.
void cuda_declare_vectors(struct cuda_emitter *e, const bool *needed, uint32_t in_flight);
void cuda_load_vectors(struct cuda_emitter *e, const bool *needed, const char *subscript);
// The needed instructions that are not given, of levels [from, to], as statements. lane: the name
// of the element within a vector, subscript: of the vector.
void cuda_body(struct cuda_emitter *e, const bool *needed, uint8_t from, uint8_t to,
               const char *lane, const char *subscript);
// Declares vectors o0 … for the stores that take vectors; puts element `lane` of the stores of a
// stage and level into them, or into memory; stores the vectors.
void cuda_declare_outputs(struct cuda_emitter *e, uint32_t stage, uint8_t level);
void cuda_put(struct cuda_emitter *e, uint32_t stage, uint8_t level, const char *lane);
void cuda_store_outputs(struct cuda_emitter *e, uint32_t stage, uint8_t level);
bool cuda_has_stores(const struct cuda_emitter *e, uint32_t stage, uint8_t level);

bool cuda_has_accs(const struct cuda_emitter *e, uint32_t stage);
// For each accumulator of the stage one line, in which $ stands for its number.
void cuda_each_acc(struct cuda_emitter *e, uint32_t stage, const char *line);
// The C type, the identity and the joining of accumulator a's partial results: "join0(x, y)".
void cuda_acc_type(const struct acc *a, struct str *out);
void cuda_acc_identity(const struct acc *a, struct str *out);
void cuda_acc_functions(const struct kernel *k, struct str *out);

// Partial results of a stage's accumulators, an array each: p0[4] …; and identities in p0 … .
void cuda_declare_partials(struct cuda_emitter *e, uint32_t stage, const char *prefix,
                           const char *dims);
void cuda_start_partials(struct cuda_emitter *e, uint32_t stage);
// What a thread takes of a block of 256: positions j0, j0 + 16 … below n, `unroll` at a time, all
// their loads first; elements join p0 … and are stored. position: C text, of element l of a vector.
void cuda_block_elements(struct cuda_emitter *e, uint32_t stage, const char *position);
// All stores of a thread's one point, once its results are there.
void cuda_all_stores(struct cuda_emitter *e);

// One a class: the function's body.
void cuda_pointwise(struct cuda_emitter *e);
void cuda_row(struct cuda_emitter *e);
void cuda_column(struct cuda_emitter *e);
void cuda_contract(struct cuda_emitter *e);
void cuda_scan(struct cuda_emitter *e);
void cuda_sort(struct cuda_emitter *e);
void cuda_scatter(struct cuda_emitter *e);

#endif
