// print.c: a graph as canonical .fuse text.
//
//   graph @f(%x: f32[N=4096, 16]) {
//     %3 = add %x, 1.0:f32 -> f32[N, 16]
//     %4 = max %3 {axes = [1], keepdims = true} -> f32[N, 1]
//     return y = %4
//   }
//
// One op a line, named by its node number; inputs by their own names where those are plain and
// unique. A literal stands where it is used when the parser would create it at its own number there
// (it directly precedes its first user, in the order of the operands); otherwise it has a line.
// A dim's name is declared with its hint at its first occurrence (N=4096), as long as these come in
// the order of the symbol table; otherwise all names in use are declared after the graph's name,
// in that order: graph @f[N=4, M=3](…). So a parsed graph numbers symbols and nodes as we do.
//
// The printer also shows graphs that are broken, with what the verifier said: it trusts no index.
#include "ir/text.h"

#include "ir/base/str.h"
#include "ir/lex.h"
#include "ir/literal.h"
#include "ir/schema.h"

#include <inttypes.h>
#include <string.h>

enum { INLINE_MAX = 8, DEFAULT_ALIGN_LOG2 = 6 };

struct printer {
    const struct graph *g;
    struct str *out;
    struct str dim;    // scratch
    bool *inlined;     // per node: a literal without a line of its own
    bool *own_name;    // per input: printed as %name
    bool *declared;    // per name of the symbol table
    uint32_t last_declared;
    bool bracket;      // names are declared after the graph's name
    ref mark;
    const char *words;
};

static bool
is_literal(const struct graph *g, uint32_t i)
{
    return i && i < g->node.n && g->node.at[i].op == OP_literal;
}

static bool
good_edges(const struct graph *g, const struct node *n)
{
    return n->nin <= 4 || (n->in[0].i < g->edges.n && n->nin <= g->edges.n - n->in[0].i);
}

// Whether node `user` creates exactly the literals first .. user - 1, in order, when it is parsed
// and all literals before first exist.
static bool
creates_literals(const struct graph *g, uint32_t first, uint32_t user)
{
    const struct node *n = &g->node.at[user];
    uint32_t next = first;
    for (uint32_t i = 0; i < n->nin; i++) {
        uint32_t at = node_in(g, n, i).i;
        if (at == next && at < user)
            next++;
        else if (at > next && at < user)
            return false;
    }
    return next == user;
}

static void
choose_inlined(struct printer *p)
{
    const struct graph *g = p->g;
    for (uint32_t user = 2; user < g->node.n; user++) {
        const struct node *n = &g->node.at[user];
        if (n->op == OP_literal || n->op == OP_input || !good_edges(g, n))
            continue;
        uint32_t low = user;
        while (low > 1 && user - low < INLINE_MAX && is_literal(g, low - 1) && low - 1 != p->mark.i)
            low--;
        while (low < user && !creates_literals(g, low, user))
            low++;
        for (; low < user; low++)
            p->inlined[low] = true;
    }
}

static void
choose_input_names(struct printer *p)
{
    const struct graph *g = p->g;
    struct map seen = {0};
    for (uint32_t i = 0; i < g->inputs.n; i++) {
        const char *name = g->inputs.at[i].name;
        bool unique = lex_is_name(name);
        uint64_t h = hash_bytes(7, name, strlen(name));
        uint32_t at = 0;
        for (uint32_t id; (id = map_next(&seen, h, &at));)
            unique &= strcmp(g->inputs.at[id - 1].name, name) != 0;
        map_add(&seen, h, i + 1);
        p->own_name[i] = unique;
    }
    map_free(&seen);
}

static void
declare(struct printer *p, uint32_t name, bool alone)
{
    if (p->declared[name])
        return;
    if (!alone || (p->last_declared && name < p->last_declared))
        p->bracket = true;
    p->declared[name] = true;
    p->last_declared = name;
}

