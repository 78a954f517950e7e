// row.c: kernels with reductions over rows, each row by one group of threads of one block.
//
// The order of a reduction is that of ir/kernel.h, on every device: element j belongs to lane
// j % 16 and block j / 256. A thread takes `vec` neighbouring lanes of one block, its elements 16
// apart, in order; 16 / vec threads share a block, and a warp has 2 vec blocks, which it joins by
// shuffles, nearest first. A warp's blocks are a chunk. Where a group is at most a warp, a row is
// one chunk. Else the chunks of a span (SPAN of them) lie in shared memory, are joined pairwise by
// number, and spans are joined as a binary counter carries. Last the 16 lanes are joined.
//
// An element that a later stage needs again is computed again: its row has just been read and is in
// the first- or second-level cache.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"

#include <stdio.h>

enum { SPAN = 64, WARP = 32 };

struct row_emitter {
    struct cuda_emitter *e;
    uint32_t group, vec; // threads of a row; elements of a vector
    bool shared;         // a group is a whole block of several warps
};

// ---- elements

// The results of accumulators that elements go into.
static void
join_elements(struct row_emitter *r, uint32_t stage)
{
    const struct kernel *k = &r->e->kernel;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        if (a->stage != stage)
            continue;
        struct str type = {0};
        cuda_acc_type(a, &type);
        if (op_gives_position(a->op))
            str_printf(r->e->text, "p%u[l] = join%u(p%u[l], %s{v%u, (i64)j + l});\n", i, i, i,
                       str_text(&type), a->value);
        else
            str_printf(r->e->text, "p%u[l] = join%u(p%u[l], v%u);\n", i, i, i, a->value);
        str_free(&type);
    }
}

