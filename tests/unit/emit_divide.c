// emit_divide.c: rows of f32 over one number each, which generated code divides by multiplication:
// quotients next to midpoints, and all that is too large, too small or no number.
#include "emit_run.h"

#include <stdlib.h>

enum { ROWS = 1024, COLUMNS = 200 };

static float
from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Row i's divisor: the corners first, then any mantissa at exponents that fit, then anything.
static float
divisor(uint32_t i)
{
    static const float corners[] = {0.0f,       -0.0f,       1.0f,         -1.0f,     3.0f,
                                    -3.0f,      INFINITY,    -INFINITY,    NAN,       0x1p-149f,
                                    0x1p-126f,  0x1p-27f,    0x1.fffffep-28f, 0x1p27f,
                                    0x1.000002p27f, 0x1.fffffep127f, 0x1.fffffep0f, 0x1.000002p0f};
    enum { CORNERS = sizeof corners / sizeof *corners };
    uint64_t state = i, r = test_random(&state);
    if (i < CORNERS)
        return corners[i];
    if (i % 8 == 0)
        return from_bits((uint32_t)r);
    return from_bits((uint32_t)(100 + r % 54) << 23 | (uint32_t)(r >> 40 & 0x7fffff));
}

// A dividend whose quotient lies near the middle between two floats, of any size.
static float
dividend(float b, uint64_t r)
{
    double middle = 1.0 + ((double)(r & 0x7fffff) + 0.5) * 0x1p-23;
    float a = (float)((double)b * middle);
    int32_t step = (int32_t)(r >> 23 & 3) - 1;
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    a = from_bits(bits + (uint32_t)step);
    return ldexpf(a, (int)(r >> 25 & 255) - 128);
}

static void
fill(const struct kernel *k, uint32_t b, char *at, int64_t n, uint64_t *seed)
{
    (void)k;
    for (int64_t i = 0; i < n; i++) {
        uint32_t row = (uint32_t)(b ? i : i / COLUMNS);
        uint64_t r = test_random(seed);
        float x = divisor(row);
        if (!b && row % 4 == 0 && (r >> 50) % 5 == 0)
            x = from_bits((uint32_t)test_scalar(seed, DT_f32));
        else if (!b)
            x = dividend(x, r);
        memcpy(at + i * 4, &x, sizeof x);
    }
}

static void
check(const struct target *t, bool literal)
{
    struct kernel k;
    int64_t dense[MAX_AXES];
    kb_begin(&k, (int64_t[]){ROWS, COLUMNS}, 2, 0);
    kb_dense(&k, dense);
    uint32_t a = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, dense);
    uint32_t b = kb_access(&k, kb_buffer(&k, DT_f32, BUF_IN), 0, (int64_t[]){1, 0});
    uint32_t to = kb_access(&k, kb_buffer(&k, DT_f32, BUF_OUT), 0, dense);
    uint32_t x = kb_load(&k, a, 0), y = kb_load(&k, b, 0);
    if (literal) // and the other way round: nothing to gain
        y = kb_op(&k, OP_div, 0, y, kb_op(&k, OP_div, 0, x, kb_literal(&k, DT_f32, 7.3), 0), 0);
    kb_store(&k, kb_op(&k, OP_div, 0, x, y, 0), to);
    struct run_options o = {.target = *t, .seed = 7, .what = "division", .fill = fill};
    struct schedule s;
    uint8_t why = 0;
    cr_assert(schedule_pointwise(&k, t, &s, &why));
    run_scheduled(&k, &s, &o);
    kernel_free_body(&k);
}

Test(emit_divide, host)
{
    struct target t = host_target();
    check(&t, false);
    check(&t, true);
}

Test(emit_divide, narrow_vectors)
{
    struct target t = plain_target(true);
    check(&t, false);
}

Test(emit_divide, without_fused_multiply_add)
{
    struct target t = plain_target(false);
    check(&t, false);
}

// What the rule rests on: three roundings give the quotient for all a whose quotient by b lies
// within a few units of a midpoint. a 2^k - b m = c with odd m is solved for a; FUSEC_SWEEP_STEP=1
// takes all mantissas b.
static float
by_inverse(float a, float b, float y)
{
    float q = a * y;
    return fmaf(-fmaf(b, q, -a), y, q);
}

static void
check_midpoints(uint64_t b, int k, int64_t c)
{
    int twos = __builtin_ctzll(b), left = k - twos;
    if (c % ((int64_t)1 << twos))
        return;
    uint64_t odd = b >> twos, inverse = odd, one = (uint64_t)1 << left;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    c /= (int64_t)1 << twos;
    for (uint64_t m = (uint64_t)-c * inverse & (one - 1); m < 1u << 25; m += one) {
        uint64_t a = ((uint64_t)c + odd * m) >> left;
        if (!(m & 1) || m < 1u << 24 || a < 1u << 23 || a >= 1u << 24)
            continue;
        float y = 1.0f / (float)b;
        cr_assert_eq(by_inverse((float)a, (float)b, y), (float)a / (float)b, "%lu / %lu",
                     (unsigned long)a, (unsigned long)b);
    }
}

Test(emit_divide, three_roundings)
{
    const char *step = getenv("FUSEC_SWEEP_STEP");
    uint64_t by = step ? strtoull(step, NULL, 10) : 4099;
    for (uint64_t b = 1 << 23; b < 1 << 24; b += by ? by : 1)
        for (int64_t c = -8; c <= 8; c++)
            for (int k = 24; c && k <= 25; k++)
                check_midpoints(b, k, c);
}
