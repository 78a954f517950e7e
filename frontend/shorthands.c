// shorthands.c: functions of the public interface that are made of others. An axis that does not
// exist is refused here, under the name that was called; other mistakes by the op.
#include "frontend/shorthands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

fc_tensor
refused(fc_context *ctx, const char *file, int line, const char *fmt, ...)
{
    char words[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    context_lock(ctx);
    context_fail(ctx, file, line, FC_INVALID, "%s", words);
    context_unlock(ctx);
    return invalid_handle(ctx);
}

struct words
type_words(fc_tensor x)
{
    struct words w;
    size_t at = (size_t)snprintf(w.text, sizeof w.text, "%s[", fc_dtype_name(fc_dtype_of(x)));
    for (int i = 0; i < fc_rank(x); i++)
        at += (size_t)snprintf(w.text + at, sizeof w.text - at, "%s%" PRId64, i ? "," : "",
                               fc_dim_value(fc_shape(x, i)));
    snprintf(w.text + at, sizeof w.text - at, "]");
    return w;
}

bool
has_axis(const char *file, int line, const char *name, fc_tensor x, int axis, int n)
{
    fc_context *ctx = context_of(x);
    int rank = fc_rank(x), at = from_front(axis, n);
    if (rank < 0 || (at >= 0 && at < n))
        return true;
    if (n)
        refused(ctx, file, line,
                "%s: axis %d is out of range for %s; use %d to %d", name, axis, type_words(x).text,
                -n, n - 1);
    else
        refused(ctx, file, line, "%s: axis %d of a scalar; a scalar has no axes", name, axis);
    return false;
}

fc_tensor
fc_transpose_at(const char *file, int line, fc_tensor x, int a, int b)
{
    int rank = fc_rank(x), i = from_front(a, rank), j = from_front(b, rank);
    if (!has_axis(file, line, "transpose", x, a, rank) ||
        !has_axis(file, line, "transpose", x, b, rank))
        return (fc_tensor){0};
    int64_t axes[MAX_RANK];
    for (int at = 0; at < rank; at++)
        axes[at] = at;
    if (rank > 0) {
        axes[i] = j;
        axes[j] = i;
    }
    return fc_permute_at(file, line, x, axes, rank < 0 ? 0 : rank);
}

fc_tensor
fc_unsqueeze_at(const char *file, int line, fc_tensor x, int axis)
{
    int rank = fc_rank(x), at = from_front(axis, rank + 1);
    if (!has_axis(file, line, "unsqueeze", x, axis, rank + 1))
        return (fc_tensor){0};
    fc_dim shape[MAX_RANK + 1];
    int n = 0;
    for (int i = 0; i <= rank; i++) {
        if (i == at)
            shape[n++] = fc_n(1);
        if (i < rank && n <= MAX_RANK)
            shape[n++] = fc_shape(x, i);
    }
    return fc_reshape_at(file, line, x, shape, n);
}

fc_tensor
fc_squeeze_at(const char *file, int line, fc_tensor x, int axis)
{
    int rank = fc_rank(x), at = from_front(axis, rank), n = 0;
    if (!has_axis(file, line, "squeeze", x, axis, rank))
        return (fc_tensor){0};
    int64_t size = fc_dim_value(fc_shape(x, axis));
    if (rank > 0 && size != 1)
        return refused(context_of(x), file, line,
                       "squeeze: axis %d of %s has size %lld; only an axis of size 1 can go", axis,
                       type_words(x).text, (long long)size);
    fc_dim shape[MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (i != at)
            shape[n++] = fc_shape(x, i);
    return fc_reshape_at(file, line, x, shape, n);
}

fc_tensor
fc_slice_axis_at(const char *file, int line, fc_tensor x, int axis, int64_t start, int64_t stop,
                 int64_t step)
{
    int rank = fc_rank(x), at = from_front(axis, rank);
    if (!has_axis(file, line, "slice_axis", x, axis, rank))
        return (fc_tensor){0};
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
    int n = rank < 0 ? 0 : rank;
    return fc_slice_at(file, line, x, first, n, last, n, by, n);
}
