// str.c: a growable string, always NUL-terminated.
#include "ir/base/str.h"

#include "ir/base/check.h"
#include "ir/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
str_reserve(struct str *s, size_t more)
{
    size_t need = s->n + more + 1;
    if (need <= s->cap)
        return;
    size_t cap = s->cap ? s->cap : 256;
    while (cap < need)
        cap *= 2;
    s->at = xrealloc(s->at, cap);
    s->cap = cap;
}

void
str_addn(struct str *s, const char *text, size_t n)
{
    str_reserve(s, n);
    memcpy(s->at + s->n, text, n);
    s->n += n;
    s->at[s->n] = 0;
}

void
str_add(struct str *s, const char *text)
{
    str_addn(s, text, strlen(text));
}

void
str_addc(struct str *s, char c)
{
    str_addn(s, &c, 1);
}

void
str_insert(struct str *s, size_t at, const char *text, size_t n)
{
    str_reserve(s, n);
    memmove(s->at + at + n, s->at + at, s->n - at);
    memcpy(s->at + at, text, n);
    s->n += n;
    s->at[s->n] = 0;
}

void
str_printf(struct str *s, const char *fmt, ...)
{
    str_reserve(s, 127);
    // Most texts fit: formatting twice to learn the size would cost twice.
    size_t room = s->cap - s->n;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(s->at + s->n, room, fmt, ap);
    va_end(ap);
    CHECK(n >= 0, "bad format %s", fmt);
    if ((size_t)n >= room) {
        str_reserve(s, (size_t)n);
        vsnprintf(s->at + s->n, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    s->n += (size_t)n;
}

const char *
str_text(const struct str *s)
{
    return s->at ? s->at : "";
}

void
str_free(struct str *s)
{
    xfree(s->at);
    *s = (struct str){0};
}
