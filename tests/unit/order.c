// order.c: the sorts of runtime/order_lines.c, as compiled for every processor and for wider
// vectors, against merging by comparison (order_items): all dtypes, lines of all lengths around the
// sizes at which they change their ways, data that sorts are bad at, lines side by side and apart.
#include "runtime/order.h"

#include "ir/base/mem.h"
#include "ir/dtype.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

typedef void order_fn(const struct order_call *c);

static uint32_t
variants(order_fn *fn[3])
{
    uint32_t n = 0;
    fn[n++] = order_lines_any;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
        fn[n++] = order_lines_v3;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        fn[n++] = order_lines_v4;
#endif
    return n;
}

static uint64_t state;
static uint64_t
random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

enum { RANDOM, FEW, RISING, FALLING, PIPE, SPECIAL, ALL_BUT_ONE, KINDS };

static uint64_t
value(uint8_t dtype, int kind, int64_t i, int64_t n)
{
    static const double some[8] = {0.0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN,
                                   1, -1, 2};
    bool number = !dtype_is_float(dtype);
    switch (kind) {
    case RANDOM: return random_bits();
    case FEW: return scalar_from_double(dtype, number ? (double)(random_bits() % 5)
                                                      : some[random_bits() % 2 * 5 + i % 3 % 2]);
    case RISING: return (uint64_t)i;
    case FALLING: return (uint64_t)(n - i);
    case PIPE: return (uint64_t)(i < n / 2 ? i : n - i);
    case SPECIAL: return number ? random_bits() % 2 * UINT64_MAX
                                : scalar_from_double(dtype, some[random_bits() % 8]);
    default: return i == n / 3;
    }
}

struct problem {
    uint8_t dtype;
    bool descending, values, positions, across;
    int kind;
    int64_t lines, n, k;
};

// Bit for bit, but for a NaN's.
static bool
same(uint8_t dtype, uint64_t a, uint64_t b)
{
    return a == b || (dtype_is_float(dtype) && isnan(scalar_to_double(dtype, a)) &&
                      isnan(scalar_to_double(dtype, b)));
}

static void
check_line(const struct problem *p, const struct order_call *c, int64_t line, uint32_t variant)
{
    const char *from = (const char *)c->from + line * c->from_line * dtype_size(p->dtype);
    struct order_item *item = xmalloc((size_t)p->n * sizeof *item);
    for (int64_t i = 0; i < p->n; i++)
        item[i] = (struct order_item){
            scalar_load(p->dtype, from + i * c->from_element * dtype_size(p->dtype)), i};
    order_items(item, p->n, p->dtype, p->descending);
    for (int64_t i = 0; i < p->k; i++) {
        const char *v = (const char *)c->value +
                        (line * c->value_line + i * c->value_element) * dtype_size(p->dtype);
        cr_assert(!p->values || same(p->dtype, scalar_load(p->dtype, v), item[i].bits),
                  "%s, data %d, %lld of %lld, descending %d, variant %u: line %lld, value %lld",
                  dtype_name(p->dtype), p->kind, (long long)p->k, (long long)p->n, p->descending,
                  variant, (long long)line, (long long)i);
        cr_assert(!p->positions ||
                      c->index[line * c->index_line + i * c->index_element] == item[i].position,
                  "%s, data %d, %lld of %lld, descending %d, variant %u: line %lld, position %lld",
                  dtype_name(p->dtype), p->kind, (long long)p->k, (long long)p->n, p->descending,
                  variant, (long long)line, (long long)i);
    }
    xfree(item);
}

static void
check(const struct problem *p)
{
    order_fn *fn[3];
    int64_t size = dtype_size(p->dtype), all = p->lines * p->n, out = p->lines * p->k;
    int64_t work = order_work_bytes(p->n, p->k, p->dtype, p->positions);
    char *from = xmalloc((size_t)(all * size) + 8), *values = xmalloc((size_t)(out * size) + 8);
    int64_t *positions = xmalloc((size_t)out * 8 + 8);
    char *raw = xmalloc((size_t)work + 192), *room = raw + (64 - (uintptr_t)raw % 64);
    for (int64_t i = 0; i < all; i++) {
        uint64_t bits = value(p->dtype, p->kind, i % p->n, p->n);
        memcpy(from + i * size, &bits, (size_t)size);
    }
    memset(room + work, 0x5a, 64);
    for (uint32_t v = 0, most = variants(fn); v < most; v++) {
        struct order_call c = {from, p->across ? 1 : p->n, p->across ? p->lines : 1,
                               p->values ? values : NULL, p->across ? 1 : p->k,
                               p->across ? p->lines : 1, p->positions ? positions : NULL,
                               p->across ? 1 : p->k, p->across ? p->lines : 1, room, p->lines,
                               p->n, p->k, p->dtype, p->descending};
        memset(values, 0xee, (size_t)(out * size));
        memset(positions, 0xee, (size_t)out * 8);
        fn[v](&c);
        for (int i = 0; i < 64; i++)
            cr_assert_eq(room[work + i], 0x5a, "wrote behind its room");
        for (int64_t i = 0; i < p->lines; i++)
            check_line(p, &c, i, v);
    }
    xfree(from);
    xfree(values);
    xfree(positions);
    xfree(raw);
}

