// orc.c: LLVM's ORC as a loader. Every object defines `kernel`, so each lives in a JITDylib of its
// own, under a resource tracker through which it can be removed again. ORC's C interface cannot
// delete a JITDylib: an emptied one is kept and used for a later object.
//
// A dylib sees the host functions of jit_symbols.def and nothing else of the process. What an
// object asks for beyond them is found before ORC is asked, by reading the object's own symbol
// table: ORC's answer would be "failed to materialize kernel", without the name that matters.
#include "runtime/orc.h"

#ifdef FUSEC_LLVM

#include "ir/base/check.h"
#include "runtime/jit_symbols.h"

#include <elf.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct jit_dylib {
    struct jit_dylib *next;  // of the unused
    struct jit_dylib *older; // of all
    LLVMOrcJITDylibRef dylib;
    LLVMOrcResourceTrackerRef tracker; // of the object in it; NULL: none
};

struct jit {
    LLVMOrcLLJITRef lljit;
    LLVMOrcExecutionSessionRef session;
    pthread_mutex_t mutex;      // of what follows
    pthread_cond_t linked;      // some look-up is done
    struct jit_dylib *unused;   // emptied dylibs
    struct jit_dylib *newest;   // of all
    uint32_t dylibs;            // made so far
    char reported[500];         // what ORC said beside its error values, since the last load
};

static bool
refused(struct diag *d, const char *doing, LLVMErrorRef error, const char *more)
{
    char *words = LLVMGetErrorMessage(error);
    diag_set(d, DIAG_TOOLCHAIN, "LLVM ORC failed while %s: %s%s%s", doing, words,
             *more ? "; " : "", more);
    LLVMDisposeErrorMessage(words);
    return false;
}

// ---- the object's symbols

struct elf_symbols {
    const Elf64_Sym *at;
    size_t n;
    const char *names;
    size_t names_size;
};

static bool
elf_symbols(const void *object, size_t n, struct elf_symbols *out)
{
    const Elf64_Ehdr *h = object;
    if (n < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_REL ||
        h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > n ||
        (n - h->e_shoff) / sizeof(Elf64_Shdr) < h->e_shnum)
        return false;
    const Elf64_Shdr *section = (const void *)((const char *)object + h->e_shoff);
    for (uint32_t i = 0; i < h->e_shnum; i++) {
        if (section[i].sh_type != SHT_SYMTAB || section[i].sh_link >= h->e_shnum)
            continue;
        const Elf64_Shdr *s = &section[i], *names = &section[s->sh_link];
        if (s->sh_offset > n || s->sh_size > n - s->sh_offset || names->sh_offset > n ||
            names->sh_size > n - names->sh_offset || names->sh_size == 0)
            return false;
        *out = (struct elf_symbols){(const void *)((const char *)object + s->sh_offset),
                                    s->sh_size / sizeof(Elf64_Sym),
                                    (const char *)object + names->sh_offset, names->sh_size};
        return out->names[out->names_size - 1] == '\0';
    }
    return false;
}

static bool
is_provided(const char *name)
{
    for (uint32_t i = 0; i < jit_symbol_count; i++)
        if (strcmp(name, jit_symbols[i].name) == 0)
            return true;
    return strcmp(name, "_GLOBAL_OFFSET_TABLE_") == 0;
}

// Finds which entry points the object defines and which symbols it wants in vain.
static bool
scan(const void *object, size_t n, bool *has_finish, struct diag *d)
{
    struct elf_symbols s;
    if (!elf_symbols(object, n, &s))
        return diag_set(d, DIAG_TOOLCHAIN, "the kernel's object file (%zu bytes) is not valid ELF",
                        n);
    struct str missing = {0};
    bool has_kernel = false;
    for (size_t i = 1; i < s.n; i++) {
        if (s.at[i].st_name >= s.names_size)
            continue;
        const char *name = s.names + s.at[i].st_name;
        bool wanted = s.at[i].st_shndx == SHN_UNDEF;
        bool defined = !wanted && ELF64_ST_BIND(s.at[i].st_info) == STB_GLOBAL;
        has_kernel |= defined && strcmp(name, "kernel") == 0;
        *has_finish |= defined && strcmp(name, "kernel_finish") == 0;
        if (wanted && *name && !is_provided(name))
            str_printf(&missing, "%s%s", missing.n ? ", " : "", name);
    }
    bool ok = true;
    if (missing.n)
        ok = diag_set(d, DIAG_TOOLCHAIN,
                      "generated code calls what the runtime does not provide: %s",
                      str_text(&missing));
    else if (!has_kernel)
        ok = diag_set(d, DIAG_TOOLCHAIN, "the kernel's object file does not define 'kernel'");
    str_free(&missing);
    return ok;
}