// Finds the names in p->dim and declares them; true where the dim is one undeclared name.
static bool
declare_names(struct printer *p, uint32_t *which)
{
    bool alone = lex_is_name(p->dim.at), fresh = false;
    for (const char *s = p->dim.at; *s;) {
        size_t n = strcspn(s, "*+-");
        for (uint32_t i = 0; i < symtab_names(p->g->sym); i++) {
            const char *name = symtab_name(p->g->sym, i, NULL);
            if (strlen(name) != n || memcmp(name, s, n))
                continue;
            fresh = alone && !p->declared[i];
            *which = i;
            declare(p, i, alone);
        }
        s += n + (s[n] != 0);
    }
    return fresh;
}

static void
print_dim(struct printer *p, sym s)
{
    p->dim.n = 0;
    sym_print(p->g->sym, s, &p->dim);
    str_addn(p->out, p->dim.at, p->dim.n);
    uint32_t which;
    if (sym_is_num(s) || !declare_names(p, &which) || p->bracket)
        return;
    int64_t hint;
    symtab_name(p->g->sym, which, &hint);
    str_printf(p->out, "=%" PRId64, hint);
}

static void
print_type(struct printer *p, const struct node *n)
{
    str_add(p->out, n->dtype < DT_COUNT ? dtype_name(n->dtype) : "?");
    str_addc(p->out, '[');
    const struct shape *s = n->shape < p->g->shapes.n ? &p->g->shapes.at[n->shape] : NULL;
    for (uint32_t i = 0; s && i < s->rank && i < MAX_RANK; i++) {
        str_add(p->out, i ? ", " : "");
        print_dim(p, s->dim[i]);
    }
    str_add(p->out, s ? "]" : "?]");
}

static void
print_literal(struct printer *p, const struct node *n)
{
    if (n->attr >= p->g->attrs.n || !p->g->attrs.at[n->attr].n || n->dtype >= DT_COUNT) {
        str_add(p->out, "?");
        return;
    }
    literal_print(n->dtype, (uint64_t)p->g->attrs.at[n->attr].v[0], p->out);
    str_printf(p->out, ":%s", dtype_name(n->dtype));
}

// The input number of a node, or UINT32_MAX.
static uint32_t
input_index(const struct graph *g, const struct node *n)
{
    if (n->op != OP_input || n->attr >= g->attrs.n || g->attrs.at[n->attr].n != 1)
        return UINT32_MAX;
    int64_t i = g->attrs.at[n->attr].v[0];
    return i >= 0 && i < (int64_t)g->inputs.n ? (uint32_t)i : UINT32_MAX;
}

static void
print_ref(struct printer *p, ref r)
{
    const struct graph *g = p->g;
    if (is_literal(g, r.i) && p->inlined[r.i]) {
        print_literal(p, &g->node.at[r.i]);
        return;
    }
    uint32_t input = r.i < g->node.n ? input_index(g, &g->node.at[r.i]) : UINT32_MAX;
    if (input != UINT32_MAX && p->own_name[input])
        str_printf(p->out, "%%%s", g->inputs.at[input].name);
    else
        str_printf(p->out, "%%%u", r.i);
}

static void
print_word(struct printer *p, uint8_t type, uint8_t dtype, int64_t v)
{
    switch ((enum attr_type)type) {
    case ATTR_BOOL: str_add(p->out, v ? "true" : "false"); return;
    case ATTR_FLOAT: literal_print(DT_f64, (uint64_t)v, p->out); return;
    case ATTR_DTYPE: str_add(p->out, v > 0 && v < DT_COUNT ? dtype_name((uint8_t)v) : "?"); return;
    case ATTR_BITS:
        literal_print(dtype, (uint64_t)v, p->out);
        str_printf(p->out, ":%s", dtype_name(dtype));
        return;
    case ATTR_DIMS: print_dim(p, (sym){v}); return;
    case ATTR_INT:
    case ATTR_INTS: str_printf(p->out, "%" PRId64, v); return;
    }
}

