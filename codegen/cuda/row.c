// row.c: kernels with reductions over rows, each row by one group of threads of one block.
//
// The order of a reduction is that of ir/kernel.h, on every device: element j belongs to lane
// j % 16 and block j / 256. A thread takes `vec` neighbouring lanes of one block, its elements 16
// apart, in order; 16 / vec threads share a block, and a warp has 2 vec blocks, which it joins by
// shuffles, nearest first. A warp's blocks are a chunk. Where a group is at most a warp, a row is
// one chunk. Else the chunks of a span (SPAN of them) lie in shared memory, are joined pairwise by
// number, and spans are joined as a binary counter carries. Last the 16 lanes are joined.
//
// Where a row is divided among blocks (split), each has one span, of `part` chunks, and leaves its
// 16 lanes in scratch memory; the block that finds that it is the row's last joins them: a thread
// takes a lane of some neighbouring parts, then shared memory as before.
//
// An element that a later stage needs again is computed again: its row has just been read and is in
// the first- or second-level cache.
#include "codegen/cuda/emit.h"

#include "ir/base/mem.h"
#include "ir/base/size.h"

#include <stdio.h>

enum { SPAN = 64, WARP = 32 };

struct row_emitter {
    struct cuda_emitter *e;
    uint32_t group, vec; // threads of a row; elements of a vector
    bool shared;         // a group is a whole block of several warps
    bool split;          // which has a part of a row
    uint32_t span;       // chunks
};

// All elements of a chunk that a thread takes.
static void
chunk_elements(struct row_emitter *r, uint32_t stage)
{
    str_printf(r->e->text,
               "const ix j0 = (chunk * %u + thread / %u) * 256 + thread %% %u * %u;\n",
               (r->group < WARP ? r->group : WARP) * r->vec / 16, 16 / r->vec, 16 / r->vec, r->vec);
    cuda_block_elements(r->e, stage, "(i64)j + l");
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
    char dims[16];
    snprintf(dims, sizeof dims, "[%u]", n);
    cuda_declare_partials(r->e, stage, prefix, dims);
}

