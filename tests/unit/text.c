// text.c: the .fuse form: what is printed parses to the same graph, what is wrong is refused with
// file, line, column and words, and no text is too strange.
#include "ir/text.h"

#include "ir/base/str.h"
#include "ir/literal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct graph *
parse(const char *text, struct diag *d)
{
    *d = (struct diag){0};
    return graph_parse(text, strlen(text), "t.fuse", d);
}

static struct graph *
must_parse(const char *text)
{
    struct diag d;
    struct graph *g = parse(text, &d);
    cr_assert(g, "%s\n%s", d.text, text);
    struct diag v = {0};
    cr_assert(graph_verify(g, &v), "%s\n%s", v.text, text);
    return g;
}

static void
assert_equal_graphs(const struct graph *a, const struct graph *b, const char *text)
{
    cr_assert_str_eq(a->name, b->name);
    cr_assert_eq(a->node.n, b->node.n, "%s", text);
    for (uint32_t i = 1; i < a->node.n; i++) {
        const struct node *x = &a->node.at[i], *y = &b->node.at[i];
        cr_assert(x->op == y->op && x->dtype == y->dtype && x->nin == y->nin, "%u: %s", i, text);
        for (uint32_t k = 0; k < x->nin; k++)
            cr_assert_eq(node_in(a, x, k).i, node_in(b, y, k).i, "%u: %s", i, text);
    }
    cr_assert_eq(a->inputs.n, b->inputs.n);
    for (uint32_t i = 0; i < a->inputs.n; i++) {
        const struct graph_input *x = &a->inputs.at[i], *y = &b->inputs.at[i];
        cr_assert_str_eq(x->name, y->name);
        cr_assert(x->dense == y->dense && x->align_log2 == y->align_log2 && x->node.i == y->node.i);
        cr_assert_arr_eq(x->stride, y->stride, sizeof x->stride);
    }
    cr_assert_eq(a->outputs.n, b->outputs.n);
    for (uint32_t i = 0; i < a->outputs.n; i++) {
        cr_assert_str_eq(a->outputs.at[i].name, b->outputs.at[i].name);
        cr_assert_eq(a->outputs.at[i].node.i, b->outputs.at[i].node.i);
    }
}

// Prints g, parses that, and demands the same graph and the same text. Frees g.
static void
assert_round_trip(struct graph *g)
{
    struct str first = {0}, second = {0};
    graph_print(g, &first);
    struct graph *again = must_parse(first.at);
    graph_print(again, &second);
    cr_assert_str_eq(first.at, second.at);
    assert_equal_graphs(g, again, first.at);
    graph_free(g);
    graph_free(again);
    str_free(&first);
    str_free(&second);
}

static void
assert_prints(const char *text, const char *expected)
{
    struct graph *g = must_parse(text);
    struct str out = {0};
    graph_print(g, &out);
    cr_assert_str_eq(out.at, expected);
    str_free(&out);
    assert_round_trip(g);
}

static void
assert_refused(const char *text, const char *expected)
{
    struct diag d;
    struct graph *g = parse(text, &d);
    cr_assert_null(g, "parsed: %s", text);
    cr_assert_eq(d.code, DIAG_INVALID);
    cr_assert(strstr(d.text, expected), "expected: %s\nfound:    %s", expected, d.text);
}

Test(text, softmax_as_in_the_design)
{
    assert_prints("graph @softmax(%x: f32[N=4096, 16384]) {\n"
                  "  %m = max %x {axes = [1], keepdims = true} # a comment\n"
                  "  %e = exp (sub %x, %m) // another\n"
                  "  %s = sum %e {axes = [1], keepdims = true}\n"
                  "  return div %e, %s\n"
                  "}\n",
                  "graph @softmax(%x: f32[N=4096, 16384]) {\n"
                  "  %2 = max %x {axes = [1], keepdims = true} -> f32[N, 1]\n"
                  "  %3 = sub %x, %2 -> f32[N, 16384]\n"
                  "  %4 = exp %3 -> f32[N, 16384]\n"
                  "  %5 = sum %4 {axes = [1], keepdims = true} -> f32[N, 1]\n"
                  "  %6 = div %4, %5 -> f32[N, 16384]\n"
                  "  return %6\n"
                  "}\n");
}

