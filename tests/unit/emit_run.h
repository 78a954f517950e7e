// emit_run.h: for tests of the CPU emitters: kernels built by hand, compiled with LLVM's own JIT,
// run on buffers that end (or begin) at an inaccessible page, compared with the kernel
// interpreter.
#ifndef FUSEC_TESTS_EMIT_RUN_H
#define FUSEC_TESTS_EMIT_RUN_H

#include "codegen/codegen.h"
#include "ir/interp.h"
#include "passes/schedule.h"

#include <criterion/criterion.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// ---- targets

static inline struct target
host_target(void)
{
    struct target t = {.kind = DEVICE_CPU, .units = 2, .l1 = 32768, .l2 = 1 << 20, .llc = 32 << 20};
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    snprintf(t.arch, sizeof t.arch, "%s", cpu);
    snprintf(t.features, sizeof t.features, "%s", features);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    t.vec_bytes = strstr(t.features, "+avx512f") ? 64 : strstr(t.features, "+avx2") ? 32 : 16;
    return t;
}

// A processor of 256-bit vectors, and one without F16C, FMA and masked moves.
static inline struct target
plain_target(bool avx2)
{
    struct target t = host_target();
    snprintf(t.arch, sizeof t.arch, "%s", avx2 ? "x86-64-v3" : "x86-64");
    snprintf(t.features, sizeof t.features, "%s", avx2 ? "+avx2,+fma,+f16c" : "");
    t.vec_bytes = avx2 ? 32 : 16;
    return t;
}

// ---- code

struct jit {
    LLVMOrcLLJITRef orc;
};

static inline void
jit_must(LLVMErrorRef error)
{
    if (!error)
        return;
    char *words = LLVMGetErrorMessage(error);
    cr_assert_fail("LLVM: %s", words);
}

static inline kernel_fn *
jit_load(struct jit *j, const char *text, const struct target *t, const char *name)
{
    struct diag d = {0};
    size_t n = 0;
    void *object = cpu_object(text, strlen(text), t, CODE_OPTIMISED, &n, &d);
    cr_assert_not_null(object, "%s\n%s", d.text, text);
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    jit_must(LLVMOrcCreateLLJIT(&j->orc, NULL));
    LLVMOrcDefinitionGeneratorRef process;
    jit_must(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
        &process, LLVMOrcLLJITGetGlobalPrefix(j->orc), NULL, NULL));
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(j->orc), process);
    LLVMMemoryBufferRef b = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, n, "kernel");
    jit_must(LLVMOrcLLJITAddObjectFile(j->orc, LLVMOrcLLJITGetMainJITDylib(j->orc), b));
    xfree(object);
    LLVMOrcExecutorAddress at = 0;
    jit_must(LLVMOrcLLJITLookup(j->orc, &at, name));
    kernel_fn *fn;
    memcpy(&fn, &at, sizeof fn);
    return fn;
}

// NULL: the object has no such function.
static inline kernel_fn *
jit_find(struct jit *j, const char *name)
{
    LLVMOrcExecutorAddress at = 0;
    LLVMErrorRef error = LLVMOrcLLJITLookup(j->orc, &at, name);
    if (error)
        LLVMConsumeError(error);
    return error ? NULL : (kernel_fn *)(uintptr_t)at;
}

static inline void
jit_free(struct jit *j)
{
    jit_must(LLVMOrcDisposeLLJIT(j->orc));
}

// ---- memory between inaccessible pages

struct fence {
    char *map, *at;
    size_t bytes, mapped;
};

// The block ends (or, with front, begins) at an inaccessible page.
static inline struct fence
fence_new(size_t bytes, bool front)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    struct fence f = {.bytes = bytes, .mapped = body + 2 * page};
    f.map = mmap(NULL, f.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(f.map != MAP_FAILED);
    if (body)
        cr_assert_eq(mprotect(f.map + page, body, PROT_READ | PROT_WRITE), 0);
    f.at = front ? f.map + page : f.map + page + body - bytes;
    return f;
}

static inline void
fence_free(struct fence *f)
{
    munmap(f->map, f->mapped);
}

// ---- kernels by hand

