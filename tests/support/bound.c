// bound.c: error bounds, by rule.
//
// Each node is computed by the graph interpreter from the values before it, and its error follows:
//   - elementwise: bound_element.c;
//   - views: what the same view makes of the errors.
//   - sums and products of n elements, also running ones: the operands' errors, plus depth * eps *
//     sum |x| (Higham, "The accuracy of floating point summation", 1993).
//   - composites: their expansion (passes/decompose.c) with the errors of every op in it. The
//     interpreter's value of the whole must agree with the expansion as well.
// Ops of other kinds are exact functions of exact operands when their row says so; else anything.
#include "tests/support/bound_parts.h"

#include "ir/base/check.h"
#include "ir/interp_walk.h"
#include "passes/pass.h"
#include "tests/support/graph_gen.h"
#include "tests/support/run_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- lines

// What a sum of n elements may lose, whose magnitudes add up to `size`.
static double
sum_error(uint8_t dtype, int64_t n, double size, double depth)
{
    uint8_t acc = dtype_table[dtype].acc;
    double eps = ldexp(1, 1 - bound_digits(acc)), least = bound_least(acc);
    if (!(size * (1 + depth * eps) < bound_largest(acc)))
        return (double)INFINITY;
    return n > 1 ? depth * (eps * size + least) : 0;
}

static double
tree_depth(int64_t n)
{
    return 2 * (RED_STEPS + log2((double)n + 1) + 8);
}

struct line { // running figures of one
    int64_t n;
    double size, error, product, at_least_1, most, second, most_error;
    bool infinite, nan, zero;
};

static void
line_take(struct line *l, double x, double e)
{
    l->n++;
    l->infinite |= isinf(x);
    l->nan |= isnan(x);
    l->zero |= x == 0 && e == 0;
    double size = isfinite(x) ? fabs(x) : 0;
    l->size += size;
    l->error += e;
    l->most_error = fmax(l->most_error, e);
    l->product *= size + e;
    l->at_least_1 *= fmax(1, size + e);
}

static double
sum_line(const struct line *l, uint8_t dtype)
{
    if (isinf(l->error))
        return l->error;
    double error = l->error + sum_error(dtype, l->n, l->size + l->error, tree_depth(l->n));
    bool special = l->nan || l->infinite; // the result is one as well, unless sums overflow
    return special && isfinite(error) ? 0 : error;
}

static double
product_line(const struct line *l, uint8_t dtype, double value)
{
    uint8_t acc = dtype_table[dtype].acc;
    double eps = ldexp(1, 1 - bound_digits(acc));
    if (isinf(l->error) || !(l->at_least_1 < bound_largest(acc) / 2))
        return (double)INFINITY;
    if (l->nan)
        return 0;
    if (l->infinite) // what underflows to 0 beside an infinity gives NaN
        return l->zero ? 0 : (double)INFINITY;
    return l->product - fabs(value) + (double)l->n * (eps * l->product +
                                                      bound_least(acc) * l->at_least_1);
}

// Whether another element may be the extreme one.
static bool
has_rival(const struct tensor *t, const double *error, const struct walk *start, int64_t best)
{
    struct walk w = *start;
    int64_t k = 0;
    double x = 0, e = 0;
    for (; w.left; walk_next(&w), k++)
        if (k == best) {
            x = tensor_get_double(t, w.offset[0]);
            e = error[w.offset[0]];
        }
    w = *start;
    for (k = 0; w.left; walk_next(&w), k++) {
        double y = tensor_get_double(t, w.offset[0]);
        if (k != best && !(fabs(x - y) > 2 * (e + error[w.offset[0]])))
            return true;
    }
    return false;
}

static double
line_error(const struct node *n, const struct line *l, const struct bounded *x,
           const struct walk *inner, const struct tensor *out, int64_t k)
{
    uint8_t dtype = x->value.dtype;
    switch (n->op) {
    case OP_sum:
        return sum_line(l, dtype);
    case OP_prod:
        return product_line(l, dtype, tensor_get_double(out, k));
    case OP_max_reduce:
    case OP_min_reduce:
        return l->nan && isfinite(l->most_error) ? 0 : l->most_error;
    case OP_argmax:
    case OP_argmin:
        return l->most_error > 0 &&
                       has_rival(&x->value, x->error, inner, (int64_t)tensor_get(out, k))
                   ? (double)INFINITY
                   : 0;
    default:
        return l->most_error > 0 ? (double)INFINITY : 0;
    }
}

