// body.h: what the files that build kernel bodies share: body.c walks the graph, body_index.c has
// the ops that read or write at positions given by data. Private to passes/.
#ifndef FUSEC_PASSES_BODY_H
#define FUSEC_PASSES_BODY_H

#include "passes/fuse.h"

struct value { // a node at a map
    ref node;
    uint32_t map, inst;
};
struct body {
    struct fuser *f;
    struct group *gr;
    struct kernel *k;
    struct body_result r;
    VEC(struct imap) maps;
    struct map map_index;
    VEC(struct value) done;
    struct map done_index;
    struct map inst_index, access_index, affine_index;
    VEC(struct value) stack;
    uint32_t origin;
    bool failed, has_over_p;
    bool keeps_unit; // contractions, orders and scatters keep their axes of extent 1
    uint32_t *result_of; // per hero of the group (by position): OP_result instruction
};

// Nothing can be built: node is where, and storing its operand may help. Gives 0.
uint32_t body_fail(struct body *b, uint8_t reason, ref node);
uint32_t body_map(struct body *b, const struct imap *m); // its number
// The instruction of a node at a map, or 0 after asking for it: come again when it is there.
uint32_t body_demand(struct body *b, ref node, uint32_t map);
// Instructions; an equal one is not added again. Level and stage are at least the operands'.
uint32_t body_inst(struct body *b, struct inst in);
uint32_t body_literal(struct body *b, uint8_t dtype, uint64_t bits);
uint32_t body_binary(struct body *b, uint16_t op, uint8_t dtype, uint32_t x, uint32_t y);
uint32_t body_both(struct body *b, uint32_t x, uint32_t y); // x and y; 0 is true
uint32_t body_position(struct body *b, const struct coord *c); // an i64
bool body_is_dynamic(const struct imap *m); // some dim's position is given by data

// An instruction as one of level ELEM: what is the same at all points of R is still there at each.
uint32_t body_per_element(struct body *b, uint32_t v);

uint32_t body_emit(struct body *b, ref node, const struct imap *m); // demanded and built
// The accumulator of a hero that reduces `value` in a stage, and its result's instruction.
uint32_t body_acc(struct body *b, const struct hero *h, uint16_t op, uint8_t dtype, uint32_t value,
                  uint8_t stage);

// body_index.c: a hero of OPK_SCATTER, and the nodes of OPK_INDEX.
uint32_t body_scatter(struct body *b, const struct hero *h);
uint32_t body_index_op(struct body *b, ref r, uint32_t map);

#endif
