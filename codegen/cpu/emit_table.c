// emit_table.c: OP_lookup: entries of constant tables by an index per lane.
//
// A table of 16 floats is a register, or two of 256 bits, that one instruction permutes: as fast as
// arithmetic. Anything else is memory, a constant of the module, from which the lanes gather. A
// permutation looks at the index's last bits only, as the op wants it; a gather needs a mask.
// Gathers of 256 bits are no faster than a load a lane, on many processors slower. There the tables
// of erf, which are looked up by one index, lie in one, entry by entry: each lane loads its two at
// once, and takes its place out of the vector once.
#include "codegen/cpu/emit_parts.h"

#include "ir/dtype.h"
#include "ir/tables.h"

#include <string.h>

enum { REGISTER = 16, HALF = 8, QUAD = 4 };
// As it is; the second half as its difference from the first; each with the next table's entry.
enum table_form { TABLE_PLAIN = 1, TABLE_SPLIT = 2, TABLE_PAIR = 4 };

// n floats of a table's form, from entry `first` on, loaded in the entry block once a function.
static const char *
in_register(struct emitter *e, uint32_t name, const char *form, uint32_t first, uint32_t n)
{
    const char **at = &e->table_half[2 * name + (first > 0)];
    if (!*at) {
        const char *from = emit_entry_op(e, "getelementptr float, ptr @table%u%s, i64 %u", name,
                                         form, first);
        *at = emit_entry_op(e, "load <%u x i32>, ptr %s, align 32", n, from);
    }
    return *at;
}

static const char *
permuted_half(struct emitter *e, uint32_t name, uint32_t first, const char *index)
{
    return emit_op(e, "call <8 x i32> @llvm.x86.avx2.permd(<8 x i32> %s, <8 x i32> %s)",
                   in_register(e, name, ".split", first, HALF), index);
}

// Of 8 lanes: the table's first half, and where the index's fourth bit is set, what changes it into
// the second. (To choose between both takes three instructions instead of two.)
static const char *
permuted_eight(struct emitter *e, uint32_t name, const char *index)
{
    const char *low = permuted_half(e, name, 0, index);
    const char *change = permuted_half(e, name, HALF, index);
    const char *top = emit_op(e, "shl <8 x i32> %s, splat (i32 28)", index);
    const char *upper = emit_op(e, "ashr <8 x i32> %s, splat (i32 31)", top);
    change = emit_op(e, "and <8 x i32> %s, %s", change, upper);
    return emit_op(e, "xor <8 x i32> %s, %s", low, change);
}

// Of 8 or 16 lanes.
static const char *
permuted_in_halves(struct emitter *e, uint32_t name, uint32_t lanes, const char *index)
{
    const char *all;
    if (lanes == HALF) {
        all = permuted_eight(e, name, index);
    } else {
        const char *part[2];
        for (uint32_t i = 0; i < 2; i++)
            part[i] = permuted_eight(e, name,
                                     emit_extract(e, DT_i32, index, REGISTER, i * HALF, HALF));
        all = emit_op(e, "shufflevector <8 x i32> %s, <8 x i32> %s, <16 x i32> <i32 0, i32 1, "
                         "i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, "
                         "i32 12, i32 13, i32 14, i32 15>", part[0], part[1]);
    }
    return emit_op(e, "bitcast <%u x i32> %s to <%u x float>", lanes, all, lanes);
}

static const char *
gathered(struct emitter *e, const struct table *t, uint32_t name, uint32_t lanes, const char *index)
{
    uint32_t width = dtype_table[t->dtype].bits;
    const char *element = dtype_table[t->dtype].llvm;
    const char *place = emit_op(e, "and <%u x i%u> %s, splat (i%u %u)", lanes, width, index, width,
                                t->size - 1);
    const char *from = emit_op(e, "getelementptr %s, ptr @table%u, <%u x i%u> %s", element, name,
                               lanes, width, place);
    return emit_op(e, "call <%u x %s> @llvm.masked.gather.v%uf%u.v%up0(<%u x ptr> %s, i32 %u, "
                      "<%u x i1> splat (i1 true), <%u x %s> poison)",
                   lanes, element, lanes, width, lanes, lanes, from, width / 8, lanes, lanes,
                   element);
}

// The entries, <2 x double>, of a table of pairs for one lane.
static const char *
pair_of_lane(struct emitter *e, uint32_t name, uint32_t lanes, const char *place, uint32_t lane)
{
    const char *at = emit_op(e, "extractelement <%u x i64> %s, i32 %u", lanes, place, lane);
    const char *from = emit_op(e, "getelementptr <2 x double>, ptr @table%u.pair, i64 %s", name,
                               at);
    return emit_op(e, "load <2 x double>, ptr %s, align 16", from);
}