// Lines of x along the axes that n reduces, in the order of the result's elements.
static void
reduce(struct bounding *b, const struct node *n, const int64_t *attr, struct bounded *out)
{
    const struct bounded *x = &b->at[node_in(b->g, n, 0).i];
    bool rounds = (n->op == OP_sum || n->op == OP_prod) && dtype_is_float(n->dtype);
    if (!rounds && !x->error)
        return;
    struct tensor kept = x->value, reduced = x->value;
    for (uint32_t i = 0; i < kept.rank; i++) {
        bool named = false;
        for (int64_t a = 0; a < attr[0]; a++)
            named |= attr[1 + a] == i;
        *(named ? &kept.dim[i] : &reduced.dim[i]) = 1;
    }
    out->error = bound_errors(&out->value);
    struct walk outer, inner;
    walk_start(&outer, kept.rank, kept.dim);
    walk_follow(&outer, &kept);
    for (int64_t k = 0; outer.left; walk_next(&outer), k++) {
        struct line l = {.product = 1, .at_least_1 = 1};
        walk_start(&inner, reduced.rank, reduced.dim);
        walk_follow(&inner, &reduced);
        inner.offset[0] = outer.offset[0];
        for (struct walk w = inner; w.left; walk_next(&w))
            line_take(&l, tensor_get_double(&x->value, w.offset[0]),
                      x->error ? x->error[w.offset[0]] : 0);
        double e = line_error(n, &l, x, &inner, &out->value, k);
        if (e > 0 && dtype_is_float(n->dtype))
            e += ulp_of(n->dtype, tensor_get_double(&out->value, k));
        out->error[k] = e;
    }
}

// Each element of a scan is a reduction of those before it.
static void
scan(struct bounding *b, const struct node *n, const int64_t *attr, struct bounded *out)
{
    const struct bounded *x = &b->at[node_in(b->g, n, 0).i];
    bool rounds = (n->op == OP_cumsum || n->op == OP_cumprod) && dtype_is_float(n->dtype);
    if (!rounds && !x->error)
        return;
    uint32_t axis = (uint32_t)attr[0];
    struct node as_reduction = *n;
    as_reduction.op = n->op == OP_cumsum ? OP_sum : n->op == OP_cumprod ? OP_prod : OP_max_reduce;
    struct tensor kept = x->value;
    int64_t extent = kept.dim[axis], step = kept.stride[axis];
    kept.dim[axis] = 1;
    out->error = bound_errors(&out->value);
    struct walk outer;
    walk_start(&outer, kept.rank, kept.dim);
    walk_follow(&outer, &kept);
    for (; outer.left; walk_next(&outer)) {
        struct line l = {.product = 1, .at_least_1 = 1};
        for (int64_t i = 0; i < extent; i++) {
            int64_t at = outer.offset[0] + (attr[1] ? extent - 1 - i : i) * step;
            line_take(&l, tensor_get_double(&x->value, at), x->error ? x->error[at] : 0);
            double e = line_error(&as_reduction, &l, x, NULL, &out->value, at);
            e += e > 0 ? ulp_of(n->dtype, tensor_get_double(&out->value, at)) : 0;
            out->error[at] = e;
        }
    }
}

// ---- other kinds: the same op applied to errors or magnitudes

// |x| plus its error, nothing for what is no number; or the error alone.
static struct tensor
magnitudes(const struct bounded *x, bool of_error)
{
    struct tensor t = x->value;
    int64_t n = tensor_count(&t);
    double *v = bound_errors(&t);
    for (int64_t i = 0; i < n; i++) {
        double size = fabs(tensor_get_double(&x->value, i)), e = x->error ? x->error[i] : 0;
        v[i] = of_error ? e : isfinite(size) ? size + e : isinf(e) ? e : 0;
    }
    t.dtype = DT_f64;
    t.data = v;
    return t;
}

