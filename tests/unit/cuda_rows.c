// cuda_rows.c: the CUDA templates of ops.def: each row's expansion, at each dtype that it computes
// in, as one small kernel. NVRTC compiles all of them for sm_90; where there is a device they run
// on values of all kinds, and their results must be the kernel interpreter's, bit for bit.
#include "codegen/cuda/cuda.h"
#include "codegen/codegen.h"
#include "ir/base/mem.h"
#include "ir/expand.h"
#include "ir/graph.h"
#include "tests/support/cuda_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 13 };

struct row {
    uint16_t op;
    uint8_t dtype, to; // of the operands (where: the last two), of the result
    char name[64];
};
typedef VEC(struct row) row_vec;

// The result's dtype where an op computes in the operands' dtype as it is; DT_NONE: it takes none
// such, or promotes them first.
static uint8_t
result_dtype(uint16_t op, uint8_t dtype, uint8_t to)
{
    struct graph *g = graph_new("row");
    struct shape s = {.rank = 1, .dim = {sym_num(4)}};
    ref in[3];
    uint8_t own[3];
    for (uint32_t i = 0; i < op_table[op].arity; i++) {
        char name[2] = {(char)('a' + i), 0};
        own[i] = op == OP_where && !i ? DT_bool : dtype;
        in[i] = graph_add_input(g, name, own[i], &s, NULL, 0);
    }
    int64_t attr = to;
    struct diag d = {0};
    ref r = graph_build(g, op, in, op_table[op].arity, &attr, op_table[op].attrs != NULL, 0, &d);
    bool native = r.i && graph_node(g, r)->op == op;
    for (uint32_t i = 0; native && i < op_table[op].arity; i++)
        native = graph_node(g, graph_in(g, r, i))->dtype == own[i];
    uint8_t result = native ? graph_node(g, r)->dtype : DT_NONE;
    graph_free(g);
    return result;
}

static bool
moves_any_dtype(uint16_t op)
{
    return op == OP_cast || op == OP_bitcast || op == OP_where;
}

static void
add_rows(uint16_t op, row_vec *rows)
{
    bool pairs = op == OP_cast || op == OP_bitcast;
    for (uint8_t dtype = 1; dtype < DT_COUNT; dtype++)
        for (uint8_t to = 1; to < DT_COUNT; to++) {
            if (!pairs && to != dtype)
                continue;
            if (dtype_is_half(dtype) && !moves_any_dtype(op))
                continue; // computes in f32
            struct row r = {.op = op, .dtype = dtype, .to = result_dtype(op, dtype, to)};
            snprintf(r.name, sizeof r.name, "%s_%s_%s", op_name(op), dtype_name(dtype),
                     dtype_name(r.to));
            if (r.to)
                vec_push(rows, r);
        }
}

// The row as a kernel's body: loads, the op, a store; expanded.
static struct kernel
body_of(const struct row *r)
{
    struct kernel k = {.nstage = 1};
    vec_push(&k.inst, (struct inst){0});
    struct inst in = {.op = r->op, .dtype = r->to, .level = LEVEL_ROW};
    uint32_t *operand[] = {&in.a, &in.b, &in.c};
    for (uint32_t i = 0; i < op_table[r->op].arity; i++) {
        uint8_t dtype = r->op == OP_where && !i ? DT_bool : r->dtype;
        vec_push(&k.inst, ((struct inst){.op = OP_load, .dtype = dtype, .level = LEVEL_ROW,
                                         .aux = i}));
        *operand[i] = k.inst.n - 1;
    }
    vec_push(&k.inst, in);
    vec_push(&k.store, ((struct store){.value = k.inst.n - 1, .level = LEVEL_ROW}));
    kernel_expand(&k);
    return k;
}

static void
print_kernel(const struct row *r, const struct kernel *k, struct str *out)
{
    str_printf(out, "extern \"C\" __global__ void %s(", r->name);
    for (uint32_t i = 0; i < op_table[r->op].arity; i++)
        str_printf(out, "const %s *p%u, ",
                   cuda_type(r->op == OP_where && !i ? DT_bool : r->dtype), i);
    str_printf(out, "%s *out)\n{\nunsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n",
               cuda_type(r->to));
    for (uint32_t i = 1; i < k->inst.n; i++)
        if (k->inst.at[i].op == OP_load)
            str_printf(out, "const %s v%u = p%u[at];\n", cuda_type(k->inst.at[i].dtype), i,
                       k->inst.at[i].aux);
        else
            cuda_statement(k, i, out);
    str_printf(out, "out[at] = v%u;\n}\n", k->store.at[0].value);
}

static char *
program_of(const row_vec *rows)
{
    struct str text = {0}, kernels = {0};
    uint64_t tables = 0;
    str_add(&text, cuda_prelude);
    for (uint32_t i = 0; i < rows->n; i++) {
        struct kernel k = body_of(&rows->at[i]);
        cuda_tables(&k, &tables, &text);
        print_kernel(&rows->at[i], &k, &kernels);
        kernel_free_body(&k);
    }
    str_add(&text, str_text(&kernels));
    str_free(&kernels);
    return text.at;
}

// ---- on a device

