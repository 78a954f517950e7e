// dtype.h: element types, from dtypes.def.
#ifndef FUSEC_IR_DTYPE_H
#define FUSEC_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum dtype {
    DT_NONE,
#define DTYPE(name, kind, bits, ctype, npy, llvm, acc, doc) DT_##name,
#include "ir/dtypes.def"
#undef DTYPE
    DT_COUNT
};
enum dtype_kind { DTK_NONE, DTK_FLOAT, DTK_SINT, DTK_UINT, DTK_BOOL };

struct dtype_info {
    const char *name;
    uint8_t kind, bits;
    const char *npy, *llvm, *doc;
    uint8_t acc; // dtype that sums and products accumulate in
};
extern const struct dtype_info dtype_table[DT_COUNT];

static inline uint8_t
dtype_size(uint8_t d) // bytes in memory
{
    return dtype_table[d].bits / 8;
}
static inline const char *
dtype_name(uint8_t d)
{
    return dtype_table[d].name;
}
static inline bool
dtype_is_float(uint8_t d)
{
    return dtype_table[d].kind == DTK_FLOAT;
}
static inline bool
dtype_is_int(uint8_t d) // signed or unsigned, not bool
{
    return dtype_table[d].kind == DTK_SINT || dtype_table[d].kind == DTK_UINT;
}
static inline bool
dtype_is_half(uint8_t d) // f16, bf16: floats of 16 bits, which compute in f32
{
    return dtype_table[d].kind == DTK_FLOAT && dtype_table[d].bits == 16;
}
// NumPy's promotion (result_type) of two strong types; bf16 with f16 gives f32.
uint8_t dtype_promote(uint8_t a, uint8_t b);

// A scalar of any dtype, as the bit pattern zero-extended to 64 bits.
uint64_t scalar_from_double(uint8_t d, double x); // floats round; ints truncate and saturate, NaN 0
uint64_t scalar_from_int(uint8_t d, int64_t x);   // ints wrap; floats round
double scalar_to_double(uint8_t d, uint64_t bits);
// Integers sign- or zero-extended; floats truncate and saturate.
int64_t scalar_to_int(uint8_t d, uint64_t bits);
uint64_t scalar_load(uint8_t d, const void *p);   // bool is normalised to 0 or 1
void scalar_store(uint8_t d, void *p, uint64_t bits);

#endif