Test(text, calls_in_all_forms_are_one_graph)
{
    static const char *const body[] = {
        "%a = sub %x, %y %b = exp %a return add %b, %x",
        "return add(exp(sub(%x, %y)), %x)",
        "return add (exp (sub %x, %y)), %x",
        "return add exp sub %x, %y, %x",
        "return (add (exp(sub (%x, %y)), %x))",
    };
    struct str first = {0}, text = {0}, out = {0};
    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        text.n = out.n = 0;
        str_printf(&text, "graph @g(%%x: f32[2], %%y: f32[2]) {%s}", body[i]);
        struct graph *g = must_parse(text.at);
        graph_print(g, i ? &out : &first);
        if (i)
            cr_assert_str_eq(out.at, first.at, "%s", body[i]);
        graph_free(g);
    }
    str_free(&first);
    str_free(&text);
    str_free(&out);
}

Test(text, numbers_take_the_other_operand_dtype)
{
    assert_prints("graph(%x: f16[3], %i: i8[3], %b: bool[3]) {\n"
                  "%a = add %x, 1 %c = mul 2.5, %x %d = sub %i, 3 %e = add %i, 0.5\n"
                  "%f = where %b, %x, 0 %g = add %b, 2 %h = max %x, -inf\n"
                  "return %a, %c, %d, %e, %f, %g, %h }",
                  "graph (%x: f16[3], %i: i8[3], %b: bool[3]) {\n"
                  "  %5 = add %x, 1.0:f16 -> f16[3]\n"
                  "  %7 = mul 2.5:f16, %x -> f16[3]\n"
                  "  %9 = sub %i, 3:i8 -> i8[3]\n"
                  "  %10 = 0.5:f64\n"
                  "  %11 = cast %i {to = f64} -> f64[3]\n"
                  "  %12 = add %11, %10 -> f64[3]\n"
                  "  %14 = where %b, %x, 0.0:f16 -> f16[3]\n"
                  "  %15 = 2:i64\n"
                  "  %16 = cast %b {to = i64} -> i64[3]\n"
                  "  %17 = add %16, %15 -> i64[3]\n"
                  "  %19 = max %x, -inf:f16 -> f16[3]\n"
                  "  return %5, %7, %9, %12, %14, %17, %19\n"
                  "}\n");
}

Test(text, attributes_and_names)
{
    assert_round_trip(must_parse(
        "graph \"odd \\\"name\\\"\\n\"(%x \"a b\": f32[N=8, M=4] {strides = [1, 8], align = 4},\n"
        "  %7: i32[], %x2 \"a b\": f32[2*N+1, N*M - 1], %q: bool) {\n"
        "%r = reshape %x {shape = [M, 2, -1]} %p = permute %r {axes = [2, 0, -2]}\n"
        "%b = broadcast %7 {shape = [3, N]} %s = slice %x {start = [7, 0], stop = [-1, 4],\n"
        "  step = [-2, 1]} %t = slice %x {stop = [4, 2]} %f = flip %x {axes = [0]}\n"
        "%d = pad %x {low = [1, 0], high = [0, 2], value = nan(0xffc00001)}\n"
        "%c = concat %x, %x, %x, %x, %x, %f {axis = 1} %i = iota {shape = [4, N], axis = 0}\n"
        "%m = sum %x %n = mean %x {axes = [-1]} %v = var %x {axes = [0], correction = 1}\n"
        "%o = softmax %x %l = rms_norm %x, (sum %x {axes = [0]}) {eps = 1e-6}\n"
        "%w = argmax %x {axes = [1]} %u = take %x, %w {axis = 0} %z = cast %x {to = bf16}\n"
        "%y = all %q return first = %r, \"second one\" = %p, %b, x = %s, z = %t, %d, %c, %i, %m,\n"
        "  %n, %v, %o, %l, %u, %z, %y, %7, 2.5:f64, nan:f16, true }"));
}

