// llvm.c: LLVM IR text → object file or assembly, through LLVM's C API.
//
// One call parses, optimises and emits one module in an LLVMContext of its own, so calls
// may run on any number of threads. Shared are the initialisation of the target (once a process)
// and machines that are not in use: one knows all of a processor's instructions, which takes longer
// to set up than a small kernel's text to parse (0.4 ms of 4.5).
//
// Optimised code takes one pass: emitters print explicit vectors, unrolled loops and no memory they
// don't mean, so what is left is to clean up repeated address arithmetic, hoist what does not
// change in a loop and fold constants. Baseline code takes none, and LLVM's fast instruction
// selection and register allocation. Nothing here may change a bit of a float result, so that code
// of both levels may take turns within one launch: no pass below contracts or reassociates without
// fast-math flags, which emitters never print.
//
// Code is position independent in the small code model: the runtime links the object into memory
// of its own choice and reaches constants relative to the instruction pointer.
#include "codegen/codegen.h"

#ifdef FUSEC_LLVM

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

// Chosen by measurement: code generation takes most of the time (3 to 8 ms for a row kernel, of
// which 1.3 ms are fixed costs), this pass about 0.3 ms; early-cse and simplifycfg add 0.3 ms,
// instcombine and a second early-cse 0.6 ms more, and none changes an inner loop; default<O1> takes
// 12 ms.
static const char pass_pipeline[] = "function(loop-mssa(licm))";

static pthread_once_t target_once = PTHREAD_ONCE_INIT;

static void
init_target(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

// A machine for a processor and a level; used by one compilation at a time.
struct machine {
    enum code_level level;
    LLVMTargetMachineRef llvm;
    LLVMTargetDataRef layout;
    char *triple; // LLVM's
    char *processor, *features;
};

// Idle machines. No lock: a machine belongs to who took it out, and a child of fork() misses those
// that were out, nothing more.
enum { IDLE_MACHINES = 16 };
static _Atomic(struct machine *) idle_machine[IDLE_MACHINES];

// One compilation. What is not NULL is owned.
struct job {
    LLVMContextRef context;
    LLVMModuleRef module;
    struct machine *machine;
    LLVMPassBuilderOptionsRef options;
    struct diag *d;
};

// LLVM's own words become the diag's; the message is released.
static bool
refuse(struct diag *d, const char *doing, char *words)
{
    diag_set(d, DIAG_TOOLCHAIN, "LLVM failed while %s: %s", doing, words ? words : "no words");
    if (words)
        LLVMDisposeMessage(words);
    return false;
}

// Errors found by the back end arrive here; LLVM's default handler would end the process.
static void
on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    if (LLVMGetDiagInfoSeverity(info) == LLVMDSError)
        refuse(user, "generating code", LLVMGetDiagInfoDescription(info));
}

static bool
job_parse(struct job *j, const char *text, size_t n, bool verify)
{
    j->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(j->context, on_diagnostic, j->d);
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, n, "kernel");
    char *words = NULL;
    // The parser takes the buffer, also on failure.
    if (LLVMParseIRInContext(j->context, buffer, &j->module, &words))
        return refuse(j->d, "parsing generated IR", words);
    if (verify && LLVMVerifyModule(j->module, LLVMReturnStatusAction, &words))
        return refuse(j->d, "verifying generated IR", words);
    LLVMDisposeMessage(words);
    return true;
}

static void
machine_free(struct machine *m)
{
    if (m->layout)
        LLVMDisposeTargetData(m->layout);
    if (m->llvm)
        LLVMDisposeTargetMachine(m->llvm);
    LLVMDisposeMessage(m->triple);
    xfree(m->processor);
    xfree(m->features);
    xfree(m);
}

static char *
copied(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xmalloc(n), s, n);
}

// The features that LLVM is told. Where it believes that 64 bits divide slowly it puts a test and a
// 32-bit division beside every division of an index, which makes a twelfth of some kernels' time to
// compile. Processors with VAES (Ice Lake, Zen 3, and later ones) need no such detour.
static char *
machine_features(const struct target *t)
{
    struct str s = {0};
    str_add(&s, t->features);
    if (strstr(t->features, "+vaes"))
        str_add(&s, ",-idivq-to-divl");
    char *features = copied(str_text(&s));
    str_free(&s);
    return features;
}

static struct machine *
machine_new(const struct target *t, enum code_level level, struct diag *d)
{
    struct machine *m = xcalloc(1, sizeof *m);
    m->level = level;
    m->triple = LLVMGetDefaultTargetTriple();
    m->processor = copied(t->arch);
    m->features = copied(t->features);
    char *words = NULL;
    LLVMTargetRef target;
    bool known = !LLVMGetTargetFromTriple(m->triple, &target, &words);
    char *features = machine_features(t);
    if (known)
        m->llvm = LLVMCreateTargetMachine(target, m->triple, t->arch, features,
                                          level == CODE_BASELINE ? LLVMCodeGenLevelNone
                                                                 : LLVMCodeGenLevelDefault,
                                          LLVMRelocPIC, LLVMCodeModelSmall);
    xfree(features);
    if (m->llvm) {
        m->layout = LLVMCreateTargetDataLayout(m->llvm);
        return m;
    }
    if (known)
        diag_set(d, DIAG_TOOLCHAIN, "LLVM knows no machine for CPU '%s'", t->arch);
    else
        refuse(d, "looking for this host's target", words);
    machine_free(m);
    return NULL;
}