// op applied to tensors of f64 with the shapes of n's operands.
static struct tensor
applied_as(struct bounding *b, uint16_t op, const struct node *n, const struct tensor *in,
           const int64_t *attr, uint32_t nattr)
{
    struct graph *one = graph_new_like(b->g);
    ref *x = xcalloc(n->nin + 1, sizeof *x);
    struct tensor out = {0};
    for (uint32_t i = 0; i < n->nin; i++)
        x[i] = graph_add_input(one, "", in[i].dtype, graph_shape(b->g, node_in(b->g, n, i)), NULL,
                               0);
    ref r = graph_build(one, op, x, n->nin, attr, nattr, 0, b->d);
    CHECK(r.i, "%s", b->d->text);
    graph_add_output(one, "", r);
    interp_graph(one, in, &out, b->d);
    graph_free(one);
    xfree(x);
    return out;
}

static struct tensor
applied(struct bounding *b, const struct node *n, const struct tensor *in, const int64_t *attr,
        uint32_t nattr)
{
    return applied_as(b, n->op, n, in, attr, nattr);
}

static void
all_free(struct bounded *out)
{
    out->error = bound_errors(&out->value);
    for (int64_t i = 0; i < tensor_count(&out->value); i++)
        out->error[i] = (double)INFINITY;
}

// How many operands are moved, the others being positions.
static uint32_t
moved_operands(const struct node *n)
{
    switch (n->op) {
    case OP_one_hot: case OP_random_bits:
        return 0;
    case OP_take: case OP_take_along: case OP_dynamic_slice:
        return 1;
    case OP_slice_update:
        return 2;
    default:
        return n->nin;
    }
}

// Views and indexing move errors as they move elements; what a pad adds has none.
static void
move(struct bounding *b, ref r, const struct node *n, struct bounded *out)
{
    uint32_t values = moved_operands(n), nattr = b->g->attrs.at[n->attr].n;
    bool any = false;
    for (uint32_t i = 0; i < n->nin; i++) {
        bool inexact = b->at[node_in(b->g, n, i).i].error != NULL;
        any |= inexact;
        if (inexact && i >= values)
            return all_free(out);
    }
    if (!any)
        return;
    int64_t attr[64];
    CHECK(nattr <= 64, "%u attribute words", nattr);
    if (nattr)
        memcpy(attr, graph_attr(b->g, r), nattr * sizeof *attr);
    if (n->op == OP_pad)
        attr[nattr - 1] = 0;
    struct tensor *in = xcalloc(n->nin, sizeof *in);
    for (uint32_t i = 0; i < n->nin; i++) {
        const struct bounded *x = &b->at[node_in(b->g, n, i).i];
        in[i] = i < values ? magnitudes(x, true) : x->value;
    }
    out->error = applied(b, n, in, attr, nattr).data;
    for (uint32_t i = 0; i < values; i++)
        xfree(in[i].data);
    xfree(in);
}

// 1 where x is infinite, or where an error may make it 0 or another sign; 0 elsewhere.
static struct tensor
marked(const struct bounded *x, bool infinite)
{
    struct tensor t = magnitudes(x, true);
    double *v = t.data;
    for (int64_t i = 0; i < tensor_count(&x->value); i++) {
        double size = fabs(tensor_get_double(&x->value, i));
        v[i] = infinite ? isinf(size) || isinf(v[i]) : v[i] > 0 && !(v[i] < size);
    }
    return t;
}

// Where an infinite factor meets one of which it is not known whether it is 0: anything results.
static void
free_unknown_products(struct bounding *b, const struct node *n, const struct bounded *const x[2],
                      struct bounded *out)
{
    for (uint32_t side = 0; side < 2; side++) {
        if (!x[!side]->error)
            continue;
        struct tensor in[2] = {marked(x[0], side == 0), marked(x[1], side == 1)};
        struct tensor meet = applied(b, n, in, NULL, 0);
        for (int64_t i = 0; i < tensor_count(&out->value); i++)
            if (((double *)meet.data)[i] > 0)
                out->error[i] = (double)INFINITY;
        xfree(in[0].data);
        xfree(in[1].data);
        xfree(meet.data);
    }
}

