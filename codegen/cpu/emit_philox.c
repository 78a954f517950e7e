// emit_philox.c: random bits (ir/philox.h) in vectors.
//
// The obvious way, a block a lane, computes four words and keeps one. Where the lanes are
// neighbouring elements, as nearly always, they are whole blocks instead: words c0 c1 c2 c3 of a
// block lie in neighbouring lanes of 32 bits, and a round of all blocks is
//
//   product   of the even words, 64 bits each: both multiplications of a block at once
//   reversed  its four words: hi1 lo1 hi0 lo0
//   c >> 32   in 64 bits: c1 0 c3 0
//   exclusive or of these two with the key, k0 0 k1 0
//
// four instructions for 16 numbers. The first lane must be the first word of a block; where it is
// not (rows whose length is no multiple of 4), the next blocks too are computed and the lanes taken
// from where they start: a branch and a call.
#include "codegen/cpu/emit_parts.h"

#include "ir/philox.h"

// <lanes x i64> of two numbers in turn.
static const char *
pairs(struct emitter *e, uint32_t lanes, int64_t a, int64_t b)
{
    struct str s = {0};
    for (uint32_t i = 0; i < lanes; i++)
        str_printf(&s, "%si64 %lld", i ? ", " : "<", (long long)(i % 2 ? b : a));
    str_addc(&s, '>');
    const char *r = emit_text(e, "%s", str_text(&s));
    str_free(&s);
    return r;
}

// Lane 0 of <lanes x i64> in all of <to x i64>.
static const char *
spread(struct emitter *e, const char *v, uint32_t lanes, uint32_t to)
{
    return emit_splat(e, DT_i64, emit_extract(e, DT_i64, v, lanes, 0, 1), to);
}

// a in even lanes, b in odd ones, of <lanes x i64>.
static const char *
alternating(struct emitter *e, uint32_t lanes, const char *a, const char *b)
{
    struct str s = {0};
    for (uint32_t i = 0; i < lanes; i++)
        str_printf(&s, "%si1 %s", i ? ", " : "<", i % 2 ? "false" : "true");
    const char *r = emit_op(e, "select <%u x i1> %s>, <%u x i64> %s, <%u x i64> %s", lanes,
                            str_text(&s), lanes, a, lanes, b);
    str_free(&s);
    return r;
}

// The four words of each block in reverse.
static const char *
reversed_blocks(struct emitter *e, uint32_t words, const char *v)
{
    struct str s = {0};
    for (uint32_t i = 0; i < words; i++)
        str_printf(&s, "%si32 %u", i ? ", " : "<", (i & ~3u) + 3 - i % 4);
    const char *r = emit_op(e, "shufflevector <%u x i32> %s, <%u x i32> poison, <%u x i32> %s>",
                            words, v, words, words, str_text(&s));
    str_free(&s);
    return r;
}

// The key of the next round: sums of 32 bits.
static const char *
next_key(struct emitter *e, uint32_t words, const char *key)
{
    struct str s = {0};
    for (uint32_t i = 0; i < words; i++)
        str_printf(&s, "%si32 %d", i ? ", " : "<",
                   (int)(i % 2 ? 0 : i % 4 ? PHILOX_W1 : PHILOX_W0));
    const char *k = emit_op(e, "bitcast <%u x i64> %s to <%u x i32>", words / 2, key, words);
    k = emit_op(e, "add <%u x i32> %s, %s>", words, k, str_text(&s));
    str_free(&s);
    return emit_op(e, "bitcast <%u x i32> %s to <%u x i64>", words, k, words / 2);
}

// Words of the blocks from number `first` (i64) on, as <words x i32>. key: k0 0 k1 0 ….
static const char *
blocks_of_words(struct emitter *e, uint32_t words, const char *first, const char *key,
                const char *counter)
{
    uint32_t n = words / 2; // lanes of 64 bits
    struct str s = {0};
    for (uint32_t i = 0; i < n; i++)
        str_printf(&s, "%si64 %u", i ? ", " : "<", i / 2);
    const char *number = emit_op(e, "add <%u x i64> %s, %s>", n, emit_splat_i64(e, first, n),
                                 str_text(&s));
    str_free(&s);
    const char *x = alternating(e, n, number, counter);
    const char *low = "splat (i64 4294967295)";
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const char *even = emit_op(e, "and <%u x i64> %s, %s", n, x, low);
        const char *p = emit_op(e, "mul <%u x i64> %s, %s", n, even,
                                pairs(e, n, PHILOX_M0, PHILOX_M1));
        p = emit_op(e, "bitcast <%u x i64> %s to <%u x i32>", n, p, words);
        p = reversed_blocks(e, words, p);
        p = emit_op(e, "bitcast <%u x i32> %s to <%u x i64>", words, p, n);
        const char *odd = emit_op(e, "lshr <%u x i64> %s, splat (i64 32)", n, x);
        const char *with_key = emit_op(e, "xor <%u x i64> %s, %s", n, odd, key);
        x = emit_op(e, "xor <%u x i64> %s, %s", n, p, with_key);
        key = next_key(e, words, key);
    }
    return emit_op(e, "bitcast <%u x i64> %s to <%u x i32>", n, x, words);
}

