// diag.h: an error in words, on its way to the user. The first error written stays.
#ifndef FUSEC_IR_DIAG_H
#define FUSEC_IR_DIAG_H

#include <stdbool.h>

// Categories of failure; the public statuses are generated from the same list.
enum diag_code {
#define STATUS(name, value, doc) DIAG_##name = value,
#include "ir/status.def"
#undef STATUS
};

struct diag {
    enum diag_code code; // DIAG_OK: nothing went wrong
    char text[1000];
};
// What a call's diag needs before use, for hot paths: = {0} would clear a kilobyte of text.
static inline void
diag_clear(struct diag *d)
{
    d->code = DIAG_OK;
    d->text[0] = '\0';
}
// Records an error unless one is there already. Returns false, so that callers can
// `return diag_set(...)`.
bool diag_set(struct diag *d, enum diag_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
