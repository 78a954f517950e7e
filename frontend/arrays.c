// arrays.c: arrangements that NumPy has names for, made of views, of positions (iota) and of
// choices, so that kernels see through them: none has code of its own. A mistake is refused here,
// under the name that was called and before anything is made. What is made on the way is released:
// the caller's scope gets the result alone.
#include "frontend/call.h"
#include "frontend/shorthands.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static fc_tensor
made_of_two(fc_tensor a, fc_tensor b, fc_tensor made)
{
    return made_of(a, made_of(b, made));
}

// ---- mistakes

// Whether x is a tensor; its context, if there is one, hears of it if not.
static bool
is_tensor(const char *file, int line, const char *name, fc_tensor x)
{
    fc_context *ctx = context_of(x);
    if (!ctx || fc_valid(x))
        return ctx;
    context_lock(ctx);
    context_fail(ctx, file, line, FC_HANDLE,
                 "%s: the tensor is null, was released, or belongs to another context", name);
    context_unlock(ctx);
    return false;
}

// Bytes that no tensor has, whatever is asked of the ops; an axis of 0 does not make room.
static bool
too_large(fc_dtype dtype, const fc_dim *shape, int rank)
{
    double bytes = (double)fc_dtype_size(dtype);
    for (int i = 0; i < rank; i++) {
        int64_t n = fc_dim_value(shape[i]); // -1: past all numbers
        bytes *= n < 0 ? 0x1p63 : n ? (double)n : 1;
    }
    return bytes >= 0x1p48;
}

// ---- copies of a tensor side by side

// x, of that shape, with copies[i] of all that begins at axis i, or ends at axis i - 1; the shape
// then has the result's. A new axis takes the copies; as no tensor has more than MAX_RANK axes,
// those that lie between are one, and no more than a few new ones are made at once.
static fc_tensor
copied(const char *file, int line, fc_tensor x, fc_dim *shape, int rank, int64_t *copies, bool ends)
{
    enum { AT_ONCE = 3 };
    static_assert(2 * AT_ONCE + 1 <= MAX_RANK, "the new axes and what is about them");
    fc_dim apart[MAX_RANK], wide[MAX_RANK];
    int n = 0, cuts = 0, cut;
    bool open = false, more = false;
    for (int i = 0; i <= rank; i++) {
        cut = copies[i] != 1 && cuts < AT_ONCE;
        more |= copies[i] != 1 && !cut;
        cuts += cut;
        if (cut) {
            apart[n] = fc_n(1);
            wide[n++] = fc_n(copies[i]);
            open = false;
        }
        if (i < rank) {
            n += !open;
            wide[n - 1] = apart[n - 1] = open ? fc_dim_mul(apart[n - 1], shape[i]) : shape[i];
            open = true;
        }
        if (cut) {
            shape[i - ends] = fc_dim_mul(shape[i - ends], fc_n(copies[i]));
            copies[i] = 1;
        }
    }
    fc_tensor parts = fc_reshape_at(file, line, x, apart, n);
    fc_tensor all = made_of(parts, fc_broadcast_at(file, line, parts, wide, n));
    fc_tensor made = made_of(all, fc_reshape_at(file, line, all, shape, rank));
    return more ? made_of(made, copied(file, line, made, shape, rank, copies, ends)) : made;
}

fc_tensor
fc_tile_at(const char *file, int line, fc_tensor x, const int64_t *counts, int n)
{
    fc_context *ctx = context_of(x);
    if (!is_tensor(file, line, "tile", x))
        return (fc_tensor){0};
    if (n < 0 || n > MAX_RANK || (n && !counts))
        return refused(ctx, file, line, "tile: a list of 0 to %d counts is needed, got %s%d",
                       MAX_RANK, counts ? "" : "NULL and ", n);
    int own = fc_rank(x), rank = own > n ? own : n;
    fc_dim shape[MAX_RANK], large[MAX_RANK];
    int64_t copies[MAX_RANK + 1];
    for (int i = 0; i < rank; i++) {
        shape[i] = i < rank - own ? fc_n(1) : fc_shape(x, i - (rank - own));
        copies[i] = i < rank - n ? 1 : counts[i - (rank - n)];
        if (copies[i] < 0)
            return refused(ctx, file, line,
                           "tile: %s %lld times along an axis; a count must not be negative",
                           type_words(x).text, (long long)copies[i]);
        large[i] = fc_dim_mul(shape[i], fc_n(copies[i]));
    }
    copies[rank] = 1;
    if (too_large(fc_dtype_of(x), large, rank))
        return refused(ctx, file, line, "tile: so many copies of %s are too large",
                       type_words(x).text);
    return copied(file, line, x, shape, rank, copies, false);
}