static inline void
kb_begin(struct kernel *k, const int64_t *extent, uint32_t np, uint32_t nr)
{
    *k = (struct kernel){.name = "test", .naxis = (uint8_t)(np + nr), .nred = (uint8_t)nr,
                         .nstage = 1};
    for (uint32_t i = 0; i < np + nr; i++)
        k->axis[i] = (struct axis){extent[i], i < np ? AXIS_P : AXIS_R};
    vec_push(&k->inst, (struct inst){0});
}

// Spans follow from the accesses, see kb_access.
static inline uint32_t
kb_buffer(struct kernel *k, uint8_t dtype, uint8_t role)
{
    vec_push(&k->buffers, ((struct kernel_buffer){.dtype = dtype, .role = role, .span_lo = 0,
                                                  .span_hi = 0}));
    return k->buffers.n - 1;
}

static inline uint32_t
kb_access(struct kernel *k, uint32_t buffer, int64_t base, const int64_t *stride)
{
    struct access x = {.buffer = (uint16_t)buffer, .dtype = k->buffers.at[buffer].dtype,
                       .base = base};
    int64_t lo = base, hi = base;
    bool empty = false;
    for (uint32_t i = 0; i < k->naxis; i++) {
        x.stride[i] = stride[i];
        int64_t reach = k->axis[i].extent ? stride[i] * (k->axis[i].extent - 1) : 0;
        empty |= k->axis[i].extent == 0 && stride[i];
        *(reach < 0 ? &lo : &hi) += reach;
    }
    struct kernel_buffer *b = &k->buffers.at[buffer];
    if (!empty) {
        b->span_lo = lo < b->span_lo ? lo : b->span_lo;
        b->span_hi = hi + 1 > b->span_hi ? hi + 1 : b->span_hi; // one past, until kb_end
    }
    vec_push(&k->access, x);
    return k->access.n - 1;
}

static inline uint32_t
kb_inst(struct kernel *k, struct inst in)
{
    vec_push(&k->inst, in);
    return k->inst.n - 1;
}

static inline uint32_t
kb_load(struct kernel *k, uint32_t access, uint8_t stage)
{
    return kb_inst(k, (struct inst){.op = OP_load, .dtype = k->access.at[access].dtype,
                                    .stage = stage, .level = k->nred ? LEVEL_ELEM : LEVEL_ROW,
                                    .aux = access});
}

static inline uint32_t
kb_literal(struct kernel *k, uint8_t dtype, double x)
{
    return kb_inst(k, (struct inst){.op = OP_literal, .dtype = dtype,
                                    .bits = scalar_from_double(dtype, x)});
}

static inline bool
op_gives_bool(uint16_t op)
{
    return op_table[op].rule == DTR_COMPARE || op_table[op].rule == DTR_PREDICATE ||
           op == OP_unordered_raw;
}

// dtype OP_none: from the operands. Stage and level: the operands' greatest.
static inline uint32_t
kb_op(struct kernel *k, uint16_t op, uint8_t dtype, uint32_t a, uint32_t b, uint32_t c)
{
    const struct inst *o = k->inst.at;
    uint8_t stage = o[a].stage, level = o[a].level;
    const uint32_t more[] = {b, c};
    for (int i = 0; i < 2; i++) {
        stage = o[more[i]].stage > stage ? o[more[i]].stage : stage;
        level = o[more[i]].level > level ? o[more[i]].level : level;
    }
    if (!dtype)
        dtype = op_gives_bool(op) ? DT_bool : op == OP_where ? o[b].dtype : o[a].dtype;
    return kb_inst(k, (struct inst){.op = op, .dtype = dtype, .stage = stage, .level = level,
                                    .a = a, .b = b, .c = c});
}

static inline uint32_t
kb_reduce(struct kernel *k, uint16_t op, uint32_t value, uint8_t scope)
{
    const struct inst in = k->inst.at[value];
    vec_push(&k->acc, ((struct acc){.op = op, .dtype = in.dtype, .stage = in.stage, .scope = scope,
                                    .value = value}));
    uint8_t stage = (uint8_t)(in.stage + 1);
    k->nstage = stage + 1 > k->nstage ? (uint8_t)(stage + 1) : k->nstage;
    bool arg = op == OP_argmax || op == OP_argmin;
    return kb_inst(k, (struct inst){.op = OP_result, .dtype = arg ? DT_i64 : in.dtype,
                                    .stage = stage,
                                    .level = scope == OVER_P ? LEVEL_ONCE : LEVEL_ROW,
                                    .aux = k->acc.n - 1});
}

