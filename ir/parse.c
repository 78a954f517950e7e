// parse.c: the .fuse form to graphs: recursive descent over tokens, building as it goes with
// graph_build, so that dtypes and shapes are inferred and checked in one place.
//
//   graph     = "graph" [@name | "name"] ["[" N "=" 4 {"," …} "]"] "(" [input {"," input}] ")"
//               "{" {statement} "return" [output {"," output}] "}"
//   input     = %name ["its name"] ":" type ["{" [strides "=" ints] ["," align "=" 16] "}"]
//   type      = dtype ["[" [dim {"," dim}] "]"]
//   dim       = ["-"] term {("+" | "-") term}     term = factor {"*" factor}
//   factor    = 12 | N | N "=" 12                 (a name is declared once, with its hint)
//   statement = %name "=" value ["->" type] | "input" input
//   output    = [name "=" | "name" "="] value
//   value     = %name | number ":" dtype | "(" value ")" | call          (call: parse_call.c)
//
// # and // start comments; line ends mean nothing. `-> type` is checked against what was inferred.
// Every error says file:line:column, what was expected and what was found. Depth, sizes and counts
// are limited (parse.h), so that no text overflows the stack or an integer.
#include "ir/parse.h"

#include "ir/base/str.h"
#include "ir/literal.h"
#include "ir/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool
parse_error(struct parser *p, const struct token *at, const char *fmt, ...)
{
    char words[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    return diag_set(p->d, DIAG_INVALID, "%s:%u:%u: %s", p->file, at->line, at->column, words);
}

bool
parse_expected(struct parser *p, const char *what)
{
    struct str found = {0};
    token_describe(&p->tok, &found);
    parse_error(p, &p->tok, "expected %s, found %s", what, str_text(&found));
    str_free(&found);
    return false;
}

void
parse_advance(struct parser *p)
{
    p->tok = lex_next(&p->lexer);
}

bool
parse_accept(struct parser *p, char punct)
{
    if (!token_is(&p->tok, punct))
        return false;
    parse_advance(p);
    return true;
}

bool
parse_expect(struct parser *p, char punct, const char *where)
{
    if (parse_accept(p, punct))
        return true;
    char what[100];
    snprintf(what, sizeof what, "'%c' %s", punct, where);
    return parse_expected(p, what);
}

uint32_t
parse_origin(struct parser *p, uint16_t op, uint32_t line)
{
    return p->origin ? *p->origin : graph_add_origin(p->g, op, p->file, line);
}

static bool
accept_name(struct parser *p, const char *name)
{
    if (!token_is_name(&p->tok, name))
        return false;
    parse_advance(p);
    return true;
}

// ---- numbers, types, dims

bool
parse_int(struct parser *p, int64_t *v)
{
    struct token at = p->tok;
    bool negative = parse_accept(p, '-');
    if (p->tok.kind != TOK_NUMBER || p->tok.is_float)
        return parse_expected(p, "an integer");
    uint64_t bits;
    const char *why;
    if (!literal_parse(p->tok.at, p->tok.n, DT_i64, &bits, &why) || (int64_t)bits > PARSE_NUMBER)
        return parse_error(p, &at, "%.*s is out of range: integers go to 2^48 here",
                           (int)(p->tok.n < 60 ? p->tok.n : 60), p->tok.at);
    *v = negative ? -(int64_t)bits : (int64_t)bits;
    parse_advance(p);
    return true;
}

bool
parse_dtype(struct parser *p, uint8_t *dtype)
{
    for (uint8_t i = 1; i < DT_COUNT; i++)
        if (token_is_name(&p->tok, dtype_name(i))) {
            *dtype = i;
            parse_advance(p);
            return true;
        }
    struct str what = {0};
    str_add(&what, "a dtype (");
    for (uint8_t i = 1; i < DT_COUNT; i++)
        str_printf(&what, "%s%s", i > 1 ? " " : "", dtype_name(i));
    str_add(&what, ")");
    parse_expected(p, str_text(&what));
    str_free(&what);
    return false;
}

static bool
dim_hint(struct parser *p, const char *name, int64_t *hint)
{
    for (uint32_t i = 0; i < symtab_names(p->g->sym); i++)
        if (!strcmp(symtab_name(p->g->sym, i, hint), name))
            return true;
    return false;
}

// N, or N=4096 where it is new.
static bool
parse_dim_name(struct parser *p, sym *out)
{
    struct token name = p->tok;
    char text[64];
    if (name.n >= sizeof text)
        return parse_error(p, &name, "the name of a dim has more than 63 characters");
    memcpy(text, name.at, name.n);
    text[name.n] = 0;
    parse_advance(p);
    int64_t hint;
    bool known = dim_hint(p, text, &hint);
    if (parse_accept(p, '=')) {
        if (known)
            return parse_error(p, &name, "dim %s is declared already; later uses are %s alone",
                               text, text);
        if (symtab_names(p->g->sym) == PARSE_DIMS)
            return parse_error(p, &name, "more than %d names of dims", PARSE_DIMS);
        struct token at = p->tok;
        if (!parse_int(p, &hint))
            return false;
        if (hint < 0)
            return parse_error(p, &at, "dim %s is negative", text);
    } else if (!known) {
        return parse_error(p, &name, "dim %s is not declared; write %s=SIZE at its first use", text,
                           text);
    }
    *out = sym_named(p->g->sym, text, hint);
    return true;
}

static bool
parse_factor(struct parser *p, sym *out)
{
    if (p->tok.kind == TOK_NAME)
        return parse_dim_name(p, out);
    if (p->tok.kind != TOK_NUMBER)
        return parse_expected(p, "a dim (a number or a name)");
    int64_t v;
    if (!parse_int(p, &v))
        return false;
    *out = sym_num(v);
    return true;
}

static bool
parse_term(struct parser *p, sym *out)
{
    if (!parse_factor(p, out))
        return false;
    while (parse_accept(p, '*')) {
        sym factor;
        if (!parse_factor(p, &factor))
            return false;
        *out = sym_mul(p->g->sym, *out, factor);
    }
    return true;
}

bool
parse_dim(struct parser *p, bool attribute, sym *out)
{
    struct token at = p->tok;
    bool negative = parse_accept(p, '-');
    if (!parse_term(p, out))
        return false;
    if (negative)
        *out = sym_sub(p->g->sym, sym_num(0), *out);
    while (token_is(&p->tok, '+') || token_is(&p->tok, '-')) {
        bool minus = token_is(&p->tok, '-');
        parse_advance(p);
        sym term;
        if (!parse_term(p, &term))
            return false;
        *out = minus ? sym_sub(p->g->sym, *out, term) : sym_add(p->g->sym, *out, term);
    }
    int64_t hint = sym_hint(p->g->sym, *out);
    if (out->v == SYM_HUGE || hint > PARSE_NUMBER)
        return parse_error(p, &at, "this dim is too large");
    if (hint < (attribute && sym_is_num(*out) ? -1 : 0))
        return parse_error(p, &at, "this dim is negative (%" PRId64 ")", hint);
    return true;
}

bool
parse_size(struct parser *p, const struct token *at, const struct shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        int64_t d = dim_of(p->g, s, i);
        if (d > PARSE_NUMBER || __builtin_mul_overflow(n, d ? d : 1, &n) || n > PARSE_NUMBER)
            return parse_error(p, at, "a tensor of more than 2^48 elements");
    }
    return true;
}

