// scatter.c: a thread has a place and takes the updates that belong there, one after the other.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

// Declares the place's accumulator with what it starts from.
static void
start(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    cuda_need(e, k->scatter.init, needed);
    str_printf(e->text, "%s r%u;\n{\n", cuda_type(k->acc.at[k->scatter.acc].dtype), k->scatter.acc);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, NULL, NULL);
    str_printf(e->text, "r%u = v%u;\n}\n", k->scatter.acc, k->scatter.init);
    xfree(needed);
}

static void
updates(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    const struct acc *acc = &k->acc.at[k->scatter.acc];
    uint32_t at = k->scatter.acc;
    char n[24];
    bool *index = xcalloc(k->inst.n, sizeof *index), *value = xcalloc(k->inst.n, sizeof *value);
    str_printf(e->text, "for (ix j = 0; j < %s; j++) {\n",
               cuda_number(e, kernel_points(k, AXIS_R), n));
    cuda_coordinates(e, "j", k->naxis - k->nred, k->naxis);
    cuda_need(e, k->scatter.index, index);
    cuda_body(e, index, LEVEL_ONCE, LEVEL_ELEM, NULL, NULL);
    str_printf(e->text, "if (v%u != (i64)x%u) continue;\n", k->scatter.index, k->scatter.axis);
    for (uint32_t i = 0; i < k->inst.n; i++)
        e->given[i] ^= index[i];
    cuda_need(e, acc->value, value);
    cuda_body(e, value, LEVEL_ONCE, LEVEL_ELEM, NULL, NULL);
    for (uint32_t i = 0; i < k->inst.n; i++)
        e->given[i] ^= index[i];
    if (op_table[acc->op].combine)
        str_printf(e->text, "r%u = join%u(r%u, v%u);\n}\n", at, at, at, acc->value);
    else
        str_printf(e->text, "r%u = v%u;\n}\n", at, acc->value);
    xfree(index);
    xfree(value);
}

void
cuda_scatter(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    char points[24];
    str_printf(e->text, "const ix at = (ix)blockIdx.x * %u + threadIdx.x;\nif (at >= %s) return;\n",
               e->sched->threads, cuda_number(e, kernel_points(k, AXIS_P), points));
    cuda_coordinates(e, "at", 0, k->naxis - k->nred);
    start(e);
    updates(e);
    cuda_all_stores(e);
}