// Lanes shift, shift + 1 … of a and then b.
static const char *
window(struct emitter *e, uint32_t words, const char *a, const char *b, uint32_t shift)
{
    struct str s = {0};
    for (uint32_t i = 0; i < words; i++)
        str_printf(&s, "%si32 %u", i ? ", " : "<", shift + i);
    const char *r = emit_op(e, "shufflevector <%u x i32> %s, <%u x i32> %s, <%u x i32> %s>", words,
                            a, words, b, words, str_text(&s));
    str_free(&s);
    return r;
}

// Consecutive words from number `word` (i64) on. It may be negative where lanes before the array's
// first are not used, as in a concatenation.
static const char *
consecutive(struct emitter *e, uint32_t words, const char *word, const char *key,
            const char *counter)
{
    uint32_t n = words / 2;
    const char *block = emit_op(e, "ashr i64 %s, 2", word);
    const char *shift = emit_op(e, "and i64 %s, 3", word);
    const char *x = blocks_of_words(e, words, block, key, counter), *before = e->block;
    const char *some = emit_op(e, "icmp ne i64 %s, 0", shift);
    const char *then = emit_label(e, "shifted"), *end = emit_text(e, "%s.end", then);
    emit_rarely(e, some, then, end);
    emit_place(e, then);
    e->philox_words |= words;
    const char *r = emit_op(e, "call <%u x i32> @philox%u(<%u x i32> %s, i64 %s, i64 %s, "
                               "<%u x i64> %s, <%u x i64> %s)", words, words, words, x, block,
                            shift, n, key, n, counter);
    emit_jump(e, end);
    emit_place(e, end);
    return emit_op(e, "phi <%u x i32> [ %s, %%%s ], [ %s, %%%s ]", words, x, before, r, then);
}

// The function that is called there: words from the shift-th on of x, whose first is of a block,
// and of the blocks behind. Apart, as each vector of a loop would have a copy, which are slow to
// compile.
static void
shifted_function(struct emitter *e, uint32_t words)
{
    str_printf(e->text, "define internal <%u x i32> @philox%u(<%u x i32> %%x, i64 %%block, "
                        "i64 %%shift, <%u x i64> %%key, <%u x i64> %%counter) noinline cold #0 {\n"
                        "entry:\n", words, words, words, words / 2, words / 2);
    e->body.n = e->known.n = 0;
    e->block = "entry";
    const char *next = emit_op(e, "add i64 %%block, %u", words / 4);
    const char *y = blocks_of_words(e, words, next, "%key", "%counter");
    const char *r = window(e, words, "%x", y, 1);
    for (uint32_t by = 2; by <= 3; by++) {
        const char *is = emit_op(e, "icmp eq i64 %%shift, %u", by);
        r = emit_op(e, "select i1 %s, <%u x i32> %s, <%u x i32> %s", is, words,
                    window(e, words, "%x", y, by), words, r);
    }
    str_addn(e->text, str_text(&e->body), e->body.n);
    str_printf(e->text, "  ret <%u x i32> %s\n}\n", words, r);
}

void
emit_philox_functions(struct emitter *e)
{
    for (uint32_t words = 4; words <= e->philox_words; words *= 2)
        if (e->philox_words & words)
            shifted_function(e, words);
}

// ---- a block a lane

struct lanes {
    struct emitter *e;
    uint32_t n;
};

static const char *
each(struct lanes l, const char *op, const char *a, const char *b)
{
    return emit_op(l.e, "%s <%u x i64> %s, %s", op, l.n, a, b);
}

static const char *
low_word(struct lanes l, const char *a)
{
    return each(l, "and", a, "splat (i64 4294967295)");
}

