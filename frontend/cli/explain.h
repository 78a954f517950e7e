// explain.h: a plan in words, as JSON, and as the texts behind it. All functions are pure: the same
// plan and target give the same bytes.
#ifndef FUSEC_FRONTEND_CLI_EXPLAIN_H
#define FUSEC_FRONTEND_CLI_EXPLAIN_H

#include "ir/base/str.h"
#include "passes/plan.h"

void explain_text(const struct plan *p, bool colour, struct str *out);
void explain_json(const struct plan *p, struct str *out);

// what: ir, kernels, llvm, asm or dot. False: d (the device's compiler failed, or is absent).
bool explain_emit(const struct plan *p, const struct target *t, const char *what, struct str *out,
                  struct diag *d);
bool explain_can_emit(const char *what);
void explain_dot(const struct plan *p, struct str *out);

// ---- facts that the forms share (explain_facts.c)

// Arrays moved between kernels and memory: eager, per op as called; compiled, per launch.
uint32_t eager_transfers(const struct plan *p);
uint32_t plan_transfers(const struct plan *p);
// What became of an op that the user called: a node of the raw graph.
struct op_fate {
    uint32_t node;
    bool array;      // eager execution stores its result, and it is no output
    bool stored;     // so does the plan
    int64_t bytes;   // of the result
    uint32_t nkernel;
    uint32_t *kernel; // launches that compute it, whole or in part
};
typedef VEC(struct op_fate) op_fates;
void find_fates(const struct plan *p, op_fates *out); // in graph order, views included
void free_fates(op_fates *f);
// x, out0, tmp0
const char *buffer_name(const struct plan *p, uint32_t buffer, char name[64]);
// Numbers of the kernel's buffers in one role, in the plan's order; the caller's to xfree.
uint32_t *launch_buffers(const struct launch *l, uint8_t role, uint32_t *n);
int64_t launch_scratch(const struct launch *l);
void class_words(const struct launch *l, struct str *out); // class and schedule
void guard_words(const struct plan *p, uint32_t input, struct str *out);

#endif
