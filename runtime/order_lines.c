// order_lines.c: lines put in order: sort, argsort, topk and argtopk of ir/ops.def.
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
#ifdef __AVX512F__
#include <immintrin.h>
#endif

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, INSERT_MOST = 24 };
enum { PICK_CHUNK = 256, PICK_GROUP = 32 };
// Quicksort: of how few records always; of how many only where keys have more than 32 bits; how
// often parts may come out uneven.
enum { FEW = 256, MANY = 1 << 18, UNEVEN_MOST = 24 };

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
#undef KEY

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
    int64_t index_step;
    void *a, *b; // order_call.work: records, room for as many, and bits or positions
    void *rest;
};

static void
line_at(struct line *l, int64_t i)
{
    const struct order_call *c = l->call;
    int64_t size = l->coding.bits / 8;
    l->from = (const char *)c->from + i * c->from_line * size;
    l->value = c->value ? (char *)c->value + i * c->value_line * size : NULL;
    l->index = c->index ? c->index + i * c->index_line : NULL;
    l->index_step = c->index_element;
}

// ---- keys

// Keys of n elements from the first on, of up to 32 bits. See order_keys.h.
static bool
narrow_keys(const struct line *l, int64_t first, int64_t n, bool zeros, uint32_t *to)
{
    int64_t step = l->call->from_element;
    const char *from = l->from + first * step * (l->coding.bits / 8);
    switch (l->coding.bits) {
    case 8: return keys_8((const uint8_t *)from, step, n, &l->coding, zeros, to);
    case 16: return keys_16((const uint16_t *)from, step, n, &l->coding, zeros, to);
    default: return keys_32((const uint32_t *)from, step, n, &l->coding, zeros, to);
    }
}