Test(text, inputs_after_other_nodes_and_symbols_out_of_order)
{
    struct graph *g = graph_new("late");
    sym n = sym_named(g->sym, "N", 4), m = sym_named(g->sym, "M", 3);
    sym_named(g->sym, "unused", 9);
    struct shape a = {.rank = 1, .dim = {m}}, b = {.rank = 2, .dim = {n, m}};
    struct diag d = {0};
    ref one = graph_literal(g, DT_f32, scalar_from_double(DT_f32, 1), 0);
    ref x = graph_add_input(g, "x", DT_f32, &a, NULL, 6);
    ref s = graph_build(g, OP_add, (ref[]){x, one}, 2, NULL, 0, 0, &d);
    ref y = graph_add_input(g, "x", DT_f32, &b, NULL, 0);
    graph_add_output(g, "", graph_build(g, OP_mul, (ref[]){s, y}, 2, NULL, 0, 0, &d));
    cr_assert_eq(d.code, DIAG_OK, "%s", d.text);
    assert_round_trip(g);
}

Test(text, literals_are_inlined_only_where_numbers_stay)
{
    struct graph *g = graph_new("l");
    struct shape s = {.rank = 1, .dim = {sym_num(2)}};
    struct diag d = {0};
    ref x = graph_add_input(g, "x", DT_i32, &s, NULL, 6), lit[12];
    for (int i = 0; i < 12; i++)
        lit[i] = graph_literal(g, DT_i32, (uint64_t)i, 0);
    ref r = graph_build(g, OP_where, (ref[]){graph_build(g, OP_lt, (ref[]){lit[11], lit[10]}, 2,
                        NULL, 0, 0, &d), lit[3], x}, 3, NULL, 0, 0, &d);
    for (int i = 0; i < 12; i++)
        r = graph_build(g, OP_add, (ref[]){r, lit[11 - i]}, 2, NULL, 0, 0, &d);
    ref a = graph_literal(g, DT_i32, 77, 0), b = graph_literal(g, DT_i32, 78, 0);
    graph_add_output(g, "r", graph_build(g, OP_clamp, (ref[]){r, a, b}, 3, NULL, 0, 0, &d));
    ref e = graph_literal(g, DT_i32, 79, 0);
    graph_add_output(g, "e", e);
    cr_assert_eq(d.code, DIAG_OK, "%s", d.text);
    assert_round_trip(g);
}

Test(text, every_f16_and_bf16_literal_is_exact)
{
    static const uint8_t dtype[] = {DT_f16, DT_bf16};
    struct str s = {0};
    for (int k = 0; k < 2; k++)
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint64_t back = 1;
            const char *why = "";
            s.n = 0;
            literal_print(dtype[k], bits, &s);
            cr_assert(literal_parse(s.at, s.n, dtype[k], &back, &why), "%s %s", s.at, why);
            cr_assert_eq(back, bits, "%s: %llx", s.at, (unsigned long long)back);
        }
    str_free(&s);
}

Test(text, f32_f64_and_integer_literals_are_exact)
{
    struct str s = {0};
    uint64_t h = 1;
    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t d = (uint8_t)(1 + i % (DT_COUNT - 1));
        h = hash_mix(h, i);
        uint64_t bits = d == DT_bool ? h & 1 : h >> (64 - dtype_table[d].bits), back = 1;
        const char *why = "";
        s.n = 0;
        literal_print(d, bits, &s);
        cr_assert(literal_parse(s.at, s.n, d, &back, &why), "%s %s", s.at, why);
        cr_assert_eq(back, bits, "%s", s.at);
    }
    str_free(&s);
}

static void
assert_literal(uint8_t dtype, uint64_t bits, const char *text)
{
    struct str s = {0};
    literal_print(dtype, bits, &s);
    cr_assert_str_eq(s.at, text);
    str_free(&s);
}

Test(text, literals_are_short)
{
    assert_literal(DT_f32, 0x3dcccccd, "0.1");
    assert_literal(DT_f32, 0x80000000, "-0.0");
    assert_literal(DT_f32, 1, "1e-45");
    assert_literal(DT_f64, 0x3fb999999999999a, "0.1");
    assert_literal(DT_f64, 0x7ff0000000000001, "nan(0x7ff0000000000001)");
    assert_literal(DT_f32, 0xffc00000, "-nan");
    assert_literal(DT_f16, 0xfc00, "-inf");
    assert_literal(DT_i64, 0x8000000000000000, "-9223372036854775808");
    assert_literal(DT_u64, UINT64_MAX, "18446744073709551615");
    assert_literal(DT_bool, 1, "true");
}

