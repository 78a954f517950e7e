// contract_asm.c: the innermost loop of a contraction as assembly for AVX-512, or AVX2 and FMA:
// functions
//
//   micro.R.V.x(a, astep, b, bk, k, c, ldc, from, ldfrom, more, mask, copy, beside)
//
// that add the products of a tile of R rows by V vectors over k steps to what lies at `from` (more
// != 0) or to zero, and leave the sums at c; ldc and ldfrom are bytes from row to row. An element
// is one chain of fused multiply-adds in the order of k.
//
// Why not LLVM's loop (contract_micro.c, which all other targets use): a good tile takes 30 of 32
// registers, or all of 16, and LLVM's scheduler moves the next step's loads up until the sums are
// spilled; it also moves all sums through the stack between the loops. Here every register has one
// use; zmm stands for ymm with AVX2:
//
//   zmm0 .. R V - 1   the sums, row after row      then V vectors of B, then broadcasts of A
//   rdx, rcx          B and its bytes a step       r8       steps left
//   rdi and others    A, a base for five rows      rsi, rax bytes from row to row, three times that
//                     (or rsi: bytes a step)       r9, r10  C         r11 where B is copied to,
//                                                           or the next sums
//   r14               what the epilogue reads      r13 where in it
//   r12               AVX2: the cut vector's mask, in a table before the functions
//
// x says how B is read: p, packed as [k][vectors of the full tile]; d, where it lies, in vectors
// along its free axis; c, likewise, and written to `copy` in the packed form on the way: the first
// rows that read a panel pack it, at the price of V stores a step. A is read as [k][R] (packed, or
// where its rows are neighbours: astep is the bytes a step) or, where k's elements are neighbours,
// row by row (astep is the bytes from row to row).
//
// A tile at the matrix's edge has functions of its own, with exactly the rows and vectors that are
// left, so no row is read that does not exist; their last vector is cut by the mask: a bit an
// element in k1, or without opmasks a vector in ymm15, made from the number of elements.
//
// Arguments arrive as the System V ABI says. Sums are 32 or 64 bits. The functions are assembly of
// the module, not inline assembly in naked functions, which LLVM would send through all its passes:
// a tenth of the time to compile.
#include "codegen/cpu/contract.h"

enum { UNROLL = 4, ROWS_A_BASE = 5, MAX_BASES = 6 }; // UNROLL: steps a turn of the loop
// How far ahead memory is asked for: B where it lies, in eights of steps; packed A, in bytes; the
// next tile's sums, during so many last steps of this one.
enum { B_AHEAD = 3, A_AHEAD = 1024, LAST_STEPS = 48 };
enum { ARGUMENTS = 8 }; // bytes from the stack pointer to the first argument on the stack, at entry
static const char *const base[MAX_BASES] = {"rdi", "rbx", "rbp", "r12", "r13", "r14"};

struct micro {
    const struct contract_tile *t;
    struct str *o;
    uint32_t rows, vecs, bases;
    char kind; // p, d, c
    bool masked;
    bool beside; // asks for what the epilogue reads; takes the last two bases
};

static uint32_t
vector_bytes(const struct contract_tile *t)
{
    return t->lanes * t->size;
}

static bool
is_wide(const struct micro *m) // AVX-512
{
    return vector_bytes(m->t) == 64;
}

static char
file(const struct micro *m) // of registers: zmm, ymm
{
    return is_wide(m) ? 'z' : 'y';
}

static uint32_t
registers(const struct micro *m)
{
    return is_wide(m) ? 32 : 16;
}

// Where vector v lies behind the first one.
static uint32_t
behind(const struct micro *m, uint32_t v)
{
    return v * vector_bytes(m->t);
}

static uint32_t
sum(const struct micro *m, uint32_t row, uint32_t v)
{
    return row * m->vecs + v;
}

static uint32_t
vector_b(const struct micro *m, uint32_t v)
{
    return m->rows * m->vecs + v;
}

// One instruction. In inline assembly a $ is written twice.
#define SAY(m, ...) (str_printf((m)->o, __VA_ARGS__), str_add((m)->o, "\\0A"))

static const char *
moves(const struct micro *m) // a vector
{
    return m->t->size == 8 ? "vmovupd" : "vmovups";
}

