// tables.h: the constant tables that expansions look up (OP_lookup). A row of theirs in a body is a
// literal; what an emitter makes of it (a register that is permuted, memory) is its own business.
#ifndef FUSEC_IR_TABLES_H
#define FUSEC_IR_TABLES_H

#include <stdint.h>

// Of the pieces of tanh and erf in f32: the center, then the coefficients, lowest order first.
enum { PIECE_ORDER = 5, PIECE_TABLES = PIECE_ORDER + 2 };
// Of gelu's pieces: the coefficients of -P.
enum { GELU_ORDER = 5, GELU_TABLES = GELU_ORDER + 1 };
// Of the pieces of exp(x^2) erfc(x): the center, then the coefficients.
enum { ERFC_ORDER = 6, ERFC_TABLES = ERFC_ORDER + 2 };

enum table_name {
    TABLE_tanh32,
    TABLE_erf32 = TABLE_tanh32 + PIECE_TABLES,
    TABLE_gelu32 = TABLE_erf32 + PIECE_TABLES,
    TABLE_gelu_tanh32 = TABLE_gelu32 + GELU_TABLES,
    TABLE_erf64 = TABLE_gelu_tanh32 + GELU_TABLES, // erf(n h), then erf'(n h)
    TABLE_erfc32 = TABLE_erf64 + 2,
    TABLE_COUNT = TABLE_erfc32 + ERFC_TABLES
};

struct table {
    uint8_t dtype;
    uint32_t size; // entries, a power of two: indices count modulo the size
    const void *at;
};

struct table table_named(uint64_t name); // below TABLE_COUNT
uint64_t table_entry(uint64_t name, uint64_t index);

#endif
