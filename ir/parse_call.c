// parse_call.c: calls in .fuse text, and their attributes.
//
//   call  = op [operand {"," operand}] [attrs]         add %x, exp %y      exp (sub %x, %m)
//         | op"(" [operand {"," operand}] ")" [attrs]  add(%x, exp(%y))
//   attrs = "{" [name "=" value {"," name "=" value}] "}"
//
// A parenthesis that directly follows the op's name encloses all operands; after a blank it
// encloses the first one (unless a comma inside shows that the list was meant). Without parentheses
// a call takes as many operands as its op has, so `return div %e, %s` returns one value.
//
// max and min are the reductions when called with one operand. An elementwise op lends a bare
// number the dtype of its other operands, as NumPy does with Python's: an integer becomes whatever
// the others are, a float stays with floats and makes f64 of integers and bools.
//
// Attributes are read as the op's schema says (schema.h). Absent ones have the schema's presets, or
// false; all axes of a reduction; slice from 0 in steps of 1; pad with 0.
#include "ir/parse.h"

#include "ir/base/str.h"
#include "ir/literal.h"
#include "ir/schema.h"
#include "ir/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef VEC(int64_t) words_vec;
typedef VEC(struct operand) operand_vec;

struct call {
    struct token name;
    uint16_t op;
    operand_vec operands;
    VEC(ref) in;
    struct schema_field field[SCHEMA_MAX];
    bool given[SCHEMA_MAX];
    words_vec words[SCHEMA_MAX];
    uint32_t nfield;
};

// ---- the op and its operands

// The least number of letters to insert, drop or change to make b of a (Levenshtein 1966). Both are
// shorter than 32.
static uint32_t
distance(const char *a, const char *b)
{
    uint32_t row[32], n = (uint32_t)strlen(b);
    for (uint32_t j = 0; j <= n; j++)
        row[j] = j;
    for (uint32_t i = 0; a[i]; i++) {
        uint32_t diagonal = row[0];
        row[0] = i + 1;
        for (uint32_t j = 0; j < n; j++) {
            uint32_t change = diagonal + (a[i] != b[j]);
            uint32_t least = row[j] < row[j + 1] ? row[j] : row[j + 1];
            diagonal = row[j + 1];
            row[j + 1] = change < least + 1 ? change : least + 1;
        }
    }
    return row[n];
}

const char *
op_nearest(const char *name)
{
    const char *nearest = NULL;
    uint32_t least = strlen(name) < 4 ? 2 : 3;
    for (uint16_t op = 1; op < OP_COUNT; op++) {
        if (!op_is_public(op))
            continue;
        uint32_t d = distance(name, op_name(op));
        if (d < least) {
            least = d;
            nearest = op_name(op);
        }
    }
    return nearest;
}

static bool
unknown_op(struct parser *p, const struct call *c, const char *name)
{
    for (uint32_t i = 0; i < p->bindings.n; i++)
        if (p->bindings.at[i].n == strlen(name) && *name &&
            !memcmp(p->bindings.at[i].name, name, strlen(name)))
            return parse_error(p, &c->name,
                               "expected an op, found '%s', which is none; is %%%s meant?", name,
                               name);
    const char *nearest = *name ? op_nearest(name) : NULL;
    return parse_error(p, &c->name, "expected an op, found '%.*s', which is none%s%s",
                       (int)(c->name.n < 60 ? c->name.n : 60), c->name.at,
                       nearest ? "; the nearest is " : "",
                       nearest ? nearest : " (fusec ops lists them)");
}

static bool
find_op(struct parser *p, struct call *c)
{
    char name[32] = "";
    if (c->name.n < sizeof name)
        memcpy(name, c->name.at, c->name.n);
    c->op = op_by_name(name);
    if (c->op == OP_none)
        return unknown_op(p, c, name);
    if (c->op == OP_literal)
        return parse_error(p, &c->name, "a literal is written with its dtype alone: 1.0:f32");
    if (!op_is_public(c->op))
        return parse_error(p, &c->name, "'%s' is no op that a graph can call", name);
    return true;
}

