// contract_micro.c: the innermost loop of a contraction where contract_asm.c has none (integers,
// processors without FMA), a function of its own in the text:
//
//   void micro(a, am, ak, rows, b, bk, left, k, c, more)
//
// adds the products of a tile of rows x vecs vectors over k steps to the accumulators at c (more
// != 0) or to zero, and leaves them at c, row after row. Each element is one chain of fused
// multiply-adds in the order of k; a chain that was cut at a panel's end goes on from c.
//
// All accumulators stay in registers (they are printed as stack slots, which LLVM promotes); beside
// them live one vector of B per column and one broadcast element of A. The function is kept out of
// line so that the register allocator sees nothing but this loop.
//
// A packed operand is read as [k][width]. A direct one is read where it lies: A through one pointer
// per row (clamped to the last row that exists: surplus rows repeat it and are not stored), with
// any strides am and ak; B as vectors along its free axis, bk elements from step to step, under a
// mask where fewer than a tile's columns are left.
//
// The blocking is that of Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication", 2008.
#include "codegen/cpu/contract.h"

static void
print_slots(const struct contract_tile *t, struct str *o)
{
    for (uint32_t i = 0; i < t->rows * t->vecs; i++)
        str_printf(o, "  %%acc%u = alloca %s\n", i, t->vec);
    str_add(o, "  %pa = alloca i64\n  %pb = alloca ptr\n  %left = alloca i64\n"
               "  store i64 0, ptr %pa\n  store ptr %b, ptr %pb\n");
}

static void
print_start(const struct contract_tile *t, struct str *o)
{
    str_add(o, "  %resume = icmp ne i64 %more, 0\n"
               "  br i1 %resume, label %reload, label %zero\nzero:\n");
    for (uint32_t i = 0; i < t->rows * t->vecs; i++)
        str_printf(o, "  store %s zeroinitializer, ptr %%acc%u\n", t->vec, i);
    str_add(o, "  br label %start\nreload:\n");
    for (uint32_t i = 0; i < t->rows * t->vecs; i++) {
        str_printf(o, "  %%rp%u = getelementptr %s, ptr %%c, i64 %u\n", i, t->vec, i);
        str_printf(o, "  %%r%u = load %s, ptr %%rp%u, align %u\n", i, t->vec, i,
                   t->lanes * t->size);
        str_printf(o, "  store %s %%r%u, ptr %%acc%u\n", t->vec, i, i);
    }
    str_add(o, "  br label %start\nstart:\n");
}

static void
print_end(const struct contract_tile *t, struct str *o)
{
    str_add(o, "end:\n");
    for (uint32_t i = 0; i < t->rows * t->vecs; i++) {
        str_printf(o, "  %%wp%u = getelementptr %s, ptr %%c, i64 %u\n", i, t->vec, i);
        str_printf(o, "  %%w%u = load %s, ptr %%acc%u\n", i, t->vec, i);
        str_printf(o, "  store %s %%w%u, ptr %%wp%u, align %u\n", t->vec, i, i,
                   t->lanes * t->size);
    }
    str_add(o, "  ret void\n}\n");
}

// %row<i>: where row i of a direct A begins.
static void
print_rows(const struct contract_tile *t, struct str *o)
{
    str_add(o, "  %last = sub i64 %rows, 1\n");
    for (uint32_t i = 0; i < t->rows; i++) {
        str_printf(o, "  %%ri%u = call i64 @llvm.umin.i64(i64 %u, i64 %%last)\n", i, i);
        str_printf(o, "  %%ro%u = mul i64 %%ri%u, %%am\n", i, i);
        str_printf(o, "  %%row%u = getelementptr %s, ptr %%a, i64 %%ro%u\n", i, t->type, i);
    }
}

// %mask<v>: the columns of vector v that exist.
static void
print_masks(const struct contract_tile *t, struct str *o)
{
    str_printf(o, "  %%li = insertelement <%u x i64> poison, i64 %%cols, i64 0\n", t->lanes);
    str_printf(o, "  %%ls = shufflevector <%u x i64> %%li, <%u x i64> poison, <%u x i32> "
                  "zeroinitializer\n", t->lanes, t->lanes, t->lanes);
    for (uint32_t v = 0; v < t->vecs; v++) {
        str_printf(o, "  %%mask%u = icmp ugt <%u x i64> %%ls, <", v, t->lanes);
        for (uint32_t i = 0; i < t->lanes; i++)
            str_printf(o, "%si64 %u", i ? ", " : "", v * t->lanes + i);
        str_add(o, ">\n");
    }
}

// The vectors of B at one step: %b<v>.<s>.
static void
print_b(const struct contract_tile *t, struct str *o, uint32_t s, bool masked)
{
    str_printf(o, "  %%pb.%u = load ptr, ptr %%pb\n", s);
    for (uint32_t v = 0; v < t->vecs; v++) {
        str_printf(o, "  %%bp%u.%u = getelementptr %s, ptr %%pb.%u, i64 %u\n", v, s, t->vec, s, v);
        if (masked)
            str_printf(o, "  %%b%u.%u = call %s @llvm.masked.load.%s.p0(ptr %%bp%u.%u, i32 %u, "
                          "<%u x i1> %%mask%u, %s zeroinitializer)\n",
                       v, s, t->vec, t->mangle, v, s, t->size, t->lanes, v, t->vec);
        else
            str_printf(o, "  %%b%u.%u = load %s, ptr %%bp%u.%u, align %u\n", v, s, t->vec, v, s,
                       t->pack_b ? t->size * t->lanes : t->size);
    }
}