// All elements of a chunk that a thread takes: loads of some steps first, then their elements.
static void
chunk_elements(struct row_emitter *r, uint32_t stage)
{
    struct cuda_emitter *e = r->e;
    struct str *t = e->text;
    const struct kernel *k = &e->kernel;
    uint32_t in_flight = e->sched->unroll, first_r = k->naxis - k->nred;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    cuda_need_stage(e, stage, needed);
    str_printf(t, "const ix j0 = (chunk * %u + thread / %u) * 256 + thread %% %u * %u;\n",
               (r->group < WARP ? r->group : WARP) * r->vec / 16, 16 / r->vec, 16 / r->vec, r->vec);
    str_printf(t, "for (int s = 0; s < 16; s += %u) {\nif (j0 + s * 16 >= n) break;\n", in_flight);
    cuda_declare_vectors(e, needed, in_flight);
    for (int body = 0; body < 2; body++) {
        if (!body && r->vec == 1)
            continue;
        str_printf(t, "#pragma unroll\nfor (int u = 0; u < %u; u++) {\n"
                      "const ix j = j0 + (s + u) * 16;\nif (j < n) {\n", in_flight);
        cuda_coordinates(e, "j", first_r, k->naxis);
        if (!body) {
            cuda_load_vectors(e, needed, "u");
        } else {
            cuda_declare_outputs(e, stage, LEVEL_ELEM);
            str_printf(t, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", r->vec);
            cuda_body(e, needed, LEVEL_ONCE, LEVEL_ELEM, "l", "u");
            join_elements(r, stage);
            cuda_put(e, stage, LEVEL_ELEM, "l");
            str_add(t, "}\n");
            cuda_store_outputs(e, stage, LEVEL_ELEM);
        }
        str_add(t, "}\n}\n");
    }
    str_add(t, "}\n");
    xfree(needed);
}

// ---- joining

// The blocks of a chunk, by shuffles: then the first 16 / vec threads have the chunk's lanes.
static void
join_blocks(struct row_emitter *r, uint32_t stage)
{
    uint32_t width = r->group < WARP ? r->group : WARP;
    for (uint32_t d = 16 / r->vec; d < width; d *= 2) {
        str_printf(r->e->text, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", r->vec);
        char line[96];
        snprintf(line, sizeof line, "p$[l] = join$(p$[l], shift_down(p$[l], %u));\n", d);
        cuda_each_acc(r->e, stage, line);
        str_add(r->e->text, "}\n");
    }
}

// Lanes of vectors: l with l + 8, then l + 4, l + 2, l + 1.
static void
join_lanes(struct row_emitter *r, uint32_t stage)
{
    for (uint32_t d = 8; d; d /= 2) {
        char line[96];
        bool across = d >= r->vec;
        str_printf(r->e->text, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n",
                   across ? r->vec : d);
        if (across)
            snprintf(line, sizeof line, "p$[l] = join$(p$[l], shift_down(p$[l], %u));\n",
                     d / r->vec);
        else
            snprintf(line, sizeof line, "p$[l] = join$(p$[l], p$[l + %u]);\n", d);
        cuda_each_acc(r->e, stage, line);
        str_add(r->e->text, "}\n");
    }
}

// What belongs to all results: r0 is the value, or the position.
static void
name_results(struct row_emitter *r, uint32_t stage, const char *line)
{
    const struct kernel *k = &r->e->kernel;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        const struct acc *a = &k->acc.at[i];
        if (a->stage != stage)
            continue;
        bool position = op_gives_position(a->op);
        str_printf(r->e->text, "const %s r%u = ", position ? "i64" : cuda_type(a->dtype), i);
        for (const char *c = line; *c; c++)
            if (*c == '$')
                str_printf(r->e->text, "%u", i);
            else
                str_addc(r->e->text, *c);
        str_add(r->e->text, position ? ".at;\n" : ";\n");
    }
}

static void
declare_partials(struct row_emitter *r, uint32_t stage, const char *prefix, uint32_t n)
{
    const struct kernel *k = &r->e->kernel;
    for (uint32_t i = 0; i < k->acc.n; i++) {
        if (k->acc.at[i].stage != stage)
            continue;
        cuda_acc_type(&k->acc.at[i], r->e->text);
        str_printf(r->e->text, " %s%u[%u];\n", prefix, i, n);
    }
}

static void
start_partials(struct row_emitter *r, uint32_t stage)
{
    const struct kernel *k = &r->e->kernel;
    str_printf(r->e->text, "#pragma unroll\nfor (int l = 0; l < %u; l++) {\n", r->vec);
    for (uint32_t i = 0; i < k->acc.n; i++) {
        if (k->acc.at[i].stage != stage)
            continue;
        str_printf(r->e->text, "p%u[l] = ", i);
        cuda_acc_identity(&k->acc.at[i], r->e->text);
        str_add(r->e->text, ";\n");
    }
    str_add(r->e->text, "}\n");
}

// A group within a warp: its row is one chunk.
static void
stage_in_warp(struct row_emitter *r, uint32_t stage)
{
    bool accs = cuda_has_accs(r->e, stage);
    if (accs) {
        declare_partials(r, stage, "p", r->vec);
        start_partials(r, stage);
    }
    str_add(r->e->text, "{\nconst ix chunk = 0;\n");
    chunk_elements(r, stage);
    str_add(r->e->text, "}\n");
    if (!accs)
        return;
    join_blocks(r, stage);
    join_lanes(r, stage);
    char line[64];
    snprintf(line, sizeof line, "of_lane(p$[0], threadIdx.x & %u)", WARP - r->group);
    name_results(r, stage, line);
}

// A block of several warps: chunks of a span in shared memory (h0 …), spans in a counter (c0 …)
// that thread l holds for lane l.
static void
stage_in_block(struct row_emitter *r, uint32_t stage)
{
    struct str *t = r->e->text;
    uint32_t warps = r->group / WARP;
    bool accs = cuda_has_accs(r->e, stage);
    if (!accs) {
        str_printf(t, "for (ix chunk = warp; chunk < chunks; chunk += %u) {\n", warps);
        chunk_elements(r, stage);
        str_add(t, "}\n");
        return;
    }
    declare_partials(r, stage, "c", 40);
    declare_partials(r, stage, "q", 1);
    str_printf(t, "for (ix span = 0; span * %u < chunks; span++) {\n", SPAN);
    str_printf(t, "const int some = chunks - span * %u < %u ? (int)(chunks - span * %u) : %u;\n",
               SPAN, SPAN, SPAN, SPAN);
    str_printf(t, "for (int own = warp; own < some; own += %u) {\n"
                  "const ix chunk = span * %u + own;\n", warps, SPAN);
    declare_partials(r, stage, "p", r->vec);
    start_partials(r, stage);
    chunk_elements(r, stage);
    join_blocks(r, stage);
    str_printf(t, "if (thread < %u) {\n#pragma unroll\nfor (int l = 0; l < %u; l++) {\n",
               16 / r->vec, r->vec);
    char line[120];
    snprintf(line, sizeof line, "h$[own][thread * %u + l] = p$[l];\n", r->vec);
    cuda_each_acc(r->e, stage, line);
    str_add(t, "}\n}\n}\n__syncthreads();\n");
    str_printf(t, "for (int d = 1; d < some; d *= 2) {\n"
                  "for (int i = threadIdx.x; i < %u / (2 * d) * 16; i += %u) {\n"
                  "const int at = i / 16 * 2 * d;\nif (at + d < some) {\n", SPAN, r->group);
    cuda_each_acc(r->e, stage, "h$[at][i % 16] = join$(h$[at][i % 16], h$[at + d][i % 16]);\n");
    str_add(t, "}\n}\n__syncthreads();\n}\n");
    str_add(t, "if (threadIdx.x < 16) {\nint level = 0;\n");
    cuda_each_acc(r->e, stage, "q$[0] = h$[0][threadIdx.x];\n");
    str_add(t, "for (ix bits = span; bits & 1; bits >>= 1, level++) {\n");
    cuda_each_acc(r->e, stage, "q$[0] = join$(c$[level], q$[0]);\n");
    str_add(t, "}\n");
    cuda_each_acc(r->e, stage, "c$[level] = q$[0];\n");
    str_add(t, "}\n__syncthreads();\n}\n");
    str_printf(t, "if (warp == 0) {\nconst ix spans = (chunks + %u) / %u;\nint level = 0;\n"
                  "while (!(spans >> level & 1)) level++;\n", SPAN - 1, SPAN);
    cuda_each_acc(r->e, stage, "if (thread < 16) q$[0] = c$[level];\n");
    str_add(t, "for (level++; spans >> level; level++)\nif (spans >> level & 1) {\n");
    cuda_each_acc(r->e, stage, "if (thread < 16) q$[0] = join$(c$[level], q$[0]);\n");
    str_add(t, "}\n");
    for (uint32_t d = 8; d; d /= 2) {
        snprintf(line, sizeof line, "q$[0] = join$(q$[0], shift_down(q$[0], %u));\n", d);
        cuda_each_acc(r->e, stage, line);
    }
    str_add(t, "if (thread == 0) {\n");
    cuda_each_acc(r->e, stage, "h$[0][0] = q$[0];\n");
    str_add(t, "}\n}\n__syncthreads();\n");
    name_results(r, stage, "h$[0][0]");
    str_add(t, "__syncthreads();\n"); // before the next stage writes there
}

// ---- the kernel

// Values and stores of the row that are known once `stage` reductions are finished.
static void
row_values(struct row_emitter *r, uint32_t stage)
{
    struct cuda_emitter *e = r->e;
    const struct kernel *k = &e->kernel;
    bool *needed = xcalloc(k->inst.n, sizeof *needed);
    for (uint32_t i = 1; i < k->inst.n; i++)
        needed[i] = k->inst.at[i].level <= LEVEL_ROW && k->inst.at[i].stage == stage &&
                    !e->given[i];
    cuda_body(e, needed, LEVEL_ONCE, LEVEL_ROW, NULL, NULL);
    for (uint32_t i = 1; i < k->inst.n; i++)
        e->given[i] |= needed[i];
    xfree(needed);
    if (!cuda_has_stores(e, stage, LEVEL_ROW) && !cuda_has_stores(e, stage, LEVEL_ONCE))
        return;
    str_add(e->text, r->shared ? "if (threadIdx.x == 0) {\n"
                               : "if (is_row && group_thread == 0) {\n");
    cuda_put(e, stage, LEVEL_ROW, NULL);
    cuda_put(e, stage, LEVEL_ONCE, NULL);
    str_add(e->text, "}\n");
}

static void
shared_arrays(struct row_emitter *r)
{
    const struct kernel *k = &r->e->kernel;
    for (uint32_t i = 0; i < k->acc.n && r->shared; i++) {
        str_add(r->e->text, "__shared__ ");
        cuda_acc_type(&k->acc.at[i], r->e->text);
        str_printf(r->e->text, " h%u[%u][16];\n", i, SPAN);
    }
}

void
cuda_row(struct cuda_emitter *e)
{
    const struct kernel *k = &e->kernel;
    struct str *t = e->text;
    char rows[24], n[24];
    struct row_emitter r = {e, e->sched->tile[0], e->sched->vec, e->sched->tile[0] > WARP};
    shared_arrays(&r);
    cuda_number(e, kernel_points(k, AXIS_P), rows);
    cuda_number(e, kernel_points(k, AXIS_R), n);
    if (r.shared) {
        str_add(t, "const ix row = blockIdx.x;\n");
        str_printf(t, "const ix n = %s;\n"
                      "const int warp = threadIdx.x / 32, thread = threadIdx.x %% 32;\n", n);
        str_printf(t, "const ix chunks = (n + %u) / %u;\n", 2 * r.vec * 256 - 1, 2 * r.vec * 256);
    } else {
        str_printf(t, "const ix own = (ix)blockIdx.x * %u + threadIdx.x / %u;\n",
                   e->sched->threads / r.group, r.group);
        str_printf(t, "const bool is_row = own < %s;\nconst ix row = is_row ? own : 0;\n", rows);
        str_printf(t, "const ix n = is_row ? %s : 0;\nconst int thread = threadIdx.x %% %u, "
                      "group_thread = thread;\n", n, r.group);
    }
    cuda_coordinates(e, "row", 0, k->naxis - k->nred);
    for (uint32_t stage = 0; stage < k->nstage; stage++) {
        row_values(&r, stage);
        if (!cuda_has_accs(e, stage) && !cuda_has_stores(e, stage, LEVEL_ELEM))
            continue;
        if (r.shared)
            stage_in_block(&r, stage);
        else
            stage_in_warp(&r, stage);
    }
}
