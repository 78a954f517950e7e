// accuracy.c: one op as compiled code, and what tests of accuracy measure it with.
#include "tests/support/accuracy.h"

#include "ir/text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct compiled
compiled_new(uint16_t op, uint8_t dtype)
{
    struct compiled c = {.dtype = dtype};
    struct diag d = {0};
    const char *t = dtype_name(dtype);
    bool pair = op_table[op].arity == 2;
    char text[200], second[32];
    snprintf(second, sizeof second, ", %%y: %s[%d]", t, BLOCK);
    snprintf(text, sizeof text, "graph @g(%%x: %s[%d]%s) {\n  return %s %%x%s\n}\n", t, BLOCK,
             pair ? second : "", op_name(op), pair ? ", %y" : "");
    struct graph *g = graph_parse(text, strlen(text), "accuracy", &d);
    cr_assert_not_null(g, "%s", d.text);
    c.dev = device_open("cpu", 1, 0, &d);
    cr_assert_not_null(c.dev, "%s", d.text);
    struct plan *p = plan_build(g, &c.dev->target, NULL, &d);
    cr_assert_not_null(p, "%s", d.text);
    graph_free(g);
    c.run = executable_new(p, c.dev, &d);
    cr_assert_not_null(c.run, "%s", d.text);
    for (uint32_t i = 0; i < 2; i++)
        c.in[i] = c.dev->ops->alloc(c.dev, BLOCK * (int64_t)sizeof(uint64_t));
    c.out = c.dev->ops->alloc(c.dev, BLOCK * (int64_t)sizeof(uint64_t));
    return c;
}

void
compiled_set(struct compiled *c, uint32_t operand, uint32_t i, uint64_t bits)
{
    if (c->dtype == DT_f32)
        ((uint32_t *)c->in[operand])[i] = (uint32_t)bits;
    else
        ((uint64_t *)c->in[operand])[i] = bits;
}

uint64_t
compiled_get(const struct compiled *c, uint32_t i)
{
    return c->dtype == DT_f32 ? ((const uint32_t *)c->out)[i] : ((const uint64_t *)c->out)[i];
}

void
compiled_run(struct compiled *c)
{
    struct diag d = {0};
    cr_assert(executable_run(c->run, c->in, &c->out, &d), "%s", d.text);
}

void
compiled_free(struct compiled *c)
{
    for (uint32_t i = 0; i < 2; i++)
        c->dev->ops->release(c->dev, c->in[i], BLOCK * (int64_t)sizeof(uint64_t));
    c->dev->ops->release(c->dev, c->out, BLOCK * (int64_t)sizeof(uint64_t));
    executable_unref(c->run);
    device_close(c->dev);
}

double
distance(uint8_t dtype, double got, long double want)
{
    int fraction = dtype == DT_f32 ? 24 : 53, least = dtype == DT_f32 ? -125 : -1021, exponent;
    double rounded = scalar_to_double(dtype, scalar_from_double(dtype, (double)want));
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
    if (isinf(got) || isinf(rounded))
        return got == rounded ? 0 : (double)INFINITY;
    if (!signbit(got) != !signbit(want))
        return (double)INFINITY;
    frexpl(want, &exponent);
    return (double)ldexpl(fabsl((long double)got - want),
                          fraction - (exponent < least ? least : exponent));
}

uint64_t
draw(uint64_t *state) // xorshift64*
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

uint64_t
draw_f64(uint64_t *state, uint32_t kind, double spread)
{
    uint64_t bits = draw(state);
    double unit = (double)(int64_t)bits * 0x1p-63;
    if (kind == 0)
        return bits;
    if (kind == 1)
        return scalar_from_double(DT_f64, unit * spread);
    return scalar_from_double(DT_f64, ldexp(unit, (int)(draw(state) % 24) - 16));
}
