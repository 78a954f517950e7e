// random.c: programs made at random give the same bits lazy, eager, and lazy with every other value
// forced on the way. A failure prints the program's seed; FUSEC_SEED runs that one.
#include "api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROGRAMS = 30, OPS = 14, MAX_COUNT = 4096 };

struct maker {
    uint64_t state;
    fc_context *ctx;
    bool forces;
    fc_tensor t[OPS + 3];
    int n;
};

static uint32_t
draw(struct maker *m, uint32_t below)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->state >> 33) % below;
}

static fc_tensor
pick(struct maker *m)
{
    return m->t[draw(m, (uint32_t)m->n)];
}

static int
pick_axis(struct maker *m, fc_tensor x)
{
    int rank = fc_rank(x);
    return rank ? (int)draw(m, (uint32_t)rank) : 0;
}

static fc_tensor
leaf(struct maker *m)
{
    float v[60];
    for (int i = 0; i < 60; i++)
        v[i] = (float)((int)draw(m, 33) - 16) / 4;
    switch (draw(m, 4)) {
    case 0:
        return fc_from_host(m->ctx, FC_F32, v, FC_SHAPE(5));
    case 1:
        return fc_from_host(m->ctx, FC_F32, v, FC_SHAPE(4, 1));
    case 2:
        return fc_from_host(m->ctx, FC_F32, v, FC_SHAPE(3, 4, 5));
    }
    return fc_from_host(m->ctx, FC_F32, v, FC_SHAPE(4, 5));
}

static fc_tensor
unary(struct maker *m, fc_tensor x)
{
    switch (draw(m, 8)) {
    case 0:
        return fc_neg(x);
    case 1:
        return fc_abs(x);
    case 2:
        return fc_exp(fc_min(x, fc_scalar(m->ctx, 3)));
    case 3:
        return fc_tanh(x);
    case 4:
        return fc_relu(x);
    case 5:
        return fc_sqrt(fc_abs(x));
    case 6:
        return fc_mul_scalar(x, (double)draw(m, 9) / 4);
    }
    return fc_gelu(x);
}

static fc_tensor
binary(struct maker *m, fc_tensor a, fc_tensor b)
{
    switch (draw(m, 6)) {
    case 0:
        return fc_add(a, b);
    case 1:
        return fc_sub(a, b);
    case 2:
        return fc_mul(a, b);
    case 3:
        return fc_max(a, b);
    case 4:
        return fc_where(fc_lt(a, b), a, fc_scalar(m->ctx, 1.5));
    }
    return fc_div(a, fc_add_scalar(fc_abs(b), 1));
}

static fc_tensor
view(struct maker *m, fc_tensor x)
{
    int axis = pick_axis(m, x), last = fc_rank(x) - 1;
    int64_t n = fc_dim_value(fc_shape(x, axis));
    if (last < 0)
        return fc_broadcast(x, FC_SHAPE(3));
    switch (draw(m, 7)) {
    case 0:
        return fc_transpose(x, axis, last);
    case 1:
        return fc_flip(x, FC_LIST(axis));
    case 2:
        return n > 1 ? fc_slice_axis(x, axis, 1, FC_END, 1 + draw(m, 2)) : x;
    case 3:
        return fc_rank(x) < 4 ? fc_unsqueeze(x, axis) : x;
    case 4:
        return n < 12 ? fc_concat(((fc_tensor[]){x, fc_neg(x)}), 2, axis) : x;
    case 5: // splits and joins axes across their old borders
        return fc_reshape(x, FC_DIMS(fc_n(-1), fc_shape(x, axis)));
    }
    return fc_slice_axis(x, axis, FC_END, FC_END, -1);
}

static fc_tensor
reduce(struct maker *m, fc_tensor x)
{
    if (!fc_rank(x))
        return fc_neg(x);
    int axis = pick_axis(m, x);
    bool keep = draw(m, 2);
    switch (draw(m, 6)) {
    case 0:
        return fc_sum(x, FC_LIST(axis), keep);
    case 1:
        return fc_max_reduce(x, FC_LIST(axis), keep);
    case 2:
        return fc_mean(x, FC_ALL, keep);
    case 3:
        return fc_softmax(x, axis);
    case 4:
        return fc_cast(fc_argmax(x, FC_LIST(axis), keep), FC_F32);
    }
    return fc_var(x, FC_LIST(axis), keep, 0);
}

