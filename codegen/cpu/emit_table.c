// emit_table.c: OP_lookup: entries of constant tables by an index per lane.
//
// A table of 16 floats is a register, or two of 256 bits, that one instruction permutes: as fast as
// arithmetic. Anything else is memory, a constant of the module, from which the lanes gather. A
// permutation looks at the index's last bits only, as the op wants it; a gather needs a mask.
#include "codegen/cpu/emit_parts.h"

#include "ir/dtype.h"
#include "ir/tables.h"

#include <string.h>

enum { REGISTER = 16, HALF = 8 };
// As it is; or the second half as its difference from the first.
enum table_form { TABLE_PLAIN = 1, TABLE_SPLIT = 2 };

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

// Of 16 lanes, in two halves: the table's first half, and where the index's fourth bit is set, what
// changes it into the second. (To choose between both takes three instructions instead of two.)
static const char *
permuted_in_halves(struct emitter *e, uint32_t name, const char *index)
{
    const char *part[2];
    for (uint32_t i = 0; i < 2; i++) {
        const char *half = emit_extract(e, DT_i32, index, REGISTER, i * HALF, HALF);
        const char *low = permuted_half(e, name, 0, half);
        const char *change = permuted_half(e, name, HALF, half);
        const char *top = emit_op(e, "shl <8 x i32> %s, splat (i32 28)", half);
        const char *upper = emit_op(e, "ashr <8 x i32> %s, splat (i32 31)", top);
        change = emit_op(e, "and <8 x i32> %s, %s", change, upper);
        part[i] = emit_op(e, "xor <8 x i32> %s, %s", low, change);
    }
    const char *all = emit_op(e, "shufflevector <8 x i32> %s, <8 x i32> %s, <16 x i32> <i32 0, "
                                 "i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, "
                                 "i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>",
                              part[0], part[1]);
    return emit_op(e, "bitcast <16 x i32> %s to <16 x float>", all);
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

const char *
emit_lookup(struct emitter *e, uint32_t name, uint32_t lanes, const char *index)
{
    struct table t = table_named(name);
    bool fits = t.dtype == DT_f32 && t.size == REGISTER && lanes == REGISTER;
    bool whole = fits && strstr(e->target->features, "+avx512f");
    bool split = fits && !whole && strstr(e->target->features, "+avx2");
    e->table_used[name] |= split ? TABLE_SPLIT : TABLE_PLAIN;
    if (split)
        return permuted_in_halves(e, name, index);
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
    struct table t = table_named(name);
    const uint8_t *at = t.at;
    uint32_t bytes = t.size * (uint32_t)dtype_size(t.dtype);
    str_printf(e->text, "@table%u%s = private unnamed_addr constant [%u x i8] c\"", name,
               form == TABLE_SPLIT ? ".split" : "", bytes);
    for (uint32_t j = 0; j < bytes; j++) {
        bool change = form == TABLE_SPLIT && j >= bytes / 2;
        str_printf(e->text, "\\%02X", change ? at[j] ^ at[j - bytes / 2] : at[j]);
    }
    str_add(e->text, "\", align 64\n");
}

void
emit_tables(struct emitter *e)
{
    for (uint32_t i = 0; i < TABLE_COUNT; i++)
        for (uint32_t form = TABLE_PLAIN; form <= TABLE_SPLIT; form *= 2)
            if (e->table_used[i] & form)
                table_bytes(e, i, form);
}