// ---- dylibs

static bool
define_symbols(struct jit *j, LLVMOrcJITDylibRef dylib, struct diag *d)
{
    LLVMOrcCSymbolMapPair pair[64];
    CHECK(jit_symbol_count <= 64, "%u symbols", jit_symbol_count);
    for (uint32_t i = 0; i < jit_symbol_count; i++) {
        pair[i].Name = LLVMOrcExecutionSessionIntern(j->session, jit_symbols[i].name);
        pair[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)jit_symbols[i].address;
        pair[i].Sym.Flags.GenericFlags =
            LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
        pair[i].Sym.Flags.TargetFlags = 0;
    }
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pair, jit_symbol_count);
    LLVMErrorRef error = LLVMOrcJITDylibDefine(dylib, unit);
    if (!error)
        return true;
    LLVMOrcDisposeMaterializationUnit(unit);
    return refused(d, "defining host functions", error, "");
}

static struct jit_dylib *
take_dylib(struct jit *j, struct diag *d)
{
    pthread_mutex_lock(&j->mutex);
    struct jit_dylib *l = j->unused;
    if (l)
        j->unused = l->next;
    uint32_t number = l ? 0 : j->dylibs++;
    pthread_mutex_unlock(&j->mutex);
    if (l)
        return l;
    char name[32];
    snprintf(name, sizeof name, "kernel%u", number);
    l = xcalloc(1, sizeof *l);
    l->dylib = LLVMOrcExecutionSessionCreateBareJITDylib(j->session, name);
    if (!define_symbols(j, l->dylib, d)) {
        xfree(l);
        return NULL;
    }
    pthread_mutex_lock(&j->mutex);
    l->older = j->newest;
    j->newest = l;
    pthread_mutex_unlock(&j->mutex);
    return l;
}

static void
empty_dylib(struct jit *j, struct jit_dylib *l)
{
    if (l->tracker) {
        LLVMErrorRef error = LLVMOrcResourceTrackerRemove(l->tracker);
        CHECK(!error, "ORC could not unload a kernel: %s", LLVMGetErrorMessage(error));
        LLVMOrcReleaseResourceTracker(l->tracker);
        l->tracker = NULL;
    }
    pthread_mutex_lock(&j->mutex);
    l->next = j->unused;
    j->unused = l;
    pthread_mutex_unlock(&j->mutex);
}

// ---- looking up entry points
//
// A look-up links what it finds unlinked, but not always on the thread that asked: of several that
// link at once, each takes whatever waits to be linked. So the answer may come after ORC's function
// has returned, from another thread.

struct found {
    struct jit *jit;
    bool done;
    LLVMErrorRef error;
    LLVMOrcSymbolStringPoolEntryRef kernel_name;
    kernel_fn *kernel, *finish;
};

static void
on_found(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pair, size_t n, void *user)
{
    struct found *f = user;
    struct jit *j = f->jit;
    pthread_mutex_lock(&j->mutex);
    f->error = error;
    for (size_t i = 0; !error && i < n; i++) {
        kernel_fn *fn = (kernel_fn *)(uintptr_t)pair[i].Sym.Address;
        *(pair[i].Name == f->kernel_name ? &f->kernel : &f->finish) = fn;
    }
    f->done = true;
    pthread_cond_broadcast(&j->linked);
    pthread_mutex_unlock(&j->mutex);
}

