// emit_parts.h: what the files of the walk (emit_walk.c, emit_memory.c, emit_cast.c,
// emit_extreme.c, emit_divide.c, emit_philox.c, emit_table.c) and of the loops over R (reduce.c,
// stage.c) share among themselves.
#ifndef FUSEC_CODEGEN_CPU_EMIT_PARTS_H
#define FUSEC_CODEGEN_CPU_EMIT_PARTS_H

#include "codegen/cpu/emit.h"

// The scope, s or above, that binds an axis; NULL: none.
const struct emit_scope *scope_of_axis(const struct emit_scope *s, uint32_t axis);
// Whether something that varies along these axes differs between the lanes of s.
bool varies(const struct emitter *e, const struct emit_scope *s, uint16_t axes);
// <0, 1, 2 ...> as <lanes x i64>.
const char *emit_iota(struct emitter *e, uint32_t lanes);
// An affine function of the axes at lane 0, an i64, but for axes of which each lane has its own.
const char *emit_affine_first(struct emitter *e, const struct emit_scope *s,
                              const struct access *f);
// The address of lane 0 over the axes bound so far (remembered in s).
const char *emit_base(struct emitter *e, struct emit_scope *s, uint32_t access);
// Sets args->error to inst's origin where a lane of mask (NULL: all) fails the check.
void emit_check(struct emitter *e, const struct emit_scope *s, uint32_t inst, const char *check,
                const char *mask);
// The check of a load whose operands have been computed in s, unless a scope above has it.
void emit_check_load(struct emitter *e, struct emit_scope *s, uint32_t inst);
// An OP_load whose operands have been computed in s.
const char *emit_load(struct emitter *e, struct emit_scope *s, uint32_t inst);
// max or min of floats a and b; literal: b's instruction, where that is a literal, else NULL.
const char *emit_extreme(struct emitter *e, bool max, uint8_t dtype, uint32_t lanes, const char *a,
                         const char *b, const struct inst *literal);
// in, where it is a size with an upper limit and the target has an instruction for that; else NULL.
const char *emit_size_within(struct emitter *e, const struct emit_scope *s, const struct inst *in);

// OP_philox.
const char *emit_philox(struct emitter *e, struct emit_scope *s, const struct inst *in);
void emit_philox_functions(struct emitter *e); // that this kernel calls
// OP_lookup, and the constants that those of this kernel need.
const char *emit_lookup(struct emitter *e, uint32_t name, uint32_t lanes, const char *index);
void emit_tables(struct emitter *e);

// Whether an instruction of s divides what varies between lanes by what does not, and the target
// can do that without dividing; then its value (emit_divide.c), with the bits of OP_div.
bool emit_divides_by_shared(const struct emitter *e, const struct emit_scope *s,
                            const struct inst *in);
const char *emit_divide_by_shared(struct emitter *e, uint32_t lanes, const char *a, const char *b);

#endif
