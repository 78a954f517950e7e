// sym.c: dims as polynomials over named symbols. A number is stored in place. A polynomial is a sum
// of terms, each an integer coefficient times a sorted list of symbols (a repeated symbol is a
// power). The normal form has no zero coefficients, no two terms of equal symbols, and an order:
// higher degree first, then by symbol in order of first use; the constant comes last. Equal
// polynomials therefore are equal term by term and interned to one number, and a polynomial of
// degree 0 is stored in place.
//
// Nothing overflows: a result beyond SYM_HUGE, or of more terms or a higher degree than a sensible
// shape has, becomes SYM_HUGE, which absorbs everything it meets. Inference refuses shapes with it.
#include "ir/sym.h"

#include "ir/base/check.h"
#include "ir/base/str.h"

#include <string.h>

enum { MAX_TERMS = 64, MAX_DEGREE = 16 };

struct term {
    int64_t coef;
    uint32_t degree;
    uint32_t var[MAX_DEGREE]; // sorted; only the first `degree` count
};

struct poly { // a polynomial in the making; huge: out of range
    struct term term[MAX_TERMS];
    uint32_t n;
    bool huge;
};

struct sym_expr { // interned
    const struct term *term;
    uint32_t n;
};

struct sym_name {
    const char *name;
    int64_t hint;
};

struct symtab {
    VEC(struct sym_expr) expr;
    VEC(struct sym_name) name;
    struct map expr_map; // ids are 1 + index
    struct arena mem;
};

struct symtab *
symtab_new(void)
{
    return xcalloc(1, sizeof(struct symtab));
}

void
symtab_free(struct symtab *t)
{
    if (!t)
        return;
    vec_free(&t->expr);
    vec_free(&t->name);
    map_free(&t->expr_map);
    arena_free(&t->mem);
    xfree(t);
}

static sym
in_range(bool overflowed, int64_t v)
{
    return sym_num(overflowed || v >= SYM_HUGE || v <= -SYM_HUGE ? SYM_HUGE : v);
}

// Order of terms: negative when a comes first.
static int
term_order(const struct term *a, const struct term *b)
{
    if (a->degree != b->degree)
        return a->degree > b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->var[i] != b->var[i])
            return a->var[i] < b->var[i] ? -1 : 1;
    return 0;
}

// Adds coef * (symbols of t) to p, keeping the normal form.
static void
poly_add_term(struct poly *p, const struct term *t)
{
    uint32_t i = 0;
    while (i < p->n && term_order(&p->term[i], t) < 0)
        i++;
    if (i < p->n && !term_order(&p->term[i], t)) {
        sym sum = sym_num(0);
        bool over = __builtin_add_overflow(p->term[i].coef, t->coef, &sum.v);
        sum = in_range(over, sum.v);
        p->huge |= sum.v == SYM_HUGE;
        p->term[i].coef = sum.v;
        if (!sum.v)
            memmove(&p->term[i], &p->term[i + 1], (--p->n - i) * sizeof *p->term);
        return;
    }
    if (!t->coef)
        return;
    if (p->n == MAX_TERMS) {
        p->huge = true;
        return;
    }
    memmove(&p->term[i + 1], &p->term[i], (p->n++ - i) * sizeof *p->term);
    p->term[i] = *t;
}

// The terms of a sym; a number has one term in `one`.
static struct sym_expr
terms_of(const struct symtab *t, sym s, struct term *one)
{
    if (!sym_is_num(s))
        return t->expr.at[s.v - SYM_TAG];
    *one = (struct term){.coef = s.v};
    return (struct sym_expr){one, 1};
}

// p += factor * s
static void
poly_add(const struct symtab *t, struct poly *p, sym s, int64_t factor)
{
    struct term one, scaled;
    struct sym_expr e = terms_of(t, s, &one);
    for (uint32_t i = 0; i < e.n; i++) {
        scaled = e.term[i];
        bool over = __builtin_mul_overflow(scaled.coef, factor, &scaled.coef);
        p->huge |= in_range(over, scaled.coef).v == SYM_HUGE;
        poly_add_term(p, &scaled);
    }
}

static struct term
term_product(const struct term *a, const struct term *b, bool *huge)
{
    struct term r = {.degree = a->degree + b->degree};
    if (r.degree > MAX_DEGREE) {
        *huge = true;
        return (struct term){0};
    }
    for (uint32_t i = 0, j = 0; i + j < r.degree;)
        if (j == b->degree || (i < a->degree && a->var[i] <= b->var[j])) {
            r.var[i + j] = a->var[i];
            i++;
        } else {
            r.var[i + j] = b->var[j];
            j++;
        }
    bool over = __builtin_mul_overflow(a->coef, b->coef, &r.coef);
    *huge |= in_range(over, r.coef).v == SYM_HUGE;
    return r;
}