static bool
parse_type(struct parser *p, uint8_t *dtype, struct shape *s)
{
    *s = (struct shape){0};
    struct token at = p->tok;
    if (!parse_dtype(p, dtype))
        return false;
    if (!parse_accept(p, '[') || parse_accept(p, ']'))
        return true;
    do {
        if (s->rank == MAX_RANK)
            return parse_error(p, &p->tok, "more than %d axes", MAX_RANK);
        if (!parse_dim(p, false, &s->dim[s->rank]))
            return false;
        s->rank++;
    } while (parse_accept(p, ','));
    return parse_expect(p, ']', "after the dims") && parse_size(p, &at, s);
}

// ---- scalars

bool
parse_written(struct parser *p, struct written *w)
{
    *w = (struct written){.at = p->tok.at, .tok = p->tok};
    if (parse_accept(p, '-') && !p->tok.glued)
        return parse_error(p, &w->tok, "a '-' must stand directly before its number");
    struct token t = p->tok;
    bool nan = token_is_name(&t, "nan"), inf = token_is_name(&t, "inf");
    bool truth = token_is_name(&t, "true") || token_is_name(&t, "false");
    if (t.kind != TOK_NUMBER && !nan && !inf && !truth)
        return parse_expected(p, "a number");
    w->is_float = t.is_float || nan || inf;
    w->n = (uint32_t)(t.at + t.n - w->at);
    parse_advance(p);
    if (nan && token_is(&p->tok, '(') && p->tok.glued) {
        parse_advance(p);
        if (p->tok.kind != TOK_NUMBER)
            return parse_expected(p, "the bits of a NaN, 0x…,");
        parse_advance(p);
        w->n = (uint32_t)(p->tok.at + 1 - w->at);
        return parse_expect(p, ')', "after the bits of a NaN");
    }
    return true;
}