Test(text, outputs_that_look_like_operands)
{
    static const char *const two[] = {
        "return (sub %x, %x), %x", "return sub(%x, %x), %x", "return sub (%x, %x), %x",
        "return max %x {axes = []}, %x", "return y = sub %x, %x, z = neg %x",
        "return sub %x, %x, neg %x", "return neg %x, %x", "return %x, sub %x, %x",
    };
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        char text[100];
        struct diag d = {0};
        snprintf(text, sizeof text, "graph @f(%%x: f32) { %s }", two[i]);
        struct graph *g = graph_parse(text, strlen(text), "two.fuse", &d);
        cr_assert(g, "%s: %s", two[i], d.text);
        cr_assert_eq(g->outputs.n, 2, "%s", two[i]);
        graph_free(g);
    }
}

Test(text, errors_have_places_and_words)
{
    assert_refused("", "t.fuse:1:1: expected 'graph', found end of file");
    assert_refused("graph @g(%x: f32[2]) {\n  %y = ad %x, %x\n  return %y }",
                   "t.fuse:2:8: expected an op, found 'ad'");
    assert_refused("graph @g(%x: f32[2], %y: f32[3]) {\n  return add %x, %y }", "t.fuse:2:10: add");
    assert_refused("graph(%x: f33) { return }", "1:11: expected a dtype (f64");
    assert_refused("graph(%x: f32[N]) { return }", "dim N is not declared");
    assert_refused("graph(%x: f32[N=1], %y: f32[N=1]) { return }", "declared already");
    assert_refused("graph(%x: f32[1 2]) { return }", "expected ']' after the dims, found '2'");
    assert_refused("graph(%x: f32[N=2-3]) { return }", "negative");
    assert_refused("graph(%x: f32, %x: f32) { return }", "%x is defined already, in line 1");
    assert_refused("graph(%x: f32) { return %y }", "%y is not defined");
    assert_refused("graph(%x: f32) { return add %x }", "'add' takes 2 operands, found 1");
    assert_refused("graph(%x: f32) { return sub %x, %x, %x }",
                   "1:25: 'sub' has all its operands before the last comma; if another output "
                   "follows there, write return (sub ...), ...");
    assert_refused("graph(%x: f32) { return a = neg %x, a = exp %x }",
                   "1:37: two outputs are called 'a'; give each a name of its own");
    assert_refused("graph(%x: f32) { return neg x }", "found 'x', which is none; is %x meant?");
    assert_refused("graph g(%x: f32) { return neg %x }",
                   "expected '(' before the inputs (the graph's name is written @g), found 'g'");
    assert_refused("graph(%x: f32) { return neg(%x, %x) }", "'neg' takes 1 operand, found 2");
    assert_refused("graph(%x: f32) { return add 1, 2 }", "needs a dtype here, as in 1:f32");
    assert_refused("graph(%x: f32) { return 1 }", "needs a dtype");
    assert_refused("graph(%x: i8) { return add %x, 128 }", "128 as i8 does not fit its dtype");
    assert_refused("graph() { return 1e999:f64 }", "beyond the range");
    assert_refused("graph() { return 1.5:i32 }", "is not an integer");
    assert_refused("graph() { return - 1:i32 }", "directly before");
    assert_refused("graph() { return nan(0x3f800000):f32 }", "is not a NaN");
    assert_refused("graph(%x: f32[2]) { return sum %x {axis = [0]} }", "expected an attribute of");
    assert_refused("graph(%x: f32[2]) { return sum %x {axes = [0], axes = [0]} }", "given twice");
    assert_refused("graph(%x: f32[2]) { return sum %x {axes = [2]} }", "out of range");
    assert_refused("graph(%x: f32[2]) { return permute %x }", "needs {axes = …}");
    assert_refused("graph(%x: f32[2]) { %y = neg %x -> f32[3] return %y }",
                   "expected the type f32[2], which the op gives, found f32[3]");
    assert_refused("graph(%x: f32[2] {strides = [1, 2]}) { return }", "2 strides for 1 axes");
    assert_refused("graph(%x: f32[2] {align = 3}) { return }", "power of two");
    assert_refused("graph(%x: f32[2]) { return load %x }", "no op that a graph can call");
    assert_refused("graph(%x: f32[2]) { return } x", "expected the end of the file");
    assert_refused("graph(%x: f32[2]) { return $ }", "a character that has no meaning here '$'");
    assert_refused("graph(%x: f32[2]) { return \xff }", "byte 0xff");
    assert_refused("graph(%x: f32[1000000000000, 1000000000000]) { return }", "2^48 elements");
    assert_refused("graph(%x: f32[9999999999999999999]) { return }", "out of range");
    assert_refused("graph(%a: f32[1,1,1,1,1,1,1,1,1]) { return }", "more than 8 axes");
    assert_refused("graph \"\\q\"() { return }", "unknown escape");
    assert_refused("graph \"abc", "closing quote");
    assert_refused("graph(%x: f32[281474976710656, 1], %y: f32[1, 281474976710656]) "
                   "{ return add %x, %y }", "too large");
}

