// order_quick.h: quicksort of records that are unsigned integers, in AVX-512 vectors of them. The
// includer defines RECORD and RECORD_NAME as for order_radix.h, which comes first, and
//   LANES                 of a vector; LANES_INT: the signed integer as wide as one
//   LANES_(op)            the intrinsic `op` for such lanes: op##_epi32
//   LANES_U(op)           the same, unsigned: op##_epu32
//   LANES_MASKED(op), LANES_MASKED_U(op)  those that give a mask: op##_epi32_mask, op##_epu32_mask
//   LANES_MASK            the type of masks; LANES_NOT(mask)
//
// A vector is compared with the pivot, its lanes are ordered into those below it and the others,
// and it is stored whole at both ends of what is free: so much of it counts as belongs there, the
// rest is overwritten by what comes. What is read is taken from the end with less room before it;
// four vectors at a time, as that choice is a guess for the processor. A part of at most 16 vectors
// is sorted in registers, by a bitonic network (Batcher 1968). The pivot is the median of a sample;
// parts that come out uneven again and again are left to the radix sort. (Bramas, "A novel hybrid
// quicksort algorithm vectorized using AVX-512", 2017.)

enum { RECORD_NAME(SMALL) = 16 * LANES, RECORD_NAME(AT_ONCE) = 8 };
enum { RECORD_NAME(LEAF) = 1024 };

static inline __m512i
RECORD_NAME(lane_numbers)(void)
{
    RECORD n[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        n[i] = i;
    return _mm512_loadu_si512(n);
}

// Lane i and lane i ^ apart: the lesser one into the lane whose number has no bit `upper`.
static inline __m512i
RECORD_NAME(exchange)(__m512i v, RECORD apart, RECORD upper)
{
    __m512i lane = RECORD_NAME(lane_numbers)();
    __m512i other = LANES_(_mm512_permutexvar)(
        _mm512_xor_si512(lane, LANES_(_mm512_set1)((LANES_INT)apart)), v);
    LANES_MASK takes_max = LANES_MASKED(_mm512_test)(lane, LANES_(_mm512_set1)((LANES_INT)upper));
    return LANES_U(_mm512_mask_max)(LANES_U(_mm512_min)(v, other), takes_max, v, other);
}

static inline __m512i
RECORD_NAME(merge_lanes)(__m512i v)
{
#pragma GCC unroll 4
    for (RECORD d = LANES / 2; d; d /= 2)
        v = RECORD_NAME(exchange)(v, d, d);
    return v;
}

static inline __m512i
RECORD_NAME(sort_lanes)(__m512i v)
{
#pragma GCC unroll 4
    for (RECORD run = 2; run <= LANES; run *= 2) {
        v = RECORD_NAME(exchange)(v, run - 1, run / 2);
#pragma GCC unroll 4
        for (RECORD d = run / 4; d; d /= 2)
            v = RECORD_NAME(exchange)(v, d, d);
    }
    return v;
}

// Two sorted runs of n vectors each become one.
static inline __attribute__((always_inline)) void
RECORD_NAME(merge_vectors)(__m512i *v, uint32_t n)
{
    __m512i back = _mm512_xor_si512(RECORD_NAME(lane_numbers)(), LANES_(_mm512_set1)(LANES - 1));
#pragma GCC unroll 16
    for (uint32_t i = 0; i < n; i++) {
        v[2 * n - 1 - i] = LANES_(_mm512_permutexvar)(back, v[2 * n - 1 - i]);
        RECORD_NAME(exchange_vectors)(&v[i], &v[2 * n - 1 - i]);
    }
#pragma GCC unroll 4
    for (uint32_t d = n / 2; d; d /= 2)
#pragma GCC unroll 16
        for (uint32_t i = 0; i < 2 * n; i++)
            if (!(i & d))
                RECORD_NAME(exchange_vectors)(&v[i], &v[i + d]);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < 2 * n; i++)
        v[i] = RECORD_NAME(merge_lanes)(v[i]);
}

// n records in `vectors` registers, a power of two; what is missing counts as the greatest.
static inline __attribute__((always_inline)) void
RECORD_NAME(sort_registers)(RECORD *a, int64_t n, uint32_t vectors)
{
    __m512i v[16];
    LANES_MASK mask[16];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < vectors; i++) {
        int64_t left = n - (int64_t)i * LANES;
        uint32_t lanes = left >= LANES ? ~0u : left > 0 ? (1u << left) - 1 : 0;
        mask[i] = (LANES_MASK)lanes;
        v[i] = LANES_(_mm512_mask_loadu)(_mm512_set1_epi32(-1), mask[i], a + i * LANES);
        v[i] = RECORD_NAME(sort_lanes)(v[i]);
    }
