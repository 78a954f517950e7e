// parse.h: inside the .fuse parser: its state and what parse.c and parse_call.c share.
#ifndef FUSEC_IR_PARSE_H
#define FUSEC_IR_PARSE_H

#include "ir/graph.h"
#include "ir/lex.h"

enum {
    PARSE_BYTES = 16 << 20, // of one text
    PARSE_DEPTH = 200,      // of nested calls and parentheses
    PARSE_OPERANDS = 4096,  // of one call
    PARSE_NODES = 1 << 20,  // of one graph
    PARSE_DIMS = 256,       // names of dims
};
// The largest dim, number in an attribute, stride, and count of elements of one tensor.
#define PARSE_NUMBER ((int64_t)1 << 48)

struct binding { // %name
    const char *name;
    uint32_t n, line;
    ref node;
};

struct parser {
    struct lexer lexer;
    struct token tok; // the next one
    struct graph *g;
    struct diag *d;
    const char *file;
    const uint32_t *origin; // of all nodes; NULL: each has the place of its call
    uint32_t depth;
    bool open; // the last call had several operands, and nothing enclosed them or followed
    VEC(struct binding) bindings;
    struct map binding_map; // ids are 1 + index
};

// A scalar as written; its dtype may come later.
struct written {
    const char *at;
    uint32_t n;
    bool is_float;
    struct token tok; // where it starts
};

// What stands where a value is expected: a node, or (weak) a number without a dtype.
struct operand {
    ref node;
    bool weak;
    struct written number;
};

void parse_advance(struct parser *p);
bool parse_accept(struct parser *p, char punct);
bool parse_expect(struct parser *p, char punct, const char *where);
// Errors at a token: words, or "expected …, found …" (at the next token). Return false.
bool parse_error(struct parser *p, const struct token *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool parse_expected(struct parser *p, const char *what);

bool parse_int(struct parser *p, int64_t *v);                       // -12, 0x1f
bool parse_dtype(struct parser *p, uint8_t *dtype);
bool parse_dim(struct parser *p, bool attribute, sym *out);         // attribute: -1 is allowed
bool parse_written(struct parser *p, struct written *w);            // 1.5, -inf, true
bool parse_bits(struct parser *p, const struct written *w, uint8_t dtype, uint64_t *bits);
bool parse_size(struct parser *p, const struct token *at, const struct shape *s); // within limits?

uint32_t parse_origin(struct parser *p, uint16_t op, uint32_t line);
bool parse_bind(struct parser *p, const struct token *t, ref node); // %name, from now on
bool parse_statement(struct parser *p); // %name = value
bool parse_value(struct parser *p, ref *out);

// A value; numbers without a dtype are taken as weak operands.
bool parse_operand(struct parser *p, struct operand *o);
// A call, from its name on.
bool parse_call(struct parser *p, ref *out);

#endif
