// order.h: what the order ops (sort, argsort, topk, argtopk) share: their attributes, the order
// that they mean, written down once for the interpreters, and how generated code asks for it.
//
// The order: numbers ascend, NaN comes after all of them; all NaNs are equal, and so are the zeros;
// equal elements keep their order. Descending is the same the other way round, but equal elements
// keep their order there too. The k best are the first k of it: the largest of the descending one.
#ifndef FUSEC_IR_ORDER_H
#define FUSEC_IR_ORDER_H

#include "ir/base/size.h"
#include "ir/dtype.h"
#include "ir/ops.h"

struct order {
    int64_t axis, k; // k: elements that are asked for; -1: all
    bool descending;
};
struct order order_of(uint16_t op, const int64_t *attr);

struct order_item {
    uint64_t bits; // a scalar of the dtype
    int64_t position;
};
bool order_less(uint8_t dtype, uint64_t x, uint64_t y); // x before y, ascending
// Puts items in order by plain merging; equal ones keep their order.
void order_items(struct order_item *item, int64_t n, uint8_t dtype, bool descending);

// What generated code hands to the function fusec_order (runtime/order.c): lines of n elements
// whose first k in order go to `value` and their positions, i64, to `index`; either may be NULL.
// Strides are in elements: from line to line and along a line. Results may not overlap what is
// read. All fields are 64 bits wide, so that code that knows their order knows their places.
struct order_call {
    const void *from;
    int64_t from_line, from_element;
    void *value;
    int64_t value_line, value_element;
    int64_t *index;
    int64_t index_line, index_element;
    char *work; // order_work_bytes(n, k, dtype, index), 64-byte aligned
    int64_t lines, n, k;
    int64_t dtype, descending;
};

// And to fusec_order_split, of one long line that threads divide: `unit` of `parts` spreads its
// part of the line over as many buckets by value; when all have, it sorts a bucket, and puts it
// where it belongs (second). call.lines is 1, call.work NULL.
struct order_split {
    struct order_call call;
    char *shared; // order_split_bytes, 64-byte aligned
    int64_t parts, unit, second;
};
enum { ORDER_CALL_WORDS = 15, ORDER_SPLIT_WORDS = ORDER_CALL_WORDS + 4 };
_Static_assert(sizeof(struct order_call) == 8 * ORDER_CALL_WORDS, "words only");
_Static_assert(sizeof(struct order_split) == 8 * ORDER_SPLIT_WORDS, "words only");

// A line is put in order as records: keys, unsigned integers of which the order is meant, and where
// positions are asked for a position below the key or, where both do not fit in 64 bits, beside it.
enum order_record { ORDER_U32, ORDER_U64, ORDER_PAIR };

static inline enum order_record
order_record(int64_t n, uint8_t dtype, bool index)
{
    uint32_t bits = dtype_size(dtype) * 8u;
    if (!index)
        return bits <= 32 ? ORDER_U32 : ORDER_U64;
    if (bits <= 16 && n <= (int64_t)1 << (32 - bits))
        return ORDER_U32;
    return bits <= 32 && n <= (int64_t)1 << 32 ? ORDER_U64 : ORDER_PAIR;
}

// Vectors of a tile in which short lines are sorted side by side: 16 times a power of two.
static inline int64_t
order_abreast_rows(int64_t n)
{
    int64_t rows = 16;
    while (rows < n)
        rows *= 2;
    return rows;
}

enum { ORDER_ABREAST = 2048 }; // elements, at most
static inline bool
order_fits_abreast(int64_t n, uint8_t dtype, bool index)
{
    return n <= ORDER_ABREAST && order_record(n, dtype, index) != ORDER_PAIR;
}

// Of much longer lines the k best are picked out on the way, among so many records at a time.
static inline bool
order_picks(int64_t n, int64_t k)
{
    return k <= n / 8;
}
static inline int64_t
order_pick_records(int64_t k)
{
    return 4 * k + 64;
}
static inline enum order_record
order_pick_record(int64_t n, uint8_t dtype)
{
    return order_record(n, dtype, true) == ORDER_PAIR ? ORDER_PAIR : ORDER_U64;
}

// Bytes of each of the two arrays of records that order_call.work begins with.
static inline int64_t
order_records_bytes(int64_t n, int64_t k, uint8_t dtype, bool index)
{
    if (order_picks(n, k))
        return round_up(order_pick_records(k) << (2 + order_pick_record(n, dtype)), 64);
    return round_up(n << (2 + order_record(n, dtype, index)), 64);
}

// Behind them: the k positions, or a bit for each element. Short lines are sorted side by side, in
// a vector of 64 bytes an element, between lines and a tile.
static inline int64_t
order_work_bytes(int64_t n, int64_t k, uint8_t dtype, bool index)
{
    int64_t rest = order_picks(n, k) ? 8 * k : n / 8 + 1;
    int64_t bytes = 2 * order_records_bytes(n, k, dtype, index) + round_up(rest, 64);
    bool abreast = !order_picks(n, k) && order_fits_abreast(n, dtype, index);
    return abreast ? max64(bytes, 2 * 64 * order_abreast_rows(n)) : bytes;
}

// A line is worth dividing, and can be (not pairs: equal ones would not keep their order).
enum { ORDER_SPLIT_LEAST = 1 << 17, ORDER_SPLIT_MOST = 64 }; // elements; parts
static inline bool
order_splits(int64_t n, int64_t k, uint8_t dtype, bool index)
{
    return n >= ORDER_SPLIT_LEAST && !order_picks(n, k) &&
           order_record(n, dtype, index) != ORDER_PAIR;
}
static inline int64_t
order_split_chunk(int64_t n, int64_t parts)
{
    return round_up(ceil_div(n, parts), 64);
}
static inline int64_t
order_split_records_bytes(int64_t n, int64_t parts, uint8_t dtype, bool index)
{
    return round_up((n + 16 * parts + 16) << (2 + order_record(n, dtype, index)), 64);
}
// Records as spread, as gathered, and room; counts; the signs of zeros.
static inline int64_t
order_split_bytes(int64_t n, int64_t parts, uint8_t dtype, bool index)
{
    int64_t signs = parts * (order_split_chunk(n, parts) / 64 + 1);
    return 3 * order_split_records_bytes(n, parts, dtype, index) +
           8 * (parts * parts + 2 * parts + signs);
}

#endif
