// column_factor.c: values of the row alone, such as the factor of `cast(x[r]) / 255 * w[r, p]`. A
// column kernel's vectors run along the columns, so that such a value would be computed one at a
// time, and again for each group of columns. The emitter computes those found here for a block of
// rows at once, in vectors along R, and reads them back from scratch memory. Both it and the
// schedule, which must foresee the scratch, ask about the expanded body.
#include "passes/column_factor.h"

#include <string.h>

static bool
takes_computing(const struct inst *in)
{
    return in->level == LEVEL_ELEM && in->op != OP_load && in->op != OP_literal &&
           in->op != OP_index && in->op != OP_result;
}

// Whether each instruction varies along an axis.
static void
find_varying(const struct kernel *k, uint32_t axis, bool *varies)
{
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        varies[i] = varies[in->a] || varies[in->b] || varies[in->c];
        if (in->op == OP_load)
            varies[i] |= k->access.at[in->aux].stride[axis] != 0;
        if (in->op == OP_index)
            varies[i] |= k->affine.at[in->aux].stride[axis] != 0;
        if (in->op == OP_result)
            varies[i] = true;
    }
}

int64_t
column_factors(const struct kernel *k, bool *factor)
{
    memset(factor, 0, k->inst.n * sizeof *factor);
    if (k->nred != 1)
        return 0;
    bool *varies = xcalloc(k->inst.n, sizeof *varies);
    find_varying(k, k->naxis - k->nred - 1u, varies);
    for (uint32_t i = 1; i < k->inst.n; i++) {
        const struct inst *in = &k->inst.at[i];
        if (varies[i])
            factor[in->a] = factor[in->b] = factor[in->c] = true;
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        factor[k->acc.at[i].value] = true;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->inst.n; i++) {
        factor[i] &= i && !varies[i] && takes_computing(&k->inst.at[i]);
        bytes += factor[i] ? dtype_size(k->inst.at[i].dtype) : 0;
    }
    xfree(varies);
    return bytes;
}
