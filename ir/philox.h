// philox.h: the random bits of OP_random_bits and OP_philox, on scalars: Philox4x32-10 (Salmon,
// Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). A block of four words
// is a function of a counter of 128 bits and a key of 64: multiplications and exclusive ors of
// integers, hence the same everywhere. Element i of 32 bits is word i % 4 of the block whose
// counter has i / 4 in its low half and the state's counter in the high one; an element of 64 bits
// is the words 2 i (low) and 2 i + 1.
#ifndef FUSEC_IR_PHILOX_H
#define FUSEC_IR_PHILOX_H

#include <stdint.h>

enum { PHILOX_ROUNDS = 10 };
#define PHILOX_M0 0xd2511f53u // multipliers of words 0 and 2
#define PHILOX_M1 0xcd9e8d57u
#define PHILOX_W0 0x9e3779b9u // what a round adds to the key
#define PHILOX_W1 0xbb67ae85u

static inline void
philox_block(uint32_t c[4], uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p = (uint64_t)PHILOX_M0 * c[0], q = (uint64_t)PHILOX_M1 * c[2];
        c[0] = (uint32_t)(q >> 32) ^ c[1] ^ k0;
        c[1] = (uint32_t)q;
        c[2] = (uint32_t)(p >> 32) ^ c[3] ^ k1;
        c[3] = (uint32_t)p;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
}

// Element `index` of an array of elements of 32 or 64 bits.
static inline uint64_t
philox_element(uint64_t index, uint64_t key, uint64_t counter, unsigned bits)
{
    uint64_t word = bits == 64 ? 2 * index : index, block = word / 4;
    if (bits == 64)
        block = index / 2; // 2 index may be beyond 64 bits
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)counter,
                     (uint32_t)(counter >> 32)};
    philox_block(c, key);
    return bits == 64 ? c[word % 4] | (uint64_t)c[word % 4 + 1] << 32 : c[word % 4];
}

#endif
