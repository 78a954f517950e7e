// shorthands.c: functions of the public interface that are made of others. A mistake in an argument
// is passed on to the op, whose error names it.
#include "frontend/context.h"

static int
from_front(int axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

fc_tensor
fc_transpose_at(const char *file, int line, fc_tensor x, int a, int b)
{
    int rank = fc_rank(x);
    int64_t axes[MAX_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    int i = from_front(a, rank), j = from_front(b, rank);
    if (rank > 0 && (i < 0 || i >= rank || j < 0 || j >= rank)) {
        axes[0] = i < 0 || i >= rank ? a : b; // refused by permute, with words
    } else if (rank > 0) {
        axes[i] = j;
        axes[j] = i;
    }
    return fc_permute_at(file, line, x, axes, rank < 0 ? 0 : rank);
}

fc_tensor
fc_unsqueeze_at(const char *file, int line, fc_tensor x, int axis)
{
    int rank = fc_rank(x), at = axis < 0 ? axis + rank + 1 : axis;
    fc_dim shape[MAX_RANK + 1];
    int n = 0;
    for (int i = 0; i <= rank; i++) {
        if (i == at)
            shape[n++] = fc_n(1);
        if (i < rank && n <= MAX_RANK)
            shape[n++] = fc_shape(x, i);
    }
    if (at < 0 || at > rank)
        n = MAX_RANK + 1; // refused by reshape
    return fc_reshape_at(file, line, x, shape, n);
}

fc_tensor
fc_squeeze_at(const char *file, int line, fc_tensor x, int axis)
{
    int rank = fc_rank(x), at = from_front(axis, rank), n = 0;
    fc_dim shape[MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (i != at)
            shape[n++] = fc_shape(x, i);
    return fc_reshape_at(file, line, x, shape, n); // counts differ unless the axis had size 1
}

fc_tensor
fc_slice_axis_at(const char *file, int line, fc_tensor x, int axis, int64_t start, int64_t stop,
                 int64_t step)
{
    int rank = fc_rank(x), at = from_front(axis, rank);
    int64_t first[MAX_RANK], last[MAX_RANK], by[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int64_t n = fc_dim_value(fc_shape(x, i));
        first[i] = i == at ? start : 0;
        by[i] = i == at ? step : 1;
        last[i] = i == at ? stop : n;
        if (i == at && step < 0) // the op says "past the front" as -1
            last[i] = stop == FC_END ? -1 : stop >= 0 ? stop : stop + n < -1 ? -1 : stop + n;
        else if (i == at && stop == FC_END)
            last[i] = n;
    }
    if (rank >= 0 && (at < 0 || at >= rank))
        rank = MAX_RANK + 1; // refused by slice
    int n = rank < 0 ? 0 : rank;
    return fc_slice_at(file, line, x, first, n, last, n, by, n);
}
