// planted.c: the test of the tests. Bugs are planted in generated code, one at a time, by editing
// the LLVM text before it is compiled, and the checks that the sweep and the fuzzer make
// (tests/support/check_ways.h, on the calls of tests/support/op_cases.h) must notice each of them:
// by a wrong value, or by a crash at an inaccessible page. Without a bug the same graphs pass.
// So it is with rewritings of graphs that are nearly right.
#include "tests/support/check_ways.h"
#include "tests/support/graph_any.h"
#include "tests/support/own_device.h"
#include "tests/support/run_plan.h"

#include "codegen/codegen.h"
#include "ir/base/check.h"
#include "ir/text.h"

#include <criterion/criterion.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct bug {
    const char *words;
    uint16_t op;      // whose calls are run
    const char *find; // extended regular expression, within a line
    const char *put;  // in its place; \1 … \9: what the groups matched
};

// A vector type and a value of one, to be put in groups.
#define VEC_OF(t) "<[0-9]+ x " t ">"
#define VALUE "%[a-z0-9.]+"

static const struct bug bugs[] = {
    // arithmetic
    {"subtracts instead of adding", OP_add, "fadd", "fsub"},
    {"integers subtracted instead of added", OP_add, "= add (" VEC_OF("i[0-9]+") ")", "= sub \\1"},
    {"reads x instead of y", OP_sub, "%b1 = load ptr, ptr %b1.at", "%b1 = load ptr, ptr %b0.at"},
    {"operands of a subtraction swapped", OP_sub,
     "(f?sub " VEC_OF("[a-z0-9]+") ") (" VALUE "), (" VALUE ")", "\\1 \\3, \\2"},
    {"products contracted", OP_lerp, "f(mul|add|sub) ", "f\\1 contract "},
    {"multiplies by the reciprocal", OP_div,
     "(" VALUE ") = fdiv (<[0-9]+ x ([a-z]+)>) (" VALUE "), (" VALUE ")",
     "\\1.r = fdiv \\2 splat (\\3 1.0), \\5\n  \\1 = fmul \\2 \\4, \\1.r"},
    {"unsigned division of signed numbers", OP_floordiv, "sdiv", "udiv"},
    {"divides by zero", OP_floordiv, "or (" VEC_OF("i1") ") (" VALUE "), (" VALUE ")",
     "or \\1 \\3, \\3"},
    {"does not round down", OP_floordiv, "sub (" VEC_OF("i[0-9]+") ") (" VALUE "), splat .*",
     "sub \\1 \\2, zeroinitializer"},
    {"an arithmetic shift made logical", OP_shr, "ashr", "lshr"},
    {"shifts by the width", OP_shl, "icmp ult (" VEC_OF("i32") ") (.*), splat \\(i32 32\\)",
     "icmp ule \\1 \\2, splat (i32 32)"},
    {"a sign in a polynomial", OP_exp, "fadd", "fsub"},
    {"rounds ties away from zero", OP_round, "llvm.roundeven", "llvm.round"},
    {"truncates instead of rounding down", OP_floor, "llvm.floor", "llvm.trunc"},
    {"a half rounded towards zero", OP_add, "fptrunc (" VEC_OF("float") ") (" VALUE ")",
     "fptrunc \\1 zeroinitializer"},
    // comparisons and selections
    {"< becomes <=", OP_lt, "fcmp olt", "fcmp ole"},
    {"a comparison true of NaN", OP_lt, "fcmp olt", "fcmp ult"},
    {"not equal false of NaN", OP_ne, "fcmp une", "fcmp one"},
    {"unsigned comparison of signed numbers", OP_lt, "icmp slt <", "icmp ult <"},
    {"unsigned maximum of signed numbers", OP_max, "llvm.smax|icmp sgt (<)", "llvm.umax"},
    {"the smaller is the maximum", OP_max, "fcmp ogt (" VEC_OF("[a-z]+") ")", "fcmp olt \\1"},
    {"arms of a selection swapped", OP_where,
     "select (" VEC_OF("i1") ") (" VALUE "), (" VEC_OF("[a-z0-9]+") ") (" VALUE "), (.*)",
     "select \\1 \\2, \\5, \\3 \\4"},
    {"a bool's byte not normalised", OP_where, "icmp ne (" VEC_OF("i8") ") (" VALUE
     "), zeroinitializer", "trunc \\1 \\2 to <16 x i1>"},
    // conversions
    {"conversion does not saturate", OP_cast,
     "call (" VEC_OF("i[0-9]+") ") @llvm.fpto([su])i.sat[.a-z0-9]*\\((" VEC_OF("[a-z]+")
     ") (" VALUE ")\\)", "fpto\\2i \\3 \\4 to \\1"},
    {"signed integers widened as unsigned", OP_cast, "sext", "zext"},
    {"signed integers converted as unsigned", OP_cast, "sitofp", "uitofp"},
    // memory
    {"the tail is one element longer", OP_neg, "icmp ult (<16 x i8>)", "icmp ule \\1"},
    {"the tail misses its first element", OP_neg, "<i8 0, i8 1,", "<i8 99, i8 1,"},
    {"the tail is stored as a whole vector", OP_neg,
     "(call void @llvm.masked.store.*), <16 x i1> " VALUE "\\)", "\\1, <16 x i1> splat (i1 true))"},
    {"the tail is loaded as a whole vector", OP_neg,
     "(call .*@llvm.masked.load.*), <16 x i1> " VALUE ",", "\\1, <16 x i1> splat (i1 true),"},
    {"a chunk goes past the end", OP_neg,
     "call i64 @llvm.smin.i64\\(i64 (" VALUE "), i64 %extent0\\)", "add i64 \\1, 0"},
    {"a loop skips every other vector", OP_neg, "add nsw i64 (%loop[0-9]+.i), 16$",
     "add nsw i64 \\1, 32"},
    {"a stride with the wrong sign", OP_flip, "mul nsw i64 (" VALUE "), %stride([0-9]+)",
     "sub nsw i64 0, %stride\\2"},
    {"a stride of the wrong axis", OP_concat, "mul nsw i64 (" VALUE "), %stride([0-9]+)",
     "mul nsw i64 \\1, 1"},
    // reductions
    {"the wrong identity", OP_sum, "splat \\(float 0x8000000000000000\\)",
     "splat (float 0x3FF0000000000000)"},
    {"+0 is no identity of a sum", OP_sum, "splat \\(float 0x8000000000000000\\)",
     "zeroinitializer"},
    {"a partial sum dropped", OP_sum, "store <16 x float> " VALUE ", ptr (" VALUE "), align 16",
     "store <16 x float> zeroinitializer, ptr \\1, align 16"},
    {"the last lanes joined wrongly", OP_sum, "<i32 2, i32 3, i32 poison, i32 poison>",
     "<i32 2, i32 2, i32 poison, i32 poison>"},
    {"the last maximum instead of the first", OP_argmax, "fcmp ugt", "fcmp uge"},
    {"argmax passes over NaN", OP_argmax, "fcmp ugt", "fcmp ogt"},
    {"a product subtracted", OP_matmul, "(%n[.0-9]+) = add", "\\1 = sub"},
    // indices
    {"negative indices do not wrap", OP_take, "add (" VEC_OF("i64") ") (" VALUE
     "), splat \\(i64 [0-9]+\\)", "add \\1 \\2, zeroinitializer"},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

// ---- editing

struct edit {
    const struct bug *bug;
    regex_t find;
    uint32_t times;
};

static void
put_line(struct str *out, const char *line, const regmatch_t *m, const char *put)
{
    str_addn(out, line, (size_t)m[0].rm_so);
    for (; *put; put++) {
        if (*put != '\\') {
            str_addc(out, *put);
            continue;
        }
        const regmatch_t *group = &m[*++put - '0'];
        if (group->rm_so >= 0)
            str_addn(out, line + group->rm_so, (size_t)(group->rm_eo - group->rm_so));
    }
}

// Once a line, on every line.
static void
edit_text(void *user, struct str *text)
{
    struct edit *e = user;
    struct str out = {0};
    char *line = text->at, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        regmatch_t m[10];
        *end = '\0';
        bool definition = strncmp(line, "declare", 7) != 0 && *line != ';';
        if (definition && !regexec(&e->find, line, 10, m, 0)) {
            put_line(&out, line, m, e->bug->put);
            str_add(&out, line + m[0].rm_eo);
            e->times++;
        } else {
            str_add(&out, line);
        }
        str_addc(&out, '\n');
        *end = '\n';
    }
    str_add(&out, line);
    str_free(text);
    *text = out;
}

