// order_radix.h: radix sort of records, for one type of them. The includer defines
//   RECORD              the type
//   RECORD_KEY(r)       the unsigned integer in it that says its order
//   RECORD_NAME(name)   name with the type's suffix
// and includes this once for each type.
//
// The least significant digits first, eight bits a digit. One pass over the records counts all
// digits; a digit that is the same in all of them moves nothing and is left out. Equal keys keep
// their order. (Knuth, The Art of Computer Programming, vol. 3, 5.2.5.)

// A few records, by insertion.
static void
RECORD_NAME(insert)(RECORD *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        RECORD r = a[i];
        int64_t at = i;
        for (; at && RECORD_KEY(a[at - 1]) > RECORD_KEY(r); at--)
            a[at] = a[at - 1];
        a[at] = r;
    }
}

// Moves records from a to b by the digit at `shift`, of which count[] has how many there are.
static void
RECORD_NAME(deal)(const RECORD *a, RECORD *b, int64_t n, uint32_t shift, int64_t *count)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < DIGITS; d++) {
        int64_t these = count[d];
        count[d] = at;
        at += these;
    }
    for (int64_t i = 0; i < n; i++) {
        RECORD r = a[i];
        b[count[RECORD_KEY(r) >> shift & (DIGITS - 1)]++] = r;
    }
}

// Sorts n records of a by the bits [low, high) of their keys; they end in a or b: the result.
static RECORD *
RECORD_NAME(radix)(RECORD *a, RECORD *b, int64_t n, uint32_t low, uint32_t high)
{
    int64_t count[64 / DIGIT_BITS][DIGITS];
    uint32_t digits = (high - low + DIGIT_BITS - 1) / DIGIT_BITS;
    if (n <= INSERT_MOST) {
        RECORD_NAME(insert)(a, n);
        return a;
    }
    memset(count, 0, digits * sizeof count[0]);
    for (int64_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < digits; d++)
            count[d][RECORD_KEY(a[i]) >> (low + d * DIGIT_BITS) & (DIGITS - 1)]++;
    for (uint32_t d = 0; d < digits; d++) {
        uint32_t shift = low + d * DIGIT_BITS;
        if (count[d][RECORD_KEY(a[0]) >> shift & (DIGITS - 1)] == n)
            continue;
        RECORD_NAME(deal)(a, b, n, shift, count[d]);
        RECORD *swap = a;
        a = b;
        b = swap;
    }
    return a;
}