typedef void split_fn(const struct order_split *c);

// The same line, undivided and in parts, by each variant.
static void
check_split(const struct problem *p, int64_t parts)
{
    split_fn *fn[3] = {order_split_any};
    order_fn *lines[3];
#if defined(__x86_64__)
    fn[1] = order_split_v3;
    fn[2] = order_split_v4;
#endif
    int64_t size = dtype_size(p->dtype), bytes;
    cr_assert(order_splits(p->n, p->k, p->dtype, p->positions));
    bytes = order_split_bytes(p->n, parts, p->dtype, p->positions);
    char *from = xmalloc((size_t)(p->n * size)), *values = xmalloc((size_t)(p->k * size));
    int64_t *positions = xmalloc((size_t)p->k * 8);
    char *raw = xmalloc((size_t)bytes + 192), *shared = raw + (64 - (uintptr_t)raw % 64);
    for (int64_t i = 0; i < p->n; i++) {
        uint64_t bits = value(p->dtype, p->kind, i, p->n);
        memcpy(from + i * size, &bits, (size_t)size);
    }
    memset(shared + bytes, 0x5a, 64);
    for (uint32_t v = 0, most = variants(lines); v < most; v++) {
        struct order_split c = {{from, p->n, 1, p->values ? values : NULL, p->k, 1,
                                 p->positions ? positions : NULL, p->k, 1, NULL, 1, p->n, p->k,
                                 p->dtype, p->descending}, shared, parts, 0, false};
        memset(values, 0xee, (size_t)(p->k * size));
        memset(positions, 0xee, (size_t)p->k * 8);
        for (c.second = 0; c.second < 2; c.second++)
            for (c.unit = parts; c.unit-- > 0;)
                fn[v](&c);
        for (int i = 0; i < 64; i++)
            cr_assert_eq(shared[bytes + i], 0x5a, "wrote behind its room");
        check_line(p, &c.call, 0, v);
    }
    xfree(from);
    xfree(values);
    xfree(positions);
    xfree(raw);
}

static void
sweep(const int64_t *n, uint32_t lengths, int64_t lines)
{
    for (uint8_t dtype = 1; dtype < DT_COUNT; dtype++)
        for (int kind = 0; kind < KINDS; kind++)
            for (uint32_t i = 0; i < lengths; i++) {
                uint64_t r = random_bits();
                struct problem p = {.dtype = dtype, .kind = kind, .lines = lines, .n = n[i],
                                    .descending = r & 1, .across = r >> 1 & 1,
                                    .values = (r >> 2) % 3 != 0, .positions = (r >> 2) % 3 != 1};
                int64_t some = (int64_t)((r >> 9) % (uint64_t)p.n), less = r >> 40 & 7 ? 9 : 1;
                p.k = r >> 8 & 1 ? p.n : 1 + some / less;
                check(&p);
            }
}

static void
seed(void)
{
    state = 88172645463325252u;
}

Test(order, short_lines_side_by_side, .init = seed)
{
    static const int64_t n[] = {1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 129, 255, 257, 513, 1000,
                                1025, 2048, 2049};
    sweep(n, sizeof n / sizeof *n, 19);
    sweep(n, sizeof n / sizeof *n, 6);
}

Test(order, lines_alone, .init = seed)
{
    static const int64_t n[] = {1, 2, 23, 24, 25, 127, 256, 300, 511, 513, 1030, 4096, 5000, 16384,
                                20000, 65536, 65537};
    sweep(n, sizeof n / sizeof *n, 1);
}

Test(order, one_long_line, .init = seed)
{
    static const uint8_t dtype[] = {DT_f32, DT_i32, DT_f64, DT_u8, DT_bf16};
    for (uint32_t i = 0; i < sizeof dtype; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct problem p = {.dtype = dtype[i], .kind = kind, .lines = 1, .n = 300001,
                                .k = i % 2 ? 300001 : 200000, .values = true,
                                .positions = kind & 1, .descending = kind & 2};
            check(&p);
        }
}

Test(order, a_divided_line, .init = seed)
{
    static const uint8_t dtype[] = {DT_f32, DT_i32, DT_f64, DT_u8, DT_bf16, DT_u64, DT_bool};
    for (uint32_t i = 0; i < sizeof dtype; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct problem p = {.dtype = dtype[i], .kind = kind, .lines = 1,
                                .n = kind == RANDOM ? 262144 : 131073 + 77 * kind, .values = true,
                                .positions = (kind + i) & 1 && dtype_size(dtype[i]) < 8,
                                .descending = kind & 2};
            p.k = i % 3 ? p.n : p.n / 2;
            check_split(&p, kind % 3 ? 8 : kind == 3 ? 64 : 5);
        }
}
