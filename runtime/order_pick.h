// order_pick.h: the k first records of a line in order, for one type of records. The includer
// defines RECORD, RECORD_KEY, RECORD_NAME as for order_radix.h, which comes first, and
//   KEY                          the type of keys
//   RECORD_OF(key, position)     a record
//   RECORD_BITS(bits)            the arguments low, high of radix for keys of so many bits
//   RECORD_KEY_ONLY(r)           the key of a record, without what else its RECORD_KEY has
// and the function pick_keys, with the type's suffix: keys of n elements of a line from one on.
//
// Records are collected until there are several times k; then they are sorted and the first k of
// them kept, the last of which is the bound: what comes later can only be better, so long as its
// key is less. Of a line in no particular order few elements pass, and what is left to do is to
// compare each with the bound. In the worst line all pass, and each is sorted among 4 k a few
// times.

// Records of those of n keys that are less than the bound; returns how many. `to` has room for n:
// every record is written, and overwritten by the next unless it passes.
static int64_t
RECORD_NAME(pass)(const KEY *key, int64_t n, KEY bound, int64_t position, RECORD *to)
{
    int64_t have = 0;
    for (int64_t i = 0; i < n; i++) {
        to[have] = RECORD_OF(key[i], position + i);
        have += key[i] < bound;
    }
    return have;
}

static bool
RECORD_NAME(some_pass)(const KEY *key, KEY bound)
{
    KEY any = 0;
    for (int64_t i = 0; i < PICK_GROUP; i++)
        any |= (KEY)(key[i] < bound);
    return any != 0;
}

// The k first records of l in order; a and b have room for order_pick_records(k).
static const RECORD *
RECORD_NAME(pick)(const struct line *l, RECORD *a, RECORD *b)
{
    int64_t n = l->call->n, k = l->call->k, most = order_pick_records(k), have = 0;
    KEY chunk[PICK_CHUNK], bound = 0;
    bool bounded = false;
    for (int64_t at = 0; at < n; at += PICK_CHUNK) {
        int64_t m = min64(PICK_CHUNK, n - at);
        RECORD_NAME(pick_keys)(l, at, m, chunk);
        for (int64_t i = 0; i < m; i += PICK_GROUP) {
            int64_t these = min64(PICK_GROUP, m - i);
            if (bounded && these == PICK_GROUP && !RECORD_NAME(some_pass)(chunk + i, bound))
                continue;
            if (bounded)
                have += RECORD_NAME(pass)(chunk + i, these, bound, at + i, a + have);
            for (int64_t j = 0; !bounded && j < these; j++)
                a[have++] = RECORD_OF(chunk[i + j], at + i + j);
            if (have <= most - PICK_GROUP)
                continue;
            RECORD *sorted = RECORD_NAME(radix)(a, b, have, RECORD_BITS(l->coding.bits));
            b = sorted == a ? b : a;
            a = sorted;
            have = k;
            bounded = true;
            bound = RECORD_KEY_ONLY(a[k - 1]);
        }
    }
    return RECORD_NAME(radix)(a, b, have, RECORD_BITS(l->coding.bits));
}