static inline void
kb_store(struct kernel *k, uint32_t value, uint32_t access)
{
    const struct inst *in = &k->inst.at[value];
    vec_push(&k->store, ((struct store){.value = value, .access = access, .stage = in->stage,
                                        .level = in->level}));
}

// Row-major strides over all axes.
static inline void
kb_dense(const struct kernel *k, int64_t *stride)
{
    int64_t n = 1;
    for (uint32_t i = k->naxis; i-- > 0;) {
        stride[i] = n;
        n *= k->axis[i].extent;
    }
}

// ---- filling and comparing

static inline uint64_t
test_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Random bits of all kinds: small values, any bits, and the corners of the dtype.
static inline uint64_t
test_scalar(uint64_t *state, uint8_t dtype)
{
    uint64_t r = test_random(state);
    uint32_t width = dtype_table[dtype].bits;
    uint64_t all = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    if (dtype == DT_bool)
        return r & 1 ? r & 255 : 0;
    switch (r >> 60) {
    case 0:
        return test_random(state) & all;
    case 1:
        return dtype_is_float(dtype) ? scalar_from_double(dtype, (r & 1) ? INFINITY : -INFINITY)
                                     : all >> (r & 1);
    case 2:
        return dtype_is_float(dtype) ? (r & 1 ? scalar_from_double(dtype, NAN) : r & 3) : r & 3;
    case 3:
        return (uint64_t)1 << (width - 1); // -0, or the least integer
    case 4:
        return scalar_from_double(dtype, (double)(int64_t)test_random(state));
    default:
        return dtype_is_float(dtype)
                   ? scalar_from_double(dtype, (double)((int64_t)(r & 0xffff) - 32768) / 1024)
                   : scalar_from_int(dtype, (int64_t)(r & 31) - 15);
    }
}

static inline bool
same_scalar(uint8_t dtype, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    return dtype_is_float(dtype) && isnan(scalar_to_double(dtype, a)) &&
           isnan(scalar_to_double(dtype, b));
}

// ---- one kernel: emitted, run on every page layout and split of units, compared

struct run_options {
    struct target target;
    uint64_t seed;
    const char *what;       // for messages
    void (*fill)(const struct kernel *k, uint32_t buffer, char *at, int64_t n, uint64_t *seed);
};

static inline void
run_fill(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    uint8_t dtype = k->buffers.at[b].dtype;
    for (int64_t i = 0; i < n; i++)
        if (dtype == DT_bool)
            at[i] = (char)test_scalar(seed, dtype);
        else
            scalar_store(dtype, at + i * dtype_size(dtype), test_scalar(seed, dtype));
}

// Values that show the order of a sum; in buffers of more than `many` elements every `every`-th is
// a special one.
static inline void
run_fill_sums(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed, int64_t many,
              int64_t every)
{
    uint8_t dtype = k->buffers.at[b].dtype;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = test_random(seed), bits;
        double x = ((double)(r & 0xffffff) / 0x1000000 - 0.5) * exp2((double)(r >> 24 & 15) - 6);
        if (n > many && i % every == 5)
            bits = test_scalar(seed, dtype);
        else if (dtype_is_float(dtype))
            bits = scalar_from_double(dtype, x);
        else
            bits = dtype == DT_bool ? (r & 7) != 0
                                    : scalar_from_int(dtype, (int64_t)(r % 999) - 400);
        scalar_store(dtype, at + i * dtype_size(dtype), bits);
    }
}

// Elements of a buffer that the kernel may touch: [span_lo, span_hi) as kb_access wrote them.
static inline int64_t
run_count(const struct kernel_buffer *b)
{
    return b->span_hi - b->span_lo;
}

struct run_code {
    kernel_fn *kernel, *finish; // finish: NULL unless schedule.finish_units
};

// All units at once, or one by one from the last to the first.
static inline void
run_range(kernel_fn *fn, const struct kernel_args *args, int64_t units, char *scratch, bool split)
{
    if (!split)
        fn(args, 0, units, scratch);
    for (int64_t u = split ? units : 0; u-- > 0;)
        fn(args, u, u + 1, scratch);
}