static void
contract(struct bounding *b, const struct node *n, struct bounded *out)
{
    if (!dtype_is_float(n->dtype))
        return;
    const struct bounded *x[2] = {&b->at[node_in(b->g, n, 0).i], &b->at[node_in(b->g, n, 1).i]};
    struct tensor in[2] = {magnitudes(x[0], false), magnitudes(x[1], false)};
    struct tensor size = applied(b, n, in, NULL, 0);
    int64_t k = x[0]->value.dim[x[0]->value.rank - 1];
    // |a||b| + |a| eb + ea |b| + ea eb is a bound of sizes; less the sizes without errors.
    struct bounded plain[2] = {{x[0]->value, NULL}, {x[1]->value, NULL}};
    struct tensor bare[2] = {magnitudes(&plain[0], false), magnitudes(&plain[1], false)};
    struct tensor exact = applied(b, n, bare, NULL, 0);
    out->error = bound_errors(&out->value);
    for (int64_t i = 0; i < tensor_count(&out->value); i++) {
        double s = ((double *)size.data)[i], value = tensor_get_double(&out->value, i);
        double e = sum_error(n->dtype, k + 1, s, 2.0 * (double)k + tree_depth(k));
        double moved = s - ((double *)exact.data)[i]; // by the operands' errors
        if (isfinite(value))
            e = isfinite(e) ? e + 2 * moved + ulp_of(n->dtype, value) : e;
        else if (isfinite(e)) // of operands that are no numbers
            e = 0;
        out->error[i] = k ? e : 0;
    }
    free_unknown_products(b, n, x, out);
    struct tensor *all[] = {&size, &exact, &in[0], &in[1], &bare[0], &bare[1]};
    for (uint32_t i = 0; i < 6; i++)
        xfree(all[i]->data);
}

// Errors go where values go; of several joined by max or min the largest stays. Sums are chains.
static void
scatter(struct bounding *b, ref r, const struct node *n, struct bounded *out)
{
    const struct bounded *x[3];
    bool adds = op_table[n->op].combine == OP_add, known = true;
    bool along = op_table[n->op].flags & OPF_ALONG;
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = &b->at[node_in(b->g, n, i).i];
        known &= x[i]->error == NULL;
    }
    if (known && !(adds && dtype_is_float(n->dtype)))
        return;
    if (x[1]->error)
        return all_free(out);
    const int64_t *attr = graph_attr(b->g, r);
    struct tensor error[3] = {magnitudes(x[0], true), x[1]->value, magnitudes(x[2], true)};
    struct tensor size[3] = {magnitudes(x[0], false), x[1]->value, magnitudes(x[2], false)};
    uint16_t by_max = along ? OP_scatter_along_max : OP_scatter_max;
    uint16_t as = op_table[n->op].combine == OP_min ? by_max : n->op;
    out->error = applied_as(b, as, n, error, attr, 1).data;
    struct tensor total = applied_as(b, as, n, size, attr, 1);
    double depth = (double)tensor_count(&x[1]->value) + 1;
    for (int64_t i = 0; adds && i < tensor_count(&out->value); i++) {
        double value = tensor_get_double(&out->value, i), e = ((double *)total.data)[i];
        e = out->error[i] + sum_error(n->dtype, (int64_t)depth, e, depth);
        out->error[i] = isfinite(value) ? e + ulp_of(n->dtype, value) : isfinite(e) ? 0 : e;
    }
    xfree(total.data);
    for (uint32_t i = 0; i < 3; i += 2) {
        xfree(error[i].data);
        xfree(size[i].data);
    }
}

// Of sorted lines no element moves by more than the largest error.
static void
order(const struct bounded *x, struct bounded *out)
{
    double most = 0;
    for (int64_t i = 0; i < tensor_count(&x->value); i++)
        most = fmax(most, x->error[i]);
    out->error = bound_errors(&out->value);
    for (int64_t i = 0; i < tensor_count(&out->value); i++)
        out->error[i] = most;
}

static void
other(struct bounding *b, const struct node *n, struct bounded *out)
{
    bool exact = op_table[n->op].flags & OPF_EXACT || !dtype_is_float(n->dtype);
    bool known = true;
    for (uint32_t i = 0; i < n->nin; i++)
        known &= b->at[node_in(b->g, n, i).i].error == NULL;
    if (exact && known)
        return;
    bool positions = op_table[n->op].flags & OPF_POSITION;
    if (op_is(n->op, OPK_ORDER) && !positions)
        order(&b->at[node_in(b->g, n, 0).i], out);
    else
        all_free(out);
}

// ---- nodes

static bool bound_nodes(struct bounding *b);

