// lex.h: .fuse text as tokens.
#ifndef FUSEC_IR_LEX_H
#define FUSEC_IR_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
    TOK_END,    // of the text
    TOK_BAD,    // words says what is wrong
    TOK_NAME,   // softmax, f32, N
    TOK_REF,    // %x; at and n exclude the sign
    TOK_AT,     // @softmax; at and n exclude the sign
    TOK_NUMBER, // unsigned: 12, 0x1f, 1.5e-3, 0x1.8p3
    TOK_STRING, // "…"; at and n exclude the quotes, escapes are \" \\ \n \xHH
    TOK_ARROW,  // ->
    TOK_PUNCT,  // any of ( ) { } [ ] , = : * + -
};

struct token {
    uint8_t kind;
    bool glued;    // nothing between it and the token before
    bool is_float; // a number with a point or an exponent
    uint32_t line, column; // from 1; columns count bytes
    const char *at;
    uint32_t n;
    const char *words; // TOK_BAD
};

struct lexer {
    const char *at, *end, *line_start;
    uint32_t line;
};

void lex_start(struct lexer *l, const char *text, size_t n);
struct token lex_next(struct lexer *l);

static inline bool
token_is(const struct token *t, char punct)
{
    return t->kind == TOK_PUNCT && *t->at == punct;
}
bool token_is_name(const struct token *t, const char *name);

struct str;
void token_describe(const struct token *t, struct str *out); // 'add', '%x', end of file
bool token_string(const struct token *t, struct str *out);   // a string's bytes; false: bad escape
void lex_quote(const char *s, struct str *out);              // the opposite, with the quotes
bool lex_is_name(const char *s);     // a plain name, printable without quotes

#endif