static bool
look_up(struct jit *j, struct jit_dylib *l, bool has_finish, struct jit_code *out, struct diag *d)
{
    LLVMOrcCJITDylibSearchOrderElement order = {l->dylib,
                                                LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
    LLVMOrcCLookupSetElement want[2] = {
        {LLVMOrcExecutionSessionIntern(j->session, "kernel"),
         LLVMOrcSymbolLookupFlagsRequiredSymbol},
    };
    if (has_finish)
        want[1] = (LLVMOrcCLookupSetElement){
            LLVMOrcExecutionSessionIntern(j->session, "kernel_finish"),
            LLVMOrcSymbolLookupFlagsRequiredSymbol};
    struct found f = {.jit = j, .kernel_name = want[0].Name};
    LLVMOrcExecutionSessionLookup(j->session, LLVMOrcLookupKindStatic, &order, 1, want,
                                  has_finish ? 2 : 1, on_found, &f);
    pthread_mutex_lock(&j->mutex);
    while (!f.done)
        pthread_cond_wait(&j->linked, &j->mutex);
    if (f.error) {
        refused(d, "linking a kernel", f.error, j->reported);
        j->reported[0] = '\0';
    }
    pthread_mutex_unlock(&j->mutex);
    if (f.error)
        return false;
    *out = (struct jit_code){f.kernel, f.finish, l};
    return true;
}

// ---- the interface

static void
on_report(void *user, LLVMErrorRef error)
{
    struct jit *j = user;
    char *words = LLVMGetErrorMessage(error);
    pthread_mutex_lock(&j->mutex);
    snprintf(j->reported, sizeof j->reported, "%s", words);
    pthread_mutex_unlock(&j->mutex);
    LLVMDisposeErrorMessage(words);
}

struct jit *
jit_new(struct diag *d)
{
    cpu_codegen_start();
    LLVMOrcLLJITRef lljit;
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&lljit, NULL);
    if (error) {
        refused(d, "starting", error, "");
        return NULL;
    }
    struct jit *j = xcalloc(1, sizeof *j);
    j->lljit = lljit;
    j->session = LLVMOrcLLJITGetExecutionSession(lljit);
    pthread_mutex_init(&j->mutex, NULL);
    pthread_cond_init(&j->linked, NULL);
    LLVMOrcExecutionSessionSetErrorReporter(j->session, on_report, j);
    return j;
}

void
jit_free(struct jit *j)
{
    if (!j)
        return;
    for (struct jit_dylib *l = j->newest; l; l = l->older)
        if (l->tracker)
            LLVMOrcReleaseResourceTracker(l->tracker);
    LLVMErrorRef error = LLVMOrcDisposeLLJIT(j->lljit);
    if (error)
        LLVMConsumeError(error);
    while (j->newest) {
        struct jit_dylib *l = j->newest;
        j->newest = l->older;
        xfree(l);
    }
    pthread_cond_destroy(&j->linked);
    pthread_mutex_destroy(&j->mutex);
    xfree(j);
}

bool
jit_load(struct jit *j, const void *object, size_t n, struct jit_code *out, struct diag *d)
{
    bool has_finish = false;
    if (!scan(object, n, &has_finish, d))
        return false;
    struct jit_dylib *l = take_dylib(j, d);
    if (!l)
        return false;
    l->tracker = LLVMOrcJITDylibCreateResourceTracker(l->dylib);
    LLVMMemoryBufferRef bytes = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, n, "kernel");
    LLVMErrorRef error = LLVMOrcLLJITAddObjectFileWithRT(j->lljit, l->tracker, bytes);
    if (error)
        refused(d, "adding a kernel", error, "");
    else if (look_up(j, l, has_finish, out, d))
        return true;
    empty_dylib(j, l);
    return false;
}

void
jit_unload(struct jit *j, struct jit_code *c)
{
    empty_dylib(j, c->dylib);
    *c = (struct jit_code){0};
}

#else // built with llvm=off

static bool
no_loader(struct diag *d)
{
    return diag_set(d, DIAG_UNSUPPORTED,
                    "this build cannot load compiled kernels (meson option llvm=off)");
}

struct jit *
jit_new(struct diag *d)
{
    no_loader(d);
    return NULL;
}

void
jit_free(struct jit *j)
{
    (void)j;
}

bool
jit_load(struct jit *j, const void *object, size_t n, struct jit_code *out, struct diag *d)
{
    (void)j, (void)object, (void)n, (void)out;
    return no_loader(d);
}

void
jit_unload(struct jit *j, struct jit_code *c)
{
    (void)j, (void)c;
}

#endif