static inline void
run_units(const struct run_code *code, struct kernel_args *args, const struct schedule *s,
          bool split)
{
    struct fence scratch = fence_new(((size_t)s->scratch_bytes + 63) / 64 * 64, false);
    struct fence shared = fence_new(((size_t)s->shared_scratch_bytes + 63) / 64 * 64, false);
    args->shared = shared.at;
    run_range(code->kernel, args, s->units, scratch.at, split);
    if (code->finish)
        run_range(code->finish, args, s->finish_units, scratch.at, split);
    fence_free(&scratch);
    fence_free(&shared);
}

static inline void
run_compare(const struct kernel *k, uint32_t b, const char *got, const char *want, int64_t n,
            const char *what)
{
    uint8_t dtype = k->buffers.at[b].dtype;
    for (int64_t i = 0; i < n; i++) {
        uint32_t size = dtype_size(dtype);
        uint64_t x = scalar_load(dtype, got + i * size), y = scalar_load(dtype, want + i * size);
        cr_assert(same_scalar(dtype, x, y) && (got[i * size] == want[i * size] || dtype != DT_bool),
                  "%s: buffer %u element %ld of %ld is %lx (%g), should be %lx (%g)", what, b,
                  (long)i, (long)n, (unsigned long)x, scalar_to_double(dtype, x),
                  (unsigned long)y, scalar_to_double(dtype, y));
    }
}

static inline void
run_check(const struct kernel *k, const struct schedule *s, const struct run_code *code,
          const int64_t *num, const struct run_options *o, bool front, bool split)
{
    struct fence got[16];
    void *want[16], *ptr[16];
    void *want_ptr[16];
    uint64_t seed = o->seed;
    struct kernel rk;
    kernel_copy(&rk, k);
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        uint8_t dtype = k->buffers.at[b].dtype;
        int64_t n = run_count(&k->buffers.at[b]), lo = k->buffers.at[b].span_lo;
        size_t bytes = (size_t)(n * dtype_size(dtype));
        got[b] = fence_new(bytes, front);
        if (k->buffers.at[b].role == BUF_IN)
            (o->fill ? o->fill : run_fill)(k, b, got[b].at, n, &seed);
        want[b] = xmalloc(bytes + 1);
        memcpy(want[b], got[b].at, bytes);
        ptr[b] = got[b].at - lo * dtype_size(dtype);
        want_ptr[b] = (char *)want[b] - lo * dtype_size(dtype);
        if (rk.buffers.at[b].span_hi > lo)
            rk.buffers.at[b].span_hi--; // now as kernel.h has it
    }
    int32_t error = 0;
    struct diag d = {0};
    struct kernel_args args = {.ptr = ptr, .num = num, .error = &error};
    run_units(code, &args, s, split);
    bool ok = interp_kernel(&rk, want_ptr, 1 << 20, NULL, NULL, &d);
    cr_assert(ok || error, "%s: the interpreter says %s", o->what, d.text);
    cr_assert_eq(ok, error == 0, "%s: error flag %d", o->what, error);
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        run_compare(k, b, got[b].at, want[b], run_count(&k->buffers.at[b]), o->what);
        fence_free(&got[b]);
        xfree(want[b]);
    }
    kernel_free_body(&rk);
}

// Emits, compiles, runs and compares a kernel with a given schedule.
static inline void
run_scheduled(const struct kernel *k, const struct schedule *s, const struct run_options *o)
{
    struct str text = {0};
    num_vec num = {0};
    struct diag d = {0};
    cr_assert(cpu_emit(k, s, &o->target, &text, &num, &d), "%s: %s", o->what, d.text);
    struct jit j;
    struct run_code code = {.kernel = jit_load(&j, str_text(&text), &o->target, "kernel")};
    if (s->finish_units) {
        code.finish = jit_find(&j, "kernel_finish");
        cr_assert_not_null(code.finish, "%s: no kernel_finish", o->what);
    }
    run_check(k, s, &code, num.at, o, false, false);
    run_check(k, s, &code, num.at, o, true, true);
    jit_free(&j);
    str_free(&text);
    vec_free(&num);
}

#endif