static char
suffix(const struct micro *m)
{
    return m->t->size == 8 ? 'd' : 's';
}

static bool
is_cut(const struct micro *m, uint32_t v)
{
    return m->masked && v + 1 == m->vecs;
}

static const char *
opmask(const struct micro *m, uint32_t v)
{
    return is_cut(m, v) ? "{%k1}" : "";
}

// Whether vector v of B passes through a register; one row alone multiplies it from memory.
static bool
is_held(const struct micro *m, uint32_t v)
{
    return m->rows > 1 || m->kind == 'c' || is_cut(m, v);
}

static const char *
zeroing(const struct micro *m, uint32_t v)
{
    return is_cut(m, v) ? " {z}" : "";
}

// Without opmasks the mask is a vector in the last register: all along where that is free, else
// from the table, just before each use.
static bool
keeps_mask(const struct micro *m)
{
    return m->masked && !is_wide(m) && m->kind != 'p' &&
           m->rows * m->vecs + m->vecs + 2 <= registers(m);
}

static void
say_mask(const struct micro *m)
{
    SAY(m, "vmovups (%%r12), %%ymm15");
}

// Loads vector v, cut or not, from `at` bytes behind a pointer.
static void
say_load(const struct micro *m, uint32_t v, uint32_t at, const char *from, uint32_t to)
{
    if (is_wide(m))
        SAY(m, "%s %u(%%%s), %%zmm%u %s%s", moves(m), at, from, to, opmask(m, v), zeroing(m, v));
    else if (is_cut(m, v))
        SAY(m, "vmaskmovp%c %u(%%%s), %%ymm15, %%ymm%u", suffix(m), at, from, to);
    else
        SAY(m, "%s %u(%%%s), %%ymm%u", moves(m), at, from, to);
}

// Asks for the lines of a row of the tile.
static void
say_ahead_row(const struct micro *m, const char *from)
{
    for (uint32_t at = 0; at < behind(m, m->vecs); at += 64)
        SAY(m, "prefetcht0 %u(%s)", at, from);
}

// ---- before the loop

// Whether r12 points into the table of masks. It is no base then: rows take three at most.
static bool
has_mask_table(const struct micro *m)
{
    return m->masked && !is_wide(m);
}

// The offset of argument i of those on the stack.
static uint32_t
on_stack(const struct micro *m, uint32_t i)
{
    return ARGUMENTS + 8 * (i + m->bases + 2 * m->beside + has_mask_table(m));
}

static void
say_entry(const struct micro *m)
{
    SAY(m, "pushq %%r15");
    for (uint32_t i = 1; i < m->bases; i++)
        SAY(m, "pushq %%%s", base[i]);
    if (has_mask_table(m))
        SAY(m, "pushq %%r12");
    if (m->beside) {
        SAY(m, "pushq %%r13");
        SAY(m, "pushq %%r14");
        SAY(m, "movq %u(%%rsp), %%r14", on_stack(m, 6));
    }
    if (m->masked && is_wide(m)) {
        SAY(m, "movl %u(%%rsp), %%eax", on_stack(m, 4));
        SAY(m, "kmovw %%eax, %%k1");
    }
    if (!has_mask_table(m))
        return;
    SAY(m, "movq %u(%%rsp), %%rax", on_stack(m, 4));
    SAY(m, "negq %%rax");
    SAY(m, "leaq micro.masks+%u(%%rip), %%r12", vector_bytes(m->t));
    SAY(m, "leaq (%%r12,%%rax,%u), %%r12", m->t->size);
    say_mask(m);
}

static void
say_sums(const struct micro *m)
{
    SAY(m, "cmpq $0, %u(%%rsp)", on_stack(m, 3));
    SAY(m, "jne 1f");
    for (uint32_t i = 0; i < m->rows * m->vecs; i++)
        if (is_wide(m))
            SAY(m, "vpxord %%zmm%u, %%zmm%u, %%zmm%u", i, i, i);
        else
            SAY(m, "vxorps %%xmm%u, %%xmm%u, %%xmm%u", i, i, i);
    SAY(m, "jmp 2f");
    SAY(m, "1:");
    SAY(m, "movq %u(%%rsp), %%r10", on_stack(m, 1));
    SAY(m, "movq %u(%%rsp), %%r11", on_stack(m, 2));
    for (uint32_t r = 0; r < m->rows; r++) {
        for (uint32_t v = 0; v < m->vecs; v++)
            say_load(m, v, behind(m, v), "r10", sum(m, r, v));
        SAY(m, "addq %%r11, %%r10");
    }
    SAY(m, "2:");
}