// The reduction that shares an elementwise op's name in text: max_reduce for max; OP_none: none.
static uint16_t
reduction_of(uint16_t op)
{
    char name[32];
    snprintf(name, sizeof name, "%s_reduce", op_name(op));
    uint16_t r = op_by_name(name);
    return r && op_is(r, OPK_REDUCE) ? r : OP_none;
}

static bool
push_operand(struct parser *p, struct call *c)
{
    struct operand o;
    if (c->operands.n == PARSE_OPERANDS)
        return parse_error(p, &p->tok, "more than %d operands of '%s'", PARSE_OPERANDS,
                           op_name(c->op));
    if (!parse_operand(p, &o))
        return false;
    vec_push(&c->operands, o);
    return true;
}

static bool
starts_operand(const struct token *t)
{
    return t->kind == TOK_REF || t->kind == TOK_NUMBER || t->kind == TOK_NAME || token_is(t, '-') ||
           token_is(t, '(');
}

// From behind '(' to behind ')'.
static bool
enclosed_operands(struct parser *p, struct call *c)
{
    while (parse_accept(p, ','))
        if (!push_operand(p, c))
            return false;
    return parse_expect(p, ')', "or ',' after an operand");
}

static bool
parse_operands(struct parser *p, struct call *c)
{
    uint32_t most = op_table[c->op].arity;
    p->open = false;
    if (token_is(&p->tok, '(')) {
        bool list = p->tok.glued;
        parse_advance(p);
        if (list && parse_accept(p, ')'))
            return true;
        if (!push_operand(p, c))
            return false;
        if (list || token_is(&p->tok, ',')) {
            bool ok = enclosed_operands(p, c);
            p->open = false;
            return ok;
        }
        if (!parse_expect(p, ')', "after a value in parentheses"))
            return false;
    } else if (!most || !starts_operand(&p->tok)) {
        return true;
    } else if (!push_operand(p, c)) {
        return false;
    }
    while ((most == 255 || c->operands.n < most) && parse_accept(p, ','))
        if (!push_operand(p, c))
            return false;
    p->open = c->operands.n > 1 && !token_is(&p->tok, '{');
    return true;
}

static bool
check_arity(struct parser *p, struct call *c)
{
    uint32_t arity = op_table[c->op].arity, n = c->operands.n;
    uint16_t reduction = n == 1 && arity == 2 ? reduction_of(c->op) : OP_none;
    if (reduction) {
        c->op = reduction;
        return true;
    }
    if (arity == 255 ? n > 0 : n == arity)
        return true;
    if (arity == 255)
        return parse_error(p, &c->name, "'%s' takes one operand or more, found none",
                           op_name(c->op));
    return parse_error(p, &c->name, "'%s' takes %u operand%s, found %u", op_name(c->op), arity,
                       arity == 1 ? "" : "s", n);
}

// ---- numbers without a dtype

static bool
lends_dtype(uint16_t op)
{
    return (op_is(op, OPK_ELEM) || op_is(op, OPK_COMPOSITE)) && op_table[op].rule != DTR_OWN &&
           op_table[op].arity > 1;
}

// What the operands with a dtype promote to, and the first of them; where's condition is apart.
static uint8_t
strong_dtype(const struct parser *p, const struct call *c)
{
    uint8_t d = DT_NONE;
    for (uint32_t i = op_table[c->op].rule == DTR_WHERE; i < c->operands.n; i++) {
        const struct operand *o = &c->operands.at[i];
        if (o->weak)
            continue;
        uint8_t own = graph_node(p->g, o->node)->dtype;
        d = d ? dtype_promote(d, own) : own;
    }
    return d;
}

static bool
resolve_weak(struct parser *p, const struct operand *o, uint8_t strong, ref *out)
{
    uint8_t d = strong;
    if (!dtype_is_float(d) && o->number.is_float)
        d = DT_f64;
    else if (d == DT_bool)
        d = DT_i64;
    uint64_t bits;
    if (!parse_bits(p, &o->number, d, &bits))
        return false;
    *out = graph_literal(p->g, d, bits,
                         parse_origin(p, OP_literal, o->number.tok.line));
    return true;
}