bool
parse_bits(struct parser *p, const struct written *w, uint8_t dtype, uint64_t *bits)
{
    const char *why;
    if (literal_parse(w->at, w->n, dtype, bits, &why))
        return true;
    return parse_error(p, &w->tok, "%.*s as %s %s", (int)(w->n < 60 ? w->n : 60), w->at,
                       dtype_name(dtype), why);
}

// ---- %names

static const struct binding *
find_binding(const struct parser *p, const struct token *t)
{
    uint64_t h = hash_bytes(8, t->at, t->n);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&p->binding_map, h, &at));) {
        const struct binding *b = &p->bindings.at[id - 1];
        if (b->n == t->n && !memcmp(b->name, t->at, t->n))
            return b;
    }
    return NULL;
}

bool
parse_bind(struct parser *p, const struct token *t, ref node)
{
    const struct binding *b = find_binding(p, t);
    if (b)
        return parse_error(p, t, "%%%.*s is defined already, in line %u",
                           (int)(t->n < 60 ? t->n : 60), t->at, b->line);
    struct binding fresh = {t->at, t->n, t->line, node};
    vec_push(&p->bindings, fresh);
    map_add(&p->binding_map, hash_bytes(8, t->at, t->n), p->bindings.n);
    return true;
}

// ---- values

static bool
starts_number(const struct parser *p)
{
    const struct token *t = &p->tok;
    return t->kind == TOK_NUMBER || token_is(t, '-') || token_is_name(t, "inf") ||
           token_is_name(t, "nan") || token_is_name(t, "true") || token_is_name(t, "false");
}

static bool
parse_number(struct parser *p, struct operand *o)
{
    uint8_t dtype = token_is_name(&p->tok, "true") || token_is_name(&p->tok, "false") ? DT_bool : 0;
    uint64_t bits;
    if (!parse_written(p, &o->number))
        return false;
    if (parse_accept(p, ':') && !parse_dtype(p, &dtype))
        return false;
    o->weak = !dtype;
    if (!dtype)
        return true;
    if (!parse_bits(p, &o->number, dtype, &bits))
        return false;
    o->node = graph_literal(p->g, dtype, bits,
                            parse_origin(p, OP_literal, o->number.tok.line));
    return true;
}

static bool
parse_ref(struct parser *p, struct operand *o)
{
    const struct binding *b = find_binding(p, &p->tok);
    if (!b)
        return parse_error(p, &p->tok, "%%%.*s is not defined",
                           (int)(p->tok.n < 60 ? p->tok.n : 60), p->tok.at);
    o->node = b->node;
    parse_advance(p);
    return true;
}

static bool
parse_operand_within(struct parser *p, struct operand *o)
{
    if (p->tok.kind == TOK_REF)
        return parse_ref(p, o);
    if (starts_number(p))
        return parse_number(p, o);
    if (parse_accept(p, '('))
        return parse_operand(p, o) && parse_expect(p, ')', "after a value in parentheses");
    if (p->tok.kind == TOK_NAME)
        return parse_call(p, &o->node);
    return parse_expected(p, "a value (%name, a number, an op)");
}

bool
parse_operand(struct parser *p, struct operand *o)
{
    *o = (struct operand){0};
    if (p->depth == PARSE_DEPTH)
        return parse_error(p, &p->tok, "calls and parentheses nest deeper than %d", PARSE_DEPTH);
    p->depth++;
    bool ok = parse_operand_within(p, o);
    p->depth--;
    return ok;
}

bool
parse_value(struct parser *p, ref *out)
{
    struct operand o;
    if (!parse_operand(p, &o))
        return false;
    if (o.weak)
        return parse_error(p, &o.number.tok, "a number needs a dtype here, as in %.*s:f32",
                           (int)(o.number.n < 60 ? o.number.n : 60), o.number.at);
    *out = o.node;
    return true;
}

// ---- inputs, statements, outputs

static bool
parse_strides(struct parser *p, const struct shape *s, int64_t stride[MAX_RANK])
{
    struct token at = p->tok;
    uint32_t n = 0;
    if (!parse_expect(p, '[', "before the strides"))
        return false;
    while (n < MAX_RANK && !token_is(&p->tok, ']')) {
        if (!parse_int(p, &stride[n++]))
            return false;
        if (!parse_accept(p, ','))
            break;
    }
    if (!parse_expect(p, ']', "after the strides"))
        return false;
    return n == s->rank ||
           parse_error(p, &at, "%u strides for %u axes; give one per axis", n, s->rank);
}

