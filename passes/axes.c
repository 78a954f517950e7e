// axes.c: gives a built kernel the axes that schedules expect.
//
// P first, then R; axes of extent 1 dropped; adjacent axes merged where every access and index
// function allows it; the P axes ordered so that the last runs along memory. The order of R axes
// is the order of the reduction, and so stays; so do the P axes of a kernel that reduces over P,
// and those of a contraction (batch, m, n). Of an order's P axes the last, its j, stays what it is.
#include "passes/fuse.h"

#include <string.h>

// The strides of the x-th of all accesses and index functions.
static int64_t *
stride_of(struct kernel *k, uint32_t x)
{
    return x < k->access.n ? k->access.at[x].stride : k->affine.at[x - k->access.n].stride;
}

// Applies a permutation: new axis i is old axis order[i].
static void
permute(struct kernel *k, const uint8_t *order, uint32_t n)
{
    struct axis axis[MAX_AXES] = {{0}};
    for (uint32_t i = 0; i < n; i++)
        axis[i] = k->axis[order[i]];
    memcpy(k->axis, axis, sizeof axis);
    for (uint32_t x = 0; x < k->access.n + k->affine.n; x++) {
        int64_t *s = stride_of(k, x), t[MAX_AXES] = {0};
        for (uint32_t i = 0; i < n; i++)
            t[i] = s[order[i]];
        memcpy(s, t, sizeof t);
    }
    k->naxis = (uint8_t)n;
    uint8_t scattered = 0;
    while (k->cls == CLASS_SCATTER && order[scattered] != k->scatter.axis)
        scattered++;
    k->scatter.axis = scattered;
}

static void
p_first(struct kernel *k)
{
    uint8_t order[MAX_AXES];
    uint32_t n = 0, j = MAX_AXES;
    bool keeps_unit = k->cls == CLASS_CONTRACT || k->cls == CLASS_SCATTER;
    k->nred = 0;
    for (uint32_t a = 0; a < k->naxis && k->cls == CLASS_SORT; a++)
        j = k->axis[a].kind == AXIS_P ? a : j;
    for (uint32_t kind = AXIS_P; kind <= AXIS_R; kind++)
        for (uint32_t a = 0; a < k->naxis; a++)
            if (k->axis[a].kind == kind &&
                (k->axis[a].extent != 1 || keeps_unit || a == j ||
                 (k->cls == CLASS_SORT && kind == AXIS_R))) {
                order[n++] = (uint8_t)a;
                k->nred = (uint8_t)(k->nred + (kind == AXIS_R));
            }
    permute(k, order, n);
}

// How strongly memory runs along an axis: bytes of accesses with unit stride, stores twice.
static int64_t
along(const struct kernel *k, uint32_t axis)
{
    int64_t w = 0;
    for (uint32_t x = 0; x < k->access.n; x++)
        if (k->access.at[x].stride[axis] == 1)
            w += dtype_size(k->access.at[x].dtype);
    for (uint32_t i = 0; i < k->store.n; i++)
        if (k->access.at[k->store.at[i].access].stride[axis] == 1)
            w += dtype_size(k->access.at[k->store.at[i].access].dtype);
    return w;
}

static int64_t
largest_stride(const struct kernel *k, uint32_t axis)
{
    int64_t w = 0;
    for (uint32_t x = 0; x < k->access.n; x++) {
        int64_t s = k->access.at[x].stride[axis];
        s = s < 0 ? -s : s;
        w = s > w ? s : w;
    }
    return w;
}

static void
order_p(struct kernel *k, uint32_t np)
{
    if (np < 2)
        return;
    uint32_t last = np - 1;
    for (uint32_t a = np - 1; a-- > 0;)
        if (along(k, a) > along(k, last))
            last = a;
    uint8_t order[MAX_AXES];
    uint32_t n = 0;
    for (uint32_t a = 0; a < np; a++)
        if (a != last)
            order[n++] = (uint8_t)a;
    for (uint32_t i = 1; i < n; i++) // insertion sort, stable: outer axes by falling stride
        for (uint32_t j = i; j; j--) {
            uint8_t before = order[j - 1], t = order[j];
            if (largest_stride(k, before) >= largest_stride(k, t))
                break;
            order[j - 1] = t;
            order[j] = before;
        }
    order[n++] = (uint8_t)last;
    for (uint32_t a = np; a < k->naxis; a++)
        order[n++] = (uint8_t)a;
    permute(k, order, n);
}

static bool
can_merge(struct kernel *k, uint32_t a)
{
    bool scattered = k->cls == CLASS_SCATTER &&
                     (a == k->scatter.axis || a + 1 == k->scatter.axis);
    if (k->axis[a].kind != k->axis[a + 1].kind || scattered)
        return false;
    for (uint32_t x = 0; x < k->access.n + k->affine.n; x++) {
        const int64_t *s = stride_of(k, x);
        if (s[a] != s[a + 1] * k->axis[a + 1].extent)
            return false;
    }
    return true;
}

static void
merge_adjacent(struct kernel *k, uint32_t naxis)
{
    for (uint32_t a = naxis; a-- > 1;) {
        if (!can_merge(k, a - 1))
            continue;
        uint8_t order[MAX_AXES];
        uint32_t n = 0;
        int64_t extent = k->axis[a - 1].extent * k->axis[a].extent;
        for (uint32_t i = 0; i < k->naxis; i++)
            if (i != a - 1)
                order[n++] = (uint8_t)i;
        if (k->axis[a].kind == AXIS_R)
            k->nred--;
        permute(k, order, n);
        k->axis[a - 1].extent = extent;
    }
}

// A scatter's axes: first the other axes of P, then the one that is scattered along, then the one
// along which the result runs in memory, if that is another; then R, one axis at least.
static void
scatter_axes(struct kernel *k)
{
    uint8_t order[MAX_AXES], n = 0;
    p_first(k);
    for (uint32_t a = 0; a < k->naxis; a++)
        if (k->axis[a].extent != 1 || a == k->scatter.axis || a + 1 == k->naxis)
            order[n++] = (uint8_t)a;
        else if (k->axis[a].kind == AXIS_R)
            k->nred--;
    permute(k, order, n);
    merge_adjacent(k, k->naxis);
    const struct access *out = &k->access.at[k->store.at[0].access];
    uint32_t np = k->naxis - k->nred, inner = np, m = 0;
    for (uint32_t a = 0; a < np; a++)
        if (a != k->scatter.axis && out->stride[a] == 1 && k->axis[a].extent > 1)
            inner = a;
    for (uint32_t a = 0; a < np; a++)
        if (a != k->scatter.axis && a != inner)
            order[m++] = (uint8_t)a;
    order[m++] = k->scatter.axis;
    if (inner < np)
        order[m++] = (uint8_t)inner;
    for (uint32_t a = np; a < k->naxis; a++)
        order[m++] = (uint8_t)a;
    permute(k, order, m);
}

void
kernel_normalise_axes(struct kernel *k)
{
    if (k->cls == CLASS_SCATTER) {
        scatter_axes(k);
        return;
    }
    bool over_p = false;
    for (uint32_t i = 0; i < k->acc.n; i++)
        over_p |= k->acc.at[i].scope == OVER_P;
    p_first(k);
    if (k->cls == CLASS_CONTRACT)
        return;
    uint32_t fixed = k->cls == CLASS_SORT ? 2 : 0; // j and R
    if (!over_p)
        order_p(k, k->naxis - (fixed ? fixed : k->nred));
    merge_adjacent(k, k->naxis - fixed);
}