// acc += s * b for one row and vector.
static void
print_madd(const struct contract_tile *t, struct str *o, uint32_t s, uint32_t row, uint32_t v)
{
    uint32_t acc = row * t->vecs + v;
    str_printf(o, "  %%o%u.%u = load %s, ptr %%acc%u\n", acc, s, t->vec, acc);
    if (t->is_float) {
        str_printf(o, "  %%n%u.%u = call %s @llvm.fma.%s(%s %%s%u.%u, %s %%b%u.%u, %s %%o%u.%u)\n",
                   acc, s, t->vec, t->mangle, t->vec, row, s, t->vec, v, s, t->vec, acc, s);
    } else {
        str_printf(o, "  %%x%u.%u = mul %s %%s%u.%u, %%b%u.%u\n", acc, s, t->vec, row, s, v, s);
        str_printf(o, "  %%n%u.%u = add %s %%o%u.%u, %%x%u.%u\n", acc, s, t->vec, acc, s, acc, s);
    }
    str_printf(o, "  store %s %%n%u.%u, ptr %%acc%u\n", t->vec, acc, s, acc);
}

// One step of k; s numbers the steps in the text.
static void
print_step(const struct contract_tile *t, struct str *o, uint32_t s, bool masked)
{
    print_b(t, o, s, masked);
    str_printf(o, "  %%pa.%u = load i64, ptr %%pa\n", s);
    for (uint32_t i = 0; i < t->rows; i++) {
        if (t->pack_a) {
            str_printf(o, "  %%aq%u.%u = getelementptr %s, ptr %%a, i64 %%pa.%u\n", i, s, t->type,
                       s);
            str_printf(o, "  %%ap%u.%u = getelementptr %s, ptr %%aq%u.%u, i64 %u\n", i, s, t->type,
                       i, s, i);
        } else {
            str_printf(o, "  %%ap%u.%u = getelementptr %s, ptr %%row%u, i64 %%pa.%u\n", i, s,
                       t->type, i, s);
        }
        str_printf(o, "  %%e%u.%u = load %s, ptr %%ap%u.%u, align %u\n", i, s, t->type, i, s,
                   t->size);
        str_printf(o, "  %%h%u.%u = insertelement %s poison, %s %%e%u.%u, i64 0\n", i, s, t->vec,
                   t->type, i, s);
        str_printf(o, "  %%s%u.%u = shufflevector %s %%h%u.%u, %s poison, <%u x i32> "
                      "zeroinitializer\n", i, s, t->vec, i, s, t->vec, t->lanes);
        for (uint32_t v = 0; v < t->vecs; v++)
            print_madd(t, o, s, i, v);
    }
    if (t->pack_a)
        str_printf(o, "  %%qa.%u = add i64 %%pa.%u, %u\n", s, s, t->width);
    else
        str_printf(o, "  %%qa.%u = add i64 %%pa.%u, %%ak\n", s, s);
    str_printf(o, "  %%qb.%u = getelementptr %s, ptr %%pb.%u, i64 ", s, t->type, s);
    if (t->pack_b)
        str_printf(o, "%u\n", t->vecs * t->lanes);
    else
        str_add(o, "%bk\n");
    str_printf(o, "  store i64 %%qa.%u, ptr %%pa\n  store ptr %%qb.%u, ptr %%pb\n", s, s);
}

struct step_loop {
    const char *name, *next; // labels; the loop after it
    const char *count;       // right-hand side of how often it runs
    uint32_t first, steps;   // numbers of its steps, which keep names apart
    bool masked;
};

static void
print_loop(const struct contract_tile *t, struct str *o, const struct step_loop *l)
{
    const char *x = l->name;
    str_printf(o, "%s:\n  %%n.%s = %s\n  store i64 %%n.%s, ptr %%left\n", x, x, l->count, x);
    str_printf(o, "  %%none.%s = icmp eq i64 %%n.%s, 0\n"
                  "  br i1 %%none.%s, label %%%s, label %%%s.body\n%s.body:\n",
               x, x, x, l->next, x, x);
    for (uint32_t i = 0; i < l->steps; i++)
        print_step(t, o, l->first + i, l->masked);
    str_printf(o, "  %%l.%s = load i64, ptr %%left\n  %%m.%s = sub i64 %%l.%s, 1\n"
                  "  store i64 %%m.%s, ptr %%left\n", x, x, x, x);
    str_printf(o, "  %%again.%s = icmp ne i64 %%m.%s, 0\n"
                  "  br i1 %%again.%s, label %%%s.body, label %%%s\n", x, x, x, x, l->next);
}

void
contract_micro(const struct contract_tile *t, struct str *o)
{
    static const struct step_loop masked = {"masked", "end", "add i64 %k, 0", 0, 1, true};
    static const struct step_loop pairs = {"pairs", "odd", "lshr i64 %k, 1", 1, 2, false};
    static const struct step_loop odd = {"odd", "end", "and i64 %k, 1", 3, 1, false};
    str_add(o, "define internal void @micro(ptr noalias %a, i64 %am, i64 %ak, i64 %rows, "
               "ptr noalias %b, i64 %bk, i64 %cols, i64 %k, ptr noalias %c, i64 %more) "
               "noinline #0 {\nentry:\n");
    print_slots(t, o);
    if (!t->pack_a)
        print_rows(t, o);
    print_start(t, o);
    if (t->pack_b) {
        str_add(o, "  br label %pairs\n");
    } else {
        str_printf(o, "  %%whole = icmp uge i64 %%cols, %u\n"
                      "  br i1 %%whole, label %%pairs, label %%cut\ncut:\n",
                   t->vecs * t->lanes);
        print_masks(t, o);
        str_add(o, "  br label %masked\n");
        print_loop(t, o, &masked);
    }
    print_loop(t, o, &pairs);
    print_loop(t, o, &odd);
    print_end(t, o);
}