static bool
parse_align(struct parser *p, uint8_t *align_log2)
{
    struct token at = p->tok;
    int64_t bytes;
    if (!parse_int(p, &bytes))
        return false;
    for (*align_log2 = 0; *align_log2 <= 6; ++*align_log2)
        if (bytes == (int64_t)1 << *align_log2)
            return true;
    return parse_error(p, &at, "an alignment of %" PRId64 " bytes; use a power of two up to 64",
                       bytes);
}

struct layout {
    int64_t stride[MAX_RANK];
    bool strided;
    uint8_t align_log2;
};

static bool
parse_layout(struct parser *p, const struct shape *s, struct layout *l)
{
    if (!parse_accept(p, '{') || parse_accept(p, '}'))
        return true;
    do {
        bool strides = accept_name(p, "strides");
        if (!strides && !accept_name(p, "align"))
            return parse_expected(p, "strides or align");
        l->strided |= strides;
        if (!parse_expect(p, '=', "after the name") ||
            !(strides ? parse_strides(p, s, l->stride) : parse_align(p, &l->align_log2)))
            return false;
    } while (parse_accept(p, ','));
    return parse_expect(p, '}', "after the layout");
}

// A string token's bytes, terminated, in the graph's memory.
static bool
parse_string(struct parser *p, const char **out)
{
    struct str s = {0};
    bool ok = token_string(&p->tok, &s);
    *out = arena_strdup(&p->g->mem, str_text(&s));
    str_free(&s);
    if (!ok)
        return parse_error(p, &p->tok, "a string with an unknown escape or a zero byte");
    parse_advance(p);
    return true;
}

static const char *
copy_name(struct parser *p, const struct token *t)
{
    return arena_printf(&p->g->mem, "%.*s", (int)t->n, t->at);
}

static bool
parse_input(struct parser *p)
{
    struct token id = p->tok;
    if (id.kind != TOK_REF)
        return parse_expected(p, "an input (%name: dtype[dims])");
    const char *name = copy_name(p, &id);
    parse_advance(p);
    if (p->tok.kind == TOK_STRING && !parse_string(p, &name))
        return false;
    uint8_t dtype;
    struct shape s;
    struct layout l = {.align_log2 = 6};
    if (!parse_expect(p, ':', "and the type of the input") || !parse_type(p, &dtype, &s) ||
        !parse_layout(p, &s, &l))
        return false;
    if (p->g->node.n >= PARSE_NODES)
        return parse_error(p, &id, "a graph of more than %d nodes", PARSE_NODES);
    ref r = graph_add_input(p->g, name, dtype, &s, l.strided ? l.stride : NULL, l.align_log2);
    p->g->node.at[r.i].origin = graph_add_origin(p->g, OP_input, p->file, id.line);
    return parse_bind(p, &id, r);
}

static bool
check_type(struct parser *p, ref r)
{
    struct token at = p->tok;
    uint8_t dtype;
    struct shape s;
    if (!parse_type(p, &dtype, &s))
        return false;
    const struct node *n = graph_node(p->g, r);
    if (n->dtype == dtype && n->shape == graph_add_shape(p->g, &s))
        return true;
    struct str written = {0}, inferred = {0};
    shape_print(p->g, dtype, &s, &written);
    shape_print(p->g, n->dtype, graph_shape(p->g, r), &inferred);
    parse_error(p, &at, "expected the type %s, which the op gives, found %s", str_text(&inferred),
                str_text(&written));
    str_free(&written);
    str_free(&inferred);
    return false;
}

bool
parse_statement(struct parser *p)
{
    if (accept_name(p, "input"))
        return parse_input(p);
    struct token id = p->tok;
    if (id.kind != TOK_REF)
        return parse_expected(p, "a statement (%name = …, input …, return …)");
    parse_advance(p);
    ref r;
    if (!parse_expect(p, '=', "after the name") || !parse_value(p, &r))
        return false;
    if (p->tok.kind == TOK_ARROW) {
        parse_advance(p);
        if (!check_type(p, r))
            return false;
    }
    return parse_bind(p, &id, r);
}

// Whether the next token names an output: a name or a string before '='.
static bool
output_name_follows(const struct parser *p)
{
    struct lexer ahead = p->lexer;
    struct token next = lex_next(&ahead);
    return (p->tok.kind == TOK_NAME || p->tok.kind == TOK_STRING) && token_is(&next, '=');
}