// What a composite's expansion y, known to within y->error, says of the interpreter's value of it.
static void
join_expansion(struct bounding *b, const struct node *n, const struct bounded *y, bool exact,
               struct bounded *out)
{
    out->error = bound_errors(&out->value);
    for (int64_t i = 0; i < tensor_count(&out->value); i++) {
        double mine = tensor_get_double(&out->value, i), its = tensor_get_double(&y->value, i);
        double e = y->error ? y->error[i] : 0, ulp = exact ? 0 : ulp_of(n->dtype, mine);
        bool same = same_bits(n->dtype, tensor_get(&out->value, i), tensor_get(&y->value, i));
        if (!same && !(fabs(mine - its) <= 2 * e + ulp && !exact) && !isinf(e))
            diag_set(b->d, DIAG_INTERNAL, "%s: element %lld is %.17g, its expansion gives %.17g, "
                     "within %g", op_name(n->op), (long long)i, mine, its, e);
        bool certain = (same && e == 0) || isnan(mine);
        out->error[i] = isinf(e) ? e : certain ? 0 : e + ulp + fabs(mine - its);
    }
}

// The distance between a composite's expansion and the true result bounds what a device does with
// the expansion.
static void
composite(struct bounding *b, ref r, const struct node *n, struct bounded *out)
{
    struct compile_options co = {.strict = b->strict};
    struct graph *one = graph_of_one_op(b->g, r), *rounded = pass_rounding(one, &co);
    struct graph *h = pass_decompose(rounded, &co);
    bool exact = op_table[n->op].flags & OPF_EXACT;
    struct bounding inner = {.g = h, .strict = b->strict, .d = b->d,
                             .at = xcalloc(h->node.n, sizeof *inner.at)};
    for (uint32_t i = 0, k = 0; i < n->nin; i++) {
        ref x = node_in(b->g, n, i);
        exact &= b->at[x.i].error == NULL;
        if (graph_node(b->g, x)->op != OP_literal)
            inner.at[h->inputs.at[k++].node.i] = b->at[x.i];
    }
    inner.every = !exact;
    if (bound_nodes(&inner))
        join_expansion(b, n, &inner.at[h->outputs.at[0].node.i], exact, out);
    for (uint32_t i = 1; i < h->node.n; i++)
        if (h->node.at[i].op != OP_input)
            bounded_free(&inner.at[i]);
    xfree(inner.at);
    graph_free(h);
    graph_free(rounded);
    graph_free(one);
}

// Ops whose results have no more digits than their operands.
static bool
keeps_digits(uint16_t op)
{
    switch (op) {
    case OP_cast: case OP_where: case OP_neg: case OP_abs: case OP_max: case OP_min: case OP_relu:
    case OP_clamp: case OP_floor: case OP_ceil: case OP_round: case OP_trunc: case OP_sign:
    case OP_copysign: case OP_max_reduce: case OP_min_reduce:
        return true;
    default:
        return op_is(op, OPK_VIEW) || op_is(op, OPK_INDEX) || op_is(op, OPK_LEAF);
    }
}

// f16 and bf16 values may reach their readers unrounded.
static void
loosen_half(struct bounding *b, uint16_t op, struct bounded *out)
{
    if (b->strict || b->every || keeps_digits(op) || !dtype_is_half(out->value.dtype))
        return;
    if (!out->error)
        out->error = bound_errors(&out->value);
    for (int64_t i = 0; i < tensor_count(&out->value); i++) {
        double x = tensor_get_double(&out->value, i);
        out->error[i] += isfinite(x) ? ulp_of(out->value.dtype, x) : 0;
        if (isinf(x) && out->error[i] == 0 && !op_is(op, OPK_ELEM)) // it may be finite in f32
            out->error[i] = (double)INFINITY;
    }
}

static void
bound_node(struct bounding *b, uint32_t i, const bool *is_output)
{
    ref r = {i};
    const struct node *n = graph_node(b->g, r);
    struct bounded *out = &b->at[i];
    struct tensor *in = xcalloc(n->nin + 1, sizeof *in);
    struct graph *one = graph_of_one_op(b->g, r);
    uint32_t used = 0;
    for (uint32_t k = 0; k < n->nin; k++)
        if (graph_node(b->g, node_in(b->g, n, k))->op != OP_literal)
            in[used++] = b->at[node_in(b->g, n, k).i].value;
    if (interp_graph(one, in, &out->value, b->d)) {
        const struct op_info *op = &op_table[n->op];
        if (op->kind == OPK_ELEM)
            bound_elementwise(b, n, b->strict || is_output[i], out);
        else if (op->kind == OPK_REDUCE)
            reduce(b, n, graph_attr(b->g, r), out);
        else if (op->kind == OPK_SCAN)
            scan(b, n, graph_attr(b->g, r), out);
        else if (op->kind == OPK_VIEW || op->kind == OPK_INDEX)
            move(b, r, n, out);
        else if (op->kind == OPK_CONTRACT)
            contract(b, n, out);
        else if (op->kind == OPK_SCATTER)
            scatter(b, r, n, out);
        else if (op->kind == OPK_COMPOSITE)
            composite(b, r, n, out);
        else if (op->kind != OPK_LEAF)
            other(b, n, out);
        if (!is_output[i])
            loosen_half(b, n->op, out);
    }
    graph_free(one);
    xfree(in);
}