static uint64_t
expr_hash(const struct term *term, uint32_t n)
{
    uint64_t h = 6;
    for (uint32_t i = 0; i < n; i++) {
        h = hash_mix(h, (uint64_t)term[i].coef);
        h = hash_bytes(h, term[i].var, term[i].degree * sizeof *term[i].var);
    }
    return h;
}

static bool
expr_equal(const struct sym_expr *e, const struct poly *p)
{
    if (e->n != p->n)
        return false;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->term[i].coef != p->term[i].coef || term_order(&e->term[i], &p->term[i]))
            return false;
    return true;
}

static sym
intern(struct symtab *t, const struct poly *p)
{
    if (p->huge)
        return sym_num(SYM_HUGE);
    if (!p->n)
        return sym_num(0);
    if (p->n == 1 && !p->term[0].degree)
        return sym_num(p->term[0].coef);
    uint64_t h = expr_hash(p->term, p->n);
    uint32_t at = 0;
    for (uint32_t id; (id = map_next(&t->expr_map, h, &at));)
        if (expr_equal(&t->expr.at[id - 1], p))
            return (sym){SYM_TAG + id - 1};
    struct sym_expr e = {arena_copy(&t->mem, p->term, p->n * sizeof *p->term), p->n};
    vec_push(&t->expr, e);
    map_add(&t->expr_map, h, t->expr.n);
    return (sym){SYM_TAG + t->expr.n - 1};
}

static uint32_t
find_name(const struct symtab *t, const char *name) // symtab_names: not there
{
    uint32_t i = 0;
    while (i < t->name.n && strcmp(t->name.at[i].name, name))
        i++;
    return i;
}

sym
sym_named(struct symtab *t, const char *name, int64_t hint)
{
    uint32_t i = find_name(t, name);
    if (i == t->name.n) {
        struct sym_name n = {arena_strdup(&t->mem, name), hint};
        vec_push(&t->name, n);
    }
    struct poly p;
    p.term[0] = (struct term){.coef = 1, .degree = 1, .var = {i}};
    p.n = 1;
    p.huge = false;
    return intern(t, &p);
}

static sym
add_signed(struct symtab *t, sym a, sym b, int64_t sign)
{
    if (a.v == SYM_HUGE || b.v == SYM_HUGE)
        return sym_num(SYM_HUGE);
    if (sym_is_num(a) && sym_is_num(b)) {
        int64_t v;
        bool over = sign > 0 ? __builtin_add_overflow(a.v, b.v, &v)
                               : __builtin_sub_overflow(a.v, b.v, &v);
        return in_range(over, v);
    }
    struct poly p;
    p.n = 0;
    p.huge = false;
    poly_add(t, &p, a, 1);
    poly_add(t, &p, b, sign);
    return intern(t, &p);
}

sym
sym_add(struct symtab *t, sym a, sym b)
{
    return add_signed(t, a, b, 1);
}

sym
sym_sub(struct symtab *t, sym a, sym b)
{
    return add_signed(t, a, b, -1);
}

sym
sym_mul(struct symtab *t, sym a, sym b)
{
    if (a.v == SYM_HUGE || b.v == SYM_HUGE)
        return sym_num(SYM_HUGE);
    if (sym_is_num(a) && sym_is_num(b)) {
        int64_t v;
        bool over = __builtin_mul_overflow(a.v, b.v, &v);
        return in_range(over, v);
    }
    struct term one_a, one_b;
    struct sym_expr x = terms_of(t, a, &one_a), y = terms_of(t, b, &one_b);
    struct poly p;
    p.n = 0;
    p.huge = false;
    for (uint32_t i = 0; i < x.n && !p.huge; i++)
        for (uint32_t j = 0; j < y.n && !p.huge; j++) {
            struct term prod = term_product(&x.term[i], &y.term[j], &p.huge);
            poly_add_term(&p, &prod);
        }
    return intern(t, &p);
}

