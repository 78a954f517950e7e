// pointwise.c: kernels without reductions. A thread takes `unroll` vectors of the last axis, a
// block's width apart, so that each instruction of a warp reads or writes consecutive memory; all
// loads come before the first element is computed.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

// Coordinates of vector `u`, and whether it exists.
static void
vector_at(struct cuda_emitter *e)
{
    char total[24];
    const struct kernel *k = &e->kernel;
    str_printf(e->text, "const ix at = first + (ix)u * %u;\nif (at < %s) {\n",
               e->sched->threads * e->sched->vec,
               cuda_number(e, kernel_points(k, AXIS_P), total));
    cuda_coordinates(e, "at", 0, k->naxis);
}

void
cuda_pointwise(struct cuda_emitter *e)
{
    const struct schedule *s = e->sched;
    bool *needed = xcalloc(e->kernel.inst.n, sizeof *needed);
    for (uint32_t i = 0; i < e->kernel.store.n; i++)
        cuda_need(e, e->kernel.store.at[i].value, needed);
    str_printf(e->text, "const ix first = ((ix)blockIdx.x * %u + threadIdx.x) * %u;\n",
               s->threads * s->unroll, s->vec);
    cuda_declare_vectors(e, needed, s->unroll);
    if (s->vec > 1) {
        str_printf(e->text, "#pragma unroll\nfor (int u = 0; u < %u; u++) {\n", s->unroll);
        vector_at(e);
        cuda_load_vectors(e, needed, "u");
        str_add(e->text, "}\n}\n");
    }
    str_printf(e->text, "#pragma unroll\nfor (int u = 0; u < %u; u++) {\n", s->unroll);
    vector_at(e);
    for (uint8_t level = LEVEL_ONCE; level <= LEVEL_ELEM; level++)
        cuda_declare_outputs(e, 0, level);
    str_printf(e->text, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", s->vec);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, "l", "u");
    for (uint8_t level = LEVEL_ONCE; level <= LEVEL_ELEM; level++)
        cuda_put(e, 0, level, "l");
    str_add(e->text, "}\n");
    for (uint8_t level = LEVEL_ONCE; level <= LEVEL_ELEM; level++)
        cuda_store_outputs(e, 0, level);
    str_add(e->text, "}\n}\n");
    xfree(needed);
}
