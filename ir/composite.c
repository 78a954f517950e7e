// composite.c: the expansions of elementwise composites, read from the op table by the .fuse parser
// with operands and attributes bound to their names. The texts are ours: what does not parse is a
// bug and CHECKs. They are short (some dozen tokens), so they are read anew each time.
#include "ir/composite.h"

#include "ir/base/check.h"
#include "ir/parse.h"
#include "ir/schema.h"

#include <string.h>

uint32_t
composite_numbers(uint16_t op, const int64_t *attr, double number[COMPOSITE_NUMBERS])
{
    struct schema_field field[SCHEMA_MAX];
    uint32_t n = schema_fields(op_table[op].attrs, field);
    CHECK(n <= COMPOSITE_NUMBERS, "%s has %u attributes", op_name(op), n);
    for (uint32_t i = 0; i < n; i++)
        number[i] = field[i].type == ATTR_FLOAT ? scalar_to_double(DT_f64, (uint64_t)attr[i])
                                                : (double)attr[i];
    return n;
}

static void
bind_name(struct parser *p, const char *name, uint32_t n, ref node)
{
    struct token t = {.kind = TOK_REF, .at = name, .n = n, .line = 1};
    CHECK(parse_bind(p, &t, node), "%s", p->d->text);
}

static void
bind_names(struct parser *p, uint16_t op, uint8_t dtype, const ref *in, const int64_t *attr)
{
    for (uint32_t i = 0, n; i < op_table[op].arity; i++) {
        const char *name = op_operand_name(op, i, &n);
        bind_name(p, name, n, in[i]);
    }
    double number[COMPOSITE_NUMBERS];
    uint32_t n = composite_numbers(op, attr, number);
    const char *name = op_table[op].attrs; // field after field
    for (uint32_t i = 0; i < n; i++, name += strcspn(name, " ") + 1)
        bind_name(p, name, (uint32_t)strcspn(name, ":"),
                  graph_literal(p->g, dtype, scalar_from_double(dtype, number[i]), *p->origin));
}

ref
composite_expand(struct graph *g, uint16_t op, uint8_t dtype, const ref *in, const int64_t *attr,
                 uint32_t origin)
{
    const char *text = op_table[op].expand;
    struct diag d = {0};
    struct parser p = {.g = g, .d = &d, .file = op_name(op), .origin = &origin};
    ref out = {0};
    bind_names(&p, op, dtype, in, attr);
    lex_start(&p.lexer, text, strlen(text));
    parse_advance(&p);
    bool whole = true, statements = p.tok.kind == TOK_REF;
    while (whole && p.tok.kind == TOK_REF)
        whole = parse_statement(&p);
    if (statements && token_is_name(&p.tok, "return"))
        parse_advance(&p);
    whole = whole && parse_value(&p, &out) && p.tok.kind == TOK_END;
    CHECK(whole, "the expansion of %s, %s: %s", op_name(op), text, d.text);
    vec_free(&p.bindings);
    map_free(&p.binding_map);
    return out;
}
