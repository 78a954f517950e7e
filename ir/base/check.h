// check.h: CHECK for fusec's own invariants. A user's mistake never reaches a CHECK: it becomes a
// status with words. A failed CHECK prints what was expected, where, and aborts.
#ifndef FUSEC_IR_BASE_CHECK_H
#define FUSEC_IR_BASE_CHECK_H

_Noreturn void check_failed(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define CHECK(cond, ...)                                                                           \
    ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond, __VA_ARGS__))

#endif