static void
say_pointers(const struct micro *m)
{
    SAY(m, "movq %u(%%rsp), %%r10", on_stack(m, 0));
    SAY(m, "movq %u(%%rsp), %%r11", on_stack(m, 5));
    SAY(m, "imulq $%u, %%rcx, %%r15", B_AHEAD);
    if (!m->t->a_by_row)
        return;
    SAY(m, "leaq (%%rsi,%%rsi,2), %%rax");
    for (uint32_t i = 1; i < m->bases; i++) {
        SAY(m, "leaq (%%%s,%%rsi,4), %%%s", base[i - 1], base[i]);
        SAY(m, "addq %%rsi, %%%s", base[i]);
    }
}

// ---- the loop

// The element of A in row r at the u-th step of a turn.
static void
say_a(const struct micro *m, uint32_t r, uint32_t u)
{
    static const char *const down[ROWS_A_BASE] = {"", ",%rsi", ",%rsi,2", ",%rax", ",%rsi,4"};
    const struct contract_tile *t = m->t;
    if (t->a_by_row)
        str_printf(m->o, "%u(%%%s%s)", u * t->size, base[r / ROWS_A_BASE], down[r % ROWS_A_BASE]);
    else
        str_printf(m->o, "%u(%%rdi)", ((t->pack_a ? u * t->width : 0) + r) * t->size);
}

static void
say_b(const struct micro *m, uint32_t u)
{
    uint32_t step = m->t->vecs * vector_bytes(m->t);
    for (uint32_t v = 0; v < m->vecs; v++) {
        uint32_t at = behind(m, v);
        if (m->kind == 'p' && is_held(m, v)) {
            SAY(m, "%s %u(%%rdx), %%%cmm%u ", moves(m), u * step + at, file(m), vector_b(m, v));
        } else if (is_held(m, v)) {
            if (has_mask_table(m) && is_cut(m, v) && !keeps_mask(m))
                say_mask(m);
            say_load(m, v, at, "rdx", vector_b(m, v));
        }
        if (m->kind != 'p' && at % 64 == 0)
            SAY(m, "prefetcht0 %u(%%rdx,%%r15,8)", at);
        if (m->kind == 'c')
            SAY(m, "%s %%%cmm%u, %u(%%r11)", moves(m), file(m), vector_b(m, v), u * step + at);
    }
}

static void
say_row(const struct micro *m, uint32_t r, uint32_t u)
{
    uint32_t at = (m->kind == 'p' ? u * behind(m, m->t->vecs) : 0);
    uint32_t first = vector_b(m, m->vecs), last = registers(m) - keeps_mask(m);
    uint32_t x = first + r % (last - first);
    char f = file(m);
    if (m->vecs == 1 && m->rows > 1 && is_wide(m)) { // one use: straight from memory
        str_printf(m->o, "vfmadd231p%c ", suffix(m));
        say_a(m, r, u);
        SAY(m, "{1to%u}, %%zmm%u, %%zmm%u", m->t->lanes, vector_b(m, 0), sum(m, r, 0));
        return;
    }
    str_printf(m->o, "vbroadcasts%c ", suffix(m));
    say_a(m, r, u);
    SAY(m, ", %%%cmm%u", f, x);
    for (uint32_t v = 0; v < m->vecs; v++)
        if (is_held(m, v))
            SAY(m, "vfmadd231p%c %%%cmm%u, %%%cmm%u, %%%cmm%u", suffix(m), f, x, f, vector_b(m, v),
                f, sum(m, r, v));
        else
            SAY(m, "vfmadd231p%c %u(%%rdx), %%%cmm%u, %%%cmm%u", suffix(m), at + behind(m, v), f, x,
                f, sum(m, r, v));
}