bool
sym_div(struct symtab *t, sym a, int64_t by, sym *quotient)
{
    if (!by || a.v == SYM_HUGE || sym_divisible(t, a, by) != SYM_YES)
        return false;
    if (sym_is_num(a)) {
        *quotient = in_range(false, a.v / by);
        return true;
    }
    const struct sym_expr *e = &t->expr.at[a.v - SYM_TAG];
    struct poly p;
    p.n = e->n;
    p.huge = false;
    for (uint32_t i = 0; i < e->n; i++) {
        p.term[i] = e->term[i];
        p.term[i].coef /= by;
    }
    *quotient = intern(t, &p);
    return true;
}

static int64_t
poly_hint(const struct symtab *t, const struct term *term, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = term[i].coef;
        bool over = false;
        for (uint32_t k = 0; k < term[i].degree; k++)
            over |= __builtin_mul_overflow(v, t->name.at[term[i].var[k]].hint, &v);
        over |= __builtin_add_overflow(sum, v, &sum);
        if (in_range(over, sum).v == SYM_HUGE)
            return SYM_HUGE;
    }
    return sum;
}

int64_t
sym_hint(const struct symtab *t, sym s)
{
    if (sym_is_num(s))
        return s.v;
    const struct sym_expr *e = &t->expr.at[s.v - SYM_TAG];
    return poly_hint(t, e->term, e->n);
}

bool
sym_set_hint(struct symtab *t, const char *name, int64_t hint)
{
    uint32_t i = find_name(t, name);
    if (i == t->name.n)
        return false;
    t->name.at[i].hint = hint;
    return true;
}

// Dims are at least 0, so a difference whose coefficients share a sign is never 0 when its constant
// is not.
static bool
never_zero(const struct poly *p)
{
    if (!p->n || p->term[p->n - 1].degree)
        return false;
    for (uint32_t i = 0; i + 1 < p->n; i++)
        if ((p->term[i].coef > 0) != (p->term[p->n - 1].coef > 0))
            return false;
    return true;
}

enum sym_answer
sym_eq(const struct symtab *t, sym a, sym b)
{
    if (a.v == SYM_HUGE || b.v == SYM_HUGE)
        return SYM_NO;
    if (a.v == b.v)
        return SYM_YES;
    if (sym_is_num(a) && sym_is_num(b))
        return SYM_NO;
    struct poly p;
    p.n = 0;
    p.huge = false;
    poly_add(t, &p, a, 1);
    poly_add(t, &p, b, -1);
    if (!p.huge && never_zero(&p))
        return SYM_NO;
    return sym_hint(t, a) == sym_hint(t, b) ? SYM_ASK : SYM_NO;
}

enum sym_answer
sym_divisible(const struct symtab *t, sym a, int64_t by)
{
    if (!by || a.v == SYM_HUGE)
        return SYM_NO;
    if (by == 1 || by == -1)
        return SYM_YES;
    if (sym_is_num(a))
        return a.v % by ? SYM_NO : SYM_YES;
    const struct sym_expr *e = &t->expr.at[a.v - SYM_TAG];
    bool symbols = true, constant = true;
    for (uint32_t i = 0; i < e->n; i++)
        *(e->term[i].degree ? &symbols : &constant) &= !(e->term[i].coef % by);
    if (symbols)
        return constant ? SYM_YES : SYM_NO;
    return sym_hint(t, a) % by ? SYM_NO : SYM_ASK;
}

static void
print_term(const struct symtab *t, const struct term *m, bool first, struct str *out)
{
    uint64_t magnitude = m->coef < 0 ? 0 - (uint64_t)m->coef : (uint64_t)m->coef;
    if (m->coef < 0)
        str_add(out, "-");
    else if (!first)
        str_add(out, "+");
    if (magnitude != 1 || !m->degree)
        str_printf(out, "%llu%s", (unsigned long long)magnitude, m->degree ? "*" : "");
    for (uint32_t i = 0; i < m->degree; i++)
        str_printf(out, "%s%s", i ? "*" : "", t->name.at[m->var[i]].name);
}

void
sym_print(const struct symtab *t, sym s, struct str *out)
{
    struct term one;
    struct sym_expr e = terms_of(t, s, &one);
    for (uint32_t i = 0; i < e.n; i++)
        print_term(t, &e.term[i], i == 0, out);
}

uint32_t
symtab_names(const struct symtab *t)
{
    return t->name.n;
}

const char *
symtab_name(const struct symtab *t, uint32_t i, int64_t *hint)
{
    CHECK(i < t->name.n, "symbol %u of %u", i, t->name.n);
    if (hint)
        *hint = t->name.at[i].hint;
    return t->name.at[i].name;
}