// ---- running

static ref
operand(struct graph *g, const struct operand *o)
{
    char name[40];
    if (o->below > 0)
        snprintf(name, sizeof name, "at%u_%lld_%lld", g->inputs.n, (long long)o->below,
                 (long long)o->wrap);
    else
        snprintf(name, sizeof name, "x%u", g->inputs.n);
    return graph_add_input(g, name, o->dtype, &o->shape, NULL, 0);
}

static struct graph *
graph_of_call(const struct call *c)
{
    struct graph *g = graph_new("planted");
    struct diag d = {0};
    ref in[OPERANDS_MOST];
    for (uint32_t i = 0; i < c->nin; i++)
        in[i] = operand(g, &c->in[i]);
    ref y = graph_build(g, c->op, in, c->nin, c->attr, c->nattr, 0, &d);
    CHECK(y.i, "%s", d.text);
    graph_add_output(g, "y", y);
    return g;
}

enum found { FOUND_NOTHING, FOUND_IT, NEVER_PLANTED };

// The calls of op, with all dtypes and some sizes, until one of them fails.
static enum found
run_calls(uint16_t op, const struct edit *e, struct device *dev, struct outcome *told)
{
    static const enum size_case sizes[] = {SIZE_37, SIZE_7, SIZE_1025};
    static const uint64_t seeds[] = {2, 3, 6, 9, 12, 15, 27}; // ordinary values, then special ones
    bool planted[DT_COUNT][DT_COUNT] = {0}; // by dtype and form: larger sizes find the code made
    uint32_t before = 0, edited = 0;
    struct call c;
    for (uint32_t i = 0; i < 3; i++)
        for (uint8_t dtype = 1; dtype < DT_COUNT; dtype++)
            for (uint32_t form = 0; form < call_forms(op); form++) {
                if (call_make(op, dtype, form, sizes[i], size_extent(sizes[i]), &c) != SKIP_NOT)
                    continue;
                struct graph *g = graph_of_call(&c);
                for (uint32_t s = 0; s < sizeof seeds / sizeof *seeds; s++) {
                    if (!check_ways(g, seeds[s], dev, told))
                        return FOUND_IT;
                    planted[dtype][form % DT_COUNT] |= e && e->times > before;
                    if (e && !planted[dtype][form % DT_COUNT]) // this kernel is as it was
                        break;
                }
                edited += planted[dtype][form % DT_COUNT];
                before = e ? e->times : 0;
                graph_free(g);
            }
    return e && !edited ? NEVER_PLANTED : FOUND_NOTHING;
}