fc_tensor
fc_repeat_at(const char *file, int line, fc_tensor x, int64_t n, int axis)
{
    if (!is_tensor(file, line, "repeat", x) || !has_axis(file, line, "repeat", x, axis, fc_rank(x)))
        return (fc_tensor){0};
    fc_context *ctx = context_of(x);
    int rank = fc_rank(x), at = from_front(axis, rank);
    if (n < 0)
        return refused(ctx, file, line,
                       "repeat: each element of %s %lld times; a count must not be negative",
                       type_words(x).text, (long long)n);
    fc_dim shape[MAX_RANK], large[MAX_RANK];
    int64_t copies[MAX_RANK + 1];
    for (int i = 0; i < rank; i++) {
        shape[i] = large[i] = fc_shape(x, i);
        copies[i] = 1;
    }
    copies[rank] = 1;
    copies[at + 1] = n;
    large[at] = fc_dim_mul(shape[at], fc_n(n));
    if (too_large(fc_dtype_of(x), large, rank))
        return refused(ctx, file, line, "repeat: %s, each element %lld times, is too large",
                       type_words(x).text, (long long)n);
    return copied(file, line, x, shape, rank, copies, true);
}

// ---- parts and wholes

fc_tensor
fc_flatten_at(const char *file, int line, fc_tensor x)
{
    if (!is_tensor(file, line, "flatten", x))
        return (fc_tensor){0};
    fc_dim all = fc_n(1);
    for (int i = 0; i < fc_rank(x); i++)
        all = fc_dim_mul(all, fc_shape(x, i));
    return fc_reshape_at(file, line, x, &all, 1);
}

static bool
same_shape(fc_tensor a, fc_tensor b)
{
    bool same = fc_rank(a) == fc_rank(b);
    for (int i = 0; same && i < fc_rank(a); i++)
        same = fc_dim_value(fc_shape(a, i)) == fc_dim_value(fc_shape(b, i));
    return same;
}

// Whether what stack is given can be stacked.
static bool
stackable(const char *file, int line, const fc_tensor *x, int count, int axis)
{
    if (!x || count < 1)
        return false; // whose mistake it is cannot be known
    for (int i = 0; i < count; i++) {
        if (!is_tensor(file, line, "stack", x[i]))
            return false;
        if (same_shape(x[0], x[i]))
            continue;
        refused(context_of(x[0]), file, line,
                "stack: operand %d is %s, the first %s; broadcast them to one shape", i + 1,
                type_words(x[i]).text, type_words(x[0]).text);
        return false;
    }
    if (fc_rank(x[0]) < MAX_RANK)
        return has_axis(file, line, "stack", x[0], axis, fc_rank(x[0]) + 1);
    refused(context_of(x[0]), file, line, "stack: %s has %d axes; there are no more",
            type_words(x[0]).text, MAX_RANK);
    return false;
}

fc_tensor
fc_stack_at(const char *file, int line, const fc_tensor *x, int count, int axis)
{
    if (!stackable(file, line, x, count, axis))
        return (fc_tensor){0};
    fc_tensor *part = xmalloc((size_t)count * sizeof *part);
    for (int i = 0; i < count; i++)
        part[i] = fc_unsqueeze_at(file, line, x[i], axis);
    fc_tensor made = fc_concat_at(file, line, part, count, axis);
    for (int i = 0; i < count; i++)
        made_of(part[i], made);
    xfree(part);
    return made;
}

