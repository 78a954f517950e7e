// order_keys.h: elements to keys and back, for one width of elements. The includer defines
//   ELEMENT             the unsigned integer that an element is in memory
//   KEY                 the unsigned integer that its key is, as wide or wider
//   ELEMENT_NAME(name)  name with the type's suffix
// and includes this once for each width.

// Keys of n elements, `step` apart. Floats: a NaN becomes one and the same; with `zeros` both zeros
// become +0, else -0 comes just before it, and whether there is one is returned.
static inline bool
ELEMENT_NAME(keys_apart)(const ELEMENT *restrict from, int64_t step, int64_t n,
                         const struct coding *c, bool zeros, KEY *restrict to)
{
    const ELEMENT sign = (ELEMENT)c->sign, inf = (ELEMENT)c->inf, nan = (ELEMENT)c->nan;
    const ELEMENT turn = (ELEMENT)c->turn;
    ELEMENT least = 1; // of how the bits differ from those of -0
    if (c->is_bool) {
        for (int64_t i = 0; i < n; i++)
            to[i] = (ELEMENT)((from[i * step] != 0) ^ turn);
        return false;
    }
    if (!inf) {
        for (int64_t i = 0; i < n; i++)
            to[i] = (ELEMENT)(from[i * step] ^ sign ^ turn);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        ELEMENT x = from[i * step], size = (ELEMENT)(x & (ELEMENT)~sign);
        x = size > inf ? nan : x;
        ELEMENT apart = (ELEMENT)(x ^ sign);
        least = apart < least ? apart : least;
        x = zeros && !apart ? 0 : x;
        ELEMENT flip = x & sign ? (ELEMENT)~(ELEMENT)0 : sign;
        to[i] = (ELEMENT)(x ^ flip ^ turn);
    }
    return !least;
}

static bool
ELEMENT_NAME(keys)(const ELEMENT *from, int64_t step, int64_t n, const struct coding *c, bool zeros,
                   KEY *to)
{
    if (step == 1) // a loop that compilers make vectors of
        return zeros ? ELEMENT_NAME(keys_apart)(from, 1, n, c, true, to)
                     : ELEMENT_NAME(keys_apart)(from, 1, n, c, false, to);
    return ELEMENT_NAME(keys_apart)(from, step, n, c, zeros, to);
}

static inline void
ELEMENT_NAME(elements_apart)(const KEY *restrict from, int64_t n, const struct coding *c,
                             ELEMENT *restrict to, int64_t step)
{
    const ELEMENT sign = (ELEMENT)c->sign, turn = (ELEMENT)c->turn;
    if (!c->inf) {
        for (int64_t i = 0; i < n; i++)
            to[i * step] = (ELEMENT)((ELEMENT)from[i] ^ sign ^ turn);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        ELEMENT x = (ELEMENT)((ELEMENT)from[i] ^ turn);
        to[i * step] = (ELEMENT)(x & sign ? x ^ sign : ~x);
    }
}

static void
ELEMENT_NAME(elements)(const KEY *from, int64_t n, const struct coding *c, ELEMENT *to,
                       int64_t step)
{
    if (step == 1)
        ELEMENT_NAME(elements_apart)(from, n, c, to, 1);
    else
        ELEMENT_NAME(elements_apart)(from, n, c, to, step);
}

// The elements themselves, as keys would give them back.
static void
ELEMENT_NAME(take)(const ELEMENT *from, int64_t step, const int64_t *position,
                   int64_t position_step, int64_t n, const struct coding *c, ELEMENT *to,
                   int64_t to_step)
{
    const ELEMENT sign = (ELEMENT)c->sign, inf = (ELEMENT)c->inf, nan = (ELEMENT)c->nan;
    for (int64_t i = 0; i < n; i++) {
        ELEMENT x = from[position[i * position_step] * step];
        if (inf && (ELEMENT)(x & (ELEMENT)~sign) > inf)
            x = nan;
        to[i * to_step] = c->is_bool ? x != 0 : x;
    }
}