// Of four lanes: lanes 0 and 2, and 1 and 3, side by side; then every other double of both.
static const char *
pairs_of_quad(struct emitter *e, uint32_t name, uint32_t lanes, const char *place, uint32_t first,
              bool second)
{
    static const uint8_t chosen[2][QUAD] = {{0, 4, 2, 6}, {1, 5, 3, 7}};
    const char *pair[QUAD], *half[2];
    for (uint32_t i = 0; i < QUAD; i++)
        pair[i] = pair_of_lane(e, name, lanes, place, first + i);
    for (uint32_t i = 0; i < 2; i++)
        half[i] = emit_op(e, "shufflevector <2 x double> %s, <2 x double> %s, <4 x i32> <i32 0, "
                             "i32 1, i32 2, i32 3>", pair[i], pair[i + 2]);
    return emit_shuffle(e, DT_f64, QUAD, half[0], half[1], chosen[second]);
}

// Two vectors of n doubles as one.
static const char *
joined(struct emitter *e, uint32_t n, const char *a, const char *b)
{
    struct str lane = {0};
    for (uint32_t i = 0; i < 2 * n; i++)
        str_printf(&lane, "%si32 %u", i ? ", " : "", i);
    const char *r = emit_op(e, "shufflevector <%u x double> %s, <%u x double> %s, <%u x i32> <%s>",
                            n, a, n, b, 2 * n, str_text(&lane));
    str_free(&lane);
    return r;
}

// The first or the second of each lane's pair. That both lookups load the same, LLVM sees.
static const char *
paired(struct emitter *e, uint32_t name, uint32_t lanes, const char *index, bool second)
{
    const char *place = emit_op(e, "and <%u x i64> %s, splat (i64 %u)", lanes, index,
                                table_named(name).size - 1);
    const char *part[REGISTER / QUAD];
    for (uint32_t i = 0; i < lanes / QUAD; i++)
        part[i] = pairs_of_quad(e, name, lanes, place, i * QUAD, second);
    for (uint32_t n = QUAD; n < lanes; n *= 2)
        for (uint32_t i = 0; i < lanes / n / 2; i++)
            part[i] = joined(e, n, part[2 * i], part[2 * i + 1]);
    return part[0];
}

const char *
emit_lookup(struct emitter *e, uint32_t name, uint32_t lanes, const char *index)
{
    struct table t = table_named(name);
    bool wide = strstr(e->target->features, "+avx512f");
    bool fits = t.dtype == DT_f32 && t.size == REGISTER;
    bool whole = fits && wide && lanes == REGISTER;
    bool split = fits && !whole && (lanes == HALF || lanes == REGISTER) &&
                 strstr(e->target->features, "+avx2");
    if (t.dtype == DT_f64 && !wide && lanes % QUAD == 0 && lanes <= REGISTER) {
        e->table_used[TABLE_erf64] |= TABLE_PAIR;
        return paired(e, TABLE_erf64, lanes, index, name > TABLE_erf64);
    }
    e->table_used[name] |= split ? TABLE_SPLIT : TABLE_PLAIN;
    if (split)
        return permuted_in_halves(e, name, lanes, index);
    if (!whole)
        return gathered(e, &t, name, lanes, index);
    const char *all = in_register(e, name, "", 0, REGISTER);
    const char *bits = emit_op(e, "call <16 x i32> @llvm.x86.avx512.permvar.si.512(<16 x i32> %s, "
                                  "<16 x i32> %s)", all, index);
    return emit_op(e, "bitcast <16 x i32> %s to <16 x float>", bits);
}

// As bytes: a long string is read much faster than numbers.
static void
table_bytes(struct emitter *e, uint32_t name, enum table_form form)
{
    static const char *const suffix[] = {[TABLE_PLAIN] = "", [TABLE_SPLIT] = ".split",
                                         [TABLE_PAIR] = ".pair"};
    struct table t = table_named(name);
    const uint8_t *at = t.at, *next = form == TABLE_PAIR ? table_named(name + 1).at : NULL;
    uint32_t size = (uint32_t)dtype_size(t.dtype), bytes = t.size * size;
    str_printf(e->text, "@table%u%s = private unnamed_addr constant [%u x i8] c\"", name,
               suffix[form], next ? 2 * bytes : bytes);
    for (uint32_t j = 0; j < bytes; j++) {
        bool change = form == TABLE_SPLIT && j >= bytes / 2;
        str_printf(e->text, "\\%02X", change ? at[j] ^ at[j - bytes / 2] : at[j]);
        for (uint32_t i = 0; next && (j + 1) % size == 0 && i < size; i++)
            str_printf(e->text, "\\%02X", next[j + 1 - size + i]);
    }
    str_add(e->text, "\", align 64\n");
}

void
emit_tables(struct emitter *e)
{
    for (uint32_t i = 0; i < TABLE_COUNT; i++)
        for (uint32_t form = TABLE_PLAIN; form <= TABLE_PAIR; form *= 2)
            if (e->table_used[i] & form)
                table_bytes(e, i, form);
}
