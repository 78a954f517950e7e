// order_spread.h: records spread over buckets, for one type of them. The includer defines RECORD
// and RECORD_NAME as for order_radix.h, records being integers.

// How many of n records are below the pivot; they come first.
static int64_t
RECORD_NAME(cut)(RECORD *a, int64_t n, RECORD pivot)
{
#ifdef __AVX512F__
    if (n > RECORD_NAME(SMALL))
        return RECORD_NAME(partition)(a, n, pivot);
#endif
    int64_t below = 0;
    for (int64_t i = 0; i < n; i++) {
        RECORD x = a[i];
        a[i] = a[below];
        a[below] = x;
        below += x < pivot;
    }
    return below;
}

// Bucket i is from pivot[i - 1] on and below pivot[i]; they lie behind each other. count: of each.
static void
RECORD_NAME(spread)(RECORD *a, int64_t n, const RECORD *pivot, int64_t buckets, int64_t *count)
{
    while (buckets > 1) {
        int64_t half = buckets / 2, m = RECORD_NAME(cut)(a, n, pivot[half - 1]);
        RECORD_NAME(spread)(a, m, pivot, half, count);
        a += m;
        n -= m;
        pivot += half;
        count += half;
        buckets -= half;
    }
    *count = n;
}
