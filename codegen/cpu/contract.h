// contract.h: what the parts of the contraction class (contract*.c) share.
#ifndef FUSEC_CODEGEN_CPU_CONTRACT_H
#define FUSEC_CODEGEN_CPU_CONTRACT_H

#include "codegen/cpu/emit.h"

// The register tile: rows of A by vecs vectors along B's free axis.
struct contract_tile {
    const char *type, *vec, *mangle; // of the accumulator: "float", "<16 x float>", "v16f32"
    uint32_t size, lanes;            // bytes of an element, elements of a vector
    uint32_t rows, vecs;
    uint32_t width;                  // elements that a packed A holds per step of k (>= rows)
    bool is_float, pack_a, pack_b;
    // Of the loop in assembly only:
    bool by_hand;
    bool copy_b;     // B is packed by the first rows that read it
    bool a_by_row;   // A is read along k, else along its free axis
    bool c_in_output; // sums lie in an output between panels
    bool c_in_place;  // and go there in the end, as nothing else is stored
    bool reads_beside; // the epilogue reads an array whose rows are as far apart as those of sums
    uint32_t edge_rows, edge_vecs; // of the last tile down and across; 0: as all others
};

// Appends the function `micro` to the text; see contract_micro.c.
void contract_micro(const struct contract_tile *t, struct str *text);

// The same in assembly, and a call of it; see contract_asm.c. All are operands; steps and rows in
// memory are in bytes.
struct contract_call {
    const char *a, *a_step, *b, *b_step, *steps;
    const char *to, *to_row, *from, *from_row, *more; // where sums go, and come from if more != 0
    const char *rows, *columns;                       // left in the unit
    const char *first_rows, *copy;                    // i1, and where B's panel is copied to
    const char *beside; // what this tile's epilogue reads with from_row between rows, or null
};
void contract_asm(const struct contract_tile *t, struct str *text);
void contract_asm_call(struct emitter *e, const struct contract_tile *t,
                       const struct contract_call *c);

// A factor while it is packed: the instruction's values at points first <= p < end of its free axis
// and k <= q < k + steps, written to dst as [steps][width] elements of the accumulator's type, and
// beyond it up to contract_layout's slack. Packed panels are to be written in ascending order.
struct contract_pack {
    uint32_t inst, free_axis, k_axis;
    uint32_t width;  // less than the lanes or a multiple; what is beyond end holds anything
    uint32_t used;   // of width, how many are ever used
    const char *first, *end, *k, *steps, *dst; // operands; end - first >= 1
};
void contract_pack(struct emitter *e, struct emit_scope *up, const struct contract_tile *t,
                   const struct contract_pack *p);

#endif