static bool
resolve_operands(struct parser *p, struct call *c)
{
    uint8_t strong = lends_dtype(c->op) ? strong_dtype(p, c) : DT_NONE;
    for (uint32_t i = 0; i < c->operands.n; i++) {
        const struct operand *o = &c->operands.at[i];
        ref r = o->node;
        bool condition = i == 0 && op_table[c->op].rule == DTR_WHERE;
        if (o->weak && (!strong || condition))
            return parse_error(p, &o->number.tok, "a number needs a dtype here, as in %.*s:f32",
                               (int)(o->number.n < 60 ? o->number.n : 60), o->number.at);
        if (o->weak && !resolve_weak(p, o, strong, &r))
            return false;
        vec_push(&c->in, r);
    }
    return true;
}

// ---- attributes

static bool
parse_list(struct parser *p, uint8_t type, words_vec *words)
{
    vec_push(words, 0);
    if (!parse_expect(p, '[', "before the list"))
        return false;
    if (parse_accept(p, ']'))
        return true;
    do {
        sym s = {0};
        if (words->n > MAX_RANK)
            return parse_error(p, &p->tok, "a list of more than %d numbers", MAX_RANK);
        if (!(type == ATTR_DIMS ? parse_dim(p, true, &s) : parse_int(p, &s.v)))
            return false;
        vec_push(words, s.v);
    } while (parse_accept(p, ','));
    words->at[0] = words->n - 1;
    return parse_expect(p, ']', "or ',' in the list");
}

// A scalar of the first operand's dtype.
static bool
parse_fill(struct parser *p, const struct call *c, int64_t *word)
{
    struct written w;
    uint8_t dtype = graph_node(p->g, c->in.at[0])->dtype, own = dtype;
    uint64_t bits;
    if (!parse_written(p, &w) || (parse_accept(p, ':') && !parse_dtype(p, &own)))
        return false;
    if (own != dtype)
        return parse_error(p, &w.tok, "expected a scalar of %s like the operand, found one of %s",
                           dtype_name(dtype), dtype_name(own));
    if (!parse_bits(p, &w, dtype, &bits))
        return false;
    *word = (int64_t)bits;
    return true;
}

static bool
parse_word(struct parser *p, const struct call *c, uint8_t type, int64_t *word)
{
    struct written w;
    uint64_t bits = 0;
    uint8_t dtype = 0;
    bool ok = false;
    switch ((enum attr_type)type) {
    case ATTR_INT: return parse_int(p, word);
    case ATTR_BITS: return parse_fill(p, c, word);
    case ATTR_BOOL: ok = parse_written(p, &w) && parse_bits(p, &w, DT_bool, &bits); break;
    case ATTR_FLOAT: ok = parse_written(p, &w) && parse_bits(p, &w, DT_f64, &bits); break;
    case ATTR_DTYPE:
        ok = parse_dtype(p, &dtype);
        bits = dtype;
        break;
    case ATTR_INTS:
    case ATTR_DIMS: break;
    }
    *word = (int64_t)bits;
    return ok;
}

static bool
parse_attr(struct parser *p, struct call *c)
{
    struct token name = p->tok;
    uint32_t i = 0;
    while (i < c->nfield && !token_is_name(&name, c->field[i].name))
        i++;
    if (i == c->nfield) {
        char what[200];
        snprintf(what, sizeof what, "an attribute of '%s' (%s)", op_name(c->op),
                 c->nfield ? op_table[c->op].attrs : "it has none");
        return parse_expected(p, what);
    }
    if (c->given[i])
        return parse_error(p, &name, "%s is given twice", c->field[i].name);
    c->given[i] = true;
    parse_advance(p);
    if (!parse_expect(p, '=', "after the name of an attribute"))
        return false;
    uint8_t type = c->field[i].type;
    if (type == ATTR_INTS || type == ATTR_DIMS)
        return parse_list(p, type, &c->words[i]);
    int64_t word;
    if (!parse_word(p, c, type, &word))
        return false;
    vec_push(&c->words[i], word);
    return true;
}

