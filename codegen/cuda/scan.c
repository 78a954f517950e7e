// scan.c: kernels with accumulators along R. Sixteen threads take a row, a vector of 16 elements at
// a time, so that the order of ir/kernel.h is theirs: log-step prefixes within the vector by
// shuffles, then the vectors of a block, the blocks of a span and the spans, which every thread of
// the sixteen carries.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

// What the elements up to this one come to, where instruction `inst` asks for it.
static void
scan_step(struct cuda_emitter *e, uint32_t inst)
{
    uint32_t i = e->kernel.inst.at[inst].aux;
    const struct acc *a = &e->kernel.acc.at[i];
    const char *type = cuda_type(a->dtype);
    str_printf(e->text, "%s l%u = exists ? v%u : ", type, i, a->value);
    cuda_acc_identity(a, e->text);
    str_printf(e->text, ";\n#pragma unroll\nfor (int k = 0; k < %d; k++) {\n", SCAN_STEPS);
    str_printf(e->text, "const int source = lane >> k & 1 ? (lane >> k << k) - 1 : lane;\n"
                        "const %s before = of_lane(l%u, first_lane + source);\n"
                        "if (lane >> k & 1) l%u = join%u(before, l%u);\n}\n", type, i, i, i, i);
    str_printf(e->text, "const %s v%u = "
                        "join%u(join%u(join%u(spans%u, blocks%u), vectors%u), l%u);\n", type, inst,
               i, i, i, i, i, i, i);
    str_printf(e->text, "vectors%u = join%u(vectors%u, of_lane(l%u, first_lane + 15));\n", i, i, i,
               i);
}

static void
carried(struct cuda_emitter *e)
{
    static const char *const name[] = {"spans", "blocks", "vectors"};
    for (uint32_t i = 0; i < e->kernel.acc.n; i++)
        for (uint32_t n = 0; n < 3; n++) {
            str_printf(e->text, "%s %s%u = ", cuda_type(e->kernel.acc.at[i].dtype), name[n], i);
            cuda_acc_identity(&e->kernel.acc.at[i], e->text);
            str_add(e->text, ";\n");
        }
}

// Where a block or a span ends, what it comes to joins those before it.
static void
carry(struct cuda_emitter *e, int64_t elements, const char *from, const char *to)
{
    str_printf(e->text, "if ((j0 + %d) %% %lld == 0) {\n", SCAN_LANES, (long long)elements);
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        str_printf(e->text, "%s%u = join%u(%s%u, %s%u);\n", to, i, i, to, i, from, i);
        str_printf(e->text, "%s%u = ", from, i);
        cuda_acc_identity(&e->kernel.acc.at[i], e->text);
        str_add(e->text, ";\n");
    }
    str_add(e->text, "}\n");
}

void
cuda_scan(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    struct str *t = e->text;
    char rows[24], n[24];
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    cuda_need_stage(e, 0, needed);
    str_printf(t, "const ix own = (ix)blockIdx.x * %u + threadIdx.x / %d;\n",
               e->sched->threads / SCAN_LANES, SCAN_LANES);
    str_printf(t, "const bool is_row = own < %s;\nconst ix row = is_row ? own : 0, n = %s;\n",
               cuda_number(e, kernel_points(k, AXIS_P), rows),
               cuda_number(e, kernel_points(k, AXIS_R), n));
    str_printf(t, "const int lane = threadIdx.x %% %d, first_lane = threadIdx.x %% 32 - lane;\n",
               SCAN_LANES);
    cuda_coordinates(e, "row", 0, k->naxis - k->nred);
    carried(e);
    str_printf(t, "for (ix j0 = 0; j0 < n; j0 += %d) {\nconst bool exists = j0 + lane < n;\n"
                  "const ix j = exists ? j0 + lane : n - 1;\n", SCAN_LANES);
    cuda_coordinates(e, "j", k->naxis - k->nred, k->naxis);
    e->result = scan_step;
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, NULL, NULL);
    str_add(t, "if (exists && is_row) {\n");
    cuda_put(e, 0, LEVEL_ELEM, NULL);
    str_add(t, "}\n");
    carry(e, SCAN_BLOCK, "vectors", "blocks");
    carry(e, SCAN_SPAN, "blocks", "spans");
    str_add(t, "}\n");
    xfree(needed);
}