// Packed A comes from the second-level cache, in order: a line is asked for where one is passed.
static void
say_ahead(const struct micro *m, uint32_t u)
{
    uint32_t step = m->t->width * m->t->size, from = u * step, to = from + step;
    for (uint32_t at = (from + 63) / 64 * 64; m->t->pack_a && at < to; at += 64)
        SAY(m, "prefetcht0 %u(%%rdi)", at + A_AHEAD);
}

// To the next step, after `steps` whose offsets are in the instructions where these are constant.
static void
say_advance(const struct micro *m, uint32_t steps, bool turn)
{
    const struct contract_tile *t = m->t;
    if (turn && t->a_by_row)
        for (uint32_t i = 0; i < m->bases; i++)
            SAY(m, "addq $%u, %%%s", steps * t->size, base[i]);
    if (turn && t->pack_a && !t->a_by_row)
        SAY(m, "addq $%u, %%rdi", steps * t->width * t->size);
    if (turn && m->kind == 'p')
        SAY(m, "addq $%u, %%rdx", steps * t->vecs * vector_bytes(t));
    if (turn && m->kind == 'c')
        SAY(m, "addq $%u, %%r11", steps * t->vecs * vector_bytes(t));
    if (!turn && !t->pack_a && !t->a_by_row)
        SAY(m, "addq %%rsi, %%rdi");
    if (!turn && m->kind != 'p')
        SAY(m, "addq %%rcx, %%rdx");
}

// The last rows down have no tile below.
static bool
asks_for_sums(const struct micro *m)
{
    return m->kind == 'p' && m->t->c_in_output && m->rows == m->t->rows;
}

// Functions for a few of the tiles, the first or last ones down, are short: their text takes time
// to compile, and a turn of one step costs little beside its products.
static uint32_t
steps_a_turn(const struct micro *m)
{
    return m->kind == 'c' || m->rows < m->t->rows ? 1 : UNROLL;
}

// What the epilogue of this tile reads comes from far, so it is asked for all along, a row every 16
// steps, the first row last; but for the panel that is the last, r14 is 0.
static void
say_beside(const struct micro *m)
{
    SAY(m, "testb $12, %%r8b");
    SAY(m, "jnz 7f");
    SAY(m, "testq %%r14, %%r14");
    SAY(m, "jz 7f");
    SAY(m, "movq %%r8, %%r13");
    SAY(m, "sarq $4, %%r13");
    SAY(m, "imulq %u(%%rsp), %%r13", on_stack(m, 2));
    say_ahead_row(m, "%r14,%r13");
    SAY(m, "7:");
}

static void
say_turn(const struct micro *m, uint32_t steps)
{
    for (uint32_t u = 0; u < steps; u++) {
        say_b(m, u);
        say_ahead(m, u);
        for (uint32_t r = 0; r < m->rows; r++)
            say_row(m, r, u);
        say_advance(m, 1, false);
    }
    say_advance(m, steps, true);
    if (!asks_for_sums(m) || steps == 1)
        return;
    say_ahead_row(m, "%r11");
    SAY(m, "addq %%r15, %%r11");
    if (m->beside)
        say_beside(m);
}

// Leaves in r8, and compared with 0, the steps of less than a turn.
static void
say_long_turns(const struct micro *m, bool late)
{
    SAY(m, "subq $%u, %%r8", late ? UNROLL + LAST_STEPS : UNROLL);
    SAY(m, "jl 4f");
    SAY(m, ".p2align 5");
    SAY(m, "3:");
    say_turn(m, UNROLL);
    SAY(m, "subq $%u, %%r8", UNROLL);
    SAY(m, "jge 3b");
    SAY(m, "4:");
    if (late) {
        SAY(m, "testq %%rcx, %%rcx");
        SAY(m, "jz 4f");
        SAY(m, "addq %%rcx, %%r8");
        SAY(m, "movl $0, %%ecx"); // leaves the flags
        SAY(m, "movq %u(%%rsp), %%r15", on_stack(m, 2));
        SAY(m, "jge 3b");
        SAY(m, "4:");
    }
    SAY(m, "addq $%u, %%r8", UNROLL);
}