// One field from word *at on; false when the row ends too early.
static bool
print_field(struct printer *p, const struct schema_field *f, uint8_t dtype, const struct attr *row,
            uint32_t *at, const char *before)
{
    if (*at >= row->n)
        return false;
    int64_t v = row->v[(*at)++];
    if (f->type == ATTR_BOOL && !v && !f->preset)
        return true;
    str_printf(p->out, "%s%s = ", before, f->name);
    if (f->type != ATTR_INTS && f->type != ATTR_DIMS) {
        print_word(p, f->type, dtype, v);
        return true;
    }
    str_addc(p->out, '[');
    bool whole = v >= 0 && v <= row->n - *at;
    for (int64_t i = 0; whole && i < v; i++) {
        str_add(p->out, i ? ", " : "");
        print_word(p, f->type, dtype, row->v[(*at)++]);
    }
    str_addc(p->out, ']');
    return whole;
}

static void
print_attrs(struct printer *p, const struct node *n)
{
    struct schema_field field[SCHEMA_MAX];
    uint32_t nfield = schema_fields(op_table[n->op].attrs, field), at = 0;
    if (!nfield)
        return;
    if (n->attr >= p->g->attrs.n) {
        str_add(p->out, " {?}");
        return;
    }
    const struct attr *row = &p->g->attrs.at[n->attr];
    size_t start = p->out->n;
    bool whole = true;
    for (uint32_t i = 0; i < nfield && whole; i++) {
        const char *before = p->out->n == start ? " {" : ", ";
        whole = print_field(p, &field[i], n->dtype, row, &at, before);
    }
    if (!whole || at != row->n)
        str_add(p->out, p->out->n == start ? " {?" : " ?");
    if (p->out->n > start)
        str_addc(p->out, '}');
}

// max_reduce is max in text: the operand count and the axes tell them apart.
static void
print_op(struct printer *p, uint16_t op)
{
    static const char suffix[] = "_reduce";
    const char *name = op_name(op);
    size_t n = strlen(name), tail = sizeof suffix - 1;
    bool reduce = op_is(op, OPK_REDUCE) && n > tail && !strcmp(name + n - tail, suffix);
    str_addn(p->out, name, reduce ? n - tail : n);
}

static void
print_mark(struct printer *p)
{
    str_add(p->out, "  # <- ");
    for (const char *s = p->words; *s; s++)
        str_addc(p->out, *s == '\n' ? ' ' : *s);
}

static void
print_node(struct printer *p, uint32_t i)
{
    const struct graph *g = p->g;
    const struct node *n = &g->node.at[i];
    str_printf(p->out, "  %%%u = ", i);
    if (n->op == OP_literal) {
        print_literal(p, n);
    } else if (n->op == OP_none || n->op >= OP_COUNT) {
        str_printf(p->out, "op %u?", n->op);
    } else {
        print_op(p, n->op);
        if (!good_edges(g, n))
            str_add(p->out, " ?");
        for (uint32_t j = 0; j < n->nin && good_edges(g, n); j++) {
            str_add(p->out, j ? ", " : " ");
            print_ref(p, node_in(g, n, j));
        }
        print_attrs(p, n);
        str_add(p->out, " -> ");
        print_type(p, n);
    }
    if (i == p->mark.i)
        print_mark(p);
    str_addc(p->out, '\n');
}

// %x: f32[N=4096, 16] {strides = [32, 1], align = 16}
static void
print_input(struct printer *p, ref r)
{
    const struct node *n = &p->g->node.at[r.i];
    const struct graph_input *in = &p->g->inputs.at[input_index(p->g, n)];
    print_ref(p, r);
    if (!p->own_name[in - p->g->inputs.at]) {
        str_addc(p->out, ' ');
        lex_quote(in->name, p->out);
    }
    str_add(p->out, ": ");
    print_type(p, n);
    const char *before = " {";
    if (!in->dense && n->shape < p->g->shapes.n) {
        str_printf(p->out, "%sstrides = [", before);
        for (uint32_t i = 0; i < p->g->shapes.at[n->shape].rank; i++)
            str_printf(p->out, "%s%" PRId64, i ? ", " : "", in->stride[i]);
        str_addc(p->out, ']');
        before = ", ";
    }
    if (in->align_log2 != DEFAULT_ALIGN_LOG2) {
        str_printf(p->out, "%salign = %d", before, 1 << (in->align_log2 & 15));
        before = ", ";
    }
    if (*before == ',')
        str_addc(p->out, '}');
}

