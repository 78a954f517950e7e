// sort.c: lines put in order. A thread has an element of a line and counts those that come before
// it; as many stand before it in the result.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

void
cuda_sort(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    struct str *t = e->text;
    const struct acc *acc = &k->acc.at[0];
    uint32_t along = k->naxis - 1u, j = k->naxis - 2u;
    int64_t lines = 1;
    char all[24], n[24], places[24];
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    cuda_need(e, acc->value, needed);
    for (uint32_t a = 0; a < j; a++)
        lines *= k->axis[a].extent;
    str_printf(t, "const ix at = (ix)blockIdx.x * %u + threadIdx.x, n = %s;\n"
                  "if (at >= %s) return;\n",
               e->sched->threads, cuda_number(e, k->axis[along].extent, n),
               cuda_number(e, lines * k->axis[along].extent, all));
    str_add(t, "const ix own = at % n;\nconst ix line = at / n;\n");
    cuda_coordinates(e, "line", 0, j);
    str_printf(t, "%s mine;\n{\nconst ix x%u = own;\n", cuda_type(acc->dtype), along);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, NULL, NULL);
    str_printf(t, "mine = v%u;\n}\n"
                  "ix place = 0;\nfor (ix i = 0; i < n; i++) {\nconst ix x%u = i;\n",
               acc->value, along);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, NULL, NULL);
    const char *way = acc->descending ? "true" : "false";
    str_printf(t, "place += i < own ? !comes_before<%s>(mine, v%u)"
                  " : comes_before<%s>(v%u, mine);\n",
               way, acc->value, way, acc->value);
    str_add(t, "}\n");
    str_printf(t, "if (place >= %s) return;\nconst ix x%u = place;\n",
               cuda_number(e, k->axis[j].extent, places), j);
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (op_gives_position(k->acc.at[i].op))
            str_printf(t, "const i64 r%u = own;\n", i);
        else
            str_printf(t, "const %s r%u = mine;\n", cuda_type(acc->dtype), i);
    cuda_all_stores(e);
    xfree(needed);
}