// The sums of the tile below are asked for over the last turns of this one, a row a turn: earlier,
// B's panel would push them out of the first-level cache again; all at once, they would fill its
// queue. Until then r11 stands still (r15 is 0); rcx is the steps put off, 0 once they are begun.
static void
say_loop(const struct micro *m)
{
    bool late = asks_for_sums(m);
    if (late) {
        SAY(m, "imulq $%u, %u(%%rsp), %%r11", m->rows, on_stack(m, 2));
        SAY(m, "addq %u(%%rsp), %%r11", on_stack(m, 1));
        SAY(m, "xorl %%r15d, %%r15d");
        SAY(m, "movl $%u, %%ecx", LAST_STEPS);
    }
    if (steps_a_turn(m) > 1)
        say_long_turns(m, late);
    else
        SAY(m, "testq %%r8, %%r8");
    SAY(m, "jz 6f");
    SAY(m, "5:");
    say_turn(m, 1);
    SAY(m, "decq %%r8");
    SAY(m, "jnz 5b");
    SAY(m, "6:");
}

// The elements that exist of the cut vector of a row, of which al holds the number. Halves, because
// a masked store of 256 bits is tens of operations on some processors.
static void
say_store_cut(const struct micro *m, uint32_t r)
{
    uint32_t lanes = m->t->lanes, v = m->vecs - 1, x = sum(m, r, v);
    SAY(m, "testb $%u, %%al", lanes);
    SAY(m, "jz 8f");
    SAY(m, "%s %%ymm%u, %u(%%r9)", moves(m), x, behind(m, v));
    SAY(m, "jmp 9f");
    SAY(m, "8:");
    SAY(m, "leaq %u(%%r9), %%r11", behind(m, v));
    SAY(m, "testb $%u, %%al", lanes / 2);
    SAY(m, "jz 8f");
    SAY(m, "vmovups %%xmm%u, (%%r11)", x);
    SAY(m, "vextractf128 $1, %%ymm%u, %%xmm%u", x, x);
    SAY(m, "addq $16, %%r11");
    SAY(m, "8:");
    if (lanes == 8) {
        SAY(m, "testb $2, %%al");
        SAY(m, "jz 8f");
        SAY(m, "vmovlps %%xmm%u, (%%r11)", x);
        SAY(m, "vmovhlps %%xmm%u, %%xmm%u, %%xmm%u", x, x, x);
        SAY(m, "addq $8, %%r11");
        SAY(m, "8:");
    }
    SAY(m, "testb $1, %%al");
    SAY(m, "jz 9f");
    SAY(m, "vmovs%c %%xmm%u, (%%r11)", suffix(m), x);
    SAY(m, "9:");
}

static void
say_exit(const struct micro *m)
{
    if (has_mask_table(m))
        SAY(m, "movq %u(%%rsp), %%rax", on_stack(m, 4));
    for (uint32_t r = 0; r < m->rows; r++) {
        for (uint32_t v = 0; v < m->vecs; v++)
            if (is_cut(m, v) && !is_wide(m))
                say_store_cut(m, r);
            else
                SAY(m, "%s %%%cmm%u, %u(%%r9) %s", moves(m), file(m), sum(m, r, v), behind(m, v),
                    opmask(m, v));
        SAY(m, "addq %%r10, %%r9");
    }
    if (m->beside) {
        SAY(m, "popq %%r14");
        SAY(m, "popq %%r13");
    }
    if (has_mask_table(m))
        SAY(m, "popq %%r12");
    for (uint32_t i = m->bases; i-- > 1;)
        SAY(m, "popq %%%s", base[i]);
    SAY(m, "popq %%r15");
    SAY(m, "vzeroupper");
    SAY(m, "retq");
}

