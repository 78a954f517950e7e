// accuracy.h: one elementwise op of one or two operands, compiled, a block of arguments at a time;
// random arguments; and distances from what is right, in units in the last place.
#ifndef FUSEC_TESTS_ACCURACY_H
#define FUSEC_TESTS_ACCURACY_H

#include "ir/dtype.h"
#include "ir/ops.h"
#include "runtime/device.h"

enum { BLOCK = 1024 }; // arguments

struct compiled {
    struct device *dev;
    struct executable *run;
    void *in[2], *out; // BLOCK elements each
    uint8_t dtype;
};

struct compiled compiled_new(uint16_t op, uint8_t dtype); // f32 or f64
void compiled_free(struct compiled *c);
void compiled_set(struct compiled *c, uint32_t operand, uint32_t i, uint64_t bits);
void compiled_run(struct compiled *c);
uint64_t compiled_get(const struct compiled *c, uint32_t i);

// Units in the last place of the dtype between got and the true value; infinite where one is NaN
// and the other is not, or where signs of zeros differ.
double distance(uint8_t dtype, double got, long double want);

uint64_t draw(uint64_t *state);
// kind 0: any bits; 1: within `spread` of 0; 2: of ordinary magnitude.
uint64_t draw_f64(uint64_t *state, uint32_t kind, double spread);

#endif