#pragma GCC unroll 4
    for (uint32_t run = 1; run < vectors; run *= 2)
#pragma GCC unroll 8
        for (uint32_t at = 0; at < vectors; at += 2 * run)
            RECORD_NAME(merge_vectors)(v + at, run);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < vectors; i++)
        LANES_(_mm512_mask_storeu)(a + i * LANES, mask[i], v[i]);
}

static void
RECORD_NAME(small)(RECORD *a, int64_t n)
{
    if (n <= LANES)
        RECORD_NAME(sort_registers)(a, n, 1);
    else if (n <= 2 * LANES)
        RECORD_NAME(sort_registers)(a, n, 2);
    else if (n <= 4 * LANES)
        RECORD_NAME(sort_registers)(a, n, 4);
    else if (n <= 8 * LANES)
        RECORD_NAME(sort_registers)(a, n, 8);
    else
        RECORD_NAME(sort_registers)(a, n, 16);
}

// ---- partition

struct RECORD_NAME(parts) {
    RECORD *a;
    __m512i pivot;
    int64_t low, high; // free from, and up to
    bool equal_too;    // what equals the pivot goes below
};

static inline __attribute__((always_inline)) LANES_MASK
RECORD_NAME(below)(const struct RECORD_NAME(parts) *p, __m512i v)
{
    return p->equal_too ? LANES_MASKED_U(_mm512_cmple)(v, p->pivot)
                        : LANES_MASKED_U(_mm512_cmplt)(v, p->pivot);
}

// A whole vector, where there is room for two.
static inline __attribute__((always_inline)) void
RECORD_NAME(put)(struct RECORD_NAME(parts) *p, __m512i v)
{
    LANES_MASK below = RECORD_NAME(below)(p, v);
    uint32_t n = (uint32_t)__builtin_popcount(below);
    __m512i first = LANES_(_mm512_maskz_compress)(below, v);
    __m512i last = LANES_(_mm512_maskz_compress)(LANES_NOT(below), v);
    __m512i both = LANES_(_mm512_mask_expand)(first, (LANES_MASK)(0xffffu << n), last);
    _mm512_storeu_si512(p->a + p->low, both);
    _mm512_storeu_si512(p->a + p->high - LANES, both);
    p->low += n;
    p->high -= LANES - n;
}

// Lanes of a vector, where there is room for them only.
static inline __attribute__((always_inline)) void
RECORD_NAME(put_some)(struct RECORD_NAME(parts) *p, __m512i v, LANES_MASK lanes)
{
    LANES_MASK below = RECORD_NAME(below)(p, v) & lanes, above = (LANES_MASK)(~below & lanes);
    uint32_t n = (uint32_t)__builtin_popcount(below), m = (uint32_t)__builtin_popcount(above);
    p->high -= m;
    LANES_(_mm512_mask_storeu)(p->a + p->low, (LANES_MASK)((1u << n) - 1),
                               LANES_(_mm512_maskz_compress)(below, v));
    LANES_(_mm512_mask_storeu)(p->a + p->high, (LANES_MASK)((1u << m) - 1),
                               LANES_(_mm512_maskz_compress)(above, v));
    p->low += n;
}

// How many of n > SMALL records are below the pivot; they come first.
static inline __attribute__((always_inline)) int64_t
RECORD_NAME(divide)(RECORD *a, int64_t n, RECORD pivot, bool equal_too)
{
    enum { AT_ONCE = RECORD_NAME(AT_ONCE), STEP = AT_ONCE * LANES };
    struct RECORD_NAME(parts) p = {a, LANES_(_mm512_set1)((LANES_INT)pivot), 0, n, equal_too};
    __m512i kept[2 * AT_ONCE], v[AT_ONCE];
    int64_t odd = n % LANES, left = STEP, right = n - odd - STEP;
    LANES_MASK odd_lanes = (LANES_MASK)((1u << odd) - 1);
    __m512i rest = LANES_(_mm512_maskz_loadu)(odd_lanes, a + n - odd);
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        kept[i] = _mm512_loadu_si512(a + i * LANES);
        kept[AT_ONCE + i] = _mm512_loadu_si512(a + right + i * LANES);
    }
    while (right - left >= STEP) {
        bool from_left = left - p.low <= p.high - right;
        right -= from_left ? 0 : STEP;
        const RECORD *from = a + (from_left ? left : right);
        left += from_left ? STEP : 0;
#pragma GCC unroll 8
        for (uint32_t i = 0; i < AT_ONCE; i++)
            v[i] = _mm512_loadu_si512(from + i * LANES);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < AT_ONCE; i++)
            RECORD_NAME(put)(&p, v[i]);
    }
    while (right > left) {
        bool from_left = left - p.low <= p.high - right;
        right -= from_left ? 0 : LANES;
        __m512i one = _mm512_loadu_si512(a + (from_left ? left : right));
        left += from_left ? LANES : 0;
        RECORD_NAME(put)(&p, one);
    }
    for (uint32_t i = 0; i < 2 * AT_ONCE; i++)
        RECORD_NAME(put_some)(&p, kept[i], (LANES_MASK)-1);
    RECORD_NAME(put_some)(&p, rest, odd_lanes);
    return p.low;
}

