// npy_fuzz.c: any bytes are a .npy array or an error in words; an array's data lies within the
// bytes.
#include "frontend/cli/npy.h"

#include "ir/base/check.h"

#include <stddef.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct tensor t;
    struct diag d = {0};
    if (!npy_parse(bytes, n, &t, &d)) {
        CHECK(d.code == DIAG_INVALID && d.text[0], "an error without words");
        return 0;
    }
    const uint8_t *data = t.data;
    int64_t size = tensor_count(&t) * dtype_size(t.dtype);
    CHECK(data >= bytes && data + size == bytes + n, "data outside of the file");
    return 0;
}
