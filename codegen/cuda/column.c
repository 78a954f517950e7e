// column.c: kernels with reductions where memory runs along P: a thread has `vec` neighbouring
// columns and one of the 16 lanes of the order of ir/kernel.h, whose elements it takes block after
// block; blocks are joined as a binary counter carries, lanes through shared memory. A warp reads
// consecutive columns of one row.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

#include <stdio.h>

enum { WARP = 32, LEVELS = 40 };

static void
each_column(struct cuda_emitter *e)
{
    str_printf(e->text, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", e->sched->vec);
}

static void
all_blocks(struct cuda_emitter *e, uint32_t stage)
{
    struct str *t = e->text;
    bool accs = cuda_has_accs(e, stage);
    str_add(t, "if (is_column)\nfor (ix block = 0; block < blocks; block++) {\n"
               "const ix j0 = block * 256 + lane;\n");
    if (accs) {
        cuda_declare_partials(e, stage, "p", "[COLUMNS]");
        cuda_start_partials(e, stage);
    }
    cuda_block_elements(e, stage, "(i64)j");
    if (accs) {
        str_add(t, "int level = 0;\nfor (ix bits = block; bits & 1; bits >>= 1, level++) {\n");
        each_column(e);
        cuda_each_acc(e, stage, "p$[l] = join$(c$[level][l], p$[l]);\n");
        str_add(t, "}\n}\n");
        each_column(e);
        cuda_each_acc(e, stage, "c$[level][l] = p$[l];\n");
        str_add(t, "}\n");
    }
    str_add(t, "}\n");
}

// What is left in the counter, the newest first; then lanes: l with l + 8, l + 4, l + 2, l + 1.
static void
finish(struct cuda_emitter *e, uint32_t stage)
{
    struct str *t = e->text;
    str_add(t, "if (is_column) {\nint level = 0;\nwhile (!(blocks >> level & 1)) level++;\n");
    cuda_declare_partials(e, stage, "p", "[COLUMNS]");
    each_column(e);
    cuda_each_acc(e, stage, "p$[l] = c$[level][l];\n");
    str_add(t, "}\nfor (level++; blocks >> level; level++)\nif (blocks >> level & 1) {\n");
    each_column(e);
    cuda_each_acc(e, stage, "p$[l] = join$(c$[level][l], p$[l]);\n");
    str_add(t, "}\n}\n");
    each_column(e);
    cuda_each_acc(e, stage, "h$[lane][column_thread][l] = p$[l];\n");
    str_add(t, "}\n}\n__syncthreads();\n"
               "for (int d = 8; d; d /= 2) {\nif (is_column && lane < d) {\n");
    each_column(e);
    cuda_each_acc(e, stage, "h$[lane][column_thread][l] = join$(h$[lane][column_thread][l], "
                       "h$[lane + d][column_thread][l]);\n");
    str_add(t, "}\n}\n__syncthreads();\n}\n");
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        const struct acc *a = &e->kernel.acc.at[i];
        if (a->stage != stage)
            continue;
        bool position = op_gives_position(a->op);
        str_printf(t, "%s r%u[COLUMNS];\n", position ? "i64" : cuda_type(a->dtype), i);
        each_column(e);
        str_printf(t, "r%u[l] = h%u[0][column_thread][l]%s;\n}\n", i, i, position ? ".at" : "");
    }
    str_add(t, "__syncthreads();\n"); // before the next stage writes there
}

// Values of columns are computed where they are needed; here the stores of them.
static void
column_stores(struct cuda_emitter *e, uint32_t stage)
{
    if (!cuda_has_stores(e, stage, LEVEL_ROW) && !cuda_has_stores(e, stage, LEVEL_ONCE))
        return;
    const struct kernel *k = &e->kernel;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage == stage && k->store.at[i].level != LEVEL_ELEM)
            cuda_need(e, k->store.at[i].value, needed);
    str_add(e->text, "if (is_column && lane == 0) {\n");
    cuda_declare_vectors(e, needed, 1);
    cuda_load_vectors(e, needed, "0");
    cuda_declare_outputs(e, stage, LEVEL_ROW);
    each_column(e);
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ROW, "l", "0");
    cuda_put(e, stage, LEVEL_ROW, "l");
    cuda_put(e, stage, LEVEL_ONCE, "l");
    str_add(e->text, "}\n");
    cuda_store_outputs(e, stage, LEVEL_ROW);
    str_add(e->text, "}\n");
    xfree(needed);
}

void
cuda_column(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    struct str *t = e->text;
    uint32_t last = k->naxis - k->nred - 1u;
    char columns[24], n[24], strips[24];
    int64_t width = WARP * e->sched->vec, extent = k->axis[last].extent;
    str_printf(t, "constexpr int COLUMNS = %u;\n", e->sched->vec);
    for (uint32_t i = 0; i < k->acc.n; i++) {
        str_add(t, "__shared__ ");
        cuda_acc_type(&k->acc.at[i], t);
        str_printf(t, " h%u[16][32][COLUMNS];\n", i);
    }
    str_printf(t, "const int column_thread = threadIdx.x %% 32, lane = threadIdx.x / 32;\n"
                  "const ix strip = blockIdx.x %% %s, outer = blockIdx.x / %s;\n",
               cuda_number(e, (extent + width - 1) / width, strips),
               cuda_number(e, (extent + width - 1) / width, strips));
    cuda_coordinates(e, "outer", 0, last);
    str_printf(t, "const ix x%u = (strip * 32 + column_thread) * %u;\n"
                  "const bool is_column = x%u < %s;\n",
               last, e->sched->vec, last, cuda_number(e, extent, columns));
    str_printf(t, "const ix n = %s, blocks = (n + 255) / 256;\n",
               cuda_number(e, kernel_points(k, AXIS_R), n));
    for (uint32_t stage = 0; stage < k->nstage; stage++) {
        column_stores(e, stage);
        if (cuda_has_accs(e, stage)) {
            char dims[32];
            snprintf(dims, sizeof dims, "[%u][COLUMNS]", LEVELS);
            cuda_declare_partials(e, stage, "c", dims);
        }
        if (cuda_has_accs(e, stage) || cuda_has_stores(e, stage, LEVEL_ELEM))
            all_blocks(e, stage);
        if (cuda_has_accs(e, stage))
            finish(e, stage);
    }
}
