// order_abreast.h: LANES lines sorted at once, a line in each lane of AVX-512 vectors. The includer
// defines what order_quick.h asks for.
//
// A tile is `rows` vectors, 16 times a power of two; vector i holds element i of every line.
// Sorting networks compare the same two elements whatever they are, so all lines go through one
// network and no lane ever meets another: each comparison is a minimum and a maximum. Sixteen
// vectors are sorted in registers; then runs are merged two by two, bitonically, the second run
// read backwards (Batcher 1968), up to four steps of a merge on sixteen vectors in registers before
// they are stored again.

enum { RECORD_NAME(BLOCK) = 16 };

static inline void
RECORD_NAME(exchange_vectors)(__m512i *a, __m512i *b)
{
    __m512i low = LANES_U(_mm512_min)(*a, *b);
    *b = LANES_U(_mm512_max)(*a, *b);
    *a = low;
}

// Sixteen vectors, lane by lane (Batcher's odd-even merge sort, as in Knuth, vol. 3, 5.2.2 M).
static inline __attribute__((always_inline)) void
RECORD_NAME(sort_block)(__m512i *v)
{
#pragma GCC unroll 4
    for (uint32_t p = 8; p; p /= 2) {
#pragma GCC unroll 4
        for (uint32_t q = 8; q >= p; q /= 2) {
            uint32_t r = q == 8 ? 0 : p, d = q == 8 ? p : 2 * q - p;
#pragma GCC unroll 16
            for (uint32_t i = 0; i < 16; i++)
                if (i + d < 16 && (i & p) == r)
                    RECORD_NAME(exchange_vectors)(&v[i], &v[i + d]);
        }
    }
}

// Steps h, h / 2 … of a merge, `steps` of them.
static inline __attribute__((always_inline)) void
RECORD_NAME(merge_block)(__m512i *v, uint32_t h, uint32_t steps)
{
#pragma GCC unroll 4
    for (uint32_t s = 0; s < 4; s++, h /= 2)
#pragma GCC unroll 16
        for (uint32_t i = 0; i < 16; i++)
            if (s < steps && h && !(i & h))
                RECORD_NAME(exchange_vectors)(&v[i], &v[i + h]);
}

static inline __attribute__((always_inline)) void
RECORD_NAME(load_block)(__m512i *v, const __m512i *t, int64_t apart, uint32_t from, uint32_t n)
{
#pragma GCC unroll 16
    for (uint32_t i = 0; i < n; i++)
        v[from + i] = t[i * apart];
}

static inline __attribute__((always_inline)) void
RECORD_NAME(store_block)(const __m512i *v, __m512i *t, int64_t apart, uint32_t from, uint32_t n)
{
#pragma GCC unroll 16
    for (uint32_t i = 0; i < n; i++)
        t[i * apart] = v[from + i];
}

// The first `steps` steps of merging two runs at t: elements mirrored at the middle, then halves,
// quarters, eighths of a run apart.
static inline __attribute__((always_inline)) void
RECORD_NAME(begin_merge)(__m512i *t, int64_t run, uint32_t steps)
{
    int64_t apart = run / 8;
    __m512i v[16];
    for (int64_t i = 0; i < apart; i++) {
        RECORD_NAME(load_block)(v, t + i, apart, 0, 8);
        RECORD_NAME(load_block)(v, t + 2 * run - 1 - i, -apart, 8, 8);
#pragma GCC unroll 8
        for (uint32_t j = 0; j < 8; j++)
            RECORD_NAME(exchange_vectors)(&v[j], &v[8 + j]);
        // The mirrored half lies backwards: its lesser elements belong at the end.
#pragma GCC unroll 3
        for (uint32_t s = 1, h = 4; s < 4; s++, h /= 2)
#pragma GCC unroll 8
            for (uint32_t j = 0; j < 8; j++)
                if (s < steps && !(j & h)) {
                    RECORD_NAME(exchange_vectors)(&v[j], &v[j + h]);
                    RECORD_NAME(exchange_vectors)(&v[8 + j + h], &v[8 + j]);
                }
        RECORD_NAME(store_block)(v, t + i, apart, 0, 8);
        RECORD_NAME(store_block)(v, t + 2 * run - 1 - i, -apart, 8, 8);
    }
}

// Steps with elements d, d / 2 … apart, over a whole run of 2 d; d >= 8.
static inline __attribute__((always_inline)) void
RECORD_NAME(go_on)(__m512i *t, int64_t d, uint32_t steps)
{
    __m512i v[16];
    for (int64_t i = 0; i < d / 8; i++) {
        RECORD_NAME(load_block)(v, t + i, d / 8, 0, 16);
        RECORD_NAME(merge_block)(v, 8, steps);
        RECORD_NAME(store_block)(v, t + i, d / 8, 0, 16);
    }
}