static void
machine_give(struct machine *m)
{
    for (int i = 0; i < IDLE_MACHINES; i++) {
        struct machine *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&idle_machine[i], &none, m,
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
    machine_free(m);
}

static struct machine *
machine_take(const struct target *t, enum code_level level, struct diag *d)
{
    for (int i = 0; i < IDLE_MACHINES; i++) {
        struct machine *m =
            atomic_load_explicit(&idle_machine[i], memory_order_relaxed)
                ? atomic_exchange_explicit(&idle_machine[i], NULL, memory_order_acquire)
                : NULL;
        if (!m)
            continue;
        bool fits = !strcmp(m->processor, t->arch) && !strcmp(m->features, t->features);
        if (fits && m->level == level)
            return m;
        if (fits)
            machine_give(m);
        else // for another processor: rare, and not worth a place
            machine_free(m);
    }
    return machine_new(t, level, d);
}

static bool
job_machine(struct job *j, const struct target *t, enum code_level level)
{
    j->machine = machine_take(t, level, j->d);
    if (!j->machine)
        return false;
    LLVMSetTarget(j->module, j->machine->triple);
    LLVMSetModuleDataLayout(j->module, j->machine->layout);
    return true;
}

static bool
job_optimise(struct job *j)
{
    j->options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(j->module, pass_pipeline, j->machine->llvm, j->options);
    if (!error)
        return true;
    char *words = LLVMGetErrorMessage(error);
    diag_set(j->d, DIAG_TOOLCHAIN, "LLVM failed while optimising: %s", words);
    LLVMDisposeErrorMessage(words);
    return false;
}

static LLVMMemoryBufferRef
job_emit(struct job *j, LLVMCodeGenFileType type)
{
    char *words = NULL;
    LLVMMemoryBufferRef out = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(j->machine->llvm, j->module, type, &words, &out)) {
        refuse(j->d, "emitting code", words);
        return NULL;
    }
    if (j->d->code != DIAG_OK) { // the back end reported an error, and went on
        LLVMDisposeMemoryBuffer(out);
        return NULL;
    }
    return out;
}

static void
job_end(struct job *j)
{
    if (j->options)
        LLVMDisposePassBuilderOptions(j->options);
    if (j->module)
        LLVMDisposeModule(j->module);
    LLVMContextDispose(j->context);
    if (j->machine)
        machine_give(j->machine);
}

// NULL: d says why. The caller disposes of the buffer.
static LLVMMemoryBufferRef
compile(const char *text, size_t n, const struct target *t, enum code_level level,
        LLVMCodeGenFileType type, struct diag *d)
{
    cpu_codegen_start();
    struct diag own = {0}; // d may hold an older error, which must not fail this call
    struct job j = {.d = &own};
    LLVMMemoryBufferRef out = NULL;
    // A hundredth of the time, and the parser has checked the types: not for code that is to run.
    bool verify = type == LLVMAssemblyFile;
#ifdef FUSEC_VERIFY
    verify = true;
#endif
    if (job_parse(&j, text, n, verify) && job_machine(&j, t, level) &&
        (level == CODE_BASELINE || job_optimise(&j)))
        out = job_emit(&j, type);
    job_end(&j);
    if (!out)
        diag_set(d, own.code, "%s", own.text);
    return out;
}

void *
cpu_object(const char *text, size_t n, const struct target *t, enum code_level level, size_t *size,
           struct diag *d)
{
    LLVMMemoryBufferRef buffer = compile(text, n, t, level, LLVMObjectFile, d);
    if (!buffer)
        return NULL;
    *size = LLVMGetBufferSize(buffer);
    void *object = xmalloc(*size);
    memcpy(object, LLVMGetBufferStart(buffer), *size);
    LLVMDisposeMemoryBuffer(buffer);
    return object;
}

bool
cpu_assembly(const char *text, size_t n, const struct target *t, struct str *out, struct diag *d)
{
    LLVMMemoryBufferRef buffer = compile(text, n, t, CODE_OPTIMISED, LLVMAssemblyFile, d);
    if (!buffer)
        return false;
    str_addn(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return true;
}

bool
cpu_codegen_available(void)
{
    return true;
}

void
cpu_codegen_start(void)
{
    pthread_once(&target_once, init_target);
}

#else // built with llvm=off

static bool
no_llvm(struct diag *d)
{
    return diag_set(d, DIAG_UNSUPPORTED,
                    "this build has no code generator (meson option llvm=off)");
}

void *
cpu_object(const char *text, size_t n, const struct target *t, enum code_level level, size_t *size,
           struct diag *d)
{
    (void)text, (void)n, (void)t, (void)level, (void)size;
    no_llvm(d);
    return NULL;
}

bool
cpu_assembly(const char *text, size_t n, const struct target *t, struct str *out, struct diag *d)
{
    (void)text, (void)n, (void)t, (void)out;
    return no_llvm(d);
}

bool
cpu_codegen_available(void)
{
    return false;
}

void
cpu_codegen_start(void)
{
}

#endif