static struct outcome *
shared_outcome(void)
{
    void *p = mmap(NULL, sizeof(struct outcome), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED, "mmap");
    return p;
}

static void
plant(const struct bug *b, struct outcome *told)
{
    struct edit e = {.bug = b};
    struct diag d = {0};
    int status = 0;
    cr_assert_eq(regcomp(&e.find, b->find, REG_EXTENDED), 0, "%s", b->find);
    memset(told, 0, sizeof *told);
    pid_t pid = fork(); // it may crash
    if (!pid) {
        alarm(100);
        struct device *dev = own_device_open((struct own_options){.level = CODE_BASELINE,
                                                                  .edit = edit_text, .user = &e},
                                             &d);
        _exit(dev ? (int)run_calls(b->op, &e, dev, told) : NEVER_PLANTED);
    }
    waitpid(pid, &status, 0);
    regfree(&e.find);
    bool crashed = WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM;
    cr_expect(crashed || WEXITSTATUS(status) != NEVER_PLANTED, "%s: the text has no such place",
              b->words);
    cr_expect(crashed || WEXITSTATUS(status) == FOUND_IT, "%s: not noticed", b->words);
    // Text that does not compile would prove nothing.
    cr_expect(!strstr(told->words, "LLVM"), "%s: %s", b->words, told->words);
    printf("%-45s %s\n", b->words, crashed ? "a crash" : told->words);
}

static void
plant_some(uint32_t first, uint32_t step)
{
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct outcome *told = shared_outcome();
    for (uint32_t i = first; i < BUGS; i += step)
        plant(&bugs[i], told);
}

Test(planted, every_bug_is_noticed)
{
    plant_some(0, 2);
}

Test(planted, every_other_bug_is_noticed)
{
    plant_some(1, 2);
}

// Each op once.
Test(planted, nothing_is_noticed_where_nothing_is_planted)
{
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct diag d = {0};
    struct outcome told = {0};
    struct device *dev = own_device_open((struct own_options){.level = CODE_BASELINE}, &d);
    cr_assert(dev, "%s", d.text);
    for (uint32_t i = 0; i < BUGS; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= bugs[k].op == bugs[i].op;
        if (!again && op_table[bugs[i].op].cost < 10)
            cr_assert_eq(run_calls(bugs[i].op, NULL, dev, &told), FOUND_NOTHING, "%s: %s",
                         op_name(bugs[i].op), told.words);
    }
    device_close(dev);
}

// ---- rewritings of graphs