static void
RECORD_NAME(merge_tile)(__m512i *t, int64_t run)
{
    // Steps run / 2 … 16 apart, the first of all among them mirrored, come before the last four.
    uint32_t before = (uint32_t)__builtin_ctzll((uint64_t)run) - 3;
    switch (before) {
    case 1: RECORD_NAME(begin_merge)(t, run, 1); break;
    case 2: RECORD_NAME(begin_merge)(t, run, 2); break;
    case 3: RECORD_NAME(begin_merge)(t, run, 3); break;
    default: RECORD_NAME(begin_merge)(t, run, 4); break;
    }
    int64_t d = run / 16;
    for (uint32_t left = before > 4 ? before - 4 : 0; left;) {
        uint32_t steps = left < 4 ? left : 4;
        for (int64_t at = 0; at < 2 * run; at += 2 * d)
            switch (steps) {
            case 1: RECORD_NAME(go_on)(t + at, d, 1); break;
            case 2: RECORD_NAME(go_on)(t + at, d, 2); break;
            case 3: RECORD_NAME(go_on)(t + at, d, 3); break;
            default: RECORD_NAME(go_on)(t + at, d, 4); break;
            }
        left -= steps;
        d >>= steps;
    }
    for (int64_t at = 0; at < 2 * run; at += 16)
        RECORD_NAME(go_on)(t + at, 8, 4);
}

// The first n of the tile's vectors hold elements, what is behind them counts as the greatest: runs
// of such are sorted, and behind other runs in place.
static void
RECORD_NAME(sort_tile)(__m512i *t, int64_t rows, int64_t n)
{
    for (int64_t at = 0; at < n; at += 16) {
        __m512i v[16];
        RECORD_NAME(load_block)(v, t + at, 1, 0, 16);
        RECORD_NAME(sort_block)(v);
        RECORD_NAME(store_block)(v, t + at, 1, 0, 16);
    }
    for (int64_t run = 16; run < rows; run *= 2)
        for (int64_t at = 0; at + run < n; at += 2 * run)
            RECORD_NAME(merge_tile)(t + at, run);
}

// ---- lines to tiles and back

// LANES vectors of LANES lanes, lanes and vectors exchanged.
static inline __attribute__((always_inline)) void
RECORD_NAME(transpose)(__m512i *v)
{
    enum { QUARTER = LANES / 4 };
    __m512i t[LANES], u[LANES];
#if LANES == 16
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            u[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
            u[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
        }
#else
    (void)t;
    for (int i = 0; i < 8; i += 2) {
        u[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
    }
#endif
    for (int c = 0; c < QUARTER; c++) {
        __m512i a = u[c], b = u[QUARTER + c], d = u[2 * QUARTER + c], e = u[3 * QUARTER + c];
        __m512i even[2] = {_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(d, e, 0x88)};
        __m512i odd[2] = {_mm512_shuffle_i64x2(a, b, 0xdd), _mm512_shuffle_i64x2(d, e, 0xdd)};
        v[c] = _mm512_shuffle_i64x2(even[0], even[1], 0x88);
        v[QUARTER + c] = _mm512_shuffle_i64x2(odd[0], odd[1], 0x88);
        v[2 * QUARTER + c] = _mm512_shuffle_i64x2(even[0], even[1], 0xdd);
        v[3 * QUARTER + c] = _mm512_shuffle_i64x2(odd[0], odd[1], 0xdd);
    }
}

static inline LANES_MASK
RECORD_NAME(lanes_before)(int64_t n)
{
    uint32_t lanes = n >= LANES ? ~0u : n > 0 ? (1u << n) - 1 : 0;
    return (LANES_MASK)lanes;
}

// Lines of n[l] records at line[l] into a tile; what is missing counts as the greatest.
static void
RECORD_NAME(fill_tile)(RECORD *const *line, const int64_t *n, __m512i *t, int64_t rows)
{
    for (int64_t at = 0; at < rows; at += LANES) {
        __m512i v[LANES];
        for (int l = 0; l < LANES; l++)
            v[l] = LANES_(_mm512_mask_loadu)(_mm512_set1_epi32(-1),
                                             RECORD_NAME(lanes_before)(n[l] - at), line[l] + at);
        RECORD_NAME(transpose)(v);
        for (int l = 0; l < LANES; l++)
            t[at + l] = v[l];
    }
}

static void
RECORD_NAME(empty_tile)(const __m512i *t, int64_t rows, RECORD *const *line, const int64_t *n)
{
    for (int64_t at = 0; at < rows; at += LANES) {
        __m512i v[LANES];
        for (int l = 0; l < LANES; l++)
            v[l] = t[at + l];
        RECORD_NAME(transpose)(v);
        for (int l = 0; l < LANES; l++)
            LANES_(_mm512_mask_storeu)(line[l] + at, RECORD_NAME(lanes_before)(n[l] - at), v[l]);
    }
}

// LANES lines of at most `most` records each, in place; the tile has room for them.
static void
RECORD_NAME(sort_abreast)(RECORD *const *line, const int64_t *n, int64_t most, __m512i *tile)
{
    int64_t rows = order_abreast_rows(most);
    RECORD_NAME(fill_tile)(line, n, tile, rows);
    RECORD_NAME(sort_tile)(tile, rows, most);
    RECORD_NAME(empty_tile)(tile, rows, line, n);
}
