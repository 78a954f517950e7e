// jit_symbols.h: functions of the host that generated code may call.
#ifndef FUSEC_RUNTIME_JIT_SYMBOLS_H
#define FUSEC_RUNTIME_JIT_SYMBOLS_H

#include <stdint.h>

struct jit_symbol {
    const char *name;
    void (*address)(void);
};
extern const struct jit_symbol jit_symbols[];
extern const uint32_t jit_symbol_count;

#endif
