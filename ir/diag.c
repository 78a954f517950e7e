// diag.c: the first error stays, so that the cause is reported and not its consequences.
#include "ir/diag.h"

#include <stdarg.h>
#include <stdio.h>

bool
diag_set(struct diag *d, enum diag_code code, const char *fmt, ...)
{
    if (!d || d->code != DIAG_OK)
        return false;
    d->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->text, sizeof d->text, fmt, ap);
    va_end(ap);
    return false;
}