#define F32 "graph @g(%x0: f32[40], %x1: f32[40]) { return "
static const struct {
    const char *right, *wrong;
} rewritings[] = {
    {F32 "add %x0, 0.0:f32 }", F32 "%x0 }"},
    {F32 "mul %x0, 0.0:f32 }", F32 "broadcast 0.0:f32 {shape = [40]} }"},
    {F32 "sub 0.0:f32, %x0 }", F32 "neg %x0 }"},
    {F32 "sub %x0, %x0 }", F32 "broadcast 0.0:f32 {shape = [40]} }"},
    {F32 "div %x0, %x0 }", F32 "broadcast 1.0:f32 {shape = [40]} }"},
    {F32 "mul (div %x0, %x1), %x1 }", F32 "%x0 }"},
    {F32 "div %x0, 3.0:f32 }", F32 "mul %x0, 0x1.555556p-2:f32 }"},
    {F32 "sub (add %x0, %x1), %x1 }", F32 "%x0 }"},
    {F32 "add (add %x0, %x1), 0.1:f32 }", F32 "add %x0, (add %x1, 0.1:f32) }"},
    {F32 "add (mul %x0, 3.0:f32), (mul %x1, 3.0:f32) }", F32 "mul (add %x0, %x1), 3.0:f32 }"},
    {F32 "not (lt %x0, %x1) }", F32 "ge %x0, %x1 }"},
    {F32 "where (gt %x0, %x1), %x0, %x1 }", F32 "max %x0, %x1 }"},
    {F32 "eq %x0, %x0 }", F32 "broadcast true:bool {shape = [40]} }"},
    {F32 "cast (cast %x0 {to = bf16}) {to = f32} }", F32 "%x0 }"},
    {F32 "cast (cast %x0 {to = i32}) {to = f32} }", F32 "%x0 }"},
    {F32 "sqrt (mul %x0, %x0) }", F32 "abs %x0 }"},
    {F32 "pow %x0, 0.5:f32 }", F32 "sqrt %x0 }"},
    {F32 "cast (add (cast %x0 {to = i8}), 100:i8) {to = i32} }",
     F32 "add (cast (cast %x0 {to = i8}) {to = i32}), 100:i32 }"},
    {F32 "floordiv (cast %x0 {to = i32}), 2:i32 }", F32 "cast (div %x0, 2.0:f32) {to = i32} }"},
    {F32 "sum (max %x0, %x1) {axes = [0]} }", F32 "max (sum %x0 {axes = [0]}), (sum %x1) }"},
};

// What `wrong` computes, held against what `right` means.
static bool
is_noticed(const struct graph *right, const struct graph *wrong, uint64_t seed,
           struct device *dev)
{
    struct tensor in[2];
    struct guarded memory[2];
    struct bounded want;
    struct diag d = {0};
    struct bound_tally t = {0};
    char where[200];
    for (uint32_t i = 0; i < 2; i++)
        memory[i] = any_input(right, i, seed, true, &in[i]);
    void **got = outputs_of(wrong);
    cr_assert(run_fused(wrong, in, got, dev, NULL, &d), "%s", d.text);
    cr_assert(bound_graph(right, in, false, &want, &d), "%s", d.text);
    bool noticed = !bound_check(&want, got[0], &t, where);
    bounded_free(&want);
    free_outputs(wrong, got);
    for (uint32_t i = 0; i < 2; i++)
        guarded_free(&memory[i]);
    return noticed;
}

static struct graph *
parsed(const char *text)
{
    struct diag d = {0};
    struct graph *g = graph_parse(text, strlen(text), "rewriting", &d);
    cr_assert(g, "%s: %s", text, d.text);
    return g;
}

Test(planted, rewritings_that_are_nearly_right_are_noticed)
{
    struct diag d = {0};
    if (!cpu_codegen_available())
        cr_skip_test("this build has no code generator (llvm=off)");
    struct device *dev = own_device_open((struct own_options){.level = CODE_BASELINE}, &d);
    cr_assert(dev, "%s", d.text);
    for (uint32_t i = 0; i < sizeof rewritings / sizeof *rewritings; i++) {
        struct graph *right = parsed(rewritings[i].right), *wrong = parsed(rewritings[i].wrong);
        bool noticed = false;
        for (uint64_t seed = 1; seed <= 60; seed++) {
            cr_assert(!is_noticed(right, right, seed, dev), "%s", rewritings[i].right);
            noticed |= is_noticed(right, wrong, seed, dev);
        }
        cr_expect(noticed, "not noticed: %s for %s", rewritings[i].wrong, rewritings[i].right);
        graph_free(right);
        graph_free(wrong);
    }
    device_close(dev);
}
