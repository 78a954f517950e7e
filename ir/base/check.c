// check.c: the one place where fusec aborts. Reached only by a broken invariant of fusec itself.
#include "ir/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void
check_failed(const char *file, int line, const char *cond, const char *fmt, ...)
{
    fprintf(stderr, "fusec: internal error at %s:%d: %s: ", file, line, cond);
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