// The symbols in use, in the order of the table: [N=4, M=3]
static void
print_declarations(struct printer *p, const bool *used)
{
    const char *before = "[";
    for (uint32_t i = 0; i < symtab_names(p->g->sym); i++) {
        int64_t hint;
        const char *name = symtab_name(p->g->sym, i, &hint);
        if (!used[i])
            continue;
        str_printf(p->out, "%s%s=%" PRId64, before, name, hint);
        before = ", ";
    }
    str_addc(p->out, ']');
}

static void
print_header(struct printer *p, const bool *used)
{
    str_add(p->out, "graph ");
    if (lex_is_name(p->g->name))
        str_printf(p->out, "@%s", p->g->name);
    else if (*p->g->name)
        lex_quote(p->g->name, p->out);
    if (p->bracket)
        print_declarations(p, used);
}

static void
print_outputs(struct printer *p)
{
    str_add(p->out, "  return");
    for (uint32_t i = 0; i < p->g->outputs.n; i++) {
        const struct graph_output *o = &p->g->outputs.at[i];
        str_add(p->out, i ? ", " : " ");
        if (lex_is_name(o->name))
            str_printf(p->out, "%s = ", o->name);
        else if (*o->name) {
            lex_quote(o->name, p->out);
            str_add(p->out, " = ");
        }
        print_ref(p, o->node);
    }
    if (p->words && (!p->mark.i || p->mark.i >= p->g->node.n))
        print_mark(p);
    str_add(p->out, "\n}\n");
}

static void
print_body(struct printer *p)
{
    const struct graph *g = p->g;
    uint32_t i = 1;
    str_addc(p->out, '(');
    for (; i < g->node.n && input_index(g, &g->node.at[i]) != UINT32_MAX && i != p->mark.i; i++) {
        str_add(p->out, i > 1 ? ", " : "");
        print_input(p, (ref){i});
    }
    str_add(p->out, ") {\n");
    for (; i < g->node.n; i++) {
        if (input_index(g, &g->node.at[i]) != UINT32_MAX) {
            str_add(p->out, "  input ");
            print_input(p, (ref){i});
            if (i == p->mark.i)
                print_mark(p);
            str_addc(p->out, '\n');
        } else if (!is_literal(g, i) || !p->inlined[i]) {
            print_node(p, i);
        }
    }
    print_outputs(p);
}

void
graph_print_marked(const struct graph *g, ref mark, const char *words, struct str *out)
{
    uint32_t names = symtab_names(g->sym);
    struct str draft = {0};
    struct printer p = {.g = g, .out = &draft, .mark = words ? mark : (ref){0}, .words = words,
                        .inlined = xcalloc(g->node.n, 1), .own_name = xcalloc(g->inputs.n, 1),
                        .declared = xcalloc(names, 1)};
    choose_inlined(&p);
    choose_input_names(&p);
    bool *used = NULL;
    if (names) { // a draft shows which names are used, and in which order
        print_body(&p);
        used = p.declared;
        p.declared = xcalloc(names, 1);
        p.last_declared = 0;
    }
    p.out = out;
    print_header(&p, used);
    print_body(&p);
    str_free(&draft);
    str_free(&p.dim);
    xfree(used);
    xfree(p.declared);
    xfree(p.inlined);
    xfree(p.own_name);
}

void
graph_print(const struct graph *g, struct str *out)
{
    graph_print_marked(g, (ref){0}, NULL, out);
}
