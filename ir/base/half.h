// half.h: f16 (IEEE 754 binary16) and bf16 as bit patterns. Narrowing rounds to nearest, ties to
// even; NaN stays NaN (quiet); overflow becomes infinity; denormals are kept.
#ifndef FUSEC_IR_BASE_HALF_H
#define FUSEC_IR_BASE_HALF_H

#include <stdint.h>

float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float x);
uint16_t f64_to_f16(double x); // one rounding, not two
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float x);
uint16_t f64_to_bf16(double x);

#endif
