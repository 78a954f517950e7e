// order.c: lines put in order: sort, argsort, topk and argtopk of ir/ops.def, for generated code.
//
// Elements become keys, unsigned integers of which the order is the one meant: the sign bit of
// signed integers is turned; floats, whose bits are a sign and a size, have all bits of negative
// ones turned and the sign bit of the others; every NaN becomes the one that comes after +infinity;
// descending, all bits are turned once more. Then integers are sorted.
//
// Where positions are asked for, an element's position stands below its key in the same record (or
// beside it, where both have no room in 64 bits), so equal keys keep their order by themselves, and
// -0 has the key of +0. Where only values are asked for a record is a key, and any way of sorting
// will do, but for zeros: their keys differ, so the line of zeros comes out with all -0 first. When
// there is a -0 the signs of zeros are noted beforehand, in order, and put back. So values come out
// as if taken at the positions, bit for bit.
#include "runtime/order.h"

#include "ir/base/check.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, INSERT_MOST = 24 };

// How the elements of a dtype become keys; see the top.
struct coding {
    uint64_t sign, inf, nan; // sign: the bit, or 0; inf: of floats, else 0
    uint64_t turn;           // all bits when descending
    uint32_t bits;
    bool is_bool;
};

struct pair {
    uint64_t key;
    int64_t position;
};

#define ELEMENT uint8_t
#define KEY uint32_t
#define ELEMENT_NAME(name) name##_8
#include "runtime/order_keys.h"
#undef ELEMENT
#undef ELEMENT_NAME
#define ELEMENT uint16_t
#define ELEMENT_NAME(name) name##_16
#include "runtime/order_keys.h"
#undef ELEMENT
#undef ELEMENT_NAME
#define ELEMENT uint32_t
#define ELEMENT_NAME(name) name##_32
#include "runtime/order_keys.h"
#undef ELEMENT
#undef ELEMENT_NAME
#undef KEY
#define ELEMENT uint64_t
#define KEY uint64_t
#define ELEMENT_NAME(name) name##_64
#include "runtime/order_keys.h"

#define RECORD uint32_t
#define RECORD_KEY(r) (r)
#define RECORD_NAME(name) name##_u32
#include "runtime/order_radix.h"
#undef RECORD
#undef RECORD_KEY
#undef RECORD_NAME
#define RECORD uint64_t
#define RECORD_KEY(r) (r)
#define RECORD_NAME(name) name##_u64
#include "runtime/order_radix.h"
#undef RECORD
#undef RECORD_KEY
#undef RECORD_NAME
#define RECORD struct pair
#define RECORD_KEY(r) (r).key
#define RECORD_NAME(name) name##_pair
#include "runtime/order_radix.h"

static struct coding
coding_of(uint8_t dtype, bool descending)
{
    struct coding c = {.bits = dtype_size(dtype) * 8u, .is_bool = dtype == DT_bool};
    uint8_t kind = dtype_table[dtype].kind;
    if (kind == DTK_FLOAT || kind == DTK_SINT)
        c.sign = (uint64_t)1 << (c.bits - 1);
    if (kind == DTK_FLOAT) {
        c.inf = scalar_from_double(dtype, (double)INFINITY);
        c.nan = c.inf | (c.inf & (0 - c.inf)) >> 1;
    }
    c.turn = descending ? UINT64_MAX : 0;
    return c;
}

// A line on its way.
struct line {
    const struct order_call *call;
    struct coding coding;
    const char *from;
    char *value;
    int64_t *index;
    void *a, *b;     // order_call.work: records, room for as many, and bits
    uint64_t *signs;
};

// ---- keys

// Keys of up to 32 bits.
static bool
narrow_keys(const struct line *l, bool zeros, uint32_t *to)
{
    int64_t n = l->call->n, step = l->call->from_element;
    switch (l->coding.bits) {
    case 8: return keys_8((const uint8_t *)l->from, step, n, &l->coding, zeros, to);
    case 16: return keys_16((const uint16_t *)l->from, step, n, &l->coding, zeros, to);
    default: return keys_32((const uint32_t *)l->from, step, n, &l->coding, zeros, to);
    }
}

static void
put_values(const struct line *l, const void *key)
{
    int64_t k = l->call->k, step = l->call->value_element;
    switch (l->coding.bits) {
    case 8: elements_8(key, k, &l->coding, (uint8_t *)l->value, step); return;
    case 16: elements_16(key, k, &l->coding, (uint16_t *)l->value, step); return;
    case 32: elements_32(key, k, &l->coding, (uint32_t *)l->value, step); return;
    default: elements_64(key, k, &l->coding, (uint64_t *)l->value, step); return;
    }
}

// ---- values only

// Keys of -0 and +0 are `least` and the next one, whichever comes first.
static uint64_t
least_zero(const struct coding *c)
{
    return ((uint64_t)1 << (c->bits - 1)) - 1;
}

static uint64_t
key_at(const struct line *l, const void *key, int64_t i)
{
    return l->coding.bits == 64 ? ((const uint64_t *)key)[i] : ((const uint32_t *)key)[i];
}

// The signs of zeros in the order of the line.
static void
note_zeros(const struct line *l, const void *key)
{
    uint64_t least = least_zero(&l->coding);
    int64_t zeros = 0;
    memset(l->signs, 0, (size_t)round_up(l->call->n / 8 + 1, 64));
    for (int64_t i = 0; i < l->call->n; i++) {
        uint64_t above = key_at(l, key, i) - least;
        if (above > 1)
            continue;
        l->signs[zeros / 64] |= above << (zeros % 64);
        zeros++;
    }
}

