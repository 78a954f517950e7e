// literal.h: scalars as text and back, exact to the bit.
#ifndef FUSEC_IR_LITERAL_H
#define FUSEC_IR_LITERAL_H

#include "ir/dtype.h"

#include <stddef.h>

struct str;
// Writes a scalar without its dtype: 3, -0.5, 1e-05, inf, -nan, nan(0x7fc00001), true. Floats are
// the shortest decimals that read back as the same bits and always show that they are floats.
void literal_print(uint8_t dtype, uint64_t bits, struct str *out);

// Reads what literal_print writes, and hexadecimal integers and floats. The text need not be
// terminated. On a mistake: false, and *why is a static text such as "does not fit".
bool literal_parse(const char *text, size_t n, uint8_t dtype, uint64_t *bits, const char **why);

#endif