// The same in 64 bits.
static bool
wide_keys(const struct line *l, int64_t first, int64_t n, bool zeros, uint64_t *to)
{
    int64_t step = l->call->from_element;
    if (l->coding.bits == 64)
        return keys_64((const uint64_t *)l->from + first * step, step, n, &l->coding, zeros, to);
    bool negative = false;
    for (int64_t i = 0; i < n; i++) {
        uint32_t key;
        negative |= narrow_keys(l, first + i, 1, zeros, &key);
        to[i] = key;
    }
    return negative;
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

// ---- records
//
// sort_*: n records of a by the bits [low, high) of their keys; they end in a or b, the result. Of
// u32 and u64 what is below those bits ascends already, or is part of the order. b is 64-byte
// aligned: tiles lie there.

#define RECORD uint32_t
#define RECORD_KEY(r) (r)
#define RECORD_NAME(name) name##_u32
#include "runtime/order_radix.h"
#ifdef __AVX512F__
#define LANES 16
#define LANES_INT int32_t
#define LANES_MASK __mmask16
#define LANES_NOT(mask) _knot_mask16(mask)
#define LANES_(op) op##_epi32
#define LANES_U(op) op##_epu32
#define LANES_MASKED(op) op##_epi32_mask
#define LANES_MASKED_U(op) op##_epu32_mask
#include "runtime/order_abreast.h"
#include "runtime/order_quick.h"
#undef LANES
#undef LANES_INT
#undef LANES_MASK
#undef LANES_NOT
#undef LANES_
#undef LANES_U
#undef LANES_MASKED
#undef LANES_MASKED_U
#endif
#include "runtime/order_spread.h"
#undef RECORD
#undef RECORD_KEY
#undef RECORD_NAME

static void
pick_keys_u64(const struct line *l, int64_t first, int64_t n, uint32_t *to)
{
    narrow_keys(l, first, n, true, to);
}

static void
pick_keys_pair(const struct line *l, int64_t first, int64_t n, uint64_t *to)
{
    wide_keys(l, first, n, true, to);
}

#define RECORD uint64_t
#define RECORD_KEY(r) (r)
#define RECORD_NAME(name) name##_u64
#include "runtime/order_radix.h"
#ifdef __AVX512F__
#define LANES 8
#define LANES_INT int64_t
#define LANES_MASK __mmask8
#define LANES_NOT(mask) _knot_mask8(mask)
#define LANES_(op) op##_epi64
#define LANES_U(op) op##_epu64
#define LANES_MASKED(op) op##_epi64_mask
#define LANES_MASKED_U(op) op##_epu64_mask
#include "runtime/order_abreast.h"
#include "runtime/order_quick.h"
#endif
#include "runtime/order_spread.h"
#define KEY uint32_t
#define RECORD_OF(key, position) ((uint64_t)(key) << 32 | (uint64_t)(position))
#define RECORD_BITS(bits) 32, 32 + (bits)
#define RECORD_KEY_ONLY(r) ((uint32_t)((r) >> 32))
#include "runtime/order_pick.h"
#undef RECORD
#undef RECORD_KEY
#undef RECORD_NAME
#undef KEY
#undef RECORD_OF
#undef RECORD_BITS
#undef RECORD_KEY_ONLY

#define RECORD struct pair
#define RECORD_KEY(r) (r).key
#define RECORD_NAME(name) name##_pair
#include "runtime/order_radix.h"
#define KEY uint64_t
#define RECORD_OF(key, position) ((struct pair){key, position})
#define RECORD_BITS(bits) 0, (bits)
#define RECORD_KEY_ONLY(r) (r).key
#include "runtime/order_pick.h"

static uint32_t *
sort_u32(uint32_t *a, uint32_t *b, int64_t n, uint32_t low, uint32_t high)
{
#ifdef __AVX512F__
    if (high - low > 16 || n <= FEW) {
        quick_u32(a, b, n);
        return a;
    }
#endif
    return radix_u32(a, b, n, low, high);
}

static uint64_t *
sort_u64(uint64_t *a, uint64_t *b, int64_t n, uint32_t low, uint32_t high)
{
#ifdef __AVX512F__
    if (high - low > (n > MANY ? 32 : 16) || n <= FEW) {
        quick_u64(a, b, n);
        return a;
    }
#endif
    return radix_u64(a, b, n, low, high);
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

// The signs of zeros among n keys, in their order; returns how many there are.
static int64_t
note_zeros(const struct line *l, const void *key, int64_t n, uint64_t *signs)
{
    uint64_t least = least_zero(&l->coding);
    int64_t zeros = 0;
    memset(signs, 0, (size_t)(n / 64 + 1) * 8);
    for (int64_t i = 0; i < n; i++) {
        uint64_t above = key_at(l, key, i) - least;
        if (above > 1)
            continue;
        signs[zeros / 64] |= above << (zeros % 64);
        zeros++;
    }
    return zeros;
}

// The first of n sorted keys that is a zero's, or behind where it would be.
static int64_t
first_zero(const struct line *l, const void *key, int64_t n)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (key_at(l, key, mid) < least_zero(&l->coding))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void
restore_zeros(const struct line *l, void *key, int64_t at, int64_t zeros, const uint64_t *signs)
{
    for (int64_t i = 0; i < zeros; i++) {
        uint64_t x = least_zero(&l->coding) + (signs[i / 64] >> (i % 64) & 1);
        if (l->coding.bits == 64)
            ((uint64_t *)key)[at + i] = x;
        else
            ((uint32_t *)key)[at + i] = (uint32_t)x;
    }
}

static void
take_values(const struct line *l)
{
    const struct order_call *c = l->call;
    int64_t step = c->from_element, by = l->index_step;
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

// ---- records of a line, and back

enum { CHUNK = 256 };

// Where positions are asked for they stand below the keys, and zeros are equal; else true is
// returned where there is a -0.
static bool
make_records(const struct line *l, enum order_record kind, int64_t first, int64_t n, void *to)
{
    if (!l->index)
        return kind == ORDER_U32 ? narrow_keys(l, first, n, false, to)
                                 : wide_keys(l, first, n, false, to);
    uint32_t shift = kind == ORDER_U32 ? 32 - l->coding.bits : 0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t m = min64(CHUNK, n - at), position = first + at;
        uint32_t key[CHUNK];
        uint64_t wide[CHUNK];
        if (kind == ORDER_PAIR)
            wide_keys(l, position, m, true, wide);
        else
            narrow_keys(l, position, m, true, key);
        for (int64_t i = 0; i < m && kind == ORDER_U32; i++)
            ((uint32_t *)to)[at + i] = key[i] << shift | (uint32_t)(position + i);
        for (int64_t i = 0; i < m && kind == ORDER_U64; i++)
            ((uint64_t *)to)[at + i] = (uint64_t)key[i] << 32 | (uint64_t)(position + i);
        for (int64_t i = 0; i < m && kind == ORDER_PAIR; i++)
            ((struct pair *)to)[at + i] = (struct pair){wide[i], position + i};
    }
    return false;
}

static void *
sort_records(const struct line *l, enum order_record kind, int64_t n)
{
    uint32_t bits = l->coding.bits;
    switch (kind) {
    case ORDER_U32:
        return l->index ? sort_u32(l->a, l->b, n, 32 - bits, 32) : sort_u32(l->a, l->b, n, 0, bits);
    case ORDER_U64:
        return l->index ? sort_u64(l->a, l->b, n, 32, 32 + bits) : sort_u64(l->a, l->b, n, 0, 64);
    case ORDER_PAIR: break;
    }
    return radix_pair(l->a, l->b, n, 0, bits);
}

static void
put_records(const struct line *l, enum order_record kind, const void *sorted)
{
    int64_t k = l->call->k, step = l->index_step;
    if (!l->index) {
        put_values(l, sorted);
        return;
    }
    uint32_t key = kind == ORDER_U32 ? UINT32_MAX << (32 - l->coding.bits) : 0;
    for (int64_t i = 0; i < k && kind == ORDER_U32; i++)
        l->index[i * step] = ((const uint32_t *)sorted)[i] & ~key;
    for (int64_t i = 0; i < k && kind == ORDER_U64; i++)
        l->index[i * step] = (int64_t)(((const uint64_t *)sorted)[i] & UINT32_MAX);
    for (int64_t i = 0; i < k && kind == ORDER_PAIR; i++)
        l->index[i * step] = ((const struct pair *)sorted)[i].position;
    if (l->value)
        take_values(l);
}

static void
order_whole(const struct line *l)
{
    enum order_record kind = order_record(l->call->n, (uint8_t)l->call->dtype, l->index);
    int64_t n = l->call->n, zeros = 0;
    if (make_records(l, kind, 0, n, l->a))
        zeros = note_zeros(l, l->a, n, l->rest);
    void *sorted = sort_records(l, kind, n);
    if (zeros)
        restore_zeros(l, sorted, first_zero(l, sorted, n), zeros, l->rest);
    put_records(l, kind, sorted);
}

static void
pick_best(const struct line *l)
{
    enum order_record kind = order_pick_record(l->call->n, (uint8_t)l->call->dtype);
    struct line positions = *l;
    if (!l->index) {
        positions.index = l->rest;
        positions.index_step = 1;
    }
    put_records(&positions, kind, kind == ORDER_U64 ? (const void *)pick_u64(l, l->a, l->b)
                                                    : (const void *)pick_pair(l, l->a, l->b));
}

#ifdef __AVX512F__
// Short lines, as many at once as vectors have lanes (order_abreast.h).
static void
order_abreast(struct line *l)
{
    const struct order_call *c = l->call;
    enum order_record kind = order_record(c->n, (uint8_t)c->dtype, c->index);
    int64_t lanes = kind == ORDER_U32 ? 16 : 8, bytes = order_abreast_rows(c->n) * 64 / lanes;
    for (int64_t first = 0; first < c->lines; first += lanes) {
        void *record[16];
        int64_t length[16];
        bool zeros[16] = {false};
        for (int64_t i = 0; i < lanes; i++) {
            record[i] = (char *)c->work + i * bytes;
            length[i] = first + i < c->lines ? c->n : 0;
            if (length[i]) {
                line_at(l, first + i);
                zeros[i] = make_records(l, kind, 0, c->n, record[i]);
            }
        }
        void *tile = (char *)c->work + lanes * bytes;
        if (kind == ORDER_U32)
            sort_abreast_u32((uint32_t *const *)record, length, c->n, tile);
        else
            sort_abreast_u64((uint64_t *const *)record, length, c->n, tile);
        for (int64_t i = 0; i < lanes; i++)
            if (length[i] && !zeros[i]) {
                line_at(l, first + i);
                put_records(l, kind, record[i]);
            }
        for (int64_t i = 0; i < lanes; i++)
            if (zeros[i]) { // rare, and the signs of zeros are not in the records
                line_at(l, first + i);
                order_whole(l);
            }
    }
}
#endif

// ---- one line, divided among threads

// Where a split line's memory has what.
struct split {
    struct line line;
    enum order_record kind;
    int64_t parts, chunk;    // also the number of buckets; elements of a part
    char *records, *gathered, *spare;
    int64_t *count;          // part p's records of bucket b: count[p * parts + b]
    int64_t *zeros, *negative; // of each part: zeros, and whether there is a -0
    uint64_t *signs;         // of each part's zeros
};

static struct split
split_of(const struct order_split *c)
{
    uint8_t dtype = (uint8_t)c->call.dtype;
    struct split s = {.kind = order_record(c->call.n, dtype, c->call.index), .parts = c->parts,
                      .chunk = order_split_chunk(c->call.n, c->parts)};
    int64_t bytes = order_split_records_bytes(c->call.n, c->parts, dtype, c->call.index);
    s.line = (struct line){.call = &c->call, .coding = coding_of(dtype, c->call.descending)};
    s.records = c->shared;
    s.gathered = s.records + bytes;
    s.spare = s.gathered + bytes;
    s.count = (int64_t *)(s.spare + bytes);
    s.zeros = s.count + s.parts * s.parts;
    s.negative = s.zeros + s.parts;
    s.signs = (uint64_t *)(s.negative + s.parts);
    line_at(&s.line, 0);
    return s;
}

static uint64_t *
signs_of(const struct split *s, int64_t part)
{
    return s->signs + part * (s->chunk / 64 + 1);
}

// The pivots between buckets, from a sample: the same for every part. Both zeros belong together.
static void
choose_pivots(const struct split *s, void *pivot)
{
    enum { EACH = 32 };
    uint64_t sample[EACH * ORDER_SPLIT_MOST];
    _Alignas(64) uint64_t room[EACH * ORDER_SPLIT_MOST];
    struct line l = s->line;
    int64_t n = l.call->n, m = EACH * s->parts;
    for (int64_t i = 0; i < m; i++) {
        wide_keys(&l, i * (n / m) + n / m / 2, 1, l.index, &sample[i]);
        if (!l.index && l.coding.inf && sample[i] == least_zero(&l.coding) + 1)
            sample[i]--;
    }
    const uint64_t *sorted = sort_u64(sample, room, m, 0, 64);
    for (int64_t i = 1; i < s->parts; i++) {
        uint64_t x = sorted[i * EACH];
        if (s->kind == ORDER_U32)
            ((uint32_t *)pivot)[i - 1] = (uint32_t)(l.index ? x << (32 - l.coding.bits) : x);
        else
            ((uint64_t *)pivot)[i - 1] = l.index ? x << 32 : x;
    }
}

static void
order_part(const struct order_split *c)
{
    struct split s = split_of(c);
    uint64_t pivot[ORDER_SPLIT_MOST];
    int64_t first = c->unit * s.chunk, n = min64(s.chunk, c->call.n - first);
    int64_t size = s.kind == ORDER_U32 ? 4 : 8, *count = s.count + c->unit * s.parts;
    char *a = s.records + first * size;
    s.zeros[c->unit] = s.negative[c->unit] = 0;
    if (n <= 0) {
        memset(count, 0, (size_t)s.parts * sizeof *count);
        return;
    }
    choose_pivots(&s, pivot);
    s.negative[c->unit] = make_records(&s.line, s.kind, first, n, a);
    if (!s.line.index && s.line.coding.inf)
        s.zeros[c->unit] = note_zeros(&s.line, a, n, signs_of(&s, c->unit));
    if (s.kind == ORDER_U32)
        spread_u32((uint32_t *)a, n, (uint32_t *)pivot, s.parts, count);
    else
        spread_u64((uint64_t *)a, n, pivot, s.parts, count);
}

// A bucket's records from all parts, one after the other; returns how many. *before: of all
// buckets before.
static int64_t
gather_bucket(const struct split *s, int64_t bucket, int64_t *before)
{
    int64_t size = s->kind == ORDER_U32 ? 4 : 8, n = 0;
    *before = 0;
    for (int64_t p = 0; p < s->parts; p++)
        for (int64_t b = 0; b < bucket; b++)
            *before += s->count[p * s->parts + b];
    for (int64_t p = 0; p < s->parts; p++) {
        int64_t at = p * s->chunk, m = s->count[p * s->parts + bucket];
        for (int64_t b = 0; b < bucket; b++)
            at += s->count[p * s->parts + b];
        memcpy(s->gathered + (*before + n) * size, s->records + at * size, (size_t)(m * size));
        n += m;
    }
    return n;
}

static void
order_bucket(const struct order_split *c)
{
    struct split s = split_of(c);
    struct order_call part = c->call;
    struct line *l = &s.line;
    int64_t before, n = gather_bucket(&s, c->unit, &before), size = s.kind == ORDER_U32 ? 4 : 8;
    if (!n || before >= part.k)
        return;
    l->a = s.gathered + before * size;
    l->b = s.spare + round_up((before + 16 * c->unit) * size, 64);
    uint32_t bits = l->index ? 32 : l->coding.bits; // spreading kept no order: positions count too
    void *sorted = s.kind == ORDER_U32 ? (void *)sort_u32(l->a, l->b, n, 0, bits)
                                       : (void *)sort_u64(l->a, l->b, n, 0, 64);
    bool negative = false;
    for (int64_t p = 0; p < s.parts; p++)
        negative |= s.negative[p] != 0;
    int64_t at = negative ? first_zero(l, sorted, n) : n;
    if (at < n && key_at(l, sorted, at) - least_zero(&l->coding) <= 1)
        for (int64_t p = 0; p < s.parts; at += s.zeros[p++])
            restore_zeros(l, sorted, at, s.zeros[p], signs_of(&s, p));
    part.k = min64(n, part.k - before);
    l->call = &part;
    if (l->value)
        l->value += before * part.value_element * (l->coding.bits / 8);
    if (l->index)
        l->index += before * part.index_element;
    put_records(l, s.kind, sorted);
}

#define ORDER_JOIN(a, b) a##b
#define ORDER_NAME(name, isa) ORDER_JOIN(name, isa)
void
ORDER_NAME(order_split_, ORDER_ISA)(const struct order_split *c)
{
    if (c->second)
        order_bucket(c);
    else
        order_part(c);
}

void
ORDER_NAME(order_lines_, ORDER_ISA)(const struct order_call *c)
{
    uint8_t dtype = (uint8_t)c->dtype;
    int64_t records = order_records_bytes(c->n, c->k, dtype, c->index);
    bool picks = order_picks(c->n, c->k);
    struct line l = {.call = c, .coding = coding_of(dtype, c->descending), .a = c->work,
                     .b = c->work + records, .rest = c->work + 2 * records};
    if (c->k <= 0)
        return;
#ifdef __AVX512F__
    if (!picks && order_fits_abreast(c->n, dtype, c->index) && c->lines > 4) {
        order_abreast(&l);
        return;
    }
#endif
    for (int64_t i = 0; i < c->lines; i++) {
        line_at(&l, i);
        if (picks)
            pick_best(&l);
        else
            order_whole(&l);
    }
}
