// emit_transpose.c: n vectors of n elements, transposed in registers.
//
// Within each 128-bit block by unpacking, then whole blocks among rows: every step is one shuffle
// of two registers with an immediate on x86. Steps that move 64 bits and more are printed as
// shuffles of doubles: LLVM looks at each lane of every shuffle that a shuffle reads for ways to
// make them one, and 16 lanes instead of 8 take twice as long (a 16 x 16 transposition 8.4 ms
// instead of 4.4).
#include "codegen/cpu/emit.h"

#include "ir/base/check.h"

#include <string.h>

enum { MAX_LANES = 64, BLOCK = 16 };

struct transpose {
    struct emitter *e;
    uint32_t n, size;      // vectors, bytes of an element
    uint32_t width, lanes; // of the type that the vectors have now: bytes of a lane
    const char *type;
    const char **v;
};

// From now on vectors have lanes of `width` bytes.
static void
retype(struct transpose *s, uint32_t width)
{
    if (width == s->width)
        return;
    const char *from = s->type;
    s->width = width;
    s->lanes = s->n * s->size / width;
    s->type = width == 8 ? emit_text(s->e, "<%u x double>", s->lanes)
                         : emit_text(s->e, "<%u x i%u>", s->lanes, 8 * width);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->v[i][0] == '%')
            s->v[i] = emit_op(s->e, "bitcast %s %s to %s", from, s->v[i], s->type);
}

// A shuffle of x and y; lane i of the result is index[i] of x ++ y.
static const char *
shuffle(const struct transpose *s, const char *x, const char *y, const uint32_t *index)
{
    if (x[0] != '%' && y[0] != '%') // both are poison
        return x;
    struct str mask = {0};
    for (uint32_t i = 0; i < s->lanes; i++)
        str_printf(&mask, "%si32 %u", i ? ", " : "", index[i]);
    const char *r = emit_op(s->e, "shufflevector %s %s, %s %s, <%u x i32> <%s>", s->type, x,
                            s->type, y, s->lanes, str_text(&mask));
    str_free(&mask);
    return r;
}

// Interleaves the low (high) halves of each block of x and y in units of `unit` lanes.
static const char *
unpack(const struct transpose *s, const char *x, const char *y, uint32_t unit, bool high)
{
    uint32_t index[MAX_LANES], block = BLOCK / s->width;
    for (uint32_t i = 0; i < s->lanes; i++) {
        uint32_t in = i % block, pair = in / (2 * unit);
        uint32_t from = i - in + (high ? block / 2 : 0) + pair * unit + in % unit;
        index[i] = from + (in / unit % 2 ? s->lanes : 0);
    }
    return shuffle(s, x, y, index);
}

// Blocks picked from x ++ y.
static const char *
blocks(const struct transpose *s, const char *x, const char *y, const uint32_t *pick)
{
    uint32_t index[MAX_LANES], block = BLOCK / s->width;
    for (uint32_t i = 0; i < s->lanes; i++)
        index[i] = pick[i / block] * block + i % block;
    return shuffle(s, x, y, index);
}

// Vectors stand for `rows` columns each of as many rows. Two such groups side by side become one:
// the low and the high halves of their vectors, interleaved, stand for half as many columns of
// twice as many rows.
static void
merge(struct transpose *s, const char **v, uint32_t rows)
{
    const char *merged[MAX_LANES];
    uint32_t unit = rows * s->size / s->width;
    for (uint32_t c = 0; c < rows; c++) {
        merged[2 * c] = unpack(s, v[c], v[rows + c], unit, false);
        merged[2 * c + 1] = unpack(s, v[c], v[rows + c], unit, true);
    }
    memcpy(v, merged, 2 * rows * sizeof *merged);
}

// Vectors v[0], v[step], …: whole blocks are transposed among them.
static void
transpose_blocks(struct transpose *s, const char **v, uint32_t step)
{
    static const uint32_t low[4] = {0, 1, 4, 5}, high[4] = {2, 3, 6, 7};
    static const uint32_t even[4] = {0, 2, 4, 6}, odd[4] = {1, 3, 5, 7};
    static const uint32_t first[2] = {0, 2}, second[2] = {1, 3};
    uint32_t n = s->n / step;
    if (n == 2) {
        const char *x = blocks(s, v[0], v[step], first), *y = blocks(s, v[0], v[step], second);
        v[0] = x, v[step] = y;
        return;
    }
    if (n < 4)
        return;
    const char *ab0 = blocks(s, v[0], v[step], low), *ab1 = blocks(s, v[0], v[step], high);
    const char *cd0 = blocks(s, v[2 * step], v[3 * step], low);
    const char *cd1 = blocks(s, v[2 * step], v[3 * step], high);
    v[0] = blocks(s, ab0, cd0, even), v[step] = blocks(s, ab0, cd0, odd);
    v[2 * step] = blocks(s, ab1, cd1, even), v[3 * step] = blocks(s, ab1, cd1, odd);
}

const char *
emit_transpose(struct emitter *e, const char **v, uint32_t n, uint32_t size, const char *elem)
{
    uint32_t block = BLOCK / size;
    CHECK(n <= MAX_LANES && n % block == 0 && n / block <= 4, "%u vectors to transpose", n);
    struct transpose s = {e, n, size, size, n, emit_text(e, "<%u x %s>", n, elem), v};
    // Rows r .. r + block - 1: afterwards row r + j holds, in block b, their column b * block + j.
    for (uint32_t rows = 1; rows < block; rows *= 2) {
        retype(&s, rows * size);
        for (uint32_t r = 0; r < n; r += 2 * rows)
            merge(&s, v + r, rows);
    }
    retype(&s, 8);
    for (uint32_t j = 0; j < block; j++)
        transpose_blocks(&s, v + j, block);
    return s.type;
}
