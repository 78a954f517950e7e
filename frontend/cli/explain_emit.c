// explain_emit.c: the texts behind a plan: the graph, the kernels, their LLVM IR and assembly.
#include "frontend/cli/explain.h"

#include "codegen/codegen.h"
#include "ir/text.h"

#include <string.h>

static bool
emit_ir(const struct plan *p, const struct target *t, struct str *out, struct diag *d)
{
    (void)t;
    (void)d;
    graph_print(p->canonical, out);
    return true;
}

static bool
emit_kernels(const struct plan *p, const struct target *t, struct str *out, struct diag *d)
{
    (void)t;
    (void)d;
    for (uint32_t i = 0; i < p->launch.n; i++)
        kernel_print(&p->launch.at[i].kernel, out);
    return true;
}

static bool
emit_code(const struct plan *p, const struct target *t, struct str *out, struct diag *d,
          bool assembly)
{
    bool ok = t->kind == DEVICE_CPU ||
              diag_set(d, DIAG_INVALID, "--emit %s is for kernels of the CPU; those of a GPU are "
                                        "shown by --emit cuda", assembly ? "asm" : "llvm");
    for (uint32_t i = 0; i < p->launch.n && ok; i++) {
        const struct launch *l = &p->launch.at[i];
        struct str text = {0};
        num_vec num = {0};
        str_printf(out, "%s%s %s\n", i ? "\n" : "", assembly ? "#" : ";", l->kernel.name);
        ok = cpu_emit(&l->kernel, &l->sched, t, &text, &num, d);
        if (ok && assembly)
            ok = cpu_assembly(str_text(&text), text.n, t, out, d);
        else if (ok)
            str_addn(out, str_text(&text), text.n);
        str_free(&text);
        vec_free(&num);
    }
    return ok;
}

static bool
emit_llvm(const struct plan *p, const struct target *t, struct str *out, struct diag *d)
{
    return emit_code(p, t, out, d, false);
}

static bool
emit_asm(const struct plan *p, const struct target *t, struct str *out, struct diag *d)
{
    return emit_code(p, t, out, d, true);
}

static bool
emit_cuda(const struct plan *p, const struct target *t, struct str *out, struct diag *d)
{
    bool ok = t->kind == DEVICE_CUDA ||
              diag_set(d, DIAG_INVALID, "--emit cuda is for kernels of a GPU: add --device cuda:0, "
                                        "or an architecture, --device sm_90");
    for (uint32_t i = 0; i < p->launch.n && ok; i++) {
        num_vec num = {0};
        str_printf(out, "%s// %s\n", i ? "\n" : "", p->launch.at[i].kernel.name);
        ok = cuda_emit(&p->launch.at[i].kernel, &p->launch.at[i].sched, t, out, &num, d);
        vec_free(&num);
    }
    return ok;
}

static bool
emit_dot(const struct plan *p, const struct target *t, struct str *out, struct diag *d)
{
    (void)t;
    (void)d;
    explain_dot(p, out);
    return true;
}

static const struct {
    const char *name;
    bool (*emit)(const struct plan *, const struct target *, struct str *, struct diag *);
} form[] = {{"ir", emit_ir},
            {"kernels", emit_kernels},
            {"llvm", emit_llvm},
            {"asm", emit_asm},
            {"cuda", emit_cuda},
            {"dot", emit_dot}};
enum { FORMS = sizeof form / sizeof *form };

bool
explain_can_emit(const char *what)
{
    for (int i = 0; i < FORMS; i++)
        if (!strcmp(form[i].name, what))
            return true;
    return false;
}

bool
explain_emit(const struct plan *p, const struct target *t, const char *what, struct str *out,
             struct diag *d)
{
    for (int i = 0; i < FORMS; i++)
        if (!strcmp(form[i].name, what))
            return form[i].emit(p, t, out, d);
    return diag_set(d, DIAG_INVALID, "%s cannot be emitted: ir, kernels, llvm, asm or dot", what);
}
