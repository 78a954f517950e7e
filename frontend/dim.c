// dim.c: public dims. A number below 2^62 is itself; a symbolic dim is an expression's number in
// its context's table, tagged, with the context's number above it, so that dims of another context
// are refused. A name keeps one symbol per value it has had: tensors made under an earlier value
// stay what they are.
#include "frontend/context.h"

#include <stdio.h>
#include <string.h>

enum { EXPR_BITS = 32 };
#define DIM_INVALID INT64_MIN
_Static_assert(64 - CONTEXT_SHIFT + EXPR_BITS <= 62, "a symbolic dim holds its context's number");

bool
fc_dim_valid(fc_dim d)
{
    return d.v != DIM_INVALID;
}

static fc_context *
dim_context(fc_dim d)
{
    return context_of((fc_tensor){(uint64_t)(d.v - SYM_TAG) >> EXPR_BITS << CONTEXT_SHIFT});
}

bool
dim_to_sym(const fc_context *ctx, fc_dim d, sym *out)
{
    if (d.v < SYM_TAG) {
        *out = sym_num(d.v);
        return d.v != DIM_INVALID;
    }
    if ((uint64_t)(d.v - SYM_TAG) >> EXPR_BITS != ctx->id)
        return false;
    *out = (sym){SYM_TAG + (d.v & (((int64_t)1 << EXPR_BITS) - 1))};
    return true;
}

fc_dim
dim_from_sym(const fc_context *ctx, sym s)
{
    if (sym_is_num(s))
        return (fc_dim){s.v};
    return (fc_dim){SYM_TAG + ((int64_t)ctx->id << EXPR_BITS) + (s.v - SYM_TAG)};
}

static bool
is_identifier(const char *s)
{
    size_t n = s ? strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") : 0;
    return n && n < 64 && !s[n] && (*s < '0' || *s > '9');
}

static sym
named(fc_context *ctx, const char *name, int64_t value)
{
    bool first = true;
    for (uint32_t i = 0; i < ctx->dims.n; i++) {
        struct dim_name *d = &ctx->dims.at[i];
        if (strcmp(d->name, name))
            continue;
        if (d->value == value)
            return d->sym;
        first = false;
    }
    char unique[128];
    int n = first ? snprintf(unique, sizeof unique, "%s", name)
                  : snprintf(unique, sizeof unique, "%s_%lld", name, (long long)value);
    struct dim_name d = {arena_strdup(&ctx->mem, name), value, sym_named(ctx->sym, unique, value)};
    while (sym_hint(ctx->sym, d.sym) != value && n + 1 < (int)sizeof unique) {
        unique[n++] = '_'; // a symbol that the user named so
        unique[n] = 0;
        d.sym = sym_named(ctx->sym, unique, value);
    }
    vec_push(&ctx->dims, d);
    return d.sym;
}

fc_dim
fc_dim_named(fc_context *ctx, const char *name, int64_t value)
{
    fc_dim d = {DIM_INVALID};
    if (!ctx)
        return d;
    context_lock(ctx);
    if (is_identifier(name) && value >= 0 && value < SYM_TAG)
        d = dim_from_sym(ctx, named(ctx, name, value));
    else
        context_fail(ctx, NULL, 0, FC_INVALID,
                     "fc_dim_named: takes an identifier and a size, got '%s' and %lld",
                     name ? name : "", (long long)value);
    context_unlock(ctx);
    return d;
}

static fc_dim
combine(fc_dim a, fc_dim b, sym (*fn)(struct symtab *, sym, sym))
{
    fc_dim d = {DIM_INVALID};
    if (!fc_dim_valid(a) || !fc_dim_valid(b))
        return d;
    if (a.v < SYM_TAG && b.v < SYM_TAG) {
        sym s = fn(NULL, sym_num(a.v), sym_num(b.v));
        return s.v < SYM_HUGE ? (fc_dim){s.v} : d;
    }
    fc_context *ctx = dim_context(a.v < SYM_TAG ? b : a);
    if (!ctx)
        return d;
    context_lock(ctx);
    sym x, y;
    if (dim_to_sym(ctx, a, &x) && dim_to_sym(ctx, b, &y)) {
        sym s = fn(ctx->sym, x, y);
        if (!sym_is_num(s) || s.v != SYM_HUGE)
            d = dim_from_sym(ctx, s);
    }
    context_unlock(ctx);
    return d;
}

fc_dim
fc_dim_add(fc_dim a, fc_dim b)
{
    return combine(a, b, sym_add);
}

fc_dim
fc_dim_mul(fc_dim a, fc_dim b)
{
    return combine(a, b, sym_mul);
}

int64_t
fc_dim_value(fc_dim d)
{
    if (!fc_dim_valid(d))
        return -1;
    if (d.v < SYM_TAG)
        return d.v;
    fc_context *ctx = dim_context(d);
    if (!ctx)
        return -1;
    context_lock(ctx);
    sym s;
    int64_t value = dim_to_sym(ctx, d, &s) ? sym_hint(ctx->sym, s) : -1;
    context_unlock(ctx);
    return value;
}