static void
restore_zeros(const struct line *l, void *key)
{
    uint64_t least = least_zero(&l->coding);
    int64_t low = 0, high = l->call->n;
    while (low < high) { // the first that is not below
        int64_t mid = low + (high - low) / 2;
        if (key_at(l, key, mid) < least)
            low = mid + 1;
        else
            high = mid;
    }
    for (int64_t i = low; i < l->call->n && key_at(l, key, i) - least <= 1; i++) {
        uint64_t x = least + (l->signs[(i - low) / 64] >> ((i - low) % 64) & 1);
        if (l->coding.bits == 64)
            ((uint64_t *)key)[i] = x;
        else
            ((uint32_t *)key)[i] = (uint32_t)x;
    }
}

static void
order_values(const struct line *l)
{
    bool wide = l->coding.bits == 64;
    int64_t n = l->call->n;
    bool zeros = wide ? keys_64((const uint64_t *)l->from, l->call->from_element, n, &l->coding,
                                false, l->a)
                      : narrow_keys(l, false, l->a);
    if (zeros)
        note_zeros(l, l->a);
    void *sorted = wide ? (void *)radix_u64(l->a, l->b, n, 0, 64)
                        : (void *)radix_u32(l->a, l->b, n, 0, l->coding.bits);
    if (zeros)
        restore_zeros(l, sorted);
    put_values(l, sorted);
}

// ---- positions

// Elements of up to 16 bits in short lines: key and position in 32 bits.
static void
positions_u32(const struct line *l)
{
    uint32_t shift = 32 - l->coding.bits, *a = l->a;
    int64_t n = l->call->n, step = l->call->index_element;
    narrow_keys(l, true, a);
    for (int64_t i = 0; i < n; i++)
        a[i] = a[i] << shift | (uint32_t)i;
    const uint32_t *sorted = radix_u32(a, l->b, n, shift, 32);
    for (int64_t i = 0; i < l->call->k; i++)
        l->index[i * step] = sorted[i] & (((uint32_t)1 << shift) - 1);
}

static void
positions_u64(const struct line *l)
{
    uint64_t *a = l->a;
    const uint32_t *key = l->b;
    int64_t n = l->call->n, step = l->call->index_element;
    narrow_keys(l, true, l->b);
    for (int64_t i = 0; i < n; i++)
        a[i] = (uint64_t)key[i] << 32 | (uint64_t)i;
    const uint64_t *sorted = radix_u64(a, l->b, n, 32, 32 + l->coding.bits);
    for (int64_t i = 0; i < l->call->k; i++)
        l->index[i * step] = (int64_t)(sorted[i] & UINT32_MAX);
}

static void
positions_pair(const struct line *l)
{
    struct pair *a = l->a;
    bool wide = l->coding.bits == 64;
    int64_t n = l->call->n, step = l->call->index_element;
    if (wide)
        keys_64((const uint64_t *)l->from, l->call->from_element, n, &l->coding, true, l->b);
    else
        narrow_keys(l, true, l->b);
    for (int64_t i = 0; i < n; i++)
        a[i] = (struct pair){key_at(l, l->b, i), i};
    const struct pair *sorted = radix_pair(a, l->b, n, 0, l->coding.bits);
    for (int64_t i = 0; i < l->call->k; i++)
        l->index[i * step] = sorted[i].position;
}

static void
take_values(const struct line *l)
{
    const struct order_call *c = l->call;
    int64_t step = c->from_element, by = c->index_element;
    switch (l->coding.bits) {
    case 8:
        take_8((const uint8_t *)l->from, step, l->index, by, c->k, &l->coding,
               (uint8_t *)l->value, c->value_element);
        return;
    case 16:
        take_16((const uint16_t *)l->from, step, l->index, by, c->k, &l->coding,
                (uint16_t *)l->value, c->value_element);
        return;
    case 32:
        take_32((const uint32_t *)l->from, step, l->index, by, c->k, &l->coding,
                (uint32_t *)l->value, c->value_element);
        return;
    default:
        take_64((const uint64_t *)l->from, step, l->index, by, c->k, &l->coding,
                (uint64_t *)l->value, c->value_element);
        return;
    }
}

static void
order_line(const struct line *l)
{
    if (!l->index) {
        order_values(l);
        return;
    }
    switch (order_record(l->call->n, (uint8_t)l->call->dtype, true)) {
    case ORDER_U32: positions_u32(l); break;
    case ORDER_U64: positions_u64(l); break;
    case ORDER_PAIR: positions_pair(l); break;
    }
    if (l->value)
        take_values(l);
}

void
fusec_order(const struct order_call *c)
{
    uint8_t dtype = (uint8_t)c->dtype;
    int64_t size = dtype_size(dtype);
    int64_t records = round_up(c->n << (2 + order_record(c->n, dtype, c->index)), 64);
    struct line l = {.call = c, .coding = coding_of(dtype, c->descending), .a = c->work,
                     .b = c->work + records, .signs = (uint64_t *)(c->work + 2 * records)};
    for (int64_t i = 0; i < c->lines; i++) {
        l.from = (const char *)c->from + i * c->from_line * size;
        l.value = c->value ? (char *)c->value + i * c->value_line * size : NULL;
        l.index = c->index ? c->index + i * c->index_line : NULL;
        order_line(&l);
    }
}