Test(text, nesting_has_a_limit)
{
    struct str s = {0};
    for (int open = 0; open < 2; open++) {
        const char *piece = open ? "(" : "neg ";
        s.n = 0;
        str_add(&s, "graph(%x: f32) { return ");
        for (int i = 0; i < 100000; i++)
            str_add(&s, piece);
        assert_refused(s.at, "nest deeper than 200");
    }
    s.n = 0;
    str_add(&s, "graph(%x: f32) { return ");
    for (int i = 0; i < 199; i++)
        str_add(&s, "neg ");
    str_add(&s, "%x }");
    graph_free(must_parse(s.at));
    str_free(&s);
}

// Every prefix, and every text with one byte changed, is parsed or refused with words.
Test(text, damaged_texts_are_refused_with_words)
{
    const char *text = "graph @f[K=3](%x \"q\": f32[N=4, 2*N+1] {strides = [16, 1], align = 8}) {\n"
                       "%m = max(%x) {axes = [1], keepdims = true} -> f32[N, 1] // c\n"
                       "input %y: i8[K] return a = add exp (sub %x, %m), -1.5e3, \"b\" = nan:f16}";
    size_t n = strlen(text);
    char copy[400];
    graph_free(must_parse(text));
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 256; c += c < 32 || c > 126 ? 31 : 1) {
            struct diag d = {0};
            memcpy(copy, text, n);
            copy[i] = (char)c;
            struct graph *g = graph_parse(copy, c ? n : i, "t.fuse", &d);
            if (g)
                assert_round_trip(g);
            else
                cr_assert(d.code == DIAG_INVALID && !strncmp(d.text, "t.fuse:", 7), "%s", d.text);
        }
}

Test(text, verifier_finds_damage)
{
    struct diag d = {0};
    struct graph *g = must_parse("graph(%x: f32[2, 3]) { %s = sum %x {axes = [1]} return neg %s }");
    struct node *sum = &g->node.at[2], keep = *sum;
    sum->dtype = DT_f16;
    cr_assert_not(graph_verify(g, &d));
    cr_assert(strstr(d.text, "%2 (sum): is f16[2] where inference gives f32[2]"), "%s", d.text);
    *sum = keep;
    sum->in[0].i = 3;
    d = (struct diag){0};
    cr_assert_not(graph_verify(g, &d));
    *sum = keep;
    sum->op = OP_COUNT;
    d = (struct diag){0};
    ref where;
    cr_assert_not(graph_verify_at(g, &where, &d));
    cr_assert_eq(where.i, 2);
    struct str s = {0};
    graph_print_marked(g, where, d.text, &s);
    cr_assert(strstr(s.at, "# <- %2"), "%s", s.at);
    sum->shape = sum->attr = sum->in[0].i = 99999;
    sum->nin = 9;
    s.n = 0;
    graph_print_marked(g, (ref){0}, "as a whole", &s);
    cr_assert(strstr(s.at, "# <- as a whole"), "%s", s.at);
    *sum = keep;
    d = (struct diag){0};
    cr_assert(graph_verify(g, &d), "%s", d.text);
    str_free(&s);
    graph_free(g);
}
