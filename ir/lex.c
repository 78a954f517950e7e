// lex.c: .fuse text as tokens, one at a time, without copying. Names are letters, digits, '_' and
// '.', not starting with a digit; after % they may. Comments run from # or // to the end of the
// line. Any byte string is taken: what is no token becomes TOK_BAD with words. Positions are
// limited to 32 bits by graph_parse's limit on the size of a text.
#include "ir/lex.h"

#include "ir/base/str.h"

#include <string.h>

enum { TOKEN_MAX = 1000 };

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_name_char(char c)
{
    return is_name_start(c) || is_digit(c) || c == '.';
}

static int
hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void
lex_start(struct lexer *l, const char *text, size_t n)
{
    *l = (struct lexer){.at = text, .end = text + n, .line_start = text, .line = 1};
}

static char
peek(const struct lexer *l, ptrdiff_t ahead)
{
    return l->end - l->at > ahead ? l->at[ahead] : 0;
}

static void
skip_space(struct lexer *l)
{
    while (l->at < l->end) {
        char c = *l->at;
        if (c == '#' || (c == '/' && peek(l, 1) == '/')) {
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        } else if (c == '\n') {
            l->at++;
            l->line++;
            l->line_start = l->at;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            l->at++;
        } else {
            return;
        }
    }
}

static struct token
bad(struct token t, const char *words)
{
    t.kind = TOK_BAD;
    t.words = words;
    return t;
}

// Takes the characters from t.at on while they belong to a name.
static struct token
take_name(struct lexer *l, struct token t, enum token_kind kind)
{
    t.at = l->at;
    while (l->at < l->end && is_name_char(*l->at))
        l->at++;
    t.n = (uint32_t)(l->at - t.at);
    t.kind = (uint8_t)kind;
    if (!t.n)
        return bad(t, "a name is missing after the sign");
    return t.n > TOKEN_MAX ? bad(t, "a name of more than 1000 characters") : t;
}

static void
skip_digits(struct lexer *l, bool hex)
{
    while (l->at < l->end && (hex ? hex_value(*l->at) >= 0 : is_digit(*l->at)))
        l->at++;
}

static struct token
take_number(struct lexer *l, struct token t)
{
    bool hex = *l->at == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');
    if (hex)
        l->at += 2;
    skip_digits(l, hex);
    if (peek(l, 0) == '.') {
        t.is_float = true;
        l->at++;
        skip_digits(l, hex);
    }
    char e = peek(l, 0);
    if (hex ? e == 'p' || e == 'P' : e == 'e' || e == 'E') {
        t.is_float = true;
        l->at++;
        if (peek(l, 0) == '+' || peek(l, 0) == '-')
            l->at++;
        const char *digits = l->at;
        skip_digits(l, false);
        if (l->at == digits)
            return bad(t, "an exponent without digits");
    }
    t.kind = TOK_NUMBER;
    t.n = (uint32_t)(l->at - t.at);
    if (is_name_char(peek(l, 0)) || (hex && t.n == 2))
        return bad(t, "a malformed number");
    return t.n > TOKEN_MAX ? bad(t, "a number of more than 1000 characters") : t;
}

static struct token
take_string(struct lexer *l, struct token t)
{
    t.at = ++l->at;
    t.kind = TOK_STRING;
    while (l->at < l->end && *l->at != '"' && *l->at != '\n')
        l->at += *l->at == '\\' && l->end - l->at > 1 ? 2 : 1;
    t.n = (uint32_t)(l->at - t.at);
    if (l->at == l->end || *l->at != '"')
        return bad(t, "a string without its closing quote");
    l->at++;
    return t.n > 4 * TOKEN_MAX ? bad(t, "a string of more than 4000 characters") : t;
}

struct token
lex_next(struct lexer *l)
{
    const char *before = l->at;
    skip_space(l);
    struct token t = {.glued = l->at == before, .line = l->line, .at = l->at,
                      .column = (uint32_t)(l->at - l->line_start) + 1};
    if (l->at == l->end)
        return t;
    char c = *l->at;
    if (is_name_start(c))
        return take_name(l, t, TOK_NAME);
    if (c == '%' || c == '@') {
        l->at++;
        return take_name(l, t, c == '%' ? TOK_REF : TOK_AT);
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(l, 1))))
        return take_number(l, t);
    if (c == '"')
        return take_string(l, t);
    t.n = c == '-' && peek(l, 1) == '>' ? 2 : 1;
    l->at += t.n;
    t.kind = t.n == 2 ? TOK_ARROW : TOK_PUNCT;
    if (t.n == 1 && !(c && strchr("(){}[],=:*+-", c)))
        return bad(t, "a character that has no meaning here");
    return t;
}

bool
token_is_name(const struct token *t, const char *name)
{
    return t->kind == TOK_NAME && strlen(name) == t->n && !memcmp(t->at, name, t->n);
}

static void
add_escaped(const char *s, size_t n, struct str *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            str_printf(out, "\\%c", c);
        else if (c == '\n')
            str_add(out, "\\n");
        else if (c < 32 || c == 127)
            str_printf(out, "\\x%02x", c);
        else
            str_addc(out, s[i]);
    }
}

void
token_describe(const struct token *t, struct str *out)
{
    if (t->kind == TOK_END) {
        str_add(out, "end of file");
        return;
    }
    if (t->kind == TOK_BAD) {
        str_printf(out, "%s ", t->words);
        if (t->n == 1 && (unsigned char)*t->at >= 127) {
            str_printf(out, "(byte 0x%02x)", (unsigned char)*t->at);
            return;
        }
    }
    str_addc(out, '\'');
    if (t->kind == TOK_REF || t->kind == TOK_AT)
        str_addc(out, t->kind == TOK_REF ? '%' : '@');
    add_escaped(t->at, t->n < 60 ? t->n : 60, out);
    str_add(out, t->n > 60 ? "…'" : "'");
}

bool
token_string(const struct token *t, struct str *out)
{
    str_add(out, "");
    for (uint32_t i = 0; i < t->n; i++) {
        char c = t->at[i];
        if (c != '\\') {
            str_addc(out, c);
            continue;
        }
        char e = ++i < t->n ? t->at[i] : 0;
        if (e == 'n') {
            str_addc(out, '\n');
        } else if (e == '"' || e == '\\') {
            str_addc(out, e);
        } else if (e == 'x' && i + 2 < t->n && hex_value(t->at[i + 1]) >= 0 &&
                   hex_value(t->at[i + 2]) >= 0) {
            str_addc(out, (char)(hex_value(t->at[i + 1]) * 16 + hex_value(t->at[i + 2])));
            i += 2;
        } else {
            return false;
        }
    }
    return strlen(out->at) == out->n; // no zero byte inside
}

void
lex_quote(const char *s, struct str *out)
{
    str_addc(out, '"');
    add_escaped(s, strlen(s), out);
    str_addc(out, '"');
}

bool
lex_is_name(const char *s)
{
    if (!is_name_start(*s))
        return false;
    size_t n = 0;
    while (is_name_char(s[n]))
        n++;
    return !s[n] && n <= TOKEN_MAX;
}
