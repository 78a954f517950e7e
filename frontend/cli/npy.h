// npy.h: arrays in NumPy's .npy files.
#ifndef FUSEC_FRONTEND_CLI_NPY_H
#define FUSEC_FRONTEND_CLI_NPY_H

#include "ir/diag.h"
#include "ir/interp.h"

struct str;

// What the bytes of a file say. t.data points into the bytes, at any alignment; strides are in
// elements, row-major or (fortran_order) column-major. False: d says what was found where, and what
// was expected.
bool npy_parse(const void *bytes, size_t n, struct tensor *t, struct diag *d);
// Appends the header of a row-major array (version 1.0; padded so that the data after it is
// 64-byte aligned).
void npy_header(uint8_t dtype, uint8_t rank, const int64_t *dim, struct str *out);

// Reads a file. t->data is 64-byte aligned and the caller's to free with free().
bool npy_read(const char *path, struct tensor *t, struct diag *d);
// Writes row-major elements to a file; an existing one is replaced.
bool npy_write(const char *path, const struct tensor *t, struct diag *d);

#endif