static bool
has_field(const struct call *c, const char *name)
{
    for (uint32_t i = 0; i < c->nfield; i++)
        if (!strcmp(c->field[i].name, name))
            return true;
    return false;
}

static int64_t
double_word(double x)
{
    int64_t v;
    memcpy(&v, &x, 8);
    return v;
}

static int64_t
preset_word(const struct schema_field *f)
{
    if (f->type == ATTR_BOOL)
        return *f->preset == 't';
    size_t n = strcspn(f->preset, " ");
    for (uint8_t d = 1; d < DT_COUNT && f->type == ATTR_DTYPE; d++)
        if (strlen(dtype_name(d)) == n && !memcmp(dtype_name(d), f->preset, n))
            return d;
    return f->type == ATTR_FLOAT ? double_word(strtod(f->preset, NULL))
                                 : strtoll(f->preset, NULL, 0);
}

// Values of absent attributes; false: there is no default.
static bool
default_attr(const struct parser *p, const struct call *c, uint32_t i, words_vec *words)
{
    const char *name = c->field[i].name;
    uint32_t rank = c->in.n ? graph_shape(p->g, c->in.at[0])->rank : 0;
    bool axes = !strcmp(name, "axes") && has_field(c, "keepdims");
    if (axes || !strcmp(name, "start") || !strcmp(name, "step")) {
        vec_push(words, rank);
        for (uint32_t k = 0; k < rank; k++)
            vec_push(words, axes ? k : !strcmp(name, "step"));
        return true;
    }
    if (c->field[i].preset) {
        vec_push(words, preset_word(&c->field[i]));
        return true;
    }
    if (c->field[i].type != ATTR_BOOL && c->field[i].type != ATTR_BITS)
        return false;
    vec_push(words, 0);
    return true;
}

static bool
parse_attrs(struct parser *p, struct call *c)
{
    c->nfield = schema_fields(op_table[c->op].attrs, c->field);
    if (parse_accept(p, '{') && !parse_accept(p, '}')) {
        do {
            if (!parse_attr(p, c))
                return false;
        } while (parse_accept(p, ','));
        if (!parse_expect(p, '}', "or ',' after an attribute"))
            return false;
    }
    for (uint32_t i = 0; i < c->nfield; i++)
        if (!c->given[i] && !default_attr(p, c, i, &c->words[i]))
            return parse_error(p, &c->name, "'%s' needs {%s = …}", op_name(c->op),
                               c->field[i].name);
    return true;
}

// ---- the call

static bool
build(struct parser *p, struct call *c, ref *out)
{
    words_vec row = {0};
    for (uint32_t i = 0; i < c->nfield; i++)
        for (uint32_t k = 0; k < c->words[i].n; k++)
            vec_push(&row, c->words[i].at[k]);
    struct diag d = {0};
    uint32_t origin = parse_origin(p, c->op, c->name.line);
    *out = graph_build(p->g, c->op, c->in.at, c->in.n, row.at, row.n, origin, &d);
    vec_free(&row);
    if (!out->i)
        return parse_error(p, &c->name, "%s", d.text);
    if (p->origin) // the op table's own text: what it is expanded in has any size
        return true;
    if (p->g->node.n > PARSE_NODES)
        return parse_error(p, &c->name, "a graph of more than %d nodes", PARSE_NODES);
    return parse_size(p, &c->name, graph_shape(p->g, *out));
}

bool
parse_call(struct parser *p, ref *out)
{
    struct call c = {.name = p->tok};
    if (!find_op(p, &c))
        return false;
    parse_advance(p);
    bool ok = parse_operands(p, &c) && check_arity(p, &c) && resolve_operands(p, &c) &&
              parse_attrs(p, &c) && build(p, &c, out);
    vec_free(&c.operands);
    vec_free(&c.in);
    for (uint32_t i = 0; i < SCHEMA_MAX; i++)
        vec_free(&c.words[i]);
    return ok;
}
