// schedule.c: asks the classes in turn. Pointwise, contraction, scan, sort and scatter follow from
// the body. A reduction is a column kernel where more bytes run along the last P axis than along R,
// or where rows are short, else a row kernel, split where there are fewer long rows than threads;
// what one of row and column refuses is offered to the other.
#include "passes/schedule.h"

#include "passes/plan.h"

#include <string.h>

int64_t
schedule_own_cache(const struct target *t)
{
    return t->l2 * (t->units > 1 ? t->units : 1);
}

// A virtual machine may show a whole processor's cache beside a few of its cores. No processor has
// much more than 16 MiB for each.
int64_t
schedule_shared_cache(const struct target *t)
{
    const int64_t most = (int64_t)16 << 20;
    int64_t ours = most * (t->units > 1 ? t->units : 1);
    return t->llc < ours ? t->llc : ours;
}

bool
schedule_hardware_asks_ahead(const struct target *t)
{
    return !strncmp(t->arch, "znver", 5) && t->vec_bytes < 64;
}

int64_t
schedule_streaming_bytes(const struct target *t)
{
    int64_t shared = schedule_shared_cache(t);
    return schedule_hardware_asks_ahead(t) ? shared / 4 : shared;
}

// Bytes per element of accesses that run along an axis with unit stride and that vary along `other`
// too: what is the same for all of `other` is a broadcast whichever of the two vectors run along.
static int64_t
bytes_along(const struct kernel *k, uint32_t axis, uint32_t other)
{
    int64_t w = 0;
    for (uint32_t x = 0; x < k->access.n; x++) {
        const struct access *a = &k->access.at[x];
        bool elem = false;
        for (uint32_t r = k->naxis - k->nred; r < k->naxis; r++)
            elem |= a->stride[r] != 0;
        if (elem && a->stride[axis] == 1 && a->stride[other])
            w += dtype_size(a->dtype);
    }
    return w;
}

static bool
has_elem_after_reduction(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->store.at[i].stage > 0 && k->store.at[i].level == LEVEL_ELEM)
            return true;
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].stage > 0 && k->acc.at[i].scope == OVER_R)
            return true;
    return false;
}

// Rows that do not fill a vector are taken 16 at once, a row a lane, as if they were columns:
// collecting elements that lie apart costs less than joining lanes row by row. Not those of less
// than four bytes, which are collected one by one, nor a few rows.
static bool
short_rows(const struct kernel *k)
{
    bool wide = true;
    for (uint32_t x = 0; x < k->access.n; x++)
        wide &= !k->access.at[x].stride[k->naxis - 1] || dtype_size(k->access.at[x].dtype) >= 4;
    return wide && k->nred == 1 && kernel_points(k, AXIS_R) < RED_LANES &&
           kernel_points(k, AXIS_P) >= 4 * RED_LANES;
}

bool
schedule_kernel(struct kernel *k, const struct target *t, struct schedule *s, uint8_t *why)
{
    *s = (struct schedule){0};
    *why = REASON_no_class;
    bool ok;
    uint32_t np = k->naxis - k->nred;
    uint32_t p = np - 1, r = k->naxis - 1u; // the last of each
    if (t->kind == DEVICE_CUDA)
        return schedule_cuda(k, t, np && k->nred && bytes_along(k, p, r) > bytes_along(k, r, p), s,
                             why);
    if (k->cls == CLASS_CONTRACT) {
        ok = schedule_contract(k, t, s, why);
        s->cls = CLASS_CONTRACT;
        return ok;
    }
    if (k->cls == CLASS_SORT)
        return schedule_sort(k, t, s, why);
    if (k->cls == CLASS_SCATTER)
        return schedule_scatter(k, t, s, why);
    bool accumulates = k->acc.n != 0;
    if (!k->nred && !accumulates) {
        k->cls = s->cls = CLASS_POINTWISE;
        return schedule_pointwise(k, t, s, why);
    }
    for (uint32_t i = 0; i < k->acc.n; i++)
        if (k->acc.at[i].scope == ALONG_R) {
            k->cls = s->cls = CLASS_SCAN;
            return schedule_scan(k, t, s, why);
        }
    bool column = np && k->nred && (bytes_along(k, p, r) > bytes_along(k, r, p) || short_rows(k));
    int64_t rows = kernel_points(k, AXIS_P), length = kernel_points(k, AXIS_R);
    enum { LONG_ROW = 1 << 16 };
    if (!column && rows < 2 * (int64_t)t->units && length >= LONG_ROW) {
        k->cls = s->cls = CLASS_SPLIT;
        if (schedule_split(k, t, s, why))
            return true;
        if (has_elem_after_reduction(k) && t->units > 1) {
            *why = REASON_needs_grid_barrier; // one thread would do what all could do apart
            return false;
        }
        *s = (struct schedule){0};
    }
    k->cls = s->cls = column ? CLASS_COLUMN : CLASS_ROW;
    ok = column ? schedule_column(k, t, s, why) : schedule_row(k, t, s, why);
    if (ok)
        return true;
    *s = (struct schedule){0};
    uint8_t other;
    k->cls = s->cls = column ? CLASS_ROW : CLASS_COLUMN;
    return column ? schedule_row(k, t, s, &other) : np && schedule_column(k, t, s, &other);
}