static void
drop_zeros(struct bounded *x)
{
    bool any = false;
    for (int64_t i = 0; x->error && i < tensor_count(&x->value); i++)
        any |= x->error[i] > 0;
    if (any)
        return;
    xfree(x->error);
    x->error = NULL;
}

static bool
bound_nodes(struct bounding *b)
{
    bool *live = graph_live(b->g), *is_output = xcalloc(b->g->node.n, 1);
    for (uint32_t i = 0; i < b->g->outputs.n; i++)
        is_output[b->g->outputs.at[i].node.i] = true;
    for (uint32_t i = 1; i < b->g->node.n && b->d->code == DIAG_OK; i++)
        if (live[i] && b->g->node.at[i].op != OP_input) {
            bound_node(b, i, is_output);
            drop_zeros(&b->at[i]);
        }
    xfree(live);
    xfree(is_output);
    return b->d->code == DIAG_OK;
}

static struct tensor
dense_copy(const struct tensor *t)
{
    struct tensor c = *t;
    struct walk w;
    int64_t run = 1;
    for (uint32_t i = c.rank; i-- > 0;) {
        c.stride[i] = run;
        run *= c.dim[i];
    }
    size_t size = dtype_size(c.dtype), n = (size_t)tensor_count(&c);
    c.data = xcalloc(n + 1, size);
    walk_start(&w, t->rank, t->dim);
    walk_follow(&w, t);
    for (int64_t k = 0; w.left; walk_next(&w), k++)
        tensor_put(&c, k, tensor_get(t, w.offset[0]));
    return c;
}

bool
bound_graph(const struct graph *g, const struct tensor *in, bool strict, struct bounded *out,
            struct diag *d)
{
    struct bounding b = {.g = g, .strict = strict, .d = d,
                         .at = xcalloc(g->node.n, sizeof *b.at)};
    for (uint32_t i = 0; i < g->inputs.n; i++)
        b.at[g->inputs.at[i].node.i].value = dense_copy(&in[i]);
    bool ok = bound_nodes(&b);
    for (uint32_t i = 0; i < g->outputs.n && ok; i++) {
        const struct bounded *x = &b.at[g->outputs.at[i].node.i];
        out[i].value = dense_copy(&x->value);
        out[i].error = NULL;
        if (x->error) {
            out[i].error = bound_errors(&x->value);
            memcpy(out[i].error, x->error, (size_t)tensor_count(&x->value) * sizeof(double));
        }
    }
    for (uint32_t i = 1; i < g->node.n; i++)
        bounded_free(&b.at[i]);
    xfree(b.at);
    return ok;
}

void
bounded_free(struct bounded *b)
{
    xfree(b->value.data);
    xfree(b->error);
    *b = (struct bounded){0};
}

bool
bound_check(const struct bounded *b, const void *got, struct bound_tally *t, char *where)
{
    uint8_t dtype = b->value.dtype;
    for (int64_t i = 0; i < tensor_count(&b->value); i++) {
        uint64_t want = tensor_get(&b->value, i);
        uint64_t bits = scalar_load(dtype, (const char *)got + i * dtype_size(dtype));
        double e = b->error ? b->error[i] : 0, x = scalar_to_double(dtype, want),
               y = scalar_to_double(dtype, bits);
        *(e == 0 ? &t->exact : isinf(e) ? &t->anything : &t->bounded) += 1;
        bool fits = same_bits(dtype, want, bits) || isinf(e) || (e > 0 && fabs(x - y) <= e);
        if (fits)
            continue;
        snprintf(where, 200, "element %lld is %.17g (%#llx), right is %.17g (%#llx), within %g",
                 (long long)i, y, (unsigned long long)bits, x, (unsigned long long)want, e);
        return false;
    }
    return true;
}