static const char *
high_word(struct lanes l, const char *a)
{
    return each(l, "lshr", a, "splat (i64 32)");
}

static const char *
block_a_lane(struct lanes l, bool wide, const char *index, const char *key, const char *counter)
{
    struct emitter *e = l.e;
    const char *block = each(l, "lshr", index, wide ? "splat (i64 1)" : "splat (i64 2)");
    const char *c[4] = {low_word(l, block), high_word(l, block), low_word(l, counter),
                        high_word(l, counter)};
    const char *k[2] = {low_word(l, key), high_word(l, key)};
    const char *m[2] = {emit_text(e, "splat (i64 %u)", PHILOX_M0),
                        emit_text(e, "splat (i64 %u)", PHILOX_M1)};
    const char *w[2] = {emit_text(e, "splat (i64 %u)", PHILOX_W0),
                        emit_text(e, "splat (i64 %u)", PHILOX_W1)};
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const char *p = each(l, "mul", c[0], m[0]), *q = each(l, "mul", c[2], m[1]);
        c[0] = each(l, "xor", each(l, "xor", high_word(l, q), c[1]), k[0]);
        c[2] = each(l, "xor", each(l, "xor", high_word(l, p), c[3]), k[1]);
        c[1] = low_word(l, q);
        c[3] = low_word(l, p);
        for (int i = 0; i < 2; i++)
            k[i] = low_word(l, each(l, "add", k[i], w[i]));
    }
    const char *which = each(l, "and", index, wide ? "splat (i64 1)" : "splat (i64 2)");
    const char *second = emit_op(e, "icmp ne <%u x i64> %s, zeroinitializer", l.n, which), *r[2];
    for (int i = 0; i < 2; i++)
        r[i] = emit_op(e, "select <%u x i1> %s, <%u x i64> %s, <%u x i64> %s", l.n, second, l.n,
                       c[2 + i], l.n, c[i]);
    if (wide)
        return each(l, "or", r[0], each(l, "shl", r[1], "splat (i64 32)"));
    const char *odd = emit_op(e, "trunc <%u x i64> %s to <%u x i1>", l.n, index, l.n);
    const char *word = emit_op(e, "select <%u x i1> %s, <%u x i64> %s, <%u x i64> %s", l.n, odd,
                               l.n, r[1], l.n, r[0]);
    return emit_op(e, "trunc <%u x i64> %s to <%u x i32>", l.n, word, l.n);
}

// The first lane's index (i64) where lane i's is i more; else NULL.
static const char *
first_of_consecutive(struct emitter *e, const struct emit_scope *s, const struct inst *in)
{
    const struct inst *at = e->kernel.inst.at;
    if (at[in->a].op != OP_index || varies(e, s, e->depends[in->b] | e->depends[in->c]))
        return NULL;
    const struct access *f = &e->kernel.affine.at[at[in->a].aux];
    bool along = false;
    for (uint32_t i = 0; i < e->kernel.naxis; i++) {
        const struct emit_scope *b = f->stride[i] ? scope_of_axis(s, i) : NULL;
        if (!b || b->axis[i].how == EMIT_UNIFORM)
            continue;
        if (b->axis[i].how != EMIT_LANES || f->stride[i] != 1)
            return NULL;
        along = true;
    }
    return along ? emit_affine_first(e, s, f) : NULL;
}

const char *
emit_philox(struct emitter *e, struct emit_scope *s, const struct inst *in)
{
    const char *key = s->value[in->b], *counter = s->value[in->c];
    bool wide = dtype_table[in->dtype].bits == 64;
    uint32_t words = wide ? 2 * s->lanes : s->lanes;
    bool power = words >= 4 && !(words & (words - 1)); // columns have other numbers of lanes too
    const char *first = !power ? NULL : first_of_consecutive(e, s, in);
    struct lanes l = {e, s->lanes};
    if (!first)
        return block_a_lane(l, wide, s->value[in->a], key, counter);
    l.n = words / 2;
    key = spread(e, key, s->lanes, l.n);
    counter = spread(e, counter, s->lanes, l.n);
    key = alternating(e, l.n, low_word(l, key), high_word(l, key));
    const char *v = consecutive(e, words, wide ? emit_op(e, "shl i64 %s, 1", first) : first, key,
                                counter);
    return wide ? emit_op(e, "bitcast <%u x i32> %s to <%u x i64>", words, v, s->lanes) : v;
}