// Whether the axis comes apart into n parts, of these sizes or equal ones.
static bool
has_parts(const char *file, int line, fc_tensor x, const int64_t *sizes, int n, int axis)
{
    fc_context *ctx = context_of(x);
    int64_t size = fc_dim_value(fc_shape(x, axis)), left = size;
    if (!sizes && size % n == 0)
        return true;
    if (!sizes) {
        refused(ctx, file, line,
                "split: axis %d of %s does not come apart into %d equal parts; give their sizes",
                axis, type_words(x).text, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (sizes[i] < 0 || sizes[i] > left) {
            refused(ctx, file, line,
                    "split: size %lld of part %d, where axis %d of %s has %lld elements left",
                    (long long)sizes[i], i, axis, type_words(x).text, (long long)left);
            return false;
        }
        left -= sizes[i];
    }
    if (left)
        refused(ctx, file, line,
                "split: the sizes come to %lld, axis %d of %s has %lld; another part is missing",
                (long long)(size - left), axis, type_words(x).text, (long long)size);
    return !left;
}

fc_status
fc_split_at(const char *file, int line, fc_tensor x, const int64_t *sizes, int n, int axis,
            fc_tensor *out)
{
    fc_context *ctx = context_of(x);
    for (int i = 0; out && i < n; i++)
        out[i] = (fc_tensor){0};
    if (!is_tensor(file, line, "split", x))
        return ctx ? fc_error_code(ctx) : FC_HANDLE; // the cause may be an earlier mistake
    if (!out || n < 1) {
        refused(ctx, file, line, "split: %s into %d parts%s; one at least, and a place for each",
                type_words(x).text, n, out ? "" : " at NULL");
        return FC_INVALID;
    }
    if (!has_axis(file, line, "split", x, axis, fc_rank(x)) ||
        !has_parts(file, line, x, sizes, n, axis))
        return FC_INVALID;
    int64_t each = fc_dim_value(fc_shape(x, axis)) / n, at = 0;
    bool made = true;
    for (int i = 0; i < n && made; i++) {
        int64_t end = at + (sizes ? sizes[i] : each);
        out[i] = fc_slice_axis_at(file, line, x, axis, at, end, 1);
        made = fc_valid(out[i]);
        at = end;
    }
    for (int i = 0; i < n && !made; i++)
        out[i] = made_of(out[i], (fc_tensor){0});
    return made ? FC_OK : fc_error_code(ctx);
}

fc_tensor
fc_roll_at(const char *file, int line, fc_tensor x, int64_t by, int axis)
{
    if (!is_tensor(file, line, "roll", x) || !has_axis(file, line, "roll", x, axis, fc_rank(x)))
        return (fc_tensor){0};
    int64_t n = fc_dim_value(fc_shape(x, axis)), to = n ? (by % n + n) % n : 0;
    if (!to)
        return fc_slice_axis_at(file, line, x, axis, 0, n, 1);
    fc_tensor part[] = {fc_slice_axis_at(file, line, x, axis, n - to, n, 1),
                        fc_slice_axis_at(file, line, x, axis, 0, n - to, 1)};
    return made_of_two(part[0], part[1], fc_concat_at(file, line, part, 2, axis));
}

// ---- numbers in order

// start + i step for i = 0 … n - 1, in i64 or in f64.
static fc_tensor
progression(const char *file, int line, fc_context *ctx, fc_num start, fc_num step, int64_t n)
{
    fc_dim shape = fc_n(n);
    fc_tensor i = fc_iota_at(file, line, ctx, &shape, 1, 0);
    fc_tensor scaled = made_of(i, fc_mul_scalar_at(file, line, i, step));
    return made_of(scaled, fc_add_scalar_at(file, line, scaled, start));
}

enum { MOST_LOG2 = 45 }; // positions are of 8 bytes

static bool
holds(fc_dtype dtype, int64_t x)
{
    uint64_t bits;
    return dtype == FC_BOOL ? x == 0 || x == 1 : number_bits((uint8_t)dtype, fc_num_int(x), &bits);
}

static fc_tensor
arange_of_integers(const char *file, int line, fc_context *ctx, fc_dtype dtype, int64_t start,
                   int64_t stop, int64_t step)
{
    // What 64 bits hold with a sign may be further apart; modulo 2^64 all is exact.
    uint64_t from = (uint64_t)start, to = (uint64_t)stop, by = (uint64_t)step;
    uint64_t span = step > 0 ? to - from : from - to, stride = step > 0 ? by : 0 - by, n = 0;
    if (step > 0 ? start < stop : start > stop)
        n = span / stride + (span % stride != 0);
    if (n >> MOST_LOG2)
        return refused(ctx, file, line, "arange: %lld to %lld by %lld are too many numbers",
                       (long long)start, (long long)stop, (long long)step);
    int64_t last = (int64_t)(from + (n - 1) * by);
    if (n && !(holds(dtype, start) && holds(dtype, last)))
        return refused(ctx, file, line, "arange: %lld does not fit in %s; use a wider dtype",
                       (long long)(holds(dtype, start) ? last : start), fc_dtype_name(dtype));
    fc_tensor all = progression(file, line, ctx, fc_num_int(start), fc_num_int(step), (int64_t)n);
    return made_of(all, fc_cast_at(file, line, all, dtype));
}

static double
as_double(fc_num x)
{
    return x.is_large ? (double)(uint64_t)x.i : x.is_int ? (double)x.i : x.f;
}

fc_tensor
fc_arange_at(const char *file, int line, fc_context *ctx, fc_dtype dtype, fc_num start, fc_num stop,
             fc_num step)
{
    if (!ctx)
        return (fc_tensor){0};
    double from = as_double(start), to = as_double(stop), by = as_double(step);
    bool integers = start.is_int && stop.is_int && step.is_int;
    if (integers && (start.is_large || stop.is_large || step.is_large))
        return refused(ctx, file, line, "arange: %g to %g by %g; integers below 2^63 are needed",
                       from, to, by);
    if (!fc_dtype_size(dtype))
        return refused(ctx, file, line, "arange: %d is no dtype", (int)dtype);
    if (by == 0)
        return refused(ctx, file, line, "arange: a step of 0 from %g to %g", from, to);
    if (integers)
        return arange_of_integers(file, line, ctx, dtype, start.i, stop.i, step.i);
    if (!dtype_is_float((uint8_t)dtype))
        return refused(ctx, file, line,
                       "arange: %g to %g by %g of %s; give integers, or cast an arange of floats",
                       from, to, by, fc_dtype_name(dtype));
    double n = ceil((to - from) / by);
    if (!isfinite(from) || !isfinite(to) || !isfinite(by) || !(n < 0x1p45))
        return refused(ctx, file, line,
                       "arange: %g to %g by %g; finite numbers, and not too many, are needed", from,
                       to, by);
    fc_tensor all =
        progression(file, line, ctx, fc_num_float(from), fc_num_float(by), n > 0 ? (int64_t)n : 0);
    return made_of(all, fc_cast_at(file, line, all, dtype));
}

// start + i step, NumPy's rule, where step is the distance over n - 1; when that is so small that
// it is 0, the distance is scaled by i / (n - 1) instead.
static fc_tensor
evenly(const char *file, int line, fc_context *ctx, double start, double distance, int64_t n)
{
    double parts = (double)(n - 1), step = distance / parts;
    if (step != 0 || distance == 0)
        return progression(file, line, ctx, fc_num_float(start), fc_num_float(step), n);
    fc_tensor i = progression(file, line, ctx, fc_num_float(0), fc_num_float(1), n);
    fc_tensor share = made_of(i, fc_div_scalar_at(file, line, i, fc_num_float(parts)));
    fc_tensor by = made_of(share, fc_mul_scalar_at(file, line, share, fc_num_float(distance)));
    return made_of(by, fc_add_scalar_at(file, line, by, fc_num_float(start)));
}

// n > 1 numbers in f64, the last stop itself. Ends further apart than there are numbers are halved.
static fc_tensor
between(const char *file, int line, fc_context *ctx, double start, double stop, int64_t n)
{
    double distance = stop - start;
    fc_tensor sum;
    if (isinf(distance)) {
        fc_tensor half = evenly(file, line, ctx, start / 2, stop / 2 - start / 2, n);
        sum = made_of(half, fc_mul_scalar_at(file, line, half, fc_num_float(2)));
    } else {
        sum = evenly(file, line, ctx, start, distance, n);
    }
    fc_dim shape = fc_n(n);
    fc_tensor i = fc_iota_at(file, line, ctx, &shape, 1, 0);
    fc_tensor inside = made_of(i, fc_lt_scalar_at(file, line, i, fc_num_int(n - 1)));
    fc_tensor last = fc_full_at(file, line, ctx, FC_F64, fc_num_float(stop), NULL, 0);
    fc_tensor made = fc_where_at(file, line, inside, sum, last);
    return made_of(sum, made_of_two(inside, last, made));
}

fc_tensor
fc_linspace_at(const char *file, int line, fc_context *ctx, fc_dtype dtype, double start,
               double stop, int64_t n)
{
    if (!ctx)
        return (fc_tensor){0};
    if (!fc_dtype_size(dtype))
        return refused(ctx, file, line, "linspace: %d is no dtype", (int)dtype);
    if (n < 0 || n >> MOST_LOG2)
        return refused(ctx, file, line, "linspace: %lld numbers; 0 or more, and not too many",
                       (long long)n);
    if (!isfinite(start) || !isfinite(stop))
        return refused(ctx, file, line, "linspace: %g to %g; both must be finite", start, stop);
    fc_tensor all = n > 1 ? between(file, line, ctx, start, stop, n)
                          : progression(file, line, ctx, fc_num_float(start), fc_num_float(0), n);
    if (dtype_is_int((uint8_t)dtype))
        all = made_of(all, fc_floor_at(file, line, all));
    return made_of(all, fc_cast_at(file, line, all, dtype));
}

// ---- matrices

static bool
is_matrix(const char *file, int line, const char *name, fc_tensor x)
{
    if (!is_tensor(file, line, name, x))
        return false;
    if (fc_rank(x) < 2)
        refused(context_of(x), file, line, "%s: %s is no matrix; reshape it to two axes or more",
                name, type_words(x).text);
    return fc_rank(x) >= 2;
}

// A diagonal that touches a matrix, or the nearest beside it.
static int64_t
nearest(int64_t k, int64_t rows, int64_t columns)
{
    return k < -rows ? -rows : k > columns ? columns : k;
}

typedef fc_tensor compare(const char *file, int line, fc_tensor a, fc_tensor b);

// bool[rows, columns]: each element's column compared with that of diagonal k in its row.
static fc_tensor
beside_diagonal(const char *file, int line, fc_context *ctx, fc_dim rows, fc_dim columns, int64_t k,
                compare *how)
{
    fc_dim tall[] = {rows, fc_n(1)};
    k = nearest(k, fc_dim_value(rows), fc_dim_value(columns));
    fc_tensor column = fc_iota_at(file, line, ctx, &columns, 1, 0);
    fc_tensor row = fc_iota_at(file, line, ctx, tall, 2, 0);
    fc_tensor at = made_of(row, fc_add_scalar_at(file, line, row, fc_num_int(k)));
    return made_of_two(column, at, how(file, line, column, at));
}

fc_tensor
fc_eye_at(const char *file, int line, fc_context *ctx, fc_dtype dtype, int64_t rows,
          int64_t columns, int64_t k)
{
    if (!ctx)
        return (fc_tensor){0};
    fc_dim shape[] = {fc_n(rows), fc_n(columns)};
    if (!fc_dtype_size(dtype))
        return refused(ctx, file, line, "eye: %d is no dtype", (int)dtype);
    if (rows < 0 || columns < 0 || too_large(FC_I64, shape, 2))
        return refused(ctx, file, line, "eye: %lld by %lld; sizes of 0 or more, and not too large",
                       (long long)rows, (long long)columns);
    fc_tensor on = beside_diagonal(file, line, ctx, shape[0], shape[1], k, fc_eq_at);
    return made_of(on, fc_cast_at(file, line, on, dtype));
}

static fc_tensor
triangle(const char *file, int line, const char *name, fc_tensor x, int64_t k, compare *how)
{
    if (!is_matrix(file, line, name, x))
        return (fc_tensor){0};
    fc_context *ctx = context_of(x);
    fc_tensor in = beside_diagonal(file, line, ctx, fc_shape(x, -2), fc_shape(x, -1), k, how);
    fc_tensor zero = fc_full_at(file, line, ctx, fc_dtype_of(x), fc_num_int(0), NULL, 0);
    return made_of_two(in, zero, fc_where_at(file, line, in, x, zero));
}

fc_tensor
fc_tril_at(const char *file, int line, fc_tensor x, int64_t k)
{
    return triangle(file, line, "tril", x, k, fc_le_at);
}

fc_tensor
fc_triu_at(const char *file, int line, fc_tensor x, int64_t k)
{
    return triangle(file, line, "triu", x, k, fc_ge_at);
}

// x with two axes at the end.
static fc_tensor
with_last(const char *file, int line, fc_tensor x, int a, int b)
{
    int rank = fc_rank(x), n = 0;
    int64_t axes[MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (i != a && i != b)
            axes[n++] = i;
    axes[n] = a;
    axes[n + 1] = b;
    return fc_permute_at(file, line, x, axes, rank);
}

// Of n rows from row on each one's element in the column that is its number, from column on. These
// are positions, and not a step through the matrix as one line, which would have all of a computed
// matrix stored first.
static fc_tensor
along_diagonal(const char *file, int line, fc_tensor x, int64_t row, int64_t column, int64_t n)
{
    int rank = fc_rank(x);
    fc_dim shape[MAX_RANK], one[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        shape[i] = i < rank - 2 ? fc_shape(x, i) : fc_n(i == rank - 2 ? n : 1);
        one[i] = fc_n(i == rank - 2 ? n : 1);
    }
    fc_tensor rows = fc_slice_axis_at(file, line, x, -2, row, row + n, 1);
    fc_tensor i = fc_iota_at(file, line, context_of(x), one, rank, rank - 2);
    fc_tensor at = made_of(i, fc_add_scalar_at(file, line, i, fc_num_int(column)));
    fc_tensor all = made_of(at, fc_broadcast_at(file, line, at, shape, rank));
    fc_tensor made = made_of_two(rows, all, fc_take_along_at(file, line, rows, all, -1));
    return made_of(made, fc_reshape_at(file, line, made, shape, rank - 1));
}

fc_tensor
fc_diagonal_at(const char *file, int line, fc_tensor x, int64_t k, int a, int b)
{
    if (!is_matrix(file, line, "diagonal", x) ||
        !has_axis(file, line, "diagonal", x, a, fc_rank(x)) ||
        !has_axis(file, line, "diagonal", x, b, fc_rank(x)))
        return (fc_tensor){0};
    int rank = fc_rank(x), at = from_front(a, rank), of = from_front(b, rank);
    if (at == of)
        return refused(context_of(x), file, line,
                       "diagonal: axes %d and %d of %s are the same one; give two", a, b,
                       type_words(x).text);
    int64_t rows = fc_dim_value(fc_shape(x, at)), columns = fc_dim_value(fc_shape(x, of));
    k = nearest(k, rows, columns);
    int64_t down = k < 0 ? rows + k : rows, right = k < 0 ? columns : columns - k;
    fc_tensor matrix = with_last(file, line, x, at, of);
    return made_of(matrix, along_diagonal(file, line, matrix, k < 0 ? -k : 0, k < 0 ? 0 : k,
                                          down < right ? down : right));
}

// ---- like another

fc_tensor
fc_full_like_at(const char *file, int line, fc_tensor x, fc_num value)
{
    if (!is_tensor(file, line, "full_like", x))
        return (fc_tensor){0};
    fc_context *ctx = context_of(x);
    char words[NUMBER_WORDS];
    uint64_t bits;
    if (!number_bits((uint8_t)fc_dtype_of(x), value, &bits))
        return refused(ctx, file, line, "full_like: %s does not fit in the %s of %s",
                       number_words(value, words), fc_dtype_name(fc_dtype_of(x)),
                       type_words(x).text);
    int rank = fc_rank(x);
    fc_dim shape[MAX_RANK];
    for (int i = 0; i < rank; i++)
        shape[i] = fc_shape(x, i);
    return fc_full_at(file, line, ctx, fc_dtype_of(x), value, shape, rank);
}
