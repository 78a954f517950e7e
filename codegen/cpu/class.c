// class.c: cpu_emit: a kernel's class decides which file prints it.
#include "codegen/cpu/emit.h"

static bool (*const emit_class[CLASS_COUNT])(struct emitter *e) = {
    [CLASS_POINTWISE] = cpu_pointwise, [CLASS_ROW] = cpu_row,
    [CLASS_COLUMN] = cpu_column,       [CLASS_SPLIT] = cpu_split,
    [CLASS_CONTRACT] = cpu_contract,   [CLASS_SCAN] = cpu_scan,
    [CLASS_SORT] = cpu_sort,           [CLASS_SCATTER] = cpu_scatter,
};

bool
cpu_emit(const struct kernel *k, const struct schedule *s, const struct target *t,
         struct str *text, num_vec *num, struct diag *d)
{
    if (s->cls >= CLASS_COUNT || !emit_class[s->cls])
        return diag_set(d, DIAG_UNSUPPORTED, "no CPU code for kernels of class %s",
                        s->cls < CLASS_COUNT ? kernel_class_name[s->cls] : "unknown");
    struct emitter e;
    bool ok = emitter_begin(&e, k, s, t, text, num, d) && emit_class[s->cls](&e);
    emitter_end(&e);
    return ok;
}