static bool
is_new_name(struct parser *p, const struct token *at, const char *name)
{
    for (uint32_t i = 0; *name && i < p->g->outputs.n; i++)
        if (!strcmp(p->g->outputs.at[i].name, name))
            return parse_error(p, at, "two outputs are called '%s'; give each a name of its own",
                               name);
    return true;
}

// `sub %x, %y, %z` is an op with an operand too many, or two outputs: it has to be said which.
static bool
check_end_of_output(struct parser *p, const struct token *at)
{
    struct lexer ahead = p->lexer;
    struct token next = lex_next(&ahead);
    bool operand = next.kind == TOK_REF || next.kind == TOK_NUMBER;
    if (!p->open || !token_is(&p->tok, ',') || !operand)
        return true;
    uint32_t n = at->n < 60 ? at->n : 60;
    return parse_error(p, at,
                       "'%.*s' has all its operands before the last comma; if another output "
                       "follows there, write return (%.*s ...), ...", (int)n, at->at, (int)n,
                       at->at);
}

static bool
parse_output(struct parser *p)
{
    const char *name = "";
    struct token named = p->tok;
    ref r;
    if (output_name_follows(p)) {
        if (p->tok.kind == TOK_STRING) {
            if (!parse_string(p, &name))
                return false;
        } else {
            name = copy_name(p, &p->tok);
            parse_advance(p);
        }
        parse_advance(p);
    }
    struct token at = p->tok;
    p->open = false;
    if (!is_new_name(p, &named, name) || !parse_value(p, &r))
        return false;
    if (at.kind == TOK_NAME && !check_end_of_output(p, &at))
        return false;
    graph_add_output(p->g, name, r);
    return true;
}

static bool
parse_body(struct parser *p)
{
    if (!parse_expect(p, '{', "before the statements"))
        return false;
    while (!accept_name(p, "return")) {
        if (token_is(&p->tok, '}'))
            return parse_expected(p, "'return' and the outputs at the end of the graph");
        if (!parse_statement(p))
            return false;
    }
    if (parse_accept(p, '}'))
        return true;
    do {
        if (!parse_output(p))
            return false;
    } while (parse_accept(p, ','));
    return parse_expect(p, '}', "or ',' after an output");
}

static bool
parse_declarations(struct parser *p)
{
    if (!parse_accept(p, '['))
        return true;
    do {
        sym s;
        if (p->tok.kind != TOK_NAME)
            return parse_expected(p, "the name of a dim");
        if (!parse_dim_name(p, &s))
            return false;
    } while (parse_accept(p, ','));
    return parse_expect(p, ']', "after the dims");
}

static bool
parse_graph(struct parser *p)
{
    parse_advance(p);
    if (!accept_name(p, "graph"))
        return parse_expected(p, "'graph'");
    if (p->tok.kind == TOK_AT) {
        p->g->name = copy_name(p, &p->tok);
        parse_advance(p);
    } else if (p->tok.kind == TOK_STRING && !parse_string(p, &p->g->name)) {
        return false;
    } else if (p->tok.kind == TOK_NAME) {
        return parse_expected(p, "'(' before the inputs (the graph's name is written @g)");
    }
    if (!parse_declarations(p) || !parse_expect(p, '(', "before the inputs"))
        return false;
    if (!parse_accept(p, ')')) {
        do {
            if (!parse_input(p))
                return false;
        } while (parse_accept(p, ','));
        if (!parse_expect(p, ')', "or ',' after an input"))
            return false;
    }
    if (!parse_body(p))
        return false;
    return p->tok.kind == TOK_END || parse_expected(p, "the end of the file after the graph");
}

struct graph *
graph_parse(const char *text, size_t n, const char *file, struct diag *d)
{
    struct diag mine = {0}; // an older error in d must not hide this one from us
    struct parser p = {.d = &mine, .file = file && *file ? file : "<text>"};
    if (n > PARSE_BYTES) {
        diag_set(d, DIAG_INVALID, "%s: a text of more than %d MiB", p.file, PARSE_BYTES >> 20);
        return NULL;
    }
    p.g = graph_new("");
    lex_start(&p.lexer, text, n);
    bool ok = parse_graph(&p);
    vec_free(&p.bindings);
    map_free(&p.binding_map);
    if (ok)
        return p.g;
    graph_free(p.g);
    diag_set(d, mine.code, "%s", mine.text);
    return NULL;
}