static uint64_t
draw(uint8_t dtype, uint64_t *state)
{
    static const double some[] = {0, -0.0, 1, -1, 2, 0.5, 3, -7, 1e-45, 1e-40, 1e-310, 1e38, -1e38,
                                  127, 128, 255, 256, 32767, 32768, 65504, 65520, 2147483647,
                                  2147483648.0, -2147483649.0, 9.3e18, -9.3e18, 1.9e19,
                                  (double)INFINITY, -(double)INFINITY, (double)NAN};
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t x = *state ^ *state >> 29, y = x * 0x9e3779b97f4a7c15ull;
    uint64_t bits = y & (UINT64_MAX >> (64 - dtype_table[dtype].bits));
    switch (x >> 20 & 3) {
    case 0:
        return scalar_from_double(dtype, some[(y >> 32) % (sizeof some / sizeof *some)]);
    case 1:
        return scalar_from_double(dtype, ((double)(int64_t)y) * 0x1p-63 * 20);
    case 2:
        return scalar_from_int(dtype, (int64_t)(y >> 40 & 127) - 64);
    default:
        return dtype == DT_bool ? bits & 1 : bits;
    }
}

static bool
equal(uint8_t dtype, uint64_t a, uint64_t b)
{
    return a == b || (dtype_is_float(dtype) && isnan(scalar_to_double(dtype, a)) &&
                      isnan(scalar_to_double(dtype, b)));
}

static void
run_row(const struct cuda *c, void *module, const struct row *r)
{
    uint32_t arity = op_table[r->op].arity, size = dtype_size(r->to), wrong = 0;
    char *host[4];
    uint64_t at[4], state = 7 + r->op;
    void *argument[4], *function;
    for (uint32_t i = 0; i <= arity; i++) {
        uint8_t dtype = r->op == OP_where && !i ? DT_bool : r->dtype;
        host[i] = xcalloc(COUNT, 8);
        for (uint32_t e = 0; e < COUNT && i < arity; e++)
            scalar_store(dtype, host[i] + e * dtype_size(dtype), draw(dtype, &state));
        at[i] = cuda_upload(c, host[i], 8 * COUNT);
        argument[i] = &at[i];
    }
    cuda_must(c->cuModuleGetFunction(&function, module, r->name), r->name);
    cuda_must(c->cuLaunchKernel(function, COUNT / 128, 1, 1, 128, 1, 1, 0, NULL, argument, NULL),
              r->name);
    cuda_must(c->cuCtxSynchronize(), r->name);
    cuda_must(c->cuMemcpyDtoH_v2(host[arity], at[arity], size * COUNT), "copying back");
    for (uint32_t e = 0; e < COUNT && wrong < 3; e++) {
        uint64_t in[3] = {0};
        for (uint32_t i = 0; i < arity; i++) {
            uint8_t dtype = r->op == OP_where && !i ? DT_bool : r->dtype;
            in[i] = scalar_load(dtype, host[i] + e * dtype_size(dtype));
        }
        uint64_t got = scalar_load(r->to, host[arity] + e * size);
        uint64_t want = eval_exact(r->op, r->dtype, r->to, in);
        wrong += !equal(r->to, got, want);
        cr_expect(equal(r->to, got, want), "%s of %llx, %llx, %llx: %llx, expected %llx", r->name,
                  (unsigned long long)in[0], (unsigned long long)in[1], (unsigned long long)in[2],
                  (unsigned long long)got, (unsigned long long)want);
    }
    for (uint32_t i = 0; i <= arity; i++) {
        c->cuMemFree_v2(at[i]);
        xfree(host[i]);
    }
}

// ---- tests

Test(cuda_rows, what_llvm_has_a_template_for_cuda_has_too)
{
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        const struct op_info *o = &op_table[op];
        cr_expect_eq(o->llvm_f != NULL, o->cuda_f != NULL, "%s of floats", o->name);
        cr_expect_eq(o->llvm_s != NULL, o->cuda_i != NULL, "%s of integers", o->name);
        cr_expect_eq(o->llvm_u != NULL, o->cuda_i != NULL, "%s of integers", o->name);
        cr_expect_eq(o->llvm_b != NULL, o->cuda_b != NULL, "%s of bool", o->name);
    }
}

Test(cuda_rows, compile_and_run, .timeout = 170)
{
    struct diag d = {0};
    struct cuda c;
    if (!cuda_codegen_available(&d))
        cr_skip_test("%s", d.text);
    bool device = cuda_open(&c);
    uint32_t programs = 0, kernels = 0;
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        row_vec rows = {0};
        if (!op_is(op, OPK_ELEM))
            continue;
        add_rows(op, &rows);
        char *text = program_of(&rows);
        size_t size = 0;
        void *cubin = cuda_object(text, device ? c.arch : "sm_90", &size, &d), *module;
        cr_assert(cubin, "%s: %s", op_name(op), d.text);
        cr_assert(size > 4 && !memcmp(cubin, "\177ELF", 4), "%s: not a cubin", op_name(op));
        if (device) {
            cuda_must(c.cuModuleLoadData(&module, cubin), op_name(op));
            for (uint32_t i = 0; i < rows.n; i++)
                run_row(&c, module, &rows.at[i]);
            c.cuModuleUnload(module);
        }
        programs++;
        kernels += rows.n;
        xfree(cubin);
        xfree(text);
        vec_free(&rows);
    }
    cr_log_info("%u kernels of %u rows compiled%s", kernels, programs,
                device ? " and run" : " for sm_90; no device to run them on");
}

Test(cuda_rows, a_refused_program_is_told_in_nvrtcs_words)
{
    struct diag d = {0};
    size_t size;
    if (!cuda_codegen_available(&d))
        cr_skip_test("%s", d.text);
    cr_assert_null(cuda_object("__global__ void f() { nonsense; }", "sm_90", &size, &d));
    cr_assert_eq(d.code, DIAG_TOOLCHAIN);
    cr_assert(strstr(d.text, "nonsense"), "%s", d.text);
    struct diag e = {0};
    cr_assert_null(cuda_object("__global__ void f() {}", "sm_999", &size, &e));
    cr_assert(strstr(e.text, "sm_999") || strstr(e.text, "architecture"), "%s", e.text);
}