static int64_t
RECORD_NAME(partition)(RECORD *a, int64_t n, RECORD pivot)
{
    return RECORD_NAME(divide)(a, n, pivot, false);
}

static int64_t
RECORD_NAME(partition_equal)(RECORD *a, int64_t n, RECORD pivot)
{
    return RECORD_NAME(divide)(a, n, pivot, true);
}

static RECORD
RECORD_NAME(pivot)(const RECORD *a, int64_t n)
{
    RECORD sample[8 * LANES];
    int64_t m = n < 64 * LANES ? LANES : 8 * LANES, step = n / m;
    for (int64_t i = 0; i < m; i++)
        sample[i] = a[i * step + step / 2];
    RECORD_NAME(small)(sample, m);
    return sample[m / 2];
}

// Small parts that wait.
struct RECORD_NAME(leaves) {
    uint32_t n;
    RECORD *at[LANES];
    int64_t length[LANES];
    int64_t most; // records of a leaf
};

static void RECORD_NAME(part)(struct RECORD_NAME(leaves) *w, RECORD *a, RECORD *b, int64_t n,
                              uint32_t uneven);

static void
RECORD_NAME(sort_leaves)(struct RECORD_NAME(leaves) *w, RECORD *tile)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        if (i >= w->n) {
            w->at[i] = w->at[0];
            w->length[i] = 0;
        }
        most = max64(most, w->length[i]);
    }
    RECORD_NAME(sort_abreast)(w->at, w->length, most, (__m512i *)tile);
    w->n = 0;
}

static void
RECORD_NAME(add_leaf)(struct RECORD_NAME(leaves) *w, RECORD *a, int64_t n, RECORD *tile)
{
    if (w->most == RECORD_NAME(SMALL)) {
        RECORD_NAME(small)(a, n);
        return;
    }
    w->at[w->n] = a;
    w->length[w->n++] = n;
    if (w->n == LANES)
        RECORD_NAME(sort_leaves)(w, tile);
}

// Parts n records of a until they are small; b has room for as many. uneven: how often parts may
// come out so.
static void
RECORD_NAME(part)(struct RECORD_NAME(leaves) *w, RECORD *a, RECORD *b, int64_t n, uint32_t uneven)
{
    while (n > w->most) {
        if (!uneven) {
            RECORD *sorted = RECORD_NAME(radix)(a, b, n, 0, 8 * sizeof(RECORD));
            if (sorted != a)
                memcpy(a, sorted, (size_t)n * sizeof *a);
            return;
        }
        RECORD pivot = RECORD_NAME(pivot)(a, n);
        int64_t m = RECORD_NAME(partition)(a, n, pivot);
        if (!m) { // the pivot is the least: all of its kind are in place
            m = RECORD_NAME(partition_equal)(a, n, pivot);
        } else {
            uneven -= m < n / 8 || m > n - n / 8;
            if (m <= n - m) {
                RECORD_NAME(part)(w, a, b, m, uneven);
            } else {
                RECORD_NAME(part)(w, a + m, b, n - m, uneven);
                n = m;
                continue;
            }
        }
        a += m;
        n -= m;
    }
    if (n > 1)
        RECORD_NAME(add_leaf)(w, a, n, b);
}

// The last leaves, too few to be sorted abreast, are parted further.
static void
RECORD_NAME(quick)(RECORD *a, RECORD *b, int64_t n)
{
    struct RECORD_NAME(leaves) w;
    w.n = 0;
    w.most = RECORD_NAME(LEAF);
    while (w.most > RECORD_NAME(SMALL) && w.most * LANES > n) // b is where the tile lies
        w.most /= 2;
    RECORD_NAME(part)(&w, a, b, n, UNEVEN_MOST);
    if (w.n > LANES / 2)
        RECORD_NAME(sort_leaves)(&w, b);
    w.most = RECORD_NAME(SMALL);
    for (uint32_t i = 0; i < w.n; i++)
        RECORD_NAME(part)(&w, w.at[i], b, w.length[i], UNEVEN_MOST);
}