// A group within a warp: its row is one chunk.
static void
stage_in_warp(struct row_emitter *r, uint32_t stage)
{
    bool accs = cuda_has_accs(r->e, stage);
    if (accs) {
        declare_partials(r, stage, "p", r->vec);
        cuda_start_partials(r->e, stage);
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

// The chunks of a span, `some` of them from `first` on, one after the other to each warp; joined in
// shared memory (h0 …): its first row then has the span's lanes.
static void
span_chunks(struct row_emitter *r, uint32_t stage)
{
    struct str *t = r->e->text;
    char line[120];
    str_printf(t, "for (int own = warp; own < some; own += %u) {\n"
                  "const ix chunk = first + own;\n", r->group / WARP);
    declare_partials(r, stage, "p", r->vec);
    cuda_start_partials(r->e, stage);
    chunk_elements(r, stage);
    join_blocks(r, stage);
    str_printf(t, "if (thread < %u) {\n#pragma unroll\nfor (int l = 0; l < %u; l++) {\n",
               16 / r->vec, r->vec);
    snprintf(line, sizeof line, "h$[own][thread * %u + l] = p$[l];\n", r->vec);
    cuda_each_acc(r->e, stage, line);
    str_add(t, "}\n}\n}\n__syncthreads();\n");
}

// `some` rows of shared memory, pairwise by number.
static void
join_shared(struct row_emitter *r, uint32_t stage, uint32_t rows)
{
    struct str *t = r->e->text;
    str_printf(t, "for (int d = 1; d < some; d *= 2) {\n"
                  "for (int i = threadIdx.x; i < %u / (2 * d) * 16; i += %u) {\n"
                  "const int at = i / 16 * 2 * d;\nif (at + d < some) {\n", rows, r->group);
    cuda_each_acc(r->e, stage, "h$[at][i % 16] = join$(h$[at][i % 16], h$[at + d][i % 16]);\n");
    str_add(t, "}\n}\n__syncthreads();\n}\n");
}

// The 16 lanes, which threads 0 … 15 hold as q0 …, by warp 0; the results.
static void
finish_row(struct row_emitter *r, uint32_t stage)
{
    struct str *t = r->e->text;
    char line[120];
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

// What a binary counter (c0 …) of n numbers holds, the newest first, into q0 ….
static void
empty_counter(struct row_emitter *r, uint32_t stage, const char *n)
{
    struct str *t = r->e->text;
    str_printf(t, "int level = 0;\nwhile (!(%s >> level & 1)) level++;\n", n);
    cuda_each_acc(r->e, stage, "q$[0] = c$[level];\n");
    str_printf(t, "for (level++; %s >> level; level++)\nif (%s >> level & 1) {\n", n, n);
    cuda_each_acc(r->e, stage, "q$[0] = join$(c$[level], q$[0]);\n");
    str_add(t, "}\n");
}

// q0 … is the counter's number `number`.
static void
count_up(struct row_emitter *r, uint32_t stage, const char *number)
{
    struct str *t = r->e->text;
    str_printf(t, "int level = 0;\nfor (ix bits = %s; bits & 1; bits >>= 1, level++) {\n", number);
    cuda_each_acc(r->e, stage, "q$[0] = join$(c$[level], q$[0]);\n");
    str_add(t, "}\n");
    cuda_each_acc(r->e, stage, "c$[level] = q$[0];\n");
}

// A block of several warps: spans in a counter that thread l holds for lane l.
static void
stage_in_block(struct row_emitter *r, uint32_t stage)
{
    struct str *t = r->e->text;
    if (!cuda_has_accs(r->e, stage)) {
        str_printf(t, "for (ix chunk = warp; chunk < chunks; chunk += %u) {\n", r->group / WARP);
        chunk_elements(r, stage);
        str_add(t, "}\n");
        return;
    }
    declare_partials(r, stage, "c", 40);
    declare_partials(r, stage, "q", 1);
    str_printf(t, "for (ix span = 0; span * %u < chunks; span++) {\n"
                  "const ix first = span * %u;\n"
                  "const int some = chunks - first < %u ? (int)(chunks - first) : %u;\n", r->span,
               r->span, r->span, r->span);
    span_chunks(r, stage);
    join_shared(r, stage, r->span);
    str_add(t, "if (threadIdx.x < 16) {\n");
    cuda_each_acc(r->e, stage, "q$[0] = h$[0][threadIdx.x];\n");
    count_up(r, stage, "span");
    str_add(t, "}\n__syncthreads();\n}\n");
    str_printf(t, "if (warp == 0) {\nconst ix spans = (chunks + %u) / %u;\nif (thread < 16) {\n",
               r->span - 1, r->span);
    empty_counter(r, stage, "spans");
    str_add(t, "}\n");
    finish_row(r, stage);
}

// Where each part leaves its lanes, and how many parts of each row have.
static void
declare_scratch(struct row_emitter *r)
{
    struct cuda_emitter *e = r->e;
    char rows[24], at[24];
    int64_t nrows = kernel_points(&e->kernel, AXIS_P), offset = (4 * nrows + 15) & ~(int64_t)15;
    int64_t parts = nrows ? e->sched->units / nrows : 0;
    str_printf(e->text, "unsigned *const done = (unsigned *)a.scratch;\n");
    for (uint32_t i = 0; i < e->kernel.acc.n; i++) {
        cuda_acc_type(&e->kernel.acc.at[i], e->text);
        str_printf(e->text, " (*const g%u)[16] = (", i);
        cuda_acc_type(&e->kernel.acc.at[i], e->text);
        str_printf(e->text, " (*)[16])(a.scratch + (size_t)%s) + row * %s;\n",
                   cuda_number(e, offset, at), cuda_number(e, parts, rows));
        offset += nrows * parts * 16 * 16;
    }
}

static void
stage_of_part(struct row_emitter *r, uint32_t stage)
{
    struct str *t = r->e->text;
    if (!cuda_has_accs(r->e, stage)) {
        str_printf(t, "for (int own = warp; own < %u; own += %u) {\n"
                      "const ix chunk = part * %u + own;\nif (chunk >= chunks) break;\n", r->span,
                   r->group / WARP, r->span);
        chunk_elements(r, stage);
        str_add(t, "}\n");
        return;
    }
    uint32_t groups = r->group / 16;
    declare_scratch(r);
    str_printf(t, "{\nconst ix first = part * %u;\n"
                  "const int some = chunks - first < %u ? (int)(chunks - first) : %u;\n", r->span,
               r->span, r->span);
    span_chunks(r, stage);
    join_shared(r, stage, r->span);
    str_add(t, "if (threadIdx.x < 16) {\n");
    cuda_each_acc(r->e, stage, "g$[part][threadIdx.x] = h$[0][threadIdx.x];\n");
    str_add(t, "__threadfence();\n}\n__syncthreads();\n}\n"
               "__shared__ bool last;\n"
               "if (threadIdx.x == 0) {\n"
               "last = atomicAdd(&done[row], 1u) == (unsigned)(parts - 1);\n"
               "if (last) done[row] = 0;\n__threadfence();\n}\n__syncthreads();\n"
               "if (!last) return;\n__threadfence();\n");
    str_printf(t, "int each = 1;\nwhile (each * %u < parts) each *= 2;\n"
                  "const int group = threadIdx.x / 16, lane = threadIdx.x %% 16;\n"
                  "const ix from = (ix)group * each, left = parts - from;\n"
                  "const int mine = left < each ? (int)left : each;\n", groups);
    declare_partials(r, stage, "c", 40);
    declare_partials(r, stage, "q", 1);
    str_add(t, "for (int i = 0; i < mine; i++) {\n");
    cuda_each_acc(r->e, stage, "q$[0] = g$[from + i][lane];\n");
    count_up(r, stage, "i");
    str_add(t, "}\nif (mine > 0) {\n");
    empty_counter(r, stage, "mine");
    cuda_each_acc(r->e, stage, "h$[group][lane] = q$[0];\n");
    str_add(t, "}\n__syncthreads();\n{\nconst int some = (int)((parts + each - 1) / each);\n");
    join_shared(r, stage, groups);
    str_add(t, "}\nif (warp == 0) {\nif (thread < 16) {\n");
    cuda_each_acc(r->e, stage, "q$[0] = h$[0][thread];\n");
    str_add(t, "}\n");
    finish_row(r, stage);
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
    bool split = e->sched->cls == CLASS_SPLIT;
    struct row_emitter r = {e, e->sched->tile[0], e->sched->vec, e->sched->tile[0] > WARP, split,
                            split ? e->sched->tile[1] : SPAN};
    shared_arrays(&r);
    cuda_number(e, kernel_points(k, AXIS_P), rows);
    cuda_number(e, kernel_points(k, AXIS_R), n);
    if (r.split) {
        char parts[24];
        int64_t chunks = ceil_div(kernel_points(k, AXIS_R), (int64_t)2 * r.vec * RED_BLOCK);
        cuda_number(e, ceil_div(chunks, r.span), parts);
        str_printf(t, "const ix parts = %s, row = blockIdx.x / parts;\n"
                      "const ix part = blockIdx.x %% parts;\n", parts);
    } else if (r.shared) {
        str_add(t, "const ix row = blockIdx.x;\n");
    }
    if (r.shared) {
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
        if (r.split)
            stage_of_part(&r, stage);
        else if (r.shared)
            stage_in_block(&r, stage);
        else
            stage_in_warp(&r, stage);
    }
}
