// contract.c: contractions, a thread an element: k = 0, 1, … in one chain of fused multiply-adds,
// as ir/kernel.h has it, so with the CPU's bits.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

static void
product(struct cuda_emitter *e)
{
    struct kernel *k = &e->kernel;
    const struct acc *acc = &k->acc.at[k->contraction.acc];
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    char n[24];
    cuda_need(e, k->contraction.a, needed);
    cuda_need(e, k->contraction.b, needed);
    str_printf(e->text, "%s r%u[1];\nr%u[0] = 0;\nfor (ix x%u = 0; x%u < %s; x%u++) {\n",
               cuda_type(acc->dtype), k->contraction.acc, k->contraction.acc, k->naxis - 1u,
               k->naxis - 1u, cuda_number(e, k->axis[k->naxis - 1].extent, n), k->naxis - 1u);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, "0", "0");
    const char *type = cuda_type(acc->dtype);
    uint32_t r = k->contraction.acc, x = k->contraction.a, y = k->contraction.b;
    if (dtype_is_float(acc->dtype))
        str_printf(e->text, "r%u[0] = fma((%s)v%u, (%s)v%u, r%u[0]);\n}\n", r, type, x, type, y, r);
    else
        str_printf(e->text, "r%u[0] = (%s)((u64)r%u[0] + (u64)v%u * (u64)v%u);\n}\n", r, type, r, x,
                   y);
    xfree(needed);
}

void
cuda_contract(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    char points[24];
    str_printf(e->text, "const ix at = (ix)blockIdx.x * %u + threadIdx.x;\nif (at >= %s) return;\n",
               e->sched->threads, cuda_number(e, kernel_points(k, AXIS_P), points));
    cuda_coordinates(e, "at", 0, k->naxis - k->nred);
    product(e);
    cuda_all_stores(e);
}
