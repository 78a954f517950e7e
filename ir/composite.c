// composite.c: the expansions of elementwise composites and the gradients of elementwise ops, read
// from the op table by the .fuse parser with operands and attributes bound to their names. The
// texts are ours: what does not parse is a bug and CHECKs. They are short (some dozen tokens), so
// they are read anew each time.
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
bind_operands(struct parser *p, uint16_t op, const ref *in)
{
    for (uint32_t i = 0, n; i < op_table[op].arity; i++) {
        const char *name = op_operand_name(op, i, &n);
        bind_name(p, name, n, in[i]);
    }
}

static void
bind_attributes(struct parser *p, uint16_t op, uint8_t dtype, const int64_t *attr)
{
    double number[COMPOSITE_NUMBERS];
    uint32_t n = composite_numbers(op, attr, number);
    const char *name = op_table[op].attrs; // field after field
    for (uint32_t i = 0; i < n; i++, name += strcspn(name, " ") + 1)
        bind_name(p, name, (uint32_t)strcspn(name, ":"),
                  graph_literal(p->g, dtype, scalar_from_double(dtype, number[i]), *p->origin));
}

// Reads statements and a value, all there is; ends the parser.
static ref
read_text(struct parser *p, const char *what, const char *text, size_t size)
{
    ref out = {0};
    lex_start(&p->lexer, text, size);
    parse_advance(p);
    bool whole = true, statements = p->tok.kind == TOK_REF && memchr(text, '=', size);
    while (statements && whole && p->tok.kind == TOK_REF)
        whole = parse_statement(p);
    if (statements && token_is_name(&p->tok, "return"))
        parse_advance(p);
    whole = whole && parse_value(p, &out) && p->tok.kind == TOK_END;
    CHECK(whole, "the %s, %.*s: %s", what, (int)size, text, p->d->text);
    vec_free(&p->bindings);
    map_free(&p->binding_map);
    return out;
}

ref
composite_expand(struct graph *g, uint16_t op, uint8_t dtype, const ref *in, const int64_t *attr,
                 uint32_t origin)
{
    const char *text = op_table[op].expand;
    struct diag d = {0};
    struct parser p = {.g = g, .d = &d, .file = op_name(op), .origin = &origin};
    bind_operands(&p, op, in);
    bind_attributes(&p, op, dtype, attr);
    return read_text(&p, "expansion", text, strlen(text));
}

ref
gradient_expand(struct graph *g, uint16_t op, uint32_t operand, const ref *in, ref y, ref grad,
                uint32_t origin)
{
    const char *text = op_table[op].grad;
    for (uint32_t i = 0; i < operand; i++) {
        text += strcspn(text, ";");
        CHECK(*text, "%s has %u gradients", op_name(op), i + 1);
        text += 1 + (text[1] == ' ');
    }
    size_t size = strcspn(text, ";");
    if (!size || (size == 1 && *text == '0'))
        return (ref){0};
    struct diag d = {0};
    struct parser p = {.g = g, .d = &d, .file = op_name(op), .origin = &origin};
    bind_operands(&p, op, in);
    bind_name(&p, "y", 1, y);
    bind_name(&p, "g", 1, grad);
    return read_text(&p, "gradient", text, size);
}