static void
function(const struct contract_tile *t, struct str *o, uint32_t rows, bool cut, char kind)
{
    struct micro m = {.t = t, .o = o, .rows = rows, .vecs = cut ? t->edge_vecs : t->vecs,
                      .kind = kind, .bases = 1, .masked = cut};
    if (t->a_by_row)
        m.bases = (rows + ROWS_A_BASE - 1) / ROWS_A_BASE;
    m.beside = t->reads_beside && asks_for_sums(&m) && m.bases <= MAX_BASES - 2;
    struct str name = {0};
    str_printf(&name, "micro.%u.%u.%c%s", rows, m.vecs, kind, cut ? ".cut" : "");
    const char *f = str_text(&name);
    str_printf(o, "declare dso_local void @%s(ptr, i64, ptr, i64, i64, ptr, i64, ptr, i64, i64, "
                  "i64, ptr, ptr)\nmodule asm \"", f);
    SAY(&m, ".p2align 4");
    SAY(&m, ".type %s,@function", f);
    SAY(&m, "%s:", f);
    say_entry(&m);
    say_sums(&m);
    say_pointers(&m);
    say_loop(&m);
    say_exit(&m);
    SAY(&m, ".size %s, . - %s", f, f);
    str_add(o, "\"\n");
    str_free(&name);
}

// A vector of ones, then one of zeros.
static void
say_masks(const struct contract_tile *t, struct str *o)
{
    uint32_t bytes = vector_bytes(t);
    str_printf(o, "module asm \".p2align 6\\0Amicro.masks:\\0A.fill %u,1,255\\0A"
                  ".fill %u,1,0\\0A\"\n", bytes, bytes);
}

void
contract_asm(const struct contract_tile *t, struct str *o)
{
    if (t->edge_vecs && vector_bytes(t) < 64)
        say_masks(t, o);
    const char *kinds = t->pack_b ? "p" : t->copy_b ? "cp" : "d";
    for (const char *kind = kinds; *kind; kind++)
        for (int cut = 0; cut <= (t->edge_vecs != 0); cut++) {
            function(t, o, t->rows, cut, *kind);
            if (t->edge_rows)
                function(t, o, t->edge_rows, cut, *kind);
        }
}

// The name of a function; of the rows and columns left, i64.
static const char *
choose(struct emitter *e, const struct contract_tile *t, const char *rows, const char *columns,
       char kind)
{
    const char *f[2][2]; // [rows cut][columns cut]
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            f[i][j] = emit_text(e, "@micro.%u.%u.%c%s", i ? t->edge_rows : t->rows,
                                j ? t->edge_vecs : t->vecs, kind, j ? ".cut" : "");
    const char *tall = emit_op(e, "icmp sge i64 %s, %u", rows, t->rows);
    const char *wide = emit_op(e, "icmp sge i64 %s, %u", columns, t->vecs * t->lanes);
    const char *pick[2];
    for (int i = 0; i < (t->edge_rows ? 2 : 1); i++)
        pick[i] = t->edge_vecs ? emit_op(e, "select i1 %s, ptr %s, ptr %s", wide, f[i][0], f[i][1])
                               : f[i][0];
    return t->edge_rows ? emit_op(e, "select i1 %s, ptr %s, ptr %s", tall, pick[0], pick[1])
                        : pick[0];
}

void
contract_asm_call(struct emitter *e, const struct contract_tile *t, const struct contract_call *c)
{
    const char *f;
    char kind = t->pack_b ? 'p' : 'd';
    if (t->copy_b && !t->pack_b) {
        const char *first = choose(e, t, c->rows, c->columns, 'c');
        f = emit_op(e, "select i1 %s, ptr %s, ptr %s", c->first_rows, first,
                    choose(e, t, c->rows, c->columns, 'p'));
    } else {
        f = choose(e, t, c->rows, c->columns, kind);
    }
    const char *mask = "0";
    if (t->edge_vecs) {
        const char *left = emit_op(e, "sub i64 %s, %u", c->columns, (t->edge_vecs - 1) * t->lanes);
        left = emit_min(e, left, emit_text(e, "%u", t->lanes));
        mask = left;
        if (vector_bytes(t) == 64)
            mask = emit_op(e, "sub i64 %s, 1", emit_op(e, "shl i64 1, %s", left));
    }
    emit_line(e, "call void %s(ptr %s, i64 %s, ptr %s, i64 %s, i64 %s, ptr %s, i64 %s, ptr %s, "
                 "i64 %s, i64 %s, i64 %s, ptr %s, ptr %s)",
              f, c->a, c->a_step, c->b, c->b_step, c->steps, c->to, c->to_row, c->from,
              c->from_row, c->more, mask, c->copy, c->beside);
}