// Contractions, indices and normalisations.
static fc_tensor
dear(struct maker *m, fc_tensor x)
{
    int axis = pick_axis(m, x);
    if (fc_rank(x) < 2)
        return fc_add_scalar(x, 0.5);
    switch (draw(m, 5)) {
    case 0:
        return fc_matmul(x, fc_transpose(x, -1, -2));
    case 1: // lines in the order of where they are greatest
        return fc_take(x, fc_argmax(x, FC_LIST(axis), false), axis);
    case 2:
        return fc_take_along(x, fc_argmin(x, FC_LIST(axis), true), axis);
    case 3:
        return fc_layer_norm(
            x, fc_slice_axis(fc_reshape(x, FC_SHAPE(-1)), 0, 0, fc_dim_value(fc_shape(x, -1)), 1),
            fc_zeros(m->ctx, FC_F32, FC_DIMS(fc_shape(x, -1))), 1e-3);
    }
    return fc_log_softmax(fc_cast(fc_cast(x, FC_I32), FC_F32), axis);
}

static fc_tensor
step(struct maker *m)
{
    fc_tensor x = pick(m), y = pick(m), z = {0};
    switch (draw(m, 5)) {
    case 0:
        z = unary(m, x);
        break;
    case 1:
        z = binary(m, x, y);
        break;
    case 2:
        z = view(m, x);
        break;
    case 3:
        z = reduce(m, x);
        break;
    case 4:
        z = dear(m, x);
    }
    // Shapes that don't broadcast are refused, the same way in all modes.
    fc_error_clear(m->ctx);
    int64_t n = fc_count(z);
    fc_error_clear(m->ctx);
    return n > 0 && n <= MAX_COUNT ? z : x;
}

// Returns the number of floats of all results.
static int
run_program(struct maker *m, uint64_t seed, float *out, int cap)
{
    m->state = seed * 0x9e3779b97f4a7c15u + 1;
    fc_scope_begin(m->ctx);
    for (m->n = 0; m->n < 3; m->n++)
        m->t[m->n] = leaf(m);
    for (; m->n < OPS + 3; m->n++) {
        m->t[m->n] = step(m);
        if (m->forces && m->n % 2)
            cr_assert_eq(fc_eval(m->ctx, &m->t[m->n], 1), FC_OK, "seed %llu: %s",
                         (unsigned long long)seed, fc_error(m->ctx));
    }
    // The last ones together, in one graph of several outputs; then each is read.
    cr_assert_eq(fc_eval(m->ctx, m->t + m->n - 4, 4), FC_OK, "seed %llu: %s",
                 (unsigned long long)seed, fc_error(m->ctx));
    int at = 0;
    for (int i = m->n - 4; i < m->n; i++) {
        int64_t n = fc_count(m->t[i]);
        cr_assert_leq(at + n, cap);
        cr_assert_eq(fc_read(m->t[i], out + at, (size_t)n * sizeof *out), FC_OK);
        at += (int)n;
    }
    fc_scope_end(m->ctx);
    return at;
}

Test(random, lazy_eager_and_forced_agree)
{
    static float out[3][4 * MAX_COUNT];
    static struct maker m[3];
    const char *only = getenv("FUSEC_SEED");
    for (int k = 0; k < 3; k++)
        m[k] = (struct maker){.ctx = new_context(k == 1 ? FC_EAGER : FC_LAZY), .forces = k == 2};
    uint64_t first = only ? strtoull(only, NULL, 10) : 0, last = only ? first + 1 : PROGRAMS;
    for (uint64_t seed = first; seed < last; seed++) {
        int n[3];
        for (int k = 0; k < 3; k++)
            n[k] = run_program(&m[k], seed, out[k], 4 * MAX_COUNT);
        for (int k = 1; k < 3; k++) {
            cr_assert_eq(n[0], n[k], "seed %llu", (unsigned long long)seed);
            for (int i = 0; i < n[0]; i++)
                cr_assert(!memcmp(&out[0][i], &out[k][i], sizeof(float)) ||
                              (isnan(out[0][i]) && isnan(out[k][i])),
                          "seed %llu, float %d: lazy %.9g, %s %.9g", (unsigned long long)seed, i,
                          (double)out[0][i], k == 1 ? "eager" : "forced", (double)out[k][i]);
        }
    }
    for (int k = 0; k < 3; k++)
        fc_context_free(m[k].ctx);
}
