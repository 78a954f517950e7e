// str.h: a growable string. Zero-initialise; s.at is NUL-terminated once anything was written.
#ifndef FUSEC_IR_BASE_STR_H
#define FUSEC_IR_BASE_STR_H

#include <stddef.h>

struct str {
    char *at;
    size_t n, cap;
};
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t n);
void str_addc(struct str *s, char c);
void str_insert(struct str *s, size_t at, const char *text, size_t n); // before byte `at` <= s->n
void str_printf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *str_text(const struct str *s); // never NULL
void str_free(struct str *s);

#endif
