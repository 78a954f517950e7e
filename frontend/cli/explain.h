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
// What eager execution stores that is no output.
struct intermediates {
    uint32_t n, stored_n; // eager's; the plan's
    int64_t bytes, stored_bytes;
};
struct intermediates plan_intermediates(const struct plan *p);
// x, out0, tmp0
const char *buffer_name(const struct plan *p, uint32_t buffer, char name[64]);
const char *output_name(const struct plan *p, uint32_t output, char name[64]);
int64_t launch_scratch(const struct launch *l);
void class_words(const struct launch *l, struct str *out); // class and schedule
void guard_words(const struct plan *p, uint32_t input, struct str *out);

#endif
