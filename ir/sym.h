// sym.h: dims. A sym is a number (stored in place) or a normalised polynomial over named symbols
// (interned in a symtab). Every symbol has a hint: the value that it has in the graph at hand.
#ifndef FUSEC_IR_SYM_H
#define FUSEC_IR_SYM_H

#include "ir/base/hash.h"
#include "ir/base/mem.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t v; // |v| < 2^62: the number itself; else SYM_TAG + index of an expression
} sym;
#define SYM_TAG ((int64_t)1 << 62)
#define SYM_HUGE (SYM_TAG - 1) // what overflowed: absorbs all it meets; no shape may hold it

static inline sym
sym_num(int64_t v)
{
    return (sym){v};
}
static inline bool
sym_is_num(sym s)
{
    return s.v < SYM_TAG;
}

struct symtab; // grows only; owned by a graph or a context
struct symtab *symtab_new(void);
void symtab_free(struct symtab *t);

sym sym_named(struct symtab *t, const char *name, int64_t hint); // the same name: the same symbol
sym sym_add(struct symtab *t, sym a, sym b);
sym sym_sub(struct symtab *t, sym a, sym b);
sym sym_mul(struct symtab *t, sym a, sym b);
bool sym_div(struct symtab *t, sym a, int64_t by, sym *quotient); // false: not exact for all values
int64_t sym_hint(const struct symtab *t, sym s); // the value under the hints; numbers: themselves
bool sym_set_hint(struct symtab *t, const char *name, int64_t hint); // false: no such name

enum sym_answer { SYM_NO, SYM_YES, SYM_ASK };    // ASK: true under the hints, needs a guard
enum sym_answer sym_eq(const struct symtab *t, sym a, sym b);
enum sym_answer sym_divisible(const struct symtab *t, sym a, int64_t by);

struct str;
void sym_print(const struct symtab *t, sym s, struct str *out); // N, 4096, 2*N+1
// Number of distinct names, and the i-th (in order of first use) with its hint.
uint32_t symtab_names(const struct symtab *t);
const char *symtab_name(const struct symtab *t, uint32_t i, int64_t *hint);

#endif
